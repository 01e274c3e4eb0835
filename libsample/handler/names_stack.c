/* Names from a stack: as an enclosing function defines a function ("local function f", "t.f =
 * function"), or as its caller calls it. A call site's name is taken only when the thing of that
 * name still is the function: a tail call puts another function into the frame. */

#include "libsample/handler/names_stack.h"

#include "libsample/rawtab.h"

#define CALLERS_MOST 64                 /* frames that are looked at for a definition */
#define CONSTANTS_MOST 2048u /* of all functions of a stack that are looked through: some 20 us */
#define BACK_MOST 16         /* instructions before a call that are looked at for what is called */

static uint32_t uleb(const uint8_t **p)
{
        uint32_t v = 0;
        int shift = 0;
        uint8_t b;

        do {
                b = LS_GET(**p);
                ++*p;
                v |= (uint32_t)(b & 0x7f) << shift;
                shift += 7;
        } while (b & 0x80 && shift < 32);
        return v;
}

/* Walks the local variables that are live at instruction pos, by slot. Returns the name of the one
 * in want_slot; with want_name the slot of the last one so called in *ret_slot. Variables of the
 * compiler have names below 7. */
static const char *local_at(const char *pt, uint32_t pos, int want_slot, const char *want_name,
                            int *ret_slot)
{
        const uint8_t *p = LS_READ(const uint8_t *, pt, LS_PT_VARINFO);
        uint32_t last = 0;
        int slot = 0;
        const char *found = NULL;

        while (p && LS_GET(*p)) {
                const char *name = LS_GET(*p) < 7 ? "" : (const char *)p;

                p += *name ? ls_text_len(name) + 1 : 1;
                uint32_t start = last + uleb(&p);
                uint32_t end = start + uleb(&p);

                if (start > pos)
                        break;
                last = start;
                if (pos >= end)
                        continue;
                if (want_name ? *name && ls_text_is(name, want_name) : slot == want_slot) {
                        found = name;
                        *ret_slot = slot;
                }
                slot++;
        }
        return found && *found ? found : NULL;
}

static const char *kstr(const char *pt, uint32_t index)
{
        const uint64_t *k = LS_READ(const uint64_t *, pt, LS_PT_K);
        const char *o = (const char *)(uintptr_t)LS_GET(k[-1 - (int64_t)index]);

        return LS_READ(uint8_t, o, LS_GC_TYPE) == LS_T_STR ? o : NULL;
}

/* Index of child among the constants of parent, or -1. */
static int64_t child_index(const char *parent, const char *child)
{
        const uint64_t *k = LS_READ(const uint64_t *, parent, LS_PT_K);
        uint32_t n = LS_READ(uint32_t, parent, LS_PT_SIZEKGC);

        for (uint32_t i = 0; i < n; i++)
                if (LS_GET(k[-1 - (int64_t)i]) == (uint64_t)(uintptr_t)child)
                        return i;
        return -1;
}

const char *ls_names_defined(const char *parent, uint32_t index, uint32_t *from, uint32_t *ret_len)
{
        const uint32_t *bc = (const uint32_t *)(const void *)(parent + LS_PT_SIZE);
        uint32_t n = LS_READ(uint32_t, parent, LS_PT_SIZEBC);
        const char *name = NULL;
        int slot;

        for (uint32_t i = *from; i + 1 < n; i++) {
                uint32_t ins = LS_GET(bc[i]), next, a = ins >> 8 & 0xff;

                if ((ins & 0xff) != ls_vm_facts.op_fnew || ins >> 16 != index)
                        continue;
                *from = i + 1;
                next = LS_GET(bc[i + 1]);

                if ((next & 0xff) == ls_vm_facts.op_tsets && (next >> 8 & 0xff) == a)
                        name = kstr(parent, next >> 16 & 0xff);
                else if ((next & 0xff) == ls_vm_facts.op_gset && (next >> 8 & 0xff) == a)
                        name = kstr(parent, next >> 16);
                if (name) {
                        *ret_len = ls_str_len(name);
                        return ls_str_data(name);
                }
                name = local_at(parent, i + 1, (int)a, NULL, &slot);
                if (name)
                        *ret_len = (uint32_t)ls_text_len(name);
                return name;
        }
        return NULL;
}

/* The name that parent's code gives child where it makes it. */
static const char *defined_name(const char *parent, const char *child, uint32_t *ret_len)
{
        int64_t index = child_index(parent, child);
        uint32_t from = 1;

        return index < 0 ? NULL : ls_names_defined(parent, (uint32_t)index, &from, ret_len);
}

static int is(uint64_t value, const char *fn)
{
        return value == ls_tagged(fn, LS_T_FUNC);
}

/* The value of upvalue i. */
static uint64_t upvalue(const char *fn, int i)
{
        const char *uv = LS_READ(const char *, fn, LS_FN_UPVALUES + 8 * (size_t)i);

        return LS_GET(*LS_READ(const uint64_t *, uv, LS_UV_VALUE));
}

static int upvalue_is(const char *caller, const char *name, const char *fn)
{
        const char *names = LS_READ(const char *, ls_fn_proto(caller), LS_PT_UVINFO);
        int n = LS_READ(uint8_t, caller, LS_FN_NUPVALUES);

        for (int i = 0; names && i < n; i++, names += ls_text_len(names) + 1)
                if (ls_text_is(names, name) && is(upvalue(caller, i), fn))
                        return 1;
        return 0;
}

/* 1 when the field of t, or of what it inherits from, is fn. */
static int field_is(uint64_t t, const char *name, const char *fn)
{
        for (int i = 0; i < 4 && ls_istype(t, LS_T_TAB); i++) {
                if (is(ls_tab_get(ls_gcptr(t), name, ls_text_len(name)), fn))
                        return 1;
                const char *meta = ls_tab_meta(ls_gcptr(t));

                if (!meta)
                        return 0;
                t = ls_tab_get(meta, "__index", 7);
        }
        return 0;
}

static int some_upvalue_field_is(const struct ls_wframe *caller, const char *name, const char *fn)
{
        int n = LS_READ(uint8_t, caller->fn, LS_FN_NUPVALUES);

        for (int i = 0; i < n; i++)
                if (field_is(upvalue(caller->fn, i), name, fn))
                        return 1;
        return 0;
}

/* Slots of live variables only: those above may hold freed objects. */
static int some_local_field_is(const struct ls_wframe *caller, uint32_t pos, const char *name,
                               const char *fn)
{
        int slot;

        for (int i = 0; i < 200 && local_at(ls_fn_proto(caller->fn), pos, i, NULL, &slot); i++)
                if (field_is(LS_GET(caller->base[i]), name, fn))
                        return 1;
        return 0;
}

/* What a caller calls: how it says it, and the name. */
struct said { char what; const char *name; uint32_t len; };     /* what: l(ocal), u(pvalue),
                                                                 * f(ield), m(ethod), 0 = nothing */

static const char *upvalue_name(const char *pt, uint32_t i)
{
        const char *names = LS_READ(const char *, pt, LS_PT_UVINFO);

        if (!names || i >= LS_READ(uint8_t, pt, LS_PT_SIZEUV))
                return NULL;
        while (i--)
                names += ls_text_len(names) + 1;
        return names;
}

/* The instruction that puts the called function into slot a, last before the call at pos: what it
 * takes it from. Others may name that slot too: the caller checks what it is told. */
static struct said said_at(const char *pt, uint32_t pos, uint32_t a)
{
        const uint32_t *bc = (const uint32_t *)(const void *)(pt + LS_PT_SIZE);
        struct said none = { 0, NULL, 0 };
        const char *name;
        int slot;

        for (uint32_t i = pos; i-- > 1 && i + BACK_MOST > pos;) {
                uint32_t ins = LS_GET(bc[i]), op = ins & 0xff;

                if ((ins >> 8 & 0xff) != a)
                        continue;
                if (op == ls_vm_facts.op_mov) {
                        name = local_at(pt, i, (int)(ins >> 16), NULL, &slot);
                        return name ? (struct said){ 'l', name, (uint32_t)ls_text_len(name) }
                                    : none;
                }
                if (op == ls_vm_facts.op_uget) {
                        name = upvalue_name(pt, ins >> 16);
                        return name ? (struct said){ 'u', name, (uint32_t)ls_text_len(name) }
                                    : none;
                }
                if (op == ls_vm_facts.op_tgets && (name = kstr(pt, ins >> 16 & 0xff))) {
                        uint32_t before = LS_GET(bc[i - 1]);
                        int method = i > 1 && (before & 0xff) == ls_vm_facts.op_mov &&
                                     (before >> 8 & 0xff) == a + 2;

                        return (struct said){ method ? 'm' : 'f', ls_str_data(name),
                                              ls_str_len(name) };
                }
        }
        return none;
}

static int name_is_true(const struct ls_wframe *caller, const struct ls_wframe *callee,
                        uint32_t pos, const struct said *said)
{
        const char *pt = ls_fn_proto(caller->fn);
        int slot;

        switch (said->what) {
        case 'l':
                return local_at(pt, pos, 0, said->name, &slot) &&
                       is(LS_GET(caller->base[slot]), callee->fn);
        case 'u':
                return upvalue_is(caller->fn, said->name, callee->fn);
        case 'm':
                return ls_fn_is_lua(callee->fn) &&
                       field_is(LS_GET(callee->base[0]), said->name, callee->fn);
        case 'f':
                return some_upvalue_field_is(caller, said->name, callee->fn) ||
                       some_local_field_is(caller, pos, said->name, callee->fn);
        default:
                return 0;               /* global: the search finds it with its path */
        }
}

/* Sends it: from the VM's memory, as a definition or a call site gave it. */
static void give(struct ls_thread *t, struct ls_fn *fn, unsigned rank, const char *name,
                 uint32_t len)
{
        len = len < LS_TEXT_MOST ? len : LS_TEXT_MOST;
        ls_function_name(t, fn, rank, ls_at(name, len), len);
}

/* As the enclosing function defines it. */
static int definition_name(struct ls_thread *t, const struct ls_walk *walk, size_t i,
                           struct ls_fn *fn)
{
        const char *pt = ls_fn_proto(walk->frames[i].fn), *name;
        uint32_t len;

        for (size_t j = i + 1; j < walk->n && j <= i + CALLERS_MOST; j++) {
                size_t k = j == i + CALLERS_MOST ? walk->n - 1 : j;
                const char *parent = walk->frames[k].fn;

                if (parent == LS_WFN_RESUMED_BY_C || !ls_fn_is_lua(parent))
                        continue;
                name = defined_name(ls_fn_proto(parent), pt, &len);
                if (name) {
                        give(t, fn, LS_NAME_DEFINITION, name, len);
                        return 1;
                }
        }
        return 0;
}

void ls_names_from_stack(struct ls_thread *t, const struct ls_walk *walk, size_t i,
                         struct ls_fn *fn, int call_sites)
{
        const struct ls_wframe *callee = &walk->frames[i], *caller = callee + 1;
        struct said said;
        uint32_t pos;

        fn->tried |= call_sites ? LS_TRIED_DEFINITION | LS_TRIED_CALL_SITE : LS_TRIED_DEFINITION;
        if (ls_fn_is_lua(callee->fn) && definition_name(t, walk, i, fn))
                return;
        if (!call_sites || i >= walk->body || !ls_fn_is_lua(caller->fn) || !caller->pc)
                return;
        /* the saved pc is behind the call */
        pos = (uint32_t)((caller->pc - (ls_fn_proto(caller->fn) + LS_PT_SIZE)) / 4) - 1;
        said = said_at(ls_fn_proto(caller->fn), pos, LS_READ(uint8_t, caller->pc, -3));
        if (said.what && name_is_true(caller, callee, pos, &said))
                give(t, fn, LS_NAME_CALLSITE, said.name, said.len);
}

/* Those that one function defines; at most so many of its constants are looked at. Returns how many
 * were. */
static uint32_t name_children(struct ls_thread *t, const char *parent, uint32_t most)
{
        const uint64_t *k = LS_READ(const uint64_t *, parent, LS_PT_K);
        uint32_t n = LS_READ(uint32_t, parent, LS_PT_SIZEKGC);

        n = n < most ? n : most;
        for (uint32_t i = 0; i < n; i++) {
                const char *child = (const char *)(uintptr_t)LS_GET(k[-1 - (int64_t)i]), *name;
                uint32_t len;
                struct ls_fn *fn;

                if (LS_READ(uint8_t, child, LS_GC_TYPE) != LS_T_PROTO ||
                    !(fn = ls_function_find_proto(t, child)) || fn->rank != LS_NAME_NONE ||
                    fn->tried != LS_TRIED_ENCLOSING)
                        continue;
                name = defined_name(parent, child, &len);
                if (name)
                        give(t, fn, LS_NAME_DEFINITION, name, len);
        }
        return n;
}

void ls_names_enclosed(struct ls_thread *t, const struct ls_walk *walk)
{
        uint32_t most = CONSTANTS_MOST;

        for (size_t i = 0; i < walk->n && i < CALLERS_MOST; i++) {
                const struct ls_wframe *f = &walk->frames[i + 1 < CALLERS_MOST ? i : walk->n - 1];

                if (!f->callee && f->fn != LS_WFN_RESUMED_BY_C && (!i || f->fn != f[-1].fn) &&
                    ls_fn_is_lua(f->fn))
                        most -= name_children(t, ls_fn_proto(f->fn), most);
        }
}
