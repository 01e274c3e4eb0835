/* luasample diff as a table: text for people, markdown for a page or a comment of a review. Called
 * by diff.c. */
#include "formats/escape.h"
#include "report/diff/diff.h"
#include "report/model/facts.h"
#include "report/model/filter_text.h"
#include "report/view/view.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
        COL_BEFORE,
        COL_AFTER,
        COL_DIFF,
        COL_RATIO,
        COL_CHANCE,
        COL_MARK,
        COL_NAME,
        COL_PLACE,
        COLUMNS
};

static const char *const titles[COLUMNS] = { "Before", "After", "Diff", "Ratio",
                                             "Chance", "",      NULL,   "Source" };

#define NUMBER 24                       /* bytes of a number as text */
#define LEAST_NAME 12                   /* columns */
#define UNLIMITED_NAME 44               /* longer names are not padded to, where nothing is cut */

struct line {                           /* a row as text */
        char cells[COL_NAME][NUMBER];
        const struct ls_diff_row *row;
        unsigned indent;
};

struct table {
        const struct ls_diff *d;
        FILE *out;
        struct ls_report paint;         /* for view/paint.c */
        struct line *lines;
        uint32_t n;
        size_t widths[COLUMNS];
        uint32_t hidden, hidden_significant;
};

void ls_diff_value(const struct ls_diff *d, double value, int sign, char *buf, size_t size)
{
        switch (d->o->norm) {
        case LS_NORM_SHARE:
                snprintf(buf, size, sign ? "%+.2f%%" : "%.2f%%", 100 * value);
                break;
        case LS_NORM_TIME:
                snprintf(buf, size, sign ? "%+.3f s" : "%.3f s", value);
                break;
        default:
                if (ls_events_amount(&d->runs[0].filter.choice)) {
                        char amount[LS_AMOUNT];

                        snprintf(buf, size, "%s%s", sign && value > 0 ? "+" : "",
                                 ls_amount_text(d->runs[0].filter.choice.id[0], value, amount));
                        break;
                }
                snprintf(buf, size, sign ? "%+.0f" : "%.0f", value);
        }
}

const char *ls_diff_test_text(const struct ls_diff *d)
{
        switch (d->test) {
        case LS_TEST_WELCH:
                return "Welch's t-test of the runs";
        case LS_TEST_RANKS:
                return "Mann-Whitney U-test of the runs";
        default:
                return d->o->norm == LS_NORM_SHARE ? "z-test of two shares of samples"
                                                   : "test of two counts of samples";
        }
}

static void fill_cells(const struct ls_diff *d, const struct ls_diff_row *row, struct line *l)
{
        l->row = row;
        ls_diff_value(d, row->before, 0, l->cells[COL_BEFORE], NUMBER);
        ls_diff_value(d, row->after, 0, l->cells[COL_AFTER], NUMBER);
        ls_diff_value(d, row->after - row->before, 1, l->cells[COL_DIFF], NUMBER);
        if (row->before > 0 && row->after > 0)
                snprintf(l->cells[COL_RATIO], NUMBER, "%.2fx", row->after / row->before);
        else
                strcpy(l->cells[COL_RATIO], row->after > 0 ? "new" : row->before > 0 ? "gone" : "");
        if (row->q < 0.0005)
                strcpy(l->cells[COL_CHANCE], "<0.001");
        else
                snprintf(l->cells[COL_CHANCE], NUMBER, "%.3f", row->q);
        strcpy(l->cells[COL_MARK], row->significant ? "*" : "~");
}

/* A node of a tree is shown when one below it is. */
static uint8_t *find_shown(const struct ls_diff *d)
{
        uint8_t *shown = calloc((size_t)d->n_rows + 1, 1);

        for (uint32_t i = d->n_rows; shown && i-- > 0;) {
                shown[i] |= (uint8_t)ls_diff_shown(d, &d->rows[i]);
                if (shown[i] && d->o->o.tree && d->rows[i].parent != UINT32_MAX)
                        shown[d->rows[i].parent] = 1;
        }
        return shown;
}

static void widen(struct table *t, unsigned column, size_t width)
{
        if (width > t->widths[column])
                t->widths[column] = width;
}

static void measure(struct table *t, const struct line *l)
{
        const struct ls_diff_item *item = &t->d->items[l->row->item];

        for (unsigned c = 0; c < COL_NAME; c++)
                widen(t, c, strlen(l->cells[c]));
        widen(t, COL_NAME, l->indent + ls_text_columns(item->name));
        widen(t, COL_PLACE, item->place && !t->d->o->o.tree ? ls_text_columns(item->place) : 0);
}

static int fill(struct table *t)
{
        const struct ls_diff *d = t->d;
        uint8_t *shown = find_shown(d);

        t->lines = calloc((size_t)d->n_rows + 1, sizeof(*t->lines));
        if (!shown || !t->lines) {
                free(shown);
                return -ENOMEM;
        }
        for (unsigned c = 0; c < COL_NAME; c++)
                widen(t, c, strlen(titles[c]));
        for (uint32_t i = 0; i < d->n_rows; i++) {
                struct line *l = &t->lines[t->n];

                if (!shown[i]) {
                        t->hidden++;
                        continue;
                }
                l->indent = d->o->o.tree ? (d->rows[i].depth < 50 ? d->rows[i].depth * 2 : 100) : 0;
                fill_cells(d, &d->rows[i], l);
                measure(t, l);
                t->n++;
        }
        free(shown);
        return 0;
}

/* The columns of names, so that a line fits into width; 0 = no limit. */
static void fit(struct table *t, unsigned width)
{
        size_t used = 3, room;

        widen(t, COL_NAME, strlen(t->d->o->o.by[0]->title));
        for (unsigned c = 0; c < COL_NAME; c++)
                used += t->widths[c] + 1;
        if (!width) {
                if (t->widths[COL_NAME] > UNLIMITED_NAME)
                        t->widths[COL_NAME] = UNLIMITED_NAME;
                return;
        }
        room = width > used + LEAST_NAME ? width - used : LEAST_NAME;
        if (t->widths[COL_NAME] + 2 + t->widths[COL_PLACE] <= room)
                return;
        if (t->widths[COL_PLACE] > room / 3)
                t->widths[COL_PLACE] = room / 3;
        if (t->widths[COL_PLACE] < LEAST_NAME)
                t->widths[COL_PLACE] = 0;
        if (t->widths[COL_PLACE])
                room -= t->widths[COL_PLACE] + 2;
        if (t->widths[COL_NAME] > room)
                t->widths[COL_NAME] = room;
}

static const char *color_of(const struct table *t, const struct ls_diff_row *row)
{
        if (!t->paint.color)
                return "";
        if (!row->significant)
                return ls_dim(&t->paint);
        return row->after > row->before ? "\033[31m" : "\033[34m";
}

static void put_names(const struct table *t, const struct line *l, unsigned width)
{
        const struct ls_diff_item *item = &t->d->items[l->row->item];
        const char *place = t->d->o->o.tree ? NULL : item->place;
        size_t room = t->widths[COL_NAME], indent = l->indent;

        if (width && indent > room / 2)
                indent = room / 2;
        fprintf(t->out, "%*s", (int)indent, "");
        if (width)
                ls_put_fit(t->out, item->name, room - indent, place && t->widths[COL_PLACE]);
        else
                fprintf(t->out, "%s%*s", item->name,
                        !place || ls_text_columns(item->name) + indent >= room
                                ? 0
                                : (int)(room - indent - ls_text_columns(item->name)),
                        "");
        if (place && t->widths[COL_PLACE]) {
                fputs("  ", t->out);
                ls_put_fit(t->out, place, width ? t->widths[COL_PLACE] : 0, 0);
        }
        fputc('\n', t->out);
}

static void put_line(const struct table *t, const struct line *l, unsigned width)
{
        const char *color = color_of(t, l->row);

        fputs("  ", t->out);
        for (unsigned c = 0; c < COL_NAME; c++)
                fprintf(t->out, "%s%*s%s ", c == COL_DIFF || c == COL_MARK ? color : "",
                        (int)t->widths[c], l->cells[c],
                        (c == COL_DIFF || c == COL_MARK) && *color ? ls_plain(&t->paint) : "");
        fputc(' ', t->out);
        put_names(t, l, width);
}

static void put_titles(const struct table *t)
{
        const char *title = t->d->o->o.by[0]->title;

        fprintf(t->out, "%s# ", ls_dim(&t->paint));
        for (unsigned c = 0; c < COL_NAME; c++)
                fprintf(t->out, "%*s ", (int)t->widths[c], titles[c]);
        fprintf(t->out, " %s", t->d->o->o.inverse ? "Function, then its callers" : title);
        if (t->widths[COL_PLACE])
                fprintf(t->out, "%*s%s", (int)(t->widths[COL_NAME] + 2 - strlen(title)), "",
                        titles[COL_PLACE]);
        fprintf(t->out, "%s\n", ls_plain(&t->paint));
}

static void put_run(const struct table *t, const struct ls_diff_run *run)
{
        char *path = ls_visible(run->path, strlen(run->path)), time[32];
        struct ls_str s = ls_profile_str(run->profile, LS_INFO_COMMAND);
        char *command = ls_visible(s.s, s.len);
        uint64_t ns = (uint64_t)((double)run->aggregate->ticks * (double)run->profile->interval_ns);
        const char *event = ls_event_name(run->filter.choice.id[0]);

        fprintf(t->out, "# %-9s %s: ", run->side ? "After:" : "Before:", path ? path : "");
        if (ls_events_amount(&run->filter.choice))
                fprintf(t->out, "%" PRIu64 " samples, %s of %s", run->aggregate->samples,
                        ls_amount_text(run->filter.choice.id[0], (double)run->aggregate->ticks,
                                       time),
                        event);
        else if (ls_events_count(&run->filter.choice))
                fprintf(t->out, "%" PRIu64 " %s", run->aggregate->ticks, event);
        else
                fprintf(t->out, "%" PRIu64 " samples, %s of %s time", run->aggregate->samples,
                        ls_duration_text(ns, time, sizeof(time)), event);
        if (*run->at)
                fprintf(t->out, " at %s and not at %s", run->at, t->d->runs[!run->side].at);
        fputs(command && *command ? ": " : "", t->out);
        if (command)
                ls_put_fit(t->out, command, t->paint.width > 60 ? t->paint.width - 50 : 0, 0);
        fputc('\n', t->out);
        free(path);
        free(command);
}

static void put_header(const struct table *t)
{
        static const char *const norms[] = { "shares of the samples", "seconds of a run",
                                             "ticks of a run" };
        const struct ls_diff *d = t->d;
        char *filters = ls_filter_text(&d->o->o.want);

        fputs(ls_dim(&t->paint), t->out);
        for (unsigned k = 0; k < d->n_runs; k++)
                put_run(t, &d->runs[k]);
        if (filters)
                fprintf(t->out, "# Filters:  %s\n", filters);
        fprintf(t->out, "# Compared: %s%s; %s\n",
                ls_events_time(&d->runs[0].filter.choice) || d->o->norm != LS_NORM_NONE
                        ? norms[d->o->norm]
                        : "amounts of a run",
                d->o->total || d->o->o.tree ? ", with callees" : "", ls_diff_test_text(d));
        fprintf(t->out, "# Marks:    * differs, ~ may be chance (false discoveries: %g%%)\n",
                100 * d->o->alpha);
        if (d->n_runs == 2 && !d->o->moments)
                fprintf(t->out, "# Note:     one recording of each side: what runs of one program "
                                "differ by anyway is not "
                                "known; give several\n");
        if (d->n_mapped)
                fprintf(t->out,
                        "# Lines:    %u source%s changed: lines are matched by their text\n",
                        d->n_mapped, d->n_mapped == 1 ? " has" : "s have");
        if (d->n_changed)
                fprintf(t->out,
                        "# Lines:    %u source%s not of one known text in all recordings: lines "
                        "are matched by "
                        "their distance from the start of the function\n",
                        d->n_changed, d->n_changed == 1 ? " is" : "s are");
        fprintf(t->out, "#%s\n", ls_plain(&t->paint));
        free(filters);
}

static void put_footer(const struct table *t)
{
        const struct ls_diff *d = t->d;
        char before[NUMBER], after[NUMBER], diff[NUMBER];

        fputs(ls_dim(&t->paint), t->out);
        if (d->o->norm != LS_NORM_SHARE) {
                ls_diff_value(d, d->whole.before, 0, before, NUMBER);
                ls_diff_value(d, d->whole.after, 0, after, NUMBER);
                ls_diff_value(d, d->whole.after - d->whole.before, 1, diff, NUMBER);
                fprintf(t->out, "# All in all: %s before, %s after, %s (%+.2f%%) %c\n", before,
                        after, diff, d->whole.growth, d->whole.significant ? '*' : '~');
        }
        if (t->hidden)
                fprintf(t->out,
                        "# %u more row%s below %g%%, which may be chance (--min 0 shows all)\n",
                        t->hidden, t->hidden == 1 ? "" : "s", d->o->o.min);
        fputs(ls_plain(&t->paint), t->out);
}

int ls_diff_text(const struct ls_diff *d, FILE *out, int color, unsigned width)
{
        struct table t = { .d = d,
                           .out = out,
                           .paint = { .o = &d->o->o, .out = out, .color = color, .width = width } };
        int r = fill(&t);

        if (!r) {
                fit(&t, width);
                put_header(&t);
                put_titles(&t);
                for (uint32_t i = 0; i < t.n; i++)
                        put_line(&t, &t.lines[i], width);
                put_footer(&t);
        }
        free(t.lines);
        return r;
}

/* Characters that markdown or the HTML in it would take for its own are written as numbers. */
static void put_escaped(FILE *out, const char *text)
{
        for (; *text; text++) {
                if (strchr("&<>|`*_[]\\~#!$@", *text))
                        fprintf(out, "&#%d;", *text);
                else
                        fputc(*text, out);
        }
}

static void put_markdown_line(const struct table *t, const struct line *l)
{
        const struct ls_diff_item *item = &t->d->items[l->row->item];

        for (unsigned c = 0; c < COL_MARK; c++)
                fprintf(t->out, "| %s%s ", l->cells[c][0] == '<' ? "&lt;" : "",
                        l->cells[c] + (l->cells[c][0] == '<'));
        fprintf(t->out, "| %s | ", l->row->significant ? "**differs**" : "may be chance");
        for (unsigned i = 0; i < l->indent; i++)
                fputs("&nbsp;", t->out);
        put_escaped(t->out, item->name);
        fputs(" | ", t->out);
        put_escaped(t->out, item->place && !t->d->o->o.tree ? item->place : "");
        fputs(" |\n", t->out);
}

int ls_diff_markdown(const struct ls_diff *d, FILE *out)
{
        struct table t = { .d = d, .out = out, .paint = { .o = &d->o->o, .out = out } };
        int r = fill(&t);

        for (uint32_t i = 0; !r && i < t.n; i++) {
                if (i == 0) {
                        for (unsigned c = 0; c < COLUMNS; c++)
                                fprintf(out, "| %s ", c == COL_NAME   ? d->o->o.by[0]->title
                                                      : c == COL_MARK ? "Verdict" : titles[c]);
                        fputs("|\n|---:|---:|---:|---:|---:|:---|:---|:---|\n", out);
                }
                put_markdown_line(&t, &t.lines[i]);
        }
        if (!r && t.n == 0)
                fprintf(out, "No row of at least %g%%.\n", d->o->o.min);
        if (!r)
                fprintf(out, "\n%u recording%s before, %u after; %s; false discoveries: %g%%.\n",
                        d->n_side[0], d->n_side[0] == 1 ? "" : "s", d->n_side[1],
                        ls_diff_test_text(d), 100 * d->o->alpha);
        free(t.lines);
        return r;
}
