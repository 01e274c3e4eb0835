/* State of the hook engine, shared by engine.c (life of the engine) and hook.c (one sample). */
#ifndef LS_ENGINE_H
#define LS_ENGINE_H

#include "libsample/agent.h"
#include "libsample/handler/tick.h"
#include "libsample/walk.h"

struct ls_engine {
        lua_State *L;                   /* main thread of the sampled VM, NULL = none */
        const char *global;             /* its global_State */
        uint32_t vm_id, thread_id;
        int tid;
        int app_active;                 /* the program's own profiler runs in our place */
        const char *app_global;         /* in this VM */
        int app_closing;                /* lua_close of that VM is under way */
        uint64_t app_cpu_start;
        uint64_t cpu_start;             /* thread's CPU clock when sampling began */
        uint64_t names_ns;              /* spent on searches for names */
        uint64_t builtins_ns;           /* when the libraries were last read for names of fast functions */
        int in_region;
        void (*caught)(int);            /* handler that LuaJIT gave to sigaction in our own start */
};
extern struct ls_engine ls_engine;

/* The callback for luaJIT_profile_start: one sample. */
void ls_hook(void *data, lua_State *L, int samples, int vmstate);

/* Ends what is pending when no hook will come: ticks outside Lua become a sample, others a loss. */
void ls_hook_flush(void);
/* The next sample stands alone. */
void ls_hook_reset(void);

/* Begins or ends ticks on this thread. */
void ls_engine_arm(void);
void ls_engine_disarm(void);

/* Puts require "jit.zone" and require "luasample" into the VM. */
void ls_module_install(lua_State *L);

#endif
