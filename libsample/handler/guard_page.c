/* Asks the kernel whether a page of this process can be read: see guard.h. A process that reads
 * another one's memory has its own file in place of this one (record/watch/mirror.c). */

#include "libsample/handler/guard_page.h"

#include <sys/syscall.h>

#define PAGE_BITS 12
#define NO_SUCH_HOW                                                                                \
        12345 /* rt_sigprocmask reads the set, then finds that it does not know what to do */

LS_HANDLER int ls_page_readable(uintptr_t page)
{
        long r;

        __asm__ volatile("movq %5, %%r10\n\tsyscall"
                         : "=a"(r)
                         : "0"((long)SYS_rt_sigprocmask), "D"((long)NO_SUCH_HOW),
                           "S"(page << PAGE_BITS), "d"(0L), "r"(8L)
                         : "rcx", "r10", "r11", "memory");
        return r == -22;                /* EINVAL: it was read; EFAULT otherwise */
}
