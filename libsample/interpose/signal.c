/* Signal dispositions. The tick's signal has two: the agent's, which the kernel has, and the
 * program's, which the program sees. SIGPROF and ITIMER_PROF belong to the program, except while
 * the engine starts LuaJIT's profiler. Sets of signals that the program waits for do not hold the
 * tick's. */
#include "libsample/libc/real.h"

#include <errno.h>
#include <string.h>

#include "libsample/agent.h"
#include "libsample/handler/tick.h"
#include "libsample/interpose/interpose.h"
#include "libsample/interpose/wait.h"
#include "libsample/recording/pass.h"
#include "libsample/recording/tick_action.h"
#include "libsample/vm/profiler.h"

#ifndef SA_RESTORER
#define SA_RESTORER 0x04000000
#endif

static struct sigaction shadow; /* the program's disposition of LS_TICK_SIGNAL */

/* Does the kernel have the agent's handler? */
static int tick_is_ours(void)
{
        struct sigaction now;

        return ls_agent.shm && ls_libc()->sigaction(LS_TICK_SIGNAL, NULL, &now) == 0 &&
               (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == ls_tick_handler;
}

void ls_signals_start(int ignored)
{
        struct sigaction by_default = { .sa_handler = SIG_DFL };

        ls_tick_foreign = ls_signals_foreign;
        ls_libc()->sigaction(LS_TICK_SIGNAL, NULL, &shadow);
        if (shadow.sa_handler != SIG_IGN || ignored)
                return;
        ls_libc()->sigaction(LS_TICK_SIGNAL, &by_default, NULL);
        shadow = by_default;
}

void ls_signals_end(void)
{
        struct sigaction ignore = { .sa_handler = SIG_IGN };

        if (!tick_is_ours())
                return;
        ls_libc()->sigaction(LS_TICK_SIGNAL, &ignore, NULL);
        ls_libc()->sigaction(LS_TICK_SIGNAL, &shadow, NULL);
}

int ls_signals_ignored(void)
{
        return !(shadow.sa_flags & SA_SIGINFO) && shadow.sa_handler == SIG_IGN;
}

void ls_signals_after_fork(void)
{
        if (tick_is_ours())
                ls_libc()->sigaction(LS_TICK_SIGNAL, &shadow, NULL);
}

int ls_signals_before_exec(struct sigaction *ret_old)
{
        struct sigaction ignore = { .sa_handler = SIG_IGN };

        if (!ls_signals_ignored())
                return 0;
        return ls_libc()->sigaction(LS_TICK_SIGNAL, &ignore, ret_old) == 0;
}

void ls_signals_foreign(int sig, siginfo_t *info, void *context)
{
        struct sigaction act = shadow;

        if (act.sa_flags & SA_SIGINFO) {
                act.sa_sigaction(sig, info, context);
        } else if (act.sa_handler == SIG_DFL) {
                sigset_t set;

                ls_libc()->sigaction(sig, &act, NULL);
                sigemptyset(&set);
                sigaddset(&set, sig);
                raise(sig);
                ls_libc()->sigprocmask(SIG_UNBLOCK, &set, NULL);
        } else if (act.sa_handler != SIG_IGN) {
                act.sa_handler(sig);
        }
}

/* An action as the kernel would give it back: with libc's restorer, and without what cannot be
 * blocked. */
static struct sigaction as_kept_by_kernel(struct sigaction act)
{
        struct sigaction now;

        if (ls_libc()->sigaction(LS_TICK_SIGNAL, NULL, &now) == 0) {
                act.sa_flags |= now.sa_flags & SA_RESTORER;
                act.sa_restorer = now.sa_restorer;
        }
        sigdelset(&act.sa_mask, SIGKILL);
        sigdelset(&act.sa_mask, SIGSTOP);
        return act;
}

/* sigaction of the tick's signal. In a child of vfork the memory is the parent's and must not
 * change, but the child's dispositions are its own. */
static int tick_sigaction(const struct sigaction *act, struct sigaction *old)
{
        struct sigaction wanted = { 0 }, was;
        int ours = tick_is_ours(), parent = ls_in_recorded_process(), r = 0;

        if (act)
                wanted = *act;
        if (!ours || !parent)
                r = ls_libc()->sigaction(LS_TICK_SIGNAL, act ? &wanted : NULL, &was);
        if (r < 0)
                return r;
        if (old)
                *old = ours ? shadow : was;
        if (act && parent)
                shadow = as_kept_by_kernel(wanted);
        return 0;
}

LS_EXPORT int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
        if (sig == LS_TICK_SIGNAL && ls_agent.shm)
                return tick_sigaction(act, old);
        if (sig == SIGPROF && ls_agent.shm && ls_engine_swallow_sigaction(sig, act, old))
                return 0;
        return ls_libc()->sigaction(sig, act, old);
}

/* A signal stack that is too small for a tick must not be used for one. */
LS_EXPORT int sigaltstack(const stack_t *stack, stack_t *old)
{
        int r = ls_libc()->sigaltstack(stack, old);

        if (r == 0 && stack && !(stack->ss_flags & SS_DISABLE) && ls_agent.shm &&
            ls_tick_action_is_small(stack->ss_size))
                ls_tick_action_leave_signal_stacks();
        return r;
}

/* signal() and its relatives in terms of sigaction, as libc has them. */
static sighandler_t tick_signal(sighandler_t handler, int flags)
{
        struct sigaction act = { .sa_handler = handler, .sa_flags = flags }, old;

        sigemptyset(&act.sa_mask);
        if (!(flags & SA_NODEFER))
                sigaddset(&act.sa_mask, LS_TICK_SIGNAL);
        if (handler == SIG_ERR) {
                errno = EINVAL;
                return SIG_ERR;
        }
        return tick_sigaction(&act, &old) < 0 ? SIG_ERR : old.sa_handler;
}

LS_EXPORT sighandler_t signal(int sig, sighandler_t handler)
{
        if (sig == LS_TICK_SIGNAL && ls_agent.shm)
                return tick_signal(handler, SA_RESTART);
        return ls_libc()->signal(sig, handler);
}

LS_EXPORT sighandler_t bsd_signal(int sig, sighandler_t handler)
{
        return signal(sig, handler);
}

LS_EXPORT sighandler_t ssignal(int sig, sighandler_t handler)
{
        return signal(sig, handler);
}

LS_EXPORT sighandler_t sysv_signal(int sig, sighandler_t handler)
{
        if (sig == LS_TICK_SIGNAL && ls_agent.shm)
                return tick_signal(handler, (int)(SA_RESETHAND | SA_NODEFER));
        return ls_libc()->sysv_signal(sig, handler);
}

LS_EXPORT sighandler_t __sysv_signal(int sig, sighandler_t handler)
{
        return sysv_signal(sig, handler);
}

LS_EXPORT int __sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
        return sigaction(sig, act, old);
}

LS_EXPORT sighandler_t sigset(int sig, sighandler_t disposition)
{
        sigset_t set, old_set;
        struct sigaction old;
        sighandler_t was;

        if (sig != LS_TICK_SIGNAL || !ls_agent.shm)
                return ls_libc()->sigset(sig, disposition);
        sigemptyset(&set);
        sigaddset(&set, sig);
        if (disposition == SIG_HOLD) {
                if (ls_libc()->sigprocmask(SIG_BLOCK, &set, &old_set) < 0 ||
                    tick_sigaction(NULL, &old) < 0)
                        return SIG_ERR;
                return sigismember(&old_set, sig) ? SIG_HOLD : old.sa_handler;
        }
        was = tick_signal(disposition, 0);
        if (was == SIG_ERR || ls_libc()->sigprocmask(SIG_UNBLOCK, &set, &old_set) < 0)
                return SIG_ERR;
        return sigismember(&old_set, sig) ? SIG_HOLD : was;
}

LS_EXPORT int sigignore(int sig)
{
        if (sig == LS_TICK_SIGNAL && ls_agent.shm)
                return tick_signal(SIG_IGN, 0) == SIG_ERR ? -1 : 0;
        return ls_libc()->sigignore(sig);
}

LS_EXPORT int siginterrupt(int sig, int interrupt)
{
        struct sigaction act;

        if (sig != LS_TICK_SIGNAL || !ls_agent.shm)
                return ls_libc()->siginterrupt(sig, interrupt);
        if (tick_sigaction(NULL, &act) < 0)
                return -1;
        act.sa_flags = interrupt ? act.sa_flags & ~SA_RESTART : act.sa_flags | SA_RESTART;
        return tick_sigaction(&act, NULL);
}

LS_EXPORT int setitimer(__itimer_which_t which, const struct itimerval *value,
                        struct itimerval *old)
{
        if (which == ITIMER_PROF && ls_agent.shm &&
            ls_engine_swallow_setitimer((int)which, value, old))
                return 0;
        return ls_libc()->setitimer(which, value, old);
}

/* set without the tick's signal, in *room when it has to change. */
static const sigset_t *without_tick(const sigset_t *set, sigset_t *room)
{
        if (!ls_agent.shm || !set || sigismember(set, LS_TICK_SIGNAL) != 1 || !tick_is_ours())
                return set;
        *room = *set;
        sigdelset(room, LS_TICK_SIGNAL);
        return room;
}

LS_EXPORT int sigpending(sigset_t *set)
{
        int r = ls_libc()->sigpending(set);

        if (r == 0 && ls_agent.shm && sigismember(set, LS_TICK_SIGNAL) == 1 && tick_is_ours())
                sigdelset(set, LS_TICK_SIGNAL);
        return r;
}

LS_EXPORT int sigwait(const sigset_t *set, int *sig)
{
        sigset_t room;

        return ls_libc()->sigwait(without_tick(set, &room), sig);
}

LS_EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
        struct ls_wait wait;
        sigset_t room;
        int r;

        set = without_tick(set, &room);
        ls_wait_begin(&wait, 1);
        r = ls_libc()->sigwaitinfo(set, info);
        ls_wait_end(&wait);
        return r;
}

LS_EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
        struct ls_wait wait;
        sigset_t room;
        int r;

        set = without_tick(set, &room);
        ls_wait_begin(&wait, 1);
        r = ls_libc()->sigtimedwait(set, info, timeout);
        ls_wait_end(&wait);
        return r;
}

/* Lives longer than this call, so it matters not whether ticks run now. */
LS_EXPORT int signalfd(int fd, const sigset_t *mask, int flags)
{
        sigset_t room;

        if (ls_agent.shm && sigismember(mask, LS_TICK_SIGNAL) == 1) {
                room = *mask;
                sigdelset(&room, LS_TICK_SIGNAL);
                mask = &room;
        }
        return ls_libc()->signalfd(fd, mask, flags);
}
