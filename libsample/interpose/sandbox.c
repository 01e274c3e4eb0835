/* Programs that forbid themselves system calls (seccomp). A tick's handler, and what else the agent
 * does in a program, makes some; where they are to end the program the agent leaves it before. A
 * filter that the program sets past the C library goes unseen. */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "libsample/handler/guard.h"
#include "libsample/inject/filter.h"
#include "libsample/interpose/interpose.h"
#include "libsample/libc/real.h"
#include "libsample/recording/notice.h"
#include "libsample/recording/pass.h"
#include "libsample/recording/mappings.h"
#include "libsample/vm/life.h"

#define STEPS_MOST 1000000u             /* of a filter on all calls: some ms */
#define CALL(name) SYS_##name, #name
#define RW (PROT_READ | PROT_WRITE)

/* What the agent asks of the kernel in a program that was launched, once that has begun: the tick's
 * handler, new threads and VMs, files of libraries that are loaded, and its end. It goes on where
 * one fails, but for those with a 0. */
static const struct ls_call calls[] = {
        { CALL(clock_gettime), 0, 0, { 0 } },
        { CALL(rt_sigreturn), 0, 0, { 0 } },
        { CALL(rt_sigprocmask), 0, 0, { 0 } },
        { CALL(rt_sigaction), 0, -1, { 0 } },
        { CALL(mmap), 1u << 2, -1, { 0, 0, RW } },
        { CALL(mremap), 0, -1, { 0 } },
        { CALL(munmap), 0, -1, { 0 } },
        { CALL(madvise), 0, -1, { 0 } },
        { CALL(mprotect), 0, -1, { 0 } },
        { CALL(futex), 0, -1, { 0 } },
        { CALL(sched_yield), 0, -1, { 0 } },
        { CALL(nanosleep), 0, -1, { 0 } },
        { CALL(gettid), 0, -1, { 0 } },
        { CALL(getpid), 0, -1, { 0 } },
        { CALL(prctl), 1u << 0, -1, { PR_GET_NAME } },
        { CALL(sigaltstack), 0, -1, { 0 } },
        { CALL(process_vm_readv), 0, -1, { 0 } },
        { CALL(openat), 0, -1, { 0 } },
        { CALL(read), 0, -1, { 0 } },
        { CALL(pread64), 0, -1, { 0 } },
        { CALL(newfstatat), 0, -1, { 0 } },
        { CALL(readlink), 0, -1, { 0 } },
        { CALL(close), 0, -1, { 0 } },
        { CALL(timer_create), 0, -1, { 0 } },
        { CALL(timer_settime), 0, -1, { 0 } },
        { CALL(timer_delete), 0, -1, { 0 } },
};

/* The name of a call that this filter does not let be made; NULL = there is none. Of one that the
 * kernel will refuse the same is said: it may be set anew, past the C library. */
static const char *forbidden(const struct sock_fprog *filter)
{
        unsigned budget = STEPS_MOST;

        for (size_t i = 0; filter && i < sizeof(calls) / sizeof(*calls); i++) {
                int err = 0;
                enum ls_verdict v = ls_seccomp_judge(filter->filter, filter->len, &calls[i],
                                                     &budget, &err);

                if (v > LS_VERDICT_FAILS || (v == LS_VERDICT_FAILS && !calls[i].may_fail))
                        return calls[i].name;
        }
        return NULL;
}

/* filter NULL: four calls will be left. Nothing is read of one that the kernel cannot read. */
static void before(const struct sock_fprog *filter)
{
        const char *call = "all but four system calls";
        int saved = errno;

        if (!ls_process_is_known() || (ls_agent_live() && !ls_in_recorded_process()))
                return;                 /* a child of vfork, whose memory is its parent's */
        if (filter) {
                if (!ls_readable(filter, sizeof(*filter)) || !filter->len ||
                    !ls_readable(filter->filter, filter->len * sizeof(*filter->filter)))
                        return;
                call = forbidden(filter);
        }
        if (!call)
                return;
        if (!ls_agent_live()) {         /* a child that may yet join */
                ls_process_has_left = 1;
                return;
        }
        if (ls_may_write_ring())
                ls_agent_notice("the program forbids itself %s (seccomp), which the agent needs: "
                                "it is not recorded from then on",
                                call);
        ls_process_leave(ls_engine_give_up() == 0);
        errno = saved;
}

static long raw(long nr, const long a[6])
{
        register long r10 __asm__("r10") = a[3], r8 __asm__("r8") = a[4], r9 __asm__("r9") = a[5];
        long r;

        __asm__ volatile("syscall"
                         : "=a"(r)
                         : "a"(nr), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                         : "rcx", "r11", "memory");
        if (r < 0 && r >= -4095) {
                errno = (int)-r;
                return -1;
        }
        return r;
}

/* Each is a word, whatever its type. As in the C library's own, words beyond what was passed are
 * read too, of the caller's frame, which AddressSanitizer takes for a fault. */
__attribute__((no_sanitize("address")))
static void take(long a[], int n, va_list ap)
{
        for (int i = 0; i < n; i++)
                a[i] = va_arg(ap, long);
}

LS_EXPORT int prctl(int option, ...)
{
        long a[6] = { option };
        va_list ap;

        va_start(ap, option);
        take(a + 1, 4, ap);
        va_end(ap);
        if (option == PR_SET_SECCOMP && a[1] == SECCOMP_MODE_STRICT)
                before(NULL);
        else if (option == PR_SET_SECCOMP && a[1] == SECCOMP_MODE_FILTER && a[2])
                before((const struct sock_fprog *)a[2]);
        return (int)raw(SYS_prctl, a);
}

LS_EXPORT long syscall(long nr, ...)
{
        long a[6];
        va_list ap;

        va_start(ap, nr);
        take(a, 6, ap);
        va_end(ap);
        if (nr == SYS_seccomp && a[0] == SECCOMP_SET_MODE_STRICT)
                before(NULL);
        else if (nr == SYS_seccomp && a[0] == SECCOMP_SET_MODE_FILTER && a[2])
                before((const struct sock_fprog *)a[2]);
        else if (nr == SYS_prctl && (int)a[0] == PR_SET_SECCOMP)
                return prctl(PR_SET_SECCOMP, a[1], a[2], a[3], a[4]);
        return raw(nr, a);
}
