/* Reads a Lua stack raw. See walk.h; the frame layout is described in vm_layout.h. */
#include "libsample/walk.h"

#include <errno.h>

#include "libsample/pages.h"

struct ls_vm_facts ls_vm_facts;

/* No chain of resumers is this long: LuaJIT allows 200 nested C calls. */
#define MAX_RESUMERS 256

static const char *cframe_raw(const void *cframe)
{
        return (const char *)((uintptr_t)cframe & ~(uintptr_t)3);
}

static int push(struct ls_walk *w, const char *fn, const char *pc, const uint64_t *base)
{
        if (w->n == w->room && ls_pages_grow((void **)&w->frames, &w->room, w->n + 1, sizeof *w->frames))
                return -ENOMEM;
        w->frames[w->n++] = (struct ls_wframe){ .fn = fn, .pc = pc, .base = base };
        return 0;
}

static int is_func(uint64_t slot)
{
        return ls_istype(slot, LS_T_FUNC);
}

/* C frames of protected calls that are done with: f is below where they began. */
static const char *live_cframe(const char *cf, const uint64_t *stack, const uint64_t *f)
{
        while (cf && LS_READ(int32_t, cf, LS_CF_NRES) < 0 &&
               (const char *)f < (const char *)stack - LS_READ(int32_t, cf, LS_CF_NRES))
                cf = cframe_raw(LS_READ(const void *, cf, LS_CF_PREV));
        return cf;
}

/* One thread's frames, from its base down. A vararg frame is two frames of one function: the upper one is passed over
 * and its pc goes to the lower. The pc of the top frame, and of a Lua function that the VM interrupted to call a hook,
 * a finalizer or a handler of errors, is in the C frame that it runs in. */
static int walk_thread(struct ls_walk *w, const lua_State *L)
{
        const uint64_t *stack = LS_READ(const uint64_t *, L, LS_L_STACK);
        const uint64_t *bottom = stack + 1, *top = LS_READ(const uint64_t *, L, LS_L_MAXSTACK);
        const uint64_t *f = LS_READ(const uint64_t *, L, LS_L_BASE) - 1;
        const char *cf = live_cframe(cframe_raw(LS_READ(const void *, L, LS_L_CFRAME)), stack, f);
        const char *pc = cf ? LS_READ(const char *, cf, LS_CF_PC) : NULL;
        const uint64_t *vararg_base = NULL;
        int error;

        while (f > bottom) {
                if (f > top)
                        return -EBADMSG;
                uint64_t func = f[-1], link = f[0];
                const char *fn = ls_gcptr(func);
                int type = link & LS_FRAME_TYPEP;

                if (type != LS_FRAME_VARG && fn != (const char *)L) {
                        if (!is_func(func))
                                return -EBADMSG;
                        error = push(w, fn, ls_fn_is_lua(fn) && pc && ls_pt_has_pc(ls_fn_proto(fn), pc) ? pc : NULL,
                                     vararg_base ? vararg_base : f + 1);
                        vararg_base = NULL;
                        if (error)
                                return error;
                }
                if (type == LS_FRAME_VARG)
                        vararg_base = f + 1;
                const uint64_t *below;

                if ((link & 3) == LS_FRAME_LUA) {
                        pc = (const char *)(uintptr_t)link;
                        below = f - 2 - ((const uint8_t *)pc)[-3];
                        if (below > bottom && !(is_func(below[-1]) && ls_fn_is_lua(ls_gcptr(below[-1])) &&
                                                ls_pt_has_pc(ls_fn_proto(ls_gcptr(below[-1])), pc)))
                                return -EBADMSG;
                } else {
                        below = (const uint64_t *)((const char *)f - (link & ~(uint64_t)LS_FRAME_TYPEP));
                        if (((link & 3) == LS_FRAME_C || (type == LS_FRAME_CONT && f[-3] == LS_CONT_FFI_CALLBACK)) && cf)
                                cf = cframe_raw(LS_READ(const void *, cf, LS_CF_PREV));
                        cf = live_cframe(cf, stack, below);
                        if (type == LS_FRAME_CONT)
                                pc = (const char *)(uintptr_t)f[-2];
                        else if (type != LS_FRAME_VARG)
                                pc = cf ? LS_READ(const char *, cf, LS_CF_PC) : NULL;
                }
                if (below >= f || below < stack)
                        return -EBADMSG;
                f = below;
        }
        return 0;
}

/* Lua's resume sets up the coroutine's first C frame directly below the resumer's, in assembler: the resumer's
 * lua_State is where its own C frame has it. The return address between them tells this from lua_resume. */
const lua_State *ls_walk_resumer(const lua_State *L, int *ret_by_c)
{
        const char *g = LS_READ(const char *, L, LS_L_GLREF);
        const char *cf = cframe_raw(LS_READ(const void *, L, LS_L_CFRAME)), *prev;

        *ret_by_c = 0;
        if (LS_READ(const lua_State *, g, ls_vm_facts.main_offset) == L || !cf)
                return NULL;
        while ((prev = cframe_raw(LS_READ(const void *, cf, LS_CF_PREV))) && prev > cf)
                cf = prev;
        const char *back = LS_READ(const char *, cf, LS_CF_RETURN);

        for (int i = 0; i < 4 && ls_vm_facts.resume_return[i]; i++)
                if (back == ls_vm_facts.resume_return[i])
                        return LS_READ(const lua_State *, cf, LS_CF_SIZE + LS_CF_L);
        *ret_by_c = 1;
        return NULL;
}

int ls_walk_stack(struct ls_walk *w, const lua_State *L)
{
        int by_c = 0, error;

        w->n = w->body = 0;
        error = walk_thread(w, L);
        w->body = w->n ? w->n - 1 : 0;
        for (int i = 0; !error && i < MAX_RESUMERS; i++) {
                L = ls_walk_resumer(L, &by_c);
                if (!L)
                        break;
                error = walk_thread(w, L);
        }
        if (!error && by_c)
                error = push(w, LS_WFN_RESUMED_BY_C, NULL, NULL);
        return error;
}
