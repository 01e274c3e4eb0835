/* What the cells of a page refer to: stacks, locations, functions, zones, threads and labels, with
 * ids of the page's own, so that nothing is in the file that no shown sample needs. Called by
 * report/page/page.c. */
#include "report/page/page.h"
#include "formats/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int ids_init(struct ls_page_ids *ids, uint32_t n_old, const struct ls_page_ids *before)
{
        ids->first = ids->n = before ? before->n : 0;
        ids->n_old = n_old;
        ids->of = malloc(((size_t)n_old + 1) * sizeof(*ids->of));
        if (!ids->of)
                return -ENOMEM;
        memset(ids->of, 0xff, ((size_t)n_old + 1) * sizeof(*ids->of));
        return 0;
}

static void use(struct ls_page_ids *ids, uint32_t old)
{
        ids->of[old] = 0;
}

static int is_used(const struct ls_page_ids *ids, uint32_t old)
{
        return ids->of[old] != UINT32_MAX;
}

/* Whether a row of the table stands for it: of a function that the other recording has too, that
 * one's row does. */
static int is_own(const struct ls_page_ids *ids, uint32_t old)
{
        return is_used(ids, old) && ids->of[old] >= ids->first;
}

static void number(struct ls_page_ids *ids)
{
        for (uint32_t i = 0; i < ids->n_old; i++)
                if (is_used(ids, i))
                        ids->of[i] = ids->n++;
}

/* Stack 0 is the root of all on the page, and location 0 is its; a sample without a stack is
 * there. */
static void use_stacks(struct ls_page_tables *t, int is_first)
{
        const struct ls_profile *p = t->r->profile;

        for (size_t i = 0; i < t->c->n_cells; i++)
                for (uint32_t at = t->c->cells[i].stack; at && !is_used(&t->stacks, at);
                     at = p->stacks[at].parent)
                        use(&t->stacks, at);
        for (uint32_t i = 1; i < p->n_stacks; i++)
                if (is_used(&t->stacks, i))
                        use(&t->locations, p->stacks[i].location);
        if (is_first)
                use(&t->locations, 0);
}

/* same: the function of each in the other recording, whose tables are before. */
static void number_functions(struct ls_page_tables *t, const struct ls_page_tables *before,
                             const uint32_t *same)
{
        const struct ls_profile *p = t->r->profile;

        for (uint32_t i = 0; i < p->n_locations; i++)
                if (is_used(&t->locations, i))
                        use(&t->functions, p->locations[i].function);
        for (uint32_t i = 0; i < p->n_functions; i++) {
                uint32_t other = before && same && same[i] < before->functions.n_old ? same[i] : 0;

                if (!is_used(&t->functions, i))
                        continue;
                if (other && is_used(&before->functions, other))
                        t->functions.of[i] = before->functions.of[other];
                else
                        t->functions.of[i] = t->functions.n++;
        }
}

static void use_rest(struct ls_page_tables *t)
{
        const struct ls_profile *p = t->r->profile;
        const struct ls_page_cells *c = t->c;

        for (uint32_t i = 0; i < p->n_locations; i++)
                if (is_used(&t->locations, i) && is_own(&t->functions, p->locations[i].function))
                        use(&t->modules, t->module->group_of[i]);
        use(&t->sources, 0);
        for (uint32_t i = 0; i < p->n_functions; i++)
                if (is_own(&t->functions, i) && p->functions[i].kind == LS_FUNC_LUA)
                        use(&t->sources, p->functions[i].source);
        for (uint32_t i = 0; i < c->n_contexts; i++) {
                use(&t->zones, c->contexts[i].zone);
                use(&t->threads, c->contexts[i].thread);
        }
}

int ls_page_tables_init(struct ls_page_tables *t, const struct ls_report *r,
                        const struct ls_page_cells *c, const struct ls_page_tables *before,
                        const uint32_t *same_function)
{
        const struct ls_profile *p = r->profile;
        int error = ls_grouping_new(ls_key_find("module", 6), p, r->labels, &t->module);

        t->r = r;
        t->c = c;
        t->first_context = before ? before->c->n_contexts : 0;
        t->first_set = before ? before->c->labels.n_sets : 0;
        if (error || (error = ids_init(&t->stacks, p->n_stacks, before ? &before->stacks : NULL)) ||
            (error = ids_init(&t->locations, p->n_locations, before ? &before->locations : NULL)) ||
            (error = ids_init(&t->functions, p->n_functions, before ? &before->functions : NULL)) ||
            (error = ids_init(&t->sources, p->n_sources, before ? &before->sources : NULL)) ||
            (error = ids_init(&t->modules, t->module->n_groups,
                              before ? &before->modules : NULL)) ||
            (error = ids_init(&t->zones, c->zones->n_groups, before ? &before->zones : NULL)) ||
            (error = ids_init(&t->threads, c->threads->n_groups, before ? &before->threads : NULL)))
                return error;
        use_stacks(t, !before);
        number_functions(t, before, same_function);
        use_rest(t);
        if (!before)
                t->stacks.first = t->stacks.n = 1;
        number(&t->stacks);
        t->stacks.of[0] = 0;
        number(&t->locations);
        number(&t->sources);
        number(&t->modules);
        number(&t->zones);
        number(&t->threads);
        return 0;
}

void ls_page_tables_done(struct ls_page_tables *t)
{
        struct ls_page_ids *all[] = { &t->stacks,  &t->locations, &t->functions, &t->sources,
                                      &t->modules, &t->zones,     &t->threads };

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                free(all[i]->of);
        ls_grouping_free(t->module);
}

struct columns {                        /* of stacks and locations, as they go on from recording to
                                         * recording */
        struct ls_buf a, b;
        uint32_t last_a, last_b;
};

/* Parent as the distance up, location as the distance from the stack's before. */
static void add_stacks(const struct ls_page_tables *t, struct columns *to)
{
        const struct ls_profile *p = t->r->profile;

        for (uint32_t i = 1; i < p->n_stacks; i++) {
                uint32_t at;

                if (!is_used(&t->stacks, i))
                        continue;
                at = t->locations.of[p->stacks[i].location];
                ls_buf_varint(&to->a, t->stacks.of[i] - t->stacks.of[p->stacks[i].parent]);
                ls_buf_varint(&to->b, ls_zigzag((uint64_t)at - to->last_b));
                to->last_b = at;
        }
}

static void add_locations(const struct ls_page_tables *t, struct columns *to)
{
        const struct ls_profile *p = t->r->profile;

        for (uint32_t i = 0; i < p->n_locations; i++) {
                uint32_t f = t->functions.of[p->locations[i].function];

                if (!is_used(&t->locations, i))
                        continue;
                ls_buf_varint(&to->a, ls_zigzag((uint64_t)f - to->last_a));
                ls_buf_varint(&to->b, ls_zigzag((uint64_t)p->locations[i].line - to->last_b));
                to->last_a = f;
                to->last_b = p->locations[i].line;
        }
}

static int put_columns(const struct ls_page_tables *t, unsigned n_tables, struct ls_js *g,
                       const char *key, uint32_t n,
                       void (*add)(const struct ls_page_tables *, struct columns *),
                       const char *name_a, const char *name_b)
{
        struct columns columns = { .last_a = 0 };
        int error;

        for (unsigned i = 0; i < n_tables; i++)
                add(&t[i], &columns);
        ls_js_key_open(g, key, '{');
        ls_js_key_u64(g, "n", n);
        error = ls_page_column(g, name_a, &columns.a);
        error |= ls_page_column(g, name_b, &columns.b);
        ls_js_close(g, '}');
        return error ? -ENOMEM : 0;
}

/* [name, kind, module, source, first line, last line, whether its callers pay for it in flat views]
 * of each. */
static int put_functions(const struct ls_page_tables *t, struct ls_js *g)
{
        const struct ls_profile *p = t->r->profile;
        uint32_t *module_of = calloc((size_t)p->n_functions + 1, sizeof(*module_of));

        if (!module_of)
                return -ENOMEM;
        for (uint32_t i = 0; i < p->n_locations; i++)
                if (is_used(&t->locations, i))
                        module_of[p->locations[i].function] = t->modules.of[t->module->group_of[i]];
        for (uint32_t i = 0; i < p->n_functions; i++) {
                const struct ls_function *f = &p->functions[i];

                if (!is_own(&t->functions, i))
                        continue;
                ls_js_open(g, '[');
                ls_js_string(g, t->r->labels->function[i]);
                ls_js_u64(g, f->kind);
                ls_js_u64(g, module_of[i]);
                ls_js_u64(g, f->kind == LS_FUNC_LUA ? t->sources.of[f->source] : 0);
                ls_js_u64(g, f->first_line);
                ls_js_u64(g, f->last_line);
                ls_js_u64(g, (f->flags & LS_FUNCF_INLINED) && !t->r->labels->inlined);
                ls_js_close(g, ']');
        }
        free(module_of);
        return 0;
}

static int put_all_functions(const struct ls_page_tables *t, unsigned n_tables, struct ls_js *g)
{
        int error = 0;

        ls_js_key_open(g, "functions", '[');
        for (unsigned i = 0; !error && i < n_tables; i++)
                error = put_functions(&t[i], g);
        ls_js_close(g, ']');
        return error;
}

static void put_texts(const struct ls_page_ids *ids, const struct ls_grouping *of, struct ls_js *g)
{
        for (uint32_t i = 0; i < ids->n_old; i++)
                if (is_used(ids, i))
                        ls_js_string(g, ls_group_text(of, i));
}

static void put_all_texts(const struct ls_page_tables *t, unsigned n_tables, struct ls_js *g)
{
        ls_js_key_open(g, "modules", '[');
        for (unsigned i = 0; i < n_tables; i++)
                put_texts(&t[i].modules, t[i].module, g);
        ls_js_close(g, ']');
        ls_js_key_open(g, "zones", '[');
        for (unsigned i = 0; i < n_tables; i++)
                put_texts(&t[i].zones, t[i].c->zones, g);
        ls_js_close(g, ']');
        ls_js_key_open(g, "threads", '[');
        for (unsigned i = 0; i < n_tables; i++)
                put_texts(&t[i].threads, t[i].c->threads, g);
        ls_js_close(g, ']');
        ls_js_key_open(g, "labels", '[');
        for (unsigned i = 0; i < n_tables; i++)
                ls_page_labels_json(&t[i].c->labels, g);
        ls_js_close(g, ']');
}

/* [VM state, zone, thread, labels] of each. */
static void put_contexts(const struct ls_page_tables *t, unsigned n_tables, struct ls_js *g)
{
        ls_js_key_open(g, "contexts", '[');
        for (unsigned k = 0; k < n_tables; k++) {
                for (uint32_t i = 0; i < t[k].c->n_contexts; i++) {
                        const struct ls_page_context *c = &t[k].c->contexts[i];

                        ls_js_open(g, '[');
                        ls_js_u64(g, c->vmstate);
                        ls_js_u64(g, t[k].zones.of[c->zone]);
                        ls_js_u64(g, t[k].threads.of[c->thread]);
                        ls_js_u64(g, t[k].first_set + c->labels);
                        ls_js_close(g, ']');
                }
        }
        ls_js_close(g, ']');
}

static void put_states(struct ls_js *g)
{
        static const char *const states[][2] = {
#define LS_VMSTATE(letter, NAME, name, label) { name, label },
#include "formats/wire/vmstates.def"
#undef LS_VMSTATE
        };

        ls_js_key_open(g, "states", '[');
        for (size_t i = 0; i < LS_NVMSTATES; i++) {
                ls_js_open(g, '[');
                ls_js_string(g, states[i][0]);
                ls_js_string(g, states[i][1]);
                ls_js_close(g, ']');
        }
        ls_js_close(g, ']');
}

int ls_page_tables_json(const struct ls_page_tables *t, unsigned n_tables, struct ls_js *g)
{
        const struct ls_page_tables *last = &t[n_tables - 1];
        int error = put_columns(t, n_tables, g, "stacks", last->stacks.n, add_stacks, "parent",
                                "location");

        if (!error)
                error = put_columns(t, n_tables, g, "locations", last->locations.n, add_locations,
                                    "function", "line");
        if (!error)
                error = put_all_functions(t, n_tables, g);
        put_all_texts(t, n_tables, g);
        put_contexts(t, n_tables, g);
        put_states(g);
        return error;
}
