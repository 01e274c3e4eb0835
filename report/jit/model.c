/* What luasample jit shows, from the samples: time by state and trace, and why time is not in
 * compiled code. Called by jit.c, the page and the terminal browser. */
#include "report/jit/jit.h"

#include <errno.h>
#include <stdlib.h>

static const uint64_t *ticks_to_sort;

static int more_ticks(const void *a, const void *b)
{
        const uint32_t *x = a, *y = b;

        if (ticks_to_sort[*x] != ticks_to_sort[*y])
                return ticks_to_sort[*x] > ticks_to_sort[*y] ? -1 : 1;
        return *x < *y ? -1 : *x > *y;
}

static int sum(struct ls_jit *j)
{
        const struct ls_aggregate *a = j->r.aggregate;
        uint32_t n = j->r.profile->n_jittraces;

        j->ticks = calloc((size_t)n + 1, sizeof(*j->ticks));
        j->order = calloc((size_t)n + 1, sizeof(*j->order));
        if (!j->ticks || !j->order)
                return -ENOMEM;
        for (size_t i = 0; i < a->n_cells; i++) {
                const struct ls_cell *c = &a->cells[i];

                j->states[c->vmstate < LS_NVMSTATES ? c->vmstate : LS_VMSTATE_INTERPRETED] +=
                        c->ticks;
                j->ticks[c->trace] += c->ticks;
        }
        for (uint32_t i = 1; i < n; i++)
                if (j->ticks[i])
                        j->order[j->n_order++] = i;
        ticks_to_sort = j->ticks;
        qsort(j->order, j->n_order, sizeof(*j->order), more_ticks);
        return 0;
}

int ls_jit_init(struct ls_jit *j, const char *line)
{
        int error;

        j->text = calloc(1, sizeof(*j->text));
        error = j->text ? ls_aggregate_new(j->r.profile, j->r.filter,
                                           LS_DIM_VMSTATE | LS_DIM_TRACE, &j->own)
                        : -ENOMEM;
        j->r.aggregate = j->r.events[0] = j->own;
        j->ticks_before = error ? 0 : j->own->ticks;
        if (!error && line && j->own->ticks)
                error = ls_jit_narrow(&j->r, j->own, line);
        if (!error)
                error = sum(j);
        return error ? error : ls_blame_new(j->r.profile, j->own, &j->blame);
}

void ls_jit_done(struct ls_jit *j)
{
        ls_blame_done(&j->blame);
        if (j->text)
                ls_source_done(&j->text->t);
        free(j->text);
        free(j->ticks);
        free(j->order);
        ls_aggregate_free(j->own);
        j->ticks = NULL;
        j->order = NULL;
        j->own = NULL;
        j->text = NULL;
        j->r.aggregate = j->r.events[0] = NULL;
}
