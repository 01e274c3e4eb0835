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
#include "record/descriptors.h"

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

/* The program has our stdout, and so has what it starts: none of them may write into the trace, nor keep its reader from
 * seeing the end of it. */
static int take_stdout(void)
{
        int fd = ls_fd_above_stdio(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)), other = STDERR_FILENO;

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

int ls_trace_file_open(const char *path)
{
        char old[PATH_MAX];
        struct stat st;
        int fd, flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY;

        if (is_stdout(path))
                return take_stdout();
        if (stat(path, &st) == 0) {
                if (S_ISDIR(st.st_mode))
                        return open_failed(path, EISDIR);
                if (S_ISREG(st.st_mode)) {
                        int err = old_name(path, old);

                        if (err < 0)
                                return open_failed(path, -err);
                        if (rename(path, old) < 0) {
                                err = errno;
                                ls_error("cannot keep %s as %s: %s; give another file with -o", path, old,
                                         strerror(err));
                                return -err;
                        }
                        flags |= O_EXCL;
                }
        }
        fd = open(path, flags, 0600);
        if (fd < 0)
                return open_failed(path, errno);
        fd = ls_fd_above_stdio(fd);
        if (fd < 0)
                return open_failed(path, -fd);
        return fd;
}

void ls_trace_file_undo(const char *path)
{
        char old[PATH_MAX];
        struct stat st;

        if (is_stdout(path) || lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
                return;
        unlink(path);
        if (old_name(path, old) == 0)
                rename(old, path);
}
