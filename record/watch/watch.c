/* Watches the threads of the program: see outside.h.
 *
 * What a thread's wall time is beyond its CPU time is charged here, and nothing else: the agent's
 * samples have the time on a CPU. /proc tells of each thread how long it ran, how long it waited
 * for a processor, and how often it was put on one (schedstat), exactly while it does not run. So a
 * thread that is blocked now, as it was at the last look, and was not put on a processor since, has
 * not run: its stack need not be read again. What it waited for a processor goes to the stack that
 * was seen last; the rest of the time off the CPU goes to the stack at which it is found blocked.
 * Whole intervals are charged, the rest is carried: the sum is right whatever the looks miss. */
#include "record/watch/outside.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "formats/wire/clock.h"
#include "record/watch/look.h"
#include "record/watch/mirror.h"
#include "record/watch/remote.h"
#include "record/watch/suspended.h"

#define LOOK_MIN_NS    UINT64_C(1000000)        /* between two looks at all threads */
#define LOOK_CALM_NS   UINT64_C(10000000)       /* when nothing has changed for some time */
#define LOOK_MAX_NS    UINT64_C(250000000)      /* and for long */
#define OWN_SHARE 20u               /* looks may take one part in so many of this process's time */
#define SEND_NS UINT64_C(100000000) /* time that is sent at once while a thread stays blocked */
#define LOOK_AT_END_NS                                                                             \
        UINT64_C(                                                                                  \
                250000000) /* whether the program has ended, or become another, is asked so often */
#define WAIT_NS        UINT64_C(1000000)        /* for the program, for its first VM */

struct ran { uint64_t cpu_ns, waited_ns, times; };      /* schedstat */

struct watched {                        /* a thread, by its ring */
        struct ls_ring *ring;
        struct ls_look *look;           /* NULL = not watched */
        uint32_t tid, claim;
        int ran_fd, call_fd, stat_fd;   /* its schedstat, syscall and stat files, -1 = not open */
        uint64_t began_ns, looked_ns;
        struct ran began, last;         /* at the beginning and at the last look */
        int blocked;                    /* it was found blocked after last, and its stack is
                                         * known: */
        int has_stack;                  /* the last sample with a stack in our ring is that one */
        int unwanted;                   /* its VM is outside of the regions that the program
                                         * marked */
        uint64_t charged_ns, waited_ns; /* time that was charged; of it, for waiting for a
                                         * processor */
        uint64_t kept;                  /* ticks of the block that were not sent yet */
        uint64_t kept_ns, kept_since_ns;/* time of the last and of the first of them */
};

static struct {
        struct ls_outside o;
        struct ls_shm *shm;
        pid_t pid;
        uint64_t interval_ns;
        uint32_t execs;                 /* image that was read */
        uint64_t image_due_ns;          /* when another one may be read */
        int image;                      /* 1 = stacks can be read, 0 = not yet, -1 = they cannot */
        unsigned n, used;               /* rings; of these, that have had a thread: to read others
                                         * would take memory for them */
        int changed;                    /* some thread is not where it was */
        struct watched threads[LS_THREADS_MOST];
} w;

static struct ls_ring *agents_ring(unsigned i)
{
        return (struct ls_ring *)(void *)((char *)w.o.shm +
                                          ls_ring_offset(w.o.ring_size, w.o.stride, i));
}

static struct ls_ring *own_ring(unsigned i)
{
        struct ls_ring *ring = (struct ls_ring *)(void *)(w.o.own + i * w.o.stride);

        if (!ring->size)                /* nobody has used it; what the shared memory says of it may
                                         * be the program's */
                ring->size = (uint32_t)(w.o.stride - LS_RING_DATA);
        return ring;
}

static void say(enum ls_watching how)
{
        atomic_store(&w.shm->watching, how);
}

static int open_file(uint32_t tid, const char *name)
{
        int fd = ls_remote_open((pid_t)tid, name);

        if (fd == -EMFILE)
                say(LS_WATCH_NO_FILES);
        return fd;
}

static int read_ran(const struct watched *t, struct ran *ret)
{
        char buf[96], *p;
        ssize_t n = pread(t->ran_fd, buf, sizeof buf - 1, 0);

        if (n <= 0)
                return -1;
        buf[n] = 0;
        ret->cpu_ns = strtoull(buf, &p, 10);
        ret->waited_ns = strtoull(p, &p, 10);
        ret->times = strtoull(p, &p, 10);
        return 0;
}

enum where { GONE, RUNS, BLOCKED, BLOCKED_SOMEWHERE };

/* By its state alone, which anybody may see. */
static enum where read_state(const struct watched *t)
{
        char buf[256], *p;
        ssize_t n = t->stat_fd < 0 ? -1 : pread(t->stat_fd, buf, sizeof buf - 1, 0);

        if (n <= 0)
                return GONE;
        buf[n] = 0;
        p = strrchr(buf, ')');
        return p && p[1] == ' ' && p[2] != 'R' ? BLOCKED_SOMEWHERE : RUNS;
}

/* Whether the thread is blocked in the kernel, and with which registers. */
static enum where read_blocked(const struct watched *t, uintptr_t *ret_ip, uintptr_t *ret_sp)
{
        char buf[256], *p;
        ssize_t n = t->call_fd < 0 ? -1 : pread(t->call_fd, buf, sizeof buf - 1, 0);

        if (n <= 0)
                return read_state(t);
        buf[n] = 0;
        if (*buf == 'r')
                return RUNS;
        /* "NUMBER ARGUMENTS... SP PC", or "-1 SP PC": not in a system call */
        p = strrchr(buf, ' ');
        if (!p)
                return BLOCKED_SOMEWHERE;
        *ret_ip = strtoull(p, NULL, 16);
        *p = 0;
        p = strrchr(buf, ' ');
        *ret_sp = p ? strtoull(p, NULL, 16) : 0;
        return p ? BLOCKED : BLOCKED_SOMEWHERE;
}

/* Whole ticks of ns, at most what one sample may have. */
static uint64_t ticks_of(uint64_t ns)
{
        uint64_t n = ns / w.interval_ns;

        return n < UINT32_MAX / 2 ? n : UINT32_MAX / 2;
}

/* Sends what was kept of the block. */
static void send_kept(struct watched *t)
{
        enum ls_like like = t->has_stack ? LS_LIKE_RING : LS_LIKE_THREAD;

        if (!t->kept || !t->look)
                return;
        if (!t->has_stack && t->blocked)
                atomic_fetch_add(&w.shm->lost[LS_LOSS_WALL_GUESSED], t->kept);
        if (ls_look_send_like(t->look, like, (uint32_t)t->kept, t->kept_ns, t->last.cpu_ns) == 0)
                t->kept = 0;            /* else with the next */
}

/* What has passed between the last look and the end of the thread, which the agent has noted: most
 * likely it was there that it was seen last. */
static void keep_rest(struct watched *t)
{
        uint64_t end = atomic_load(&t->ring->disarmed_ns), cpu = atomic_load(&t->ring->last_cpu_ns),
                 ran, n;

        if (!t->look || t->unwanted || end <= t->looked_ns)
                return;
        ran = (cpu > t->last.cpu_ns ? cpu : t->last.cpu_ns) - t->began.cpu_ns;
        n = end - t->began_ns > ran + t->charged_ns
                    ? ticks_of(end - t->began_ns - ran - t->charged_ns)
                    : 0;
        if (!t->blocked)
                t->has_stack = 0;
        t->kept += n;
        t->kept_ns = end;
}

static void forget(struct watched *t)
{
        keep_rest(t);
        send_kept(t);
        ls_look_free(t->look);
        if (t->ran_fd >= 0)
                close(t->ran_fd);
        if (t->call_fd >= 0)
                close(t->call_fd);
        if (t->stat_fd >= 0)
                close(t->stat_fd);
        *t = (struct watched){ .ring = t->ring, .ran_fd = -1, .call_fd = -1, .stat_fd = -1 };
}

static void begin(unsigned i, struct watched *t, uint32_t tid, uint32_t claim)
{
        uint32_t outer = w.o.pid ? (uint32_t)w.o.outer_id(w.pid, (pid_t)tid) : tid;

        t->tid = tid;
        t->claim = claim;
        t->ran_fd = open_file(outer, "schedstat");
        t->call_fd = open_file(outer, "syscall");
        t->stat_fd = open_file(outer, "stat");
        /* A thread that asks for ticks has run. */
        if (t->stat_fd >= 0 && (t->ran_fd < 0 || (read_ran(t, &t->began) == 0 && !t->began.times)))
                say(LS_WATCH_NO_TIMES);
        if (t->ran_fd >= 0 && (t->call_fd >= 0 || t->stat_fd >= 0) && read_ran(t, &t->began) == 0 &&
            t->began.times)
                t->look = ls_look_new(i, (int)tid, t->stat_fd, t->ring, own_ring(i));
        if (!t->look) {
                forget(t);
                return;
        }
        t->last = t->began;
        t->began_ns = t->looked_ns = ls_clock_ns(CLOCK_MONOTONIC);
}

/* What the agent wants watched at this ring: 1 = the thread is. */
static int follow(unsigned i, struct watched *t)
{
        uint32_t tid = atomic_load(&t->ring->tid), claim = atomic_load(&t->ring->claim);
        int wanted = tid && atomic_load(&t->ring->armed) && !atomic_load(&t->ring->closing) &&
                     !atomic_load(&w.shm->paused);

        if (t->look && (!wanted || tid != t->tid || claim != t->claim))
                forget(t);
        if (wanted && !t->look)
                begin(i, t, tid, claim);
        return t->look != NULL;
}

/* Time in which it waited for a processor, whatever it was at then. */
static void charge_waited(struct watched *t, const struct ran *ran, uint64_t now, uint64_t most)
{
        uint64_t waited = ran->waited_ns - t->began.waited_ns, n;

        n = ticks_of(waited > t->waited_ns ? waited - t->waited_ns : 0);
        if (n > most)
                n = most;
        if (!n || ls_look_send_like(t->look, LS_LIKE_THREAD, (uint32_t)n, now, ran->cpu_ns))
                return;
        t->waited_ns += n * w.interval_ns;
        t->charged_ns += n * w.interval_ns;
}

/* Ticks off the CPU that nobody has been charged with, of a thread that is off the CPU. */
static uint64_t owed(const struct watched *t, const struct ran *ran, uint64_t now)
{
        uint64_t ran_ns = ran->cpu_ns - t->began.cpu_ns, passed = now - t->began_ns;

        return passed > ran_ns + t->charged_ns ? ticks_of(passed - ran_ns - t->charged_ns) : 0;
}

static int is_still(void *ctx)
{
        const struct watched *t = ctx;
        struct ran ran;

        return read_ran(t, &ran) == 0 && ran.times == t->last.times;
}

/* More time of the same block. */
static void keep(struct watched *t, uint64_t n, uint64_t now)
{
        t->charged_ns += n * w.interval_ns;
        if (!n || t->unwanted)
                return;
        if (!t->kept)
                t->kept_since_ns = now;
        t->kept += n;
        t->kept_ns = now;
        if (now - t->kept_since_ns >= SEND_NS)
                send_kept(t);
}

/* It is blocked since t->last was read, at another place than before. sp 0: at which is not
 * known. */
static void new_block(struct watched *t, uintptr_t ip, uintptr_t sp, uint64_t now)
{
        uint64_t n;
        int r = -1;

        charge_waited(t, &t->last, now, owed(t, &t->last, now));
        n = owed(t, &t->last, now);
        if (!n)
                return;                 /* a short one: it is looked at again, if it lasts */
        t->blocked = 1;
        if (w.image > 0 && sp)
                r = ls_look_send(t->look, ip, sp, (uint32_t)n, now, t->last.cpu_ns, is_still, t);
        t->unwanted = r == 1;
        t->has_stack = r == 0;
        if (r >= 0) {
                t->charged_ns += n * w.interval_ns;
        } else if (!is_still(t)) {
                t->blocked = 0;         /* it ran on while we read: the next stack will be
                                         * charged */
        } else {
                keep(t, n, now);
        }
}

#define KERNEL_TICK_NS UINT64_C(4000000) /* the time on a CPU of a thread that runs may be as old */

/* The block has ended some time since the last look, and others may have come since: it has its
 * share of that time. times: that the thread was put on a processor by the last look. */
static void end_block(struct watched *t, uint64_t times, int runs, uint64_t now)
{
        struct ran ran = t->last;

        if (runs)
                ran.cpu_ns += KERNEL_TICK_NS;
        keep(t, owed(t, &ran, now) / (t->last.times - times + 1), now);
        send_kept(t);
        t->blocked = 0;
}

static void look_at(struct watched *t)
{
        uintptr_t ip = 0, sp = 0;
        struct ran ran;
        enum where where;
        uint64_t now, times;

        if (read_ran(t, &ran)) {
                forget(t);
                return;
        }
        t->looked_ns = now = ls_clock_ns(CLOCK_MONOTONIC);
        if (t->blocked && ran.times == t->last.times) {
                keep(t, owed(t, &ran, now), now);
                return;
        }
        w.changed = 1;
        times = t->last.times;
        where = read_blocked(t, &ip, &sp);
        if (where == GONE || read_ran(t, &t->last)) {
                forget(t);
                return;
        }
        t->looked_ns = now = ls_clock_ns(CLOCK_MONOTONIC);
        if (t->blocked)
                end_block(t, times, where == RUNS, now);
        if (where == BLOCKED_SOMEWHERE)
                say(LS_WATCH_FORBIDDEN);
        if (where == RUNS)
                charge_waited(t, &t->last, now, UINT64_MAX);
        else
                new_block(t, ip, sp, now);
}

/* The program may have become another by exec, and has no VM at first. */
static void follow_image(void)
{
        uint32_t execs = atomic_load(&w.shm->execs);
        uint64_t cpu;
        int r;

        if (w.image && (execs == w.execs || ls_clock_ns(CLOCK_MONOTONIC) < w.image_due_ns))
                return;
        if (w.image)
                for (unsigned i = 0; i < w.n; i++)
                        forget(&w.threads[i]);
        ls_suspended_end();
        w.execs = execs;
        w.image = 0;
        cpu = ls_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        r = ls_look_image(w.shm, w.pid);
        w.image_due_ns = ls_clock_ns(CLOCK_MONOTONIC) +
                         (ls_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) * OWN_SHARE;
        if (r == -EAGAIN) {
                /* A VM is sampled, but its layout is not known. */
                if (atomic_load(&w.shm->agent_state) != LS_AGENT_SAMPLING ||
                    atomic_load(&w.shm->view))
                        return;
                r = -EPROTO;
        }
        w.image = r ? -1 : 1;
        if (!r && w.o.coroutines)
                ls_suspended_begin(w.shm, w.pid, w.o.coroutines, w.interval_ns);
        say(!r                             ? LS_WATCH_STACKS
            : r == -EEXIST                 ? LS_WATCH_CLASH
            : r == -EPROTO || r == -EFAULT ? LS_WATCH_UNREADABLE
                                           : LS_WATCH_FORBIDDEN);
}

static volatile sig_atomic_t leaves;    /* another takes our place */

static void leave(int sig)
{
        (void)sig;
        leaves = 1;
}

/* Or until the recording ends, or the agent wants something else of a thread. */
static void sleep_until(uint64_t at, uint32_t request)
{
        struct timespec t = { (time_t)(at / 1000000000u), (long)(at % 1000000000u) };

        syscall(SYS_futex, &w.shm->request, FUTEX_WAIT_BITSET, request, &t, NULL,
                FUTEX_BITSET_MATCH_ANY);
}

static int is_over(pid_t parent)
{
        return leaves || getppid() != parent ||
               (w.pid && (!atomic_load(&w.shm->recording) || kill(w.pid, 0)));
}

/* All threads once. Returns when to look again. */
static uint64_t look_at_all(uint64_t began)
{
        static uint64_t pause = LOOK_MIN_NS;
        uint64_t least = w.interval_ns > LOOK_MIN_NS ? w.interval_ns : LOOK_MIN_NS;
        uint64_t cpu = ls_clock_ns(CLOCK_PROCESS_CPUTIME_ID), rest;
        uint32_t used = atomic_load(&w.shm->rings_used);
        int any = 0;

        if (used > w.used)              /* never fewer: what is watched is looked after */
                w.used = used < w.n ? used : w.n;
        w.changed = 0;
        for (unsigned i = 0; i < w.used; i++)
                if (follow(i, &w.threads[i])) {
                        look_at(&w.threads[i]);
                        any = 1;
                }
        /* A block that has lasted may be looked at less often: what it loses at its end is small
         * against it, a sixty-fourth of it when it is long. */
        pause = w.changed || !any ? least : pause + pause / (pause < LOOK_CALM_NS ? 16 : 64);
        if (pause > LOOK_MAX_NS && pause > least)
                pause = least > LOOK_MAX_NS ? least : LOOK_MAX_NS;
        rest = (ls_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) * OWN_SHARE;
        if (rest > SEND_NS)
                rest = SEND_NS;
        return began + (rest > pause ? rest : pause);
}

/* What is wanted, as far as it is due. Returns when to look again. */
static uint64_t look(uint64_t now)
{
        static uint64_t threads;        /* when they are due */
        uint64_t coroutines = w.o.coroutines ? ls_suspended_look(now) : UINT64_MAX,
                 over = now + LOOK_AT_END_NS;

        if (w.o.threads && now >= threads)
                threads = look_at_all(ls_clock_ns(CLOCK_MONOTONIC));
        if (w.o.threads && threads < over)
                over = threads;
        return coroutines < over ? coroutines : over;
}

void ls_outside_watch(const struct ls_outside *o)
{
        pid_t parent = getppid();

        sigaction(SIGTERM, &(struct sigaction){ .sa_handler = leave },
                  NULL); /* and it ends a sleep */
        w.o = *o;
        w.shm = o->shm;
        w.interval_ns = o->interval_ns;
        w.n = o->rings < LS_THREADS_MOST ? o->rings : LS_THREADS_MOST;
        for (unsigned i = 0; i < w.n; i++)
                w.threads[i] = (struct watched){
                        .ring = agents_ring(i), .ran_fd = -1, .call_fd = -1, .stat_fd = -1
                };
        while (!is_over(parent)) {
                uint32_t request = atomic_load(&w.shm->request);
                uint64_t now = ls_clock_ns(CLOCK_MONOTONIC);

                if (!w.pid)             /* set before the program runs; what is there later may be
                                         * the program's */
                        w.pid = w.o.pid ? w.o.pid : (pid_t)w.shm->root_pid;
                if (w.pid)
                        follow_image();
                sleep_until(w.image ? look(now) : now + WAIT_NS, request);
        }
        for (unsigned i = 0; i < w.n; i++)
                forget(&w.threads[i]);
        ls_suspended_end();
        _exit(0);
}
