/* The command line of luasample heap. A process is read by luasample stack, which has the way to do
 * it with the process's rights; what that writes is a snapshot like any other. */
#include "report/heap/heap.h"

#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct { char *pid, *core, *output, *why, *max_stop; int json, trust; } raw;

static const struct poptOption options[] = {
        { "pid", 'p', POPT_ARG_STRING, &raw.pid, 0, "of this process", "PID" },
        { "core", 'c', POPT_ARG_STRING, &raw.core, 0,
          "of a process that has ended: of this core file", "FILE" },
        { "output", 'o', POPT_ARG_STRING, &raw.output, 0,
          "keep the snapshot in FILE, and show nothing", "FILE" },
        { "why", 0, POPT_ARG_STRING, &raw.why, 0, "what holds an object: by address, path or type",
          "ADDRESS|PATH|TYPE" },
        { "max-stop", 0, POPT_ARG_STRING, &raw.max_stop, 0,
          "longest time that the process may stand still (1s)", "TIME" },
        { "trust", 0, POPT_ARG_NONE, &raw.trust, 0,
          "load the LuaJIT that the core file names, whoever's it is", NULL },
        { "json", 0, POPT_ARG_NONE, &raw.json, 0, "as JSON", NULL },
        POPT_TABLEEND
};

struct wanted { char files[2][4096]; unsigned n; };

static int read_line(int argc, const char **argv, struct wanted *ret)
{
        poptContext ctx = ls_options_begin(&ls_cmd_heap, argc, argv, 0);
        int val = ls_options_next(&ls_cmd_heap, ctx), status = ls_options_status(val);
        const char *arg;

        while (val == -1 && (arg = poptGetArg(ctx))) {
                if (ret->n < 2)
                        snprintf(ret->files[ret->n], sizeof(ret->files[0]), "%s", arg);
                ret->n++;
        }
        if (val == -1 &&
            (ret->n > 2 || !!raw.pid + !!raw.core + !!ret->n != 1 || (raw.output && ret->n) ||
             (ret->n == 2 && (raw.why || raw.json)) || (raw.why && raw.json))) {
                ls_error("heap: give one of -p PID, --core FILE, a snapshot, or two of them to "
                         "compare (see --help)");
                status = LS_EXIT_USAGE;
        }
        if (status == LS_GO_ON && raw.pid && raw.pid[strspn(raw.pid, "0123456789")]) {
                ls_error("heap: '%s' is not the number of a process", raw.pid);
                status = LS_EXIT_USAGE;
        }
        poptFreeContext(ctx);
        return status;
}

/* luasample stack, which writes a snapshot into fd. Returns its status. */
static int take(int fd)
{
        const char *argv[12] = { "luasample", "stack", "--objects" };
        char number[16];
        int n = 3, status;
        pid_t child;

        snprintf(number, sizeof(number), "%d", fd);
        argv[n++] = number;
        if (raw.max_stop) {
                argv[n++] = "--max-stop";
                argv[n++] = raw.max_stop;
        }
        if (raw.trust)
                argv[n++] = "--trust";
        if (raw.core)
                argv[n++] = "--core";
        argv[n++] = raw.core ? raw.core : raw.pid;
        signal(SIGCHLD, SIG_DFL);
        child = fork();
        if (child == 0) {
                execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
                _exit(LS_EXIT_FAIL);
        }
        while (child > 0 && waitpid(child, &status, 0) < 0)
                if (errno != EINTR)
                        return LS_EXIT_FAIL;
        return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : LS_EXIT_FAIL;
}

/* The file appears when it is whole. */
static int keep(int fd)
{
        struct ls_output out;
        char bytes[65536];
        ssize_t n = 0;
        int err = ls_output_open(&out, raw.output, LS_COLOR_NEVER, 0), end;

        if (!err) {
                lseek(fd, 0, SEEK_SET);
                while ((n = read(fd, bytes, sizeof(bytes))) > 0)
                        fwrite(bytes, 1, (size_t)n, out.file);
                end = ls_output_close(&out, n < 0);
                err = n < 0 ? -EIO : end;
        }
        if (err)
                ls_error("heap: cannot write %s: %s", raw.output, strerror(-err));
        return err ? LS_EXIT_FAIL : 0;
}

int (*ls_heap_drop)(void);

static int open_files(const struct wanted *w, FILE *ret[2])
{
        int err = 0;

        for (unsigned i = 0; i < w->n && !err; i++) {
                ret[i] = fopen(w->files[i], "re");
                if (!ret[i]) {
                        err = -errno;
                        ls_error("heap: %s: %s", w->files[i], strerror(-err));
                }
        }
        if (!err && ls_heap_drop) {
                err = ls_heap_drop();
                if (err)
                        ls_error("heap: rights cannot be given up: %s", strerror(-err));
        }
        for (unsigned i = 0; i < 2 && err; i++)
                if (ret[i])
                        fclose(ret[i]);
        return err;
}

/* Takes f. */
static struct ls_heap *read_one(FILE *f, const char *called)
{
        struct ls_heap *h = NULL;
        const char *why;
        int err = ls_heap_open(f, &h, &why);

        if (!err)
                err = ls_heap_dominate(h);
        if (!err)
                return h;
        ls_error("heap: %s: %s", called, why ? why : strerror(-err));
        return NULL;
}

/* A process without rights starts no pager. */
static int show(const struct wanted *w)
{
        FILE *files[2] = { NULL };
        struct ls_heap *a, *b;
        struct ls_output out;
        int err = open_files(w, files), end;

        if (err)
                return LS_EXIT_FAIL;
        a = read_one(files[0], raw.pid || raw.core ? "what was read" : w->files[0]);
        b = files[1] ? read_one(files[1], w->files[1]) : NULL;
        err = -EIO;
        if (a && (b || w->n < 2))
                err = ls_output_open(&out, NULL, LS_COLOR_NEVER, !raw.json && !ls_heap_drop);
        if (!err) {
                err = b         ? ls_heap_compare(out.file, a, b)
                      : raw.why ? ls_heap_why(out.file, a, raw.why)
                                : ls_heap_show(out.file, a, raw.json);
                end = ls_output_close(&out, 0);
                if (err == -ENOENT)
                        ls_error("heap: no object is '%s': give an address, a path from the "
                                 "globals such as app.cache, or a type",
                                 raw.why);
                else if (err || end)
                        ls_error("heap: %s", strerror(err ? -err : -end));
                err = err ? err : end;
        }
        ls_heap_close(a);
        ls_heap_close(b);
        return err ? LS_EXIT_FAIL : 0;
}

static int heap_run(int argc, const char **argv)
{
        static struct wanted wanted;
        int status = read_line(argc, argv, &wanted), fd;

        if (status != LS_GO_ON)
                return status;
        if (wanted.n)
                return show(&wanted);
        fd = memfd_create("luasample", 0);
        if (fd < 0)
                return LS_EXIT_FAIL;
        status = take(fd);
        if (status)
                return status;
        snprintf(wanted.files[0], sizeof(wanted.files[0]), "/proc/self/fd/%d", fd);
        wanted.n = 1;
        return raw.output ? keep(fd) : show(&wanted);
}

const struct ls_command ls_cmd_heap = {
        .name = "heap",
        .summary = "show what a program's memory holds, and why",
        .usage = "[-o FILE] -p PID | --core FILE | FILE [FILE]",
        .options = options,
        .run = heap_run,
};
