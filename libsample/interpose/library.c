/* Finds the Lua runtime among what is loaded, resolves its API (ls_lua), and stands between the
 * program and those of the runtime's functions that create and close VMs and start the profiler.
 * Called by start/preload.c and interpose/dl.c. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "libsample/agent.h"
#include "libsample/alloc/alloc.h"
#include "libsample/api/load_text.h"
#include "libsample/handler/walk.h"
#include "libsample/inject/objects.h"
#include "libsample/inject/patch.h"
#include "libsample/interpose/interpose.h"
#include "libsample/interpose/vm_created.h"
#include "libsample/recording/mappings.h"
#include "libsample/recording/notice.h"
#include "libsample/recording/pass.h"
#include "libsample/recording/threads.h"
#include "libsample/thread.h"
#include "libsample/vm/life.h"
#include "libsample/vm/profiler.h"

struct ls_lua_api ls_lua;

enum {
        NEWSTATE,
        L_NEWSTATE,
        CLOSE,
        GETALLOCF,
        SETALLOCF,
        PROFILE_START,
        PROFILE_STOP,
        LOADX,
        NPATCHES,
        ATTACHED_PATCHES = SETALLOCF + 1
};

static lua_State *on_newstate(void *f, void *ud, long c, long d);
static lua_State *on_l_newstate(void);
static void on_close(lua_State *L);
static void on_profile_start(lua_State *L, const char *mode,
                             void (*cb)(void *, lua_State *, int, int), void *data);
static void on_profile_stop(lua_State *L);
static int on_loadx(lua_State *L, ls_reader reader, void *data, const char *chunkname,
                    const char *mode);
static void *on_getallocf(lua_State *L, void **ud);
static void on_setallocf(lua_State *L, void *f, void *ud);

static struct ls_patch patches[NPATCHES] = {
        [NEWSTATE] = { .name = "lua_newstate", .replacement = (void *)on_newstate },
        [L_NEWSTATE] = { .name = "luaL_newstate", .replacement = (void *)on_l_newstate },
        [CLOSE] = { .name = "lua_close", .replacement = (void *)on_close },
        [GETALLOCF] = { .name = "lua_getallocf", .replacement = (void *)on_getallocf },
        [SETALLOCF] = { .name = "lua_setallocf", .replacement = (void *)on_setallocf },
        [PROFILE_START] = { .name = "luaJIT_profile_start",
                            .replacement = (void *)on_profile_start },
        [PROFILE_STOP] = { .name = "luaJIT_profile_stop", .replacement = (void *)on_profile_stop },
        [LOADX] = { .name = "lua_loadx", .replacement = (void *)on_loadx },
};

static __thread int creating __attribute__((tls_model("initial-exec"))); /* nesting of *_newstate */
static __thread int closing __attribute__((tls_model("initial-exec")));  /* nesting of lua_close */

static lua_State *created(lua_State *L)
{
        int saved = errno;

        if (!L || creating || (!ls_agent_live() && !ls_process_join())) {
                errno = saved;
                return L;
        }
        if (ls_agent.attached) {
                if (ls_control_pass_vm()) {
                        ls_engine_vm_adopt(L);
                        if (!atomic_load(&ls_agent.leaving))
                                ls_engine_vm_sample_memory(L);
                        ls_control_go_out();
                }
        } else {
                ls_vm_library_scan(0);
                ls_engine_vm_created(L);
        }
        errno = saved;
        return L;
}

/* 1 when the caller lies in another copy of LuaJIT, whose lua_newstate the loader has bound to this
 * one's: that copy's lua_close, which is not watched, will free the VM. */
static int is_closed_elsewhere(const void *caller)
{
        struct ls_object object;
        const void *close;

        if (creating || !ls_object_of_address(caller, &object))
                return 0;
        close = ls_object_symbol(&object, "lua_close", NULL);
        return close && patches[CLOSE].target && close != patches[CLOSE].target;
}

/* Takes more than the two arguments of LuaJIT's lua_newstate: later Luas have a third. */
static lua_State *on_newstate(void *f, void *ud, long c, long d)
{
        lua_State *(*original)(void *, void *, long, long) =
                (lua_State * (*)(void *, void *, long, long)) patches[NEWSTATE].original;
        int other = is_closed_elsewhere(__builtin_return_address(0)), saved;
        lua_State *L;

        creating++;
        L = original(f, ud, c, d);
        creating--;
        if (!other)
                return created(L);
        saved = errno;
        ls_agent_notice("a VM of a second LuaJIT in the program is not recorded");
        errno = saved;
        return L;
}

static lua_State *on_l_newstate(void)
{
        lua_State *(*original)(void) = (lua_State *(*)(void))patches[L_NEWSTATE].original;
        lua_State *L;

        creating++;
        L = original();
        creating--;
        return created(L);
}

static void on_close(lua_State *L)
{
        void (*original)(lua_State *) = (void (*)(lua_State *))patches[CLOSE].original;

        struct ls_vm *vm = NULL;
        uint32_t vm_id = 0;

        closing++;
        if (ls_control_pass_vm()) {
                vm = ls_engine_vm_closing(L, &vm_id);
                ls_control_go_out();
        }
        if (ls_vm_facts.ok)             /* no tick opens it again from here on */
                ls_alloc_close(L);
        original(L);
        if (ls_control_pass_vm()) {
                ls_engine_vm_closed(L, vm, vm_id);
                ls_control_go_out();
        }
        closing--;
}

/* lua_close stops the profiler itself; that is not the program's wish. */
static int is_programs_call(void)
{
        return closing == 0 && ls_agent_live();
}

static void on_profile_start(lua_State *L, const char *mode,
                             void (*cb)(void *, lua_State *, int, int), void *data)
{
        if (is_programs_call())
                ls_engine_app_profile_start(L, mode, cb, data);
        else
                ls_lua.luaJIT_profile_start(L, mode, cb, data);
}

static void on_profile_stop(lua_State *L)
{
        if (is_programs_call())
                ls_engine_app_profile_stop(L);
        else if (!ls_agent_live())
                ls_engine_child_profile_stop(L);
        else
                ls_lua.luaJIT_profile_stop(L);
}

static int on_loadx(lua_State *L, ls_reader reader, void *data, const char *chunkname,
                    const char *mode)
{
        int (*original)(lua_State *, ls_reader, void *, const char *, const char *) =
                (int (*)(lua_State *, ls_reader, void *, const char *, const char *))patches[LOADX]
                        .original;
        struct ls_load_text load;
        int error;

        if (!ls_load_text_begin(&load, reader, data, chunkname))
                return original(L, reader, data, chunkname, mode);
        error = original(L, ls_load_text_read, &load, chunkname, mode);
        ls_load_text_end(&load, chunkname, error);
        return error;
}

/* The program sees the allocator that it has set, and sets the one behind the stub. */
static void *on_getallocf(lua_State *L, void **ud)
{
        void *(*original)(lua_State *, void **) =
                (void *(*)(lua_State *, void **))patches[GETALLOCF].original;

        return ls_alloc_inner(original(L, ud));
}

static void on_setallocf(lua_State *L, void *f, void *ud)
{
        void (*original)(lua_State *, void *, void *) =
                (void (*)(lua_State *, void *, void *))patches[SETALLOCF].original;
        void *stub = ls_vm_facts.ok ? ls_alloc_stub(L) : NULL;

        original(L, f, ud);
        if (stub)
                ls_alloc_put_back(L, stub);
}

/* Protection of the code that addr is in. */
static int protection_of(const struct ls_object *object, const void *addr)
{
        for (unsigned i = 0; i < object->nphdrs; i++) {
                const ElfW(Phdr) *ph = &object->phdrs[i];

                if (ph->p_type == PT_LOAD &&
                    (uintptr_t)addr - (object->base + ph->p_vaddr) < ph->p_memsz)
                        return (ph->p_flags & PF_R ? PROT_READ : 0) |
                               (ph->p_flags & PF_W ? PROT_WRITE : 0) |
                               (ph->p_flags & PF_X ? PROT_EXEC : 0);
        }
        return PROT_READ | PROT_EXEC;
}

void ls_vm_library_resolve(const struct ls_object *object)
{
#define LS_LUA(ret, name, args) ls_lua.name = (ret (*) args)ls_object_symbol(object, #name, NULL);
#include "libsample/lua_api.def"
#undef LS_LUA
        ls_lua.path = object->path;
        ls_lua.base = object->base;
}

static void take_over(const struct ls_object *object, int single_threaded)
{
        /* what a process is attached for is sampled only: its VMs are not changed, nor what it
         * loads */
        int n = ls_agent.attached ? ATTACHED_PATCHES : NPATCHES;

        for (int i = 0; i < n; i++) {
                int wanted = ls_agent.shm->alloc_interval || (i != GETALLOCF && i != SETALLOCF);
                void *target = wanted ? ls_object_symbol(object, patches[i].name, &patches[i].size)
                                      : NULL;

                if (target != patches[i].target)        /* another library than in the recording
                                                         * before */
                        patches[i].slot = NULL;
                patches[i].target = target;
        }
        ls_vm_library_resolve(object);
        ls_patch_install(patches, (size_t)n, protection_of(object, patches[NEWSTATE].target),
                         single_threaded);
        if (patches[PROFILE_START].original)
                ls_lua.luaJIT_profile_start = (void (*)(lua_State *, const char *,
                                                        void (*)(void *, lua_State *, int, int),
                                                        void *))patches[PROFILE_START].original;
        if (patches[PROFILE_STOP].original)
                ls_lua.luaJIT_profile_stop = (void (*)(lua_State *))patches[PROFILE_STOP].original;
        for (int i = 0; i < n; i++) {
                if (patches[i].target && patches[i].why && ls_may_write_ring())
                        ls_agent_notice("%s of %s cannot be watched (%s): %s", patches[i].name,
                                        object->path, patches[i].why,
                                        i <= L_NEWSTATE
                                                ? "VMs made by it are not recorded"
                                                : "what it does to the recording is not seen");
        }
}

struct scan {
        int single_threaded;
        int current_seen;       /* the runtime that ls_lua speaks of is still loaded */
        struct ls_object first; /* runtime to take over */
};

static uintptr_t noticed[16];   /* bases of other runtimes that the user was told about */

static void notice_once(const struct ls_object *object, const char *why)
{
        for (size_t i = 0; i < sizeof noticed / sizeof *noticed && ls_may_write_ring(); i++) {
                if (noticed[i] == object->base + 1)
                        return;
                if (noticed[i] == 0) {
                        noticed[i] = object->base + 1;
                        ls_agent_notice("%s %s", object->path, why);
                        return;
                }
        }
}

static int look_at(const struct ls_object *object, void *data)
{
        struct scan *scan = data;
        const void *newstate = ls_object_symbol(object, "lua_newstate", NULL);

        if (!newstate)
                return 0;
        if (ls_lua.path && object->base == ls_lua.base && newstate == patches[NEWSTATE].target)
                scan->current_seen = 1;
        else if (!ls_object_symbol(object, "luaJIT_setmode", NULL))
                notice_once(object, "is a Lua other than LuaJIT: its VMs are not recorded");
        else if (!scan->first.path)
                scan->first = *object;
        else
                notice_once(object, "is a second LuaJIT in this process: its VMs are not recorded");
        return 0;
}

static unsigned long long scanned;      /* ls_objects_version when it was last looked at */
static atomic_flag busy = ATOMIC_FLAG_INIT;

static int unpatch(const struct ls_object *object, void *data)
{
        (void)data;
        if (ls_lua.path && object->base == ls_lua.base &&
            ls_object_symbol(object, "lua_newstate", NULL) == patches[NEWSTATE].target)
                ls_patch_remove(patches, ATTACHED_PATCHES,
                                protection_of(object, patches[NEWSTATE].target));
        return 0;
}

void ls_vm_library_leave(void)
{
        ls_objects_each(unpatch, NULL);         /* if it is loaded still */
        ls_lua.path = NULL;
        scanned = 0;
        memset(noticed, 0, sizeof noticed);
}

void ls_vm_library_after_fork(void)
{
        atomic_flag_clear(&busy);
        ls_patch_after_fork(patches, NPATCHES);
        if (ls_agent.attached)          /* who attaches to this process is told of its files anew */
                scanned = 0;
}

void ls_vm_library_scan(int in_constructor)
{
        struct scan scan = { .single_threaded = in_constructor };
        unsigned long long version;

        /* a second thread that loads meanwhile: its next call sees that the version has changed */
        if ((!ls_agent_live() && !ls_process_may_join()) || atomic_flag_test_and_set(&busy))
                return;
        version = ls_objects_version();
        if (version != scanned) {
                ls_objects_each(look_at, &scan);
                if (scan.first.path && scan.current_seen)
                        notice_once(&scan.first,
                                    "is a second LuaJIT in this process: its VMs are not recorded");
                else if (scan.first.path && ls_process_join())
                        take_over(&scan.first, in_constructor);
                ls_mappings_send();
                scanned = version;
        }
        atomic_flag_clear(&busy);
}
