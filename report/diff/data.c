/* luasample diff for programs: JSON and CSV, from the same rows as the text. Called by diff.c. */
#include "formats/escape.h"
#include "report/diff/diff.h"
#include "report/view/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const norms[] = { "share", "time", "none" };
static const char *const tests[] = { "auto", "counts", "welch", "mann-whitney" };

static void put_runs(const struct ls_diff *d, yajl_gen g, int side)
{
        ls_json_key(g, side ? "after" : "before");
        yajl_gen_array_open(g);
        for (unsigned k = 0; k < d->n_runs; k++) {
                const struct ls_diff_run *run = &d->runs[k];

                if (run->side != side)
                        continue;
                yajl_gen_map_open(g);
                ls_json_str(g, "file", run->path);
                ls_json_text(g, "command", ls_profile_str(run->profile, LS_INFO_COMMAND));
                ls_json_u64(g, "interval_ns", run->profile->interval_ns);
                ls_json_str(g, "event", ls_event_name(run->filter.choice.id[0]));
                ls_json_u64(g, "ticks", run->aggregate->ticks);
                ls_json_u64(g, "samples", run->aggregate->samples);
                ls_json_double(g, "effective_samples", run->aggregate->effective);
                ls_json_double(g, "seconds", (double)run->aggregate->ticks * (double)run->profile->interval_ns / 1e9);
                yajl_gen_map_close(g);
        }
        yajl_gen_array_close(g);
}

static void put_values(const struct ls_diff *d, yajl_gen g, const struct ls_diff_row *row)
{
        (void)d;
        ls_json_double(g, "before", row->before);
        ls_json_double(g, "after", row->after);
        ls_json_double(g, "difference", row->after - row->before);
        ls_json_key(g, "ratio");
        if (row->before > 0)
                ls_json_double(g, NULL, row->after / row->before);
        else
                yajl_gen_null(g);
        ls_json_double(g, "growth", row->growth / 100);
        ls_json_double(g, "p", row->p);
        ls_json_double(g, "q", row->q);
        ls_json_bool(g, "significant", row->significant);
}

static void put_ticks(const struct ls_diff *d, yajl_gen g, uint32_t i, int side)
{
        ls_json_key(g, side ? "after_ticks" : "before_ticks");
        yajl_gen_array_open(g);
        for (unsigned k = 0; k < d->n_runs; k++)
                if (d->runs[k].side == side)
                        ls_json_u64(g, NULL, d->ticks[(size_t)d->ticks_of[i] * d->n_runs + k]);
        yajl_gen_array_close(g);
}

static void put_row(const struct ls_diff *d, yajl_gen g, uint32_t i)
{
        const struct ls_diff_row *row = &d->rows[i];
        const struct ls_diff_item *item = &d->items[row->item];

        yajl_gen_map_open(g);
        if (d->o->o.tree) {
                ls_json_u64(g, "id", i);
                ls_json_key(g, "parent");
                if (row->parent == UINT32_MAX)
                        yajl_gen_null(g);
                else
                        yajl_gen_integer(g, row->parent);
                ls_json_u64(g, "depth", row->depth);
        }
        ls_json_str(g, "name", item->name);
        ls_json_str(g, "place", item->place ? item->place : "");
        put_values(d, g, row);
        put_ticks(d, g, i, LS_BEFORE);
        put_ticks(d, g, i, LS_AFTER);
        yajl_gen_map_close(g);
}

/* In a tree rows refer to each other by their place: all are there. */
static int is_shown(const struct ls_diff *d, uint32_t i)
{
        return d->o->o.tree || ls_diff_shown(d, &d->rows[i]);
}

int ls_diff_json(const struct ls_diff *d, FILE *out)
{
        yajl_gen g = ls_json_begin(out);
        char *filters = ls_filter_text(&d->o->o.want);

        if (!g) {
                free(filters);
                return -ENOMEM;
        }
        yajl_gen_map_open(g);
        ls_json_str(g, "view", d->o->o.tree ? "diff-tree" : "diff");
        ls_json_str(g, "by", d->o->o.by[0]->name);
        ls_json_bool(g, "with_callees", d->o->total || d->o->o.tree);
        ls_json_str(g, "normalize", norms[d->o->norm]);
        ls_json_str(g, "test", tests[d->test]);
        ls_json_double(g, "alpha", d->o->alpha);
        ls_json_str(g, "filters", filters ? filters : "");
        ls_json_u64(g, "changed_sources", d->n_changed);
        ls_json_u64(g, "mapped_sources", d->n_mapped);
        put_runs(d, g, LS_BEFORE);
        put_runs(d, g, LS_AFTER);
        ls_json_key(g, "whole");
        yajl_gen_map_open(g);
        put_values(d, g, &d->whole);
        yajl_gen_map_close(g);
        ls_json_key(g, d->o->o.tree ? "nodes" : "rows");
        yajl_gen_array_open(g);
        for (uint32_t i = 0; i < d->n_rows; i++)
                if (is_shown(d, i))
                        put_row(d, g, i);
        yajl_gen_array_close(g);
        yajl_gen_map_close(g);
        ls_json_end(g);
        free(filters);
        return 0;
}

int ls_diff_csv(const struct ls_diff *d, FILE *out)
{
        fprintf(out, "%sname,place,before,after,difference,ratio,growth,p,q,significant\r\n",
                d->o->o.tree ? "id,parent,depth," : "");
        for (uint32_t i = 0; i < d->n_rows; i++) {
                const struct ls_diff_row *row = &d->rows[i];
                const struct ls_diff_item *item = &d->items[row->item];

                if (!is_shown(d, i))
                        continue;
                if (d->o->o.tree) {
                        fprintf(out, "%u,", i);
                        if (row->parent != UINT32_MAX)
                                fprintf(out, "%u", row->parent);
                        fprintf(out, ",%u,", row->depth);
                }
                ls_csv_text(out, item->name);
                fputc(',', out);
                ls_csv_text(out, item->place ? item->place : "");
                fprintf(out, ",%.6f,%.6f,%.6f,", row->before, row->after, row->after - row->before);
                if (row->before > 0)
                        fprintf(out, "%.6f", row->after / row->before);
                fprintf(out, ",%.6f,%.6f,%.6f,%d\r\n", row->growth / 100, row->p, row->q, row->significant);
        }
        return 0;
}
