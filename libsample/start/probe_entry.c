/* Tells a process that has this library and a LuaJIT loaded how that LuaJIT lays out its VMs, for
 * luasample stack. Nothing of it is recorded. Called by record/attach/lua_image.c in a process of
 * its own: by dlsym, or through the environment by start/preload.c. */

#include "libsample/start/probe_entry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsample/agent.h"
#include "libsample/handler/builtins.h"
#include "libsample/interpose/interpose.h"
#include "libsample/libc/real.h"
#include "libsample/vm/probe.h"
#include "libsample/vm/view.h"

static int take(const struct ls_object *object, void *data)
{
        (void)data;
        if (!ls_object_symbol(object, "lua_newstate", NULL) ||
            !ls_object_symbol(object, "luaJIT_setmode", NULL))
                return 0;
        ls_vm_library_resolve(object);
        return 1;
}

/* Addresses in the LuaJIT's code are given from its base on. */
static void make_relative(struct ls_vm_facts *facts, uint64_t base)
{
        for (size_t i = 0; i < sizeof facts->resume_return / sizeof *facts->resume_return; i++)
                if (facts->resume_return[i])
                        facts->resume_return[i] -= base;
        facts->why = facts->why_no_walk = NULL;
}

LS_EXPORT int luasample_probe(int fd)
{
        static struct ls_probe_answer answer;
        size_t size;

        answer.size = sizeof answer;
        answer.error = -ENOENT;
        if (ls_objects_each(take, NULL) == 1) {
                ls_vm_probe();
                answer.base = ls_lua.base;
                answer.facts = ls_vm_facts;
                answer.error = ls_vm_facts.ok ? 0 : -EPROTO;
                if (!ls_vm_facts.ok && ls_vm_facts.why)
                        strncpy(answer.why, ls_vm_facts.why, sizeof answer.why - 1);
                make_relative(&answer.facts, answer.base);
                memcpy(answer.builtins, ls_builtin_table(&size), sizeof answer.builtins);
        }
        return write(fd, &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : -1;
}
