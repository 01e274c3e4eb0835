/* See shared.h. */
#include "libsample/shared.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define PAGE 4096u
#define MAX_RINGS 4096u
#define MAX_TOTAL (UINT64_C(1) << 34)
#define MAX_INTERVAL_NS UINT64_C(60000000000)

/* Is this the control page of the recorder that started this process? size: of the file. */
static int header_ok(const struct ls_shm *shm, uint64_t size, uint64_t generation)
{
        uint64_t rings;

        if (shm->magic != LS_SHM_MAGIC || shm->version != LS_SHM_VERSION || shm->generation != generation ||
            shm->root_pid != (uint32_t)getpid())
                return 0;
        if (shm->total_size > size || shm->total_size > MAX_TOTAL || shm->total_size < LS_SHM_RINGS)
                return 0;
        if (shm->ring_count == 0 || shm->ring_count > MAX_RINGS || shm->ring_stride % PAGE != 0 ||
            shm->ring_stride > MAX_TOTAL)
                return 0;
        if (shm->ring_size < PAGE || (shm->ring_size & (shm->ring_size - 1)) != 0 ||
            LS_RING_DATA + (uint64_t)shm->ring_size > shm->ring_stride)
                return 0;
        rings = shm->ring_stride * shm->ring_count;
        return rings <= shm->total_size - LS_SHM_RINGS && shm->interval_ns != 0 &&
               shm->interval_ns <= MAX_INTERVAL_NS && shm->timer <= LS_TIMER_CPUTIME &&
               shm->scope <= LS_SCOPE_NONE;
}

/* Memory that can shrink would kill the program with SIGBUS. */
static int is_valid(int fd, uint64_t generation, struct ls_shm *header)
{
        int seals = fcntl(fd, F_GET_SEALS);
        struct stat st;

        return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
               pread(fd, header, sizeof *header, 0) == (ssize_t)sizeof *header &&
               header_ok(header, (uint64_t)st.st_size, generation);
}

struct ls_shm *ls_shared_map(int fd, uint64_t generation, void *at, size_t at_size)
{
        struct ls_shm header, *shm;
        const struct ls_ring *ring;
        size_t size;

        if (!is_valid(fd, generation, &header))
                return NULL;
        size = (size_t)header.total_size;
        shm = mmap(at_size == size ? at : NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | (at && at_size == size ? MAP_FIXED : 0),
                   fd, 0);
        if (shm == MAP_FAILED)
                return NULL;
        ring = (const struct ls_ring *)((const char *)shm + LS_SHM_RINGS);
        if (ring->size != header.ring_size) {
                ls_shared_leave(shm, size);
                return NULL;
        }
        madvise(shm, size, MADV_DONTDUMP);
        return shm;
}

void ls_shared_leave(struct ls_shm *shm, size_t size)
{
        mmap(shm, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

volatile uint64_t *ls_shared_generation(uint64_t generation)
{
        uint64_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (page == MAP_FAILED)
                return NULL;
        if (madvise(page, PAGE, MADV_WIPEONFORK) < 0) {
                munmap(page, PAGE);
                return NULL;
        }
        *page = generation;
        return page;
}

void ls_shared_generation_free(volatile uint64_t *word)
{
        if (word)
                munmap((void *)(uintptr_t)word, PAGE);
}
