/* Several recordings become one trace: see merge.h. First it is decided what ticks and times mean;
 * then the inputs are written one after the other, each with its dictionaries, and its samples in
 * chunks as they were. */
#include "formats/merge/merge.h"

#include "formats/merge/fold.h"
#include "formats/merge/info.h"
#include "formats/merge/tables.h"
#include "formats/trace/reader.h"
#include "formats/trace/writer.h"
#include "formats/wire/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOOT_TOLERANCE_NS                                                                          \
        2000000000ull /* two boots of a machine are further apart; setting the clock moves it less */
#define GAP_NS 1000000000ull            /* between recordings of different clocks */

static int widen(void *ctx, const struct ls_sample_block *b)
{
        struct ls_merge_input *in = ctx;

        for (uint32_t i = 0; i < b->n; i++) {
                in->start_ns = b->time_ns[i] < in->start_ns ? b->time_ns[i] : in->start_ns;
                in->end_ns = b->time_ns[i] > in->end_ns ? b->time_ns[i] : in->end_ns;
        }
        return 0;
}

static void widen_by(struct ls_merge_input *in, uint64_t time)
{
        if (time && time < in->start_ns)
                in->start_ns = time;
        if (time > in->end_ns)
                in->end_ns = time;
}

/* From the first to the last instant that the recording names. */
static int find_span(struct ls_merge_input *in)
{
        const struct ls_profile *p = in->profile;
        uint64_t start = ls_profile_u64(p, LS_INFO_START_MONOTONIC, 0),
                 elapsed = ls_profile_u64(p, LS_INFO_ELAPSED, 0);
        int r;

        in->start_ns = UINT64_MAX;
        in->end_ns = 0;
        /* One that has its end says when it was; to look for more in others costs as much as to
         * copy them. */
        r = p->complete && start && elapsed ? 0 :
            ls_profile_samples(in->profile, LS_COL_TIME, widen, in);
        widen_by(in, start);
        if (start && elapsed < UINT64_MAX - start)
                widen_by(in, start + elapsed);
        for (uint32_t i = 0; i < p->n_clocks; i++)
                widen_by(in, p->clocks[i].monotonic_ns);
        for (uint32_t i = 0; i < p->n_regions; i++)
                widen_by(in, p->regions[i].time_ns);
        if (in->start_ns > in->end_ns)
                in->start_ns = in->end_ns;
        return r;
}

static int same_str(const struct ls_profile *a, const struct ls_profile *b, enum ls_info_key key)
{
        struct ls_str x = ls_profile_str(a, key), y = ls_profile_str(b, key);

        return x.len == y.len && !memcmp(x.s, y.s, x.len);
}

/* The wall clock less the boottime clock: when the machine booted, until the clock is set. */
static int same_wall(const struct ls_profile *a, const struct ls_profile *b)
{
        uint64_t x = a->clocks[0].realtime_ns - a->clocks[0].boottime_ns,
                 y = b->clocks[0].realtime_ns - b->clocks[0].boottime_ns;

        return (x > y ? x - y : y - x) < BOOT_TOLERANCE_NS;
}

/* Whether two recordings have one CLOCK_MONOTONIC: one machine that booted once. Where one says not
 * which boot it is of, or is merged of several, it is told by when that was. */
static int same_boot(const struct ls_profile *a, const struct ls_profile *b)
{
        if (ls_profile_str(a, LS_INFO_BOOT).len == LS_BOOT_ID &&
            ls_profile_str(b, LS_INFO_BOOT).len == LS_BOOT_ID)
                return same_str(a, b, LS_INFO_BOOT);
        if (!a->n_clocks || !b->n_clocks)       /* nothing is known but the host: a made or a cut
                                                 * trace */
                return !a->n_clocks && !b->n_clocks && same_str(a, b, LS_INFO_HOST);
        return same_wall(a, b) && same_str(a, b, LS_INFO_HOST) && same_str(a, b, LS_INFO_KERNEL);
}

int ls_merge_one_clock(const struct ls_merge_input *a, const struct ls_merge_input *b)
{
        const struct ls_profile *p = a->profile, *q = b->profile;

        return a->boot == b->boot && (!p->n_clocks || !q->n_clocks || same_wall(p, q));
}

/* Recordings of a clock keep their places to each other; those of the next clock come behind. */
static void place(struct ls_merge_input *in, unsigned n)
{
        uint64_t end = 0;

        for (unsigned i = 0; i < n; i++) {
                uint64_t first = UINT64_MAX, last = 0, shift;

                if (in[i].boot != i)
                        continue;
                for (unsigned k = i; k < n; k++) {
                        if (in[k].boot != i)
                                continue;
                        first = in[k].start_ns < first ? in[k].start_ns : first;
                        last = in[k].end_ns > last ? in[k].end_ns : last;
                }
                shift = i == 0 ? 0 : end + GAP_NS - first;
                for (unsigned k = i; k < n; k++)
                        if (in[k].boot == i)
                                in[k].shift_ns = shift;
                end = last + shift;
        }
}

static uint64_t offset_of(const struct ls_profile *p)
{
        return p->clocks[0].realtime_ns - p->clocks[0].monotonic_ns;
}

void ls_merge_by_wall(struct ls_merge_input *in, unsigned n)
{
        unsigned first = 0;

        while (first < n && !in[first].profile->n_clocks)
                first++;
        for (unsigned i = first + 1; i < n; i++)
                if (in[i].profile->n_clocks && ls_merge_one_clock(&in[first], &in[i]))
                        in[i].shift_ns += offset_of(in[i].profile) - offset_of(in[first].profile);
}

static int plan_intervals(struct ls_merge_input *in, unsigned n, uint64_t *ret_interval,
                          unsigned *ret_a, unsigned *ret_b)
{
        unsigned shortest = 0;

        for (unsigned i = 1; i < n; i++)
                if (in[i].profile->interval_ns < in[shortest].profile->interval_ns)
                        shortest = i;
        *ret_interval = in[shortest].profile->interval_ns;
        for (unsigned i = 0; i < n; i++) {
                uint64_t own = in[i].profile->interval_ns;

                if (own != *ret_interval && (!*ret_interval || own % *ret_interval)) {
                        *ret_a = shortest;
                        *ret_b = i;
                        return -EDOM;
                }
                in[i].scale = *ret_interval ? own / *ret_interval : 1;
        }
        return 0;
}

int ls_merge_plan(struct ls_merge_input *in, unsigned n, uint64_t *ret_interval_ns, unsigned *ret_a,
                  unsigned *ret_b)
{
        int r = plan_intervals(in, n, ret_interval_ns, ret_a, ret_b), regions = 0;

        for (unsigned i = 0; i < n; i++)
                regions |= in[i].profile->n_regions != 0;
        for (unsigned i = 0; !r && i < n; i++) {
                in[i].flags = regions && !in[i].profile->n_regions ? LS_SAMPLE_IN_REGION : 0;
                in[i].boot = 0;
                while (in[i].boot < i && !same_boot(in[in[i].boot].profile, in[i].profile))
                        in[i].boot++;
                in[i].boot = in[in[i].boot].boot < in[i].boot ? in[in[i].boot].boot : in[i].boot;
                r = find_span(&in[i]);
        }
        if (!r)
                place(in, n);
        return r;
}

/* A chunk's rows become a chunk again, so that it stays as well compressed and as fast to read. */
static int copy_block(void *ctx, const struct ls_sample_block *b)
{
        struct ls_merge_ids *ids = ctx;
        struct ls_trace_writer *w = ids->m->w;

        for (uint32_t i = 0; i < b->n; i++) {
                struct ls_sample_row row = ls_sample_row_of(b, i);

                if (ls_merge_lost(ids, row.stack, row.zone, row.label))
                        return -ENOMEM;
                row.flags = (row.flags & (uint8_t)~LS_SAMPLE_NO_LINE) | ids->in->flags;
                row.stack = ids->stacks[row.stack];
                row.time_ns += ids->in->shift_ns;
                row.weight *= ls_event_is_time(row.event) ? ids->in->scale : 1;
                row.thread = ids->threads[row.thread];
                row.vm = ids->vms[row.vm];
                row.coroutine = ls_merge_id(ids->coroutines, ids->p->n_coroutines, row.coroutine);
                row.zone = ids->zones[row.zone];
                row.label = ids->labels[row.label];
                if (!ids->m->fold)
                        ls_trace_sample(w, &row);
                else if (ls_fold_sample(ids->m->fold, w, &row))
                        return -ENOMEM;
        }
        return ids->m->fold ? 0 : ls_trace_flush(w, 0, 1);
}

static int add_input(struct ls_merge *m, const struct ls_merge_input *in)
{
        struct ls_merge_ids ids;
        int r = ls_merge_ids_init(&ids, m, in);

        if (!r)
                r = ls_merge_tables(&ids);
        if (!r)
                r = ls_profile_samples(in->profile, LS_COL_TIME | LS_COL_PLACE, copy_block, &ids);
        ls_merge_ids_done(&ids);
        if (!r && m->fold)
                ls_fold_flush(m->fold, m->w);
        return r;
}

static void merge_done(struct ls_merge *m)
{
        ls_dict_done(&m->mappings);
        for (unsigned k = 0; k < LS_KINDS; k++)
                ls_dict_done(&m->known[k]);
        ls_merge_traces_done(m);
        ls_fold_free(m->fold);
        free(m->mapping_ids);
        free(m->has_text);
}

static int merge_init(struct ls_merge *m, const struct ls_merge_pieces *pieces)
{
        ls_dict_init(&m->mappings, LS_REC_MAPPING);
        if (!pieces)
                return 0;
        m->pieces = 1;
        for (unsigned k = 0; k < LS_KINDS; k++)
                ls_dict_init(&m->known[k], k);
        if (pieces->brief)
                ls_trace_writer_brief(m->w);
        if (!pieces->bucket_ns)
                return 0;
        m->fold = ls_fold_new(pieces->bucket_ns);
        return m->fold ? 0 : -ENOMEM;
}

int ls_merge_write(int fd, const struct ls_merge_input *inputs, unsigned n, uint64_t interval_ns,
                   const struct ls_merge_pieces *pieces)
{
        struct ls_merge m = { .interval_ns = interval_ns };
        int r = ls_trace_writer_open(fd, interval_ns, &m.w), end;

        if (r)
                return r;
        r = merge_init(&m, pieces);
        for (unsigned i = 0; !r && i < n; i++)
                r = add_input(&m, &inputs[i]);
        if (!r)
                ls_merge_info(&m, inputs, n);
        merge_done(&m);
        end = ls_trace_writer_close(m.w);
        return r ? r : end;
}
