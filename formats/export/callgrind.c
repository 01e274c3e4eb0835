/* Exporter "callgrind": the call graph for kcachegrind and callgrind_annotate.
 *
 * Under recursion one sample must not count twice. The readers take the inclusive cost of a
 * function to be the sum of the costs of the calls to it. So each sample is charged, for each
 * function in its stack, to the one call by which the function was entered first. Calls that are
 * then left without any cost are not written: they would make cycles, in which kcachegrind gives up
 * on inclusive costs; only calls of a function to itself are shown, with no cost. A function that
 * is called and is also the root of stacks gets a call from "[root]", so that its sum is whole.
 *
 * Functions of machine code have the object file that they are in: builtins the Lua runtime's.
 * Lua's own are in "Lua". A part holds one thread; it is a file of its own, as callgrind writes it,
 * since callgrind_annotate reads only the first part of a file. */
#include "formats/export/calltree.h"
#include "formats/escape.h"
#include "formats/export/export.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct cost {                           /* self cost of a line of a function */
        uint32_t function, line;
        uint64_t ticks[LS_EXPORT_EVENTS_MOST];
};

struct edge {                           /* calls from a line of a function to another function */
        uint32_t caller, line, callee;
        uint64_t ticks[LS_EXPORT_EVENTS_MOST];  /* inclusive cost charged to this call */
        uint64_t seen;                  /* how often it was called; where that was not counted,
                                         * ticks during which the call was on the stack, recursion
                                         * too */
};

struct graph {
        const struct ls_export *in;
        const struct ls_profile *p;
        struct cost *costs;
        struct edge *edges;
        size_t n_costs, n_edges;
        uint32_t *object;               /* [n_mappings] the first mapping of the same file; 0 = the
                                         * runtime's file */
        unsigned n;                     /* events */
        unsigned calls;                 /* the one that counts calls, n = there is none */
        uint64_t samples[LS_EXPORT_EVENTS_MOST];        /* sums of what was written */
        uint64_t us[LS_EXPORT_EVENTS_MOST];
        uint8_t *fl_named, *fn_named, *ob_named;        /* names that were written already */
        uint8_t *has_line;              /* [n_sources] a line of it has cost, or was written
                                         * without */
        uint32_t last_line;
        int has_last;
};

static int by_cost(const void *a, const void *b)
{
        const struct cost *x = a, *y = b;

        if (x->function != y->function)
                return x->function < y->function ? -1 : 1;
        return x->line < y->line ? -1 : x->line > y->line;
}

static int by_edge(const void *a, const void *b)
{
        const struct edge *x = a, *y = b;

        if (x->caller != y->caller)
                return x->caller < y->caller ? -1 : 1;
        if (x->line != y->line)
                return x->line < y->line ? -1 : 1;
        return x->callee < y->callee ? -1 : x->callee > y->callee;
}

static uint32_t function_of(const struct ls_profile *p, uint32_t stack)
{
        return p->locations[p->stacks[stack].location].function;
}

/* "[root]" has the number after the last function. */
static uint32_t root_function(const struct ls_profile *p)
{
        return p->n_functions;
}

static int any(const struct graph *g, const uint64_t *ticks)
{
        for (unsigned e = 0; e < g->n; e++)
                if (ticks[e])
                        return 1;
        return 0;
}

/* Self ticks of an event by stack: [n_stacks]. NULL = no memory. */
static uint64_t *self_of(const struct graph *g, unsigned event)
{
        const struct ls_export_event *e = &g->in->events[event];
        uint64_t *self = calloc((size_t)g->p->n_stacks + 1, sizeof(*self));

        for (size_t i = 0; self && i < e->n_cells; i++)
                self[e->cells[i].stack] += e->cells[i].ticks;
        return self;
}

/* Self ticks by location. */
static int sum_cells(struct graph *g)
{
        const struct ls_profile *p = g->p;

        g->costs = calloc((size_t)p->n_locations + 1, sizeof(*g->costs));
        if (!g->costs)
                return -ENOMEM;
        for (unsigned e = 0; e < g->n; e++)
                for (size_t i = 0; i < g->in->events[e].n_cells; i++) {
                        const struct ls_export_cell *c = &g->in->events[e].cells[i];

                        g->costs[p->stacks[c->stack].location].ticks[e] += c->ticks;
                }
        for (uint32_t i = 0; i < p->n_locations; i++)
                if (any(g, g->costs[i].ticks)) {
                        struct cost *cost = &g->costs[g->n_costs++];

                        *cost = g->costs[i];
                        cost->function = p->locations[i].function;
                        cost->line = p->locations[i].line;
                }
        qsort(g->costs, g->n_costs, sizeof(*g->costs), by_cost);
        return 0;
}

/* Ticks that each call is charged with, by the stack it leads to: those of a function's first
 * entry, else 0. */
static int charge_entries(const struct ls_profile *p, const uint64_t *totals, uint64_t *charged)
{
        uint32_t *first = calloc((size_t)p->n_stacks + 1, sizeof(*first));
        uint32_t *next = calloc((size_t)p->n_stacks + 1, sizeof(*next));
        uint32_t *on_path = calloc((size_t)p->n_functions + 1, sizeof(*on_path));
        int r = first && next && on_path ? 0 : -ENOMEM;

        for (uint32_t i = p->n_stacks; !r && i-- > 1;) {
                if (!totals[i])
                        continue;
                next[i] = first[p->stacks[i].parent];
                first[p->stacks[i].parent] = i;
        }
        for (uint32_t at = 0; !r;) {
                uint32_t child = first[at];

                if (child) {
                        first[at] = next[child];
                        if (on_path[function_of(p, child)]++ == 0)
                                charged[child] = totals[child];
                        at = child;
                } else if (at) {
                        on_path[function_of(p, at)]--;
                        at = p->stacks[at].parent;
                } else {
                        break;
                }
        }
        free(first);
        free(next);
        free(on_path);
        return r;
}

/* Merges neighbours that are the same call, and drops those without cost. */
static void merge_edges(struct graph *g)
{
        size_t n = 0;

        qsort(g->edges, g->n_edges, sizeof(*g->edges), by_edge);
        for (size_t i = 0; i < g->n_edges; i++) {
                if (n && by_edge(&g->edges[n - 1], &g->edges[i]) == 0) {
                        for (unsigned e = 0; e < g->n; e++)
                                g->edges[n - 1].ticks[e] += g->edges[i].ticks[e];
                        g->edges[n - 1].seen += g->edges[i].seen;
                } else {
                        g->edges[n++] = g->edges[i];
                }
        }
        g->n_edges = 0;
        for (size_t i = 0; i < n; i++)
                if (any(g, g->edges[i].ticks) || g->edges[i].caller == g->edges[i].callee)
                        g->edges[g->n_edges++] = g->edges[i];
}

/* A call is counted with its caller alone, and other counts with nobody: what was called from there
 * in turn is not known. */
static void charge_calls(const struct ls_profile *p, const uint64_t *self, uint64_t *charged)
{
        for (uint32_t i = 1; i < p->n_stacks; i++) {
                uint32_t parent = p->stacks[i].parent;

                charged[i] = parent && function_of(p, parent) == function_of(p, i) ? 0 : self[i];
        }
}

struct event {                          /* by stack */
        uint64_t *self, *totals, *charged;
};

static int sum_event(const struct graph *g, unsigned event, struct event *ret)
{
        ret->self = self_of(g, event);
        ret->charged = calloc((size_t)g->p->n_stacks + 1, sizeof(*ret->charged));
        if (!ret->self || !ret->charged)
                return -ENOMEM;
        if (g->in->events[event].exact) {
                if (event == g->calls)
                        charge_calls(g->p, ret->self, ret->charged);
                ret->totals = ret->self;
                return 0;
        }
        ret->totals = ls_stack_totals(g->p, ret->self);
        return ret->totals ? charge_entries(g->p, ret->totals, ret->charged) : -ENOMEM;
}

static int is_seen(const struct graph *g, const struct event *events, uint32_t stack)
{
        for (unsigned e = 0; e < g->n; e++)
                if (events[e].totals[stack])
                        return 1;
        return 0;
}

static void add_edge(struct graph *g, const struct event *events, uint32_t stack)
{
        uint32_t parent = g->p->stacks[stack].parent;
        const struct ls_location *from = &g->p->locations[g->p->stacks[parent].location];
        struct edge *edge = &g->edges[g->n_edges++];

        *edge = (struct edge){ .caller = parent ? from->function : root_function(g->p),
                               .line = parent ? from->line : 0,
                               .callee = function_of(g->p, stack) };
        for (unsigned e = 0; e < g->n; e++)
                edge->ticks[e] = events[e].charged[stack];
        edge->seen = g->calls < g->n ? events[g->calls].self[stack] : events[0].totals[stack];
}

static int add_edges(struct graph *g, const struct event *events)
{
        const struct ls_profile *p = g->p;
        uint8_t *called = calloc((size_t)p->n_functions + 1, 1);
        size_t n = 0;

        for (uint32_t i = 1; called && i < p->n_stacks; i++)
                if (is_seen(g, events, i)) {
                        n++;
                        called[function_of(p, i)] |= p->stacks[i].parent != 0;
                }
        g->edges = malloc((n + 1) * sizeof(*g->edges));
        for (uint32_t i = 1; called && g->edges && i < p->n_stacks; i++)
                if (is_seen(g, events, i) && (p->stacks[i].parent || called[function_of(p, i)]))
                        add_edge(g, events, i);
        n = called && g->edges;
        free(called);
        return n ? 0 : -ENOMEM;
}

static int make_edges(struct graph *g)
{
        struct event events[LS_EXPORT_EVENTS_MOST] = { { 0 } };
        int r = 0;

        for (unsigned e = 0; !r && e < g->n; e++)
                r = sum_event(g, e, &events[e]);
        if (!r)
                r = add_edges(g, events);
        if (!r)
                merge_edges(g);
        for (unsigned e = 0; e < g->n; e++) {
                if (events[e].totals != events[e].self)
                        free(events[e].totals);
                free(events[e].self);
                free(events[e].charged);
        }
        return r;
}

/* The object file of a function: a number of g->object's, or one of the two after these. */
static uint32_t object_of(const struct graph *g, uint32_t function)
{
        const struct ls_function *f = &g->p->functions[function < g->p->n_functions ? function : 0];

        switch (f->kind) {
        case LS_FUNC_C:
        case LS_FUNC_NATIVE:
                return f->mapping ? g->object[f->mapping] : g->p->n_mappings + 1;
        case LS_FUNC_BUILTIN:
                return g->object[0];
        case LS_FUNC_LUA:
        case LS_FUNC_TRACE:
                return g->p->n_mappings;
        default:
                return g->p->n_mappings + 1;
        }
}

/* The readers take a name of blanks for none at all, and warn. */
static void put_name(FILE *out, const char *name)
{
        fprintf(out, " %s", name[strspn(name, " ")] ? name : "[no name]");
}

/* "fl=(3) /path/app.lua" the first time, then "fl=(3)". All that is no Lua source is in the file
 * "???". */
static void put_file(FILE *out, struct graph *g, const char *key, uint32_t function)
{
        const struct ls_profile *p = g->p;
        uint32_t source = function < p->n_functions ? p->functions[function].source : 0;
        uint32_t id = source ? source : p->n_sources;

        fprintf(out, "%s=(%u)", key, id);
        if (!g->fl_named[id]) {
                struct ls_str path = ls_source_path(&p->sources[source]);
                char *text = source && path.len ? ls_visible(path.s, path.len) : NULL;

                put_name(out, text ? text : source ? g->in->labels->source[source] : "???");
                free(text);
                g->fl_named[id] = 1;
        }
        fputc('\n', out);
}

/* "ob=(2) /usr/lib/lpeg.so" the first time, then "ob=(2)". Files of one path have one number: they
 * are mapped in pieces. */
static void put_object(FILE *out, struct graph *g, const char *key, uint32_t function)
{
        const struct ls_profile *p = g->p;
        uint32_t id = object_of(g, function);

        fprintf(out, "%s=(%u)", key, id);
        if (!g->ob_named[id]) {
                struct ls_str path = id == 0              ? ls_profile_str(p, LS_INFO_RUNTIME_PATH)
                                     : id < p->n_mappings ? p->mappings[id].path
                                                          : (struct ls_str){ "", 0 };
                char *text = path.len ? ls_visible(path.s, path.len) : NULL;

                put_name(out, text ? text : id == p->n_mappings ? "Lua" : "???");
                free(text);
                g->ob_named[id] = 1;
        }
        fputc('\n', out);
}

static void put_function(FILE *out, struct graph *g, const char *key, uint32_t function)
{
        fprintf(out, "%s=(%u)", key, function);
        if (!g->fn_named[function]) {
                put_name(out, function < g->p->n_functions ? g->in->labels->function[function]
                                                           : "[root]");
                g->fn_named[function] = 1;
        }
        fputc('\n', out);
}

/* A position and its costs; the position as the distance to the one before, where that is
 * shorter. */
static void put_cost(FILE *out, struct graph *g, uint32_t line, const uint64_t *ticks, int is_self)
{
        if (!g->has_last)
                fprintf(out, "%u", line);
        else if (line == g->last_line)
                fputc('*', out);
        else if (line > g->last_line)
                fprintf(out, "+%u", line - g->last_line);
        else
                fprintf(out, "-%u", g->last_line - line);
        for (unsigned e = 0; e < g->n; e++) {
                uint64_t us = (uint64_t)((unsigned __int128)ticks[e] * g->in->interval_ns / 1000);

                fprintf(out, " %" PRIu64, ticks[e]);
                if (!g->in->events[e].exact)
                        fprintf(out, " %" PRIu64, us);
                if (is_self) {
                        g->samples[e] += ticks[e];
                        g->us[e] += us;
                }
        }
        fputc('\n', out);
        g->last_line = line;
        g->has_last = 1;
}

static uint32_t first_line(const struct ls_profile *p, uint32_t function)
{
        return function < p->n_functions ? p->functions[function].first_line : 0;
}

static uint32_t source_of(const struct ls_profile *p, uint32_t function)
{
        return function < p->n_functions ? p->functions[function].source : 0;
}

/* Its lines. callgrind_annotate leaves out line 0, which stands for no line, and warns when a
 * source file has no other, as that of a script which only calls: then one without cost is
 * there. */
static void put_self(FILE *out, struct graph *g, uint32_t function, size_t *cost)
{
        uint32_t source = source_of(g->p, function), line = first_line(g->p, function);

        for (; *cost < g->n_costs && g->costs[*cost].function == function; ++*cost)
                put_cost(out, g, g->costs[*cost].line, g->costs[*cost].ticks, 1);
        if (source && !g->has_line[source])
                put_cost(out, g, line ? line : 1, (const uint64_t[LS_EXPORT_EVENTS_MOST]){ 0 }, 1);
        g->has_line[source] = 1;
}

/* One function: its lines, then its calls. */
static void put_block(FILE *out, struct graph *g, uint32_t function, size_t *cost, size_t *edge)
{
        fputc('\n', out);
        put_object(out, g, "ob", function);
        put_file(out, g, "fl", function);
        put_function(out, g, "fn", function);
        g->has_last = 0;
        put_self(out, g, function, cost);
        for (; *edge < g->n_edges && g->edges[*edge].caller == function; ++*edge) {
                const struct edge *e = &g->edges[*edge];

                put_object(out, g, "cob", e->callee);
                put_file(out, g, "cfi", e->callee);
                put_function(out, g, "cfn", e->callee);
                fprintf(out, "calls=%" PRIu64 " %u\n", e->seen, first_line(g->p, e->callee));
                put_cost(out, g, e->line, e->ticks, 0);
        }
}

static void put_info(FILE *out, const struct ls_profile *p, const char *what, enum ls_info_key key)
{
        struct ls_str s = ls_profile_str(p, key);
        char *text = s.len ? ls_visible(s.s, s.len) : NULL;

        if (text)
                fprintf(out, "%s: %s\n", what, text);
        free(text);
}

/* What memory is called, when no other event of the file would be called so; NULL = its own
 * name. */
static const char *short_name(const struct graph *g, unsigned event)
{
        static const struct { const char *event, *name;
        } names[] = {
                { "alloc", "Bytes" },
                { "alloc-objects", "Objects" },
                { "live", "Bytes" },
                { "live-objects", "Objects" },
        };
        const char *found = NULL;
        unsigned memory = 0;

        for (unsigned e = 0; e < g->n; e++)
                for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                        if (!strcmp(g->in->events[e].name, names[i].event)) {
                                memory |= 1u << i / 2;
                                found = e == event ? names[i].name : found;
                        }
        return memory == 3 ? NULL : found;
}

/* Times of several clocks have the name of theirs before "Samples" and "Microseconds". */
static void put_events(FILE *out, const struct graph *g)
{
        unsigned times = 0;

        for (unsigned e = 0; e < g->n; e++)
                times += !g->in->events[e].exact;
        for (unsigned e = 0; e < g->n; e++)
                if (times == 1 && !g->in->events[e].exact && strcmp(g->in->events[e].name, "cpu"))
                        fprintf(out, "desc: Time: %s\n", g->in->events[e].name);
        fprintf(out, "positions: line\nevents:");
        for (unsigned e = 0; e < g->n; e++) {
                const char *name = g->in->events[e].name;
                int upper = toupper((unsigned char)*name);

                if (g->in->events[e].exact && short_name(g, e))
                        fprintf(out, " %s", short_name(g, e));
                else if (g->in->events[e].exact)
                        fprintf(out, " %c%s", upper, name + 1);
                else if (times == 1)
                        fprintf(out, " Samples Microseconds");
                else
                        fprintf(out, " %c%sSamples %c%sMicroseconds", upper, name + 1, upper,
                                name + 1);
        }
        fputc('\n', out);
}

static void put_graph(FILE *out, struct graph *g)
{
        size_t cost = 0, edge = 0;
        uint64_t pid = ls_profile_u64(g->p, LS_INFO_PID, 0);

        fprintf(out, "# callgrind format\nversion: 1\ncreator: luasample %s\n", LS_VERSION);
        if (pid)
                fprintf(out, "pid: %" PRIu64 "\n", pid);
        if (g->in->part) {
                const struct ls_thread *t = &g->p->threads[g->in->part_thread];
                char *name = ls_visible(t->name.s, t->name.len);

                fprintf(out, "part: 1\nthread: %u\ndesc: Thread: %u %s\n", g->in->part, t->tid,
                        name ? name : "");
                free(name);
        }
        put_info(out, g->p, "cmd", LS_INFO_COMMAND);
        put_events(out, g);
        for (uint32_t f = 0; f <= root_function(g->p); f++) {
                if ((cost < g->n_costs && g->costs[cost].function == f) ||
                    (edge < g->n_edges && g->edges[edge].caller == f))
                        put_block(out, g, f, &cost, &edge);
        }
        fprintf(out, "\ntotals:");
        for (unsigned e = 0; e < g->n; e++) {
                fprintf(out, " %" PRIu64, g->samples[e]);
                if (!g->in->events[e].exact)
                        fprintf(out, " %" PRIu64, g->us[e]);
        }
        fputc('\n', out);
}

struct object {
        struct ls_str path;
        uint32_t mapping;
};

static int by_path(const void *a, const void *b)
{
        const struct object *x = a, *y = b;
        uint32_t n = x->path.len < y->path.len ? x->path.len : y->path.len;
        int c = memcmp(x->path.s, y->path.s, n);

        if (c || x->path.len != y->path.len)
                return c ? c : x->path.len < y->path.len ? -1 : 1;
        return x->mapping < y->mapping ? -1 : x->mapping > y->mapping;
}

/* Numbers the object files. */
static int find_objects(struct graph *g)
{
        const struct ls_profile *p = g->p;
        struct object *objects = calloc((size_t)p->n_mappings + 1, sizeof(*objects));

        g->object = calloc((size_t)p->n_mappings + 1, sizeof(*g->object));
        g->ob_named = calloc((size_t)p->n_mappings + 2, 1);
        if (!objects || !g->object || !g->ob_named) {
                free(objects);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < p->n_mappings; i++)
                objects[i] = (struct object){ i ? p->mappings[i].path
                                                : ls_profile_str(p, LS_INFO_RUNTIME_PATH),
                                              i };
        qsort(objects, p->n_mappings, sizeof(*objects), by_path);
        for (uint32_t i = 0, first = 0; i < p->n_mappings; i++) {
                if (objects[i].path.len != objects[first].path.len ||
                    memcmp(objects[i].path.s, objects[first].path.s, objects[i].path.len))
                        first = i;
                g->object[objects[i].mapping] = objects[first].mapping;
        }
        free(objects);
        return 0;
}

static int callgrind_write(FILE *out, const struct ls_export *in)
{
        struct graph g = { .in = in, .p = in->profile, .n = in->n_events };
        int r = sum_cells(&g);

        while (g.calls < g.n && strcmp(in->events[g.calls].name, "calls"))
                g.calls++;
        if (!r)
                r = make_edges(&g);
        if (!r)
                r = find_objects(&g);
        if (!r) {
                g.fl_named = calloc((size_t)g.p->n_sources + 1, 1);
                g.fn_named = calloc((size_t)g.p->n_functions + 1, 1);
                g.has_line = calloc((size_t)g.p->n_sources + 1, 1);
                r = g.fl_named && g.fn_named && g.has_line ? 0 : -ENOMEM;
        }
        for (size_t i = 0; !r && i < g.n_costs; i++)
                if (g.costs[i].line)
                        g.has_line[source_of(g.p, g.costs[i].function)] = 1;
        if (!r)
                put_graph(out, &g);
        free(g.costs);
        free(g.edges);
        free(g.fl_named);
        free(g.fn_named);
        free(g.has_line);
        free(g.ob_named);
        free(g.object);
        return r;
}

const struct ls_exporter ls_export_callgrind = {
        .name = "callgrind",
        .suffix = ".callgrind",
        .help = "call graph, for kcachegrind and callgrind_annotate",
        .prefix = "callgrind.out.",
        .flags = LS_EXPORT_PARTS | LS_EXPORT_EVENTS,
        .write = callgrind_write,
};
