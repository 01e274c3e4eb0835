/* How often each line of a function was entered, and each arm of its branches taken, from how often
 * each of its bytecodes was executed (flow.h). Read by record/translate/exact.c. */
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

/* A way out of an instruction that has two: a comparison, or the end of a loop over an iterator,
 * which jumps to its body. That of a loop over numbers is none: counts do not tell a loop that was
 * left out from one that was done once. */
struct ls_exact_arm {
        uint32_t pos, line;             /* of the instruction; both arms of one follow each other */
        uint8_t jumps;
        uint64_t times;
};

struct ls_exact_solved {
        struct ls_exact_line *lines;    /* that could be executed, in ascending order */
        struct ls_exact_arm *arms;      /* by instruction, the one that goes on first */
        size_t n_lines, n_arms;
        size_t unknown;                 /* branches that are left out: nothing says which way was
                                         * taken how often */
};

/* Of a prototype. Returns 0 or -ENOMEM. Freed with ls_exact_solved_done. */
int ls_exact_solve(const struct ls_flow_proto *p, struct ls_exact_solved *ret);
void ls_exact_solved_done(struct ls_exact_solved *s);

#endif
