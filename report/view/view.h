/* A view: one way to show the samples. Each is a file and a row of the table in report.c. */
#ifndef LS_REPORT_VIEW_VIEW_H
#define LS_REPORT_VIEW_VIEW_H

#include <stdio.h>

#include "formats/json.h"
#include "report/model/report.h"

struct ls_view {
        const char *name;
        int is_document;                /* text is all of the output, also when no sample is left;
                                         * it has no json */
        int (*chosen)(const struct ls_report_options *o);
        unsigned (*dims)(const struct ls_report_options *o);    /* NULL = none */
        int (*text)(const struct ls_report *r);                 /* 0 or -errno */
        int (*json)(const struct ls_report *r,
                    struct ls_js *g); /* adds its members to the open object */
};

extern const struct ls_view ls_view_stacks, ls_view_beside, ls_view_flat, ls_view_tree,
        ls_view_annotate, ls_view_gc, ls_view_page;

/* header.c: command, rate, samples, losses, filters; lines that start with '#', or the members of
 * an object. */
void ls_header_text(const struct ls_report *r);
void ls_header_json(const struct ls_report *r, struct ls_js *g);

/* "[No samples collected]" and why, when nothing is left to show. */
void ls_say_no_samples(const struct ls_report *r);

/* paint.c: escape sequences by the heat of a share; empty strings without color. */
const char *ls_heat(const struct ls_report *r, double share);
#define LS_HEAT_LEVELS 4u
unsigned ls_heat_level(double share);   /* 0 = cold .. LS_HEAT_LEVELS = hottest */
const char *ls_dim(const struct ls_report *r);
const char *ls_plain(const struct ls_report *r);
/* Prints text cut to columns (0 = no limit) with "..." for what does not fit; pads to it when pad
 * is set. */
void ls_put_fit(FILE *out, const char *text, size_t columns, int pad);
/* Whether a share is too small to be shown, as -jp rounds it. */
int ls_below_min(const struct ls_report *r, uint64_t part, uint64_t whole);
double ls_share(uint64_t part, uint64_t whole);
/* A column of numbers: a share of whole in percent, or with --raw its ticks; and the margin of a
 * share of whole, of which there were n independent samples. */
unsigned ls_number_width(const struct ls_report *r);
/* Columns of the margin, and of the share beside an amount; and what stands above them. */
unsigned ls_margin_width(const struct ls_report *r);
const char *ls_margin_title(const struct ls_report *r);
const char *ls_number_title(const struct ls_report *r, const char *share_title);
void ls_put_number(const struct ls_report *r, uint64_t part, uint64_t whole);
void ls_put_margin(const struct ls_report *r, double share, double n, uint64_t whole);
/* flat.c: what a group is, as members of the open object. */
void ls_js_group(const struct ls_report *r, struct ls_js *g, const struct ls_grouping *grouping,
                 uint32_t group);
/* The name that Lua has for the file of a group, without its mark; "[C]" of what is no Lua; not
 * visible text yet. */
struct ls_str ls_group_source(const struct ls_report *r, const struct ls_grouping *grouping,
                              uint32_t group);
/* "app.lua:12" where a function was defined, or its C module; to be freed; NULL = nothing to
 * say. */
char *ls_place_text(const struct ls_report *r, uint32_t function);

#endif
