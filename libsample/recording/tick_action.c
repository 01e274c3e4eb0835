/* See tick_action.h. Any thread. */

#include "libsample/recording/tick_action.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/auxv.h>

#include "libsample/agent.h"
#include "libsample/handler/tick.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* Bytes that the tick's handler takes of a signal stack beside the kernel's frame, with room for a
 * handler of the program's. */
#define HANDLER_BYTES 8192u

static atomic_int no_signal_stack, installed;

int ls_tick_action_install(void)
{
        struct sigaction sa = { .sa_sigaction = ls_tick_handler,
                                .sa_flags = SA_SIGINFO | SA_RESTART };

        if (!atomic_load(&no_signal_stack))
                sa.sa_flags |= SA_ONSTACK;
        atomic_store(&installed, 1);

        sigemptyset(&sa.sa_mask);
        return ls_real.sigaction(LS_TICK_SIGNAL, &sa, NULL);
}

int ls_tick_action_is_installed(void)
{
        return atomic_load(&installed);
}

void ls_tick_action_give_up(void)
{
        atomic_store(&installed, 0);
}

int ls_tick_action_is_small(size_t size)
{
        return size < getauxval(AT_MINSIGSTKSZ) + HANDLER_BYTES;
}

void ls_tick_action_leave_signal_stacks(void)
{
        if (!atomic_exchange(&no_signal_stack, 1) && atomic_load(&installed) && ls_agent_live())
                ls_tick_action_install();
}
