/* Input of the terminal browser: keys, the mouse, typed lines, signals, news of the trace.
 * Called by report/tui*.c.
 *
 * Signals are blocked but while it waits, so none comes between a look and a wait. Curses has
 * handlers of its own for the size of the terminal and for Ctrl-Z. */
#include "cli/command.h"
#include "formats/escape.h"
#include "formats/wire/clock.h"
#include "report/tui/tui.h"

#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t came;      /* the signal that ends us */
static sigset_t mask_before;

static void on_signal(int sig)
{
        came = sig;
}

void ls_input_open(void)
{
        static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
        struct sigaction sa = { .sa_handler = on_signal }, old;
        sigset_t blocked;

        sigemptyset(&blocked);
        sigaddset(&blocked, SIGWINCH);
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
                if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN)
                        continue;       /* nohup: as it was */
                sigaction(signals[i], &sa, NULL);
                sigaddset(&blocked, signals[i]);
        }
        sigprocmask(SIG_BLOCK, &blocked, &mask_before);
}

int ls_input_close(void)
{
        sigprocmask(SIG_SETMASK, &mask_before, NULL);
        return came == SIGINT ? 0 : came;
}

int ls_tui_exit(int status)
{
        if (status > 128 && status != LS_EXIT_USAGE) {
                signal(status - 128, SIG_DFL);
                raise(status - 128);
        }
        return status;
}

/* Waits for a key, a signal, or news. Returns 0, or LS_KEY_*. */
static int wait_for_news(struct ls_tui *t)
{
        struct pollfd fds[2] = { { .fd = STDIN_FILENO, .events = POLLIN },
                                 { .fd = -1, .events = POLLIN } };
        struct timespec second = { .tv_sec = 1 };
        int n;

        if (t->live)
                fds[1].fd = t->live->fd(t->live->ctx);
        n = ppoll(fds, 2, t->live ? &second : NULL, &mask_before);
        if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))   /* the terminal is gone, whoever got
                                                                * its SIGHUP */
                came = SIGHUP;
        if (came)
                return LS_KEY_QUIT;
        if (!t->live || (n > 0 && !fds[1].revents))
                return 0;
        t->live->attend(t->live->ctx);
        return ls_tui_refresh(t, 0) ? LS_KEY_IDLE : 0;
}

#define DOUBLE_NS 400000000u            /* between the two clicks of a double one */

/* Events that came together: curses tells of them once, and gives the last one first. */
static struct { MEVENT events[16]; unsigned n; uint64_t at_ns; } mouse;

static void take_mouse(void)
{
        mouse.at_ns = ls_clock_ns(CLOCK_MONOTONIC);
        while (mouse.n < sizeof(mouse.events) / sizeof(mouse.events[0]) &&
               getmouse(&mouse.events[mouse.n]) == OK)
                mouse.n++;
}

/* Key for the oldest event of the mouse: LS_KEY_IDLE = none. */
static int mouse_key(struct ls_tui *t)
{
        static struct { uint64_t at_ns; int y, x; } last;
        const MEVENT *e = &mouse.events[--mouse.n];
        int is_double;

        if (e->bstate & BUTTON4_PRESSED)
                return LS_KEY_WHEEL_UP;
        if (e->bstate & BUTTON5_PRESSED)
                return LS_KEY_WHEEL_DOWN;
        if (!(e->bstate & BUTTON1_PRESSED))
                return LS_KEY_IDLE;
        is_double = last.at_ns && mouse.at_ns - last.at_ns < DOUBLE_NS && last.y == e->y &&
                    last.x == e->x;
        last.at_ns = is_double ? 0 : mouse.at_ns;       /* a third click is a first one */
        last.y = t->mouse_y = e->y;
        last.x = t->mouse_x = e->x;
        return is_double ? LS_KEY_DOUBLE : LS_KEY_CLICK;
}

int ls_input_key(struct ls_tui *t)
{
        for (;;) {
                wint_t c;
                int r;

                if (came)
                        return LS_KEY_QUIT;
                if (mouse.n)
                        return mouse_key(t);
                r = get_wch(&c);
                if (r == KEY_CODE_YES && c == KEY_RESIZE)
                        return LS_KEY_IDLE;
                if (r == KEY_CODE_YES && c == KEY_MOUSE) {
                        take_mouse();
                        continue;
                }
                if (r == KEY_CODE_YES)
                        return LS_KEY_CODE((int)c);
                if (r == OK)
                        return (int)c;
                r = wait_for_news(t);
                if (r)
                        return r;
        }
}

struct line {                           /* a line that is typed */
        wchar_t text[LS_INPUT_MAX];
        size_t n, at;                   /* characters; the cursor */
};

static void encode(const struct line *l, size_t from, char *out, size_t size)
{
        size_t n = 0;

        for (size_t i = from; i < l->n && n + 5 < size; i++) {
                uint32_t c = (uint32_t)l->text[i];

                if (c < 0x80) {
                        out[n++] = (char)c;
                } else if (c < 0x800) {
                        out[n++] = (char)(0xc0 | c >> 6);
                        out[n++] = (char)(0x80 | (c & 63));
                } else if (c < 0x10000) {
                        out[n++] = (char)(0xe0 | c >> 12);
                        out[n++] = (char)(0x80 | (c >> 6 & 63));
                        out[n++] = (char)(0x80 | (c & 63));
                } else {
                        out[n++] = (char)(0xf0 | c >> 18);
                        out[n++] = (char)(0x80 | (c >> 12 & 63));
                        out[n++] = (char)(0x80 | (c >> 6 & 63));
                        out[n++] = (char)(0x80 | (c & 63));
                }
        }
        out[n] = '\0';
}

static void decode(struct line *l, const char *s)
{
        size_t n = strlen(s);

        l->n = 0;
        while (n && l->n < LS_INPUT_MAX) {
                uint32_t c = 0;
                size_t len = ls_utf8_decode(s, n, &c);

                if (len)
                        l->text[l->n++] = (wchar_t)c;
                s += len ? len : 1;
                n -= len ? len : 1;
        }
        l->at = l->n;
}

static int columns_of(const wchar_t *s, size_t n)
{
        int columns = 0;

        for (size_t i = 0; i < n; i++) {
                int w = wcwidth(s[i]);

                columns += w < 0 ? 1 : w;
        }
        return columns;
}

static void draw_line(struct ls_tui *t, const char *prompt, const struct line *l)
{
        int y = ls_screen_rows() - 1, x, room;
        char text[LS_INPUT_BYTES];
        size_t from = 0;

        ls_tui_draw_above(t);
        if (*t->message && y > 1) {
                ls_screen_clear_line(y - 1, LS_LOOK_PLAIN);
                ls_screen_put(y - 1, 0, ls_screen_columns(),
                              t->message_is_error ? LS_LOOK_ERROR : LS_LOOK_BOLD, t->message);
        }
        ls_screen_clear_line(y, LS_LOOK_PLAIN);
        x = ls_screen_put(y, 0, ls_screen_columns() / 2, LS_LOOK_KEY, prompt);
        room = ls_screen_columns() - x - 1;
        while (from < l->at && columns_of(l->text + from, l->at - from) > room)
                from++;
        encode(l, from, text, sizeof(text));
        ls_screen_put(y, x, room, LS_LOOK_PLAIN, text);
        ls_screen_cursor(y, x + columns_of(l->text + from, l->at - from));
        ls_screen_flush();
}

static void cut(struct line *l, size_t from, size_t to)
{
        memmove(l->text + from, l->text + to, (l->n - to) * sizeof(*l->text));
        l->n -= to - from;
        l->at = from;
}

static void insert(struct line *l, wchar_t c)
{
        if (l->n == LS_INPUT_MAX)
                return;
        memmove(l->text + l->at + 1, l->text + l->at, (l->n - l->at) * sizeof(*l->text));
        l->text[l->at++] = c;
        l->n++;
}

static size_t word_start(const struct line *l)
{
        size_t at = l->at;

        while (at && l->text[at - 1] == L' ')
                at--;
        while (at && l->text[at - 1] != L' ')
                at--;
        return at;
}

#define CTRL(letter) ((letter) & 31)

/* Returns whether it was a key for the line. */
static int edit(struct line *l, int key)
{
        if (key == LS_KEY_CODE(KEY_BACKSPACE) || key == 127 || key == CTRL('H')) {
                if (l->at)
                        cut(l, l->at - 1, l->at);
        } else if (key == LS_KEY_CODE(KEY_DC) || key == CTRL('D')) {
                if (l->at < l->n)
                        cut(l, l->at, l->at + 1);
        } else if (key == CTRL('U')) {
                cut(l, 0, l->at);
        } else if (key == CTRL('K')) {
                l->n = l->at;
        } else if (key == CTRL('W')) {
                cut(l, word_start(l), l->at);
        } else if (key == LS_KEY_CODE(KEY_LEFT) || key == CTRL('B')) {
                l->at -= l->at > 0;
        } else if (key == LS_KEY_CODE(KEY_RIGHT) || key == CTRL('F')) {
                l->at += l->at < l->n;
        } else if (key == LS_KEY_CODE(KEY_HOME) || key == CTRL('A')) {
                l->at = 0;
        } else if (key == LS_KEY_CODE(KEY_END) || key == CTRL('E')) {
                l->at = l->n;
        } else if (key >= 0x20 && key < 0x110000) {
                insert(l, (wchar_t)key);
        } else {
                return 0;
        }
        return 1;
}

/* Whether the word before the cursor is the start of "--name". */
static int begins(const struct line *l, size_t from, const char *name)
{
        for (size_t i = from; i < l->at; i++) {
                size_t at = i - from;

                if (l->text[i] != (at < 2 ? L'-' : (wchar_t)name[at - 2]))
                        return 0;       /* at the end of name too: no zero is typed */
        }
        return 1;
}

/* Tab: the option that the word before the cursor begins; of several what they share, and all are
 * told. */
static void complete(struct ls_tui *t, struct line *l, const struct poptOption *options)
{
        size_t from = word_start(l), typed = l->at - from, shared = 0, n = 0;
        const char *first = NULL;
        char all[sizeof(t->message)] = "";

        if (typed && l->text[l->at - 1] == L' ')
                from = l->at;           /* a new word */
        typed = l->at - from;
        for (const struct poptOption *o = options; o->longName; o++) {
                if (!begins(l, from, o->longName))
                        continue;
                snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s--%s", n ? " " : "",
                         o->longName);
                if (!n++) {
                        first = o->longName;
                        shared = strlen(first);
                }
                while (strncmp(first, o->longName, shared))
                        shared--;
        }
        for (size_t i = typed; n && i < shared + 2; i++)
                insert(l, i < 2 ? L'-' : (wchar_t)first[i - 2]);
        if (n == 1)
                insert(l, L' ');
        else
                ls_tui_say(t, "%s", n ? all : "no filter begins so");
}

int ls_input_line(struct ls_tui *t, const struct ls_prompt *prompt, char *buf, size_t size)
{
        struct line l;
        int r = -ECANCELED;

        decode(&l, buf);
        for (;;) {
                int key;

                draw_line(t, prompt->text, &l);
                key = ls_input_key(t);
                if (key == LS_KEY_QUIT && came == SIGINT)
                        came = 0;       /* Ctrl-C: no line */
                if (key == LS_KEY_QUIT || key == 27 || key == CTRL('G'))
                        break;
                if (key == '\r' || key == '\n' || key == LS_KEY_CODE(KEY_ENTER)) {
                        encode(&l, 0, buf, size);
                        r = 0;
                        break;
                }
                if (key == '\t' && prompt->options) {
                        t->message[0] = '\0';
                        complete(t, &l, prompt->options);
                }
                if (!edit(&l, key))
                        continue;
                t->message[0] = '\0';
                encode(&l, 0, buf, size);
                if (prompt->changed)
                        prompt->changed(t, buf);
        }
        ls_screen_cursor(-1, 0);
        return r;
}

int ls_input_yes(struct ls_tui *t, const char *question)
{
        for (;;) {
                int key, y = ls_screen_rows() - 1;

                ls_tui_draw_above(t);
                ls_screen_clear_line(y, LS_LOOK_PLAIN);
                ls_screen_put(y, 0, ls_screen_columns(), LS_LOOK_ERROR, question);
                ls_screen_flush();
                key = ls_input_key(t);
                if (key == LS_KEY_QUIT)
                        return 1;
                if (key != LS_KEY_IDLE && key < LS_KEY_CLICK)
                        return key == 'y' || key == 'Y';
        }
}
