/* Profiles made in memory for the tests of views and exporters: n functions in one file, random or
 * given stacks. */
#ifndef LS_TESTS_PROFILE_FIXTURE_H
#define LS_TESTS_PROFILE_FIXTURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/profile.h"

struct fixture {
        struct ls_profile p;
        uint64_t *self;                 /* [n_stacks] */
        uint64_t random;
};

static inline struct ls_str fixture_str(const char *s)
{
        return (struct ls_str){ s, (uint32_t)strlen(s) };
}

static inline uint32_t fixture_random(struct fixture *f, uint32_t below)
{
        f->random = f->random * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)((f->random >> 33) % below);
}

#define ROWS(n, type) calloc((size_t)(n), sizeof(type))

/* Functions 1..n_functions "f1".., each with 2 lines; stacks 1..n_stacks with random callers:
 * recursion of all kinds comes with few functions. */
static inline void fixture_make(struct fixture *f, uint32_t n_functions, uint32_t n_stacks,
                                uint64_t seed)
{
        static char names[64][8];
        struct ls_profile *p = &f->p;

        memset(f, 0, sizeof(*f));
        f->random = seed;
        p->interval_ns = 1000000;
        p->sources = ROWS(2, struct ls_source);
        p->n_sources = 2;
        for (int i = 0; i < 2; i++)
                p->sources[i] = (struct ls_source){ .name = fixture_str(i ? "@dir/app.lua" : ""),
                                                    .path = fixture_str(""),
                                                    .text = fixture_str("") };
        p->mappings = ROWS(1, struct ls_mapping);
        p->mappings[0].path = p->mappings[0].build_id = fixture_str("");
        p->n_mappings = 1;
        p->zones = ROWS(1, struct ls_zone);
        p->zones[0].name = fixture_str("");
        p->n_zones = 1;
        p->n_functions = n_functions + 1;
        p->functions = ROWS(p->n_functions, struct ls_function);
        p->functions[0].name = fixture_str("");
        for (uint32_t i = 1; i <= n_functions; i++) {
                snprintf(names[i], sizeof(names[i]), "f%u", i);
                p->functions[i] = (struct ls_function){ .kind = LS_FUNC_LUA,
                                                        .source = 1,
                                                        .first_line = i * 10,
                                                        .last_line = i * 10 + 5,
                                                        .name = fixture_str(names[i]) };
        }
        p->n_locations = 2 * n_functions + 1;
        p->locations = ROWS(p->n_locations, struct ls_location);
        for (uint32_t i = 1; i < p->n_locations; i++)
                p->locations[i] = (struct ls_location){ (i + 1) / 2, (i + 1) / 2 * 10 + i % 2 };
        p->n_stacks = n_stacks + 1;
        p->stacks = ROWS(p->n_stacks + 1, struct ls_stack);
        f->self = ROWS(p->n_stacks + 1, uint64_t);
        for (uint32_t i = 1; i <= n_stacks; i++) {
                uint32_t parent = i < 3 ? 0
                                  : fixture_random(f, 4)
                                          ? i - 1 - fixture_random(f, i - 1 < 6 ? i - 1 : 6)
                                          : fixture_random(f, i);

                p->stacks[i] = (struct ls_stack){ parent, 1 + fixture_random(f, p->n_locations - 1),
                                                  p->stacks[parent].depth + 1 };
                f->self[i] = fixture_random(f, 3) ? fixture_random(f, 50) : 0;
        }
}

static inline void fixture_free(struct fixture *f)
{
        free(f->p.sources);
        free(f->p.mappings);
        free(f->p.zones);
        free(f->p.functions);
        free(f->p.locations);
        free(f->p.stacks);
        free(f->self);
}

/* Ticks during which each function was on the stack, by walking every stack: what all else is
 * compared with. */
static inline uint64_t *fixture_totals(const struct fixture *f)
{
        uint64_t *total = ROWS(f->p.n_functions + 1, uint64_t);

        for (uint32_t i = 1; i < f->p.n_stacks; i++) {
                uint8_t seen[64] = { 0 };

                for (uint32_t at = i; at; at = f->p.stacks[at].parent) {
                        uint32_t function = f->p.locations[f->p.stacks[at].location].function;

                        if (!seen[function])
                                total[function] += f->self[i];
                        seen[function] = 1;
                }
        }
        return total;
}

#endif
