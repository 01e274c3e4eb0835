/* Makes a large synthetic trace through the writer's public calls, and prints its true totals as
 * JSON, so that tests and benches can compare. The stacks form a call tree; each thread works on a
 * small changing set of them, as programs do. Samples that are "lost" are not written and are
 * counted as ring-full, in runs, as a full ring loses them. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/trace/writer.h"

#define INTERVAL_NS 1000000ull
#define HOT 48                  /* stacks that a thread works on at a time */
#define RUN 64 /* samples that come from one thread at a time: its ring is drained in turn */
#define ZONES 8
#define TOP 20

struct options {
        const char *file;
        uint64_t samples, seed;
        uint32_t functions, stacks, threads, depth, losses;
};

struct thread { uint32_t id, stack, hot[HOT]; uint64_t time_ns, lost_run; };

struct gen {
        struct options o;
        struct ls_trace_writer *w;
        uint64_t random;
        uint32_t *leaf_function;        /* by stack id */
        uint32_t n_stacks;
        uint64_t *self;                 /* ticks by function id */
        uint32_t zones[ZONES + 1];
        struct thread *threads;
        uint64_t samples, ticks, lost, by_vmstate[LS_NVMSTATES], by_zone[ZONES + 1], *by_thread;
};

static uint32_t rnd(struct gen *g, uint32_t below)
{
        g->random ^= g->random << 13;
        g->random ^= g->random >> 7;
        g->random ^= g->random << 17;
        return (uint32_t)((g->random >> 32) * below >> 32);
}

/* Small numbers are likelier: an even spread on a logarithmic scale, about. */
static uint32_t skewed(struct gen *g, uint32_t below)
{
        uint32_t n = below;

        for (int i = 0; i < 2; i++)
                n = rnd(g, n) + 1;
        return n - 1;
}

static int make_functions(struct gen *g)
{
        char name[64];
        uint32_t source = 0;

        for (uint32_t i = 0; i < g->o.functions; i++) {
                struct ls_function_def f = { .kind = LS_FUNC_LUA, .first_line = i % 40 * 25 + 1 };
                int len;

                if (i % 40 == 0) {
                        len = snprintf(name, sizeof(name), "@lib/module%u.lua", i / 40);
                        source = ls_trace_source(g->w,
                                                 &(struct ls_source_def){
                                                         .name = ls_trace_string(g->w, name,
                                                                                 (size_t)len),
                                                         .size = 25 * 40 * 30,
                                                         .text_hash = i * 0x9e3779b97f4a7c15ull });
                }
                f.source = source;
                f.last_line = f.first_line + 20;
                f.hash = (i + 1) * 0xd1342543de82ef95ull;
                len = snprintf(name, sizeof(name), "module%u.function%u", i / 40, i);
                if (ls_trace_function(g->w, &f) != i + 1)
                        return -EINVAL;
                ls_trace_name(g->w, i + 1, LS_NAME_GLOBAL,
                              ls_trace_string(g->w, name, (size_t)len));
        }
        return 0;
}

/* A walk through a call tree: up some frames, down to a new depth around the mean, until there are
 * enough stacks. */
static int make_stacks(struct gen *g)
{
        uint32_t *path = calloc(2 * g->o.depth + 2, sizeof(*path)), depth = 0, parent = 0;

        if (!path)
                return -ENOMEM;
        while (g->n_stacks < g->o.stacks) {
                uint32_t target = g->o.depth / 2 + rnd(g, g->o.depth) + 1;

                depth = depth > 8 ? depth - rnd(g, 8) : 0;
                for (; depth < target && g->n_stacks < g->o.stacks; depth++) {
                        uint32_t f = 1 + skewed(g, g->o.functions), id;

                        parent = depth ? path[depth - 1] : 0;
                        id = ls_trace_stack(g->w, parent,
                                            ls_trace_location(g->w, f,
                                                              f % 40 * 25 + 1 + rnd(g, 12)));
                        path[depth] = id;
                        if (id > g->n_stacks) {
                                g->n_stacks = id;
                                g->leaf_function[id] = f;
                        }
                }
        }
        free(path);
        return 0;
}

static int make_definitions(struct gen *g)
{
        uint32_t process = ls_trace_process(g->w, 4242, ls_trace_string(g->w, "synthetic", 9));
        uint32_t runtime = ls_trace_string(g->w, "LuaJIT 2.1", 10);
        char name[32];
        int r;

        ls_trace_event(g->w, LS_EVENT_CPU, INTERVAL_NS);
        ls_trace_info_str(g->w, "command", "synthetic program");
        ls_trace_info_u64(g->w, "asked_interval_ns", INTERVAL_NS);
        for (uint32_t i = 0; i < g->o.threads; i++) {
                g->threads[i].id = ls_trace_thread(g->w, process, 4242 + i,
                                                   ls_trace_string(g->w, "worker", 6));
                g->threads[i].time_ns = 1000000000000ull;
                ls_trace_vm(g->w, process, i + 1, runtime);
        }
        for (uint32_t i = 1; i <= ZONES; i++) {
                int len = snprintf(name, sizeof(name), "zone%u", i);

                g->zones[i] = ls_trace_zone(g->w, i > 4 ? g->zones[i - 4] : 0,
                                            ls_trace_string(g->w, name, (size_t)len));
        }
        r = make_functions(g);
        return r ? r : make_stacks(g);
}

static void next_stack(struct gen *g, struct thread *t)
{
        uint32_t dice = rnd(g, 100);

        if (dice < 55 && t->stack)
                return;
        if (dice < 97)
                t->stack = t->hot[skewed(g, HOT)];
        else
                t->stack = t->hot[rnd(g, HOT)] = 1 + rnd(g, g->n_stacks);
}

static void one_sample(struct gen *g, struct thread *t)
{
        struct ls_sample_row row = {
                .event = LS_EVENT_CPU, .thread = t->id, .vm = t->id, .weight = 1
        };
        uint32_t zone = t->stack % 1024 / 128;

        next_stack(g, t);
        zone = t->stack % 512 < 64 ? zone + 1 : 0;
        t->time_ns += INTERVAL_NS + rnd(g, 2001) - 1000;
        if (rnd(g, 50) == 0)
                row.weight = 2 + rnd(g, 3);
        if (t->lost_run == 0 && g->o.losses && rnd(g, 100 * RUN) < g->o.losses)
                t->lost_run = RUN * 100 / (100 - g->o.losses);
        if (t->lost_run) {
                t->lost_run--;
                g->lost += row.weight;
                return;
        }
        row.time_ns = t->time_ns;
        row.stack = t->stack;
        row.zone = g->zones[zone];
        row.vmstate = t->stack % 16 < 12   ? LS_VMSTATE_NATIVE
                      : t->stack % 16 < 15 ? LS_VMSTATE_INTERPRETED
                                           : LS_VMSTATE_GC;
        ls_trace_sample(g->w, &row);
        g->samples++;
        g->ticks += row.weight;
        g->by_vmstate[row.vmstate] += row.weight;
        g->by_zone[zone] += row.weight;
        g->by_thread[t - g->threads] += row.weight;
        g->self[g->leaf_function[t->stack]] += row.weight;
}

static int make_samples(struct gen *g)
{
        uint32_t turn = 0;
        uint64_t latest = 0;            /* the threads' times differ; the writer's goes forward */
        int r = 0;

        for (uint32_t i = 0; i < g->o.threads; i++)
                for (uint32_t k = 0; k < HOT; k++)
                        g->threads[i].hot[k] = 1 + rnd(g, g->n_stacks);
        for (uint64_t i = 0; i < g->o.samples && !r; i += RUN, turn++) {
                struct thread *t = &g->threads[turn % g->o.threads];

                for (uint64_t k = i; k < i + RUN && k < g->o.samples; k++)
                        one_sample(g, t);
                latest = t->time_ns > latest ? t->time_ns : latest;
                r = ls_trace_flush(g->w, latest, 0);
        }
        return r;
}

static void totals(struct gen *g, uint64_t size)
{
        printf("{\"samples\":%llu,\"ticks\":%llu,\"lost_ticks\":%llu,\"functions\":%u,\"stacks\":%"
               "u,\"file_size\":%llu,",
               (unsigned long long)g->samples, (unsigned long long)g->ticks,
               (unsigned long long)g->lost, g->o.functions, g->n_stacks, (unsigned long long)size);
        printf("\"vmstate\":[");
        for (int i = 0; i < LS_NVMSTATES; i++)
                printf("%s%llu", i ? "," : "", (unsigned long long)g->by_vmstate[i]);
        printf("],\"zone\":[");
        for (int i = 0; i <= ZONES; i++)
                printf("%s%llu", i ? "," : "", (unsigned long long)g->by_zone[i]);
        printf("],\"thread\":[");
        for (uint32_t i = 0; i < g->o.threads; i++)
                printf("%s%llu", i ? "," : "", (unsigned long long)g->by_thread[i]);
        printf("],\"top\":{");
        for (int k = 0; k < TOP; k++) {
                uint32_t best = 0;

                for (uint32_t f = 1; f <= g->o.functions; f++)
                        if (g->self[f] > g->self[best])
                                best = f;
                if (!best)
                        break;
                printf("%s\"module%u.function%u\":%llu", k ? "," : "", (best - 1) / 40, best - 1,
                       (unsigned long long)g->self[best]);
                g->self[best] = 0;
        }
        printf("}}\n");
}

static int generate(struct gen *g)
{
        int fd = open(g->o.file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), r, r2;
        uint64_t size;

        if (fd < 0)
                return -errno;
        r = ls_trace_writer_open(fd, INTERVAL_NS, &g->w);
        if (!r) {
                r = make_definitions(g);
                if (!r)
                        r = make_samples(g);
                ls_trace_info_u64(g->w, "ticks", g->ticks + g->lost);
                ls_trace_info_u64(g->w, "samples", g->samples);
                ls_trace_info_u64(g->w, "sample_ticks", g->ticks);
                ls_trace_info_u64(g->w, "lost.ring-full", g->lost);
                ls_trace_info_u64(g->w, "cpu_ns", (g->ticks + g->lost) * INTERVAL_NS);
                ls_trace_info_u64(g->w, "complete", 1);
                r2 = ls_trace_writer_close(g->w);
                r = r ? r : r2;
        }
        size = (uint64_t)lseek(fd, 0, SEEK_END);
        if (close(fd) && !r)
                r = -errno;
        if (!r)
                totals(g, size);
        return r;
}

static int parse(int argc, char **argv, struct options *o)
{
        static const struct option longs[] = { { "samples", required_argument, NULL, 's' },
                                               { "functions", required_argument, NULL, 'f' },
                                               { "stacks", required_argument, NULL, 'k' },
                                               { "threads", required_argument, NULL, 't' },
                                               { "depth", required_argument, NULL, 'd' },
                                               { "losses", required_argument, NULL, 'l' },
                                               { "seed", required_argument, NULL, 'r' },
                                               { NULL, 0, NULL, 0 } };
        int c;

        while ((c = getopt_long(argc, argv, "o:", longs, NULL)) != -1) {
                uint64_t v = c == 'o' || c == '?' ? 0 : strtoull(optarg, NULL, 10);

                switch (c) {
                case 'o': o->file = optarg; break;
                case 's': o->samples = v; break;
                case 'f': o->functions = (uint32_t)v; break;
                case 'k': o->stacks = (uint32_t)v; break;
                case 't': o->threads = (uint32_t)v; break;
                case 'd': o->depth = (uint32_t)v; break;
                case 'l': o->losses = (uint32_t)v; break;
                case 'r': o->seed = v; break;
                default: return -1;
                }
        }
        return o->file && optind == argc && o->functions && o->stacks && o->threads &&
                               o->depth > 1 && o->depth < 100000 && o->losses < 100
                       ? 0
                       : -1;
}

int main(int argc, char **argv)
{
        struct gen g = { .o = { NULL, 10000000, 1, 20000, 300000, 8, 20, 5 } };
        int r;

        if (parse(argc, argv, &g.o)) {
                fprintf(stderr, "usage: gen_trace -o FILE [--samples N] [--functions N] [--stacks "
                                "N] [--threads N] "
                                "[--depth N] [--losses PERCENT] [--seed N]\n");
                return 129;
        }
        g.random = g.o.seed * 0x9e3779b97f4a7c15ull | 1;
        g.leaf_function = calloc(g.o.stacks + 2, sizeof(*g.leaf_function));
        g.self = calloc(g.o.functions + 1, sizeof(*g.self));
        g.threads = calloc(g.o.threads, sizeof(*g.threads));
        g.by_thread = calloc(g.o.threads, sizeof(*g.by_thread));
        r = g.leaf_function && g.self && g.threads && g.by_thread ? generate(&g) : -ENOMEM;
        if (r)
                fprintf(stderr, "gen_trace: %s: %s\n", g.o.file, strerror(-r));
        free(g.leaf_function);
        free(g.self);
        free(g.threads);
        free(g.by_thread);
        return r ? 1 : 0;
}
