/* Processes that run already: see attached.h. */
#include "record/attached.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/client/client.h"
#include "record/attach/attach.h"
#include "record/attach/children.h"
#include "record/attach/hold.h"
#include "record/attach/list.h"
#include "record/attach/stop.h"
#include "record/process/member.h"
#include "record/process/parent.h"
#include "record/process/proc.h"
#include "record/processes.h"
#include "record/recording.h"
#include "record/session.h"
#include "record/signals.h"
#include "record/status.h"
#include "record/worker/worker.h"

#define SECOND_NS 1000000000ull
#define QUEUED_SHOWN_NS 500000ull
#define COMING_NS SECOND_NS             /* for a child whose parent has ended */
#define REASON_MOST 512
#define REASONS_SAID 16u                /* children of which it is said why they are not recorded */
#define WORDS_MOST 256u
#define WORDS_BYTES 16384u

struct ls_attached {
        struct ls_session *s;
        struct ls_target *target;
        struct ls_subject subject;
        uint64_t gone_ns;               /* when the agent was no longer there; 0 = it is */
};

/* The command line of the process, for the trace. words and text are filled; at least one word. */
static void read_command(pid_t pid, const char *name, const char *words[WORDS_MOST + 1],
                         char text[WORDS_BYTES])
{
        FILE *f = ls_proc_file(pid, 0, "cmdline");
        unsigned n = 0;
        size_t len = 0;

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

/* A process that forks and ends, as daemons do, may end before its child has run. */
static int child_comes(const struct ls_session *s, struct ls_attached *a, uint64_t now_ns)
{
        if (!a->gone_ns)
                a->gone_ns = now_ns;
        return !s->o->no_children && atomic_load(&a->target->memory.shm->forks_coming) > 0 &&
               now_ns - a->gone_ns < COMING_NS;
}

/* The agent is in it, or a child that it forked last has still to come. */
static int has_ended(struct ls_session *s, struct ls_target *t, uint64_t now_ns)
{
        struct ls_attached *a = t->attached;
        int ended = 0;

        if (ls_attach_is_there(&a->subject))
                ls_attach_hold(&a->subject, &t->memory);
        else
                ended = !child_comes(s, a, now_ns);
        if (!s->o->no_children)
                ls_attach_children_take(&s->forked, t->pid, ls_worker_uid(t->worker),
                                        &t->memory, now_ns);
        return ended;
}

static void keep_on(void *ctx)
{
        ls_recording_work(ctx, 1);
}

/* Before the last look at the rings: what the agent still has to say is in them when it has
 * gone. */
static void leave(struct ls_session *s, struct ls_target *t)
{
        struct ls_subject *subject = &t->attached->subject;

        if (ls_attach_end(subject, &t->memory, keep_on, s) < 0)
                ls_warning("%d (%s) has not let the agent go yet: it leaves by itself when it can",
                           (int)subject->pid, subject->name);
        t->ended = !ls_attach_is_there(subject);
}

static void done(struct ls_target *t)
{
        ls_subject_done(&t->attached->subject);
        free(t->attached);
}

static const struct ls_process_kind attached = { has_ended, leave, done };

/* The memory is there, and the agent is not yet. */
static int prepared(void *ctx)
{
        struct ls_attached *a = ctx;
        struct ls_session *s = a->s;
        struct ls_target *t = a->target;
        char name[LS_TARGET_NAME];
        int err;

        t->memory.shm->timer = (uint8_t)s->timer;
        if (!s->recording) {
                err = ls_recording_begin(s, t);
        } else {
                err = ls_processes_begin(s, t, a->subject.pid);
                if (err == 0) {
                        ls_member_name(a->subject.pid, s->o->no_args, name, sizeof(name));
                        ls_target_name(t, *name ? name : a->subject.name);
                        atomic_store(&t->memory.shm->paused, (uint32_t)s->pause.on);
                }
        }
        if (err < 0)
                return err;
        ls_target_since_now(t);
        err = ls_target_tick(t, s->timer, s->o, s->full_fd);
        if (!err)
                err = ls_target_watch(t, s->o);
        if (err < 0)
                ls_error("cannot start the timer: %s", strerror(-err));
        return err;
}

static void say_attached(const struct ls_attached *a)
{
        const struct ls_session *s = a->s;
        const struct ls_shm *shm = a->target->memory.shm;

        if (!s->o->quiet) {
                fprintf(stderr,
                        "[ luasample: attached to %d (%s): one of its threads was stopped for %.2f "
                        "ms",
                        (int)a->subject.pid, a->subject.name,
                        (double)a->subject.inject.stopped_ns / 1e6);
                if (a->subject.inject.queued_ns > QUEUED_SHOWN_NS)
                        fprintf(stderr, ", and waited %.2f ms for a processor",
                                (double)a->subject.inject.queued_ns / 1e6);
                if (a->subject.held_ns)
                        fprintf(stderr, "; those that ran, for %.2f ms at most",
                                (double)a->subject.held_ns / 1e6);
                fprintf(stderr, " ]\n");
        }
        if (atomic_load(&shm->agent_state) == LS_AGENT_LOADED && !s->o->quiet)
                ls_warning("no Lua VM was found in %d (%s): those that it makes from now on are "
                           "recorded",
                           (int)a->subject.pid, a->subject.name);
}

/* A process that could not be attached to: it may be one of the recording already. */
static void give_up(struct ls_session *s, struct ls_target *t)
{
        if (s->n_targets && s->targets[s->n_targets - 1] == t) {
                ls_target_stop(t);
                ls_attach_give_up(&t->memory);
                t->ended = 1;
                return;
        }
        done(t);
        ls_target_done(t);
        free(t);
}

/* Returns 0 or -errno after a line. */
static int attach_one(struct ls_session *s, pid_t pid)
{
        unsigned how = s->o->own ? LS_SUBJECT_OWN : s->o->force ? LS_SUBJECT_FORCE : 0;
        struct ls_target *t = malloc(sizeof(*t));
        struct ls_attached *a = calloc(1, sizeof(*a));
        int err;

        if (!t || !a) {
                free(t);
                free(a);
                return -ENOMEM;
        }
        ls_target_clear(t);
        *a = (struct ls_attached){ .s = s, .target = t };
        t->kind = &attached;
        t->attached = a;
        if (!s->recording)
                s->pid = pid;
        err = ls_subject_open(&a->subject, pid, s->workers, s->agent, ls_memory_size(s->o), how);
        if (err == 0)
                err = ls_recording_timer(s, a->subject.living);
        if (err == 0)
                err = ls_attach_begin(&a->subject, s->agent, &t->memory, s->o, prepared, a);
        if (err == 0)
                say_attached(a);
        else
                give_up(s, t);
        return err;
}

/* Children that are not recorded, but for those of which it was said why. */
void ls_attached_say_lost(struct ls_session *s)
{
        unsigned long n = s->forked.lost +
                          (s->n_refused > REASONS_SAID ? s->n_refused - REASONS_SAID : 0);
        char text[128];

        if (!n)
                return;
        snprintf(text, sizeof(text),
                 "%lu forked process%s not recorded: too many came at a time, or for reasons as "
                 "given",
                 n, n == 1 ? " is" : "es are");
        ls_status_say(s, text);
}

static void keep_reason(void *ctx, const char *text)
{
        snprintf(ctx, REASON_MOST, "%s", text);
}

/* 0 = it has ended. */
static int has_program(pid_t pid)
{
        char program[8];

        return ls_proc_link(pid, "exe", program, sizeof(program)) > 0;
}

/* What stands against it is said in the summary, unless it has just ended, or begun another
 * program. */
static void attach_child(struct ls_session *s, pid_t pid)
{
        char reason[REASON_MOST] = "there are too many processes";
        int err = -E2BIG;

        if (s->n_targets < LS_TARGETS_MAX && s->n_processes < LS_PROCESSES_MAX) {
                ls_recording_away(s, 1);
                ls_error_to(keep_reason, reason);
                err = attach_one(s, pid);
                ls_error_to(NULL, NULL);
                ls_recording_away(s, 0);
        }
        if (err < 0 && err != -ESRCH && err != -ENOENT && has_program(pid) &&
            s->n_refused++ < REASONS_SAID)
                ls_status_say(s, reason);
}

void ls_attached_next(struct ls_session *s)
{
        pid_t pid = ls_attach_children_next(&s->forked, ls_session_clock(CLOCK_MONOTONIC));

        if (pid)
                attach_child(s, pid);
}

/* Returns how many. */
static unsigned attach_all(struct ls_session *s, const pid_t *pids, unsigned n)
{
        unsigned there = 0;

        for (unsigned i = 0; i < n; i++) {
                there += attach_one(s, pids[i]) == 0;
                ls_stop_let_go();
        }
        return there;
}

/* A daemon that records these lends them until we end. */
static void borrow(const pid_t *pids, unsigned n)
{
        char text[LS_ATTACH_MOST * 12], *p = text;

        for (unsigned i = 0; i < n; i++)
                p += sprintf(p, "%s%d", i ? "," : "", (int)pids[i]);
        ls_client_borrow(text);
}

int ls_attached_begin(struct ls_session *s)
{
        static struct ls_record_options o;
        static const char *words[WORDS_MOST + 1];
        static char text[WORDS_BYTES], name[16];
        pid_t pids[LS_ATTACH_MOST];
        int err, n = ls_attach_list(s->o, pids);

        if (n < 0)
                return n == -EINVAL ? LS_EXIT_USAGE : LS_EXIT_FAIL;
        if (ls_processes_agent(s) < 0)
                return LS_EXIT_FAIL;
        o = *s->o;
        o.command = words;
        s->o = &o;
        snprintf(name, sizeof(name), "%d", (int)pids[0]);
        read_command(pids[0], name, words, text);
        ls_member_cwd(pids[0], "/", s->cwd);
        s->with_agent = 1;
        if (ls_recording_open(s) < 0)
                return LS_EXIT_FAIL;
        borrow(pids, (unsigned)n);
        err = ls_signals_open(s);
        if (err < 0)
                ls_error("cannot receive signals: %s", strerror(-err));
        else if (ls_recording_writer(s) == 0 && attach_all(s, pids, (unsigned)n)) {
                ls_parent_go_on();
                return -1;
        }
        if (s->recording)
                ls_recording_end(s);
        else
                ls_trace_file_undo(s->o->output, &s->trace_file);
        return LS_EXIT_FAIL;
}
