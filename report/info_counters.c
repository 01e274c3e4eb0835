/* The program's counters, in luasample info: one line or object each. See info_counters.h. */
#include "report/info_counters.h"
#include "formats/escape.h"
#include "formats/real.h"
#include "report/view/json.h"

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
                fprintf(out, "\nCounters\n%8s %9s %12s %12s %12s  %s\n", "pid", "values", "last", "least", "most", "name");
        for (uint32_t i = 1; i < p->n_counters; i++) {
                const struct ls_counter_series *s = &p->counters[i];
                char *name = ls_visible(s->name.s, s->name.len);

                if (s->n) {
                        find_range(s, &low, &high);
                        fprintf(out, "%8u %9u %12s %12s %12s  %s\n", p->processes[s->process].pid, s->n,
                                ls_real_text(s->counts[s->n - 1].value, last), ls_real_text(low, least),
                                ls_real_text(high, most), name ? name : "");
                }
                free(name);
        }
}

/* Of any size: ls_json_double is for shares. */
static void put_real(yajl_gen g, const char *key, double value)
{
        char text[LS_REAL_TEXT];

        ls_json_key(g, key);
        ls_real_text(value, text);
        yajl_gen_number(g, text, strlen(text));
}

void ls_info_counters_json(yajl_gen g, const struct ls_profile *p)
{
        double low, high;

        ls_json_key(g, "counters");
        yajl_gen_array_open(g);
        for (uint32_t i = 1; i < p->n_counters; i++) {
                const struct ls_counter_series *s = &p->counters[i];

                if (!s->n)
                        continue;
                find_range(s, &low, &high);
                yajl_gen_map_open(g);
                ls_json_text(g, "name", s->name);
                ls_json_u64(g, "pid", p->processes[s->process].pid);
                ls_json_u64(g, "values", s->n);
                put_real(g, "last", s->counts[s->n - 1].value);
                put_real(g, "least", low);
                put_real(g, "most", high);
                yajl_gen_map_close(g);
        }
        yajl_gen_array_close(g);
}
