/* A profile as a file of a directory, which appears when it is whole. The name has the id, so that
 * a repeat is the same file. */
#include "push/directory.h"

#include "formats/escape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char *make_name(const struct ls_push *p, const struct ls_export *in)
{
        uint64_t start, elapsed;
        char at[32], *name;
        time_t seconds;
        struct tm tm;

        ls_export_times(in, &start, &elapsed);
        seconds = (time_t)(start / 1000000000);
        gmtime_r(&seconds, &tm);
        strftime(at, sizeof(at), "%Y%m%dT%H%M%SZ", &tm);
        name = ls_print("%.64s-%s-%s-%s.pb.gz", p->service, in->event, at, p->id);
        for (char *c = name; c && *c; c++)
                if (*c == '/')
                        *c = '_';
        if (name && *name == '.')
                *name = '_';
        return name;
}

static int write_all(int fd, const struct ls_buf *b)
{
        for (size_t done = 0; done < b->len;) {
                ssize_t n = write(fd, b->data + done, b->len - done);

                if (n < 0 && errno != EINTR)
                        return -errno;
                done += n > 0 ? (size_t)n : 0;
        }
        return fsync(fd) ? -errno : 0;
}

int ls_push_file(const struct ls_push *p, int dir_fd, const struct ls_export *in,
                 struct ls_answer *ret)
{
        char *name = make_name(p, in), *part = name ? ls_print(".%s.part", name) : NULL;
        int fd = part ? openat(dir_fd, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                               0640)
                      : -1;
        int r = part ? fd < 0 ? -errno : write_all(fd, &p->profile) : -ENOMEM;

        *ret = (struct ls_answer){ .status = 0 };
        if (fd >= 0)
                close(fd);
        if (!r && renameat(dir_fd, part, dir_fd, name))
                r = -errno;
        if (r && fd >= 0)
                unlinkat(dir_fd, part, 0);
        if (r && r != -ENOMEM) {
                ret->again = r == -ENOSPC || r == -EDQUOT || r == -EIO;
                snprintf(ret->why, sizeof(ret->why), "cannot write %s: %s", name, strerror(-r));
        }
        free(part);
        free(name);
        return r == -ENOMEM ? r : 0;
}
