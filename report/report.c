/* The command luasample report: reads a trace, filters it, and shows it through one view. */
#include "report/commands.h"
#include "report/json.h"
#include "report/options.h"
#include "report/trace.h"
#include "report/tui.h"
#include "report/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct ls_view *const views[] = { &ls_view_flat, &ls_view_tree, &ls_view_annotate };

static const struct ls_view *find_view(const struct ls_report_options *o)
{
        for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
                if (views[i]->chosen(o))
                        return views[i];
        return NULL;                    /* --format */
}

/* Nothing left to show: an empty result of the right kind, and status 1 when it was the user's filters. */
static int show_nothing(const struct ls_report *r)
{
        if (r->o->exporter) {
                int error = ls_report_export(r);

                if (error)
                        return error;
        } else if (!r->o->json) {
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
        yajl_gen g = ls_json_begin(r->out);
        int error = 0;

        if (!g)
                return -ENOMEM;
        yajl_gen_map_open(g);
        ls_json_str(g, "view", view->name);
        ls_json_str(g, "by", r->o->by_text ? r->o->by_text : r->o->by[0]->name);
        ls_json_key(g, "header");
        yajl_gen_map_open(g);
        ls_header_json(r, g);
        yajl_gen_map_close(g);
        error = view->json(r, g);
        yajl_gen_map_close(g);
        ls_json_end(g);
        return error;
}

static int show(const struct ls_report *r, const struct ls_view *view)
{
        int empty = r->aggregate->ticks == 0, error = 0;

        if (r->o->exporter)
                return empty ? show_nothing(r) : ls_report_export(r);
        if (r->o->json) {
                error = show_json(r, view);
                return error || !empty ? error : show_nothing(r);
        }
        ls_header_text(r);
        return empty ? show_nothing(r) : view->text(r);
}

/* Everything between the options and the exit status. */
static int run_report(const struct ls_report_options *o, struct ls_profile *p, struct ls_report *r)
{
        const struct ls_view *view = find_view(o);
        struct ls_labels *labels = NULL;
        struct ls_filter filter = { .stacks = NULL };
        struct ls_aggregate *aggregate = NULL;
        struct ls_output out = { .file = NULL };
        int error = ls_labels_new(p, o->full_path, &labels), status = LS_EXIT_FAIL, end;

        if (!error)
                error = ls_filter_init(&filter, p, labels, o);
        if (!error)
                error = ls_aggregate_new(p, &filter, view ? view->dims(o) : ls_report_export_dims(o), &aggregate);
        if (error) {
                ls_error("report: %s: %s", o->input, strerror(-error));
                goto out;
        }
        error = ls_output_open(&out, o->output, o->color, !o->no_pager && !o->json && !o->exporter);
        if (error) {
                ls_error("report: cannot write %s: %s", o->output ? o->output : "stdout", strerror(-error));
                goto out;
        }
        *r = (struct ls_report){ .o = o, .profile = p, .labels = labels, .filter = &filter, .aggregate = aggregate,
                                 .out = out.file, .color = out.color, .width = out.width };
        error = show(r, view);
        if (error && error != -ENOENT)
                ls_error("report: %s: %s", o->input, strerror(-error));
        end = ls_output_close(&out, error != 0);
        if (end)
                ls_error("report: cannot write %s: %s", o->output, strerror(-end));
        status = error || end || (!aggregate->ticks && filter.active) ? LS_EXIT_FAIL : 0;
out:
        ls_aggregate_free(aggregate);
        ls_filter_done(&filter);
        ls_labels_free(labels);
        return status;
}

static int report_run(int argc, const char **argv)
{
        struct ls_report_options o;
        struct ls_profile *p;
        struct ls_report r;
        int status = ls_report_options_read(&ls_cmd_report, argc, argv, &o);

        if (status)
                return status - 1;
        if (o.tui)
                return ls_tui_browse(&ls_cmd_report, &o);
        status = ls_open_trace("report", o.input, &p);
        if (status)
                return status;
        status = run_report(&o, p, &r);
        ls_profile_close(p);
        return status;
}

const struct ls_command ls_cmd_report = {
        .name = "report",
        .summary = "show where the time went",
        .usage = "[-i FILE] [OPTION...]",
        .options = ls_report_option_table,
        .run = report_run,
};
