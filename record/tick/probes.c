/* What this machine permits: see probes.h. Each probe tries the thing itself; files of /proc only
 * explain. */
#include "record/tick/probes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "libsample/inject/inspect.h"
#include "record/process/agent_path.h"
#include "record/process/proc.h"
#include "record/tick/perf.h"
#include "record/tick/signal.h"

static void __attribute__((format(printf, 3, 4)))
say(struct ls_probe_result *r, enum ls_probe_status status, const char *fmt, ...)
{
        va_list ap;

        r->status = status;
        va_start(ap, fmt);
        vsnprintf(r->text, sizeof(r->text), fmt, ap);
        va_end(ap);
}

static void hint(struct ls_probe_result *r, const char *text)
{
        snprintf(r->hint, sizeof(r->hint), "%s", text);
}

/* First line of a small file, without its end. Returns 0 or -errno. */
static int read_line(const char *path, char *buf, size_t size)
{
        FILE *f = fopen(path, "re");
        int ok;

        if (!f)
                return -errno;
        ok = fgets(buf, (int)size, f) != NULL;
        fclose(f);
        if (!ok)
                return -EIO;
        buf[strcspn(buf, "\n")] = 0;
        return 0;
}

static void probe_system(pid_t child, struct ls_probe_result *r)
{
        struct utsname u;
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);

        (void)child;
        if (uname(&u) < 0)
                memset(&u, 0, sizeof(u));
        say(r, cpus > 1 ? LS_PROBE_OK : LS_PROBE_NOTE, "%s %s %s, %ld processor%s", u.sysname,
            u.release, u.machine, cpus,
            cpus > 1 ? "s" : "; the recorder shares it with the program");
}

static void probe_agent(pid_t child, struct ls_probe_result *r)
{
        char path[PATH_MAX];

        (void)child;
        if (ls_agent_path(path, sizeof(path)) == 0) {
                say(r, LS_PROBE_OK, "%s", path);
                return;
        }
        say(r, LS_PROBE_FAIL, "libsample.so is neither beside luasample nor in " LS_AGENT_DIR);
        hint(r, "run: meson install -C BUILDDIR (or ninja -C BUILDDIR, to use it from there)");
}

static const char *paranoid_meaning(int level)
{
        return level <= -1  ? "no limits"
               : level == 0 ? "users may watch processors, but not raw tracepoints"
               : level == 1 ? "users may watch their processes, the kernel included"
               : level == 2 ? "users may watch their processes, the kernel excluded: enough for "
                              "luasample"
                            : "users may not use perf events";
}

static void probe_perf(pid_t child, struct ls_probe_result *r)
{
        int err = ls_ticker_perf_probe(child), level = 0;
        char line[32], why[160] = "this kernel has no perf events";

        if (read_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof(line)) == 0) {
                level = atoi(line);
                snprintf(why, sizeof(why), "kernel.perf_event_paranoid is %d: %s", level,
                         paranoid_meaning(level));
        }
        if (err == 0) {
                say(r, LS_PROBE_OK, "an event on another process can be opened (%s)", why);
                return;
        }
        say(r, LS_PROBE_NOTE, "an event on another process cannot be opened: %s (%s)",
            strerror(-err), why);
        if (level > 2 && (err == -EACCES || err == -EPERM))
                hint(r, "run: sysctl -w kernel.perf_event_paranoid=2 (as root), or give luasample "
                        "CAP_PERFMON");
        else if (err == -EACCES || err == -EPERM)
                hint(r, "a container's seccomp filter forbids it: start it with --cap-add PERFMON "
                        "or a filter that allows "
                        "perf_event_open");
}

static void probe_helper(pid_t child, struct ls_probe_result *r)
{
        int err = ls_ticker_helper_probe(child);

        if (err == 0)
                say(r, LS_PROBE_OK, "it can be seen whether another process runs");
        else
                say(r, LS_PROBE_NOTE, "it cannot be seen whether another process runs: %s",
                    strerror(-err));
}

static void probe_cputime(pid_t child, struct ls_probe_result *r)
{
        struct sigevent event = { .sigev_notify = SIGEV_NONE };
        struct timespec tick = { 0, 0 };
        timer_t timer;

        (void)child;
        if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) < 0) {
                say(r, LS_PROBE_NOTE, "a thread cannot have a CPU-time timer: %s", strerror(errno));
                return;
        }
        timer_delete(timer);
        clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
        say(r, LS_PROBE_OK,
            "a thread can have a CPU-time timer; its signals come with the kernel's tick, each "
            "%.0f ms",
            (double)tick.tv_nsec / 1e6);
}

static void probe_memfd(pid_t child, struct ls_probe_result *r)
{
        int fd = memfd_create("luasample-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        (void)child;
        if (fd >= 0 && ftruncate(fd, 4096) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
                say(r, LS_PROBE_OK,
                    "memory can be shared with the program (memfd_create with seals)");
        else
                say(r, LS_PROBE_FAIL, "memory cannot be shared with the program: memfd_create: %s",
                    strerror(errno));
        if (fd >= 0)
                close(fd);
}

/* The agent opens its memory through the recorder's /proc/PID/fd. */
static void probe_proc(pid_t child, struct ls_probe_result *r)
{
        static const char *const files[] = { "fd", "task", "maps", "stat", "cwd" };
        char path[LS_PROC_PATH];

        for (unsigned i = 0; i < sizeof(files) / sizeof(*files); i++) {
                if (access(ls_proc_path(path, child, 0, files[i]), R_OK) < 0) {
                        say(r, LS_PROBE_FAIL, "/proc/PID/%s of an own process cannot be read: %s",
                            files[i], strerror(errno));
                        hint(r, "mount /proc (and not with hidepid for this user)");
                        return;
                }
        }
        say(r, LS_PROBE_OK, "own processes can be looked at");
}

static void probe_ptrace(pid_t child, struct ls_probe_result *r)
{
        char line[32];

        (void)child;
        if (read_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof(line)) < 0)
                say(r, LS_PROBE_OK,
                    "no limit by Yama; record starts the program itself, and needs no more");
        else
                say(r, LS_PROBE_OK,
                    "kernel.yama.ptrace_scope is %s; record starts the program itself, and needs "
                    "no more",
                    line);
}

/* The child is a copy of this process: what stands at an address here stands there, too. */
static void probe_wall(pid_t child, struct ls_probe_result *r)
{
        static const char there[] = "luasample";
        char here[sizeof(there)] = "", line[256];
        struct iovec to = { here, sizeof(here) },
                     from = { (void *)(uintptr_t)there, sizeof(there) };
        uint64_t numbers[3];

        if (process_vm_readv(child, &to, 1, &from, 1, 0) != (ssize_t)sizeof(there)) {
                say(r, LS_PROBE_NOTE, "the memory of an own process cannot be read: %s",
                    strerror(errno));
                hint(r, "-e wall charges blocked time to the stack that was seen last: grant "
                        "CAP_SYS_PTRACE, or in a "
                        "container --cap-add SYS_PTRACE");
                return;
        }
        if (ls_proc_read(child, 0, "schedstat", line, sizeof(line)) < 0 ||
            sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64, &numbers[0], &numbers[1],
                   &numbers[2]) != 3) {
                say(r, LS_PROBE_NOTE,
                    "this kernel has no /proc/PID/schedstat: -e wall records only the time on a "
                    "CPU");
                return;
        }
        say(r, LS_PROBE_OK, "the stack of a blocked process can be read");
}

static const struct { int resource; const char *name; rlim_t least; const char *hint;
} limits[] = {
        { RLIMIT_SIGPENDING, "sigpending", 16,
          "only --timer cputime needs a pending signal: raise it with ulimit -i" },
        { RLIMIT_NOFILE, "nofile", 32, "raise it with ulimit -n" },
        { RLIMIT_MEMLOCK, "memlock", 0, "" },
};

static void probe_limits(pid_t child, struct ls_probe_result *r)
{
        size_t at = 0;

        (void)child;
        r->status = LS_PROBE_OK;
        for (unsigned i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
                struct rlimit l = { 0, 0 };
                char value[32] = "unlimited";

                getrlimit((__rlimit_resource_t)limits[i].resource, &l);
                if (l.rlim_cur != RLIM_INFINITY)
                        snprintf(value, sizeof(value), "%ju", (uintmax_t)l.rlim_cur);
                at += (size_t)snprintf(r->text + at, sizeof(r->text) - at, "%s%s %s", i ? ", " : "",
                                       limits[i].name, value);
                if (l.rlim_cur < limits[i].least) {
                        r->status = LS_PROBE_NOTE;
                        hint(r, limits[i].hint);
                }
        }
}

/* Nanoseconds to read a thread's CPU clock: the least of some rounds, since others may get the
 * processor in one. */
static double clock_cost(void)
{
        double least = 0;

        for (unsigned round = 0; round < 20; round++) {
                struct timespec t, start, end;
                double ns;

                clock_gettime(CLOCK_MONOTONIC, &start);
                for (unsigned i = 0; i < 100; i++)
                        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
                clock_gettime(CLOCK_MONOTONIC, &end);
                ns = ((double)(end.tv_sec - start.tv_sec) * 1e9 +
                      (double)(end.tv_nsec - start.tv_nsec)) /
                     100;
                least = !round || ns < least ? ns : least;
        }
        return least;
}

static void probe_clock(pid_t child, struct ls_probe_result *r)
{
        char source[64] = "unknown";
        double ns = clock_cost();

        (void)child;
        read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
                  sizeof(source));
        say(r, ns < 2000 ? LS_PROBE_OK : LS_PROBE_NOTE,
            "%s; reading a thread's CPU clock takes %.0f ns", source, ns);
        if (ns >= 2000)
                hint(r, strcmp(source, "tsc") ? "each sample reads clocks: take a longer interval, "
                                                "or boot with clocksource=tsc where it is stable"
                                              : "each sample reads clocks: take a longer interval");
}

const struct ls_probe ls_probes[] = {
        { "system", "system", 0, probe_system },
        { "agent", "agent library", 1, probe_agent },
        { "memfd", "shared memory", 1, probe_memfd },
        { "proc", "/proc", 1, probe_proc },
        { "perf", "timer perf", 0, probe_perf },
        { "helper", "timer helper", 0, probe_helper },
        { "cputime", "timer cputime", 0, probe_cputime },
        { "wall", "wall time", 0, probe_wall },
        { "ptrace", "ptrace", 0, probe_ptrace },
        { "limits", "limits", 0, probe_limits },
        { "clock", "clock", 0, probe_clock },
};
const unsigned ls_n_probes = sizeof(ls_probes) / sizeof(*ls_probes);

void ls_probe_program(const char *name, struct ls_probe_result *ret)
{
        static struct ls_image image;
        char sentence[PATH_MAX + 256];

        memset(ret, 0, sizeof(*ret));
        ls_image_inspect(name, getenv("PATH"), LS_INSPECT_SHELL | LS_INSPECT_TEXT, &image);
        ls_image_describe(&image, sentence, sizeof(sentence));
        if (image.kind == LS_IMAGE_MISSING || image.kind == LS_IMAGE_NOT_EXECUTABLE)
                say(ret, LS_PROBE_NOTE, "not found in PATH, or not executable");
        else if (*sentence)
                say(ret, LS_PROBE_NOTE, "%s", sentence);
        else if (!ls_image_has_luajit(&image))
                say(ret, LS_PROBE_NOTE,
                    "%s: no LuaJIT in it or linked to it; one that it loads later is recorded",
                    image.path);
        else
                say(ret, LS_PROBE_OK, "%s: can be recorded", image.path);
}
