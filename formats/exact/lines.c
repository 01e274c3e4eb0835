/* See lines.h. A function is a graph: what comes into an instruction by all its edges is how often
 * it is executed, and so much goes out of it, but for what an error ends. Edges that are alone in
 * such an equation are known, and then others are. */
#include "formats/exact/lines.h"

#include <errno.h>
#include <stdlib.h>

/* Numbers of instructions, less that of FORI. */
enum {
        UCLO = -27,
        CALLMT = -10,
        CALLT = -9,
        ITERN = -7,
        ISNEXT = -5,
        RETM = -4,
        RET1 = -1,
        FORI = 0,
        JFORI = 1,
        FORL = 2,
        JFORL = 4,
        ITERL = 5,
        JITERL = 7,
        JMP = 11,
};
#define COMPARISONS 16u /* the first ones; a JMP follows each, which is part of it */

#define ROUNDS 8u                       /* at most: a hostile graph may need one an edge */

struct edge { uint32_t from, to; uint64_t times; uint8_t known; };

struct equation {                       /* of all edges into an instruction, or out of it */
        uint64_t rest;                  /* of its count, without the edges that are known */
        uint32_t unknown;               /* how many others there are */
        uint32_t which;                 /* their numbers, combined by xor */
};

struct graph {
        const struct ls_flow_proto *p;
        uint32_t n;
        struct edge *edges;
        uint32_t n_edges;
        struct equation *equations;     /* 2 * i: into instruction i; 2 * i + 1: out of it */
        uint32_t *first;                /* edge of an instruction */
        uint32_t *ready;                /* equations with one unknown edge */
        uint32_t n_ready;
        uint8_t *part;                  /* 1 = the instruction can be reached, and is none that
                                         * another one does */
};

static int op_at(const struct graph *g, uint32_t i)
{
        return (int)(g->p->code[i] & 0xff) - g->p->rec->op_fori;
}

static int is_comparison(const struct graph *g, uint32_t i)
{
        return (g->p->code[i] & 0xff) < COMPARISONS;
}

static uint32_t line_of(const struct graph *g, uint32_t i)
{
        return g->p->lines ? g->p->lines[i] : 0;
}

static void add_edge(struct graph *g, uint32_t from, int64_t to)
{
        if (to < 1 || to >= g->n)
                return;
        for (uint32_t e = g->n_edges; e && g->edges[e - 1].from == from; e--)
                if (g->edges[e - 1].to == to)
                        return;
        g->edges[g->n_edges++] = (struct edge){ .from = from, .to = (uint32_t)to };
}

static int64_t target(const struct graph *g, uint32_t i)
{
        return i < g->n ? (int64_t)i + 1 + (int64_t)(g->p->code[i] >> 16) - 0x8000 : -1;
}

/* Edges out of an instruction: three at most. Compiled variants have no target, and go where those
 * do that they stand for, which nobody knows: they have fewer. */
static void add_edges_of(struct graph *g, uint32_t i)
{
        int op = op_at(g, i);

        if (is_comparison(g, i)) {
                add_edge(g, i, (int64_t)i + 2);
                add_edge(g, i, target(g, i + 1));
        } else if (op == ITERN) {       /* does the ITERL that follows, unless it turns out to be an
                                         * ITERC */
                add_edge(g, i, (int64_t)i + 1);
                add_edge(g, i, (int64_t)i + 2);
                add_edge(g, i, target(g, i + 1));
        } else if (op == JMP || op == UCLO || op == ISNEXT) {
                add_edge(g, i, target(g, i));
        } else if ((op >= RETM && op <= RET1) || op == CALLT || op == CALLMT) {
                return;
        } else {
                add_edge(g, i, (int64_t)i + 1);
                if ((op >= FORI && op < JFORL && op != JFORI) || op == ITERL || op == ITERL + 1)
                        add_edge(g, i, target(g, i));
        }
}

/* Follows the edges from the header. Those of what cannot be reached are left out. */
static int find_edges(struct graph *g)
{
        uint32_t *open = malloc((g->n + (size_t)1) * sizeof(*open)), n_open = 0, begin;

        if (!open)
                return -ENOMEM;
        g->part[0] = 1;
        open[n_open++] = 0;
        while (n_open) {
                uint32_t i = open[--n_open];

                begin = g->n_edges;
                g->first[i] = begin;
                add_edges_of(g, i);
                for (uint32_t e = begin; e < g->n_edges; e++) {
                        uint32_t to = g->edges[e].to;

                        if (!g->part[to]) {
                                g->part[to] = 1;
                                open[n_open++] = to;
                        }
                }
        }
        free(open);
        return 0;
}

static void begin_equations(struct graph *g)
{
        for (uint32_t i = 0; i < g->n; i++)
                g->equations[2 * (size_t)i].rest = g->equations[2 * (size_t)i + 1].rest =
                        g->p->counts[i];
        for (uint32_t e = 0; e < g->n_edges; e++) {
                struct equation *in = &g->equations[2 * (size_t)g->edges[e].to];
                struct equation *out = &g->equations[2 * (size_t)g->edges[e].from + 1];

                in->unknown++;
                in->which ^= e;
                out->unknown++;
                out->which ^= e;
        }
}

static void take_edge(struct graph *g, size_t equation, uint32_t e)
{
        struct equation *q = &g->equations[equation];

        q->rest -= q->rest < g->edges[e].times ? q->rest : g->edges[e].times;
        q->which ^= e;
        if (--q->unknown == 1)
                g->ready[g->n_ready++] = (uint32_t)equation;
}

/* 1 when all that is executed goes on: an error ends no such instruction. */
static int goes_on(const struct graph *g, uint32_t i)
{
        int op = op_at(g, i);

        return is_comparison(g, i) || op == ITERN || (op >= FORI && op <= JITERL) || op >= JMP ||
               op == UCLO || op == ISNEXT;
}

/* all: also by the equations that errors break. */
static void solve(struct graph *g, int all)
{
        g->n_ready = 0;
        for (uint32_t q = 0; q < 2 * g->n; q++)
                if (g->equations[q].unknown == 1)
                        g->ready[g->n_ready++] = q;
        while (g->n_ready) {
                uint32_t q = g->ready[--g->n_ready], e;
                struct edge *edge;

                if (g->equations[q].unknown != 1 || (!all && (q & 1) && !goes_on(g, q / 2)))
                        continue;
                e = g->equations[q].which;
                edge = &g->edges[e];
                edge->times = g->equations[q].rest;
                edge->known = 1;
                take_edge(g, 2 * (size_t)edge->to, e);
                take_edge(g, 2 * (size_t)edge->from + 1, e);
        }
}

/* Nothing goes along an edge into what was never executed, or out of it. Returns how many are known
 * by that. */
static uint32_t take_zeros(struct graph *g)
{
        uint32_t taken = 0;

        g->n_ready = 0;
        for (uint32_t e = 0; e < g->n_edges; e++) {
                size_t in = 2 * (size_t)g->edges[e].to, out = 2 * (size_t)g->edges[e].from + 1;

                if (g->edges[e].known || (g->equations[in].rest && g->equations[out].rest))
                        continue;
                g->edges[e].known = 1;
                take_edge(g, in, e);
                take_edge(g, out, e);
                taken++;
        }
        return taken;
}

static void solve_all(struct graph *g)
{
        take_zeros(g);
        for (unsigned all = 0; all < 2; all++) {
                unsigned rounds = 0;

                do
                        solve(g, (int)all);
                while (take_zeros(g) && ++rounds < ROUNDS);
        }
}

/* What an instruction does itself, and is not executed beside it. */
static void leave_out_parts(struct graph *g)
{
        for (uint32_t i = 1; i + 1 < g->n; i++)
                if (g->part[i] &&
                    (is_comparison(g, i) || (op_at(g, i) == ITERN && !g->p->counts[i + 1])))
                        g->part[i + 1] = 0;
        g->part[0] = 0;
}

struct at { uint32_t line, i; };

static int by_line(const void *a, const void *b)
{
        const struct at *x = a, *y = b;

        return x->line != y->line ? (x->line < y->line ? -1 : 1) : x->i < y->i ? -1 : x->i > y->i;
}

/* The lines with their instructions; *ret_of: index of an instruction's line. */
static size_t collect(const struct graph *g, struct at *at, struct ls_exact_line *lines,
                      uint32_t *ret_of)
{
        size_t n = 0, n_lines = 0;

        for (uint32_t i = 1; i < g->n; i++)
                if (g->part[i])
                        at[n++] = (struct at){ line_of(g, i), i };
        qsort(at, n, sizeof(*at), by_line);
        for (size_t k = 0; k < n; k++) {
                if (!k || at[k].line != at[k - 1].line)
                        lines[n_lines++] = (struct ls_exact_line){ .line = at[k].line };
                lines[n_lines - 1].instructions += g->p->counts[at[k].i];
                ret_of[at[k].i] = (uint32_t)n_lines - 1;
        }
        return n_lines;
}

/* What comes into an instruction: from other lines and back, and within its line. */
struct arrivals { uint64_t entries, others; uint8_t unknown_entries, unknown_others; };

static void count_arrivals(const struct graph *g, struct arrivals *in)
{
        for (uint32_t e = 0; e < g->n_edges; e++) {
                const struct edge *edge = &g->edges[e];
                struct arrivals *a = &in[edge->to];

                if (edge->from && line_of(g, edge->from) == line_of(g, edge->to) &&
                    edge->to > edge->from) {
                        a->others += edge->times;
                        a->unknown_others |= !edge->known;
                } else {
                        a->entries += edge->times;
                        a->unknown_entries |= !edge->known;
                }
        }
}

/* Where the edges from other lines are not known, all less the others is as good: where two loops
 * follow each other, one cannot say which edge leads to the second, but all that do are entries. A
 * line of which neither is known has the largest count of its instructions. */
static void count_entries(const struct graph *g, struct ls_exact_line *lines, size_t n,
                          const uint32_t *of, uint8_t *unknown, struct arrivals *in)
{
        count_arrivals(g, in);
        for (uint32_t i = 1; i < g->n; i++) {
                uint64_t count = g->p->counts[i];

                if (!g->part[i])
                        continue;
                unknown[of[i]] |= in[i].unknown_entries && in[i].unknown_others;
                lines[of[i]].entered += !in[i].unknown_entries ? in[i].entries
                                        : count > in[i].others ? count - in[i].others : 0;
        }
        for (uint32_t i = 1; i < g->n; i++) {
                struct ls_exact_line *line = g->part[i] ? &lines[of[i]] : NULL;

                if (line && unknown[of[i]] == 1) {
                        line->entered = 0;
                        unknown[of[i]] = 2;
                }
                if (line && unknown[of[i]] && g->p->counts[i] > line->entered)
                        line->entered = g->p->counts[i];
        }
        /* What was killed in the middle, or came in by a way that is not understood. */
        for (size_t i = 0; i < n; i++)
                if (lines[i].instructions && !lines[i].entered)
                        lines[i].entered = 1;
}

/* What goes from an instruction to another one. Returns 0 when nothing says how much. */
static int goes(const struct graph *g, uint32_t from, int64_t to, uint64_t *ret)
{
        for (uint32_t e = g->first[from]; e < g->n_edges && g->edges[e].from == from; e++)
                if (g->edges[e].to == to) {
                        *ret += g->edges[e].times;
                        return g->edges[e].known;
                }
        return 1;
}

/* A loop over an iterator: the ITERN before its end takes the same ways, but where it has become an
 * ITERC. */
static int iterates(const struct graph *g, uint32_t i, uint64_t times[2])
{
        return op_at(g, i - 1) != ITERN ||
               (goes(g, i - 1, (int64_t)i + 1, &times[0]) &&
                goes(g, i - 1, target(g, i), &times[1]));
}

/* Instructions with two ways out. */
static int is_branch(const struct graph *g, uint32_t i)
{
        int op = op_at(g, i);
        uint32_t jump = is_comparison(g, i) ? i + 1 : i;

        if (!g->part[i] || i + 1 >= g->n ||
            !(is_comparison(g, i) || op == ITERL || op == ITERL + 1))
                return 0;
        return target(g, jump) >= 1 && target(g, jump) < g->n && jump + 1 < g->n &&
               target(g, jump) != (int64_t)jump + 1;
}

static void collect_arms(const struct graph *g, struct ls_exact_solved *ret)
{
        for (uint32_t i = 1; i < g->n; i++) {
                uint32_t jump = i < g->n && is_comparison(g, i) ? i + 1 : i;
                uint64_t times[2] = { 0, 0 };

                if (!is_branch(g, i))
                        continue;
                if (!goes(g, i, (int64_t)jump + 1, &times[0]) ||
                    !goes(g, i, target(g, jump), &times[1]) ||
                    (jump == i && !iterates(g, i, times))) {
                        ret->unknown++;
                        continue;
                }
                for (uint8_t k = 0; k < 2; k++)
                        ret->arms[ret->n_arms++] = (struct ls_exact_arm){ i, line_of(g, i), k,
                                                                          times[k] };
        }
}

static int make(struct graph *g, struct ls_exact_solved *ret)
{
        struct at *at = malloc((g->n + (size_t)1) * sizeof(*at));
        uint32_t *of = calloc(g->n + (size_t)1, sizeof(*of));
        uint8_t *unknown = calloc(g->n + (size_t)1, 1);
        struct arrivals *in = calloc(g->n + (size_t)1, sizeof(*in));
        int r = at && of && unknown && in ? 0 : -ENOMEM;

        if (!r && g->n)
                r = find_edges(g);
        if (!r && g->n) {
                begin_equations(g);
                solve_all(g);
                collect_arms(g, ret);
                leave_out_parts(g);
                ret->n_lines = collect(g, at, ret->lines, of);
                count_entries(g, ret->lines, ret->n_lines, of, unknown, in);
        }
        free(at);
        free(of);
        free(unknown);
        free(in);
        return r;
}

int ls_exact_solve(const struct ls_flow_proto *p, struct ls_exact_solved *ret)
{
        struct graph g = { .p = p, .n = p->rec->n };
        size_t n = g.n + (size_t)1;
        int r = -ENOMEM;

        *ret = (struct ls_exact_solved){ .lines = malloc(n * sizeof(*ret->lines)),
                                         .arms = malloc(2 * n * sizeof(*ret->arms)) };
        g.edges = malloc(3 * n * sizeof(*g.edges));
        g.first = calloc(n, sizeof(*g.first));
        g.equations = calloc(2 * n, sizeof(*g.equations));
        g.ready = malloc(5 * n * sizeof(*g.ready));     /* each equation once at first, and once by
                                                         * an edge */
        g.part = calloc(n, 1);
        if (ret->lines && ret->arms && g.edges && g.first && g.equations && g.ready && g.part)
                r = make(&g, ret);
        free(g.edges);
        free(g.first);
        free(g.equations);
        free(g.ready);
        free(g.part);
        if (r)
                ls_exact_solved_done(ret);
        return r;
}

void ls_exact_solved_done(struct ls_exact_solved *s)
{
        free(s->lines);
        free(s->arms);
        *s = (struct ls_exact_solved){ 0 };
}
