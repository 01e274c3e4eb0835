/* A recording of processes that run already: `luasample record -p`. The agent is brought into each, and taken out again when
 * the recording ends: after -d, by Ctrl-C or SIGTERM, or when all have ended. See session.h. */
#include "record/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "record/process/agent_path.h"
#include "record/attach/attach.h"
#include "record/attach/children.h"
#include "record/attach/hold.h"
#include "record/attach/list.h"
#include "record/process/member.h"
#include "record/process/parent.h"
#include "record/trace_file.h"

#define SECOND_NS 1000000000ull
#define QUEUED_SHOWN_NS 500000ull
#define COMING_NS SECOND_NS             /* for a child whose parent has ended */
#define REASON_MOST 512
#define REASONS_SAID 16u                /* children of which it is said why they are not recorded */
#define WORDS_MOST 256u
#define WORDS_BYTES 16384u
#define AWAY_NS (365ull * 86400 * 1000000000)

struct attached {
        struct ls_session *s;
        struct ls_subject subject;
        struct ls_target *target;       /* the session's */
        int there;                      /* the agent is in it, or a child that it forked last has still to come */
        uint64_t gone_ns;               /* when the agent was no longer there; 0 = it is */
        int opened;                     /* the target has begun */
};

static struct attached *attached;       /* LS_TARGETS_MAX; one recording a process of luasample */
static unsigned n_attached;
static struct ls_attach_children children;

/* The command line of the process, for the trace. words and text are filled; at least one word. */
static void read_command(pid_t pid, const char *name, const char *words[WORDS_MOST + 1], char text[WORDS_BYTES])
{
        char path[64];
        unsigned n = 0;
        size_t len = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
        f = fopen(path, "re");
        if (f) {
                len = fread(text, 1, WORDS_BYTES - 1, f);
                fclose(f);
        }
        text[len] = 0;
        for (size_t at = 0; at < len && n < WORDS_MOST; at += strlen(text + at) + 1)
                words[n++] = text + at;
        if (!n)
                words[n++] = name;
        words[n] = NULL;
}

static void read_cwd(pid_t pid, char *to, size_t size)
{
        char path[64];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
        n = readlink(path, to, size - 1);
        if (n <= 0)
                n = (ssize_t)strlen(strcpy(to, "/"));
        to[n] = 0;
}

/* The memory is there, and the agent is not yet. */
static int prepared(void *ctx)
{
        struct attached *a = ctx;
        struct ls_session *s = a->s;
        char name[LS_TARGET_NAME];
        int err;

        a->target->memory.shm->timer = (uint8_t)s->timer;
        if (!s->recording) {
                s->root = a->target;
                err = ls_session_start_trace(s);
        } else {
                err = s->n_targets == LS_TARGETS_MAX ? -E2BIG : ls_session_begin_target(s, a->target, a->subject.pid);
                if (err == 0) {
                        ls_member_name(a->subject.pid, s->o->no_args, name, sizeof(name));
                        ls_target_name(a->target, *name ? name : a->subject.name);
                        s->targets[s->n_targets++] = a->target;
                        atomic_store(&a->target->memory.shm->paused, (uint32_t)s->pause.on);
                }
        }
        if (err < 0)
                return err;
        a->opened = 1;
        ls_target_since_now(a->target);
        err = ls_target_tick(a->target, s->timer, s->o);
        if (!err)
                err = ls_target_watch(a->target, s->o);
        if (err < 0)
                ls_error("cannot start the timer: %s", strerror(-err));
        return err;
}

static void say_attached(const struct attached *a)
{
        const struct ls_shm *shm = a->target->memory.shm;

        if (!a->s->o->quiet) {
                fprintf(stderr, "[ luasample: attached to %d (%s): one of its threads was stopped for %.2f ms", (int)a->subject.pid,
                        a->subject.name, (double)a->subject.inject.stopped_ns / 1e6);
                if (a->subject.inject.queued_ns > QUEUED_SHOWN_NS)
                        fprintf(stderr, ", and waited %.2f ms for a processor", (double)a->subject.inject.queued_ns / 1e6);
                if (a->subject.held_ns)
                        fprintf(stderr, "; those that ran, for %.2f ms at most", (double)a->subject.held_ns / 1e6);
                fprintf(stderr, " ]\n");
        }
        if (atomic_load(&shm->agent_state) == LS_AGENT_LOADED && !a->s->o->quiet)
                ls_warning("no Lua VM was found in %d (%s): those that it makes from now on are recorded", (int)a->subject.pid,
                           a->subject.name);
}

/* Returns 0 or -errno after a line. */
static int attach_one(struct ls_session *s, struct attached *a, pid_t pid, const char *agent)
{
        unsigned how = s->o->own ? LS_SUBJECT_OWN : s->o->force ? LS_SUBJECT_FORCE : 0;
        int err = ls_subject_open(&a->subject, pid, s->workers, agent, ls_memory_size(s->o), how);
        pid_t first = s->recording ? s->pid : pid;

        *a = (struct attached){ .s = s, .subject = a->subject };
        s->pid = a->subject.living;
        if (err == 0)
                err = ls_session_choose_timer(s);
        s->pid = first;
        if (err < 0)
                return err;
        a->target = calloc(1, sizeof(*a->target));
        if (!a->target)
                return -ENOMEM;
        a->target->memory.fd = a->target->pidfd = -1;
        err = ls_attach_begin(&a->subject, agent, &a->target->memory, s->o, prepared, a);
        a->there = err == 0;
        if (err == 0)
                say_attached(a);
        else if (a->opened) {
                ls_target_stop(a->target);
                ls_attach_give_up(&a->target->memory);
                a->target->ended = 1;
        }
        return err;
}

/* A process that forks and ends, as daemons do, may end before its child has run. */
static int child_comes(const struct ls_session *s, struct attached *a, uint64_t now_ns)
{
        if (!a->gone_ns)
                a->gone_ns = now_ns;
        return !s->o->no_children && atomic_load(&a->target->memory.shm->forks_coming) > 0 &&
               now_ns - a->gone_ns < COMING_NS;
}

static int count_there(const struct ls_session *s)
{
        int n = 0;

        for (unsigned i = 0; i < n_attached; i++) {
                struct attached *a = &attached[i];
                uint64_t now = ls_session_clock(CLOCK_MONOTONIC);

                if (!a->there)
                        continue;
                if (ls_attach_is_there(&a->subject))
                        ls_attach_hold(&a->subject, &a->target->memory);
                else if (!child_comes(s, a, now)) {
                        a->there = 0;
                        a->target->ended = 1;
                        ls_target_stop(a->target);
                }
                if (!s->o->no_children)
                        ls_attach_children_take(&children, a->target, now);
                n += a->there;
        }
        return n;
}

static void keep_on(void *ctx)
{
        ls_session_work(ctx, 1);
}

static void say(struct ls_session *s, const char *text)
{
        ls_trace_notice(s->writer, text);
        ls_status_notice(s, text);
}

/* Children that are not recorded, but for those of which it was said why. */
static void say_lost(struct ls_session *s)
{
        unsigned long n = children.lost + (s->n_refused > REASONS_SAID ? s->n_refused - REASONS_SAID : 0);
        char text[128];

        if (!n)
                return;
        snprintf(text, sizeof(text), "%lu forked process%s not recorded: too many came at a time, or for reasons as given",
                 n, n == 1 ? " is" : "es are");
        say(s, text);
}

/* Before the last look at the rings: what the agents still have to say is in them when they have gone. */
static void leave(struct ls_session *s)
{
        for (unsigned i = 0; i < n_attached; i++) {
                struct attached *a = &attached[i];

                if (!a->there)
                        continue;
                if (ls_attach_end(&a->subject, &a->target->memory, keep_on, s) < 0)
                        ls_warning("%d (%s) has not let the agent go yet: it leaves by itself when it can", (int)a->subject.pid,
                                   a->subject.name);
                a->target->ended = !ls_attach_is_there(&a->subject);
                a->there = 0;
        }
        say_lost(s);
}

/* A target that has begun is the session's. */
static void entry_done(struct attached *a)
{
        ls_subject_done(&a->subject);
        if (a->target && !a->opened && a->target != a->s->root) {
                ls_target_done(a->target);
                free(a->target);
        }
        a->target = NULL;
}

/* One that no process has any more. */
static struct attached *free_entry(void)
{
        for (unsigned i = 0; i < n_attached; i++)
                if (!attached[i].there) {
                        entry_done(&attached[i]);
                        return &attached[i];
                }
        return n_attached < LS_TARGETS_MAX ? &attached[n_attached++] : NULL;
}

static void keep_reason(void *ctx, const char *text)
{
        snprintf(ctx, REASON_MOST, "%s", text);
}

/* 0 = it has ended. */
static int has_program(pid_t pid)
{
        char path[64], program[8];

        snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
        return readlink(path, program, sizeof(program)) > 0;
}

/* What stands against it is said in the summary, unless it has just ended, or begun another program. */
static void attach_child(struct ls_session *s, pid_t pid, const char *agent)
{
        struct attached *a = s->n_processes < LS_PROCESSES_MAX ? free_entry() : NULL;
        char reason[REASON_MOST] = "there are too many processes";
        int err = -E2BIG;

        if (a) {
                ls_session_heartbeat(s, ls_session_clock(CLOCK_MONOTONIC) + AWAY_NS);
                ls_error_to(keep_reason, reason);
                err = attach_one(s, a, pid, agent);
                ls_error_to(NULL, NULL);
                ls_session_heartbeat(s, ls_session_clock(CLOCK_MONOTONIC));
        }
        if (err < 0 && err != -ESRCH && err != -ENOENT && has_program(pid) && s->n_refused++ < REASONS_SAID)
                say(s, reason);
}

/* The terminal's stop: the agents wait for us. */
static void stop_here(struct ls_session *s)
{
        ls_session_heartbeat(s, ls_session_clock(CLOCK_MONOTONIC) + AWAY_NS);
        kill(getpid(), SIGSTOP);
        ls_session_heartbeat(s, ls_session_clock(CLOCK_MONOTONIC));
}

/* Returns 1 when one asks for the end. */
static int read_signals(struct ls_session *s)
{
        struct signalfd_siginfo si;
        int end = 0;

        while (read(s->signal_fd, &si, sizeof(si)) == sizeof(si)) {
                end |= si.ssi_signo == SIGINT || si.ssi_signo == SIGTERM || si.ssi_signo == SIGHUP || si.ssi_signo == SIGQUIT;
                if (si.ssi_signo == SIGTSTP)
                        stop_here(s);
        }
        return end;
}

static void main_loop(struct ls_session *s, const char *agent)
{
        uint64_t end = ls_pause_end(s);
        struct pollfd p[2 + LS_CONTROL_FDS] = { { .fd = s->signal_fd, .events = POLLIN } };
        pid_t pid;

        while (count_there(s) || children.n) {
                uint64_t now = ls_session_clock(CLOCK_MONOTONIC), wait = ls_session_time_to_wait(s, now, &p[1]);
                uint64_t due = ls_attach_children_due(&children);
                struct timespec t;

                if (now >= end)
                        break;
                if (wait > end - now)
                        wait = end - now;
                if (due < now + wait)
                        wait = due > now ? due - now : 0;
                t.tv_sec = (time_t)(wait / SECOND_NS);
                t.tv_nsec = (long)(wait % SECOND_NS);
                ppoll(p, 2 + ls_control_poll(&s->control, p + 2), &t, NULL);
                ls_inject_let_go();
                if (read_signals(s))
                        break;
                ls_session_work(s, 0);
                ls_control_handle(s);
                if (s->control.stop)
                        break;
                pid = ls_attach_children_next(&children, ls_session_clock(CLOCK_MONOTONIC));
                if (pid)
                        attach_child(s, pid, agent);
        }
        ls_session_end(s);
}

static int attach_all(struct ls_session *s, const pid_t *pids, unsigned n, const char *agent)
{
        unsigned there = 0;

        for (unsigned i = 0; i < n; i++) {
                there += attach_one(s, &attached[n_attached++], pids[i], agent) == 0;
                ls_inject_let_go();
        }
        return there ? 0 : -ESRCH;
}

static void all_done(struct ls_session *s)
{
        for (unsigned i = 0; i < n_attached; i++)
                entry_done(&attached[i]);
        ls_session_done(s);
        free(attached);
}

static int run(struct ls_session *s, const pid_t *pids, unsigned n, const char *agent)
{
        int err = ls_signals_open(s);

        if (err < 0)
                ls_error("cannot receive signals: %s", strerror(-err));
        else
                err = attach_all(s, pids, n, agent);
        if (err == 0) {
                ls_parent_go_on();
                main_loop(s, agent);
        }
        if (err < 0 && s->recording)
                ls_session_end(s);
        else if (err < 0)
                ls_trace_file_undo(s->o->output, &s->trace_file);
        return err < 0 ? LS_EXIT_FAIL : 0;
}

int ls_session_attach(const struct ls_record_options *options)
{
        static struct ls_session session;
        static struct ls_record_options o;
        static const char *words[WORDS_MOST + 1];
        static char text[WORDS_BYTES], name[16], agent[PATH_MAX];
        pid_t pids[LS_ATTACH_MOST];
        struct ls_session *s = &session;
        int n = ls_attach_list(options, pids), status = LS_EXIT_FAIL;

        if (n < 0)
                return n == -EINVAL ? LS_EXIT_USAGE : LS_EXIT_FAIL;
        if (ls_agent_path(agent, sizeof(agent)) < 0) {
                ls_error("libsample.so, the agent, is neither beside luasample nor in %s; run meson install, or ninja", LS_AGENT_DIR);
                return LS_EXIT_FAIL;
        }
        o = *options;
        o.command = words;
        snprintf(name, sizeof(name), "%d", (int)pids[0]);
        read_command(pids[0], name, words, text);
        ls_session_init(s, &o);
        if (!s->workers)
                return LS_EXIT_FAIL;
        read_cwd(pids[0], s->cwd, sizeof(s->cwd));
        s->with_agent = 1;
        s->leave = leave;
        attached = calloc(LS_TARGETS_MAX, sizeof(*attached));
        if (!attached)
                return LS_EXIT_FAIL;
        if (ls_control_open(&s->control, o.control) == 0)
                s->trace_fd = ls_trace_file_open(o.output, &s->trace_file);
        if (s->trace_fd >= 0)
                status = run(s, pids, (unsigned)n, agent);
        all_done(s);
        return status;
}
