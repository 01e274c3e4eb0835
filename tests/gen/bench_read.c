/* Reads a trace as a flat report does, and prints times and sizes: the bench of the format, by
 * hand. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "formats/profile.h"
#include "formats/trace/reader.h"
#include "formats/trace/dump.h"

struct flat { const struct ls_profile *p; uint64_t *by_stack, rows, ticks; };

static double now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int add_block(void *ctx, const struct ls_sample_block *b)
{
        struct flat *f = ctx;

        for (uint32_t i = 0; i < b->n; i++) {
                f->by_stack[b->stack[i]] += b->weight[i];
                f->ticks += b->weight[i];
        }
        f->rows += b->n;
        return 0;
}

static int print_field(const struct ls_dump_field *f)
{
        if (f->is_u64)
                return printf(" %s=%llu", f->key, (unsigned long long)f->u64);
        return printf(" %s=\"%.*s\"", f->key, (int)f->str.len, f->str.s);
}

static int print_record(void *ctx, uint64_t chunk, uint64_t offset, const char *kind,
                        const struct ls_dump_field *fields, unsigned n)
{
        (void)ctx;
        printf("%llu@%llu %s", (unsigned long long)chunk, (unsigned long long)offset, kind);
        for (unsigned i = 0; i < n; i++)
                print_field(&fields[i]);
        return putchar('\n') == EOF;
}

int main(int argc, char **argv)
{
        struct ls_profile *p;
        struct flat f = { 0 };
        struct rusage ru;
        const char *error;
        double t0 = now(), t1, t2;

        if (argc < 2 || ls_profile_open(argv[1], &p, &error)) {
                fprintf(stderr, "bench_read: %s: %s\n", argc < 2 ? "FILE" : argv[1],
                        argc < 2 ? "missing" : error);
                return 1;
        }
        if (argc > 2)
                return ls_profile_dump(p, print_record, NULL);
        t1 = now();
        f.p = p;
        f.by_stack = calloc(p->n_stacks, sizeof(*f.by_stack));
        if (!f.by_stack || ls_profile_samples(p, 0, add_block, &f))
                return 1;
        t2 = now();
        getrusage(RUSAGE_SELF, &ru);
        printf("rows %llu ticks %llu (header %llu) lost_ticks %llu chunks %u damages %u complete "
               "%d\n",
               (unsigned long long)f.rows, (unsigned long long)f.ticks,
               (unsigned long long)p->recorded_ticks, (unsigned long long)p->lost_ticks,
               p->n_chunks, p->n_damages, p->complete);
        printf("open %.3f s, samples %.3f s, file %llu bytes, %.3f bytes a row, peak memory %ld "
               "KiB\n",
               t1 - t0, t2 - t1, (unsigned long long)p->file_size,
               (double)p->file_size / (double)(f.rows ? f.rows : 1), ru.ru_maxrss);
        for (uint32_t i = 0; i < p->n_damages; i++)
                printf("chunk %llu at %llu, %llu bytes: %s (%llu ticks)\n",
                       (unsigned long long)p->damages[i].chunk,
                       (unsigned long long)p->damages[i].offset,
                       (unsigned long long)p->damages[i].bytes, p->damages[i].why,
                       (unsigned long long)p->damages[i].ticks);
        free(f.by_stack);
        ls_profile_close(p);
        return 0;
}
