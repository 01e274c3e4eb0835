/* The small views of the terminal browser, of plain lines: the keys, the recording, what to group
 * by. Called through their tables. */
#include "formats/escape.h"
#include "report/model/keys.h"
#include "report/model/keys_label.h"
#include "report/tui/tui.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct text { char **lines; size_t capacity; };

static int add_line(struct ls_tui_view *v, char *line)
{
        struct text *x = v->data;

        if (line && v->n_rows == x->capacity) {
                size_t capacity = x->capacity ? x->capacity * 2 : 64;
                char **bigger = realloc(x->lines, capacity * sizeof(*bigger));

                if (!bigger) {
                        free(line);
                        return -ENOMEM;
                }
                x->lines = bigger;
                x->capacity = capacity;
        }
        if (!line)
                return -ENOMEM;
        x->lines[v->n_rows++] = line;
        return 0;
}

static int begin(struct ls_tui_view *v)
{
        if (!v->data)
                v->data = calloc(1, sizeof(struct text));
        return v->data ? 0 : -ENOMEM;
}

static void text_forget(struct ls_tui_view *v)
{
        struct text *x = v->data;

        while (x && v->n_rows)
                free(x->lines[--v->n_rows]);
}

static void text_close(struct ls_tui_view *v)
{
        struct text *x = v->data;

        if (x)
                free(x->lines);
        free(x);
}

/* A line is "left<tab>right". */
static void text_draw(const struct ls_tui *t, const struct ls_tui_view *v, size_t row, int y,
                      int selected)
{
        const char *line = ((const struct text *)v->data)->lines[row], *tab = strchr(line, '\t');
        int width = ls_screen_columns(), left = width < 40 ? 9 : 22;
        unsigned look = selected ? LS_LOOK_SELECTED : LS_LOOK_PLAIN;
        char key[64];

        if (!tab) {
                ls_screen_put_found(y, 1, width - 1, look, line, t->search);
                return;
        }
        snprintf(key, sizeof(key), "%.*s", (int)(tab - line), line);
        ls_screen_put_found(y, 1, left - 1, selected ? look : LS_LOOK_KEY, key, t->search);
        ls_screen_put_found(y, left + 1, width - left - 1, look, tab + 1, t->search);
}

static char *text_text(const struct ls_tui *t, const struct ls_tui_view *v, size_t row)
{
        (void)t;
        return strdup(((const struct text *)v->data)->lines[row]);
}

static uint64_t text_identity(const struct ls_tui_view *v, size_t row)
{
        (void)v;
        return row + 1;
}

static int help_build(struct ls_tui *t, struct ls_tui_view *v)
{
        unsigned bits = LS_TUI_IN_ALL | (t->live ? LS_TUI_IN_LIVE : 0);
        int r = begin(v);
        char *line;

        for (size_t i = 0; !r && (line = ls_tui_key_help(bits, i)) != NULL; i++)
                r = add_line(v, line);
        return r;
}

static void help_title(const struct ls_tui *t, const struct ls_tui_view *v, char *buf, size_t size)
{
        (void)t;
        (void)v;
        snprintf(buf, size, "keys");
}

static void help_head(const struct ls_tui *t, const struct ls_tui_view *v, int y)
{
        (void)t;
        (void)v;
        ls_screen_put(y, 1, ls_screen_columns(), LS_LOOK_HEAD, "Keys (q goes back)");
}

const struct ls_tui_view_ops ls_tui_help = {
        .name = "help",
        .bit = LS_TUI_IN_TEXT,
        .build = help_build,
        .forget = text_forget,
        .close = text_close,
        .title = help_title,
        .head = help_head,
        .draw = text_draw,
        .text = text_text,
        .identity = text_identity,
};

/* The header of the text report, a line a row. */
static int about_build(struct ls_tui *t, struct ls_tui_view *v)
{
        struct ls_report report = t->report;
        char *text = NULL, *rest = NULL;
        size_t size = 0;
        int r = begin(v);

        report.out = r ? NULL : open_memstream(&text, &size);
        if (!report.out)
                return -ENOMEM;
        report.color = 0;
        report.width = 0;
        ls_header_text(&report);
        fclose(report.out);
        for (char *line = strtok_r(text, "\n", &rest); !r && line;
             line = strtok_r(NULL, "\n", &rest)) {
                char *copy = NULL;

                if (strlen(line) < 12)  /* "# Command:  luajit app.lua" */
                        continue;
                if (asprintf(&copy, "%.*s\t%s", (int)strcspn(line + 2, " "), line + 2, line + 12) <
                    0)
                        copy = NULL;
                r = add_line(v, copy);
        }
        free(text);
        return r;
}

static void about_title(const struct ls_tui *t, const struct ls_tui_view *v, char *buf, size_t size)
{
        (void)t;
        (void)v;
        snprintf(buf, size, "the recording");
}

static void about_head(const struct ls_tui *t, const struct ls_tui_view *v, int y)
{
        (void)v;
        ls_screen_printf(y, 1, ls_screen_columns(), LS_LOOK_HEAD, "%s", t->o->input);
}

/* A line may be longer than the screen: the row of the cursor is told in the last line as well. */
static void about_open(struct ls_tui *t, struct ls_tui_view *v, size_t row)
{
        const char *line = ((const struct text *)v->data)->lines[row], *tab = strchr(line, '\t');

        ls_tui_say(t, "%s", tab ? tab + 1 : line);
}

const struct ls_tui_view_ops ls_tui_about = {
        .name = "about",
        .bit = LS_TUI_IN_TEXT | LS_TUI_IN_LIST,
        .needs = LS_TUI_NEEDS_PROFILE,
        .build = about_build,
        .forget = text_forget,
        .close = text_close,
        .title = about_title,
        .head = about_head,
        .draw = text_draw,
        .text = text_text,
        .identity = text_identity,
        .open_row = about_open,
};

#define LISTED_KEYS 10u                 /* of labels */

static int add_group(struct ls_tui *t, struct ls_tui_view *v, const struct ls_key *k,
                     const char *help)
{
        if (k == t->o->by[0])
                v->cursor = v->n_rows;
        return add_line(v, ls_print("%s\t%s", k->name, help));
}

/* Keys of labels, too, but for those that would have to be shown by other characters than they
 * have. */
static int add_label_groups(struct ls_tui *t, struct ls_tui_view *v)
{
        struct ls_label_key *keys;
        uint32_t n;
        int r = ls_label_keys(t->profile, NULL, &keys, &n);

        if (r)
                return r;
        for (uint32_t i = 0; !r && i < n && i < LISTED_KEYS; i++) {
                const struct ls_key *k = ls_label_key(t->profile, keys[i].label);
                char *visible = k ? ls_visible(k->name, strlen(k->name)) : NULL;

                if (visible && !strcmp(visible, k->name))
                        r = add_group(t, v, k, "by the values of this label");
                free(visible);
        }
        free(keys);
        return r;
}

static int groups_build(struct ls_tui *t, struct ls_tui_view *v)
{
        int r = begin(v);

        for (const struct ls_key *k = ls_keys; !r && k->name; k++)
                r = add_group(t, v, k, k->help);
        return r || !t->profile ? r : add_label_groups(t, v);
}

static void groups_title(const struct ls_tui *t, const struct ls_tui_view *v, char *buf,
                         size_t size)
{
        (void)t;
        (void)v;
        snprintf(buf, size, "group by");
}

static void groups_head(const struct ls_tui *t, const struct ls_tui_view *v, int y)
{
        (void)t;
        (void)v;
        ls_screen_put(y, 1, ls_screen_columns(), LS_LOOK_HEAD,
                      "Group by (Enter chooses, q goes back)");
}

static void groups_open(struct ls_tui *t, struct ls_tui_view *v, size_t row)
{
        const char *line = ((const struct text *)v->data)->lines[row];
        const struct ls_key *key = ls_key_find(line, (uint32_t)strcspn(line, "\t"));

        ls_tui_pop(t);
        t->o->by[0] = key;
        t->o->by[1] = NULL;
        if (!t->o->by[0]->is_frame)
                ls_tui_base(t, &ls_tui_flat, NULL);
        ls_tui_rebuild(t, 1);
        ls_tui_goto(t, 0);
}

const struct ls_tui_view_ops ls_tui_groups = {
        .name = "groups",
        .bit = LS_TUI_IN_TEXT | LS_TUI_IN_LIST,
        .build = groups_build,
        .forget = text_forget,
        .close = text_close,
        .title = groups_title,
        .head = groups_head,
        .draw = text_draw,
        .text = text_text,
        .identity = text_identity,
        .open_row = groups_open,
};
