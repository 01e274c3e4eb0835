/* Why code was not compiled: the ticks in the interpreter, and in what it called, by the attempts
 * of the compiler around them. Called by jit.c; shown by why.c and aborts.c. */
#ifndef LS_REPORT_JIT_BLAME_H
#define LS_REPORT_JIT_BLAME_H

#include "report/model/report.h"

enum ls_reason {
#define LS_REASON(NAME, key, title, meaning) LS_REASON_##NAME,
#include "report/jit/reasons.def"
#undef LS_REASON
        LS_REASONS
};

#define LS_NO_ATTEMPT UINT32_MAX
#define LS_NO_ROW UINT32_MAX

struct ls_blame_row {                   /* ticks with one reason */
        enum ls_reason reason;
        uint32_t attempt;               /* of the profile's, whose reason and places it has;
                                         * LS_NO_ATTEMPT = none */
        uint64_t ticks;
};

struct ls_blame {
        struct ls_blame_row *rows;      /* most ticks first; none without ticks */
        uint32_t n_rows;
        uint64_t ticks;                 /* outside of compiled code: in the interpreter, and in what
                                         * it called */
        uint64_t by_reason[LS_REASONS];
        uint64_t *by_attempt;           /* [n_attempts] */
        uint32_t *row_of;               /* [n_cells of the aggregate] of rows; LS_NO_ROW: its time
                                         * was in compiled code, the collector or the compiler */
        int recorded;                   /* 1 = LuaJIT's attempts were recorded */
};

/* Of the cells of an aggregate that has the VM's states. Returns 0 or -errno. */
int ls_blame_new(const struct ls_profile *p, const struct ls_aggregate *a, struct ls_blame *ret);
void ls_blame_done(struct ls_blame *b);

#endif
