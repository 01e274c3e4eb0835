/* Which trace runs, and where in it: called by the tick handler for a VM whose thread was
 * interrupted. Reads what jit_traces.c keeps, a few words of the VM's global state, and words of
 * the C stack; see jit/jit.h. */

#include "libsample/handler/jit_locate.h"

#include <string.h>

#include "libsample/handler/guard.h"
#include "libsample/handler/walk.h"
#include "libsample/layout.h"

#define MOST_WORDS 512                  /* of the C stack that are searched for a return address */
#define EXIT_CODE  256u                 /* bytes of LuaJIT's exit handlers that may run before the VM state says so */
#define PAGE       4096u
#define MOST_SCAN  16384u               /* bytes of machine code that are searched for an exit's branch */

#define STATE_GC   (~2)                 /* VM states of the interpreter, of C and of the collector are ~0 to ~2 */

const char *ls_jit_trace_of(struct ls_guard *g, const char *global, uint32_t number)
{
        const char *place = global + ls_vm_facts.traces_offset, *slot, *trace;

        if (!ls_guard_reads(g, place, 16) || number >= LS_READ(uint32_t, place, 12))
                return NULL;
        slot = LS_READ(const char *, place, 0) + 8 * (size_t)number;
        if (((uintptr_t)slot & 7) || !ls_guard_reads(g, slot, 8))
                return NULL;
        trace = LS_READ(const char *, slot, 0);
        if (!trace || ((uintptr_t)trace & 7) || !ls_guard_reads(g, trace, LS_TR_SIZE) ||
            LS_READ(uint16_t, trace, LS_TR_NUMBER) != number)
                return NULL;
        return trace;
}

int ls_jit_is_at(const char *trace, uintptr_t ip)
{
        return ip - LS_READ(uintptr_t, trace, LS_TR_MCODE) < LS_READ(uint32_t, trace, LS_TR_MCODE_SIZE);
}

int ls_jit_in_running(struct ls_guard *guard, const char *global, uintptr_t ip)
{
        int32_t number = LS_READ(const volatile int32_t, global, ls_vm_facts.vmstate_offset);
        const char *trace = ls_vm_facts.traces_offset && number > 0 ? ls_jit_trace_of(guard, global, (uint32_t)number) : NULL;

        return trace && ls_jit_is_at(trace, ip);
}

int ls_jit_is_known(const struct ls_jit *jit, const char *trace)
{
        const struct ls_jit_entry *e = ls_jit_entry(jit, LS_READ(uint16_t, trace, LS_TR_NUMBER));

        return e && LS_LOAD(e, jit_id, memory_order_relaxed) && LS_FIELD(e, mcode) == LS_READ(uintptr_t, trace, LS_TR_MCODE) &&
               LS_FIELD(e, mcode_size) == LS_READ(uint32_t, trace, LS_TR_MCODE_SIZE) &&
               LS_FIELD(e, start) == LS_READ(uintptr_t, trace, LS_TR_STARTPC);
}

struct trace {                          /* an entry as it was read */
        uint32_t number, jit_id, size, spadjust, falls_out;
        uintptr_t mcode;
};

/* The trace of this number. 0 = none. */
static int read_trace(const struct ls_jit *jit, uint32_t number, struct trace *ret)
{
        const struct ls_jit_entry *e = ls_jit_entry(jit, number);

        if (!e)
                return 0;
        ret->number = number;
        ret->jit_id = LS_LOAD(e, jit_id, memory_order_acquire);
        ret->mcode = LS_FIELD(e, mcode);
        ret->size = LS_FIELD(e, mcode_size);
        ret->spadjust = LS_FIELD(e, spadjust);
        ret->falls_out = LS_FIELD(e, falls_out);
        atomic_thread_fence(memory_order_acquire);
        return ret->jit_id && ret->jit_id == LS_LOAD(e, jit_id, memory_order_relaxed);
}

static int is_in(const struct trace *t, uintptr_t address)
{
        return address - t->mcode < t->size;
}

/* The trace whose code an address is in. 0 = none, or the table is being changed. */
static int find_trace(const struct ls_jit *jit, uintptr_t address, struct trace *ret)
{
        uint32_t before = LS_LOAD(jit, changing, memory_order_acquire), low = 0, high;
        const struct ls_jit_range *ranges;

        if (before & 1)
                return 0;
        high = LS_FIELD(jit, nranges);
        ranges = LS_FIELD(jit, ranges);
        if (!high || address < LS_FIELD(ranges, mcode))
                return 0;
        while (high - low > 1) {
                uint32_t middle = low + (high - low) / 2;

                if (LS_FIELD(ranges + middle, mcode) <= address)
                        low = middle;
                else
                        high = middle;
        }
        return read_trace(jit, LS_FIELD(ranges + low, number), ret) && is_in(ret, address) &&
               LS_LOAD(jit, changing, memory_order_acquire) == before;
}

/* 1 when the address is behind a call in the trace's code. */
static int is_call(const struct trace *t, uintptr_t address)
{
        if (address - t->mcode < 5 || address - t->mcode > t->size)
                return 0;
        return LS_READ(uint8_t, address, -5) == 0xe8 ||
               (LS_READ(uint8_t, address, -2) == 0xff && (LS_READ(uint8_t, address, -1) & 0xf8) == 0xd0);
}

static int found(const struct trace *t, uint32_t offset, uint32_t *ret_jit_id, uint32_t *ret_offset)
{
        *ret_jit_id = t->jit_id;
        *ret_offset = offset;
        return LS_JIT_IN_TRACE;
}

static int called_out(const struct trace *t, uint32_t offset, uint32_t *ret_jit_id, uint32_t *ret_offset)
{
        found(t, offset, ret_jit_id, ret_offset);
        return LS_JIT_CALLED_OUT;
}

/* 1 when words of the C stack are in use and can be read. The VM may run on another stack than the
 * one that sp is in: only what lies in sp's own page is there for sure. */
static int in_use(uintptr_t at, size_t n, uintptr_t sp)
{
        return at >= sp && !(at & 7) && ((at + n - 1) / PAGE == sp / PAGE || ls_readable((const void *)at, n));
}

static int read_word(uintptr_t at, uintptr_t sp, uintptr_t *ret)
{
        if (!in_use(at, 8, sp))
                return 0;
        *ret = LS_READ(uintptr_t, at, 0);
        return 1;
}

/* Offset of the branch of exit number no, the last byte of it: the first whose target is the exit's
 * stub. */
static uint32_t branch_to(const struct trace *t, uintptr_t stub)
{
        const uint8_t *code = (const uint8_t *)t->mcode;
        uint32_t size = t->size < MOST_SCAN ? t->size : MOST_SCAN;

        for (uint32_t i = 1; i + 4 <= size; i++) {
                int32_t rel = LS_READ(int32_t, code, i);

                if (t->mcode + i + 4 + (uintptr_t)(intptr_t)rel == stub &&
                    (LS_GET(code[i - 1]) == 0xe9 || (LS_GET(code[i - 1]) & 0xf0) == 0x80))
                        return i + 3;
        }
        return LS_JIT_NO_OFFSET;
}

/* On the way out of trace t, the one that the VM state names: in an exit stub, in the beginning of
 * LuaJIT's exit handler, where the exit's number lies on the stack, or where the interpreter takes
 * over at the end of a trace. This last one loads much that is not in the cache: up to 2 of 5 ticks
 * of a program's compiled code are seen there. */
static int leaving(const struct ls_jit *jit, const struct trace *t, const char *g, uintptr_t frame, uintptr_t ip,
                   uintptr_t sp, uint32_t *ret_offset)
{
        unsigned stubs = LS_FIELD(jit, at.stubs);
        const uintptr_t *groups = (const uintptr_t *)(g + LS_FIELD(jit, at.state) + stubs);
        uintptr_t low, high, group;

        if (t->falls_out && sp >= frame && ip - LS_FIELD(jit, exit_interp) < EXIT_CODE) {
                *ret_offset = t->size - 1;
                return 1;
        }
        for (unsigned i = 0; stubs && i < LS_STUB_GROUPS && (group = LS_GET(groups[i])); i++) {
                uintptr_t in_group = ip - group;

                if (in_group < LS_STUB_HIGH) {
                        *ret_offset = branch_to(t, group + in_group / LS_STUB_SIZE * LS_STUB_SIZE);
                        return 1;
                }
                if (in_group >= LS_STUBS_SIZE && ip - LS_FIELD(jit, at.exit_handler) >= EXIT_CODE)
                        continue;
                *ret_offset = LS_JIT_NO_OFFSET;
                if (read_word(frame - t->spadjust - 8, sp, &low)) {
                        high = i;
                        if (in_group >= LS_STUBS_SIZE && !read_word(frame - t->spadjust - 16, sp, &high))
                                return 1;
                        if (in_group >= LS_STUBS_SIZE)
                                high = (high & 0xff) * 256 / LS_STUBS_PER_GROUP + (low & 0xff) / LS_STUBS_PER_GROUP;
                        if (high < LS_STUB_GROUPS && (group = LS_GET(groups[high])))
                                *ret_offset = branch_to(t, group + (low & 31) * LS_STUB_SIZE);
                }
                return 1;
        }
        return 0;
}

/* The return address of a call from compiled code: the words where one of the live traces may have
 * left it, the lowest first, which is the newest. */
static int find_caller(const struct ls_jit *jit, uintptr_t frame, uintptr_t sp, struct trace *ret, uint32_t *ret_offset)
{
        uintptr_t at = frame - 8 - ((uintptr_t)LS_FIELD(jit, deepest) & ~(uintptr_t)7), word;

        if (at < sp)
                at = (sp + 7) & ~(uintptr_t)7;
        if (frame <= at || frame - at > 8 * MOST_WORDS || !in_use(at, frame - at, sp))
                return 0;
        for (; at < frame; at += 8) {
                word = LS_READ(uintptr_t, at, 0);
                if (find_trace(jit, word - 1, ret) && at == frame - ret->spadjust - 8 && is_call(ret, word)) {
                        *ret_offset = (uint32_t)(word - 1 - ret->mcode);
                        return 1;
                }
        }
        return 0;
}

int ls_jit_locate(const struct ls_vm *vm, const lua_State *L, uintptr_t ip, uintptr_t sp, uint32_t *ret_jit_id,
                  uint32_t *ret_offset)
{
        const struct ls_jit *jit = vm->jit;
        const char *g = jit ? LS_LOAD(jit, global, memory_order_acquire) : NULL;
        uintptr_t frame, word;
        struct trace t, other;
        int32_t state;
        uint32_t offset;

        if (!g)
                return 0;
        state = LS_READ(int32_t, g, LS_FIELD(jit, at.vmstate));
        /* before a trace has stored its number, the one before it is named: the code says more */
        if (find_trace(jit, ip, &t))
                return found(&t, (uint32_t)(ip - t.mcode), ret_jit_id, ret_offset);
        frame = (LS_READ(uintptr_t, L, LS_L_CFRAME) & ~(uintptr_t)3) - LS_TRACE_SAVED;
        if (state > 0 && read_trace(jit, (uint32_t)state, &t)) {
                if (read_word(frame - t.spadjust - 8, sp, &word) && is_call(&t, word))
                        return called_out(&t, (uint32_t)(word - 1 - t.mcode), ret_jit_id, ret_offset);
                if (leaving(jit, &t, g, frame, ip, sp, &offset))
                        return called_out(&t, offset, ret_jit_id, ret_offset);
                if (find_caller(jit, frame, sp, &other, &offset))
                        return called_out(&other, offset, ret_jit_id, ret_offset);
                return called_out(&t, LS_JIT_NO_OFFSET, ret_jit_id, ret_offset);
        }
        if (state < 0 && state >= STATE_GC && LS_READ(uintptr_t, g, LS_FIELD(jit, at.jit_base)) &&
            find_caller(jit, frame, sp, &t, &offset))
                return called_out(&t, offset, ret_jit_id, ret_offset);
        return LS_JIT_NOWHERE;
}
