/* Attempts of the JIT compiler in a trace. Called by resolve.c, when functions and locations are
 * there. */
#include "formats/trace/reader_parts.h"

#include <errno.h>
#include <stdlib.h>

#define COL(NAME) row[LS_C_ATTEMPT_##NAME]

int ls_resolve_attempts(struct ls_reader *r)
{
        const struct ls_dict *d = &r->dict[LS_REC_ATTEMPT];
        struct ls_profile *p = r->p;

        p->attempts = calloc((size_t)d->n + 1, sizeof(*p->attempts));
        if (!p->attempts)
                return -ENOMEM;
        for (uint32_t i = 1; i <= d->n; i++) {
                const uint64_t *row = ls_dict_has(d, i) ? ls_dict_row(d, i) : NULL;

                if (!row || !COL(COUNT))
                        continue;
                p->attempts[p->n_attempts++] = (struct ls_attempt){
                        .vm = COL(VM) < p->n_vms ? (uint32_t)COL(VM) : 0,
                        .start = COL(START) < p->n_locations ? (uint32_t)COL(START) : 0,
                        .stop = COL(STOP) < p->n_locations ? (uint32_t)COL(STOP) : 0,
                        .about = COL(ABOUT) < p->n_functions ? (uint32_t)COL(ABOUT) : 0,
                        .first_line = (uint32_t)COL(FIRST_LINE),
                        .last_line = (uint32_t)COL(LAST_LINE),
                        .flags = (uint32_t)COL(FLAGS) & LS_ATTEMPT_FLAGS,
                        .reason = ls_reader_str(r, COL(REASON)),
                        .count = COL(COUNT),
                        .ns = COL(NS),
                        .bytecodes = COL(BYTECODES)
                };
        }
        return 0;
}
