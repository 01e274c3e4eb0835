/* Files of /proc that the kernel has of a process and its threads. Called by all of the
 * recorder. */
#include "record/process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct ls_proc_door *door;

void ls_proc_through(const struct ls_proc_door *d)
{
        door = d;
}

const struct ls_proc_door *ls_proc_door(void)
{
        return door;
}

const char *ls_proc_path(char path[LS_PROC_PATH], pid_t pid, pid_t tid, const char *name)
{
        if (tid)
                snprintf(path, LS_PROC_PATH, "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
        else
                snprintf(path, LS_PROC_PATH, "/proc/%d/%s", (int)pid, name);
        return path;
}

int ls_proc_open(pid_t pid, pid_t tid, const char *name, int flags)
{
        char path[LS_PROC_PATH];
        int fd;

        if (door)
                return tid ? -EPERM : door->open(pid, name);
        fd = open(ls_proc_path(path, pid, tid, name), flags | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

FILE *ls_proc_file(pid_t pid, pid_t tid, const char *name)
{
        int fd = ls_proc_open(pid, tid, name, O_RDONLY);
        FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

        if (fd < 0)
                errno = -fd;
        else if (!f)
                close(fd);
        return f;
}

ssize_t ls_proc_read(pid_t pid, pid_t tid, const char *name, char *buf, size_t size)
{
        int fd = ls_proc_open(pid, tid, name, O_RDONLY);
        ssize_t n = fd < 0 ? fd : read(fd, buf, size - 1);

        if (fd >= 0 && n < 0)
                n = -errno;
        if (fd >= 0)
                close(fd);
        buf[n > 0 ? n : 0] = 0;
        return n;
}

ssize_t ls_proc_link(pid_t pid, const char *name, char *buf, size_t size)
{
        char path[LS_PROC_PATH];
        ssize_t n;

        if (door)
                return door->link(pid, name, buf, size);
        n = readlink(ls_proc_path(path, pid, 0, name), buf, size - 1);
        buf[n > 0 ? n : 0] = 0;
        return n < 0 ? -errno : n;
}

DIR *ls_proc_tasks(pid_t pid)
{
        char path[LS_PROC_PATH];

        return opendir(ls_proc_path(path, pid, 0, "task"));
}

pid_t ls_proc_next(DIR *tasks)
{
        struct dirent *e;
        pid_t tid = 0;

        while (tasks && tid <= 0 && (e = readdir(tasks)))
                tid = (pid_t)strtol(e->d_name, NULL, 10);
        return tid > 0 ? tid : 0;
}

int ls_proc_has_task(pid_t pid, pid_t tid)
{
        char path[LS_PROC_PATH];

        return access(ls_proc_path(path, pid, tid, ""), F_OK) == 0;
}

int ls_proc_shares(pid_t pid, const char *ns)
{
        struct stat its, own;
        char path[LS_PROC_PATH], mine[LS_PROC_PATH];

        snprintf(mine, sizeof(mine), "/proc/self/%s", ns);
        return stat(ls_proc_path(path, pid, 0, ns), &its) == 0 && stat(mine, &own) == 0 &&
               its.st_dev == own.st_dev && its.st_ino == own.st_ino;
}
