/* Compares the maps of formats/jit/map.h with what LuaJIT logged. Called by score.c when the
 * program has ended. */
#include "tests/jit/score.h"

#include <time.h>

#define MAX_ROWS 65536
#define MAX_FRAMES 64
#define CONTROL_SHIFT 64                /* bytes that the control asks beside the place */

struct row {                            /* samples of a function or a line */
        uint64_t key;
        double truth, ours;
        double bytes_truth, bytes_ours; /* each byte of each trace counted once */
        double control;
};

struct figures {
        uint32_t sampled, failed, approximate, stacks, stacks_right;
        uint64_t hits, approximate_hits, copies, copies_right;
        double wrong[2];                /* samples with another function, another line */
        double ms;                      /* to make a map */
};

static struct row rows[2][MAX_ROWS];    /* by function, by line */

static struct row *row_of(struct row *table, uint64_t key)
{
        for (uint32_t k = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 48); ; k++) {
                struct row *r = &table[k % MAX_ROWS];

                if (r->key == key + 1)
                        return r;
                if (!r->key) {
                        r->key = key + 1;
                        return r;
                }
        }
}

static struct ls_jit_frame leaf(const struct ls_jit_frame *frames, unsigned n)
{
        return n && n <= MAX_FRAMES ? frames[n - 1] : (struct ls_jit_frame){ 0, 0 };
}

struct ls_jit_frame score_truth(const struct trace *t, uint32_t offset)
{
        struct ls_jit_frame f[MAX_FRAMES];
        uint16_t ref = t->truth[offset];

        return leaf(f, ls_jit_map_ref_frames(t->map, ref, ref < t->nir ? t->origin[ref] : 0, f,
                                             MAX_FRAMES));
}

struct ls_jit_frame score_ours(const struct trace *t, uint32_t offset)
{
        struct ls_jit_frame f[MAX_FRAMES];

        return leaf(f, ls_jit_map_frames(t->map, offset, f, MAX_FRAMES));
}

static struct row *row_at(int by_line, struct ls_jit_frame f)
{
        return row_of(rows[by_line], (uint64_t)f.function << 32 | (by_line ? f.line : 0));
}

/* Adds the samples of a trace, and each of its bytes once, to the rows. */
static void add_rows(const struct trace *t, struct figures *n)
{
        for (uint32_t o = 0; o < t->size; o++) {
                struct ls_jit_frame truth = score_truth(t, o), ours = score_ours(t, o);
                struct ls_jit_frame control = score_ours(t, (o + CONTROL_SHIFT) % t->size);

                for (int line = 0; line < 2; line++) {
                        struct row *a = row_at(line, truth), *b = row_at(line, ours);

                        row_at(line, control)->control += t->hits[o];
                        n->wrong[line] += a == b ? 0 : t->hits[o];
                        a->truth += t->hits[o];
                        a->bytes_truth++;
                        b->ours += t->hits[o];
                        b->bytes_ours++;
                }
        }
}

/* Compares the inlined functions at each snapshot whose bytecode was recorded right there with what
 * LuaJIT restores. */
static void check_stacks(const struct trace *t, struct figures *figures)
{
        struct ls_jit_input in;

        if (ls_jit_input_parse(t->blob, t->blob_len, &in) < 0)
                return;
        for (uint32_t k = 0; k < in.head->nsnapshots; k++) {
                const struct ls_jit_snapshot *s = &in.snapshots[k];
                const struct stack *truth = &t->stacks[k];
                struct ls_jit_frame f[LJ_TRUTH_MAX_FRAMES + 1];
                unsigned n = ls_jit_map_ref_frames(t->map, s->ref, t->origin[s->ref], f,
                                                   LJ_TRUTH_MAX_FRAMES + 1);
                int same = n == truth->n + 1u;

                if (s->function == 0xffff || !n || n > LJ_TRUTH_MAX_FRAMES ||
                    f[n - 1].function != s->function || f[n - 1].line != s->line ||
                    truth->n == LJ_TRUTH_MAX_FRAMES)
                        continue;
                for (uint32_t j = 0; same && j < truth->n; j++)
                        same = !truth->ids[j] || truth->ids[j] == f[j + 1].function;
                figures->stacks++;
                figures->stacks_right += same;
        }
}

enum compared { SAMPLES, BYTES, CONTROL };

/* Half the sum of the differences of shares, in points. */
static double error_of(const struct row *table, enum compared what)
{
        double sum = 0, differ = 0;

        for (uint32_t k = 0; k < MAX_ROWS; k++) {
                const struct row *r = &table[k];
                double truth = what == BYTES ? r->bytes_truth : r->truth;
                double ours = what == BYTES     ? r->bytes_ours
                              : what == CONTROL ? r->control
                                                : r->ours;

                sum += truth;
                differ += truth > ours ? truth - ours : ours - truth;
        }
        return sum > 0 ? 100 * differ / 2 / sum : 0;
}

static void count(const struct trace *t, struct figures *n)
{
        uint64_t hits = 0;

        for (uint32_t o = 0; o < t->size; o++) {
                uint32_t origin, ref = ls_jit_map_ref(t->map, o, &origin);

                hits += t->hits[o];
                if (ref == t->truth[o] && ref < t->nir && t->origin[ref]) {
                        n->copies++;
                        n->copies_right += origin == t->origin[ref];
                }
        }
        n->hits += hits;
        n->sampled += hits > 0;
        if (ls_jit_map_is_approximate(t->map)) {
                n->approximate++;
                n->approximate_hits += hits;
        }
}

static void make_maps(struct trace *traces, uint32_t ntraces, const char *irnames, size_t len,
                      struct figures *n)
{
        struct timespec a, b;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        for (uint32_t k = 0; k < ntraces; k++) {
                struct trace *t = &traces[k];
                struct ls_jit_input in;

                if (ls_jit_input_parse(t->blob, t->blob_len, &in) < 0 ||
                    ls_jit_map_new(&in, irnames, len, t->parent ? traces[t->parent - 1].map : NULL,
                                   &t->map) < 0)
                        n->failed++;
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
        n->ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) * 1e-6;
}

static double percent(double part, double whole, double of_nothing)
{
        return whole > 0 ? 100 * part / whole : of_nothing;
}

void score_compare(struct trace *traces, uint32_t ntraces, struct ticks ticks, const char *irnames,
                   size_t irnames_len, int dump, FILE *f)
{
        struct figures n = { 0 };

        make_maps(traces, ntraces, irnames, irnames_len, &n);
        for (uint32_t k = 0; k < ntraces; k++) {
                const struct trace *t = &traces[k];

                if (!t->map)
                        continue;
                count(t, &n);
                check_stacks(t, &n);
                add_rows(t, &n);
                if (dump == 0 || dump == (int)t->number)
                        score_dump(t, irnames, f);
        }
        fprintf(f,
                "{\"ticks\": %u, \"running\": %u, \"placed\": %u, \"traces\": %u, \"sampled\": %u, "
                "\"failed\": %u, ",
                ticks.all, ticks.running, ticks.placed, ntraces, n.sampled, n.failed);
        fprintf(f, "\"approximate\": %u, \"approximate_ticks\": %llu, ", n.approximate,
                (unsigned long long)n.approximate_hits);
        fprintf(f, "\"function\": %.3f, \"line\": %.3f, ", error_of(rows[0], SAMPLES),
                error_of(rows[1], SAMPLES));
        fprintf(f, "\"bytes_function\": %.3f, \"bytes_line\": %.3f, \"control_line\": %.3f, ",
                error_of(rows[0], BYTES), error_of(rows[1], BYTES), error_of(rows[1], CONTROL));
        fprintf(f, "\"wrong_function\": %.3f, \"wrong_line\": %.3f, ",
                percent(n.wrong[0], (double)n.hits, 0), percent(n.wrong[1], (double)n.hits, 0));
        fprintf(f,
                "\"copies_right\": %.2f, \"stacks\": %u, \"stacks_right\": %.2f, \"ms\": %.4f}\n",
                percent((double)n.copies_right, (double)n.copies, 100), n.stacks,
                percent(n.stacks_right, n.stacks, 100), ntraces ? n.ms / ntraces : 0);
}
