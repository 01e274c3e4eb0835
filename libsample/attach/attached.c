/* See attached.h. */

#include "libsample/attach/attached.h"

#include <string.h>
#include <unistd.h>

#include "libsample/agent.h"
#include "libsample/attach/exec.h"
#include "libsample/attach/locked.h"
#include "libsample/libc/real.h"
#include "libsample/vm/life.h"

LS_EXPORT struct ls_attach_status luasample_attach_status = { LS_ATTACH_MAGIC, LS_ATTACH_VERSION, 0,
                                                              0, 0 };
atomic_int ls_attach_taken;

int ls_attach_is_way_of(const char *library)
{
        return !strncmp(library, LS_ATTACH_WAY, strlen(LS_ATTACH_WAY));
}

void ls_attach_after_fork_child(void)
{
        luasample_attach_status.pid = 0;
        if (ls_agent.attached) {
                atomic_store(&ls_attach_taken, 0);
                ls_attach_exec_after_fork_child();
                ls_attach_locked_after_fork_child();
        }
        atomic_store(&ls_agent.calls, 0);
}

int ls_attach_has_left(void)
{
        return ls_agent.attached && !luasample_attach_status.pid;
}

void ls_attach_fork_begins(void)
{
        if (ls_agent.attached && !ls_attach_has_left())
                atomic_fetch_add(&ls_agent.shm->forks_coming, 1);
}

static void tell(struct ls_shm *shm)
{
        for (unsigned i = 0; i < LS_FORK_SLOTS; i++) {
                uint32_t nobody = 0;

                if (atomic_compare_exchange_strong(&shm->forked[i], &nobody, (uint32_t)getpid()))
                        return;
        }
        atomic_fetch_add(&shm->forks_untold, 1);
}

/* The memory is the parent's still, and shared with it. */
void ls_attach_tell_of_child(void)
{
        if (!ls_agent.attached)
                return;
        if (ls_engine_may_go_on() && atomic_load(&ls_agent.shm->recording))
                tell(ls_agent.shm);
        atomic_fetch_sub(&ls_agent.shm->forks_coming, 1);
}
