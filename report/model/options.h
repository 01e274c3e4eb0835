/* What the user asked for: which samples, and how they are shown. Filled by options/, read by all
 * views. */
#ifndef LS_REPORT_MODEL_OPTIONS_H
#define LS_REPORT_MODEL_OPTIONS_H

#include <stdint.h>

#include "cli/output.h"
#include "report/model/events.h"
#include "report/model/keys.h"

struct ls_exporter;
struct ls_export_taker;

enum ls_sort { LS_SORT_SELF, LS_SORT_TOTAL, LS_SORT_NAME };

struct ls_time_bound {                  /* one end of --time */
        enum { LS_BOUND_OPEN, LS_BOUND_NS, LS_BOUND_PERCENT } kind;
        uint64_t ns;                    /* from the start */
        double percent;                 /* of the elapsed time */
};

struct ls_filter_options {              /* which samples; patterns are for fnmatch, NULL = all */
#define LS_FILTER(field, name, argument, help) const char *field;
#include "report/model/filters.def"
#undef LS_FILTER
        const char *functions[16], *excludes[16];
        unsigned n_functions, n_excludes;
        struct ls_time_bound from, to;
        enum { LS_MOMENT_NONE, LS_MOMENT_FROM, LS_MOMENT_TO } moment;   /* what was live at this
                                                * one of the two, and not at the other */
        unsigned vmstates;              /* bits by enum ls_vmstate; 0 = all */
        int no_regions;
        struct ls_event_choice events;  /* --event */
};

struct ls_report_options {
        const char *command;            /* whose options they are: for its messages */
        const char *input;
        const char *output;             /* NULL = stdout */
        /* view */
        const struct ls_key *by[2];     /* by[1] NULL = one level */
        const char *by_text;            /* as given; NULL = the default */
        int depth;                      /* frames of a stack, at least 1 */
        int gc;                         /* --by gc: what the collector did */
        int split, callees, tree, inverse, stacks;
        int annotate, whole_file;
        const char *annotate_what;      /* file or function; NULL = all */
        const char *source_dir[16];
        unsigned n_source_dirs;
        const struct ls_exporter *exporter;     /* --format, or by the suffix of --output; NULL = a
                                                 * view */
        const struct ls_export_taker *taker;    /* gets the cells in parts; NULL = they are written
                                                 * to output */
        int list, per_thread, experimental;     /* of exporters */
        int json, html;
        /* look */
        double min;                     /* percent; below 0 = not given */
        int min_default;                /* nobody gave it */
        int raw, full_path, inlined;
        enum ls_sort sort;
        enum ls_color_when color;
        int no_pager;
        struct ls_filter_options want;
        int no_mouse;                   /* of tui and top */
        int tui, list_keys;             /* of report: browse in place of text; of tui: print the
                                         * keys */
};

#endif
