/* What an attachment could do to a process that it can enter: each risk is said in a line, and the
 * process is left as it was, unless the user knows better. Called by subject.c; see
 * attach.h. */
#include "record/attach/subject.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "record/attach/threads.h"
#include "record/attach/filters.h"
#include "record/process/proc.h"

#define CAP_IPC_LOCK_BIT 14u
#define CAP_SYS_ADMIN_BIT 21u
#define CAP_SYS_RESOURCE_BIT 24u
#define THREADS_NEEDED 2u               /* at one time */
#define BESIDE ((uint64_t)4 << 20)      /* for the agent, its tables, and what brings it in */
#define STACK_USUAL ((uint64_t)8 << 20)
#define ARENAS ((uint64_t)128 << 20)    /* that the C library reserves for two threads */
#define TEXT_MOST 384

struct risk {                           /* one that is looked for */
        const struct ls_subject *t;
        const char *status;             /* /proc/PID/status */
        uint64_t memory;                /* bytes that the recorder shares with it */
        char text[TEXT_MOST];           /* out: what it is */
};

static int __attribute__((format(printf, 2, 3))) found(struct risk *r, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(r->text, sizeof(r->text), fmt, ap);
        va_end(ap);
        return 1;
}

static uint64_t field(const char *text, const char *key, int base)
{
        const char *p = strstr(text, key);

        return p ? strtoull(p + strlen(key), NULL, base) : 0;
}

/* A soft limit of the process, by its name in /proc/PID/limits. UINT64_MAX = there is none. */
static uint64_t limit_of(const struct ls_subject *t, const char *name)
{
        uint64_t limit = UINT64_MAX;
        FILE *f = ls_proc_file(t->pid, 0, "limits");
        char line[256];

        while (f && fgets(line, sizeof(line), f))
                if (!strncmp(line, name, strlen(name)) &&
                    sscanf(line + strlen(name), " %" SCNu64, &limit) == 1)
                        break;
        if (f)
                fclose(f);
        return limit;
}

/* The kernel asks for capabilities over the whole system here: those in a user namespace of its own
 * are none. */
static int is_capable(const struct risk *r, unsigned bit)
{
        return field(r->status, "\nCapEff:\t", 16) >> bit & 1 &&
               ls_proc_shares(r->t->living, "ns/user");
}

/* Of all threads: 0 = none has any, 2 = one has a filter, 1 = one is strict. */
static int has_filters(const struct ls_subject *t)
{
        DIR *dir = ls_proc_tasks(t->pid);
        int mode = 0, worst = 0;
        char line[256];
        pid_t tid;

        while (worst != 1 && (tid = ls_proc_next(dir))) {
                FILE *f = ls_proc_file(t->pid, tid, "status");

                while (f && fgets(line, sizeof(line), f) && sscanf(line, "Seccomp: %d", &mode) != 1)
                        ;
                if (f)
                        fclose(f);
                worst = f && mode ? mode : worst;
        }
        if (dir)
                closedir(dir);
        return worst;
}

static int sandbox(struct risk *r)
{
        const char *call = NULL;
        int verdict, filters = has_filters(r->t);

        if (!filters)
                return 0;
        if (filters == 1)
                return found(r, "one of its threads may make no system calls but four (strict "
                             "seccomp)");
        verdict = ls_seccomp_look(r->t->pid, &call);
        switch (verdict) {
        case LS_VERDICT_ALLOWED:
                return 0;
        case LS_VERDICT_FAILS:
                return found(r, "its seccomp filter lets %s fail, which the agent needs", call);
        case LS_VERDICT_ENDS:
                return found(r, "its seccomp filter kills it at %s, which the agent needs", call);
        case LS_VERDICT_UNKNOWN:
                return found(r, "whether its seccomp filter allows %s, which the agent needs, "
                             "cannot be told", call);
        case -EACCES:
                return found(r, "it has a seccomp filter, which may kill it for what the agent "
                             "needs, and which only root can read (CAP_SYS_ADMIN, no own filter)");
        default:
                return found(r, "it has a seccomp filter, which may kill it for what the agent "
                             "needs, and which cannot be read: %s", strerror(-verdict));
        }
}

/* What mlockall(MCL_CURRENT) leaves, and pages that were locked one by one do not: a locked
 * stack. */
static int has_locked_stack(const struct ls_subject *t)
{
        int within = 0, locked = 0;
        FILE *f = ls_proc_file(t->living, 0, "smaps");
        char line[512];

        while (f && !locked && fgets(line, sizeof(line), f)) {
                if (islower((unsigned char)*line) || isdigit((unsigned char)*line))
                        within = strstr(line, "[stack]") != NULL;
                else if (within && !strncmp(line, "VmFlags:", 8))
                        locked = strstr(line, " lo ") != NULL;
        }
        if (f)
                fclose(f);
        return locked;
}

/* What all of an attachment takes of address space. */
static uint64_t space(const struct risk *r)
{
        uint64_t stack = limit_of(r->t, "Max stack size");

        return r->memory + BESIDE + ARENAS + (stack < UINT64_MAX ? stack : STACK_USUAL);
}

static int locked_memory(struct risk *r)
{
        uint64_t locked = field(r->status, "\nVmLck:\t", 10) << 10;
        uint64_t limit = limit_of(r->t, "Max locked memory");

        if (!locked || limit == UINT64_MAX || is_capable(r, CAP_IPC_LOCK_BIT) ||
            locked + space(r) <= limit || !has_locked_stack(r->t))
                return 0;
        return found(r, "it locks all of its memory, %" PRIu64 " MiB of the %" PRIu64 " that it "
                     "may (RLIMIT_MEMLOCK), and the agent needs %" PRIu64 " more",
                     locked >> 20, limit >> 20, space(r) >> 20);
}

static int address_space(struct risk *r)
{
        uint64_t used = field(r->status, "\nVmSize:\t", 10) << 10;
        uint64_t limit = limit_of(r->t, "Max address space");

        if (limit == UINT64_MAX || used + space(r) <= limit)
                return 0;
        return found(r, "it has %" PRIu64 " MiB of the %" PRIu64 " of address space that it may "
                     "(RLIMIT_AS), and the agent needs %" PRIu64 " more",
                     used >> 20, limit >> 20, space(r) >> 20);
}

/* Of all users, in all namespaces. */
static uint64_t all_threads(void)
{
        FILE *f = fopen("/proc/loadavg", "re");
        unsigned long n = 0;

        if (!f)
                return UINT64_MAX;
        if (fscanf(f, "%*s %*s %*s %*u/%lu", &n) != 1)
                n = 0;
        fclose(f);
        return n ? n : UINT64_MAX;
}

/* Threads of a user, as far as they can be seen. */
static uint64_t threads_of(unsigned uid)
{
        DIR *dir = opendir("/proc");
        char path[320], text[2048];
        struct dirent *e;
        uint64_t sum = 0;

        while (dir && (e = readdir(dir))) {
                size_t n;
                FILE *f;

                snprintf(path, sizeof(path), "/proc/%s/status", e->d_name);
                f = isdigit((unsigned char)*e->d_name) ? fopen(path, "re") : NULL;
                if (!f)
                        continue;
                n = fread(text, 1, sizeof(text) - 1, f);
                text[n] = 0;
                fclose(f);
                if (field(text, "\nUid:\t", 10) == uid)
                        sum += field(text, "\nThreads:\t", 10);
        }
        if (dir)
                closedir(dir);
        return sum;
}

static int user_processes(struct risk *r)
{
        uint64_t limit = limit_of(r->t, "Max processes"), n;

        if (limit == UINT64_MAX || r->t->uid == 0 || is_capable(r, CAP_SYS_RESOURCE_BIT) ||
            is_capable(r, CAP_SYS_ADMIN_BIT) || all_threads() + THREADS_NEEDED <= limit)
                return 0;
        n = threads_of(r->t->uid);
        if (n + THREADS_NEEDED <= limit)
                return 0;
        return found(r, "user id %u has %" PRIu64 " threads of the %" PRIu64 " that this process "
                     "allows (RLIMIT_NPROC), and the agent needs %u more",
                     r->t->uid, n, limit, THREADS_NEEDED);
}

static uint64_t number_in(const char *group, const char *name)
{
        uint64_t n = UINT64_MAX;
        char path[1200];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", group, name);
        f = fopen(path, "re");
        if (f && fscanf(f, "%" SCNu64, &n) != 1)
                n = UINT64_MAX;
        if (f)
                fclose(f);
        return n;
}

/* The path of the control group that counts its threads: the pids controller's own, or that of all.
 * */
static int pids_group(const struct ls_subject *t, char *to, size_t size)
{
        FILE *f = ls_proc_file(t->pid, 0, "cgroup");
        char line[1024];
        int known = 0;

        while (f && known < 2 && fgets(line, sizeof(line), f)) {
                char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;

                line[strcspn(line, "\n")] = 0;
                if (!group)
                        continue;
                *group++ = 0;
                if (!strcmp(names + 1, "pids")) {
                        snprintf(to, size, "/sys/fs/cgroup/pids%s", group);
                        known = 2;
                } else if (!names[1]) {
                        snprintf(to, size, "/sys/fs/cgroup%s", group);
                        known = 1;
                }
        }
        if (f)
                fclose(f);
        return known;
}

static int group_processes(struct risk *r)
{
        char group[1100], *slash;

        if (!pids_group(r->t, group, sizeof(group)))
                return 0;
        for (;;) {
                uint64_t most = number_in(group, "pids.max"), n = number_in(group, "pids.current");

                if (most != UINT64_MAX && n != UINT64_MAX && n + THREADS_NEEDED > most)
                        return found(r, "its control group %s has %" PRIu64 " of %" PRIu64 " "
                                     "threads (pids.max), and the agent needs %u more",
                                     group, n, most, THREADS_NEEDED);
                slash = strrchr(group, '/');
                if (!slash || slash < group + strlen("/sys/fs/cgroup"))
                        return 0;
                *slash = 0;
        }
}

int ls_risks_check(const struct ls_subject *t, const char *status, uint64_t memory, unsigned how)
{
        static int (*const risks[])(struct risk *r) = {
                sandbox, locked_memory, address_space, user_processes, group_processes,
        };
        const unsigned n = sizeof(risks) / sizeof(*risks);
        int err = 0;

        for (unsigned i = 0; i < n && (!err || how & LS_SUBJECT_ALL); i++) {
                struct risk r = { .t = t, .status = status, .memory = memory };

                if (!risks[i](&r))
                        continue;
                if (how & LS_SUBJECT_FORCE) {
                        ls_warning("%d (%s): %s", (int)t->pid, t->name, r.text);
                } else {
                        ls_error("cannot attach to %d (%s) without a risk: %s; --force does it all "
                                 "the same", (int)t->pid, t->name, r.text);
                        err = -EPERM;
                }
        }
        return err;
}
