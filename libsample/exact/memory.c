/* The shared memory of a process's counts: its log, counters and cells. See
 * formats/wire/exact.h. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "libsample/agent.h"
#include "libsample/exact/private.h"
#include "libsample/inject/patch.h"
#include "libsample/lock.h"
#include "libsample/pages.h"

struct ls_exact_head *ls_exact_head;
char *ls_exact_cells;
uint64_t *ls_exact_counters;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sigset_t lock_mask;
static char *log_at;
static uint32_t log_size;

static const struct { uint64_t from, size; } areas[] = {
        { 0, LS_EXACT_LOG + LS_EXACT_LOG_SIZE },
        { LS_EXACT_COUNTERS, 8 * LS_EXACT_COUNTERS_MOST },
        { LS_EXACT_CELLS, 2 * LS_EXACT_WINDOW },
};
enum { NAREAS = sizeof areas / sizeof *areas };
static void *mapped[NAREAS];

/* In a program that has called mlockall(MCL_FUTURE) all of it would be in memory: so it is made
 * without access, and is not locked any more when it gets that. */
static void *map_area(int i, int fd, void *place, int fixed)
{
        size_t n = areas[i].size;
        void *p = mmap(place, n, PROT_NONE,
                       (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | MAP_NORESERVE |
                               (fixed ? MAP_FIXED : 0),
                       fd, fd < 0 ? 0 : (off_t)areas[i].from);

        if (p == MAP_FAILED)
                return p;
        if (madvise(p, n, MADV_DONTNEED))
                munlock(p, n);
        madvise(p, n, MADV_DONTDUMP);
        if (mprotect(p, n, PROT_READ | PROT_WRITE) == 0)
                return p;
        munmap(p, n);
        return MAP_FAILED;
}

/* Some of the window lies above the address: what the kernel maps later is mostly below what it
 * mapped before. */
static uint64_t low_of(uintptr_t near)
{
        uint64_t above = LS_EXACT_WINDOW / 8, at = near & ~UINT64_C(0xfff);

        return at + above < LS_EXACT_WINDOW ? 0 : at + above - LS_EXACT_WINDOW;
}

int ls_exact_map(int fd, uintptr_t near)
{
        for (int i = 0; i < NAREAS; i++) {
                void *place =
                        i == 1 ? ls_patch_reserve((uintptr_t)ls_lua.lua_sethook, areas[i].size)
                               : ls_pages_place(areas[i].size);

                mapped[i] = i == 1 && !place ? MAP_FAILED : map_area(i, fd, place, i == 1);
                if (mapped[i] == MAP_FAILED) {
                        while (i--)
                                munmap(mapped[i], areas[i].size);
                        return -ENOMEM;
                }
        }
        if (atomic_load(&((struct ls_exact_head *)mapped[0])->counters_used)) {
                for (int i = 0; i < NAREAS; i++)
                        munmap(mapped[i], areas[i].size);
                return -EBUSY;
        }
        ls_exact_head = mapped[0];
        ls_exact_counters = mapped[1];
        ls_exact_cells = mapped[2];
        ls_exact_head->low = low_of(near);
        atomic_store(&ls_exact_head->counters_used, 1);
        return 0;
}

void ls_exact_after_fork(void)
{
        static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
        uint64_t low;

        if (!ls_exact_head)
                return;
        low = ls_exact_head->low;
        for (int i = 0; i < NAREAS; i++)
                map_area(i, -1, mapped[i], 1);
        ls_exact_head->low = low;
        atomic_store(&ls_exact_head->counters_used, LS_EXACT_COUNTERS_MOST);
        atomic_store(&ls_exact_head->log_used, LS_EXACT_LOG_SIZE);
        memcpy(&lock, &fresh, sizeof fresh);
        ls_exact_protos_after_fork();
}

uint32_t ls_exact_new_counters(uint32_t n)
{
        uint64_t first = atomic_load(&ls_exact_head->counters_used);

        do {
                if (first + n > LS_EXACT_COUNTERS_MOST)
                        return 0;
        } while (!atomic_compare_exchange_weak(&ls_exact_head->counters_used, &first, first + n));
        return (uint32_t)first;
}

void *ls_exact_log_begin(uint32_t size)
{
        sigset_t mask;
        uint64_t used;
        struct ls_exact_rec *rec;

        size = (size + 7) & ~7u;
        ls_lock(&lock, &mask);
        used = atomic_load(&ls_exact_head->log_used);
        if (used + size > LS_EXACT_LOG_SIZE) {
                atomic_fetch_add(&ls_exact_head->lost, 1);
                ls_unlock(&lock, &mask);
                return NULL;
        }
        log_at = (char *)ls_exact_head + LS_EXACT_LOG + used;
        log_size = size;
        lock_mask = mask;
        rec = (struct ls_exact_rec *)log_at;
        rec->size = size;
        return rec;
}

void ls_exact_log_end(void)
{
        sigset_t mask = lock_mask;

        atomic_fetch_add_explicit(&ls_exact_head->log_used, log_size, memory_order_release);
        ls_unlock(&lock, &mask);
}
