/* A program that has called mlockall(MCL_FUTURE) has the agent in memory too, as far as it reaches:
 * its library with tables that are mostly empty, and the whole stack of its thread, which the C
 * library keeps for the program's next one. Called by attach.c, on the agent's thread; the memory
 * that is shared with the recorder is never locked (recording/share.c). */

#include "libsample/attach/locked.h"

#include <elf.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsample/libc/real.h"

#define PAGE UINT64_C(4096)
#define NEEDED (64u << 10)              /* bytes of the stack, below where it is now */
#define ON_FAULT 1u                     /* MLOCK_ONFAULT */

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

/* madvise refuses locked memory, and says so. */
static int is_locked(void *page)
{
        return madvise(page, PAGE, MADV_DONTNEED) != 0;
}

/* What is under it is the program's again when this thread has ended: locked, as soon as it is
 * used. */
static void leave_stack(void)
{
        uintptr_t here = (uintptr_t)__builtin_frame_address(0) & ~(PAGE - 1);
        pthread_attr_t attr;
        void *low;
        size_t size;

        if (ls_libc()->pthread_getattr_np(pthread_self(), &attr))
                return;
        if (ls_libc()->pthread_attr_getstack(&attr, &low, &size) == 0 &&
            here - NEEDED > (uintptr_t)low) {
                size = here - NEEDED - (uintptr_t)low;
                munlock(low, size);
                madvise(low, size, MADV_DONTNEED);
                syscall(SYS_mlock2, low, size, ON_FAULT);
        }
        pthread_attr_destroy(&attr);
}

static int is_empty(const uint64_t *page)
{
        for (unsigned i = 0; i < PAGE / sizeof *page; i++)
                if (page[i])
                        return 0;
        return 1;
}

/* Pages as they are in the file come again when they are used, and empty ones behind it too.
 * tables: no other thread of the program is in the library yet. */
static void leave_library(int tables)
{
        const char *base = (const char *)&__ehdr_start;
        const Elf64_Phdr *p = (const Elf64_Phdr *)(const void *)(base + __ehdr_start.e_phoff);

        for (unsigned i = 0; i < __ehdr_start.e_phnum; i++, p++) {
                uintptr_t start = ((uintptr_t)base + p->p_vaddr) & ~(PAGE - 1),
                          file = (uintptr_t)base + p->p_vaddr + p->p_filesz;
                uintptr_t end = ((uintptr_t)base + p->p_vaddr + p->p_memsz + PAGE - 1) &
                                ~(PAGE - 1);

                if (p->p_type != PT_LOAD)
                        continue;
                munlock((void *)start, end - start);
                if (!(p->p_flags & PF_W))
                        madvise((void *)start, end - start, MADV_DONTNEED);
                for (uintptr_t at = (file + PAGE - 1) & ~(PAGE - 1);
                     (p->p_flags & PF_W) && tables && at < end; at += PAGE)
                        if (is_empty((const uint64_t *)at))
                                madvise((void *)at, PAGE, MADV_DONTNEED);
        }
}

static int locked;

void ls_attach_locked_begin(void)
{
        locked = locked || is_locked((void *)((uintptr_t)&__ehdr_start & ~(PAGE - 1)));
        if (!locked)
                return;
        leave_stack();
        leave_library(1);
}

void ls_attach_locked_after_fork_child(void)
{
        locked = 0;
}

void ls_attach_locked_end(void)
{
        if (locked)
                leave_library(0);
}
