/* The records of a trace file as they are, for `luasample dump`. */
#ifndef LS_FORMATS_TRACE_DUMP_H
#define LS_FORMATS_TRACE_DUMP_H

#include "formats/profile.h"

/* Typed view of one record for `luasample dump`: calls fn for every record of every chunk, in
 * file order, damage included, with its fields already formatted as key and value. */
struct ls_dump_field { const char *key; int is_u64; uint64_t u64; struct ls_str str; };
typedef int (*ls_dump_fn)(void *ctx, uint64_t chunk, uint64_t offset, const char *record_kind,
                          const struct ls_dump_field *fields, unsigned n_fields);
int ls_profile_dump(struct ls_profile *p, ls_dump_fn fn, void *ctx);

#endif
