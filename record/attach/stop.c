/* Stops the threads of another process for a moment: see stop.h. */
#include "record/attach/stop.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "formats/wire/clock.h"
#include "record/attach/threads.h"
#include "record/process/proc.h"

#define LATE_MOST 256u

/* Where a blocked thread waits: "NUMBER ARGUMENTS... SP PC", "running" for others. */
static int read_blocked(pid_t pid, struct ls_stopped *t)
{
        char buf[256], *pc, *sp;

        if (ls_proc_read(pid, t->tid, "syscall", buf, sizeof(buf)) <= 0 || *buf == 'r')
                return 0;
        pc = strrchr(buf, ' ');
        if (!pc)
                return 0;
        *pc = 0;
        sp = strrchr(buf, ' ');
        if (!sp)
                return 0;
        memset(&t->regs, 0, sizeof(t->regs));
        t->regs.rip = strtoull(pc + 1, NULL, 16);
        t->regs.rsp = strtoull(sp + 1, NULL, 16);
        t->blocked = 1;
        return 1;
}

static int interrupt(struct ls_stopped *t)
{
        if (ptrace(PTRACE_SEIZE, t->tid, NULL, NULL) < 0)
                return -errno;
        t->traced = 1;
        return ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL) < 0 ? -errno : 0;
}

/* how: WNOHANG or 0. Returns 0; -EAGAIN: not yet; or -errno. */
static int wait_for_it(struct ls_stopped *t, int how)
{
        int status;
        pid_t r = waitpid(t->tid, &status, __WALL | how);

        if (r == 0)
                return -EAGAIN;
        if (r != t->tid || !WIFSTOPPED(status)) {
                t->traced = 0;
                return -ESRCH;
        }
        t->signal = status >> 16 ? 0 : WSTOPSIG(status);
        return ptrace(PTRACE_GETREGS, t->tid, NULL, &t->regs) < 0 ? -errno : 0;
}

static int is_listed(const struct ls_stop *s, pid_t tid)
{
        for (unsigned i = 0; i < s->n; i++)
                if (s->threads[i].tid == tid)
                        return 1;
        return 0;
}

/* Adds the threads that are not known yet. */
static int list_threads(struct ls_stop *s)
{
        pid_t tid;
        DIR *d = ls_proc_tasks(s->pid);

        if (!d)
                return -errno;
        s->more = 0;
        while ((tid = ls_proc_next(d))) {
                if (tid == s->except || is_listed(s, tid) ||
                    (tid == s->pid && ls_thread_has_ended(s->pid, tid)))
                        continue;
                if (s->n == s->most)
                        s->more++;
                else
                        s->threads[s->n++] = (struct ls_stopped){ .tid = tid };
        }
        closedir(d);
        return 0;
}

/* Interrupts those from first on that run, then waits until they stand. Returns how many, or
 * -errno. Those that have ended meanwhile are taken out; all others have not. */
static int stop_these(struct ls_stop *s, unsigned first)
{
        uint8_t asked[LS_STOP_MOST] = { 0 };
        int err = 0, stopped = 0;

        for (unsigned i = first; (!err || err == -ESRCH) && i < s->n; i++) {
                struct ls_stopped *t = &s->threads[i];

                if (t->traced || read_blocked(s->pid, t))
                        continue;
                t->blocked = 0;
                err = ls_thread_seize_error(s->pid, t->tid, interrupt(t));
                asked[i] = t->traced || err == -ESRCH;
        }
        for (unsigned i = s->n; i-- > first;) {
                struct ls_stopped *t = &s->threads[i];

                if (!asked[i])
                        continue;
                if (t->traced && wait_for_it(t, 0) == 0) {
                        stopped++;
                } else {
                        s->threads[i] = s->threads[--s->n];
                        s->more++;
                }
        }
        return err && err != -ESRCH ? err : stopped;
}

int ls_stop_again(struct ls_stop *s)
{
        int err = list_threads(s);

        return err ? err : stop_these(s, 0);
}

int ls_stop_ask(struct ls_stop *s, unsigned i)
{
        struct ls_stopped *t = &s->threads[i];

        if (t->traced || read_blocked(s->pid, t))
                return 0;
        t->blocked = 0;
        return ls_thread_seize_error(s->pid, t->tid, interrupt(t));
}

int ls_stop_stands(struct ls_stop *s, unsigned i, int wait)
{
        struct ls_stopped *t = &s->threads[i];
        int err = t->traced ? wait_for_it(t, wait ? 0 : WNOHANG) : 0;

        return err == -EAGAIN ? 0 : err ? err : 1;
}

/* Where the user's own class is a realtime one it stays: he has said how urgent this is. */
void ls_stop_hurry(int on)
{
        static int before = -1;         /* his class, -1 = it is as it was */
        struct sched_param param = { .sched_priority = on };
        int now = sched_getscheduler(0), kind = now & ~SCHED_RESET_ON_FORK;

        if (on && (kind == SCHED_OTHER || kind == SCHED_BATCH || kind == SCHED_IDLE)) {
                before = sched_setscheduler(0, SCHED_FIFO | (now & SCHED_RESET_ON_FORK), &param)
                                 ? -1
                                 : now;
        } else if (!on && before >= 0) {
                sched_setscheduler(0, before, &param);
                before = -1;
        }
}

int ls_stop_list(struct ls_stop *s, pid_t pid, unsigned most, pid_t except)
{
        s->pid = pid;
        s->except = except;
        s->most = most < LS_STOP_MOST ? most : LS_STOP_MOST;
        s->n = 0;
        return list_threads(s);
}

int ls_stop_begin(struct ls_stop *s, pid_t pid, unsigned most, pid_t except)
{
        int err = ls_stop_list(s, pid, most, except);

        if (err >= 0)
                err = stop_these(s, 0);
        if (err >= 0)
                err = s->n ? 0 : -ESRCH;
        if (err < 0)
                ls_stop_end(s);
        return err;
}

void ls_stop_one_end(pid_t pid, struct ls_stopped *t)
{
        struct user_regs_struct regs = t->regs;

        if (!t->traced)
                return;
        if (!t->signal && ls_thread_call_again(pid, t->tid, t->asleep_ns, &regs))
                ptrace(PTRACE_SETREGS, t->tid, NULL, &regs);
        ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(intptr_t)t->signal);
        t->traced = 0;
}

/* It ran when it was to be stopped: it has not slept for long. */
void ls_stop_end_one(struct ls_stop *s, unsigned i)
{
        ls_stop_one_end(s->pid, &s->threads[i]);
}

static struct { pid_t pid, tid; } late[LATE_MOST];      /* threads that were to stop and have not
                                                         * yet; 0 = free */

void ls_stop_note_late(pid_t pid, pid_t tid)
{
        for (unsigned i = 0; i < LATE_MOST; i++)
                if (!late[i].tid) {
                        late[i].pid = pid;
                        late[i].tid = tid;
                        return;
                }
}

void ls_stop_let_go(void)
{
        for (unsigned i = 0; i < LATE_MOST; i++) {
                int status;
                pid_t r = late[i].tid ? waitpid(late[i].tid, &status, __WALL | WNOHANG) : 0;

                if (r < 0 && late[i].tid != late[i].pid) {      /* one that has begun another
                                                                 * program is its first thread */
                        late[i].tid = late[i].pid;
                        r = waitpid(late[i].tid, &status, __WALL | WNOHANG);
                }
                if (r == late[i].tid && r && WIFSTOPPED(status))
                        ptrace(PTRACE_DETACH, r, NULL,
                               (void *)(intptr_t)(status >> 16 ? 0 : WSTOPSIG(status)));
                if (r)
                        late[i].tid = 0;
        }
}

int ls_stop_one(pid_t pid, struct ls_stopped *t)
{
        const struct timespec moment = { 0, 1000000 };
        uint64_t asked_ns;
        sigset_t child;
        int err;

        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);     /* blocked, when we record */
        t->asleep_ns = ls_thread_asleep_ns(pid, t->tid);
        err = ls_thread_seize_error(pid, t->tid, interrupt(t));
        if (err < 0)
                return err;
        asked_ns = ls_clock_ns(CLOCK_MONOTONIC);
        while ((err = wait_for_it(t, WNOHANG)) == -EAGAIN &&
               !ls_thread_is_late(pid, t->tid, asked_ns))
                sigtimedwait(&child, NULL, &moment);
        if (err == -EAGAIN) {
                ls_stop_note_late(pid, t->tid);
                err = -ETIMEDOUT;
        }
        return err;
}

void ls_stop_end(struct ls_stop *s)
{
        for (unsigned i = 0; i < s->n; i++)
                ls_stop_end_one(s, i);
}
