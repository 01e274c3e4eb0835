/* The machine code of a JIT trace as text, with LuaJIT's instruction and the line that each x86
 * instruction is of. Called by report/jit/listing.c. */
#ifndef LS_FORMATS_JIT_LISTING_H
#define LS_FORMATS_JIT_LISTING_H

#include "formats/jit/input.h"

#define LS_JIT_NO_EXIT UINT32_MAX

struct ls_jit_row {                     /* an x86 instruction */
        uint32_t offset;                /* in the code */
        uint16_t ref;                   /* LuaJIT's instruction, less 0x8000, LS_JIT_REF_HEAD or
                                         * _TAIL of map.h; what the loop optimisation copied it
                                         * from */
        uint32_t function, line;        /* innermost: id of FUNCTION, 0 = not known */
        uint64_t target;                /* of a conditional jump out of the code, 0 = it is none */
        uint32_t exit;                  /* that it takes, LS_JIT_NO_EXIT = not known */
        char text[80];
};

struct ls_jit_listing {
        struct ls_jit_row *rows;
        uint32_t n, room;
        unsigned doubt;                 /* enum ls_jit_doubt of map.h */
};

/* Of at most the code that a map looks at (128 KiB). irnames as for ls_jit_map_new. 0, -ENOMEM,
 * -EINVAL, or -ENOTSUP: no disassembler. The caller gives it to ls_jit_listing_done. */
int ls_jit_listing_new(const struct ls_jit_input *in, const char *irnames, size_t irnames_len,
                       struct ls_jit_listing *ret);
void ls_jit_listing_done(struct ls_jit_listing *l);

/* "> int ADD    0012 0013": a guard, its type, name and operands: four digits are an instruction,
 * k1 is
 * a constant, #1 a number that belongs to the instruction. Empty for what is none of LuaJIT's. */
void ls_jit_ir_text(const struct ls_jit_input *in, const char *irnames, size_t irnames_len,
                    uint32_t ref, char *ret, size_t room);

#endif
