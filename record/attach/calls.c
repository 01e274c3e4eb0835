/* The system calls that an attachment makes in the program: see filters.h. In the order in which
 * they come: of the thread that is stopped; of the threads that begin there (record/attach/stub.c,
 * and what the C library does for them); of the agent's thread; of the tick's handler and the
 * patched functions, in any thread. tests/integration/attach/calls.py has them all shown by the
 * kernel and compares. */
#include "record/attach/filters.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_rseq
#define SYS_rseq 334
#endif

#define CALL(name) SYS_##name, #name
#define ARG(i) (1u << (i))
#define ANY (-1)                        /* it goes on without, whatever the error */

#define THREAD \
        (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | \
         CLONE_SYSVSEM | CLONE_SETTLS)
#define CARRIER (THREAD | CLONE_CHILD_CLEARTID)
#define PROPER (THREAD | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

const struct ls_call ls_calls[] = {
        { CALL(restart_syscall), 0, 0, { 0 } },         /* of one that the stop has interrupted */
        { CALL(mmap), ARG(2), ANY, { 0, 0, PROT_READ | PROT_WRITE | PROT_EXEC } },
        { CALL(mmap), ARG(2), 0, { 0, 0, PROT_READ | PROT_WRITE } },
        { CALL(mmap), ARG(2), 0, { 0, 0, PROT_READ | PROT_EXEC } },
        { CALL(mmap), ARG(2), 0, { 0, 0, PROT_READ } },
        { CALL(mmap), ARG(2), 0, { 0, 0, PROT_NONE } },
        { CALL(mprotect), ARG(2), 0, { 0, 0, PROT_READ | PROT_EXEC } },
        { CALL(mprotect), ARG(2), 0, { 0, 0, PROT_READ | PROT_WRITE | PROT_EXEC } },
        { CALL(mprotect), ARG(2), 0, { 0, 0, PROT_READ | PROT_WRITE } },
        { CALL(mprotect), ARG(2), 0, { 0, 0, PROT_READ } },
        { CALL(munmap), 0, 0, { 0 } },
        { CALL(clone), ARG(0), 0, { CARRIER } },
        { CALL(clone3), 0, ENOSYS, { 0 } },             /* the C library goes on with clone then */
        { CALL(clone), ARG(0), 0, { PROPER } },
        { CALL(set_tid_address), 0, ANY, { 0 } },       /* of a thread that is given up */
        { CALL(exit), 0, 0, { 0 } },
        { CALL(set_robust_list), 0, ANY, { 0 } },
        { CALL(rseq), 0, ANY, { 0 } },
        { CALL(rt_sigprocmask), 0, 0, { 0 } },
        { CALL(rt_sigaction), 0, 0, { 0 } },
        { CALL(madvise), 0, ANY, { 0 } },
        { CALL(memfd_create), ARG(1), 0, { 0, MFD_CLOEXEC } },
        { CALL(memfd_create), ARG(1), 0, { 0, MFD_CLOEXEC | MFD_ALLOW_SEALING } },
        { CALL(nanosleep), 0, 0, { 0 } },
        { CALL(openat), ARG(2), 0, { 0, 0, O_RDONLY | O_CLOEXEC } },
        { CALL(openat), ARG(2), 0, { 0, 0, O_RDONLY | O_DIRECTORY | O_CLOEXEC } },
        { CALL(openat), ARG(2), 0, { 0, 0, O_RDONLY } },
        { CALL(read), 0, 0, { 0 } },
        { CALL(pread64), 0, 0, { 0 } },
        { CALL(newfstatat), 0, 0, { 0 } },
        { CALL(fstat), 0, 0, { 0 } },                   /* of C libraries before 2.33 */
        { CALL(readlink), 0, ANY, { 0 } },
        { CALL(getdents64), 0, 0, { 0 } },
        { CALL(close), 0, 0, { 0 } },
        { CALL(prctl), ARG(0), ANY, { PR_SET_NAME } },
        { CALL(prctl), ARG(0), ANY, { PR_GET_NAME } },
        { CALL(getrandom), 0, ANY, { 0 } },
        { CALL(brk), 0, ANY, { 0 } },
        { CALL(getpid), 0, 0, { 0 } },
        { CALL(gettid), 0, 0, { 0 } },
        { CALL(fcntl), ARG(1), 0, { 0, F_GET_SEALS } },
        { CALL(close_range), 0, ANY, { 0 } },
        { CALL(munlock), 0, ANY, { 0 } },
        { CALL(sched_getaffinity), 0, ANY, { 0 } },     /* in a program that locks its memory */
        { CALL(mlock2), 0, ANY, { 0 } },
        { CALL(mremap), 0, 0, { 0 } },
        { CALL(futex), 0, 0, { 0 } },
        { CALL(sched_yield), 0, ANY, { 0 } },
        { CALL(clock_gettime), 0, 0, { 0 } },
        { CALL(clock_nanosleep), 0, 0, { 0 } },
        { CALL(rt_sigreturn), 0, 0, { 0 } },
        { CALL(sigaltstack), 0, 0, { 0 } },
        { CALL(prlimit64), 0, ANY, { 0 } },
        { CALL(process_vm_readv), 0, ANY, { 0 } },      /* of --native */
        { CALL(timer_create), 0, ANY, { 0 } },          /* of --timer cputime, to its end */
        { CALL(timer_settime), 0, ANY, { 0 } },
        { CALL(timer_delete), 0, ANY, { 0 } },
};
const unsigned ls_n_calls = sizeof(ls_calls) / sizeof(*ls_calls);
