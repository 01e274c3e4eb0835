/* munmap and mremap: counted, so that the handler need not ask the kernel at each tick for pages
 * that it has read before (handler/guard.h). LuaJIT's allocator gives memory back by these two
 * alone. */
#include "libsample/libc/real.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsample/handler/guard.h"
#include "libsample/interpose/interpose.h"

static void begin(void)
{
        atomic_fetch_add(&ls_unmaps.begun, 1);
}

static void end(void)
{
        atomic_fetch_add(&ls_unmaps.ended, 1);
}

LS_EXPORT int munmap(void *addr, size_t n)
{
        long r;

        begin();
        r = syscall(SYS_munmap, addr, n);
        end();
        return (int)r;
}

LS_EXPORT void *mremap(void *addr, size_t old_size, size_t new_size, int flags, ...)
{
        void *to = NULL;
        va_list ap;
        long r;

        va_start(ap, flags);
        if (flags & MREMAP_FIXED)
                to = va_arg(ap, void *);
        va_end(ap);
        begin();
        r = syscall(SYS_mremap, addr, old_size, new_size, flags, to);
        end();
        return (void *)r;
}
