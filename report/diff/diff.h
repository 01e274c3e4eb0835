/* The parts of luasample diff and what they share. diff.c: the command; run.c: opens the
 * recordings; match.c, names.c and lines.c: what is the same in all of them; rows.c, tree.c: rows;
 * text.c, data.c, html.c: output. */
#ifndef LS_REPORT_DIFF_DIFF_H
#define LS_REPORT_DIFF_DIFF_H

#include "cli/output.h"
#include "report/model/aggregate.h"
#include "report/model/filter.h"
#include "report/model/keys.h"
#include "report/options/options.h"

enum ls_diff_norm { LS_NORM_SHARE, LS_NORM_TIME, LS_NORM_NONE };
enum ls_diff_test { LS_TEST_AUTO, LS_TEST_COUNTS, LS_TEST_WELCH, LS_TEST_RANKS };
enum ls_diff_format { LS_DIFF_TEXT, LS_DIFF_MARKDOWN, LS_DIFF_JSON, LS_DIFF_CSV };
#define LS_BEFORE 0
#define LS_AFTER 1

struct ls_diff_options {
        struct ls_report_options o;     /* by, filters, look */
        const char **files[2];          /* of each side */
        unsigned n_files[2];
        enum ls_diff_norm norm;
        enum ls_diff_test test;
        enum ls_diff_format format;
        int html;                       /* the page, not rows */
        int moments;                    /* one recording at two times: what was live */
        int total;                      /* compare what functions have with what they call */
        double alpha;                   /* rate of false discoveries, 0 to 1 */
        double fail_above;              /* percent; below 0 = not asked for */
};

struct ls_line_map {                    /* the lines of a source in the last recording's text of
                                         * it */
        uint32_t *to;                   /* [n] of line i + 1; 0 = not there. NULL = not mapped */
        uint32_t n;
};

struct ls_diff_run {                    /* a recording */
        const char *path;
        int side;
        char at[64];                    /* the moment that it is, as given; "" = all of it */
        struct ls_profile *profile;
        struct ls_labels *labels;
        struct ls_filter filter;
        struct ls_aggregate *aggregate;
        struct ls_grouping *grouping;
        struct ls_line_map *lines;      /* by source; NULL = lines are not mapped */
        uint32_t *source_of, *function_of;      /* by source, by function: the number that all
                                                 * recordings share */
        uint32_t *item_of;              /* by group: likewise */
        double per_sample;              /* ticks of a sample of equal weight: counts are ticks over
                                         * this */
};

struct ls_diff_item {                   /* a group of all recordings */
        char *name, *place;             /* place: where it is defined, may be NULL */
        char *unnumbered;               /* the name before it got a number; NULL = it got none */
};

struct ls_diff_row {
        uint32_t item;
        uint32_t parent, depth;         /* --tree: row of the caller, UINT32_MAX = a root; else 0 */
        double before, after;           /* shares, seconds or ticks: the mean of the runs */
        double before_share, after_share;
        double growth;                  /* of the whole before, in percent: what --fail-above is
                                         * compared with */
        double p, q;
        int significant;
};

enum ls_diff_change {
        LS_UNCHANGED,
        LS_CHANGED,                     /* its text is not the same in all recordings, or not
                                         * known */
        LS_MAPPED,                      /* it is not the same, but lines of one are known in the
                                         * other */
};

struct ls_diff {
        const struct ls_diff_options *o;
        struct ls_diff_run *runs;       /* those before, then those after */
        unsigned n_runs, n_side[2];
        uint32_t n_sources, n_functions;/* numbers that are shared are less than these */
        uint8_t *changed;               /* by shared source: enum ls_diff_change */
        struct ls_diff_item *items;
        uint32_t n_items;
        struct ls_diff_row *rows;       /* in the order shown */
        uint64_t *ticks;                /* [n_rows * n_runs], in the order in which rows were made:
                                         * see ticks_of */
        uint32_t *ticks_of;             /* by row as shown: its place in ticks, times n_runs */
        uint32_t n_rows;
        struct ls_diff_row whole;       /* all samples */
        enum ls_diff_test test;         /* that was used */
        unsigned n_changed, n_mapped;   /* LS_CHANGED and LS_MAPPED sources that have lines in the
                                         * rows (--by line) */
};

/* run.c. Returns 0, or the exit status after it said what is wrong. */
int ls_diff_open(struct ls_diff *d);
void ls_diff_done(struct ls_diff *d);
/* Labels, filter, ticks and groups of a run whose profile is open. Returns 0 or -errno. */
int ls_diff_load(struct ls_diff_run *run, const struct ls_report_options *o);
void ls_diff_run_done(struct ls_diff_run *run);

/* names.c: numbers the sources, functions and groups of all runs, or no groups. Return 0 or
 * -ENOMEM. */
int ls_diff_names(struct ls_diff *d);
int ls_diff_functions(struct ls_diff *d);

/* lines.c: maps the lines of changed sources whose texts can all be had. Returns 0 or -ENOMEM. */
int ls_diff_lines(struct ls_diff *d);
void ls_diff_lines_done(struct ls_diff_run *run);
/* Finds the lines of one text in another: ret[n1], 0 = nowhere. Returns 0 or -ENOMEM. */
int ls_lines_map(const struct ls_str *a, uint32_t n1, const struct ls_str *b, uint32_t n2,
                 uint32_t *ret);

/* match.c: one thing of one recording. */
#define LS_DIFF_PASSES 6
struct ls_match_item {
        uint64_t keys[LS_DIFF_PASSES];  /* what it can be known by, surest first; 0 = not by this */
        uint64_t order;                 /* of several with one key the first goes with the first */
};
enum ls_match_rule {
        LS_MATCH_ALL,                   /* as many as there are on both sides */
        LS_MATCH_EQUAL,                 /* only when both sides have the same number */
        LS_MATCH_ONE,                   /* only when both sides have one */
};
struct ls_match {                       /* the things of all recordings so far */
        struct ls_match_item *all;      /* as the last recording has it that has it */
        uint32_t n, cap;
        uint32_t first;                 /* number of all[0] */
};
/* Gives each of n items the number of the one that it is, or the next number. Returns 0 or
 * -ENOMEM. */
int ls_match(struct ls_match *m, const struct ls_match_item *items, uint32_t n,
             const enum ls_match_rule rules[LS_DIFF_PASSES], uint32_t *ret_numbers);
void ls_match_done(struct ls_match *m);
/* A key made of a key and bytes, never 0. */
uint64_t ls_match_key(uint64_t key, const void *bytes, size_t len);
uint64_t ls_match_key_u64(uint64_t key, uint64_t value);

/* rows.c: rows with their statistics, sorted. tree.c: the rows of --tree. Return 0 or -errno. */
int ls_diff_rows(struct ls_diff *d);
int ls_diff_tree_rows(struct ls_diff *d);
/* rows.c: what tree.c needs of it. */
int ls_diff_weigh(struct ls_diff *d);   /* fills all but names of the rows from ticks */
double ls_diff_size(const struct ls_diff_row *row);     /* what rows are sorted by: the difference
                                                         * without its sign */
/* Whether a row is large enough to be shown, or differs for sure. */
int ls_diff_shown(const struct ls_diff *d, const struct ls_diff_row *row);

/* text.c, data.c. Return 0 or -errno. */
int ls_diff_text(const struct ls_diff *d, FILE *out, int color, unsigned width);
int ls_diff_markdown(const struct ls_diff *d, FILE *out);
int ls_diff_json(const struct ls_diff *d, FILE *out);
int ls_diff_csv(const struct ls_diff *d, FILE *out);
/* html.c: the page. Returns 0 or -errno. */
int ls_diff_html(const struct ls_diff *d, FILE *out);
/* text.c: a value as --normalize has it, "12.34%", "1.234 s", "567"; a sentence on the test. */
void ls_diff_value(const struct ls_diff *d, double value, int sign, char *buf, size_t size);
const char *ls_diff_test_text(const struct ls_diff *d);

#endif
