/* Exporter "firefox": the program's counters. See firefox.h. */
#include "formats/export/firefox.h"

#include <float.h>
#include <math.h>

static void put_counter_column(struct ls_fx *x, const struct ls_counter_series *s, int values)
{
        double before = 0;
        uint64_t ns;

        ls_js_key_open(&x->j, values ? "count" : "time", '[');
        for (uint32_t k = 0; k < s->n; k++) {
                double change = s->counts[k].value - before;

                if (!ls_export_has_count(x->t->in, s, k, &ns))
                        continue;
                before = s->counts[k].value;
                if (!values)
                        ls_js_millionths(&x->j, ns > x->t->zero_ns ? ns - x->t->zero_ns : 0);
                else
                        ls_js_real(&x->j, isfinite(change) ? change : copysign(DBL_MAX, change));
        }
        ls_js_close(&x->j, ']');
}

static uint32_t count_shown(const struct ls_fx *x, const struct ls_counter_series *s)
{
        uint32_t n = 0;
        uint64_t ns;

        for (uint32_t k = 0; k < s->n; k++)
                n += ls_export_has_count(x->t->in, s, k, &ns) != 0;
        return n;
}

/* Samples of a counter are changes, which the profiler adds up. Of its kinds only memory is a
 * level: the others are rates. So it draws these in bytes. */
void ls_fx_put_counters(struct ls_fx *x)
{
        if (x->p->n_counters <= 1)
                return;
        ls_js_key_open(&x->j, "counters", '[');
        for (uint32_t i = 1; i < x->p->n_counters; i++) {
                const struct ls_counter_series *s = &x->p->counters[i];
                int64_t thread = ls_timeline_thread_of(x->t, s->process);
                uint32_t n = thread < 0 ? 0 : count_shown(x, s);
                char pid[16];

                if (!n)
                        continue;
                snprintf(pid, sizeof(pid), "%u", x->p->processes[s->process].pid);
                ls_js_open(&x->j, '{');
                ls_js_key(&x->j, "name");
                ls_js_text(&x->j, s->name);
                ls_js_key_string(&x->j, "category", "Memory");
                ls_js_key_string(&x->j, "description",
                                 s->what ? "What ticks read of a VM's heap or collector."
                                         : "A number that the program said with "
                                           "luasample.counter().");
                ls_js_key_string(&x->j, "pid", pid);
                ls_js_key_u64(&x->j, "mainThreadIndex", (uint64_t)thread);
                ls_js_key_open(&x->j, "samples", '{');
                ls_js_key_u64(&x->j, "length", n);
                put_counter_column(x, s, 0);
                put_counter_column(x, s, 1);
                ls_js_close(&x->j, '}');
                ls_js_close(&x->j, '}');
        }
        ls_js_close(&x->j, ']');
}
