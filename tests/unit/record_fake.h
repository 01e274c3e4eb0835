/* Plays the agent for the tests of record/: writes records into a ring as libsample does, and also
 * as it never should. */
#ifndef LS_TESTS_RECORD_FAKE_H
#define LS_TESTS_RECORD_FAKE_H

#include <assert.h>
#include <string.h>

#include "formats/wire/ring.h"
#include "record/process/memory.h"

static inline struct ls_ring_rec *fake_at(struct ls_ring *ring, uint64_t position)
{
        return (struct ls_ring_rec *)((char *)ring + LS_RING_DATA + (position & (ring->size - 1)));
}

/* Reserves; the record is open. Returns the body, NULL when the ring is full. */
static inline void *fake_reserve(struct ls_ring *ring, unsigned kind, size_t body)
{
        uint32_t size = (uint32_t)((sizeof(struct ls_ring_rec) + body + 7) & ~(size_t)7);

        for (;;) {
                uint64_t head = ring->head, tail = atomic_load(&ring->tail);
                uint32_t to_end = ring->size - (uint32_t)(head & (ring->size - 1));
                uint32_t n = to_end < size ? to_end : size;
                struct ls_ring_rec *rec = fake_at(ring, head);

                if (head - tail + n > ring->size)
                        return NULL;
                atomic_store(&rec->state,
                             LS_RING_STATE(head, n < size ? LS_RING_DONE : LS_RING_OPEN));
                rec->size_kind = LS_RING_SIZE_KIND(n, n < size ? (unsigned)LS_REC_PAD : kind);
                if (n < size) {
                        atomic_store(&ring->head, head + n);
                        continue;
                }
                memset(rec + 1, 0, size - sizeof(*rec));
                atomic_fetch_add(&ring->in_write, 1);
                atomic_store(&ring->head, head + size);
                return rec + 1;
        }
}

static inline void fake_commit(struct ls_ring *ring, void *body)
{
        atomic_fetch_xor(&((struct ls_ring_rec *)body - 1)->state, LS_RING_OPEN | LS_RING_DONE);
        atomic_fetch_sub(&ring->in_write, 1);
}

/* A whole record: fixed part and what follows it. Returns 0, or -1 when the ring is full. */
static inline int fake_put(struct ls_ring *ring, unsigned kind, const void *fixed, size_t fixed_len,
                           const void *more, size_t more_len)
{
        char *body = fake_reserve(ring, kind, fixed_len + more_len);

        if (!body)
                return -1;
        memcpy(body, fixed, fixed_len);
        if (more)
                memcpy(body + fixed_len, more, more_len);
        fake_commit(ring, body);
        return 0;
}

static inline int fake_source(struct ls_ring *ring, uint32_t id, const char *name,
                              uint32_t text_len)
{
        struct ls_rec_source s = { .source_id = id,
                                   .name_len = (uint32_t)strlen(name),
                                   .text_hash = id * 77u,
                                   .text_len = text_len };

        return fake_put(ring, LS_REC_SOURCE, &s, sizeof(s), name, strlen(name));
}

static inline int fake_function(struct ls_ring *ring, uint32_t id, uint32_t source, uint32_t first,
                                uint32_t last)
{
        struct ls_rec_function f = { .func_id = id,
                                     .kind = LS_FUNC_LUA,
                                     .source_id = source,
                                     .first_line = first,
                                     .last_line = last,
                                     .hash = 1000 + id };

        return fake_put(ring, LS_REC_FUNCTION, &f, sizeof(f), NULL, 0);
}

static inline int fake_name(struct ls_ring *ring, uint32_t id, unsigned rank, const char *name)
{
        struct ls_rec_name n = { .func_id = id,
                                 .rank = (uint16_t)rank,
                                 .name_len = (uint16_t)strlen(name) };

        return fake_put(ring, LS_REC_NAME, &n, sizeof(n), name, strlen(name));
}

/* One tick in the interpreter unless rec says otherwise. */
static inline int fake_sample(struct ls_ring *ring, struct ls_rec_sample rec,
                              const struct ls_frame *frames)
{
        uint32_t sum = 0;

        for (unsigned i = 0; i < LS_NVMSTATES; i++)
                sum += rec.weight[i];
        if (!sum)
                rec.weight[LS_VMSTATE_INTERPRETED] = 1;
        rec.event = LS_EVENT_CPU;
        return fake_put(ring, LS_REC_SAMPLE, &rec, sizeof(rec), frames,
                        rec.nframes * sizeof(*frames));
}

static __attribute__((unused)) uint32_t fake_events;    /* of the next memory: LS_RECORD_* */

/* A memory as `record` makes it. */
static inline void fake_memory(struct ls_memory *m, uint32_t ring_size)
{
        struct ls_record_options o = { .interval_ns = 1000000,
                                       .ring_size = ring_size,
                                       .events = fake_events };
        int err = ls_memory_init(m, &o);

        assert(err == 0);
        (void)err;
        /* As the agent does when a thread gets a ring. */
        for (unsigned i = 0; i < m->ring_count; i++)
                ls_memory_ring(m, i)->size = ls_memory_ring_size(m, i);
        atomic_store(&m->shm->rings_used, m->ring_count);
}

static inline uint64_t fake_random(uint64_t *seed)
{
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        return *seed;
}

#endif
