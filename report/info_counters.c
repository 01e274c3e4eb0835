/* The program's counters, in luasample info: one line or object each. See info_counters.h. */
#include "report/info_counters.h"
#include "formats/escape.h"
#include "formats/real.h"
#include "formats/json.h"

#include <stdlib.h>
#include <string.h>

static void find_range(const struct ls_counter_series *s, double *ret_least, double *ret_most)
{
        *ret_least = *ret_most = s->counts[0].value;
        for (uint32_t i = 1; i < s->n; i++) {
                *ret_least = s->counts[i].value < *ret_least ? s->counts[i].value : *ret_least;
                *ret_most = s->counts[i].value > *ret_most ? s->counts[i].value : *ret_most;
        }
}

void ls_info_counters(FILE *out, const struct ls_profile *p)
{
        char last[LS_REAL_TEXT], least[LS_REAL_TEXT], most[LS_REAL_TEXT];
        double low, high;

        if (p->n_counters > 1)
                fprintf(out, "\nCounters\n%8s %9s %12s %12s %12s  %s\n", "pid", "values", "last",
                        "least", "most", "name");
        for (uint32_t i = 1; i < p->n_counters; i++) {
                const struct ls_counter_series *s = &p->counters[i];
                char *name = ls_visible(s->name.s, s->name.len);

                if (s->n) {
                        find_range(s, &low, &high);
                        fprintf(out, "%8u %9u %12s %12s %12s  %s\n", p->processes[s->process].pid,
                                s->n, ls_real_text(s->counts[s->n - 1].value, last),
                                ls_real_text(low, least), ls_real_text(high, most),
                                name ? name : "");
                }
                free(name);
        }
}

/* Of any size: ls_js_key_share is for shares. */
static void put_real(struct ls_js *g, const char *key, double value)
{
        ls_js_key(g, key);
        ls_js_real(g, value);
}

void ls_info_counters_json(struct ls_js *g, const struct ls_profile *p)
{
        double low, high;

        ls_js_key_open(g, "counters", '[');
        for (uint32_t i = 1; i < p->n_counters; i++) {
                const struct ls_counter_series *s = &p->counters[i];

                if (!s->n)
                        continue;
                find_range(s, &low, &high);
                ls_js_open(g, '{');
                ls_js_key_text(g, "name", s->name);
                ls_js_key_u64(g, "pid", p->processes[s->process].pid);
                ls_js_key_u64(g, "values", s->n);
                put_real(g, "last", s->counts[s->n - 1].value);
                put_real(g, "least", low);
                put_real(g, "most", high);
                ls_js_close(g, '}');
        }
        ls_js_close(g, ']');
}
