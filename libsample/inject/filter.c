/* See filter.h. A filter is a program of classic BPF over struct seccomp_data: it only jumps
 * forward. Here each word has a value or is unknown; where a jump depends on what is unknown both
 * ways are gone, within a bound of steps. */
#include "libsample/inject/filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>

#define DEPTH_MOST 64u                  /* jumps on a way that depend on what is unknown */
#define WORDS (sizeof(struct seccomp_data) / 4)

struct word {
        uint32_t value;
        int known;
};

struct machine {
        struct word a, x, m[BPF_MEMWORDS];
        unsigned at, depth;
};

struct judged {                         /* a filter and a call */
        const struct sock_filter *code;
        unsigned n, *budget;            /* steps that are left */
        struct word data[WORDS];        /* struct seccomp_data */
        enum ls_verdict worst;
        int err;                        /* with LS_VERDICT_FAILS */
};

static struct word known(uint32_t value)
{
        return (struct word){ value, 1 };
}

static void note(struct judged *j, enum ls_verdict v, int err)
{
        /* two ways that fail with different errors: neither is the one */
        if (v == LS_VERDICT_FAILS && j->worst == LS_VERDICT_FAILS && err != j->err)
                j->err = -1;
        else if (v > j->worst) {
                j->worst = v;
                j->err = err;
        }
}

static void give(struct judged *j, struct word action)
{
        if (!action.known) {
                note(j, LS_VERDICT_UNKNOWN, 0);
                return;
        }
        switch (action.value & SECCOMP_RET_ACTION_FULL) {
        case SECCOMP_RET_ALLOW:
        case SECCOMP_RET_LOG:
                note(j, LS_VERDICT_ALLOWED, 0);
                return;
        case SECCOMP_RET_ERRNO:
                note(j, LS_VERDICT_FAILS, (int)(action.value & SECCOMP_RET_DATA));
                return;
        case SECCOMP_RET_USER_NOTIF:    /* another process answers */
        case SECCOMP_RET_TRACE:
                note(j, LS_VERDICT_UNKNOWN, 0);
                return;
        default:                        /* a trap's signal is the program's */
                note(j, LS_VERDICT_ENDS, 0);
        }
}

static struct word compute(uint16_t op, struct word a, struct word b)
{
        uint32_t v = a.value, w = b.value;

        if (op == BPF_AND && ((a.known && !v) || (b.known && !w)))
                return known(0);
        if (!a.known || (!b.known && op != BPF_NEG))
                return (struct word){ 0, 0 };
        switch (op) {
        case BPF_ADD: return known(v + w);
        case BPF_SUB: return known(v - w);
        case BPF_MUL: return known(v * w);
        case BPF_DIV: return known(v / w);
        case BPF_AND: return known(v & w);
        case BPF_OR: return known(v | w);
        case BPF_XOR: return known(v ^ w);
        case BPF_LSH: return known(v << (w & 31));
        case BPF_RSH: return known(v >> (w & 31));
        case BPF_NEG: return known(0u - v);
        default: return (struct word){ 0, 0 };
        }
}

static int holds(uint16_t op, uint32_t v, uint32_t w)
{
        switch (op) {
        case BPF_JEQ: return v == w;
        case BPF_JGT: return v > w;
        case BPF_JGE: return v >= w;
        default: return (v & w) != 0;
        }
}

/* All but jumps and ends. Returns 0, or -1: no such instruction. */
static int step(const struct judged *j, struct machine *m, const struct sock_filter *f)
{
        const struct word k = known(f->k);

        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
                if (f->k % 4 || f->k / 4 >= WORDS)
                        return -1;
                m->a = j->data[f->k / 4];
                return 0;
        case BPF_LD | BPF_W | BPF_LEN: m->a = known(sizeof(struct seccomp_data)); return 0;
        case BPF_LDX | BPF_W | BPF_LEN: m->x = known(sizeof(struct seccomp_data)); return 0;
        case BPF_LD | BPF_IMM: m->a = k; return 0;
        case BPF_LDX | BPF_IMM: m->x = k; return 0;
        case BPF_MISC | BPF_TAX: m->x = m->a; return 0;
        case BPF_MISC | BPF_TXA: m->a = m->x; return 0;
        }
        if (BPF_CLASS(f->code) == BPF_ALU) {
                const struct word b = BPF_SRC(f->code) == BPF_X ? m->x : k;

                if (BPF_OP(f->code) == BPF_DIV && !(b.known && b.value))        /* it kills */
                        return -1;
                m->a = compute(BPF_OP(f->code), m->a, b);
                return 0;
        }
        if (f->k >= BPF_MEMWORDS)
                return -1;
        switch (f->code) {
        case BPF_LD | BPF_MEM: m->a = m->m[f->k]; return 0;
        case BPF_LDX | BPF_MEM: m->x = m->m[f->k]; return 0;
        case BPF_ST: m->m[f->k] = m->a; return 0;
        case BPF_STX: m->m[f->k] = m->x; return 0;
        }
        return -1;
}

static void run(struct judged *j, struct machine m)
{
        while (m.at < j->n && *j->budget) {
                const struct sock_filter *f = &j->code[m.at++];
                struct word w = BPF_SRC(f->code) == BPF_X ? m.x : known(f->k);

                --*j->budget;
                if (BPF_CLASS(f->code) == BPF_RET) {
                        give(j, BPF_RVAL(f->code) == BPF_A ? m.a : known(f->k));
                        return;
                }
                if (BPF_CLASS(f->code) != BPF_JMP) {
                        if (step(j, &m, f) < 0)
                                break;
                } else if (BPF_OP(f->code) == BPF_JA) {
                        m.at = f->k < j->n ? m.at + f->k : j->n;
                } else if (m.a.known && w.known) {
                        m.at += holds(BPF_OP(f->code), m.a.value, w.value) ? f->jt : f->jf;
                } else {
                        struct machine other = m;

                        if (++m.depth > DEPTH_MOST)
                                break;
                        other.depth = m.depth;
                        other.at += f->jt;
                        run(j, other);
                        m.at += f->jf;
                }
        }
        note(j, LS_VERDICT_UNKNOWN, 0); /* too long, or not a filter */
}

enum ls_verdict ls_seccomp_judge(const struct sock_filter *code, unsigned n,
                                 const struct ls_call *call, unsigned *budget, int *ret_errno)
{
        struct judged j = { .code = code, .n = n, .budget = budget };
        struct machine m = { .a = known(0), .x = known(0) };

        j.data[offsetof(struct seccomp_data, nr) / 4] = known((uint32_t)call->nr);
        j.data[offsetof(struct seccomp_data, arch) / 4] = known(AUDIT_ARCH_X86_64);
        for (unsigned i = 0; i < 6; i++)
                if (call->known & (1u << i)) {
                        unsigned at = (unsigned)(offsetof(struct seccomp_data, args) / 4) + 2 * i;

                        j.data[at] = known((uint32_t)call->args[i]);
                        j.data[at + 1] = known((uint32_t)(call->args[i] >> 32));
                }
        run(&j, m);
        *ret_errno = j.err;
        return j.worst;
}
