/* See threads.h. */
#include "record/attach/threads.h"
#include "formats/wire/clock.h"
#include "record/process/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WAIT_NS 1000000000ull
#define STOP_NS 1000000000ull           /* for a thread to stop */
#define QUEUE_NS 20000000000ull         /* where all that while it waits for a processor */
#define SEVERAL_AT 0x18u                /* in a TCB: int, 1 = there are several threads */
#define SEVERAL_GLOBAL 236u /* version of the C library since which it is in one place for all */

/* System calls that signal(7) lists as interrupted by stops. limit: which argument is a time limit;
 * what means none: -1 as an int, or a null pointer; 0 = never with one that would begin anew. */
static const struct { long nr; int limit, is_pointer;
} with_eintr[] = {
        { SYS_epoll_wait, 4, 0 },   { SYS_epoll_pwait, 4, 0 },    { SYS_epoll_pwait2, 4, 1 },
        { SYS_semop, 0, 0 },        { SYS_semtimedop, 4, 1 },     { SYS_rt_sigtimedwait, 3, 1 },
        { SYS_io_getevents, 5, 1 }, { SYS_io_uring_enter, 0, 0 }, { SYS_read, 0, 0 },
        { SYS_write, 0, 0 },        { SYS_readv, 0, 0 },          { SYS_writev, 0, 0 },
        { SYS_accept, 0, 0 },       { SYS_accept4, 0, 0 },        { SYS_recvfrom, 0, 0 },
        { SYS_recvmsg, 0, 0 },      { SYS_sendto, 0, 0 },         { SYS_sendmsg, 0, 0 },
};

static int ends_with_eintr(long nr)
{
        for (unsigned i = 0; i < sizeof(with_eintr) / sizeof(*with_eintr); i++)
                if (with_eintr[i].nr == nr)
                        return 1;
        return 0;
}

/* When the thread last had a processor, on the scheduler's clock in ms; 0 = the kernel does not
 * tell. */
static double last_ran_ms(pid_t pid, pid_t tid)
{
        char text[1024], *p;

        if (ls_proc_read(pid, tid, "sched", text, sizeof(text)) <= 0 ||
            !(p = strstr(text, "se.exec_start")) || !(p = strchr(p, ':')))
                return 0;
        return strtod(p + 1, NULL);
}

/* That clock now, as of the last look at this thread. */
static double own_clock_ms(void)
{
        return last_ran_ms(getpid(), (pid_t)syscall(SYS_gettid));
}

/* Each processor has such a clock, which leaves out what interrupts and, in a virtual machine,
 * others took of it: they are seconds apart after a day. So it is read where the thread ran last. 0
 * = we may not go there. */
static double clock_of_ms(int cpu)
{
        cpu_set_t before, there;
        double now;

        if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before) < 0)
                return 0;
        CPU_ZERO(&there);
        CPU_SET(cpu, &there);
        if (sched_setaffinity(0, sizeof(there), &there) < 0)
                return 0;
        now = own_clock_ms();
        sched_setaffinity(0, sizeof(before), &before);
        return now;
}

/* Number of the processor that the thread ran on last: the 39th value of stat, of which the 3rd is
 * at state. */
static int cpu_of(const char *state)
{
        for (int i = 3; i < 39 && state; i++)
                state = strchr(state + 1, ' ');
        return state ? atoi(state) : -1;
}

uint64_t ls_thread_asleep_ns(pid_t pid, pid_t tid)
{
        double since = last_ran_ms(pid, tid), now;
        char text[512], *state;

        /* one that waits for a processor has been woken, perhaps by the stop before this one: its
         * sleep is to begin */
        if (ls_proc_read(pid, tid, "stat", text, sizeof(text)) <= 0 ||
            !(state = strrchr(text, ')')) || strncmp(state, ") S", 3))
                return 0;
        now = clock_of_ms(cpu_of(state + 2));
        return since > 0 && now > since ? (uint64_t)((now - since) * 1e6) : 0;
}

int ls_thread_is_ready(pid_t pid, pid_t tid)
{
        char text[512], *state;

        return ls_proc_read(pid, tid, "stat", text, sizeof(text)) > 0 &&
               (state = strrchr(text, ')')) && !strncmp(state, ") R", 3);
}

int ls_thread_is_late(pid_t pid, pid_t tid, uint64_t asked_ns)
{
        uint64_t ns = ls_clock_ns(CLOCK_MONOTONIC) - asked_ns;

        return ns > STOP_NS && (ns > QUEUE_NS || !ls_thread_is_ready(pid, tid));
}

int ls_thread_has_ended(pid_t pid, pid_t tid)
{
        char text[512], *state;

        return ls_proc_read(pid, tid, "stat", text, sizeof(text)) <= 0 ||
               !(state = strrchr(text, ')')) || !state[1] || strchr("ZX", state[2]);
}

pid_t ls_thread_living(pid_t pid)
{
        pid_t found = 0, tid;
        DIR *dir;

        if (!ls_thread_has_ended(pid, pid))
                return pid;
        dir = ls_proc_tasks(pid);
        while (!found && (tid = ls_proc_next(dir)))
                if (tid != pid && !ls_thread_has_ended(pid, tid))
                        found = tid;
        if (dir)
                closedir(dir);
        return found;
}

static int has_limit_ms(long nr)
{
        return nr == SYS_epoll_wait || nr == SYS_epoll_pwait;
}

/* How a stop disturbs a thread in this state: 0 it sleeps, and its system call goes on; 1 it runs,
 * and loses the time; 2 its system call is begun again, 3 with its time limit anew. line: of
 * /proc/PID/task/TID/syscall. */
static int ease_of(const char *line)
{
        uint64_t a[6] = { 0 };
        long nr;

        if (!isdigit((unsigned char)*line))
                return 1;
        if (sscanf(line, "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
                   &nr, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5]) < 7)
                return 0;
        for (unsigned i = 0; i < sizeof(with_eintr) / sizeof(*with_eintr); i++) {
                uint64_t limit = with_eintr[i].limit ? a[with_eintr[i].limit - 1] : 0;

                if (with_eintr[i].nr != nr)
                        continue;
                if (!with_eintr[i].limit || (has_limit_ms(nr) && own_clock_ms() > 0) ||
                    (with_eintr[i].is_pointer ? !limit : (int32_t)limit <= 0))
                        return 2;
                return 3;
        }
        return 0;
}

struct candidate { pid_t tid; int ease; };

static int by_ease(const void *a, const void *b)
{
        return ((const struct candidate *)a)->ease - ((const struct candidate *)b)->ease;
}

static unsigned list(pid_t pid, struct candidate c[LS_THREADS_TRIED])
{
        DIR *dir = ls_proc_tasks(pid);
        char line[256];
        unsigned n = 0;

        while (n < LS_THREADS_TRIED && (c[n].tid = ls_proc_next(dir))) {
                if (c[n].tid == pid && ls_thread_has_ended(pid, pid))
                        continue;
                c[n].ease = ls_proc_read(pid, c[n].tid, "syscall", line, sizeof(line)) > 0
                                    ? ease_of(line)
                                    : 1;
                n++;
        }
        if (dir)
                closedir(dir);
        qsort(c, n, sizeof(*c), by_ease);
        return n;
}

unsigned ls_threads_by_ease(pid_t pid, pid_t ret[LS_THREADS_TRIED])
{
        const struct timespec moment = { 0, 1000000 };
        struct candidate c[LS_THREADS_TRIED];
        unsigned n = list(pid, c);

        for (uint64_t waited = 0; n && c[0].ease == 3 && waited < WAIT_NS; waited += 1000000) {
                nanosleep(&moment, NULL);
                n = list(pid, c);
        }
        for (unsigned i = 0; i < n; i++)
                ret[i] = c[i].tid;
        return n;
}

static uint64_t field_hex(const char *text, const char *key)
{
        const char *p = strstr(text, key);

        return p ? strtoull(p + strlen(key), NULL, 16) : 0;
}

static int has_signal(pid_t pid, pid_t tid)
{
        char text[4096];

        if (ls_proc_read(pid, tid, "status", text, sizeof(text)) <= 0)
                return 1;
        return ((field_hex(text, "SigPnd:") | field_hex(text, "ShdPnd:")) &
                ~field_hex(text, "SigBlk:")) != 0;
}

int ls_thread_call_again(pid_t pid, pid_t tid, uint64_t asleep_ns, struct user_regs_struct *regs)
{
        uint64_t slept_ms = asleep_ns / 1000000;
        int32_t limit = (int32_t)regs->r10;

        if ((int64_t)regs->rax != -EINTR || (int64_t)regs->orig_rax < 0 ||
            !ends_with_eintr((long)regs->orig_rax) || has_signal(pid, tid))
                return 0;
        if (has_limit_ms((long)regs->orig_rax) && limit > 0)
                regs->r10 = slept_ms < (uint64_t)limit ? (uint64_t)limit - slept_ms : 0;
        regs->rax = regs->orig_rax;
        regs->rip -= 2;                 /* "syscall" */
        regs->orig_rax = ~0ull;
        return 1;
}

#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif

int ls_thread_in_rseq(pid_t tid, const struct ls_modules *ms, uint64_t ip)
{
        struct { uint64_t pointer; uint32_t size, signature, flags, pad; } config;
        struct { uint32_t version, flags; uint64_t start, length, abort; } section;
        uint64_t at;

        if (ptrace((enum __ptrace_request)PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof(config),
                   &config) < 0 ||
            !config.pointer)
                return 0;
        if (ls_remote_read(ms, config.pointer + 8, &at, sizeof(at)) < 0 || !at ||
            ls_remote_read(ms, at, &section, sizeof(section)) < 0)
                return 0;
        return ip - section.start < section.length;
}

void ls_thread_has_company(const struct ls_modules *ms, uint64_t tcb, unsigned version)
{
        uint32_t several;

        if (!version || version >= SEVERAL_GLOBAL ||
            ls_remote_read(ms, tcb + SEVERAL_AT, &several, sizeof(several)) < 0 || several)
                return;
        several = 1;
        ls_remote_write(ms, tcb + SEVERAL_AT, &several, sizeof(several));
}

int ls_thread_seize_error(pid_t pid, pid_t tid, int err)
{
        char text[4096], *p;

        if (err != -EPERM || ls_proc_read(pid, tid, "status", text, sizeof(text)) <= 0)
                return err;
        if ((p = strstr(text, "\nState:\t")) && strchr("ZX", p[8]))
                return -ESRCH;
        p = strstr(text, "\nTracerPid:");
        return p && atoi(p + 11) ? -EBUSY : err;
}
