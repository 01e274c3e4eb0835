/* Records of one size in several streams: added in any order, read stream by stream. Full pieces go
 * to a temporary file, so memory does not grow with their number. Used by the exporters whose
 * formats want each thread's samples together. */
#ifndef LS_FORMATS_EXPORT_SPOOL_H
#define LS_FORMATS_EXPORT_SPOOL_H

#include <stddef.h>
#include <stdint.h>

struct ls_spool;

typedef int (*ls_spool_fn)(void *ctx, const void *record);      /* non-zero stops and is returned */

int ls_spool_new(uint32_t n_streams, size_t record_size, struct ls_spool **ret); /* 0 or -errno */
void ls_spool_free(struct ls_spool *s);                 /* takes NULL; removes the file */

int ls_spool_add(struct ls_spool *s, uint32_t stream, const void *record); /* 0 or -errno */
uint64_t ls_spool_count(const struct ls_spool *s, uint32_t stream);
/* Can be called again, but not while records are added. */
int ls_spool_each(struct ls_spool *s, uint32_t stream, ls_spool_fn fn, void *ctx);

#endif
