/* What is known of a program: see program.h. */
#include "daemon/host/program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "formats/wire/clock.h"
#include "record/process/proc.h"

#define KERNEL_THREAD 0x00200000u       /* PF_KTHREAD of the flags in stat */

int ls_proc_identify(pid_t pid, struct ls_proc_id *ret)
{
        char text[1024], *open_at, *close_at;
        unsigned flags;
        unsigned long long start;
        ssize_t n = ls_proc_read(pid, 0, "stat", text, sizeof(text));
        size_t len;

        if (n < 0)
                return (int)n;
        open_at = strchr(text, '(');
        close_at = strrchr(text, ')');  /* the name may hold any of these */
        if (!open_at || !close_at || close_at < open_at ||
            sscanf(close_at + 1,
                   " %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
                   "%llu",
                   &ret->state, &flags, &start) != 3)
                return -EIO;
        len = (size_t)(close_at - open_at - 1);
        if (len >= sizeof(ret->comm))
                len = sizeof(ret->comm) - 1;
        memcpy(ret->comm, open_at + 1, len);
        ret->comm[len] = 0;
        ret->start_ticks = start;
        ret->kernel = (flags & KERNEL_THREAD) != 0;
        return 0;
}

int ls_proc_usage(pid_t pid, uint64_t *ret_cpu_ns, uint64_t *ret_rss)
{
        const uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK), page = (uint64_t)sysconf(_SC_PAGESIZE);
        unsigned long long user, system;
        char text[1024], *close_at;
        long long pages;
        ssize_t n = ls_proc_read(pid, 0, "stat", text, sizeof(text));

        if (n < 0)
                return (int)n;
        close_at = strrchr(text, ')');
        if (!close_at || sscanf(close_at + 1,
                                " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d "
                                "%*d %*d %*d %*d %*u %*u %lld",
                                &user, &system, &pages) != 3)
                return -EIO;
        *ret_cpu_ns = (user + system) * (1000000000u / hz);
        *ret_rss = pages > 0 ? (uint64_t)pages * page : 0;
        return 0;
}

/* In these a program waits for what is to come, or sleeps because it wants to. */
static int is_wait(long call)
{
        static const long waits[] = {
                SYS_epoll_wait,      SYS_epoll_pwait,     SYS_poll,      SYS_ppoll,
                SYS_select,          SYS_pselect6,        SYS_accept,    SYS_accept4,
                SYS_io_getevents,    SYS_io_uring_enter,  SYS_nanosleep, SYS_clock_nanosleep,
                SYS_restart_syscall, SYS_futex,           SYS_pause,     SYS_rt_sigsuspend,
                SYS_rt_sigtimedwait, SYS_mq_timedreceive, SYS_msgrcv,
#ifdef SYS_epoll_pwait2
                SYS_epoll_pwait2,
#endif
        };

        for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
                if (waits[i] == call)
                        return 1;
        return 0;
}

int ls_proc_stalls(pid_t pid, uint64_t *ret_switches)
{
        char text[4096], *at;
        ssize_t n = ls_proc_read(pid, 0, "status", text, sizeof(text));
        char state;

        if (n < 0)
                return (int)n;
        at = strstr(text, "\nState:");          /* the name, before it, has its newlines escaped */
        if (!at || sscanf(at, "\nState: %c", &state) != 1)
                return -EIO;
        at = strstr(at, "\nvoluntary_ctxt_switches:");
        if (!at || sscanf(at, "\nvoluntary_ctxt_switches: %" SCNu64, ret_switches) != 1)
                return -EIO;
        if (state != 'S')
                return state == 'R' || state == 'D';
        n = ls_proc_read(pid, 0, "syscall", text, sizeof(text));
        return n > 0 && *text >= '0' && *text <= '9' && !is_wait(strtol(text, NULL, 10));
}

/* Without what the kernel adds when the file was replaced. */
static void read_exe(pid_t pid, char *to, size_t size)
{
        static const char deleted[] = " (deleted)";
        const size_t less = sizeof(deleted) - 1;
        ssize_t n = ls_proc_link(pid, "exe", to, size);

        if (n > (ssize_t)less && !strcmp(to + (size_t)n - less, deleted))
                to[(size_t)n - less] = 0;
}

/* The path in the line of the unified hierarchy, else that of systemd's own, else the first. */
static void read_cgroup(pid_t pid, char *to, size_t size)
{
        char text[8192], *save = NULL;
        int best = -1;

        *to = 0;
        if (ls_proc_read(pid, 0, "cgroup", text, sizeof(text)) < 0)
                return;
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                char *kind = strchr(line, ':'), *path = kind ? strchr(kind + 1, ':') : NULL;
                int rank;

                if (!path)
                        continue;
                rank = !strncmp(line, "0::", 3) && path[1] && path[2] ? 3
                       : !strncmp(kind, ":name=systemd:", 14)         ? 2
                                                                      : 1;
                if (rank <= best)
                        continue;
                best = rank;
                snprintf(to, size, "%s", path + 1);
        }
}

/* The innermost part of the control group that systemd names so. */
static void find_unit(const char *cgroup, char *to, size_t size)
{
        static const char *const kinds[] = { ".service", ".scope" };

        *to = 0;
        for (const char *p = cgroup; *p; p += strcspn(p, "/")) {
                size_t n, k;

                p += strspn(p, "/");
                n = strcspn(p, "/");
                for (int i = 0; i < 2; i++) {
                        k = strlen(kinds[i]);
                        if (n > k && n < size && !strncmp(p + n - k, kinds[i], k)) {
                                memcpy(to, p, n);
                                to[n] = 0;
                        }
                }
        }
}

/* The last run of 64 hexadecimal digits, as docker, containerd, cri-o and podman have it. */
static void find_container(const char *cgroup, char to[65])
{
        *to = 0;
        for (const char *p = cgroup; *p; p++) {
                size_t n = strspn(p, "0123456789abcdef");

                if (n == 64) {
                        memcpy(to, p, 64);
                        to[64] = 0;
                }
                if (n)
                        p += n - 1;
        }
}

int ls_program_read(pid_t pid, struct ls_proc *p)
{
        char path[LS_PROC_PATH];
        struct stat st;
        ssize_t n;

        memset(p, 0, sizeof(*p));
        p->pid = pid;
        if (stat(ls_proc_path(path, pid, 0, ""), &st) < 0)
                return -errno;
        p->uid = st.st_uid;
        read_exe(pid, p->exe, sizeof(p->exe));
        n = ls_proc_read(pid, 0, "cmdline", p->cmd, sizeof(p->cmd));
        while (n > 0 && !p->cmd[n - 1])
                n--;
        for (ssize_t i = 0; i < n; i++)
                if (!p->cmd[i])
                        p->cmd[i] = ' ';
        read_cgroup(pid, p->cgroup, sizeof(p->cgroup));
        find_unit(p->cgroup, p->unit, sizeof(p->unit));
        find_container(p->cgroup, p->container);
        return 0;
}

int ls_proc_env(pid_t pid, const char *name, char *ret, size_t size)
{
        char *entry = NULL;
        size_t room = 0, len = strlen(name);
        int found = 0;
        FILE *f = ls_proc_file(pid, 0, "environ");

        if (!f)
                return -errno;
        errno = 0;
        while (!found && getdelim(&entry, &room, 0, f) > 0)
                if (!strncmp(entry, name, len) && entry[len] == '=') {
                        snprintf(ret, size, "%s", entry + len + 1);
                        found = 1;
                }
        if (!found && ferror(f))
                found = errno ? -errno : -EIO;
        free(entry);
        fclose(f);
        return found;
}

uint64_t ls_proc_age_ns(uint64_t start_ticks)
{
        const uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
        uint64_t now = ls_clock_ns(CLOCK_BOOTTIME), start = start_ticks * (1000000000u / hz);

        return now > start ? now - start : 0;
}
