/* The terminal browser: what report/tui/tui.c, the commands tui, top and report -t, wants of the
 * screen, and what its files the files of tui/ share. One thread, one browser in a process. */
#ifndef LS_REPORT_TUI_TUI_H
#define LS_REPORT_TUI_TUI_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "report/jit/jit.h"
#include "report/model/facts.h"
#include "report/view/view.h"

struct ls_tui;
struct ls_tui_view;

struct ls_tui_place {                   /* what a row is about: where its source would be */
        uint32_t function;              /* 0 = none */
        uint32_t source;                /* 0 = none */
        uint32_t line;                  /* to go to; 0 = the hottest of the function, or of the
                                         * source */
};

/* A kind of view: rows, a cursor, and what keys do to them. Rows are numbered from 0. */
struct ls_tui_view_ops {
        const char *name;
        unsigned bit;                   /* LS_TUI_IN_*: which rows of the key table are for it */
        unsigned needs;                 /* LS_TUI_NEEDS_*: what must be there to build it */
        int (*build)(struct ls_tui *t, struct ls_tui_view *v);  /* makes the rows; none are there. 0
                                                                 * or -errno */
        void (*forget)(struct ls_tui_view *v);                  /* frees what build made */
        void (*close)(struct ls_tui_view *v);                   /* frees all; after forget */
        void (*title)(const struct ls_tui *t, const struct ls_tui_view *v, char *buf, size_t size);
        void (*head)(const struct ls_tui *t, const struct ls_tui_view *v, int y);
        void (*draw)(const struct ls_tui *t, const struct ls_tui_view *v, size_t row, int y,
                     int selected);
        /* what search looks at; to be freed; NULL = nothing */
        char *(*text)(const struct ls_tui *t, const struct ls_tui_view *v, size_t row);
        /* the same for the same thing after the rows were made anew */
        uint64_t (*identity)(const struct ls_tui_view *v, size_t row);
        /* The rest may be NULL. */
        /* the order by the column there; -1 = none */
        int (*sort_at)(const struct ls_tui *t, const struct ls_tui_view *v, int x);
        void (*open_row)(struct ls_tui *t, struct ls_tui_view *v, size_t row);
        void (*close_row)(struct ls_tui *t, struct ls_tui_view *v, size_t row);
        void (*open_all)(struct ls_tui *t, struct ls_tui_view *v, size_t row);
        int (*place)(const struct ls_tui *t, const struct ls_tui_view *v, size_t row,
                     struct ls_tui_place *ret);
        /* Puts the cursor on the row called so, when there is one. Returns whether. */
        int (*seek)(struct ls_tui *t, struct ls_tui_view *v, const char *name);
        /* Search among more than the rows: puts the cursor on the next hit from row from on, in the
         * direction of step. Returns whether there is one. NULL = rows only. */
        int (*find)(struct ls_tui *t, struct ls_tui_view *v, size_t from, int step);
};

#define LS_TUI_IN_FLAT   1u
#define LS_TUI_IN_TREE   2u
#define LS_TUI_IN_SOURCE 4u
#define LS_TUI_IN_TEXT   8u             /* help, the recording, the list of groupings */
#define LS_TUI_IN_LIST   32u            /* of these, those whose rows open */
#define LS_TUI_IN_MODEL  (LS_TUI_IN_FLAT | LS_TUI_IN_TREE | LS_TUI_IN_SOURCE)
#define LS_TUI_IN_ALL    (LS_TUI_IN_MODEL | LS_TUI_IN_TEXT)
#define LS_TUI_IN_LIVE   16u            /* luasample top only */

#define LS_TUI_NEEDS_PROFILE 1u

struct ls_tui_view {
        const struct ls_tui_view_ops *ops;
        size_t n_rows, cursor, top;
        size_t left;                    /* columns of the text that are scrolled out */
        int built;                      /* its rows are there; else only close may be called */
        void *data;                     /* the kind's own */
};

struct ls_tui_live {                    /* of luasample top; all may be called at any time between
                                         * keys */
        void *ctx;
        int (*fd)(void *ctx);           /* to wait for, beside the keyboard; -1 = none */
        void (*attend)(void *ctx);      /* fd has something, or a second went by */
        int (*growing)(void *ctx);      /* the trace may have grown since it was read last */
        /* Opens the trace as it is now; may move the bounds of time of want. NULL = that of the
         * name. */
        int (*open)(void *ctx, struct ls_filter_options *want, struct ls_profile **ret);
        void (*shown)(void *ctx);       /* what was opened last is in use now; with open */
        void (*status)(void *ctx, char *buf, size_t size);      /* for the title: "running 12 s" */
        /* Asks about what quitting would end; empty = nothing. */
        void (*question)(void *ctx, char *buf, size_t size);
};

#define LS_TUI_VIEWS 8

struct ls_tui {
        const struct ls_command *cmd;   /* names it in errors */
        struct ls_report_options *o;    /* changed by keys */
        struct ls_profile *profile;     /* NULL = nothing was read yet (top) */
        struct ls_labels *labels;
        struct ls_filter filter;
        struct ls_aggregate *aggregate;
        struct ls_facts facts;
        struct ls_report report;        /* what the models want */
        char *program;                  /* the command that was recorded, or the trace's name */
        struct ls_tui_view views[LS_TUI_VIEWS];
        unsigned n_views;               /* the last is shown */
        char message[512];              /* for the last line, until the next key */
        int message_is_error;
        char search[256];               /* UTF-8; empty = none */
        const struct ls_tui_live *live; /* NULL = a finished trace, or one read once */
        int own_profile;                /* read by us: top */
        int paused;
        int mouse_y, mouse_x;           /* of the last LS_KEY_CLICK or LS_KEY_DOUBLE */
        uint64_t next_read_ns;          /* CLOCK_MONOTONIC of the next look at the trace */
        int quit;
};

/* tui.c */
struct ls_tui_view *ls_tui_top(struct ls_tui *t);
/* Opens a view on top of the others. data is taken. Returns the view; NULL after a message. */
struct ls_tui_view *ls_tui_push(struct ls_tui *t, const struct ls_tui_view_ops *ops, void *data);
void ls_tui_pop(struct ls_tui *t);
/* Puts another in the place of the lowest view; those above it are closed. */
struct ls_tui_view *ls_tui_base(struct ls_tui *t, const struct ls_tui_view_ops *ops, void *data);
/* After a change of options: filters and samples when aggregate is set, then all views. Returns 0,
 * or -errno after a message. */
int ls_tui_rebuild(struct ls_tui *t, int aggregate);
void ls_tui_say(struct ls_tui *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ls_tui_fail(struct ls_tui *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Reads the trace again when it is due: top. Returns whether the screen changed. */
int ls_tui_refresh(struct ls_tui *t, int now);
/* Browses, and frees the filters of o, which it may have changed. profile: not closed; NULL with
 * live, which reads o->input itself. Returns the exit status; above 128: a signal came
 * (ls_tui_exit). */
int ls_tui_run(const struct ls_command *cmd, struct ls_report_options *o,
               struct ls_profile *profile, const struct ls_tui_live *live);

/* Opens o->input and browses it. Returns the exit status. */
int ls_tui_browse(const struct ls_command *cmd, struct ls_report_options *o);
/* Ends the process by the signal that ended the browser, if one did; else returns status. */
int ls_tui_exit(int status);

/* screen.c: curses */
enum ls_tui_look {
        LS_LOOK_PLAIN,
        LS_LOOK_DIM,
        LS_LOOK_BOLD,
        LS_LOOK_TITLE,
        LS_LOOK_HEAD,
        LS_LOOK_KEY,
        LS_LOOK_ERROR,
        LS_LOOK_SELECTED,
        LS_LOOK_HEAT,
        /* + ls_heat_level */
};
/* Returns 0, or the exit status after an error. */
int ls_screen_open(const struct ls_command *cmd, enum ls_color_when color, int mouse);
void ls_screen_close(void);
int ls_screen_rows(void);               /* of the whole terminal */
int ls_screen_columns(void);
int ls_screen_utf8(void);               /* whether more than ASCII can be shown */
void ls_screen_clear_line(int y, unsigned look);
/* Writes text at (y, x), at most width columns, cut with "..."; what no terminal can show becomes
 * "?". Returns columns. */
int ls_screen_put(int y, int x, int width, unsigned look, const char *text);
int ls_screen_printf(int y, int x, int width, unsigned look, const char *fmt, ...)
        __attribute__((format(printf, 5, 6)));
/* Writes text as ls_screen_put, with all that search matches set off. */
int ls_screen_put_found(int y, int x, int width, unsigned look, const char *text,
                        const char *search);
void ls_screen_bar(int y, int x, int width, double share, unsigned look);
void ls_screen_cursor(int y, int x);    /* shows the cursor there; y < 0 hides it */
void ls_screen_flush(void);
void ls_screen_redraw(void);            /* forgets what the terminal shows */

/* Draws everything: title, facts, rows, last line. */
void ls_tui_draw(struct ls_tui *t);
/* Draws the screen without the last line: prompts use it. */
void ls_tui_draw_above(struct ls_tui *t);
/* Lines for rows of the view that is shown. */
int ls_tui_body_rows(const struct ls_tui *t);
/* Part that is on line y of the screen. */
enum ls_tui_part { LS_TUI_NOTHING, LS_TUI_HEAD, LS_TUI_ROW };
enum ls_tui_part ls_tui_part_at(struct ls_tui *t, int y, size_t *ret_row);

/* input.c: keys, prompts, signals */
#define LS_INPUT_MAX 4096               /* characters of a typed line, */
#define LS_INPUT_BYTES (LS_INPUT_MAX * 4 + 1)   /* as UTF-8 */
#define LS_KEY_IDLE   -1                /* something other than a key happened: draw again */
#define LS_KEY_QUIT   -2                /* a signal ended it */
#define LS_KEY_CODE(c) (0x1000000 + (c))        /* a key of curses, not a character */
#define LS_KEY_CLICK      0x2000000     /* the mouse; from here on no key is greater */
#define LS_KEY_DOUBLE     0x2000001
#define LS_KEY_WHEEL_UP   0x2000002
#define LS_KEY_WHEEL_DOWN 0x2000003
void ls_input_open(void);
int ls_input_close(void);               /* returns the signal that ended it; 0 = none, or Ctrl-C,
                                         * which is a way to quit */
int ls_input_key(struct ls_tui *t);
struct ls_prompt {
        const char *text;               /* stands before what is typed */
        void (*changed)(struct ls_tui *t, const char *text);    /* called after each key; may be
                                                                 * NULL */
        const struct poptOption *options;       /* whose names Tab completes; NULL = none */
};
/* A line typed at the bottom. buf: what stands there at first, and the result. Returns 0, or
 * -ECANCELED. */
int ls_input_line(struct ls_tui *t, const struct ls_prompt *prompt, char *buf, size_t size);
/* A question; whether the answer was y. */
int ls_input_yes(struct ls_tui *t, const char *question);

/* keys.c: one table */
void ls_tui_do_key(struct ls_tui *t, int key);
void ls_tui_list_keys(FILE *out);
/* Row of the help screen: "key<tab>help"; to be freed; NULL past the end. view bits: which keys. */
char *ls_tui_key_help(unsigned bits, size_t row);
/* The n-th hint for the last line. Returns 0 past the end. */
int ls_tui_hint(unsigned bits, unsigned n, const char **ret_key, const char **ret_hint);

/* list.c: what all views share */
void ls_tui_move(struct ls_tui *t, long by);
void ls_tui_goto(struct ls_tui *t, size_t row);
/* Moves what is shown; the cursor stays on its row as long as that is there. */
void ls_tui_scroll(struct ls_tui *t, long by);
/* The next row that search matches, from row from on. Returns whether there is one. */
int ls_tui_find(struct ls_tui *t, struct ls_tui_view *v, size_t from, int step);
int ls_tui_text_matches(const char *text, const char *search, size_t *ret_at, size_t *ret_len);
int ls_tui_search_step(struct ls_tui *t, int step);
uint64_t ls_tui_hash(uint64_t seed, const char *text);
/* A share or, with --raw, ticks; right-aligned in ls_number_width columns. */
void ls_tui_number(const struct ls_tui *t, char *buf, size_t size, uint64_t part);
/* The look of so many ticks. */
unsigned ls_tui_heat(const struct ls_tui *t, uint64_t ticks, int selected);
/* Puts the number on the screen, in the colour of its heat; and its margin, in 8 columns. */
void ls_tui_put_number(const struct ls_tui *t, int y, int x, uint64_t ticks, int selected);
void ls_tui_put_margin(const struct ls_tui *t, int y, int x, uint64_t ticks, unsigned look);
/* Mark before a name: whether the row opens, and is open. Two columns. */
const char *ls_tui_mark(int can_open, int is_open);
/* A set of rows by identity that the user opened or closed. */
struct ls_tui_set { uint64_t *ids; size_t n, capacity; };
int ls_tui_set_has(const struct ls_tui_set *s, uint64_t id);
void ls_tui_set_put(struct ls_tui_set *s, uint64_t id, int in);
void ls_tui_set_free(struct ls_tui_set *s);

/* The views. */
extern const struct ls_tui_view_ops ls_tui_flat, ls_tui_tree, ls_tui_source, ls_tui_help,
        ls_tui_about, ls_tui_groups, ls_tui_jit;
/* source.c: opens the source of a place; says why there is none. */
void ls_tui_open_source(struct ls_tui *t, const struct ls_tui_place *place);
void ls_tui_hot_line(struct ls_tui *t, int step);
/* jit.c: what the JIT compiler made of all, and of one line; says why there is nothing. */
void ls_tui_open_jit(struct ls_tui *t);
void ls_tui_open_jit_line(struct ls_tui *t, const struct ls_jit_line *line);
/* The marks of lines; none when the event has no time. Returns 0 or -errno. */
int ls_tui_jit_marks(const struct ls_tui *t, struct ls_jit_lines *ret);

#endif
