/* What of the samples' labels is on a page. A program may give each request a label of its own:
 * then every sample would be a context, and the page as large as the trace. So the page has the
 * keys with the most ticks, and of each key the values with the most; what is left has one value
 * for all. Called by report/page/cells.c and tables.c. */
#include "report/model/keys.h"
#include "report/model/keys_label.h"
#include "report/page/page.h"
#include "formats/json.h"

#include <errno.h>
#include <stdlib.h>

#define MOST_VALUES 100u                /* of a key */
#define OTHERS UINT32_MAX
#define OTHERS_TEXT "(other values)"    /* as the recorder calls what a trace had no room for */

struct ranked { uint64_t ticks; uint32_t id; };

static int by_ticks(const void *a, const void *b)
{
        const struct ranked *x = a, *y = b;

        if (x->ticks != y->ticks)
                return x->ticks > y->ticks ? -1 : 1;
        return x->id < y->id ? -1 : x->id > y->id;
}

static int choose_keys(struct ls_page_labels *l, const struct ls_report *r, const uint64_t *ticks)
{
        struct ls_label_key *keys;
        uint32_t n;
        int error = ls_label_keys(r->profile, ticks, &keys, &n);

        if (error)
                return error;
        for (uint32_t i = 0; !error && i < n; i++) {
                const struct ls_key *key =
                        l->n_keys < LS_PAGE_KEYS ? ls_label_key(r->profile, keys[i].label) : NULL;

                if (key)
                        error = ls_grouping_new(key, r->profile, r->labels, &l->keys[l->n_keys++]);
                else
                        l->left_out++;
        }
        free(keys);
        return error;
}

/* What each group of a key is shown as: itself, or OTHERS. */
static uint32_t *choose_values(const struct ls_profile *p, const struct ls_grouping *g,
                               const uint64_t *ticks)
{
        uint32_t *shown = calloc((size_t)g->n_groups + 1, sizeof(*shown));
        struct ranked *groups = calloc((size_t)g->n_groups + 1, sizeof(*groups));

        for (uint32_t i = 0; shown && groups && i < g->n_groups; i++)
                groups[i].id = i;
        for (uint32_t i = 0; shown && groups && i < p->n_sample_labels; i++)
                groups[g->group_of[i]].ticks += ticks[i];
        if (shown && groups)
                qsort(groups, g->n_groups, sizeof(*groups), by_ticks);
        for (uint32_t i = 0; shown && groups && i < g->n_groups; i++)
                shown[groups[i].id] = i < MOST_VALUES ? groups[i].id : OTHERS;
        if (!groups) {
                free(shown);
                shown = NULL;
        }
        free(groups);
        return shown;
}

static int by_set(const void *a, const void *b, void *ctx)
{
        const struct ls_page_labels *l = ctx;
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        for (unsigned k = 0; k < l->n_keys; k++) {
                uint32_t one = l->values[k][x], other = l->values[k][y];

                if (one != other)
                        return one < other ? -1 : 1;
        }
        return 0;
}

/* Labels that have the same values of all keys are one set. */
static int number_sets(struct ls_page_labels *l, uint32_t n, const uint64_t *ticks)
{
        uint32_t *rows = calloc((size_t)n + 1, sizeof(*rows)), used = 0;

        l->set_of = calloc((size_t)n + 1, sizeof(*l->set_of));
        l->sample_of = calloc((size_t)n + 1, sizeof(*l->sample_of));
        if (!rows || !l->set_of || !l->sample_of) {
                free(rows);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < n; i++)
                if (ticks[i] || !i)             /* rows without ticks are in set 0 */
                        rows[used++] = i;
        if (used)
                qsort_r(rows, used, sizeof(*rows), by_set, l);
        for (uint32_t i = 0; i < used; i++) {
                if (!i || by_set(&rows[i - 1], &rows[i], l))
                        l->sample_of[l->n_sets++] = rows[i];
                l->set_of[rows[i]] = l->n_sets - 1;
        }
        free(rows);
        return 0;
}

int ls_page_labels_init(struct ls_page_labels *l, const struct ls_report *r, const uint64_t *ticks)
{
        const struct ls_profile *p = r->profile;
        uint32_t n = p->n_sample_labels;
        int error = choose_keys(l, r, ticks);

        for (unsigned k = 0; !error && k < l->n_keys; k++) {
                const struct ls_grouping *g = l->keys[k];
                uint32_t *shown = choose_values(p, g, ticks);

                l->values[k] = calloc((size_t)n + 1, sizeof(*l->values[k]));
                for (uint32_t i = 0; shown && l->values[k] && i < n; i++)
                        l->values[k][i] = shown[g->group_of[i]];
                error = shown && l->values[k] ? 0 : -ENOMEM;
                free(shown);
        }
        return error ? error : number_sets(l, n, ticks);
}

void ls_page_labels_done(struct ls_page_labels *l)
{
        for (unsigned k = 0; k < l->n_keys; k++) {
                ls_grouping_free(l->keys[k]);
                free(l->values[k]);
        }
        free(l->set_of);
        free(l->sample_of);
}

/* [key, value, key, value, ...] of each set. */
void ls_page_labels_json(const struct ls_page_labels *l, struct ls_js *g)
{
        for (uint32_t i = 0; i < l->n_sets; i++) {
                ls_js_open(g, '[');
                for (unsigned k = 0; k < l->n_keys; k++) {
                        uint32_t group = l->values[k][l->sample_of[i]];

                        ls_js_string(g, l->keys[k]->key->argument);
                        ls_js_string(g, group == OTHERS ? OTHERS_TEXT
                                                        : ls_group_text(l->keys[k], group));
                }
                ls_js_close(g, ']');
        }
}
