/* The VMs whose bytecodes are counted, and what stands in for the function of LuaJIT's that
 * rewrites their dispatch tables. */
#include <stdatomic.h>
#include <string.h>

#include "libsample/agent.h"
#include "libsample/exact/private.h"
#include "libsample/exact/update.h"
#include "libsample/handler/walk.h"
#include "libsample/pages.h"

#define NUMBERS 65536u                  /* of traces: they have 16 bits */

static _Atomic(struct ls_exact *) all;  /* never freed: those that were closed are used again */

/* Any context: LuaJIT's own profiler changes the tables in its signal handler. */
struct ls_exact *ls_exact_of(const char *global)
{
        for (struct ls_exact *x = atomic_load(&all); x; x = x->next)
                if (__atomic_load_n(&x->global, __ATOMIC_ACQUIRE) == global)
                        return x;
        return NULL;
}

void ls_exact_updated(const char *global)
{
        struct ls_exact *x = ls_exact_of(global);

        if (!x)
                return;
        x->figures.updates++;
        ls_exact_apply(x);
}

static int make(struct ls_exact *x)
{
        x->exits = ls_pages_new(NUMBERS * sizeof *x->exits);
        x->returns = ls_pages_new(NUMBERS * sizeof *x->returns);
        x->trace_id = ls_pages_new(NUMBERS * sizeof *x->trace_id);
        return x->exits && x->returns && x->trace_id ? 0 : -1;
}

/* One that is not used, or a new one. */
static struct ls_exact *take(void)
{
        struct ls_exact *x, *first;

        for (x = atomic_load(&all); x; x = x->next) {
                const char *none = NULL;

                if (__atomic_compare_exchange_n(&x->global, &none, (const char *)x, 0,
                                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                        return x;
        }
        x = ls_pages_new(sizeof *x);
        if (!x)
                return NULL;
        x->global = (const char *)x;
        first = atomic_load(&all);
        do
                x->next = first;
        while (!atomic_compare_exchange_weak(&all, &first, x));
        return x;
}

struct ls_exact *ls_exact_open(lua_State *L, uint32_t vm_id, unsigned want, const char **ret_why)
{
        const char *global = LS_READ(const char *, L, LS_L_GLREF);
        int calls = want == LS_EXACT_ALL,
            time = want == LS_EXACT_TIME || want == LS_EXACT_TIME_TRIAL;
        struct ls_exact *x;

        *ret_why = ls_exact_facts.why ? ls_exact_facts.why
                   : !ls_exact_head   ? "there is no memory for counts"
                                      : NULL;
        if (*ret_why)
                return NULL;
        *ret_why = "there is no memory for the stubs";
        x = take();
        if (!x)
                return NULL;
        x->vm_id = vm_id;
        x->table = (void **)(uintptr_t)(global + ls_exact_facts.table);
        x->fixed = (void **)((char *)x->table + ls_exact_facts.fixed);
        if (calls)
                x->callers = ls_exact_callers_new();
        if (time)
                x->times = ls_exact_times_new(want == LS_EXACT_TIME_TRIAL);
        if ((x->exits || !make(x)) && (!calls || x->callers) && (!time || x->times))
                *ret_why = ls_exact_make_stubs(x);
        if (*ret_why) {
                ls_exact_callers_free(x->callers);
                ls_exact_times_free(x->times);
                x->callers = NULL;
                x->times = NULL;
                __atomic_store_n(&x->global, NULL, __ATOMIC_RELEASE);
                return NULL;
        }
        __atomic_store_n(&x->global, global, __ATOMIC_RELEASE);
        ls_exact_apply(x);
        return x;
}

void ls_exact_close(struct ls_exact *x)
{
        ls_exact_take_returns(x, 0, UINTPTR_MAX);
        memset(x->exits, 0, NUMBERS * sizeof *x->exits);
        memset(x->trace_id, 0, NUMBERS * sizeof *x->trace_id);
        ls_exact_sites_flushed(x);
        ls_exact_free_stubs(x);
        ls_exact_callers_free(x->callers);
        x->callers = NULL;
        ls_exact_times_free(x->times);
        x->times = NULL;
        memset(&x->tail, 0, sizeof x->tail);
        x->nevents = x->nsnaps = 0;
        memset(&x->figures, 0, sizeof x->figures);
        __atomic_store_n(&x->global, NULL, __ATOMIC_RELEASE);
}

void ls_exact_closed(const char *global, uint32_t vm_id)
{
        for (struct ls_exact *x = atomic_load(&all); x; x = x->next)
                if (__atomic_load_n(&x->global, __ATOMIC_ACQUIRE) == global && x->vm_id == vm_id)
                        ls_exact_close(x);
}

const struct ls_exact_figures *ls_exact_figures(const struct ls_exact *x)
{
        return &x->figures;
}
