/* A recorder with nothing but the agent's side of the job:
 *
 *   agent_run [-w] [-t helper|cputime|perf] [-i NS] [-o FILE] [-m TEXT] [-l NS] CMD...
 *
 * starts CMD with the library that AGENT_LIBRARY names, ticks it as rudely as it can (the helper signals a waiting
 * thread too), and writes to FILE what the shared memory said, one "key value" a line. -w: code may not be changed in
 * CMD (PR_SET_MDWE). -m: what stands in the agent's variable instead of the memory. -l: some signals of the
 * helper come so late after the look at what the agent wants. Ends with the program's status. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "formats/wire/shm.h"
#include "libsample/inject/environment.h"

#define RING_SIZE (1u << 20)
#define RINGS 8
#define TOTAL (LS_SHM_RINGS + RINGS * (LS_RING_DATA + RING_SIZE))

static struct ls_shm *shm;
static FILE *out;
static uint64_t sent, kinds[256];
static volatile int stopping;
static int write_protected;
static const char *memory_text;
static long late_ns;

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

static void die(const char *what)
{
        perror(what);
        exit(99);
}

static struct ls_ring *ring_at(unsigned i)
{
        return (struct ls_ring *)((char *)shm +
                                  ls_ring_offset(RING_SIZE, LS_RING_DATA + RING_SIZE, i));
}

static uint64_t now_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int make_memory(const char *timer, uint64_t interval_ns)
{
        int fd = memfd_create("agent_run", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0 || ftruncate(fd, TOTAL) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
                die("memfd");
        shm = mmap(NULL, TOTAL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (shm == MAP_FAILED)
                die("mmap");
        shm->magic = LS_SHM_MAGIC;
        shm->version = LS_SHM_VERSION;
        shm->generation = now_ns() | 1;
        shm->total_size = TOTAL;
        shm->ring_stride = LS_RING_DATA + RING_SIZE;
        shm->ring_size = shm->small_size = RING_SIZE;
        shm->ring_count = RINGS;
        shm->interval_ns = interval_ns;
        shm->timer = !strcmp(timer, "perf")      ? LS_TIMER_PERF
                     : !strcmp(timer, "cputime") ? LS_TIMER_CPUTIME
                                                 : LS_TIMER_HELPER;
        shm->recorder_pid = (uint32_t)getpid();
        atomic_store(&shm->recording, 1);
        atomic_store(&shm->heartbeat_ns, now_ns());
        for (unsigned i = 0; i < RINGS; i++)
                ring_at(i)->size = RING_SIZE;
        return fd;
}

static int open_perf(pid_t tid, uint64_t period)
{
        struct perf_event_attr attr = {
                .size = sizeof attr,
                .type = PERF_TYPE_SOFTWARE,
                .config = PERF_COUNT_SW_TASK_CLOCK,
                .sample_period = period,
                .wakeup_events = 1,
                .exclude_kernel = 1,
                .exclude_hv = 1,
                .remove_on_exec = 1,
        };
        struct f_owner_ex owner = { F_OWNER_TID, tid };
        int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

        if (fd < 0)
                return -1;
        fcntl(fd, F_SETFL, O_ASYNC);
        fcntl(fd, F_SETSIG, LS_TICK_SIGNAL);
        fcntl(fd, F_SETOWN_EX, &owner);
        return fd;
}

static void signal_ring(struct ls_ring *ring)
{
        static unsigned looks;
        int armed;

        atomic_store(&ring->sending, 1);
        armed = atomic_load(&ring->armed) != 0;
        if (late_ns && armed && ++looks % 16 == 0)      /* as if it lost its processor in between */
                nanosleep(&(struct timespec){ 0, late_ns }, NULL);
        if (armed &&
            syscall(SYS_tgkill, shm->root_pid, atomic_load(&ring->tid), LS_TICK_SIGNAL) == 0)
                sent++;
        atomic_store(&ring->sending, 0);
}

/* A perf event for each armed ring; those of the others are closed. */
static void follow(int perf[RINGS])
{
        for (unsigned i = 0; i < RINGS; i++) {
                if (perf[i] >= 0)
                        close(perf[i]);
                perf[i] = -1;
                atomic_store(&ring_at(i)->sending, 1);
                if (atomic_load(&ring_at(i)->armed)) {
                        perf[i] = open_perf((pid_t)atomic_load(&ring_at(i)->tid), shm->interval_ns);
                        if (perf[i] < 0)
                                fprintf(out, "perf-failed %d\n", errno);
                }
                atomic_store(&ring_at(i)->sending, 0);
        }
}

static void *ticker(void *arg)
{
        uint32_t seen = 0;
        int perf[RINGS];

        (void)arg;
        memset(perf, -1, sizeof perf);
        while (!stopping) {
                struct timespec t = { 0, (long)shm->interval_ns };
                uint32_t request = atomic_load(&shm->request);

                atomic_store(&shm->heartbeat_ns, now_ns());
                clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
                for (unsigned i = 0; i < RINGS && shm->timer == LS_TIMER_HELPER; i++)
                        signal_ring(ring_at(i));
                if (shm->timer == LS_TIMER_PERF && request != seen)
                        follow(perf);
                seen = request;
        }
        for (unsigned i = 0; i < RINGS; i++)
                if (perf[i] >= 0)
                        close(perf[i]);
        return NULL;
}

static void show(unsigned kind, const char *body, size_t size)
{
        struct ls_rec_notice notice;
        struct ls_rec_mapping map;

        if (kind == LS_REC_NOTICE && size >= sizeof notice) {
                memcpy(&notice, body, sizeof notice);
                if (notice.len <= size - sizeof notice)
                        fprintf(out, "notice %.*s\n", (int)notice.len, body + sizeof notice);
        } else if (kind == LS_REC_MAPPING && size >= sizeof map) {
                memcpy(&map, body, sizeof map);
                if (map.path_len <= size - sizeof map &&
                    map.build_id_len <= size - sizeof map - map.path_len)
                        fprintf(out, "mapping %" PRIx64 " %" PRIx64 " %u %.*s\n", map.start,
                                map.end, map.build_id_len, (int)map.path_len, body + sizeof map);
        }
}

static void drain_ring(struct ls_ring *ring)
{
        uint64_t head = atomic_load(&ring->head), tail = atomic_load(&ring->tail);

        while (tail < head) {
                struct ls_ring_rec *rec = (struct ls_ring_rec *)((char *)ring + LS_RING_DATA +
                                                                  (tail & (RING_SIZE - 1)));
                uint32_t size = LS_RING_SIZE(rec->size_kind), kind = LS_RING_KIND(rec->size_kind);

                if (atomic_load(&rec->state) != LS_RING_STATE(tail, LS_RING_DONE))
                        break;
                if (size < 8 || size % 8 || size > RING_SIZE - (tail & (RING_SIZE - 1))) {
                        fprintf(out, "damage %u %u\n", kind, size);
                        exit(98);
                }
                kinds[kind]++;
                show(kind, (const char *)(rec + 1), size - sizeof *rec);
                tail += size;
                atomic_store(&ring->tail, tail);
        }
        if (atomic_load(&ring->closing)) {
                atomic_store(&ring->closing, 0);
                atomic_store(&ring->tid, 0);
        }
}

static void drain(void)
{
        for (unsigned i = 0; i < RINGS; i++)
                drain_ring(ring_at(i));
        for (int i = 0; i < LS_CHILD_SLOTS; i++) {
                if (!atomic_load(&shm->children[i].pid))
                        continue;
                fprintf(out, "child %u %.*s\n", atomic_load(&shm->children[i].pid), LS_CHILD_PATH,
                        shm->children[i].path);
                atomic_store(&shm->children[i].pid, 0);
        }
}

static void summary(void)
{
        static const char *const names[256] = {
#define LS_RECORD(number, NAME, name, where, help) [number] = name,
#include "formats/wire/records.def"
#undef LS_RECORD
        };

        unsigned handled = 0;

        drain();
        for (unsigned i = 0; i < RINGS; i++)
                handled += atomic_load(&ring_at(i)->ticks_handled);
        fprintf(out, "execs %u\nstate %u\nforks %u\nhandled %u\n", atomic_load(&shm->execs),
                atomic_load(&shm->agent_state), atomic_load(&shm->forks), handled);
        fprintf(out, "samples %" PRIu64 "\nsent %" PRIu64 "\nstart-ns %" PRIu64 "\nruntime %.64s\n",
                atomic_load(&shm->samples), sent, atomic_load(&shm->own_start_ns), shm->runtime);
        for (int i = 0; i < 256; i++)
                if (kinds[i])
                        fprintf(out, "records %s %" PRIu64 "\n", names[i] ? names[i] : "?",
                                kinds[i]);
        fclose(out);
}

static pid_t start(char **argv, int fd)
{
        struct ls_env_memory memory = { .pid = getpid(), .fd = fd, .generation = shm->generation };
        const char *library = getenv("AGENT_LIBRARY");
        char text[LS_ENV_MEMORY_MAX], c;
        struct ls_env env;
        int go[2];
        pid_t pid = -1;

        unsetenv("AGENT_LIBRARY");
        ls_env_memory_format(&memory, text);
        if (!library ||
            ls_env_add_agent(environ, library, memory_text ? memory_text : text, &env) < 0)
                die("AGENT_LIBRARY");
        if (pipe2(go, O_CLOEXEC) < 0 || (pid = fork()) < 0)
                die("fork");
        if (pid == 0) {
                if (read(go[0], &c, 1) != 1)
                        _exit(97);
                if (write_protected && prctl(PR_SET_MDWE, 1ul, 0ul, 0ul, 0ul) < 0)
                        _exit(96);
                execvpe(argv[0], argv, env.env);
                perror(argv[0]);
                _exit(127);
        }
        shm->root_pid = (uint32_t)pid;
        shm->registry_fd = -1;
        if (write(go[1], "x", 1) != 1)
                die("pipe");
        close(go[0]);
        close(go[1]);
        return pid;
}

int main(int argc, char **argv)
{
        const char *timer = "helper", *file = "/dev/null";
        uint64_t interval_ns = 100000;
        pthread_t thread;
        int c, status;
        pid_t pid;

        while ((c = getopt(argc, argv, "+wt:i:o:m:l:")) != -1) {
                switch (c) {
                case 't': timer = optarg; break;
                case 'i': interval_ns = strtoull(optarg, NULL, 10); break;
                case 'o': file = optarg; break;
                case 'l': late_ns = strtol(optarg, NULL, 10); break;
                case 'm': memory_text = optarg; break;
                case 'w': write_protected = 1; break;
                default: return 99;
                }
        }
        out = fopen(file, "we");
        if (!out || optind == argc)
                die(file);
        pid = start(argv + optind, make_memory(timer, interval_ns));
        if (pthread_create(&thread, NULL, ticker, NULL) != 0)
                die("thread");
        while (waitpid(pid, &status, WNOHANG) == 0) {
                drain();
                usleep(2000);
        }
        stopping = 1;
        pthread_join(thread, NULL);
        summary();
        if (WIFSIGNALED(status)) {
                fprintf(stderr, "killed by %d\n", WTERMSIG(status));
                return 128 + WTERMSIG(status);
        }
        return WEXITSTATUS(status);
}
