/* Stops the threads of another process for a moment: see stop.h. */
#include "record/stop.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static ssize_t read_file(pid_t pid, pid_t tid, const char *name, char *buf, size_t size)
{
        char path[64];
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = read(fd, buf, size - 1);
        if (n < 0)
                n = -errno;
        close(fd);
        buf[n > 0 ? n : 0] = 0;
        return n;
}

/* Where a blocked thread waits: "NUMBER ARGUMENTS... SP PC", "running" for others. */
static int read_blocked(pid_t pid, struct ls_stopped *t)
{
        char buf[256], *pc, *sp;

        if (read_file(pid, t->tid, "syscall", buf, sizeof(buf)) <= 0 || *buf == 'r')
                return 0;
        pc = strrchr(buf, ' ');
        if (!pc)
                return 0;
        *pc = 0;
        sp = strrchr(buf, ' ');
        if (!sp)
                return 0;
        memset(&t->regs, 0, sizeof(t->regs));
        t->regs.rip = strtoull(pc + 1, NULL, 16);
        t->regs.rsp = strtoull(sp + 1, NULL, 16);
        t->blocked = 1;
        return 1;
}

/* A system call that a stop has ended is begun again: the program must not see it. One that a signal of the program's has ended
 * is left so. */
static void begin_call_again(struct ls_stopped *t)
{
        struct user_regs_struct regs = t->regs;

        if (t->signal || (long)regs.orig_rax < 0 || (long)regs.rax != -EINTR)
                return;
        regs.rax = regs.orig_rax;
        regs.rip -= 2;                  /* "syscall" */
        regs.orig_rax = (unsigned long long)-1;
        ptrace(PTRACE_SETREGS, t->tid, NULL, &regs);
}

/* Returns 0 or -errno. */
static int stop_one(struct ls_stopped *t)
{
        int status;

        if (ptrace(PTRACE_SEIZE, t->tid, NULL, NULL) < 0)
                return -errno;
        if (ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL) < 0 || waitpid(t->tid, &status, __WALL) != t->tid ||
            !WIFSTOPPED(status))
                return -ESRCH;
        t->traced = 1;
        t->signal = status >> 16 ? 0 : WSTOPSIG(status);
        return ptrace(PTRACE_GETREGS, t->tid, NULL, &t->regs) < 0 ? -errno : 0;
}

static int list_threads(struct ls_stop *s)
{
        struct dirent *e;
        char path[64];
        DIR *d;

        snprintf(path, sizeof(path), "/proc/%d/task", (int)s->pid);
        d = opendir(path);
        if (!d)
                return -errno;
        while ((e = readdir(d))) {
                if (!isdigit((unsigned char)*e->d_name))
                        continue;
                if (s->n == LS_STOP_MOST)
                        s->more++;
                else
                        s->threads[s->n++].tid = (pid_t)atoi(e->d_name);
        }
        closedir(d);
        return s->n ? 0 : -ESRCH;
}

static int traced_by_another(pid_t pid, pid_t tid)
{
        char buf[4096], *p;

        return read_file(pid, tid, "status", buf, sizeof(buf)) > 0 && (p = strstr(buf, "TracerPid:")) && atoi(p + 10) != 0;
}

int ls_stop_begin(struct ls_stop *s, pid_t pid)
{
        int err;

        memset(s, 0, sizeof(*s));
        s->pid = pid;
        err = list_threads(s);
        for (unsigned i = 0; !err && i < s->n; i++) {
                struct ls_stopped *t = &s->threads[i];

                if (read_blocked(pid, t))
                        continue;
                err = stop_one(t);
                if (err == -EPERM && traced_by_another(pid, t->tid))
                        err = -EBUSY;
                if (err == -ESRCH) {    /* it has ended; all others have not */
                        s->threads[i--] = s->threads[--s->n];
                        s->more++;
                        err = 0;
                }
        }
        if (err)
                ls_stop_end(s);
        return err ? err : s->n ? 0 : -ESRCH;
}

void ls_stop_end(struct ls_stop *s)
{
        for (unsigned i = 0; i < s->n; i++) {
                struct ls_stopped *t = &s->threads[i];

                if (!t->traced)
                        continue;
                begin_call_again(t);
                ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(intptr_t)t->signal);
                t->traced = 0;
        }
}
