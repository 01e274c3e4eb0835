/* Looks at a process before it is attached to: each reason for which it cannot be is said by name,
 * with what to do. See attach.h. */
#include "record/attach/subject.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "formats/escape.h"
#include "formats/wire/clock.h"
#include "formats/wire/open_file.h"
#include "record/attach/robust.h"
#include "record/attach/threads.h"
#include "record/process/proc.h"
#include "record/process/thread_ids.h"

#define SILENT_NS 6000000000ull /* the agent of a recorder that is gone leaves by itself in less */

struct facts {                          /* of /proc/PID/status */
        char text[8192];
        char state;
        long tgid, tracer, seccomp, uids[4], gids[4];
};

static long field(const struct facts *f, const char *key)
{
        const char *p = strstr(f->text, key);

        return p ? strtol(p + strlen(key), NULL, 10) : 0;
}

static void four(const struct facts *f, const char *key, long ret[4])
{
        char *p = strstr(f->text, key);

        if (p)
                p += strlen(key);
        for (int i = 0; i < 4; i++)
                ret[i] = p ? strtol(p, &p, 10) : 0;
}

/* Of a thread of the process that lives; uids, limits and memory are those of all. */
static int read_facts(pid_t tid, struct facts *f)
{
        const char *state;
        size_t n;
        FILE *file = ls_proc_file(tid, 0, "status");

        if (!file)
                return -errno;
        n = fread(f->text, 1, sizeof(f->text) - 1, file);
        f->text[n] = 0;
        fclose(file);
        state = strstr(f->text, "\nState:\t");
        if (!state)
                return -ESRCH;
        f->state = state[8];
        f->tgid = field(f, "\nTgid:\t");
        f->tracer = field(f, "\nTracerPid:\t");
        f->seccomp = field(f, "\nSeccomp:\t");
        four(f, "\nUid:\t", f->uids);
        four(f, "\nGid:\t", f->gids);
        return 0;
}

static void read_name(struct ls_subject *t)
{
        FILE *f = ls_proc_file(t->pid, 0, "comm");
        char comm[64];

        strcpy(t->name, "?");
        if (f && fgets(comm, sizeof(comm), f)) {
                char *shown = ls_visible(comm, strcspn(comm, "\n"));

                snprintf(t->name, sizeof(t->name), "%s", shown ? shown : "?");
                free(shown);
        }
        if (f)
                fclose(f);
}

static int yama_scope(void)
{
        FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
        int scope = 0;

        if (!f)
                return 0;
        if (fscanf(f, "%d", &scope) != 1)
                scope = 0;
        fclose(f);
        return scope;
}

void ls_subject_not_permitted(const struct ls_subject *t)
{
        int scope = yama_scope();

        if (scope == 3)
                ls_error("not permitted to attach to %d (%s): kernel.yama.ptrace_scope is 3, so "
                         "nobody may trace until a reboot",
                         (int)t->pid, t->name);
        else if (scope && geteuid() && t->uid == getuid())
                ls_error("not permitted to attach to %d (%s): kernel.yama.ptrace_scope is %d; run "
                         "luasample as root, or grant it "
                         "CAP_SYS_PTRACE, or: sysctl kernel.yama.ptrace_scope=0",
                         (int)t->pid, t->name, scope);
        else if (!geteuid())
                ls_error("not permitted to attach to %d (%s): this root lacks CAP_SYS_PTRACE "
                         "there, as in a container; grant it, or "
                         "attach from the host",
                         (int)t->pid, t->name);
        else if (t->uid != getuid())
                ls_error("not permitted to attach to %d (%s): it belongs to user id %u; run "
                         "luasample as that user or as root, or "
                         "grant it CAP_SYS_PTRACE",
                         (int)t->pid, t->name, t->uid);
        else
                ls_error("not permitted to attach to %d (%s): it has more rights than you, or has "
                         "closed itself to tracing; run "
                         "luasample as root, or grant it CAP_SYS_PTRACE",
                         (int)t->pid, t->name);
}

/* That there is such a process, and what state it is in. */
static int check_process(const struct ls_subject *t, const struct facts *f)
{
        int pid = (int)t->pid;

        if (t->pid == getpid()) {
                ls_error("-p %d is luasample itself", pid);
                return -EINVAL;
        }
        if (f->tgid != t->pid) {
                ls_error("%d is a thread of process %ld (%s): try -p %ld", pid, f->tgid, t->name,
                         f->tgid);
                return -EINVAL;
        }
        if (!t->living || strchr("ZX", f->state)) {
                ls_error("%d (%s) has ended", pid, t->name);
                return -ESRCH;
        }
        if (!strstr(f->text, "\nVmSize:")) {
                ls_error("%d (%s) is a thread of the kernel", pid, t->name);
                return -EINVAL;
        }
        if (f->tracer) {
                ls_error("%d (%s) is traced already, by process %ld: end that first", pid, t->name,
                         f->tracer);
                return -EBUSY;
        }
        if (strchr("Tt", f->state)) {
                ls_error("%d (%s) is stopped: continue it first (kill -CONT %d)", pid, t->name,
                         pid);
                return -EBUSY;
        }
        if (f->seccomp == 1) {
                ls_error("%d (%s) may make no system calls but four (seccomp): it cannot be "
                         "attached to",
                         pid, t->name);
                return -EPERM;
        }
        if (f->uids[0] != f->uids[1] || f->uids[0] != f->uids[2] || f->gids[0] != f->gids[1] ||
            f->gids[0] != f->gids[2]) {
                ls_error("%d (%s) runs with rights that its user does not have (setuid or setgid): "
                         "it is not attached to",
                         pid, t->name);
                return -EPERM;
        }
        return 0;
}

static int has_file(const struct ls_subject *t, const char *part)
{
        for (unsigned i = 0; i < t->modules.n; i++)
                if (strstr(t->modules.m[i].path, part))
                        return 1;
        return 0;
}

/* Whether its parts are found that inject.c uses. */
static int knows_library(const struct ls_subject *t)
{
        const struct ls_module *libc = ls_modules_find(&t->modules, "gnu_get_libc_version");

        return libc && ls_module_symbol(libc, "syscall") && libc->object.thread.offset;
}

/* The program itself among what is loaded: by the name that the kernel has for it. Returns 0 or
 * -errno; *ret NULL = it is not there as linkers make them. */
static int find_program(const struct ls_subject *t, const struct ls_module **ret)
{
        char name[PATH_MAX];
        ssize_t n = ls_proc_link(t->living, "exe", name, sizeof(name));

        if (n < 0)
                return (int)n;
        *ret = NULL;
        for (unsigned i = 0; i < t->modules.n && !*ret; i++)
                if (!strcmp(t->modules.m[i].path, name))
                        *ret = &t->modules.m[i];
        return 0;
}

/* What kind of program it is. */
static int check_image(const struct ls_subject *t)
{
        static const struct ls_object unknown = { .is_elf = 1 };
        const struct ls_object *is = &unknown;
        const struct ls_module *program = NULL;
        const char *why = NULL;
        int err = find_program(t, &program);

        if (err < 0) {
                if (err == -EACCES || err == -EPERM)
                        ls_subject_not_permitted(t);
                else
                        ls_error("%d (%s): its program cannot be read: %s", (int)t->pid, t->name,
                                 strerror(-err));
                return err;
        }
        if (program)
                is = &program->object;
        if (is->bits32)
                why = "is a 32-bit program: only 64-bit ones can be attached to";
        else if (!is->is_elf)
                why = "is for another processor: only x86-64 programs can be attached to";
        else if (is->is_musl || has_file(t, "ld-musl-"))
                why = "is linked with musl: only programs of the GNU C library can be attached to";
        else if (!ls_modules_find(&t->modules, "gnu_get_libc_version"))
                why = is->has_interpreter
                              ? "has not loaded the GNU C library: it cannot be attached to"
                              : "is statically linked, so the agent cannot be loaded into it";
        else if (!knows_library(t))
                why = "has a C library that is not known: only the GNU C library, as its project "
                      "makes it, can be attached to";
        if (why)
                ls_error("%d (%s) %s", (int)t->pid, t->name, why);
        return why ? -ENOEXEC : 0;
}

/* 1 when the program holds LuaJIT without its symbols. */
static int hides_luajit(const struct ls_subject *t)
{
        struct ls_object object = { 0 };
        char path[LS_PROC_PATH];
        struct stat st;
        int seen, err;

        seen = ls_see_regular(ls_proc_path(path, t->living, 0, "exe"), &st);
        if (seen < 0)
                return 0;
        err = ls_worker_image(ls_workers_of(t->workers, t->living, NULL), seen, &object);
        close(seen);
        return !err && object.hides_luajit;
}

/* The agent comes in by way of /proc/self/fd, and looks around by way of /proc/self. */
static int check_proc(const struct ls_subject *t)
{
        char path[LS_PROC_PATH];
        struct stat st;

        if (lstat(ls_proc_path(path, t->living, 0, "root/proc/self"), &st) == 0)
                return 0;
        ls_error("cannot attach to %d (%s): no /proc is mounted in the directory that is its root, "
                 "by way of which the agent is "
                 "loaded",
                 (int)t->pid, t->name);
        return -ENOENT;
}

static int check_lua(const struct ls_subject *t)
{
        const struct ls_modules *ms = &t->modules;
        unsigned others = 0;

        for (unsigned i = 0; i < ms->n; i++) {
                if (!ls_module_symbol(&ms->m[i], "lua_newstate"))
                        continue;
                if (ls_module_symbol(&ms->m[i], "luaJIT_setmode"))
                        return 0;
                others++;
        }
        if (others)
                ls_error("no Lua VM was found in %d (%s): its Lua is not LuaJIT", (int)t->pid,
                         t->name);
        else if (hides_luajit(t))
                ls_error("no Lua VM was found in %d (%s): it contains LuaJIT but does not export "
                         "lua_newstate",
                         (int)t->pid, t->name);
        else
                ls_error("no Lua VM was found in %d (%s): it has not loaded LuaJIT", (int)t->pid,
                         t->name);
        return -ENOENT;
}

/* An agent of a recorder that is gone leaves by itself: 1 when it has. */
static int has_left(const struct ls_subject *t, uint64_t status_at)
{
        const struct timespec moment = { 0, 20000000 };
        struct ls_attach_status status;
        uint64_t beat, first = 0, start = ls_clock_ns(CLOCK_MONOTONIC);

        for (;;) {
                if (ls_remote_read(&t->modules, status_at, &status, sizeof(status)) < 0 ||
                    !status.pid || (status.pid != (uint32_t)t->inner_pid && !status.preloaded))
                        return 1;
                if (status.preloaded || ls_clock_ns(CLOCK_MONOTONIC) - start > SILENT_NS ||
                    ls_remote_read(&t->modules, status.heartbeat_at, &beat, sizeof(beat)) < 0)
                        return 0;
                if (!first)
                        first = beat;
                if (beat != first)      /* its recorder lives */
                        return 0;
                nanosleep(&moment, NULL);
        }
}

/* Our own file. */
static void look_at_agent(const char *path, struct ls_object *ret)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        *ret = (struct ls_object){ 0 };
        if (fd < 0)
                return;
        ls_object_of_memory(fd, 0, ret);
        close(fd);
}

static int is_same_build(const struct ls_object *a, const struct ls_object *b)
{
        return a->id_len && a->id_len == b->id_len && !memcmp(a->id, b->id, a->id_len);
}

/* Agents that are in the process already: one at work ends it, one of ours that has left is used
 * again. */
static int check_agents(struct ls_subject *t, const char *agent_path)
{
        const struct ls_modules *ms = &t->modules;
        struct ls_object own;

        look_at_agent(agent_path, &own);
        for (unsigned i = 0; i < ms->n; i++) {
                uint64_t at = ls_module_symbol(&ms->m[i], LS_ATTACH_STATUS);
                struct ls_attach_status status;

                if (!at || ls_remote_read(ms, at, &status, sizeof(status)) < 0)
                        continue;
                t->agents++;
                if (status.magic != LS_ATTACH_MAGIC)
                        continue;
                if (!has_left(t, at)) {
                        ls_error("%d (%s) %s", (int)t->pid, t->name,
                                 status.preloaded ? "was started by luasample record: the agent "
                                                    "that is in it belongs to that recording"
                                                  : "is recorded by another luasample already");
                        return -EALREADY;
                }
                /* of two the first, which is also the one that the program finds by its name */
                if (!t->entry && status.version == LS_ATTACH_VERSION &&
                    is_same_build(&own, &ms->m[i].object))
                        t->entry = ls_module_symbol(&ms->m[i], LS_ATTACH_ENTRY);
        }
        return 0;
}

/* What is read of its memory. */
static int check_inside(struct ls_subject *t, const char *agent_path, const char *status,
                        uint64_t memory, unsigned how)
{
        static int (*const checks[])(const struct ls_subject *t) = { check_image, check_lua,
                                                                     check_proc };
        int err = 0, r;

        for (unsigned i = 0; i < sizeof(checks) / sizeof(*checks) && (!err || how & LS_SUBJECT_ALL);
             i++) {
                r = checks[i](t);
                err = err ? err : r;
        }
        if (!err || how & LS_SUBJECT_ALL) {
                r = check_agents(t, agent_path);
                err = err ? err : r;
        }
        if ((!err || how & LS_SUBJECT_ALL) &&
            !(how & LS_SUBJECT_OWN)) { /* last: a look at filters stops its threads */
                r = ls_risks_check(t, status, memory, how);
                err = err ? err : r;
        }
        return err;
}

int ls_subject_open(struct ls_subject *t, pid_t pid, struct ls_workers *workers,
                    const char *agent_path, uint64_t memory, unsigned how)
{
        static struct facts f;          /* 8 KiB */
        int err;

        memset(t, 0, sizeof(*t));
        t->pid = pid;
        t->workers = workers;
        t->modules.mem_fd = -1;
        t->living = ls_thread_living(pid);
        if (read_facts(t->living ? t->living : pid, &f) < 0) {
                ls_error("there is no process %d", (int)pid);
                return -ESRCH;
        }
        t->uid = (unsigned)f.uids[0];
        read_name(t);
        err = check_process(t, &f);
        if (err < 0)
                return err;
        err = ls_modules_open(&t->modules, t->living, workers);
        if (err < 0) {
                if (err == -EACCES || err == -EPERM)
                        ls_subject_not_permitted(t);
                else if (err == -EBADMSG)
                        ls_error("cannot attach to %d (%s): the headers of what is loaded in it "
                                 "make no sense, or take too long to read",
                                 (int)pid, t->name);
                else
                        ls_error("cannot attach to %d (%s): its memory cannot be read: %s",
                                 (int)pid, t->name, strerror(-err));
                return err;
        }
        t->inner_pid = ls_thread_inner_id(pid, pid);
        return check_inside(t, agent_path, f.text, memory, how);
}

void ls_subject_done(struct ls_subject *t)
{
        ls_robust_end(t->robust);
        t->robust = 0;
        ls_modules_close(&t->modules);
}
