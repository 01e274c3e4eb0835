/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 the luasample authors
 *
 * luasample.h: what a program that embeds LuaJIT can tell the profiler luasample. One file for C and C++, nothing to link
 * but libdl: copy it, or take it from where luasample is installed (pkg-config --cflags --libs luasample).
 *
 * Under `luasample record`, and while `luasample record -p` is attached, the calls go to the agent in the process. In a
 * program that nobody records luasample_start begins a recorder of its own, if luasample is installed; all other calls do
 * nothing and return 0, at the cost of one look at the clock: leave them in.
 *
 * Where they may be called: from any thread, never from a signal handler, an allocator or a hook of the VM. With a
 * lua_State, by the thread that runs it at that time. Strings are copied, may hold any bytes but 0, and count up to their
 * first 1024 bytes; NULL is an empty string. No call raises a Lua error, and none changes the Lua stack, errno or the
 * signal mask.
 *
 * What each returns: 1 = the recording has it, 0 = it does not (nobody records; the VM is not sampled; a limit was
 * reached). luasample_start may return -errno, when a recorder of its own was to be had and could not begin.
 */
#ifndef LUASAMPLE_H
#define LUASAMPLE_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lua_State;                       /* of LuaJIT: lua.h need not be included */

#define LUASAMPLE_API_VERSION 2u        /* grows when functions are added at the end of the table */

struct luasample_api {                  /* the agent's functions: static, valid as long as the
                                         * process */
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
        int (*counter)(const char *name, double value);
        int (*begin)(const char *file, const char *const *options, char *why, int size);
        const char *(*trace)(void);
        int (*ready)(struct lua_State *co, int ready);
};

struct luasample_found {                /* one for all files that are linked together */
        const struct luasample_api *api;        /* NULL = there is no agent yet. It stays, as the
                                                 * agent does */
        long long looked;               /* time() of the last look */
};
__attribute__((weak, visibility("hidden"))) struct luasample_found luasample_found;

static inline const struct luasample_api *luasample_take(void *library)
{
        typedef const struct luasample_api *(*find_fn)(unsigned);
        void *symbol = dlsym(library, "luasample_agent_api");
        const struct luasample_api *api;
        find_fn find;

        memcpy(&find, &symbol, sizeof(find));
        api = find ? find(LUASAMPLE_API_VERSION) : NULL;
        if (api)
                __atomic_store_n(&luasample_found.api, api, __ATOMIC_RELEASE);
        return api;
}

/* The agent's functions, NULL = it is not in the process. An attachment may bring it: looked for
 * once a second. */
static inline const struct luasample_api *luasample_agent(void)
{
        const struct luasample_api *api = __atomic_load_n(&luasample_found.api, __ATOMIC_ACQUIRE);
        long long now, looked = 0;
        void *library;

        if (api)
                return api;
        now = (long long)time(NULL);
        looked = __atomic_exchange_n(&luasample_found.looked, now, __ATOMIC_RELAXED);
        if (looked == now)
                return NULL;
        if (!looked &&
            (api = luasample_take((void *)0 /* RTLD_DEFAULT, which not all programs may name */)) !=
                    NULL)
                return api;
        library = dlopen("libsample.so", RTLD_NOW | RTLD_NOLOAD);
        return library ? luasample_take(library) : NULL;
}

/* The agent of an installed luasample is brought into the program: that of the program $LUASAMPLE
 * (a path from the root; anything else: none), else of the first one in PATH. */
static inline const struct luasample_api *luasample_load(void)
{
        static const char *const places[] = { "/libsample/", "/../lib/luasample/",
                                              "/../lib64/luasample/",
                                              "/../lib/x86_64-linux-gnu/luasample/" };
        const char *own = getenv("LUASAMPLE"), *dir = own ? own : getenv("PATH");
        const char *end = own ? strrchr(own, '/') : NULL;
        char path[1024];
        size_t n, i;
        void *library;

        if (getauxval(AT_SECURE))       /* the environment is a stranger's */
                return NULL;
        for (; dir && *dir; dir += n + (dir[n] == ':')) {
                n = !own ? strcspn(dir, ":") : end ? (size_t)(end - own) : 0;
                for (i = 0;
                     *dir == '/' && n + 64 < sizeof(path) && i < sizeof(places) / sizeof(*places);
                     i++) {
                        memcpy(path, dir, n);
                        strcpy(path + n, places[i]);
                        strcat(path, "libsample.so");
                        library = dlopen(path, RTLD_NOW);
                        if (library)
                                return luasample_take(library);
                }
                if (own)
                        break;
        }
        return NULL;
}

/* 1 while samples of L are taken: it is recorded, and neither paused nor outside of the regions
 * that start and stop mark. NULL: of any VM of the process. */
static inline int luasample_is_recording(struct lua_State *L)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->is_recording(L) : 0;
}

/* A recorder of this process begins, unless it is recorded already: `luasample record -p` of
 * itself, with the trace in file (NULL: luasample.data) and more words for record in options (NULL,
 * or ended by NULL). Returns 1 = it records, 0 = nothing was begun: the process is recorded, or
 * luasample is not installed; or -errno, and a line in why (size bytes; may be NULL). It ends with
 * luasample_stop or with the process. */
static inline int luasample_begin(const char *file, const char *const *options, char *why, int size)
{
        const struct luasample_api *api = luasample_agent();

        if (why && size > 0)
                *why = 0;
        if (!api)
                api = luasample_load();
        return api ? api->begin(file, options, why, size) : 0;
}

/* The trace that such a recorder writes, or the last one has written; NULL = there was none. */
static inline const char *luasample_trace(void)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->trace() : NULL;
}

/* A region of the VM of L begins: from the first one on, reports are about what lies in regions,
 * and nothing else is sampled after a region has ended. name may be NULL. L NULL: all VMs that the
 * process has now. 0 also when it is in one already. Where nobody records, luasample_begin(NULL,
 * NULL, NULL, 0) first; -errno when that fails. */
static inline int luasample_start(struct lua_State *L, const char *name)
{
        int r = luasample_begin(NULL, NULL, NULL, 0);
        const struct luasample_api *api = luasample_agent();

        return r < 0 ? r : api ? api->start(L, name) || r : 0;
}

/* The region ends. 0 also when there is none. A recorder that luasample_begin has begun in this
 * process ends with the last region: its trace is whole when this returns. */
static inline int luasample_stop(struct lua_State *L)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->stop(L) : 0;
}

/* No samples of the VM of L (NULL: of all VMs that the process has now) until resume. Regions are
 * as they were then. Calls do not nest: one resume ends any number of pauses. */
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

/* Notes this instant of the calling thread under a name. The thread must have been seen: it has
 * made a VM, or was started after one was made. A recording keeps 65536 marks of a process. */
static inline int luasample_mark(const char *name)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->mark(name) : 0;
}

/* The coroutine L is in a zone from here on, inside the zones that it is in: one stack with
 * jit.zone and require "luasample". The VM must have its libraries (luaL_openlibs). May allocate in
 * the VM. */
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

/* Samples of the coroutine L, and of those that it resumes, have key=value from here on, until
 * another value is given or it ends. value NULL: no more. A coroutine has eight keys at most; 256
 * bytes of key and value count. The VM must have its libraries, with the FFI. May allocate in the
 * VM. */
static inline int luasample_label(struct lua_State *L, const char *key, const char *value)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->label(L, key, value) : 0;
}

/* The counter of that name of the process has this value from now on: requests in flight, the
 * length of a queue, bytes in use. Of values that follow within the recording's interval the last
 * is kept. A process has 128 counters, whose names count up to their first 216 bytes. NaN and
 * infinities are no values. From any thread. */
static inline int luasample_counter(const char *name, double value)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->counter(name, value) : 0;
}

/* The coroutine co can run from now on, and waits for its turn: with record -e suspended, that time
 * is told apart from the time in which it waits in yield. ready 0: it runs. Where that is not said,
 * the mark ends when the coroutine is seen elsewhere. By the thread that runs its VM. 0 also when
 * it runs and was not marked. */
static inline int luasample_ready(struct lua_State *co, int ready)
{
        const struct luasample_api *api = luasample_agent();

        return api ? api->ready(co, ready) : 0;
}

#ifdef __cplusplus
}
#endif

#endif
