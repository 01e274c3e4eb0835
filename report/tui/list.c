/* Parts that all views of the terminal browser share: the cursor, search, sets of opened rows,
 * numbers. Called by report/tui*.c. */
#include "report/tui/tui.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "formats/escape.h"

void ls_tui_goto(struct ls_tui *t, size_t row)
{
        struct ls_tui_view *v = ls_tui_top(t);
        size_t lines = (size_t)ls_tui_body_rows(t);

        if (row >= v->n_rows)
                row = v->n_rows ? v->n_rows - 1 : 0;
        v->cursor = row;
        if (v->top > row)
                v->top = row;
        if (row >= v->top + lines)
                v->top = row - lines + 1;
        if (v->n_rows <= lines)
                v->top = 0;
        else if (v->top > v->n_rows - lines)
                v->top = v->n_rows - lines;
}

void ls_tui_move(struct ls_tui *t, long by)
{
        struct ls_tui_view *v = ls_tui_top(t);

        if (by < 0)
                ls_tui_goto(t, v->cursor > (size_t)-by ? v->cursor - (size_t)-by : 0);
        else
                ls_tui_goto(t, v->cursor + (size_t)by);
}

void ls_tui_scroll(struct ls_tui *t, long by)
{
        struct ls_tui_view *v = ls_tui_top(t);
        size_t lines = (size_t)ls_tui_body_rows(t),
               last = v->n_rows > lines ? v->n_rows - lines : 0;

        if (by < 0)
                v->top -= v->top < (size_t)-by ? v->top : (size_t)-by;
        else
                v->top = v->top + (size_t)by < last ? v->top + (size_t)by : last;
        if (v->cursor < v->top)
                v->cursor = v->top;
        else if (v->cursor >= v->top + lines)
                v->cursor = v->top + lines - 1;
        ls_tui_goto(t, v->cursor);
}

/* Upper and lower case are one, unless the searched text has upper case in it. */
static int has_upper(const char *s)
{
        size_t n = strlen(s);

        while (n) {
                uint32_t c = 0;
                size_t len = ls_utf8_decode(s, n, &c);

                if (len && iswupper((wint_t)c))
                        return 1;
                s += len ? len : 1;
                n -= len ? len : 1;
        }
        return 0;
}

/* Bytes of text that search is the start of; 0 = it is not. */
static size_t starts_with(const char *text, size_t left, const char *search, int exact)
{
        const char *at = text;
        size_t n = strlen(search);

        while (n) {
                uint32_t a = 0, b = 0;
                size_t la = ls_utf8_decode(at, left, &a), lb = ls_utf8_decode(search, n, &b);

                if (!la || !lb || (a != b && (exact || towlower((wint_t)a) != (wint_t)b)))
                        return 0;
                at += la;
                left -= la;
                search += lb;
                n -= lb;
        }
        return (size_t)(at - text);
}

int ls_tui_text_matches(const char *text, const char *search, size_t *ret_at, size_t *ret_len)
{
        int exact = has_upper(search);
        const char *end = text + strlen(text);

        for (const char *p = text; *p && *search; p++) {
                size_t len = (*p & 0xc0) == 0x80 ? 0
                                                 : starts_with(p, (size_t)(end - p), search, exact);

                if (len) {
                        *ret_at = (size_t)(p - text);
                        *ret_len = len;
                        return 1;
                }
        }
        return 0;
}

/* Among the rows, around the end. */
static int find_row(struct ls_tui *t, struct ls_tui_view *v, size_t from, int step)
{
        size_t row = from % v->n_rows;

        for (size_t i = 0; i < v->n_rows; i++) {
                char *text = v->ops->text(t, v, row);
                size_t at, len;
                int hit = text && ls_tui_text_matches(text, t->search, &at, &len);

                free(text);
                if (hit) {
                        v->cursor = row;
                        return 1;
                }
                row = step > 0 ? (row + 1) % v->n_rows : row ? row - 1 : v->n_rows - 1;
        }
        return 0;
}

int ls_tui_find(struct ls_tui *t, struct ls_tui_view *v, size_t from, int step)
{
        int hit;

        if (!*t->search || !v->n_rows)
                return 0;
        hit = v->ops->find ? v->ops->find(t, v, from, step) : find_row(t, v, from, step);
        ls_tui_goto(t, v->cursor);
        return hit;
}

int ls_tui_search_step(struct ls_tui *t, int step)
{
        struct ls_tui_view *v = ls_tui_top(t);
        size_t n = v->n_rows, before = v->cursor;

        if (!*t->search) {
                ls_tui_fail(t, "nothing was searched for yet: / searches");
                return 0;
        }
        if (!n || !ls_tui_find(t, v,
                               step > 0    ? (v->cursor + 1) % n
                               : v->cursor ? v->cursor - 1
                                           : n - 1,
                               step)) {
                ls_tui_fail(t, "'%s' is not here", t->search);
                return 0;
        }
        if (step > 0 ? v->cursor <= before : v->cursor >= before)
                ls_tui_say(t, v->cursor == before ? "the only one"
                              : step > 0          ? "from the top again"
                                                  : "from the end again");
        return 1;
}

uint64_t ls_tui_hash(uint64_t seed, const char *text)
{
        return XXH3_64bits_withSeed(text, strlen(text), seed);
}

void ls_tui_number(const struct ls_tui *t, char *buf, size_t size, uint64_t part)
{
        int width = (int)ls_number_width(&t->report);

        if (t->o->raw)
                snprintf(buf, size, "%*" PRIu64, width, part);
        else
                snprintf(buf, size, "%*.2f%%", width - 1,
                         100 * ls_share(part, t->report.aggregate->ticks));
}

/* Index of id in the sorted set, or where it would be. */
static size_t place_of(const struct ls_tui_set *s, uint64_t id)
{
        size_t low = 0, high = s->n;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (s->ids[mid] < id)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

int ls_tui_set_has(const struct ls_tui_set *s, uint64_t id)
{
        size_t at = place_of(s, id);

        return at < s->n && s->ids[at] == id;
}

void ls_tui_set_put(struct ls_tui_set *s, uint64_t id, int in)
{
        size_t at = place_of(s, id);

        if ((at < s->n && s->ids[at] == id) == in)
                return;
        if (!in) {
                memmove(s->ids + at, s->ids + at + 1, (--s->n - at) * sizeof(*s->ids));
                return;
        }
        if (s->n == s->capacity) {
                size_t capacity = s->capacity ? s->capacity * 2 : 64;
                uint64_t *bigger = realloc(s->ids, capacity * sizeof(*bigger));

                if (!bigger)
                        return;         /* the row stays as it is */
                s->ids = bigger;
                s->capacity = capacity;
        }
        memmove(s->ids + at + 1, s->ids + at, (s->n++ - at) * sizeof(*s->ids));
        s->ids[at] = id;
}

void ls_tui_set_free(struct ls_tui_set *s)
{
        free(s->ids);
        memset(s, 0, sizeof(*s));
}

unsigned ls_tui_heat(const struct ls_tui *t, uint64_t ticks, int selected)
{
        return selected ? LS_LOOK_SELECTED
                        : LS_LOOK_HEAT + ls_heat_level(ls_share(ticks, t->aggregate->ticks));
}

void ls_tui_put_number(const struct ls_tui *t, int y, int x, uint64_t ticks, int selected)
{
        char text[32];

        ls_tui_number(t, text, sizeof(text), ticks);
        ls_screen_put(y, x, (int)ls_number_width(&t->report), ls_tui_heat(t, ticks, selected),
                      text);
}

void ls_tui_put_margin(const struct ls_tui *t, int y, int x, uint64_t ticks, unsigned look)
{
        double margin = ls_margin(ls_share(ticks, t->aggregate->ticks), t->aggregate->effective);

        if (t->o->raw)
                ls_screen_printf(y, x, 8, look, "%8.0f", margin * (double)t->aggregate->ticks);
        else
                ls_screen_printf(y, x, 8, look, "%7.2f%%", 100 * margin);
}

const char *ls_tui_mark(int can_open, int is_open)
{
        static const char *const marks[2][2] = { { "+ ", "- " }, { "\u25b8 ", "\u25be " } };

        return can_open ? marks[ls_screen_utf8()][is_open] : "  ";
}
