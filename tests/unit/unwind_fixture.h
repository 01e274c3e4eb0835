/* Native stacks whose frames are looked for in the tests: what is mapped, as the text of
 * /proc/PID/maps says, and the chain of names that a stack has. */
#ifndef LS_TESTS_UNWIND_FIXTURE_H
#define LS_TESTS_UNWIND_FIXTURE_H

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "record/worker/symbols.h"
#include "record/native/unwind.h"
#include "tests/hosts/native_dump.h"

#define FRAMES 512
/* Registers that luasample's agent sends. */
#define AGENT_KNOWS                                                                                \
        ((1u << LS_REG_IP) | (1u << LS_REG_RSP) | (1u << LS_REG_RBP) | (1u << LS_REG_RBX) | 0xf000u)

struct file { char *path; struct ls_cfi *cfi; struct ls_symbols *symbols; };
struct range { uint64_t start, end, offset; uint32_t file; };

struct space {
        struct file files[64];
        uint32_t n_files;
        struct range ranges[256];
        uint32_t n_ranges;
        struct ls_unwinder *unwinder;
        struct { uint64_t pc; char name[128]; } names[4096];    /* by pc: looking them up takes
                                                                 * long */
};

static inline uint32_t file_of(struct space *s, const char *path)
{
        struct file *f;

        for (uint32_t i = 0; i < s->n_files; i++)
                if (!strcmp(s->files[i].path, path))
                        return i;
        assert_true(s->n_files < 64);
        f = &s->files[s->n_files];
        f->path = strdup(path);
        if (ls_cfi_open(ls_symbols_is_vdso(path) ? NULL : path, NULL, 0, &f->cfi) < 0)
                f->cfi = NULL;
        f->symbols = ls_symbols_open(path, NULL, 0);
        return s->n_files++;
}

static inline void set_maps(struct space *s, char *text)
{
        char *save = NULL, path[512], perms[8];

        s->n_ranges = 0;
        memset(s->names, 0, sizeof(s->names));
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                struct range r;

                if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511[^\n]",
                           &r.start, &r.end, perms, &r.offset, path) != 5 ||
                    perms[2] != 'x' || (*path != '/' && !ls_symbols_is_vdso(path)))
                        continue;
                r.file = file_of(s, path);
                assert_true(s->n_ranges < 256);
                s->ranges[s->n_ranges++] = r;
        }
        assert_true(s->n_ranges > 2);
        ls_unwind_forget(s->unwinder, 0, UINT64_MAX);
}

static inline int find(void *ctx, uint64_t pc, struct ls_unwind_place *ret)
{
        struct space *s = ctx;

        for (uint32_t i = 0; i < s->n_ranges; i++) {
                const struct range *r = &s->ranges[i];

                if (pc < r->start || pc >= r->end)
                        continue;
                ret->file = s->files[r->file].cfi;
                ret->file_offset = pc - r->start + r->offset;
                ret->module = r->file;
                return 0;
        }
        return -ENOEXEC;
}

static inline int row(void *ctx, const struct ls_unwind_place *place, struct ls_cfi_row *ret,
                      uint64_t *ret_function)
{
        (void)ctx;
        return ls_cfi_row(place->file, place->file_offset, ret, ret_function);
}

static inline uint32_t label(void *ctx, uint64_t pc, const struct ls_unwind_place *place,
                             uint64_t function)
{
        (void)ctx, (void)pc;
        assert_true(function <= place->file_offset);
        return place->module + 1;
}

static inline void space_init(struct space *s)
{
        const struct ls_unwind_owner owner = { .find = find, .row = row, .label = label, .ctx = s };

        memset(s, 0, sizeof(*s));
        s->unwinder = ls_unwinder_new(&owner);
        assert_non_null(s->unwinder);
}

static inline void space_done(struct space *s)
{
        ls_unwinder_free(s->unwinder);
        for (uint32_t i = 0; i < s->n_files; i++) {
                free(s->files[i].path);
                ls_cfi_close(s->files[i].cfi);
                ls_symbols_close(s->files[i].symbols);
        }
}

struct sample { struct dump_record head; uint8_t *stack; };
static inline void to_input(const struct sample *s, struct ls_unwind_input *in)
{
        memset(in, 0, sizeof(*in));
        for (int i = 0; i < LS_NREGS; i++)
                in->reg[i] = AGENT_KNOWS >> i & 1 ? s->head.reg[i] : 0xdeadbeefdeadbeef;
        in->known = AGENT_KNOWS;
        in->stack = s->stack;
        in->stack_start = s->head.reg[LS_REG_RSP];
        in->stack_len = s->head.size;
        in->cframes = s->head.cframes;
        in->n_cframes = s->head.n_cframes;
}

static inline const char *name_of(struct space *s, uint64_t pc)
{
        struct ls_unwind_place place;
        char *name = s->names[pc % 4096].name;

        if (s->names[pc % 4096].pc == pc)
                return name;
        s->names[pc % 4096].pc = pc;
        if (find(s, pc, &place) < 0 || !s->files[place.module].symbols ||
            ls_symbols_find(s->files[place.module].symbols, place.file_offset, name,
                            sizeof(s->names[0].name)) < 0)
                strcpy(name, "?");
        return name;
}

static inline void add_name(char *chain, size_t size, struct space *s,
                            const struct ls_native_frame *f, int exact, int first)
{
        const char *name = f->flags & LS_NATIVE_JIT      ? "JIT"
                           : f->flags & LS_NATIVE_LUA_VM ? "LUA"
                                                         : name_of(s, f->ip - !exact);
        size_t len = strlen(chain);

        snprintf(chain + len, size - len, "%s%s", first ? "" : "<", name);
}

static inline void chain_of(struct space *s, const struct sample *sample, char *chain, size_t size,
                            enum ls_unwind_end *end)
{
        struct ls_native_frame frames[FRAMES];
        struct ls_unwind_input in;
        int exact = 1;
        size_t n;

        to_input(sample, &in);
        n = ls_unwind(s->unwinder, &in, frames, FRAMES, end);
        *chain = 0;
        for (size_t i = 0; i < n; i++) {
                if (i > 0)
                        assert_true(frames[i].sp > frames[i - 1].sp);
                assert_int_equal(!frames[i].label, !!(frames[i].flags & LS_NATIVE_JIT));
                add_name(chain, size, s, &frames[i], exact, i == 0);
                exact = !!(frames[i].flags & LS_NATIVE_SIGNAL);
        }
}

/* A dump: each sample goes to fn, what is mapped to space. */
typedef void (*sample_fn)(void *ctx, struct space *space, const struct sample *sample);

/* on_maps, where it is not NULL, gets the text of what is mapped first. */
static inline void read_dump_maps(const char *path, struct space *space,
                                  void (*on_maps)(const char *text), sample_fn fn, void *ctx)
{
        FILE *f = fopen(path, "re");
        struct sample s;

        assert_non_null(f);
        while (fread(&s.head, sizeof(s.head), 1, f) == 1) {
                s.stack = malloc(s.head.size + 1);
                assert_true(s.head.size < 1 << 20 &&
                            fread(s.stack, 1, s.head.size, f) == s.head.size);
                s.stack[s.head.size] = 0;
                if (s.head.is_maps && on_maps)
                        on_maps((const char *)s.stack);
                if (s.head.is_maps)
                        set_maps(space, (char *)s.stack);
                else
                        fn(ctx, space, &s);
                free(s.stack);
        }
        fclose(f);
}

static inline void read_dump(const char *path, struct space *space, sample_fn fn, void *ctx)
{
        read_dump_maps(path, space, NULL, fn, ctx);
}

/* Programs that write one. */
__attribute__((unused)) static char dump_path[] = "/tmp/luasample-unwind-XXXXXX";

static inline void new_dump(void)
{
        int fd;

        strcpy(dump_path + sizeof(dump_path) - 7, "XXXXXX");
        fd = mkstemp(dump_path);
        assert_true(fd >= 0);
        close(fd);
}

static inline void run(char *const argv[], char *const settings[])
{
        pid_t pid = fork();
        int status;

        assert_true(pid >= 0);
        if (pid == 0) {
                for (int i = 0; settings && settings[i]; i++)
                        putenv(settings[i]);
                execv(argv[0], argv);
                _exit(127);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

/* The LuaJITs that scripts/luajit-trees has made: a name, a program and its environment in each
 * line, by tabs. Skips the test when there are none. */
static inline void each_luajit(void (*check)(const char *luajit, char *const settings[]))
{
        const char *cache = getenv("LUASAMPLE_TEST_CACHE"), *home = getenv("HOME");
        char path[4096], line[4096];
        FILE *f;

        snprintf(path, sizeof(path), "%s%s/luajits", cache ? cache : home ? home : "",
                 cache ? "" : "/.cache/luasample-tests");
        f = fopen(path, "re");
        if (!f)
                skip();
        while (fgets(line, sizeof(line), f)) {
                char *fields[16] = { NULL }, *save = NULL;
                unsigned n = 0;

                for (char *s = strtok_r(line, "\t\n", &save); s && n < 15;
                     s = strtok_r(NULL, "\t\n", &save))
                        fields[n++] = s;
                if (n >= 2)
                        check(fields[1], fields + 2);
        }
        fclose(f);
}

#endif
