/* Reads a trace file into a profile. Called by report/, store/ and record/flight.c; exporters
 * stream its samples, merge takes rows as they are. */
#ifndef LS_FORMATS_TRACE_READER_H
#define LS_FORMATS_TRACE_READER_H

#include "formats/profile.h"

/* Opens and checks path ("-" = stdin), reads all dictionaries. Returns 0, or -errno; then
 * *ret_error is a static or formatted sentence that says what is wrong, to stand after "PATH: "
 * (never NULL, owned by the library until the next call). Damaged chunks are no error: they are
 * listed in damages. */
int ls_profile_open(const char *path, struct ls_profile **ret_profile, const char **ret_error);
/* The same of an open file, from its first byte; fd stays the caller's. */
int ls_profile_open_fd(int fd, struct ls_profile **ret_profile, const char **ret_error);
void ls_profile_close(struct ls_profile *p);    /* takes NULL */

/* Streams all readable sample rows in file order. Can be called again. columns: LS_COL_* beyond
 * the rest. */
int ls_profile_samples(struct ls_profile *p, unsigned columns, ls_sample_fn fn, void *ctx);

/* Rows of a kind (enum ls_record_kind) as they are in the file: the greatest id, 0 = there are
 * none; one of them, its columns by LS_C_*, zeros behind them up to LS_COLUMNS_MAX. Returns 0 when
 * no row has that id. */
uint32_t ls_profile_rows(const struct ls_profile *p, unsigned kind);
int ls_profile_row(const struct ls_profile *p, unsigned kind, uint32_t id, uint64_t *ret_row);
/* What a column that is a string means; lives as long as the profile. */
struct ls_str ls_profile_string(const struct ls_profile *p, uint64_t string);

#endif
