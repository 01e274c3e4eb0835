/* The screen of the terminal browser: the only file that writes with curses. Called by
 * report/tui*.c.
 *
 * Text comes as checked UTF-8 (ls_visible); widths are those of the locale, since the terminal was
 * made for it. Only the character type is taken from the environment: numbers keep their point. */
#include "cli/command.h"
#include "formats/escape.h"
#include "report/tui/tui.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_TEXT 1024                   /* columns of one text */

enum { PAIR_HEAT = 1, PAIR_TITLE = PAIR_HEAT + LS_HEAT_LEVELS, PAIR_KEY, PAIR_ERROR, PAIR_FOUND };

static int with_color, utf8;

static void open_colors(enum ls_color_when when)
{
        static const short heat[LS_HEAT_LEVELS] = { COLOR_GREEN, COLOR_YELLOW, COLOR_RED,
                                                    COLOR_RED };
        const char *no = getenv("NO_COLOR");
        short background;

        with_color = when != LS_COLOR_NEVER && (when == LS_COLOR_ALWAYS || !no || !*no) &&
                     has_colors() && start_color() == OK && COLOR_PAIRS > PAIR_FOUND;
        if (!with_color)
                return;
        background = use_default_colors() == OK ? -1 : COLOR_BLACK;
        for (unsigned i = 0; i < LS_HEAT_LEVELS; i++)
                init_pair((short)(PAIR_HEAT + i), heat[i], background);
        init_pair(PAIR_TITLE, COLOR_WHITE, COLOR_BLUE);
        init_pair(PAIR_KEY, COLOR_CYAN, background);
        init_pair(PAIR_ERROR, COLOR_RED, background);
        init_pair(PAIR_FOUND, COLOR_BLACK, COLOR_YELLOW);
}

int ls_screen_open(const struct ls_command *cmd, enum ls_color_when color, int mouse)
{
        const char *term = getenv("TERM");

        if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) {
                ls_error("%s: the browser needs a terminal; luasample report writes text",
                         cmd->name);
                return LS_EXIT_FAIL;
        }
        setlocale(LC_CTYPE, "");
        utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
        set_escdelay(25);
        if (!newterm(NULL, stdout, stdin)) {
                ls_error("%s: terminal '%s' is not known; set TERM to a known one, or use "
                         "luasample report",
                         cmd->name, term ? term : "");
                return LS_EXIT_FAIL;
        }
        open_colors(color);
        cbreak();
        noecho();
        nonl();
        intrflush(stdscr, FALSE);
        keypad(stdscr, TRUE);
        nodelay(stdscr, TRUE);
        curs_set(0);
        mouseinterval(0);               /* two clicks are told by input.c: else each waits whether a
                                         * second comes */
        if (mouse)
                mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED,
                          NULL); /* nothing without one */
        return 0;
}

void ls_screen_close(void)
{
        curs_set(1);
        endwin();
}

int ls_screen_rows(void)
{
        return LINES;
}

int ls_screen_columns(void)
{
        return COLS;
}

int ls_screen_utf8(void)
{
        return utf8;
}

/* Without colours heat is told by bold. */
static attr_t attr_of(unsigned look, short *ret_pair)
{
        static const struct { attr_t color, mono; short pair; } looks[] = {
                [LS_LOOK_PLAIN] = { A_NORMAL, A_NORMAL, 0 },
                [LS_LOOK_DIM] = { A_DIM, A_NORMAL, 0 },
                [LS_LOOK_BOLD] = { A_BOLD, A_BOLD, 0 },
                [LS_LOOK_TITLE] = { A_BOLD, A_REVERSE, PAIR_TITLE },
                [LS_LOOK_HEAD] = { A_UNDERLINE, A_UNDERLINE, 0 },
                [LS_LOOK_KEY] = { A_BOLD, A_BOLD, PAIR_KEY },
                [LS_LOOK_ERROR] = { A_BOLD, A_BOLD, PAIR_ERROR },
                [LS_LOOK_SELECTED] = { A_REVERSE, A_REVERSE, 0 },
                [LS_LOOK_HEAT] = { A_NORMAL, A_NORMAL, 0 },
        };

        *ret_pair = 0;
        if (look <= LS_LOOK_HEAT) {
                *ret_pair = with_color ? looks[look].pair : 0;
                return with_color ? looks[look].color : looks[look].mono;
        }
        look -= LS_LOOK_HEAT;
        if (with_color)
                *ret_pair = (short)(PAIR_HEAT + look - 1);
        return look == LS_HEAT_LEVELS || (!with_color && look + 1 >= LS_HEAT_LEVELS) ? A_BOLD
                                                                                     : A_NORMAL;
}

static void set_look(unsigned look)
{
        short pair;
        attr_t attr = attr_of(look, &pair);

        attr_set(attr, pair, NULL);
}

void ls_screen_clear_line(int y, unsigned look)
{
        set_look(look);
        move(y, 0);
        for (int x = 0; x < COLS; x++)
                addch(' ');
        set_look(LS_LOOK_PLAIN);
}

/* The next character as the terminal can show it, and its columns. Returns bytes. */
static size_t next_char(const char *s, size_t n, wchar_t *ret, int *ret_columns)
{
        uint32_t c = 0;
        size_t len = ls_utf8_decode(s, n, &c);

        *ret = (wchar_t)c;
        *ret_columns = len ? wcwidth((wchar_t)c) : -1;
        if (*ret_columns < 0 || (!utf8 && c > 0x7e)) {
                *ret = L'?';
                *ret_columns = 1;
        }
        return len ? len : 1;
}

/* Converts as much of text as fits. Returns its columns; *ret_rest is the number of bytes that did
 * not fit. */
static int convert(const char *text, size_t n, int width, wchar_t *out, size_t *ret_chars,
                   size_t *ret_rest)
{
        int columns = 0;
        size_t chars = 0;

        while (n && *text && chars < MAX_TEXT) {
                wchar_t c;
                int w;
                size_t len = next_char(text, n, &c, &w);

                if (columns + w > width)
                        break;
                out[chars++] = c;
                columns += w;
                text += len;
                n -= len;
        }
        *ret_chars = chars;
        *ret_rest = *text ? n : 0;
        return columns;
}

static int put_part(int y, int x, int width, unsigned look, const char *text, size_t n,
                    size_t *ret_rest)
{
        wchar_t out[MAX_TEXT + 1];
        size_t chars;
        int columns = convert(text, n, width, out, &chars, ret_rest);

        set_look(look);
        mvaddnwstr(y, x, out, (int)chars);
        set_look(LS_LOOK_PLAIN);
        return columns;
}

static int clip(int y, int x, int width)
{
        if (y < 0 || y >= LINES || x < 0 || x >= COLS)
                return 0;
        if (width > COLS - x)
                width = COLS - x;
        return width < 0 ? 0 : width > MAX_TEXT ? MAX_TEXT : width;
}

int ls_screen_put(int y, int x, int width, unsigned look, const char *text)
{
        wchar_t out[MAX_TEXT + 1];
        size_t n, rest = 0, bytes = strnlen(text, (size_t)MAX_TEXT * 8);
        int columns;

        width = clip(y, x, width);
        columns = convert(text, bytes, width, out, &n, &rest);
        if (rest && width > 6) {        /* as ls_put_fit cuts */
                columns = put_part(y, x, width - 3, look, text, bytes, &rest);
                return columns + put_part(y, x + columns, 3, look, "...", 3, &rest);
        }
        set_look(look);
        mvaddnwstr(y, x, out, (int)n);
        set_look(LS_LOOK_PLAIN);
        return columns;
}

int ls_screen_printf(int y, int x, int width, unsigned look, const char *fmt, ...)
{
        char text[MAX_TEXT];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        return ls_screen_put(y, x, width, look, text);
}

int ls_screen_put_found(int y, int x, int width, unsigned look, const char *text,
                        const char *search)
{
        attr_t mono = with_color ? 0 : A_UNDERLINE | (look == LS_LOOK_SELECTED ? A_REVERSE : 0);
        size_t at, len, from = 0;
        int columns = ls_screen_put(y, x, width, look, text);

        width = clip(y, x, width);
        while (*search && ls_tui_text_matches(text + from, search, &at, &len)) {
                wchar_t out[MAX_TEXT + 1];
                size_t n, rest;
                int before, found;

                from += at;
                before = convert(text, from, width, out, &n, &rest);
                found = convert(text + from, len, width - before, out, &n, &rest);
                if (before + found > columns || (columns == width && before + found > width - 3))
                        break;          /* it is cut off */
                mvchgat(y, x + before, found, A_BOLD | mono, (short)(with_color ? PAIR_FOUND : 0),
                        NULL);
                from += len;
        }
        return columns;
}

void ls_screen_bar(int y, int x, int width, double share, unsigned look)
{
        static const wchar_t eighths[] = L" \u258f\u258e\u258d\u258c\u258b\u258a\u2589";
        wchar_t out[64];
        int n = (int)(share * width * 8 + 0.5), i;

        width = clip(y, x, width);
        for (i = 0; i < width && i < 60 && n >= 4; i++, n -= 8)
                out[i] = !utf8 ? L'#' : n >= 8 ? L'\u2588' : eighths[n];
        set_look(look);
        mvaddnwstr(y, x, out, i);
        set_look(LS_LOOK_PLAIN);
}

static int cursor_y = -1, cursor_x;

void ls_screen_cursor(int y, int x)
{
        cursor_y = y;
        cursor_x = x;
        curs_set(y >= 0);
}

void ls_screen_flush(void)
{
        if (cursor_y >= 0)
                move(cursor_y, cursor_x < COLS ? cursor_x : COLS - 1);
        refresh();
}

void ls_screen_redraw(void)
{
        clearok(stdscr, TRUE);
}
