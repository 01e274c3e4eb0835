/* Where C functions of the recorded program are: see mappings.h. */
#include "record/mappings.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "record/symbols.h"

#define RANGES_MAX 65536u
#define FUNCTIONS_MAX (1u << 20)
#define SAME_FILE_MAX 4096u            /* ranges that are searched for the same file */

void ls_mappings_init(struct ls_mappings *m, struct ls_trace_writer *w, int pid)
{
        memset(m, 0, sizeof(*m));
        m->writer = w;
        m->pid = pid;
}

void ls_mappings_done(struct ls_mappings *m)
{
        for (uint32_t i = 0; i < m->n_ranges; i++)
                free(m->ranges[i].path);
        free(m->ranges);
        free(m->functions);
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

int ls_mappings_add(struct ls_mappings *m, const struct ls_rec_mapping *rec, const char *path, const uint8_t *build_id)
{
        struct ls_map_range *r;
        int err;

        if (rec->start >= rec->end || rec->build_id_len > sizeof(r->build_id) || rec->path_len >= PATH_MAX ||
            memchr(path, 0, rec->path_len))
                return -EINVAL;
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
        return 0;
}

static int find_range(const struct ls_mappings *m, uint64_t addr)
{
        for (uint32_t i = m->n_ranges; i-- > 0;)
                if (addr >= m->ranges[i].start && addr < m->ranges[i].end)
                        return (int)i;
        return -1;
}

/* The agent has told of no mapping with this address: perhaps the kernel still can. At most once a second. */
static void read_maps(struct ls_mappings *m)
{
        char file[64], line[PATH_MAX + 128], perms[8], path[PATH_MAX];
        struct ls_rec_mapping rec = { 0 };
        struct timespec t;
        uint64_t now;
        FILE *f;

        clock_gettime(CLOCK_MONOTONIC, &t);
        now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
        if (!m->pid || (m->maps_read_ns && now - m->maps_read_ns < 1000000000u))
                return;
        m->maps_read_ns = now;
        snprintf(file, sizeof(file), "/proc/%d/maps", m->pid);
        f = fopen(file, "re");
        while (f && fgets(line, sizeof(line), f)) {
                if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095[^\n]", &rec.start, &rec.end,
                           perms, &rec.file_offset, path) != 5 || perms[2] != 'x' || *path != '/')
                        continue;
                rec.path_len = (uint32_t)strlen(path);
                ls_mappings_add(m, &rec, path, (const uint8_t *)"");
        }
        if (f)
                fclose(f);
}

static int same_file(const struct ls_map_range *a, const struct ls_map_range *b)
{
        return a->file_offset == b->file_offset && a->build_id_len == b->build_id_len &&
               !memcmp(a->build_id, b->build_id, a->build_id_len) && !strcmp(a->path, b->path);
}

/* A file that is mapped again elsewhere, after exec or dlclose, keeps its id: its functions are the same ones. */
static uint32_t range_trace_id(struct ls_mappings *m, struct ls_map_range *r)
{
        uint32_t i = (uint32_t)(r - m->ranges), end = i > SAME_FILE_MAX ? i - SAME_FILE_MAX : 0;

        if (r->trace_id)
                return r->trace_id;
        if (!r->build_id_len)
                r->build_id_len = (uint8_t)ls_symbols_build_id(r->path, r->build_id, sizeof(r->build_id));
        while (i-- > end && !r->trace_id)
                if (m->ranges[i].trace_id && same_file(&m->ranges[i], r))
                        r->trace_id = m->ranges[i].trace_id;
        if (!r->trace_id)
                r->trace_id = ls_trace_mapping(m->writer, ls_trace_string(m->writer, r->path, strlen(r->path)),
                                               r->start, r->end, r->file_offset, r->build_id, r->build_id_len);
        return r->trace_id;
}

uint32_t ls_mappings_function(struct ls_mappings *m, uint64_t addr, uint32_t *ret_slot)
{
        struct ls_function_def def = { .kind = LS_FUNC_C, .offset = addr };
        struct ls_map_function *f;
        int i = find_range(m, addr);

        *ret_slot = UINT32_MAX;
        if (i < 0) {
                read_maps(m);
                i = find_range(m, addr);
        }
        if (i < 0)
                return ls_trace_function(m->writer, &def);
        def.mapping = range_trace_id(m, &m->ranges[i]);
        def.offset = addr - m->ranges[i].start + m->ranges[i].file_offset;
        if (grow((void **)&m->functions, m->n_functions, &m->cap_functions, sizeof(*f), FUNCTIONS_MAX) == 0) {
                *ret_slot = m->n_functions;
                f = &m->functions[m->n_functions++];
                f->range = (uint32_t)i;
                f->offset = def.offset;
                f->named = 0;
                f->trace_id = ls_trace_function(m->writer, &def);
                return f->trace_id;
        }
        return ls_trace_function(m->writer, &def);
}

void ls_mappings_named(struct ls_mappings *m, uint32_t slot)
{
        if (slot < m->n_functions)
                m->functions[slot].named = 1;
}

static int by_range(const void *a, const void *b)
{
        const struct ls_map_function *x = a, *y = b;

        return x->range < y->range ? -1 : x->range > y->range;
}

void ls_mappings_name_functions(struct ls_mappings *m)
{
        struct ls_symbols *symbols = NULL;
        uint32_t open_range = UINT32_MAX;
        char name[512];

        if (m->n_functions)
                qsort(m->functions, m->n_functions, sizeof(*m->functions), by_range);
        for (uint32_t i = 0; i < m->n_functions; i++) {
                const struct ls_map_function *f = &m->functions[i];

                if (f->named)
                        continue;
                if (f->range != open_range) {
                        const struct ls_map_range *r = &m->ranges[f->range];

                        ls_symbols_close(symbols);
                        symbols = ls_symbols_open(r->path, r->build_id, r->build_id_len);
                        open_range = f->range;
                }
                if (symbols && ls_symbols_find(symbols, f->offset, name, sizeof(name)) == 0)
                        ls_trace_name(m->writer, f->trace_id, LS_NAME_CALLSITE,
                                      ls_trace_string(m->writer, name, strlen(name)));
        }
        ls_symbols_close(symbols);
}
