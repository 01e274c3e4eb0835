/* Call frame information of one object file: for an address, how to find the caller's registers.
 * Reads .eh_frame (or .debug_frame) from the file with libdw, never from the program's memory.
 * Called by worker/serve.c; what a row says is used by native/unwind.c. */
#ifndef LS_RECORD_CFI_H
#define LS_RECORD_CFI_H

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

/* Registers by their DWARF number on x86-64. */
enum {
        LS_REG_RAX,
        LS_REG_RDX,
        LS_REG_RCX,
        LS_REG_RBX,
        LS_REG_RSI,
        LS_REG_RDI,
        LS_REG_RBP,
        LS_REG_RSP,
        LS_REG_R8,
        LS_REG_R9,
        LS_REG_R10,
        LS_REG_R11,
        LS_REG_R12,
        LS_REG_R13,
        LS_REG_R14,
        LS_REG_R15,
        LS_REG_IP,
        LS_NREGS
};

enum { LS_CFI_NSAVED = 7 };             /* rbx, rbp, r12 to r15, return address: ls_cfi_saved has
                                         * their numbers */
extern const uint8_t ls_cfi_saved[LS_CFI_NSAVED];

/* The registers that a function puts back. */
#define LS_CFI_CALLEE_SAVED                                                                        \
        ((1u << LS_REG_RBX) | (1u << LS_REG_RBP) | (1u << LS_REG_R12) | (1u << LS_REG_R13) |       \
         (1u << LS_REG_R14) | (1u << LS_REG_R15))

enum ls_cfi_rule {
        LS_CFI_SAME,                    /* the function has not changed it */
        LS_CFI_SAVED,                   /* at CFA + at */
        LS_CFI_LOST,
        LS_CFI_VALUE,                   /* is what an expression says; of LS_CFI_SAVED it says
                                         * where */
        LS_CFI_NRULES
};

#define LS_CFI_SIGNAL                                                                              \
        0x01 /* the frame that a signal's handler returns to: the caller's ip is exact */
#define LS_CFI_LAST    0x02             /* has no caller */
#define LS_CFI_LUA_VM                                                                              \
        0x04 /* LuaJIT's interpreter: its frame is the C frame that L->cframe points to */

#define LS_CFI_OPS_MAX 128u             /* operations of all expressions of a row */

struct ls_cfi_expr { uint8_t rule, n; uint16_t first; };        /* enum ls_cfi_rule; of ops */

struct ls_cfi_exprs {                   /* rules that need expressions */
        struct ls_cfi_expr cfa, reg[LS_NREGS];
        uint32_t n_ops;
        Dwarf_Op ops[LS_CFI_OPS_MAX];   /* allocated as far as n_ops */
};

struct ls_cfi_row {                     /* how to find the caller, from one instruction */
        struct ls_cfi_exprs *exprs;     /* owned; not NULL: none of the rest but flags counts */
        int32_t cfa_offset;             /* CFA = register cfa_reg + cfa_offset */
        uint8_t cfa_reg;
        uint8_t flags;                  /* LS_CFI_* */
        uint8_t rule[LS_CFI_NSAVED];    /* enum ls_cfi_rule */
        int16_t at[LS_CFI_NSAVED];
};

struct ls_cfi;

/* Bytes of exprs with so many operations. */
static inline size_t ls_cfi_exprs_size(uint32_t n_ops)
{
        return offsetof(struct ls_cfi_exprs, ops) + n_ops * sizeof(Dwarf_Op);
}

/* Opens a file, or the vdso when path is NULL (that of this process: one kernel has one). Returns
 * 0, -EINVAL for what is not a regular x86-64 ELF file or has another build id than this one (len 0
 * = any), or -errno. */
int ls_cfi_open(const char *path, const uint8_t *build_id, size_t build_id_len,
                struct ls_cfi **ret_cfi);
void ls_cfi_close(struct ls_cfi *cfi);  /* takes NULL; all rows must have been dropped */

/* The row for the instruction at an offset in the file, and the offset at which its function starts
 * (as far as the table tells it; else the instruction's own). Returns 0, or -ENOENT where there is
 * none. */
int ls_cfi_row(struct ls_cfi *cfi, uint64_t file_offset, struct ls_cfi_row *ret_row,
               uint64_t *ret_function);
void ls_cfi_row_drop(struct ls_cfi_row *row);

#endif
