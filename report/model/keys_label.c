/* Keys label and label:KEY: what labels a sample has, and the values of one of them. Used by
 * keys.c, filter.c, the page and the browser. */
#include "report/model/keys_label.h"

#include "formats/escape.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LABELS 64   /* of a sample that are looked at: a hostile trace may nest any number */
#define MOST_SHOWN 512u /* bytes of a key or a value that are shown; programs have 256 of both */
#define MOST_TEXT  (256u << 20) /* bytes of all texts: one string may be in any number of labels */
#define NONE "(none)"

static struct ls_key of_key[16];        /* label:KEY: made as they are named; their names are never
                                         * freed */

const struct ls_key *ls_key_of_label(const struct ls_key *label, const char *name, uint32_t len)
{
        for (size_t i = 0; i < sizeof(of_key) / sizeof(of_key[0]); i++) {
                struct ls_key *k = &of_key[i];

                if (!k->name) {
                        char *copy = strndup(name, len);

                        if (!copy)
                                return NULL;
                        *k = *label;
                        k->name = copy;
                        k->title = k->argument = strchr(copy, ':') + 1;
                        return k;
                }
                if (strlen(k->name) == len && !strncmp(k->name, name, len))
                        return k;
        }
        return NULL;
}

const struct ls_str *ls_label_value(const struct ls_profile *p, uint32_t label, const char *key,
                                    size_t len)
{
        for (unsigned n = 0; label && n < MAX_LABELS; label = p->sample_labels[label].parent, n++) {
                const struct ls_sample_label *l = &p->sample_labels[label];

                if (l->key.len == len && !memcmp(l->key.s, key, len))
                        return &l->value;
        }
        return NULL;
}

static char *visible(const struct ls_str *s)
{
        return ls_visible(s->s, s->len < MOST_SHOWN ? s->len : MOST_SHOWN);
}

/* "route=/list, user=7"; NULL = no memory. */
static char *all_text(const struct ls_profile *p, uint32_t label)
{
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        for (unsigned n = 0; label && n < MAX_LABELS; label = p->sample_labels[label].parent, n++) {
                const struct ls_sample_label *l = &p->sample_labels[label];
                char *key = visible(&l->key), *value = visible(&l->value);

                fprintf(f, "%s%s%s%s", n ? ", " : "", key ? key : "?", l->key.len ? "=" : "",
                        value ? value : "?");
                free(key);
                free(value);
        }
        if (fclose(f)) {
                free(text);
                return NULL;
        }
        return text;
}

static char *label_text(const struct ls_grouping *g, uint32_t label)
{
        const struct ls_str *value;

        if (!label)
                return strdup(NONE);
        if (!g->key->argument)
                return all_text(g->profile, label);
        value = ls_label_value(g->profile, label, g->key->argument, strlen(g->key->argument));
        return value ? visible(value) : strdup(NONE);
}

struct named { char *text; uint32_t id; };

static int by_text(const void *a, const void *b)
{
        const struct named *x = a, *y = b;
        int c = strcmp(x->text, y->text);

        return c ? c : x->id < y->id ? -1 : x->id > y->id;
}

/* The texts of all labels, sorted; NULL = no memory. */
static struct named *make_texts(const struct ls_grouping *g)
{
        uint32_t n = g->profile->n_sample_labels;
        struct named *names = calloc((size_t)n + 1, sizeof(*names));
        size_t bytes = 0;

        for (uint32_t i = 0; names && i < n; i++) {
                names[i].id = i;
                names[i].text = bytes < MOST_TEXT ? label_text(g, i)
                                                  : strdup("(more labels than can be told apart)");
                if (!names[i].text) {
                        while (i-- > 0)
                                free(names[i].text);
                        free(names);
                        return NULL;
                }
                bytes += strlen(names[i].text);
        }
        if (names && n)
                qsort(names, n, sizeof(*names), by_text);
        return names;
}

/* Labels of one text are one group, which keeps it. */
int ls_prepare_label(struct ls_grouping *g)
{
        uint32_t n = g->profile->n_sample_labels;
        struct named *names = make_texts(g);

        g->group_of = calloc((size_t)n + 1, sizeof(*g->group_of));
        g->sample_of = calloc((size_t)n + 2, sizeof(*g->sample_of));
        g->texts = calloc((size_t)n + 1, sizeof(*g->texts));
        for (uint32_t i = 0; names && i < n; i++) {
                if (!g->group_of || !g->sample_of || !g->texts ||
                    (g->n_groups && !strcmp(names[i].text, g->texts[g->n_groups - 1]))) {
                        free(names[i].text);
                } else {
                        g->texts[g->n_groups] = names[i].text;
                        g->sample_of[g->n_groups++] = names[i].id;
                }
                if (g->group_of && g->n_groups)
                        g->group_of[names[i].id] = g->n_groups - 1;
        }
        free(names);
        return names && g->group_of && g->sample_of && g->texts ? 0 : -ENOMEM;
}

uint32_t ls_group_label(const struct ls_grouping *g, const struct ls_cell *c)
{
        return g->group_of[c->label];
}

const char *ls_text_label(const struct ls_grouping *g, uint32_t group)
{
        return g->texts[group];
}

static int by_key(const void *a, const void *b, void *ctx)
{
        const struct ls_sample_label *all = ctx, *x = &all[*(const uint32_t *)a],
                                     *y = &all[*(const uint32_t *)b];
        int c = memcmp(x->key.s, y->key.s, x->key.len < y->key.len ? x->key.len : y->key.len);

        return c ? c : x->key.len < y->key.len ? -1 : x->key.len > y->key.len;
}

static int by_ticks(const void *a, const void *b)
{
        const struct ls_label_key *x = a, *y = b;

        if (x->ticks != y->ticks)
                return x->ticks > y->ticks ? -1 : 1;
        return x->label < y->label ? -1 : x->label > y->label;
}

/* Rows of one key become one. sum: [n_sample_labels]. */
static void join_keys(const struct ls_profile *p, const uint64_t *sum, uint32_t *rows,
                      struct ls_label_key *keys, uint32_t *ret_n)
{
        uint32_t n = 0;

        for (uint32_t i = 1; i < p->n_sample_labels; i++)
                if (sum[i] && p->sample_labels[i].key.len)
                        rows[n++] = i;
        if (n)
                qsort_r(rows, n, sizeof(*rows), by_key, p->sample_labels);
        *ret_n = 0;
        for (uint32_t i = 0; i < n; i++) {
                if (!i || by_key(&rows[i - 1], &rows[i], p->sample_labels))
                        keys[(*ret_n)++].label = rows[i];
                keys[*ret_n - 1].ticks += sum[rows[i]];
        }
        qsort(keys, *ret_n, sizeof(*keys), by_ticks);
}

int ls_label_keys(const struct ls_profile *p, const uint64_t *ticks, struct ls_label_key **ret_keys,
                  uint32_t *ret_n)
{
        size_t n = (size_t)p->n_sample_labels + 1;
        uint64_t *sum = calloc(n, sizeof(*sum));
        uint32_t *rows = calloc(n, sizeof(*rows));
        struct ls_label_key *keys = calloc(n, sizeof(*keys));
        int ok = sum && rows && keys;

        for (uint32_t i = 0; ok && i < p->n_sample_labels; i++)
                sum[i] = ticks ? ticks[i] : 1;
        for (uint32_t i = p->n_sample_labels; ok && i-- > 1;)   /* a parent's number is the
                                                                 * smaller */
                sum[p->sample_labels[i].parent] += sum[i];
        if (ok) {
                join_keys(p, sum, rows, keys, ret_n);
                *ret_keys = keys;
        } else {
                free(keys);
        }
        free(sum);
        free(rows);
        return ok ? 0 : -ENOMEM;
}
