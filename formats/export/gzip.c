/* A gzip stream into a FILE, with zlib. */
#include "formats/export/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include <zlib.h>

#define LEVEL 3                         /* of 9 */
#define WINDOW (15 + 16)                /* bits; + 16 = with gzip's head and end */

struct ls_gzip {
        FILE *out;
        z_stream z;
        int failed;
        uint8_t buffer[65536];
};

int ls_gzip_new(FILE *out, struct ls_gzip **ret)
{
        struct ls_gzip *z = calloc(1, sizeof(*z));

        if (!z)
                return -ENOMEM;
        z->out = out;
        if (deflateInit2(&z->z, LEVEL, Z_DEFLATED, WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
                free(z);
                return -ENOMEM;
        }
        *ret = z;
        return 0;
}

static void run(struct ls_gzip *z, int flush)
{
        int r;

        do {
                z->z.next_out = z->buffer;
                z->z.avail_out = sizeof(z->buffer);
                r = deflate(&z->z, flush);
                if (r == Z_STREAM_ERROR) {
                        z->failed = 1;
                        return;
                }
                fwrite(z->buffer, 1, sizeof(z->buffer) - z->z.avail_out, z->out);
        } while (z->z.avail_out == 0);
}

void ls_gzip_write(struct ls_gzip *z, const void *bytes, size_t n)
{
        const uint8_t *p = bytes;

        while (n > 0 && !z->failed) {
                unsigned part = n < UINT_MAX ? (unsigned)n : UINT_MAX;

                z->z.next_in = (uint8_t *)(uintptr_t)p;
                z->z.avail_in = part;
                run(z, Z_NO_FLUSH);
                p += part;
                n -= part;
        }
}

int ls_gzip_end(struct ls_gzip *z)
{
        int r;

        if (!z)
                return 0;
        z->z.avail_in = 0;
        if (!z->failed)
                run(z, Z_FINISH);
        r = z->failed ? -EIO : 0;
        deflateEnd(&z->z);
        free(z);
        return r;
}
