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

/* Each must be whole: what cannot be read is kept as it is, and named by those who read it. */
static int open_input(const struct ls_store *s, const struct ls_chunk *c, struct ls_merge_input *in)
{
        int fd = ls_store_open_chunk(s, c), r;
        const char *why = NULL;
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        r = fd < 0 ? fd : ls_profile_open(path, &in->profile, &why);
        if (!r && (in->profile->n_damages || !in->profile->interval_ns)) {
                ls_profile_close(in->profile);
                in->profile = NULL;
                r = -EIO;
        }
        if (fd >= 0)
                close(fd);
        if (!r && !(in->name = strdup(c->name)))
                r = -ENOMEM;
        if (r)
                ls_warning("store: %s/%s/%s: %s; the chunks of its time are not merged", c->service, c->day, c->name,
                           why ? why : r == -EIO ? "it is damaged" : strerror(-r));
        return r;
}

static int merge_to(int fd, struct ls_merge_input *in, unsigned n)
{
        uint64_t interval = 0;
        unsigned a, b;
        int r = ls_merge_plan(in, n, &interval, &a, &b);

        for (unsigned i = 0; !r && i < n; i++)
                if (in[i].boot != in[0].boot)   /* its times would be moved */
                        r = -EXDEV;
        if (!r)
                r = ls_merge_write(fd, in, n, interval);
        return !r && fsync(fd) < 0 ? -errno : r;
}

int ls_window_merge(const struct ls_store *s, const struct ls_window *w)
{
        struct ls_chunks all;
        struct ls_merge_input *in;
        unsigned n = 0;
        int r = ls_store_list(s, w->service, 0, UINT64_MAX, &all), fd = -1, incoming;

        if (r)
                return r;
        in = calloc(all.n + 1, sizeof(*in));
        r = in && ls_store_hide(&all, NULL) == 0 ? 0 : -ENOMEM;
        for (size_t i = 0; !r && i < all.n; i++)
                if (ls_window_has(w, &all.v[i])) {
                        r = open_input(s, &all.v[i], &in[n]);
                        n += !r;
                }
        incoming = openat(s->fd, "incoming", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (!r && incoming >= 0)
                fd = openat(incoming, LS_STORE_MERGING, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (!r)
                r = fd < 0 ? -errno : n < 2 ? -ENODATA : merge_to(fd, in, n);
        if (fd >= 0)
                close(fd);
        if (incoming >= 0)
                close(incoming);
        if (in)
                close_inputs(in, n);
        ls_chunks_done(&all);
        return r;
}
