/* Output of a command's text: stdout, a pager, or a file that appears only when it is whole. Used
 * by report/. */
#include "cli/output.h"
#include "cli/command.h"
#include "cli/follow.h"
#include "cli/keeper.h"
#include "cli/pager.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

int ls_parse_color(const char *text, enum ls_color_when *ret)
{
        static const char *const names[] = { "auto", "always", "never" };

        for (int i = 0; i < 3; i++) {
                if (!strcmp(text, names[i])) {
                        *ret = (enum ls_color_when)i;
                        return 0;
                }
        }
        return -EINVAL;
}

/* COLUMNS, else the terminal's own width; no limit for what goes elsewhere. */
static unsigned find_width(void)
{
        const char *columns = getenv("COLUMNS");
        struct winsize ws;

        if (columns && *columns) {
                char *end;
                unsigned long n = strtoul(columns, &end, 10);

                if (!*end && n >= 20 && n <= 10000)
                        return (unsigned)n;
        }
        if (isatty(STDOUT_FILENO)) {
                if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col >= 20)
                        return ws.ws_col;
                return 80;
        }
        return 0;
}

static int want_color(enum ls_color_when when)
{
        const char *no = getenv("NO_COLOR");
        const char *term = getenv("TERM");

        if (when != LS_COLOR_AUTO)
                return when == LS_COLOR_ALWAYS;
        return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb");
}

/* A new file beside the old one, so that renaming it is one step and never crosses a file
 * system. */
static int open_beside(struct ls_output *o, const char *real)
{
        mode_t mask = umask(0);
        int fd;

        umask(mask);
        o->tmp = malloc(strlen(real) * 2 + 16);
        if (!o->tmp)
                return -ENOMEM;
        sprintf(o->tmp, "%s.XXXXXX", real);
        fd = mkstemp(o->tmp);
        if (fd < 0) {
                int error = -errno;

                free(o->tmp);
                o->tmp = NULL;
                return error;
        }
        fchmod(fd, 0666 & ~mask);
        o->file = fdopen(fd, "w");
        if (!o->file) {
                close(fd);
                return -ENOMEM;
        }
        return 0;
}

static int open_kept(struct ls_output *o)
{
        int fd = ls_keeper_open(o->path);

        if (fd < 0)
                return fd;
        o->kept = 1;
        o->file = fdopen(fd, "w");
        return o->file ? 0 : -ENOMEM;
}

static int open_special(struct ls_output *o, const char *real, const struct stat *st)
{
        int fd = ls_follow_open(real, st);

        if (fd < 0)
                return fd;
        o->file = fdopen(fd, "w");
        return o->file ? 0 : -ENOMEM;
}

static int open_file(struct ls_output *o)
{
        char real[PATH_MAX];
        struct stat st;
        int r;

        if (ls_keeper_there())
                return open_kept(o);
        r = ls_follow(o->path, real, &st);      /* what a link leads to is what is replaced */
        if (r == -ENOENT && strlen(o->path) < sizeof(real))
                return open_beside(o, strcpy(real, o->path));
        if (r < 0)
                return r;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        if (!S_ISREG(st.st_mode))               /* a device or pipe cannot be replaced */
                return open_special(o, real, &st);
        return access(real, W_OK) < 0 ? -errno : open_beside(o, real);
}

int ls_output_open(struct ls_output *o, const char *path, enum ls_color_when color, int use_pager)
{
        memset(o, 0, sizeof(*o));
        if (path && strcmp(path, "-")) {
                o->path = path;
                o->color = color == LS_COLOR_ALWAYS;
                return open_file(o);
        }
        o->file = stdout;
        o->color = want_color(color);
        o->width = find_width();
        if (use_pager && ls_keeper_there())
                ls_keeper_pager();
        else if (use_pager)
                ls_pager_start();
        return 0;
}

int ls_output_close(struct ls_output *o, int failed)
{
        int error = 0;

        if (!o->path)
                return 0;
        if (o->file) {
                if (fflush(o->file) == EOF || ferror(o->file))
                        error = errno ? -errno : -EIO;
                if (fclose(o->file) == EOF && !error)
                        error = -errno;
        }
        if (o->kept) {
                int end = ls_keeper_close(error || failed);

                error = error ? error : end;
        }
        if (o->tmp) {
                char real[PATH_MAX];
                size_t n = strlen(o->tmp) - strlen(".XXXXXX");

                if (n >= sizeof(real))
                        error = -ENAMETOOLONG;
                else if (!error && !failed) {
                        memcpy(real, o->tmp, n);
                        real[n] = '\0';
                        if (rename(o->tmp, real) < 0)
                                error = -errno;
                }
                if (error || failed)
                        unlink(o->tmp);
        }
        free(o->tmp);
        o->tmp = NULL;
        o->file = NULL;
        return error;
}

/* stdio keeps that a write failed, not why. One more fails for the same reason, if that is still
 * there. */
static int why_stdout_failed(void)
{
        return write(STDOUT_FILENO, "\n", 1) < 0 ? errno : EIO;
}

int ls_finish_stdout(int status)
{
        int error = 0;

        errno = 0;
        if (fflush(stdout) == EOF || ferror(stdout))
                error = errno ? errno : why_stdout_failed();
        if (ls_pager_finish())
                return status;          /* the user may quit the pager at any time */
        if (!error && close(STDOUT_FILENO) < 0 && errno != EBADF)
                error = errno;          /* NFS and quotas tell only now */
        if (!error)
                return status;
        if (error == EPIPE) {           /* the reader has had enough: no complaint, as with any
                                         * filter */
                signal(SIGPIPE, SIG_DFL);
                raise(SIGPIPE);
                return 128 + SIGPIPE;
        }
        ls_error("stdout: %s; the output is not complete", strerror(error));
        return status ? status : LS_EXIT_FAIL;
}
