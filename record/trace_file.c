/* The trace file: see trace_file.h. */
#include "record/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/follow.h"
#include "record/process/descriptors.h"

static int old_name(const char *path, char old[PATH_MAX])
{
        int n = snprintf(old, PATH_MAX, "%s.old", path);

        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int open_failed(const char *path, int err)
{
        ls_error("cannot write %s: %s; give another file with -o", path, strerror(err));
        return -err;
}

static int is_stdout(const char *path)
{
        return !strcmp(path, LS_TRACE_STDOUT);
}

const char *ls_trace_file_name(const char *path)
{
        return is_stdout(path) ? "stdout" : path;
}

/* The program has our stdout, and so has what it starts: none of them may write into the trace, nor
 * keep its reader from seeing the end of it. */
static int take_stdout(void)
{
        int fd = ls_fd_above_stdio(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)),
            other = STDERR_FILENO;

        if (fd < 0)
                return open_failed("stdout", errno);
        if (fcntl(STDERR_FILENO, F_GETFD) < 0)
                other = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (other < 0 || dup2(other, STDOUT_FILENO) < 0) {
                int err = errno;

                close(fd);
                return open_failed("stdout", err);
        }
        if (other != STDERR_FILENO)
                close(other);
        return fd;
}

static int keep_old(const char *path)
{
        char old[PATH_MAX];
        int err = old_name(path, old);

        if (err < 0)
                return open_failed(path, -err);
        if (rename(path, old) == 0)
                return 0;
        err = errno;
        ls_error("cannot keep %s as %s: %s; give another file with -o", path, old, strerror(err));
        return -err;
}

/* A device or a pipe, which is there: nothing is made, and what has become a file meanwhile is not
 * written. */
static int open_special(const char *path, const char *real, const struct stat *st)
{
        int fd = ls_follow_open(real, st);

        return fd < 0 ? open_failed(path, -fd) : fd;
}

/* /dev/stdout, with stdout a file: it is not ours to be kept as FILE.old. */
static int is_systems(const char *path)
{
        return !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6);
}

/* A link that leads nowhere, or to a file, is kept as a file would be: never written through. */
static int open_new(const char *path, struct ls_trace_file *ret)
{
        struct stat st;
        int fd;

        if (lstat(path, &st) == 0) {
                int err = S_ISLNK(st.st_mode) && is_systems(path) ? -EEXIST : 0;

                err = err ? open_failed(path, -err) : keep_old(path);
                if (err < 0)
                        return err;
                ret->kept = 1;
        }
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0600);
        if (fd < 0)
                return open_failed(path, errno);
        if (fstat(fd, &st) == 0) {
                ret->made = 1;
                ret->dev = st.st_dev;
                ret->ino = st.st_ino;
        }
        return fd;
}

int ls_trace_file_open(const char *path, struct ls_trace_file *ret)
{
        char real[PATH_MAX];
        struct stat st;
        int fd;

        *ret = (struct ls_trace_file){ 0 };
        if (is_stdout(path))
                return take_stdout();
        if (ls_follow(path, real, &st) < 0 || S_ISREG(st.st_mode))
                fd = open_new(path, ret);
        else if (S_ISDIR(st.st_mode))
                return open_failed(path, EISDIR);
        else
                fd = open_special(path, real, &st);
        if (fd < 0)
                return fd;
        fd = ls_fd_above_stdio(fd);
        if (fd < 0)
                return open_failed(path, -fd);
        return fd;
}

void ls_trace_file_undo(const char *path, const struct ls_trace_file *file)
{
        char old[PATH_MAX];
        struct stat st;

        if (!file->made || lstat(path, &st) < 0 || st.st_dev != file->dev || st.st_ino != file->ino)
                return;
        unlink(path);
        if (file->kept && old_name(path, old) == 0)
                rename(old, path);
}
