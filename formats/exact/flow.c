/* See flow.h. A trace counts how often it is entered, how often its loop runs, and how often it is
 * left by each exit. A bytecode is done as often as the part that it is in is entered, less the
 * exits before it. An exit that goes on in a side trace is not counted at the exit any more, but by
 * that trace's entries. */
#include "formats/exact/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Kinds of link, as LuaJIT numbers them. */
enum { NONE, ROOT, LOOP, TAILREC, UPREC, DOWNREC, INTERP, RETURN, STITCH };
#define LUA_BC_MOST (1u << 26)
#define CALLER_STEPS 64u                /* of a parent whose events may be of no function */

struct trace {
        const struct ls_exact_trace *rec;
        const struct ls_exact_event *events;
        const uint32_t *before;
        const uint16_t *head, *loop;
        uint64_t *exits;                        /* nsnapshots + 1: the last one is of a stack that
                                                 * is too small, at the start */
        uint64_t entered, iterated;
};

struct reading {
        int fd;
        uint64_t low, used, ncounters;          /* as the memory said once */
        uint64_t *counters;
        struct ls_flow *flow;
        struct trace *traces;                   /* by id, from 1 */
        size_t ntraces, traces_room, protos_room, calls_room, nodes_room;
        int no_memory;
};

static int grow(void **array, size_t *room, size_t want, size_t size)
{
        size_t n = *room ? *room : 256;
        char *p;

        if (want <= *room)
                return 0;
        while (n < want)
                n *= 2;
        p = calloc(n, size);
        if (!p)
                return -ENOMEM;
        for (size_t i = 0; i < *room * size; i++)
                p[i] = ((char *)*array)[i];
        free(*array);
        *array = p;
        *room = n;
        return 0;
}

/* Bytes of the memory, as they are now. Returns 0, or -1: it has none there. */
static int copy(int fd, uint64_t at, void *to, size_t n)
{
        for (size_t done = 0; done < n;) {
                ssize_t k = pread(fd, (char *)to + done, n - done, (off_t)(at + done));

                if (k <= 0)
                        return -1;
                done += (size_t)k;
        }
        return 0;
}

/* Whether the instruction before pc has a cell. */
static int has_cell(const struct reading *r, uint64_t pc)
{
        uint64_t at = pc - r->low;

        return !(at >> LS_EXACT_WINDOW_BITS || at & 3);
}

/* The cells of n instructions, the first of which is before pc. */
static int copy_cells(const struct reading *r, uint64_t pc, uint32_t n, uint64_t *ret)
{
        return copy(r->fd, LS_EXACT_CELLS + 2 * (pc - r->low), ret, 8 * (size_t)n);
}

/* Each has a record. */
static int id_is_possible(const struct reading *r, uint32_t id)
{
        return id && id <= r->used / sizeof(struct ls_exact_proto) + 1;
}

static int read_proto(struct reading *r, const struct ls_exact_proto *rec)
{
        uint64_t chunk = ((uint64_t)rec->name_len + 3) & ~UINT64_C(3);
        uint64_t name = chunk + (((uint64_t)rec->function_len + 3) & ~UINT64_C(3));
        struct ls_flow_proto *p;

        if (!id_is_possible(r, rec->id) || rec->n > LUA_BC_MOST ||
            sizeof *rec + name + (rec->has_lines ? 8 : 4) * (uint64_t)rec->n > rec->rec.size ||
            !has_cell(r, rec->code + 4) || !has_cell(r, rec->code + 4 * (uint64_t)rec->n))
                return -EBADMSG;
        if (grow((void **)&r->flow->protos, &r->protos_room, rec->id + (size_t)1, sizeof *p))
                return -ENOMEM;
        p = &r->flow->protos[rec->id];
        if (p->rec)
                return -EBADMSG;
        p->counts = calloc(rec->n + (size_t)1, sizeof *p->counts);
        if (!p->counts)
                return -ENOMEM;
        p->rec = rec;
        p->name = (const char *)(rec + 1);
        p->function = p->name + chunk;
        p->lines = rec->has_lines ? (const uint32_t *)(p->name + name) : NULL;
        p->code = (const uint32_t *)(p->name + name) + (rec->has_lines ? rec->n : 0);
        if (rec->id >= r->flow->nprotos)
                r->flow->nprotos = rec->id + (size_t)1;
        return 0;
}

/* From here on nothing in the cells is the prototype's. */
static int read_gone(struct reading *r, const struct ls_exact_gone *rec)
{
        struct ls_flow_proto *p = rec->id < r->flow->nprotos ? &r->flow->protos[rec->id] : NULL;
        const uint64_t *counts = (const uint64_t *)(rec + 1);

        if (!p || !p->rec || rec->n != p->rec->n || p->at_least & 2 ||
            sizeof *rec + 8 * (uint64_t)rec->n > rec->rec.size)
                return -EBADMSG;
        for (uint32_t i = 0; i < rec->n; i++)
                p->counts[i] += counts[i];
        p->at_least |= 2;
        return 0;
}

/* Calls of a function by an instruction: the table may have others of them. */
static void add_calls(struct reading *r, uint32_t caller, uint32_t pos, uint32_t callee,
                      uint64_t times)
{
        struct ls_flow *flow = r->flow;

        if (!times)
                return;
        if (grow((void **)&flow->calls, &r->calls_room, flow->ncalls + 1, sizeof *flow->calls))
                r->no_memory = 1;
        else
                flow->calls[flow->ncalls++] = (struct ls_flow_calls){ callee, caller, pos, times };
}

static int is_instruction(const struct reading *r, uint32_t proto, uint32_t pos)
{
        return proto < r->flow->nprotos && r->flow->protos[proto].rec &&
               pos < r->flow->protos[proto].rec->n;
}

static int read_calls(struct reading *r, const struct ls_exact_calls *rec)
{
        if (!is_instruction(r, rec->caller, rec->pos) || !is_instruction(r, rec->callee, 0))
                return -EBADMSG;
        add_calls(r, rec->caller, rec->pos, rec->callee, rec->times);
        return 0;
}

static int read_node(struct reading *r, const struct ls_exact_node *rec)
{
        struct ls_flow *flow = r->flow;

        if (!id_is_possible(r, rec->id) || rec->parent >= rec->id ||
            !is_instruction(r, rec->proto, 0) ||
            (rec->parent && (rec->parent >= flow->nnodes || !flow->nodes[rec->parent])))
                return -EBADMSG;
        if (grow((void **)&flow->nodes, &r->nodes_room, rec->id + (size_t)1, sizeof *flow->nodes))
                return -ENOMEM;
        if (flow->nodes[rec->id])
                return -EBADMSG;
        flow->nodes[rec->id] = rec;
        if (rec->id >= flow->nnodes)
                flow->nnodes = rec->id + (size_t)1;
        return 0;
}

static int by_callee(const void *a, const void *b)
{
        const struct ls_flow_calls *x = a, *y = b;

        if (x->callee != y->callee)
                return x->callee < y->callee ? -1 : 1;
        if (x->caller != y->caller)
                return x->caller < y->caller ? -1 : 1;
        return x->pos < y->pos ? -1 : x->pos > y->pos;
}

static void merge_calls(struct ls_flow *flow)
{
        size_t n = 0;

        if (flow->ncalls)
                qsort(flow->calls, flow->ncalls, sizeof *flow->calls, by_callee);
        for (size_t i = 0; i < flow->ncalls; i++) {
                if (n && !by_callee(&flow->calls[n - 1], &flow->calls[i]))
                        flow->calls[n - 1].times += flow->calls[i].times;
                else
                        flow->calls[n++] = flow->calls[i];
        }
        flow->ncalls = n;
}

static int counter_exists(const struct reading *r, uint64_t first, uint64_t n)
{
        return first + n <= r->ncounters;
}

static int read_trace(struct reading *r, const struct ls_exact_trace *rec)
{
        struct trace *t;

        if (!id_is_possible(r, rec->id) || rec->parent >= rec->id ||
            rec->nfirst > rec->nsnapshots || rec->nsnapshots > 65535 ||
            sizeof *rec + 8 * (uint64_t)rec->nevents + 4 * (uint64_t)rec->nsnapshots +
                            2 * ((uint64_t)rec->nbefore_head + rec->nbefore_loop) >
                    rec->rec.size ||
            !counter_exists(r, rec->entries, 1) || !counter_exists(r, rec->iterations, 1) ||
            !counter_exists(r, rec->exits, rec->nsnapshots + UINT64_C(1)) ||
            !counter_exists(r, rec->returns, 1))
                return -EBADMSG;
        if (grow((void **)&r->traces, &r->traces_room, rec->id + (size_t)1, sizeof *t))
                return -ENOMEM;
        t = &r->traces[rec->id];
        if (t->rec)
                return -EBADMSG;
        t->exits = calloc(rec->nsnapshots + (size_t)1, sizeof *t->exits);
        if (!t->exits)
                return -ENOMEM;
        t->rec = rec;
        t->events = (const struct ls_exact_event *)(rec + 1);
        t->before = (const uint32_t *)(t->events + rec->nevents);
        t->head = (const uint16_t *)(t->before + rec->nsnapshots);
        t->loop = t->head + rec->nbefore_head;
        if (rec->id >= r->ntraces)
                r->ntraces = rec->id + (size_t)1;
        return 0;
}

/* Whether the fixed part of a record is there. */
static int is_whole(const struct ls_exact_rec *rec)
{
        static const size_t least[] = {
                [LS_EXACT_PROTO] = sizeof(struct ls_exact_proto),
                [LS_EXACT_GONE] = sizeof(struct ls_exact_gone),
                [LS_EXACT_TRACE] = sizeof(struct ls_exact_trace),
                [LS_EXACT_CALLS] = sizeof(struct ls_exact_calls),
                [LS_EXACT_NODE] = sizeof(struct ls_exact_node),
        };

        return rec->kind < sizeof least / sizeof *least && rec->size >= least[rec->kind];
}

static int read_log(struct reading *r)
{
        for (uint64_t at = 0; at < r->used;) {
                const struct ls_exact_rec *rec = (const struct ls_exact_rec *)(r->flow->log + at);
                int error = -EBADMSG;

                if (rec->size < sizeof *rec || rec->size & 7 || rec->size > r->used - at)
                        return -EBADMSG;
                if (!is_whole(rec))
                        error = -EBADMSG;
                else if (rec->kind == LS_EXACT_PROTO)
                        error = read_proto(r, (const struct ls_exact_proto *)rec);
                else if (rec->kind == LS_EXACT_GONE)
                        error = read_gone(r, (const struct ls_exact_gone *)rec);
                else if (rec->kind == LS_EXACT_TRACE)
                        error = read_trace(r, (const struct ls_exact_trace *)rec);
                else if (rec->kind == LS_EXACT_CALLS)
                        error = read_calls(r, (const struct ls_exact_calls *)rec);
                else if (rec->kind == LS_EXACT_NODE)
                        error = read_node(r, (const struct ls_exact_node *)rec);
                if (error == -ENOMEM)
                        return error;
                r->flow->damaged += error != 0;
                at += rec->size;
        }
        return 0;
}

static uint64_t counter(const struct reading *r, uint32_t i)
{
        return i ? r->counters[i] : 0;
}

/* Entries, iterations and exits of a trace. Younger traces first: an exit that became one is
 * counted there. */
static void read_counters(struct reading *r, struct trace *t)
{
        const struct ls_exact_trace *rec = t->rec;

        for (uint32_t i = 0; rec->exits && i <= rec->nsnapshots; i++)
                t->exits[i] += counter(r, rec->exits + i);
        t->entered = counter(r, rec->entries);
        t->iterated = counter(r, rec->iterations);
        for (uint32_t i = 0; i < rec->nbefore_head; i++)
                t->entered += t->head[i] <= rec->nsnapshots ? t->exits[t->head[i]] : 0;
        for (uint32_t i = 0; i < rec->nbefore_loop; i++)
                t->iterated += t->loop[i] <= rec->nsnapshots ? t->exits[t->loop[i]] : 0;
        if (rec->parent && rec->parent < r->ntraces && r->traces[rec->parent].rec &&
            rec->exit <= r->traces[rec->parent].rec->nsnapshots)
                r->traces[rec->parent].exits[rec->exit] += t->entered;
}

static int starts_with_itself(const struct trace *t)
{
        return (t->rec->flags & LS_EXACT_STARTS_WITH_ITSELF) != 0;
}

/* How many of its events a trace does when it is not left by an exit. */
static uint32_t events_done(const struct reading *r, const struct trace *t)
{
        const struct ls_exact_trace *rec = t->rec;
        const struct trace *link = rec->link && rec->link < r->ntraces ? &r->traces[rec->link]
                                                                       : NULL;
        uint32_t n = rec->nevents;

        if (!n)
                return 0;
        if (rec->flags & LS_EXACT_LOOP)
                return starts_with_itself(t) ? n - 1 : n;
        switch (rec->link_kind) {
        case STITCH: case INTERP: case RETURN: case DOWNREC: case NONE:
                return rec->nsnapshots && t->before[rec->nsnapshots - 1] <= n
                               ? t->before[rec->nsnapshots - 1]
                               : n;
        case ROOT:                              /* the linked trace does that bytecode itself */
                return link && link->rec && starts_with_itself(link) ? n - 1 : n;
        default:
                return starts_with_itself(t) && t->events[0].proto == t->events[n - 1].proto &&
                       t->events[0].pos == t->events[n - 1].pos ? n - 1 : n;
        }
}

static void add(struct reading *r, const struct ls_exact_event *event, uint64_t times, int at_least)
{
        struct ls_flow_proto *p = event->proto < r->flow->nprotos ? &r->flow->protos[event->proto]
                                                                  : NULL;

        if (!p || !p->rec || event->pos >= p->rec->n)
                return;
        p->counts[event->pos] += times;
        p->at_least |= at_least;
        r->flow->compiled += event->pos ? times : 0;
}

/* The instruction before event i of a trace, 0 = there is none: in a side trace the parent's. */
static const struct ls_exact_event *caller_of(const struct reading *r, const struct trace *t,
                                              uint32_t i)
{
        const struct trace *parent;
        uint32_t n;

        while (i--)
                if (is_instruction(r, t->events[i].proto, t->events[i].pos))
                        return &t->events[i];
        if (!t->rec->parent || t->rec->parent >= r->ntraces)
                return NULL;
        parent = &r->traces[t->rec->parent];
        if (!parent->rec || t->rec->exit >= parent->rec->nsnapshots)
                return NULL;
        n = parent->before[t->rec->exit];
        i = n < parent->rec->nevents ? n : parent->rec->nevents;
        for (unsigned k = 0; i-- && k < CALLER_STEPS; k++)
                if (is_instruction(r, parent->events[i].proto, parent->events[i].pos))
                        return &parent->events[i];
        return NULL;
}

/* Event i of a trace was done so often. */
static void add_event(struct reading *r, const struct trace *t, uint32_t i, uint64_t times)
{
        const struct ls_exact_event *event = &t->events[i], *from;

        add(r, event, times, (t->rec->flags & LS_EXACT_AT_LEAST) != 0);
        if (event->pos || !is_instruction(r, event->proto, 0))
                return;
        from = caller_of(r, t, i);
        if (from)
                add_calls(r, from->proto, from->pos, event->proto, times);
}

/* Events of a part of the trace that is begun so often, with the exits [from, to). Returns how
 * often the part is done to its end. */
static uint64_t add_part(struct reading *r, const struct trace *t, uint32_t n, uint64_t begun,
                         uint32_t from, uint32_t to)
{
        uint64_t left = 0, *leave = calloc(n + (size_t)1, sizeof *leave);

        for (uint32_t i = from; leave && i < to; i++)
                leave[t->before[i] < n ? t->before[i] : n] += t->exits[i];
        for (uint32_t i = 0; leave && i < n; i++) {
                left += leave[i];
                add_event(r, t, i, begun >= left ? begun - left : 0);
        }
        left += leave ? leave[n] : 0;
        free(leave);
        return begun - left;
}

static void add_trace(struct reading *r, const struct trace *t)
{
        const struct ls_exact_trace *rec = t->rec;
        int loop = (rec->flags & LS_EXACT_LOOP) != 0;
        uint32_t n = events_done(r, t), first = loop ? rec->nfirst : rec->nsnapshots;
        uint64_t arrive, left = 0;

        arrive = add_part(r, t, n, t->entered - t->exits[rec->nsnapshots], 0, first);
        if (!loop)
                return;
        for (uint32_t i = first; i < rec->nsnapshots; i++)
                left += t->exits[i];
        r->flow->unbalanced += left != arrive;
        add_part(r, t, n, t->iterated, first, rec->nsnapshots);
}

static void add_returns(struct reading *r, const struct trace *t)
{
        uint64_t pc, cell;

        if (!(t->rec->flags & LS_EXACT_COUNTS_RETURN) || t->rec->returns < 2)
                return;
        add(r, &t->rec->start, counter(r, t->rec->returns), 0);
        pc = counter(r, t->rec->returns - 1);
        if (pc && has_cell(r, pc) && copy_cells(r, pc, 1, &cell) == 0)
                add(r, &t->rec->start, cell, 0);
}

static int read_cells(struct reading *r)
{
        uint64_t *cells = NULL;
        size_t room = 0;

        for (size_t i = 1; i < r->flow->nprotos; i++) {
                struct ls_flow_proto *p = &r->flow->protos[i];

                if (!p->rec)
                        continue;
                if (p->rec->n > room) {
                        free(cells);
                        room = p->rec->n;
                        cells = malloc(8 * room);
                        if (!cells)
                                return -ENOMEM;
                }
                if (!(p->at_least & 2) && !atomic_load(&p->rec->lost) &&
                    copy_cells(r, p->rec->code + 4, p->rec->n, cells) == 0)
                        for (uint32_t k = 0; k < p->rec->n; k++)
                                p->counts[k] += cells[k];
                p->at_least = (p->at_least & 1) | (atomic_load(&p->rec->lost) != 0);
        }
        free(cells);
        return 0;
}

/* Copies what all others are read from. The memory may be written meanwhile. */
static int begin(struct reading *r)
{
        struct ls_exact_head head;

        if (copy(r->fd, 0, &head, sizeof head))
                return -EBADMSG;
        r->low = head.low;
        r->used = atomic_load(&head.log_used);
        r->ncounters = atomic_load(&head.counters_used);
        if (!r->ncounters)
                return -ENODATA;
        if (r->used > LS_EXACT_LOG_SIZE || r->used & 7 || r->ncounters > LS_EXACT_COUNTERS_MOST)
                return -EBADMSG;
        r->flow->outside = head.outside;
        r->flow->clock = (struct ls_exact_clock){ head.clock_begin, head.clock_begin_ns,
                                                  head.in_callee, head.in_caller };
        r->flow->lost = atomic_load(&head.lost);
        r->flow->log = malloc(r->used + 8);
        r->counters = malloc(8 * r->ncounters);
        if (!r->flow->log || !r->counters)
                return -ENOMEM;
        return copy(r->fd, LS_EXACT_LOG, r->flow->log, r->used) ||
               copy(r->fd, LS_EXACT_COUNTERS, r->counters, 8 * r->ncounters) ? -EBADMSG : 0;
}

static void follow(struct reading *r)
{
        for (size_t i = r->ntraces; i-- > 1;)
                if (r->traces[i].rec)
                        read_counters(r, &r->traces[i]);
        for (size_t i = 1; i < r->ntraces; i++)
                if (r->traces[i].rec) {
                        r->flow->ntraces++;
                        add_trace(r, &r->traces[i]);
                        add_returns(r, &r->traces[i]);
                }
}

int ls_flow_read(int fd, struct ls_flow *ret)
{
        struct reading r = { .fd = fd, .flow = ret };
        int error;

        *ret = (struct ls_flow){ 0 };
        error = begin(&r);
        if (!error)
                error = read_log(&r);
        if (!error)
                error = read_cells(&r);
        if (!error) {
                follow(&r);
                merge_calls(ret);
                error = r.no_memory ? -ENOMEM : 0;
        }
        for (size_t i = 1; i < r.ntraces; i++)
                free(r.traces[i].exits);
        free(r.traces);
        free(r.counters);
        if (error)
                ls_flow_free(ret);
        return error;
}

void ls_flow_free(struct ls_flow *flow)
{
        for (size_t i = 1; i < flow->nprotos; i++)
                free(flow->protos[i].counts);
        free(flow->protos);
        free(flow->calls);
        free(flow->nodes);
        free(flow->log);
        *flow = (struct ls_flow){ 0 };
}
