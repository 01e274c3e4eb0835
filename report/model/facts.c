/* What the trace says about the recording as a whole. Used by the header of report and by info. */
#include "report/model/facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/wire/kinds.h"

static void read_losses(struct ls_facts *f, const struct ls_profile *p)
{
        static const struct { const char *key, *info, *label; } losses[] = {
#define LS_LOSS(NAME, key, unit, counted, part, label) { key, "lost." key, label },
#include "formats/wire/losses.def"
#undef LS_LOSS
        };
        _Static_assert(LS_NLOSSES <= 32, "room for all losses");

        for (unsigned i = 0; i < LS_NLOSSES; i++) {
                struct ls_loss_fact *l = &f->losses[f->n_losses++];

                l->key = losses[i].key;
                l->label = losses[i].label;
                l->is_ticks = LS_LOSSES_OF_TICKS >> i & 1;
                l->is_stack = LS_LOSSES_OF_STACKS >> i & 1;
                l->count = ls_profile_u64_of(p, losses[i].info, 0);
                if (l->is_ticks)
                        f->lost_ticks += l->count;
        }
}

/* Each reason with its share. Ticks that were lost are of the ticks; stacks that lack a part are of
 * the samples. */
static void read_shares(struct ls_facts *f)
{
        for (unsigned i = 0; i < f->n_losses; i++) {
                struct ls_loss_fact *l = &f->losses[i];
                uint64_t whole = l->is_ticks || (l->is_stack && LS_LOSSES_IN_TICKS >> i & 1)
                                         ? f->ticks
                                 : l->is_stack ? f->samples
                                               : 0;

                l->share = whole ? (double)l->count / (double)whole : 0;
                if (l->is_ticks || l->is_stack)
                        f->incomplete_share += l->share;
        }
        if (f->incomplete_share > 1)
                f->incomplete_share = 1;
}

void ls_facts_init(struct ls_facts *f, const struct ls_profile *p)
{
        uint64_t own;

        memset(f, 0, sizeof(*f));
        f->asked_ns = ls_profile_u64(p, LS_INFO_ASKED_INTERVAL, p->interval_ns);
        f->elapsed_ns = ls_profile_u64(p, LS_INFO_ELAPSED, 0);
        f->samples = ls_profile_u64(p, LS_INFO_SAMPLES, p->recorded_samples);
        f->sample_ticks = p->recorded_ticks;
        read_losses(f, p);
        f->ticks = ls_profile_u64(p, LS_INFO_TICKS, f->sample_ticks + f->lost_ticks);
        f->cpu_ns = ls_profile_u64(p, LS_INFO_CPU, 0);
        own = ls_profile_u64(p, LS_INFO_OWN_HANDLER, 0) + ls_profile_u64(p, LS_INFO_OWN_HOOK, 0);
        if (f->cpu_ns)
                f->own_share = (double)own / (double)f->cpu_ns;
        /* The totals of a trace without an end are up to a minute older than its samples. */
        if (!ls_profile_u64(p, LS_INFO_COMPLETE, 0) && f->ticks < f->sample_ticks + f->lost_ticks) {
                f->ticks = f->sample_ticks + f->lost_ticks;
                f->samples = p->recorded_samples;
                f->cpu_ns = f->elapsed_ns = 0;
        }
        if (!f->cpu_ns)
                f->cpu_ns = (uint64_t)((double)f->ticks * (double)f->asked_ns);
        if (f->cpu_ns)
                f->achieved_hz = (double)f->samples * 1e9 / (double)f->cpu_ns;
        read_shares(f);
}

const char *ls_duration_text(uint64_t ns, char *buf, unsigned size)
{
        if (ns >= 1000000000u)
                snprintf(buf, size, "%.2f s", (double)ns / 1e9);
        else if (ns >= 1000000 && ns % 1000000 == 0)
                snprintf(buf, size, "%" PRIu64 " ms", ns / 1000000);
        else if (ns >= 1000000)
                snprintf(buf, size, "%.2f ms", (double)ns / 1e6);
        else if (ns >= 1000 && ns % 1000 == 0)
                snprintf(buf, size, "%" PRIu64 " us", ns / 1000);
        else if (ns >= 1000)
                snprintf(buf, size, "%.2f us", (double)ns / 1e3);
        else
                snprintf(buf, size, "%" PRIu64 " ns", ns);
        return buf;
}
