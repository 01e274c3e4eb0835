/* See follow.h. */
#include "cli/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LINKS_MOST 40                   /* as the kernel has it */

/* Its directory's name with a slash at the end; "" = the working directory. */
static size_t directory_length(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? (size_t)(slash - path) + 1 : 0;
}

/* 1 when somebody else may have laid the link there for us. */
static int is_planted(const char *path, const struct stat *link)
{
        char dir[PATH_MAX];
        struct stat st;

        if (link->st_uid == geteuid())
                return 0;
        snprintf(dir, sizeof(dir), "%.*s.", (int)directory_length(path), path);
        if (stat(dir, &st) < 0)
                return 1;
        return (st.st_mode & S_ISVTX) && (st.st_mode & S_IWOTH) && link->st_uid != st.st_uid;
}

/* The text of a link does not change: it is read of the one that was looked at. Returns 1. */
static int next_name(int fd, char path[PATH_MAX])
{
        char text[PATH_MAX];
        ssize_t n = readlinkat(fd, "", text, sizeof(text));
        size_t at;

        if (n < 0)
                return -errno;
        at = text[0] == '/' ? 0 : directory_length(path);
        if (n == 0 || at + (size_t)n >= PATH_MAX)
                return n ? -ENAMETOOLONG : -ENOENT;
        memcpy(path + at, text, (size_t)n);
        path[at + (size_t)n] = '\0';
        return 1;
}

/* /dev/stdout leads to such: open files of a process, whose text may be no name. */
static int is_magic(int fd)
{
        struct statfs fs;

        return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* What the open file is; a regular one is looked at by its name, too. */
static int step_magic(int link, char path[PATH_MAX], struct stat *st)
{
        struct stat open_file, named;
        int r;

        if (stat(path, &open_file) < 0)
                return -errno;
        *st = open_file;
        if (!S_ISREG(open_file.st_mode))
                return 0;
        r = next_name(link, path);
        if (r < 0)
                return r;
        if (lstat(path, &named) < 0 || named.st_dev != open_file.st_dev ||
            named.st_ino != open_file.st_ino)
                return -ESTALE;
        return 1;
}

/* One step. Returns 1 when it was a link, 0 at the end. */
static int step(char path[PATH_MAX], struct stat *st)
{
        int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), r = 0;

        if (fd < 0)
                return -errno;
        if (fstat(fd, st) < 0)
                r = -errno;
        else if (S_ISLNK(st->st_mode) && is_planted(path, st))
                r = -EACCES;
        else if (S_ISLNK(st->st_mode) && is_magic(fd))
                r = step_magic(fd, path, st);
        else if (S_ISLNK(st->st_mode))
                r = next_name(fd, path);
        close(fd);
        return r;
}

int ls_follow(const char *path, char ret_real[PATH_MAX], struct stat *ret_st)
{
        int r = 1;

        if (strlen(path) >= PATH_MAX)
                return -ENAMETOOLONG;
        strcpy(ret_real, path);
        for (int i = 0; r > 0 && i <= LINKS_MOST; i++)
                r = step(ret_real, ret_st);
        return r > 0 ? -ELOOP : r;
}

int ls_follow_open(const char *real, const struct stat *st)
{
        char path[32];
        struct stat now;
        int found = open(real, O_PATH | O_CLOEXEC), fd;

        if (found < 0)
                return -errno;
        if (fstat(found, &now) < 0 || now.st_dev != st->st_dev || now.st_ino != st->st_ino) {
                close(found);
                return -EEXIST;
        }
        snprintf(path, sizeof(path), "/proc/self/fd/%d", found);        /* that, and nothing else */
        fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                fd = -errno;
        close(found);
        return fd;
}
