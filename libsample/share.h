/* The recorder's memory, found and mapped: that of a process, and the registry through which children find theirs. Called
 * by process.c. Async-signal-safe; no descriptor stays open. */
#ifndef LS_SHARE_H
#define LS_SHARE_H

#include "formats/wire/shm.h"
#include "libsample/inject/environment.h"

/* Maps the memory of a valid recorder whose root_pid is owner. NULL when there is none. */
struct ls_shm *ls_share_map(const struct ls_env_memory *memory, uint32_t owner);

/* Takes a seat of the registry for this process: *ret_memory is what it offers. Returns 0, or -errno: there is no recorder,
 * or it takes no more. */
int ls_share_take_seat(const struct ls_env_memory *registry, struct ls_env_memory *ret_memory);
/* Tells the recorder that a seat was taken and its memory is in use. */
void ls_share_ring_bell(const struct ls_env_memory *registry);

#endif
