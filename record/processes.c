/* The processes of a recording: see processes.h. */
#include "record/processes.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/process/agent_path.h"
#include "record/process/descriptors.h"
#include "record/process/member.h"
#include "record/session.h"
#include "record/status.h"
#include "record/totals.h"

#define NAMED_NS                                                                                   \
        50000000ull /* a new process may give itself another title: its name is read then */
#define LAST_WRITES_NS 2000000          /* for the sample that the last tick led to */
#define FILES_WANTED 16384              /* a memory, a pidfd, and up to three files a thread */

int ls_processes_init(struct ls_session *s)
{
        int err;

        s->registry.fd = s->registry.bell_fd = -1;
        if (s->o->no_children || !s->with_agent)
                return 0;
        err = ls_registry_init(&s->registry);
        if (err == 0)
                ls_registry_announce(&s->registry, s->targets[0]->memory.shm);
        return err;
}

/* With what belongs to how it came to be recorded. */
static void drop(struct ls_target *t)
{
        if (t->kind->done)
                t->kind->done(t);
        ls_target_stop(t);
        ls_target_done(t);
        free(t);
}

void ls_processes_done(struct ls_session *s)
{
        if (s->registry.page)
                ls_registry_done(&s->registry);
        for (unsigned i = 0; i < s->n_targets; i++)
                drop(s->targets[i]);
        s->n_targets = 0;
}

int ls_processes_agent(struct ls_session *s)
{
        int err = ls_agent_path(s->agent, sizeof(s->agent));

        if (err < 0)
                ls_error("libsample.so, the agent, is neither beside luasample nor in %s; "
                         "run meson install, or ninja", LS_AGENT_DIR);
        return err;
}

int ls_processes_begin(struct ls_session *s, struct ls_target *t, pid_t pid)
{
        char cwd[PATH_MAX];
        struct ls_target_config cfg = { .o = s->o,
                                        .out = s->out,
                                        .cwd = cwd,
                                        .workers = s->workers,
                                        .lent = s->lent,
                                        .ordinal = s->n_processes,
                                        .start_ns = s->start_ns,
                                        .has_ticker = s->o->bare_tick != 2 &&
                                                      s->timer != LS_TIMER_CPUTIME };
        int err;

        if (s->n_targets == LS_TARGETS_MAX || cfg.ordinal == LS_PROCESSES_MAX)
                return -E2BIG;
        s->n_processes++;
        ls_member_cwd(pid, s->cwd, cwd);
        err = ls_target_begin(t, pid, &cfg);
        if (err == 0 && t != s->targets[0])
                s->targets[s->n_targets++] = t;
        return err;
}

void ls_processes_open(struct ls_session *s)
{
        if (s->registry.fd < 0)
                return;
        ls_allow_files(FILES_WANTED);
        ls_registry_refill(&s->registry, s->o, s->timer, ls_session_clock(CLOCK_MONOTONIC));
        if (ls_registry_open(&s->registry) < 0)
                ls_registry_close(&s->registry);
}

static struct ls_target *find_generation(const struct ls_session *s, uint64_t generation)
{
        for (unsigned i = 0; i < s->n_targets; i++)
                if (generation && s->targets[i]->generation == generation)
                        return s->targets[i];
        return NULL;
}

/* Its name in the trace. What it is called now, what it was called when it came, or what its
 * parent is. */
static void name(struct ls_session *s, struct ls_target *t)
{
        char now[LS_TARGET_NAME];

        if (t->named)
                return;
        ls_member_name(t->pid, s->o->no_args, now, sizeof(now));
        ls_target_name(t, *now ? now : *t->name ? t->name : "?");
}

static void refuse(struct ls_session *s, struct ls_target *t)
{
        char text[96];

        atomic_store(&t->memory.shm->recording, 0);
        ls_target_done(t);
        free(t);
        if (s->n_refused++)
                return;
        snprintf(text, sizeof(text),
                 "some processes were not recorded: %u are at one time, and %u in all",
                 LS_TARGETS_MAX, LS_PROCESSES_MAX);
        ls_status_say(s, text);
}

static void first_name(struct ls_session *s, struct ls_target *t, const struct ls_target *parent)
{
        ls_member_name(t->pid, s->o->no_args, t->name, sizeof(t->name));
        if (*t->name)
                return;
        if (parent)
                memcpy(t->name, parent->name, sizeof(t->name));
        else
                memcpy(t->name, t->memory.shm->command, sizeof(t->memory.shm->command) - 1);
}

/* A kernel without pidfds. */
static int child_has_ended(struct ls_session *s, struct ls_target *t, uint64_t now_ns)
{
        (void)s, (void)now_ns;
        return t->pidfd < 0 && kill(t->pid, 0) < 0 && errno == ESRCH;
}

static const struct ls_process_kind child = { .has_ended = child_has_ended };

static void take_in(struct ls_session *s, struct ls_target *t, pid_t pid, uint64_t now_ns)
{
        struct ls_target *parent = find_generation(s, t->memory.shm->parent_generation);

        t->kind = &child;
        if (ls_processes_begin(s, t, pid) < 0) {
                refuse(s, t);
                return;
        }
        t->pidfd = ls_fd_above_stdio((int)syscall(SYS_pidfd_open, pid, 0));
        t->ended = (t->pidfd < 0 && errno == ESRCH) || !ls_member_has(pid, t->memory.fd);
        if (parent) {
                name(s, parent);
                ls_target_inherit(t, parent);
        }
        first_name(s, t, parent);
        t->name_ns = now_ns + NAMED_NS;
        if (!t->ended && ls_target_tick(t, s->timer, s->o, s->full_fd) < 0)
                ls_status_notice(s, "the timer of a process could not be started");
        if (!t->ended && ls_target_watch(t, s->o) < 0)
                ls_status_notice(s, "blocked threads of a process could not be watched");
}

/* A process that has ended, or that the recording leaves. */
static void let_go(struct ls_session *s, struct ls_target *t)
{
        name(s, t);
        ls_target_stop(t);
        ls_target_finish(t);
        ls_totals_process(s, t);
        ls_target_sums(t, &s->ended);
        drop(t);
}

static void look_for_ended(struct ls_session *s, uint64_t now_ns)
{
        struct pollfd p[LS_TARGETS_MAX + 1];
        unsigned n = ls_processes_poll(s, p), kept = 0;

        if (n && poll(p, n, 0) > 0)
                for (unsigned i = 0; i < n; i++)
                        for (unsigned k = 0; p[i].revents && k < s->n_targets; k++)
                                if (s->targets[k]->pidfd == p[i].fd)
                                        s->targets[k]->ended = 1;
        for (unsigned i = 1; i < s->n_targets; i++)
                if (s->targets[i]->ended)
                        ls_target_tell(s->targets[i]);
        for (unsigned i = 0; i < s->n_targets; i++) {
                struct ls_target *t = s->targets[i];

                if (!t->ended && t->kind->has_ended(s, t, now_ns)) {
                        t->ended = 1;
                        ls_target_stop(t);
                }
                if (i && t->ended)
                        let_go(s, t);
                else
                        s->targets[kept++] = t;         /* the first stays: the summary is of it */
        }
        s->n_targets = kept;
}

void ls_processes_look(struct ls_session *s, uint64_t now_ns)
{
        struct ls_target *t;
        uint64_t bells;
        pid_t pid;

        if (s->leaving)
                return;
        if (s->registry.fd < 0) {               /* children are not followed, or attached to */
                look_for_ended(s, now_ns);
                return;
        }
        while (read(s->registry.bell_fd, &bells, sizeof(bells)) == sizeof(bells))
                ;
        for (unsigned i = 0;
             i < LS_SEATS && (t = ls_registry_next(&s->registry, now_ns, &pid)) != NULL; i++)
                take_in(s, t, pid, now_ns);
        ls_registry_refill(&s->registry, s->o, s->timer, now_ns);
        look_for_ended(s, now_ns);
        for (unsigned i = 0; i < s->n_targets; i++)
                if (!s->targets[i]->named && (now_ns >= s->targets[i]->name_ns ||
                                              atomic_load(&s->targets[i]->memory.shm->filling)))
                        name(s, s->targets[i]);
}

unsigned ls_processes_poll(const struct ls_session *s, struct pollfd *p)
{
        unsigned n = 0;

        if (s->registry.bell_fd >= 0)
                p[n++] = (struct pollfd){ .fd = s->registry.bell_fd, .events = POLLIN };
        for (unsigned i = 0; i < s->n_targets; i++)
                if (s->targets[i]->pidfd >= 0 && !s->targets[i]->ended)
                        p[n++] = (struct pollfd){ .fd = s->targets[i]->pidfd, .events = POLLIN };
        return n;
}

unsigned ls_processes_left(const struct ls_session *s)
{
        unsigned n = 0;

        for (unsigned i = 0; i < s->n_targets; i++)
                n += !s->targets[i]->ended;
        return n;
}

int ls_processes_come(const struct ls_session *s)
{
        return s->registry.page &&
               ls_registry_expects(&s->registry, ls_session_clock(CLOCK_MONOTONIC));
}

int ls_processes_has(void *session, pid_t pid)
{
        const struct ls_session *s = session;

        for (unsigned i = 0; i < s->n_targets; i++)
                if (s->targets[i]->pid == pid)
                        return 1;
        return 0;
}

/* The last ticks have come: what they led to is in the ring, or is being written. When a process
 * is dead all is. */
void ls_processes_finish(struct ls_session *s)
{
        const struct timespec moment = { 0, LAST_WRITES_NS };
        unsigned left;

        ls_processes_look(s, ls_session_clock(CLOCK_MONOTONIC));
        ls_registry_close(&s->registry);
        for (unsigned i = 0; i < s->n_targets; i++)
                ls_target_stop(s->targets[i]);
        left = ls_processes_left(s);
        s->leaving = 1;
        for (unsigned i = 0; i < s->n_targets; i++)
                if (s->targets[i]->kind->leave && !s->targets[i]->ended)
                        s->targets[i]->kind->leave(s, s->targets[i]);
        if (left)
                nanosleep(&moment, NULL);
        for (unsigned i = 0; i < s->n_targets; i++)
                ls_target_tell(s->targets[i]);
        for (unsigned i = 0; i < s->n_targets; i++) {
                name(s, s->targets[i]);
                ls_target_finish(s->targets[i]);
        }
        if (s->registry.page)
                ls_registry_done(&s->registry);
}
