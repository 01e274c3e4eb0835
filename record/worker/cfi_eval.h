/* DWARF expressions of call frame information. Called by native/unwind.c. */
#ifndef LS_RECORD_WORKER_CFI_EVAL_H
#define LS_RECORD_WORKER_CFI_EVAL_H

#include "record/worker/cfi.h"

/* The value of a DWARF expression, given registers (those of the mask are known), the CFA and a way
 * to read memory. Returns 0, or the error of read, or -EINVAL. */
struct ls_cfi_values {
        const uint64_t *reg;
        uint32_t known;                 /* bit mask by register number */
        uint64_t cfa;
        int (*read)(void *ctx, uint64_t addr, uint64_t *ret);
        void *ctx;
};
int ls_cfi_eval(const Dwarf_Op *ops, size_t n, const struct ls_cfi_values *v, uint64_t *ret);

#endif
