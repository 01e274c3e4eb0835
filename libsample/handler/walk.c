/* Reads a Lua stack raw. See walk.h; the frame layout is described in layout.h.
 *
 * At a tick the VM may be at any instruction. Links below the innermost frame are whole; the
 * innermost one may be half made, and in C code of the VM anything that L points to may be about to
 * move. So nothing is taken on trust there: each pointer is checked by the kernel before it is read
 * (guard.h), each link must point into the bytecode of the frame below it, and the chain must end
 * at the stack's bottom. */

#include "libsample/handler/walk.h"

#include <errno.h>

#include "libsample/pages.h"

struct ls_vm_facts ls_vm_facts;

/* No chain of resumers is this long: LuaJIT allows 200 nested C calls. */
#define MAX_RESUMERS 256
/* Nor has a chain of protected calls that are done with so many C frames. */
#define CFRAMES_MOST 1024
/* Frames of a walk: a coroutine's stack has room for a fourth of them. */
#define FRAMES_MOST (1u << 17)

static const char *cframe_raw(const void *cframe)
{
        return (const char *)((uintptr_t)cframe & ~(uintptr_t)3);
}

static int reads(struct ls_walk *w, const void *p, size_t n)
{
        return w->trusted || ls_guard_reads(&w->guard, p, n);
}

/* What comes from a register, the C stack, or a slot that may not be a link. */
static int reads_wild(struct ls_walk *w, const void *p, size_t n)
{
        return w->trusted || ls_guard_reads_wild(&w->guard, p, n);
}

#define NO_FUNCTION (1u << 16) /* below it no code is mapped: the id of a C type that is called */

/* What the FFI calls: its first argument points to it. */
static uintptr_t callee_of(struct ls_walk *w, const char *fn, const uint64_t *base)
{
        const char *cdata;
        uintptr_t callee;

        if (fn == LS_WFN_RESUMED_BY_C || !ls_vm_facts.ffid_ffi_call ||
            LS_READ(uint8_t, fn, LS_FN_FFID) != ls_vm_facts.ffid_ffi_call || !reads(w, base, 8) ||
            !ls_istype(LS_GET(*base), LS_T_CDATA))
                return 0;
        cdata = ls_gcptr(LS_GET(*base));
        if (!reads(w, cdata, LS_CDATA_VALUE + 8))
                return 0;
        callee = LS_READ(uintptr_t, cdata, LS_CDATA_VALUE);
        return callee >= NO_FUNCTION && !(callee >> 47) ? callee : 0;
}

static int push(struct ls_walk *w, const char *fn, const char *pc, const uint64_t *base)
{
        if (w->n == FRAMES_MOST)
                return -EBADMSG;
        if (w->n == w->room &&
            ls_pages_grow((void **)&w->frames, &w->room, w->n + 1, sizeof *w->frames))
                return -ENOMEM;
        w->frames[w->n] = (struct ls_wframe){
                .fn = fn, .pc = pc, .base = base, .callee = callee_of(w, fn, base)
        };
        w->n++;
        return 0;
}

static int is_func(uint64_t slot)
{
        return ls_istype(slot, LS_T_FUNC);
}

/* 1 when fn is a function object, and for a Lua function its prototype can be read too. */
static int function_reads(struct ls_guard *g, const char *fn)
{
        const char *pt;

        if (!ls_guard_reads(g, fn, LS_FN_UPVALUES) || LS_READ(uint8_t, fn, LS_GC_TYPE) != LS_T_FUNC)
                return 0;
        if (!ls_fn_is_lua(fn))
                return 1;
        pt = ls_fn_proto(fn);
        return ls_guard_reads(g, pt, LS_PT_SIZE) && LS_READ(uint8_t, pt, LS_GC_TYPE) == LS_T_PROTO;
}

static int frame_reads(struct ls_walk *w, const char *fn)
{
        return w->trusted || function_reads(&w->guard, fn);
}

/* C frames of protected calls that are done with: f is below where they began. */
static const char *live_cframe(struct ls_walk *w, const char *cf, const uint64_t *stack,
                               const uint64_t *f)
{
        for (int i = 0; i < CFRAMES_MOST && cf && reads_wild(w, cf, LS_CF_SIZE); i++) {
                if (LS_READ(int32_t, cf, LS_CF_NRES) >= 0 ||
                    (const char *)f >= (const char *)stack - LS_READ(int32_t, cf, LS_CF_NRES))
                        return cf;
                cf = cframe_raw(LS_READ(const void *, cf, LS_CF_PREV));
        }
        return NULL;
}

static void note_cframe(struct ls_walk *w, const char *cf)
{
        if (cf && w->ncframes < LS_WALK_CFRAMES &&
            (!w->ncframes || w->cframes[w->ncframes - 1].cframe != cf))
                w->cframes[w->ncframes++] = (struct ls_wcframe){ cf, w->n };
}

static const char *pc_of(const char *cf)
{
        return cf ? LS_READ(const char *, cf, LS_CF_PC) : NULL;
}

/* The frame below a Lua-to-Lua call, whose link is the return address. NULL when it does not
 * hold. */
static const uint64_t *below_call(struct ls_walk *w, const uint64_t *f, const char *pc,
                                  const uint64_t *bottom)
{
        const uint64_t *below;
        const char *fn;

        if (!reads_wild(w, pc - 4, 4))
                return NULL;
        below = f - 2 - LS_READ(uint8_t, pc, -3);
        if (below <= bottom)
                return below;
        if (!reads(w, below - 1, 16) || !is_func(LS_GET(below[-1])))
                return NULL;
        fn = ls_gcptr(LS_GET(below[-1]));
        return frame_reads(w, fn) && ls_fn_is_lua(fn) && ls_pt_has_pc(ls_fn_proto(fn), pc) ? below
                                                                                           : NULL;
}

/* One thread's frames, from its base down. A vararg frame is two frames of one function: the upper
 * one is passed over and its pc goes to the lower. The pc of a Lua function that the VM interrupted
 * to call a hook, a finalizer or a handler of errors, is in the C frame that it runs in. */
static int walk_thread(struct ls_walk *w, const lua_State *L, const struct ls_top *top)
{
        const uint64_t *stack = LS_READ(const uint64_t *, L, LS_L_STACK);
        const uint64_t *bottom = stack + 1, *end = LS_READ(const uint64_t *, L, LS_L_MAXSTACK);
        const uint64_t *f = top->base - 1, *vararg_base = NULL;
        const char *cf = live_cframe(w, ls_cframe_of(L), stack, f), *pc = top->pc;
        int trusted = w->trusted, error;

        if (cf && top->entering) {
                note_cframe(w, cf);
                cf = live_cframe(w, cframe_raw(LS_READ(const void *, cf, LS_CF_PREV)), stack, f);
        }
        w->trusted = trusted && top->exact && !top->in_asm;
        note_cframe(w, cf);
        if (w->ncframes)
                w->cframes[w->ncframes - 1].frames = w->n;
        while (f > bottom) {
                if (f > end || !reads(w, f - 3, 32))
                        return -EBADMSG;
                uint64_t func = LS_GET(f[-1]), link = LS_GET(f[0]);
                const char *fn = ls_gcptr(func);
                int type = link & LS_FRAME_TYPEP;
                const uint64_t *below;

                if (type != LS_FRAME_VARG && fn != (const char *)L) {
                        if (!is_func(func) || !frame_reads(w, fn))
                                return -EBADMSG;
                        error = push(w, fn,
                                     ls_fn_is_lua(fn) && pc && ls_pt_has_pc(ls_fn_proto(fn), pc)
                                             ? pc
                                             : NULL,
                                     vararg_base ? vararg_base : f + 1);
                        vararg_base = NULL;
                        if (error)
                                return error;
                }
                if (type == LS_FRAME_VARG)
                        vararg_base = f + 1;
                if ((link & 3) == LS_FRAME_LUA) {
                        pc = (const char *)(uintptr_t)link;
                        below = below_call(w, f, pc, bottom);
                        w->trusted = trusted;   /* what was half made is behind us */
                } else {
                        below = (const uint64_t *)((uintptr_t)f -
                                                   (link & ~(uint64_t)LS_FRAME_TYPEP));
                        if (below >= f || below < stack)
                                return -EBADMSG;
                        if (((link & 3) == LS_FRAME_C ||
                             (type == LS_FRAME_CONT && LS_GET(f[-3]) == LS_CONT_FFI_CALLBACK)) &&
                            cf) {
                                cf = cframe_raw(LS_READ(const void *, cf, LS_CF_PREV));
                                cf = live_cframe(w, cf, stack, below);
                                note_cframe(w, cf);
                        } else {
                                cf = live_cframe(w, cf, stack, below);
                        }
                        if (type == LS_FRAME_CONT)
                                pc = (const char *)(uintptr_t)LS_GET(f[-2]);
                        else if (type != LS_FRAME_VARG)
                                pc = pc_of(cf);
                        if (type != LS_FRAME_VARG)
                                w->trusted = trusted;
                }
                if (!below || below >= f || below < stack)
                        return -EBADMSG;
                f = below;
        }
        w->trusted = trusted;
        return 0;
}

/* Lua's resume sets up the coroutine's first C frame directly below the resumer's, in assembler:
 * the resumer's lua_State is where its own C frame has it. The return address between them tells
 * this from lua_resume. */
LS_HANDLER const lua_State *ls_walk_resumer(const lua_State *L, struct ls_guard *g, int *ret_by_c)
{
        const char *global = LS_READ(const char *, L, LS_L_GLREF), *cf = ls_cframe_of(L), *prev;

        *ret_by_c = 0;
        if (LS_READ(const lua_State *, global, ls_vm_facts.main_offset) == L || !cf ||
            (g && !ls_guard_reads_wild(g, cf, 2 * LS_CF_SIZE)))
                return NULL;
        while ((prev = cframe_raw(LS_READ(const void *, cf, LS_CF_PREV))) && prev > cf &&
               (!g || ls_guard_reads_wild(g, prev, 2 * LS_CF_SIZE)))
                cf = prev;
        const char *back = LS_READ(const char *, cf, LS_CF_RETURN);

        for (int i = 0; i < 4 && ls_vm_facts.resume_return[i]; i++)
                if (back == ls_vm_facts.resume_return[i])
                        return LS_READ(const lua_State *, cf, LS_CF_SIZE + LS_CF_L);
        *ret_by_c = 1;
        return NULL;
}

/* The top of a thread that is in a C function, or has resumed another: its base is saved, and its
 * pc with it. */
static void saved_top(struct ls_walk *w, const lua_State *L, struct ls_top *ret)
{
        const uint64_t *stack = LS_READ(const uint64_t *, L, LS_L_STACK),
                       *base = LS_READ(const uint64_t *, L, LS_L_BASE);

        *ret = (struct ls_top){ .base = base, .exact = 1 };
        ret->pc = pc_of(live_cframe(w, ls_cframe_of(L), stack, base - 1));
}

LS_HANDLER int ls_walk_from(struct ls_walk *w, const lua_State *L, const struct ls_top *top)
{
        struct ls_top next;
        int by_c = 0, error;

        w->n = w->body = 0;
        w->ncframes = 0;
        error = walk_thread(w, L, top);
        w->body = w->n ? w->n - 1 : 0;
        for (int i = 0; !error && i < MAX_RESUMERS; i++) {
                const lua_State *from = ls_walk_resumer(L, w->trusted ? NULL : &w->guard, &by_c);

                if (!from)
                        break;
                if (!reads(w, from, LS_L_CFRAME + 8))
                        return -EBADMSG;
                L = from;
                saved_top(w, L, &next);
                error = walk_thread(w, L, &next);
        }
        if (!error && by_c)
                error = push(w, LS_WFN_RESUMED_BY_C, NULL, NULL);
        return error;
}

LS_HANDLER int ls_walk_saved(struct ls_walk *w, const lua_State *L)
{
        struct ls_top top;

        saved_top(w, L, &top);
        return ls_walk_from(w, L, &top);
}

LS_HANDLER int ls_walk_stack(struct ls_walk *w, const lua_State *L)
{
        w->trusted = 1;
        return ls_walk_saved(w, L);
}

LS_HANDLER void ls_walk_drop_top(struct ls_walk *w)
{
        w->n--;
        w->body -= w->body > 0;
        memmove(w->frames, w->frames + 1, w->n * sizeof *w->frames);
        for (unsigned i = 0; i < w->ncframes; i++)
                w->cframes[i].frames -= w->cframes[i].frames > 0;
}

/* How well a base and a pc belong together. */
enum { NO = 0, WEAK = 1, STRONG = 2 };

static int fit(struct ls_walk *w, const lua_State *L, const uint64_t *base, const char *pc)
{
        const uint64_t *stack = LS_READ(const uint64_t *, L, LS_L_STACK),
                       *end = LS_READ(const uint64_t *, L, LS_L_MAXSTACK);
        const char *fn;

        if ((uintptr_t)base & 7 || base < stack + 2 || base > end ||
            !ls_guard_reads(&w->guard, base - 2, 16) || !is_func(LS_GET(base[-2])))
                return NO;
        fn = ls_gcptr(LS_GET(base[-2]));
        if (!function_reads(&w->guard, fn))
                return NO;
        if (ls_fn_is_lua(fn))
                return pc && ls_pt_has_pc(ls_fn_proto(fn), pc) ? STRONG : WEAK;
        /* A function of C keeps the return address as its link; its own bytecode is one
         * instruction. */
        return pc && (LS_GET(base[-1]) == (uintptr_t)pc ||
                      LS_READ(const char *, fn, LS_FN_PC) + 4 == pc)
                       ? STRONG
                       : WEAK;
}

/* 1 when the frame at base is one: its function is one, and its link leads to another. */
static int link_holds(struct ls_walk *w, const lua_State *L, const uint64_t *base)
{
        const uint64_t *stack = LS_READ(const uint64_t *, L, LS_L_STACK), *below;
        uint64_t link;

        if (fit(w, L, base, NULL) == NO)
                return 0;
        link = LS_GET(base[-1]);
        if ((link & 3) == LS_FRAME_LUA)
                return below_call(w, base - 1, (const char *)(uintptr_t)link, stack + 1) != NULL;
        below = (const uint64_t *)((const char *)(base - 1) - (link & ~(uint64_t)LS_FRAME_TYPEP));
        return below < base - 1 && below >= stack &&
               (below <= stack + 1 ||
                (ls_guard_reads(&w->guard, below - 1, 8) && is_func(LS_GET(below[-1]))));
}

/* The frame of a C function that a Lua function returns to: its result may stand where its function
 * was, its link is still there. NULL when it does not hold. */
static const uint64_t *returned_to(struct ls_walk *w, const lua_State *L, const uint64_t *base)
{
        const uint64_t *stack = LS_READ(const uint64_t *, L, LS_L_STACK),
                       *end = LS_READ(const uint64_t *, L, LS_L_MAXSTACK);
        const uint64_t *below;

        if ((uintptr_t)base & 7 || base < stack + 2 || base > end ||
            !ls_guard_reads(&w->guard, base - 1, 8) || (LS_GET(base[-1]) & 3) != LS_FRAME_C)
                return NULL;
        below = (const uint64_t *)((uintptr_t)base -
                                   (LS_GET(base[-1]) & ~(uint64_t)LS_FRAME_TYPEP));
        return below < base && link_holds(w, L, below) ? below : NULL;
}

#define SEARCH_WORDS 96                 /* of the C stack below the C frame */
#define SEARCH_MOST  24                 /* candidates of each kind */

/* A helper in C that the interpreter called without saving its registers first: they are still in
 * registers that calls preserve, or were pushed. Looks for a base and a pc that belong together. */
__attribute__((no_sanitize_address)) /* other functions' frames */
static int
search(struct ls_walk *w, const lua_State *L, const struct ls_regs *r, const char *cf,
       struct ls_top *ret)
{
        const uint64_t *stack = LS_READ(const uint64_t *, L, LS_L_STACK),
                       *end = LS_READ(const uint64_t *, L, LS_L_MAXSTACK);
        const uint64_t *q = (const uint64_t *)(const void *)cf, *low = (const uint64_t *)r->sp;
        const uint64_t *bases[SEARCH_MOST] = { (const uint64_t *)r->bp, (const uint64_t *)r->dx,
                                               LS_READ(const uint64_t *, L, LS_L_BASE) };
        const char *pcs[SEARCH_MOST] = { (const char *)r->bx, LS_READ(const char *, cf, LS_CF_PC) };
        unsigned nbases = 3, npcs = 2;

        if ((uintptr_t)low & 7 || low > q)
                return 0;
        if (q - low > SEARCH_WORDS)
                low = q - SEARCH_WORDS;
        while (q-- > low) {
                uint64_t word;

                if (!ls_guard_reads_wild(&w->guard, q, 8))
                        break;
                word = LS_GET(*q);
                if (word >= (uint64_t)(uintptr_t)stack && word <= (uint64_t)(uintptr_t)end) {
                        if (nbases < SEARCH_MOST)
                                bases[nbases++] = (const uint64_t *)(uintptr_t)word;
                } else if (word > 0x10000 && !(word >> 47) && !(word & 3) && npcs < SEARCH_MOST) {
                        pcs[npcs++] = (const char *)(uintptr_t)word;
                }
        }
        for (unsigned i = 0; i < nbases; i++) {
                if (fit(w, L, bases[i], NULL) == NO)
                        continue;
                for (unsigned j = 0; j < npcs; j++)
                        if (fit(w, L, bases[i], pcs[j]) == STRONG) {
                                *ret = (struct ls_top){ .base = bases[i],
                                                        .pc = pcs[j],
                                                        .exact = 1 };
                                return 1;
                        }
        }
        return 0;
}

#define SCAN_MOST 260                   /* slots of a frame: 250, and the next one's */

/* The innermost frame whose function pc is in, from where a register points into the stack down. */
static int scan_down(struct ls_walk *w, const lua_State *L, const struct ls_regs *r,
                     struct ls_top *ret)
{
        const uint64_t *stack = LS_READ(const uint64_t *, L, LS_L_STACK),
                       *end = LS_READ(const uint64_t *, L, LS_L_MAXSTACK);
        const uint64_t *from = (const uint64_t *)r->dx;

        if (from < stack + 2 || from > end || (uintptr_t)from & 7)
                from = (const uint64_t *)r->r15;
        if (from < stack + 2 || from > end || (uintptr_t)from & 7)
                return 0;
        for (int i = 0; i < SCAN_MOST && from >= stack + 2; i++, from--) {
                if (!ls_guard_reads(&w->guard, from - 2, 16) || !is_func(LS_GET(from[-2])))
                        continue;
                if (fit(w, L, from, (const char *)r->bx) == STRONG && link_holds(w, L, from)) {
                        *ret = (struct ls_top){ .base = from,
                                                .pc = (const char *)r->bx,
                                                .exact = 1 };
                        return 1;
                }
        }
        return 0;
}

static int try_moved(struct ls_walk *w, const lua_State *L, uintptr_t word, const char *pc,
                     struct ls_top *ret)
{
        uintptr_t stack = LS_READ(uintptr_t, L, LS_L_STACK),
                  saved = LS_READ(uintptr_t, L, LS_L_BASE);
        const uint64_t *bases[] = { (const uint64_t *)(stack + (saved - word)),
                                    (const uint64_t *)(saved + word) };

        for (int i = 0; i < 2; i++) {
                int strong = fit(w, L, bases[i], pc) == STRONG;

                if (!strong && !link_holds(w, L, bases[i]))
                        continue;
                *ret = (struct ls_top){ .base = bases[i], .pc = strong ? pc : NULL, .exact = 1 };
                return 1;
        }
        return 0;
}

/* The stack was given a new place, which takes long for a large one, and the base is still that in
 * the old. The old place, or how far the new one is from it, is in a register or was pushed. */
__attribute__((no_sanitize_address)) /* other functions' frames */
static int
moved(struct ls_walk *w, const lua_State *L, const struct ls_regs *r, const char *cf,
      const char *pc, struct ls_top *ret)
{
        uintptr_t saved = LS_READ(uintptr_t, L, LS_L_BASE);
        const uintptr_t regs[] = { r->bx, r->bp, r->r12, r->r13, r->r14, r->r15, r->dx };
        const uint64_t *q = (const uint64_t *)(const void *)cf, *low = (const uint64_t *)r->sp;

        if (saved >= LS_READ(uintptr_t, L, LS_L_STACK) &&
            saved <= LS_READ(uintptr_t, L, LS_L_MAXSTACK))
                return 0;
        for (unsigned i = 0; i < sizeof regs / sizeof *regs; i++)
                if (try_moved(w, L, regs[i], pc, ret))
                        return 1;
        if ((uintptr_t)low & 7 || low > q)
                return 0;
        for (unsigned i = 0; low < q && i < SEARCH_WORDS && ls_guard_reads_wild(&w->guard, low, 8);
             i++, low++)
                if (try_moved(w, L, LS_GET(*low), pc, ret))
                        return 1;
        return 0;
}

/* First of these pairs that fits. */
struct pair { const uint64_t *base; const char *pc; };

static int choose(struct ls_walk *w, const lua_State *L, const struct pair *pairs, unsigned n,
                  struct ls_top *ret)
{
        for (unsigned i = 0; i < n; i++)
                if (fit(w, L, pairs[i].base, pairs[i].pc) == STRONG) {
                        ret->base = pairs[i].base;
                        ret->pc = pairs[i].pc;
                        return ret->exact = 1;
                }
        return 0;
}

#define RETURNS_AMONG 1000u             /* instructions of a function that are looked at */

/* 1 when its instructions and lines can be read: they are in the same block, behind it. */
static int lines_read(struct ls_walk *w, const char *pt)
{
        uint64_t n = LS_READ(uint32_t, pt, LS_PT_SIZEBC),
                 size = LS_READ(uint32_t, pt, LS_PT_SIZEPT);
        const char *info = LS_READ(const char *, pt, LS_PT_LINEINFO);

        return n <= RETURNS_AMONG && size < 1u << 20 && size >= LS_PT_SIZE + 4 * n &&
               ls_guard_reads(&w->guard, pt, size) && info >= pt && info <= pt + size &&
               (uint64_t)(pt + size - info) + ls_pt_line_width(pt) >= n * ls_pt_line_width(pt);
}

/* Behind a function's return: NULL when it has returns on several lines. */
static const char *only_return(struct ls_walk *w, const char *pt)
{
        const char *bc = pt + LS_PT_SIZE, *found = NULL;
        uint32_t n = LS_READ(uint32_t, pt, LS_PT_SIZEBC);

        if (!lines_read(w, pt))
                return NULL;
        for (const char *pc = bc + 4; pc < bc + 4 * (size_t)n; pc += 4) {
                uint8_t op = LS_READ(uint8_t, pc, 0);

                /* RETM, RET, RET0 and RET1 come before FORI */
                if (op >= ls_vm_facts.op_fori || op + 4 < ls_vm_facts.op_fori)
                        continue;
                if (found && ls_pt_line(pt, found) != ls_pt_line(pt, pc + 4))
                        return NULL;
                found = pc + 4;
        }
        return found;
}

/* C calls a Lua function, or it returns to C: the interpreter has the first instruction, or has
 * given up the last one. Code that C calls back, as table.sort does, has many ticks there. */
static const char *at_border(struct ls_walk *w, const struct ls_top *top, const uint64_t *saved,
                             int in_c, const struct ls_regs *r)
{
        const char *fn = ls_gcptr(LS_GET(top->base[-2])), *pt;

        if (!top->in_asm || !ls_fn_is_lua(fn) || !function_reads(&w->guard, fn))
                return NULL;
        pt = ls_fn_proto(fn);
        if (r->bx == (uintptr_t)pt + LS_PT_SIZE)
                return pt + LS_PT_SIZE + 4;
        if (top->base != saved || (LS_GET(top->base[-1]) & 3) != LS_FRAME_C)
                return NULL;
        return in_c || r->bx < 1u << 24 ? only_return(w, pt) : NULL;
}

/* In the VM's assembler the stack pointer is at the C frame (or one word below, in a subroutine),
 * BASE is in rdx and PC in rbx. In a C function and most helpers both were saved. */
LS_HANDLER void ls_walk_top(struct ls_walk *w, const lua_State *L, const uint64_t *jit_base,
                            int in_c, const struct ls_regs *r, struct ls_top *ret)
{
        const uint64_t *saved = LS_READ(const uint64_t *, L, LS_L_BASE),
                       *dx = (const uint64_t *)r->dx;
        const char *cf = ls_cframe_of(L), *bx = (const char *)r->bx;
        const char *newest_pc = ls_guard_reads_wild(&w->guard, cf, LS_CF_SIZE)
                                        ? LS_READ(const char *, cf, LS_CF_PC)
                                        : NULL;
        /* The VM itself makes protected calls, as while it compiles a loop: their C frame has no
         * pc. */
        const char *saved_pc =
                pc_of(live_cframe(w, cf, LS_READ(const uint64_t *, L, LS_L_STACK), saved - 1));

        *ret = (struct ls_top){ .in_asm = cf == (const char *)r->sp ||
                                          cf - 8 == (const char *)r->sp };
        /* The interpreter's own code neither moves nor frees the stack. */
        if (LS_ITSELF && cf == (const char *)r->sp) {
                w->guard.sure[1].low = LS_READ(uintptr_t, L, LS_L_STACK);
                w->guard.sure[1].high = LS_READ(uintptr_t, L, LS_L_MAXSTACK);
        }
        if (jit_base) {
                ret->in_trace = 1;
                ret->in_asm = 0;
                ret->exact = fit(w, L, jit_base, NULL) != NO;
                ret->base = ret->exact ? jit_base : NULL;
                return;
        }
        if (in_c && !ret->in_asm && fit(w, L, saved, NULL) != NO &&
            !ls_fn_is_lua(ls_gcptr(LS_GET(saved[-2])))) {
                ret->base = saved;
                ret->exact = 1;
                return;
        }
        if (ret->in_asm) {
                const struct pair pairs[] = {
                        { dx, bx }, { saved, bx }, { dx, saved_pc }, { saved, saved_pc }
                };

                if (choose(w, L, pairs, 4, ret))
                        return;
                /* a helper in C that pushed nothing looks like a subroutine; and at a return BASE
                 * is already another's */
                if (!in_c && (link_holds(w, L, (const uint64_t *)r->bp) || !link_holds(w, L, dx)) &&
                    (search(w, L, r, cf, ret) || scan_down(w, L, r, ret))) {
                        ret->in_asm = 0;
                        return;
                }
        } else {
                const struct pair pairs[] = {
                        { saved, saved_pc }, { saved, bx }, { dx, saved_pc }, { dx, bx }
                };

                if (moved(w, L, r, cf, saved_pc, ret) || choose(w, L, pairs, 4, ret) ||
                    search(w, L, r, cf, ret))
                        return;
        }
        /* A call or a return is under way: the function is known, its instruction is not. */
        ret->base = ret->in_asm && !in_c && link_holds(w, L, dx) ? dx
                    : link_holds(w, L, saved)                    ? saved
                                                                 : NULL;
        ret->exact = ret->base != NULL;
        if (ret->base)
                ret->pc = at_border(w, ret, saved, in_c, r);
        if (!ret->base && ret->in_asm && in_c && (ret->base = returned_to(w, L, saved))) {
                ret->exact = ret->entering = 1;
                return;
        }
        if (!ret->base && fit(w, L, saved, NULL) != NO)
                ret->base = saved;
        ret->entering = ret->base && ret->in_asm && ret->base == saved &&
                        newest_pc == (const char *)L &&
                        !ls_fn_is_lua(ls_gcptr(LS_GET(saved[-2]))) && (in_c || r->bx < 1u << 24);
}
