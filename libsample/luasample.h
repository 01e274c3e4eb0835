/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 the luasample authors
 *
 * luasample.h: what a program that embeds LuaJIT can tell the profiler luasample. One file for C and C++, nothing to link
 * but libdl: copy it, or take it from where luasample is installed (pkg-config --cflags --libs luasample).
 *
 * Under `luasample record` the calls go to the agent in the process, which is looked up once, at the first call. In a
 * program that is not recorded they do nothing and return 0, at the cost of one look at a variable: leave them in.
 *
 * Where they may be called: from any thread, never from a signal handler, an allocator or a hook of the VM. With a
 * lua_State, by the thread that runs it at that time. Strings are copied, may hold any bytes but 0, and count up to their
 * first 1024 bytes; NULL is an empty string. No call raises a Lua error, and none changes the Lua stack, errno or the
 * signal mask.
 *
 * What each returns: 1 = the recording has it, 0 = it does not (nobody records; the VM is not sampled; a limit was
 * reached).
 */
#ifndef LUASAMPLE_H
#define LUASAMPLE_H

#include <dlfcn.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lua_State;                       /* of LuaJIT: lua.h need not be included */

#define LUASAMPLE_API_VERSION 2u        /* grows when functions are added at the end of the table */

struct luasample_api {                  /* the agent's functions: static, valid as long as the process */
        unsigned version;               /* of the agent: at least what was asked for */
        int (*is_recording)(struct lua_State *L);
        int (*start)(struct lua_State *L, const char *name);
        int (*stop)(struct lua_State *L);
        int (*pause)(struct lua_State *L);
        int (*resume)(struct lua_State *L);
        int (*mark)(const char *name);
        int (*zone_push)(struct lua_State *L, const char *name);
        int (*zone_pop)(struct lua_State *L);
        int (*label)(struct lua_State *L, const char *key, const char *value);
        int (*ready)(struct lua_State *co, int ready);          /* from version 2 on */
};

/* The agent's functions, NULL = this program is not recorded. The answer to the first call stays. */
static inline const struct luasample_api *luasample_agent(void)
{
        typedef const struct luasample_api *(*find_fn)(unsigned);
        static const struct luasample_api none = { 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL };
        static const struct luasample_api *found;       /* threads that race find the same */
        const struct luasample_api *api = __atomic_load_n(&found, __ATOMIC_ACQUIRE);

        if (!api) {
                void *symbol = dlsym((void *)0 /* RTLD_DEFAULT, which not all programs may name */, "luasample_agent_api");
                find_fn find;

                __builtin_memcpy(&find, &symbol, sizeof(find));
                api = find ? find(LUASAMPLE_API_VERSION) : NULL;
                if (!api)
                        api = &none;
                __atomic_store_n(&found, api, __ATOMIC_RELEASE);
        }
        return api == &none ? NULL : api;
}

/* 1 while samples of L are taken: it is recorded, and neither paused nor outside of the regions that start and stop mark.
 * NULL: of any VM of the process. */
static inline int luasample_is_recording(struct lua_State *L)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->is_recording(L) : 0;
}

/* A region of the VM of L begins: from the first one on, reports are about what lies in regions, and nothing else is
 * sampled after a region has ended. name may be NULL. L NULL: all VMs that the process has now. 0 also when it is in one
 * already. */
static inline int luasample_start(struct lua_State *L, const char *name)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->start(L, name) : 0;
}

/* The region ends. 0 also when there is none. */
static inline int luasample_stop(struct lua_State *L)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->stop(L) : 0;
}

/* No samples of the VM of L (NULL: of all VMs that the process has now) until resume. Regions are as they were then. Calls
 * do not nest: one resume ends any number of pauses. */
static inline int luasample_pause(struct lua_State *L)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->pause(L) : 0;
}

static inline int luasample_resume(struct lua_State *L)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->resume(L) : 0;
}

/* Notes this instant of the calling thread under a name. The thread must have been seen: it has made a VM, or was started
 * after one was made. A recording keeps 65536 marks of a process. */
static inline int luasample_mark(const char *name)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->mark(name) : 0;
}

/* The coroutine L is in a zone from here on, inside the zones that it is in: one stack with jit.zone and require
 * "luasample". The VM must have its libraries (luaL_openlibs). May allocate in the VM. */
static inline int luasample_zone_push(struct lua_State *L, const char *name)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->zone_push(L, name) : 0;
}

/* It leaves the innermost zone that it has pushed itself. 0 also when there is none. */
static inline int luasample_zone_pop(struct lua_State *L)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->zone_pop(L) : 0;
}

/* Samples of the coroutine L, and of those that it resumes, have key=value from here on, until another value is given or it
 * ends. value NULL: no more. A coroutine has eight keys at most; 256 bytes of key and value count. The VM must have its
 * libraries, with the FFI. May allocate in the VM. */
static inline int luasample_label(struct lua_State *L, const char *key, const char *value)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->label(L, key, value) : 0;
}

/* The coroutine co can run from now on, and waits for its turn: with record -e suspended, that time is told apart from the time
 * in which it waits in yield. ready 0: it runs. Where that is not said, the mark ends when the coroutine is seen elsewhere. By
 * the thread that runs its VM. 0 also when it runs and was not marked. */
static inline int luasample_ready(struct lua_State *co, int ready)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->ready(co, ready) : 0;
}

#ifdef __cplusplus
}
#endif

#endif
