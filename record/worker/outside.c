/* The workers that read a process's memory from outside (record/watch): they map what they
 * share with the recorder, give up all rights but to read what the broker hands to them, and then
 * look. Called by main.c. */
#include "record/worker/outside.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "record/watch/mirror.h"
#include "record/watch/now.h"
#include "record/watch/outside.h"
#include "record/watch/remote.h"
#include "record/watch/snapshot.h"
#include "record/worker/broker.h"
#include "record/worker/confine.h"

enum { SOCKET = 3, SHM = 4, OWN = 5 };                          /* of watch */
enum { NOW = 4, RINGS = 5, GO = 6, DONE = 7, ANSWER = 8, CORE = 9,
       OBJECTS = 10 };                                          /* of look */

static int open_its(void *ctx, pid_t tid, const char *name)
{
        (void)ctx;
        return ls_broker_open(SOCKET, tid, name);
}

static pid_t outer_id(pid_t pid, pid_t inner)
{
        (void)pid;
        return ls_broker_outer_id(SOCKET, inner);
}

static void *map(int fd, uint64_t size)
{
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        close(fd);
        return p;
}

/* The kernel may share processors out among sessions first, and this is one of its own: then the
 * session is moved. */
static void hurry(int nice)
{
        char text[16];
        int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC),
            n = snprintf(text, sizeof(text), "%d", nice);

        setpriority(PRIO_PROCESS, 0, nice);
        if (fd < 0)
                return;
        (void)!write(fd, text, (size_t)n);
        close(fd);
}

/* What wants rights comes first: a place before others, more descriptors, our own mappings. */
static int give_up(const char **argv, int nice)
{
        const struct ls_rights rights = { .uid = (uid_t)strtoul(argv[2], NULL, 10),
                                          .gid = (gid_t)strtoul(argv[3], NULL, 10) };
        int err = ls_mirror_prepare();

        hurry(nice);          /* it needs little, but in time; who may not have it does without */
        prctl(PR_SET_TIMERSLACK, 50000ul, 0, 0, 0);
        if (!err)
                err = ls_confine(&rights, -1, LS_CONFINE_MEMORY, 1);
        ls_remote_opener(open_its, NULL);
        return err;
}

/* watch UID GID: see struct ls_watch_start. */
int ls_worker_watch(int argc, const char **argv)
{
        struct ls_watch_start first;
        struct ls_shm *shm;
        char *own;

        if (argc != 4 || ls_broker_first(SOCKET, &first, sizeof(first)) < 0)
                return 1;
        shm = map(SHM, first.shm_size);
        own = map(OWN, first.own_size);
        if (shm == MAP_FAILED || own == MAP_FAILED || give_up(argv, -10) < 0 ||
            ls_broker_say_ready(SOCKET) < 0)
                return 1;
        ls_outside_watch(&(struct ls_outside){
                .shm = shm,
                .ring_size = first.ring_size,
                .own = own,
                .stride = first.stride,
                .rings = first.rings,
                .interval_ns = first.interval_ns,
                .pid = first.pid,
                .outer_id = outer_id,
                .threads = first.threads,
                .coroutines = first.coroutines
                                      ? (struct ls_ring *)(void *)(own + first.rings * first.stride)
                                      : NULL,
        });
}

/* Its threads are those of the core file. */
static int open_core(struct ls_now *now)
{
        static struct ls_core core;
        int err = ls_core_open_fd(CORE, &core);

        if (err)
                return err;
        ls_remote_of_core(&core);
        now->n_threads = core.n_threads < LS_NOW_THREADS ? core.n_threads : LS_NOW_THREADS;
        for (unsigned i = 0; i < now->n_threads; i++)
                ls_now_thread(&now->threads[i], core.threads[i].tid, 0, &core.threads[i].regs);
        return 0;
}

/* Copies as often as it is told to; then its answer is the time to write what it has, and the
 * pipe's end says that it has. */
static int look_at_heap(struct ls_now *now)
{
        char word = 0;

        do {
                if (read(GO, &word, 1) != 1)
                        return 1;
                if (word)
                        break;
                ls_snapshot_copy(now);
        } while (write(DONE, &word, 1) == 1);
        now->error = ls_snapshot_write(now, OBJECTS);
        close(OBJECTS);
        return write(DONE, &word, 1) == 1 && !now->error ? 0 : 1;
}

/* look UID GID: see struct ls_look_start. */
int ls_worker_look(int argc, const char **argv)
{
        struct ls_look_start first;
        struct ls_now *now;
        char word = 0;
        int err;

        if (argc != 4 || ls_broker_first(SOCKET, &first, sizeof(first)) < 0)
                return 1;
        now = map(NOW, sizeof(*now));
        if (now == MAP_FAILED)
                return 1;
        now->answer_fd = ANSWER;
        now->shm = map(RINGS, first.shm_size);
        if (now->shm == MAP_FAILED || (first.heap && ls_snapshot_reserve() < 0) ||
            give_up(argv, -20) < 0)
                return 1;
        err = first.is_core ? open_core(now) : ls_remote_of_process(now->pid);
        if (err)
                now->error = err;
        else
                ls_now_prepare(now);
        if (first.heap && !now->error)
                ls_snapshot_prepare(now);
        if (first.heap)
                return write(DONE, &word, 1) == 1 && !now->error ? look_at_heap(now) : 1;
        if (write(DONE, &word, 1) == 1 && !now->error && read(GO, &word, 1) == 1) {
                ls_now_look(now, first.search_ns, first.look_ns);
                return write(DONE, &word, 1) == 1 ? 0 : 1;
        }
        return 0;
}
