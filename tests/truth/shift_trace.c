/* Writes a trace again with each sample's weight moved to the next stack, zone and VM state:
 * shift_trace IN OUT [N]. N: to the Nth stack and zone after it; shares that go round in a circle
 * may be as they were with some N. The truth tests must fail on what it writes; else they prove
 * nothing. */
#include "formats/profile.h"
#include "formats/trace/writer.h"
#include "formats/trace/reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct shift {
        struct ls_profile *p;
        struct ls_trace_writer *w;
        uint32_t *source, *function, *location, *stack, *zone;  /* new ids by old ones */
        uint32_t *stack_to, *zone_to;           /* old id -> old id of the next that has samples */
        uint8_t *stack_used, *zone_used;
        uint8_t state_used[LS_NVMSTATES], state_to[LS_NVMSTATES];
        uint32_t thread, vm;
};

static uint32_t string(struct shift *s, struct ls_str str)
{
        return str.len ? ls_trace_string(s->w, str.s, str.len) : 0;
}

static void *array(uint32_t n)
{
        void *a = calloc((size_t)n + 1, sizeof(uint32_t));

        if (!a) {
                fprintf(stderr, "shift_trace: no memory\n");
                exit(1);
        }
        return a;
}

static void copy_tables(struct shift *s)
{
        const struct ls_profile *p = s->p;
        uint32_t process;

        for (uint32_t i = 1; i < p->n_sources; i++) {
                struct ls_source_def def = {
                        .name = string(s, p->sources[i].name), .text_hash = p->sources[i].text_hash,
                        .size = p->sources[i].size, .path = string(s, p->sources[i].path),
                };
                s->source[i] = ls_trace_source(s->w, &def);
        }
        for (uint32_t i = 1; i < p->n_functions; i++) {
                const struct ls_function *f = &p->functions[i];
                int named = f->kind != LS_FUNC_LUA && f->kind != LS_FUNC_C;
                struct ls_function_def def = {
                        .kind = f->kind,
                        .flags = f->flags,
                        .source = s->source[f->source],
                        .hash = f->hash,
                        .first_line = f->first_line,
                        .last_line = f->last_line,
                        .offset = f->offset,
                        .identity_name = named ? string(s, f->name) : 0,
                };
                s->function[i] = ls_trace_function(s->w, &def);
                if (f->name.len && !named)
                        ls_trace_name(s->w, s->function[i], (enum ls_name_rank)f->name_rank,
                                      string(s, f->name));
        }
        for (uint32_t i = 1; i < p->n_locations; i++)
                s->location[i] = ls_trace_location(s->w, s->function[p->locations[i].function],
                                                   p->locations[i].line);
        for (uint32_t i = 1; i < p->n_stacks; i++)
                s->stack[i] = ls_trace_stack(s->w, s->stack[p->stacks[i].parent],
                                             s->location[p->stacks[i].location]);
        for (uint32_t i = 1; i < p->n_zones; i++)
                s->zone[i] = ls_trace_zone(s->w, s->zone[p->zones[i].parent],
                                           string(s, p->zones[i].name));
        process = ls_trace_process(s->w, 1, 0);
        s->thread = ls_trace_thread(s->w, process, 1, 0);
        s->vm = ls_trace_vm(s->w, process, 1, 0);
        ls_trace_event(s->w, LS_EVENT_CPU, p->interval_ns);
        for (uint32_t i = 0; i < p->n_infos; i++) {
                if (p->infos[i].is_u64)
                        ls_trace_info_u64(s->w, p->infos[i].key.s, p->infos[i].u64);
                else
                        ls_trace_info_str(s->w, p->infos[i].key.s, p->infos[i].str.s);
        }
}

static int note_used(void *ctx, const struct ls_sample_block *b)
{
        struct shift *s = ctx;

        for (uint32_t i = 0; i < b->n; i++) {
                s->stack_used[b->stack[i]] = 1;
                s->zone_used[b->zone[i]] = 1;
                s->state_used[b->vmstate[i]] = 1;
        }
        return 0;
}

/* The used id that is so many steps after i, round; i itself when it is the only one. */
static uint32_t next_used(const uint8_t *used, uint32_t n, uint32_t i, int steps)
{
        for (uint32_t k = 1; k <= n; k++)
                if (used[(i + k) % n] && (--steps == 0 || k == n))
                        return (i + k) % n;
        return i;
}

static int write_shifted(void *ctx, const struct ls_sample_block *b)
{
        struct shift *s = ctx;

        for (uint32_t i = 0; i < b->n; i++) {
                struct ls_sample_row row = {
                        .event = b->event[i],
                        .vmstate = s->state_to[b->vmstate[i]],
                        .flags = b->flags[i] & (uint8_t)~LS_SAMPLE_CONT,
                        .thread = s->thread,
                        .vm = s->vm,
                        .zone = s->zone[s->zone_to[b->zone[i]]],
                        .stack = s->stack[s->stack_to[b->stack[i]]],
                        .time_ns = b->time_ns[i],
                        .weight = b->weight[i],
                };
                ls_trace_sample(s->w, &row);
        }
        return ls_trace_flush(s->w, 0, 0);
}

int main(int argc, char **argv)
{
        struct shift s = { 0 };
        const char *error;
        int fd, r, steps = argc > 3 ? atoi(argv[3]) : 1;

        if (argc < 3 || argc > 4 || steps < 1) {
                fprintf(stderr, "usage: shift_trace IN OUT [N]\n");
                return 129;
        }
        if (ls_profile_open(argv[1], &s.p, &error)) {
                fprintf(stderr, "shift_trace: %s: %s\n", argv[1], error);
                return 1;
        }
        fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0 || ls_trace_writer_open(fd, s.p->interval_ns, &s.w)) {
                perror(argv[2]);
                return 1;
        }
        s.source = array(s.p->n_sources);
        s.function = array(s.p->n_functions);
        s.location = array(s.p->n_locations);
        s.stack = array(s.p->n_stacks);
        s.zone = array(s.p->n_zones);
        s.stack_to = array(s.p->n_stacks);
        s.zone_to = array(s.p->n_zones);
        s.stack_used = array(s.p->n_stacks);
        s.zone_used = array(s.p->n_zones);
        copy_tables(&s);
        r = ls_profile_samples(s.p, 0, note_used, &s);
        for (uint32_t i = 0; i < s.p->n_stacks; i++)
                s.stack_to[i] = next_used(s.stack_used, s.p->n_stacks, i, steps);
        for (uint32_t i = 0; i < s.p->n_zones; i++)
                s.zone_to[i] = next_used(s.zone_used, s.p->n_zones, i, steps);
        for (uint32_t i = 0; i < LS_NVMSTATES; i++)
                s.state_to[i] = (uint8_t)next_used(s.state_used, LS_NVMSTATES, i, 1);
        if (!r)
                r = ls_profile_samples(s.p, LS_COL_TIME, write_shifted, &s);
        if (!r)
                r = ls_trace_writer_close(s.w);
        else
                ls_trace_writer_close(s.w);
        if (r)
                fprintf(stderr, "shift_trace: %s: %s\n", argv[2], strerror(-r));
        close(fd);
        ls_profile_close(s.p);
        free(s.source);
        free(s.function);
        free(s.location);
        free(s.stack);
        free(s.zone);
        free(s.stack_to);
        free(s.zone_to);
        free(s.stack_used);
        free(s.zone_used);
        return r ? 1 : 0;
}
