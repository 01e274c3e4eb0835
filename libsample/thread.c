/* Which thread runs: see thread.h. */

#include "libsample/thread.h"

#include "libsample/agent.h"

__thread struct ls_thread *ls_thread_own __attribute__((tls_model("initial-exec")));
__thread uint64_t ls_thread_own_generation __attribute__((tls_model("initial-exec")));

struct ls_thread *ls_thread_self(void)
{
        return ls_agent_live() && ls_thread_own_generation == *ls_agent.generation ? ls_thread_own
                                                                                   : NULL;
}
