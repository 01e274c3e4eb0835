/* View "beside": functions (or lines, coroutines, ...) by several events side by side, as cpu and
 * wall. In seconds, or as often as it was counted, since shares of several sums cannot be
 * compared. Calls beside a time also give the time of a call. */
#include "report/view/view.h"
#include "formats/escape.h"
#include "formats/json.h"
#include "report/model/facts.h"
#include "report/model/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 12                        /* of a column of times */
#define FEW   10                        /* ticks: the time of a call of fewer is marked */

struct line {                           /* a group, and its row of each event, NULL = it has none */
        const struct ls_row *row[LS_EVENTS_SHOWN];
        uint32_t id;
        int cut;                        /* below --min */
};

struct beside {
        const struct ls_report *r;
        const struct ls_aggregate *const *a;    /* of each event */
        struct ls_rows *rows[LS_EVENTS_SHOWN];
        struct line *lines;
        size_t n, hidden;
        unsigned events;                /* that are shown */
        int width;                      /* of a column */
        unsigned most;                  /* the event with the largest sum: shares are of it */
        int calls, timed;               /* events: time of a call is timed / calls; -1 = none */
};

static uint64_t ticks_of(const struct line *l, unsigned event, int total)
{
        const struct ls_row *row = l->row[event];

        return !row ? 0 : total ? row->total : row->self;
}

static int by_total(const struct ls_report *r)
{
        return r->o->sort == LS_SORT_TOTAL;
}

static uint64_t ticks_of_all(const struct beside *b, const struct line *l, int total)
{
        uint64_t sum = 0;

        for (unsigned e = 0; e < b->events; e++)
                sum += ticks_of(l, e, total);
        return sum;
}

static const struct beside *sorting;    /* qsort has no context */

static int by_rank(const void *a, const void *b)
{
        const struct line *x = a, *y = b;
        int total = by_total(sorting->r);
        uint64_t left = ticks_of(x, sorting->most, total),
                 right = ticks_of(y, sorting->most, total);

        if (left == right) {            /* as of all rows that never wait in yield */
                left = ticks_of_all(sorting, x, total);
                right = ticks_of_all(sorting, y, total);
        }
        if (left != right)
                return left < right ? 1 : -1;
        return x->id < y->id ? -1 : x->id > y->id;
}

static int has_row(const struct beside *b, const struct line *l)
{
        for (unsigned e = 0; e < b->events; e++)
                if (l->row[e])
                        return 1;
        return 0;
}

/* Joins the rows of all by their group. */
static int join(struct beside *b)
{
        uint32_t groups = b->rows[0]->grouping[0]->n_groups;
        struct line *of = calloc((size_t)groups + 1, sizeof(*of));

        if (!of)
                return -ENOMEM;
        for (unsigned e = 0; e < b->events; e++)
                for (size_t i = 0; i < b->rows[e]->n_rows; i++)
                        if (b->rows[e]->rows[i].id < groups)
                                of[b->rows[e]->rows[i].id].row[e] = &b->rows[e]->rows[i];
        for (uint32_t i = 0; i < groups; i++) {
                if (!has_row(b, &of[i]))
                        continue;
                of[b->n] = of[i];
                of[b->n].id = i;
                b->n++;
        }
        b->lines = of;
        sorting = b;
        qsort(of, b->n, sizeof(*of), by_rank);
        for (size_t i = 0; i < b->n; i++) {
                uint64_t self = 0;

                of[i].cut = 1;
                for (unsigned e = 0; e < b->events; e++) {
                        of[i].cut &= ls_below_min(b->r, ticks_of(&of[i], e, by_total(b->r)),
                                                  b->a[e]->ticks);
                        self += ticks_of(&of[i], e, 0);
                }
                b->hidden += of[i].cut && self;
        }
        return 0;
}

static void done(struct beside *b)
{
        free(b->lines);
        for (unsigned e = 0; e < b->events; e++)
                ls_rows_free(b->rows[e]);
}

static int begin(const struct ls_report *r, struct beside *b)
{
        int error = 0;

        *b = (struct beside){ .r = r, .a = r->events, .events = r->filter->choice.n,
                              .width = WIDTH, .calls = -1, .timed = -1 };
        for (unsigned e = b->events; e-- > 0;) {
                if (r->filter->choice.id[e] == LS_EVENT_CALLS)
                        b->calls = (int)e;
                else if (ls_event_is_time(r->filter->choice.id[e]))
                        b->timed = (int)e;
        }
        for (unsigned e = 0; e < b->events; e++) {
                int title = (int)strlen("Total ") +
                            (int)strlen(ls_event_name(r->filter->choice.id[e]));

                b->width = title > b->width ? title : b->width;
                /* Counts and times have no common sum: the first says what the others are measured
                 * by. */
                if (ls_events_time(&r->filter->choice) &&
                    ls_event_is_time(r->filter->choice.id[e]) &&
                    b->a[e]->ticks > b->a[b->most]->ticks)
                        b->most = e;
        }
        for (unsigned e = 0; !error && e < b->events; e++)
                error = ls_rows_new(r->profile, r->labels, b->a[e], r->o, &b->rows[e]);
        if (!error)
                error = join(b);
        if (error)
                done(b);
        return error;
}

static void put_time(const struct beside *b, unsigned event, uint64_t ticks)
{
        const struct ls_report *r = b->r;
        char amount[LS_AMOUNT];

        if (!r->o->raw && ls_event_is_amount(r->filter->choice.id[event]))
                fprintf(r->out, " %*s", b->width,
                        ls_amount_text(r->filter->choice.id[event], (double)ticks, amount));
        else if (r->o->raw || ls_event_is_exact(r->filter->choice.id[event]))
                fprintf(r->out, " %*" PRIu64, b->width, ticks);
        else
                fprintf(r->out, " %*.3fs", b->width - 1,
                        (double)ticks * (double)r->profile->interval_ns / 1e9);
}

static int has_time_of_call(const struct beside *b)
{
        return b->calls >= 0 && b->timed >= 0 && b->r->o->by[0]->function;
}

/* Self time of a call in ns, 0 = not known. */
static double time_of_call(const struct beside *b, const struct line *l)
{
        uint64_t calls = ticks_of(l, (unsigned)b->calls, 0);

        return calls ? (double)ticks_of(l, (unsigned)b->timed, 0) *
                               (double)b->r->profile->interval_ns / (double)calls
                     : 0;
}

static void put_time_of_call(const struct beside *b, const struct line *l)
{
        double ns = time_of_call(b, l);
        char text[32] = "", duration[31];

        if (ns > 0)
                snprintf(text, sizeof(text), "%s%s",
                         ticks_of(l, (unsigned)b->timed, 0) < FEW ? "~" : "",
                         ls_duration_text((uint64_t)(ns + 0.5), duration, sizeof(duration)));
        fprintf(b->r->out, " %*s", b->width, text);
}

static void put_title(const struct beside *b)
{
        const struct ls_report *r = b->r;
        char text[64];

        fprintf(r->out, "%s#  Share", ls_dim(r));
        for (int total = 0; total <= b->rows[0]->has_total; total++)
                for (unsigned e = 0; e < b->events; e++) {
                        snprintf(text, sizeof(text), "%s %s", total ? "Total" : "Self",
                                 ls_event_name(r->filter->choice.id[e]));
                        fprintf(r->out, " %*s", b->width, text);
                }
        if (has_time_of_call(b)) {
                snprintf(text, sizeof(text), "%s a call",
                         ls_event_name(r->filter->choice.id[b->timed]));
                fprintf(r->out, " %*s", b->width, text);
        }
        fprintf(r->out, "  %s%s\n", r->o->by[0]->title, ls_plain(r));
}

static int put_line(const struct beside *b, const struct line *l)
{
        const struct ls_report *r = b->r;
        double share = ls_share(ticks_of(l, b->most, by_total(r)), b->a[b->most]->ticks);
        uint32_t function =
                r->o->by[0]->function ? r->o->by[0]->function(b->rows[0]->grouping[0], l->id) : 0;
        char *name = ls_rows_text(b->rows[0], 0, l->id),
             *place = function ? ls_place_text(r, function) : NULL;
        unsigned columns = b->events * (1 + b->rows[0]->has_total) + has_time_of_call(b);
        unsigned left = 10 + columns * (unsigned)(b->width + 1);
        size_t room = r->width > left + 20 ? r->width - left : 0;

        if (!name) {
                free(place);
                return -ENOMEM;
        }
        fprintf(r->out, "%s%7.2f%%%s", ls_heat(r, share), 100 * share, ls_plain(r));
        for (int total = 0; total <= b->rows[0]->has_total; total++)
                for (unsigned e = 0; e < b->events; e++)
                        put_time(b, e, ticks_of(l, e, total));
        if (has_time_of_call(b))
                put_time_of_call(b, l);
        fputs("  ", r->out);
        ls_put_fit(r->out, name, room, 0);
        if (place && ls_text_columns(name) + ls_text_columns(place) + 2 <= (room ? room : SIZE_MAX))
                fprintf(r->out, "  %s%s%s", ls_dim(r), place, ls_plain(r));
        fputc('\n', r->out);
        free(place);
        free(name);
        return 0;
}

static int beside_text(const struct ls_report *r)
{
        struct beside b;
        int error = begin(r, &b);

        if (error)
                return error;
        put_title(&b);
        for (size_t i = 0; !error && i < b.n; i++)
                if (!b.lines[i].cut)
                        error = put_line(&b, &b.lines[i]);
        if (!error && b.hidden)
                fprintf(r->out,
                        "%s# %zu more row%s below %g%% of each event (--min 0 shows all)%s\n",
                        ls_dim(r), b.hidden, b.hidden == 1 ? "" : "s", r->o->min, ls_plain(r));
        done(&b);
        return error;
}

static int json_line(const struct beside *b, struct ls_js *g, const struct line *l)
{
        const struct ls_report *r = b->r;
        char *name = ls_rows_text(b->rows[0], 0, l->id);

        if (!name)
                return -ENOMEM;
        ls_js_open(g, '{');
        ls_js_key_string(g, "name", name);
        free(name);
        ls_js_group(r, g, b->rows[0]->grouping[0], l->id);
        for (unsigned e = 0; e < b->events; e++) {
                ls_js_key_open(g, ls_event_name(r->filter->choice.id[e]), '{');
                ls_js_key_u64(g, "self_ticks", ticks_of(l, e, 0));
                ls_js_key_share(g, "self", ls_share(ticks_of(l, e, 0), b->a[e]->ticks));
                if (b->rows[e]->has_total) {
                        ls_js_key_u64(g, "total_ticks", ticks_of(l, e, 1));
                        ls_js_key_share(g, "total", ls_share(ticks_of(l, e, 1), b->a[e]->ticks));
                }
                ls_js_close(g, '}');
        }
        if (has_time_of_call(b) && time_of_call(b, l) > 0)
                ls_js_key_share(g, "ns_a_call", time_of_call(b, l));
        ls_js_close(g, '}');
        return 0;
}

static int beside_json(const struct ls_report *r, struct ls_js *g)
{
        struct beside b;
        int error = begin(r, &b);

        if (error)
                return error;
        ls_js_key_open(g, "events", '[');
        for (unsigned e = 0; e < b.events; e++) {
                ls_js_open(g, '{');
                ls_js_key_string(g, "name", ls_event_name(r->filter->choice.id[e]));
                ls_js_key_u64(g, "ticks", b.a[e]->ticks);
                ls_js_close(g, '}');
        }
        ls_js_close(g, ']');
        ls_js_key_open(g, "rows", '[');
        for (size_t i = 0; !error && i < b.n; i++)
                if (!b.lines[i].cut)
                        error = json_line(&b, g, &b.lines[i]);
        ls_js_close(g, ']');
        done(&b);
        return error;
}

static int beside_chosen(const struct ls_report_options *o)
{
        return o->want.events.n > 1 && !o->annotate;
}

const struct ls_view ls_view_beside = {
        .name = "beside",
        .chosen = beside_chosen,
        .dims = ls_rows_dims,
        .text = beside_text,
        .json = beside_json,
};
