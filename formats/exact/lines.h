/* How often each line of a function was entered, from how often each of its bytecodes was executed
 * (flow.h). Read by record/translate/exact.c. */
#ifndef LS_FORMATS_EXACT_LINES_H
#define LS_FORMATS_EXACT_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "formats/exact/flow.h"

struct ls_exact_line {
        uint32_t line;                  /* 0 = the bytecode is stripped of its lines */
        uint64_t entered;               /* from another line, or by a jump back */
        uint64_t instructions;          /* executed, of all that are in it */
};

/* The lines of a prototype that could be executed, in ascending order, freed by the caller. Returns
 * 0 or -ENOMEM. */
int ls_exact_lines(const struct ls_flow_proto *p, struct ls_exact_line **ret, size_t *ret_n);

#endif
