/* Which trace runs, and where in it: called by the tick handler for a VM whose thread was
 * interrupted. Reads what jit_traces.c keeps, a few words of the VM's global state, and words of
 * the C stack; see jit/jit.h. */

#include "libsample/handler/jit_locate.h"

#include <string.h>

#include "libsample/handler/guard.h"
#include "libsample/handler/walk.h"
#include "libsample/layout.h"

#define MOST_WORDS 512                  /* of the C stack that are searched for a return address */
#define EXIT_CODE                                                                                  \
        256u /* bytes of LuaJIT's exit handlers that may run before the VM state says so */
#define PAGE       4096u
#define MOST_SCAN                                                                                  \
        16384u /* bytes of machine code that are searched for an exit's branch, or for calls */
#define MOST_CALLS 16u                  /* through registers, of one trace, that are told apart */
#define NO_CODE    (1u << 16)           /* below it no code is mapped */
#define OWN_SLOTS  2u                   /* of a frame, below its first variable */
#define PARENTS    1u                   /* in an SLOAD: the value is the parent's, and in no slot */

#define STATE_GC (~2) /* VM states of the interpreter, of C and of the collector are ~0 to ~2 */

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
        return ip - LS_READ(uintptr_t, trace, LS_TR_MCODE) <
               LS_READ(uint32_t, trace, LS_TR_MCODE_SIZE);
}

int ls_jit_in_running(struct ls_guard *guard, const char *global, uintptr_t ip)
{
        int32_t number = LS_READ(const volatile int32_t, global, ls_vm_facts.vmstate_offset);
        const char *trace = ls_vm_facts.traces_offset && number > 0
                                    ? ls_jit_trace_of(guard, global, (uint32_t)number)
                                    : NULL;

        return trace && ls_jit_is_at(trace, ip);
}

int ls_jit_is_known(const struct ls_jit *jit, const char *trace)
{
        const struct ls_jit_entry *e = ls_jit_entry(jit, LS_READ(uint16_t, trace, LS_TR_NUMBER));

        return e && LS_LOAD(e, jit_id, memory_order_relaxed) &&
               LS_FIELD(e, mcode) == LS_READ(uintptr_t, trace, LS_TR_MCODE) &&
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
               (LS_READ(uint8_t, address, -2) == 0xff &&
                (LS_READ(uint8_t, address, -1) & 0xf8) == 0xd0);
}

static int found(const struct trace *t, uint32_t offset, uint32_t *ret_jit_id, uint32_t *ret_offset)
{
        *ret_jit_id = t->jit_id;
        *ret_offset = offset;
        return LS_JIT_IN_TRACE;
}

static int called_out(const struct trace *t, uint32_t offset, uint32_t *ret_jit_id,
                      uint32_t *ret_offset)
{
        found(t, offset, ret_jit_id, ret_offset);
        return LS_JIT_CALLED_OUT;
}

/* 1 when words of the C stack are in use and can be read. The VM may run on another stack than the
 * one that sp is in: only what lies in sp's own page is there for sure. */
static int in_use(uintptr_t at, size_t n, uintptr_t sp)
{
        return at >= sp && !(at & 7) &&
               ((at + n - 1) / PAGE == sp / PAGE || ls_readable((const void *)at, n));
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
static int leaving(const struct ls_jit *jit, const struct trace *t, const char *g, uintptr_t frame,
                   uintptr_t ip, uintptr_t sp, uint32_t *ret_offset)
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
                        if (in_group >= LS_STUBS_SIZE &&
                            !read_word(frame - t->spadjust - 16, sp, &high))
                                return 1;
                        if (in_group >= LS_STUBS_SIZE)
                                high = (high & 0xff) * 256 / LS_STUBS_PER_GROUP +
                                       (low & 0xff) / LS_STUBS_PER_GROUP;
                        if (high < LS_STUB_GROUPS && (group = LS_GET(groups[high])))
                                *ret_offset = branch_to(t, group + (low & 31) * LS_STUB_SIZE);
                }
                return 1;
        }
        return 0;
}

/* The return address of a call from compiled code: the words where one of the live traces may have
 * left it, the lowest first, which is the newest. */
static int find_caller(const struct ls_jit *jit, uintptr_t frame, uintptr_t sp, struct trace *ret,
                       uint32_t *ret_offset)
{
        uintptr_t at = frame - 8 - ((uintptr_t)LS_FIELD(jit, deepest) & ~(uintptr_t)7), word;

        if (at < sp)
                at = (sp + 7) & ~(uintptr_t)7;
        if (frame <= at || frame - at > 8 * MOST_WORDS || !in_use(at, frame - at, sp))
                return 0;
        for (; at < frame; at += 8) {
                word = LS_READ(uintptr_t, at, 0);
                if (find_trace(jit, word - 1, ret) && at == frame - ret->spadjust - 8 &&
                    is_call(ret, word)) {
                        *ret_offset = (uint32_t)(word - 1 - ret->mcode);
                        return 1;
                }
        }
        return 0;
}

int ls_jit_locate(const struct ls_vm *vm, const lua_State *L, uintptr_t ip, uintptr_t sp,
                  uint32_t *ret_jit_id, uint32_t *ret_offset)
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
                        return called_out(&t, (uint32_t)(word - 1 - t.mcode), ret_jit_id,
                                          ret_offset);
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

/* Which C function compiled code has called through the FFI. The IR says what each call goes to: an
 * address that was a constant when the trace was compiled, or what a variable of the loop around it
 * holds, which is still in its slot. The machine code says which call it was: near functions are
 * called by their distance, others through a register that calls keep, which nothing else in a
 * trace is; those stand in the order of the IR. */

struct ir { uint16_t op1, op2; uint8_t op; };

static const char *ir_at(const char *trace, uint32_t ref)
{
        return LS_READ(const char *, trace, LS_TR_IR) + (size_t)ref * LS_IR_SIZE;
}

static struct ir read_ir(const char *trace, uint32_t ref)
{
        const char *at = ir_at(trace, ref);

        return (struct ir){ LS_READ(uint16_t, at, LS_IR_OP1), LS_READ(uint16_t, at, LS_IR_OP2),
                            LS_READ(uint8_t, at, LS_IR_OP) };
}

/* The intermediate code can be read, and references lead to no place outside it. */
static int is_sound(const char *trace)
{
        uint32_t n = LS_READ(uint32_t, trace, LS_TR_NINS), nk = LS_READ(uint32_t, trace, LS_TR_NK);

        return n > LS_REF_BIAS && n <= 2 * LS_REF_BIAS && nk < LS_REF_BIAS &&
               ls_readable(ir_at(trace, nk), (size_t)(n - nk) * LS_IR_SIZE);
}

static int is_ref(const char *trace, uint32_t ref)
{
        return ref >= LS_READ(uint32_t, trace, LS_TR_NK) &&
               ref < LS_READ(uint32_t, trace, LS_TR_NINS);
}

/* Of a variable that holds the function since before the trace began. */
static uintptr_t in_slot(const struct ls_jit *jit, struct ls_guard *guard, const char *trace,
                         const uint64_t *base, uint32_t ref)
{
        struct ir load = read_ir(trace, ref), slot;
        const uint64_t *at;
        const char *cdata;

        if (load.op != LS_FIELD(jit, ops.fload) || !is_ref(trace, load.op1))
                return 0;
        slot = read_ir(trace, load.op1);
        if (slot.op != LS_FIELD(jit, ops.sload) || slot.op2 & PARENTS || slot.op1 < OWN_SLOTS ||
            !base)
                return 0;
        at = base + (slot.op1 - OWN_SLOTS);
        if (!ls_guard_reads(guard, at, 8) || !ls_istype(LS_GET(*at), LS_T_CDATA))
                return 0;
        cdata = ls_gcptr(LS_GET(*at));
        return ls_guard_reads(guard, cdata, LS_CDATA_VALUE + 8)
                       ? LS_READ(uintptr_t, cdata, LS_CDATA_VALUE)
                       : 0;
}

/* What a call goes to, and whether that is a constant. */
static uintptr_t target(const struct ls_jit *jit, struct ls_guard *guard, const char *trace,
                        const uint64_t *base, struct ir call, int *ret_constant)
{
        uint32_t ref = call.op2;
        struct ir f;

        *ret_constant = 0;
        if (!is_ref(trace, ref))
                return 0;
        f = read_ir(trace, ref);
        if (f.op == LS_FIELD(jit, ops.carg)) {          /* with the type of a function that takes
                                                         * any arguments */
                ref = f.op1;
                if (!is_ref(trace, ref))
                        return 0;
                f = read_ir(trace, ref);
        }
        if (ref >= LS_REF_BIAS)
                return in_slot(jit, guard, trace, base, ref);
        for (unsigned i = 0; i < sizeof jit->wide; i++)
                *ret_constant |= f.op && f.op == LS_FIELD(jit, wide[i]);
        return *ret_constant && ref + 1 < LS_REF_BIAS ? LS_READ(uintptr_t, ir_at(trace, ref + 1), 0)
                                                      : 0;
}

/* 1 when the two bytes before offset end, in the code, are those of a call through a register that
 * calls keep: rbx, rbp, r12, r13, r15 (r14 is the VM's). */
static int is_kept_call(uintptr_t mcode, uint32_t end)
{
        uint8_t reg;

        if (end < 3 || LS_READ(uint8_t, mcode, end - 2) != 0xff ||
            (LS_READ(uint8_t, mcode, end - 1) & 0xf8) != 0xd0)
                return 0;
        reg = LS_READ(uint8_t, mcode, end - 1) & 7;
        if (LS_READ(uint8_t, mcode, end - 3) == 0x41)
                return reg == 4 || reg == 5 || reg == 7;
        return reg == 3 || reg == 5;
}

/* Which of these calls it is that ends there; *ret_n: how many there are. */
static unsigned number_of_call(uintptr_t mcode, uint32_t size, uint32_t end, unsigned *ret_n)
{
        unsigned number = 0;

        *ret_n = 0;
        for (uint32_t i = 3; i <= size; i++) {
                if (!is_kept_call(mcode, i))
                        continue;
                if (i == end)
                        number = *ret_n;
                ++*ret_n;
        }
        return number;
}

static int is_near(uintptr_t mcode, uintptr_t address)
{
        intptr_t d = (intptr_t)(address - mcode);

        return d == (int32_t)d;
}

static uintptr_t sane(uintptr_t address)
{
        return address >= NO_CODE && !(address >> 47) ? address : 0;
}

/* Of a call by distance: one of the constants. */
static uintptr_t near_callee(const struct ls_jit *jit, const char *trace, uintptr_t address)
{
        uint32_t n = LS_READ(uint32_t, trace, LS_TR_NINS);
        uint8_t callxs = LS_FIELD(jit, ops.callxs);
        int constant;

        for (uint32_t ref = LS_REF_BIAS; ref < n; ref++) {
                struct ir call = read_ir(trace, ref);

                if (call.op == callxs &&
                    target(jit, NULL, trace, NULL, call, &constant) == address && constant)
                        return sane(address);
        }
        return 0;
}

/* Of a call through a register: all are the same, or there are as many in the one code as in the
 * other. */
static uintptr_t kept_callee(const struct ls_jit *jit, struct ls_guard *guard, const char *trace,
                             const uint64_t *base, uintptr_t mcode, uint32_t size, uint32_t end)
{
        uint32_t last = LS_READ(uint32_t, trace, LS_TR_NINS);
        uint8_t callxs = LS_FIELD(jit, ops.callxs);
        uintptr_t targets[MOST_CALLS], address;
        unsigned n = 0, calls, number;
        int constant, same = 1;

        if (ls_jit_has_op(trace, LS_FIELD(jit, ops.retf)))
                base = NULL;            /* a return from the function that it began in has moved
                                         * it */
        for (uint32_t ref = LS_REF_BIAS; ref < last; ref++) {
                struct ir call = read_ir(trace, ref);

                if (call.op != callxs)
                        continue;
                address = target(jit, guard, trace, base, call, &constant);
                if (constant && is_near(mcode, address))
                        continue;
                if (n < MOST_CALLS)
                        targets[n] = address;
                same &= address == targets[0];
                n++;
        }
        if (n && same)
                return sane(targets[0]);
        if (n > MOST_CALLS)
                return 0;
        number = number_of_call(mcode, size, end, &calls);
        return calls == n && number < n ? sane(targets[number]) : 0;
}

uintptr_t ls_jit_callee(const struct ls_jit *jit, struct ls_guard *guard, const char *global,
                        const uint64_t *base, uint32_t jit_id, uint32_t offset)
{
        int32_t number = LS_READ(const volatile int32_t, global, LS_FIELD(jit, at.vmstate));
        const struct ls_jit_entry *e = number > 0 ? ls_jit_entry(jit, (uint32_t)number) : NULL;
        uintptr_t mcode = e ? LS_FIELD(e, mcode) : 0;
        uint32_t size = e ? LS_FIELD(e, mcode_size) : 0, end = offset + 1;
        const char *trace;

        if (!e || !LS_FIELD(e, calls_c) || LS_LOAD(e, jit_id, memory_order_relaxed) != jit_id ||
            end < 5 || end > size || size > MOST_SCAN)
                return 0;
        trace = ls_jit_trace_of(guard, global, (uint32_t)number);
        if (!trace || LS_READ(uintptr_t, trace, LS_TR_MCODE) != mcode || !is_sound(trace))
                return 0;
        if (is_kept_call(mcode, end))
                return kept_callee(jit, guard, trace, base, mcode, size, end);
        if (LS_READ(uint8_t, mcode, end - 5) == 0xe8)
                return near_callee(jit, trace,
                                   mcode + end +
                                           (uintptr_t)(intptr_t)LS_READ(int32_t, mcode, end - 4));
        return 0;
}
