/* The states of the VM over time, for views that draw them. Called by the terminal browser; the
 * page has them in its cells. */
#include "report/jit/jit.h"
#include "formats/trace/reader.h"

#include <errno.h>

struct pass {
        const struct ls_filter *filter;
        struct ls_jit_times *times;
};

static int take_block(void *ctx, const struct ls_sample_block *b)
{
        const struct pass *s = ctx;
        struct ls_jit_times *t = s->times;
        double length = (double)(t->to_ns - t->from_ns);

        for (uint32_t i = 0; i < b->n; i++) {
                uint64_t ns = b->time_ns[i] > t->from_ns ? b->time_ns[i] - t->from_ns : 0;
                unsigned state = b->vmstate[i] < LS_NVMSTATES ? b->vmstate[i]
                                                              : LS_VMSTATE_INTERPRETED;
                unsigned part = (unsigned)((double)ns / length * LS_JIT_PARTS);

                if (!s->filter->events[b->event[i]] || !ls_filter_wants(s->filter, b, i))
                        continue;
                part = part < LS_JIT_PARTS ? part : LS_JIT_PARTS - 1;
                t->ticks[part][state] += b->weight[i];
        }
        return 0;
}

int ls_jit_times_read(const struct ls_jit *j, struct ls_jit_times *ret)
{
        const struct ls_filter *f = j->r.filter;
        struct pass s = { f, ret };
        uint64_t elapsed;
        int error;

        *ret = (struct ls_jit_times){ .from_ns = 0 };
        error = ls_filter_times(j->r.profile, 1, &ret->start_ns, &elapsed);
        if (error)
                return error;
        ret->from_ns = f->has_time ? f->from_ns : ret->start_ns;
        ret->to_ns = f->has_time && f->to_ns < ret->start_ns + elapsed ? f->to_ns
                                                                       : ret->start_ns + elapsed;
        if (ret->to_ns <= ret->from_ns)
                ret->to_ns = ret->from_ns + 1;
        return ls_profile_samples(j->r.profile, LS_COL_TIME | f->columns, take_block, &s);
}
