/* Samples that differ in their time only become one: see fold.h. Rows come in the order of their
 * recording: those of a time are kept, sorted, and each run of equal ones is written as one, with
 * the sum of their weights. A row of an earlier time begins a time anew: nothing is lost, less is
 * saved. */
#include "formats/merge/fold.h"

#include <errno.h>
#include <stdlib.h>

#define ROWS_MOST 65536u                /* that wait */

struct ls_fold {
        uint64_t bucket_ns, bucket;
        struct ls_sample_row *rows;
        uint32_t n, room;
};

struct ls_fold *ls_fold_new(uint64_t bucket_ns)
{
        struct ls_fold *f = calloc(1, sizeof(*f));

        if (f)
                f->bucket_ns = bucket_ns;
        return f;
}

void ls_fold_free(struct ls_fold *f)
{
        if (f)
                free(f->rows);
        free(f);
}

#define ORDER(field) \
        if (x->field != y->field) \
                return x->field < y->field ? -1 : 1

/* By all but time and weight; what the file codes best stands first. */
static int compare(const void *a, const void *b)
{
        const struct ls_sample_row *x = a, *y = b;

        ORDER(event);
        ORDER(flags);
#define LS_DIM(NAME, name, bits, KIND, key) ORDER(name);
#include "formats/dims.def"
#undef LS_DIM
        ORDER(stack);
        return 0;
}

void ls_fold_flush(struct ls_fold *f, struct ls_trace_writer *w)
{
        uint64_t last = 0;

        for (uint32_t i = 0; i < f->n; i++)
                last = f->rows[i].time_ns > last ? f->rows[i].time_ns : last;
        if (f->n)
                qsort(f->rows, f->n, sizeof(*f->rows), compare);
        for (uint32_t i = 0; i < f->n;) {
                struct ls_sample_row all = f->rows[i++];

                while (i < f->n && !compare(&all, &f->rows[i]) &&
                       f->rows[i].weight <= UINT32_MAX - all.weight)
                        all.weight += f->rows[i++].weight;
                all.time_ns = last;
                ls_trace_sample(w, &all);
        }
        f->n = 0;
}

static int has_room(struct ls_fold *f)
{
        uint32_t room = f->room ? f->room * 2 : 1024;
        struct ls_sample_row *rows;

        if (f->n < f->room)
                return 1;
        rows = reallocarray(f->rows, room, sizeof(*rows));
        if (!rows)
                return 0;
        f->rows = rows;
        f->room = room;
        return 1;
}

int ls_fold_sample(struct ls_fold *f, struct ls_trace_writer *w, const struct ls_sample_row *row)
{
        uint64_t bucket = (row->time_ns - 1) / f->bucket_ns;    /* a tick stands for the time before
                                                                 * it */

        if (f->n && (bucket != f->bucket || f->n == ROWS_MOST))
                ls_fold_flush(f, w);
        if (!has_room(f))
                return -ENOMEM;
        f->bucket = bucket;
        f->rows[f->n] = *row;
        f->rows[f->n++].flags &= (uint8_t)~LS_SAMPLE_CONT;      /* each state is a sample of its
                                                                 * own */
        return 0;
}
