/* Opens and closes a profile: the file itself, the sentences for what cannot be read, and INFO by
 * key. */
#include "formats/trace/reader.h"

#include "formats/trace/reader_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOT_A_TRACE "it is not a luasample trace"

static void reader_free(struct ls_reader *r)
{
        if (!r)
                return;
        if (r->fd >= 0)
                close(r->fd);
        for (unsigned k = 0; k < LS_KINDS; k++)
                ls_dict_done(&r->dict[k]);
        for (unsigned c = 0; c < LS_COLUMNS_MAX; c++)
                free(r->scratch[c]);
        for (struct ls_block *b = r->blocks, *next; b; b = next) {
                next = b->next;
                free(b);
        }
        ls_sample_buffers_free(r->buffers);
        free(r->jit_moves);
        free(r->no_line);
        free(r->texts);
        free(r->maps);
        free(r->chunks);
        free(r->window);
        ls_buf_free(&r->stored);
        ls_buf_free(&r->raw);
        ZSTD_freeDCtx(r->zstd);
        free(r);
}

void ls_profile_close(struct ls_profile *p)
{
        if (!p)
                return;
        reader_free(p->priv);
        free(p->sources);
        free(p->functions);
        free(p->locations);
        free(p->stacks);
        free(p->zones);
        free(p->sample_labels);
        free(p->processes);
        free(p->threads);
        free(p->vms);
        free(p->coroutines);
        free(p->mappings);
        free(p->jittraces);
        free(p->events);
        free(p->clocks);
        free(p->regions);
        free(p->marks);
        free(p->counters);
        free(p->counts);
        free(p->attempts);
        free(p->infos);
        free(p->notices);
        free(p->damages);
        free(p);
}

static int profile_new(struct ls_profile **ret_profile)
{
        struct ls_profile *p = calloc(1, sizeof(*p));
        struct ls_reader *r = calloc(1, sizeof(*r));

        if (!p || !r) {
                free(p);
                free(r);
                return -ENOMEM;
        }
        p->priv = r;
        r->p = p;
        r->fd = -1;
        for (unsigned k = 0; k < LS_KINDS; k++)
                ls_dict_init(&r->dict[k], k);
        r->window = malloc(LS_WINDOW);
        r->zstd = ZSTD_createDCtx();
        if (!r->window || !r->zstd) {
                ls_profile_close(p);
                return -ENOMEM;
        }
        *ret_profile = p;
        return 0;
}

/* Whether the first bytes of a pipe can be a trace, a damaged one too: else its end is not waited
 * for. */
static int may_be_trace(const char *buf, size_t n)
{
        static const uint32_t magic = LS_CHUNK_MAGIC;

        return !memcmp(buf, LS_FILE_MAGIC, n < 8 ? n : 8) || memmem(buf, n, &magic, sizeof(magic));
}

/* A file without a name; memory where rights to make one were given up. */
static int temporary(void)
{
        FILE *f = tmpfile();
        int fd = f ? dup(fileno(f)) : memfd_create("luasample-stdin", MFD_CLOEXEC), error = -errno;

        if (f)
                fclose(f);
        return fd < 0 ? error : fd;
}

/* A pipe is read into a temporary file first: dictionaries may come after the samples that use
 * them. Takes fd. */
static int spool(int fd, int *ret_fd)
{
        char buf[65536];
        int out = temporary(), r = out < 0 ? out : 0, first = 1;

        while (!r) {
                ssize_t n = read(fd, buf, sizeof(buf));

                if (n == 0)
                        break;
                if (n < 0)
                        r = errno == EINTR ? 0 : -errno;
                else if (first && !may_be_trace(buf, (size_t)n))
                        r = -EBADMSG;
                first = first && n < 0;
                for (ssize_t done = 0, k; !r && done < n; done += k) {
                        k = write(out, buf + done, (size_t)(n - done));
                        if (k < 0)
                                r = -errno;
                }
        }
        close(fd);
        if (r && out >= 0)
                close(out);
        if (!r)
                *ret_fd = out;
        return r;
}

/* Takes fd. */
static int take_file(struct ls_reader *r, int fd, const char **ret_error)
{
        struct stat st;
        int e;

        *ret_error = NULL;
        if (fstat(fd, &st)) {
                e = -errno;
                close(fd);
                return e;
        }
        if (S_ISDIR(st.st_mode)) {
                close(fd);
                *ret_error = "it is a directory, not a trace file";
                return -EISDIR;
        }
        if (!S_ISREG(st.st_mode)) {
                e = spool(fd, &fd);
                if (e == -EBADMSG)
                        *ret_error = NOT_A_TRACE;
                if (e)
                        return e;
                if (fstat(fd, &st)) {
                        close(fd);
                        return -EIO;
                }
        }
        r->fd = fd;
        r->size = (uint64_t)st.st_size;
        r->p->file_size = r->size;
        if (r->size == 0) {
                *ret_error = "it is empty: nothing was recorded into it yet";
                return -ENODATA;
        }
        return 0;
}

/* A file without any chunk is a trace only if it starts like one (a cut one). */
static int looks_like_trace(struct ls_reader *r)
{
        uint8_t start[8];
        ssize_t n = pread(r->fd, start, sizeof(start), 0);

        return r->n_chunks || r->header_ok || (n > 0 && !memcmp(start, LS_FILE_MAGIC, (size_t)n));
}

static int read_all(struct ls_reader *r, int fd, const char **ret_error)
{
        int e = fd < 0 ? -errno : take_file(r, fd, ret_error);

        if (e)
                return e;
        e = ls_scan(r);
        if (e == -EPROTONOSUPPORT)
                *ret_error = "it was written by a newer luasample; read it with that version";
        if (e)
                return e;
        if (!looks_like_trace(r)) {
                *ret_error = NOT_A_TRACE;
                return -EBADMSG;
        }
        return ls_resolve(r);
}

/* Takes fd; -1 = errno says why. */
static int open_profile(int fd, struct ls_profile **ret_profile, const char **ret_error)
{
        static char sentence[256];
        struct ls_profile *p = NULL;
        const char *error = NULL;
        int cause = errno, e = profile_new(&p);

        errno = cause;
        if (!e)
                e = read_all(p->priv, fd, &error);
        else if (fd >= 0)
                close(fd);
        if (!e) {
                *ret_profile = p;
                return 0;
        }
        if (!error) {
                snprintf(sentence, sizeof(sentence), "cannot read it: %s", strerror(-e));
                error = sentence;
        }
        *ret_error = error;
        ls_profile_close(p);
        return e;
}

int ls_profile_open(const char *path, struct ls_profile **ret_profile, const char **ret_error)
{
        return open_profile(strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC)
                                              : dup(STDIN_FILENO),
                            ret_profile, ret_error);
}

int ls_profile_open_fd(int fd, struct ls_profile **ret_profile, const char **ret_error)
{
        return open_profile(dup(fd), ret_profile, ret_error);
}

uint32_t ls_profile_rows(const struct ls_profile *p, unsigned kind)
{
        const struct ls_reader *r = p->priv;

        return r->dict[kind].n;
}

int ls_profile_row(const struct ls_profile *p, unsigned kind, uint32_t id, uint64_t *ret_row)
{
        const struct ls_reader *r = p->priv;
        const struct ls_dict *d = &r->dict[kind];

        if (!ls_dict_has(d, id))
                return 0;
        memset(ret_row, 0, LS_COLUMNS_MAX * sizeof(*ret_row));
        memcpy(ret_row, ls_dict_row(d, id), d->ncol * sizeof(*ret_row));
        return 1;
}

struct ls_str ls_profile_string(const struct ls_profile *p, uint64_t string)
{
        return ls_reader_str(p->priv, string);
}
