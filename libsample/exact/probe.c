/* Finds a VM's dispatch tables and verifies them, in the probe's VM, and patches
 * lj_dispatch_update, the function that rewrites them at each hook, and at each start and end of a
 * recording. It is no symbol of LuaJIT's, but the only one that lua_sethook calls. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsample/agent.h"
#include "libsample/exact/private.h"
#include "libsample/exact/update.h"
#include "libsample/handler/guard.h"
#include "libsample/handler/walk.h"
#include "libsample/inject/decode.h"
#include "libsample/inject/patch.h"
#include "libsample/jit/facts.h"
#include "libsample/lua_debug.h"

#define FIXED_MOST 256                  /* entries from the one table to the other, at most */
#define SETHOOK_MOST 192                /* bytes of lua_sethook that are looked at */

struct ls_exact_facts ls_exact_facts = { .why = "no VM was looked at yet" };

static const char loops_source[] =
        "local t = ... repeat local u = t until u for k in pairs(t) do end return t";

__attribute__((visibility("hidden"))) void *ls_exact_grabbed;

/* A C function that the interpreter calls finds the table's address in r14. */
__attribute__((naked)) static int grab(lua_State *L __attribute__((unused)))
{
        __asm__("movq %r14, ls_exact_grabbed(%rip)\n\txorl %eax, %eax\n\tret");
}

static void failed(const char *why)
{
        if (!ls_exact_facts.why)
                ls_exact_facts.why = why;
}

static void find_tables(lua_State *L)
{
        const char *global = LS_READ(const char *, L, LS_L_GLREF);
        int headers = ls_vm_facts.op_fori + LS_OP_FUNCF;
        void **table;

        ls_lua.lua_pushcclosure(L, grab, 0);
        ls_lua.lua_setfield(L, LS_LUA_GLOBALSINDEX, "grab");
        if (ls_lua.luaL_loadbuffer(L, "grab()", 6, "=luasample") || ls_lua.lua_pcall(L, 0, 0, 0)) {
                failed("a known chunk did not run");
                return;
        }
        table = ls_exact_grabbed;
        if ((uintptr_t)table - (uintptr_t)global > 16384 || !ls_readable(table, 8 * FIXED_MOST)) {
                failed("the dispatch table is not in the global state");
                return;
        }
        ls_exact_facts.table = (uint32_t)((const char *)table - global);
        for (int n = headers; n + headers <= FIXED_MOST; n++)
                if (!memcmp(table, table + n, sizeof *table * (size_t)headers)) {
                        ls_exact_facts.fixed = (uint32_t)sizeof *table * (uint32_t)n;
                        return;
                }
        failed("the fixed dispatch table is not behind the other");
}

static uint8_t op_at(const char *pt, uint32_t i)
{
        return (uint8_t)(LS_READ(uint8_t, pt, LS_PT_SIZE + 4 * (size_t)i) - ls_vm_facts.op_fori);
}

static void check_loops(lua_State *L)
{
        const char *pt;
        uint32_t n, loop = 0;

        if (ls_lua.luaL_loadbuffer(L, loops_source, sizeof loops_source - 1, "=luasample")) {
                failed("a chunk could not be loaded");
                return;
        }
        pt = ls_fn_proto(ls_lua.lua_topointer(L, -1));
        n = LS_READ(uint32_t, pt, LS_PT_SIZEBC);
        for (uint32_t i = 0; i < n; i++)
                loop += op_at(pt, i) == LS_OP_LOOP;
        if (op_at(pt, 0) != LS_OP_FUNCV || loop != 1 || op_at(pt, n - 1) != (uint8_t)LS_OP_RET1 ||
            op_at(pt, n - 2) != LS_OP_ITERL || op_at(pt, n - 3) != (uint8_t)LS_OP_ITERN)
                failed("loops are numbered differently");
        ls_lua.lua_settop(L, -2);
}

static struct ls_patch update_patch;
static const void *updated;             /* global_State of the last call */

static void on_update(const char *global, int nolock)
{
        ((void (*)(const char *, int))update_patch.original)(global, nolock);
        updated = global;
        ls_exact_updated(global);
}

static void no_hook(lua_State *L, struct lua_Debug *ar)
{
        (void)L, (void)ar;
}

/* What lua_sethook calls; NULL = nothing, or it is not understood. */
static void *called_by_sethook(void)
{
        const uint8_t *p = (const uint8_t *)(uintptr_t)ls_lua.lua_sethook, *end = p + SETHOOK_MOST;
        struct ls_insn insn;

        for (; p < end && !ls_decode(p, (size_t)(end - p), &insn); p += insn.length) {
                const uint8_t *target = insn.rel_at ? ls_insn_target(p, &insn) : NULL;

                if (insn.flow == LS_FLOW_CALL || (insn.flow == LS_FLOW_JUMP && insn.rel_size == 4))
                        return (void *)(uintptr_t)target;
                if (insn.flow == LS_FLOW_END)
                        return NULL;
        }
        return NULL;
}

static void patch_update(lua_State *L)
{
        void *target = called_by_sethook();

        if (!target) {
                failed("what rewrites the dispatch table was not found");
                return;
        }
        if (target != update_patch.target)
                update_patch = (struct ls_patch){ .name = "lj_dispatch_update", .target = target,
                                                  .replacement = (void *)on_update };
        if (!update_patch.original)
                ls_patch_install(&update_patch, 1, PROT_READ | PROT_EXEC, 0);
        if (!update_patch.original) {
                failed("what rewrites the dispatch table cannot be patched");
                return;
        }
        updated = NULL;
        ls_lua.lua_sethook(L, no_hook, 4, 1000000);
        ls_lua.lua_sethook(L, NULL, 0, 0);
        if (updated != LS_READ(const char *, L, LS_L_GLREF))
                failed("what rewrites the dispatch table was not called");
}

/* Protection of the memory at addr; 0 = not known. */
static int protection_of(uintptr_t addr)
{
        char line[512];
        FILE *maps = fopen("/proc/thread-self/maps", "re");   /* the first thread may have ended */
        unsigned long from, to;
        int prot = 0;

        while (maps && fgets(line, sizeof line, maps)) {
                const char *flags = strchr(line, ' ');

                if (sscanf(line, "%lx-%lx", &from, &to) != 2 || addr < from || addr >= to || !flags)
                        continue;
                prot = (flags[1] == 'r' ? PROT_READ : 0) | (flags[2] == 'w' ? PROT_WRITE : 0) |
                       (flags[3] == 'x' ? PROT_EXEC : 0);
                break;
        }
        if (maps)
                fclose(maps);
        return prot;
}

static void look_at_code(lua_State *L)
{
        const char *state = LS_READ(const char *, L, LS_L_GLREF) + ls_jit_facts.at.state,
                   *trace = NULL;
        const char *const *traces = LS_READ(const char *const *, state, ls_jit_facts.at.traces);
        uint32_t n = LS_READ(uint32_t, state, ls_jit_facts.at.ntraces);

        for (uint32_t i = 1; i < n && !trace; i++)
                trace = traces[i];
        if (trace)
                ls_exact_facts.code_prot = protection_of(LS_READ(uintptr_t, trace, LS_TR_MCODE));
        if (!(ls_exact_facts.code_prot & PROT_EXEC))
                failed("compiled code was not found");
        else if (!ls_exact_code_is_writable(LS_READ(const void *, trace, LS_TR_MCODE),
                                            LS_READ(uint32_t, trace, LS_TR_MCODE_SIZE)))
                ls_exact_facts.why_interpreter =
                        "this system does not let compiled code be changed";
        for (uint32_t i = 0; i < ls_jit_facts.nirnames / 6; i++)
                if (!memcmp(ls_jit_facts.irnames + 6 * (size_t)i, "LOOP  ", 6))
                        ls_exact_facts.op_ir_loop = (uint8_t)i;
        if (!ls_exact_facts.op_ir_loop)
                failed("the names of intermediate code were not found");
}

void ls_exact_probe(lua_State *L)
{
        memset(&ls_exact_facts, 0, sizeof ls_exact_facts);
        ls_jit_listener = (struct ls_jit_listener){ ls_exact_on_trace, ls_exact_on_record };
        if (!ls_jit_facts.traces_known || !ls_jit_facts.at.stubs)
                failed("traces cannot be watched");
        if (!ls_exact_facts.why)
                look_at_code(L);
        if (!ls_exact_facts.why)
                find_tables(L);
        if (!ls_exact_facts.why)
                check_loops(L);
        if (!ls_exact_facts.why)
                patch_update(L);
}

const char *ls_exact_why_not(int compiled)
{
        return ls_exact_facts.why ? ls_exact_facts.why
               : compiled         ? ls_exact_facts.why_interpreter
                                  : NULL;
}
