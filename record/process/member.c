/* What /proc says of a process: see member.h. */
#include "record/process/member.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int ls_member_has(pid_t pid, int fd)
{
        char path[64], line[PATH_MAX + 128];
        unsigned major_, minor_;
        struct stat st;
        uint64_t inode;
        int found = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
        if (fstat(fd, &st) < 0 || !(f = fopen(path, "re")))
                return 0;
        while (!found && fgets(line, sizeof(line), f))
                found = sscanf(line, "%*s %*s %*s %x:%x %" SCNu64, &major_, &minor_, &inode) == 3 &&
                        inode == (uint64_t)st.st_ino && makedev(major_, minor_) == st.st_dev;
        fclose(f);
        return found;
}

int ls_member_is_child(pid_t pid, pid_t parent, uid_t uid)
{
        char path[64], line[256];
        unsigned its = (unsigned)-1;
        int from = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
                if (sscanf(line, "PPid: %d", &from) != 1)
                        sscanf(line, "Uid: %u", &its);
        if (f)
                fclose(f);
        return its != (unsigned)-1 && (its == uid || uid == 0 || from == parent);
}

static size_t read_file(pid_t pid, const char *name, char *buf, size_t size)
{
        char path[64];
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? 0 : read(fd, buf, size - 1);
        if (fd >= 0)
                close(fd);
        buf[n > 0 ? n : 0] = 0;
        return n > 0 ? (size_t)n : 0;
}

void ls_member_name(pid_t pid, int first_only, char *buf, size_t size)
{
        size_t n = read_file(pid, "cmdline", buf, size);

        for (size_t i = 0; !first_only && i < n; i++)
                if (!buf[i])
                        buf[i] = ' ';
        n = strlen(buf);
        while (n > 0 && (buf[n - 1] == ' ' || buf[n - 1] == '\n'))
                buf[--n] = 0;
}

void ls_member_cwd(pid_t pid, const char *fallback, char *buf)
{
        char path[64];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
        n = readlink(path, buf, PATH_MAX - 1);
        if (n > 0 && *buf == '/')
                buf[n] = 0;
        else
                snprintf(buf, PATH_MAX, "%s", fallback);
}
