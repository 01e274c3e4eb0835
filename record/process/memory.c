/* The memory that the recorder shares with the agent: see memory.h. */
#include "record/process/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "formats/wire/exact.h"
#include "record/process/descriptors.h"

uint64_t ls_memory_generation(void)
{
        uint64_t g = 0;

        while (!g)
                if (getrandom(&g, sizeof(g), 0) != sizeof(g))
                        g = ((uint64_t)getpid() << 32) ^ (uintptr_t)&g;
        return g;
}

static uint8_t exact_want(const struct ls_record_options *o)
{
        uint32_t events = o->events & LS_RECORD_EXACT;

        return events & LS_RECORD_CALLTIME    ? LS_EXACT_TIME
               : !events                      ? LS_EXACT_NOTHING
               : events == LS_RECORD_COVERAGE ? LS_EXACT_COVERAGE
                                              : LS_EXACT_ALL;
}

static void fill(struct ls_memory *m, const struct ls_record_options *o)
{
        struct ls_shm *s = m->shm;

        s->magic = LS_SHM_MAGIC;
        s->version = LS_SHM_VERSION;
        s->generation = ls_memory_generation();
        s->total_size = m->size;
        s->ring_stride = m->ring_stride;
        s->ring_size = m->ring_size;
        s->ring_count = m->of[LS_ROLE_AGENT].n;
        s->small_size = m->small_size;
        s->rings_used = 1;
        s->registry_fd = -1;
        s->interval_ns = o->interval_ns;
        s->depth = o->depth;
        s->scope = o->scope;
        s->want_text = !o->no_source;
        s->bare_tick = o->bare_tick;
        s->engine = o->engine;
        s->jit_leaf = o->jit_leaf;
        s->exact = exact_want(o);
        s->exact_fd = m->exact_fd;
        s->alloc_interval = o->events & LS_RECORD_MEMORY ? o->alloc_interval : 0;
        s->live = (o->events & LS_RECORD_LIVE) != 0;
        s->native = o->native_bytes != 0;
        s->native_bytes = o->native_bytes;
        s->recorder_pid = (uint32_t)getpid();
}

static void set_sizes(struct ls_memory *m, const struct ls_record_options *o, uint32_t rings)
{
        m->ring_size = o->ring_size;
        m->small_size = o->ring_size / 4 > LS_SMALL_RING ? o->ring_size / 4 :
                        o->ring_size < LS_SMALL_RING ? o->ring_size : LS_SMALL_RING;
        m->of[LS_ROLE_AGENT].first = 0;
        m->of[LS_ROLE_AGENT].n = rings;
        m->of[LS_ROLE_BLOCKED].first = rings;
        m->of[LS_ROLE_BLOCKED].n = o->events & LS_RECORD_WALL ? rings : 0;
        m->of[LS_ROLE_SUSPENDED].first = 2 * rings;
        m->of[LS_ROLE_SUSPENDED].n = o->events & LS_RECORD_SUSPENDED ? 1 : 0;
        m->ring_count = o->events & (LS_RECORD_WALL | LS_RECORD_SUSPENDED) ? 2 * rings + 1 : rings;
        m->ring_stride = LS_RING_DATA + (uint64_t)m->small_size;
        m->size = ls_ring_offset(m->ring_size, m->ring_stride, rings);
        m->watchers_size = (m->ring_count - rings) * m->ring_stride + m->ring_size - m->small_size;
}

size_t ls_memory_size(const struct ls_record_options *o)
{
        struct ls_memory m;

        set_sizes(&m, o, LS_RINGS);
        return m.size;
}

/* Takes fd. Sealed: a program that shrank it would make the recorder die of SIGBUS. What cannot be
 * sealed is left as it is. */
static int share_file(int fd, size_t size, void **ret_map)
{
        int err;

        if (fd < 0)
                return fd;
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0 && ftruncate(fd, (off_t)size) == 0 &&
            fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL) == 0) {
                *ret_map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                if (*ret_map != MAP_FAILED)
                        return fd;
        }
        err = errno;
        close(fd);
        return -err;
}

int ls_memory_share(size_t size, void **ret_map)
{
        int fd = memfd_create("luasample", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        return share_file(ls_fd_above_stdio(fd < 0 ? -errno : fd), size, ret_map);
}

/* A sparse file, of which only what is counted takes room. Without one nothing is counted, and the
 * summary says so. */
static int share_exact(const struct ls_record_options *o)
{
        int fd = exact_want(o) ? memfd_create("luasample-counts", MFD_CLOEXEC | MFD_ALLOW_SEALING)
                               : -1;

        if (fd < 0)
                return -1;
        fd = ls_fd_above_stdio(fd);
        if (fd >= 0 && ftruncate(fd, (off_t)LS_EXACT_SIZE) == 0 &&
            fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
                return fd;
        if (fd >= 0)
                close(fd);
        return -1;
}

/* What the memory of the sizes in m, mapped at map, begins with. */
static void begin(struct ls_memory *m, const struct ls_record_options *o, void *map)
{
        m->shm = map;
        m->exact_fd = share_exact(o);
        fill(m, o);
        /* The memory is sparse: a ring that no thread has used costs nothing, and has no size
         * yet. */
        ls_memory_ring(m, 0)->size = m->ring_size;
}

/* Sparse as well: what is used is there. */
static int share_with_watcher(struct ls_memory *m)
{
        void *map;

        if (m->ring_count == m->of[LS_ROLE_AGENT].n)
                return 0;
        m->watchers_fd = ls_memory_share(m->watchers_size, &map);
        if (m->watchers_fd < 0) {
                ls_memory_done(m);
                return m->watchers_fd;
        }
        m->watchers = map;
        if (m->of[LS_ROLE_SUSPENDED].n)  /* thousands send at a time */
                ls_memory_ring(m, m->of[LS_ROLE_SUSPENDED].first)->size = m->ring_size;
        return 0;
}

int ls_memory_init_in(struct ls_memory *m, const struct ls_record_options *o, int fd)
{
        void *map;

        m->shm = NULL;
        m->watchers = NULL;
        set_sizes(m, o, LS_RINGS);
        m->fd = share_file(fd, m->size, &map);
        if (m->fd < 0)
                return m->fd;
        begin(m, o, map);
        return share_with_watcher(m);
}

static int init_with(struct ls_memory *m, const struct ls_record_options *o, uint32_t rings)
{
        void *map;

        m->shm = NULL;
        m->watchers = NULL;
        set_sizes(m, o, rings);
        m->fd = ls_memory_share(m->size, &map);
        if (m->fd < 0)
                return m->fd;
        begin(m, o, map);
        return share_with_watcher(m);
}

int ls_memory_init(struct ls_memory *m, const struct ls_record_options *o)
{
        int err = init_with(m, o, LS_RINGS);

        /* A limit of the user's: one thread is better than none. */
        return err == -EFBIG || err == -ENOMEM ? init_with(m, o, 1) : err;
}

int ls_memory_map(struct ls_memory *m, int fd, int watchers_fd)
{
        void *map = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        int with_watchers = m->ring_count != m->of[LS_ROLE_AGENT].n;

        m->fd = m->watchers_fd = -1;
        m->watchers = NULL;
        m->shm = map == MAP_FAILED ? NULL : map;
        if (!m->shm || !with_watchers)
                return m->shm ? 0 : -errno;
        map = mmap(NULL, m->watchers_size, PROT_READ | PROT_WRITE, MAP_SHARED, watchers_fd, 0);
        if (map == MAP_FAILED) {
                int err = -errno;

                ls_memory_done(m);
                return err;
        }
        m->watchers = map;
        return 0;
}

void ls_memory_done(struct ls_memory *m)
{
        if (m->watchers) {
                munmap(m->watchers, m->watchers_size);
                if (m->watchers_fd >= 0)
                        close(m->watchers_fd);
        }
        m->watchers = NULL;
        if (m->shm)
                munmap(m->shm, m->size);
        if (m->fd >= 0)
                close(m->fd);
        if (m->shm && m->exact_fd >= 0)
                close(m->exact_fd);
        m->exact_fd = -1;
        m->shm = NULL;
        m->fd = -1;
}
