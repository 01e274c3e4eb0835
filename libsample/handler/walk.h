/* Reads a Lua stack raw, each link once: linear in depth where lua_getstack is quadratic. Called by
 * the tick handler at any instruction of the VM, by the VM hook, and by the probe that verifies it
 * against lua_getinfo. */
#ifndef LS_WALK_H
#define LS_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "libsample/handler/guard.h"
#include "libsample/layout.h"

struct ls_wframe {                      /* one frame as read; two equal ones show the same function
                                         * at the same line */
        const char *fn;                 /* GCfunc, or one of LS_WFN_* */
        const char *pc;                 /* behind the current instruction; NULL = none (not Lua, or
                                         * not known) */
        const uint64_t *base;           /* its first slot; not compared */
        const char *chunkname;          /* of its prototype when it was sent (sample.c) */
        uintptr_t callee;               /* of the FFI's call of a C function: that function; 0 =
                                         * none */
        uint32_t func_id, line;         /* as it was sent (sample.c) */
        uint32_t shape;                 /* of its prototype when it was sent (sample.c) */
};
#define LS_WFN_RESUMED_BY_C ((const char *)1)

struct ls_wcframe { const char *cframe; size_t frames; };       /* Lua frames that lie above this C
                                                                 * frame */

#define LS_WALK_CFRAMES 64

struct ls_walk {
        struct ls_wframe *frames;       /* leaf first; pages of the agent's own */
        size_t n, room;
        size_t body;                    /* index of the running coroutine's own root frame */
        struct ls_wcframe cframes[LS_WALK_CFRAMES];     /* activations of the interpreter, innermost
                                                         * first */
        unsigned ncframes;              /* more are not noted */
        int trusted;                    /* 1 = what is reached from the stack can be read without
                                         * asking */
        struct ls_guard guard;
};

/* What the probe found out about this runtime (vm/probe.c). */
struct ls_vm_facts {
        int ok;                         /* 1 = verified: all of this may be used */
        const char *why;                /* not ok: what failed */
        const char *why_no_walk;        /* jit_base_offset is 0: what failed */
        char version[48];               /* "LuaJIT 2.1.0-beta3" */
        unsigned main_offset;           /* in global_State: mainthref */
        uint64_t main_to_global;        /* bytes from a VM's main lua_State to its global_State:
                                         * they are one object */
        unsigned vmstate_offset, cur_L_offset, jit_base_offset;
        uint8_t collector;              /* 1 = heap and collector's state are where LS_G_TOTAL and
                                         * the others say */
        unsigned objects_offset;        /* list of all collectable objects; 0 = not known */
        unsigned registry_offset;       /* the registry, a tagged value; 0 = not known */
        unsigned traces_offset;         /* array of traces by number; how many fit is 12 bytes
                                         * behind; 0 = not known */
        unsigned hookmask_offset;       /* uint8_t hookmask; dispatchmode is the byte behind it */
        const void *heap_alloc;         /* LuaJIT's own allocator (at LS_G_ALLOCF), when what that
                                         * unmaps is counted (guard.h); NULL = it is not, or not
                                         * known */
        const char *resume_return[4];   /* return addresses of Lua's own resumes in the C stack;
                                         * NULL-ended */
        uint8_t op_fori, op_fnew, op_tsets, op_gset;    /* numbers of these instructions */
        uint8_t op_mov, op_tgets, op_gget, op_uget;
        uint8_t ffid_wrap_aux, ffid_ipairs_aux, ffid_gmatch_aux; /* fast functions that no table
                                                                  * holds */
        uint8_t ffid_ffi_call;          /* calls a C function through the FFI, where the interpreter
                                         * does; 0 = not known */
};
extern struct ls_vm_facts ls_vm_facts;

/* Registers of the interrupted thread. */
struct ls_regs { uintptr_t ip, sp, bp, bx, dx, r12, r13, r14, r15; };

/* The innermost frame of L at a tick. */
struct ls_top {
        const uint64_t *base;           /* NULL = none was found that holds */
        const char *pc;                 /* behind its current instruction, NULL = not known */
        int exact;                      /* 1 = verified: pc belongs to the function at base, or its
                                         * link holds */
        int entering;                   /* 1 = the innermost C frame has no Lua frame yet: a call
                                         * from C begins */
        int in_trace;                   /* compiled code runs, or has called what runs */
        int in_asm;                     /* the interpreter's own code runs: objects of the VM are
                                         * whole */
};

/* What a VM is known by: its global_State, or where that is not known its main lua_State. */
static inline const char *ls_vm_identity(const lua_State *L)
{
        return ls_vm_facts.ok ? LS_READ(const char *, L, LS_L_GLREF) : (const char *)L;
}

/* C frame of a lua_State, without its flags; NULL = it runs nothing. */
static inline const char *ls_cframe_of(const lua_State *L)
{
        return (const char *)(LS_READ(uintptr_t, L, LS_L_CFRAME) & ~(uintptr_t)3);
}

/* Finds the innermost frame of L, the VM's running lua_State, which is readable and has a C frame.
 * jit_base: of its global_State. in_c: the VM's state says that a C function runs. Uses walk's
 * guard, which the caller has begun. */
LS_HANDLER void ls_walk_top(struct ls_walk *walk, const lua_State *L, const uint64_t *jit_base,
                            int in_c, const struct ls_regs *regs, struct ls_top *ret);

/* Reads the stack of L from top down, and below it those of its resumers. Returns 0; -ENOMEM;
 * -EBADMSG when a link does not hold (walk then has the frames above it). */
LS_HANDLER int ls_walk_from(struct ls_walk *walk, const lua_State *L, const struct ls_top *top);
/* The same from the base that L has saved, whatever runs now: frames above it are left out. */
LS_HANDLER int ls_walk_saved(struct ls_walk *walk, const lua_State *L);
/* The same at a place where the VM's own code does not run: in a C function or a hook. */
LS_HANDLER int ls_walk_stack(struct ls_walk *walk, const lua_State *L);

/* Takes the innermost frame away. */
LS_HANDLER void ls_walk_drop_top(struct ls_walk *walk);

/* The thread that resumed L with Lua's own resume or wrap; NULL: L is the main thread or was
 * resumed by C (then *ret_by_c = 1). guard NULL: all may be read. */
LS_HANDLER const lua_State *ls_walk_resumer(const lua_State *L, struct ls_guard *guard,
                                            int *ret_by_c);

#endif
