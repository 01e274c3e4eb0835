/* Writer side of a ring: reserve, fill in place, commit. Called by the tick handler and by the VM
 * hook that it may interrupt, on the thread that owns the ring. Never blocks or allocates. */
#ifndef LS_HANDLER_RING_WRITER_H
#define LS_HANDLER_RING_WRITER_H

#include <stddef.h>

#include "formats/wire/ring.h"

/* Marks a function that may run in a signal handler. */
#define LS_HANDLER

#define LS_RESERVE_DEFINITION 1u /* may use the quarter of the ring that samples leave free */

/* Room for a record with a body of body_size bytes; the rest of the last 8 is zeroed. Returns the
 * body, or NULL when the ring is full or the record is too large for it (ls_ring_largest). Every
 * reservation must be committed. */
LS_HANDLER void *ls_ring_reserve(struct ls_ring *ring, unsigned kind, size_t body_size,
                                 unsigned flags);

/* Publishes the record of this body. */
LS_HANDLER void ls_ring_commit(struct ls_ring *ring, void *body);

/* Largest body that ls_ring_reserve accepts: a quarter of the ring. */
LS_HANDLER size_t ls_ring_largest(const struct ls_ring *ring);

/* Makes the recorder look at the rings now, once until it does. Any context; keeps errno. */
LS_HANDLER void ls_ring_call_recorder(void);

#endif
