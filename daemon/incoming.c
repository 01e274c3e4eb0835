/* From the recorders' directories into the store: see daemon.h. What a recorder has ended (trace.1,
 * trace.2, ...) is committed while it goes on; what it was writing when it ended, however it did,
 * when nobody holds its lock any more. So it makes no difference whose recorder it was, and nothing
 * has to be remembered. */
#include "daemon/daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

struct recording {
        struct ls_chunk c;              /* service and pid */
        uint64_t start_ms;              /* of the recording */
        char name[160];
        int fd, ended;
};

/* SERVICE.PID.MS */
static int parse_name(const char *name, struct recording *r)
{
        char *ms, *pid;

        memset(r, 0, sizeof(*r));
        if (strlen(name) >= sizeof(r->name))
                return -EINVAL;
        strcpy(r->name, name);
        ms = strrchr(r->name, '.');
        if (!ms)
                return -EINVAL;
        *ms = 0;
        pid = strrchr(r->name, '.');
        if (!pid)
                return -EINVAL;
        *pid = 0;
        if (!ls_service_name_ok(r->name))
                return -EINVAL;
        strcpy(r->c.service, r->name);
        r->c.pid = (uint32_t)strtoul(pid + 1, NULL, 10);
        r->start_ms = strtoull(ms + 1, NULL, 10);
        strcpy(r->name, name);
        return 0;
}

static uint64_t stamp_ms(const struct statx_timestamp *t)
{
        return t->tv_sec > 0 ? (uint64_t)t->tv_sec * 1000 + t->tv_nsec / 1000000 : 0;
}

/* A chunk is of the time from when its file was made to when it was written last. */
static int find_times(struct recording *r, const char *name)
{
        struct statx st;

        if (statx(r->fd, name, AT_SYMLINK_NOFOLLOW,
                  STATX_BTIME | STATX_MTIME | STATX_SIZE | STATX_TYPE, &st) < 0)
                return -errno;
        if (!S_ISREG(st.stx_mode))
                return -EINVAL;
        r->c.end_ms = stamp_ms(&st.stx_mtime);
        r->c.begin_ms = st.stx_mask & STATX_BTIME ? stamp_ms(&st.stx_btime) : r->start_ms;
        if (r->c.begin_ms > r->c.end_ms)        /* the clock was set back */
                r->c.begin_ms = r->c.end_ms;
        r->c.size = st.stx_size;
        return 0;
}

static void committed(struct ls_daemon *d, const struct recording *r)
{
        struct ls_serving *s = ls_serving(d, r->c.service);

        s->chunks++;
        s->bytes += r->c.size;
        for (unsigned i = 0; i < d->n_watched; i++)
                if (!strcmp(d->watched[i]->dir, r->name))
                        d->watched[i]->commits++;
}

/* One that comes late, of a recorder that was stopped, or whose clock was set back: its time may be
 * merged already. */
static int find_level(struct ls_daemon *d, struct recording *r)
{
        struct ls_chunks all;
        int error;

        r->c.level = 0;
        if (r->c.begin_ms >= d->merged_until_ms)
                return 0;
        if (d->merger)                  /* it would not know of this one */
                return -EAGAIN;
        error = ls_store_list(&d->store, r->c.service, 0, UINT64_MAX, &all);
        if (!error)
                r->c.level = ls_store_level(&all, &r->c);
        ls_chunks_done(&all);
        return error;
}

static void commit(struct ls_daemon *d, struct recording *r, const char *name)
{
        int error = find_times(r, name);

        if (!error && !r->c.size) {     /* nothing was written: it was killed as it began */
                unlinkat(r->fd, name, 0);
                return;
        }
        if (!error)
                error = find_level(d, r);
        if (!error)
                error = ls_store_commit(&d->store, r->fd, name, &r->c);
        if (!error)
                committed(d, r);
        if (!error || error == -EAGAIN)
                return;
        if (!d->commit_errors++)
                ls_daemon_say("%s/incoming/%s/%s: %s", d->store.path, r->name, name,
                              strerror(-error));
        snprintf(d->commit_error, sizeof(d->commit_error), "%s/%s: %s", r->name, name,
                 strerror(-error));
}

static int is_number(const char *text)
{
        return *text && strspn(text, "0123456789") == strlen(text);
}

static void look_into(struct ls_daemon *d, struct recording *r)
{
        int copy = openat(r->fd, ".", DIRECTORY);
        DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
        struct dirent *e;

        while (dir && (e = readdir(dir))) {
                if (!strncmp(e->d_name, "trace.", 6) && is_number(e->d_name + 6))
                        commit(d, r, e->d_name);
                else if (r->ended && !strcmp(e->d_name, "trace"))
                        commit(d, r, e->d_name);
        }
        if (dir)
                closedir(dir);
        else if (copy >= 0)
                close(copy);
}

void ls_incoming(struct ls_daemon *d)
{
        int copy = openat(d->store.incoming_fd, ".", DIRECTORY);
        DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
        struct dirent *e;

        while (dir && (e = readdir(dir))) {
                struct recording r;

                if (*e->d_name == '.' || parse_name(e->d_name, &r))
                        continue;
                r.fd = openat(d->store.incoming_fd, e->d_name, DIRECTORY);
                if (r.fd < 0)
                        continue;
                r.ended = flock(r.fd, LOCK_EX | LOCK_NB) == 0;
                look_into(d, &r);
                close(r.fd);
                if (r.ended)
                        unlinkat(d->store.incoming_fd, e->d_name,
                                 AT_REMOVEDIR); /* stays when something is left */
        }
        if (dir)
                closedir(dir);
        else if (copy >= 0)
                close(copy);
}
