/* Two profiles with one set of ids, as the page needs them: what only the earlier one has is added to the tables of the later
 * one, behind its own entries, so that all that refers to these stays as it is. Strings stay the earlier one's. Called by
 * diff_html.c. */
#include "report/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#include <uthash.h>

struct known {                          /* an entry of a table of the later profile, by what it is */
        uint64_t key;
        uint32_t id;
        int failed;
        UT_hash_handle hh;
};

struct join {
        const struct ls_diff *d;        /* runs[0]: the earlier; runs[1]: the later */
        const struct ls_profile *from;
        struct ls_profile *to;
        struct known *known;
        uint32_t *source_at, *function_at;      /* ids of the later one by shared number, 0 = it has none */
        uint32_t *sources, *functions, *mappings, *locations, *stacks, *zones, *threads;        /* by id of the earlier one */
        uint32_t cap_sources, cap_functions, cap_mappings, cap_locations, cap_stacks, cap_zones, cap_threads;
};

/* Makes room for one more entry of a table of the later profile. */
static int room(void *table, uint32_t n, uint32_t *cap, size_t size)
{
        uint32_t want = n + n / 2 + 64;
        void *old, *bigger;

        if (n < *cap)
                return 0;
        memcpy(&old, table, sizeof(old));
        bigger = n < INT32_MAX ? reallocarray(old, want, size) : NULL;
        if (!bigger)
                return -ENOMEM;
        memcpy(table, &bigger, sizeof(bigger));
        *cap = want;
        return 0;
}

/* Appends an entry; its id is n - 1. */
#define APPEND(j, name, ...) \
        (room(&(j)->to->name, (j)->to->n_##name, &(j)->cap_##name, sizeof(*(j)->to->name)) \
                 ? -ENOMEM : ((j)->to->name[(j)->to->n_##name++] = (__VA_ARGS__), 0))

static uint64_t key_two(char kind, uint32_t a, uint32_t b)
{
        return ls_match_key_u64((uint64_t)(unsigned char)kind, (uint64_t)a << 32 | b);
}

static uint64_t key_zone(const struct ls_zone *z, uint32_t parent)
{
        return ls_match_key(key_two('z', parent, 0), z->name.s, z->name.len);
}

static struct known *find(const struct join *j, uint64_t key)
{
        struct known *k;

        HASH_FIND(hh, j->known, &key, sizeof(key), k);
        return k;
}

/* The first of several equal ones stays. */
static int learn(struct join *j, uint64_t key, uint32_t id)
{
        struct known *k = find(j, key);

        if (k)
                return 0;
        k = calloc(1, sizeof(*k));
        if (!k)
                return -ENOMEM;
        k->key = key;
        k->id = id;
        HASH_ADD(hh, j->known, key, sizeof(k->key), k);
        if (k->failed) {
                free(k);
                return -ENOMEM;
        }
        return 0;
}

/* Threads of a name are told apart by their order: key of the next one that is not there yet. */
static int learn_threads(struct join *j, const struct ls_profile *p, uint32_t *ret_ids)
{
        int r = 0;

        for (uint32_t i = 1; !r && i < p->n_threads; i++) {
                uint64_t name = ls_match_key('t' + (ret_ids != NULL), p->threads[i].name.s, p->threads[i].name.len), key;
                struct known *count = find(j, name), *there;

                if (!count) {
                        r = learn(j, name, 0);
                        count = find(j, name);
                }
                if (r || !count)
                        return -ENOMEM;
                key = key_two('n', count->id++, (uint32_t)p->threads[i].name.len);
                key = ls_match_key(key, p->threads[i].name.s, p->threads[i].name.len);
                there = find(j, key);
                if (ret_ids && there) {
                        ret_ids[i] = there->id;
                } else if (ret_ids) {
                        r = APPEND(j, threads, (struct ls_thread){ .tid = p->threads[i].tid, .name = p->threads[i].name });
                        ret_ids[i] = j->to->n_threads - 1;
                } else {
                        r = learn(j, key, i);
                }
        }
        return r;
}

static int learn_all(struct join *j)
{
        const struct ls_profile *p = j->to;
        const struct ls_diff_run *run = &j->d->runs[1];
        int r = learn_threads(j, p, NULL);

        for (uint32_t i = p->n_sources; i-- > 1;)
                j->source_at[run->source_of[i]] = i;
        for (uint32_t i = p->n_functions; i-- > 1;)
                j->function_at[run->function_of[i]] = i;
        for (uint32_t i = 1; !r && i < p->n_locations; i++)
                r = learn(j, key_two('l', p->locations[i].function, p->locations[i].line), i);
        for (uint32_t i = 1; !r && i < p->n_stacks; i++)
                r = learn(j, key_two('s', p->stacks[i].parent, p->stacks[i].location), i);
        for (uint32_t i = 1; !r && i < p->n_zones; i++)
                r = learn(j, key_zone(&p->zones[i], p->zones[i].parent), i);
        return r;
}

static int add_sources(struct join *j)
{
        int r = 0;

        for (uint32_t i = 1; !r && i < j->from->n_sources; i++) {
                j->sources[i] = j->source_at[j->d->runs[0].source_of[i]];
                if (j->sources[i])
                        continue;
                r = APPEND(j, sources, j->from->sources[i]);
                j->sources[i] = j->to->n_sources - 1;
        }
        return r;
}

/* A function that is gone keeps its own module. */
static int add_functions(struct join *j)
{
        int r = 0;

        for (uint32_t i = 1; !r && i < j->from->n_functions; i++) {
                struct ls_function f = j->from->functions[i];

                j->functions[i] = j->function_at[j->d->runs[0].function_of[i]];
                if (j->functions[i])
                        continue;
                if (f.mapping && !j->mappings[f.mapping]) {
                        r = APPEND(j, mappings, j->from->mappings[f.mapping]);
                        j->mappings[f.mapping] = j->to->n_mappings - 1;
                }
                f.source = j->sources[f.source];
                f.mapping = j->mappings[f.mapping];
                if (!r)
                        r = APPEND(j, functions, f);
                j->functions[i] = j->to->n_functions - 1;
        }
        return r;
}

/* The line in the later text: by number in the same text, else as far from the start of the function. */
static uint32_t line_after(const struct join *j, const struct ls_location *l)
{
        const struct ls_function *f = &j->from->functions[l->function], *g = &j->to->functions[j->functions[l->function]];

        if (!l->line || f->kind != LS_FUNC_LUA || !j->d->changed[j->d->runs[0].source_of[f->source]] || l->line < f->first_line)
                return l->line;
        return l->line - f->first_line + g->first_line;
}

/* The id of an entry that is known, else that of a new one. */
static int add_locations(struct join *j)
{
        int r = 0;

        for (uint32_t i = 1; !r && i < j->from->n_locations; i++) {
                const struct ls_location *l = &j->from->locations[i];
                struct ls_location to = { j->functions[l->function], line_after(j, l) };
                uint64_t key = key_two('l', to.function, to.line);
                const struct known *k = find(j, key);

                if (!k) {
                        r = APPEND(j, locations, to);
                        if (!r)
                                r = learn(j, key, j->to->n_locations - 1);
                }
                j->locations[i] = k ? k->id : j->to->n_locations - 1;
        }
        return r;
}

static int add_stacks(struct join *j)
{
        int r = 0;

        for (uint32_t i = 1; !r && i < j->from->n_stacks; i++) {
                const struct ls_stack *s = &j->from->stacks[i];
                struct ls_stack to = { j->stacks[s->parent], j->locations[s->location], s->depth };
                uint64_t key = key_two('s', to.parent, to.location);
                const struct known *k = find(j, key);

                if (!k) {
                        r = APPEND(j, stacks, to);
                        if (!r)
                                r = learn(j, key, j->to->n_stacks - 1);
                }
                j->stacks[i] = k ? k->id : j->to->n_stacks - 1;
        }
        return r;
}

static int add_zones(struct join *j)
{
        int r = 0;

        for (uint32_t i = 1; !r && i < j->from->n_zones; i++) {
                struct ls_zone to = { j->zones[j->from->zones[i].parent], j->from->zones[i].name };
                uint64_t key = key_zone(&to, to.parent);
                const struct known *k = find(j, key);

                if (!k) {
                        r = APPEND(j, zones, to);
                        if (!r)
                                r = learn(j, key, j->to->n_zones - 1);
                }
                j->zones[i] = k ? k->id : j->to->n_zones - 1;
        }
        return r;
}

static int init(struct join *j)
{
        const struct ls_profile *p = j->from;
        struct { uint32_t **map, n; } maps[] = {
                { &j->sources, p->n_sources }, { &j->functions, p->n_functions }, { &j->mappings, p->n_mappings },
                { &j->locations, p->n_locations }, { &j->stacks, p->n_stacks }, { &j->zones, p->n_zones },
                { &j->threads, p->n_threads }, { &j->source_at, j->d->n_sources }, { &j->function_at, j->d->n_functions },
        };

        for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
                *maps[i].map = calloc((size_t)maps[i].n + 1, sizeof(uint32_t));
                if (!*maps[i].map)
                        return -ENOMEM;
        }
        j->cap_sources = j->to->n_sources;
        j->cap_functions = j->to->n_functions;
        j->cap_mappings = j->to->n_mappings;
        j->cap_locations = j->to->n_locations;
        j->cap_stacks = j->to->n_stacks;
        j->cap_zones = j->to->n_zones;
        j->cap_threads = j->to->n_threads;
        return 0;
}

static void done(struct join *j)
{
        struct known *k, *next;

        HASH_ITER(hh, j->known, k, next) {
                HASH_DEL(j->known, k);
                free(k);
        }
        free(j->source_at);
        free(j->function_at);
        free(j->sources);
        free(j->functions);
        free(j->mappings);
        free(j->locations);
        free(j->stacks);
        free(j->zones);
        free(j->threads);
}

int ls_diff_join(struct ls_diff *two, const struct ls_cell *cells, size_t n, struct ls_cell **ret_cells)
{
        struct join j = { .d = two, .from = two->runs[0].profile, .to = two->runs[1].profile };
        struct ls_cell *to = calloc(n + 1, sizeof(*to));
        int r = to ? init(&j) : -ENOMEM;

        if (!r)
                r = learn_all(&j);
        if (!r)
                r = add_sources(&j);
        if (!r)
                r = add_functions(&j);
        if (!r)
                r = add_locations(&j);
        if (!r)
                r = add_stacks(&j);
        if (!r)
                r = add_zones(&j);
        if (!r)
                r = learn_threads(&j, j.from, j.threads);
        for (size_t i = 0; !r && i < n; i++)
                to[i] = (struct ls_cell){ .ticks = cells[i].ticks, .stack = j.stacks[cells[i].stack],
                                          .zone = j.zones[cells[i].zone], .thread = j.threads[cells[i].thread],
                                          .vmstate = cells[i].vmstate, .noline = cells[i].noline };
        done(&j);
        if (r) {
                free(to);
                return r;
        }
        *ret_cells = to;
        return 0;
}
