/* The recorder's memory, found and mapped: that of a process, and the registry through which
 * children find theirs. Called by process.c. Async-signal-safe; no descriptor stays open. */
#ifndef LS_LIBSAMPLE_RECORDING_SHARE_H
#define LS_LIBSAMPLE_RECORDING_SHARE_H

#include "formats/wire/registry.h"
#include "formats/wire/shm.h"
#include "libsample/inject/environment.h"

/* Maps the memory of a valid recorder whose root_pid is owner: the rings that have been used, the
 * first one at least. *ret_mapped: bytes. NULL when there is none. */
struct ls_shm *ls_share_map(const struct ls_env_memory *memory, uint32_t owner, size_t *ret_mapped);
/* Is ring i among so many bytes? */
static inline int ls_share_has(const struct ls_shm *shm, size_t mapped, uint32_t i)
{
        return ls_ring_offset(shm->ring_size, shm->ring_stride, i + 1) <= mapped;
}

/* Maps what follows, up to and with ring i. Returns 0, or -1: there is no room in the address
 * space. */
int ls_share_grow(struct ls_shm *shm, size_t *mapped, uint32_t i);

/* All of the same in a file of size bytes, in the place of an old mapping of as many bytes, NULL =
 * anywhere. */
struct ls_shm *ls_share_map_file(int fd, uint64_t size, uint64_t generation, uint32_t owner,
                                 struct ls_shm *at);
/* Bytes of a file that cannot shrink, 0 = it can, or is none. */
uint64_t ls_share_sealed_size(int fd);
/* Replaces the mapping by zeros, in one step: what still looks at it finds that it is not
 * recorded. */
void ls_share_leave(struct ls_shm *shm, size_t size);

/* Maps the registry. NULL when there is none. */
struct ls_registry *ls_share_map_registry(const struct ls_env_memory *memory);
/* Takes a seat for this process: *ret_memory is what it offers, of the recorder pid. Returns 0, or
 * -errno: the recorder is gone, or takes no more. */
int ls_share_take_seat(struct ls_registry *r, int recorder, struct ls_env_memory *ret_memory);
/* Tells the recorder that a seat was taken and its memory is in use. */
void ls_share_ring_bell(struct ls_registry *r);

#endif
