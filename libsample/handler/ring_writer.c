/* Writer side of a ring. See ring_writer.h; the layout and its invariants are in
 * formats/wire/ring.h. */

#include "libsample/handler/ring_writer.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsample/agent.h"
#include "libsample/thread.h"

LS_HANDLER size_t ls_ring_largest(const struct ls_ring *ring)
{
        return ring->size / 4 - sizeof(struct ls_ring_rec);
}

static struct ls_ring_rec *record_at(struct ls_ring *ring, uint64_t position)
{
        return (struct ls_ring_rec *)((char *)ring + LS_RING_DATA + (position & (ring->size - 1)));
}

/* Puts a header at head and moves head behind the record. A handler may interrupt at any
 * instruction and take the same place: before the header is put, the second look at head or the
 * exchange of the header tells; after it, the exchange of head does, and the handler's header
 * stands where ours was. Returns 0 then: try again further on. */
static int take(struct ls_ring *ring, uint64_t head, uint32_t size, unsigned kind, unsigned how)
{
        _Atomic uint64_t *header = (_Atomic uint64_t *)(void *)record_at(ring, head);
        uint64_t old = atomic_load_explicit(header, memory_order_relaxed);
        uint64_t word = (uint64_t)LS_RING_SIZE_KIND(size, kind) << 32 | LS_RING_STATE(head, how);

        atomic_signal_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&ring->head, memory_order_relaxed) != head ||
            !atomic_compare_exchange_strong_explicit(header, &old, word, memory_order_relaxed,
                                                     memory_order_relaxed))
                return 0;
        return atomic_compare_exchange_strong_explicit(&ring->head, &head, head + size,
                                                       memory_order_release, memory_order_relaxed);
}

/* It looks at the rings when it thinks that they need it, up to 0.1 s later: work that has just
 * begun may fill one before. */
LS_HANDLER void ls_ring_call_recorder(void)
{
        struct ls_shm *shm = ls_agent.shm;
        int saved = errno;

        if (atomic_load_explicit(&shm->filling, memory_order_relaxed) ||
            atomic_exchange(&shm->filling, 1))
                return;
        atomic_fetch_add(&shm->request, 1);
        syscall(SYS_futex, &shm->request, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        errno = saved;
}

LS_HANDLER void *ls_ring_reserve(struct ls_ring *ring, unsigned kind, size_t body_size,
                                 unsigned flags)
{
        uint64_t limit = flags & LS_RESERVE_DEFINITION ? ring->size : ring->size - ring->size / 4;
        uint32_t size = (uint32_t)((sizeof(struct ls_ring_rec) + body_size + 7) & ~(size_t)7);

        if (body_size > ls_ring_largest(ring))
                return NULL;
        atomic_fetch_add_explicit(&ring->in_write, 1, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        for (;;) {
                uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
                uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
                uint32_t to_end = ring->size - (uint32_t)(head & (ring->size - 1));
                uint32_t pad = to_end < size ? to_end : 0;

                if (head - tail + pad + size > limit)
                        break;
                if (pad) {
                        take(ring, head, pad, LS_REC_PAD, LS_RING_DONE);
                        continue;
                }
                if (take(ring, head, size, kind, LS_RING_OPEN)) {
                        char *body = (char *)(record_at(ring, head) + 1);

                        if (head + size - tail >
                            ring->size / 8 * 3) /* half of what samples may fill */
                                ls_ring_call_recorder();
                        memset((char *)record_at(ring, head) + size - 8, 0, size > 8 ? 8 : 0);
                        return body;
                }
        }
        atomic_fetch_sub_explicit(&ring->in_write, 1, memory_order_relaxed);
        return NULL;
}

LS_HANDLER void ls_ring_commit(struct ls_ring *ring, void *body)
{
        struct ls_ring_rec *rec = (struct ls_ring_rec *)body - 1;

        uint32_t state = atomic_load_explicit(&rec->state, memory_order_relaxed);

        atomic_store_explicit(&rec->state, state ^ (LS_RING_OPEN | LS_RING_DONE),
                              memory_order_release);
        atomic_fetch_sub_explicit(&ring->in_write, 1, memory_order_release);
}
