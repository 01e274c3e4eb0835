/* Length and branches of x86-64 instructions, for patch.c: enough to move the first instructions of
 * a function. */
#ifndef LS_DECODE_H
#define LS_DECODE_H

#include <stddef.h>
#include <stdint.h>

enum ls_insn_flow {
        LS_FLOW_NEXT,           /* goes on with the next instruction */
        LS_FLOW_CALL,           /* call rel32 */
        LS_FLOW_JUMP,           /* jmp rel8 or rel32 */
        LS_FLOW_BRANCH,         /* jcc rel8 or rel32 */
        LS_FLOW_LOOP,           /* loop, jrcxz: rel8 only */
        LS_FLOW_END,            /* ret, indirect jump, trap: does not go on */
};

struct ls_insn {
        uint8_t length;
        uint8_t flow;           /* enum ls_insn_flow */
        uint8_t condition;      /* BRANCH: low nibble of the opcode */
        uint8_t rel_at;         /* offset of the relative operand, 0 = none */
        uint8_t rel_size;       /* 1 or 4 */
        uint8_t rip_at;         /* offset of a 32-bit displacement from rip, 0 = none */
};

/* Decodes the instruction at code, of which n bytes may be read. 0, or -ENOSYS for one that it does
 * not know. */
int ls_decode(const uint8_t *code, size_t n, struct ls_insn *ret);

/* Where the branch or call at code goes. */
static inline const uint8_t *ls_insn_target(const uint8_t *code, const struct ls_insn *insn)
{
        int32_t rel = insn->rel_size == 1 ? (int8_t)code[insn->rel_at]
                                          : (int32_t)((uint32_t)code[insn->rel_at] |
                                                      (uint32_t)code[insn->rel_at + 1] << 8 |
                                                      (uint32_t)code[insn->rel_at + 2] << 16 |
                                                      (uint32_t)code[insn->rel_at + 3] << 24);

        return code + insn->length + rel;
}

#endif
