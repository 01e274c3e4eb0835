/* Fewer rights for good: see confine.h. */
#include "record/worker/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEMORY_MOST                                                                                \
        (UINT64_C(8) << 30) /* address space: debug information of large programs is mapped whole */
#define FILES_MOST  4096u
#define ROOM_IN_FILES (64u << 20)
#define NOBODY      65534u
#define END_FIRST   500                 /* oom_score_adj, of 1000 */

/* Whether an id is somebody in this namespace of users: lines of first, outside, count. */
static int is_mapped(const char *path, unsigned id)
{
        unsigned first, outside, n;
        FILE *f = fopen(path, "re");
        int is = !f;                    /* a kernel without such namespaces */

        while (f && !is && fscanf(f, "%u %u %u", &first, &outside, &n) == 3)
                is = id >= first && id - first < n;
        if (f)
                fclose(f);
        return is;
}

int ls_rights_change(void)
{
        const uint32_t needs = 1u << CAP_SETUID | 1u << CAP_SETGID;
        struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
        struct __user_cap_data_struct now[2] = { { 0 } };

        return geteuid() == 0 && syscall(SYS_capget, &head, now) == 0 &&
               (now[0].effective & needs) == needs && is_mapped("/proc/self/uid_map", NOBODY) &&
               is_mapped("/proc/self/gid_map", NOBODY);
}

int ls_rights_of(pid_t pid, struct ls_rights *ret)
{
        char path[64], line[256];
        unsigned u[4] = { 0 }, g[4] = { 0 };
        struct stat st;
        int seen = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        f = fopen(path, "re");
        if (!f)
                return errno == ENOENT ? -ESRCH : -errno;
        while (fgets(line, sizeof(line), f))
                seen += sscanf(line, "Uid: %u %u %u %u", &u[0], &u[1], &u[2], &u[3]) == 4 ||
                        sscanf(line, "Gid: %u %u %u %u", &g[0], &g[1], &g[2], &g[3]) == 4;
        fclose(f);
        if (seen < 2)
                return -ESRCH;
        *ret = (struct ls_rights){ .uid = u[1], .gid = g[1] };
        ret->is_own = !ls_rights_change();
        ret->all_same = u[0] == u[1] && u[1] == u[2] && u[2] == u[3] && g[0] == g[1] &&
                        g[1] == g[2] && g[2] == g[3];
        snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
        if (stat(path, &st) == 0) {
                ret->root_dev = st.st_dev;
                ret->root_ino = st.st_ino;
        }
        snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
        ret->mounts = stat(path, &st) == 0 ? st.st_ino : 0;
        return 0;
}

void ls_rights_own(struct ls_rights *ret)
{
        *ret = (struct ls_rights){ .uid = getuid(), .gid = getgid() };
        ret->is_own = !ls_rights_change();
}

void ls_rights_nobody(struct ls_rights *ret)
{
        ls_rights_own(ret);
        if (!ret->is_own)
                ret->uid = ret->gid = NOBODY;
}

int ls_rights_open_root(pid_t pid, const struct ls_rights *r)
{
        struct stat own, mounts, its;
        char path[64];
        int fd;

        if (r->is_own)
                return -1;
        if (!r->root_ino || !r->mounts || stat("/", &own) || stat("/proc/self/ns/mnt", &mounts))
                return -ENOENT;
        if (own.st_dev == r->root_dev && own.st_ino == r->root_ino && mounts.st_ino == r->mounts)
                return -1;
        snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
        fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &its) == 0 && its.st_dev == r->root_dev &&
            its.st_ino == r->root_ino)
                return fd;
        if (fd >= 0)
                close(fd);
        return -ENOENT;
}

int ls_rights_same(const struct ls_rights *a, const struct ls_rights *b)
{
        return a->uid == b->uid && a->gid == b->gid && a->root_dev == b->root_dev &&
               a->root_ino == b->root_ino && a->mounts == b->mounts;
}

/* All but these, of which there may be some. */
static int drop_capabilities(uint32_t keep)
{
        struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
        struct __user_cap_data_struct now[2];

        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if (syscall(SYS_capget, &head, now))
                return -errno;
        keep &= now[0].permitted;
        now[0] = (struct __user_cap_data_struct){ .effective = keep, .permitted = keep };
        now[1] = (struct __user_cap_data_struct){ 0 };
        return syscall(SYS_capset, &head, now) ? -errno : 0;
}

/* stay: the working directory stays, from which a view finds sources by relative names. */
static int become(const struct ls_rights *r, int root_fd, uint32_t keep, int stay)
{
        if (keep)
                prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
        if (ls_rights_change()) {
                if (root_fd >= 0 && (fchdir(root_fd) || chroot(".")))
                        return -errno;
                /* A root of few capabilities stays what it is when the target is root as well. */
                if ((!stay && chdir("/")) || (setgroups(0, NULL) && r->uid) ||
                    setresgid(r->gid, r->gid, r->gid) || setresuid(r->uid, r->uid, r->uid))
                        return -errno;
        } else if (geteuid() == 0 && r->uid) {
                return -EPERM;
        }
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
                return -errno;
        return drop_capabilities(keep);
}

/* A lower one that was set before stays. */
static void limit(int what, rlim_t most)
{
        struct rlimit r;

        if (getrlimit(what, &r))
                return;
        if (r.rlim_max > most)
                r.rlim_max = most;
        r.rlim_cur = what == RLIMIT_NOFILE || r.rlim_cur > r.rlim_max ? r.rlim_max : r.rlim_cur;
        setrlimit(what, &r);
}

/* Where memory is short, this process ends before the one that it looks at. A higher value
 * stays. */
static void end_first(void)
{
        char text[16] = "";
        int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);

        if (fd < 0)
                return;
        if (read(fd, text, sizeof(text) - 1) > 0 && atoi(text) < END_FIRST &&
            pwrite(fd, text, (size_t)sprintf(text, "%d", END_FIRST), 0) < 0)
                errno = 0;              /* it is as likely as others, then */
        close(fd);
}

static const int common_calls[] = {
        SCMP_SYS(read),
        SCMP_SYS(pread64),
        SCMP_SYS(readv),
        SCMP_SYS(preadv),
        SCMP_SYS(write),
        SCMP_SYS(sendto),
        SCMP_SYS(sendmsg),
        SCMP_SYS(recvfrom),
        SCMP_SYS(recvmsg),
        SCMP_SYS(poll),
        SCMP_SYS(ppoll),
        SCMP_SYS(close),
        SCMP_SYS(fstat),
        SCMP_SYS(lseek),
        SCMP_SYS(munmap),
        SCMP_SYS(mremap),
        SCMP_SYS(madvise),
        SCMP_SYS(brk),
        SCMP_SYS(futex),
        SCMP_SYS(clock_gettime),
        SCMP_SYS(clock_nanosleep),
        SCMP_SYS(nanosleep),
        SCMP_SYS(exit),
        SCMP_SYS(exit_group),
        SCMP_SYS(rt_sigprocmask),
        SCMP_SYS(rt_sigaction),
        SCMP_SYS(rt_sigreturn),
        SCMP_SYS(sigaltstack),
        SCMP_SYS(getrandom),
        SCMP_SYS(getpid),
        SCMP_SYS(getppid),
        SCMP_SYS(gettid),
        SCMP_SYS(getuid),
        SCMP_SYS(geteuid),
        SCMP_SYS(getgid),
        SCMP_SYS(getegid),
        SCMP_SYS(sched_yield),
        SCMP_SYS(restart_syscall),
        SCMP_SYS(membarrier),
        SCMP_SYS(rseq),
        SCMP_SYS(uname),
        SCMP_SYS(dup),
        SCMP_SYS(memfd_create),
};
static const int files_calls[] = {
        SCMP_SYS(newfstatat), SCMP_SYS(stat),       SCMP_SYS(lstat),  SCMP_SYS(statx),
        SCMP_SYS(readlink),   SCMP_SYS(readlinkat), SCMP_SYS(access), SCMP_SYS(faccessat),
        SCMP_SYS(faccessat2), SCMP_SYS(getdents64), SCMP_SYS(getcwd), SCMP_SYS(fstatfs),
        SCMP_SYS(getxattr),   SCMP_SYS(fgetxattr),
};
/* What the dynamic loader and LuaJIT's and its program's start need. */
static const int probe_calls[] = {
        SCMP_SYS(execve),          SCMP_SYS(mmap),
        SCMP_SYS(mprotect),        SCMP_SYS(arch_prctl),
        SCMP_SYS(set_tid_address), SCMP_SYS(set_robust_list),
        SCMP_SYS(timer_create),    SCMP_SYS(timer_delete),
        SCMP_SYS(ioctl),           SCMP_SYS(sched_getaffinity),
        SCMP_SYS(getrlimit),       SCMP_SYS(sysinfo),
        SCMP_SYS(statfs),          SCMP_SYS(prctl),
        SCMP_SYS(fadvise64),       SCMP_SYS(mincore),
        SCMP_SYS(getresuid),       SCMP_SYS(getresgid),
};

static int allow(scmp_filter_ctx ctx, const int *calls, size_t n)
{
        int err = 0;

        for (size_t i = 0; i < n && !err; i++)
                err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, calls[i], 0);
        return err;
}

#define ALLOW(ctx, calls) allow(ctx, calls, sizeof(calls) / sizeof(*(calls)))

/* Opening to read, and nothing that makes or empties a file. */
static int allow_reading(scmp_filter_ctx ctx)
{
        const uint64_t mask = O_ACCMODE | O_CREAT | O_TRUNC;
        int err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
                                   SCMP_A2(SCMP_CMP_MASKED_EQ, mask, O_RDONLY));

        if (!err)
                err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(open), 1,
                                       SCMP_A1(SCMP_CMP_MASKED_EQ, mask, O_RDONLY));
        return err;
}

/* Memory that is never code. */
static int allow_data(scmp_filter_ctx ctx)
{
        int err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                                   SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));

        if (!err)
                err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                                       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
        return err;
}

/* What acts on other processes too only on this one; of descriptors nothing that sends signals. */
static int allow_own(scmp_filter_ctx ctx)
{
        static const int commands[] = { F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL };
        int err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1,
                                   SCMP_A0(SCMP_CMP_EQ, 0));

        for (size_t i = 0; i < sizeof(commands) / sizeof(*commands) && !err; i++)
                err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                                       SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)commands[i]));
        if (!err)                       /* abort */
                err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                                       SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
        return err;
}

/* fstat, which is a call by a path that may be empty: of other paths it tells what nobody may
 * know. */
static int allow_open_files(scmp_filter_ctx ctx)
{
        static const int calls[] = {
                SCMP_SYS(dup2), SCMP_SYS(fsync), SCMP_SYS(pwrite64), SCMP_SYS(sysinfo),
                SCMP_SYS(ftruncate),    /* what a full disk took of a chunk is cut off */
        };
        int err = ALLOW(ctx, calls);

        return err ? err : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1,
                                            SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH));
}

/* fork, and no namespaces or threads. */
static int allow_copies(scmp_filter_ctx ctx)
{
        const uint64_t mask = ~(uint64_t)(CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID);
        int err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                   SCMP_A0(SCMP_CMP_MASKED_EQ, mask, SIGCHLD));

        return err ? err : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(set_robust_list), 0);
}

/* Sockets that are there: none is made, and none connects. */
static int allow_serving(scmp_filter_ctx ctx)
{
        static const int calls[] = {
                SCMP_SYS(accept4),     SCMP_SYS(accept),        SCMP_SYS(shutdown),
                SCMP_SYS(getsockopt),  SCMP_SYS(setsockopt),    SCMP_SYS(getsockname),
                SCMP_SYS(getpeername), SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl),
                SCMP_SYS(epoll_wait),  SCMP_SYS(epoll_pwait),   SCMP_SYS(sendfile),
                SCMP_SYS(writev),      SCMP_SYS(gettimeofday),  SCMP_SYS(time),
        };
        int err = ALLOW(ctx, calls);

        return err ? err
                   : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                                      SCMP_A1(SCMP_CMP_EQ, F_SETFL));
}

/* Connections to other machines, and to services of this one that look up names: sockets of no
 * other kind. Libraries that look up names are loaded then: their code is mapped from files, and
 * never writable. Names are looked up by a thread. */
static int allow_connecting(scmp_filter_ctx ctx)
{
        static const int families[] = { AF_INET, AF_INET6, AF_UNIX, AF_NETLINK };
        static const int calls[] = {
                SCMP_SYS(connect),         SCMP_SYS(bind),      SCMP_SYS(sendmmsg),
                SCMP_SYS(recvmmsg),        SCMP_SYS(pipe2),     SCMP_SYS(socketpair),
                SCMP_SYS(set_robust_list), SCMP_SYS(eventfd2),  SCMP_SYS(mincore),
                SCMP_SYS(sched_getaffinity),
        };
        const uint64_t thread = CLONE_VM | CLONE_THREAD;
        const uint64_t kinds = thread | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
        int err = ALLOW(ctx, calls);

        for (size_t i = 0; i < sizeof(families) / sizeof(*families) && !err; i++)
                err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                                       SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]));
        if (!err)
                err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                                       SCMP_A1(SCMP_CMP_EQ, FIONREAD));
        if (!err)                       /* its arguments are in memory: clone is taken instead */
                err = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
        if (!err)
                err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                       SCMP_A0(SCMP_CMP_MASKED_EQ, kinds, thread));
        if (!err)
                err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
                                       SCMP_A2(SCMP_CMP_EQ, PROT_READ | PROT_EXEC),
                                       SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, 0));
        return err;
}

/* In a directory that is open; seccomp cannot tell which. */
static int allow_making(scmp_filter_ctx ctx)
{
        static const int calls[] = { SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(unlinkat) };
        const uint64_t flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
        int err = ALLOW(ctx, calls);

        return err ? err : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
                                            SCMP_A2(SCMP_CMP_EQ, flags));
}

/* Of a terminal all but to type for its user, which could be commands. Ctrl-Z stops it by its own
 * signal. */
static int allow_showing(scmp_filter_ctx ctx)
{
        static const int calls[] = {
                SCMP_SYS(writev), SCMP_SYS(gettimeofday), SCMP_SYS(time),
                SCMP_SYS(pselect6), SCMP_SYS(select), SCMP_SYS(umask),
                SCMP_SYS(getpgrp), SCMP_SYS(getpgid),
        };
        static const int controls[] = { TCGETS, TCSETS, TCSETSW, TCSETSF,
                                        TIOCGWINSZ, TIOCGPGRP, FIONREAD };
        int err = ALLOW(ctx, calls);

        for (size_t i = 0; i < sizeof(controls) / sizeof(*controls) && !err; i++)
                err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                                       SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)controls[i]));
        if (!err)
                err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(kill), 1,
                                       SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
        return err;
}

static int is_push(enum ls_confine_room room)
{
        return room == LS_CONFINE_PUSH || room == LS_CONFINE_PUSH_FILES;
}

static int fill(scmp_filter_ctx ctx, enum ls_confine_room room)
{
        int opens = room == LS_CONFINE_FILES || room == LS_CONFINE_PROBE ||
                    room == LS_CONFINE_VIEW || is_push(room);
        int err = ALLOW(ctx, common_calls);

        if (!err)
                err = allow_own(ctx);

        if (!err && room != LS_CONFINE_PROBE)
                err = allow_data(ctx);
        /* Whether a process is there, and nothing else. */
        if (!err && room == LS_CONFINE_MEMORY)
                err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(kill), 1,
                                       SCMP_A1(SCMP_CMP_EQ, 0));
        if (!err && room >= LS_CONFINE_WRITER)
                err = allow_open_files(ctx);
        if (!err && room == LS_CONFINE_WRITER)
                err = allow_copies(ctx);
        if (!err && (room == LS_CONFINE_HTTP || room == LS_CONFINE_PUSH))
                err = allow_serving(ctx);
        if (!err && room == LS_CONFINE_PUSH)
                err = allow_connecting(ctx);
        if (!err && room == LS_CONFINE_PUSH_FILES)
                err = allow_making(ctx);
        if (!err && room == LS_CONFINE_VIEW)
                err = allow_showing(ctx);
        if (!err && opens)
                err = ALLOW(ctx, files_calls);
        if (!err && opens)
                err = allow_reading(ctx);
        if (!err && room == LS_CONFINE_PROBE)
                err = ALLOW(ctx, probe_calls);
        return err;
}

/* What is not allowed fails with EPERM: a library that tries more goes another way. */
static int forbid(enum ls_confine_room room)
{
        scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        int err = ctx ? fill(ctx, room) : -ENOMEM;

        if (!err)
                err = seccomp_load(ctx);
        if (ctx)
                seccomp_release(ctx);
        return err;
}

int ls_confine(const struct ls_rights *r, int root_fd, enum ls_confine_room room, int filter)
{
        int pushes = is_push(room), end_signal = SIGKILL, err;

        if (pushes)                     /* as who started it wants it */
                prctl(PR_GET_PDEATHSIG, &end_signal);
        prctl(PR_SET_PDEATHSIG, end_signal);
        if (!pushes)
                end_first();
        limit(RLIMIT_CORE, 0);
        /* The writer has the memory of all targets mapped, and its file is as large as it gets. */
        limit(room == LS_CONFINE_WRITER ? RLIMIT_DATA : RLIMIT_AS, MEMORY_MOST);
        if (room != LS_CONFINE_VIEW)            /* all chunks of a time are open */
                limit(RLIMIT_NOFILE, FILES_MOST);
        if (filter && room != LS_CONFINE_WRITER && room != LS_CONFINE_VIEW &&
            room != LS_CONFINE_READER && !pushes)
                limit(RLIMIT_FSIZE, ROOM_IN_FILES);     /* memory files of its own */
        /* /proc/PID/syscall asks for it at each read; what else it allows takes system calls that
         * the room has not. */
        err = become(r, root_fd, room == LS_CONFINE_MEMORY && filter ? 1u << CAP_SYS_PTRACE : 0,
                     room == LS_CONFINE_VIEW);
        prctl(PR_SET_PDEATHSIG, end_signal);    /* it is lost when the user changes */
        return err || !filter ? err : forbid(room);
}
