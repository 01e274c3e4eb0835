/* exec in a process that is attached to. A tick that is pending when it succeeds, or comes after,
 * would kill the new image, which has no handler. Nothing is interposed here, so the entries of the
 * C library's calls are patched: threads give up their ticks, the recorder says that it has stopped
 * them, and what is pending is discarded. All of the exec family goes through these three; bare
 * system calls are not seen. With them goes sigaltstack: a signal stack that is too small for a
 * tick must not get one, and each patch more has all threads looked at once. Called by attach.c. */

#include "libsample/attach/exec.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#include "libsample/agent.h"
#include "libsample/handler/guard.h"
#include "libsample/inject/objects.h"
#include "libsample/inject/patch.h"
#include "libsample/recording/notice.h"
#include "libsample/recording/pass.h"
#include "libsample/recording/tick_action.h"
#include "libsample/vm/life.h"

static int on_sigaltstack(const stack_t *stack, stack_t *old);
static int on_execve(const char *path, char *const argv[], char *const envp[]);
static int on_fexecve(int fd, char *const argv[], char *const envp[]);
static int on_execveat(int dirfd, const char *path, char *const argv[], char *const envp[],
                       int flags);

enum { EXECVE, FEXECVE, EXECVEAT, SIGALTSTACK, NPATCHES };
static struct ls_patch patches[NPATCHES] = {
        [EXECVE] = { .name = "execve", .replacement = (void *)on_execve },
        [FEXECVE] = { .name = "fexecve", .replacement = (void *)on_fexecve },
        [EXECVEAT] = { .name = "execveat", .replacement = (void *)on_execveat },
        [SIGALTSTACK] = { .name = "sigaltstack", .replacement = (void *)on_sigaltstack },
};

/* In a child of vfork or posix_spawn the memory is the parent's, and so are the ticks: then 0. */
static int before(void)
{
        int saved = errno, ours = ls_in_recorded_process() && ls_control_pass();

        if (ours)
                ls_engine_before_exec();
        errno = saved;
        return ours;
}

static void failed(int ours)
{
        int saved = errno;

        if (ours) {
                ls_engine_exec_failed();
                ls_control_go_out();
        }
        errno = saved;
}

static int on_execve(const char *path, char *const argv[], char *const envp[])
{
        int (*original)(const char *, char *const [], char *const []) =
                (int (*)(const char *, char *const [], char *const []))patches[EXECVE].original;
        int ours = before(), r = original(path, argv, envp);

        failed(ours);
        return r;
}

static int on_fexecve(int fd, char *const argv[], char *const envp[])
{
        int (*original)(int, char *const [], char *const []) =
                (int (*)(int, char *const [], char *const []))patches[FEXECVE].original;
        int ours = before(), r = original(fd, argv, envp);

        failed(ours);
        return r;
}

static int on_execveat(int dirfd, const char *path, char *const argv[], char *const envp[],
                       int flags)
{
        int (*original)(int, const char *, char *const[], char *const[], int) =
                (int (*)(int, const char *, char *const[], char *const[], int))patches[EXECVEAT]
                        .original;
        int ours = before(), r = original(dirfd, path, argv, envp, flags);

        failed(ours);
        return r;
}

/* The stack is the caller's: what cannot be read is left to the kernel to refuse. */
static int on_sigaltstack(const stack_t *stack, stack_t *old)
{
        int (*original)(const stack_t *, stack_t *) =
                (int (*)(const stack_t *, stack_t *))patches[SIGALTSTACK].original;
        int saved = errno;

        if (stack && ls_readable(stack, sizeof(*stack)) && !(stack->ss_flags & SS_DISABLE) &&
            ls_tick_action_is_small(stack->ss_size) && ls_in_recorded_process())
                ls_tick_action_leave_signal_stacks();
        errno = saved;
        return original(stack, old);
}

static const char *what_may_happen(int i)
{
        return i == SIGALTSTACK ? "if the program sets a small signal stack while it is recorded, "
                                  "a tick may overflow it"
                                : "if the program calls it while it is recorded, a tick may kill "
                                  "the new image";
}

static int is_libc(const struct ls_object *object, void *data)
{
        (void)data;
        if (!ls_object_symbol(object, "gnu_get_libc_version", NULL))
                return 0;
        for (int i = 0; i < NPATCHES; i++)
                patches[i].target = ls_object_symbol(object, patches[i].name, &patches[i].size);
        return 1;
}

void ls_attach_exec_begin(void)
{
        if (!ls_objects_each(is_libc, NULL))
                return;
        ls_patch_install(patches, NPATCHES, PROT_READ | PROT_EXEC, 0);
        for (int i = 0; i < NPATCHES; i++)
                if (patches[i].target && patches[i].why)
                        ls_agent_notice("%s cannot be watched (%s): %s", patches[i].name,
                                        patches[i].why, what_may_happen(i));
}

void ls_attach_exec_end(void)
{
        ls_patch_remove(patches, NPATCHES, PROT_READ | PROT_EXEC);
}

void ls_attach_exec_after_fork_child(void)
{
        ls_patch_after_fork(patches, NPATCHES);
}
