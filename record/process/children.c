/* Children of the program that ran LuaJIT: see children.h. */
#include "record/process/children.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "formats/wire/clock.h"
#include "record/process/proc.h"
#include "record/worker/worker.h"

#define NOTICES_MAX 16
#define WALK_MAX 64                     /* processes of one walk */
#define LOOKS_NS 1000000000u            /* of time for looks at files, and then one in so many: */
#define LOOKS_SHARE 50

/* All that looks at files may take, so that no program can make us do nothing else. */
static int may_look(struct ls_children *c, uint64_t now)
{
        if (!c->since_ns)
                c->since_ns = now;
        if (c->looked_ns < LOOKS_NS + (now - c->since_ns) / LOOKS_SHARE)
                return 1;
        if (!c->unseen++)
                c->notice(c->ctx, "more programs were run than could be looked at for LuaJIT");
        return 0;
}

static int runs_luajit(struct ls_children *c, struct ls_worker *w, const char *path)
{
        uint64_t began = ls_clock_ns(CLOCK_MONOTONIC);
        int runs;

        if (!may_look(c, began))
                return 0;
        runs = ls_worker_has_luajit(w, path);
        c->looked_ns += ls_clock_ns(CLOCK_MONOTONIC) - began;
        return runs;
}

/* Its entry in known; a new one with told 0 if there is none. */
static unsigned find(struct ls_children *c, pid_t pid)
{
        unsigned i;

        for (i = 0; i < LS_CHILDREN_KNOWN; i++)
                if (c->known[i].pid == pid)
                        return i;
        i = c->next;
        c->next = (c->next + 1) % LS_CHILDREN_KNOWN;
        memset(&c->known[i], 0, sizeof(c->known[i]));
        c->known[i].pid = pid;
        return i;
}

static void tell(struct ls_children *c, pid_t pid)
{
        unsigned i = find(c, pid);
        char text[96];

        if (c->known[i].told++ || c->found++ >= NOTICES_MAX)
                return;
        snprintf(text, sizeof(text), c->following ? "pid %d ran LuaJIT; it could not be followed" :
                 "pid %d ran LuaJIT; not followed", (int)pid);
        c->notice(c->ctx, text);
}

/* What it ran is the program's word: so are its number and the path, which the program's own worker
 * looks at. */
static void look_at_slot(struct ls_children *c, pid_t pid, const char *path, struct ls_worker *w)
{
        char joined[PATH_MAX];
        int runs;

        if (*path == '/' || !strchr(path, '/')) {
                runs = runs_luajit(c, w, path);
        } else {
                /* The child's own directory while it lives, else where the program started. */
                snprintf(joined, sizeof(joined), "/proc/%d/cwd/%s", (int)pid, path);
                runs = runs_luajit(c, w, joined);
                snprintf(joined, sizeof(joined), "%s/%s", c->cwd, path);
                runs = runs || runs_luajit(c, w, joined);
        }
        if (runs)
                tell(c, pid);
}

void ls_children_poll(struct ls_children *c, struct ls_shm *shm, struct ls_worker *w)
{
        for (unsigned i = 0; i < LS_CHILD_SLOTS; i++) {
                struct ls_child_exec *slot = &shm->children[i];
                uint32_t pid = atomic_load_explicit(&slot->pid, memory_order_acquire);
                char path[LS_CHILD_PATH + 1];

                if (!pid)
                        continue;
                memcpy(path, slot->path, LS_CHILD_PATH);
                path[LS_CHILD_PATH] = 0;
                atomic_store_explicit(&slot->pid, 0, memory_order_release);
                if (pid <= INT_MAX)
                        look_at_slot(c, (pid_t)pid, path, w);
        }
}

static void look_at_process(struct ls_children *c, pid_t pid)
{
        unsigned i = find(c, pid);
        struct stat st;
        char exe[LS_PROC_PATH], path[PATH_MAX];

        if (c->known[i].told || stat(ls_proc_path(exe, pid, 0, "exe"), &st) < 0 ||
            (c->known[i].dev == st.st_dev && c->known[i].ino == st.st_ino))
                return;
        /* It may be about to say that it is there. */
        if (c->following && (c->is_recorded(c->ctx, pid) || !c->known[i].seen++))
                return;
        c->known[i].dev = st.st_dev;
        c->known[i].ino = st.st_ino;
        /* By its name: a worker may not look at another process's descriptors. */
        if (ls_proc_link(pid, "exe", path, sizeof(path)) > 0 &&
            runs_luajit(c, ls_workers_of(c->workers, pid, NULL), path))
                tell(c, pid);
}

/* Appends the children of pid's main thread to pids. Threads that start processes are left to the
 * agent. */
static unsigned add_children(pid_t pid, pid_t *pids, unsigned n)
{
        FILE *f = ls_proc_file(pid, pid, "children");

        while (f && n < WALK_MAX && fscanf(f, "%d", &pids[n]) == 1)
                n++;
        if (f)
                fclose(f);
        return n;
}

void ls_children_walk(struct ls_children *c, pid_t pid)
{
        pid_t pids[WALK_MAX];
        unsigned n = add_children(pid, pids, 0);

        for (unsigned i = 0; i < n; i++) {
                look_at_process(c, pids[i]);
                n = add_children(pids[i], pids, n);
        }
}
