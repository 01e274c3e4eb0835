/* The map of a trace: from an offset in its machine code to functions and lines. align.c finds the
 * IR instruction, loop.c what it was copied from; the bytecodes that were recorded tell the rest.
 * What is kept is small: the events, the exits (for the side traces), and a list of the offsets
 * where the event changes. Called by whoever reads traces, and by tests/jit. */
#include "formats/jit/map.h"
#include "formats/jit/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_EVENT UINT32_MAX
#define MAX_BELOW 256 /* frames that a side trace takes over; LuaJIT's slots do not allow as many */
#define MAX_EVENTS (1u << 17)           /* that are kept; LuaJIT gives up long before */
#define MAX_SEARCH 64 /* events around a snapshot that are looked at for its own */

struct event {                          /* a recorded bytecode, with its function's id (0 = not
                                         * known) */
        uint32_t outer;                 /* the last event before it of a lesser depth: its caller.
                                         * NO_EVENT = none */
        uint32_t function, line, pos;
        uint16_t ref, depth;
        uint8_t calls;                  /* code of it calls */
};

struct span {                           /* code from offset on */
        uint32_t offset;
        uint16_t ref, origin;           /* without events: number of the snapshot, and nothing */
};

struct exit {                           /* what a side trace that leaves here starts on */
        uint32_t event;                 /* NO_EVENT = none is known */
        uint32_t function, line;
        uint16_t depth;
};

struct below {                          /* a frame that was there before the trace */
        uint32_t function, line;
        uint16_t depth;
        uint8_t inlined;
};

struct ls_jit_map {
        struct event *events;
        struct span *spans;
        struct exit *exits;
        struct below *below;            /* innermost first */
        uint32_t nevents, nspans, nexits, nbelow;
        uint32_t loop, nir;
        uint32_t start_function, start_line;    /* function 0 = not known */
        unsigned doubt;
        int is_root;
        int knows_calls;                /* calls of events are known */
};

/* Frames from the leaf outwards, with the depth of each. */
struct chain {
        struct below frames[MAX_BELOW];
        unsigned n;
        uint32_t depth;                 /* of the last frame; only those of lesser depth may
                                         * follow */
        int bottom;                     /* the outermost one is there */
};

static void chain_add(struct chain *c, uint32_t function, uint32_t line, uint32_t depth)
{
        c->depth = depth;
        if (!function || c->n == MAX_BELOW)
                return;
        c->frames[c->n++] = (struct below){ function, line, (uint16_t)depth, 0 };
        c->bottom |= depth == 0;
}

/* The event at index and its callers, as far as their depth is less than the chain's. The header of
 * a vararg function (its bytecode 0) is no caller: the frame above it stands for both. */
static void chain_events(const struct ls_jit_map *m, uint32_t index, struct chain *c)
{
        for (uint32_t k = index; k != NO_EVENT && c->n < MAX_BELOW; k = m->events[k].outer) {
                const struct event *e = &m->events[k];

                if (e->depth >= c->depth)
                        continue;
                if (c->n > 0 && e->pos == 0) {
                        c->depth = e->depth;
                        c->bottom |= e->depth == 0;
                } else {
                        unsigned n = c->n;

                        chain_add(c, e->function, e->line, e->depth);
                        /* no line: a builtin. What it calls for itself is its own time. */
                        if (n == 0 && c->n && !e->line)
                                c->frames[0].inlined = m->knows_calls && !e->calls;
                }
        }
}

static void chain_below(const struct ls_jit_map *m, struct chain *c)
{
        for (uint32_t k = 0; k < m->nbelow; k++) {
                if (m->below[k].depth < c->depth)
                        chain_add(c, m->below[k].function, m->below[k].line, m->below[k].depth);
        }
}

/* Outermost first, to the caller; a frame of function 0 stands for an outermost one that is not
 * known. */
static unsigned chain_give(const struct chain *c, struct ls_jit_frame *ret, unsigned room)
{
        unsigned n = 0;

        if (!c->n)
                return 0;
        if (!c->bottom && n++ < room)
                ret[0] = (struct ls_jit_frame){ 0, 0, 0 };
        for (unsigned k = c->n; k-- > 0; n++) {
                if (n < room)
                        ret[n] = (struct ls_jit_frame){ c->frames[k].function, c->frames[k].line,
                                                        c->frames[k].inlined };
        }
        return n;
}

/* The last event at or before a reference. */
static uint32_t event_of(const struct ls_jit_map *m, uint32_t ref)
{
        uint32_t lo = 0, hi = m->nevents;

        while (lo < hi) {
                uint32_t mid = (lo + hi) / 2;

                if (m->events[mid].ref <= ref)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo ? lo - 1 : m->nevents ? 0 : NO_EVENT;
}

/* The event that a reference belongs to: head to the first, tail to the last, the loop's own code
 * to the last before it. */
static uint32_t event_of_code(const struct ls_jit_map *m, uint32_t ref, uint32_t origin)
{
        if (!m->nevents)
                return NO_EVENT;
        if (ref == LS_JIT_REF_HEAD)
                return 0;
        if (ref == LS_JIT_REF_TAIL)
                return m->nevents - 1;
        if (m->loop && ref >= m->loop)
                return event_of(m, ref == m->loop || !origin || origin >= m->loop ? m->loop - 1
                                                                                  : origin);
        return event_of(m, ref);
}

unsigned ls_jit_map_ref_frames(const struct ls_jit_map *map, uint32_t ref, uint32_t origin,
                               struct ls_jit_frame *ret, unsigned room)
{
        struct chain c = { .depth = UINT32_MAX };
        uint32_t event = event_of_code(map, ref, origin);

        if (event != NO_EVENT)
                chain_events(map, event, &c);
        else if (map->is_root)
                chain_add(&c, map->start_function, map->start_line, 0);
        chain_below(map, &c);
        return chain_give(&c, ret, room);
}

static const struct span *span_of(const struct ls_jit_map *m, uint32_t offset)
{
        uint32_t lo = 0, hi = m->nspans;

        while (lo < hi) {
                uint32_t mid = (lo + hi) / 2;

                if (m->spans[mid].offset <= offset)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo ? &m->spans[lo - 1] : NULL;
}

/* The frames that an exit restores. */
static void chain_exit(const struct ls_jit_map *m, uint32_t exit, struct chain *c)
{
        const struct exit *e = &m->exits[exit];

        chain_add(c, e->function, e->line, e->depth);
        if (e->event != NO_EVENT)
                chain_events(m, e->event, c);
        chain_below(m, c);
}

unsigned ls_jit_map_frames(const struct ls_jit_map *map, uint32_t offset, struct ls_jit_frame *ret,
                           unsigned room)
{
        const struct span *s = span_of(map, offset);

        if (!s)
                return ls_jit_map_ref_frames(map, LS_JIT_REF_HEAD, 0, ret, room);
        if (!map->nevents && s->ref < map->nexits && map->exits[s->ref].function) {
                struct chain c = { .depth = UINT32_MAX };

                chain_exit(map, s->ref, &c);
                if (map->is_root && c.depth > 0)
                        chain_add(&c, map->start_function, map->start_line, 0);
                return chain_give(&c, ret, room);
        }
        return ls_jit_map_ref_frames(map, s->ref, s->origin, ret, room);
}

uint32_t ls_jit_map_ref(const struct ls_jit_map *map, uint32_t offset, uint32_t *ret_origin)
{
        const struct span *s = span_of(map, offset);

        *ret_origin = s ? s->origin : 0;
        return s ? s->ref : LS_JIT_REF_HEAD;
}

unsigned ls_jit_map_is_approximate(const struct ls_jit_map *map)
{
        return map->doubt;
}

static uint32_t function_id(const struct ls_jit_input *in, uint32_t index)
{
        return index < in->head->nfunctions ? in->functions[index] : 0;
}

/* References that the recorder gave up again (it rolls back) belong to what was recorded after
 * that. */
static int copy_events(struct ls_jit_map *m, const struct ls_jit_input *in)
{
        uint32_t n = in->head->nevents < MAX_EVENTS ? in->head->nevents : MAX_EVENTS;
        uint16_t lowest = UINT16_MAX;

        if (!(in->head->flags & LS_JITF_MAP) || !n)
                return 0;
        m->events = calloc(n, sizeof(*m->events));
        if (!m->events)
                return -ENOMEM;
        m->nevents = n;
        if (in->head->flags & LS_JITF_SNAPSHOTS)
                m->doubt |= LS_JIT_NO_EVENTS;
        for (uint32_t k = n; k-- > 0;) {
                const struct ls_jit_event *e = &in->events[k];

                if (e->ref < lowest)
                        lowest = e->ref;
                m->events[k] = (struct event){ .ref = lowest,
                                               .depth = e->depth,
                                               .line = e->line,
                                               .pos = e->pos,
                                               .function = function_id(in, e->function) };
        }
        for (uint32_t k = 0; k < n; k++) {
                uint32_t outer = k ? k - 1 : NO_EVENT;

                while (outer != NO_EVENT && m->events[outer].depth >= m->events[k].depth)
                        outer = m->events[outer].outer;
                m->events[k].outer = outer;
        }
        return 0;
}

/* How well an event fits a snapshot: 2 = it is the bytecode, 1 = it is of the same call. */
static int fit(const struct event *e, const struct ls_jit_snapshot *s, uint32_t function)
{
        if (e->function != function || e->depth != s->nframes)
                return 0;
        return e->pos == s->pos ? 2 : 1;
}

/* The event of the bytecode that a snapshot goes back to: at its reference or close to it. */
static uint32_t event_of_snapshot(const struct ls_jit_map *m, const struct ls_jit_snapshot *s,
                                  uint32_t function, const uint16_t *origin)
{
        uint32_t ref = m->loop && s->ref > m->loop
                               ? (s->ref < m->nir ? origin[s->ref] : m->loop - 1)
                               : s->ref;
        uint32_t near = event_of(m, ref), found = near;
        int best = 0;

        for (uint32_t d = 0; near != NO_EVENT && d < MAX_SEARCH && best < 2; d++) {
                if (d <= near && fit(&m->events[near - d], s, function) > best) {
                        found = near - d;
                        best = fit(&m->events[found], s, function);
                }
                if (near + d < m->nevents && fit(&m->events[near + d], s, function) > best) {
                        found = near + d;
                        best = fit(&m->events[found], s, function);
                }
        }
        return found;
}

static int copy_exits(struct ls_jit_map *m, const struct ls_jit_input *in, const uint16_t *origin)
{
        m->nexits = in->head->nsnapshots;
        m->exits = calloc(m->nexits + 1, sizeof(*m->exits));
        if (!m->exits)
                return -ENOMEM;
        for (uint32_t k = 0; k < m->nexits; k++) {
                const struct ls_jit_snapshot *s = &in->snapshots[k];
                uint32_t function = function_id(in, s->function);

                m->exits[k] = (struct exit){
                        .event = m->nevents ? event_of_snapshot(m, s, function, origin) : NO_EVENT,
                        .function = function,
                        .line = s->line,
                        .depth = s->nframes
                };
        }
        return 0;
}

/* What the parent has at the exit by which the trace leaves it: the trace's own frames replace
 * those of their depth and more. */
static int take_below(struct ls_jit_map *m, const struct ls_rec_jittrace *h,
                      const struct ls_jit_map *parent)
{
        struct chain c = { .depth = UINT32_MAX };

        if (!parent || h->parent_exit >= parent->nexits) {
                if (h->root || h->parent_id)
                        m->doubt |= LS_JIT_NO_PARENT;
                return 0;
        }
        m->doubt |= parent->doubt & (LS_JIT_NO_EVENTS | LS_JIT_NO_PARENT);
        chain_exit(parent, h->parent_exit, &c);
        m->below = calloc(c.n + 1, sizeof(*m->below));
        if (!m->below)
                return -ENOMEM;
        memcpy(m->below, c.frames, c.n * sizeof(*m->below));
        m->nbelow = c.n;
        return 0;
}

/* Where the reference changes. */
static int make_spans(struct ls_jit_map *m, const struct jit_trace *t)
{
        uint32_t n = 0;

        for (uint32_t o = 0; o < t->code_size; o++)
                n += o == 0 || t->at[o] != t->at[o - 1];
        m->spans = calloc(n + 1, sizeof(*m->spans));
        if (!m->spans)
                return -ENOMEM;
        for (uint32_t o = 0; o < t->code_size; o++) {
                uint16_t ref = t->at[o];

                if (o == 0 || ref != t->at[o - 1])
                        m->spans[m->nspans++] =
                                (struct span){ o, ref, ref < m->nir ? t->origin[ref] : 0 };
        }
        return 0;
}

/* Without events: where the snapshots are. */
static int make_snapshot_spans(struct ls_jit_map *m, const struct ls_jit_input *in)
{
        uint32_t n = in->head->nsnapshots;

        /* A side trace that was given up at once has no bytecode of its own: all it has is its
         * parent's frames. */
        if (!(in->head->flags & LS_JITF_MAP) || m->is_root)
                m->doubt |= LS_JIT_NO_EVENTS;
        m->spans = calloc(n + 1, sizeof(*m->spans));
        if (!m->spans)
                return -ENOMEM;
        for (uint32_t k = 0; k < n; k++) {
                uint32_t offset = in->snapshots[k].mcofs;

                if (!m->nspans || offset > m->spans[m->nspans - 1].offset)
                        m->spans[m->nspans++] = (struct span){ offset, (uint16_t)k, 0 };
        }
        return 0;
}

/* Which events have code that calls, in the loop's copy too. */
static void take_calls(struct ls_jit_map *m, const struct jit_trace *t)
{
        for (uint32_t ref = 1; ref < m->nir; ref++) {
                uint32_t event = t->calls[ref] ? event_of_code(m, ref, t->origin[ref]) : NO_EVENT;

                if (event != NO_EVENT)
                        m->events[event].calls = 1;
        }
        m->knows_calls = !(t->doubt & (LS_JIT_NO_DISASSEMBLY | LS_JIT_TOO_LARGE));
}

static int make(struct ls_jit_map *m, struct jit_trace *t, const struct ls_jit_input *in,
                const char *irnames, size_t len)
{
        int r;

        jit_ops_init(&t->ops, irnames, len);
        for (uint32_t ref = 1; ref < t->head->nir && !t->loop; ref++)
                t->loop = t->ops.op[t->ir[ref].op].flags & JIT_OP_LOOP ? ref : 0;
        m->loop = t->loop;
        m->nir = t->head->nir;
        r = copy_events(m, in);
        if (r == 0)
                r = jit_loop_origins(t);
        if (r == 0)
                r = copy_exits(m, in, t->origin);
        if (r == 0 && m->nevents && m->nir) {
                r = jit_align(t);
                if (r == 0)
                        take_calls(m, t);
                if (r == 0)
                        r = make_spans(m, t);
        } else if (r == 0) {
                r = make_snapshot_spans(m, in);
        }
        m->doubt |= t->doubt;
        return r;
}

int ls_jit_map_new(const struct ls_jit_input *in, const char *irnames, size_t irnames_len,
                   const struct ls_jit_map *parent, struct ls_jit_map **ret)
{
        const struct ls_rec_jittrace *h = in->head;
        struct jit_trace t = { .head = h,
                               .snapshots = in->snapshots,
                               .code = in->code,
                               .cells = JIT_MAX_CELLS,
                               .ir = (const struct jit_ir *)in->ir };
        struct ls_jit_map *m = calloc(1, sizeof(*m));
        int r = -ENOMEM;

        t.code_size = h->mcode_size < JIT_MAX_CODE ? h->mcode_size : JIT_MAX_CODE;
        t.at = calloc(t.code_size + 1, sizeof(*t.at));
        t.origin = calloc(h->nir + 1, sizeof(*t.origin));
        t.calls = calloc(h->nir + 1, sizeof(*t.calls));
        if (m && t.at && t.origin && t.calls) {
                if (t.code_size < h->mcode_size)
                        m->doubt |= LS_JIT_TOO_LARGE;
                m->is_root = !h->root && !h->parent_id;
                m->start_function = function_id(in, h->start_function);
                m->start_line = h->start_line;
                r = make(m, &t, in, irnames, irnames_len);
        }
        if (r == 0)
                r = take_below(m, h, parent);
        free(t.at);
        free(t.origin);
        free(t.calls);
        if (r == 0)
                *ret = m;
        else
                ls_jit_map_free(m);
        return r;
}

void ls_jit_map_free(struct ls_jit_map *map)
{
        if (!map)
                return;
        free(map->events);
        free(map->spans);
        free(map->exits);
        free(map->below);
        free(map);
}
