/* Commands: their table, and what all of them share: errors, units, output. Used by luasample.c,
 * record/ and report/. */
#ifndef LS_CLI_COMMAND_H
#define LS_CLI_COMMAND_H

#include <popt.h>
#include <stdint.h>
#include <stdio.h>

/* Command. help, the man page check and the shell completions are made from this table. */
struct ls_command {
        const char *name;               /* "record" */
        const char *summary;            /* one line, for luasample --help */
        const char *usage;              /* "[OPTION...] [--] CMD [ARG...]" */
        const struct poptOption *options;
        int (*run)(int argc, const char **argv);        /* argv[0] is the name; returns the exit
                                                         * status. NULL = options that are typed
                                                         * inside a command: there is no --help */
        int shows;                      /* 1 = it shows traces, with root's rights given up
                                         * (ls_store_apart) */
};

/* The table of luasample.c, ended by name NULL. */
extern const struct ls_command *const ls_commands[];

/* Runs the command that argv names; --version, --help, help CMD, and the suggestion for a mistyped
 * name. */
int ls_main(int argc, const char **argv);

#define LS_EXIT_USAGE 129               /* bad usage, as git and perf have it */
#define LS_EXIT_FAIL  1                 /* could not do it */
#define LS_EXIT_NOEXEC 126              /* the program cannot be executed */
#define LS_EXIT_NOCMD  127              /* the program was not found */

/* "luasample: ..." on stderr, one line: what failed, on what, what to do. Control characters and
 * what is no UTF-8 are made visible. */
void ls_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void ls_warning(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Visible text, for what other code prints: each text that a program, a trace or a file name may
 * hold. */
void ls_put_visible(FILE *f, const char *text);

/* Errors and warnings go to fn, without "luasample: ", in place of stderr; NULL = to stderr again.
 * For a command that has the whole screen. */
void ls_error_to(void (*fn)(void *ctx, const char *text), void *ctx);

/* Times: "1ms", "250us", "10s", "2m", "7d", "1.5ms"; a bare number is in default_unit ("ms", "s").
 * Writes ns. Returns 0 or -EINVAL / -ERANGE. */
int ls_parse_duration(const char *text, const char *default_unit, uint64_t *ret_ns);
/* Sizes: "64K", "2M", "1G", bytes. */
int ls_parse_size(const char *text, uint64_t *ret_bytes);

/* Text for what is counted, "ticks seen late ...", behind a number: behind 1 the first word that
 * ends in s loses it. In buf, or what itself. */
const char *ls_counted_text(uint64_t n, const char *what, char *buf, unsigned size);

/* Opens a popt context for a command with -h/--help added; prints usage errors itself. */
poptContext ls_options_begin(const struct ls_command *cmd, int argc, const char **argv,
                             int posix_me_harder);
/* Next option's val; -1 at the end; on a bad option prints one line and returns -2 (exit with
 * LS_EXIT_USAGE). --help is handled: prints and returns -3 (exit 0). */
int ls_options_next(const struct ls_command *cmd, poptContext ctx);

/* Status that the readers of a command's line return: LS_GO_ON when the command is to do its work,
 * else the status to exit with, after an error was said or help shown. The second of what
 * ls_options_next returned last. */
#define LS_GO_ON (-1)
static inline int ls_options_status(int last)
{
        return last == -1 ? LS_GO_ON : last == -3 ? 0 : LS_EXIT_USAGE;
}

/* Whether path can be the value of an option that names a file to write: "-" is stdout, what else
 * begins with - is an option that stands where the name is missing. Returns 0, or -EINVAL with its
 * error printed. ls_options_next calls it for --output of tables that keep their values; a command
 * that fetches its own calls it itself. */
int ls_check_output(const char *path);

/* Flushes stdout at exit and turns a failed write into an error line and status: EPIPE silently to
 * 128+SIGPIPE semantics as git has, ENOSPC and others to LS_EXIT_FAIL. Returns the status to exit
 * with. */
int ls_finish_stdout(int status);

#endif
