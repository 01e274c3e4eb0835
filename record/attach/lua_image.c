/* The LuaJIT in a process that runs already: see lua_image.h. */
#include "record/attach/lua_image.h"

#include <elf.h>
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
#include "libsample/inject/elf_file.h"
#include "libsample/inject/inspect.h"
#include "record/process/agent_path.h"
#include "record/process/proc.h"
#include "record/worker/confine.h"
#include "record/worker/worker.h"

#define PROBE_MS 10000
#define END_MS 100
#define PHDRS_MOST 64u

struct mapped { unsigned long low, high, offset; char rights[8], path[PATH_MAX]; };

static int parse(const char *line, struct mapped *m)
{
        int at = 0;

        m->path[0] = 0;
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %n", &m->low, &m->high, m->rights, &m->offset, &at) < 4 || !at)
                return -EINVAL;
        snprintf(m->path, sizeof(m->path), "%s", line + at);
        m->path[strcspn(m->path, "\n")] = 0;
        return 0;
}

/* The mapped file itself, whatever has its name now; where that needs a right that we have not, by its name. */
static int open_mapped(pid_t pid, const struct mapped *m, struct stat *ret_st)
{
        char path[PATH_MAX + 64];
        int fd;

        if (!pid)                       /* it has ended */
                return ls_open_regular(m->path, ret_st);
        snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", (int)pid, m->low, m->high);
        fd = ls_open_regular(path, ret_st);
        if (fd >= 0)
                return fd;
        snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, m->path);
        return ls_open_regular(path, ret_st);
}

/* The address that the file asks its first byte to be loaded at: 0 but for programs at fixed addresses. */
static int wanted_address(int fd, uint64_t *ret)
{
        Elf64_Ehdr eh;
        Elf64_Phdr ph[PHDRS_MOST];
        unsigned n;

        if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) || eh.e_phentsize != sizeof(*ph))
                return -EINVAL;
        n = eh.e_phnum < PHDRS_MOST ? eh.e_phnum : PHDRS_MOST;
        if (pread(fd, ph, n * sizeof(*ph), (off_t)eh.e_phoff) != (ssize_t)(n * sizeof(*ph)))
                return -EINVAL;
        for (unsigned i = 0; i < n; i++)
                if (ph[i].p_type == PT_LOAD) {
                        *ret = ph[i].p_vaddr - ph[i].p_offset;
                        return 0;
                }
        return -EINVAL;
}

/* Whether a file holds the LuaJIT. Returns 1 and keeps it open in ret. */
static int look_at(pid_t pid, const struct mapped *m, uint64_t start, struct ls_lua_image *ret)
{
        struct ls_elf_facts facts;
        struct stat st;
        uint64_t wanted;
        int fd = open_mapped(pid, m, &st);

        if (fd < 0)
                return 0;
        if (ls_elf_inspect(fd, (uint64_t)st.st_size, &facts) == 0 &&
            facts.exports_lua_newstate && wanted_address(fd, &wanted) == 0) {
                snprintf(ret->path, sizeof(ret->path), "%s", m->path);
                if (ls_elf_contains(fd, (uint64_t)st.st_size, "luaJIT_setmode")) {
                        ret->base = start - wanted;
                        ret->is_program = *facts.interpreter != 0;
                        ret->fd = fd;
                        ret->other_lua = 0;
                        return 1;
                }
                ret->other_lua = 1;
        }
        close(fd);
        return 0;
}

int ls_lua_image_find(pid_t pid, FILE *f, struct ls_lua_image *ret)
{
        static struct mapped m;
        char line[PATH_MAX + 128], last[PATH_MAX] = "";
        uint64_t start = 0;             /* of the file's first byte */
        int found = 0;

        *ret = (struct ls_lua_image){ .fd = -1 };
        if (!f)
                return errno == ENOENT ? -ESRCH : -errno;
        while (!found && fgets(line, sizeof(line), f)) {
                if (parse(line, &m) || m.path[0] != '/')
                        continue;
                if (strcmp(m.path, last))
                        start = m.low - m.offset;
                snprintf(last, sizeof(last), "%s", m.path);
                if (m.rights[2] == 'x')
                        found = look_at(pid, &m, start, ret);
        }
        fclose(f);
        return found ? 0 : -ENOENT;
}

void ls_lua_image_done(struct ls_lua_image *image)
{
        if (image->fd >= 0)
                close(image->fd);
        image->fd = -1;
}

static int same_namespace(pid_t pid)
{
        struct stat a, b;
        char path[LS_PROC_PATH];

        return stat(ls_proc_path(path, pid, 0, "ns/mnt"), &a) == 0 && stat("/proc/self/ns/mnt", &b) == 0 && a.st_ino == b.st_ino;
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

/* With whose rights code of the file may run. A core's says nothing that could be believed of who it was. */
static int choose_rights(const struct ls_lua_image *image, pid_t pid, int trust, struct ls_rights *ret)
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
        return ret->uid == 0 && geteuid() == 0 && !same_namespace(pid) ? -EXDEV : 0;
}

/* A program needs the loader and the libraries that are in its own root; to go there its /proc is needed as well. */
static int open_root(const struct ls_lua_image *image, pid_t pid, const struct ls_rights *r)
{
        int fd = pid && image->is_program ? ls_rights_open_root(pid, r) : -1;
        struct stat st;

        if (fd >= 0 && fstatat(fd, "proc/self/fd", &st, 0)) {
                close(fd);
                return -1;
        }
        return fd;
}

static pid_t start_probe(const struct ls_lua_image *image, pid_t pid, const struct ls_rights *r, int agent, int answer)
{
        const int fds[] = { image->fd, agent, answer, open_root(image, pid, r) };
        char uid[16], gid[16];
        const char *argv[] = { LS_WORKER_ARGV0, "probe", uid, gid, image->is_program ? "program" : "library",
                               fds[3] >= 0 ? "root" : "-", NULL };
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
        static struct ls_image what;    /* 8 KiB */
        struct ls_rights rights;
        char agent[PATH_MAX];
        int agent_fd, answer, err = choose_rights(image, pid, trust, &rights);
        pid_t child;

        if (err)
                return err;
        /* One that the agent does not come up in would run. */
        ls_image_inspect_fd(image->fd, NULL, 0, &what);
        if (image->is_program && !ls_image_preloadable(&what))
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
