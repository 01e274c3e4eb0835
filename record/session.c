/* One recording: prepares everything that can fail, starts the program, drains its ring until it ends. See session.h. */
#include "record/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsample/inject/environment.h"
#include "libsample/inject/inspect.h"
#include "record/agent_path.h"
#include "record/sentinel.h"
#include "record/trace_file.h"

#define WAKE_MIN_NS 1000000ull
#define WAKE_FIRST_NS 10000000ull
#define WAKE_MAX_NS 100000000ull        /* also the heartbeat's period, and how far the trace may be behind */
#define SECOND_NS 1000000000ull
#define LAST_WRITES_NS 2000000          /* after -d: for the sample that the last tick led to */

static void session_notice(void *ctx, const char *text)
{
        ls_status_notice(ctx, text);
}

/* From children.c: not in the trace yet. */
static void child_notice(void *ctx, const char *text)
{
        struct ls_session *s = ctx;

        ls_trace_notice(s->writer, text);
        ls_status_notice(s, text);
}

/* What the program is decides how it is started. Returns -1 to go on, else the status to exit with. */
static int inspect_program(struct ls_session *s, char *sentence, size_t size)
{
        static struct ls_image image;   /* 8 KiB */
        const char *name = s->o->command[0];

        ls_image_inspect(name, getenv("PATH"), LS_INSPECT_SHELL | LS_INSPECT_TEXT, &image);
        *sentence = 0;
        if (image.kind == LS_IMAGE_MISSING && access(image.file[0] ? image.file : name, F_OK) < 0) {
                ls_error("%s: command not found", name);
                return LS_EXIT_NOCMD;
        }
        if (image.kind == LS_IMAGE_NOT_EXECUTABLE) {
                ls_error("%s: cannot be executed: permission denied, or it is a directory", name);
                return LS_EXIT_NOEXEC;
        }
        s->with_agent = ls_image_preloadable(&image) &&
                        !(image.contains_luajit && !image.exports_lua_newstate && !image.needs_luajit);
        if (!s->with_agent)
                ls_image_describe(&image, sentence, size);
        return -1;
}

/* The asked timer, or the best one. The program exists already, but waits. Returns 0 or -errno after a line. */
static int choose_timer(struct ls_session *s)
{
        int asked = s->o->timer;
        int perf = asked < 0 || asked == LS_TIMER_PERF ? ls_ticker_perf_probe(s->pid) : -EINVAL;
        int helper = asked < 0 || asked == LS_TIMER_HELPER ? ls_ticker_helper_probe(s->pid) : -EINVAL;

        s->timer = perf == 0 ? LS_TIMER_PERF : helper == 0 ? LS_TIMER_HELPER : LS_TIMER_CPUTIME;
        if (asked >= 0 && asked != (int)s->timer) {
                ls_error("--timer %s: %s; leave it out for the best that works, or see: luasample doctor",
                         ls_timer_names[asked], strerror(asked == LS_TIMER_PERF ? -perf : -helper));
                return -EPERM;
        }
        s->memory.shm->timer = (uint8_t)s->timer;
        return 0;
}

static int prepare_env(struct ls_session *s, struct ls_env *env)
{
        char agent[PATH_MAX], preload[PATH_MAX], memory[LS_ENV_MEMORY_MAX];
        struct ls_env_memory m = { .pid = (int)getpid(), .fd = s->memory.fd, .generation = s->memory.shm->generation };
        int err;

        s->launch.env = environ;
        if (!s->with_agent)
                return 0;
        err = ls_agent_path(agent, sizeof(agent));
        if (err < 0) {
                ls_error("libsample.so, the agent, is neither beside luasample nor in %s; run meson install, or ninja",
                         LS_AGENT_DIR);
                return err;
        }
        err = ls_agent_preload_path(agent, preload, sizeof(preload));
        ls_env_memory_format(&m, memory);
        if (err == 0)
                err = ls_env_add_agent(environ, preload, memory, env);
        if (err < 0) {
                ls_error("cannot preload %s: %s", agent, strerror(-err));
                return err;
        }
        s->launch.env = env->env;
        return 0;
}

static int start_trace(struct ls_session *s)
{
        struct ls_translate_config cfg = {
                .memory = &s->memory, .cwd = s->cwd, .pid = s->pid, .interval_ns = s->o->interval_ns,
                .no_source = s->o->no_source, .wall_only = s->o->events == LS_RECORD_WALL, .native = s->o->native_bytes != 0, .notice = session_notice,
                .ended = ls_totals_thread_ended, .ctx = s,
        };
        struct ls_drain_sink sink = { .record = ls_translate_record, .gap = ls_translate_gap, .closed = ls_translate_closed,
                                      .ctx = &s->translate };
        const char *name = s->o->command[0];
        int err = ls_trace_writer_open(s->trace_fd, s->o->interval_ns, &s->writer);

        if (err < 0) {
                ls_error("cannot write %s: %s; give another file with -o", s->o->output, strerror(-err));
                return err;
        }
        cfg.writer = s->writer;
        cfg.process = ls_trace_process(s->writer, (uint32_t)s->pid, ls_trace_string(s->writer, name, strlen(name)));
        cfg.start_ns = s->start_ns = ls_session_clock(CLOCK_MONOTONIC);
        err = ls_translate_init(&s->translate, &cfg);
        if (err == 0)
                err = ls_drain_init(&s->drain, &s->memory, &sink);
        if (err < 0) {
                ls_error("cannot record: %s", strerror(-err));
                return err;
        }
        s->recording = 1;
        s->status_ns = s->start_ns;
        s->next_second_ns = s->start_ns + SECOND_NS;
        s->next_minute_ns = s->start_ns + 60 * SECOND_NS;
        s->wake_ns = WAKE_FIRST_NS;
        s->children = (struct ls_children){ .notice = child_notice, .ctx = s, .cwd = s->cwd };
        ls_totals_start(s);
        err = ls_trace_flush(s->writer, s->start_ns, 1);
        if (err < 0)
                ls_error("cannot write %s: %s; give another file with -o", s->o->output, strerror(-err));
        return err;
}

/* Often enough to keep the ring below half, and seldom enough to cost nothing. */
static void adapt_wake(struct ls_session *s)
{
        if (s->drain.fill > 1024 / 4)
                s->wake_ns /= 2;
        else if (s->drain.fill < 1024 / 16)
                s->wake_ns += s->wake_ns / 2;
        if (s->wake_ns < WAKE_MIN_NS)
                s->wake_ns = WAKE_MIN_NS;
        if (s->wake_ns > WAKE_MAX_NS)
                s->wake_ns = WAKE_MAX_NS;
}

static void flush_trace(struct ls_session *s, uint64_t now, int force)
{
        int err = ls_trace_flush(s->writer, now, force);

        if (err < 0 && !s->write_error)
                s->write_error = err;
}

static void each_second(struct ls_session *s, uint64_t now)
{
        s->next_second_ns = now + SECOND_NS;
        ls_totals_second(s, now);
        ls_children_walk(&s->children, s->pid);
        ls_status_line(s, now);
        if (now >= s->next_minute_ns) {
                s->next_minute_ns = now + 60 * SECOND_NS;
                ls_totals_clocks(s);
                ls_totals_write(s);
        }
}

static void work(struct ls_session *s)
{
        uint64_t now = ls_session_clock(CLOCK_MONOTONIC);

        atomic_store(&s->memory.shm->heartbeat_ns, now);
        s->translate.now_ns = now;
        ls_drain_run(&s->drain, 0, now);
        ls_translate_settle(&s->translate);
        ls_children_poll(&s->children, s->memory.shm);
        adapt_wake(s);
        if (now >= s->next_second_ns)
                each_second(s, now);
        flush_trace(s, now, 0);
}

/* The last ticks have come: what they led to is in the ring, or is being written. When the program is dead all is. */
static void last_drain(struct ls_session *s)
{
        const struct timespec moment = { 0, LAST_WRITES_NS };
        uint64_t now;

        if (!s->exited)
                nanosleep(&moment, NULL);
        atomic_store(&s->memory.shm->recording, 0);
        s->watcher_cpu_ns = ls_watcher_stop(s->watcher);
        s->watcher = 0;
        now = ls_session_clock(CLOCK_MONOTONIC);
        s->translate.now_ns = now;
        ls_drain_run(&s->drain, s->exited, now);
        ls_translate_settle(&s->translate);
        ls_children_poll(&s->children, s->memory.shm);
}

static void end_recording(struct ls_session *s)
{
        struct stat st;
        int err;

        s->end_ns = ls_session_clock(CLOCK_MONOTONIC);
        ls_ticker_stop(s->ticker);
        last_drain(s);
        ls_totals_second(s, s->end_ns);
        if (ls_watcher_complaint(&s->memory))
                child_notice(s, ls_watcher_complaint(&s->memory));
        if (s->exited)
                ls_signals_reap(s);
        ls_translate_finish(&s->translate);
        ls_totals_clocks(s);
        ls_totals_write(s);
        flush_trace(s, s->end_ns, 1);
        s->dropped_chunks = ls_trace_dropped(s->writer);
        s->final_size = ls_trace_size(s->writer);
        err = ls_trace_writer_close(s->writer);
        s->writer = NULL;
        if (err < 0 && !s->write_error)
                s->write_error = err;
        /* With what closing added: the repeated definitions and the index. */
        if (fstat(s->trace_fd, &st) == 0 && S_ISREG(st.st_mode))
                s->final_size = (uint64_t)st.st_size;
        close(s->trace_fd);
        s->trace_fd = -1;
        s->recording = 0;
        ls_status_summary(s);
}

/* Until the program has ended; the recording may end before. */
static void main_loop(struct ls_session *s)
{
        uint64_t end = s->o->duration_ns ? s->start_ns + s->o->duration_ns : UINT64_MAX;
        struct pollfd p = { .fd = s->signal_fd, .events = POLLIN };

        while (!s->exited) {
                uint64_t now = ls_session_clock(CLOCK_MONOTONIC), wait = s->wake_ns;
                struct timespec t;

                if (now >= end)
                        wait = 0;
                else if (wait > end - now)
                        wait = end - now;
                t.tv_sec = (time_t)(wait / SECOND_NS);
                t.tv_nsec = (long)(wait % SECOND_NS);
                ppoll(&p, 1, s->recording ? &t : NULL, NULL);
                ls_signals_handle(s);
                if (s->recording && !s->exited)
                        work(s);
                if (s->recording && ls_session_clock(CLOCK_MONOTONIC) >= end)
                        end_recording(s);
        }
        if (s->recording)
                end_recording(s);
        else
                ls_signals_reap(s);
}

/* exec has failed although the file looked good, or the program could not be started. */
static int exec_failed(struct ls_session *s, int err)
{
        ls_error("%s: %s", s->o->command[0], strerror(-err));
        ls_trace_file_undo(s->o->output);
        return err == -ENOENT ? LS_EXIT_NOCMD : LS_EXIT_NOEXEC;
}

/* The child waits for our go. Returns -1 to go on, else the status to exit with; then the child is gone. */
static int prepare_with_child(struct ls_session *s)
{
        int wants_ticker;

        if (clock_getcpuclockid(s->pid, &s->process_clock) != 0)
                s->process_clock = 0;
        s->memory.shm->root_pid = (uint32_t)s->pid;
        atomic_store(&s->memory.shm->recording, 1);
        atomic_store(&s->memory.shm->heartbeat_ns, ls_session_clock(CLOCK_MONOTONIC));
        if (choose_timer(s) < 0 || start_trace(s) < 0)
                return LS_EXIT_FAIL;
        wants_ticker = s->with_agent && s->o->bare_tick != 2 && s->timer != LS_TIMER_CPUTIME;
        if (wants_ticker) {
                int err = ls_ticker_start(&s->memory, s->pid, s->timer, s->o->interval_ns, &s->ticker);

                if (err < 0) {
                        ls_error("cannot start the timer: %s", strerror(-err));
                        return LS_EXIT_FAIL;
                }
        }
        return -1;
}

/* Without it only the time on a CPU is known. */
static int start_watcher(struct ls_session *s)
{
        if (!(s->o->events & LS_RECORD_WALL) || !s->with_agent)
                return 0;
        s->watcher = ls_watcher_start(&s->memory);
        if (s->watcher < 0) {
                ls_error("-e wall: cannot start the process that watches for blocked threads: %s", strerror(-s->watcher));
                return -1;
        }
        s->launch.watcher = s->watcher;
        return 0;
}

static int run_program(struct ls_session *s, const char *sentence)
{
        int err, status;

        if (start_watcher(s) < 0) {
                ls_trace_file_undo(s->o->output);
                return LS_EXIT_FAIL;
        }
        s->launch.argv = s->o->command;
        s->launch.saved = &s->saved;
        err = ls_launch_fork(&s->launch);
        if (err < 0) {
                ls_error("cannot start %s: %s", s->o->command[0], strerror(-err));
                return LS_EXIT_FAIL;
        }
        s->pid = s->launch.pid;
        status = prepare_with_child(s);
        if (status >= 0) {
                ls_launch_cancel(&s->launch);
                ls_trace_file_undo(s->o->output);
                return status;
        }
        if (*sentence) {
                ls_warning("%s; it runs without being recorded", sentence);
                ls_trace_notice(s->writer, sentence);
        }
        err = ls_launch_exec(&s->launch);
        if (err < 0)
                return exec_failed(s, err);
        s->sentinel = ls_sentinel_start();
        main_loop(s);
        ls_sentinel_stop(s->sentinel);
        return s->exit_status;
}

static void session_done(struct ls_session *s)
{
        if (s->watcher > 0) {           /* nothing was recorded */
                kill(s->watcher, SIGKILL);
                ls_watcher_stop(s->watcher);
        }
        ls_ticker_free(s->ticker);
        if (s->writer)
                ls_trace_writer_close(s->writer);
        ls_translate_done(&s->translate);
        ls_drain_done(&s->drain);
        ls_memory_done(&s->memory);
        for (unsigned i = 0; i < s->n_notices; i++)
                free(s->notices[i]);
        if (s->trace_fd >= 0)
                close(s->trace_fd);
        if (s->signal_fd >= 0)
                close(s->signal_fd);
}

int ls_session_run(const struct ls_record_options *o)
{
        static struct ls_session session;
        struct ls_session *s = &session;
        struct ls_env env = { 0 };
        char sentence[PATH_MAX + 256];
        int status, err;

        s->o = o;
        s->trace_fd = s->signal_fd = s->memory.fd = -1;
        s->terminal = !o->quiet && isatty(STDERR_FILENO);
        if (!getcwd(s->cwd, sizeof(s->cwd)))
                strcpy(s->cwd, "/");
        status = inspect_program(s, sentence, sizeof(sentence));
        if (status >= 0)
                return status;
        status = LS_EXIT_FAIL;
        s->trace_fd = ls_trace_file_open(o->output);
        if (s->trace_fd < 0)
                return status;
        err = ls_signals_open(s);
        if (err == 0)
                err = ls_memory_init(&s->memory, o);
        if (err < 0)
                ls_error("cannot share memory with the program: %s; see: luasample doctor", strerror(-err));
        else
                err = prepare_env(s, &env);
        if (err < 0)
                ls_trace_file_undo(o->output);
        else
                status = run_program(s, sentence);
        session_done(s);
        ls_env_done(&env);
        return status;
}
