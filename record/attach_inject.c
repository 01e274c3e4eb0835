/* See attach_inject.h.
 *
 * A thread may be stopped at any instruction, holding any lock, so it calls no function of the program's: it makes system
 * calls only, of which none touches what the stopped one was doing. Its registers and signal mask are put back, and a system
 * call that the stop has interrupted begins again: the kernel does that for most; for those that end with EINTR after
 * any stop the instruction is set back to the system call. */
#include "record/attach_inject.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/attach_stub.h"
#include "record/attach_threads.h"
#include "record/stop.h"

#define PAGE 4096u
#define STACK_SIZE (64u << 10)
#define TLS_SIZE (1u << 20)             /* below the thread pointer: the C library's and the program's own; never touched but in part */
#define TCB_SIZE (16u << 10)            /* from it on */
#define REGION_SIZE (2 * PAGE + STACK_SIZE + TLS_SIZE + TCB_SIZE)
#define STACK_AT (2 * PAGE)
#define TCB_AT (STACK_AT + STACK_SIZE + TLS_SIZE)
#define TCB_HEAD 0x40u                  /* what is copied of the program's own thread: guards of the stack and of pointers */
#define TID_FROM 0x40u                  /* where its thread id is looked for */
#define TID_TO 0x800u
#define STOP_NS 1000000000ull           /* for a thread to stop */
#define LATE_MOST 256u

struct victim {
        struct ls_inject *in;
        pid_t tid, inner_tid;           /* here, and as the program knows it */
        uint64_t asleep_ns;             /* how long it slept when it was stopped */
        int signal;                     /* it was about to get this one: it gets it when it goes on; 0 = none */
        struct user_regs_struct saved;
        uint64_t mask;
        uint64_t gadget;                /* address of a system call instruction */
        const struct ls_thread_data *data;
};

static uint64_t now_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The C library's own function syscall has one. */
static uint64_t find_gadget(const struct ls_modules *ms)
{
        uint64_t size = 0, at = 0;
        uint8_t code[256];
        const struct ls_module *m = ls_modules_find(ms, "gnu_get_libc_version", NULL);

        if (m)
                at = ls_module_symbol(ms, m, "syscall", &size);
        if (!at || size > sizeof(code) || ls_remote_read(ms, at, code, size) < 0)
                return 0;
        for (uint64_t i = 0; i + 1 < size; i++)
                if (code[i] == 0x0f && code[i + 1] == 0x05)
                        return at + i;
        return 0;
}

/* Waits until the thread stops. Returns the wait status, or -errno. */
static int wait_stop(pid_t tid, uint64_t until_ns)
{
        const struct timespec moment = { 0, 5000000 };
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
                if (now_ns() > until_ns)
                        return -EAGAIN;
                sigtimedwait(&child, NULL, &moment);    /* no CPU time is taken from it */
        }
}

/* One step of the thread with these registers. Returns 0 with what they became, or -errno. */
static int step(struct victim *v, struct user_regs_struct *regs)
{
        int status;

        if (ptrace(PTRACE_SETREGS, v->tid, NULL, regs) < 0 || ptrace(PTRACE_SINGLESTEP, v->tid, NULL, NULL) < 0)
                return -errno;
        /* However long it waits for a processor: with these registers it must not go on. */
        status = wait_stop(v->tid, UINT64_MAX);
        if (status < 0)
                return status;
        if (WSTOPSIG(status) != SIGTRAP) {      /* one of the C library's two signals, or the program is stopped */
                v->signal = status >> 16 ? v->signal : WSTOPSIG(status);
                return -EAGAIN;
        }
        return ptrace(PTRACE_GETREGS, v->tid, NULL, regs) < 0 ? -errno : 0;
}

/* Has the thread make a system call at the instruction at, with rbx = data. Returns its result, or -errno. */
static int64_t call_kernel(struct victim *v, uint64_t at, uint64_t data, long nr, const uint64_t args[6])
{
        struct user_regs_struct r = v->saved;
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
        r.eflags &= ~0x400ull;          /* direction */
        err = step(v, &r);
        return err < 0 ? err : (int64_t)r.rax;
}

/* Thread data for the first thread: what the C library gives each for its own use, what it copies from a parent and compares
 * with, and zeros. */
static int make_tcb(struct victim *v, uint64_t tcb, uint64_t *ret_tid_at)
{
        uint32_t tid, inner = (uint32_t)v->inner_tid;
        uint64_t head[TCB_HEAD / 8];
        uint8_t own[4096];

        if (ls_remote_read(v->in->modules, v->saved.fs_base, own, TID_TO) < 0)
                return -EFAULT;
        *ret_tid_at = 0;
        for (unsigned i = TID_FROM; i < TID_TO && !*ret_tid_at; i += 4) {
                memcpy(&tid, own + i, 4);
                if (tid == inner)
                        *ret_tid_at = tcb + i;
        }
        if (!*ret_tid_at)
                return -ENOEXEC;
        memset(head, 0, sizeof(head));
        memcpy(head + 4, own + 0x20, sizeof(head) - 0x20);
        head[0] = head[2] = tcb;        /* itself */
        head[1] = tcb + 0x3000;         /* an empty vector of dynamic thread data; its length stands before it */
        head[3] = 1;                    /* more than one thread */
        if (ls_remote_read(v->in->modules, v->data->image, own, v->data->size) < 0 ||
            ls_remote_write(v->in->modules, tcb + (uint64_t)v->data->offset, own, v->data->size) < 0)
                return -EFAULT;
        return ls_remote_write(v->in->modules, tcb, head, sizeof(head));
}

/* Each call lets the thread run once more, for which it has to wait its turn: where memory may be writable and executable one is
 * saved. The region is gone in some milliseconds. */
static int64_t map_region(struct victim *v)
{
        uint64_t map[6] = { 0, REGION_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                            ~0ull, 0 };
        int64_t at = call_kernel(v, v->gadget, v->saved.rbx, SYS_mmap, map);

        if (at != -EACCES && at != -EPERM)
                return at;
        map[2] = PROT_READ | PROT_WRITE;
        at = call_kernel(v, v->gadget, v->saved.rbx, SYS_mmap, map);
        if (at < 0 && at > -4096)
                return at;
        map[0] = (uint64_t)at;
        map[1] = PAGE;
        map[2] = PROT_READ | PROT_EXEC;
        return call_kernel(v, v->gadget, v->saved.rbx, SYS_mprotect, map) == 0 ? at : -EACCES;
}

static int fill_region(struct victim *v, uint64_t *ret_tid_at)
{
        struct ls_inject *in = v->in;
        int err = make_tcb(v, in->region + TCB_AT, ret_tid_at);

        in->page_at = in->region + PAGE;
        in->page.region = in->region;
        in->page.region_size = REGION_SIZE;
        in->page.carrier_tid = *ret_tid_at;
        if (err == 0)
                err = ls_remote_write(in->modules, in->region, ls_attach_stub, (size_t)(ls_attach_stub_end - ls_attach_stub));
        if (err == 0)
                err = ls_remote_write(in->modules, in->page_at, &in->page, sizeof(in->page));
        return err;
}

static int begin_thread(struct victim *v)
{
        struct ls_inject *in = v->in;
        uint64_t tid_at = 0;
        int64_t r = map_region(v);

        if (r < 0 && r > -4096)
                return (int)r;
        in->region = (uint64_t)r;
        r = fill_region(v, &tid_at);
        if (r == 0) {
                const uint64_t flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                                       CLONE_SETTLS | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
                const uint64_t clone[6] = { flags, in->region + STACK_AT + STACK_SIZE - 64, 0, tid_at, in->region + TCB_AT };

                r = call_kernel(v, in->region, in->page_at, SYS_clone, clone);
        }
        if (r < 0) {
                const uint64_t unmap[6] = { in->region, REGION_SIZE };

                call_kernel(v, v->gadget, v->saved.rbx, SYS_munmap, unmap);
        }
        return r < 0 ? (int)r : 0;
}

/* The thread is stopped. Its registers and its signal mask are as before when this returns. */
static int use(struct victim *v)
{
        /* All but the two with which the C library reaches each thread (cancellation, setuid). */
        uint64_t all = ~(3ull << 31);
        struct iovec iov = { &v->saved, sizeof(v->saved) };
        int err;

        if (ptrace(PTRACE_GETREGSET, v->tid, 1 /* NT_PRSTATUS */, &iov) < 0)
                return -errno;
        if (iov.iov_len != sizeof(v->saved) || v->saved.cs != 0x33)
                return -ENOEXEC;        /* in 32-bit code */
        if (ls_thread_in_rseq(v->tid, v->in->modules, v->saved.rip))
                return -EAGAIN;
        ls_thread_call_again(v->in->pid, v->tid, v->asleep_ns, &v->saved);
        if (ptrace(PTRACE_GETSIGMASK, v->tid, sizeof(v->mask), &v->mask) < 0 ||
            ptrace(PTRACE_SETSIGMASK, v->tid, sizeof(all), &all) < 0)
                return -errno;
        err = begin_thread(v);
        ptrace(PTRACE_SETREGS, v->tid, NULL, &v->saved);
        ptrace(PTRACE_SETSIGMASK, v->tid, sizeof(v->mask), &v->mask);
        return err;
}

/* How long the thread has waited for processors so far, ns; 0 = not known. */
static uint64_t queued_ns(int schedstat)
{
        char text[64] = "";
        unsigned long long run, wait = 0;

        if (schedstat < 0 || pread(schedstat, text, sizeof(text) - 1, 0) <= 0 || sscanf(text, "%llu %llu", &run, &wait) != 2)
                return 0;
        return wait;
}

static int open_schedstat(pid_t pid, pid_t tid)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
        return open(path, O_RDONLY | O_CLOEXEC);
}

static pid_t late[LATE_MOST];           /* threads that were to stop and have not yet; 0 = free */

void ls_inject_note_late(pid_t tid)
{
        for (unsigned i = 0; i < LATE_MOST; i++)
                if (!late[i]) {
                        late[i] = tid;
                        return;
                }
}

void ls_inject_let_go(void)
{
        for (unsigned i = 0; i < LATE_MOST; i++) {
                int status;
                pid_t r = late[i] ? waitpid(late[i], &status, __WALL | WNOHANG) : 0;

                if (r == late[i] && r && WIFSTOPPED(status))
                        ptrace(PTRACE_DETACH, r, NULL, (void *)(intptr_t)(status >> 16 ? 0 : WSTOPSIG(status)));
                if (r)
                        late[i] = 0;
        }
}

static int stop_and_use(struct ls_inject *in, pid_t tid, uint64_t gadget, const struct ls_thread_data *data, int schedstat)
{
        struct victim v = { .in = in, .tid = tid, .gadget = gadget, .data = data };
        uint64_t start, queued;
        int status, err;

        v.inner_tid = ls_thread_inner_id(in->pid, tid);
        v.asleep_ns = ls_thread_asleep_ns(in->pid, tid);
        ls_stop_hurry(1);
        status = ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 ? -errno : wait_stop(tid, now_ns() + STOP_NS);
        start = now_ns();
        queued = queued_ns(schedstat);
        if (status < 0) {
                ls_stop_hurry(0);
                if (status != -EAGAIN)
                        return status;
                ls_inject_note_late(tid);         /* it is in the kernel for long, and will stop when it comes out */
                return -ETIMEDOUT;
        }
        if (status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP)
                err = use(&v);
        else if (status >> 16 == PTRACE_EVENT_STOP)
                err = -EALREADY;        /* the program is stopped */
        else {
                v.signal = WSTOPSIG(status);
                err = -EAGAIN;
        }
        queued = queued_ns(schedstat) - queued;
        ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)v.signal);
        in->stopped_ns = now_ns() - start;
        ls_stop_hurry(0);
        in->queued_ns = queued < in->stopped_ns ? queued : in->stopped_ns;
        in->stopped_ns -= in->queued_ns;
        return err;
}

static int try_thread(struct ls_inject *in, pid_t tid, uint64_t gadget, const struct ls_thread_data *data)
{
        int schedstat = open_schedstat(in->pid, tid), err;

        err = ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0 ? -errno : stop_and_use(in, tid, gadget, data, schedstat);
        if (schedstat >= 0)
                close(schedstat);
        return err;
}

int ls_inject_begin(struct ls_inject *in)
{
        uint64_t gadget = find_gadget(in->modules);
        const struct ls_module *libc = ls_modules_find(in->modules, "gnu_get_libc_version", NULL);
        pid_t tids[LS_THREADS_TRIED];
        struct ls_thread_data data;
        int err = -EAGAIN;

        if (!gadget || !libc || ls_module_thread_data(in->modules, libc, &data) < 0)
                return -ENOEXEC;
        for (int round = 0; round < 50 && err == -EAGAIN; round++) {
                const struct timespec moment = { 0, 10000000 };
                unsigned n = ls_threads_by_ease(in->pid, tids);

                if (round)
                        nanosleep(&moment, NULL);
                if (!n)
                        return -ESRCH;
                for (unsigned i = 0; i < n && err == -EAGAIN; i++) {
                        err = try_thread(in, tids[i], gadget, &data);
                        if (err == -ESRCH)      /* it ended meanwhile, as the agent's of the time before may */
                                err = -EAGAIN;
                }
        }
        return err;
}
