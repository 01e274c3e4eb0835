/* See pass.h. */

#include "libsample/recording/pass.h"

#include <stdatomic.h>
#include <unistd.h>

#include "libsample/agent.h"
#include "libsample/recording/threads.h"

int ls_in_recorded_process(void)
{
        return getpid() == ls_agent.pid;
}

static int pass(int in_the_end_too)
{
        if (!ls_agent.attached)
                return ls_agent_live();
        atomic_fetch_add(&ls_agent.calls, 1);
        if ((in_the_end_too || !atomic_load(&ls_agent.leaving)) && ls_agent_live())
                return 1;
        ls_control_go_out();
        return 0;
}

int ls_control_pass(void)
{
        return pass(0);
}

int ls_control_pass_vm(void)
{
        return pass(1);
}

int ls_control_come_in(void)
{
        int in = ls_control_pass();

        if (in && ls_agent.attached && !ls_thread_self())
                ls_thread_begin(0);             /* it may not have had its first tick yet */
        return in;
}

void ls_control_go_out(void)
{
        if (ls_agent.attached)
                atomic_fetch_sub(&ls_agent.calls, 1);
}
