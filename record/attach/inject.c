/* See inject.h.
 *
 * A thread may be stopped at any instruction, holding any lock, so it calls no function of the
 * program's: it makes system calls only, of which none touches what the stopped one was doing, and
 * no single steps, which would need its SIGTRAP. Its registers and signal mask are put back, and a
 * system call that the stop has interrupted begins again: the kernel does that for most; for those
 * that end with EINTR after any stop the instruction is set back to the system call. At each moment
 * its registers lead back to where it was, should we be killed: see way.h. */
#include "record/attach/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "formats/wire/clock.h"
#include "record/attach/stop.h"
#include "record/attach/stub.h"
#include "record/attach/threads.h"
#include "record/attach/way.h"
#include "record/process/proc.h"
#include "record/process/thread_ids.h"

#define PAGE 4096u
#define STACK_SIZE (64u << 10)
#define TLS_SIZE                                                                                   \
        (1u                                                                                        \
         << 20) /* below the thread pointer: the C library's and the program's own; never touched but in part */
#define TCB_SIZE (16u << 10)            /* from it on */
#define REGION_SIZE (2 * PAGE + STACK_SIZE + TLS_SIZE + TCB_SIZE)
#define STACK_AT (2 * PAGE)
#define TCB_AT (STACK_AT + STACK_SIZE + TLS_SIZE)
#define TCB_HEAD                                                                                   \
        0x40u /* what is copied of the program's own thread: guards of the stack and of pointers */
#define TID_FROM 0x40u                  /* where its thread id is looked for */
#define TID_TO 0x800u
#define OTHERS_NS 1000000000ull         /* for another recorder to be through with the program */
#define LEAVE_NS 200000000ull           /* for the first thread of ours to have gone */

struct victim {
        struct ls_inject *in;
        pid_t tid, inner_tid;           /* here, and as the program knows it */
        uint64_t asleep_ns;             /* how long it slept when it was stopped */
        int signal;                     /* it was about to get this one: it gets it when it goes on;
                                         * 0 = none */
        int stopped;                    /* the program was stopped meanwhile, as by SIGSTOP: it
                                         * stays so */
        int in_way;                     /* its registers lead through the way */
        struct user_regs_struct saved;
        uint64_t mask;
        uint64_t region;                /* it has mapped; 0 = none */
        unsigned tid_offset;            /* in thread data: of the thread's id */
        uint8_t own[TID_TO];            /* its thread data */
        const struct ls_thread_data *data;
};

/* Waits until the thread stops, for ever or until it is late. Returns the wait status, or
 * -errno. */
static int wait_stop(const struct victim *v, int for_ever)
{
        const struct timespec moment = { 0, 5000000 };
        uint64_t since_ns = ls_clock_ns(CLOCK_MONOTONIC);
        pid_t tid = v->tid;
        sigset_t child;
        int status;

        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);     /* blocked */
        for (;;) {
                pid_t r = waitpid(tid, &status, __WALL | WNOHANG);

                if (r == tid)
                        return WIFSTOPPED(status) ? status : -ESRCH;
                if (r < 0 && errno != EINTR)
                        return -errno;
                if (!for_ever && ls_thread_is_late(v->in->pid, tid, since_ns))
                        return -EAGAIN;
                sigtimedwait(&child, NULL, &moment);    /* no CPU time is taken from it */
        }
}

/* The results with which the kernel asks for the same system call again. */
static int is_again(int64_t result)
{
        return result <= -512 && result >= -516;
}

/* Has the thread go on until it has made a system call. Returns 0 with its result, or -errno:
 * -EAGAIN: it is to get a signal. */
static int run_to_exit(struct victim *v, int64_t *ret)
{
        struct user_regs_struct regs;
        int status, signal = 0, inside = 0;

        for (;;) {
                if (ptrace(PTRACE_SYSCALL, v->tid, NULL, (void *)(intptr_t)signal) < 0)
                        return -errno;
                /* However long it waits for a processor: with these registers it must not go on. */
                status = wait_stop(v, 1);
                if (status < 0)
                        return status;
                signal = 0;
                if (status >> 16 == PTRACE_EVENT_STOP) {
                        v->stopped |= WSTOPSIG(status) != SIGTRAP;
                } else if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
                        inside = !inside;
                        if (ptrace(PTRACE_GETREGS, v->tid, NULL, &regs) < 0)
                                return -errno;
                        *ret = (int64_t)regs.rax;
                        if (!inside && !is_again(*ret))
                                return 0;
                } else if (WSTOPSIG(status) == SIGSTOP) {
                        signal = SIGSTOP;       /* no mask keeps it away: the kernel stops all
                                                 * threads, and this one again soon */
                } else {
                        v->signal = WSTOPSIG(status);
                        return -EAGAIN;
                }
        }
}

/* A filter that traps a system call leaves its number in the place of its result, and a signal
 * behind it. */
static int is_trapped(struct victim *v)
{
        int64_t next;

        return run_to_exit(v, &next) == -EAGAIN && v->signal == SIGSYS;
}

/* Signals that our code could only get by its own fault, or by a filter of system calls, are not
 * blocked: the kernel resets the disposition of a fault that is. */
static uint64_t mask_of_all(void)
{
        static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGSYS };
        uint64_t all = ~0ull;

        for (unsigned i = 0; i < sizeof(faults) / sizeof(*faults); i++)
                all &= ~(1ull << (faults[i] - 1));
        return all;
}

/* Has the thread make a system call at this place of the way, with rbx = data. Returns 0 with its
 * result, or -errno. */
static int call_kernel(struct victim *v, uint64_t at, uint64_t data, long nr,
                       const uint64_t args[6], int64_t *ret)
{
        struct user_regs_struct r = v->saved;
        uint64_t all = mask_of_all();
        int err;

        r.rip = at;
        r.rbx = data;
        r.rax = (unsigned long long)nr;
        r.orig_rax = ~0ull;             /* what was interrupted is not begun again now */
        r.rdi = args[0];
        r.rsi = args[1];
        r.rdx = args[2];
        r.r10 = args[3];
        r.r8 = args[4];
        r.r9 = args[5];
        if (ptrace(PTRACE_SETREGS, v->tid, NULL, &r) < 0)
                return -errno;
        /* not before: alone, with its signals blocked, it would not find back */
        if (!v->in_way && ptrace(PTRACE_SETSIGMASK, v->tid, sizeof(all), &all) < 0)
                return -errno;
        v->in_way = 1;
        err = run_to_exit(v, ret);
        if (err == 0 && *ret == nr && is_trapped(v))
                err = -EAGAIN;
        return err;
}

/* Thread data for the first thread: what the C library gives each for its own use, what it copies
 * from a parent and compares with, and zeros. */
static int make_tcb(const struct victim *v, uint64_t tcb)
{
        const struct ls_modules *ms = v->in->modules;
        uint64_t head[TCB_HEAD / 8];
        uint8_t image[LS_OBJECT_TLS];

        memset(head, 0, sizeof(head));
        memcpy(head + 4, v->own + 0x20, sizeof(head) - 0x20);
        head[0] = head[2] = tcb;        /* itself */
        head[1] = tcb + 0x3000;         /* an empty vector of dynamic thread data; its length stands
                                         * before it */
        head[3] = 1;                    /* more than one thread */
        if (ls_remote_read(ms, v->data->image, image, v->data->size) < 0 ||
            ls_remote_write(ms, tcb + (uint64_t)v->data->offset, image, v->data->size) < 0)
                return -EFAULT;
        return ls_remote_write(ms, tcb, head, sizeof(head));
}

/* Where in thread data the thread's id is, 0 = it is not found. */
static unsigned find_tid(const struct victim *v)
{
        uint32_t tid;

        for (unsigned i = TID_FROM; i < TID_TO; i += 4) {
                memcpy(&tid, v->own + i, 4);
                if (tid == (uint32_t)v->inner_tid)
                        return i;
        }
        return 0;
}

/* The first thread waits for this, while the program runs on. carrier: its id, as it knows
 * itself. */
static int carrier_is_there(const struct ls_inject *in)
{
        return in->carrier && ls_proc_has_task(in->pid, in->carrier);
}

/* Our thread leaves when it has waited too long, and takes the region along: what lies there then
 * is the program's. */
static int write_there(const struct ls_inject *in, uint64_t at, const void *from, size_t n)
{
        return carrier_is_there(in) ? ls_remote_write(in->modules, at, from, n) : -ESRCH;
}

static int fill_region(struct victim *v, uint32_t carrier)
{
        struct ls_inject *in = v->in;
        const uint64_t tid_at = in->region + TCB_AT + v->tid_offset;
        uint32_t begin = 1;
        int err;

        in->page.region = in->region;
        in->page.region_size = REGION_SIZE;
        in->page.carrier_tid = tid_at;
        in->page.tid_offset = v->tid_offset;
        in->page.refused = ls_way_refused(&in->way);
        err = carrier_is_there(in) ? make_tcb(v, in->region + TCB_AT) : -ESRCH;
        if (err == 0)
                err = write_there(in, tid_at, &carrier, sizeof(carrier));
        if (err == 0)
                err = write_there(in, in->region, ls_attach_stub,
                                  (size_t)(ls_attach_stub_end - ls_attach_stub));
        if (err == 0)
                err = write_there(in, in->page_at, &in->page, sizeof(in->page));
        if (err == 0)
                err = write_there(in, in->page_at + offsetof(struct ls_attach, begin), &begin,
                                  sizeof(begin));
        return err;
}

/* What the program's kernel said to one of our system calls. */
static int refused(struct victim *v, const char *call, int64_t result)
{
        v->in->refused = call;
        v->in->refused_error = (int)result;
        return -EREMOTEIO;
}

static int map_region(struct victim *v)
{
        const uint64_t map[6] = { 0,
                                  REGION_SIZE,
                                  PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                  ~0ull,
                                  0 };
        int64_t at;
        int err = call_kernel(v, ls_way_map(&v->in->way), v->saved.rbx, SYS_mmap, map, &at);

        if (err < 0)
                return err;
        if (at < 0 && at > -4096)
                return refused(v, "mmap", at);
        v->region = (uint64_t)at;
        return 0;
}

/* Begins the first thread. Returns its id as it knows itself, or -errno. */
static int clone_thread(struct victim *v)
{
        const uint64_t flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                               CLONE_SYSVSEM | CLONE_SETTLS | CLONE_CHILD_CLEARTID;
        const uint64_t tcb = v->region + TCB_AT;
        const uint64_t clone[6] = { flags, v->region + STACK_AT + STACK_SIZE - 64, 0,
                                    tcb + v->tid_offset, tcb };
        int64_t tid;
        int err =
                call_kernel(v, ls_way_clone(&v->in->way), v->region + PAGE, SYS_clone, clone, &tid);

        if (err < 0)
                return err;
        return tid < 0 ? refused(v, "clone", tid) : (int)tid;
}

static void unmap_region(struct victim *v)
{
        const uint64_t unmap[6] = { v->region, REGION_SIZE };
        int64_t r;

        if (call_kernel(v, ls_way_unmap(&v->in->way), v->saved.rbx, SYS_munmap, unmap, &r) == 0 &&
            r == 0)
                v->region = 0;
}

/* The thread is stopped. What it was comes back in an order in which it is whole after each step:
 * the kernel, which begins an interrupted system call again, looks at that only when it looks for
 * signals. */
static void give_back(struct victim *v)
{
        if (!v->in_way)
                return;
        ptrace(PTRACE_INTERRUPT, v->tid, NULL, NULL);
        ptrace(PTRACE_SETSIGMASK, v->tid, sizeof(v->mask), &v->mask);
        if (v->region && !v->in->region) {      /* it could not be unmapped: the way does it */
                struct user_regs_struct r = v->saved;

                r.rip = ls_way_unmap(&v->in->way);
                r.rdi = v->region;
                r.orig_rax = ~0ull;
                ptrace(PTRACE_SETREGS, v->tid, NULL, &r);
        } else
                ptrace(PTRACE_SETREGS, v->tid, NULL, &v->saved);
}

/* A signal that our own step has made is not the program's. */
static void drop_own_fault(struct victim *v)
{
        siginfo_t si;

        if (v->signal && v->in_way && ptrace(PTRACE_GETSIGINFO, v->tid, NULL, &si) == 0 &&
            si.si_code > 0) {
                refused(v, v->region ? "clone" : "mmap", -EPERM);
                v->signal = 0;
        }
}

static int begin_thread(struct victim *v)
{
        int err = map_region(v), tid = err;

        if (err == 0)
                tid = v->stopped ? -EALREADY : clone_thread(v);
        if (tid < 0) {
                if (v->signal)
                        drop_own_fault(v);
                else if (v->region)
                        unmap_region(v);
                return v->in->refused ? -EREMOTEIO : tid;
        }
        v->in->region = v->region;
        v->in->page_at = v->region + PAGE;
        ls_thread_has_company(v->in->modules, v->saved.fs_base, v->in->libc_version);
        return tid;
}

/* The thread is stopped. Its registers and its signal mask are as before when this returns. Returns
 * the id of our thread as it knows itself, or -errno. */
static int use(struct victim *v)
{
        struct iovec iov = { &v->saved, sizeof(v->saved) };
        int err;

        if (ptrace(PTRACE_GETREGSET, v->tid, 1 /* NT_PRSTATUS */, &iov) < 0)
                return -errno;
        if (iov.iov_len != sizeof(v->saved) || v->saved.cs != 0x33)
                return -ENOEXEC;        /* in 32-bit code */
        if (ls_thread_in_rseq(v->tid, v->in->modules, v->saved.rip))
                return -EAGAIN;
        ls_thread_call_again(v->in->pid, v->tid, v->asleep_ns, &v->saved);
        if (ptrace(PTRACE_GETSIGMASK, v->tid, sizeof(v->mask), &v->mask) < 0)
                return -errno;
        err = ls_way_write(&v->in->way, v->tid, &v->saved, v->mask, REGION_SIZE);
        if (err < 0)
                return err;
        if (ls_remote_read(v->in->modules, v->saved.fs_base, v->own, sizeof(v->own)) < 0 ||
            !(v->tid_offset = find_tid(v)))
                return -ENOEXEC;
        err = begin_thread(v);
        give_back(v);
        return err;
}

/* How long the thread has waited for processors so far, ns; 0 = not known. */
static uint64_t queued_ns(int schedstat)
{
        char text[64] = "";
        unsigned long long run, wait = 0;

        if (schedstat < 0 || pread(schedstat, text, sizeof(text) - 1, 0) <= 0 ||
            sscanf(text, "%llu %llu", &run, &wait) != 2)
                return 0;
        return wait;
}

/* It did not stop in time: it is in the kernel for long, and will when it comes out, or it has
 * begun another program. */
static int stop_later(struct victim *v, int err)
{
        if (err != -EAGAIN && err != -ECHILD)
                return err;
        ls_stop_note_late(v->in->pid, v->tid);
        return err == -EAGAIN ? -ETIMEDOUT : -ESTALE;
}

/* Returns the id of our thread as it knows itself, or -errno. */
static int stop_and_use(struct victim *v, int schedstat)
{
        struct ls_inject *in = v->in;
        uint64_t start, queued;
        int status, err;

        v->inner_tid = ls_thread_inner_id(in->pid, v->tid);
        v->asleep_ns = ls_thread_asleep_ns(in->pid, v->tid);
        status = ptrace(PTRACE_INTERRUPT, v->tid, NULL, NULL) < 0 ? -errno : wait_stop(v, 0);
        start = ls_clock_ns(CLOCK_MONOTONIC);
        queued = queued_ns(schedstat);
        if (status < 0)
                return stop_later(v, status);
        if (status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP)
                err = use(v);
        else if (status >> 16 == PTRACE_EVENT_STOP)
                err = -EALREADY;        /* the program is stopped */
        else {
                v->signal = WSTOPSIG(status);
                err = -EAGAIN;
        }
        queued = queued_ns(schedstat) - queued;
        ptrace(PTRACE_DETACH, v->tid, NULL, (void *)(intptr_t)v->signal);
        in->stopped_ns = ls_clock_ns(CLOCK_MONOTONIC) - start;
        in->queued_ns = queued < in->stopped_ns ? queued : in->stopped_ns;
        in->stopped_ns -= in->queued_ns;
        return err;
}

static int try_thread(struct ls_inject *in, pid_t tid, const struct ls_thread_data *data)
{
        struct victim v = { .in = in, .tid = tid, .data = data };
        int schedstat = ls_proc_open(in->pid, tid, "schedstat", O_RDONLY), err;

        ls_stop_hurry(1);
        if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_TRACESYSGOOD) < 0)
                err = ls_thread_seize_error(in->pid, tid, -errno);
        else
                err = stop_and_use(&v, schedstat);
        if (schedstat >= 0)
                close(schedstat);
        if (v.region && !in->region)
                in->way.at = 0;         /* the thread may be on it */
        if (err >= 0) {
                pid_t carrier = (pid_t)err;

                in->carrier = ls_thread_outer_id(in->pid, carrier);
                err = fill_region(&v, (uint32_t)carrier);
        }
        ls_stop_hurry(0);
        return err;
}

/* One recorder at a time: the place in its code is for one. The kernel gives all the same file, and
 * ends the lock with the one that has it. */
static int lock(const struct ls_inject *in)
{
        const struct timespec moment = { 0, 5000000 };
        uint64_t start = ls_clock_ns(CLOCK_MONOTONIC);

        while (flock(in->modules->mem_fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK || ls_clock_ns(CLOCK_MONOTONIC) - start > OTHERS_NS)
                        return errno == EWOULDBLOCK ? -EBUSY : -errno;
                nanosleep(&moment, NULL);
        }
        return 0;
}

static int try_threads(struct ls_inject *in, const struct ls_thread_data *data)
{
        pid_t tids[LS_THREADS_TRIED];
        int err = -EAGAIN;

        for (int round = 0; round < 50 && err == -EAGAIN; round++) {
                const struct timespec moment = { 0, 10000000 };
                unsigned n = ls_threads_by_ease(in->pid, tids);

                if (round)
                        nanosleep(&moment, NULL);
                if (!n)
                        return -ESRCH;
                for (unsigned i = 0; i < n && err == -EAGAIN; i++) {
                        err = try_thread(in, tids[i], data);
                        if (err == -ESRCH)      /* it ended meanwhile, as the agent's of the time
                                                 * before may */
                                err = -EAGAIN;
                }
        }
        return err;
}

int ls_inject_begin(struct ls_inject *in)
{
        const struct ls_module *libc = ls_modules_find(in->modules, "gnu_get_libc_version");
        int err = lock(in);

        if (err < 0)
                return err;
        in->region = in->page_at = 0;
        in->refused = NULL;
        if (!libc || !libc->object.thread.offset || ls_way_find(&in->way, in->modules) < 0)
                err = -ENOEXEC;
        else {
                in->libc_version = libc->object.libc_version;
                err = try_threads(in, &libc->object.thread);
        }
        if (err < 0)
                ls_inject_end(in, 1);
        return err;
}

void ls_inject_end(struct ls_inject *in, int failed)
{
        const struct timespec moment = { 0, 100000 };
        uint64_t start = ls_clock_ns(CLOCK_MONOTONIC);
        uint32_t leave = 2;

        if (failed && in->region) {
                struct ls_attach a;

                /* Both threads are ours, and the region with them, as long as its page says so. */
                if (carrier_is_there(in) ||
                    (ls_remote_read(in->modules, in->page_at, &a, sizeof(a)) == 0 &&
                     a.magic == LS_ATTACH_MAGIC && a.region == in->region)) {
                        ls_remote_write(in->modules, in->page_at, &leave, sizeof(leave)); /* go */
                        ls_remote_write(in->modules,
                                        in->page_at + offsetof(struct ls_attach, begin), &leave,
                                        sizeof(leave));
                }
                while (carrier_is_there(in) && ls_clock_ns(CLOCK_MONOTONIC) - start < LEAVE_NS)
                        nanosleep(&moment, NULL);
                if (carrier_is_there(in))
                        in->way.at = 0;         /* it has not come out: these bytes stay */
        }
        ls_way_erase(&in->way);
        flock(in->modules->mem_fd, LOCK_UN);
}
