/* The stacks of a process as it is now, read from outside and without an agent in it: of its
 * threads, and of the coroutines that nobody runs. In a process of its own (mirror.h says why),
 * which record/stack.c starts and tells when the threads stand still. */
#ifndef LS_RECORD_WATCH_NOW_H
#define LS_RECORD_WATCH_NOW_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "formats/wire/shm.h"

#define LS_NOW_THREADS    64u           /* threads whose stacks are read; rings of the memory */
#define LS_NOW_COROUTINES 10000u        /* that are looked at */

struct ls_now_thread {
        int32_t tid;
        uint8_t blocked;                /* in the kernel: only ip and sp are known */
        uint64_t ip, sp, bp, bx, dx, r12, r13, r14, r15;
};

/* Fills it. blocked: as above. */
static inline void ls_now_thread(struct ls_now_thread *ret, pid_t tid, int blocked,
                                 const struct user_regs_struct *r)
{
        *ret = (struct ls_now_thread){ .tid = tid,
                                       .blocked = (uint8_t)blocked,
                                       .ip = r->rip,
                                       .sp = r->rsp,
                                       .bp = r->rbp,
                                       .bx = r->rbx,
                                       .dx = r->rdx,
                                       .r12 = r->r12,
                                       .r13 = r->r13,
                                       .r14 = r->r14,
                                       .r15 = r->r15 };
}

/* In memory that both processes share. */
struct ls_now {
        /* set by the parent before the child starts */
        pid_t pid;
        int answer_fd;                  /* holds what luasample_probe has written */
        uint64_t lua_base;              /* where the process has its LuaJIT */
        struct ls_shm *shm;             /* of record/process/memory.c: thread i of threads[] gets
                                         * ring i */
        /* by the child, before it says that it is ready */
        int32_t error;                  /* 0 or -errno: -EPROTO why[] says more, -EPERM, -EEXIST see
                                         * mirror.h */
        char why[120];
        char version[48];
        uint32_t vms;                   /* VMs that were found */
        /* by the parent, when the threads stand still; of a core file by the child */
        uint64_t heap_bytes;            /* of a snapshot: memory that is copied; by the child */
        uint32_t n_threads;
        struct ls_now_thread threads[LS_NOW_THREADS];
        /* by the child, when it has looked */
        uint32_t unread;                /* threads and coroutines whose stack could not be read */
        uint32_t coroutines;            /* suspended ones that were sent */
        uint32_t more;                  /* 1 = there was no time for all objects of the VMs */
};

/* In the child: finds the VMs. Sets error. */
void ls_now_prepare(struct ls_now *n);
/* In the child: sends all stacks into the rings. search_ns: for the search for coroutines;
 * budget_ns: for all of it, after which what is left is left out. */
void ls_now_look(struct ls_now *n, uint64_t search_ns, uint64_t budget_ns);

#endif
