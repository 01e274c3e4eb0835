/* Reads a trace file into a profile. Called by report/ and record/flight.c; exporters stream its
 * samples. */
#ifndef LS_FORMATS_TRACE_READER_H
#define LS_FORMATS_TRACE_READER_H

#include "formats/profile.h"

/* Opens and checks path ("-" = stdin), reads all dictionaries. Returns 0, or -errno; then
 * *ret_error is a static or formatted sentence that says what is wrong, to stand after "PATH: "
 * (never NULL, owned by the library until the next call). Damaged chunks are no error: they are
 * listed in damages. */
int ls_profile_open(const char *path, struct ls_profile **ret_profile, const char **ret_error);
void ls_profile_close(struct ls_profile *p);    /* takes NULL */

/* Streams all readable sample rows in file order. Can be called again. columns: LS_COL_* beyond
 * the rest. */
int ls_profile_samples(struct ls_profile *p, unsigned columns, ls_sample_fn fn, void *ctx);

#endif
