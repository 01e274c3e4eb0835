/* Attempts of the JIT compiler, added up: see attempt_sums.h. What they are of was written by the
 * program: the number of kinds is bounded. */
#include "record/translate/attempt_sums.h"

#include <errno.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#include <uthash.h>

#include "formats/trace/format.h"

struct ls_attempt_sum {
        UT_hash_handle hh;
        struct ls_attempt_kind kind;
        uint64_t count, ns, bytecodes;  /* since it was written */
        int failed;
};

int ls_attempts_add(struct ls_attempts *a, const struct ls_attempt_kind *kind, uint64_t ns, uint64_t bytecodes)
{
        struct ls_attempt_sum *s;

        HASH_FIND(hh, a->sums, kind, sizeof(*kind), s);
        if (!s && a->n == LS_ATTEMPT_KINDS) {
                a->dropped++;
                return 0;
        }
        if (!s) {
                s = calloc(1, sizeof(*s));
                if (!s)
                        return -ENOMEM;
                s->kind = *kind;
                HASH_ADD(hh, a->sums, kind, sizeof(s->kind), s);
                if (s->failed) {
                        free(s);
                        return -ENOMEM;
                }
                a->n++;
        }
        s->count++;
        s->ns += ns;
        s->bytecodes += bytecodes;
        return 0;
}

void ls_attempts_write(struct ls_attempts *a, struct ls_trace_writer *w)
{
        for (struct ls_attempt_sum *s = a->sums; s; s = s->hh.next) {
                const struct ls_attempt_kind *k = &s->kind;

                if (!s->count)
                        continue;
                ls_trace_row(w, LS_REC_ATTEMPT, (const uint64_t[LS_COLUMNS_MAX]){
                        [LS_C_ATTEMPT_VM] = k->vm, [LS_C_ATTEMPT_START] = k->start, [LS_C_ATTEMPT_FIRST_LINE] = k->first_line,
                        [LS_C_ATTEMPT_LAST_LINE] = k->last_line, [LS_C_ATTEMPT_STOP] = k->stop,
                        [LS_C_ATTEMPT_FLAGS] = k->flags, [LS_C_ATTEMPT_REASON] = k->reason, [LS_C_ATTEMPT_ABOUT] = k->about,
                        [LS_C_ATTEMPT_COUNT] = s->count, [LS_C_ATTEMPT_NS] = s->ns, [LS_C_ATTEMPT_BYTECODES] = s->bytecodes });
                s->count = s->ns = s->bytecodes = 0;
        }
}

void ls_attempts_done(struct ls_attempts *a)
{
        struct ls_attempt_sum *s, *next;

        HASH_ITER(hh, a->sums, s, next) {
                HASH_DEL(a->sums, s);
                free(s);
        }
        a->n = 0;
}
