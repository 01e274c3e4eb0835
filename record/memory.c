/* The memory that the recorder shares with the agent: see memory.h. */
#include "record/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

int ls_fd_above_stdio(int fd)
{
        int high, err;

        if (fd < 0 || fd > 2)
                return fd;
        high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        err = errno;
        close(fd);
        return high < 0 ? -err : high;
}

static uint64_t random_generation(void)
{
        uint64_t g = 0;

        while (!g)
                if (getrandom(&g, sizeof(g), 0) != sizeof(g))
                        g = ((uint64_t)getpid() << 32) ^ (uintptr_t)&g;
        return g;
}

static void fill(struct ls_memory *m, const struct ls_record_options *o)
{
        struct ls_shm *s = m->shm;

        s->magic = LS_SHM_MAGIC;
        s->version = LS_SHM_VERSION;
        s->generation = random_generation();
        s->total_size = m->size;
        s->ring_stride = m->ring_stride;
        s->ring_size = m->ring_size;
        s->ring_count = m->ring_count;
        s->interval_ns = o->interval_ns;
        s->depth = o->depth;
        s->scope = o->scope;
        s->want_text = !o->no_source;
        s->bare_tick = o->bare_tick;
        s->engine = o->engine;
        s->jit_leaf = o->jit_leaf;
        s->native = o->native_bytes != 0;
        s->native_bytes = o->native_bytes;
        s->recorder_pid = (uint32_t)getpid();
}

/* The memory is sparse: a ring that no thread has used costs the page of its head. */
static void fill_rings(struct ls_memory *m)
{
        for (unsigned i = 0; i < m->ring_count; i++)
                ls_memory_ring(m, i)->size = ls_memory_ring_size(m, i);
}

static void set_sizes(struct ls_memory *m, const struct ls_record_options *o, uint32_t rings)
{
        m->ring_size = o->ring_size;
        m->small_size = o->ring_size < LS_SMALL_RING ? o->ring_size : LS_SMALL_RING;
        m->ring_count = rings;
        m->ring_stride = LS_RING_DATA + (uint64_t)m->ring_size;
        m->size = LS_SHM_RINGS + m->ring_count * m->ring_stride;
}

/* Memory of the sizes in m, in the file m->fd. Returns 0 or -errno. */
static int share_file(struct ls_memory *m)
{
        int err;

        /* Sealed: a program that shrank it would make the recorder die of SIGBUS. */
        if (ftruncate(m->fd, (off_t)m->size) == 0 &&
            fcntl(m->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
                m->shm = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
                if (m->shm != MAP_FAILED)
                        return 0;
                m->shm = NULL;
        }
        err = errno;
        ls_memory_done(m);
        return -err;
}

static int share(struct ls_memory *m)
{
        m->fd = memfd_create("luasample", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        m->fd = ls_fd_above_stdio(m->fd < 0 ? -errno : m->fd);
        return m->fd < 0 ? m->fd : share_file(m);
}

int ls_memory_init_in(struct ls_memory *m, const struct ls_record_options *o, int fd)
{
        int err;

        m->shm = NULL;
        m->fd = fd;
        set_sizes(m, o, LS_RINGS);
        err = share_file(m);
        if (err < 0)
                return err;
        fill(m, o);
        fill_rings(m);
        return 0;
}

int ls_memory_init(struct ls_memory *m, const struct ls_record_options *o)
{
        int err;

        m->shm = NULL;
        set_sizes(m, o, LS_RINGS);
        err = share(m);
        if (err == -EFBIG || err == -ENOMEM) {  /* a limit of the user's: one thread is better than none */
                set_sizes(m, o, 1);
                err = share(m);
        }
        if (err < 0)
                return err;
        fill(m, o);
        fill_rings(m);
        return 0;
}

void ls_memory_done(struct ls_memory *m)
{
        if (m->shm)
                munmap(m->shm, m->size);
        if (m->fd >= 0)
                close(m->fd);
        m->shm = NULL;
        m->fd = -1;
}
