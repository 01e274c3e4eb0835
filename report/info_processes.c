/* The processes of a trace, in luasample info: one line or object each. See info_processes.h. */
#include "report/info_processes.h"
#include "formats/escape.h"
#include "formats/json.h"

#include <inttypes.h>
#include <stdlib.h>

#define LINES_MOST 100u                 /* a fork storm has thousands; --json has them all */

static double seconds(uint64_t ns)
{
        return (double)ns / 1e9;
}

static void put_line(FILE *out, const struct ls_process *p, uint64_t start_ns)
{
        const struct ls_process_totals *t = &p->totals;
        uint64_t from = t->from_ns > start_ns ? t->from_ns - start_ns : 0;
        char *name = ls_visible(p->name.s, p->name.len);

        fprintf(out, "%8u %9" PRIu64 " %9" PRIu64 " %7" PRIu64 " %9.3f %7.2f%% %9.3f ", p->pid,
                t->samples, t->ticks, t->lost_ticks, seconds(t->cpu_ns),
                t->cpu_ns ? 100 * (double)t->own_ns / (double)t->cpu_ns : 0, seconds(from));
        if (t->to_ns > t->from_ns)
                fprintf(out, "%9.3f  %s\n", seconds(t->to_ns - t->from_ns), name ? name : "");
        else
                fprintf(out, "%9s  %s\n", "-", name ? name : "");
        free(name);
}

void ls_info_processes(FILE *out, const struct ls_profile *p)
{
        uint64_t start = ls_profile_u64(p, LS_INFO_START_MONOTONIC, 0);

        if (p->n_processes <= 2)
                return;
        fprintf(out, "\nProcesses\n%8s %9s %9s %7s %9s %8s %9s %9s  %s\n", "pid", "samples",
                "ticks", "lost", "CPU s", "agent", "from s", "for s", "command");
        for (uint32_t i = 1; i < p->n_processes && i <= LINES_MOST; i++)
                put_line(out, &p->processes[i], start);
        if (p->n_processes - 1 > LINES_MOST)
                fprintf(out, "and %u more (--json has them all)\n",
                        p->n_processes - 1 - LINES_MOST);
}

void ls_info_processes_json(struct ls_js *g, const struct ls_profile *p)
{
        ls_js_key_open(g, "processes", '[');
        for (uint32_t i = 1; i < p->n_processes; i++) {
                const struct ls_process *s = &p->processes[i];

                ls_js_open(g, '{');
                ls_js_key_u64(g, "pid", s->pid);
                ls_js_key_text(g, "name", s->name);
                ls_js_key_u64(g, "samples", s->totals.samples);
                ls_js_key_u64(g, "ticks", s->totals.ticks);
                ls_js_key_u64(g, "lost_ticks", s->totals.lost_ticks);
                ls_js_key_u64(g, "cpu_ns", s->totals.cpu_ns);
                ls_js_key_u64(g, "own_ns", s->totals.own_ns);
                ls_js_key_u64(g, "from_ns", s->totals.from_ns);
                ls_js_key_u64(g, "to_ns", s->totals.to_ns);
                ls_js_close(g, '}');
        }
        ls_js_close(g, ']');
}
