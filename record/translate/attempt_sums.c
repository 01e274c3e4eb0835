/* Attempts of the JIT compiler, added up: see attempt_sums.h. What they are of was written by the
 * program: the number of kinds is bounded, and what they refer to is interned only when they are
 * written. */
#include "record/translate/attempt_sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#include <uthash.h>

#include "formats/trace/format.h"

struct ls_attempt_reason {
        UT_hash_handle hh;
        uint32_t number, len;           /* from 1; bytes of text */
        int failed;
        char text[];
};

struct ls_attempt_sum {
        UT_hash_handle hh;
        struct ls_attempt_kind kind;
        const struct ls_attempt_reason *reason;         /* NULL = none */
        uint64_t count, ns, bytecodes;  /* since it was written */
        int failed;
};

/* The reason of these words: 0, -ENOMEM, or -ENOSPC: it is one too many. */
static int find_reason(struct ls_attempts *a, const char *text, size_t len,
                       struct ls_attempt_reason **ret)
{
        struct ls_attempt_reason *r;

        HASH_FIND(hh, a->reasons, text, len, r);
        *ret = r;
        if (r)
                return 0;
        if (a->n_reasons == LS_ATTEMPT_REASONS)
                return -ENOSPC;
        r = calloc(1, sizeof(*r) + len);
        if (!r)
                return -ENOMEM;
        memcpy(r->text, text, len);
        r->len = (uint32_t)len;
        r->number = a->n_reasons + 1;
        HASH_ADD_KEYPTR(hh, a->reasons, r->text, len, r);
        if (r->failed) {
                free(r);
                return -ENOMEM;
        }
        a->n_reasons++;
        *ret = r;
        return 0;
}

static struct ls_attempt_sum *new_sum(struct ls_attempts *a, const struct ls_attempt_kind *kind)
{
        struct ls_attempt_sum *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        s->kind = *kind;
        HASH_ADD(hh, a->sums, kind, sizeof(s->kind), s);
        if (s->failed) {
                free(s);
                return NULL;
        }
        a->n++;
        return s;
}

int ls_attempts_add(struct ls_attempts *a, struct ls_attempt_kind kind, const char *reason,
                    size_t len, uint64_t ns, uint64_t bytecodes)
{
        struct ls_attempt_reason *r = NULL;
        struct ls_attempt_sum *s = NULL;
        int error = len ? find_reason(a, reason, len, &r) : 0;

        if (error == -ENOMEM)
                return error;
        if (!error) {
                kind.reason = r ? r->number : 0;
                HASH_FIND(hh, a->sums, &kind, sizeof(kind), s);
        }
        if (error || (!s && a->n == LS_ATTEMPT_KINDS)) {
                a->dropped++;
                return 0;
        }
        if (!s)
                s = new_sum(a, &kind);
        if (!s)
                return -ENOMEM;
        s->reason = r;
        s->count++;
        s->ns += ns;
        s->bytecodes += bytecodes;
        return 0;
}

static uint32_t location(struct ls_trace_writer *w, uint32_t function, uint32_t line)
{
        return function ? ls_trace_location(w, function, line) : 0;
}

static uint32_t words(struct ls_trace_writer *w, const struct ls_attempt_reason *r)
{
        return r ? ls_trace_string(w, r->text, r->len) : 0;
}

void ls_attempts_write(struct ls_attempts *a, struct ls_trace_writer *w)
{
        for (struct ls_attempt_sum *s = a->sums; s; s = s->hh.next) {
                const struct ls_attempt_kind *k = &s->kind;

                if (!s->count)
                        continue;
                ls_trace_row(w, LS_REC_ATTEMPT,
                             (const uint64_t[LS_COLUMNS_MAX]){
                                     [LS_C_ATTEMPT_VM] = k->vm,
                                     [LS_C_ATTEMPT_START] = location(w, k->start, k->start_line),
                                     [LS_C_ATTEMPT_FIRST_LINE] = k->first_line,
                                     [LS_C_ATTEMPT_LAST_LINE] = k->last_line,
                                     [LS_C_ATTEMPT_STOP] = location(w, k->stop, k->stop_line),
                                     [LS_C_ATTEMPT_FLAGS] = k->flags,
                                     [LS_C_ATTEMPT_REASON] = words(w, s->reason),
                                     [LS_C_ATTEMPT_ABOUT] = k->about,
                                     [LS_C_ATTEMPT_COUNT] = s->count,
                                     [LS_C_ATTEMPT_NS] = s->ns,
                                     [LS_C_ATTEMPT_BYTECODES] = s->bytecodes });
                s->count = s->ns = s->bytecodes = 0;
        }
}

void ls_attempts_done(struct ls_attempts *a)
{
        struct ls_attempt_sum *s, *next;
        struct ls_attempt_reason *r, *next_reason;

        HASH_ITER(hh, a->sums, s, next) {
                HASH_DEL(a->sums, s);
                free(s);
        }
        HASH_ITER(hh, a->reasons, r, next_reason) {
                HASH_DEL(a->reasons, r);
                free(r);
        }
        a->n = a->n_reasons = 0;
}
