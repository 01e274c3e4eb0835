/* Messages to the user on stderr: one line each, made fit for a terminal. Used by all commands. */
#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/escape.h"

/* Control characters of names and paths are shown, not obeyed: line ends too, so that a message
 * stays one line. */
void ls_put_visible(FILE *f, const char *text)
{
        char *visible = ls_visible(text, strlen(text));

        fputs(visible ? visible : "?", f);
        free(visible);
}

static void (*message_fn)(void *ctx, const char *text);
static void *message_ctx;

void ls_error_to(void (*fn)(void *ctx, const char *text), void *ctx)
{
        message_fn = fn;
        message_ctx = ctx;
}

static void message(const char *kind, const char *fmt, va_list ap)
{
        char text[4096];
        int n = vsnprintf(text, sizeof(text), fmt, ap);

        if (n < 0)
                snprintf(text, sizeof(text), "%s", fmt);
        else if ((size_t)n >= sizeof(text))
                memcpy(text + sizeof(text) - 4, "...", 4);
        if (message_fn) {
                message_fn(message_ctx, text);
                return;
        }
        fflush(stdout);
        flockfile(stderr);
        fprintf(stderr, "luasample: %s", kind);
        ls_put_visible(stderr, text);
        fputc('\n', stderr);
        funlockfile(stderr);
}

void ls_error(const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        message("", fmt, ap);
        va_end(ap);
}

void ls_warning(const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        message("warning: ", fmt, ap);
        va_end(ap);
}
