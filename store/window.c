/* Merges the chunks of a window, in a process of its own: see store.h. */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "formats/trace/reader.h"
#include "formats/merge/merge.h"

static void close_inputs(struct ls_merge_input *in, unsigned n)
{
        for (unsigned i = 0; i < n; i++) {
                ls_profile_close(in[i].profile);
                free((char *)(uintptr_t)in[i].name);
        }
        free(in);
}

/* Takes fd. Each must be whole: what cannot be read is kept as it is, and named by those who read
 * it. */
static int open_input(int fd, const struct ls_chunk *c, struct ls_merge_input *in)
{
        const char *why = NULL;
        int r = ls_profile_open_fd(fd, &in->profile, &why);

        if (!r && (in->profile->n_damages || !in->profile->interval_ns)) {
                ls_profile_close(in->profile);
                in->profile = NULL;
                r = -EIO;
        }
        close(fd);
        if (!r && !(in->name = strdup(c->name)))
                r = -ENOMEM;
        if (r)
                ls_warning("store: %s/%s/%s: %s; the chunks of its time are not merged", c->service,
                           c->day, c->name,
                           why         ? why
                           : r == -EIO ? "it is damaged"
                                       : strerror(-r));
        return r;
}

/* Of the level's chunks: what is older is asked for by longer times. */
static const uint64_t bucket_ns[] = { [1] = 1000000000, [2] = 10000000000 };

static int merge_to(int fd, uint32_t level, struct ls_merge_input *in, unsigned n)
{
        const struct ls_merge_pieces pieces = { .bucket_ns = bucket_ns[level] };
        uint64_t interval = 0;
        unsigned a, b;
        int r = ls_merge_plan(in, n, &interval, &a, &b);

        for (unsigned i = 0; !r && i < n; i++)
                if (!ls_merge_one_clock(&in[0], &in[i]))        /* no time of the day fits both */
                        r = -EXDEV;
        if (!r)
                ls_merge_by_wall(in, n);
        if (!r)
                r = ls_merge_write(fd, in, n, interval, &pieces);
        return !r && fsync(fd) < 0 ? -errno : r;
}

/* Of all of the window, in the order of all; *ret_n: how many. Returns 0 or -errno. */
static int open_chunks(const struct ls_store *s, const struct ls_window *w,
                       const struct ls_chunks *all, int *fds, unsigned *ret_n)
{
        *ret_n = 0;
        for (size_t i = 0; i < all->n; i++) {
                int fd = ls_window_has(w, &all->v[i]) ? ls_store_open_chunk(s, &all->v[i]) : -1;

                fds[i] = fd;
                if (fd < 0 && ls_window_has(w, &all->v[i]))
                        return fd;
                *ret_n += fd >= 0;
        }
        return *ret_n < 2 ? -ENODATA : 0;
}

static int open_output(const struct ls_store *s)
{
        int incoming = openat(s->fd, "incoming", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        int fd = incoming < 0 ? -1
                              : openat(incoming, LS_STORE_MERGING,
                                       O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        int error = fd < 0 ? -errno : fd;

        if (incoming >= 0)
                close(incoming);
        return error;
}

/* Everything is open: rights are given up before a byte of a trace is read. Takes the fds. */
static int merge_open(uint32_t level, const struct ls_chunks *all, int *fds, int out)
{
        struct ls_merge_input *in = calloc(all->n + 1, sizeof(*in));
        unsigned n = 0;
        int r = in ? ls_store_drop() : -ENOMEM;

        for (size_t i = 0; i < all->n; i++) {
                if (fds[i] < 0)
                        continue;
                if (r)
                        close(fds[i]);
                else
                        r = open_input(fds[i], &all->v[i], &in[n]);
                n += !r;
        }
        if (!r)
                r = merge_to(out, level, in, n);
        if (in)
                close_inputs(in, n);
        return r;
}

int ls_window_merge(const struct ls_store *s, const struct ls_window *w)
{
        struct ls_chunks all;
        unsigned n = 0;
        int r = w->level < 1 || w->level > 2 ? -EINVAL : 0, out = -1, *fds;

        if (!r)
                r = ls_store_list(s, w->service, 0, UINT64_MAX, &all);
        if (r)
                return r;
        ls_store_allow_files();
        fds = calloc(all.n + 1, sizeof(*fds));
        r = fds && ls_store_hide(&all, NULL) == 0 ? 0 : -ENOMEM;
        for (size_t i = 0; fds && i < all.n; i++)
                fds[i] = -1;
        if (!r)
                r = open_chunks(s, w, &all, fds, &n);
        if (!r) {
                out = open_output(s);
                r = out < 0 ? out : 0;
        }
        if (!r)
                r = merge_open(w->level, &all, fds, out);
        if (out >= 0)
                close(out);
        free(fds);
        ls_chunks_done(&all);
        return r;
}
