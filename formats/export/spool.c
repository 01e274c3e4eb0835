/* Records of one size in several streams, in memory while they are few, else in a temporary file
 * without a name. Used by the exporters. */
#include "formats/export/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_PIECE                                                                                \
        16 /* records; each piece of a stream has twice as many as the one before, up to: */
#define LAST_PIECE 1024

struct stream {
        uint8_t *buffer;                /* the piece that is being filled */
        uint32_t room, used;            /* records in it */
        uint64_t *offsets;              /* of full pieces in the file */
        size_t n_offsets, cap_offsets;
        uint64_t records;
};

struct ls_spool {
        size_t size;                    /* of a record */
        uint32_t n_streams;
        struct stream *streams;
        int fd;                         /* -1 until a piece is full */
        uint64_t end;                   /* of the file */
        uint8_t *piece;                 /* room to read one */
};

int ls_spool_new(uint32_t n_streams, size_t record_size, struct ls_spool **ret)
{
        struct ls_spool *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->fd = -1;
        s->size = record_size;
        s->n_streams = n_streams;
        s->streams = calloc((size_t)n_streams + 1, sizeof(*s->streams));
        s->piece = malloc(LAST_PIECE * record_size);
        if (!s->streams || !s->piece) {
                ls_spool_free(s);
                return -ENOMEM;
        }
        *ret = s;
        return 0;
}

void ls_spool_free(struct ls_spool *s)
{
        if (!s)
                return;
        for (uint32_t i = 0; s->streams && i < s->n_streams; i++) {
                free(s->streams[i].buffer);
                free(s->streams[i].offsets);
        }
        if (s->fd >= 0)
                close(s->fd);
        free(s->streams);
        free(s->piece);
        free(s);
}

static uint32_t piece_records(size_t number)
{
        return number < 6 ? FIRST_PIECE << number : LAST_PIECE;
}

static int open_in(const char *dir)
{
        char path[4096];
        int fd, n;

        n = snprintf(path, sizeof(path), "%s/luasample-XXXXXX", dir);
        if (n < 0 || (size_t)n >= sizeof(path))
                return -ENAMETOOLONG;
        fd = mkostemp(path, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        unlink(path);
        return fd;
}

static int open_file(void)
{
        const char *dir = getenv("TMPDIR");
        int fd = dir && *dir ? open_in(dir) : -ENOENT;

        if (fd < 0)
                fd = open_in("/tmp");
        if (fd < 0) {                   /* in memory, where no file may be made */
                int memory = memfd_create("luasample-spool", MFD_CLOEXEC);

                fd = memory < 0 ? fd : memory;
        }
        return fd == -ENOENT ? -ENOTDIR : fd;   /* what is missing is not the trace */
}

static int write_piece(struct ls_spool *s, struct stream *t)
{
        size_t n = t->used * s->size;

        if (s->fd < 0) {
                s->fd = open_file();
                if (s->fd < 0)
                        return s->fd;
        }
        if (t->n_offsets == t->cap_offsets) {
                size_t cap = t->cap_offsets ? t->cap_offsets * 2 : 8;
                uint64_t *bigger = realloc(t->offsets, cap * sizeof(*bigger));

                if (!bigger)
                        return -ENOMEM;
                t->offsets = bigger;
                t->cap_offsets = cap;
        }
        for (size_t done = 0; done < n;) {
                ssize_t k = pwrite(s->fd, t->buffer + done, n - done, (off_t)(s->end + done));

                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0)
                        return k < 0 ? -errno : -ENOSPC;
                done += (size_t)k;
        }
        t->offsets[t->n_offsets++] = s->end;
        s->end += n;
        t->used = 0;
        return 0;
}

int ls_spool_add(struct ls_spool *s, uint32_t stream, const void *record)
{
        struct stream *t = &s->streams[stream];
        uint32_t room = piece_records(t->n_offsets);

        if (t->room < room) {
                uint8_t *bigger = realloc(t->buffer, room * s->size);

                if (!bigger)
                        return -ENOMEM;
                t->buffer = bigger;
                t->room = room;
        }
        memcpy(t->buffer + t->used++ * s->size, record, s->size);
        t->records++;
        return t->used < room ? 0 : write_piece(s, t);
}

uint64_t ls_spool_count(const struct ls_spool *s, uint32_t stream)
{
        return s->streams[stream].records;
}

static int read_piece(struct ls_spool *s, uint64_t offset, size_t n)
{
        for (size_t done = 0; done < n;) {
                ssize_t k = pread(s->fd, s->piece + done, n - done, (off_t)(offset + done));

                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0)
                        return k < 0 ? -errno : -EIO;
                done += (size_t)k;
        }
        return 0;
}

static int each_of(const struct ls_spool *s, const uint8_t *records, uint32_t n, ls_spool_fn fn,
                   void *ctx)
{
        int r = 0;

        for (uint32_t i = 0; !r && i < n; i++)
                r = fn(ctx, records + i * s->size);
        return r;
}

int ls_spool_each(struct ls_spool *s, uint32_t stream, ls_spool_fn fn, void *ctx)
{
        struct stream *t = &s->streams[stream];
        int r = 0;

        for (size_t i = 0; !r && i < t->n_offsets; i++) {
                uint32_t n = piece_records(i);

                r = read_piece(s, t->offsets[i], n * s->size);
                if (!r)
                        r = each_of(s, s->piece, n, fn, ctx);
        }
        return r ? r : each_of(s, t->buffer, t->used, fn, ctx);
}
