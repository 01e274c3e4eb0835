/* Opens the trace that a command reads. Used by report, dump and info. */
#include "report/options/trace.h"

#include "report/options/range.h"
#include "cli/command.h"
#include "formats/trace/reader.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

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

int ls_open_trace(const char *command, const char *path, struct ls_profile **ret)
{
        const char *why = NULL;
        int fd = ls_range_fd(path), r = 0;

        if (fd < 0 && ls_store_apart.drop && !ls_store_apart.store_only) {
                /* open first, as this user */
                fd = open(path, O_RDONLY | O_CLOEXEC);
                r = fd < 0 ? -errno : ls_store_drop();
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
