/* The maps of a profile's traces (map.h), each made when it is first asked for, and before it that
 * of the trace that it leaves. Called by the reader of traces and the exporter perf-map. */
#ifndef LS_FORMATS_JIT_MAPS_H
#define LS_FORMATS_JIT_MAPS_H

#include "formats/jit/map.h"
#include "formats/profile.h"

struct ls_jit_maps;

/* p: has all jittraces, and outlives the maps. NULL = no memory. */
struct ls_jit_maps *ls_jit_maps_new(const struct ls_profile *p);
/* The map of jittraces[trace], NULL = it has none that can be used, or all together would cost too
 * much. Returns 0 or -ENOMEM. */
int ls_jit_maps_get(struct ls_jit_maps *m, uint32_t trace, const struct ls_jit_map **ret);
void ls_jit_maps_free(struct ls_jit_maps *m);   /* takes NULL */

#endif
