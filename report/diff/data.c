/* luasample diff for programs: JSON and CSV, from the same rows as the text. Called by diff.c. */
#include "formats/escape.h"
#include "report/diff/diff.h"
#include "report/model/filter_text.h"
#include "formats/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const norms[] = { "share", "time", "none" };
static const char *const tests[] = { "auto", "counts", "welch", "mann-whitney" };

static void put_runs(const struct ls_diff *d, struct ls_js *g, int side)
{
        ls_js_key_open(g, side ? "after" : "before", '[');
        for (unsigned k = 0; k < d->n_runs; k++) {
                const struct ls_diff_run *run = &d->runs[k];

                if (run->side != side)
                        continue;
                ls_js_open(g, '{');
                ls_js_key_string(g, "file", run->path);
                if (*run->at)
                        ls_js_key_string(g, "at", run->at);
                ls_js_key_text(g, "command", ls_profile_str(run->profile, LS_INFO_COMMAND));
                ls_js_key_u64(g, "interval_ns", run->profile->interval_ns);
                ls_js_key_string(g, "event", ls_event_name(run->filter.choice.id[0]));
                ls_js_key_u64(g, "ticks", run->aggregate->ticks);
                ls_js_key_u64(g, "samples", run->aggregate->samples);
                ls_js_key_share(g, "effective_samples", run->aggregate->effective);
                ls_js_key_share(g, "seconds",
                                (double)run->aggregate->ticks * (double)run->profile->interval_ns /
                                        1e9);
                ls_js_close(g, '}');
        }
        ls_js_close(g, ']');
}

static void put_values(const struct ls_diff *d, struct ls_js *g, const struct ls_diff_row *row)
{
        (void)d;
        ls_js_key_share(g, "before", row->before);
        ls_js_key_share(g, "after", row->after);
        ls_js_key_share(g, "difference", row->after - row->before);
        ls_js_key(g, "ratio");
        if (row->before > 0)
                ls_js_share(g, row->after / row->before);
        else
                ls_js_null(g);
        ls_js_key_share(g, "growth", row->growth / 100);
        ls_js_key_share(g, "p", row->p);
        ls_js_key_share(g, "q", row->q);
        ls_js_key_bool(g, "significant", row->significant);
}

static void put_ticks(const struct ls_diff *d, struct ls_js *g, uint32_t i, int side)
{
        ls_js_key_open(g, side ? "after_ticks" : "before_ticks", '[');
        for (unsigned k = 0; k < d->n_runs; k++)
                if (d->runs[k].side == side)
                        ls_js_u64(g, d->ticks[(size_t)d->ticks_of[i] * d->n_runs + k]);
        ls_js_close(g, ']');
}

static void put_row(const struct ls_diff *d, struct ls_js *g, uint32_t i)
{
        const struct ls_diff_row *row = &d->rows[i];
        const struct ls_diff_item *item = &d->items[row->item];

        ls_js_open(g, '{');
        if (d->o->o.tree) {
                ls_js_key_u64(g, "id", i);
                ls_js_key(g, "parent");
                if (row->parent == UINT32_MAX)
                        ls_js_null(g);
                else
                        ls_js_u64(g, row->parent);
                ls_js_key_u64(g, "depth", row->depth);
        }
        ls_js_key_string(g, "name", item->name);
        ls_js_key_string(g, "place", item->place ? item->place : "");
        put_values(d, g, row);
        put_ticks(d, g, i, LS_BEFORE);
        put_ticks(d, g, i, LS_AFTER);
        ls_js_close(g, '}');
}

/* In a tree rows refer to each other by their place: all are there. */
static int is_shown(const struct ls_diff *d, uint32_t i)
{
        return d->o->o.tree || ls_diff_shown(d, &d->rows[i]);
}

int ls_diff_json(const struct ls_diff *d, FILE *out)
{
        struct ls_js j = { .out = out, .indent = 1 }, *g = &j;
        char *filters = ls_filter_text(&d->o->o.want);

        ls_js_open(g, '{');
        ls_js_key_string(g, "view", d->o->o.tree ? "diff-tree" : "diff");
        ls_js_key_string(g, "by", d->o->o.by[0]->name);
        ls_js_key_bool(g, "with_callees", d->o->total || d->o->o.tree);
        ls_js_key_string(g, "normalize", norms[d->o->norm]);
        ls_js_key_string(g, "test", tests[d->test]);
        ls_js_key_share(g, "alpha", d->o->alpha);
        ls_js_key_string(g, "filters", filters ? filters : "");
        ls_js_key_u64(g, "changed_sources", d->n_changed);
        ls_js_key_u64(g, "mapped_sources", d->n_mapped);
        put_runs(d, g, LS_BEFORE);
        put_runs(d, g, LS_AFTER);
        ls_js_key_open(g, "whole", '{');
        put_values(d, g, &d->whole);
        ls_js_close(g, '}');
        ls_js_key_open(g, d->o->o.tree ? "nodes" : "rows", '[');
        for (uint32_t i = 0; i < d->n_rows; i++)
                if (is_shown(d, i))
                        put_row(d, g, i);
        ls_js_close(g, ']');
        ls_js_close(g, '}');
        free(filters);
        return j.failed;
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
                fprintf(out, ",%.6f,%.6f,%.6f,%d\r\n", row->growth / 100, row->p, row->q,
                        row->significant);
        }
        return 0;
}
