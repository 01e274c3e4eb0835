/* The agent's first and last steps in a program: the constructor maps the recorder's memory, takes the agent's traces
 * out of the environment, and patches LuaJIT's entries; the destructor says that the process ended. Prints nothing
 * and keeps errno; what fails leaves the program unrecorded and otherwise alone. */
#include "libsample/real.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "libsample/agent.h"
#include "libsample/handler/tick.h"
#include "libsample/thread.h"
#include "libsample/inject/objects.h"
#include "libsample/interpose.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define PAGE 4096u
#define MAX_RINGS 4096u
#define MAX_TOTAL (UINT64_C(1) << 34)
#define MAX_INTERVAL_NS UINT64_C(60000000000)

struct ls_agent ls_agent;
struct ls_preload ls_preload;

int ls_in_recorded_process(void)
{
        return getpid() == ls_agent.pid;
}

/* Is this the control page of the recorder that started this process? size: of the file. */
static int header_ok(const struct ls_shm *shm, uint64_t size, uint64_t generation)
{
        uint64_t rings;

        if (shm->magic != LS_SHM_MAGIC || shm->version != LS_SHM_VERSION || shm->generation != generation ||
            shm->root_pid != (uint32_t)getpid())
                return 0;
        if (shm->total_size > size || shm->total_size > MAX_TOTAL || shm->total_size < LS_SHM_RINGS)
                return 0;
        if (shm->ring_count == 0 || shm->ring_count > MAX_RINGS || shm->ring_stride % PAGE != 0 ||
            shm->ring_stride > MAX_TOTAL)
                return 0;
        if (shm->ring_size < PAGE || (shm->ring_size & (shm->ring_size - 1)) != 0 ||
            LS_RING_DATA + (uint64_t)shm->ring_size > shm->ring_stride)
                return 0;
        rings = shm->ring_stride * shm->ring_count;
        return rings <= shm->total_size - LS_SHM_RINGS && shm->interval_ns != 0 &&
               shm->interval_ns <= MAX_INTERVAL_NS && shm->timer <= LS_TIMER_CPUTIME &&
               shm->scope <= LS_SCOPE_NONE;
}

/* Maps the memory of a valid recorder; no descriptor stays open. NULL when there is none for this process. */
static struct ls_shm *map_memory(const struct ls_env_memory *memory)
{
        char path[64];
        struct ls_shm header, *shm = NULL;
        const struct ls_ring *ring;
        struct stat st;
        int fd, seals;

        snprintf(path, sizeof path, "/proc/%d/fd/%d", memory->pid, memory->fd);
        fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return NULL;
        /* memory that can shrink would kill the program with SIGBUS */
        seals = fcntl(fd, F_GET_SEALS);
        if (seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
            pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
            header_ok(&header, (uint64_t)st.st_size, memory->generation)) {
                shm = mmap(NULL, (size_t)header.total_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                if (shm == MAP_FAILED)
                        shm = NULL;
        }
        close(fd);
        if (!shm)
                return NULL;
        ring = (const struct ls_ring *)((const char *)shm + LS_SHM_RINGS);
        if (ring->size != header.ring_size) {
                munmap(shm, (size_t)header.total_size);
                return NULL;
        }
        madvise(shm, (size_t)header.total_size, MADV_DONTDUMP);
        return shm;
}

/* The word that tells this process from its forked children, raw clone included: the kernel zeroes its page there. */
static volatile uint64_t *make_generation(uint64_t generation)
{
        uint64_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (page == MAP_FAILED)
                return NULL;
        if (madvise(page, PAGE, MADV_WIPEONFORK) < 0) {
                munmap(page, PAGE);
                return NULL;
        }
        *page = generation;
        return page;
}

static void after_fork_child(void)
{
        if (!ls_agent.shm)
                return;
        atomic_fetch_add(&ls_agent.shm->forks, 1);
        ls_signals_after_fork();
        ls_engine_after_fork_child();
}

/* An image before this one in the same process had threads, of which none is left but the first. */
static void leave_from_image_before(struct ls_shm *shm)
{
        for (unsigned i = 0; i < shm->ring_count; i++) {
                struct ls_ring *ring = (struct ls_ring *)((char *)shm + LS_SHM_RINGS + i * shm->ring_stride);

                atomic_store(&ring->armed, 0);
                atomic_store(&ring->thread, 0);
                if (i == 0)
                        atomic_store(&ring->tid, 0);
                else if (atomic_load(&ring->tid))
                        atomic_store(&ring->closing, 1);
        }
}

static void start(const struct ls_env_memory *memory)
{
        volatile uint64_t *generation = make_generation(memory->generation);
        struct ls_shm *shm = generation ? map_memory(memory) : NULL;

        if (!shm) {
                if (generation)
                        munmap((void *)(uintptr_t)generation, PAGE);
                return;
        }
        ls_agent.pid = (int)shm->root_pid;
        ls_agent.generation = generation;
        ls_agent.shm = shm;
        ls_signals_start(memory->after_exec != 'e');
        pthread_atfork(NULL, NULL, after_fork_child);
        leave_from_image_before(shm);
        atomic_store(&shm->view, 0);
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
