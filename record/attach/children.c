/* See children.h. A number that stands in the memory is a claim: it counts when that process has
 * the memory mapped, and is no other user's, who was passed it. */
#include "record/attach/children.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/process/member.h"
#include "record/process/thread_ids.h"

#define SETTLE_NS 20000000ull           /* until a child that is to run another program does so */

static int is_one(pid_t pid, pid_t parent, uid_t uid, int memory_fd)
{
        return ls_member_has(pid, memory_fd) && ls_member_is_child(pid, parent, uid);
}

/* The process that knows itself by this number in its namespace, and has the memory of its parent.
 * 0 = it is gone. */
static pid_t find(pid_t parent, uid_t uid, const struct ls_memory *m, pid_t inner)
{
        struct dirent *e;
        pid_t found = 0;
        DIR *dir;

        if (ls_thread_inner_id(parent, parent) == parent)
                return is_one(inner, parent, uid, m->fd) ? inner : 0;
        dir = opendir("/proc");
        while (dir && !found && (e = readdir(dir))) {
                pid_t pid = isdigit((unsigned char)*e->d_name) ? (pid_t)strtol(e->d_name, NULL, 10)
                                                               : 0;

                if (pid > 0 && ls_thread_inner_id(pid, pid) == inner &&
                    is_one(pid, parent, uid, m->fd))
                        found = pid;
        }
        if (dir)
                closedir(dir);
        return found;
}

static void put(struct ls_attach_children *c, pid_t pid, pid_t parent, uid_t uid,
                const struct ls_memory *m, uint64_t due_ns)
{
        int fd = c->n < LS_ATTACH_CHILDREN ? fcntl(m->fd, F_DUPFD_CLOEXEC, 3) : -1;

        if (fd >= 0)
                c->waiting[c->n++] = (struct ls_attach_child){ pid, parent, uid, fd, due_ns };
        else
                c->lost++;
}

void ls_attach_children_take(struct ls_attach_children *c, pid_t parent, uid_t uid,
                             const struct ls_memory *m, uint64_t now_ns)
{
        for (unsigned i = 0; i < LS_FORK_SLOTS; i++) {
                _Atomic uint32_t *slot = &m->shm->forked[i];
                pid_t inner = atomic_load(slot) ? (pid_t)(atomic_exchange(slot, 0) & INT32_MAX) : 0;
                pid_t pid = inner ? find(parent, uid, m, inner) : 0;

                if (pid)
                        put(c, pid, parent, uid, m, now_ns + SETTLE_NS);
        }
        c->lost += atomic_exchange(&m->shm->forks_untold, 0);
}

pid_t ls_attach_children_next(struct ls_attach_children *c, uint64_t now_ns)
{
        while (c->n && c->waiting[0].due_ns <= now_ns) {
                struct ls_attach_child first = c->waiting[0];
                int is = is_one(first.pid, first.parent, first.uid, first.memory_fd);

                close(first.memory_fd);
                memmove(c->waiting, c->waiting + 1, --c->n * sizeof(c->waiting[0]));
                if (is)
                        return first.pid;
        }
        return 0;
}

uint64_t ls_attach_children_due(const struct ls_attach_children *c)
{
        return c->n ? c->waiting[0].due_ns : UINT64_MAX;
}
