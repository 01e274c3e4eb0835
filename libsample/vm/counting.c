/* Exact counts of the VMs of a recorded process: see counting.h. */

#include "libsample/vm/counting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "formats/wire/exact.h"
#include "libsample/agent.h"
#include "libsample/exact/exact.h"
#include "libsample/recording/notice.h"
#include "libsample/recording/preload.h"
#include "libsample/recording/share.h"
#include "libsample/vm/probe.h"

/* Maps the memory of the counts, once. Returns NULL, or why they have none. */
static const char *map(const lua_State *L)
{
        static const char *why;
        static int mapped;
        static uint64_t generation;     /* of the process that has mapped it */
        char path[64];
        int fd, err = -ENOENT;

        if (mapped && generation == ls_agent.shm->generation)
                return why;
        if (mapped)
                return "its process was forked, and goes on in what the other one has compiled";
        mapped = 1;
        generation = ls_agent.shm->generation;
        snprintf(path, sizeof path, "/proc/%d/fd/%d", ls_preload.where.pid, ls_agent.shm->exact_fd);
        fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd >= 0) {
                err = ls_share_sealed_size(fd) == LS_EXACT_SIZE ? ls_exact_map(fd, (uintptr_t)L)
                                                                : -EINVAL;
                close(fd);
        }
        why = err == 0         ? NULL
              : err == -EBUSY  ? "another program has counted in this process"
              : err == -ENOMEM ? "there is no room for 129 GiB of addresses; without a limit "
                                 "(ulimit -v) there is"
                               : "the memory for counts cannot be had";
        return why;
}

/* What watching a call costs is measured in a VM of our own. */
static void calibrate(void)
{
        static int done;
        lua_State *L;

        if (done)
                return;
        done = 1;
        ls_vm_probing = 1;
        L = ls_lua.luaL_newstate();
        if (L) {
                ls_exact_calibrate(L);
                ls_lua.lua_close(L);
        }
        ls_vm_probing = 0;
}

static void say(const char *why)
{
        static const char *said;

        if (said != why)
                ls_agent_notice("what a VM executes is not counted: %s", why);
        said = why;
}

int ls_counting_begin(struct ls_vm *vm, lua_State *L)
{
        struct ls_exact *exact;
        const char *why;

        if (!ls_agent.shm->exact)
                return 0;
        why = !ls_vm_facts.ok ? ls_vm_facts.why
              : vm->engine == LS_ENGINE_HOOK
                      ? "LuaJIT's own profiler reads its stacks (engine hook)"
              : (why = ls_exact_why_not(ls_agent.shm->exact == LS_EXACT_ALL)) ? why
                                                                              : map(L);
        if (!why && ls_agent.shm->exact == LS_EXACT_TIME)
                calibrate();
        exact = why ? NULL : ls_exact_open(L, vm->vm_id, ls_agent.shm->exact, &why);
        if (!exact) {
                say(why);
                return 0;
        }
        if (ls_agent.shm->exact == LS_EXACT_ALL)
                vm->exact = exact;
        return ls_agent.shm->exact == LS_EXACT_ALL;
}

void ls_counting_check(struct ls_vm *vm, lua_State *L)
{
        if (!vm->exact || vm->jit)
                return;
        vm->exact = NULL;
        ls_exact_closed(ls_vm_identity(L), vm->vm_id);
        say("its compiler cannot be watched");
}
