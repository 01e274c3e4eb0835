/* system: libc starts the shell itself, with the environment that the program has, so the agent has
 * to get into that shell's environment on another way. It is what POSIX says it is, made of
 * posix_spawn, with the environment that is meant for the child. */
#include "libsample/libc/real.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "libsample/agent.h"
#include "libsample/interpose/interpose.h"
#include "libsample/old_libc.h"

/* Callers of system at this moment: the first ignores SIGINT and SIGQUIT, the last has the
 * program's actions again. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned waiting;
static struct sigaction interrupt_was, quit_was;

static void ignore_keys(sigset_t *ret_mask)
{
        struct sigaction ignore = { .sa_handler = SIG_IGN };
        sigset_t child;

        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        pthread_mutex_lock(&lock);
        if (waiting++ == 0) {
                sigaction(SIGINT, &ignore, &interrupt_was);
                sigaction(SIGQUIT, &ignore, &quit_was);
        }
        pthread_mutex_unlock(&lock);
        ls_libc()->sigprocmask(SIG_BLOCK, &child, ret_mask);
}

static void take_keys(const sigset_t *mask)
{
        pthread_mutex_lock(&lock);
        if (--waiting == 0) {
                sigaction(SIGINT, &interrupt_was, NULL);
                sigaction(SIGQUIT, &quit_was, NULL);
        }
        pthread_mutex_unlock(&lock);
        ls_libc()->sigprocmask(SIG_SETMASK, mask, NULL);
}

/* Starts the shell with the signals that the program has. Returns 0 or an errno. */
static int start_shell(const char *command, char *const envp[], const sigset_t *mask,
                       pid_t *ret_pid)
{
        char *argv[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                         (char *)(uintptr_t)command, NULL };
        posix_spawnattr_t attr;
        sigset_t defaults;
        int r = posix_spawnattr_init(&attr);

        if (r)
                return r;
        sigemptyset(&defaults);
        if (interrupt_was.sa_handler != SIG_IGN)
                sigaddset(&defaults, SIGINT);
        if (quit_was.sa_handler != SIG_IGN)
                sigaddset(&defaults, SIGQUIT);
        posix_spawnattr_setsigmask(&attr, mask);
        posix_spawnattr_setsigdefault(&attr, &defaults);
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        r = ls_libc()->posix_spawn(ret_pid, LS_SHELL, NULL, &attr, argv, envp);
        posix_spawnattr_destroy(&attr);
        return r;
}

struct waiting { pid_t pid; const sigset_t *mask; };

/* The thread is cancelled while the command runs: as libc does, the command goes too. */
static void cancelled(void *ctx)
{
        const struct waiting *w = ctx;
        int state;

        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        kill(w->pid, SIGKILL);
        while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        take_keys(w->mask);
        pthread_setcancelstate(state, NULL);
}

static int wait_for(const struct waiting *w)
{
        int status = -1;
        pid_t r;

        do
                r = waitpid(w->pid, &status, 0);
        while (r < 0 && errno == EINTR);
        return r == w->pid ? status : -1;
}

/* What pthread_cleanup_push calls is in libpthread before glibc 2.34, and a thread without that
 * library cannot be cancelled. */
LS_OLD_AND_WEAK(__pthread_register_cancel, "2.3.3")
LS_OLD_AND_WEAK(__pthread_unregister_cancel, "2.3.3")
LS_OLD_AND_WEAK(__pthread_unwind_next, "2.3.3")

static int wait_cancellable(struct waiting *w)
{
        int status;

        pthread_cleanup_push(cancelled, w);
        status = wait_for(w);
        pthread_cleanup_pop(0);
        return status;
}

LS_EXPORT int system(const char *command)
{
        struct ls_env made;
        struct waiting w = { 0 };
        char *const *envp;
        sigset_t mask;
        int saved = errno, r, status = W_EXITCODE(127, 0);

        if (command && ls_agent.shm)
                ls_note_command(getpid(), command);
        envp = command ? ls_env_of_child(LS_SHELL, NULL, 0, environ, &made) : environ;
        if (envp == environ)            /* there is nothing to pass on */
                return ls_libc()->system(command);
        w.mask = &mask;
        ignore_keys(&mask);
        r = start_shell(command, envp, &mask, &w.pid);
        if (r)
                ls_process_child_comes(-1);
        ls_env_done(&made);
        if (r == 0)
                status = __pthread_register_cancel ? wait_cancellable(&w) : wait_for(&w);
        if (r == 0)
                r = status == -1 ? errno : 0;
        take_keys(&mask);
        errno = r ? r : saved;
        return status;
}
