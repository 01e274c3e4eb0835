/* What /proc says of a process: see member.h. */
#include "record/process/member.h"
#include "record/process/proc.h"

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
        char line[PATH_MAX + 128];
        unsigned major_, minor_;
        struct stat st;
        uint64_t inode;
        int found = 0;
        FILE *f;

        if (fstat(fd, &st) < 0 || !(f = ls_proc_file(pid, 0, "maps")))
                return 0;
        while (!found && fgets(line, sizeof(line), f))
                found = sscanf(line, "%*s %*s %*s %x:%x %" SCNu64, &major_, &minor_, &inode) == 3 &&
                        inode == (uint64_t)st.st_ino && makedev(major_, minor_) == st.st_dev;
        fclose(f);
        return found;
}

int ls_member_is_child(pid_t pid, pid_t parent, uid_t uid)
{
        FILE *f = ls_proc_file(pid, 0, "status");
        unsigned its = (unsigned)-1;
        char line[256];
        int from = 0;

        while (f && fgets(line, sizeof(line), f))
                if (sscanf(line, "PPid: %d", &from) != 1)
                        sscanf(line, "Uid: %u", &its);
        if (f)
                fclose(f);
        return its != (unsigned)-1 && (its == uid || uid == 0 || from == parent);
}

void ls_member_name(pid_t pid, int first_only, char *buf, size_t size)
{
        ssize_t got = ls_proc_read(pid, 0, "cmdline", buf, size);
        size_t n;

        for (ssize_t i = 0; !first_only && i < got; i++)
                if (!buf[i])
                        buf[i] = ' ';
        n = strlen(buf);
        while (n > 0 && (buf[n - 1] == ' ' || buf[n - 1] == '\n'))
                buf[--n] = 0;
}

void ls_member_cwd(pid_t pid, const char *fallback, char *buf)
{
        if (ls_proc_link(pid, "cwd", buf, PATH_MAX) <= 0 || *buf != '/')
                snprintf(buf, PATH_MAX, "%s", fallback);
}
