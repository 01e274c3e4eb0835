/* The memory that the recorder shares with the agent (layout: formats/wire/shm.h). Made before
 * the program starts. */
#ifndef LS_RECORD_PROCESS_MEMORY_H
#define LS_RECORD_PROCESS_MEMORY_H

#include <stddef.h>

#include "formats/wire/shm.h"
#include "record/process/asked.h"

#define LS_RINGS 256u                   /* threads that are recorded at one time */

/* Who writes a ring, and of what. The watcher's rings lie behind the agent's. */
enum ls_ring_role {
        LS_ROLE_AGENT,                  /* the agent: what a thread does on a CPU */
        LS_ROLE_BLOCKED,                /* the watcher: the blocked time of the same thread */
        LS_ROLE_SUSPENDED,              /* the watcher: all suspended coroutines; one ring */
        LS_NROLES
};

struct ls_memory {
        int exact_fd;                   /* the memory of exact counts (wire/exact.h), which we do
                                         * not map; -1 = none is wanted */
        int fd;                         /* close-on-exec; the agent opens it as /proc/PID/fd/FD */
        struct ls_shm *shm;
        size_t size;
        uint32_t ring_size;             /* of ring 0. Our own copies: what is in the memory may be
                                         * overwritten */
        uint32_t small_size;            /* of each other, but that of suspended coroutines */
        uint32_t ring_count;            /* all of them */
        struct { uint32_t first, n; } of[LS_NROLES];    /* the rings of a role; n = 0: such ones are
                                                         * not wanted */
        uint64_t ring_stride;           /* from ring to ring, the first excepted: see
                                         * ls_ring_offset */
        size_t watchers_size;
        int watchers_fd;                /* the file that holds them; only where there are some */
        char *watchers;                 /* the watcher's rings, which the program never sees; NULL =
                                         * none. As far apart, the larger one last */
};

/* A sealed memory file of size bytes, mapped. Returns its descriptor or -errno. */
int ls_memory_share(size_t size, void **ret_map);
/* Not 0, and not to be guessed. */
uint64_t ls_memory_generation(void);
/* Bytes of a memory that ls_memory_init_in would make. */
size_t ls_memory_size(const struct ls_record_options *o);
/* Makes and fills the memory. Returns 0 or -errno. */
int ls_memory_init(struct ls_memory *m, const struct ls_record_options *o);
/* The same in a file that the process to be recorded has made (memfd_create with sealing
 * allowed): takes fd. */
int ls_memory_init_in(struct ls_memory *m, const struct ls_record_options *o, int fd);
/* The same memory in another process: m has its sizes, fd and watchers_fd are files that it is in,
 * and stay the caller's. */
int ls_memory_map(struct ls_memory *m, int fd, int watchers_fd);
void ls_memory_done(struct ls_memory *m);

static inline enum ls_ring_role ls_memory_role(const struct ls_memory *m, unsigned i)
{
        if (i >= m->of[LS_ROLE_SUSPENDED].first)
                return LS_ROLE_SUSPENDED;
        return i < m->of[LS_ROLE_BLOCKED].first ? LS_ROLE_AGENT : LS_ROLE_BLOCKED;
}

/* The agent's ring of the thread whose ring this is; of suspended coroutines: 0. */
static inline unsigned ls_memory_owner(const struct ls_memory *m, unsigned i)
{
        return i - m->of[ls_memory_role(m, i)].first;
}

static inline struct ls_ring *ls_memory_ring(const struct ls_memory *m, unsigned i)
{
        if (ls_memory_role(m, i) != LS_ROLE_AGENT)
                return (struct ls_ring *)(m->watchers +
                                          (i - m->of[LS_ROLE_BLOCKED].first) * m->ring_stride);
        return (struct ls_ring *)((char *)m->shm + ls_ring_offset(m->ring_size, m->ring_stride, i));
}

static inline uint32_t ls_memory_ring_size(const struct ls_memory *m, unsigned i)
{
        return i == 0 || ls_memory_role(m, i) == LS_ROLE_SUSPENDED ? m->ring_size : m->small_size;
}

/* The agent's rings from 0 that are worth a look, and with them the watcher's of the same threads:
 * to read the others would take memory for them. */
static inline unsigned ls_memory_rings(const struct ls_memory *m)
{
        uint32_t used = atomic_load_explicit(&m->shm->rings_used, memory_order_acquire);

        return used < m->of[LS_ROLE_AGENT].n ? used : m->of[LS_ROLE_AGENT].n;
}

#endif
