/* What luasample.h finds in a recorded program: the one function that the agent exports for hosts,
 * and behind it those of control.h, and zones through require "luasample". Keeps errno and the Lua
 * stack; an error of Lua's ends here. */
#include "libsample/api/luasample.h"

#include <errno.h>
#include <string.h>

#include "libsample/agent.h"
#include "libsample/api/control.h"
#include "libsample/api/counters.h"
#include "libsample/api/module.h"
#include "libsample/api/own.h"
#include "libsample/api/ready.h"
#include "libsample/handler/ready.h"
#include "libsample/libc/real.h"
#include "libsample/lua_debug.h"
#include "libsample/recording/pass.h"
#include "libsample/thread.h"

static size_t length(const char *name)
{
        return name ? strnlen(name, 1024) : 0;
}

static int host_is_recording(lua_State *L)
{
        return ls_control_is_recording(L);
}

static int host_start(lua_State *L, const char *name)
{
        int saved = errno, r = ls_control_start(L, name ? name : "", length(name));

        errno = saved;
        return r;
}

/* The program's own recorder ends with the last region. */
static int host_stop(lua_State *L)
{
        int saved = errno, r = ls_control_stop(L);

        if (!ls_control_in_region())
                r |= ls_own_end();

        errno = saved;
        return r;
}

static int host_mark(const char *name)
{
        int saved = errno, r = ls_control_mark(name ? name : "", length(name));

        errno = saved;
        return r;
}

static int host_counter(const char *name, double value)
{
        return ls_control_counter(name ? name : "", length(name), value);
}

struct call {                           /* of a Lua function of the module */
        const char *function, *text, *value;    /* NULL = no argument */
        int done;
};

/* Runs in pcall: whatever is raised in here stays in here. */
static int run_call(lua_State *L)
{
        struct call *c = (struct call *)(uintptr_t)ls_lua.lua_topointer(L, 1);

        ls_module_push(L, c->function);
        if (c->text)
                ls_lua.lua_pushlstring(L, c->text, length(c->text));
        if (c->value)
                ls_lua.lua_pushlstring(L, c->value, length(c->value));
        ls_lua.lua_call(L, (c->text != NULL) + (c->value != NULL), 1);
        c->done = ls_lua.lua_toboolean(L, -1);
        return 0;
}

/* L must be known to be of a sampled VM before anything is done with it. A VM without memory for
 * three slots raises an error that is the host's, as any of its own pushes would. */
static int call_module(lua_State *L, const char *function, const char *text, const char *value)
{
        struct call c = { function, text, value, 0 };
        int saved = errno, top;

        if (!L || !ls_control_come_in())
                return 0;
        if (ls_thread_self() && ls_vm_of(L) && ls_lua.lua_checkstack(L, 3)) {
                top = ls_lua.lua_gettop(L);
                ls_lua.lua_pushcclosure(L, run_call, 0);
                ls_lua.lua_pushlightuserdata(L, &c);
                ls_lua.lua_pcall(L, 1, 0, 0);
                ls_lua.lua_settop(L, top);
        }
        ls_control_go_out();
        errno = saved;
        return c.done;
}

static int host_zone_push(lua_State *L, const char *name)
{
        return call_module(L, "_push", name ? name : "", NULL);
}

static int host_zone_pop(lua_State *L)
{
        return call_module(L, "_pop", NULL, NULL);
}

static int host_label(lua_State *L, const char *key, const char *value)
{
        return call_module(L, "_label", key ? key : "", value);
}

static int host_ready(lua_State *co, int ready)
{
        return ls_ready_mark(co, ready != 0);
}

static const struct luasample_api api = {
        .version = LUASAMPLE_API_VERSION,
        .is_recording = host_is_recording,
        .start = host_start,
        .stop = host_stop,
        .pause = ls_control_pause,
        .resume = ls_control_resume,
        .mark = host_mark,
        .zone_push = host_zone_push,
        .zone_pop = host_zone_pop,
        .label = host_label,
        .counter = host_counter,
        .begin = luasample_agent_begin,
        .trace = ls_own_trace,
        .ready = host_ready,
};

const struct luasample_api *luasample_agent_api(unsigned version);

/* NULL = the agent is older than the program's header. Recorded or not: an attachment may come, and
 * end. */
LS_EXPORT const struct luasample_api *luasample_agent_api(unsigned version)
{
        return version <= LUASAMPLE_API_VERSION ? &api : NULL;
}
