/* See list.h. */
#include "record/attach/list.h"
#include "cli/command.h"
#include "record/process/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct list {
        pid_t *pids;
        unsigned n;
};

static int add(struct list *l, pid_t pid)
{
        for (unsigned i = 0; i < l->n; i++)
                if (l->pids[i] == pid)
                        return 0;
        if (l->n == LS_ATTACH_MOST) {
                ls_error("more than %u processes cannot be recorded at once; name fewer",
                         LS_ATTACH_MOST);
                return -E2BIG;
        }
        l->pids[l->n++] = pid;
        return 0;
}

static int add_numbers(struct list *l, const char *text)
{
        const char *p = text;
        int err = 0;

        while (err == 0) {
                char *end;
                long pid;

                errno = 0;
                pid = strtol(p, &end, 10);
                if (end == p || errno || pid <= 0 || pid > INT_MAX || (*end && *end != ',')) {
                        ls_error("-p %s: not a process id, or a list such as 1234,1235", text);
                        return -EINVAL;
                }
                err = add(l, (pid_t)pid);
                if (!*end)
                        break;
                p = end + 1;
        }
        return err;
}

/* The last part of the path that the process was made from, without what the kernel adds when it
 * was replaced. */
static void program_of(pid_t pid, char *to, size_t size)
{
        char exe[PATH_MAX], *slash;
        ssize_t n = ls_proc_link(pid, "exe", exe, sizeof(exe));

        if (n > 10 && !strcmp(exe + n - 10, " (deleted)"))
                exe[n - 10] = 0;
        slash = strrchr(exe, '/');
        snprintf(to, size, "%s", slash ? slash + 1 : exe);
}

static int is_named(pid_t pid, const char *name)
{
        char comm[64], program[PATH_MAX];

        ls_proc_read(pid, 0, "comm", comm, sizeof(comm));
        comm[strcspn(comm, "\n")] = 0;
        program_of(pid, program, sizeof(program));
        return *comm && (!strcmp(comm, name) || !strcmp(program, name));
}

static int add_named(struct list *l, const char *name)
{
        DIR *dir = opendir("/proc");
        unsigned before = l->n;
        struct dirent *e;
        int err = 0;

        while (dir && err == 0 && (e = readdir(dir))) {
                pid_t pid = isdigit((unsigned char)e->d_name[0])
                                    ? (pid_t)strtol(e->d_name, NULL, 10)
                                    : 0;

                if (pid > 0 && pid != getpid() && is_named(pid, name))
                        err = add(l, pid);
        }
        if (dir)
                closedir(dir);
        if (err == 0 && l->n == before) {
                ls_error("--name %s: no process has this name", name);
                return -ESRCH;
        }
        return err;
}

static FILE *open_procs(const char *group)
{
        static const char *const roots[] = { "/sys/fs/cgroup/", "/sys/fs/cgroup/unified/",
                                             "/sys/fs/cgroup/systemd/" };
        char path[PATH_MAX];
        FILE *f = NULL;

        if (!strncmp(group, "/sys/fs/cgroup/", 15)) {
                snprintf(path, sizeof(path), "%s/cgroup.procs", group);
                return fopen(path, "re");
        }
        for (unsigned i = 0; i < sizeof(roots) / sizeof(*roots) && !f; i++) {
                snprintf(path, sizeof(path), "%s%s/cgroup.procs", roots[i], group);
                f = fopen(path, "re");
        }
        return f;
}

static int add_cgroup(struct list *l, const char *group)
{
        unsigned before = l->n;
        int err = 0, pid;
        FILE *f = open_procs(group);

        if (!f) {
                ls_error("--cgroup %s: %s; give the path below /sys/fs/cgroup", group,
                         strerror(errno));
                return -ENOENT;
        }
        while (err == 0 && fscanf(f, "%d", &pid) == 1)
                if (pid > 0 && pid != getpid())
                        err = add(l, (pid_t)pid);
        fclose(f);
        if (err == 0 && l->n == before) {
                ls_error("--cgroup %s: no process is in it", group);
                return -ESRCH;
        }
        return err;
}

int ls_attach_list(const struct ls_record_options *o, pid_t ret[LS_ATTACH_MOST])
{
        struct list l = { ret, 0 };
        int err = 0;

        if (o->attach_pids)
                err = add_numbers(&l, o->attach_pids);
        if (err == 0 && o->attach_name)
                err = add_named(&l, o->attach_name);
        if (err == 0 && o->attach_cgroup)
                err = add_cgroup(&l, o->attach_cgroup);
        return err < 0 ? err : (int)l.n;
}
