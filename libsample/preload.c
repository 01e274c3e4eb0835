/* The agent's first and last steps in a program: the constructor maps the recorder's memory, takes the agent's traces
 * out of the environment, and patches LuaJIT's entries; the destructor says that the process ended. Prints nothing
 * and keeps errno; what fails leaves the program unrecorded and otherwise alone. */
#include "libsample/real.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "libsample/agent.h"
#include "libsample/attach.h"
#include "libsample/handler/tick.h"
#include "libsample/thread.h"
#include "libsample/inject/objects.h"
#include "libsample/interpose.h"
#include "libsample/shared.h"

struct ls_agent ls_agent;
struct ls_preload ls_preload;

int ls_in_recorded_process(void)
{
        return getpid() == ls_agent.pid;
}

/* Maps the memory of the recorder that the environment names; no descriptor stays open. NULL when there is none for this
 * process. */
static struct ls_shm *map_memory(const struct ls_env_memory *memory)
{
        char path[64];
        struct ls_shm *shm;
        int fd;

        snprintf(path, sizeof path, "/proc/%d/fd/%d", memory->pid, memory->fd);
        fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return NULL;
        shm = ls_shared_map(fd, memory->generation, NULL, 0);
        close(fd);
        return shm;
}

static void after_fork_child(void)
{
        if (!ls_agent.shm)
                return;
        atomic_fetch_add(&ls_agent.shm->forks, 1);
        ls_signals_after_fork();
        ls_engine_after_fork_child();
        ls_attach_after_fork_child();
}

void ls_preload_watch_forks(void)
{
        pthread_atfork(NULL, NULL, after_fork_child);
}

/* An image before this one in the same process had threads, of which none is left but the first. */
static void leave_from_image_before(struct ls_shm *shm)
{
        for (unsigned i = 0; i < shm->ring_count; i++) {
                struct ls_ring *ring = (struct ls_ring *)((char *)shm + LS_SHM_RINGS + i * shm->ring_stride);

                atomic_store(&ring->armed, 0);
                if (i == 0)
                        atomic_store(&ring->tid, 0);
                else if (atomic_load(&ring->tid))
                        atomic_store(&ring->closing, 1);
        }
}

static void start(const struct ls_env_memory *memory)
{
        volatile uint64_t *generation = ls_shared_generation(memory->generation);
        struct ls_shm *shm = generation ? map_memory(memory) : NULL;

        if (!shm) {
                ls_shared_generation_free(generation);
                return;
        }
        ls_agent.pid = (int)shm->root_pid;
        ls_agent.generation = generation;
        ls_agent.shm = shm;
        luasample_attach_status.pid = shm->root_pid;
        luasample_attach_status.preloaded = 1;
        luasample_attach_status.heartbeat_at = (uintptr_t)&shm->heartbeat_ns;
        ls_signals_start(memory->after_exec != 'e');
        ls_preload_watch_forks();
        leave_from_image_before(shm);
        atomic_store(&shm->agent_state, LS_AGENT_LOADED);
        atomic_fetch_add(&shm->execs, 1);
        ls_thread_begin(0);
        ls_vm_library_scan(1);
}

__attribute__((constructor(101))) static void come_up(void)
{
        int saved = errno;
        uint64_t began = ls_now_ns();
        struct ls_object self;
        struct ls_env_memory memory;
        char text[LS_ENV_MEMORY_MAX];

        ls_libc_resolve();
        if (ls_object_of_address(&ls_preload, &self) && strlen(self.path) < sizeof ls_preload.library)
                strcpy(ls_preload.library, self.path);
        if (ls_attach_is_way_of(ls_preload.library)) {  /* the environment may be changing now */
                errno = saved;
                return;
        }
        ls_env_remove_agent(environ, ls_preload.library, text);
        if (ls_env_memory_parse(text, &memory) == 0) {
                ls_preload.where = memory;
                start(&memory);
        }
        if (ls_agent.shm)
                atomic_fetch_add(&ls_agent.shm->own_start_ns, ls_now_ns() - began);
        errno = saved;
}

__attribute__((destructor(101))) static void process_ends(void)
{
        int saved = errno;

        if (ls_agent.shm && ls_agent_live() && ls_in_recorded_process()) {
                ls_mappings_send();
                ls_engine_process_end();
        }
        errno = saved;
}
