/* Exporter "perf-map": where LuaJIT's machine code lies and what it is, as perf and others read it
 * from /tmp/perf-PID.map: "START SIZE SYMBOL" a line, hexadecimal. A trace of the JIT compiler is
 * as many lines as it has runs of instructions of one function.
 *
 * The format knows no time: of traces that lay at one place one after the other the one with the
 * most ticks is there. */
#include "formats/escape.h"
#include "formats/export/export.h"
#include "formats/jit/maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MOST 128u
#define SIZE_MOST   (UINT64_C(1) << 20) /* of a trace: LuaJIT's are smaller by far */

struct code {
        uint32_t trace;                 /* of jittraces */
        uint64_t ticks;
};

struct maps {
        const struct ls_export *in;
        FILE *out;
        uint32_t *location_of;          /* [n_functions] one that is in it, 0 = none */
        struct ls_jit_maps *of;
        struct code *code;
        size_t n;
};

static uint64_t begin_of(const struct ls_profile *p, const struct code *c)
{
        return p->jittraces[c->trace].address;
}

static uint64_t end_of(const struct ls_profile *p, const struct code *c)
{
        return begin_of(p, c) + p->jittraces[c->trace].size;
}

static int by_address(const void *a, const void *b, void *ctx)
{
        const struct ls_export *in = ctx;
        uint64_t x = begin_of(in->profile, a), y = begin_of(in->profile, b);

        return x < y ? -1 : x > y;
}

static int is_whole(const struct ls_jittrace *t)
{
        return t->number && t->size && t->size <= SIZE_MOST && t->address <= UINT64_MAX - t->size;
}

/* The traces that ticks are in, in the order of their code, of which no two overlap. */
static int find_code(struct maps *m)
{
        const struct ls_export *in = m->in;
        const struct ls_profile *p = in->profile;
        size_t last = 0;

        m->code = calloc((size_t)p->n_jittraces + 1, sizeof(*m->code));
        if (!m->code)
                return -ENOMEM;
        for (uint32_t i = 0; i < p->n_jittraces; i++)
                m->code[i].trace = i;
        for (size_t i = 0; i < in->n_cells; i++)
                m->code[in->cells[i].trace].ticks += in->cells[i].ticks;
        for (uint32_t i = 0; i < p->n_jittraces; i++)
                if (m->code[i].ticks && is_whole(&p->jittraces[i]))
                        m->code[m->n++] = m->code[i];
        qsort_r(m->code, m->n, sizeof(*m->code), by_address, (void *)in);
        for (size_t i = 1; i < m->n; i++) {
                if (begin_of(p, &m->code[i]) >= end_of(p, &m->code[last]))
                        m->code[++last] = m->code[i];
                else if (m->code[i].ticks > m->code[last].ticks)
                        m->code[last] = m->code[i];
        }
        m->n = m->n ? last + 1 : 0;
        return 0;
}

static int find_locations(struct maps *m)
{
        const struct ls_profile *p = m->in->profile;

        m->location_of = calloc((size_t)p->n_functions + 1, sizeof(*m->location_of));
        for (uint32_t i = 1; m->location_of && i < p->n_locations; i++)
                m->location_of[p->locations[i].function] = i;
        return m->location_of ? 0 : -ENOMEM;
}

/* "FILE:LINE" of a function's definition, empty = a builtin's; to be freed, NULL = no memory. */
static char *place_text(const struct ls_profile *p, const struct ls_function *f)
{
        struct ls_str name = p->sources[f->source].name;
        char *visible, *text;

        if (!f->source || !name.len)
                return strdup("");
        visible = ls_visible(name.s, name.len);
        if (!visible)
                return NULL;
        text = strrchr(visible, '/');
        text = ls_print(" %s:%u", text ? text + 1 : visible + (*visible == '@'), f->first_line);
        free(visible);
        return text;
}

static int put_run(const struct maps *m, uint64_t at, uint64_t size, uint32_t function,
                   uint32_t number)
{
        const struct ls_export *in = m->in;
        uint32_t location = m->location_of[function];
        char *place = place_text(in->profile, &in->profile->functions[function]);

        if (!place)
                return -ENOMEM;
        fprintf(m->out, "%" PRIx64 " %" PRIx64 " %s%s [trace %u]\n", at, size,
                location ? in->frame_text(in->ctx, in->frame_of_location[location]) : "function",
                place, number);
        free(place);
        return 0;
}

/* The function that an instruction belongs to; that of the trace's start where it is not known. */
static uint32_t function_at(const struct ls_profile *p, const struct ls_jittrace *t,
                            const struct ls_jit_map *map, uint32_t offset)
{
        struct ls_jit_frame frames[FRAMES_MOST];
        unsigned n = map ? ls_jit_map_frames(map, offset, frames, FRAMES_MOST) : 0;
        uint32_t function = n && n <= FRAMES_MOST ? frames[n - 1].function : 0;

        return function && function < p->n_functions ? function : p->locations[t->start].function;
}

static int put_trace(const struct maps *m, uint32_t trace)
{
        const struct ls_profile *p = m->in->profile;
        const struct ls_jittrace *t = &p->jittraces[trace];
        const struct ls_jit_map *map;
        uint64_t begin = 0, known;      /* bytes that there is a map of, which has a limit */
        uint32_t function;
        int error = ls_jit_maps_get(m->of, trace, &map);

        known = map ? ((const struct ls_rec_jittrace *)t->map)->mcode_size : 0;
        known = known < t->size ? known : t->size;
        function = function_at(p, t, map, 0);
        for (uint32_t at = 1; !error && at < known; at++) {
                uint32_t next = function_at(p, t, map, at);

                if (next == function)
                        continue;
                error = put_run(m, t->address + begin, at - begin, function, t->number);
                begin = at;
                function = next;
        }
        return error ? error : put_run(m, t->address + begin, t->size - begin, function, t->number);
}

static int perf_map_write(FILE *out, const struct ls_export *in)
{
        struct maps m = { .in = in, .out = out };
        int error = find_locations(&m);

        m.of = ls_jit_maps_new(in->profile);
        if (!m.of)
                error = -ENOMEM;
        if (!error)
                error = find_code(&m);
        for (size_t i = 0; !error && i < m.n; i++)
                error = put_trace(&m, m.code[i].trace);
        ls_jit_maps_free(m.of);
        free(m.location_of);
        free(m.code);
        return error;
}

const struct ls_exporter ls_export_perf_map = {
        .name = "perf-map",
        .suffix = ".map",
        .help = "what LuaJIT's machine code is, for perf report: perf-PID.map",
        .flags = LS_EXPORT_BY,
        .dims = LS_DIM_TRACE,
        .write = perf_map_write,
};
