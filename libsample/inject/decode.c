/* See decode.h. One letter an opcode says what follows it:
 *   . nothing   m ModRM   b 8-bit immediate   z 16/32-bit immediate   B ModRM + b   Z ModRM + z
 *   v immediate of the operand's size (64 with REX.W)   w 16-bit immediate   e enter   o 64-bit address
 *   r rel8   R rel32   t ModRM, with an immediate for /0 and /1 (test)   p prefix   x REX   - not known */

#include "libsample/inject/decode.h"

#include <errno.h>

static const char one_byte[256 + 1] =
        "mmmmbz--mmmmbz-p"              /* 0x00: 0f is the escape */
        "mmmmbz--mmmmbz--"              /* 0x10 */
        "mmmmbzp-mmmmbzp-"              /* 0x20: segment prefixes 26 2e */
        "mmmmbzp-mmmmbzp-"              /* 0x30: 36 3e */
        "xxxxxxxxxxxxxxxx"              /* 0x40 */
        "................"              /* 0x50 */
        "---mppp-zZbB...."              /* 0x60: 67 changes addresses: not known */
        "rrrrrrrrrrrrrrrr"              /* 0x70 */
        "BZ-Bmmmmmmmmmmmm"              /* 0x80 */
        "..........-....."              /* 0x90 */
        "oooo....bz......"              /* 0xa0 */
        "bbbbbbbbvvvvvvvv"              /* 0xb0 */
        "BBw.--BZe.w..b-."              /* 0xc0: c4 and c5 are VEX */
        "mmmm---.mmmmmmmm"              /* 0xd0 */
        "rrrrbbbbRR-r...."              /* 0xe0 */
        "p.pp..tt......mm";             /* 0xf0 */

static const char two_byte[256 + 1] =
        "mmmm-..-..-.-m.-"              /* 0x00 */
        "mmmmmmmmmmmmmmmm"              /* 0x10 */
        "mmmm----mmmmmmmm"              /* 0x20 */
        "......-.--------"              /* 0x30: 38 and 3a are escapes */
        "mmmmmmmmmmmmmmmm"              /* 0x40 */
        "mmmmmmmmmmmmmmmm"              /* 0x50 */
        "mmmmmmmmmmmmmmmm"              /* 0x60 */
        "BBBBmmm.--mmmmmm"              /* 0x70 */
        "RRRRRRRRRRRRRRRR"              /* 0x80 */
        "mmmmmmmmmmmmmmmm"              /* 0x90 */
        "...mBm--...mBmmm"              /* 0xa0 */
        "mmmmmmmmmmBmmmmm"              /* 0xb0 */
        "mmBmBBBm........"              /* 0xc0 */
        "mmmmmmmmmmmmmmmm"              /* 0xd0 */
        "mmmmmmmmmmmmmmmm"              /* 0xe0 */
        "mmmmmmmmmmmmmmm.";             /* 0xf0 */

struct reader {
        const uint8_t *code;
        size_t n, at;
};

/* Next byte; 0 beyond the end, which ls_decode finds out at its end. */
static uint8_t next(struct reader *r)
{
        uint8_t byte = r->at < r->n ? r->code[r->at] : 0;

        r->at++;
        return byte;
}

/* ModRM with SIB and displacement. Returns its reg field. */
static unsigned read_modrm(struct reader *r, struct ls_insn *insn)
{
        unsigned modrm = next(r), mod = modrm >> 6, rm = modrm & 7;

        if (mod == 3)
                return modrm >> 3 & 7;
        if (rm == 4) {
                unsigned base = next(r) & 7;

                if (mod == 0 && base == 5)
                        r->at += 4;
        } else if (mod == 0 && rm == 5) {
                insn->rip_at = (uint8_t)r->at;
                r->at += 4;
        }
        r->at += mod == 1 ? 1 : mod == 2 ? 4 : 0;
        return modrm >> 3 & 7;
}

struct prefixes {
        int operand16, rex_w, vex;
};

/* Reads prefixes and the opcode: the letter of its operands; *ret_map 1, 2 or 3 (38/3a) and
 * *ret_opcode. */
static char read_opcode(struct reader *r, struct prefixes *p, int *ret_map, unsigned *ret_opcode)
{
        unsigned byte, map;

        for (;;) {
                byte = next(r);
                if (one_byte[byte] == 'x') {            /* REX counts only right before the
                                                         * opcode */
                        p->rex_w = (byte & 8) != 0;
                        if (one_byte[r->at < r->n ? r->code[r->at] : 0x40] == 'x')
                                return '-';
                        byte = next(r);
                        if (one_byte[byte] == 'p' && byte != 0x0f)
                                return '-';
                        break;
                }
                if (one_byte[byte] != 'p' || byte == 0x0f || r->at > r->n)
                        break;
                p->operand16 |= byte == 0x66;
        }
        *ret_opcode = byte;
        *ret_map = 1;
        map = 0;
        if (byte == 0xc5) {
                next(r);
                map = 1;
        } else if (byte == 0xc4) {
                map = next(r) & 0x1f;
                next(r);
        } else if (byte != 0x0f) {
                return one_byte[byte];
        }
        p->vex = map != 0;
        *ret_opcode = byte = next(r);
        if (map == 0 && (byte == 0x38 || byte == 0x3a)) {
                map = byte == 0x38 ? 2 : 3;
                *ret_opcode = next(r);
        }
        *ret_map = map >= 2 ? 3 : 2;
        if (map >= 2)
                return map == 2 ? 'm' : map == 3 ? 'B' : '-';
        return p->vex && two_byte[byte] == 'R' ? '-' : two_byte[byte];
}

static void read_rel(struct reader *r, uint8_t size, uint8_t flow, struct ls_insn *insn)
{
        insn->rel_at = (uint8_t)r->at;
        insn->rel_size = size;
        insn->flow = flow;
        r->at += size;
}

static int read_operands(struct reader *r, char letter, int map, unsigned opcode,
                         const struct prefixes *p, struct ls_insn *insn)
{
        size_t z = p->operand16 ? 2 : 4;
        unsigned reg;

        switch (letter) {
        case '.': break;
        case 'm':
                reg = read_modrm(r, insn);
                if (map == 1 && opcode == 0xff && (reg == 4 || reg == 5))
                        insn->flow = LS_FLOW_END;
                break;
        case 'b': r->at += 1; break;
        case 'w': r->at += 2; break;
        case 'e': r->at += 3; break;
        case 'z': r->at += z; break;
        case 'o': r->at += 8; break;
        case 'v': r->at += p->rex_w ? 8 : z; break;
        case 'B': read_modrm(r, insn); r->at += 1; break;
        case 'Z': read_modrm(r, insn); r->at += z; break;
        case 't':
                if (read_modrm(r, insn) < 2)
                        r->at += opcode == 0xf6 ? 1 : z;
                break;
        case 'r':
                insn->condition = opcode & 15;
                read_rel(r, 1,
                         opcode < 0x80    ? LS_FLOW_BRANCH
                         : opcode == 0xeb ? LS_FLOW_JUMP
                                          : LS_FLOW_LOOP,
                         insn);
                break;
        case 'R':
                if (p->operand16)
                        return -ENOSYS; /* processors disagree about its length */
                insn->condition = opcode & 15;
                read_rel(r, 4,
                         map == 2         ? LS_FLOW_BRANCH
                         : opcode == 0xe8 ? LS_FLOW_CALL
                                          : LS_FLOW_JUMP,
                         insn);
                break;
        default:
                return -ENOSYS;
        }
        return 0;
}

int ls_decode(const uint8_t *code, size_t n, struct ls_insn *ret)
{
        struct reader r = { .code = code, .n = n < 15 ? n : 15 };
        struct prefixes p = { 0 };
        unsigned opcode = 0;
        int map = 1;
        char letter;

        *ret = (struct ls_insn){ .flow = LS_FLOW_NEXT };
        letter = read_opcode(&r, &p, &map, &opcode);
        if (read_operands(&r, letter, map, opcode, &p, ret) < 0 || r.at > r.n)
                return -ENOSYS;
        if (map == 1 && (opcode == 0xc3 || opcode == 0xc2 || opcode == 0xcb || opcode == 0xca ||
                         opcode == 0xcc || opcode == 0xcf || opcode == 0xf4))
                ret->flow = LS_FLOW_END;
        if (map == 2 && opcode == 0x0b)
                ret->flow = LS_FLOW_END;
        ret->length = (uint8_t)r.at;
        return 0;
}
