/* One recording: prepares everything that can fail, starts the program, drains its ring until it ends. See session.h. */
#include "record/session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsample/inject/environment.h"
#include "libsample/inject/inspect.h"
#include "record/process/agent_path.h"
#include "record/process/descriptors.h"
#include "record/process/member.h"
#include "record/process/sentinel.h"
#include "record/trace_file.h"
#include "record/worker/worker.h"

#define SECOND_NS 1000000000ull

static void session_notice(void *ctx, const char *text)
{
        ls_status_notice(ctx, text);
}

static void session_marked(void *ctx, const char *name, uint32_t len)
{
        ls_flight_mark(ctx, name, len);
}

/* From process/children.c: not in the trace yet. */
static void child_notice(void *ctx, const char *text)
{
        struct ls_session *s = ctx;

        ls_trace_notice(s->writer, text);
        ls_status_notice(s, text);
}

static int is_recorded(void *ctx, pid_t pid)
{
        return ls_processes_has(ctx, pid);
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

uint64_t ls_session_own_cpu(const struct ls_session *s)
{
        return ls_session_clock(CLOCK_PROCESS_CPUTIME_ID) + ls_workers_cpu_ns(s->workers);
}

int ls_session_begin_target(struct ls_session *s, struct ls_target *t, pid_t pid)
{
        char cwd[PATH_MAX];
        struct ls_target_config cfg = { .o = s->o, .writer = s->writer, .cwd = cwd, .maps = &s->maps,
                                        .workers = s->workers,
                                        .ordinal = s->n_processes++, .start_ns = s->start_ns, .full_fd = s->full_fd,
                                        .notice = session_notice, .marked = session_marked, .ctx = s };

        ls_member_cwd(pid, s->cwd, cwd);
        return ls_target_begin(t, pid, &cfg);
}

/* The program's name in the trace: its command line, as of its children. */
static void name_root(struct ls_session *s)
{
        size_t n = 0;

        for (const char **a = s->o->command; *a && n < sizeof(s->root->name) && (!s->o->no_args || !n); a++)
                n += (size_t)snprintf(s->root->name + n, sizeof(s->root->name) - n, n ? " %s" : "%s", *a);
        ls_target_name(s->root, s->root->name);
}

int ls_session_start_trace(struct ls_session *s)
{
        int err = ls_flight_begin(s);

        if (err == 0)
                err = ls_trace_writer_open(s->trace_fd, s->o->interval_ns, &s->writer);
        if (err < 0) {
                ls_error("cannot write %s: %s; give another file with -o",
                         ls_trace_file_name(s->o->output), strerror(-err));
                return err;
        }
        s->start_ns = ls_session_clock(CLOCK_MONOTONIC);
        err = s->workers ? ls_session_begin_target(s, s->root, s->pid) : -ENOMEM;
        if (err < 0) {
                ls_error("cannot record: %s", strerror(-err));
                return err;
        }
        name_root(s);
        s->targets[s->n_targets++] = s->root;
        s->recording = 1;
        s->status_ns = s->start_ns;
        s->next_second_ns = s->start_ns + SECOND_NS;
        s->next_minute_ns = s->start_ns + 60 * SECOND_NS;
        s->children = (struct ls_children){ .notice = child_notice, .ctx = s, .workers = s->workers, .cwd = s->cwd, .is_recorded = is_recorded,
                                            .following = s->registry.fd >= 0 || (s->leave && !s->o->no_children) };
        err = ls_rotate_begin(s);
        if (err < 0)
                return err;
        ls_pause_begin(s);
        ls_totals_start(s);
        err = ls_trace_flush(s->writer, s->start_ns, 1);
        if (err < 0)
                ls_error("cannot write %s: %s; give another file with -o",
                         ls_trace_file_name(s->o->output), strerror(-err));
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
        ls_processes_second(s);
        ls_workers_second(s->workers);
        ls_totals_second(s, now);
        if (!s->exited)
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
        uint64_t now = ls_session_clock(CLOCK_MONOTONIC), fills;

        while (read(s->full_fd, &fills, sizeof(fills)) == sizeof(fills))
                s->full_ns = now;
        ls_processes_look(s, now);
        ls_pause_look(s, now);
        for (unsigned i = 0; i < s->n_targets; i++) {
                ls_target_work(s->targets[i], now, at_once);
                ls_children_poll(&s->children, s->targets[i]->memory.shm, s->targets[i]->translate.cfg.worker);
        }
        if (now >= s->next_second_ns)
                each_second(s, now);
        flush_trace(s, now, 0);
        ls_rotate_look(s, now);
        ls_flight_look(s, now);
}

#define FULL_QUIET_NS 1000000ull        /* between two looks at rings that never stop to fill */

uint64_t ls_session_time_to_wait(const struct ls_session *s, uint64_t now, struct pollfd *full)
{
        uint64_t due = s->next_second_ns;

        full->events = POLLIN;
        full->fd = s->recording ? s->full_fd : -1;
        if (s->full_ns && now - s->full_ns < FULL_QUIET_NS) {
                full->fd = -1;
                due = s->full_ns + FULL_QUIET_NS;
        }
        if (s->pause.until_ns && s->pause.until_ns < due)
                due = s->pause.until_ns;
        for (unsigned i = 0; i < s->n_targets; i++)
                if (!s->targets[i]->ended && s->targets[i]->due_ns < due)
                        due = s->targets[i]->due_ns;
        return due > now ? due - now : 0;
}

void ls_session_end(struct ls_session *s)
{
        struct stat st;
        int err;

        s->end_ns = ls_session_clock(CLOCK_MONOTONIC);
        ls_processes_finish(s);
        for (unsigned i = 0; i < s->n_targets; i++)
                ls_children_poll(&s->children, s->targets[i]->memory.shm, s->targets[i]->translate.cfg.worker);
        if (ls_watcher_complaint(&s->root->memory))
                child_notice(s, ls_watcher_complaint(&s->root->memory));
        if (s->exited)
                ls_signals_reap(s);
        err = ls_flight_finish(s);
        if (err < 0 && !s->write_error)
                s->write_error = err;
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
        ls_control_done(&s->control);
        ls_status_summary(s);
}

/* The program has ended, and what it has started goes on. */
static void say_who_is_left(struct ls_session *s)
{
        unsigned n = ls_processes_left(s);

        if (!n || s->said_who_is_left)
                return;
        s->said_who_is_left = 1;
        if (!s->o->quiet && !s->stopping && !s->o->no_wait)
                fprintf(stderr, "[ luasample: the program has ended; %u process%s that it started %s still recorded: Ctrl-C "
                        "ends the recording ]\n", n, n == 1 ? "" : "es", n == 1 ? "is" : "are");
}

/* A child that was forked just before the program ended may not have run yet; one that does not come is given up. */
#define COMING_NS SECOND_NS
#define COMING_LOOK_NS 2000000ull

static int child_is_coming(const struct ls_session *s)
{
        return ls_processes_come(s) && ls_session_clock(CLOCK_MONOTONIC) - s->exited_ns < COMING_NS;
}

static int goes_on(struct ls_session *s)
{
        if (!s->exited)
                return 1;
        if (!s->recording || s->stopping || s->o->no_wait)
                return 0;
        if (!s->reaped || ls_processes_left(s) || child_is_coming(s))
                return 1;
        /* One that was coming a moment ago is there by now. */
        ls_processes_look(s, ls_session_clock(CLOCK_MONOTONIC));
        return ls_processes_left(s) != 0;
}

static void wait_for_something(struct ls_session *s, uint64_t end)
{
        struct pollfd p[LS_TARGETS_MAX + 3 + LS_CONTROL_FDS] = { { .fd = s->signal_fd, .events = POLLIN } };
        uint64_t now = ls_session_clock(CLOCK_MONOTONIC), wait = ls_session_time_to_wait(s, now, &p[1]);
        unsigned n = s->recording ? ls_processes_poll(s, p + 2) : 0;
        struct timespec t;

        if (s->recording)
                n += ls_control_poll(&s->control, p + 2 + n);
        if (now >= end)
                wait = 0;
        else if (wait > end - now)
                wait = end - now;
        if (s->exited && wait > COMING_LOOK_NS && !ls_processes_left(s))
                wait = COMING_LOOK_NS;
        t.tv_sec = (time_t)(wait / SECOND_NS);
        t.tv_nsec = (long)(wait % SECOND_NS);
        ppoll(p, n + 2, s->recording ? &t : NULL, NULL);
}

/* Until the program has ended, and all that it started; the recording may end before. */
static void main_loop(struct ls_session *s)
{
        uint64_t end = ls_pause_end(s);

        while (goes_on(s)) {
                wait_for_something(s, end);
                ls_signals_handle(s);
                if (s->recording && (!s->exited || s->reaped))
                        ls_session_work(s, 0);
                if (s->exited && !s->reaped && s->recording) {
                        ls_processes_look(s, ls_session_clock(CLOCK_MONOTONIC));
                        ls_processes_root_ended(s);
                        ls_signals_reap(s);
                        s->exited_ns = ls_session_clock(CLOCK_MONOTONIC);
                }
                if (s->reaped && s->recording)
                        say_who_is_left(s);
                if (s->recording)
                        ls_control_handle(s);
                if (s->recording && (s->control.stop || ls_session_clock(CLOCK_MONOTONIC) >= end))
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
        ls_trace_file_undo(s->o->output, &s->trace_file);
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

/* Without it only the time on a CPU is known. */
static int start_watcher(struct ls_session *s)
{
        int err = s->with_agent ? ls_target_watch(s->root, s->o) : 0;

        if (err < 0)
                ls_error("-e wall: cannot start the process that watches for blocked threads: %s", strerror(-err));
        s->launch.watcher = s->root->watcher.pid;
        return err;
}

static int run_program(struct ls_session *s, const char *sentence)
{
        int err, status;

        if (start_watcher(s) < 0) {
                ls_trace_file_undo(s->o->output, &s->trace_file);
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
        ls_watcher_target(&s->root->watcher, s->pid);
        status = prepare_with_child(s);
        if (status >= 0) {
                ls_launch_cancel(&s->launch);
                ls_trace_file_undo(s->o->output, &s->trace_file);
                return status;
        }
        if (*sentence) {
                ls_warning("%s; it runs without being recorded", sentence);
                ls_trace_notice(s->writer, sentence);
        }
        ls_processes_open(s);           /* the program may fork at once */
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
        ls_control_done(&s->control);
        ls_rotate_done(s);
        ls_flight_done(s);
        if (s->root)
                ls_ticker_stop(s->root->ticker);
        ls_processes_done(s);
        if (s->writer)
                ls_trace_writer_close(s->writer);
        if (s->root)
                ls_target_done(s->root);
        free(s->root);
        ls_map_shared_done(&s->maps);
        ls_workers_free(s->workers);
        for (unsigned i = 0; i < s->n_notices; i++)
                free(s->notices[i]);
        if (s->trace_fd >= 0)
                close(s->trace_fd);
        if (s->full_fd >= 0)
                close(s->full_fd);
        if (s->signal_fd >= 0)
                close(s->signal_fd);
}

static int make_root(struct ls_session *s)
{
        int err;

        s->root = malloc(sizeof(*s->root));
        err = s->root ? ls_target_init(s->root, s->o) : -ENOMEM;
        return err < 0 ? err : ls_processes_init(s);
}

void ls_session_init(struct ls_session *s, const struct ls_record_options *o)
{
        s->o = o;
        s->trace_fd = s->signal_fd = s->flight.out_fd = s->registry.fd = s->registry.bell_fd = -1;
        s->full_fd = ls_fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));        /* without it we look when we think fit */
        s->terminal = !o->quiet && isatty(STDERR_FILENO);
        s->workers = ls_workers_new(session_notice, s);
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
        if (ls_control_open(&s->control, o->control) < 0) {
                ls_control_done(&s->control);
                return status;
        }
        s->trace_fd = ls_trace_file_open(o->output, &s->trace_file);
        if (s->trace_fd < 0) {
                ls_control_done(&s->control);
                return status;
        }
        err = ls_signals_open(s);
        if (err == 0)
                err = make_root(s);
        if (err < 0)
                ls_error("cannot share memory with the program: %s; see: luasample doctor", strerror(-err));
        else
                err = prepare_env(s, &env);
        if (err < 0)
                ls_trace_file_undo(o->output, &s->trace_file);
        else
                status = run_program(s, sentence);
        ls_session_done(s);
        ls_env_done(&env);
        return status;
}
