/* The stubs in a VM's dispatch tables: each counts the instruction that is dispatched and goes on
 * to what was in the table.
 *
 * At dispatch rbx is the PC, one instruction ahead; r14 the table; rdx the base of the frame; rcx
 * and rax the operands A and D, or, at a function's header, the frame's size and the number of
 * arguments plus 1; [rsp+16] the lua_State. The VM does not use r8 to r11, rsi, rdi and the flags
 * across a dispatch.
 *
 * The VM has two tables. The one that hooks and recording replace is used; from them it goes on by
 * the other one, which is fixed. So instructions are counted in both, and what hooks put into the
 * first is left alone. Loops are counted in the first only, whatever is there: a loop that becomes
 * hot is dispatched again, by the fixed one. So are headers, which the fixed one does not have. */
#include <string.h>
#include <sys/mman.h>

#include "libsample/agent.h"
#include "libsample/exact/private.h"
#include "libsample/handler/walk.h"
#include "libsample/jit/facts.h"
#include "libsample/pages.h"

#define PAGE 4096u
#define CODE (4 * PAGE)

static int is_tail_call(int op)
{
        op -= ls_vm_facts.op_fori;
        return op == LS_OP_CALLMT || op == LS_OP_CALLT;
}

static int is_header(int op)
{
        op -= ls_vm_facts.op_fori;
        return op >= LS_OP_FUNCF && op < LS_OP_END;
}

/* Of C functions, and of LuaJIT's own in machine code. */
static int is_foreign_header(int op)
{
        return op >= ls_vm_facts.op_fori + LS_OP_END;
}

/* Instructions that have stubs: only who wants to know of calls, or of their time, looks at those
 * of other functions. */
static int end_of(const struct ls_exact *x)
{
        return x->callers || x->times ? (int)(ls_exact_facts.fixed / sizeof *x->table)
                                      : ls_vm_facts.op_fori + LS_OP_END;
}

struct code {
        uint8_t *at, *end;
        int too_far;                    /* a jump of two bytes does not reach its target */
};

static void put(struct code *c, const void *bytes, size_t n)
{
        if (c->at + n <= c->end)
                memcpy(c->at, bytes, n);
        c->at += n;
}
#define PUT(c, ...)                                                                                \
        put(c, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void put32(struct code *c, uint32_t v) { put(c, &v, 4); }
static void put64(struct code *c, uint64_t v) { put(c, &v, 8); }

/* A jump of two bytes, whose target here() sets. */
static uint8_t *branch(struct code *c, uint8_t op)
{
        PUT(c, op, 0);
        return c->at;
}

/* Further than 127 bytes it would go backwards: then there are no stubs. */
static void here(struct code *c, uint8_t *branch)
{
        if (c->at - branch > INT8_MAX)
                c->too_far = 1;
        else if (c->at <= c->end)
                branch[-1] = (uint8_t)(c->at - branch);
}

/* The same of a jump of five bytes. */
static void far_here(const struct code *c, uint8_t *branch)
{
        int32_t rel = (int32_t)(c->at - branch);

        if (c->at <= c->end)
                memcpy(branch - 4, &rel, 4);
}

static void jump_slot(struct code *c, const struct ls_exact *x, int op)
{
        const uint8_t *slot = x->stubs + sizeof(void *) * (size_t)op;

        PUT(c, 0xff, 0x25);                                     /* jmp [rip + ...] */
        put32(c, (uint32_t)(slot - (c->at + 4)));
}

/* r10 = the instruction's cell; goes to *ret_outside where it has none. */
static void find_cell(struct code *c, uint8_t **ret_outside)
{
        PUT(c, 0x49, 0xbb), put64(c, (uint64_t)-ls_exact_head->low);    /* mov r11, -low */
        PUT(c, 0x49, 0x01, 0xdb);                               /* add r11, rbx */
        PUT(c, 0x4d, 0x89, 0xda);                               /* mov r10, r11 */
        PUT(c, 0x49, 0xc1, 0xea, LS_EXACT_WINDOW_BITS);         /* shr r10, bits */
        *ret_outside = branch(c, 0x75);                         /* jnz */
        PUT(c, 0x49, 0xba), put64(c, (uintptr_t)ls_exact_cells);/* mov r10, cells */
        PUT(c, 0x4f, 0x8d, 0x14, 0x5a);                         /* lea r10, [r10 + r11 * 2] */
}

static void count_outside(struct code *c)
{
        PUT(c, 0x49, 0xba), put64(c, (uintptr_t)&ls_exact_head->outside);
        PUT(c, 0x49, 0xff, 0x02);                               /* inc qword [r10] */
}

/* What calls.c has to know of a tail call, which leaves no frame. */
static void note_tail_call(struct ls_exact *x, struct code *c)
{
        PUT(c, 0x49, 0xb8), put64(c, (uintptr_t)&x->tail);      /* mov r8, &tail */
        PUT(c, 0x49, 0x89, 0x18);                               /* mov [r8], rbx */
        PUT(c, 0x49, 0x89, 0x50, 0x08);                         /* mov [r8 + 8], rdx */
        PUT(c, 0x4c, 0x8b, 0x4a, 0xf8);                         /* mov r9, [rdx - 8] */
        PUT(c, 0x4d, 0x89, 0x48, 0x10);                         /* mov [r8 + 16], r9 */
        PUT(c, 0x4c, 0x8b, 0x4a, 0xf0);                         /* mov r9, [rdx - 16] */
        PUT(c, 0x4d, 0x89, 0x48, 0x18);                         /* mov [r8 + 24], r9 */
}

/* The header of a function that is not Lua's: a tail call was one of it. */
static void foreign_stub(struct ls_exact *x, struct code *c, int op)
{
        PUT(c, 0x49, 0xb8), put64(c, (uintptr_t)&x->tail);      /* mov r8, &tail */
        PUT(c, 0x49, 0xc7, 0x00), put32(c, 0);                  /* mov qword [r8], 0 */
        jump_slot(c, x, op);
}

static void instruction_stub(struct ls_exact *x, struct code *c, int op)
{
        uint8_t *outside;

        if (x->callers && is_tail_call(op))
                note_tail_call(x, c);
        find_cell(c, &outside);
        PUT(c, 0x49, 0xff, 0x02);                               /* inc qword [r10] */
        jump_slot(c, x, op);
        here(c, outside);
        count_outside(c);
        jump_slot(c, x, op);
}

/* JLOOP stands for a LOOP, or for an instruction that the trace does itself and that is none
 * then. */
static void jloop_stub(struct ls_exact *x, struct code *c, int op)
{
        uint32_t traces = ls_jit_facts.at.state + ls_jit_facts.at.traces - ls_exact_facts.table;
        uint8_t *other;

        PUT(c, 0x4d, 0x8b, 0x96), put32(c, traces);             /* mov r10, [r14 + traces] */
        PUT(c, 0x4d, 0x8b, 0x14, 0xc2);                         /* mov r10, [r10 + rax * 8] */
        PUT(c, 0x41, 0x80, 0x7a, LS_TR_STARTINS,
            (uint8_t)(ls_vm_facts.op_fori + LS_OP_LOOP)); /* cmp byte [r10 + ...], LOOP */
        other = branch(c, 0x75);
        instruction_stub(x, c, op);
        here(c, other);
        jump_slot(c, x, op);
}

/* r11 = the print of the prototype at rbx - 4 - LS_PT_SIZE, as protos.c has it. */
static void find_print(struct code *c)
{
        enum { PT = -4 - LS_PT_SIZE };

        PUT(c, 0x4c, 0x8b, 0x43, (uint8_t)(PT + LS_PT_CHUNKNAME));      /* mov r8, [rbx + ...] */
        PUT(c, 0x4c, 0x8b, 0x5b,
            (uint8_t)(PT + LS_PT_FIRSTLINE)); /* mov r11, [rbx + ...]: and the number of lines */
        PUT(c, 0x44, 0x8b, 0x4b, (uint8_t)(PT + LS_PT_SIZEBC));         /* mov r9d, [rbx + ...] */
        PUT(c, 0x45, 0x8b, 0x40, LS_STR_HASH);                  /* mov r8d, [r8 + ...] */
        PUT(c, 0x4d, 0x69, 0xc0), put32(c, 0x3c6ef372);         /* imul r8, r8, ... */
        PUT(c, 0x4d, 0x69, 0xc9), put32(c, 0x1b873593);         /* imul r9, r9, ... */
        PUT(c, 0x4d, 0x01, 0xc3);                               /* add r11, r8 */
        PUT(c, 0x4d, 0x01, 0xcb);                               /* add r11, r9 */
        PUT(c, 0x49, 0x0f, 0xba, 0xeb, 0x3f);                   /* bts r11, 63 */
}

/* f(x, pc, base, lua_State) */
static void call_c(struct ls_exact *x, struct code *c,
                   void (*f)(struct ls_exact *x, const char *pc, const uint64_t *base,
                             lua_State *L))
{
        PUT(c, 0x50, 0x51, 0x52);                               /* push rax, rcx, rdx */
        PUT(c, 0x48, 0x83, 0xec, 0x08);                         /* sub rsp, 8 */
        PUT(c, 0x48, 0xbf), put64(c, (uintptr_t)x);             /* mov rdi, x */
        PUT(c, 0x48, 0x89, 0xde);                               /* mov rsi, rbx */
        PUT(c, 0x48, 0x8b, 0x4c, 0x24, 32 + LS_CF_L);           /* mov rcx, [rsp + 32 + ...] */
        PUT(c, 0x48, 0xb8), put64(c, (uintptr_t)f);             /* mov rax, f */
        PUT(c, 0xff, 0xd0);                                     /* call rax */
        PUT(c, 0x48, 0x83, 0xc4, 0x08);
        PUT(c, 0x5a, 0x59, 0x58);
}

/* Counts the call by the cache of calls.c, where it has it; else calls that. */
static void count_caller(struct ls_exact *x, struct code *c, int op)
{
        uint8_t *tail, *foreign, *other_link, *other_pc;

        PUT(c, 0x49, 0xb9), put64(c, (uintptr_t)&x->tail);      /* mov r9, &tail */
        PUT(c, 0x49, 0x83, 0x39, 0x00);                         /* cmp qword [r9], 0 */
        tail = branch(c, 0x75);
        PUT(c, 0x4c, 0x8b, 0x42, 0xf8);                         /* mov r8, [rdx - 8] */
        PUT(c, 0x41, 0xf6, 0xc0, 0x03);                         /* test r8b, 3: called by a Lua
                                                                 * instruction */
        foreign = branch(c, 0x75);
        PUT(c, 0x4d, 0x8d, 0x0c, 0x58);                         /* lea r9, [r8 + rbx * 2] */
        PUT(c, 0x41, 0x81, 0xe1), put32(c, 4 * (LS_EXACT_CACHE - 1));   /* and r9d, ... */
        PUT(c, 0x49, 0xba), put64(c, (uintptr_t)ls_exact_cache(x->callers));    /* mov r10, cache */
        PUT(c, 0x4f, 0x8d, 0x14, 0xca);                         /* lea r10, [r10 + r9 * 8] */
        PUT(c, 0x4d, 0x3b, 0x02);                               /* cmp r8, [r10] */
        other_link = branch(c, 0x75);
        PUT(c, 0x49, 0x3b, 0x5a, 0x08);                         /* cmp rbx, [r10 + 8] */
        other_pc = branch(c, 0x75);
        PUT(c, 0x4d, 0x8b, 0x52, 0x10);                         /* mov r10, [r10 + 16] */
        PUT(c, 0x49, 0xff, 0x02);                               /* inc qword [r10] */
        jump_slot(c, x, op);
        here(c, tail);
        here(c, foreign);
        here(c, other_link);
        here(c, other_pc);
        call_c(x, c, ls_exact_called);
}

/* Where the stack has to grow first a header is dispatched a second time, unless a hook of calls
 * lets it grow. Goes to what is returned where it does. */
static uint8_t *look_for_room(struct code *c, int op)
{
        uint32_t mode = ls_vm_facts.hookmask_offset + 1 - ls_exact_facts.table;
        uint8_t *hooked, *grows;

        PUT(c, 0x41, 0xf6, 0x86), put32(c, mode),
                PUT(c, LS_DISPATCH_CALL); /* test byte [r14 + mode], CALL */
        hooked = branch(c, 0x75);
        PUT(c, 0x4c, 0x8d, 0x14, 0xca);                         /* lea r10, [rdx + rcx * 8] */
        if (op >= ls_vm_facts.op_fori + LS_OP_FUNCV)
                PUT(c, 0x4d, 0x8d, 0x54, 0xc2, 0x08);           /* lea r10, [r10 + rax * 8 + 8] */
        PUT(c, 0x4c, 0x8b, 0x5c, 0x24, LS_CF_L);                /* mov r11, [rsp + ...] */
        PUT(c, 0x4d, 0x3b, 0x53, LS_L_MAXSTACK);                /* cmp r10, [r11 + ...] */
        grows = branch(c, 0x77);
        here(c, hooked);
        return grows;
}

/* A function's header, whose call's time is wanted. */
static void entry_stub(struct ls_exact *x, struct code *c, int op)
{
        uint8_t *grows = look_for_room(c, op);

        call_c(x, c, ls_exact_enters);
        here(c, grows);
        jump_slot(c, x, op);
}

static void event_stub(struct ls_exact *x, struct code *c, int op,
                       void (*event)(struct ls_exact *x, const char *pc, const uint64_t *base,
                                     lua_State *L))
{
        call_c(x, c, event);
        jump_slot(c, x, op);
}

/* A function's header. */
static void header_stub(struct ls_exact *x, struct code *c, int op)
{
        uint8_t *grows = look_for_room(c, op), *new, *outside, *caller = NULL;

        find_cell(c, &outside);
        find_print(c);
        PUT(c, 0x4d, 0x3b, 0x5a, 0xf8);                         /* cmp r11, [r10 - 8] */
        new = branch(c, 0x75);
        PUT(c, 0x49, 0xff, 0x02);                               /* inc qword [r10] */
        if (x->callers) {
                PUT(c, 0xe9), put32(c, 0);                      /* jmp caller */
                caller = c->at;
        }
        here(c, grows);
        jump_slot(c, x, op);
        here(c, new);
        call_c(x, c, ls_exact_meet);
        jump_slot(c, x, op);
        here(c, outside);
        count_outside(c);
        jump_slot(c, x, op);
        if (caller) {
                far_here(c, caller);
                count_caller(x, c, op);
                jump_slot(c, x, op);
        }
}

/* Also those that LuaJIT puts in place of others: which never become hot, while it records; which
 * are compiled, when it has recorded them and goes on by the other table. */
static int is_loop(int op)
{
        op -= ls_vm_facts.op_fori;
        return op >= LS_OP_FORL && op <= LS_OP_JLOOP;
}

static int is_return(int op)
{
        op -= ls_vm_facts.op_fori;
        return op >= LS_OP_RETM && op <= LS_OP_RET1;
}

static int switches(int op)
{
        return is_foreign_header(op) && memchr(ls_exact_switch_ops, op, sizeof ls_exact_switch_ops);
}

/* The stub of an instruction. Only what has to do with calls has one, where their time is
 * wanted. */
static void make_stub(struct ls_exact *x, struct code *c, int op)
{
        if (x->times && is_header(op))
                entry_stub(x, c, op);
        else if (x->times && (is_return(op) || is_tail_call(op)))
                event_stub(x, c, op, ls_exact_returns);
        else if (x->times && switches(op))
                event_stub(x, c, op, ls_exact_switches);
        else if (x->times)
                x->stub[op] = NULL;
        else if (is_header(op))
                header_stub(x, c, op);
        else if (is_foreign_header(op))
                foreign_stub(x, c, op);
        else if (op == ls_vm_facts.op_fori + LS_OP_JLOOP)
                jloop_stub(x, c, op);
        else
                instruction_stub(x, c, op);
}

const char *ls_exact_make_stubs(struct ls_exact *x)
{
        int end = end_of(x);
        const char *why;
        struct code c;

        x->stubs = ls_pages_new(PAGE + CODE);
        if (!x->stubs)
                return "there is no memory for the stubs";
        c = (struct code){ x->stubs + PAGE, x->stubs + PAGE + CODE, 0 };
        for (int op = 0; op < end; op++) {
                x->stub[op] = c.at;
                make_stub(x, &c, op);
        }
        why = c.too_far ? "a jump in its stubs does not reach" :
              c.at > c.end ? "its stubs are longer than their room" :
              mprotect(x->stubs + PAGE, CODE, PROT_READ | PROT_EXEC) < 0 ?
              "this system lets no code be made" : NULL;
        if (why)
                ls_exact_free_stubs(x);
        return why;
}

void ls_exact_free_stubs(struct ls_exact *x)
{
        ls_pages_free(x->stubs, PAGE + CODE);
        x->stubs = NULL;
}

/* LuaJIT copies entries of the table: the stub of an instruction may come to be in another one's
 * place. */
static void *behind_stub(const struct ls_exact *x, void *entry)
{
        for (int op = 0; op < end_of(x); op++)
                if (x->stub[op] && entry == x->stub[op])
                        return ((void **)x->stubs)[op];
        return entry;
}

static void put_stub(struct ls_exact *x, void **place, int op)
{
        void *entry = *place;

        if (entry == x->stub[op])
                return;
        if ((uint8_t *)entry >= x->stubs && (uint8_t *)entry < x->stubs + PAGE + CODE)
                entry = behind_stub(x, entry);
        __atomic_store_n((void **)x->stubs + op, entry, __ATOMIC_RELAXED);
        __atomic_store_n(place, x->stub[op], __ATOMIC_RELEASE);
}

/* Nothing becomes hot: what counts that goes on as what does not, whatever jit.on says. */
static void stay_cold(const struct ls_exact *x, uint8_t mode)
{
        void **slots = (void **)x->stubs;

        for (int op = ls_vm_facts.op_fori + LS_OP_FORL; op < ls_vm_facts.op_fori + LS_OP_JLOOP;
             op += 3) {
                x->fixed[op] = x->fixed[op + 1];
                if (!(mode & LS_DISPATCH_INS))
                        x->table[op] = x->table[op + 1];
        }
        for (int op = ls_vm_facts.op_fori + LS_OP_FUNCF; op < ls_vm_facts.op_fori + LS_OP_END;
             op += 3)
                __atomic_store_n(&slots[op], slots[op + 1], __ATOMIC_RELAXED);
}

void ls_exact_apply(struct ls_exact *x)
{
        uint8_t mode = LS_READ(uint8_t, x->global, ls_vm_facts.hookmask_offset + 1);
        int end = end_of(x);

        for (int op = 0; op < end; op++) {
                if (!x->stub[op])
                        continue;
                if (is_header(op) || is_foreign_header(op) || is_loop(op)) {
                        put_stub(x, &x->table[op], op);
                        continue;
                }
                put_stub(x, &x->fixed[op], op);
                if (!(mode & LS_DISPATCH_INS) && !((mode & LS_DISPATCH_RET) && is_return(op)))
                        x->table[op] = x->stub[op];
        }
        if (x->times)
                stay_cold(x, mode);
}
