/* The recordings of a diff: opened, filtered and added up, each for itself. Called by diff.c. */
#include "formats/trace/reader.h"
#include "report/diff/diff.h"
#include "report/options/range.h"
#include "report/options/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ls_diff_load(struct ls_diff_run *run, const struct ls_report_options *o)
{
        struct ls_filter_options want = o->want;
        int r = ls_labels_new(run->profile, o->full_path, &run->labels);

        ls_range_bounds(run->path, &want);
        want.moment = !*run->at ? LS_MOMENT_NONE : run->side ? LS_MOMENT_TO : LS_MOMENT_FROM;
        if (!r)
                r = ls_filter_init(&run->filter, run->profile, run->labels, &want);
        if (!r)
                r = ls_aggregate_new(run->profile, &run->filter, o->by[0]->dims, &run->aggregate);
        if (!r)
                r = ls_grouping_new(o->by[0], run->profile, run->labels, &run->grouping);
        if (!r && run->aggregate->ticks)
                run->per_sample = (double)run->aggregate->ticks / run->aggregate->effective;
        return r;
}

/* Shares of nothing cannot be compared, and where there should be samples their absence is no
 * result. */
static int say_empty(const struct ls_diff_run *run)
{

        if (run->aggregate->ticks || *run->at)
                return 0;
        if (run->aggregate->all_ticks)
                ls_error("diff: %s: none of %llu ticks passes the filters: there is nothing to "
                         "compare",
                         run->path, (unsigned long long)run->aggregate->all_ticks);
        else
                ls_error("diff: %s: the recording has no samples: there is nothing to compare",
                         run->path);
        return LS_EXIT_FAIL;
}

static int open_run(struct ls_diff_run *run, const struct ls_report_options *o)
{
        int r = ls_open_trace("diff", run->path, &run->profile);

        if (r)
                return r;
        r = ls_diff_load(run, o);
        if (r) {
                if (r != -EINVAL)
                        ls_error("diff: %s: %s", run->path, strerror(-r));
                return LS_EXIT_FAIL;
        }
        return say_empty(run);
}

/* Ticks of different lengths are not added up to one number. */
static int check_intervals(const struct ls_diff *d)
{
        for (unsigned i = 1; d->o->norm == LS_NORM_NONE && i < d->n_runs; i++) {
                if (!ls_events_time(&d->runs[i].filter.choice) ||
                    d->runs[i].profile->interval_ns == d->runs[0].profile->interval_ns)
                        continue;
                ls_error("diff: the ticks of %s and %s stand for %llu and %llu ns: give "
                         "--normalize time or share",
                         d->runs[0].path, d->runs[i].path,
                         (unsigned long long)d->runs[0].profile->interval_ns,
                         (unsigned long long)d->runs[i].profile->interval_ns);
                return LS_EXIT_FAIL;
        }
        return 0;
}

/* A trace of wall time alone shows that, where others show the time on a CPU. */
static int check_events(const struct ls_diff *d)
{
        uint8_t first = d->runs[0].filter.choice.id[0];

        for (unsigned i = 1; i < d->n_runs; i++) {
                if (d->runs[i].filter.choice.id[0] == first)
                        continue;
                ls_error("diff: %s has %s time, %s has %s time: record the same, or choose with "
                         "--event",
                         d->runs[0].path, ls_event_name(first), d->runs[i].path,
                         ls_event_name(d->runs[i].filter.choice.id[0]));
                return LS_EXIT_FAIL;
        }
        return 0;
}

/* Where nothing has gone, or nothing is new, samples weigh what they do on the other side. */
static int weigh_moments(struct ls_diff_run runs[2])
{
        for (int side = 0; side < 2; side++)
                if (!runs[side].aggregate->ticks)
                        runs[side].per_sample = runs[!side].per_sample;
        if (runs[0].per_sample > 0)
                return 0;
        ls_error("diff: %s: what is live is the same at %s and at %s", runs[0].path, runs[0].at,
                 runs[1].at);
        return LS_EXIT_FAIL;
}

/* "from,to": the part that this run is. */
static void name_moment(struct ls_diff_run *run, const char *time)
{
        size_t from = strcspn(time, ",");
        const char *end = run->side == LS_BEFORE ? "the start" : "the end";

        if (run->side == LS_AFTER)
                time += from + 1;
        else if (from)
                snprintf(run->at, sizeof(run->at), "%.*s", (int)(from < 60 ? from : 60), time);
        if (!*run->at)
                snprintf(run->at, sizeof(run->at), "%s",
                         run->side == LS_AFTER && *time ? time : end);
}

int ls_diff_open(struct ls_diff *d)
{
        int r = 0;

        d->runs = calloc((size_t)d->o->n_files[0] + d->o->n_files[1] + 1, sizeof(*d->runs));
        if (!d->runs) {
                ls_error("diff: %s", strerror(ENOMEM));
                return LS_EXIT_FAIL;
        }
        for (int side = 0; side < 2 && !r; side++)
                r = ls_open_traces_first((const char *const *)d->o->files[side],
                                         d->o->n_files[side]);
        if (r) {
                ls_error("diff: %s", strerror(-r));
                return LS_EXIT_FAIL;
        }
        for (int side = 0; side < 2; side++) {
                for (unsigned i = 0; !r && i < d->o->n_files[side]; i++) {
                        struct ls_diff_run *run = &d->runs[d->n_runs++];

                        run->path = d->o->files[side][i];
                        run->side = side;
                        d->n_side[side]++;
                        if (d->o->moments)
                                name_moment(run, d->o->o.want.time);
                        r = open_run(run, &d->o->o);
                }
        }
        if (!r && d->o->moments)
                r = weigh_moments(d->runs);
        if (!r)
                r = check_events(d);
        return r ? r : check_intervals(d);
}

void ls_diff_run_done(struct ls_diff_run *run)
{
        ls_diff_lines_done(run);
        free(run->source_of);
        free(run->function_of);
        free(run->item_of);
        ls_grouping_free(run->grouping);
        ls_aggregate_free(run->aggregate);
        ls_filter_done(&run->filter);
        ls_labels_free(run->labels);
        ls_profile_close(run->profile);
}

void ls_diff_done(struct ls_diff *d)
{
        for (unsigned i = 0; i < d->n_runs; i++)
                ls_diff_run_done(&d->runs[i]);
        for (uint32_t i = 0; d->items && i < d->n_items; i++) {
                free(d->items[i].name);
                free(d->items[i].place);
                free(d->items[i].unnumbered);
        }
        free(d->runs);
        free(d->changed);
        free(d->items);
        free(d->rows);
        free(d->ticks);
        free(d->ticks_of);
}
