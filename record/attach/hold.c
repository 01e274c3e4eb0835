/* See hold.h. Where the agent has closed the entries no thread gets behind one any more: each is
 * looked at once, by itself, and stopped only if it runs. An entry whose first instruction is one
 * byte cannot be closed: then all that run are stopped at one time, until the agent has stored its
 * jumps. A thread that is blocked in the kernel is left alone in any case, since where it will go
 * on is known; with such an entry one that wakes up within the us of the last look is not seen. */
#include "record/attach/hold.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "formats/wire/clock.h"
#include "record/attach/stop.h"
#include "record/process/member.h"
#include "record/process/proc.h"
#include "record/process/thread_ids.h"

#define TRIES 500 /* a ms each: a thread leaves some instructions when it gets a processor */
#define LOOKS_NS 2500000000ull /* for all to have got one; the agent waits a little longer */
#define ASK_NS   1000000000ull          /* for the agent to close the entries */
#define CLAIM_NS 200000000ull           /* to see that threads are stopped */
#define STORE_NS 5000000000ull /* for its stores; it needs some us unless it gets no processor */
#define PASSES 20
#define CHILD_NS 10000000ull            /* for a child that was being made */
#define DEPTH 3u                        /* of children's children */

struct ranges {                         /* our own copy: the program can write the other */
        unsigned n;
        struct ls_hold_range r[LS_HOLD_RANGES];
};

static int is_inside(const struct ls_stopped *t, const struct ranges *ranges)
{
        for (unsigned k = 0; k < ranges->n; k++)
                if (t->regs.rip - ranges->r[k].at - 1 < (uint64_t)ranges->r[k].size - 1)
                        return 1;
        return 0;
}

static int any_inside(const struct ls_stop *s, const struct ranges *ranges)
{
        for (unsigned i = 0; i < s->n; i++)
                if (is_inside(&s->threads[i], ranges))
                        return 1;
        return 0;
}

static int all_closed(const struct ranges *ranges)
{
        for (unsigned k = 0; k < ranges->n; k++)
                if (!ranges->r[k].closed)
                        return 0;
        return 1;
}

/* Returns 1 when thread i was seen outside or has ended, 0 = not yet, or -errno. It does not stand
 * then, but may be asked to. */
static int look_at_one(struct ls_stop *s, unsigned i, const struct ranges *ranges,
                       uint64_t *ret_longest_ns)
{
        struct ls_stopped *t = &s->threads[i];
        int err = ls_stop_ask(s, i), stands = err ? err : ls_stop_stands(s, i, 0);
        uint64_t start = ls_clock_ns(CLOCK_MONOTONIC);

        if (stands <= 0)
                return stands == -ESRCH ? 1 : stands;
        err = is_inside(t, ranges);
        if (t->traced) {
                ls_stop_end_one(s, i);
                if (ls_clock_ns(CLOCK_MONOTONIC) - start > *ret_longest_ns)
                        *ret_longest_ns = ls_clock_ns(CLOCK_MONOTONIC) - start;
        }
        return !err;
}

/* Until each has been seen outside. All are asked at once, since each stops when it gets a
 * processor, and goes on as soon as it was seen. Returns 0; -EAGAIN: one stays inside; or
 * -errno. */
static int look_at_each(struct ls_stop *s, const struct ranges *ranges, uint64_t *ret_longest_ns)
{
        const struct timespec moment = { 0, 1000000 };
        uint8_t done[LS_STOP_MOST] = { 0 };
        uint64_t start = ls_clock_ns(CLOCK_MONOTONIC);
        int err = 0, left = 1;
        sigset_t child;

        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);     /* blocked */
        while (left && !err) {
                left = 0;
                for (unsigned i = 0; i < s->n && err >= 0; i++) {
                        int r = done[i] ? 1 : look_at_one(s, i, ranges, ret_longest_ns);

                        done[i] = r == 1;
                        left += r == 0;
                        err = r < 0 ? r : 0;
                }
                if (left && !err && ls_clock_ns(CLOCK_MONOTONIC) - start > LOOKS_NS)
                        err = -EAGAIN;
                if (left && !err)
                        sigtimedwait(&child, NULL, &moment);
        }
        for (unsigned i = 0; i < s->n; i++)     /* those that are still to stop */
                if (ls_stop_stands(s, i, 1) > 0)
                        ls_stop_end_one(s, i);
        return err;
}

/* All that run at one time, outside. Returns as above. */
static int stop_all(struct ls_stop *s, const struct ranges *ranges)
{
        int n = 1;

        for (int pass = 0; pass < PASSES && n > 0; pass++)
                n = s->more && s->n == s->most ? -E2BIG : ls_stop_again(s);
        if (n == 0 && !any_inside(s, ranges))
                return 0;
        ls_stop_end(s);
        return n < 0 ? n : -EAGAIN;
}

static void answer(struct ls_shm *shm, uint32_t from, uint32_t to)
{
        if (atomic_compare_exchange_strong(&shm->hold, &from, to))
                syscall(SYS_futex, &shm->hold, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Until the agent has let go. */
static void wait_for_stores(struct ls_shm *shm)
{
        const struct timespec moment = { 0, 1000000 };
        uint64_t start = ls_clock_ns(CLOCK_MONOTONIC), state;

        while ((state = atomic_load(&shm->hold)) == LS_HOLD_HELD || state == LS_HOLD_CLAIMED) {
                uint64_t passed = ls_clock_ns(CLOCK_MONOTONIC) - start;

                if (state == LS_HOLD_HELD && passed > CLAIM_NS)
                        answer(shm, LS_HOLD_HELD, LS_HOLD_REFUSED);
                else if (passed > STORE_NS)
                        break;
                else
                        syscall(SYS_futex, &shm->hold, FUTEX_WAIT, (uint32_t)state, &moment, NULL,
                                0);
        }
}

/* Returns 0 when no thread is inside, and those that have to be are stopped. */
static int hold(struct ls_stop *s, pid_t pid, pid_t agent, const struct ranges *ranges,
                uint64_t *ret_longest_ns)
{
        const struct timespec moment = { 0, 1000000 };
        int err = -EAGAIN;

        for (int i = 0; i < TRIES && err == -EAGAIN; i++) {
                if (i)
                        nanosleep(&moment, NULL);
                err = ls_stop_list(s, pid, LS_STOP_MOST, agent);
                if (!err && s->more)
                        err = -E2BIG;
                if (!err && all_closed(ranges))
                        return look_at_each(s, ranges, ret_longest_ns);
                if (!err)
                        err = stop_all(s, ranges);
        }
        return err;
}

/* The agent is about to close the entries. Returns 0 when it has not asked by then. */
static int is_asked(struct ls_shm *shm)
{
        const struct timespec moment = { 0, 1000000 };
        uint64_t start = ls_clock_ns(CLOCK_MONOTONIC);

        answer(shm, LS_HOLD_WANTED, LS_HOLD_READY);
        while (atomic_load(&shm->hold) == LS_HOLD_READY &&
               ls_clock_ns(CLOCK_MONOTONIC) - start < ASK_NS)
                syscall(SYS_futex, &shm->hold, FUTEX_WAIT, LS_HOLD_READY, &moment, NULL, 0);
        answer(shm, LS_HOLD_READY, LS_HOLD_REFUSED);
        return atomic_load(&shm->hold) == LS_HOLD_ASKED;
}

/* Makes the closed entries what they were in a process that has them as its parent had. */
static void open_in(pid_t pid, int memory_fd, const struct ranges *ranges)
{
        static const uint8_t loop[2] = { 0xeb, 0xfe };
        uint8_t now[2];
        int fd = ls_proc_open(pid, 0, "mem", O_RDWR), known = 0;

        for (unsigned k = 0; fd >= 0 && k < ranges->n; k++) {
                const struct ls_hold_range *r = &ranges->r[k];

                if (!r->closed || r->at > INT64_MAX || pread(fd, now, 2, (off_t)r->at) != 2 ||
                    memcmp(now, loop, 2))
                        continue;
                if (!known && !ls_member_has(pid, memory_fd))
                        break;
                known = 1;
                if (pwrite(fd, r->first, 2, (off_t)r->at) != 2)
                        break;
        }
        if (fd >= 0)
                close(fd);
}

/* A child that a thread has made in the meantime by a bare system call, around the C library's fork
 * and its handlers, would wait at a closed entry for ever: there is no agent in it. It is made
 * between two looks at the latest, unless that takes long. */
static void open_in_children(pid_t pid, int memory_fd, const struct ranges *ranges, unsigned depth)
{
        DIR *dir = ls_proc_tasks(pid);
        pid_t tid;

        while ((tid = ls_proc_next(dir))) {
                FILE *f = ls_proc_file(pid, tid, "children");
                int child;

                while (f && fscanf(f, "%d", &child) == 1) {
                        open_in((pid_t)child, memory_fd, ranges);
                        if (depth < DEPTH)
                                open_in_children((pid_t)child, memory_fd, ranges, depth + 1);
                }
                if (f)
                        fclose(f);
        }
        if (dir)
                closedir(dir);
}

void ls_attach_hold(struct ls_subject *t, const struct ls_memory *m)
{
        const struct timespec later = { 0, CHILD_NS };
        struct ls_shm *shm = m->shm;
        static struct ls_stop stop;     /* 250 KiB */
        struct ranges ranges = { 0 };
        uint64_t start;
        pid_t agent;
        int err;

        if (!is_asked(shm))
                return;
        for (unsigned n = shm->n_hold; ranges.n < LS_HOLD_RANGES && ranges.n < n; ranges.n++)
                ranges.r[ranges.n] = shm->hold_ranges[ranges.n];
        agent = ls_thread_outer_id(t->pid, (pid_t)atomic_load(&shm->agent_tid));
        start = ls_clock_ns(CLOCK_MONOTONIC);
        ls_stop_hurry(1);
        err = agent ? hold(&stop, t->pid, agent, &ranges, &t->held_ns) : -ESRCH;
        answer(shm, LS_HOLD_ASKED, err ? LS_HOLD_REFUSED : LS_HOLD_HELD);
        ls_stop_hurry(0);
        if (err)
                return;
        wait_for_stores(shm);
        ls_stop_end(&stop);
        open_in_children(t->pid, m->fd, &ranges, 0);
        nanosleep(&later, NULL);
        open_in_children(t->pid, m->fd, &ranges, 0);
        if (!all_closed(&ranges))
                t->held_ns = ls_clock_ns(CLOCK_MONOTONIC) - start;
}
