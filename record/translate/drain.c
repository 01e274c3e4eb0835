/* Reader side of the rings: see drain.h. */
#include "record/translate/drain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An open record whose writer claims to be at work is given up after this time, if its thread also
 * took so many ticks since (a stopped thread takes none): it left the write by longjmp and forgot
 * in_write. */
#define STUCK_NS 1000000000ull
#define STUCK_SIGNALS 100

int ls_drain_init(struct ls_drain *d, const struct ls_memory *m, const struct ls_drain_sink *sink)
{
        memset(d, 0, sizeof(*d));
        d->memory = m;
        d->sink = *sink;
        d->rings = calloc(m->ring_count, sizeof(*d->rings));
        d->copy = malloc(m->ring_size);
        if (!d->rings || !d->copy) {
                ls_drain_done(d);
                return -ENOMEM;
        }
        return 0;
}

void ls_drain_done(struct ls_drain *d)
{
        free(d->rings);
        free(d->copy);
        d->rings = NULL;
        d->copy = NULL;
}

static struct ls_ring_rec *record_at(const struct ls_drain *d, unsigned i, uint64_t position)
{
        return (struct ls_ring_rec *)((char *)ls_memory_ring(d->memory, i) + LS_RING_DATA +
                                      (position & (ls_memory_ring_size(d->memory, i) - 1)));
}

/* 1 when the writer of the open record at the tail will not come back to it. */
static int is_abandoned(struct ls_drain *d, unsigned i, const struct ls_ring_rec *rec,
                        uint64_t now_ns)
{
        struct ls_ring *ring = ls_memory_ring(d->memory, i);
        struct ls_drain_ring *r = &d->rings[i];
        uint64_t signals = atomic_load_explicit(&ring->signals, memory_order_relaxed);

        if (!atomic_load_explicit(&ring->in_write, memory_order_acquire))
                /* It may have been committed between our two looks. */
                return atomic_load_explicit(&rec->state, memory_order_acquire) !=
                       LS_RING_STATE(r->tail, LS_RING_DONE);
        if (!r->stuck_since_ns || r->stuck_at != r->tail || signals < r->stuck_signals) {
                r->stuck_since_ns = now_ns;
                r->stuck_at = r->tail;
                r->stuck_signals = signals;
        }
        return now_ns - r->stuck_since_ns > STUCK_NS && signals - r->stuck_signals > STUCK_SIGNALS;
}

static int header_is_sane(const struct ls_drain *d, unsigned i, uint64_t tail, uint64_t head,
                          uint32_t size)
{
        uint32_t ring_size = ls_memory_ring_size(d->memory, i),
                 to_end = ring_size - (uint32_t)(tail & (ring_size - 1));

        return size >= sizeof(struct ls_ring_rec) && size % 8 == 0 && size <= head - tail &&
               size <= to_end;
}

/* Nothing up to head can be told apart any more. */
static void resync(struct ls_drain *d, unsigned i, uint64_t head)
{
        d->bad_records++;
        d->rings[i].tail = head & ~(uint64_t)7;
        d->sink.gap(d->sink.ctx, i);
}

/* Takes the record at the tail. Returns 0 when it is not finished yet: look again later. */
static int take_record(struct ls_drain *d, unsigned i, uint64_t head, int writer_gone,
                       uint64_t now_ns)
{
        struct ls_drain_ring *r = &d->rings[i];
        struct ls_ring_rec *rec = record_at(d, i, r->tail);
        uint32_t state = atomic_load_explicit(&rec->state, memory_order_acquire);
        uint32_t size_kind = *(volatile uint32_t *)&rec->size_kind;
        uint32_t size = LS_RING_SIZE(size_kind), len = size - (uint32_t)sizeof(*rec);

        if ((state != LS_RING_STATE(r->tail, LS_RING_DONE) &&
             state != LS_RING_STATE(r->tail, LS_RING_OPEN)) ||
            !header_is_sane(d, i, r->tail, head, size)) {
                resync(d, i, head);
                return 1;
        }
        if (state == LS_RING_STATE(r->tail, LS_RING_OPEN)) {
                if (!writer_gone && !is_abandoned(d, i, rec, now_ns))
                        return 0;
                /* A PAD has no content that could be missing. */
                if (LS_RING_KIND(size_kind) != LS_REC_PAD) {
                        d->abandoned++;
                        d->sink.gap(d->sink.ctx, i);
                }
        } else if (LS_RING_KIND(size_kind) != LS_REC_PAD) {
                memcpy(d->copy, rec + 1, len);
                d->sink.record(d->sink.ctx, i, LS_RING_KIND(size_kind), d->copy, len);
        }
        r->tail += size;
        r->stuck_since_ns = 0;
        return 1;
}

static void drain_ring(struct ls_drain *d, unsigned i, int writer_gone, uint64_t now_ns)
{
        struct ls_ring *ring = ls_memory_ring(d->memory, i);
        struct ls_drain_ring *r = &d->rings[i];
        /* Before head: a thread that has ended writes no more. */
        int closing = atomic_load_explicit(&ring->closing, memory_order_acquire) != 0;
        uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
        uint64_t start = r->tail;
        uint32_t ring_size = ls_memory_ring_size(d->memory, i);

        if (head - r->tail > ring_size || head % 8) {
                resync(d, i, head);
        } else {
                if ((head - r->tail) * 1024 / ring_size > d->fill)
                        d->fill = (uint32_t)((head - r->tail) * 1024 / ring_size);
                while (r->tail != head && take_record(d, i, head, writer_gone || closing, now_ns))
                        /* Given back at once: a writer that waits for room gets it soon. */
                        atomic_store_explicit(&ring->tail, r->tail, memory_order_release);
        }
        atomic_store_explicit(&ring->tail, r->tail, memory_order_release);
        d->bytes += r->tail - start;
        if (!closing)
                return;
        if (d->sink.closed)
                d->sink.closed(d->sink.ctx, i);
        atomic_store_explicit(&ring->in_write, 0, memory_order_relaxed);
        atomic_store_explicit(&ring->closing, 0, memory_order_release);
        atomic_store_explicit(&ring->tid, 0,
                              memory_order_release); /* the last: now it may be claimed */
}

void ls_drain_run(struct ls_drain *d, int writer_gone, uint64_t now_ns)
{
        /* The watcher's before the agent's: the translator puts both in order of time. The thread
         * of a suspended coroutine is that which ran it. */
        static const enum ls_ring_role order[LS_NROLES] = {
                LS_ROLE_BLOCKED, LS_ROLE_AGENT, LS_ROLE_SUSPENDED
        };
        unsigned used = ls_memory_rings(d->memory);     /* once: a thread has all of its rings or
                                                         * none */

        d->fill = 0;
        for (unsigned k = 0; k < LS_NROLES; k++) {
                enum ls_ring_role role = order[k];
                unsigned n = d->memory->of[role].n;

                if (role != LS_ROLE_SUSPENDED && n > used)
                        n = used;
                for (unsigned i = 0; i < n; i++)
                        drain_ring(d, d->memory->of[role].first + i, writer_gone, now_ns);
        }
}
