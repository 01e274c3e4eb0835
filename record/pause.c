/* When samples are wanted: see pause.h. */
#include "record/pause.h"

#include "record/session.h"

/* Memories that wait for a child get it too. */
static void tell_all(struct ls_session *s)
{
        uint32_t on = (uint32_t)s->pause.on;

        for (unsigned i = 0; i < s->n_targets; i++)
                atomic_store(&s->targets[i]->memory.shm->paused, on);
        for (unsigned i = 0; i < LS_SEATS; i++)
                if (s->registry.seats[i].target)
                        atomic_store(&s->registry.seats[i].target->memory.shm->paused, on);
        s->registry.paused = s->pause.on;
}

void ls_pause_begin(struct ls_session *s)
{
        uint64_t delay = s->o->delay_ns;

        s->pause = (struct ls_pause){ .on = delay != 0,
                                      .was_on = delay != 0,
                                      .since_ns = s->start_ns };
        if (delay && delay != LS_DELAY_FOREVER)
                s->pause.until_ns = s->start_ns + delay;
        tell_all(s);
}

void ls_pause_set(struct ls_session *s, int on)
{
        uint64_t now = ls_session_clock(CLOCK_MONOTONIC);

        s->pause.until_ns = 0;
        if (s->pause.on == on)
                return;
        s->pause.on = on;
        if (on) {
                s->pause.was_on = 1;
                s->pause.enabled_ns += now - s->pause.since_ns;
        } else {
                s->pause.since_ns = now;
        }
        tell_all(s);
}

void ls_pause_look(struct ls_session *s, uint64_t now_ns)
{
        if (!s->pause.until_ns || now_ns < s->pause.until_ns)
                return;
        s->pause.late_ns = now_ns - s->pause.until_ns;
        ls_pause_set(s, 0);
}

uint64_t ls_pause_enabled_ns(const struct ls_session *s)
{
        uint64_t to = s->end_ns ? s->end_ns : ls_session_clock(CLOCK_MONOTONIC);

        return s->pause.enabled_ns +
               (!s->pause.on && to > s->pause.since_ns ? to - s->pause.since_ns : 0);
}

uint64_t ls_pause_end(const struct ls_session *s)
{
        uint64_t delay = s->o->delay_ns == LS_DELAY_FOREVER ? 0 : s->o->delay_ns, end;

        delay += s->pause.late_ns;
        if (!s->o->duration_ns ||
            __builtin_add_overflow(s->start_ns + delay, s->o->duration_ns, &end))
                return UINT64_MAX;
        return end;
}
