/* Where functions of the recorded program are: see mappings.h. */
#include "record/native/mappings.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "formats/wire/clock.h"
#include "record/process/proc.h"
#include "record/worker/symbols.h"
#include "record/worker/worker.h"

#define RANGES_MAX 65536u
#define FUNCTIONS_MAX (1u << 20)
#define MEMORY_MAX 65536u
#define SAME_FILE_MAX 4096u            /* ranges that are searched for the same file */

void ls_mappings_init(struct ls_mappings *m, struct ls_trace_writer *w, struct ls_worker *worker,
                      struct ls_ids *ids, int pid)
{
        memset(m, 0, sizeof(*m));
        m->writer = w;
        m->worker = worker;
        m->ids = ids;
        m->pid = pid;
}

void ls_mappings_done(struct ls_mappings *m)
{
        for (uint32_t i = 0; i < m->n_ranges; i++)
                free(m->ranges[i].path);
        free(m->ranges);
        free(m->functions);
        ls_ids_free(m->ids, m->native_known, m->n_native_known, 1);
        free(m->memory);
        memset(m, 0, sizeof(*m));
}

/* Room for one more; 0, -ENOMEM, or -EINVAL past max. */
static int grow(void **array, uint32_t n, uint32_t *cap, size_t size, uint32_t max)
{
        uint32_t want = n < 32 ? 64 : n * 2;
        void *grown;

        if (n < *cap)
                return 0;
        if (n >= max)
                return -EINVAL;
        grown = reallocarray(*array, want, size);
        if (!grown)
                return -ENOMEM;
        *array = grown;
        *cap = want;
        return 0;
}

/* The agent and the kernel may know a file by different names. They are the program's: its worker
 * looks. */
static int is_same_path(const struct ls_mappings *m, const char *a, const char *b)
{
        return !strcmp(a, b) || ls_worker_same(m->worker, m->pid, a, b);
}

/* The range that the kernel's list has given already, when the agent's own record comes later. */
static int is_known(struct ls_mappings *m, const struct ls_rec_mapping *rec, const char *path,
                    const uint8_t *build_id)
{
        for (uint32_t i = m->n_ranges; i-- > 0;) {
                struct ls_map_range *r = &m->ranges[i];

                if (r->gone || r->start != rec->start || r->file_offset != rec->file_offset ||
                    !is_same_path(m, r->path, path))
                        continue;
                if (r->build_id_len && rec->build_id_len &&
                    (r->build_id_len != rec->build_id_len ||
                     memcmp(r->build_id, build_id, r->build_id_len)))
                        return 0;
                if (!r->build_id_len) {
                        r->build_id_len = (uint8_t)rec->build_id_len;
                        memcpy(r->build_id, build_id, rec->build_id_len);
                }
                if (rec->end > r->end)
                        r->end = rec->end;
                return 1;
        }
        return 0;
}

int ls_mappings_add(struct ls_mappings *m, const struct ls_rec_mapping *rec, const char *path,
                    const uint8_t *build_id)
{
        char name[PATH_MAX];
        struct ls_map_range *r;
        int err;

        if (rec->start >= rec->end || rec->build_id_len > sizeof(r->build_id) ||
            rec->path_len >= PATH_MAX || memchr(path, 0, rec->path_len))
                return -EINVAL;
        memcpy(name, path, rec->path_len);
        name[rec->path_len] = 0;
        if (m->n_ranges >= RANGES_MAX)
                return -EINVAL;
        if (is_known(m, rec, name, build_id))
                return 0;
        err = grow((void **)&m->ranges, m->n_ranges, &m->cap_ranges, sizeof(*r), RANGES_MAX);
        if (err < 0)
                return err;
        r = &m->ranges[m->n_ranges];
        memset(r, 0, sizeof(*r));
        r->path = strndup(path, rec->path_len);
        if (!r->path)
                return -ENOMEM;
        r->start = rec->start;
        r->end = rec->end;
        r->file_offset = rec->file_offset;
        r->build_id_len = (uint8_t)rec->build_id_len;
        memcpy(r->build_id, build_id, rec->build_id_len);
        m->n_ranges++;
        if (m->changed)
                m->changed(m->changed_ctx, r->start, r->end);
        return 0;
}

static int find_range(const struct ls_mappings *m, uint64_t addr)
{
        for (uint32_t i = m->n_ranges; i-- > 0;)
                if (addr >= m->ranges[i].start && addr < m->ranges[i].end && !m->ranges[i].gone)
                        return (int)i;
        return -ENOENT;
}

static int in_memory(const struct ls_mappings *m, uint64_t addr)
{
        uint32_t lo = 0, hi = m->n_memory;

        while (lo < hi) {
                uint32_t mid = lo + (hi - lo) / 2;

                if (addr >= m->memory[mid].end)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo < m->n_memory && addr >= m->memory[lo].start;
}

struct map_line {
        struct ls_rec_mapping rec;
        char path[PATH_MAX];
}; /* a line of /proc/PID/maps */

/* 1 when the line and the range have addresses in common, and the same bytes of the same file
 * there. The kernel splits what the agent calls one segment where a page's protection was
 * changed. */
static int overlaps(const struct ls_mappings *m, const struct map_line *line,
                    const struct ls_map_range *r)
{
        if (r->start >= line->rec.end || line->rec.start >= r->end)
                return 0;
        if (ls_symbols_is_vdso(line->path))
                return ls_symbols_is_vdso(r->path);
        return r->file_offset - line->rec.file_offset == r->start - line->rec.start &&
               is_same_path(m, r->path, line->path);
}

/* A file: one more range, unless a living one stands for it; that one's mark is taken away. */
static void take_file(struct ls_mappings *m, const struct map_line *line, uint8_t *missing,
                      uint32_t n)
{
        int known = 0;

        for (uint32_t i = 0; i < n; i++) {
                if (m->ranges[i].gone || !overlaps(m, line, &m->ranges[i]))
                        continue;
                missing[i] = 0;
                known = 1;
        }
        if (!known)
                ls_mappings_add(m, &line->rec, line->path, (const uint8_t *)"");
}

static void take_memory(struct ls_mappings *m, const struct ls_rec_mapping *rec)
{
        struct ls_map_memory *last = m->n_memory ? &m->memory[m->n_memory - 1] : NULL;

        if (last && last->end == rec->start)
                last->end = rec->end;
        else if (grow((void **)&m->memory, m->n_memory, &m->cap_memory, sizeof(*m->memory),
                      MEMORY_MAX) == 0)
                m->memory[m->n_memory++] = (struct ls_map_memory){ rec->start, rec->end };
}

static void take_line(struct ls_mappings *m, const char *text, uint8_t *missing, uint32_t n)
{
        struct map_line line = { .rec = { 0 } };
        char perms[8];
        int fields = sscanf(text, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095[^\n]",
                            &line.rec.start, &line.rec.end, perms, &line.rec.file_offset,
                            line.path);

        if (fields < 4)
                return;
        line.rec.path_len = (uint32_t)strlen(line.path);
        if (*line.path == '/' || ls_symbols_is_vdso(line.path)) {
                if (perms[2] == 'x')
                        take_file(m, &line, missing, n);
        } else {
                take_memory(m, &line.rec);
        }
}

static void forget_missing(struct ls_mappings *m, const uint8_t *missing, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                if (!missing[i] || m->ranges[i].gone || m->ranges[i].start >= LS_KERNEL_START)
                        continue;
                m->ranges[i].gone = 1;
                if (m->changed)
                        m->changed(m->changed_ctx, m->ranges[i].start, m->ranges[i].end);
        }
}

/* What is mapped now, as the kernel has it. At most once a second. */
static void read_maps(struct ls_mappings *m)
{
        char line[PATH_MAX + 128];
        uint32_t n = m->n_ranges;
        uint8_t *missing;
        uint64_t now = ls_clock_ns(CLOCK_MONOTONIC);
        int lines = 0;
        FILE *f;

        if ((!m->pid && !m->maps) || (m->maps_read_ns && now - m->maps_read_ns < 1000000000u))
                return;
        m->maps_read_ns = now;
        f = m->maps ? fopen(m->maps, "re") : ls_proc_file(m->pid, 0, "maps");
        missing = malloc(n + 1);
        if (!f || !missing)
                goto out;
        memset(missing, 1, n + 1);
        m->n_memory = 0;
        for (; fgets(line, sizeof(line), f); lines++)
                take_line(m, line, missing, n);
        /* Of a process that has ended there are no lines, but still samples to come. */
        if (lines && !ferror(f))
                forget_missing(m, missing, n);
out:
        free(missing);
        if (f)
                fclose(f);
}

/* The kernel's half of the address space, as one more range. */
static int add_kernel(struct ls_mappings *m)
{
        const struct ls_rec_mapping rec = { .start = LS_KERNEL_START, .end = UINT64_MAX,
                                            .path_len = sizeof(LS_KERNEL_PATH) - 1 };

        return ls_mappings_add(m, &rec, LS_KERNEL_PATH, (const uint8_t *)"") < 0
                       ? -ENOENT : (int)m->n_ranges - 1;
}

int ls_mappings_find(struct ls_mappings *m, uint64_t addr)
{
        int i = find_range(m, addr);

        if (i >= 0)
                return i;
        if (addr >= LS_KERNEL_START)
                return add_kernel(m);
        if (in_memory(m, addr))
                return -ENOEXEC;
        read_maps(m);
        i = find_range(m, addr);
        return i >= 0 ? i : in_memory(m, addr) ? -ENOEXEC : -ENOENT;
}

static int same_file(const struct ls_map_range *a, const struct ls_map_range *b)
{
        return a->file_offset == b->file_offset && a->build_id_len == b->build_id_len &&
               !memcmp(a->build_id, b->build_id, a->build_id_len) && !strcmp(a->path, b->path);
}

static uint32_t find_shared(const struct ls_map_shared *s, const struct ls_map_range *r)
{
        for (uint32_t i = 0; s && i < s->n_files; i++) {
                const struct ls_map_file *f = &s->files[i];

                if (f->file_offset == r->file_offset && f->build_id_len == r->build_id_len &&
                    !memcmp(f->build_id, r->build_id, r->build_id_len) && !strcmp(f->path, r->path))
                        return f->trace_id;
        }
        return 0;
}

static void share(struct ls_map_shared *s, const struct ls_map_range *r)
{
        struct ls_map_file f = { .file_offset = r->file_offset,
                                 .build_id_len = r->build_id_len,
                                 .trace_id = r->trace_id };

        if (!s ||
            grow((void **)&s->files, s->n_files, &s->cap_files, sizeof(f), SAME_FILE_MAX) < 0 ||
            !(f.path = strdup(r->path)))
                return;
        memcpy(f.build_id, r->build_id, sizeof(f.build_id));
        s->files[s->n_files++] = f;
}

void ls_map_shared_done(struct ls_map_shared *s)
{
        for (uint32_t i = 0; i < s->n_files; i++)
                free(s->files[i].path);
        free(s->files);
        memset(s, 0, sizeof(*s));
}

/* A file that is mapped again elsewhere, after exec or dlclose, keeps its id: its functions are the
 * same ones. */
static uint32_t range_trace_id(struct ls_mappings *m, struct ls_map_range *r)
{
        uint32_t i = (uint32_t)(r - m->ranges), end = i > SAME_FILE_MAX ? i - SAME_FILE_MAX : 0;

        if (r->trace_id)
                return r->trace_id;
        if (!r->build_id_len)
                r->build_id_len = (uint8_t)ls_worker_build_id(m->worker, m->pid, r->path,
                                                              r->build_id, sizeof(r->build_id));
        while (i-- > end && !r->trace_id)
                if (m->ranges[i].trace_id && same_file(&m->ranges[i], r))
                        r->trace_id = m->ranges[i].trace_id;
        if (!r->trace_id)
                r->trace_id = find_shared(m->shared, r);
        if (r->trace_id)
                return r->trace_id;
        r->trace_id =
                ls_trace_mapping(m->writer, ls_trace_string(m->writer, r->path, strlen(r->path)),
                                 r->start, r->end, r->file_offset, r->build_id, r->build_id_len);
        share(m->shared, r);
        return r->trace_id;
}

/* Interns a function and keeps it for when names are looked up. */
static uint32_t remember(struct ls_mappings *m, const struct ls_function_def *def, uint32_t range,
                         uint32_t *ret_slot)
{
        uint32_t id = ls_trace_function(m->writer, def);

        *ret_slot = UINT32_MAX;
        if (grow((void **)&m->functions, m->n_functions, &m->cap_functions, sizeof(*m->functions),
                 FUNCTIONS_MAX) < 0)
                return id;
        *ret_slot = m->n_functions;
        m->functions[m->n_functions++] = (struct ls_map_function){ .trace_id = id, .range = range,
                                                                   .offset = def->offset };
        return id;
}

uint32_t ls_mappings_function(struct ls_mappings *m, uint64_t addr, uint32_t *ret_slot)
{
        struct ls_function_def def = { .kind = LS_FUNC_C, .offset = addr };
        int i = ls_mappings_find(m, addr);

        *ret_slot = UINT32_MAX;
        if (i < 0)
                return ls_trace_function(m->writer, &def);
        def.mapping = range_trace_id(m, &m->ranges[i]);
        def.offset = addr - m->ranges[i].start + m->ranges[i].file_offset;
        return remember(m, &def, (uint32_t)i, ret_slot);
}

uint32_t ls_mappings_native(struct ls_mappings *m, uint32_t range, uint64_t file_offset)
{
        struct ls_function_def def = { .kind = LS_FUNC_NATIVE, .offset = file_offset };
        uint32_t id, slot;

        def.mapping = range_trace_id(m, &m->ranges[range]);
        id = ls_trace_function(m->writer, &def);
        if (ls_ids_reserve(m->ids, (void **)&m->native_known, &m->n_native_known, 1, id) < 0 ||
            m->native_known[id])
                return id;
        m->native_known[id] = 1;
        return remember(m, &def, range, &slot);
}

void ls_mappings_named(struct ls_mappings *m, uint32_t slot)
{
        if (slot < m->n_functions)
                m->functions[slot].named = 1;
}

/* Others know the functions by their place: indices are sorted. */
static int by_range(const void *a, const void *b, void *ctx)
{
        const struct ls_mappings *m = ctx;
        const struct ls_map_function *x = &m->functions[*(const uint32_t *)a],
                                     *y = &m->functions[*(const uint32_t *)b];

        return x->range < y->range ? -1 : x->range > y->range;
}

/* The kernel's are ours to read; those of files are the worker's. */
static int find_name(struct ls_mappings *m, struct ls_symbols **kernel, struct ls_worker_file *f,
                     uint64_t offset, char *ret_name, size_t size)
{
        if (strcmp(f->path, LS_KERNEL_PATH) != 0)
                return ls_worker_symbol(m->worker, f, offset, ret_name, size);
        if (!*kernel)
                *kernel = ls_symbols_open(LS_KERNEL_PATH, NULL, 0);
        return *kernel ? ls_symbols_find(*kernel, offset, ret_name, size) : -ENOENT;
}

void ls_mappings_name_functions(struct ls_mappings *m)
{
        struct ls_symbols *kernel = NULL;
        struct ls_worker_file file = { .path = NULL };
        uint32_t open_range = UINT32_MAX, *order;
        char name[512];

        if (!m->n_functions || !(order = calloc(m->n_functions, sizeof(*order))))
                return;
        for (uint32_t i = 0; i < m->n_functions; i++)
                order[i] = i;
        qsort_r(order, m->n_functions, sizeof(*order), by_range, m);
        for (uint32_t i = 0; i < m->n_functions; i++) {
                struct ls_map_function *f = &m->functions[order[i]];

                if (f->named)
                        continue;
                if (f->range != open_range) {
                        const struct ls_map_range *r = &m->ranges[f->range];

                        file = (struct ls_worker_file){ .path = r->path,
                                                        .build_id = r->build_id,
                                                        .build_id_len = r->build_id_len,
                                                        .pid = m->pid };
                        open_range = f->range;
                }
                f->named = 1;           /* or it will never be */
                if (find_name(m, &kernel, &file, f->offset, name, sizeof(name)) == 0)
                        ls_trace_name(m->writer, f->trace_id, LS_NAME_CALLSITE,
                                      ls_trace_string(m->writer, name, strlen(name)));
        }
        ls_symbols_close(kernel);
        free(order);
}
