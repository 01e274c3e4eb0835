/* The command luasample report: reads a trace, filters it, and shows it through one view, or gives
 * it to an exporter, as luasample export does. */
#include "report/report.h"

#include "formats/export/export.h"
#include "formats/trace/reader.h"
#include "report/commands.h"
#include "report/export.h"
#include "report/model/keys_label.h"
#include "report/options/options.h"
#include "report/options/trace.h"
#include "formats/json.h"
#include "report/tui/tui.h"
#include "report/view/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct ls_view *const views[] = {
        &ls_view_gc,   &ls_view_stacks,   &ls_view_beside, &ls_view_flat,
        &ls_view_tree, &ls_view_annotate, &ls_view_page,
};

static const struct ls_view *find_view(const struct ls_report_options *o)
{
        for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
                if (views[i]->chosen(o))
                        return views[i];
        return NULL;                    /* --format */
}

/* Nothing left to show: an empty result of the right kind, and status 1 when it was the user's
 * filters. */
static int show_nothing(const struct ls_report *r)
{
        if (r->o->exporter) {
                int error = ls_report_export(r);

                if (error)
                        return error;
        } else if (!r->o->json && !r->o->html) {
                ls_say_no_samples(r);
                return 0;
        }
        if (r->aggregate->all_ticks)
                ls_warning("no samples left: none of %llu ticks passes the filters",
                           (unsigned long long)r->aggregate->all_ticks);
        else
                ls_warning("no samples collected");
        return 0;
}

static int show_json(const struct ls_report *r, const struct ls_view *view)
{
        struct ls_js j = { .out = r->out, .indent = 1 }, *g = &j;
        int error = 0;

        ls_js_open(g, '{');
        ls_js_key_string(g, "view", view->name);
        ls_js_key_string(g, "by", r->o->by_text ? r->o->by_text : r->o->by[0]->name);
        ls_js_key_open(g, "header", '{');
        ls_header_json(r, g);
        ls_js_close(g, '}');
        error = view->json(r, g);
        ls_js_close(g, '}');
        return error ? error : j.failed;
}

static int is_empty(const struct ls_report *r)
{
        for (unsigned i = 0; i < r->filter->choice.n; i++)
                if (r->events[i]->ticks)
                        return 0;
        return 1;
}

static int show(const struct ls_report *r, const struct ls_view *view)
{
        int empty = is_empty(r), error = 0;

        if (r->o->exporter)
                return empty ? show_nothing(r) : ls_report_export(r);
        if (r->o->json) {
                error = show_json(r, view);
                return error || !empty ? error : show_nothing(r);
        }
        if (view->is_document) {
                error = view->text(r);
                return error || !empty ? error : show_nothing(r);
        }
        ls_header_text(r);
        return empty ? show_nothing(r) : view->text(r);
}

/* Writes to where the user wants it. Returns the exit status. */
static int show_in(struct ls_report *r, const struct ls_view *view)
{
        const struct ls_report_options *o = r->o;
        const char *path = o->per_thread ? NULL : o->output;    /* those are several files, and not
                                                                 * this one */
        int use_pager = !o->no_pager && !o->json && !o->exporter && !o->html, end;
        struct ls_output out;
        int error = ls_output_open(&out, path, o->color, use_pager);

        if (!error && out.file == stdout && !o->per_thread && o->exporter &&
            (o->exporter->flags & LS_EXPORT_BINARY) && isatty(STDOUT_FILENO)) {
                ls_error("%s: %s is not for a terminal: give -o FILE (usual name: *%s)", o->command,
                         o->exporter->name, o->exporter->suffix);
                return LS_EXIT_FAIL;
        }
        if (error) {
                ls_error("%s: cannot write %s: %s", o->command, path ? path : "stdout",
                         strerror(-error));
                return LS_EXIT_FAIL;
        }
        r->out = out.file;
        r->color = out.color;
        r->width = out.width;
        error = show(r, view);
        if (error && error != -ENOENT)
                ls_error("%s: %s: %s", o->command, o->input, strerror(-error));
        end = ls_output_close(&out, error != 0);
        if (end)
                ls_error("%s: cannot write %s: %s", o->command, path, strerror(-end));
        return error || end || (is_empty(r) && r->filter->active) ? LS_EXIT_FAIL : 0;
}

/* To one who says himself what went wrong. */
static int give(const struct ls_report *r)
{
        int error = is_empty(r) ? 0 : ls_report_export(r);

        if (error == -ENOMEM)
                ls_error("%s: %s: %s", r->o->command, r->o->input, strerror(-error));
        return error ? LS_EXIT_FAIL : 0;
}

/* Each event that is shown. */
static int aggregate_events(struct ls_profile *p, const struct ls_filter *f, unsigned dims,
                            struct ls_aggregate **ret)
{
        struct ls_filter one = *f;
        int error = 0;

        for (unsigned i = 0; !error && i < f->choice.n; i++) {
                ls_event_rows(f->choice.id[i], one.events);
                error = ls_aggregate_new(p, &one, dims, &ret[i]);
        }
        return error;
}

/* All would be in the row (none): a mistake, or the key of another trace. */
static void warn_of_labels(const struct ls_report_options *o, const struct ls_profile *p)
{
        for (size_t i = 0; i < sizeof(o->by) / sizeof(o->by[0]); i++) {
                const char *key = o->by[i] && o->by[i]->dims == LS_DIM_LABEL ? o->by[i]->argument
                                                                             : NULL;
                uint32_t n = 0;

                while (key && n < p->n_sample_labels && !ls_label_value(p, n, key, strlen(key)))
                        n++;
                if (key && n == p->n_sample_labels)
                        ls_warning("--by label:%s: no such label in this trace", key);
        }
}

/* Counts and amounts have no time, and lie on no line of it. Returns 0 or -EINVAL after a line. */
static int check_counted(const struct ls_report_options *o, const struct ls_event_choice *c)
{
        if (o->html || (o->exporter && (o->exporter->flags & LS_EXPORT_TIMELINE))) {
                ls_error("%s: --event %s: %s no time, which %s shows; see csv, collapsed, pprof, "
                         "callgrind",
                         o->command, ls_event_name(c->id[0]),
                         ls_events_count(c) ? "counts have" : "memory is",
                         o->html ? "the page" : o->exporter->name);
                return -EINVAL;
        }
        return 0;
}

int ls_report_run_on(const struct ls_report_options *o, struct ls_profile *p)
{
        const struct ls_view *view = find_view(o);
        struct ls_labels *labels = NULL;
        struct ls_filter filter = { .stacks = NULL };
        struct ls_aggregate *events[LS_EVENTS_SHOWN] = { NULL };
        struct ls_report r = { .o = o, .profile = p };
        struct ls_report_options counted;
        int error = ls_labels_new(p, o->full_path, &labels), status = LS_EXIT_FAIL;

        if (!error)
                labels->inlined = o->inlined;
        if (!error)
                error = ls_filter_init(&filter, p, labels, &o->want);
        if (!error && filter.choice.n == 1 && ls_events_count(&filter.choice)) {
                counted = *o;
                counted.raw = 1;        /* a number, not a share of a time */
                r.o = &counted;
        }
        if (!error && !ls_events_time(&filter.choice))
                error = check_counted(o, &filter.choice);
        if (!error)
                warn_of_labels(o, p);
        if (!error)
                error = aggregate_events(p, &filter,
                                         view ? (view->dims ? view->dims(o) : 0)
                                              : ls_report_export_dims(o),
                                         events);
        r.labels = labels;
        r.filter = &filter;
        r.aggregate = events[0];
        for (unsigned i = 0; i < LS_EVENTS_SHOWN; i++)
                r.events[i] = events[i];
        if (!error)
                status = o->taker ? give(&r) : show_in(&r, view);
        else if (error != -EINVAL)      /* else it was said */
                ls_error("%s: %s: %s", o->command, o->input, strerror(-error));
        for (unsigned i = 0; i < LS_EVENTS_SHOWN; i++)
                ls_aggregate_free(events[i]);
        ls_filter_done(&filter);
        ls_labels_free(labels);
        return status;
}

int ls_report_run(const struct ls_report_options *o)
{
        struct ls_profile *p;
        int status = ls_open_trace(o->command, o->input, &p);

        if (status)
                return status;
        status = ls_report_run_on(o, p);
        ls_profile_close(p);
        return status;
}

static int report_run(int argc, const char **argv)
{
        struct ls_report_options o;
        int status = ls_report_options_read(&ls_cmd_report, argc, argv, &o);

        if (status != LS_GO_ON)
                return status;
        return o.tui ? ls_tui_browse(&ls_cmd_report, &o) : ls_report_run(&o);
}

const struct ls_command ls_cmd_report = {
        .name = "report",
        .summary = "show where the time went",
        .usage = "[-i FILE] [OPTION...]",
        .options = ls_report_option_table,
        .run = report_run,
        .shows = 1,
};
