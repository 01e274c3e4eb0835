/* The pieces of a flight recording become one trace: they are read here, without rights, since what
 * is in them is the target's word. See join.h. */
#include "record/writer/join.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "formats/profile.h"
#include "formats/trace/reader.h"

/* Ids of a piece are those of the writer. */
static int copy_samples(void *ctx, const struct ls_sample_block *b)
{
        struct ls_trace_writer *w = ctx;

        for (uint32_t i = 0; i < b->n; i++) {
                struct ls_sample_row row = ls_sample_row_of(b, i);

                ls_trace_sample(w, &row);
        }
        return ls_trace_flush(w, 0, 1);
}

static void add_totals(struct ls_process_totals *sum, const struct ls_process_totals *t)
{
        if (!t->from_ns)
                return;
        if (!sum->from_ns || t->from_ns < sum->from_ns)
                sum->from_ns = t->from_ns;
        if (t->to_ns > sum->to_ns)
                sum->to_ns = t->to_ns;
        sum->ticks += t->ticks;
        sum->samples += t->samples;
        sum->lost_ticks += t->lost_ticks;
        sum->cpu_ns += t->cpu_ns;
        sum->own_ns += t->own_ns;
}

static int copy_all(struct ls_serve *s, struct ls_profile *p)
{
        for (uint32_t i = 1; i < p->n_processes && i <= s->n_processes; i++)
                add_totals(&s->pieces[i], &p->processes[i].totals);
        for (uint32_t i = 0; i < p->n_clocks; i++)
                ls_trace_clocks(s->trace, p->clocks[i].monotonic_ns, p->clocks[i].realtime_ns,
                                p->clocks[i].boottime_ns);
        for (uint32_t i = 1; i < p->n_counters; i++)
                for (uint32_t k = 0; k < p->counters[i].n; k++)
                        ls_trace_count(s->trace, i, p->counters[i].counts[k].time_ns,
                                       ls_count_bits(p->counters[i].counts[k].value));
        return ls_profile_samples(p, LS_COL_TIME | LS_COL_PLACE, copy_samples, s->trace);
}

int ls_serve_piece(struct ls_serve *s, int fd)
{
        struct ls_profile *p;
        const char *why;
        int r;

        if (!s->pieces)
                s->pieces = calloc((size_t)s->n_processes + 1, sizeof(*s->pieces));
        if (!s->pieces)
                return -ENOMEM;
        if (dup2(fd, STDIN_FILENO) < 0)         /* it has no name, and nothing can be opened here */
                return -errno;
        r = ls_profile_open("-", &p, &why);
        if (r)
                return r < 0 ? r : -EIO;
        r = copy_all(s, p);
        ls_profile_close(p);
        return r;
}

void ls_serve_pieces_end(struct ls_serve *s)
{
        for (uint32_t i = 1; s->pieces && i <= s->n_processes; i++)
                if (s->pieces[i].from_ns)
                        ls_trace_process_totals(s->trace, i, &s->pieces[i]);
        free(s->pieces);
        s->pieces = NULL;
}
