/* popen, and what closes its streams. libc starts the shell itself, with the environment that the
 * program has, and the environment is no place for the agent's way into that shell: other threads
 * read it. So popen is made of a pipe, posix_spawn and fdopen, as libc's is; its streams are kept
 * in a list, where pclose and fclose find whom to wait for. */
#include "libsample/libc/real.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "libsample/agent.h"
#include "libsample/interpose/interpose.h"
#include "libsample/lock.h"
#include "libsample/old_libc.h"
#include "libsample/pages.h"

struct stream { FILE *file; pid_t pid; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *streams;
static size_t room;
static _Atomic size_t used;

void ls_popen_after_fork(void)
{
        static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

        memcpy(&lock, &fresh, sizeof fresh);
}

/* The child of a stream, 0 = it is none of popen's. forget: and takes it out of the list. */
static pid_t child_of(const FILE *file, int forget)
{
        sigset_t mask;
        pid_t pid = 0;

        if (!atomic_load(&used))
                return 0;
        ls_lock(&lock, &mask);
        for (size_t i = 0; !pid && i < used; i++) {
                if (streams[i].file != file)
                        continue;
                pid = streams[i].pid;
                if (forget)
                        streams[i] = streams[--used];
        }
        ls_unlock(&lock, &mask);
        return pid;
}

static int wait_for(pid_t pid)
{
        int state, status;
        pid_t r;

        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        do
                r = waitpid(pid, &status, 0);
        while (r < 0 && errno == EINTR);
        pthread_setcancelstate(state, NULL);
        return r < 0 ? -1 : status;
}

/* What is left to write is sent while the stream is in the list, so that no other child holds the
 * pipe open meanwhile. */
static int close_stream(FILE *file, int (*close_other)(FILE *))
{
        int written = 0, is_open, status;
        pid_t pid;

        if (!child_of(file, 0))
                return close_other(file);
        if (__fpending(file))
                written = fflush(file);
        if (written)
                __fpurge(file);         /* it is not tried again */
        pid = child_of(file, 1);
        is_open = ls_fcntl(fileno(file), F_GETFD, 0) >= 0;
        if (ls_libc()->fclose(file))
                written = EOF;
        status = is_open ? wait_for(pid) : -1;
        return status ? status : written;
}

LS_EXPORT int fclose(FILE *file)
{
        return close_stream(file, ls_libc()->fclose);
}

LS_EXPORT int pclose(FILE *file)
{
        return close_stream(file, ls_libc()->pclose);
}

struct mode { int reads, writes, cloexec; };

static int parse_mode(const char *type, struct mode *ret)
{
        *ret = (struct mode){ 0 };
        for (; *type; type++) {
                if (*type == 'r')
                        ret->reads = 1;
                else if (*type == 'w')
                        ret->writes = 1;
                else if (*type == 'e')
                        ret->cloexec = 1;
                else
                        return -1;
        }
        return ret->reads + ret->writes == 1 ? 0 : -1;
}

/* The child's end of the pipe is to be its descriptor fd. Where it has this number already it would
 * be closed with exec. */
static int open_pipe(const struct mode *mode, int fd, int *ret_mine, int *ret_its)
{
        int ends[2], moved;

        if (pipe2(ends, O_CLOEXEC))
                return -1;
        *ret_mine = ends[mode->writes];
        *ret_its = ends[mode->reads];
        if (*ret_its != fd)
                return 0;
        moved = ls_fcntl(fd, F_DUPFD_CLOEXEC, 0);
        syscall(SYS_close, fd);
        *ret_its = moved;
        if (moved >= 0)
                return 0;
        syscall(SYS_close, *ret_mine);
        return -1;
}

/* With the lock held. its: becomes the child's descriptor fd; earlier streams are not for it.
 * Returns 0 or an errno. */
static int start_shell(const char *command, int its, int fd, const sigset_t *mask,
                       char *const envp[], pid_t *ret_pid)
{
        char *argv[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                         (char *)(uintptr_t)command, NULL };
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attr;
        int err = posix_spawn_file_actions_init(&actions);

        if (err)
                return err;
        err = posix_spawn_file_actions_adddup2(&actions, its, fd);
        for (size_t i = 0; !err && i < used; i++)
                if (fileno(streams[i].file) != fd)
                        err = posix_spawn_file_actions_addclose(&actions, fileno(streams[i].file));
        posix_spawnattr_init(&attr);
        posix_spawnattr_setsigmask(&attr, mask);
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
        if (!err)
                err = ls_libc()->posix_spawn(ret_pid, LS_SHELL, &actions, &attr, argv, envp);
        posix_spawnattr_destroy(&attr);
        posix_spawn_file_actions_destroy(&actions);
        return err;
}

/* Starts the shell and notes the stream. Returns 0 or an errno. */
static int start(const char *command, FILE *file, int its, int fd, char *const envp[])
{
        struct stream s = { .file = file };
        sigset_t mask;
        int err;

        ls_lock(&lock, &mask);
        err = ls_pages_grow((void **)&streams, &room, used + 1, sizeof *streams) ? ENOMEM :
              start_shell(command, its, fd, &mask, envp, &s.pid);
        if (!err)
                streams[used++] = s;
        ls_unlock(&lock, &mask);
        return err;
}

LS_EXPORT FILE *popen(const char *command, const char *type)
{
        int saved = errno, mine, its, fd;
        struct mode mode;
        struct ls_env made;
        char *const *envp;
        FILE *file;

        if (command && ls_agent.shm)
                ls_note_command(getpid(), command);
        if (!ls_preload.registry.pid)           /* there is nothing to pass on, in no call of this
                                                 * process */
                return ls_libc()->popen(command, type);
        if (parse_mode(type, &mode)) {
                errno = EINVAL;
                return NULL;
        }
        fd = mode.reads ? STDOUT_FILENO : STDIN_FILENO;
        if (open_pipe(&mode, fd, &mine, &its))
                return NULL;
        file = fdopen(mine, mode.reads ? "r" : "w");
        if (!file) {
                syscall(SYS_close, mine);
                syscall(SYS_close, its);
                errno = ENOMEM;
                return NULL;
        }
        envp = ls_env_of_child(LS_SHELL, NULL, 0, environ, &made);
        if (start(command, file, its, fd, envp)) {
                if (made.env)
                        ls_process_child_comes(-1);
                ls_libc()->fclose(file);
                file = NULL;
                saved = ENOMEM;
        }
        ls_env_done(&made);
        syscall(SYS_close, its);
        if (file && !mode.cloexec)
                ls_fcntl(mine, F_SETFD, 0);
        errno = saved;
        return file;
}
