/* What the fuzz targets share: looks at all of a profile that views would index, and ends the
 * program where an id leads nowhere. */
#ifndef LS_TESTS_FUZZ_TOUCH_H
#define LS_TESTS_FUZZ_TOUCH_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/profile.h"
#include "formats/trace/reader.h"
#include "formats/trace/dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(int ok)
{
        if (!ok)
                abort();
}

static inline int touch_block(void *ctx, const struct ls_sample_block *b)
{
        const struct ls_profile *p = ctx;

        for (uint32_t i = 0; i < b->n; i++) {
                must(b->stack[i] < p->n_stacks && b->zone[i] < p->n_zones &&
                     b->thread[i] < p->n_threads);
                must(b->vm[i] < p->n_vms && b->coroutine[i] < p->n_coroutines &&
                     b->vmstate[i] < LS_NVMSTATES);
                must(b->label[i] < p->n_sample_labels);
        }
        return 0;
}

static inline void touch_str(struct ls_str s)
{
        must(s.s && s.s[s.len] == '\0');
}

static inline int touch_record(void *ctx, uint64_t chunk, uint64_t offset, const char *kind,
                        const struct ls_dump_field *fields, unsigned n)
{
        volatile unsigned char *sink = ctx;

        (void)chunk;
        (void)offset;
        must(kind != NULL);
        for (unsigned i = 0; i < n; i++)
                if (!fields[i].is_u64 && fields[i].str.len)
                        *sink ^= (unsigned char)fields[i].str.s[fields[i].str.len - 1];
        return 0;
}

static inline void touch_tables(const struct ls_profile *p)
{
        for (uint32_t i = 0; i < p->n_functions; i++) {
                must(p->functions[i].source < p->n_sources &&
                     p->functions[i].mapping < p->n_mappings);
                touch_str(p->functions[i].name);
        }
        for (uint32_t i = 0; i < p->n_sources; i++) {
                touch_str(p->sources[i].name);
                touch_str(p->sources[i].path);
                touch_str(p->sources[i].text);
        }
        for (uint32_t i = 0; i < p->n_locations; i++)
                must(p->locations[i].function < p->n_functions);
        for (uint32_t i = 1; i < p->n_stacks; i++)
                must(p->stacks[i].parent < i && p->stacks[i].location < p->n_locations);
        for (uint32_t i = 1; i < p->n_zones; i++) {
                must(p->zones[i].parent < i);
                touch_str(p->zones[i].name);
        }
        for (uint32_t i = 0; i < p->n_threads; i++) {
                must(p->threads[i].process < p->n_processes);
                touch_str(p->threads[i].name);
        }
        for (uint32_t i = 0; i < p->n_vms; i++)
                must(p->vms[i].process < p->n_processes);
        for (uint32_t i = 0; i < p->n_coroutines; i++)
                must(p->coroutines[i].vm < p->n_vms && p->coroutines[i].function < p->n_functions);
        for (uint32_t i = 0; i < p->n_mappings; i++)
                touch_str(p->mappings[i].build_id);
        for (uint32_t i = 0; i < p->n_infos; i++)
                touch_str(p->infos[i].key);
        for (uint32_t i = 0; i < p->n_regions; i++)
                must(p->regions[i].thread < p->n_threads);
        must(p->lost_stack < p->n_stacks);
}

/* What the program says of itself. */
static inline void touch_said(const struct ls_profile *p)
{
        for (uint32_t i = 1; i < p->n_sample_labels; i++) {
                must(p->sample_labels[i].parent < i);
                touch_str(p->sample_labels[i].key);
                touch_str(p->sample_labels[i].value);
        }
        for (uint32_t i = 0; i < p->n_marks; i++) {
                must(p->marks[i].thread < p->n_threads);
                touch_str(p->marks[i].name);
        }
        for (uint32_t i = 1; i < p->n_counters; i++) {
                const struct ls_counter_series *s = &p->counters[i];

                must(s->process < p->n_processes);
                touch_str(s->name);
                for (uint32_t k = 0; k < s->n; k++)
                        must(isfinite(s->counts[k].value) &&
                             (!k || s->counts[k].time_ns >= s->counts[k - 1].time_ns));
        }
}

/* All of it. */
static inline void touch_profile(struct ls_profile *p)
{
        unsigned char sink = 0;

        touch_tables(p);
        touch_said(p);
        must(ls_profile_samples(p, LS_COL_TIME, touch_block, p) == 0);
        must(ls_profile_dump(p, touch_record, &sink) == 0);
}

/* The trace that the recorder has written into fd: it is whole. */
static inline void touch_trace(int fd)
{
        struct ls_profile *profile = NULL;
        const char *error = NULL;
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        must(ls_profile_open(path, &profile, &error) == 0);
        must(profile->n_damages == 0);
        touch_profile(profile);
        ls_profile_close(profile);
}

/* A recorder's notice. */
static inline void touch_notice(void *ctx, const char *text)
{
        (void)ctx;
        must(strlen(text) < 4096);
}

#endif
