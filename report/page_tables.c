/* What the cells of a page refer to: stacks, locations, functions, zones and threads, with ids of the page's own, so
 * that nothing is in the file that no shown sample needs. Called by report/page.c. */
#include "report/page.h"
#include "report/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int ids_init(struct ls_page_ids *ids, uint32_t n_old)
{
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

static void number(struct ls_page_ids *ids, uint32_t first)
{
        ids->n = first;
        for (uint32_t i = 0; i < ids->n_old; i++)
                if (is_used(ids, i))
                        ids->of[i] = ids->n++;
}

static void use_stacks(struct ls_page_tables *t, const struct ls_profile *p, const struct ls_page_cell *cells, size_t n)
{
        for (size_t i = 0; i < n; i++)
                for (uint32_t at = cells[i].stack; !is_used(&t->stacks, at); at = p->stacks[at].parent) {
                        use(&t->stacks, at);
                        if (!at)
                                break;
                }
}

static void use_all(struct ls_page_tables *t, const struct ls_profile *p, const struct ls_page_cells *c)
{
        use_stacks(t, p, c->cells, c->n_cells);
        use_stacks(t, p, c->base, c->n_base);
        for (uint32_t i = 0; i < p->n_stacks; i++)
                if (is_used(&t->stacks, i))
                        use(&t->locations, p->stacks[i].location);
        use(&t->locations, 0);
        for (uint32_t i = 0; i < p->n_locations; i++) {
                if (!is_used(&t->locations, i))
                        continue;
                use(&t->functions, p->locations[i].function);
                use(&t->modules, t->module->group_of[i]);
        }
        use(&t->sources, 0);
        for (uint32_t i = 0; i < p->n_functions; i++)
                if (is_used(&t->functions, i) && p->functions[i].kind == LS_FUNC_LUA)
                        use(&t->sources, p->functions[i].source);
        for (uint32_t i = 0; i < c->n_contexts; i++) {
                use(&t->zones, c->contexts[i].zone);
                use(&t->threads, c->contexts[i].thread);
        }
}

int ls_page_tables_init(struct ls_page_tables *t, const struct ls_page *page, const struct ls_page_cells *c)
{
        const struct ls_profile *p = page->report->profile;
        int error = ls_grouping_new(ls_key_find("module", 6), p, page->report->labels, &t->module);
        struct { struct ls_page_ids *ids; uint32_t n; } all[] = {
                { &t->stacks, p->n_stacks }, { &t->locations, p->n_locations }, { &t->functions, p->n_functions },
                { &t->sources, p->n_sources }, { &t->modules, error ? 0 : t->module->n_groups },
                { &t->zones, c->zones->n_groups }, { &t->threads, c->threads->n_groups },
        };

        for (size_t i = 0; !error && i < sizeof(all) / sizeof(all[0]); i++)
                error = ids_init(all[i].ids, all[i].n);
        if (error)
                return error;
        use_all(t, p, c);
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                number(all[i].ids, 0);
        if (!is_used(&t->stacks, 0))
                number(&t->stacks, 1);  /* 0 is the root, used or not */
        return 0;
}

void ls_page_tables_done(struct ls_page_tables *t)
{
        struct ls_page_ids *all[] = { &t->stacks, &t->locations, &t->functions, &t->sources, &t->modules, &t->zones,
                                      &t->threads };

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                free(all[i]->of);
        ls_grouping_free(t->module);
}

/* Parent as the distance up, location as the distance from the stack's before. */
static int put_stacks(const struct ls_page_tables *t, const struct ls_profile *p, yajl_gen g)
{
        struct ls_buf parent = { 0 }, location = { 0 };
        uint32_t last = 0;
        int error;

        for (uint32_t i = 1; i < p->n_stacks; i++) {
                uint32_t at;

                if (!is_used(&t->stacks, i))
                        continue;
                at = t->locations.of[p->stacks[i].location];
                ls_buf_varint(&parent, t->stacks.of[i] - (p->stacks[i].parent ? t->stacks.of[p->stacks[i].parent] : 0));
                ls_buf_varint(&location, ls_zigzag((uint64_t)at - last));
                last = at;
        }
        ls_json_key(g, "stacks");
        yajl_gen_map_open(g);
        ls_json_u64(g, "n", t->stacks.n);
        error = ls_page_column(g, "parent", &parent);
        error |= ls_page_column(g, "location", &location);
        yajl_gen_map_close(g);
        return error ? -ENOMEM : 0;
}

static int put_locations(const struct ls_page_tables *t, const struct ls_profile *p, yajl_gen g)
{
        struct ls_buf function = { 0 }, line = { 0 };
        uint32_t last_function = 0, last_line = 0;
        int error;

        for (uint32_t i = 0; i < p->n_locations; i++) {
                uint32_t f = t->functions.of[p->locations[i].function];

                if (!is_used(&t->locations, i))
                        continue;
                ls_buf_varint(&function, ls_zigzag((uint64_t)f - last_function));
                ls_buf_varint(&line, ls_zigzag((uint64_t)p->locations[i].line - last_line));
                last_function = f;
                last_line = p->locations[i].line;
        }
        ls_json_key(g, "locations");
        yajl_gen_map_open(g);
        ls_json_u64(g, "n", t->locations.n);
        error = ls_page_column(g, "function", &function);
        error |= ls_page_column(g, "line", &line);
        yajl_gen_map_close(g);
        return error ? -ENOMEM : 0;
}

/* [name, kind, module, source, first line, last line] of each. */
static int put_functions(const struct ls_page_tables *t, const struct ls_report *r, yajl_gen g)
{
        const struct ls_profile *p = r->profile;
        uint32_t *module_of = calloc((size_t)t->functions.n + 1, sizeof(*module_of));

        if (!module_of)
                return -ENOMEM;
        for (uint32_t i = 0; i < p->n_locations; i++)
                if (is_used(&t->locations, i))
                        module_of[t->functions.of[p->locations[i].function]] = t->modules.of[t->module->group_of[i]];
        ls_json_key(g, "functions");
        yajl_gen_array_open(g);
        for (uint32_t i = 0; i < p->n_functions; i++) {
                const struct ls_function *f = &p->functions[i];

                if (!is_used(&t->functions, i))
                        continue;
                yajl_gen_array_open(g);
                ls_json_str(g, NULL, r->labels->function[i]);
                ls_json_u64(g, NULL, f->kind);
                ls_json_u64(g, NULL, module_of[t->functions.of[i]]);
                ls_json_u64(g, NULL, f->kind == LS_FUNC_LUA ? t->sources.of[f->source] : 0);
                ls_json_u64(g, NULL, f->first_line);
                ls_json_u64(g, NULL, f->last_line);
                yajl_gen_array_close(g);
        }
        yajl_gen_array_close(g);
        free(module_of);
        return 0;
}

static void put_texts(const char *key, const struct ls_page_ids *ids, const struct ls_grouping *of, yajl_gen g)
{
        ls_json_key(g, key);
        yajl_gen_array_open(g);
        for (uint32_t i = 0; i < ids->n_old; i++)
                if (is_used(ids, i))
                        ls_json_str(g, NULL, ls_group_text(of, i));
        yajl_gen_array_close(g);
}

/* [VM state, line not known, zone, thread] of each. */
static void put_contexts(const struct ls_page_tables *t, const struct ls_page_cells *c, yajl_gen g)
{
        ls_json_key(g, "contexts");
        yajl_gen_array_open(g);
        for (uint32_t i = 0; i < c->n_contexts; i++) {
                yajl_gen_array_open(g);
                ls_json_u64(g, NULL, c->contexts[i].vmstate);
                ls_json_u64(g, NULL, c->contexts[i].noline);
                ls_json_u64(g, NULL, t->zones.of[c->contexts[i].zone]);
                ls_json_u64(g, NULL, t->threads.of[c->contexts[i].thread]);
                yajl_gen_array_close(g);
        }
        yajl_gen_array_close(g);
}

static void put_states(yajl_gen g)
{
        static const char *const states[][2] = {
#define LS_VMSTATE(letter, NAME, name, label) { name, label },
#include "formats/wire/vmstates.def"
#undef LS_VMSTATE
        };

        ls_json_key(g, "states");
        yajl_gen_array_open(g);
        for (size_t i = 0; i < LS_NVMSTATES; i++) {
                yajl_gen_array_open(g);
                ls_json_str(g, NULL, states[i][0]);
                ls_json_str(g, NULL, states[i][1]);
                yajl_gen_array_close(g);
        }
        yajl_gen_array_close(g);
}

int ls_page_tables_json(const struct ls_page_tables *t, const struct ls_page *page, const struct ls_page_cells *c,
                        yajl_gen g)
{
        const struct ls_report *r = page->report;
        int error = put_stacks(t, r->profile, g);

        if (!error)
                error = put_locations(t, r->profile, g);
        if (!error)
                error = put_functions(t, r, g);
        put_texts("modules", &t->modules, t->module, g);
        put_texts("zones", &t->zones, c->zones, g);
        put_texts("threads", &t->threads, c->threads, g);
        put_contexts(t, c, g);
        put_states(g);
        return error;
}
