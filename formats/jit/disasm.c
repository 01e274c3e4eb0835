/* The machine code of a trace as x86 instructions in the classes that align.c knows. The only user
 * of capstone. */
#include "formats/jit/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <capstone/capstone.h>


/* LuaJIT's numbers of registers, by capstone's names of each width. */
static const uint16_t general[16][4] = {
        { X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL },
        { X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL },
        { X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL },
        { X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL },
        { X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL },
        { X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL },
        { X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL },
        { X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL },
        { X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B },
        { X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B },
        { X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B },
        { X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B },
        { X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B },
        { X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B },
        { X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B },
        { X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B },
};

/* Moves and jumps are classed by their operands. */
#define MOVE 0xff
#define COMPARE 0xfe
static const struct {
        uint16_t id;
        uint8_t class;
} classes[] = {
        { X86_INS_CALL, JIT_X_CALL },
        { X86_INS_JMP, JIT_X_JUMP },
        { X86_INS_ADDSD, JIT_X_ADD },
        { X86_INS_ADDSS, JIT_X_ADD },
        { X86_INS_ADD, JIT_X_ADD },
        { X86_INS_INC, JIT_X_ADD },
        { X86_INS_SUBSD, JIT_X_SUB },
        { X86_INS_SUBSS, JIT_X_SUB },
        { X86_INS_SUB, JIT_X_SUB },
        { X86_INS_DEC, JIT_X_SUB },
        { X86_INS_MULSD, JIT_X_MUL },
        { X86_INS_MULSS, JIT_X_MUL },
        { X86_INS_IMUL, JIT_X_MUL },
        { X86_INS_DIVSD, JIT_X_DIV },
        { X86_INS_DIVSS, JIT_X_DIV },
        { X86_INS_CVTSI2SD, JIT_X_CONVERT },
        { X86_INS_CVTTSD2SI, JIT_X_CONVERT },
        { X86_INS_CVTSD2SS, JIT_X_CONVERT },
        { X86_INS_CVTSS2SD, JIT_X_CONVERT },
        { X86_INS_CVTSD2SI, JIT_X_CONVERT },
        { X86_INS_CVTTSS2SI, JIT_X_CONVERT },
        { X86_INS_CVTSI2SS, JIT_X_CONVERT },
        { X86_INS_CVTTPD2DQ, JIT_X_CONVERT },
        { X86_INS_CVTDQ2PD, JIT_X_CONVERT },
        { X86_INS_CVTPS2PD, JIT_X_CONVERT },
        { X86_INS_CVTPD2PS, JIT_X_CONVERT },
        { X86_INS_ROUNDSD, JIT_X_ROUND },
        { X86_INS_SQRTSD, JIT_X_SQRT },
        { X86_INS_MINSD, JIT_X_MIN },
        { X86_INS_MAXSD, JIT_X_MAX },
        { X86_INS_CMOVL, JIT_X_SELECT },
        { X86_INS_CMOVG, JIT_X_SELECT },
        { X86_INS_CMOVLE, JIT_X_SELECT },
        { X86_INS_CMOVGE, JIT_X_SELECT },
        { X86_INS_CMOVB, JIT_X_SELECT },
        { X86_INS_CMOVA, JIT_X_SELECT },
        { X86_INS_LEA, JIT_X_LEA },
        { X86_INS_NEG, JIT_X_NEG },
        { X86_INS_XORPS, JIT_X_XOR_NUM },
        { X86_INS_ANDPS, JIT_X_XOR_NUM },
        { X86_INS_XORPD, JIT_X_XOR_NUM },
        { X86_INS_ANDPD, JIT_X_XOR_NUM },
        { X86_INS_UCOMISD, JIT_X_COMPARE_NUM },
        { X86_INS_UCOMISS, JIT_X_COMPARE_NUM },
        { X86_INS_CMP, COMPARE },
        { X86_INS_TEST, COMPARE },
        { X86_INS_AND, JIT_X_BITS },
        { X86_INS_OR, JIT_X_BITS },
        { X86_INS_XOR, JIT_X_BITS },
        { X86_INS_NOT, JIT_X_BITS },
        { X86_INS_BSWAP, JIT_X_BITS },
        { X86_INS_SHL, JIT_X_SHIFT },
        { X86_INS_SHR, JIT_X_SHIFT },
        { X86_INS_SAR, JIT_X_SHIFT },
        { X86_INS_ROL, JIT_X_SHIFT },
        { X86_INS_ROR, JIT_X_SHIFT },
        { X86_INS_RORX, JIT_X_SHIFT },
        { X86_INS_SHLX, JIT_X_SHIFT },
        { X86_INS_SHRX, JIT_X_SHIFT },
        { X86_INS_SARX, JIT_X_SHIFT },
        { X86_INS_MOV, MOVE },
        { X86_INS_MOVABS, MOVE },
        { X86_INS_MOVZX, MOVE },
        { X86_INS_MOVSX, MOVE },
        { X86_INS_MOVSXD, MOVE },
        { X86_INS_MOVSD, MOVE },
        { X86_INS_MOVSS, MOVE },
        { X86_INS_MOVAPS, MOVE },
        { X86_INS_MOVAPD, MOVE },
        { X86_INS_MOVD, MOVE },
        { X86_INS_MOVQ, MOVE },
        { X86_INS_MOVLPD, MOVE },
        { X86_INS_MOVLPS, MOVE },
        { X86_INS_MOVUPS, MOVE },
};

static int reg_number(unsigned reg)
{
        if (reg >= X86_REG_XMM0 && reg <= X86_REG_XMM15)
                return JIT_REG_XMM + (int)(reg - X86_REG_XMM0);
        for (int r = 0; r < 16; r++) {
                for (int w = 0; w < 4; w++) {
                        if (general[r][w] == reg)
                                return r;
                }
        }
        return -1;
}

static uint8_t class_of(const cs_insn *in)
{
        for (size_t k = 0; k < sizeof(classes) / sizeof(*classes); k++) {
                if (classes[k].id == in->id)
                        return classes[k].class;
        }
        return JIT_X_OTHER;
}

static int is_conditional_jump(const cs_insn *in)
{
        for (int k = 0; k < in->detail->groups_count; k++) {
                if (in->detail->groups[k] == X86_GRP_JUMP)
                        return in->id != X86_INS_JMP;
        }
        return 0;
}

/* The operands of in; returns how many are memory, the first of them in ret_first (-1 = none). */
static void read_operands(const cs_x86 *d, struct jit_unit *u, int *ret_memory)
{
        *ret_memory = -1;
        for (int k = 0; k < d->op_count; k++) {
                const cs_x86_op *op = &d->operands[k];

                if (op->type == X86_OP_MEM) {
                        u->memory = 1;
                        u->base = (int8_t)reg_number(op->mem.base);
                        u->disp = op->mem.disp;
                        *ret_memory = k;
                } else if (op->type == X86_OP_IMM) {
                        u->imm = op->imm;
                        u->constant = k > 0;
                } else if (op->type == X86_OP_REG && k == 0) {
                        u->dst = (int8_t)reg_number(op->reg);
                } else if (op->type == X86_OP_REG && k == 1) {
                        u->src = (int8_t)reg_number(op->reg);
                }
        }
}

static uint8_t class_of_move(const struct jit_unit *u, const cs_x86 *d, int memory)
{
        if (memory == 0)
                return d->op_count > 1 && d->operands[1].type == X86_OP_IMM ? JIT_X_STORE_IMM
                                                                            : JIT_X_STORE;
        if (memory > 0)
                return u->dst >= JIT_REG_XMM ? JIT_X_LOAD_NUM : JIT_X_LOAD;
        return u->src >= JIT_REG_XMM && u->dst < JIT_REG_XMM ? JIT_X_CONVERT : JIT_X_MOVE;
}

static struct jit_unit decode(const cs_insn *in, uint64_t address, uint32_t size, uint32_t loop)
{
        const cs_x86 *d = &in->detail->x86;
        struct jit_unit u = {
                .start = (uint32_t)(in->address - address), .dst = -1, .src = -1, .base = -1
        };
        int memory;

        u.end = u.start + in->size;
        read_operands(d, &u, &memory);
        if (is_conditional_jump(in)) {
                uint64_t target = (uint64_t)u.imm - address;

                /* the last guard of a loop is turned round when it can: it jumps to the loop, else
                 * leaves it */
                u.class = target < size && (!loop || target != loop) ? JIT_X_INNER : JIT_X_EXIT;
                u.jump = u.class;
                u.overflow = in->id == X86_INS_JO;
                return u;
        }
        u.class = class_of(in);
        if (u.class == JIT_X_SHIFT && in->id == X86_INS_RORX && u.memory)
                u.class = JIT_X_LOAD;
        u.turns = u.constant && u.imm == JIT_TAG_BITS &&
                  (in->id == X86_INS_RORX || in->id == X86_INS_ROR);
        if (u.class == MOVE)
                u.class = class_of_move(&u, d, memory);
        else if (u.class == COMPARE)
                u.class = u.memory ? JIT_X_COMPARE_MEM : JIT_X_COMPARE;
        if (jit_is_compare(&u))
                u.src = u.dst, u.dst = -1;
        if (u.class == JIT_X_CALL)
                u.dst = -1;
        return u;
}

/* All of the code; what is not understood becomes units of one byte. Returns how many units there
 * are. */
static uint32_t run(csh handle, cs_insn *in, const uint8_t *code, uint32_t size, uint64_t address,
                    uint32_t loop, struct jit_unit *u, uint32_t *ret_unknown)
{
        uint32_t n = 0, at = 0;

        while (at < size) {
                const uint8_t *p = code + at;
                size_t left = size - at;
                uint64_t where = address + at;

                if (cs_disasm_iter(handle, &p, &left, &where, in)) {
                        u[n] = decode(in, address, size, loop);
                } else {
                        u[n] = (struct jit_unit){
                                .start = at, .end = at + 1, .dst = -1, .src = -1, .base = -1
                        };
                        (*ret_unknown)++;
                }
                at = u[n++].end;
        }
        return n;
}

int jit_disassemble(const uint8_t *code, uint32_t size, uint64_t address, uint32_t loop,
                    struct jit_unit **ret, uint32_t *ret_n)
{
        csh handle;
        cs_insn *in = NULL;
        struct jit_unit *u;
        uint32_t unknown = 0;
        int r = 0;

        if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
                return -ENOTSUP;
        u = calloc(size + 1, sizeof(*u));
        if (cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON) == CS_ERR_OK)
                in = cs_malloc(handle);
        if (!in || !u) {
                r = -ENOMEM;
                goto out;
        }
        *ret_n = run(handle, in, code, size, address, loop, u, &unknown);
        *ret = u;
        u = NULL;
        if (unknown)
                r = -EILSEQ;
out:
        if (in)
                cs_free(in, 1);
        cs_close(&handle);
        free(u);
        return r;
}

/* Where a conditional jump out of the code leads to, else 0. */
static uint64_t leaves_to(const cs_insn *in, uint64_t address, uint32_t size)
{
        const cs_x86 *d = &in->detail->x86;
        int is_to = d->op_count == 1 && d->operands[0].type == X86_OP_IMM;
        uint64_t to = is_to ? (uint64_t)d->operands[0].imm : 0;

        return is_conditional_jump(in) && to - address >= size ? to : 0;
}

int jit_disassemble_text(const uint8_t *code, uint32_t size, uint64_t address,
                         int (*put)(void *ctx, uint32_t offset, const char *name,
                                    const char *operands, uint64_t target), void *ctx)
{
        csh handle;
        cs_insn *in;
        uint32_t at = 0;
        int r = 0;

        if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
                return -ENOTSUP;
        in = cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON) == CS_ERR_OK ? cs_malloc(handle) : NULL;
        if (!in)
                r = -ENOMEM;
        while (!r && at < size) {
                const uint8_t *p = code + at;
                size_t left = size - at;
                uint64_t where = address + at;
                int known = cs_disasm_iter(handle, &p, &left, &where, in);
                char byte[8];

                snprintf(byte, sizeof(byte), "0x%02x", code[at]);
                r = known ? put(ctx, at, in->mnemonic, in->op_str, leaves_to(in, address, size))
                          : put(ctx, at, ".byte", byte, 0);
                at += known ? in->size : 1;
        }
        if (in)
                cs_free(in, 1);
        cs_close(&handle);
        return r;
}
