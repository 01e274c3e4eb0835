/* libunwind as the witness: it unwinds the same copied stacks of programs without LuaJIT as our
 * unwinder, and every frame must be the same. It sees what ours sees, registers, the copied bytes
 * and the files that are mapped, and the red zone, where tables of gcc point behind the last pop. A
 * second time ours gets one register shifted, and must be contradicted. Arguments: programs that
 * write stacks (tests/hosts/native.c, native_throws.c); with -v before them each difference is
 * printed. */
#include "tests/unit/unwind_fixture.h"

#include <elf.h>
#include <libunwind.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Not in the header: what perf calls, too. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t *,
                                              unw_proc_info_t *, int, void *);

struct image { char path[512]; const uint8_t *data; size_t size; };
struct piece { uint64_t start, end, offset; unsigned image; };

static struct image images[64];
static struct piece pieces[512];
static unsigned n_images, n_pieces;
static char *const *programs;
static int n_programs, is_verbose;

/* --- what is mapped, as libunwind reads it --- */

static unsigned image_of(const char *path)
{
        struct image *im = images;
        struct stat st;
        int fd;

        for (; im < images + n_images; im++)
                if (!strcmp(im->path, path))
                        return (unsigned)(im - images);
        assert_true(n_images < 64);
        snprintf(im->path, sizeof(im->path), "%s", path);
        n_images++;
        if (ls_symbols_is_vdso(path)) {         /* one kernel has one */
                im->data = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
                im->size = 4096;
                return (unsigned)(im - images);
        }
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0 && fstat(fd, &st) == 0);
        im->size = (size_t)st.st_size;
        im->data = mmap(NULL, im->size, PROT_READ, MAP_PRIVATE, fd, 0);
        assert_true(im->data != MAP_FAILED);
        close(fd);
        return (unsigned)(im - images);
}

static void read_maps(const char *text)
{
        n_pieces = 0;
        for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
                struct piece p;
                char path[512];

                if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %511[^\n]",
                           &p.start, &p.end, &p.offset, path) != 4 ||
                    (*path != '/' && !ls_symbols_is_vdso(path)))
                        continue;
                p.image = image_of(path);
                assert_true(n_pieces < 512);
                pieces[n_pieces++] = p;
        }
}

static const struct piece *piece_of(uint64_t addr)
{
        for (unsigned i = 0; i < n_pieces; i++)
                if (addr >= pieces[i].start && addr < pieces[i].end)
                        return &pieces[i];
        return NULL;
}

/* What of the file is at addr. */
static const uint8_t *bytes_at(uint64_t addr, size_t n)
{
        const struct piece *p = piece_of(addr);
        uint64_t at = p ? addr - p->start + p->offset : 0;

        return p && addr + n <= p->end && at + n <= images[p->image].size
                       ? images[p->image].data + at
                       : NULL;
}

/* --- libunwind's questions --- */

static int read_word(unw_addr_space_t as, unw_word_t addr, unw_word_t *ret, int is_write, void *ctx)
{
        const struct sample *s = ctx;
        uint64_t low = s->head.reg[LS_REG_RSP];
        const uint8_t *p = bytes_at(addr, 8);

        (void)as;
        if (addr >= low && addr + 8 <= low + s->head.size)
                p = s->stack + (addr - low);
        else if (addr >= low - DUMP_BELOW && addr + 8 <= low)   /* of a register that was just
                                                                 * restored */
                p = s->head.below + (addr - (low - DUMP_BELOW));
        if (is_write || !p)
                return -UNW_EINVAL;
        memcpy(ret, p, 8);
        return 0;
}

static int read_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *ret, int is_write, void *ctx)
{
        (void)as;
        if (is_write || reg < 0 || reg > UNW_X86_64_RIP)
                return -UNW_EBADREG;
        *ret = ((const struct sample *)ctx)->head.reg[reg];     /* both count as DWARF does */
        return 0;
}

/* The table of the file at ip: .eh_frame_hdr, as linkers write it. */
static int find_table(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *ret, int wants_info,
                      void *ctx)
{
        static const uint8_t usual[] = { 1, 0x1b, 0x03, 0x3b };
        const struct piece *p = piece_of(ip);
        unw_dyn_info_t di = { .format = UNW_INFO_FORMAT_REMOTE_TABLE };
        const Elf64_Ehdr *eh = p ? (const void *)images[p->image].data : NULL;
        const Elf64_Phdr *ph = eh ? (const void *)(images[p->image].data + eh->e_phoff) : NULL;
        uint64_t vaddr = 0, table = 0;
        uint32_t n;

        for (unsigned i = 0; eh && i < eh->e_phnum; i++) {
                if (ph[i].p_type == PT_LOAD && p->offset + 4095 >= ph[i].p_offset &&
                    p->offset < ph[i].p_offset + ph[i].p_filesz && ph[i].p_flags & PF_X)
                        vaddr = ph[i].p_vaddr - ph[i].p_offset + p->offset;
                if (ph[i].p_type == PT_GNU_EH_FRAME)
                        table = ph[i].p_vaddr;
        }
        if (!table)
                return -UNW_ENOINFO;
        di.u.rti.segbase = p->start - vaddr + table;
        if (!bytes_at(di.u.rti.segbase, 12) || memcmp(bytes_at(di.u.rti.segbase, 4), usual, 4))
                return -UNW_ENOINFO;
        memcpy(&n, bytes_at(di.u.rti.segbase + 8, 4), 4);
        di.start_ip = p->start;
        di.end_ip = p->end;
        di.u.rti.table_data = di.u.rti.segbase + 12;
        di.u.rti.table_len = n;                 /* rows of two 32-bit numbers, in words */
        return UNW_OBJ(dwarf_search_unwind_table)(as, ip, &di, ret, wants_info, ctx);
}

static void put_info(unw_addr_space_t as, unw_proc_info_t *pi, void *ctx)
{
        (void)as, (void)pi, (void)ctx;
}

static int has_no_list(unw_addr_space_t as, unw_word_t *ret, void *ctx)
{
        (void)as, (void)ret, (void)ctx;
        return -UNW_ENOINFO;
}

static int read_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *ret, int is_write,
                      void *ctx)
{
        (void)as, (void)reg, (void)ret, (void)is_write, (void)ctx;
        return -UNW_EBADREG;
}

static int has_no_name(unw_addr_space_t as, unw_word_t ip, char *name, size_t size,
                       unw_word_t *offset, void *ctx)
{
        (void)as, (void)ip, (void)name, (void)size, (void)offset, (void)ctx;
        return -UNW_ENOINFO;
}

static int cannot_resume(unw_addr_space_t as, unw_cursor_t *c, void *ctx)
{
        (void)as, (void)c, (void)ctx;
        return -UNW_EINVAL;
}

/* --- the comparison --- */

struct trial {
        unw_addr_space_t as;
        int reg;                        /* ours gets it shifted; -1 = none */
        unsigned samples, frames, differ, complete;
};

struct place { uint64_t ip, sp; };

static size_t witness(const struct trial *t, const struct sample *s, struct place *ret)
{
        unw_cursor_t cursor;
        size_t n = 0;

        assert_int_equal(unw_init_remote(&cursor, t->as, (void *)(uintptr_t)s), 0);
        do {
                unw_word_t ip = 0, sp = 0;

                if (unw_get_reg(&cursor, UNW_REG_IP, &ip) ||
                    unw_get_reg(&cursor, UNW_REG_SP, &sp) || !ip)
                        break;
                ret[n++] = (struct place){ ip, sp };
        } while (n < FRAMES && unw_step(&cursor) > 0);
        return n;
}

static void tell(struct space *space, const struct sample *s, const struct ls_native_frame *ours,
                 size_t n, const struct place *theirs, size_t n_theirs)
{
        print_message("%s: %zu frames, libunwind %zu\n", s->head.name, n, n_theirs);
        for (size_t i = 0; i < n || i < n_theirs; i++)
                print_message("  %2zu %-30s %#" PRIx64 " %#" PRIx64 " | %#" PRIx64 " %#" PRIx64
                              " %s\n",
                              i, i < n ? name_of(space, ours[i].ip - (i > 0)) : "",
                              i < n ? ours[i].ip : 0, i < n ? ours[i].sp : 0,
                              i < n_theirs ? theirs[i].ip : 0, i < n_theirs ? theirs[i].sp : 0,
                              i < n_theirs ? name_of(space, theirs[i].ip - (i > 0)) : "");
}

/* Where ours stops early, at the end of the copied bytes or for a register that the agent does not
 * send (rcx where _Unwind_Resume leaves), libunwind goes on, or guesses: frames up to there are
 * compared, and such samples counted. */
static void compare(void *ctx, struct space *space, const struct sample *s)
{
        static struct ls_native_frame ours[FRAMES];
        static struct place theirs[FRAMES];
        struct trial *t = ctx;
        struct ls_unwind_input in;
        enum ls_unwind_end end;
        size_t n, n_theirs = witness(t, s, theirs), same = 0;

        to_input(s, &in);
        if (t->reg >= 0)
                in.reg[t->reg] += 8;
        n = ls_unwind(space->unwinder, &in, ours, FRAMES, &end);
        while (same < n && same < n_theirs && ours[same].ip == theirs[same].ip &&
               (ours[same].sp == theirs[same].sp || !same))     /* the first one's is what both were
                                                                 * given */
                same++;
        t->samples++;
        t->frames += (unsigned)same;
        t->complete += end == LS_UNWIND_COMPLETE;
        if (same < n || (end == LS_UNWIND_COMPLETE && same < n_theirs)) {
                t->differ++;
                if (is_verbose && t->reg < 0)
                        tell(space, s, ours, n, theirs, n_theirs);
        }
}

static void each_sample(const char *program, int reg, struct trial *t)
{
        static unw_accessors_t asks = {
                .find_proc_info = find_table,
                .put_unwind_info = put_info,
                .get_dyn_info_list_addr = has_no_list,
                .access_mem = read_word,
                .access_reg = read_reg,
                .access_fpreg = read_fpreg,
                .resume = cannot_resume,
                .get_proc_name = has_no_name,
        };
        static struct space space;

        *t = (struct trial){ .as = unw_create_addr_space(&asks, 0), .reg = reg };
        assert_non_null(t->as);
        space_init(&space);
        read_dump_maps(dump_path, &space, read_maps, compare, t);
        space_done(&space);
        unw_destroy_addr_space(t->as);
        print_message("%s%s%s: %u samples, %u of them to the first function; %u frames agree, %u "
                      "samples differ\n",
                      strrchr(program, '/') + 1, reg < 0 ? "" : ", with a shifted ",
                      reg < 0             ? ""
                      : reg == LS_REG_RSP ? "rsp"
                                          : "rbp",
                      t->samples, t->complete, t->frames, t->differ);
}

static void frames_are_those_of_libunwind(void **state)
{
        (void)state;
        for (int i = 0; i < n_programs; i++) {
                char *argv[] = { programs[i], dump_path, NULL };
                struct trial right, rsp, rbp;

                new_dump();
                run(argv, NULL);
                each_sample(programs[i], -1, &right);
                each_sample(programs[i], LS_REG_RSP, &rsp);
                each_sample(programs[i], LS_REG_RBP, &rbp);
                unlink(dump_path);
                assert_true(right.samples > 100 && right.complete * 100 >= right.samples * 97);
                assert_int_equal(right.differ, 0);
                assert_true(rsp.differ * 2 > rsp.samples && rbp.differ > 0);
        }
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(frames_are_those_of_libunwind) };

        is_verbose = argc > 1 && !strcmp(argv[1], "-v");
        programs = argv + 1 + is_verbose;
        n_programs = argc - 1 - is_verbose;
        return n_programs > 0 ? cmocka_run_group_tests(tests, NULL, NULL) : 129;
}
