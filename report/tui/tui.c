/* The command luasample tui, and the browser as a whole: what is loaded, which views are open, the
 * loop. Called by luasample.c, report/report.c (-t) and report/top.c. */
#include "report/tui/tui.h"

#include "formats/escape.h"
#include "formats/trace/reader.h"
#include "formats/wire/clock.h"
#include "report/model/lines.h"
#include "report/options/options.h"
#include "report/options/trace.h"
#include "report/tui/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void message(struct ls_tui *t, int is_error, const char *fmt, va_list ap)
{
        char text[sizeof(t->message)], *visible;

        vsnprintf(text, sizeof(text), fmt, ap);
        visible = ls_visible(text, strlen(text));
        snprintf(t->message, sizeof(t->message), "%s", visible ? visible : "");
        t->message_is_error = is_error;
        free(visible);
}

void ls_tui_say(struct ls_tui *t, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        message(t, 0, fmt, ap);
        va_end(ap);
}

void ls_tui_fail(struct ls_tui *t, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        message(t, 1, fmt, ap);
        va_end(ap);
}

/* Errors and warnings of what we call, "tui: --vmstate 'x': ..." */
static void take_error(void *ctx, const char *text)
{
        struct ls_tui *t = ctx;
        size_t name = strlen(t->cmd->name);

        if (!strncmp(text, t->cmd->name, name) && !strncmp(text + name, ": ", 2))
                text += name + 2;
        ls_tui_fail(t, "%s", text);
}

struct ls_tui_view *ls_tui_top(struct ls_tui *t)
{
        return &t->views[t->n_views - 1];
}

static int can_build(const struct ls_tui *t, const struct ls_tui_view *v)
{
        return t->profile || !(v->ops->needs & LS_TUI_NEEDS_PROFILE);
}

static int build_view(struct ls_tui *t, struct ls_tui_view *v)
{
        int r = can_build(t, v) ? v->ops->build(t, v) : 0;

        v->built = !r && can_build(t, v);
        if (!r)
                return 0;
        v->ops->forget(v);
        ls_tui_fail(t, "cannot show this: %s", strerror(-r));
        return r;
}

static void done_view(struct ls_tui_view *v)
{
        v->ops->forget(v);
        v->ops->close(v);
        memset(v, 0, sizeof(*v));
}

struct ls_tui_view *ls_tui_push(struct ls_tui *t, const struct ls_tui_view_ops *ops, void *data)
{
        struct ls_tui_view *v = &t->views[t->n_views];
        int r;

        if (t->n_views == LS_TUI_VIEWS) {
                struct ls_tui_view unused = { .ops = ops, .data = data };

                done_view(&unused);
                ls_tui_fail(t, "too many views are open: q goes back");
                return NULL;
        }
        *v = (struct ls_tui_view){ .ops = ops, .data = data };
        t->n_views++;
        r = build_view(t, v);
        if (r && t->n_views > 1)
                ls_tui_pop(t);
        if (r)
                return NULL;
        ls_tui_goto(t, v->cursor);
        return v;
}

void ls_tui_pop(struct ls_tui *t)
{
        done_view(&t->views[--t->n_views]);
}

struct ls_tui_view *ls_tui_base(struct ls_tui *t, const struct ls_tui_view_ops *ops, void *data)
{
        while (t->n_views)
                ls_tui_pop(t);
        return ls_tui_push(t, ops, data);
}

struct loaded {                         /* what depends on the trace and the filters */
        struct ls_labels *labels;
        struct ls_filter filter;
        struct ls_aggregate *aggregate;
};

static void free_loaded(struct loaded *l)
{
        ls_aggregate_free(l->aggregate);
        ls_filter_done(&l->filter);
        ls_labels_free(l->labels);
}

/* labels: taken when not NULL and all goes well; else made. */
static int load(const struct ls_tui *t, struct ls_profile *p, struct ls_labels *labels,
                struct loaded *ret)
{
        unsigned dims = t->o->by[0]->dims | (t->o->by[1] ? t->o->by[1]->dims : 0);
        int r = labels ? 0 : ls_labels_new(p, t->o->full_path, &ret->labels);

        if (ret->labels)
                ret->labels->inlined = t->o->inlined;
        if (!r)
                r = ls_filter_init(&ret->filter, p, labels ? labels : ret->labels, &t->o->want);
        if (!r)
                r = ls_aggregate_new(p, &ret->filter, dims, &ret->aggregate);
        if (r)
                free_loaded(ret);
        else if (labels)
                ret->labels = labels;
        return r;
}

static void use(struct ls_tui *t, struct ls_profile *p, const struct loaded *l)
{
        t->profile = p;
        t->labels = l->labels;
        t->filter = l->filter;
        t->aggregate = l->aggregate;
        t->report = (struct ls_report){ .o = t->o,
                                        .profile = p,
                                        .labels = t->labels,
                                        .filter = &t->filter,
                                        .aggregate = t->aggregate,
                                        .events = { t->aggregate } };
        ls_facts_init(&t->facts, p);
}

/* Places of the cursors, while the rows are made anew. */
struct keep { uint64_t identity[LS_TUI_VIEWS]; };

static void forget_views(struct ls_tui *t, struct keep *keep)
{
        for (unsigned i = 0; i < t->n_views; i++) {
                struct ls_tui_view *v = &t->views[i];

                keep->identity[i] = v->cursor < v->n_rows ? v->ops->identity(v, v->cursor) : 0;
                v->ops->forget(v);
        }
}

/* The cursor stays on its row; the row stays where it is on the screen. */
static void restore_cursor(struct ls_tui_view *v, uint64_t identity)
{
        for (size_t i = 0; identity && i < v->n_rows; i++) {
                if (v->ops->identity(v, i) != identity)
                        continue;
                v->top = i >= v->cursor            ? v->top + (i - v->cursor)
                         : v->top >= v->cursor - i ? v->top - (v->cursor - i)
                                                   : 0;
                v->cursor = i;
                break;
        }
        if (v->cursor >= v->n_rows)
                v->cursor = v->n_rows ? v->n_rows - 1 : 0;
}

static int build_views(struct ls_tui *t, const struct keep *keep)
{
        int first_error = 0;

        for (unsigned i = 0; i < t->n_views; i++) {
                struct ls_tui_view *v = &t->views[i];
                int at_top = v->cursor == 0, r = build_view(t, v);

                if (!first_error)
                        first_error = r;
                if (!r && !at_top)      /* who is at the top stays there */
                        restore_cursor(v, keep->identity[i]);
        }
        if (t->n_views)
                ls_tui_goto(t, ls_tui_top(t)->cursor);
        return first_error;
}

int ls_tui_rebuild(struct ls_tui *t, int aggregate)
{
        struct loaded fresh = { .labels = NULL };
        struct keep keep;
        int r;

        if (!t->profile)
                return 0;
        if (aggregate) {
                r = load(t, t->profile, t->labels, &fresh);
                if (r) {
                        if (r != -EINVAL)
                                ls_tui_fail(t, "cannot filter: %s", strerror(-r));
                        return r;
                }
        }
        forget_views(t, &keep);
        if (aggregate) {
                ls_aggregate_free(t->aggregate);
                ls_filter_done(&t->filter);
                use(t, t->profile, &fresh);
        }
        return build_views(t, &keep);
}

static void drop(struct ls_tui *t)
{
        struct loaded old = { t->labels, t->filter, t->aggregate };

        if (!t->profile)
                return;
        free_loaded(&old);
        if (t->own_profile)
                ls_profile_close(t->profile);
        t->profile = NULL;
}

#define EVERY_NS 1000000000u            /* between two looks at a trace that grows, */
#define LEAST_REST 9                    /* and at least so many times what a look costs */

static char *program_text(const struct ls_tui *t)
{
        struct ls_str s = t->profile ? ls_profile_str(t->profile, LS_INFO_COMMAND)
                                     : (struct ls_str){ "", 0 };

        if (t->live && !s.len)          /* its private name says nothing */
                return strdup("");
        return s.len ? ls_visible(s.s, s.len) : ls_visible(t->o->input, strlen(t->o->input));
}

/* A trace that is not there yet, or has no header yet, is no error: its time will come. */
static int read_again(struct ls_tui *t)
{
        struct loaded fresh = { .labels = NULL };
        struct ls_profile *p;
        const char *why;
        struct keep keep;
        char message_before[sizeof(t->message)];

        if (t->live->open ? t->live->open(t->live->ctx, &t->o->want, &p)
                          : ls_profile_open(t->o->input, &p, &why))
                return 0;
        memcpy(message_before, t->message, sizeof(message_before));
        if (load(t, p, NULL, &fresh)) {
                ls_profile_close(p);
                return 0;
        }
        memcpy(t->message, message_before,
               sizeof(message_before)); /* a filter that matches nothing yet */
        forget_views(t, &keep);
        drop(t);
        use(t, p, &fresh);
        if (t->live->shown)
                t->live->shown(t->live->ctx);
        free(t->program);
        t->program = program_text(t);
        build_views(t, &keep);
        return 1;
}

int ls_tui_refresh(struct ls_tui *t, int now)
{
        uint64_t start = ls_clock_ns(CLOCK_MONOTONIC), end;

        if (!t->live || t->paused || (!now && start < t->next_read_ns))
                return t->live != NULL;
        if (!t->live->growing(t->live->ctx) && t->profile && !now)
                return 1;
        read_again(t);
        end = ls_clock_ns(CLOCK_MONOTONIC);
        t->next_read_ns = end + ((end - start) * LEAST_REST > EVERY_NS ? (end - start) * LEAST_REST
                                                                       : EVERY_NS);
        return 1;
}

/* Finds the place that --annotate=WHAT names. */
static int find_place(struct ls_tui *t, struct ls_tui_place *ret)
{
        const char *what = t->o->annotate_what;
        struct ls_lines all;
        int r = ls_lines_init(&all, &t->report, what);

        memset(ret, 0, sizeof(*ret));
        if (r)
                return r;
        if (all.n_files)
                ret->source = all.files[0].source;
        for (uint32_t i = 1;
             all.wanted && ret->source && !ret->function && i < t->profile->n_functions; i++)
                if (all.wanted[i] == 2 && t->profile->functions[i].source == ret->source)
                        ret->function = i;
        ls_lines_done(&all);
        return ret->source ? 0 : -ENOENT;
}

static void open_first(struct ls_tui *t)
{
        struct ls_tui_place place;

        ls_tui_base(t, t->o->tree ? &ls_tui_tree : &ls_tui_flat, NULL);
        if (!t->o->annotate || !t->profile)
                return;
        if (find_place(t, &place))
                ls_tui_fail(t, "--annotate='%s': no such file or function in this trace",
                            t->o->annotate_what ? t->o->annotate_what : "");
        else
                ls_tui_open_source(t, &place);
}

static void loop(struct ls_tui *t)
{
        while (!t->quit) {
                int key;

                ls_tui_draw(t);
                key = ls_input_key(t);
                if (key == LS_KEY_QUIT)
                        break;
                if (key != LS_KEY_IDLE)
                        ls_tui_do_key(t, key);
        }
}

int ls_tui_run(const struct ls_command *cmd, struct ls_report_options *o,
               struct ls_profile *profile, const struct ls_tui_live *live)
{
        struct ls_tui t = { .cmd = cmd, .o = o, .live = live, .own_profile = live != NULL };
        struct loaded loaded = { .labels = NULL };
        int r, status;

        ls_error_to(take_error, &t);    /* warnings about the filters are the first message */
        r = profile ? load(&t, profile, NULL, &loaded) : 0;
        ls_error_to(NULL, NULL);
        if (r) {
                ls_error("%s: %s: %s", cmd->name, o->input, strerror(-r));
                return LS_EXIT_FAIL;
        }
        if (profile)
                use(&t, profile, &loaded);
        t.program = program_text(&t);
        status = t.program ? ls_screen_open(cmd, o->color, !o->no_mouse) : LS_EXIT_FAIL;
        if (!status) {
                ls_input_open();
                ls_error_to(take_error, &t);
                open_first(&t);
                loop(&t);
                while (t.n_views)
                        ls_tui_pop(&t);
                ls_error_to(NULL, NULL);
                ls_screen_close();
        }
        drop(&t);
        free(t.program);
        ls_filter_options_forget(&o->want);
        if (!status && (r = ls_input_close()) != 0)
                status = 128 + r;
        return status;
}

/* The trace may come from stdin: then keys come from the terminal itself. fd: it is opened before
 * rights are given up, and used when stdin was read. */
static int take_terminal(const struct ls_command *cmd, const char *input, int fd)
{
        if (strcmp(input, "-"))
                return 0;
        if (fd < 0 || dup2(fd, STDIN_FILENO) < 0) {
                ls_error("%s: the trace is on stdin, and keys have no terminal to come from: name "
                         "it with -i FILE",
                         cmd->name);
                return LS_EXIT_FAIL;
        }
        close(fd);
        return 0;
}

int ls_tui_browse(const struct ls_command *cmd, struct ls_report_options *o)
{
        struct ls_profile *p;
        int status, fd;

        if (!isatty(STDOUT_FILENO)) {
                ls_error("%s: the browser needs a terminal on stdout; luasample report writes text",
                         cmd->name);
                return LS_EXIT_FAIL;
        }
        fd = strcmp(o->input, "-") ? -1 : open("/dev/tty", O_RDWR | O_CLOEXEC);
        status = ls_open_trace(cmd->name, o->input, &p);
        if (status)
                return status;
        status = take_terminal(cmd, o->input, fd);
        if (!status)
                status = ls_tui_run(cmd, o, p, NULL);
        ls_profile_close(p);
        return ls_tui_exit(status);
}

static int tui_run(int argc, const char **argv)
{
        struct ls_report_options o;
        int status = ls_report_options_read(&ls_cmd_tui, argc, argv, &o);

        if (status != LS_GO_ON)
                return status;
        if (o.list_keys) {
                ls_tui_list_keys(stdout);
                return 0;
        }
        return ls_tui_browse(&ls_cmd_tui, &o);
}

const struct ls_command ls_cmd_tui = {
        .name = "tui",
        .summary = "browse a trace on the terminal",
        .usage = "[-i FILE] [OPTION...]",
        .options = ls_tui_option_table,
        .run = tui_run,
        .shows = 1,
};
