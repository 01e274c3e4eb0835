/* Reads a Lua stack raw, each link once: linear in depth where lua_getstack is quadratic. Called by the VM hook and
 * by the probe that verifies it against lua_getinfo. Normal context: the stack must not change meanwhile. */
#ifndef LS_WALK_H
#define LS_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "libsample/vm_layout.h"

struct ls_wframe {                      /* one frame as read; two equal ones show the same function at the same line */
        const char *fn;                 /* GCfunc, or one of LS_WFN_* */
        const char *pc;                 /* behind the current instruction; NULL = none (not Lua, or not known) */
        const uint64_t *base;           /* its first slot; not compared */
        const char *chunkname;          /* of its prototype when it was sent (hook.c) */
        uint32_t func_id, line;         /* as it was sent (hook.c) */
        uint32_t shape;                 /* of its prototype when it was sent (hook.c) */
};
#define LS_WFN_RESUMED_BY_C ((const char *)1)

struct ls_walk {
        struct ls_wframe *frames;       /* leaf first; pages of the agent's own */
        size_t n, room;
        size_t body;                    /* index of the running coroutine's own root frame */
};

/* What the probe found out about this runtime (vm_probe.c). */
struct ls_vm_facts {
        int ok;                         /* 1 = verified: all of this may be used */
        const char *why;                /* not ok: what failed */
        char version[48];               /* "LuaJIT 2.1.0-beta3" */
        unsigned main_offset;           /* in global_State: mainthref */
        unsigned vmstate_offset, cur_L_offset;
        unsigned hookmask_offset;       /* uint8_t hookmask; dispatchmode is the byte behind it */
        const char *resume_return[4];   /* return addresses of Lua's own resumes in the C stack; NULL-ended */
        uint8_t op_fori, op_fnew, op_tsets, op_gset;    /* numbers of these instructions */
        uint8_t ffid_wrap_aux, ffid_ipairs_aux; /* fast functions that no table holds */
};
extern struct ls_vm_facts ls_vm_facts;

/* Reads the stack of L, and below it those of its resumers. Returns 0; -ENOMEM; -EBADMSG when a link does not hold
 * (walk then has the frames above it). */
int ls_walk_stack(struct ls_walk *walk, const lua_State *L);

/* The thread that resumed L with Lua's own resume or wrap; NULL: L is the main thread or was resumed by C (then
 * *ret_by_c = 1). */
const lua_State *ls_walk_resumer(const lua_State *L, int *ret_by_c);

#endif
