/* Opens the trace that a command reads. Used by report, dump and info. */
#include "report/options/trace.h"

#include "report/options/range.h"
#include "cli/command.h"
#include "formats/trace/reader.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Said on stderr too, since a script that reads the rest may not look for it there. */
static void warn_of_damage(const char *command, const char *path, const struct ls_profile *p)
{
        const struct ls_damage *d = p->damages;

        if (p->n_damages == 1)
                ls_warning("%s: %s: chunk %llu at byte %llu is damaged (%s); the rest is shown",
                           command, path, (unsigned long long)d->chunk,
                           (unsigned long long)d->offset, d->why);
        else if (p->n_damages > 1)
                ls_warning("%s: %s: %u chunks are damaged, the first is chunk %llu at byte %llu "
                           "(%s); the rest is shown",
                           command, path, p->n_damages, (unsigned long long)d->chunk,
                           (unsigned long long)d->offset, d->why);
}

struct first { char *path; int fd; };    /* -errno = it cannot be opened */
static struct { struct first *v; size_t n; } first;

static int open_now(const char *path)
{
        int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);

        return fd < 0 ? -errno : fd;
}

int ls_open_traces_first(const char *const *paths, size_t n)
{
        struct first *v;

        if (!ls_store_apart.drop || !n)
                return 0;
        v = reallocarray(first.v, first.n + n, sizeof(*v));
        if (!v)
                return -ENOMEM;
        first.v = v;
        for (size_t i = 0; i < n; i++) {
                if (ls_range_fd(paths[i]) >= 0)
                        continue;
                v[first.n] = (struct first){ strdup(paths[i]), open_now(paths[i]) };
                first.n += v[first.n].path != NULL;
        }
        return 0;
}

/* Opened as this user, before anything is read. */
static int open_apart(const char *path)
{
        int fd = -ENOENT, r;

        if (ls_store_apart.drop && !first.n && ls_open_traces_first(&path, 1))
                return -ENOMEM;
        for (size_t i = 0; i < first.n && fd < 0; i++)
                if (!strcmp(first.v[i].path, path))
                        fd = first.v[i].fd;
        r = ls_store_drop();
        return r ? r : fd;
}

int ls_open_trace(const char *command, const char *path, struct ls_profile **ret)
{
        const char *why = NULL;
        int fd = ls_range_fd(path), r = 0;

        if (fd < 0 && (ls_store_apart.drop || first.n)) {
                fd = open_apart(path);
                r = fd < 0 ? fd : 0;
        }
        if (!r)
                r = fd < 0 ? ls_profile_open(path, ret, &why) : ls_profile_open_fd(fd, ret, &why);

        if (!r) {
                warn_of_damage(command, path, *ret);
                return 0;
        }
        if (r == -ENOENT && !strcmp(path, LS_DEFAULT_TRACE))
                ls_error("%s: no %s in this directory: run 'luasample record -- luajit app.lua' "
                         "first, or name a trace with "
                         "-i FILE",
                         command, path);
        else if (r == -ENOENT)
                ls_error("%s: %s: no such file", command, path);
        else
                ls_error("%s: %s: %s", command, strcmp(path, "-") ? path : "stdin",
                         why ? why : strerror(-r));
        return LS_EXIT_FAIL;
}
