/* See runtime.h. */

#include "libsample/vm/runtime.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "libsample/agent.h"
#include "libsample/handler/builtins.h"
#include "libsample/handler/functions.h"
#include "libsample/handler/vms.h"
#include "libsample/recording/notice.h"
#include "libsample/thread.h"
#include "libsample/vm/probe.h"
#include "libsample/vm/view.h"

void ls_runtime_set_state(uint32_t state)
{
        atomic_store(&ls_agent.shm->agent_state, state);
}

/* For the process that reads blocked threads from outside. */
static void publish_view(void)
{
        static struct ls_view view;
        size_t size;

        view = (struct ls_view){
                .size = sizeof view,
                .vm_size = sizeof(struct ls_vm),
                .facts_size = sizeof ls_vm_facts,
                .thread_size = sizeof(struct ls_thread),
                .facts = &ls_vm_facts,
                .vms = ls_vms,
                .vms_used = &ls_vms_used,
                .vms_closed = &ls_vms_closed,
                .jit_functions = ls_jit_functions,
                .builtins = (const char(*)[40])ls_builtin_table(&size),
                .interposed = ls_interposed,
        };
        atomic_store(&ls_agent.shm->view, (uintptr_t)&view);
}

/* Says once why VMs are not sampled. */
void ls_runtime_refuse(const char *why)
{
        static const char *said;

        if (said != why)
                ls_agent_notice("the Lua VM in %s is not sampled: %s",
                                ls_lua.path ? ls_lua.path : "the program", why);
        said = why;
        if (!atomic_load(&ls_agent.shm->nvms))
                ls_runtime_set_state(LS_AGENT_REFUSED);
}

/* 1 when samples can be had through the API alone. */
int ls_runtime_has_profiler_api(void)
{
        return ls_lua.luaJIT_profile_start && ls_lua.luaJIT_profile_stop && ls_lua.lua_getstack &&
               ls_lua.lua_getinfo && ls_lua.lua_settop && ls_lua.lua_tocfunction;
}

static int probed;

void ls_runtime_describe(void)
{
        snprintf(ls_agent.shm->runtime, sizeof ls_agent.shm->runtime, "%s", ls_vm_facts.version);
        snprintf(ls_agent.shm->runtime_path, sizeof ls_agent.shm->runtime_path, "%s",
                 ls_lua.path ? ls_lua.path : "");
        if (ls_vm_facts.ok)
                publish_view();
}

void ls_runtime_probe(void)
{
        if (probed)
                return;
        probed = 1;
        ls_vm_probe();
        ls_runtime_describe();
}

int ls_runtime_is_usable(void)
{
        ls_runtime_probe();
        if (!ls_vm_facts.ok && !ls_runtime_has_profiler_api())
                ls_runtime_refuse(ls_vm_facts.why);
        return ls_vm_facts.ok || ls_runtime_has_profiler_api();
}

void ls_runtime_forget(void)
{
        probed = 0;
        memset(&ls_vm_facts, 0, sizeof ls_vm_facts);
}

int ls_runtime_is_probed(void)
{
        return probed;
}
