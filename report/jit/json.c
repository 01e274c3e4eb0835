/* luasample jit --json: what the summary and --aborts show, and all traces. Called by jit.c. */
#include "report/jit/jit.h"
#include "report/view/view.h"

#include <errno.h>
#include <stdlib.h>

static const char *const state_keys[] = {
#define LS_VMSTATE(letter, NAME, name, label) [LS_VMSTATE_##NAME] = name,
#include "formats/wire/vmstates.def"
#undef LS_VMSTATE
};

static const char *const reason_keys[] = {
#define LS_REASON(NAME, key, title, meaning) key,
#include "report/jit/reasons.def"
#undef LS_REASON
};

/* A key and a text that is made for it, NULL = no memory; frees it. */
static void put_made(struct ls_js *g, const char *key, char *text)
{
        if (text)
                ls_js_key_string(g, key, text);
        else
                g->failed = -ENOMEM;
        free(text);
}

static void put_ticks(const struct ls_jit *j, struct ls_js *g, uint64_t ticks)
{
        ls_js_key_u64(g, "ticks", ticks);
        ls_js_key_share(g, "share", ls_share(ticks, j->r.aggregate->ticks));
}

static void put_states(const struct ls_jit *j, struct ls_js *g)
{
        ls_js_key_open(g, "states", '[');
        for (unsigned i = 0; i < LS_NVMSTATES; i++) {
                ls_js_open(g, '{');
                ls_js_key_string(g, "vmstate", state_keys[i]);
                put_ticks(j, g, j->states[i]);
                ls_js_close(g, '}');
        }
        ls_js_close(g, ']');
}

static void put_reasons(const struct ls_jit *j, struct ls_js *g)
{
        ls_js_key_open(g, "uncompiled", '{');
        put_ticks(j, g, j->blame.ticks);
        ls_js_key_open(g, "reasons", '[');
        for (uint32_t i = 0; i < j->blame.n_rows; i++) {
                const struct ls_blame_row *row = &j->blame.rows[i];

                ls_js_open(g, '{');
                ls_js_key_string(g, "reason", reason_keys[row->reason]);
                ls_js_key(g, "attempt");        /* of "attempts" */
                if (row->attempt == LS_NO_ATTEMPT)
                        ls_js_null(g);
                else
                        ls_js_u64(g, row->attempt);
                put_ticks(j, g, row->ticks);
                ls_js_close(g, '}');
        }
        ls_js_close(g, ']');
        ls_js_close(g, '}');
}

static void put_attempt(const struct ls_jit *j, struct ls_js *g, uint32_t i)
{
        const struct ls_attempt *a = &j->r.profile->attempts[i];
        unsigned compiled = a->flags & LS_ATTEMPT_COMPILED;

        ls_js_open(g, '{');
        ls_js_key_string(g, "at", a->flags & LS_ATTEMPT_LOOP ? "loop"
                         : a->flags & LS_ATTEMPT_FUNCTION ? "function"
                         : a->flags & LS_ATTEMPT_SIDE ? "exit" : "other");
        put_made(g, "begins", ls_jit_place(j, a->start));
        put_made(g, "stops", ls_jit_place(j, a->stop));
        ls_js_key_bool(g, "compiled", compiled != 0);
        ls_js_key_bool(g, "given_up_for_good", (a->flags & LS_ATTEMPT_BLACKLISTED) != 0);
        put_made(g, "why", ls_jit_reason(j, i));
        ls_js_key_u64(g, "count", a->count);
        ls_js_key_u64(g, "bytecodes", a->bytecodes);
        ls_js_key_u64(g, "ns", a->ns);
        ls_js_key_u64(g, "ticks", j->blame.by_attempt[i]);
        ls_js_close(g, '}');
}

static void put_attempts(const struct ls_jit *j, struct ls_js *g)
{
        ls_js_key_open(g, "attempts", '[');
        for (uint32_t i = 0; i < j->r.profile->n_attempts; i++)
                put_attempt(j, g, i);
        ls_js_close(g, ']');
}

/* Where there are several of a number, the first has been thrown away. */
static void put_traces(const struct ls_jit *j, struct ls_js *g)
{
        const struct ls_profile *p = j->r.profile;

        ls_js_key_open(g, "traces", '[');
        for (uint32_t i = 0; i < j->n_order; i++) {
                const struct ls_jittrace *t = &p->jittraces[j->order[i]];

                ls_js_open(g, '{');
                ls_js_key_u64(g, "trace", t->number);
                ls_js_key_u64(g, "root", t->root);
                ls_js_key_u64(g, "parent", p->jittraces[t->parent].number);
                ls_js_key_u64(g, "exit", t->exit);
                put_made(g, "starts", ls_jit_start(j, j->order[i]));
                put_made(g, "goes_on_to", ls_jit_link(j, j->order[i]));
                ls_js_key_u64(g, "code_bytes", t->size);
                put_ticks(j, g, j->ticks[j->order[i]]);
                ls_js_close(g, '}');
        }
        ls_js_close(g, ']');
}

int ls_jit_json(const struct ls_jit *j)
{
        struct ls_js g = { .out = j->r.out, .indent = 2 };

        ls_js_open(&g, '{');
        ls_js_key_open(&g, "header", '{');
        ls_header_json(&j->r, &g);
        ls_js_close(&g, '}');
        put_states(j, &g);
        put_reasons(j, &g);
        put_attempts(j, &g);
        put_traces(j, &g);
        ls_js_close(&g, '}');
        return ls_js_result(&g, 0);
}
