/* The recorder's side of the registry: see registry.h. The page can be written by every recorded
 * process: of a seat only whether and by whom it is taken is read, and that is no more than a
 * claim. */
#include "record/registry.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/process/descriptors.h"

#define COME_NS 2000000000ull /* a process that has taken a seat is there by then, or never */
#define QUIET_NS 5000000ull             /* between two looks at a bell that never stops */

int ls_registry_init(struct ls_registry_side *r)
{
        void *map;

        r->fd = ls_memory_share(LS_REGISTRY_SIZE, &map);
        if (r->fd < 0)
                return r->fd;
        r->page = map;
        r->page->magic = LS_REGISTRY_MAGIC;
        r->page->version = LS_REGISTRY_VERSION;
        r->page->generation = r->generation = ls_memory_generation();
        r->page->recorder_pid = (uint32_t)getpid();
        r->page->nseats = LS_SEATS;
        return 0;
}

void ls_registry_announce(const struct ls_registry_side *r, struct ls_shm *shm)
{
        shm->registry_fd = r->fd;
        shm->registry_generation = r->generation;
}

/* A process that has no VM for so long will have none soon. */
#define COMER_MS 1000u

int ls_registry_expects(const struct ls_registry_side *r, uint64_t now_ns)
{
        if (atomic_load(&r->page->coming) > 0)
                return 1;
        for (unsigned i = 0; i < LS_COMERS; i++) {
                uint64_t comer = atomic_load(&r->page->comers[i]);
                pid_t pid = (pid_t)(uint32_t)comer;

                if (pid > 0 && (uint32_t)(now_ns / 1000000u) - (uint32_t)(comer >> 32) < COMER_MS &&
                    (kill(pid, 0) == 0 || errno == EPERM))
                        return 1;
        }
        return 0;
}

/* The main thread waits for descriptors, not for a futex. */
static void *listen_to_bell(void *arg)
{
        const struct timespec quiet = { 0, QUIET_NS };
        struct ls_registry_side *r = arg;
        uint32_t heard = 0;
        uint64_t one = 1;

        while (!atomic_load(&r->stop)) {
                uint32_t bell = atomic_load(&r->page->bell);

                if (bell == heard) {
                        syscall(SYS_futex, &r->page->bell, FUTEX_WAIT, bell, NULL, NULL, 0);
                        continue;
                }
                heard = bell;
                if (write(r->bell_fd, &one, sizeof(one)) < 0)
                        continue;       /* it is readable already */
                nanosleep(&quiet, NULL);
        }
        return NULL;
}

int ls_registry_open(struct ls_registry_side *r)
{
        sigset_t all, old;
        int err;

        r->bell_fd = ls_fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (r->bell_fd < 0)
                return -errno;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        err = pthread_create(&r->listener, NULL, listen_to_bell, r);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (err)
                return -err;
        r->listening = 1;
        atomic_store(&r->page->open, 1);
        return 0;
}

void ls_registry_close(struct ls_registry_side *r)
{
        if (r->page)
                atomic_store(&r->page->open, 0);
}

void ls_registry_done(struct ls_registry_side *r)
{
        ls_registry_close(r);
        if (r->listening) {
                atomic_store(&r->stop, 1);
                atomic_fetch_add(&r->page->bell, 1);
                syscall(SYS_futex, &r->page->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
                pthread_join(r->listener, NULL);
                r->listening = 0;
        }
        for (unsigned i = 0; i < LS_SEATS; i++) {
                if (r->seats[i].target)
                        ls_target_done(r->seats[i].target);
                free(r->seats[i].target);
                r->seats[i].target = NULL;
        }
        if (r->page)
                munmap(r->page, LS_REGISTRY_SIZE);
        r->page = NULL;
        if (r->fd >= 0)
                close(r->fd);
        if (r->bell_fd >= 0)
                close(r->bell_fd);
        r->fd = r->bell_fd = -1;
}

static struct ls_target *new_target(const struct ls_registry_side *r,
                                    const struct ls_record_options *o, enum ls_timer timer,
                                    uint64_t now_ns)
{
        struct ls_target *t = malloc(sizeof(*t));

        if (!t)
                return NULL;
        if (ls_target_init(t, o) < 0) {
                free(t);
                return NULL;
        }
        ls_registry_announce(r, t->memory.shm);
        t->memory.shm->timer = (uint8_t)timer;
        atomic_store(&t->memory.shm->heartbeat_ns, now_ns);
        atomic_store(&t->memory.shm->paused, (uint32_t)r->paused);
        atomic_store(&t->memory.shm->recording, 1);
        return t;
}

void ls_registry_refill(struct ls_registry_side *r, const struct ls_record_options *o,
                        enum ls_timer timer, uint64_t now_ns)
{
        atomic_store(&r->page->heartbeat_ns, now_ns);
        for (unsigned i = 0; i < LS_SEATS; i++) {
                struct ls_seat *seat = &r->page->seats[i];

                if (r->seats[i].target) {
                        atomic_store(&r->seats[i].target->memory.shm->heartbeat_ns, now_ns);
                        continue;
                }
                r->seats[i].target = new_target(r, o, timer, now_ns);
                r->seats[i].taken_ns = 0;
                if (!r->seats[i].target)
                        return;
                seat->fd = (uint32_t)r->seats[i].target->memory.fd;
                seat->generation = r->seats[i].target->memory.shm->generation;
                atomic_store(&seat->taken, LS_SEAT_READY);
        }
}

/* Takes the target from its seat, which is empty until the next refill. */
static struct ls_target *vacate(struct ls_registry_side *r, unsigned i)
{
        struct ls_target *t = r->seats[i].target;

        r->seats[i].target = NULL;
        atomic_store(&r->page->seats[i].taken, LS_SEAT_EMPTY);
        return t;
}

struct ls_target *ls_registry_next(struct ls_registry_side *r, uint64_t now_ns, pid_t *ret_pid)
{
        for (unsigned i = 0; i < LS_SEATS; i++) {
                struct ls_registry_seat *seat = &r->seats[i];
                uint64_t taken = atomic_load(&r->page->seats[i].taken);
                struct ls_target *t = seat->target;

                if (!t || taken == LS_SEAT_READY)
                        continue;
                if (!seat->taken_ns)
                        seat->taken_ns = now_ns;
                if (taken && taken <= INT_MAX && atomic_load(&t->memory.shm->root_pid) == taken) {
                        *ret_pid = (pid_t)taken;
                        return vacate(r, i);
                }
                if (now_ns - seat->taken_ns < COME_NS)
                        continue;       /* it is on its way */
                t = vacate(r, i);
                ls_target_done(t);
                free(t);
        }
        return NULL;
}
