/* The LuaJIT in a process that runs already: see lua_image.h. */
#include "record/attach/lua_image.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "formats/wire/open_file.h"
#include "record/process/agent_path.h"
#include "record/process/proc.h"
#include "record/worker/confine.h"
#include "record/worker/worker.h"

#define PROBE_MS 10000
#define END_MS 100

struct mapped { unsigned long low, high, offset; char rights[8], path[PATH_MAX]; };

static int parse(const char *line, struct mapped *m)
{
        int at = 0;

        m->path[0] = 0;
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %n", &m->low, &m->high, m->rights, &m->offset,
                   &at) < 4 ||
            !at)
                return -EINVAL;
        snprintf(m->path, sizeof(m->path), "%s", line + at);
        m->path[strcspn(m->path, "\n")] = 0;
        return 0;
}

/* The mapped file itself, whatever has its name now; where that needs a right that we have not, by
 * its name. Seen, not opened: who opens it has the process's rights. */
static int see_mapped(pid_t pid, const struct mapped *m)
{
        char path[PATH_MAX + 64];
        struct stat st;
        int seen;

        if (!pid)                       /* it has ended */
                return ls_see_regular(m->path, &st);
        snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", (int)pid, m->low, m->high);
        seen = ls_see_regular(path, &st);
        if (seen >= 0)
                return seen;
        snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, m->path);
        return ls_see_regular(path, &st);
}

static int is_lua(const struct ls_object *o)
{
        return o->symbols[ls_object_symbol("lua_newstate")] != 0;
}

static int is_luajit(const struct ls_object *o)
{
        return is_lua(o) && o->symbols[ls_object_symbol("luaJIT_setmode")];
}

/* What the object with this mapping is: of a process that runs as it is in memory, of another as it
 * is in its file. file: that, by O_PATH. Returns 0 or -errno. */
static int ask(struct ls_worker *w, int memory, int file, uint64_t start, struct ls_object *ret)
{
        struct ls_object in_file;
        int err = memory >= 0 ? ls_worker_loaded(w, memory, start, ret)
                              : ls_worker_image(w, file, ret);

        if (!err && memory < 0)
                ret->bias = start - ret->bias;
        else if (!err && is_lua(ret) && !is_luajit(ret) &&
                 ls_worker_image(w, file, &in_file) == 0 && is_luajit(&in_file))
                ret->symbols[ls_object_symbol("luaJIT_setmode")] =
                        1; /* it is there without its symbol */
        return err;
}

/* Whether it holds the LuaJIT. Returns 1 and keeps its file open in ret. */
static int look_at(pid_t pid, struct ls_worker *w, int memory, const struct mapped *m,
                   uint64_t start, struct ls_lua_image *ret)
{
        struct ls_object object;
        int seen = see_mapped(pid, m), found = 0;

        if (seen < 0)
                return 0;
        if (ask(w, memory, seen, start, &object) == 0 && is_lua(&object)) {
                snprintf(ret->path, sizeof(ret->path), "%s", m->path);
                found = is_luajit(&object);
                ret->other_lua = !found;
        }
        if (!found) {
                close(seen);
                return 0;
        }
        ret->base = object.bias;
        ret->is_program = object.has_interpreter;
        ret->takes_agent = object.is_glibc && !object.sanitizer;
        ret->fd = seen;
        return 1;
}

static int find(pid_t pid, struct ls_worker *w, int memory, FILE *maps, struct ls_lua_image *ret)
{
        static struct mapped m;
        char line[PATH_MAX + 128], last[PATH_MAX] = "";
        uint64_t start = 0;             /* of the file's first byte */
        int found = 0;

        while (!found && fgets(line, sizeof(line), maps)) {
                if (parse(line, &m) || m.path[0] != '/')
                        continue;
                if (strcmp(m.path, last))
                        start = m.low - m.offset;
                snprintf(last, sizeof(last), "%s", m.path);
                if (m.rights[2] == 'x')
                        found = look_at(pid, w, memory, &m, start, ret);
        }
        return found ? 0 : -ENOENT;
}

int ls_lua_image_find(struct ls_workers *workers, pid_t pid, FILE *maps, struct ls_lua_image *ret)
{
        struct ls_worker *w = pid ? NULL : ls_workers_of(workers, 0, NULL);
        int memory = -1, err = 0;

        *ret = (struct ls_lua_image){ .fd = -1 };
        if (!maps)
                return errno == ENOENT ? -ESRCH : -errno;
        if (pid) {
                memory = ls_workers_memory(workers, pid, &w);
                err = memory < 0 ? memory : 0;
        }
        if (!err)
                err = find(pid, w, memory, maps, ret);
        if (memory >= 0)
                close(memory);
        fclose(maps);
        return err;
}

/* Waits for a child for at most so long. */
static int wait_for(pid_t child)
{
        const struct timespec ms = { 0, 1000000 };
        int status;

        for (int i = 0; i < PROBE_MS; i++) {
                pid_t r = waitpid(child, &status, WNOHANG);

                if (r == child)
                        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ENOEXEC;
                if (r < 0)
                        return -errno;
                nanosleep(&ms, NULL);
        }
        ls_worker_end(child, END_MS, NULL);
        return -ETIME;
}

/* With whose rights code of the file may run. A core's says nothing that could be believed of who
 * it was. */
static int choose_rights(const struct ls_lua_image *image, pid_t pid, int trust,
                         struct ls_rights *ret)
{
        struct stat st;
        int err;

        if (!pid) {
                if (fstat(image->fd, &st))
                        return -errno;
                if (!trust && st.st_uid != 0 && st.st_uid != geteuid())
                        return -EKEYREJECTED;
                ls_rights_nobody(ret);
                return 0;
        }
        err = ls_rights_of(pid, ret);
        if (err)
                return err;
        if (ret->is_own && ret->uid != geteuid())
                return -EKEYREJECTED;
        return ret->uid == 0 && geteuid() == 0 && !ls_proc_shares(pid, "ns/mnt") ? -EXDEV : 0;
}

/* A program needs the loader and the libraries that are in its own root; to go there its /proc is
 * needed as well. What runs outside of the root that it had may not be who it was there: it would
 * reach that user's other files. Returns a descriptor, or -1. */
static int open_root(const struct ls_lua_image *image, pid_t pid, struct ls_rights *r)
{
        int fd = pid ? ls_rights_open_root(pid, r) : -1;
        struct stat st;

        if (fd >= 0 && image->is_program && fstatat(fd, "proc/self/fd", &st, 0) == 0)
                return fd;
        if (fd != -1)
                ls_rights_nobody(r);
        if (fd >= 0)
                close(fd);
        return -1;
}

static pid_t start_probe(const struct ls_lua_image *image, pid_t pid, struct ls_rights *r,
                         int agent, int answer)
{
        const int fds[] = { image->fd, agent, answer, open_root(image, pid, r) };
        char uid[16], gid[16];
        const char *argv[] = { LS_WORKER_ARGV0,
                               "probe",
                               uid,
                               gid,
                               image->is_program ? "program" : "library",
                               fds[3] >= 0 ? "root" : "-",
                               NULL };
        pid_t child;

        snprintf(uid, sizeof(uid), "%u", (unsigned)r->uid);
        snprintf(gid, sizeof(gid), "%u", (unsigned)r->gid);
        child = ls_worker_spawn(argv, NULL, fds, fds[3] >= 0 ? 4 : 3);
        if (fds[3] >= 0)
                close(fds[3]);
        return child;
}

int ls_lua_image_probe(const struct ls_lua_image *image, pid_t pid, int trust, int *ret_fd)
{
        struct ls_rights rights;
        char agent[PATH_MAX];
        int agent_fd, answer, err = choose_rights(image, pid, trust, &rights);
        pid_t child;

        if (err)
                return err;
        /* One that the agent does not come up in would run. */
        if (image->is_program && !image->takes_agent)
                return -ENOEXEC;
        err = ls_agent_path(agent, sizeof(agent));
        if (err)
                return err;
        agent_fd = open(agent, O_RDONLY | O_CLOEXEC);   /* another user may not see its directory */
        if (agent_fd < 0)
                return -errno;
        answer = memfd_create("luasample", MFD_CLOEXEC);
        if (answer < 0) {
                err = -errno;
                close(agent_fd);
                return err;
        }
        child = start_probe(image, pid, &rights, agent_fd, answer);
        close(agent_fd);
        err = child < 0 ? (int)child : wait_for(child);
        if (err)
                close(answer);
        else
                *ret_fd = answer;
        return err;
}
