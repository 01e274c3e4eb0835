/* Screen of the terminal browser: title, facts, filters, rows, hints. Called by report/tui*.c.
 *
 * A low terminal loses the facts first, then the filters; below LEAST_ROWS or LEAST_COLUMNS it says
 * what it needs. */
#include "formats/escape.h"
#include "report/model/filter_text.h"
#include "report/tui/tui.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_ROWS 5
#define LEAST_COLUMNS 20
#define ROWS_FOR_FACTS 12
#define ROWS_FOR_FILTERS 8

static char *filters_of(const struct ls_tui *t)
{
        char *text = ls_filter_text(&t->o->want);

        if (!text && t->profile && t->filter.need_region_flag)
                return strdup("regions that the program marked (--no-regions shows all)");
        return text;
}

static int is_filtered(const struct ls_tui *t)
{
        char *text = filters_of(t);
        int is = text != NULL;

        free(text);
        return is;
}

/* Lines above the rows: the title, perhaps facts and filters, the heads of the columns. */
static int lines_above(const struct ls_tui *t)
{
        int rows = ls_screen_rows();

        return 2 + (rows >= ROWS_FOR_FACTS) + (rows >= ROWS_FOR_FILTERS && is_filtered(t));
}

int ls_tui_body_rows(const struct ls_tui *t)
{
        int rows = ls_screen_rows() - lines_above(t) - 1;

        return rows > 1 ? rows : 1;
}

enum ls_tui_part ls_tui_part_at(struct ls_tui *t, int y, size_t *ret_row)
{
        const struct ls_tui_view *v = ls_tui_top(t);
        int first = lines_above(t);

        if (y == first - 1)
                return LS_TUI_HEAD;
        if (y < first || y >= first + ls_tui_body_rows(t) ||
            v->top + (size_t)(y - first) >= v->n_rows)
                return LS_TUI_NOTHING;
        *ret_row = v->top + (size_t)(y - first);
        return LS_TUI_ROW;
}

static void draw_title(struct ls_tui *t)
{
        struct ls_tui_view *v = ls_tui_top(t);
        char title[256] = "", at[64] = "", live[128] = "";
        int width = ls_screen_columns(), left, right;

        if (v->built)
                v->ops->title(t, v, title, sizeof(title));
        if (t->live && t->paused)
                snprintf(live, sizeof(live), "paused");
        else if (t->live)
                t->live->status(t->live->ctx, live, sizeof(live));
        if (v->n_rows)
                snprintf(at, sizeof(at), "%zu/%zu", v->cursor + 1, v->n_rows);
        ls_screen_clear_line(0, LS_LOOK_TITLE);
        right = (int)(ls_text_columns(title) + strlen(at)) + 3;
        if (right > width - 8)
                right = width - 8;
        if (width < 60) {               /* what is shown is more than of what */
                left = ls_screen_put(0, 1, width - (int)strlen(at) - 3, LS_LOOK_TITLE,
                                     *live ? live : title);
        } else {
                left = ls_screen_printf(0, 1, width - right - 2, LS_LOOK_TITLE, "%s%s%s", live,
                                        *live && *t->program ? ": " : "", t->program);
                ls_screen_put(0, width - right, right - (int)strlen(at) - 2, LS_LOOK_TITLE, title);
        }
        if (left + 3 + (int)strlen(at) < width)
                ls_screen_put(0, width - (int)strlen(at) - 1, (int)strlen(at), LS_LOOK_TITLE, at);
}

static void draw_facts(const struct ls_tui *t, int y)
{
        const struct ls_facts *f = &t->facts;
        uint8_t event = t->filter.choice.id[0];
        char cpu[32], shown[64] = "", lost[64] = "", asked[96] = "";

        if (!t->profile)
                return;
        if (f->asked_ns)
                snprintf(asked, sizeof(asked), ", asked %.0f a second, got %.0f",
                         1e9 / (double)f->asked_ns, f->achieved_hz);
        if (f->lost_ticks && f->ticks)
                snprintf(lost, sizeof(lost), ", lost %.2f%%",
                         100 * ls_share(f->lost_ticks, f->ticks));
        if (ls_events_amount(&t->filter.choice))
                snprintf(shown, sizeof(shown), "%s %s; ", ls_event_name(event),
                         ls_amount_text(event, (double)t->aggregate->ticks, cpu));
        else if (ls_events_besides_cpu(t->profile))
                snprintf(shown, sizeof(shown), "%s time, %s; ",
                         ls_event_name(t->filter.choice.id[0]),
                         ls_duration_text(t->aggregate->ticks * t->profile->interval_ns, cpu,
                                          sizeof(cpu)));
        ls_screen_printf(y, 1, ls_screen_columns() - 1, LS_LOOK_DIM,
                         "%s%" PRIu64 " samples, %s of CPU%s%s%s", shown,
                         t->profile->recorded_samples,
                         ls_duration_text(f->cpu_ns, cpu, sizeof(cpu)), asked, lost,
                         t->profile->n_damages ? ", damaged (o tells more)" : "");
}

static void draw_filters(const struct ls_tui *t, int y)
{
        char *text = filters_of(t);
        int x = 1;

        x += ls_screen_put(y, x, 8, LS_LOOK_KEY, "filter ");
        if (t->aggregate)
                x += ls_screen_printf(y, x, 40, LS_LOOK_BOLD, "%.1f%% of %" PRIu64 " ticks: ",
                                      100 * ls_share(t->aggregate->ticks, t->aggregate->all_ticks),
                                      t->aggregate->all_ticks);
        if (text)
                ls_screen_put(y, x, ls_screen_columns() - x, LS_LOOK_BOLD, text);
        free(text);
}

static void draw_empty(struct ls_tui *t, int y)
{
        struct ls_report report = t->report;
        char *text = NULL;
        size_t size = 0;

        if (!t->profile) {
                ls_screen_put(y, 1, ls_screen_columns() - 1, LS_LOOK_PLAIN,
                              "Waiting for the first samples...");
                return;
        }
        if (t->aggregate->ticks || !ls_tui_top(t)->built) {
                ls_screen_put(y, 1, ls_screen_columns() - 1, LS_LOOK_PLAIN,
                              "[Nothing to show here]");
                return;
        }
        report.out = open_memstream(&text, &size);
        if (!report.out)
                return;
        ls_say_no_samples(&report);
        fclose(report.out);
        if (text) {
                text[strcspn(text, "\n")] = '\0';
                ls_screen_put(y, 1, ls_screen_columns() - 1, LS_LOOK_PLAIN, text);
        }
        free(text);
}

static void draw_rows(struct ls_tui *t, int y)
{
        struct ls_tui_view *v = ls_tui_top(t);
        int n = ls_tui_body_rows(t);

        for (int i = 0; i < n && v->top + (size_t)i < v->n_rows; i++) {
                size_t row = v->top + (size_t)i;
                int selected = row == v->cursor;

                if (selected)
                        ls_screen_clear_line(y + i, LS_LOOK_SELECTED);
                v->ops->draw(t, v, row, y + i, selected);
        }
        if (!v->n_rows)
                draw_empty(t, y);
}

/* The last line: what was said, or what can be done here. */
static void draw_last(struct ls_tui *t)
{
        int y = ls_screen_rows() - 1, width = ls_screen_columns(), x = 0;
        unsigned bits = ls_tui_top(t)->ops->bit | (t->live ? LS_TUI_IN_LIVE : 0);
        const char *key, *hint;

        ls_screen_clear_line(y, LS_LOOK_PLAIN);
        if (*t->message) {
                ls_screen_put(y, 0, width, t->message_is_error ? LS_LOOK_ERROR : LS_LOOK_BOLD,
                              t->message);
                return;
        }
        for (unsigned i = 0; ls_tui_hint(bits, i, &key, &hint); i++) {
                int len = (int)strcspn(key + 1, ",") + 1;

                if (t->n_views > 1 && !strcmp(hint, "quit"))
                        hint = "back";
                if (x + len + (int)strlen(hint) + 1 > width)
                        continue;
                x += ls_screen_printf(y, x, width - x, LS_LOOK_KEY, "%.*s", len, key) + 1;
                x += ls_screen_put(y, x, width - x, LS_LOOK_PLAIN, hint) + 2;
        }
}

static int is_too_small(void)
{
        return ls_screen_rows() < LEAST_ROWS || ls_screen_columns() < LEAST_COLUMNS;
}

void ls_tui_draw_above(struct ls_tui *t)
{
        int rows = ls_screen_rows(), y = 0;
        struct ls_tui_view *v = ls_tui_top(t);

        for (int i = 0; i < rows; i++)
                ls_screen_clear_line(i, LS_LOOK_PLAIN);
        if (is_too_small()) {
                ls_screen_printf(0, 0, ls_screen_columns(), LS_LOOK_PLAIN, "needs %dx%d",
                                 LEAST_COLUMNS, LEAST_ROWS);
                return;
        }
        ls_tui_goto(t, v->cursor);      /* the terminal may have another size */
        draw_title(t);
        y = 1;
        if (rows >= ROWS_FOR_FACTS)
                draw_facts(t, y++);
        if (rows >= ROWS_FOR_FILTERS && is_filtered(t))
                draw_filters(t, y++);
        ls_screen_clear_line(y, LS_LOOK_HEAD);
        if (v->built)
                v->ops->head(t, v, y);
        draw_rows(t, y + 1);
}

void ls_tui_draw(struct ls_tui *t)
{
        ls_tui_draw_above(t);
        if (!is_too_small())
                draw_last(t);
        ls_screen_flush();
}
