/* A gzip stream into a FILE. Used by exporters of compressed formats. */
#ifndef LS_FORMATS_EXPORT_GZIP_H
#define LS_FORMATS_EXPORT_GZIP_H

#include <stddef.h>
#include <stdio.h>

struct ls_gzip;

int ls_gzip_new(FILE *out, struct ls_gzip **ret);       /* 0 or -errno */
/* Errors of out are left to whoever closes it; an error here is of memory and sticks until the
 * end. */
void ls_gzip_write(struct ls_gzip *z, const void *bytes, size_t n);
/* Ends the stream and frees it; takes NULL. Returns 0 or -errno. */
int ls_gzip_end(struct ls_gzip *z);

#endif
