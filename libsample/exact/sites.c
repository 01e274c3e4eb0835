/* Counters in compiled code. Those of exits are counted by one piece of code that all exit stubs of
 * the VM jump through; those of a trace's head and loop by a jump at the first place where one
 * fits, to the moved instructions behind an increment. The counters themselves lie far from all
 * code: a store beside code that runs makes the processor begin anew. */
#include <string.h>
#include <sys/mman.h>

#include "libsample/agent.h"
#include "libsample/exact/private.h"
#include "libsample/handler/walk.h"
#include "libsample/inject/decode.h"
#include "libsample/inject/patch.h"
#include "libsample/jit/facts.h"
#include "libsample/pages.h"

#define PAGE 4096u
#define NEAR_SIZE (UINT64_C(4) << 20)
#define EXIT_CODE 128u                  /* bytes for the code of exits */
#define JUMP_LEN 5u
#define STUB_MOST (8 + 3 * 15 + JUMP_LEN + 16)

/* Returns 0, or -1: the kernel does not want it, and it is as it was. */
static int set_prot(const void *at, size_t n, int prot)
{
        uintptr_t from = (uintptr_t)at & ~(uintptr_t)(PAGE - 1),
                  to = ((uintptr_t)at + n + PAGE - 1) & ~(uintptr_t)(PAGE - 1);

        return mprotect((void *)from, to - from, prot);
}

/* While it is written it can be executed: so nothing is lost where only one of both is allowed from
 * then on. */
int ls_exact_code_is_writable(const void *at, size_t n)
{
        if (set_prot(at, n, PROT_READ | PROT_WRITE | PROT_EXEC))
                return 0;
        set_prot(at, n, ls_exact_facts.code_prot);
        return 1;
}

static void store_rel32(uint8_t *at, const uint8_t *target)
{
        int32_t rel = (int32_t)(target - (at + 4));

        memcpy(at, &rel, 4);
}

static uint8_t *put_bytes(uint8_t *to, const void *bytes, size_t n)
{
        memcpy(to, bytes, n);
        return to + n;
}
#define PUT(p, ...)                                                                                \
        (p = put_bytes(p, (const uint8_t[]){ __VA_ARGS__ },                                        \
                       sizeof((const uint8_t[]){ __VA_ARGS__ })))
#define PUT_VALUE(p, type, v) (p = put_bytes(p, &(const type){ v }, sizeof(type)))

/* Counts by the trace that runs and the number that the exit stub has pushed, then goes to the exit
 * handler. */
static void put_exit_code(struct ls_exact *x)
{
        uint8_t *p = x->near, *unknown;

        PUT(p, 0x50, 0x51, 0x52);                               /* push rax, rcx, rdx */
        PUT(p, 0x0f, 0xb6, 0x4c, 0x24, 32);                     /* movzx ecx, byte [rsp + 32] */
        PUT(p, 0x8a, 0x6c, 0x24, 24);                           /* mov ch, [rsp + 24] */
        PUT(p, 0x41, 0x8b, 0x86);                               /* mov eax, [r14 + vmstate] */
        PUT_VALUE(p, uint32_t, ls_vm_facts.vmstate_offset - ls_exact_facts.table);
        PUT(p, 0x48, 0xba);                                     /* mov rdx, exits */
        PUT_VALUE(p, uint64_t, (uintptr_t)x->exits);
        PUT(p, 0x48, 0x8b, 0x14, 0xc2);                         /* mov rdx, [rdx + rax * 8] */
        PUT(p, 0x48, 0x85, 0xd2, 0x74, 0);                      /* test rdx, rdx; jz */
        unknown = p;
        PUT(p, 0x48, 0xff, 0x04, 0xca);                         /* inc qword [rdx + rcx * 8] */
        unknown[-1] = (uint8_t)(p - unknown);
        PUT(p, 0x5a, 0x59, 0x58);
        PUT(p, 0xff, 0x25, 0, 0, 0, 0);                         /* jmp handler */
        PUT_VALUE(p, uint64_t, ls_jit_facts.at.exit_handler);
}

static int make_near(struct ls_exact *x)
{
        if (x->near)
                return 0;
        x->near = ls_patch_reserve((uintptr_t)ls_lua.lua_sethook, NEAR_SIZE);
        if (!x->near)
                return -1;
        if (set_prot(x->near, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC)) {
                munmap(x->near, NEAR_SIZE);
                x->near = NULL;
                return -1;
        }
        put_exit_code(x);
        set_prot(x->near, PAGE, PROT_READ | PROT_EXEC);
        x->near_used = x->near + EXIT_CODE;
        return 0;
}

static const char *state_of(const struct ls_exact *x)
{
        return x->global + ls_jit_facts.at.state;
}

static uint8_t *group_of(const struct ls_exact *x, unsigned group)
{
        return LS_READ(uint8_t *, state_of(x) + ls_jit_facts.at.stubs, 8 * (size_t)group);
}

int ls_exact_count_exits(struct ls_exact *x)
{
        if (make_near(x))
                return -1;
        for (unsigned g = 0; g < LS_STUB_GROUPS; g++) {
                uint8_t *p = group_of(x, g);

                if (!p || x->group_done[g])
                        continue;
                if (p[LS_STUB_HIGH] != 0x6a || p[LS_STUB_JUMP] != 0xe9)
                        return -1;
                if (set_prot(p, LS_STUBS_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC))
                        return -1;
                store_rel32(p + LS_STUB_JUMP + 1, x->near);
                set_prot(p, LS_STUBS_SIZE, ls_exact_facts.code_prot);
                x->group_done[g] = 1;
        }
        return 0;
}

/* Number of the exit whose stub is at p; -1 = it is none. */
static int exit_at(const struct ls_exact *x, const uint8_t *p)
{
        for (unsigned g = 0; g < LS_STUB_GROUPS; g++) {
                const uint8_t *group = group_of(x, g);

                if (group && p >= group && p < group + LS_STUBS_PER_GROUP * LS_STUB_SIZE + 2)
                        return (int)(g * LS_STUBS_PER_GROUP + (unsigned)(p - group) / LS_STUB_SIZE);
        }
        return -1;
}

struct code {
        const struct ls_exact *x;
        uint8_t *begin, *loop, *end;
        struct { const uint8_t *from, *to; } *skips;    /* what a branch may leave out, or do
                                                         * again */
        struct { const uint8_t *at; int exit; } *exits;
        size_t nskips, nexits, skips_room, exits_room;
};

/* Branches within the trace and its exits, of which a long one has thousands. Returns 0, or -1: its
 * code is not understood, or there is no memory. */
static int read_code(struct code *c)
{
        struct ls_insn insn;

        for (uint8_t *p = c->begin; p < c->end; p += insn.length) {
                const uint8_t *target;
                int exit;

                if (ls_decode(p, (size_t)(c->end - p), &insn) < 0 ||
                    ls_pages_grow((void **)&c->skips, &c->skips_room, c->nskips + 1,
                                  sizeof *c->skips) ||
                    ls_pages_grow((void **)&c->exits, &c->exits_room, c->nexits + 1,
                                  sizeof *c->exits))
                        return -1;
                if (!insn.rel_at || insn.flow == LS_FLOW_CALL)
                        continue;
                target = ls_insn_target(p, &insn);
                exit = exit_at(c->x, target);
                if (exit >= 0) {
                        c->exits[c->nexits].at = p;
                        c->exits[c->nexits++].exit = exit;
                } else if (target > p && target < c->end) {
                        c->skips[c->nskips].from = p + insn.length;
                        c->skips[c->nskips++].to = target;
                } else if (target > c->begin && target <= p &&
                           !(c->loop && target >= c->loop && target < c->loop + 64)) {
                        /* not the loop itself, nor a trace that goes on to its own head */
                        c->skips[c->nskips].from = target;
                        c->skips[c->nskips++].to = p + insn.length;
                }
        }
        return 0;
}

/* Bytes of the whole instructions at p that a jump replaces; 0 = they may not be moved. */
static size_t movable(const struct code *c, const uint8_t *p)
{
        struct ls_insn insn;
        size_t n = 0;

        while (n < JUMP_LEN) {
                const uint8_t *target;

                if (p + n >= c->end || ls_decode(p + n, (size_t)(c->end - p) - n, &insn) < 0)
                        return 0;
                target = insn.rel_at ? ls_insn_target(p + n, &insn) : NULL;
                n += insn.length;
                if (insn.flow == LS_FLOW_JUMP && n >= JUMP_LEN && insn.rel_size == 4 &&
                    exit_at(c->x, target) < 0 && (target < c->begin || target >= c->end))
                        break;          /* the way out at the trace's end, which is not changed
                                         * later */
                if (insn.flow != LS_FLOW_NEXT)
                        return 0;
        }
        for (size_t i = 0; i < c->nskips; i++)
                if ((p < c->skips[i].to && p + n > c->skips[i].from) ||
                    (c->skips[i].to > p && c->skips[i].to < p + n))
                        return 0;
        return n;
}

/* Exits between from and p. Returns how many, or -1: one of them is behind p too. */
static int exits_before(const struct code *c, const uint8_t *from, const uint8_t *p,
                        const uint8_t *to, uint16_t *ret)
{
        int n = 0;

        for (size_t i = 0; i < c->nexits; i++) {
                int k = 0;

                if (c->exits[i].at < from || c->exits[i].at >= p)
                        continue;
                for (size_t j = 0; j < c->nexits; j++)
                        if (c->exits[j].at >= p && c->exits[j].at < to &&
                            c->exits[j].exit == c->exits[i].exit)
                                return -1;
                while (k < n && ret[k] != c->exits[i].exit)
                        k++;
                if (k == n && n < 256)
                        ret[n++] = (uint16_t)c->exits[i].exit;
        }
        return n;
}

/* 1 when an instruction sets all flags that branches look at; -1 when it may read them. */
static int flags_of(const uint8_t *p, const struct ls_insn *insn)
{
        uint8_t op;

        if (insn->flow == LS_FLOW_BRANCH)
                return -1;
        while (*p == 0x66 || *p == 0xf2 || *p == 0xf3 || (*p & 0xf0) == 0x40)
                p++;
        op = *p;
        if (op == 0x0f) {
                op = p[1];
                return op == 0x2e || op == 0x2f                     ? 1
                       : (op & 0xf0) == 0x40 || (op & 0xf0) == 0x90 ? -1
                                                                    : 0;
        }
        if (op < 0x40 && (op & 7) < 6)
                return (op & 0x38) == 0x10 || (op & 0x38) == 0x18 ? -1 : 1;
        if (op == 0x80 || op == 0x81 || op == 0x83)
                return (p[1] & 0x38) == 0x10 || (p[1] & 0x38) == 0x18 ? -1 : 1;
        return op == 0x84 || op == 0x85 || op == 0xa8 || op == 0xa9;
}

/* 1 when no instruction from p on reads flags that were set before it. */
static int flags_are_free(const struct code *c, const uint8_t *p)
{
        struct ls_insn insn;

        for (; p < c->end && !ls_decode(p, (size_t)(c->end - p), &insn); p += insn.length) {
                int flags = flags_of(p, &insn);

                if (flags)
                        return flags > 0;
                if (insn.flow != LS_FLOW_NEXT)
                        return insn.flow == LS_FLOW_JUMP || insn.flow == LS_FLOW_CALL;
        }
        return p >= c->end;
}

/* Moves n bytes at site behind an increment. Returns the counter, 0 = there is no room. */
static uint32_t put_counter(struct ls_exact *x, uint8_t *site, size_t n)
{
        uint8_t *p = x->near_used, *stub = p;
        uint32_t counter;
        struct ls_insn insn;
        int64_t far = site + JUMP_LEN - stub;

        if (p + STUB_MOST > x->near + NEAR_SIZE || far != (int32_t)far ||
            !(counter = ls_exact_new_counters(1)))
                return 0;
        if (set_prot(stub, STUB_MOST, PROT_READ | PROT_WRITE | PROT_EXEC))
                return 0;
        PUT(p, 0x48, 0xff, 0x05, 0, 0, 0, 0);                   /* inc qword [rip + ...] */
        store_rel32(p - 4, (const uint8_t *)&ls_exact_counters[counter]);
        for (size_t k = 0; k < n; k += insn.length)
                if (ls_decode(site + k, 15, &insn) < 0 || ls_patch_move(site + k, &insn, &p) < 0) {
                        set_prot(stub, STUB_MOST, PROT_READ | PROT_EXEC);
                        return 0;
                }
        PUT(p, 0xe9, 0, 0, 0, 0);
        store_rel32(p - 4, site + n);
        set_prot(stub, STUB_MOST, PROT_READ | PROT_EXEC);
        x->near_used = p;
        if (set_prot(site, n, PROT_READ | PROT_WRITE | PROT_EXEC))
                return 0;
        site[0] = 0xe9;
        store_rel32(site + 1, stub);
        memset(site + JUMP_LEN, 0x90, n - JUMP_LEN);
        set_prot(site, n, ls_exact_facts.code_prot);
        return counter;
}

/* Puts a counter at the first place in [from, to) where one may stand. */
static uint32_t count_from(struct ls_exact *x, const struct code *c, uint8_t *from, uint8_t *to,
                           uint16_t *ret_before, uint16_t *ret_n)
{
        struct ls_insn insn;

        for (uint8_t *p = from; p < to; p += insn.length) {
                size_t n = movable(c, p);
                int before = n && p + n <= to && (p == from || flags_are_free(c, p))
                                     ? exits_before(c, from, p, to, ret_before)
                                     : -1;
                uint32_t counter = before >= 0 ? put_counter(x, p, n) : 0;

                if (counter) {
                        *ret_n = (uint16_t)before;
                        return counter;
                }
                if (ls_decode(p, (size_t)(c->end - p), &insn) < 0)
                        return 0;
        }
        return 0;
}

/* Behind the store of the trace's number, which LuaJIT looks for when it leads exits to other
 * traces. */
static uint8_t *behind_store(const struct code *c)
{
        uint32_t at = ls_vm_facts.vmstate_offset - ls_exact_facts.table, disp;
        struct ls_insn insn;

        for (uint8_t *p = c->begin; p + 11 <= c->end && !ls_decode(p, (size_t)(c->end - p), &insn);
             p += insn.length) {
                memcpy(&disp, p + 3, 4);
                if (p[0] == 0x41 && p[1] == 0xc7 && p[2] == 0x86 && disp == at)
                        return p + insn.length;
        }
        return NULL;
}

void ls_exact_count_trace(struct ls_exact *x, const char *trace, struct ls_exact_sites *ret)
{
        uint8_t *mcode = LS_READ(uint8_t *, trace, LS_TR_MCODE), *from;
        uint32_t loop = LS_READ(uint32_t, trace, LS_TR_MCLOOP);
        struct code *c = x->scratch;

        ret->entries = ret->iterations = ret->nhead = ret->nloop = 0;
        if (!c && !(c = x->scratch = ls_pages_new(sizeof *c)))
                return;
        c->x = x;
        c->begin = mcode;
        c->end = mcode + LS_READ(uint32_t, trace, LS_TR_MCODE_SIZE);
        c->loop = loop ? mcode + loop : NULL;
        c->nskips = c->nexits = 0;
        if (read_code(c) || !(from = behind_store(c)))
                return;
        ret->entries = count_from(x, c, from, c->loop ? c->loop : c->end, ret->head, &ret->nhead);
        if (c->loop)
                ret->iterations = count_from(x, c, c->loop, c->end, ret->loop, &ret->nloop);
}

void ls_exact_sites_flushed(struct ls_exact *x)
{
        memset(x->group_done, 0, sizeof x->group_done);
        if (x->near)
                x->near_used = x->near + EXIT_CODE;
}
