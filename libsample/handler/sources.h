/* The sources of sampled functions, by chunk name, and the texts of those that are in no file.
 * Called by functions.c and for each sample, in the tick handler or the VM hook. */
#ifndef LS_SOURCES_H
#define LS_SOURCES_H

#include <stdint.h>

#include "libsample/thread.h"

/* Id of the source with this chunk name (a GCstr), 0 when its definition did not fit into the ring.
 * *ret_loaded: 1 when it is the text of a loaded string, not the name of a file. */
uint32_t ls_source_id(struct ls_thread *t, const char *chunkname, int *ret_loaded);

/* The same for a name that is not known by its GCstr. */
uint32_t ls_source_id_text(struct ls_thread *t, const char *name, uint32_t len, int *ret_loaded);

/* Sends what is queued of the texts of loaded chunks, as far as it fits without harm to samples. */
void ls_sources_send_text(struct ls_thread *t);

/* The tables of a thread. Normal context. */
struct ls_sources *ls_sources_new(void);
void ls_sources_free(struct ls_sources *src);

#endif
