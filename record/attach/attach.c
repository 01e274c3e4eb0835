/* See attach.h. */
#include "record/attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <linux/futex.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "formats/escape.h"
#include "formats/wire/clock.h"
#include "formats/wire/open_file.h"
#include "record/attach/hold.h"
#include "record/attach/robust.h"
#include "record/attach/threads.h"
#include "record/process/descriptors.h"
#include "record/process/proc.h"
#include "record/process/thread_ids.h"

#define LOOK_NS 100000 /* between two looks at what the thread in the program does */
#define FILES_NS 2000000000ull          /* for it to begin */
#define LOAD_NS                                                                                    \
        20000000000ull /* for the agent to be there: the loader may be at work, the machine slow */
#define LEAVE_NS 5000000000ull
#define GIVE_UP_LOOKS                                                                              \
        450 /* of the thread at go, from LOOK_NS to 0.1 s apart, 7 s: when the recorder dies */

static void moment(void)
{
        const struct timespec t = { 0, LOOK_NS };

        nanosleep(&t, NULL);
}

static int read_page(struct ls_subject *t, struct ls_attach *ret)
{
        return ls_remote_read(&t->modules, t->inject.page_at, ret, sizeof(*ret));
}

/* Unless it has left meanwhile: then the memory may be another's. */
static int is_there(struct ls_subject *t)
{
        struct ls_attach a;

        return read_page(t, &a) == 0 && a.magic == LS_ATTACH_MAGIC && a.region == t->inject.region;
}

static int write_go(struct ls_subject *t, uint32_t go)
{
        if (!is_there(t))
                return -ESRCH;
        return ls_remote_write(&t->modules, t->inject.page_at, &go, sizeof(go));
}

static uint64_t symbol_beside(const struct ls_subject *t, const char *name, const char *beside)
{
        const struct ls_module *m = ls_modules_find(&t->modules, beside);

        return m ? ls_module_symbol(m, name) : 0;
}

/* Functions of the C library; before 2.34 some are in libraries of its own, which are known by what
 * they alone have: others may have functions of these names, as the agent does. */
static int find_functions(struct ls_subject *t)
{
        static const struct { const char *name, *beside; size_t at;
        } functions[] = {
                { "pthread_create", "__pthread_get_minstack",
                  offsetof(struct ls_attach, pthread_create) },
                { "pthread_detach", "__pthread_get_minstack",
                  offsetof(struct ls_attach, pthread_detach) },
                { "pthread_self", "__pthread_get_minstack",
                  offsetof(struct ls_attach, pthread_self) },
                { "dlopen", "_dlfcn_hook", offsetof(struct ls_attach, dlopen) },
                { "dlsym", "_dlfcn_hook", offsetof(struct ls_attach, dlsym) },
                { "dlerror", "_dlfcn_hook", offsetof(struct ls_attach, dlerror) },
                { "munmap", "gnu_get_libc_version", offsetof(struct ls_attach, munmap) },
        };
        const struct ls_module *libc = ls_modules_find(&t->modules, "gnu_get_libc_version");

        if (!libc) {
                ls_error("cannot attach to %d (%s): it has ended", (int)t->pid, t->name);
                return -ESRCH;
        }
        for (unsigned i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
                uint64_t at = ls_module_symbol(libc, functions[i].name);

                if (!at)
                        at = symbol_beside(t, functions[i].name, functions[i].beside);
                if (!at && functions[i].at != offsetof(struct ls_attach, dlerror)) {
                        ls_error("cannot attach to %d (%s): its C library has no %s; before glibc "
                                 "2.34 only a program that has loaded "
                                 "libpthread can be attached to",
                                 (int)t->pid, t->name, functions[i].name);
                        return -ENOSYS;
                }
                memcpy((char *)&t->inject.page + functions[i].at, &at, sizeof(at));
        }
        return 0;
}

static void fill_page(struct ls_subject *t)
{
        struct ls_attach *a = &t->inject.page;

        a->entry = t->entry;
        a->created = -1;
        a->pause[1] = LOOK_NS;
        a->looks = GIVE_UP_LOOKS;
        a->mxcsr = 0x1f80;
        a->magic = LS_ATTACH_MAGIC;
        a->version = LS_ATTACH_VERSION;
        strcpy(a->name, LS_ATTACH_MEMFD);
        strcpy(a->symbol, LS_ATTACH_ENTRY);
}

/* The page is no longer there. */
static int say_gone(const struct ls_subject *t)
{
        uint8_t byte;

        if (ls_remote_read(&t->modules, t->modules.m[0].base, &byte, 1) == 0)
                ls_error("cannot attach to %d (%s): the thread made in it has waited for luasample "
                         "in vain; this machine is "
                         "too busy, try again later",
                         (int)t->pid, t->name);
        else
                ls_error("cannot attach to %d (%s): it has ended", (int)t->pid, t->name);
        return -ESRCH;
}

static int say(const struct ls_subject *t, int err, const char *what)
{
        if (err == -EPERM || err == -EACCES)
                ls_subject_not_permitted(t);
        else
                ls_error("cannot attach to %d (%s): %s: %s", (int)t->pid, t->name, what,
                         strerror(-err));
        return err;
}

/* Until the thread has made its files; longer where it merely waits for a processor. */
static int wait_for_files(struct ls_subject *t)
{
        struct ls_attach *a = &t->inject.page;
        uint64_t since = ls_clock_ns(CLOCK_MONOTONIC), ns;

        do {
                if (read_page(t, a) < 0)
                        return say_gone(t);
                if (a->state == LS_ATTACH_FILES)
                        return a->fd_memory < 0 ? say(t, a->fd_memory,
                                                      "it may make no memory file (memfd_create)")
                               : a->fd_agent < 0 && !t->entry
                                       ? say(t, a->fd_agent,
                                             "it may make no memory file (memfd_create)")
                                       : 0;
                if (a->result)
                        return say(t, -ENOMEM, "memory may not be made executable in it");
                if (a->created > 0)
                        return say(t, -a->created, "no thread can be made in it");
                moment();
                ns = ls_clock_ns(CLOCK_MONOTONIC) - since;
        } while (ns < FILES_NS || (ns < LOAD_NS && ls_thread_is_ready(t->pid, t->inject.carrier)));
        return say(t, -ETIMEDOUT, "the thread made in it does not begin");
}

/* Descriptors are what the process says: any file of anybody's, of which it needs no right to name
 * it. A memory file that it has just made is the kernel's own (no tmpfs has its device), has no
 * name, is the process's and empty. */
static int is_new_memory_file(const struct ls_subject *t, int seen)
{
        int own = memfd_create("luasample", MFD_CLOEXEC), is;
        struct stat its, ours;

        is = own >= 0 && fstat(own, &ours) == 0 && fstat(seen, &its) == 0 && S_ISREG(its.st_mode) &&
             its.st_dev == ours.st_dev && its.st_nlink == 0 && its.st_uid == t->uid &&
             its.st_size == 0;
        if (own >= 0)
                close(own);
        return is;
}

/* A memory file of the process, opened here: the same file. -EBADF: it is another than the agent's
 * thread makes. */
static int open_its(const struct ls_subject *t, int fd)
{
        char name[16];
        int seen, own;

        snprintf(name, sizeof(name), "fd/%d", fd);
        seen = ls_proc_open(t->living, 0, name, O_PATH);
        if (seen < 0)
                return seen;
        if (!is_new_memory_file(t, seen)) {
                close(seen);
                return -EBADF;
        }
        own = ls_fd_above_stdio(ls_open_seen(seen, O_RDWR));
        if (own >= 0 && fcntl(own, F_GET_SEALS) != 0) {
                close(own);
                return -EBADF;
        }
        return own;
}

static int say_not_its(struct ls_subject *t, int err)
{
        if (err != -EBADF)
                return say(t, err, "its memory file cannot be opened");
        ls_error("cannot attach to %d (%s): it names another file than the memory file that was to "
                 "be made in it: its code is not "
                 "what it seems",
                 (int)t->pid, t->name);
        return err;
}

static int copy_agent(int to, const char *agent_path)
{
        static char buf[64 << 10];
        int from = open(agent_path, O_RDONLY | O_CLOEXEC), err = 0;
        ssize_t n = 0;

        if (from < 0)
                return -errno;
        while (err == 0 && (n = read(from, buf, sizeof(buf))) > 0)
                if (write(to, buf, (size_t)n) != n)
                        err = -EIO;
        if (n < 0)
                err = -errno;
        close(from);
        return err;
}

static int fill_agent(struct ls_subject *t, const char *agent_path)
{
        struct ls_attach *a = &t->inject.page;
        char *p = a->path;
        int err, fd;

        if (t->entry)
                return 0;
        fd = open_its(t, a->fd_agent);
        if (fd < 0)
                return say_not_its(t, fd);
        err = copy_agent(fd, agent_path);
        close(fd);
        if (err < 0)
                return say(t, err, "the agent cannot be copied into it");
        /* The loader knows objects by their paths: another for each. */
        p += sprintf(p, LS_ATTACH_WAY);
        for (unsigned i = 0; i < t->agents % 4; i++)
                *p++ = '/';
        sprintf(p, "fd/%d", a->fd_agent);
        return 0;
}

static int say_load_failed(struct ls_subject *t, const struct ls_attach *a)
{
        char text[256] = "", *shown = NULL;

        if (a->state == LS_ATTACH_NO_LOAD && a->error_text)
                ls_remote_string(&t->modules, a->error_text, text, sizeof(text));
        if (*text)
                shown = ls_visible(text, strlen(text));
        ls_error("cannot attach to %d (%s): its loader refuses the agent: %s", (int)t->pid, t->name,
                 shown ? shown : "no reason given");
        free(shown);
        return -ELIBACC;
}

/* Returns 0 unless the thread has come to an end without the agent. */
static int say_state(struct ls_subject *t, const struct ls_attach *a)
{
        if (a->state == LS_ATTACH_NO_LOAD || a->state == LS_ATTACH_NO_ENTRY)
                return say_load_failed(t, a);
        if (a->state == LS_ATTACH_REFUSED && a->result == -EALREADY) {
                ls_error("%d (%s) is recorded by another luasample already", (int)t->pid, t->name);
                return -EALREADY;
        }
        return a->state == LS_ATTACH_REFUSED ? say(t, a->result, "the agent cannot begin") : 0;
}

/* Until the agent has come up and looked around. Its page vanishes meanwhile. */
static int wait_for_agent(struct ls_subject *t, const struct ls_memory *m)
{
        uint64_t until = ls_clock_ns(CLOCK_MONOTONIC) + LOAD_NS;
        struct ls_attach a;
        int err;

        while (ls_clock_ns(CLOCK_MONOTONIC) < until) {
                atomic_store(&m->shm->heartbeat_ns, ls_clock_ns(CLOCK_MONOTONIC));
                ls_attach_hold(t, m);
                if (atomic_load(&m->shm->attach_looks))
                        return 0;
                if (!atomic_load(&m->shm->agent_state) && read_page(t, &a) == 0) {
                        err = say_state(t, &a);
                        if (err < 0) {
                                write_go(t, 3);
                                return err;
                        }
                }
                if (ls_remote_read(&t->modules, t->modules.m[0].base, &a, 4) < 0)
                        return say(t, -ESRCH, "it has ended");
                moment();
        }
        return say(t, -ETIMEDOUT, "the agent does not come up");
}

/* What the program's kernel said to the system call that was to begin a thread. */
static int say_refused(const struct ls_subject *t)
{
        const struct ls_inject *in = &t->inject;
        int err = in->refused_error;

        if (!strcmp(in->refused, "clone") && err == -EAGAIN)
                ls_error("cannot attach to %d (%s): it may have no more threads: raise its limit "
                         "of processes (RLIMIT_NPROC) or "
                         "that of its control group (pids.max)",
                         (int)t->pid, t->name);
        else
                ls_error("cannot attach to %d (%s): its system call %s is refused: %s", (int)t->pid,
                         t->name, in->refused, strerror(-err));
        return err;
}

static int say_not_begun(const struct ls_subject *t, int err)
{
        int pid = (int)t->pid;

        if (err == -EREMOTEIO)
                return say_refused(t);
        if (err == -EALREADY)
                ls_error("%d (%s) is stopped: continue it first (kill -CONT %d)", pid, t->name,
                         pid);
        else if (err == -EBUSY)
                ls_error("%d (%s) is traced by another process: end that first", pid, t->name);
        else if (err == -ETIMEDOUT)
                ls_error("cannot attach to %d (%s): its thread does not leave the kernel; try "
                         "again later",
                         pid, t->name);
        else if (err == -ESTALE)
                ls_error("cannot attach to %d (%s): it has begun another program", pid, t->name);
        else if (err == -ESRCH)
                ls_error("cannot attach to %d (%s): it has ended", pid, t->name);
        else
                say(t, err, "no thread can be begun in it");
        return err == -ESTALE ? -ESRCH : err;
}

static int begin_thread(struct ls_subject *t)
{
        int err;

        t->inject.pid = t->pid;
        t->inject.modules = &t->modules;
        err = find_functions(t);
        if (err < 0)
                return err;
        fill_page(t);
        err = ls_inject_begin(&t->inject);
        if (err < 0)
                return say_not_begun(t, err);
        err = wait_for_files(t);
        ls_inject_end(&t->inject, err < 0);
        return err;
}

static int hand_over(struct ls_subject *t, const char *agent_path, struct ls_memory *m,
                     const struct ls_record_options *o, int (*prepared)(void *ctx), void *ctx)
{
        struct ls_attach *a = &t->inject.page;
        int err = fill_agent(t, agent_path), fd;

        if (err < 0)
                return err;
        fd = open_its(t, a->fd_memory);
        if (fd < 0)
                return say_not_its(t, fd);
        err = ls_memory_init_in(m, o, fd);
        if (err < 0)
                return say(t, err, "memory cannot be shared with it");
        m->shm->root_pid = (uint32_t)t->inner_pid;
        t->robust = ls_robust_begin(m->fd);
        if (!ls_proc_shares(t->living, "ns/pid"))
                m->shm->recorder_pid = 0;
        atomic_store(&m->shm->recording, 1);
        atomic_store(&m->shm->heartbeat_ns, ls_clock_ns(CLOCK_MONOTONIC));
        a->generation = m->shm->generation;
        err = prepared(ctx);
        if (err < 0)
                return err;
        a->go = 1;
        if (!is_there(t))
                return say_gone(t);
        return ls_remote_write(&t->modules, t->inject.page_at, a, sizeof(*a)) < 0 ? say_gone(t) : 0;
}

int ls_attach_begin(struct ls_subject *t, const char *agent_path, struct ls_memory *m,
                    const struct ls_record_options *o, int (*prepared)(void *ctx), void *ctx)
{
        int err = begin_thread(t);

        if (err < 0)
                return err;
        err = hand_over(t, agent_path, m, o, prepared, ctx);
        if (err < 0) {
                write_go(t, 2);
                return err;
        }
        err = wait_for_agent(t, m);
        t->agent_tid = ls_thread_outer_id(t->pid, (pid_t)atomic_load(&m->shm->agent_tid));
        return err;
}

int ls_attach_is_there(const struct ls_subject *t)
{
        return t->agent_tid && ls_proc_has_task(t->pid, t->agent_tid);
}

void ls_attach_give_up(struct ls_memory *m)
{
        atomic_store(&m->shm->detach, 1);
        syscall(SYS_futex, &m->shm->detach, FUTEX_WAKE, 1, NULL, NULL, 0);
}

int ls_attach_end(struct ls_subject *t, struct ls_memory *m, void (*work)(void *ctx), void *ctx)
{
        uint64_t until = ls_clock_ns(CLOCK_MONOTONIC) + LEAVE_NS;

        ls_attach_give_up(m);
        while (ls_attach_is_there(t)) {
                if (ls_clock_ns(CLOCK_MONOTONIC) > until)
                        return -ETIMEDOUT;
                work(ctx);
                moment();
        }
        return 0;
}
