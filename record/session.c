/* One recording: prepares everything that can fail, starts the program, drains its ring until it ends. See session.h. */
#include "record/session.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsample/inject/environment.h"
#include "libsample/inject/inspect.h"
#include "record/agent_path.h"
#include "record/sentinel.h"
#include "record/trace_file.h"

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
int ls_session_choose_timer(struct ls_session *s)
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
        if (s->root)
                s->root->memory.shm->timer = (uint8_t)s->timer;
        return 0;
}

static int prepare_env(struct ls_session *s, struct ls_env *env)
{
        char agent[PATH_MAX], preload[PATH_MAX], memory[LS_ENV_MEMORY_MAX];
        struct ls_env_memory m = { .pid = (int)getpid(), .fd = s->root->memory.fd,
                                   .generation = s->root->memory.shm->generation };
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

int ls_session_begin_target(struct ls_session *s, struct ls_target *t, pid_t pid, const char *name)
{
        struct ls_target_config cfg = { .o = s->o, .writer = s->writer, .cwd = s->cwd, .name = name, .start_ns = s->start_ns,
                                        .notice = session_notice, .ctx = s };

        return ls_target_begin(t, pid, &cfg);
}

int ls_session_start_trace(struct ls_session *s)
{
        int err = ls_trace_writer_open(s->trace_fd, s->o->interval_ns, &s->writer);

        if (err < 0) {
                ls_error("cannot write %s: %s; give another file with -o", s->o->output, strerror(-err));
                return err;
        }
        s->start_ns = ls_session_clock(CLOCK_MONOTONIC);
        err = ls_session_begin_target(s, s->root, s->pid, s->o->command[0]);
        if (err < 0) {
                ls_error("cannot record: %s", strerror(-err));
                return err;
        }
        s->targets[s->n_targets++] = s->root;
        s->recording = 1;
        s->status_ns = s->start_ns;
        s->next_second_ns = s->start_ns + SECOND_NS;
        s->next_minute_ns = s->start_ns + 60 * SECOND_NS;
        s->children = (struct ls_children){ .notice = child_notice, .ctx = s, .cwd = s->cwd };
        ls_totals_start(s);
        err = ls_trace_flush(s->writer, s->start_ns, 1);
        if (err < 0)
                ls_error("cannot write %s: %s; give another file with -o", s->o->output, strerror(-err));
        return err;
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

void ls_session_heartbeat(struct ls_session *s, uint64_t until_ns)
{
        for (unsigned i = 0; i < s->n_targets; i++)
                atomic_store(&s->targets[i]->memory.shm->heartbeat_ns, until_ns);
}

void ls_session_work(struct ls_session *s, int at_once)
{
        uint64_t now = ls_session_clock(CLOCK_MONOTONIC);

        for (unsigned i = 0; i < s->n_targets; i++) {
                ls_target_work(s->targets[i], now, at_once);
                ls_children_poll(&s->children, s->targets[i]->memory.shm);
        }
        if (now >= s->next_second_ns)
                each_second(s, now);
        flush_trace(s, now, 0);
}

/* Until the next look at any process. */
uint64_t ls_session_time_to_wait(const struct ls_session *s, uint64_t now)
{
        uint64_t due = s->next_second_ns;

        for (unsigned i = 0; i < s->n_targets; i++)
                if (s->targets[i]->due_ns < due)
                        due = s->targets[i]->due_ns;
        return due > now ? due - now : 0;
}

/* The last ticks have come: what they led to is in the ring, or is being written. When the program is dead all is. */
static void finish_targets(struct ls_session *s)
{
        const struct timespec moment = { 0, LAST_WRITES_NS };

        for (unsigned i = 0; i < s->n_targets; i++)
                ls_target_stop(s->targets[i]);
        if (s->leave)
                s->leave(s);
        else
                s->root->ended = s->exited;
        if (!s->exited)
                nanosleep(&moment, NULL);
        for (unsigned i = 0; i < s->n_targets; i++) {
                ls_target_finish(s->targets[i]);
                ls_children_poll(&s->children, s->targets[i]->memory.shm);
        }
}

void ls_session_end(struct ls_session *s)
{
        struct stat st;
        int err;

        s->end_ns = ls_session_clock(CLOCK_MONOTONIC);
        finish_targets(s);
        if (s->exited)
                ls_signals_reap(s);
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
                uint64_t now = ls_session_clock(CLOCK_MONOTONIC), wait = ls_session_time_to_wait(s, now);
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
                        ls_session_work(s, 0);
                if (s->recording && ls_session_clock(CLOCK_MONOTONIC) >= end)
                        ls_session_end(s);
        }
        if (s->recording)
                ls_session_end(s);
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
        int err;

        s->root->memory.shm->root_pid = (uint32_t)s->pid;
        atomic_store(&s->root->memory.shm->recording, 1);
        atomic_store(&s->root->memory.shm->heartbeat_ns, ls_session_clock(CLOCK_MONOTONIC));
        if (ls_session_choose_timer(s) < 0 || ls_session_start_trace(s) < 0)
                return LS_EXIT_FAIL;
        err = s->with_agent ? ls_target_tick(s->root, s->timer, s->o) : 0;
        if (err < 0) {
                ls_error("cannot start the timer: %s", strerror(-err));
                return LS_EXIT_FAIL;
        }
        return -1;
}

static int run_program(struct ls_session *s, const char *sentence)
{
        int err, status;

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

void ls_session_done(struct ls_session *s)
{
        if (s->root)
                ls_ticker_stop(s->root->ticker);
        if (s->writer)
                ls_trace_writer_close(s->writer);
        if (s->root)
                ls_target_done(s->root);
        free(s->root);
        for (unsigned i = 0; i < s->n_notices; i++)
                free(s->notices[i]);
        if (s->trace_fd >= 0)
                close(s->trace_fd);
        if (s->signal_fd >= 0)
                close(s->signal_fd);
}

static int make_root(struct ls_session *s)
{
        s->root = malloc(sizeof(*s->root));
        return s->root ? ls_target_init(s->root, s->o) : -ENOMEM;
}

void ls_session_init(struct ls_session *s, const struct ls_record_options *o)
{
        s->o = o;
        s->trace_fd = s->signal_fd = -1;
        s->terminal = !o->quiet && isatty(STDERR_FILENO);
}

int ls_session_run(const struct ls_record_options *o)
{
        static struct ls_session session;
        struct ls_session *s = &session;
        struct ls_env env = { 0 };
        char sentence[PATH_MAX + 256];
        int status, err;

        ls_session_init(s, o);
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
                err = make_root(s);
        if (err < 0)
                ls_error("cannot share memory with the program: %s; see: luasample doctor", strerror(-err));
        else
                err = prepare_env(s, &env);
        if (err < 0)
                ls_trace_file_undo(o->output);
        else
                status = run_program(s, sentence);
        ls_session_done(s);
        ls_env_done(&env);
        return status;
}
