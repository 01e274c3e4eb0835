/* The command luasample top: a recording in a child process, luasample record, and the terminal
 * browser on the trace while it grows; or the browser on what the daemon stores of a service.
 * Called by luasample.c.
 *
 * The child is a session of its own, so that no key reaches the program, and what the program
 * writes goes to --log or nowhere. Its stderr comes to us in a pipe: record's own words are among
 * it. */
#include "report/commands.h"
#include "formats/wire/clock.h"
#include "report/options/follow.h"
#include "report/options/options.h"
#include "report/options/range.h"
#include "report/tui/tui.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/child.h"

#define START_MS 500                    /* time in which a recording that cannot start says so */
#define END_MS 5000                     /* time that the program gets to end when we are quit */

static struct { char *pid, *interval, *freq, *output, *log, *record; } raw;

#define TEXT(name, arg, help) POPT_ARG_STRING, &raw.name, 0, help, arg

static const struct poptOption option_table[] = {
        { "pid", 'p', TEXT(pid, "PID", "watch a running process, in place of a program to start") },
        { "interval", 'i', TEXT(interval, "TIME", "CPU time between samples (1ms)") },
        { "freq", 'F', TEXT(freq, "HZ", "samples per second of CPU time, in place of -i") },
        { "output", 'o', TEXT(output, "FILE", "keep the trace") },
        { "log", 0, TEXT(log, "FILE", "what the program writes goes to FILE (default: nowhere)") },
        { "record", 0,
          TEXT(record, "OPTIONS", "more options for luasample record: --record '--native'") },
        { NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)ls_range_option_table, 0, NULL,
          NULL },
        { NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)ls_tui_look_option_table, 0, NULL,
          NULL },
        POPT_TABLEEND
};

struct top {
        const char **command;           /* of the program; ended by NULL; none with --pid */
        char *dir, *trace;              /* private; dir NULL = --output */
        const char *events;             /* what is recorded for another time than that on a CPU to
                                         * be shown; NULL = that */
        pid_t recorder;
        int err_fd, log_fd;
        int ended, status;              /* as waitpid has it */
        uint64_t start_ns, end_ns;
        off_t size;                     /* of the trace when it was read last */
        int read_after_end;
        char tail[512];                 /* what came last from the child's stderr */
        size_t n_tail;
};

static int make_trace_name(struct top *s)
{
        const char *places[] = { getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp" };

        if (raw.output) {
                s->trace = strdup(raw.output);
                return s->trace ? 0 : -ENOMEM;
        }
        for (size_t i = 0; i < 3; i++) {
                free(s->dir);
                s->dir = NULL;
                if (!places[i] || *places[i] != '/' ||
                    asprintf(&s->dir, "%s/luasample-top.XXXXXX", places[i]) < 0)
                        continue;
                if (mkdtemp(s->dir))    /* 0700 */
                        return asprintf(&s->trace, "%s/trace", s->dir) < 0 ? -ENOMEM : 0;
        }
        free(s->dir);
        s->dir = NULL;
        return -errno;
}

static void remove_trace(struct top *s)
{
        if (s->dir) {
                unlink(s->trace);
                if (rmdir(s->dir) < 0)
                        ls_warning("top: %s was not removed: %s", s->dir, strerror(errno));
        }
        free(s->dir);
        free(s->trace);
}

/* The words of the child; each is another's. To be freed. */
static const char **recorder_words(const struct top *s, int n_more, const char **more)
{
        int n = 0, n_command = 0;
        const char **words;

        while (s->command[n_command])
                n_command++;
        words = calloc((size_t)(n_command + n_more) + 16, sizeof(*words));
        if (!words)
                return NULL;
        words[n++] = "luasample";
        words[n++] = "record";
        words[n++] = "-q";
        words[n++] = "-o";
        words[n++] = s->trace;
        if (raw.interval) {
                words[n++] = "-i";
                words[n++] = raw.interval;
        }
        if (raw.freq) {
                words[n++] = "-F";
                words[n++] = raw.freq;
        }
        if (s->events) {
                words[n++] = "-e";
                words[n++] = s->events;
        }
        for (int i = 0; i < n_more; i++)
                words[n++] = more[i];
        if (raw.pid) {
                words[n++] = "-p";
                words[n++] = raw.pid;
        } else {
                words[n++] = "--";
        }
        for (int i = 0; i < n_command; i++)
                words[n++] = s->command[i];
        return words;
}

static int signal_to_end(void)
{
        return raw.pid ? SIGINT : SIGTERM;      /* a program that runs anyway is let go; one that we
                                                 * started ends */
}

static void become_recorder(const struct top *s, pid_t parent, int err_fd, const char **words)
{
        const struct ls_child recorder = { .words = words,
                                           .parent = parent,
                                           .end_signal = signal_to_end(),
                                           .out = s->log_fd >= 0 ? s->log_fd : 0,
                                           .err = err_fd,
                                           .keeps_mask = 1 };

        ls_child_become(&recorder);
}

static int start_recorder(struct top *s)
{
        int fds[2], n_more = 0;
        const char **more = NULL, **words;
        pid_t self = getpid();

        if (raw.record && poptParseArgvString(raw.record, &n_more, &more)) {
                ls_error("top: --record '%s': a quote is not closed, or there is nothing in it",
                         raw.record);
                return -EINVAL;
        }
        words = recorder_words(s, n_more, more);
        if (!words || pipe2(fds, O_CLOEXEC) < 0) {
                free(words);
                free(more);
                return -errno;
        }
        s->recorder = fork();
        if (s->recorder == 0)
                become_recorder(s, self, fds[1], words);
        free(words);
        free(more);
        close(fds[1]);
        s->err_fd = fds[0];
        fcntl(s->err_fd, F_SETFL, O_NONBLOCK);
        s->start_ns = ls_clock_ns(CLOCK_MONOTONIC);
        return s->recorder < 0 ? -errno : 0;
}

static void keep_tail(struct top *s, const char *text, size_t n)
{
        if (n > sizeof(s->tail) - 1) {
                text += n - (sizeof(s->tail) - 1);
                n = sizeof(s->tail) - 1;
        }
        if (s->n_tail + n > sizeof(s->tail) - 1) {
                size_t less = s->n_tail + n - (sizeof(s->tail) - 1);

                memmove(s->tail, s->tail + less, s->n_tail - less);
                s->n_tail -= less;
        }
        memcpy(s->tail + s->n_tail, text, n);
        s->n_tail += n;
        s->tail[s->n_tail] = '\0';
}

static void attend(void *ctx)
{
        struct top *s = ctx;
        char text[4096];
        ssize_t n;

        for (int i = 0; i < 64 && s->err_fd >= 0; i++) {        /* who writes without end shall not
                                                                 * hold us */
                n = read(s->err_fd, text, sizeof(text));
                if (n < 0)
                        break;          /* nothing more for now */
                if (n == 0) {
                        close(s->err_fd);
                        s->err_fd = -1;
                        break;
                }
                keep_tail(s, text, (size_t)n);
                if (s->log_fd >= 0 && write(s->log_fd, text, (size_t)n) < 0) {
                        close(s->log_fd);
                        s->log_fd = -1;
                }
        }
        if (!s->ended && waitpid(s->recorder, &s->status, WNOHANG) == s->recorder) {
                s->ended = 1;
                s->end_ns = ls_clock_ns(CLOCK_MONOTONIC);
        }
}

static int news_fd(void *ctx)
{
        return ((struct top *)ctx)->err_fd;
}

static int growing(void *ctx)
{
        struct top *s = ctx;
        struct stat st;
        off_t before = s->size;
        int last = s->ended && !s->read_after_end;

        s->read_after_end |= s->ended;
        if (stat(s->trace, &st) == 0)
                s->size = st.st_size;
        return last || s->size != before;
}

static int exit_status(const struct top *s)
{
        return WIFSIGNALED(s->status) ? 128 + WTERMSIG(s->status) : WEXITSTATUS(s->status);
}

static void status_text(void *ctx, char *buf, size_t size)
{
        struct top *s = ctx;
        double seconds =
                (double)((s->ended ? s->end_ns : ls_clock_ns(CLOCK_MONOTONIC)) - s->start_ns) / 1e9;

        if (s->ended)
                snprintf(buf, size, "ended with status %d after %.0f s", exit_status(s), seconds);
        else
                snprintf(buf, size, "%s %.0f s", raw.pid ? "watched" : "running", seconds);
}

static void question(void *ctx, char *buf, size_t size)
{
        struct top *s = ctx;

        *buf = '\0';
        if (!s->ended && !raw.pid)
                snprintf(buf, size, "The program still runs; quitting ends it. Quit? (y/n)");
}

/* Waits until the child has ended or ms have passed. */
static void wait_for_end(struct top *s, int ms, int (*enough)(struct top *s))
{
        uint64_t end = ls_clock_ns(CLOCK_MONOTONIC) + (uint64_t)ms * 1000000u;

        for (attend(s); !s->ended && ls_clock_ns(CLOCK_MONOTONIC) < end && !(enough && enough(s));
             attend(s)) {
                struct pollfd fd = { .fd = s->err_fd, .events = POLLIN };

                poll(&fd, 1, 20);
        }
        attend(s);
}

/* The trace has its first samples: the program was started. */
static int has_samples(struct top *s)
{
        struct stat st;

        return stat(s->trace, &st) == 0 && st.st_size > 4096;
}

static void end_recorder(struct top *s)
{
        if (s->ended)
                return;
        kill(s->recorder, signal_to_end());
        wait_for_end(s, END_MS, NULL);
        if (s->ended)
                return;
        ls_warning("top: the program does not end by SIGTERM; it runs on, unrecorded");
        kill(s->recorder, SIGKILL);
        waitpid(s->recorder, &s->status, 0);
        s->ended = 1;
}

static void put_tail(struct top *s)
{
        for (char *line = s->tail, *end; *line; line = end) {
                end = strchrnul(line, '\n');
                if (*end)
                        *end++ = '\0';
                ls_put_visible(stderr, line);
                fputc('\n', stderr);
        }
}

static int watch(struct top *s, struct ls_report_options *o)
{
        struct ls_tui_live live = { .ctx = s,
                                    .fd = news_fd,
                                    .attend = attend,
                                    .growing = growing,
                                    .status = status_text,
                                    .question = question };
        int status;

        wait_for_end(s, START_MS, has_samples);
        if (s->ended && access(s->trace, R_OK) < 0) {   /* it says why */
                put_tail(s);
                return exit_status(s) ? exit_status(s) : LS_EXIT_FAIL;
        }
        o->input = s->trace;
        status = ls_tui_run(&ls_cmd_top, o, NULL, &live);
        end_recorder(s);
        return status;
}

static int open_log(struct top *s)
{
        if (!raw.log)
                return 0;
        s->log_fd = open(raw.log, O_WRONLY | O_TRUNC | O_APPEND | O_CLOEXEC);
        if (s->log_fd < 0 && errno == ENOENT)           /* never through a link that leads
                                                         * nowhere */
                s->log_fd = open(raw.log, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (s->log_fd >= 0)
                return 0;
        ls_error("top: --log %s: %s", raw.log, strerror(errno));
        return -EINVAL;
}

static int check_words(const struct top *s)
{
        if (raw.pid && s->command[0])
                ls_error("top: give --pid or a program, not both");
        else if (!raw.pid && !s->command[0])
                ls_error("top: nothing to watch: give a program, luasample top -- luajit app.lua, "
                         "or -p PID");
        else
                return 0;
        return LS_EXIT_USAGE;
}

static int run_top(struct top *s, struct ls_report_options *o)
{
        int error, status = check_words(s);

        if (status)
                return status;
        if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) {
                ls_error("top: needs a terminal; luasample record and report work without one");
                return LS_EXIT_FAIL;
        }
        if (open_log(s))
                return LS_EXIT_FAIL;
        error = make_trace_name(s);
        if (!error)
                error = start_recorder(s);
        if (error && error != -EINVAL)
                ls_error("top: cannot start the recording: %s", strerror(-error));
        status = error ? LS_EXIT_FAIL : watch(s, o);
        if (raw.output && !error && access(s->trace, R_OK) == 0)
                fprintf(stderr, "[ luasample: the trace is %s ]\n", s->trace);
        remove_trace(s);
        if (s->err_fd >= 0)
                close(s->err_fd);
        if (s->log_fd >= 0)
                close(s->log_fd);
        return ls_tui_exit(status);
}

static int follow_fd(void *ctx)
{
        (void)ctx;
        return -1;
}

static void follow_attend(void *ctx)
{
        (void)ctx;
}

static int follow_growing(void *ctx)
{
        return ((struct ls_follow *)ctx)->fd >= 0;
}

static int follow_open(void *ctx, struct ls_filter_options *want, struct ls_profile **ret)
{
        return ls_follow_look(ctx, want, ret);
}

static void follow_shown(void *ctx)
{
        ls_follow_shown(ctx);
}

static void follow_status(void *ctx, char *buf, size_t size)
{
        const struct ls_follow *f = ctx;

        snprintf(buf, size, "%s", f->fd >= 0 ? "stored" : "no more of the store");
}

static void follow_question(void *ctx, char *buf, size_t size)
{
        (void)ctx;
        (void)size;
        *buf = '\0';
}

/* What the daemon records: nothing is started, and nothing ended. */
static int run_stored(const struct top *s, struct ls_report_options *o)
{
        struct ls_follow f;
        struct ls_tui_live live = {
                .ctx = &f, .fd = follow_fd, .attend = follow_attend, .growing = follow_growing,
                .open = follow_open, .shown = follow_shown, .status = follow_status,
                .question = follow_question,
        };
        int status;

        if (raw.pid || s->command[0] || raw.output || raw.interval || raw.freq || raw.log ||
            raw.record) {
                ls_error("top: --service, --since, --until and --store show what the daemon "
                         "records: no program and no options of a recording go with them");
                return LS_EXIT_USAGE;
        }
        if (o->want.time) {
                ls_error("top: --time is for a recording; --since and --until say which time of "
                         "the store");
                return LS_EXIT_USAGE;
        }
        if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) {
                ls_error("top: needs a terminal; luasample report works without one");
                return LS_EXIT_FAIL;
        }
        status = ls_follow_start("top", &f);
        o->input = "";
        if (!status)
                status = ls_tui_run(&ls_cmd_top, o, NULL, &live);
        ls_follow_done(&f);
        return ls_tui_exit(status);
}

static int top_run(int argc, const char **argv)
{
        struct top s = { .err_fd = -1, .log_fd = -1 };
        struct ls_report_options o;
        int status = ls_report_options_read_rest(&ls_cmd_top, argc, argv, &o, &s.command);

        if (status != LS_GO_ON)
                return status;
        if (ls_range_wanted())
                return run_stored(&s, &o);
        if (o.want.events.n && o.want.events.id[0] != LS_EVENT_CPU)
                s.events = ls_event_overlaps(o.want.events.id[0]) ? "cpu,suspended" : "cpu,wall";
        return run_top(&s, &o);
}

const struct ls_command ls_cmd_top = {
        .name = "top",
        .summary = "browse a recording while the program runs",
        .usage = "[OPTION...] [-p PID | --service NAME | [--] CMD [ARG...]]",
        .options = option_table,
        .run = top_run,
};
