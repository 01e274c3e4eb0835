/* The recorder's memory: see share.h. What is in it was written by others, so it is checked before
 * it is used. */

#include "libsample/recording/share.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "formats/wire/clock.h"
#include "libsample/old_libc.h"
#include "libsample/pages.h"

#define PAGE 4096u
#define MAX_RINGS 4096u
#define MAX_TOTAL (UINT64_C(1) << 34)
#define MAX_INTERVAL_NS UINT64_C(60000000000)

#define NAPS 100 /* of a ms: for a seat, while many processes start at once */
#define SILENT_NS UINT64_C(2000000000)

/* Is this the control page of the recorder that started this process? size: of the file. */
static int header_ok(const struct ls_shm *shm, uint64_t size, uint64_t generation, uint32_t owner)
{
        uint64_t rings;

        if (shm->magic != LS_SHM_MAGIC || shm->version != LS_SHM_VERSION ||
            shm->generation != generation || shm->root_pid != owner)
                return 0;
        if (shm->total_size > size || shm->total_size > MAX_TOTAL || shm->total_size < LS_SHM_RINGS)
                return 0;
        if (shm->ring_count == 0 || shm->ring_count > MAX_RINGS || shm->ring_stride % PAGE != 0 ||
            shm->ring_stride > MAX_TOTAL)
                return 0;
        if (shm->ring_size < PAGE || (shm->ring_size & (shm->ring_size - 1)) != 0 ||
            shm->small_size < PAGE || LS_RING_DATA + (uint64_t)shm->small_size > shm->ring_stride)
                return 0;
        rings = ls_ring_offset(shm->ring_size, shm->ring_stride, shm->ring_count);
        return rings <= shm->total_size && shm->interval_ns != 0 &&
               shm->interval_ns <= MAX_INTERVAL_NS && shm->timer <= LS_TIMER_CPUTIME &&
               shm->scope <= LS_SCOPE_NONE;
}

/* The descriptor, -1 = it cannot be had, or may shrink: that would kill the program with SIGBUS.
 * *ret_size: of the file. */
static int open_memory(const struct ls_env_memory *memory, uint64_t *ret_size)
{
        char path[64];
        int fd;

        snprintf(path, sizeof path, "/proc/%d/fd/%d", memory->pid, memory->fd);
        fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return -1;
        *ret_size = ls_share_sealed_size(fd);
        if (*ret_size)
                return fd;
        close(fd);
        return -1;
}

static int read_header(int fd, uint64_t size, uint64_t generation, uint32_t owner,
                       struct ls_shm *ret)
{
        return pread(fd, ret, sizeof *ret, 0) == (ssize_t)sizeof *ret &&
               header_ok(ret, size, generation, owner);
}

/* In a program that has called mlockall(MCL_FUTURE) all of a new mapping would be in memory, and
 * stay there. So it is made without access, and is no longer locked when it gets that. Whether it
 * is says madvise, which refuses locked ones. */
static void *map_unlocked(void *hint, size_t n, int flags, int fd)
{
        void *p = mmap(hint, n, PROT_NONE, flags, fd, 0);

        if (p == MAP_FAILED)
                return NULL;
        if (madvise(p, n, MADV_DONTNEED))
                munlock(p, n);
        if (mprotect(p, n, PROT_READ | PROT_WRITE) == 0)
                return p;
        munmap(p, n);
        return NULL;
}

/* In the place of what is at there, in one step. Returns at, or NULL. */
static void *put(void *p, size_t n, void *at)
{
        if (!p || syscall(SYS_mremap, p, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, at) != -1)
                return p ? at : NULL;
        munmap(p, n);
        return NULL;
}

/* hint: where it may be, NULL = anywhere; at: where it is put, NULL = it stays. */
static struct ls_shm *map(int fd, void *hint, size_t n, void *at, const struct ls_shm *header)
{
        struct ls_shm *shm = map_unlocked(hint, n, MAP_SHARED, fd);
        const struct ls_ring *ring;

        if (at)
                shm = put(shm, n, at);
        if (!shm)
                return NULL;
        ring = (const struct ls_ring *)((const char *)shm + LS_SHM_RINGS);
        if (ring->size != header->ring_size) {
                ls_share_leave(shm, n);
                return NULL;
        }
        madvise(shm, n, MADV_DONTDUMP);
        return shm;
}

struct ls_shm *ls_share_map_file(int fd, uint64_t size, uint64_t generation, uint32_t owner,
                                 struct ls_shm *at)
{
        struct ls_shm header;

        if (!read_header(fd, size, generation, owner, &header))
                return NULL;
        return map(fd, ls_pages_place((size_t)header.total_size), (size_t)header.total_size, at,
                   &header);
}

static size_t end_of(const struct ls_shm *shm, uint32_t rings)
{
        return (size_t)ls_ring_offset(shm->ring_size, shm->ring_stride, rings);
}

/* Address space may be limited (ulimit -v), and is the program's: what is mapped grows into the
 * place that was chosen for all. */
struct ls_shm *ls_share_map(const struct ls_env_memory *memory, uint32_t owner, size_t *ret_mapped)
{
        struct ls_shm header, *shm = NULL;
        uint32_t used;
        uint64_t size;
        void *at;
        int fd = open_memory(memory, &size);

        if (fd < 0)
                return NULL;
        if (read_header(fd, size, memory->generation, owner, &header)) {
                used = atomic_load(&header.rings_used);
                *ret_mapped = end_of(&header, used > 1 && used < header.ring_count ? used : 1);
                at = ls_pages_place((size_t)header.total_size);
                shm = at ? map(fd, at, *ret_mapped, NULL, &header) : NULL;
                if (!at || (shm && shm != at)) {        /* there it could not grow */
                        if (shm)
                                munmap(shm, *ret_mapped);
                        *ret_mapped = (size_t)header.total_size;
                        shm = map(fd, NULL, *ret_mapped, NULL, &header);
                }
        }
        close(fd);
        return shm;
}

int ls_share_grow(struct ls_shm *shm, size_t *mapped, uint32_t i)
{
        size_t n = end_of(shm, i + 1);

        if (ls_share_has(shm, *mapped, i))
                return 0;
        if (syscall(SYS_mremap, shm, *mapped, n, 0L) == -1)
                return -1;
        *mapped = n;
        return 0;
}

uint64_t ls_share_sealed_size(int fd)
{
        int seals = ls_fcntl(fd, F_GET_SEALS, 0);
        struct stat st;

        return seals >= 0 && (seals & F_SEAL_SHRINK) && ls_stat(fd, "", &st) == 0 &&
                               S_ISREG(st.st_mode)
                       ? (uint64_t)st.st_size
                       : 0;
}

void ls_share_leave(struct ls_shm *shm, size_t size)
{
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

        if (!put(map_unlocked(ls_pages_place(size), size, flags, -1), size, shm))
                mmap(shm, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0);
}

struct ls_registry *ls_share_map_registry(const struct ls_env_memory *memory)
{
        struct ls_registry *r = MAP_FAILED;
        uint64_t size;
        int fd = open_memory(memory, &size);

        if (fd < 0)
                return NULL;
        if (size >= LS_REGISTRY_SIZE)
                r = mmap(ls_pages_place(LS_REGISTRY_SIZE), LS_REGISTRY_SIZE, PROT_READ | PROT_WRITE,
                         MAP_SHARED, fd, 0);
        close(fd);
        if (r == MAP_FAILED)
                return NULL;
        madvise(r, LS_REGISTRY_SIZE, MADV_DONTDUMP);
        if (r->magic == LS_REGISTRY_MAGIC && r->version == LS_REGISTRY_VERSION &&
            r->generation == memory->generation)
                return r;
        munmap(r, LS_REGISTRY_SIZE);
        return NULL;
}

static int take(struct ls_registry *r, struct ls_env_memory *ret_memory)
{
        for (unsigned i = 0; i < LS_SEATS; i++) {
                uint64_t ready = LS_SEAT_READY;

                /* Once taken the seat is ours until the recorder has seen us. */
                if (atomic_load(&r->seats[i].taken) != ready ||
                    !atomic_compare_exchange_strong(&r->seats[i].taken, &ready,
                                                    (uint64_t)(uint32_t)getpid()))
                        continue;
                ret_memory->fd = (int)r->seats[i].fd;
                ret_memory->generation = r->seats[i].generation;
                return 0;
        }
        return -EAGAIN;
}

void ls_share_ring_bell(struct ls_registry *r)
{
        atomic_fetch_add(&r->bell, 1);
        syscall(SYS_futex, &r->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* 1 when a seat may be ready soon. */
static int is_open(const struct ls_registry *r)
{
        uint64_t beat = atomic_load(&r->heartbeat_ns), now = ls_clock_ns(CLOCK_MONOTONIC);

        return atomic_load(&r->open) && (now < beat || now - beat < SILENT_NS);
}

int ls_share_take_seat(struct ls_registry *r, int recorder, struct ls_env_memory *ret_memory)
{
        const struct timespec nap = { 0, 1000000 };
        int err = -EAGAIN;

        *ret_memory = (struct ls_env_memory){ .pid = recorder };
        for (int i = 0; i < NAPS && is_open(r); i++) {
                err = take(r, ret_memory);
                if (!err)
                        return 0;
                if (i == 0)
                        ls_share_ring_bell(r);
                syscall(SYS_nanosleep, &nap, NULL);
        }
        atomic_fetch_add(&r->turned_away, 1);
        return err;
}
