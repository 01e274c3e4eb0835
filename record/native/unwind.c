/* Finding the callers in a copied stack: see unwind.h. */
#include "record/native/unwind.h"
#include "formats/wire/mix.h"
#include "record/worker/cfi_eval.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SITES_MIN 1024u
#define SITES_MAX (1u << 17)            /* more addresses than this: start afresh */
#define LABEL_UNASKED UINT32_MAX

/* Where LuaJIT's C frame keeps what its caller had (lj_frame.h, saveregs in vm_x64.dasc). */
enum {
        CFRAME_R14 = 40,
        CFRAME_R15 = 48,
        CFRAME_RBX = 56,
        CFRAME_RBP = 64,
        CFRAME_IP = 72,
        CFRAME_SIZE = 80
};

enum site_kind {
        SITE_FREE,
        SITE_STALE,                     /* to be asked for again */
        SITE_UNKNOWN,                   /* in nothing that is known now: asked for each time */
        SITE_NO_FILE, SITE_NO_ROW, SITE_ROW,
};

struct site {                           /* an address that was seen */
        uint64_t pc;
        struct ls_cfi_row row;
        struct ls_unwind_place place;
        uint64_t function;
        uint32_t label;
        uint8_t kind;                   /* enum site_kind */
};

struct ls_unwinder {
        struct ls_unwind_owner owner;
        struct site *sites;             /* open addressing, at most half full */
        uint32_t cap, n;
};

struct walk {                           /* one sample's */
        struct ls_unwinder *u;
        const struct ls_unwind_input *in;
        uint64_t reg[LS_NREGS];
        uint32_t known;
        int exact;                      /* reg[IP] is the instruction itself, not one to return
                                         * to */
};

struct ls_unwinder *ls_unwinder_new(const struct ls_unwind_owner *owner)
{
        struct ls_unwinder *u = calloc(1, sizeof(*u));

        if (!u)
                return NULL;
        u->owner = *owner;
        u->cap = SITES_MIN;
        u->sites = calloc(u->cap, sizeof(*u->sites));
        if (!u->sites) {
                free(u);
                return NULL;
        }
        return u;
}

void ls_unwind_forget(struct ls_unwinder *u, uint64_t start, uint64_t end)
{
        for (uint32_t i = 0; i < u->cap; i++) {
                struct site *s = &u->sites[i];

                if (s->kind == SITE_FREE || s->pc < start || s->pc >= end)
                        continue;
                ls_cfi_row_drop(&s->row);
                s->kind = SITE_STALE;
        }
}

static void forget_all(struct ls_unwinder *u)
{
        for (uint32_t i = 0; i < u->cap; i++)
                ls_cfi_row_drop(&u->sites[i].row);
        memset(u->sites, 0, u->cap * sizeof(*u->sites));
        u->n = 0;
}

void ls_unwinder_free(struct ls_unwinder *u)
{
        if (!u)
                return;
        forget_all(u);
        free(u->sites);
        free(u);
}

static struct site *slot_of(struct site *sites, uint32_t cap, uint64_t pc)
{
        uint32_t i = (uint32_t)(ls_mix(pc) >> 40) & (cap - 1);

        while (sites[i].kind != SITE_FREE && sites[i].pc != pc)
                i = (i + 1) & (cap - 1);
        return &sites[i];
}

/* Room for one more site. */
static void make_room(struct ls_unwinder *u)
{
        uint32_t cap = u->cap * 2;
        struct site *grown;

        if (u->n < u->cap / 2)
                return;
        grown = cap <= SITES_MAX ? calloc(cap, sizeof(*grown)) : NULL;
        if (!grown) {
                forget_all(u);
                return;
        }
        for (uint32_t i = 0; i < u->cap; i++)
                if (u->sites[i].kind != SITE_FREE)
                        *slot_of(grown, cap, u->sites[i].pc) = u->sites[i];
        free(u->sites);
        u->sites = grown;
        u->cap = cap;
}

static struct site *ask(struct ls_unwinder *u, uint64_t pc)
{
        struct site *s, found = { .pc = pc, .label = LABEL_UNASKED };
        int err = u->owner.find(u->owner.ctx, pc, &found.place);

        found.function = found.place.file_offset;
        if (err < 0)
                found.kind = err == -ENOEXEC ? SITE_NO_FILE : SITE_UNKNOWN;
        else if (found.place.file &&
                 u->owner.row(u->owner.ctx, &found.place, &found.row, &found.function) == 0)
                found.kind = SITE_ROW;
        else
                found.kind = SITE_NO_ROW;
        s = slot_of(u->sites, u->cap, pc);      /* only now: find may have called
                                                 * ls_unwind_forget */
        if (s->kind == SITE_FREE) {
                make_room(u);
                s = slot_of(u->sites, u->cap, pc);
                u->n++;
        }
        *s = found;
        return s;
}

static struct site *find_site(struct ls_unwinder *u, uint64_t pc)
{
        struct site *s = slot_of(u->sites, u->cap, pc);

        return s->kind <= SITE_UNKNOWN ? ask(u, pc) : s;
}

static int read_stack(const struct walk *w, uint64_t addr, uint64_t *ret)
{
        uint64_t at = addr - w->in->stack_start;

        if (addr < w->in->stack_start)
                return -EINVAL;
        if (w->in->stack_len < 8 || at > w->in->stack_len - 8)
                return -ENODATA;
        memcpy(ret, w->in->stack + at, 8);
        return 0;
}

static int read_for_eval(void *ctx, uint64_t addr, uint64_t *ret)
{
        return read_stack(ctx, addr, ret);
}

/* The lowest C frame of LuaJIT at or above sp; 0 = none. */
static uint64_t next_cframe(const struct walk *w, uint64_t sp)
{
        uint64_t found = 0;

        for (size_t i = 0; i < w->in->n_cframes; i++) {
                uint64_t c = w->in->cframes[i];

                if (c >= sp && c % 8 == 0 && (!found || c < found))
                        found = c;
        }
        return found;
}

/* 1 when the word at addr is the address after a call in C code: in a function with a table, not
 * LuaJIT's own. */
static int returns_to_c(struct walk *w, uint64_t addr)
{
        uint64_t ip;
        const struct site *s;

        if (read_stack(w, addr, &ip) < 0 || ip < 4096)
                return 0;
        s = find_site(w->u, ip - 1);
        return s->kind == SITE_ROW && !(s->row.flags & LS_CFI_LUA_VM);
}

static void set(struct walk *w, unsigned reg, uint64_t value)
{
        w->reg[reg] = value;
        w->known |= 1u << reg;
}

/* Goes to the function that called into the interpreter: its registers are in the C frame. */
static int leave_cframe(struct walk *w, uint64_t cframe)
{
        static const struct { uint8_t reg, at; } saved[] = {
                { LS_REG_IP, CFRAME_IP }, { LS_REG_RBP, CFRAME_RBP }, { LS_REG_RBX, CFRAME_RBX },
                { LS_REG_R15, CFRAME_R15 }, { LS_REG_R14, CFRAME_R14 },
        };
        uint64_t value;
        int err;

        for (unsigned i = 0; i < sizeof(saved) / sizeof(*saved); i++) {
                err = read_stack(w, cframe + saved[i].at, &value);
                if (err < 0)
                        return err;
                set(w, saved[i].reg, value);
        }
        /* r12 and r13 are as they were: LuaJIT does not use them on this path, and a callee has put
         * them back. */
        w->known &= LS_CFI_CALLEE_SAVED | 1u << LS_REG_IP;
        set(w, LS_REG_RSP, cframe + CFRAME_SIZE);
        w->exact = 0;
        return 0;
}

/* rsp is not always the C frame in the interpreter's code: before it has linked its frame, in its
 * leaf functions and where compiled code exits it is another, and the table knows of none. Returns
 * the C frame, or 0 for a leaf that C code has called. */
static uint64_t lua_vm_cframe(struct walk *w)
{
        uint64_t sp = w->reg[LS_REG_RSP], cframe = next_cframe(w, sp);

        if (cframe == sp || !cframe || returns_to_c(w, sp + CFRAME_IP))
                return sp;
        return returns_to_c(w, sp) ? 0 : cframe;
}

/* While a function returns, its table still tells where registers were that it has popped
 * already. */
static int read_saved(const struct walk *w, uint64_t cfa, const struct ls_cfi_row *row, unsigned i,
                      uint64_t *ret)
{
        uint64_t addr = cfa + (uint64_t)(int64_t)row->at[i];

        if (addr >= w->reg[LS_REG_RSP] || ls_cfi_saved[i] == LS_REG_IP)
                return read_stack(w, addr, ret);
        if (!(w->known >> ls_cfi_saved[i] & 1))
                return -EINVAL;
        *ret = w->reg[ls_cfi_saved[i]];
        return 0;
}

static int step_simple(struct walk *w, const struct ls_cfi_row *row)
{
        uint64_t cfa, value[LS_CFI_NSAVED];

        if (!(w->known >> row->cfa_reg & 1))
                return -EINVAL;
        cfa = w->reg[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_offset;
        if (cfa <= w->reg[LS_REG_RSP])
                return -EINVAL;
        for (unsigned i = 0; i < LS_CFI_NSAVED; i++) {
                int err = row->rule[i] == LS_CFI_SAVED ? read_saved(w, cfa, row, i, &value[i]) : 0;

                if (err < 0)
                        return err;
        }
        w->known &= LS_CFI_CALLEE_SAVED;
        for (unsigned i = 0; i < LS_CFI_NSAVED; i++) {
                if (row->rule[i] == LS_CFI_SAVED)
                        set(w, ls_cfi_saved[i], value[i]);
                else if (row->rule[i] == LS_CFI_LOST)
                        w->known &= ~(1u << ls_cfi_saved[i]);
        }
        set(w, LS_REG_RSP, cfa);
        return 0;
}

/* One register of a row with expressions. Returns 1 when it has a value, 0 when it is lost, or
 * -errno. */
static int complex_register(const struct ls_cfi_exprs *e, const struct ls_cfi_values *v,
                            unsigned reg, uint64_t *ret)
{
        const struct ls_cfi_expr *x = &e->reg[reg];
        int err;

        if (x->rule == LS_CFI_SAME && v->known >> reg & 1) {
                *ret = v->reg[reg];
                return 1;
        }
        if (x->rule == LS_CFI_SAME || x->rule == LS_CFI_LOST)
                return 0;
        err = ls_cfi_eval(e->ops + x->first, x->n, v, ret);
        if (err == 0 && x->rule == LS_CFI_SAVED)
                err = v->read(v->ctx, *ret, ret);
        return err < 0 ? err : 1;
}

static int step_complex(struct walk *w, const struct ls_cfi_row *row)
{
        struct ls_cfi_values v = {
                .reg = w->reg, .known = w->known, .read = read_for_eval, .ctx = w
        };
        uint64_t reg[LS_NREGS] = { 0 };
        uint32_t known = 0;
        const struct ls_cfi_exprs *e = row->exprs;
        int err;

        err = ls_cfi_eval(e->ops + e->cfa.first, e->cfa.n, &v, &v.cfa);
        if (err < 0)
                return err;
        for (unsigned r = 0; r < LS_NREGS; r++) {
                /* After a signal all registers are those of the interrupted code; else a callee may
                 * use some. */
                if (!(row->flags & LS_CFI_SIGNAL) && r != LS_REG_IP &&
                    !(LS_CFI_CALLEE_SAVED >> r & 1))
                        continue;
                err = complex_register(e, &v, r, &reg[r]);
                if (err < 0)
                        return err;
                known |= (uint32_t)err << r;
        }
        if (!(known >> LS_REG_RSP & 1))
                reg[LS_REG_RSP] = v.cfa;
        if (reg[LS_REG_RSP] <= w->reg[LS_REG_RSP])
                return -EINVAL;
        memcpy(w->reg, reg, sizeof(reg));
        w->known = known | 1u << LS_REG_RSP;
        return 0;
}

/* A function without a table: [rsp] when that is a return address, as in a leaf of assembler, else
 * the frame that rbp points to, if it does. */
static int step_guess(struct walk *w, int first)
{
        uint64_t sp = w->reg[LS_REG_RSP], fp = w->reg[LS_REG_RBP], ip, next;

        if (first && returns_to_c(w, sp) && read_stack(w, sp, &ip) == 0) {
                set(w, LS_REG_RSP, sp + 8);
        } else {
                if (!(w->known >> LS_REG_RBP & 1) || fp < sp || fp % 8 ||
                    !returns_to_c(w, fp + 8) || read_stack(w, fp + 8, &ip) < 0 ||
                    read_stack(w, fp, &next) < 0)
                        return -ENOENT;
                set(w, LS_REG_RBP, next);
                set(w, LS_REG_RSP, fp + 16);
        }
        w->known &= LS_CFI_CALLEE_SAVED | 1u << LS_REG_RSP;
        set(w, LS_REG_IP, ip);
        return 0;
}

static int step_lua_vm(struct walk *w, struct ls_native_frame *frame)
{
        uint64_t sp = w->reg[LS_REG_RSP], ip;
        int err;

        frame->cframe = lua_vm_cframe(w);
        if (frame->cframe) {
                frame->flags |= LS_NATIVE_LUA_VM;
                return leave_cframe(w, frame->cframe);
        }
        err = read_stack(w, sp, &ip);
        if (err < 0)
                return err;
        w->known &= LS_CFI_CALLEE_SAVED;
        set(w, LS_REG_IP, ip);
        set(w, LS_REG_RSP, sp + 8);
        w->exact = 0;
        return 0;
}

/* From one frame to its caller. Fills the frame's flags and cframe. Returns 0, 1 at the end of the
 * stack, -ENODATA (truncated), -ENOENT (no table), -EFAULT (unmapped) or -EINVAL. */
static int step(struct walk *w, struct site *s, struct ls_native_frame *frame, int first)
{
        const struct ls_cfi_row row = s->row;   /* s may move when other sites come */
        int err;

        if (s->kind < SITE_NO_ROW) {
                frame->flags |= LS_NATIVE_JIT;
                frame->cframe = next_cframe(w, w->reg[LS_REG_RSP]);
                return frame->cframe ? leave_cframe(w, frame->cframe) : -EFAULT;
        }
        if (s->kind == SITE_NO_ROW) {
                frame->flags |= LS_NATIVE_GUESSED;
                err = step_guess(w, first);
        } else if (row.flags & LS_CFI_LUA_VM) {
                return step_lua_vm(w, frame);
        } else if (row.flags & LS_CFI_LAST) {
                return 1;
        } else {
                err = row.exprs ? step_complex(w, &row) : step_simple(w, &row);
                /* Assembler does not always say how its prologue changes the frame. */
                if (err == -EINVAL && first && step_guess(w, first) == 0) {
                        frame->flags |= LS_NATIVE_GUESSED;
                        err = 0;
                }
        }
        w->exact = err == 0 && (row.flags & LS_CFI_SIGNAL);
        if (w->exact)
                frame->flags |= LS_NATIVE_SIGNAL;
        return err;
}

static uint32_t label_of(struct ls_unwinder *u, struct site *s)
{
        if (s->label == LABEL_UNASKED)
                s->label = s->kind < SITE_NO_ROW
                           ? 0 : u->owner.label(u->owner.ctx, s->pc, &s->place, s->function);
        return s->label;
}

static enum ls_unwind_end end_of(int err)
{
        switch (err) {
        case 1:        return LS_UNWIND_COMPLETE;
        case -ENODATA: return LS_UNWIND_TRUNCATED;
        case -ENOENT:  return LS_UNWIND_NO_TABLE;
        case -EFAULT:  return LS_UNWIND_UNMAPPED;
        default:       return LS_UNWIND_BAD_STACK;
        }
}

size_t ls_unwind(struct ls_unwinder *u, const struct ls_unwind_input *in,
                 struct ls_native_frame *ret_frames, size_t room, enum ls_unwind_end *ret_end)
{
        struct walk w = { .u = u, .in = in, .known = in->known, .exact = 1 };
        size_t n = 0;

        *ret_end = LS_UNWIND_BAD_STACK;
        if (!(in->known >> LS_REG_IP & 1) || !(in->known >> LS_REG_RSP & 1))
                return 0;
        memcpy(w.reg, in->reg, sizeof(w.reg));
        for (;;) {
                struct ls_native_frame *frame = &ret_frames[n];
                uint64_t ip = w.reg[LS_REG_IP];
                struct site *s;
                int err;

                if (n > 0 && ip == 0) {
                        *ret_end = LS_UNWIND_COMPLETE;
                        return n;
                }
                if (n == room) {
                        *ret_end = LS_UNWIND_TOO_DEEP;
                        return n;
                }
                s = find_site(u, ip - !w.exact);
                *frame = (struct ls_native_frame){ .ip = ip,
                                                   .sp = w.reg[LS_REG_RSP],
                                                   .label = label_of(u, s) };
                frame->function =
                        s->kind < SITE_NO_ROW ? 0 : s->pc - (s->place.file_offset - s->function);
                n++;
                err = step(&w, s, frame, n == 1);
                if (err != 0 || w.reg[LS_REG_RSP] <= frame->sp) {
                        *ret_end = end_of(err);
                        return n;
                }
        }
}
