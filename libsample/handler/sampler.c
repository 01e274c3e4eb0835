/* See sampler.h. */
#include "libsample/handler/sampler.h"

/* What a handler of the program's that interrupts this one adds is left, or taken: an exchange of
 * what is 0 mostly is dear. */
static uint32_t take(_Atomic uint32_t *n)
{
        return atomic_load_explicit(n, memory_order_relaxed)
                       ? atomic_exchange_explicit(n, 0, memory_order_relaxed)
                       : 0;
}

LS_HANDLER int ls_sampler_paused(struct ls_sampler *s, const struct ls_shm *shm)
{
        uint32_t traced = atomic_load_explicit(&shm->traced, memory_order_relaxed);
        int was = traced != s->traced || traced & 1;

        s->traced = traced;
        return was || atomic_load_explicit(&shm->paused, memory_order_relaxed);
}

LS_HANDLER void ls_ticks_take(struct ls_sampler *s, struct ls_ticks *t)
{
        t->sum = t->event = t->flags = 0;
        t->type = t->place = 0;
        for (int i = 0; i < LS_NVMSTATES; i++) {
                t->weight[i] = take(&s->pending[i]);
                t->sum += t->weight[i];
        }
        t->delayed = take(&s->delayed);
        t->time_ns = atomic_load_explicit(&s->last_time_ns, memory_order_relaxed);
        t->cpu_ns = atomic_load_explicit(&s->last_cpu_ns, memory_order_relaxed);
}
