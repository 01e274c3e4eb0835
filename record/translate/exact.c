/* See exact.h. */
#include "record/translate/exact.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include "formats/exact/flow.h"
#include "formats/exact/lines.h"
#include "formats/wire/clock.h"
#include "record/translate/known.h"

/* Most that can be counted in a nanosecond: 64 instructions, of which compiled code leaves most
 * out, in each of 256 threads. Without it a count that the program wrote itself would be a row for
 * each 2^32. */
#define MOST_PER_NS 16384

struct sums {
        uint64_t at_least, instructions, no_way;
        uint64_t calls, measured_ns, corrected_ns;      /* whose time was taken; own times */
        double in_callee_ns, in_caller_ns;
};

struct writing {
        struct ls_translate *t;
        uint32_t events;
        struct ls_sample_row row;       /* what all rows have */
        struct ls_source_table sources;
        struct name {
                uint64_t hash;
                uint32_t len, id;
        } * names;                      /* sources by chunk name: open addressing */
        size_t room;                    /* a power of two */
        uint32_t n;
        uint32_t *functions;            /* of the trace, by prototype */
        uint32_t branch;                /* the word, as a label's key */
        uint32_t took;                  /* the same */
        uint64_t left[LS_EVENT_NEXT];   /* that can be, by event: what is more is left out */
        uint64_t impossible;            /* rows of which something was left out */
};

/* The source's id in w->sources, which is defined at its first use. 0 = it cannot be. */
static uint32_t source_id(struct writing *w, const struct ls_flow_proto *p)
{
        struct ls_rec_source def = { .text_hash = p->rec->name_hash, .name_len = p->rec->name_len };
        size_t i = (size_t)p->rec->name_hash & (w->room - 1);

        while (w->names[i].id &&
               (w->names[i].hash != p->rec->name_hash || w->names[i].len != p->rec->name_len))
                i = (i + 1) & (w->room - 1);
        if (w->names[i].id)
                return w->names[i].id;
        def.source_id = w->n + 1;
        if (ls_sources_define(&w->t->sources, &w->sources, &def, p->name))
                return 0;
        w->names[i] = (struct name){ def.text_hash, def.name_len, ++w->n };
        return w->n;
}

static uint32_t function_of(struct writing *w, const struct ls_flow_proto *p)
{
        uint32_t source = source_id(w, p), id = 0;
        struct ls_function_def def = {
                .kind = LS_FUNC_LUA,
                .flags = (uint8_t)(p->rec->flags & (LS_FUNCF_MAIN | LS_FUNCF_VARARG)),
                .first_line = (uint32_t)p->rec->first_line,
                .last_line = (uint32_t)p->rec->last_line,
                .hash = p->rec->hash,
        };

        def.source = ls_sources_trace_id(&w->t->sources, &w->sources, source);
        if (!p->rec->name_len || !strchr("@=", *p->name) ||
            ls_sources_is_loaded(&w->sources, source))
                def.flags |= LS_FUNCF_LOADED;
        if (def.source)
                id = ls_trace_function(w->t->cfg.writer, &def);
        if (id && p->rec->function_len)
                ls_trace_name(w->t->cfg.writer, id, LS_NAME_DEFINITION,
                              ls_trace_string(w->t->cfg.writer, p->function, p->rec->function_len));
        return id;
}

static void write_stack(struct writing *w, enum ls_event_kind event, uint32_t stack,
                        uint64_t weight)
{
        w->row.event = (uint8_t)event;
        w->row.stack = stack;
        w->row.weight = weight < w->left[event] ? weight : w->left[event];
        w->impossible += w->row.weight < weight;
        w->left[event] -= w->row.weight;
        ls_trace_sample(w->t->cfg.writer, &w->row);
}

/* caller: stack below it, 0 = none. */
static void write_row(struct writing *w, enum ls_event_kind event, uint32_t caller,
                      uint32_t function, uint32_t line, uint64_t weight)
{
        struct ls_trace_writer *writer = w->t->cfg.writer;

        if (w->events & 1u << event)
                write_stack(w, event,
                            ls_trace_stack(writer, caller,
                                           ls_trace_location(writer, function, line)),
                            weight);
}

/* The calls of a function, by who called it; first: its first ones of flow->calls. Those of C, and
 * none at all, are of the function alone. Returns the first calls of another function. */
static size_t write_calls(struct writing *w, const struct ls_flow *flow, uint32_t callee,
                          size_t first)
{
        const struct ls_flow_proto *p = &flow->protos[callee];
        struct ls_trace_writer *writer = w->t->cfg.writer;
        uint64_t known = 0, calls = p->rec->n ? p->counts[0] : 0;
        uint32_t line = p->lines ? p->lines[0] : 0;

        if (!(w->events & 1u << LS_EVENT_CALLS) || !p->rec->n)
                return first;
        for (; first < flow->ncalls && flow->calls[first].callee == callee; first++) {
                const struct ls_flow_calls *c = &flow->calls[first];
                const struct ls_flow_proto *from = &flow->protos[c->caller];
                uint64_t times = c->times < calls - known ? c->times : calls - known;

                known += times;
                if (times)
                        write_row(w, LS_EVENT_CALLS,
                                  ls_trace_stack(writer, 0,
                                                 ls_trace_location(writer, w->functions[c->caller],
                                                                   from->lines ? from->lines[c->pos]
                                                                               : 0)),
                                  w->functions[callee], line, times);
        }
        if (calls != known || !calls)
                write_row(w, LS_EVENT_CALLS, 0, w->functions[callee], line, calls - known);
        return first;
}

/* A row for each way out of a branch, taken or not; its label says which: "17 next" and "17 jump"
 * are those of bytecode 17. */
static void write_arms(struct writing *w, const struct ls_exact_solved *s, uint32_t function)
{
        struct ls_trace_writer *writer = w->t->cfg.writer;
        char text[32];

        if (!(w->events & 1u << LS_EVENT_BRANCHES))
                return;
        if (!w->branch)
                w->branch = ls_trace_string(writer, "branch", 6);
        for (size_t i = 0; i < s->n_arms; i++) {
                const struct ls_exact_arm *a = &s->arms[i];
                int n = snprintf(text, sizeof(text), "%" PRIu32 " %s", a->pos,
                                 a->jumps ? "jump" : "next");

                w->row.label = ls_trace_label(writer, 0, w->branch,
                                              ls_trace_string(writer, text, (size_t)n));
                write_row(w, LS_EVENT_BRANCHES, 0, function, a->line, a->times);
        }
        w->row.label = 0;
}

/* Lines that were never executed have rows without weight: so a reader knows that they could be. */
static int write_lines(struct writing *w, const struct ls_flow_proto *p, uint32_t function,
                       struct sums *sums)
{
        struct ls_exact_solved s;
        int r = ls_exact_solve(p, &s);

        if (r)
                return r;
        for (size_t i = 0; i < s.n_lines; i++) {
                const struct ls_exact_line *l = &s.lines[i];

                sums->instructions += l->instructions;
                write_row(w, LS_EVENT_COVERAGE, 0, function, l->line, l->entered != 0);
                write_row(w, LS_EVENT_LINES, 0, function, l->line, l->entered);
                if (l->instructions)
                        write_row(w, LS_EVENT_INSTRUCTIONS, 0, function, l->line, l->instructions);
        }
        write_arms(w, &s, function);
        sums->no_way += w->events & 1u << LS_EVENT_BRANCHES ? s.unknown : 0;
        sums->at_least += p->at_least != 0;
        ls_exact_solved_done(&s);
        return 0;
}

static int write_protos(struct writing *w, const struct ls_flow *flow, struct sums *sums)
{
        size_t calls = 0;
        int r = 0;

        for (size_t i = 1; !r && i < flow->nprotos; i++)
                if (flow->protos[i].rec) {
                        w->functions[i] = function_of(w, &flow->protos[i]);
                        r = w->functions[i] ? 0 : -ENOMEM;
                }
        for (size_t i = 1; !r && i < flow->nprotos; i++) {
                if (!flow->protos[i].rec)
                        continue;
                w->row.vm = ls_translate_vm(w->t, flow->protos[i].rec->vm_id);
                r = write_lines(w, &flow->protos[i], w->functions[i], sums);
                if (!(w->events & 1u << LS_EVENT_CALLTIME))
                        calls = write_calls(w, flow, (uint32_t)i, calls);
        }
        return r;
}

/* ns of a unit of the agent's clock. */
static double unit_ns(const struct ls_exact_clock *c)
{
        uint64_t now = __rdtsc(), now_ns = ls_clock_ns(CLOCK_MONOTONIC);

        if (!c->begin)
                return 1;
        return now > c->begin && now_ns > c->begin_ns
                       ? (double)(now_ns - c->begin_ns) / (double)(now - c->begin)
                       : 0;
}

static uint64_t whole_ns(double ns)
{
        return ns > 0 && ns < 1e18 ? (uint64_t)(ns + 0.5) : 0;
}

/* Of a length of time, for people: at most 4 digits, without a fraction where one is not needed. */
static int put_ns(char *to, size_t size, double ns)
{
        static const char *const units[] = { "ns", "us", "ms", "s" };
        unsigned i = 0;

        for (; ns >= 1000 && i < 3; i++)
                ns /= 1000;
        return snprintf(to, size, "%.3g %s", ns, units[i]);
}

/* A label for calls that took this power of two: "< 1.02 us". */
static uint32_t took_label(struct writing *w, double unit, unsigned power)
{
        struct ls_trace_writer *writer = w->t->cfg.writer;
        char text[32] = "< ";
        int n = 2 + put_ns(text + 2, sizeof(text) - 2, unit * 2 * (double)(UINT64_C(1) << power));

        if (!w->took)
                w->took = ls_trace_string(writer, "took", 4);
        return ls_trace_label(writer, 0, w->took, ls_trace_string(writer, text, (size_t)n));
}

/* The rows of calls, those that took equally long in one. Calls that have not ended have no
 * label. */
static void write_took(struct writing *w, const struct ls_exact_node *node, double unit,
                       uint32_t stack)
{
        uint64_t rest = node->calls;

        for (unsigned i = 0; i < LS_EXACT_TOOK; i++) {
                uint64_t n = node->took[i] < rest ? node->took[i] : rest;

                if (!n)
                        continue;
                rest -= n;
                w->row.label = took_label(w, unit, i);
                write_stack(w, LS_EVENT_CALLS, stack, n);
        }
        w->row.label = 0;
        if (rest)
                write_stack(w, LS_EVENT_CALLS, stack, rest);
}

/* Calls by their path of callers, and their own time, less what it cost to watch them. */
static int write_nodes(struct writing *w, const struct ls_flow *flow, struct sums *sums)
{
        double unit = unit_ns(&flow->clock);
        uint32_t *stacks = calloc(flow->nnodes + 1, sizeof(*stacks));

        if (!stacks)
                return -ENOMEM;
        sums->in_callee_ns = unit * (double)flow->clock.in_callee / LS_EXACT_COST;
        sums->in_caller_ns = unit * (double)flow->clock.in_caller / LS_EXACT_COST;
        for (size_t i = 1; i < flow->nnodes; i++) {
                const struct ls_exact_node *node = flow->nodes[i];
                const struct ls_flow_proto *p = node ? &flow->protos[node->proto] : NULL;
                double self, cost;

                if (!node)
                        continue;
                stacks[i] = ls_trace_stack(w->t->cfg.writer, stacks[node->parent],
                                           ls_trace_location(w->t->cfg.writer,
                                                             w->functions[node->proto],
                                                             p->lines ? p->lines[0] : 0));
                w->row.vm = ls_translate_vm(w->t, p->rec->vm_id);
                self = unit * (double)node->self;
                cost = sums->in_callee_ns * (double)node->calls +
                       sums->in_caller_ns * (double)node->made;
                sums->calls += node->calls;
                sums->measured_ns += whole_ns(self);
                sums->corrected_ns += whole_ns(self - cost);
                write_stack(w, LS_EVENT_CALLTIME, stacks[i], whole_ns(self - cost));
                write_took(w, node, unit, stacks[i]);
        }
        free(stacks);
        return 0;
}

static int write_all(struct writing *w, const struct ls_flow *flow, struct sums *sums)
{
        int r;

        for (w->room = 64; w->room < 2 * flow->nprotos;)
                w->room *= 2;
        w->names = calloc(w->room, sizeof(*w->names));
        w->functions = calloc(flow->nprotos + 1, sizeof(*w->functions));
        w->row = (struct ls_sample_row){ .thread = ls_translate_thread(w->t, 0),
                                         .vmstate = LS_VMSTATE_INTERPRETED,
                                         .time_ns = w->t->now_ns };
        r = w->names && w->functions ? write_protos(w, flow, sums) : -ENOMEM;
        if (!r && w->events & 1u << LS_EVENT_CALLTIME)
                r = write_nodes(w, flow, sums);
        ls_source_table_done(&w->t->sources, &w->sources);
        free(w->names);
        free(w->functions);
        return r;
}

__attribute__((format(printf, 2, 3))) static void say(struct ls_translate *t, const char *fmt, ...)
{
        char text[256];
        va_list args;

        va_start(args, fmt);
        vsnprintf(text, sizeof(text), fmt, args);
        va_end(args);
        ls_trace_notice(t->cfg.writer, text);
        if (t->cfg.notice)
                t->cfg.notice(t->cfg.notice_ctx, text);
}

static void say_sums(struct ls_translate *t, const struct ls_flow *flow, const struct sums *sums,
                     uint64_t impossible)
{
        t->counted = sums->instructions;
        t->counted_compiled = flow->compiled;
        if (sums->calls)
                say(t,
                    "%" PRIu64 " calls took %.3f s, %.3f s with the %.1f ns that measuring one "
                    "costs (%.1f of them in the function "
                    "that is called): time of another program, its JIT compiler was off",
                    sums->calls, (double)sums->corrected_ns / 1e9, (double)sums->measured_ns / 1e9,
                    sums->in_callee_ns + sums->in_caller_ns, sums->in_callee_ns);
        if (sums->at_least)
                say(t,
                    "of %" PRIu64 " functions not all was counted: some of their compiled code has "
                                  "no place for a counter",
                    sums->at_least);
        if (sums->no_way)
                say(t,
                    "%" PRIu64
                    " branches are left out: their counts do not say which way they went",
                    sums->no_way);
        if (flow->outside)
                say(t,
                    "%" PRIu64 " instructions were not counted: their functions lie too far away "
                               "from the first VM",
                    flow->outside);
        if (flow->lost)
                say(t, "%" PRIu64 " functions and traces were not counted: there are too many",
                    flow->lost);
        if (flow->unbalanced)
                say(t,
                    "%" PRIu64 " compiled loops were not left as often as entered: the program "
                               "goes on in them, was ended there, or "
                    "their counts are wrong",
                    flow->unbalanced);
        if (impossible)
                say(t, "%" PRIu64 " counts were cut: the recording is too short for them, so the "
                    "memory that holds them was changed", impossible);
        if (flow->damaged)
                say(t, "counts may be wrong: %" PRIu64 " records make no sense", flow->damaged);
}

void ls_exact_finish(struct ls_translate *t, int fd, uint32_t events)
{
        struct writing w = { .t = t, .events = events };
        struct sums sums = { 0 };
        struct ls_flow flow;
        uint64_t ns = t->now_ns - t->cfg.start_ns + 1000000000;
        int r;

        if (!events)
                return;
        for (size_t i = 0; i < sizeof(w.left) / sizeof(*w.left); i++)
                w.left[i] = ns < UINT64_MAX / MOST_PER_NS ? ns * MOST_PER_NS : UINT64_MAX;
        r = fd < 0 ? -EFBIG : ls_flow_read(fd, &flow);
        if (r == 0) {
                r = write_all(&w, &flow, &sums);
                say_sums(t, &flow, &sums, w.impossible);
                ls_flow_free(&flow);
        }
        if (r == -ENODATA && t->notices)
                return;                 /* the agent has said why */
        if (r == -ENODATA)
                say(t,
                    "process %d has counted nothing: it was forked, or ran no Lua that can be "
                    "counted",
                    t->cfg.pid);
        else if (r)
                say(t, "what process %d has counted cannot be read: %s", t->cfg.pid, strerror(-r));
}
