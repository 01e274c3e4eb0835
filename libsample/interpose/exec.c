/* The exec family. When the recorded process itself execs, ticks are stopped, the agent goes into
 * the environment of the new image again, and the recording goes on there. When a child execs, or a
 * process that holds the agent but has no Lua, the new image gets the agent with the way to the
 * registry. May run in a child of vfork or in a signal handler: no malloc. */
#include "libsample/libc/real.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "libsample/agent.h"
#include "libsample/inject/inspect.h"
#include "libsample/interpose/interpose.h"
#include "libsample/recording/mappings.h"
#include "libsample/recording/notice.h"
#include "libsample/recording/pass.h"
#include "libsample/vm/life.h"

struct exec_call {
        int (*run)(const struct exec_call *, char *const envp[]);
        const char *file;
        char *const *argv;
        int fd;                 /* fexecve, execveat */
        int flags;              /* execveat */
        int search;             /* file is looked up in PATH, and run by /bin/sh when it is neither
                                 * ELF nor "#!" */
};

static int run_execve(const struct exec_call *call, char *const envp[])
{
        return ls_libc()->execve(call->file, call->argv, envp);
}

static int run_execvpe(const struct exec_call *call, char *const envp[])
{
        return ls_libc()->execvpe(call->file, call->argv, envp);
}

static int run_fexecve(const struct exec_call *call, char *const envp[])
{
        return ls_libc()->fexecve(call->fd, call->argv, envp);
}

static int run_execveat(const struct exec_call *call, char *const envp[])
{
        return ls_libc()->execveat(call->fd, call->file, call->argv, envp, call->flags);
}

/* "/proc/self/fd/FD/FILE" for a file relative to a directory. */
static const char *path_at(int fd, const char *file, char *buf, size_t size)
{
        static const char prefix[] = "/proc/self/fd/";
        char digits[12], *p = buf;
        size_t n = 0, len = strlen(file);

        if (sizeof prefix + sizeof digits + 1 + len > size)
                return file;
        memcpy(p, prefix, sizeof prefix - 1);
        p += sizeof prefix - 1;
        do
                digits[n++] = (char)('0' + fd % 10);
        while (fd /= 10);
        while (n)
                *p++ = digits[--n];
        if (len) {
                *p++ = '/';
                memcpy(p, file, len);
                p += len;
        }
        *p = '\0';
        return buf;
}

struct scratch {                /* too large for the stacks that exec may be called on */
        struct ls_image image;
        char path[PATH_MAX];
};

static const char *file_of(const struct exec_call *call, char *buf, size_t size)
{
        if (call->fd < 0 || (call->file && call->file[0] == '/'))
                return call->file ? call->file : "";
        return path_at(call->fd, call->file ? call->file : "", buf, size);
}

/* The program may have changed its root directory or its user. */
static int can_open(const char *file)
{
        int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        if (fd >= 0)
                close(fd);
        return fd >= 0;
}

/* The agent goes into the environment if the image can take it. */
static int wants_agent(const struct ls_image *image)
{
        return ls_agent_live() && ls_image_preloadable(image) && can_open(ls_preload.library);
}

/* Why the recording ends with this exec, if it does. */
static void say_why_not(const struct ls_image *image)
{
        char text[512];

        if (ls_may_write_ring() && image->kind != LS_IMAGE_NOT_ELF &&
            image->kind != LS_IMAGE_MISSING && image->kind != LS_IMAGE_NOT_EXECUTABLE &&
            *ls_image_describe(image, text, sizeof text))
                ls_agent_notice("%s", text);
}

static int exec_in_place(const struct exec_call *call, char *const envp[], struct scratch *scratch)
{
        struct ls_env_memory where = ls_preload.where;
        struct ls_env with_agent = { 0 };
        char memory[LS_ENV_MEMORY_MAX];
        struct sigaction replaced;
        char *const *env = envp;
        int error, ignored, may_come;

        errno = 0;
        ls_image_inspect(file_of(call, scratch->path, sizeof scratch->path), getenv("PATH"),
                         call->search ? LS_INSPECT_SHELL : 0, &scratch->image);
        if (!ls_image_preloadable(&scratch->image))
                say_why_not(&scratch->image);
        /* Ticks of a recorder that does not answer may meet the new image: the signal stays ignored
         * until it has a handler. */
        may_come = ls_engine_before_exec() < 0;
        where.after_exec = may_come || ls_signals_ignored() ? 'i' : 'e';
        ls_env_memory_format(&where, memory);
        if (wants_agent(&scratch->image) &&
            ls_env_add_agent(envp, ls_preload.library, memory, &with_agent) == 0)
                env = with_agent.env;
        ignored = ls_signals_before_exec(&replaced);
        call->run(call, env);
        error = errno;
        if (ignored)
                ls_real.sigaction(LS_TICK_SIGNAL, &replaced, NULL);
        ls_engine_exec_failed();
        ls_env_done(&with_agent);
        errno = error;
        return -1;
}

/* 1 when the child of this image is to hold the agent: children are followed, and the recorder is
 * there. */
static int child_wants_agent(const struct ls_image *image)
{
        char registry[64];

        if (!ls_preload.registry.pid || !ls_image_preloadable(image))
                return 0;
        snprintf(registry, sizeof registry, "/proc/%d/fd/%d", ls_preload.registry.pid,
                 ls_preload.registry.fd);
        return can_open(registry) && can_open(ls_preload.library);
}

/* 1 when another recorder, which this program is or runs under, has put its own way in. */
static int has_agent(char *const env[])
{
        for (; env && *env; env++)
                if (strncmp(*env, LS_ENV_AGENT "=", sizeof LS_ENV_AGENT) == 0)
                        return 1;
        return 0;
}

char *const *ls_env_of_child(const char *file, const char *search_path, unsigned flags,
                             char *const env[], struct ls_env *made)
{
        int saved = errno;
        struct ls_image *image;
        char memory[LS_ENV_MEMORY_MAX];

        *made = (struct ls_env){ 0 };
        if (!ls_preload.registry.pid || !file || has_agent(env))
                return env;
        image = mmap(NULL, sizeof *image, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                     0);
        if (image != MAP_FAILED) {
                ls_image_inspect(file, search_path, flags, image);
                ls_env_memory_format(&ls_preload.registry, memory);
                if (child_wants_agent(image))
                        ls_env_add_agent(env, ls_preload.library, memory, made);
                munmap(image, sizeof *image);
        }
        if (made->env)
                ls_process_child_comes(1);
        errno = saved;
        return made->env ? made->env : env;
}

/* In a child of vfork the memory is the parent's, and what exec takes from it stays there: the same
 * thread's next use of this frees it. */
static int exec_in_child(const struct exec_call *call, char *const envp[], struct scratch *scratch)
{
        static __thread struct ls_env left __attribute__((tls_model("initial-exec")));
        const char *file = file_of(call, scratch->path, sizeof scratch->path);
        const char *search_path = call->search ? getenv("PATH") : NULL;
        struct sigaction replaced;
        char *const *env;
        int r, error, ignored;

        ls_env_done(&left);
        env = ls_env_of_child(file, search_path, call->search ? LS_INSPECT_SHELL : 0, envp, &left);
        if (!left.env) {                /* else it says itself what it is */
                ls_note_child(getpid(), file, search_path);
                ls_note_shell(getpid(), call->argv);
        }
        munmap(scratch, sizeof *scratch);       /* file was in it; a child of vfork would leave it
                                                 * to its parent */
        ignored = ls_agent.shm ? ls_signals_before_exec(&replaced) : 0;
        r = call->run(call, env);
        error = errno;
        if (left.env)
                ls_process_child_comes(-1);
        if (ignored)
                ls_real.sigaction(LS_TICK_SIGNAL, &replaced, NULL);
        ls_env_done(&left);
        errno = error;
        return r;
}

static int exec_any(const struct exec_call *call, char *const envp[])
{
        int saved = errno, error;
        struct scratch *scratch;

        if (!ls_process_is_known())
                return call->run(call, envp);
        scratch = mmap(NULL, sizeof *scratch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
        errno = saved;
        if (scratch == MAP_FAILED) {
                int r;

                if (!ls_in_recorded_process() || !ls_agent_live())
                        return call->run(call, envp);
                ls_engine_before_exec();
                r = call->run(call, envp);
                error = errno;
                ls_engine_exec_failed();
                errno = error;
                return r;
        }
        if (!ls_in_recorded_process() || !ls_agent_live())
                return exec_in_child(call, envp, scratch);
        exec_in_place(call, envp, scratch);
        error = errno;
        munmap(scratch, sizeof *scratch);
        errno = error;
        return -1;
}

LS_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
        struct exec_call call = { .run = run_execve, .file = path, .argv = argv, .fd = -1 };

        return exec_any(&call, envp);
}

LS_EXPORT int execv(const char *path, char *const argv[])
{
        return execve(path, argv, environ);
}

LS_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
        struct exec_call call = {
                .run = run_execvpe, .file = file, .argv = argv, .fd = -1, .search = 1
        };

        return exec_any(&call, envp);
}

LS_EXPORT int execvp(const char *file, char *const argv[])
{
        return execvpe(file, argv, environ);
}

LS_EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
        struct exec_call call = { .run = run_fexecve, .argv = argv, .fd = fd };

        return exec_any(&call, envp);
}

LS_EXPORT int execveat(int dirfd, const char *path, char *const argv[], char *const envp[],
                       int flags)
{
        struct exec_call call = {
                .run = run_execveat, .file = path, .argv = argv, .fd = dirfd, .flags = flags,
        };

        return exec_any(&call, envp);
}

/* Arguments of execl and its like, first then those of ap up to NULL, as a vector on the caller's
 * stack. */
#define COLLECT(argv, first)                                                            \
        va_list ap;                                                                     \
        size_t n = 1;                                                                   \
        char **argv;                                                                    \
        va_start(ap, first);                                                            \
        while (va_arg(ap, char *))                                                      \
                n++;                                                                    \
        va_end(ap);                                                                     \
        argv = __builtin_alloca((n + 1) * sizeof *argv);                                \
        argv[0] = (char *)(uintptr_t)first;                                             \
        va_start(ap, first);                                                            \
        for (size_t i = 1; i <= n; i++)                                                 \
                argv[i] = va_arg(ap, char *)

LS_EXPORT int execl(const char *path, const char *arg, ...)
{
        COLLECT(argv, arg);
        va_end(ap);
        return execve(path, argv, environ);
}

LS_EXPORT int execlp(const char *file, const char *arg, ...)
{
        COLLECT(argv, arg);
        va_end(ap);
        return execvpe(file, argv, environ);
}

LS_EXPORT int execle(const char *path, const char *arg, ...)
{
        char *const *envp;

        COLLECT(argv, arg);
        envp = va_arg(ap, char *const *);
        va_end(ap);
        return execve(path, argv, envp);
}
