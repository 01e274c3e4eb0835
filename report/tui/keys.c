/* The keys of the terminal browser: one table, from which come what a key does, the help screen,
 * the hints in the last line, and luasample tui --list-keys, against which the manual is checked.
 * Called by report/tui*.c. */
#include "cli/command.h"
#include "formats/escape.h"
#include "report/model/filter_text.h"
#include "report/options/options.h"
#include "report/tui/tui.h"

#include <curses.h>
#include <stdlib.h>
#include <string.h>

#define C(code) LS_KEY_CODE(code)
#define CTRL(letter) ((letter) & 31)

struct key {
        const char *name;               /* as the manual has it */
        const char *help;
        const char *hint;               /* a word for the last line; NULL = not there */
        unsigned bits;                  /* LS_TUI_IN_*: the views that it is for */
        void (*run)(struct ls_tui *t, int arg);
        int arg;
        int codes[5];                   /* ended by 0 */
};

static void key_move(struct ls_tui *t, int by)
{
        ls_tui_move(t, by);
}

static void key_page(struct ls_tui *t, int pages)
{
        long lines = ls_tui_body_rows(t);

        ls_tui_move(t, pages * (lines > 1 ? lines - 1 : 1));
}

static void key_end(struct ls_tui *t, int end)
{
        ls_tui_goto(t, end ? SIZE_MAX : 0);
}

static void row_do(struct ls_tui *t, void (*fn)(struct ls_tui *, struct ls_tui_view *, size_t))
{
        struct ls_tui_view *v = ls_tui_top(t);

        if (fn && v->cursor < v->n_rows)
                fn(t, v, v->cursor);
        v = ls_tui_top(t);
        ls_tui_goto(t, v->cursor);
}

static void key_open(struct ls_tui *t, int arg)
{
        (void)arg;
        row_do(t, ls_tui_top(t)->ops->open_row);
}

static void key_close(struct ls_tui *t, int arg)
{
        (void)arg;
        row_do(t, ls_tui_top(t)->ops->close_row);
}

static void key_open_all(struct ls_tui *t, int arg)
{
        (void)arg;
        row_do(t, ls_tui_top(t)->ops->open_all);
}

static int place_of_row(struct ls_tui *t, struct ls_tui_place *ret)
{
        struct ls_tui_view *v = ls_tui_top(t);

        *ret = (struct ls_tui_place){ .function = 0 };
        return v->ops->place && v->cursor < v->n_rows && v->ops->place(t, v, v->cursor, ret);
}

static void key_source(struct ls_tui *t, int arg)
{
        struct ls_tui_place place;

        (void)arg;
        place_of_row(t, &place);
        ls_tui_open_source(t, &place);
}

/* The other of flat table and call tree, with the cursor on the same function. */
static void key_tree(struct ls_tui *t, int arg)
{
        struct ls_tui_view *v = ls_tui_top(t);
        char *name = v->cursor < v->n_rows && v->ops->bit != LS_TUI_IN_SOURCE
                             ? v->ops->text(t, v, v->cursor)
                             : NULL;

        (void)arg;
        v = ls_tui_base(t, t->views[0].ops == &ls_tui_flat ? &ls_tui_tree : &ls_tui_flat, NULL);
        if (v && name)
                v->ops->seek(t, v, name);
        free(name);
}

static void key_inverse(struct ls_tui *t, int arg)
{
        (void)arg;
        t->o->inverse = !t->o->inverse;
        ls_tui_rebuild(t, 0);
        ls_tui_goto(t, 0);
}

static void sort_by(struct ls_tui *t, enum ls_sort sort)
{
        static const char *const names[] = { "self", "total", "name" };

        t->o->sort = sort;
        if (!ls_tui_rebuild(t, 0))
                ls_tui_say(t, "sorted by %s", names[sort]);
}

static void key_sort(struct ls_tui *t, int arg)
{
        int totals = t->o->by[0]->is_frame;

        (void)arg;
        sort_by(t, t->o->sort == LS_SORT_SELF && totals ? LS_SORT_TOTAL
                   : t->o->sort == LS_SORT_NAME         ? LS_SORT_SELF
                                                        : LS_SORT_NAME);
}

/* The mouse on a row, or on the head of a column. */
static void key_click(struct ls_tui *t, int open)
{
        struct ls_tui_view *v = ls_tui_top(t);
        size_t row = 0;
        enum ls_tui_part part = ls_tui_part_at(t, t->mouse_y, &row);
        int sort = part == LS_TUI_HEAD && v->built && v->ops->sort_at
                           ? v->ops->sort_at(t, v, t->mouse_x)
                           : -1;

        if (sort >= 0)
                sort_by(t, (enum ls_sort)sort);
        if (part != LS_TUI_ROW)
                return;
        ls_tui_goto(t, row);
        if (open)
                row_do(t, v->ops->open_row);
}

static void key_wheel(struct ls_tui *t, int rows)
{
        ls_tui_scroll(t, rows);
}

static void key_group(struct ls_tui *t, int arg)
{
        (void)arg;
        ls_tui_push(t, &ls_tui_groups, NULL);
}

static void key_raw(struct ls_tui *t, int arg)
{
        (void)arg;
        t->o->raw = !t->o->raw;
}

static void key_hot_line(struct ls_tui *t, int step)
{
        ls_tui_hot_line(t, step);
}

static void key_scroll(struct ls_tui *t, int columns)
{
        struct ls_tui_view *v = ls_tui_top(t);

        if (columns > 0 && v->left < 10000)
                v->left += (size_t)columns;
        else if (columns < 0)
                v->left -= v->left > (size_t)-columns ? (size_t)-columns : v->left;
}

static size_t search_from;              /* the row where the search began */
static size_t search_top;

static void search_changed(struct ls_tui *t, const char *text)
{
        struct ls_tui_view *v = ls_tui_top(t);

        snprintf(t->search, sizeof(t->search), "%s", text);
        v->cursor = search_from;
        v->top = search_top;
        if (*text && !ls_tui_find(t, v, search_from, 1))
                ls_tui_fail(t, "'%s' is not here", text);
}

static void key_search(struct ls_tui *t, int arg)
{
        struct ls_tui_view *v = ls_tui_top(t);
        char text[sizeof(t->search)] = "", before[sizeof(t->search)];

        (void)arg;
        snprintf(before, sizeof(before), "%s", t->search);
        search_from = v->cursor;
        search_top = v->top;
        if (ls_input_line(t, &(struct ls_prompt){ .text = "/", .changed = search_changed }, text,
                          sizeof(text))) {
                snprintf(t->search, sizeof(t->search), "%s", before);
                v->cursor = search_from;
                v->top = search_top;
                t->message[0] = '\0';
        } else if (!*text) {
                snprintf(t->search, sizeof(t->search), "%s", before);
                if (*before)
                        ls_tui_search_step(t, 1);
        }
}

static void key_next(struct ls_tui *t, int step)
{
        ls_tui_search_step(t, step);
}

/* Takes a line of filters; with an error said, all is as before. */
static int apply_filters(struct ls_tui *t, const char *line)
{
        struct ls_filter_options before = t->o->want;
        int r = ls_filter_options_read(t->cmd->name, line, &t->o->want);

        if (r)
                return r;
        r = ls_tui_rebuild(t, 1);
        if (r) {
                ls_filter_options_forget(&t->o->want);
                t->o->want = before;
                return r;
        }
        ls_filter_options_forget(&before);
        ls_tui_goto(t, ls_tui_top(t)->cursor);
        return 0;
}

static void key_filter(struct ls_tui *t, int arg)
{
        char *now = ls_filter_line(&t->o->want), text[LS_INPUT_BYTES];

        (void)arg;
        if (now && strlen(now) > LS_INPUT_MAX - 256) {
                ls_tui_fail(t, "the filters are too long to be edited: F takes them away");
                free(now);
                return;
        }
        snprintf(text, sizeof(text), "%s%s", now ? now : "", now && *now ? " " : "");
        free(now);
        while (!ls_input_line(t,
                              &(struct ls_prompt){ .text = "filter: ",
                                                   .options = ls_filter_option_table },
                              text, sizeof(text)))
                if (!apply_filters(t, text))
                        return;
        t->message[0] = '\0';
}

static void key_no_filter(struct ls_tui *t, int arg)
{
        (void)arg;
        if (!apply_filters(t, ""))
                ls_tui_say(t, "no filters");
}

/* The function of the row as one more --function or --exclude. */
static void key_add_filter(struct ls_tui *t, int exclude)
{
        struct ls_filter_options added = { .n_functions = 0 };
        struct ls_tui_place place;
        char *now = ls_filter_line(&t->o->want), *pattern = NULL, *more = NULL, *line = NULL;

        place_of_row(t, &place);
        if (!place.function) {
                ls_tui_fail(t, "this row is no function");
        } else if ((pattern = ls_filter_literal(t->labels->function[place.function])) != NULL) {
                if (exclude)
                        added.excludes[added.n_excludes++] = pattern;
                else
                        added.functions[added.n_functions++] = pattern;
                more = ls_filter_line(&added);
        }
        if (more && asprintf(&line, "%s%s%s", now ? now : "", now && *now ? " " : "", more) >= 0) {
                apply_filters(t, line);
                free(line);
        }
        free(now);
        free(pattern);
        free(more);
}

static void key_jit(struct ls_tui *t, int arg)
{
        (void)arg;
        ls_tui_open_jit(t);
}

static void key_about(struct ls_tui *t, int arg)
{
        (void)arg;
        if (ls_tui_top(t)->ops != &ls_tui_about)
                ls_tui_push(t, &ls_tui_about, NULL);
}

static void key_help(struct ls_tui *t, int arg)
{
        (void)arg;
        if (ls_tui_top(t)->ops != &ls_tui_help)
                ls_tui_push(t, &ls_tui_help, NULL);
}

static void key_pause(struct ls_tui *t, int arg)
{
        (void)arg;
        t->paused = !t->paused;
        if (!t->paused)
                ls_tui_refresh(t, 1);
        ls_tui_say(t, t->paused ? "paused: the recording goes on" : "goes on");
}

static void key_redraw(struct ls_tui *t, int arg)
{
        (void)t;
        (void)arg;
        ls_screen_redraw();
}

static int may_quit(struct ls_tui *t)
{
        char question[256] = "";

        if (t->live)
                t->live->question(t->live->ctx, question, sizeof(question));
        return !*question || ls_input_yes(t, question);
}

static void key_back(struct ls_tui *t, int arg)
{
        (void)arg;
        if (t->n_views > 1)
                ls_tui_pop(t);
        else if (may_quit(t))
                t->quit = 1;
}

static void key_quit(struct ls_tui *t, int arg)
{
        (void)arg;
        t->quit = may_quit(t);
}

static const struct key keys[] = {
        { "Up, k", "one row up", NULL, LS_TUI_IN_ALL, key_move, -1, { C(KEY_UP), 'k', CTRL('P') } },
        { "Down, j",
          "one row down",
          NULL,
          LS_TUI_IN_ALL,
          key_move,
          1,
          { C(KEY_DOWN), 'j', CTRL('N') } },
        { "PageUp, Ctrl-B",
          "a screen up",
          NULL,
          LS_TUI_IN_ALL,
          key_page,
          -1,
          { C(KEY_PPAGE), CTRL('B') } },
        { "PageDown, Space",
          "a screen down",
          NULL,
          LS_TUI_IN_ALL,
          key_page,
          1,
          { C(KEY_NPAGE), ' ', CTRL('F') } },
        { "Home, g", "the first row", NULL, LS_TUI_IN_ALL, key_end, 0, { C(KEY_HOME), 'g', '<' } },
        { "End, G", "the last row", NULL, LS_TUI_IN_ALL, key_end, 1, { C(KEY_END), 'G', '>' } },
        { "Enter, Right, l",
          "open the row: callers and callees, branches; or close it",
          "open",
          LS_TUI_IN_FLAT | LS_TUI_IN_TREE | LS_TUI_IN_LIST,
          key_open,
          0,
          { '\r', '\n', C(KEY_ENTER), C(KEY_RIGHT), 'l' } },
        { "Left, h",
          "close the row; a closed one: go to the one above it",
          NULL,
          LS_TUI_IN_FLAT | LS_TUI_IN_TREE,
          key_close,
          0,
          { C(KEY_LEFT), 'h', '-' } },
        { "*", "open the whole branch", NULL, LS_TUI_IN_TREE, key_open_all, 0, { '*' } },
        { "a",
          "the source of the row's function, a share per line",
          "source",
          LS_TUI_IN_FLAT | LS_TUI_IN_TREE,
          key_source,
          0,
          { 'a' } },
        { "t",
          "call tree or flat table, at the same function",
          "tree",
          LS_TUI_IN_MODEL,
          key_tree,
          0,
          { 't' } },
        { "i",
          "the tree turned over: what ran, below it its callers",
          "inverse",
          LS_TUI_IN_TREE,
          key_inverse,
          0,
          { 'i' } },
        { "]",
          "the next line with ticks",
          "next hot line",
          LS_TUI_IN_SOURCE,
          key_hot_line,
          1,
          { ']' } },
        { "[", "the line with ticks before", NULL, LS_TUI_IN_SOURCE, key_hot_line, -1, { '[' } },
        { "Enter",
          "in a source: what the JIT compiler made of the line",
          "why",
          LS_TUI_IN_SOURCE,
          key_open,
          0,
          { '\r', '\n', C(KEY_ENTER) } },
        { "Right, l",
          "in a source: further to the right",
          NULL,
          LS_TUI_IN_SOURCE,
          key_scroll,
          8,
          { C(KEY_RIGHT), 'l' } },
        { "Left, h",
          "in a source: further to the left",
          NULL,
          LS_TUI_IN_SOURCE,
          key_scroll,
          -8,
          { C(KEY_LEFT), 'h' } },
        { "/",
          "search while you type; small letters find capitals too",
          "search",
          LS_TUI_IN_ALL,
          key_search,
          0,
          { '/' } },
        { "n",
          "the next hit; in the tree also in closed branches",
          NULL,
          LS_TUI_IN_ALL,
          key_next,
          1,
          { 'n' } },
        { "N", "the hit before", NULL, LS_TUI_IN_ALL, key_next, -1, { 'N' } },
        { "f",
          "filters, as on the command line: --zone A* --vmstate gc",
          "filter",
          LS_TUI_IN_MODEL,
          key_filter,
          0,
          { 'f' } },
        { "F", "no filters", NULL, LS_TUI_IN_MODEL, key_no_filter, 0, { 'F' } },
        { "z",
          "only stacks with the row's function",
          NULL,
          LS_TUI_IN_FLAT | LS_TUI_IN_TREE,
          key_add_filter,
          0,
          { 'z' } },
        { "x",
          "no stacks with the row's function",
          NULL,
          LS_TUI_IN_FLAT | LS_TUI_IN_TREE,
          key_add_filter,
          1,
          { 'x' } },
        { "s", "sort by self, total, name", "sort", LS_TUI_IN_FLAT, key_sort, 0, { 's' } },
        { "b",
          "group by function, line, module, VM state, zone, ...",
          "group",
          LS_TUI_IN_FLAT | LS_TUI_IN_TREE,
          key_group,
          0,
          { 'b' } },
        { "c",
          "the JIT compiler: states, why code is slow, traces",
          "JIT",
          LS_TUI_IN_MODEL,
          key_jit,
          0,
          { 'c' } },
        { "r", "ticks in place of shares, and back", NULL, LS_TUI_IN_MODEL, key_raw, 0, { 'r' } },
        { "o",
          "about the recording: rates, losses, notes",
          NULL,
          LS_TUI_IN_MODEL,
          key_about,
          0,
          { 'o' } },
        { "p",
          "pause and go on: the recording does not pause",
          "pause",
          LS_TUI_IN_LIVE,
          key_pause,
          0,
          { 'p' } },
        { "Click",
          "the row; on the head of a column: sort by it",
          NULL,
          LS_TUI_IN_ALL,
          key_click,
          0,
          { LS_KEY_CLICK } },
        { "Double click",
          "open the row or close it, as Enter does",
          NULL,
          LS_TUI_IN_ALL,
          key_click,
          1,
          { LS_KEY_DOUBLE } },
        { "Wheel up", "three rows up", NULL, LS_TUI_IN_ALL, key_wheel, -3, { LS_KEY_WHEEL_UP } },
        { "Wheel down",
          "three rows down",
          NULL,
          LS_TUI_IN_ALL,
          key_wheel,
          3,
          { LS_KEY_WHEEL_DOWN } },
        { "?, F1", "these keys", "help", LS_TUI_IN_ALL, key_help, 0, { '?', C(KEY_F(1)) } },
        { "Ctrl-L", "draw the screen again", NULL, LS_TUI_IN_ALL, key_redraw, 0, { CTRL('L') } },
        { "q, Esc",
          "back; from the first view: quit",
          "quit",
          LS_TUI_IN_ALL,
          key_back,
          0,
          { 'q', 27, C(KEY_BACKSPACE), 127 } },
        { "Q, Ctrl-C", "quit", NULL, LS_TUI_IN_ALL, key_quit, 0, { 'Q' } },
};

#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static int has_code(const struct key *k, int code)
{
        for (size_t i = 0; i < sizeof(k->codes) / sizeof(k->codes[0]) && k->codes[i]; i++)
                if (k->codes[i] == code)
                        return 1;
        return 0;
}

void ls_tui_do_key(struct ls_tui *t, int code)
{
        unsigned bits = ls_tui_top(t)->ops->bit | (t->live ? LS_TUI_IN_LIVE : 0);
        const struct key *other = NULL;

        t->message[0] = '\0';
        for (size_t i = 0; i < N_KEYS; i++) {
                if (!has_code(&keys[i], code))
                        continue;
                if (keys[i].bits & bits) {
                        if (t->profile || keys[i].bits & LS_TUI_IN_TEXT)
                                keys[i].run(t, keys[i].arg);
                        else
                                ls_tui_say(t, "nothing was recorded yet");
                        return;
                }
                other = &keys[i];
        }
        if (other)
                ls_tui_fail(t, "%s is not for this view (? shows the keys)", other->name);
        else
                ls_tui_fail(t, "no such key (? shows the keys)");
}

void ls_tui_list_keys(FILE *out)
{
        for (size_t i = 0; i < N_KEYS; i++)
                fprintf(out, "%s\t%s\n", keys[i].name, keys[i].help);
}

char *ls_tui_key_help(unsigned bits, size_t row)
{
        char *line = NULL;

        for (size_t i = 0; i < N_KEYS; i++) {
                if (!(keys[i].bits & bits) || row--)
                        continue;
                if (asprintf(&line, "%s\t%s", keys[i].name, keys[i].help) < 0)
                        return NULL;
                return line;
        }
        return NULL;
}

int ls_tui_hint(unsigned bits, unsigned n, const char **ret_key, const char **ret_hint)
{
        for (size_t i = 0; i < N_KEYS; i++) {
                if (!(keys[i].bits & bits) || !keys[i].hint || n--)
                        continue;
                *ret_key = keys[i].name;
                *ret_hint = keys[i].hint;
                return 1;
        }
        return 0;
}
