/* The command luasample stack: the stacks of a process as it is now, of its threads and of its
 * suspended coroutines. Nothing is put into the process: its threads are stopped for some
 * milliseconds while its memory is read from outside. What is found becomes a small trace, which
 * luasample report --stacks shows. */
#include "record/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "formats/wire/clock.h"
#include "record/process/proc.h"
#include "record/watch/now.h"
#include "record/watch/remote.h"
#include "record/translate/drain.h"
#include "record/attach/lua_image.h"
#include "record/process/memory.h"
#include "record/attach/stop.h"
#include "record/trace_file.h"
#include "record/worker/worker.h"
#include "record/translate/translate.h"
#include "record/worker/apart.h"
#include "record/worker/broker.h"
#include "record/worker/confine.h"
#include "record/worker/outside.h"
#include "record/worker/wire.h"

#define SEARCH_NS   3000000ull          /* of the stop, for the search for coroutines */
#define LOOK_NS     150000000ull        /* for all stacks of one that runs, */
#define CORE_NS     10000000000ull      /* or of one that has ended */
#define LOOK_MS     300                 /* the reader is given up then: the process must go on */
#define PREPARE_MS  30000
#define WRITE_MS    60000
#define READERS     8                   /* that may be in the process's way */

static struct {
        char *output, *core, *max_stop;
        int json, no_native, trust, objects;
} raw = { .objects = -1 };

const struct poptOption ls_stack_option_table[] = {
        { "core", 'c', POPT_ARG_STRING, &raw.core, 0,
          "of a process that has ended: of this core file", "FILE" },
        { "output", 'o', POPT_ARG_STRING, &raw.output, 0, "keep what was read as a trace in FILE",
          "FILE" },
        { "json", 0, POPT_ARG_NONE, &raw.json, 0, "as JSON", NULL },
        { "trust", 0, POPT_ARG_NONE, &raw.trust, 0,
          "load the LuaJIT that the core file names, whoever's it is", NULL },
        /* Of luasample heap, which has started this. */
        { "objects", 0, POPT_ARG_INT | POPT_ARGFLAG_DOC_HIDDEN, &raw.objects, 0, NULL, NULL },
        { "max-stop", 0, POPT_ARG_STRING | POPT_ARGFLAG_DOC_HIDDEN, &raw.max_stop, 0, NULL, NULL },
        { "no-native", 0, POPT_ARG_NONE, &raw.no_native, 0, "Lua frames only", NULL },
        POPT_TABLEEND
};

#define WRITE_OBJECTS_MS 120000
#define OBJECTS_MOST (UINT64_C(4) << 30)       /* bytes of a snapshot */
#define REST_NS 500000000u              /* between two stops, at most */
#define TRIES       5                   /* of a VM that is changed while it is copied */
#define COPY_RATE   UINT64_C(1000)      /* bytes that are copied in a microsecond, about */

/* Whose errors these are. */
static const char *me(void)
{
        return raw.objects < 0 ? "stack" : "heap";
}

struct stack {
        pid_t pid;                      /* of a core file: 0 */
        char name[32];
        struct ls_worker_core core;
        int core_fd, maps_fd;           /* that file, and a memory file of its mappings; -1 =
                                         * none */
        struct ls_lua_image image;
        struct ls_memory memory;
        int now_fd, answer_fd;          /* files: of now, and what the probe has answered */
        struct ls_now *shared;          /* the reader writes it, who may be the process's by
                                         * then: */
        struct ls_now *now;             /* our own copy of what it said last */
        struct ls_stop stop;
        struct ls_workers *workers;
        struct ls_worker *worker;       /* the one that reads for this process */
        struct ls_broker *broker;
        pid_t reader;
        int go[2], done[2];             /* pipes to and from it */
        int objects[2];                 /* likewise: what it writes of a heap; -1 = none */
        uint64_t stopped_ns;
        int trace_fd;
};

static pid_t pid_of(const struct stack *s)
{
        return s->pid ? s->pid : s->core.pid;
}

static void read_name(struct stack *s)
{
        ssize_t n = ls_proc_read(s->pid, 0, "comm", s->name, sizeof(s->name));

        s->name[n > 0 ? n - 1 : 0] = 0; /* without the newline */
}

/* One line for what went wrong with this process. Returns LS_EXIT_FAIL. */
static int say(const struct stack *s, int err)
{
        int pid = (int)pid_of(s);

        switch (err) {
        case -ESRCH:
                ls_error("%s: there is no process %d", me(), pid);
                break;
        case -EPERM:
        case -EACCES:
                ls_error("%s: process %d (%s) may not be read: run as its user or as root, with "
                         "CAP_SYS_PTRACE, and look at "
                         "kernel.yama.ptrace_scope (luasample doctor)",
                         me(), pid, s->name);
                break;
        case -EBUSY:
                ls_error("%s: process %d (%s) is being traced by another program, such as a "
                         "debugger: end that first",
                         me(), pid, s->name);
                break;
        case -EXDEV:
                ls_error("%s: process %d (%s) is root's in another container, whose LuaJIT would "
                         "run here as root: run "
                         "luasample inside that container",
                         me(), pid, s->name);
                break;
        case -EKEYREJECTED:
                if (raw.core)
                        ls_error("%s: %s, which the core file names, belongs to another user than "
                                 "root and you, and its code "
                                 "would run here: give --trust if that is right",
                                 me(), s->image.path);
                else
                        ls_error("%s: process %d (%s) is another user's, and code of its LuaJIT "
                                 "would run with your rights: "
                                 "run luasample as that user or as root",
                                 me(), pid, s->name);
                break;
        case -EEXIST:
                ls_error("%s: address space randomization is off, so that memory of process %d is "
                         "where ours is: try again, "
                         "or turn it on",
                         me(), pid);
                break;
        case -EPROTO:
                ls_error("%s: how %s lays out its VMs cannot be verified (%s)", me(), s->image.path,
                         s->now->why);
                break;
        case -ENOEXEC:
                ls_error("%s: %s, the LuaJIT of process %d, cannot be loaded here to see how it "
                         "lays out its VMs",
                         me(), s->image.path, pid);
                break;
        case -ETIME:
                ls_error("%s: what is in the memory of process %d (%s) takes longer to read than a "
                         "process may be stopped: try "
                         "again",
                         me(), pid, s->name);
                break;
        case -E2BIG:
                ls_error("%s: process %d (%s) has more than 2 GiB of writable memory of its own, "
                         "stacks of threads included, which is more than is copied",
                         me(), pid, s->name);
                break;
        case -EPIPE:
                ls_error("%s: what is in the memory of process %d (%s) makes no sense", me(), pid,
                         s->name);
                break;
        default:
                ls_error("%s: process %d (%s): %s", me(), pid, s->name, strerror(-err));
        }
        return LS_EXIT_FAIL;
}

static int say_no_luajit(const struct stack *s)
{
        if (s->image.other_lua)
                ls_error("%s: process %d (%s) has a Lua other than LuaJIT: %s", me(),
                         (int)pid_of(s), s->name, s->image.path);
        else
                ls_error("%s: process %d (%s) has no LuaJIT in it, or one that exports no "
                         "lua_newstate",
                         me(), (int)pid_of(s), s->name);
        return LS_EXIT_FAIL;
}

static int read_command_line(int argc, const char **argv, struct stack *s)
{
        poptContext ctx = ls_options_begin(&ls_cmd_stack, argc, argv, 0);
        const char *pid, *extra;
        char *end;
        int val = ls_options_next(&ls_cmd_stack, ctx), status = LS_GO_ON;
        long n;

        pid = val == -1 ? poptGetArg(ctx) : NULL;
        extra = pid ? poptGetArg(ctx) : NULL;
        if (val < -1) {
                status = ls_options_status(val);
        } else if (raw.core ? pid != NULL : !pid || extra) {
                ls_error("%s: give the number of one process: luasample stack PID; or --core FILE",
                         me());
                status = LS_EXIT_USAGE;
        } else if (pid) {
                n = strtol(pid, &end, 10);
                if (end == pid || *end || n < 1 || n > 1 << 22) {
                        ls_error("%s: '%s' is not the number of a process", me(), pid);
                        status = LS_EXIT_USAGE;
                }
                s->pid = (pid_t)n;
        }
        poptFreeContext(ctx);
        return status;
}

/* Waits for the reader's word. Returns 0, -ETIME, or -EPIPE when it died. */
static int await_reader(struct stack *s, int ms)
{
        static struct ls_now copy;
        struct pollfd p = { .fd = s->done[0], .events = POLLIN };
        char word;
        int r;

        do
                r = poll(&p, 1, ms);
        while (r < 0 && errno == EINTR);
        if (r <= 0)
                return -ETIME;
        if (read(s->done[0], &word, 1) != 1)
                return -EPIPE;
        copy = *s->shared;
        copy.why[sizeof(copy.why) - 1] = copy.version[sizeof(copy.version) - 1] = 0;
        s->now = &copy;
        return 0;
}

static pid_t no_outer_id(pid_t pid, pid_t inner)
{
        (void)pid;
        (void)inner;
        return 0;
}

/* Its descriptors: see struct ls_look_start. */
static pid_t spawn_reader(const struct stack *s, const struct ls_rights *r, int socket)
{
        const int fds[] = { socket, s->now_fd, s->memory.fd, s->go[0], s->done[1], s->answer_fd,
                            s->core_fd >= 0 ? s->core_fd : s->now_fd, s->objects[1] };
        char uid[16], gid[16];
        const char *argv[] = { LS_WORKER_ARGV0, "look", uid, gid, NULL };

        snprintf(uid, sizeof(uid), "%u", (unsigned)r->uid);
        snprintf(gid, sizeof(gid), "%u", (unsigned)r->gid);
        return ls_worker_spawn(argv, NULL, fds, raw.objects >= 0 ? 8 : s->pid ? 6 : 7);
}

static void end_reader(struct stack *s)
{
        kill(s->reader, SIGKILL);
        ls_worker_end(s->reader, PREPARE_MS, NULL);
        ls_broker_stop(s->broker);
        close(s->go[1]);
        close(s->done[0]);
        if (raw.objects >= 0)
                close(s->objects[0]);
        s->shared->error = 0;
}

/* The process that reads the memory has the rights of the one that it reads; of a core,
 * nobody's. */
static int start_reader(struct stack *s)
{
        const struct ls_look_start first = { .shm_size = s->memory.size,
                                             .search_ns = SEARCH_NS,
                                             .look_ns = s->pid ? LOOK_NS : CORE_NS,
                                             .is_core = !s->pid,
                                             .heap = raw.objects >= 0 };
        struct ls_rights rights;
        int err = 0, socket;

        if (s->pid)
                err = ls_rights_of(s->pid, &rights);
        else
                ls_rights_nobody(&rights);
        if (!err && raw.objects >= 0 && pipe2(s->objects, O_CLOEXEC) < 0)
                err = -errno;
        if (!err && (pipe2(s->go, O_CLOEXEC) < 0 || pipe2(s->done, O_CLOEXEC) < 0))
                err = -errno;
        if (!err &&
            !(s->broker = ls_broker_start(&rights, no_outer_id, &first, sizeof(first), &socket)))
                err = -errno;
        if (err)
                return err;
        if (s->pid)
                ls_broker_target(s->broker, s->pid);
        s->reader = spawn_reader(s, &rights, socket);
        close(socket);
        close(s->go[0]);
        close(s->done[1]);
        s->go[0] = s->done[1] = -1;
        if (raw.objects >= 0)
                close(s->objects[1]);
        if (s->reader < 0)
                return (int)s->reader;
        err = await_reader(s, PREPARE_MS);
        return err ? err : s->now->error;
}

/* The reader may write to what is shared: where in it, and how much, only we say. */
static void fill_threads(struct stack *s)
{
        unsigned n = s->stop.n < LS_NOW_THREADS ? s->stop.n : LS_NOW_THREADS;

        for (unsigned i = 0; i < n; i++) {
                const struct ls_stopped *t = &s->stop.threads[i];

                ls_now_thread(&s->shared->threads[i], t->tid, t->blocked, &t->regs);
        }
        s->shared->n_threads = n;
}

/* The only time in which the process stands still. */
static int look(struct stack *s)
{
        int nice = getpriority(PRIO_PROCESS, 0), err;
        uint64_t began;

        if (!s->pid) {
                s->stop.n = s->core.threads < LS_NOW_THREADS ? s->core.threads : LS_NOW_THREADS;
                s->stop.more = s->core.threads - s->stop.n;
                return write(s->go[1], "", 1) == 1 ? await_reader(s, PREPARE_MS) : -EPIPE;
        }
        setpriority(PRIO_PROCESS, 0, -20);
        began = ls_clock_ns(CLOCK_MONOTONIC);
        err = ls_stop_begin(&s->stop, s->pid, LS_NOW_THREADS, 0);
        if (err)
                return err;
        fill_threads(s);
        err = write(s->go[1], "", 1) == 1 ? await_reader(s, LOOK_MS) : -EPIPE;
        if (err)
                kill(s->reader, SIGKILL);
        ls_stop_end(&s->stop);
        s->stopped_ns = ls_clock_ns(CLOCK_MONOTONIC) - began;
        setpriority(PRIO_PROCESS, 0, nice);
        return err;
}

/* Copies the VMs' memory while all stands still. Returns 0, -EAGAIN or another error. */
static int copy_once(struct stack *s, uint64_t most_ns)
{
        uint64_t began = ls_clock_ns(CLOCK_MONOTONIC), took;
        int err = s->pid ? ls_stop_begin(&s->stop, s->pid, LS_STOP_MOST, 0) : 0;

        if (err)
                return err;
        err = write(s->go[1], "", 1) == 1
                      ? await_reader(s, s->pid ? (int)(most_ns / 1000000) + 1 : PREPARE_MS)
                      : -EPIPE;
        if (err)
                kill(s->reader, SIGKILL);
        if (!err && s->pid && ls_stop_again(&s->stop) != 0)     /* one woke up, and may have changed
                                                                 * it */
                err = -EAGAIN;
        ls_stop_end(&s->stop);
        took = ls_clock_ns(CLOCK_MONOTONIC) - began;
        s->stopped_ns += s->pid ? took : 0;
        return err ? err : s->now->error;
}

/* What the reader writes goes into the file, since a process of its rights may not write large
 * ones. Returns 0 or -errno. */
static int take_bytes(const struct stack *s, int limit_ms)
{
        static char bytes[1 << 16];
        uint64_t end = ls_clock_ns(CLOCK_MONOTONIC) + (uint64_t)limit_ms * 1000000, sum = 0;
        struct pollfd p = { .fd = s->objects[0], .events = POLLIN };
        ssize_t n = 1;

        while (n > 0 && sum < OBJECTS_MOST) {
                if (ls_clock_ns(CLOCK_MONOTONIC) > end || poll(&p, 1, limit_ms) <= 0)
                        return -ETIME;
                n = read(s->objects[0], bytes, sizeof(bytes));
                if (n > 0 && write(raw.objects, bytes, (size_t)n) != n)
                        return -ENOSPC;
                sum += n > 0 ? (uint64_t)n : 0;
        }
        return n ? -EPIPE : 0;
}

static void write_head(const struct stack *s)
{
        char name[6 * sizeof(s->name)], *p = name;

        for (const char *c = s->name; *c; c++)
                p += sprintf(p, *c < 32 || *c > 126 || *c == '"' || *c == '\\' ? "\\u%04x" : "%c",
                             (unsigned char)*c);
        *p = 0;
        dprintf(raw.objects,
                "{\"luasample_heap\": 1,\n\"pid\": %d,\n\"name\": \"%s\",\n\"stopped_ns\": %" PRIu64
                ",\n\"copied_bytes\": %" PRIu64 ",\n",
                (int)pid_of(s), name, s->stopped_ns, s->now->heap_bytes);
}

/* All objects, for luasample heap. Returns the status to exit with. */
static int take_objects(struct stack *s)
{
        uint64_t most_ns = UINT64_C(1000000000),
                 about = s->now->heap_bytes / COPY_RATE * 1000 + 1000000;
        int err = raw.max_stop ? ls_parse_duration(raw.max_stop, "ms", &most_ns) : 0,
            nice = getpriority(PRIO_PROCESS, 0);

        if (err || !most_ns || most_ns > UINT64_C(60000000000)) {
                ls_error("heap: '%s' is no time from 1ms to 60s", raw.max_stop);
                return LS_EXIT_USAGE;
        }
        if (s->pid && about > most_ns) {
                ls_error("heap: %" PRIu64 " MiB are to be copied, for which process %d (%s) would "
                                          "stand still for some %" PRIu64
                         " ms: allow that with --max-stop",
                         s->now->heap_bytes >> 20, (int)s->pid, s->name, about / 1000000);
                return LS_EXIT_FAIL;
        }
        if (s->pid)
                fprintf(stderr,
                        "[ luasample: stops process %d for some %" PRIu64 " ms, to copy %" PRIu64
                        " MiB ]\n",
                        (int)s->pid, about / 1000000, s->now->heap_bytes >> 20);
        setpriority(PRIO_PROCESS, 0, -20);
        err = -EAGAIN;
        for (int i = 0; err == -EAGAIN && i < TRIES; i++) {
                const uint64_t rest_ns = s->stopped_ns < REST_NS ? s->stopped_ns : REST_NS;
                const struct timespec rest = { 0, (long)rest_ns };

                nanosleep(&rest, NULL);         /* the process has its time between two stops */
                err = copy_once(s, most_ns);
        }
        setpriority(PRIO_PROCESS, 0, nice);
        if (s->pid && s->stop.n == LS_STOP_MOST && s->stop.more)
                ls_warning("%u threads ran on while the memory was copied, "
                           "since at most %u are stopped: objects that they changed may be missing",
                           s->stop.more, LS_STOP_MOST);
        if (err)
                return say(s, err == -EAGAIN ? -ETIME : err);
        write_head(s);
        err = write(s->go[1], "w", 1) == 1 ? take_bytes(s, WRITE_OBJECTS_MS) : -EPIPE;
        if (!err)
                err = await_reader(s, PREPARE_MS);
        return err || s->now->error ? say(s, err ? err : s->now->error) : 0;
}

/* One whose own memory lies, by chance, where the process's is, is replaced by another: both when
 * it starts and when it looks may it find that. */
static int start_another(struct stack *s, int err, unsigned *readers)
{
        while (err == -EEXIST && ++*readers < READERS) {
                end_reader(s);
                err = start_reader(s);
        }
        return err;
}

static int look_with_readers(struct stack *s)
{
        unsigned readers = 0;
        int err = look(s);

        while (err == -EEXIST && readers < READERS) {
                err = start_another(s, err, &readers);
                if (!err)
                        err = look(s);
        }
        return err;
}

static FILE *open_maps(const struct stack *s)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", s->maps_fd);
        return s->pid ? ls_remote_maps() : fopen(path, "re");
}

static int prepare(struct stack *s)
{
        const struct ls_record_options o = { .interval_ns = LS_DEFAULT_INTERVAL_NS,
                                             .ring_size = LS_DEFAULT_RING,
                                             .engine = LS_ENGINE_WALK,
                                             .events = LS_RECORD_CPU,
                                             .no_source = 1,
                                             .native_bytes = raw.no_native ? 0
                                                                           : LS_MAX_NATIVE / 4 };
        unsigned readers = 0;
        void *now;
        int err;

        err = ls_lua_image_find(s->workers, s->pid, open_maps(s), &s->image);
        if (err)
                return err;
        s->now_fd = ls_memory_share(sizeof(*s->now), &now);
        if (s->now_fd < 0)
                return s->now_fd;
        s->shared = now;
        err = ls_lua_image_probe(&s->image, s->pid, raw.trust, &s->answer_fd);
        if (!err)
                err = ls_memory_init(&s->memory, &o);
        if (err)
                return err;
        s->shared->pid = s->pid;
        s->shared->lua_base = s->image.base;
        s->memory.shm->root_pid = (uint32_t)s->pid;
        return start_another(s, start_reader(s), &readers);
}

/* The facts that report's header shows. */
static void put_facts(const struct stack *s, struct ls_trace_writer *w)
{
        uint64_t realtime_ns = ls_clock_ns(CLOCK_REALTIME);

        ls_trace_event(w, LS_EVENT_CPU, LS_DEFAULT_INTERVAL_NS);
        ls_trace_clocks(w, ls_clock_ns(CLOCK_MONOTONIC), realtime_ns, 0);
        ls_trace_info_str(w, ls_info_key(LS_INFO_COMMAND), s->name);
        ls_trace_info_u64(w, ls_info_key(LS_INFO_PID), (uint64_t)pid_of(s));
        ls_trace_info_str(w, ls_info_key(LS_INFO_RUNTIME), s->now->version);
        ls_trace_info_str(w, ls_info_key(LS_INFO_RUNTIME_PATH), s->image.path);
        ls_trace_info_u64(w, ls_info_key(LS_INFO_START_REALTIME), realtime_ns);
        ls_trace_info_u64(w, ls_info_key(LS_INFO_VMS), s->now->vms);
        ls_trace_info_u64(w, ls_info_key(LS_INFO_THREADS), s->stop.n);
        ls_trace_info_u64(w, ls_info_key(LS_INFO_STOPPED), s->stopped_ns);
        if (raw.core)
                ls_trace_info_str(w, ls_info_key(LS_INFO_CORE_FILE), raw.core);
        ls_trace_info_u64(w, ls_info_key(LS_INFO_COMPLETE), 1);
        if (s->stop.more)
                ls_trace_notice(w, "there are more threads than were read");
        if (s->now->unread)
                ls_trace_notice(w, "some stacks were changing, and could not be read: try again");
        if (s->now->more)
                ls_trace_notice(w, "the VM has more objects than could be looked at in the time: "
                                   "coroutines may be missing");
}

/* Its mappings as they are now, as bytes: who reads them opens no file of the process. */
static int copy_maps(struct stack *s)
{
        FILE *maps = s->pid ? ls_remote_maps() : NULL;
        char buf[16384];
        size_t n;
        int err = 0;

        if (!s->pid)
                return 0;
        s->maps_fd = memfd_create("luasample", MFD_CLOEXEC);
        if (!maps || s->maps_fd < 0)
                err = -errno;
        while (!err && (n = fread(buf, 1, sizeof(buf), maps)) > 0)
                if (write(s->maps_fd, buf, n) != (ssize_t)n)
                        err = -EIO;
        if (maps)
                fclose(maps);
        return err;
}

/* What the reader has put into the rings becomes a trace. It has read hostile memory: this process
 * has no rights any more. */
static int write_trace(void *ctx)
{
        struct stack *s = ctx;
        struct ls_translate_config cfg = { .memory = &s->memory, .cwd = "/", .pid = (int)s->pid,
                .interval_ns = LS_DEFAULT_INTERVAL_NS, .no_source = 1, .native = !raw.no_native };
        struct ls_translate translate;
        struct ls_drain drain;
        struct ls_drain_sink sink = { .record = ls_translate_record,
                                      .gap = ls_translate_gap,
                                      .closed = ls_translate_closed,
                                      .ctx = &translate };
        struct ls_trace_writer *w;
        char maps[64];
        int err = ls_trace_writer_open(s->trace_fd, LS_DEFAULT_INTERVAL_NS, &w);

        if (err)
                return err;
        cfg.writer = w;
        cfg.worker = s->worker;
        cfg.process = ls_trace_process(w, (uint32_t)pid_of(s),
                                       ls_trace_string(w, s->name, strlen(s->name)));
        memset(&translate, 0, sizeof(translate));
        memset(&drain, 0, sizeof(drain));
        err = ls_translate_init(&translate, &cfg);
        snprintf(maps, sizeof(maps), "/proc/self/fd/%d", s->maps_fd);
        translate.mappings.maps = maps;
        if (!err)
                err = ls_drain_init(&drain, &s->memory, &sink);
        if (!err) {
                atomic_store(&s->memory.shm->rings_used, LS_NOW_THREADS);
                translate.now_ns = ls_clock_ns(CLOCK_MONOTONIC);
                ls_drain_run(&drain, 1, translate.now_ns);
                ls_translate_settle(&translate);
                ls_translate_finish(&translate);
                put_facts(s, w);
        }
        ls_translate_done(&translate);
        ls_drain_done(&drain);
        return ls_trace_writer_close(w) ?: err;
}

/* report/ shows it: where this is root, as nobody, since what is in the trace is the process's
 * word. Returns only when that cannot be started. */
static int show(const struct stack *s)
{
        char path[64];
        const char *argv[] = { geteuid() ? "luasample" : LS_APART_ARGV0,
                               "report",
                               "--stacks",
                               "-i",
                               path,
                               raw.json    ? "--json"
                               : geteuid() ? NULL
                                           : "--no-pager",
                               NULL };

        snprintf(path, sizeof(path), "/proc/self/fd/%d", s->trace_fd);
        fcntl(s->trace_fd, F_SETFD, 0);
        execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
        ls_error("%s: cannot show the stacks: %s", me(), strerror(errno));
        return LS_EXIT_FAIL;
}

/* Returns -1, or the status to exit with. */
static int open_core(struct stack *s)
{
        int err;

        s->core_fd = open(raw.core, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        err = s->core_fd < 0 ? -errno : 0;
        if (!err)
                s->maps_fd = memfd_create("luasample", MFD_CLOEXEC);
        if (!err && s->maps_fd < 0)
                err = -errno;
        if (!err)
                err = ls_worker_core(ls_workers_of(s->workers, 0, NULL), s->core_fd, s->maps_fd,
                                     &s->core);
        if (err == -ENOEXEC)
                ls_error("%s: %s is no core file of an x86-64 process", me(), raw.core);
        else if (err)
                ls_error("%s: cannot read %s: %s", me(), raw.core, strerror(-err));
        if (err)
                return LS_EXIT_FAIL;
        snprintf(s->name, sizeof(s->name), "%s", s->core.name);
        return -1;
}

static int stack_run(int argc, const char **argv)
{
        static struct stack s = {
                .image.fd = -1, .core_fd = -1, .maps_fd = -1, .memory.fd = -1, .trace_fd = -1
        };
        struct ls_trace_file made;
        int status = read_command_line(argc, argv, &s), err;

        if (status >= 0)
                return status;
        signal(SIGPIPE, SIG_IGN);
        signal(SIGCHLD, SIG_DFL);       /* its processes are waited for */
        s.workers = ls_workers_new(NULL, NULL);
        if (!s.workers)
                return LS_EXIT_FAIL;
        if (raw.core && (status = open_core(&s)) >= 0)
                return status;
        if (s.pid) {
                ls_remote_of_process(s.pid);
                read_name(&s);
        }
        err = prepare(&s);
        if (err == -ENOENT)
                return say_no_luajit(&s);
        if (err)
                return say(&s, err);
        if (!s.now->vms) {
                kill(s.reader, SIGKILL);
                ls_error("%s: process %d (%s) has LuaJIT in it, but no Lua VM now", me(),
                         (int)s.pid, s.name);
                return LS_EXIT_FAIL;
        }
        if (raw.objects >= 0)
                return take_objects(&s);
        err = look_with_readers(&s);
        if (err)
                return say(&s, err);
        s.trace_fd = raw.output ? ls_trace_file_open(raw.output, &made)
                                : memfd_create("luasample", MFD_CLOEXEC);
        if (s.trace_fd < 0)
                return LS_EXIT_FAIL;
        s.worker = ls_workers_of(s.workers, s.pid, NULL);
        err = copy_maps(&s);
        if (!err)
                err = ls_apart(write_trace, &s, WRITE_MS);
        ls_workers_free(s.workers);
        if (err) {
                ls_error("%s: cannot write the trace: %s", me(), strerror(-err));
                return LS_EXIT_FAIL;
        }
        signal(SIGPIPE, SIG_DFL);
        return show(&s);
}

const struct ls_command ls_cmd_stack = {
        .name = "stack",
        .summary = "show where a running process is now: its threads and coroutines",
        .usage = "[-o FILE] [--json] PID | --core FILE",
        .options = ls_stack_option_table,
        .run = stack_run,
};
