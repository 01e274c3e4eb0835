/* What makes a process a recorded one: the memory that the recorder shares with it. The program
 * itself finds its own at start; a child, made by fork or started by exec, takes a seat in the
 * recorder's registry when it has or is to have a Lua VM, and is left alone otherwise. Called by
 * preload.c, interpose/library.c and thread.c. */
#include "libsample/libc/real.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "libsample/agent.h"
#include "libsample/attach/attached.h"
#include "libsample/handler/clock.h"
#include "libsample/handler/tick.h"
#include "libsample/interpose/interpose.h"
#include "libsample/pages.h"
#include "libsample/recording/mappings.h"
#include "libsample/recording/share.h"
#include "libsample/recording/threads.h"
#include "libsample/thread.h"
#include "libsample/vm/life.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define PAGE 4096u

struct ls_agent ls_agent;

static struct ls_registry *registry;    /* NULL = children are not followed, or it cannot be
                                         * mapped */
static pid_t refused;                   /* the process that found no memory: it asks no more */
int ls_process_has_left;
static int forgotten;                   /* in a forked child: what the parent's threads and locks
                                         * were is forgotten */

/* The word that tells this process from its forked children, raw clone included: the kernel zeroes
 * its page there. */
volatile uint64_t *ls_process_make_generation(void)
{
        uint64_t *page = mmap(ls_pages_place(PAGE), PAGE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (page == MAP_FAILED)
                return NULL;
        if (madvise(page, PAGE, MADV_WIPEONFORK) < 0) {
                munmap(page, PAGE);
                return NULL;
        }
        return page;
}

/* This process is not the one that the memory is of: no other thread of that is here. */
static void forget_parent(void)
{
        if (forgotten)
                return;
        forgotten = 1;
        ls_mappings_after_fork();
        ls_vm_library_after_fork();
        ls_engine_after_fork_child();
}

void ls_process_child_comes(int n)
{
        if (registry)
                atomic_fetch_add(&registry->coming, n);
}

/* comes: this process may yet be recorded, and the recorder should wait for it; 0 = it is by now,
 * or will not be. */
static void note_comer(int comes)
{
        uint64_t pid = (uint64_t)(uint32_t)getpid(), old, oldest = UINT64_MAX;
        _Atomic uint64_t *at = NULL;

        for (unsigned i = 0; registry && i < LS_COMERS; i++) {
                old = atomic_load(&registry->comers[i]);
                if ((uint32_t)old == pid) {     /* this process's, from before an exec */
                        atomic_store(&registry->comers[i], 0);
                        old = 0;
                }
                if (old < oldest) {
                        at = &registry->comers[i];
                        oldest = old;
                }
        }
        if (at && comes)
                atomic_store(at, (ls_now_ns() / 1000000u) << 32 | pid);
}

void ls_process_child_is_here(void)
{
        if (ls_process_may_join())
                note_comer(1);
        ls_process_child_comes(-1);
}

/* The recorder waits a moment for children when the program ends: one that was forked just before
 * may not have run yet. */
static void before_fork(void)
{
        if (ls_process_has_left)
                return;
        ls_process_child_comes(1);
        ls_attach_fork_begins();
}

static void after_fork_child(void)
{
        ls_popen_after_fork();
        if (ls_process_has_left)
                return;
        if (ls_agent.shm && !ls_attach_has_left()) {
                atomic_fetch_add(&ls_agent.shm->forks, 1);
                ls_signals_after_fork();
                forgotten = 0;
                forget_parent();
                ls_attach_tell_of_child();
                ls_attach_after_fork_child();
                /* One that has no VM may be about to exec: it joins when it makes one. */
                if (ls_engine_may_go_on())
                        ls_process_join();
        }
        ls_process_child_is_here();
}

void ls_process_watch_forks(void)
{
        static int watches;

        if (!watches)
                pthread_atfork(before_fork, NULL, after_fork_child);
        watches = 1;
}

static void follow(const struct ls_env_memory *where)
{
        if (!registry)
                registry = ls_share_map_registry(where);
        if (registry)
                ls_preload.registry = *where;
        ls_process_watch_forks();
}

/* The first use of the memory. */
static void begin(struct ls_shm *shm, size_t mapped, const struct ls_env_memory *memory,
                  int may_be_ignored)
{
        struct ls_env_memory where = { memory->pid, shm->registry_fd, shm->registry_generation,
                                       'c' };

        ls_agent.pid = (int)shm->root_pid;
        *ls_agent.generation = memory->generation;
        ls_agent.shm = shm;
        ls_tick_recorder = (pid_t)shm->recorder_pid;
        ls_agent.mapped = mapped;
        ls_preload.where = *memory;
        ls_preload.where.after_exec = 0;
        follow(&where);
        forgotten = 0;
        luasample_attach_status.pid = shm->root_pid;
        luasample_attach_status.preloaded = 1;
        luasample_attach_status.heartbeat_at = (uintptr_t)&shm->heartbeat_ns;
        ls_signals_start(may_be_ignored);
        atomic_store(&shm->view, 0);
        atomic_store(&shm->agent_state, LS_AGENT_LOADED);
        atomic_fetch_add(&shm->execs, 1);
        ls_thread_begin(0);
}

/* An image before this one in the same process had threads, of which none is left but the first. */
static void leave_from_image_before(struct ls_shm *shm, size_t mapped)
{
        for (unsigned i = 0; i < atomic_load(&shm->rings_used) && ls_share_has(shm, mapped, i);
             i++) {
                struct ls_ring *ring =
                        (struct ls_ring *)((char *)shm +
                                           ls_ring_offset(shm->ring_size, shm->ring_stride, i));

                atomic_store(&ring->armed, 0);
                atomic_store(&ring->thread, 0);
                if (i == 0)
                        atomic_store(&ring->tid, 0);
                else if (atomic_load(&ring->tid))
                        atomic_store(&ring->closing, 1);
        }
}

void ls_process_start(const struct ls_env_memory *memory)
{
        struct ls_shm *shm;
        size_t mapped;

        if (memory->after_exec == 'c') {
                follow(memory);
                return;
        }
        ls_agent.generation = ls_process_make_generation();
        shm = ls_agent.generation ? ls_share_map(memory, (uint32_t)getpid(), &mapped) : NULL;
        if (!shm)
                return;
        leave_from_image_before(shm, mapped);
        begin(shm, mapped, memory, memory->after_exec != 'e');
}

int ls_process_may_join(void)
{
        return !ls_process_has_left && ls_preload.registry.pid && refused != getpid() &&
               (!ls_agent.shm || !*ls_agent.generation);
}

/* The traces that its VMs have compiled are those of the parent: the recorder knows them
 * already. */
static void name_parent(const struct ls_shm *old, struct ls_shm *shm)
{
        if (!old)
                return;
        shm->parent_generation = old->generation;
        shm->parent_jit_ids = ls_engine_jit_ids();
}

static struct ls_shm *take_memory(struct ls_env_memory *ret_memory, size_t *ret_mapped)
{
        if (!ls_agent.generation)
                ls_agent.generation = ls_process_make_generation();
        if (!ls_agent.generation ||
            ls_share_take_seat(registry, ls_preload.registry.pid, ret_memory) < 0)
                return NULL;
        return ls_share_map(ret_memory, 0, ret_mapped);
}

int ls_process_join(void)
{
        int saved = errno;
        struct ls_shm *old = ls_agent.shm, *shm;
        size_t old_mapped = ls_agent.mapped, mapped;
        struct ls_env_memory memory;
        uint64_t began = ls_thread_cpu_ns();

        if (!ls_process_may_join())
                return ls_agent_live();
        shm = take_memory(&memory, &mapped);
        note_comer(0);
        if (!shm) {
                refused = getpid();
                errno = saved;
                return 0;
        }
        if (old)
                forget_parent();
        name_parent(old, shm);
        snprintf(shm->command, sizeof shm->command, "%s", program_invocation_short_name);
        atomic_store(&shm->root_pid, (uint32_t)getpid());
        begin(shm, mapped, &memory, 1);
        ls_threads_in_child();
        ls_share_ring_bell(registry);
        ls_mappings_send();
        ls_engine_go_on();
        /* No memory is shared with the parent any more. */
        if (old && ls_threads_leave_parent())
                munmap(old, old_mapped);
        if (old)                        /* else it is in the constructor's time */
                atomic_fetch_add(&shm->own_start_ns, ls_thread_cpu_ns() - began);
        errno = saved;
        return 1;
}

void ls_process_leave(int quiet)
{
        struct sigaction ignore = { .sa_handler = SIG_IGN };

        if (quiet)
                ls_signals_end();
        else
                ls_libc()->sigaction(LS_TICK_SIGNAL, &ignore, NULL);
        ls_process_has_left = 1;
        *ls_agent.generation = 0;
}
