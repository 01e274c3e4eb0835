/* Numbers for what is the same in all recordings of a diff. Numbers are given in three steps:
 * sources, then functions, which are known by their source, then groups of --by, which are known by
 * both. A function keeps its number through edits of its file: it is known by its text and place,
 * else by name and source, else by its bytecode. Called by diff.c. */
#include "report/diff/diff.h"
#include "report/view/view.h"
#include "formats/escape.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t key_of(char kind, uint64_t value)
{
        return ls_match_key_u64((uint64_t)(unsigned char)kind, value);
}

static uint64_t key_str(char kind, struct ls_str s)
{
        return ls_match_key((uint64_t)(unsigned char)kind, s.s, s.len);
}

static struct ls_str last_part(struct ls_str path)
{
        const char *slash = path.len ? memrchr(path.s, '/', path.len) : NULL;

        return slash ? (struct ls_str){ slash + 1, path.len - (uint32_t)(slash + 1 - path.s) }
                     : path;
}

static struct ls_match_item source_item(const struct ls_diff_run *run, uint32_t i)
{
        const struct ls_source *s = &run->profile->sources[i];
        struct ls_str path = ls_source_path(s);
        uint64_t text = s->text_hash ? ls_match_key_u64(key_of('h', s->text_hash), s->size) : 0;
        struct ls_match_item item = { .order = i };

        item.keys[0] = text ? ls_match_key(text, s->name.s, s->name.len) : 0;
        item.keys[1] = key_str('p', path.len ? path : s->name);
        item.keys[2] = key_str('n', s->name);
        item.keys[3] = text;
        item.keys[4] = ls_match_key('l', run->labels->source[i], strlen(run->labels->source[i]));
        item.keys[5] = path.len ? key_str('b', last_part(path)) : 0;
        return item;
}

/* A Lua function by its text, its name in its source, its code in its source, its name and code
 * anywhere, its place among those of its source that have neither name nor code in common. */
static void lua_keys(const struct ls_diff_run *run, const struct ls_function *f,
                     struct ls_match_item *item)
{
        const struct ls_source *s = &run->profile->sources[f->source];
        uint64_t source = key_of('s', run->source_of[f->source]),
                 lines = (uint64_t)f->first_line << 32 | f->last_line;
        int main_chunk = f->flags & LS_FUNCF_MAIN, named = f->name.len && !main_chunk;

        item->order = lines;
        if (main_chunk) {
                item->keys[1] = ls_match_key(source, "main", 4);
                return;
        }
        if (s->text_hash)
                item->keys[0] =
                        ls_match_key_u64(ls_match_key_u64(ls_match_key_u64(source, s->text_hash),
                                                          lines),
                                         f->hash);
        if (named) {
                uint64_t name = ls_match_key(source, f->name.s, f->name.len);

                item->keys[1] = ls_match_key_u64(name, f->hash);
                item->keys[2] = name;
                item->keys[4] = ls_match_key_u64(key_str('n', f->name), f->hash);
        } else {
                item->keys[5] = ls_match_key(source, "anonymous", 9);
        }
        if (f->hash)
                item->keys[3] = ls_match_key_u64(source, f->hash);
}

/* C and native functions by name and file, then by name alone; without a name by place in the same
 * build of the file, then in any. Builtins and what is no function are their name. */
static struct ls_match_item function_item(const struct ls_diff_run *run, uint32_t i)
{
        const struct ls_function *f = &run->profile->functions[i];
        const struct ls_mapping *m = &run->profile->mappings[f->mapping];
        struct ls_match_item item = { .order = f->offset };
        uint64_t file;

        if (f->kind == LS_FUNC_LUA) {
                lua_keys(run, f, &item);
                return item;
        }
        file = ls_match_key_u64(key_str('m', last_part(m->path)), f->kind);
        if (f->kind == LS_FUNC_TRACE)
                item.keys[0] = key_of('t', f->kind);
        else if (f->kind != LS_FUNC_C && f->kind != LS_FUNC_NATIVE)
                item.keys[0] = ls_match_key_u64(key_str('n', f->name), f->kind);
        else if (f->name.len)
                item.keys[0] = ls_match_key(file, f->name.s, f->name.len);
        else if (m->build_id.len)
                item.keys[0] = ls_match_key_u64(ls_match_key(file, m->build_id.s, m->build_id.len),
                                                f->offset);
        if (f->kind == LS_FUNC_C || f->kind == LS_FUNC_NATIVE)
                item.keys[1] = f->name.len ? ls_match_key_u64(key_str('n', f->name), f->kind)
                                           : ls_match_key_u64(file, f->offset);
        return item;
}

typedef struct ls_match_item (*item_fn)(const struct ls_diff_run *run, uint32_t i);

/* Numbers things 1 .. n - 1 of each run; 0 stays 0. ret: where the run keeps them. */
static int number(struct ls_diff *d, item_fn make, const enum ls_match_rule rules[LS_DIFF_PASSES],
                  uint32_t (*count)(const struct ls_profile *),
                  uint32_t **(*ret)(struct ls_diff_run *), uint32_t *ret_n)
{
        struct ls_match m = { .first = 1 };
        int r = 0;

        for (unsigned k = 0; !r && k < d->n_runs; k++) {
                uint32_t n = count(d->runs[k].profile),
                         *numbers = calloc((size_t)n + 1, sizeof(*numbers));
                struct ls_match_item *items = calloc((size_t)n + 1, sizeof(*items));

                *ret(&d->runs[k]) = numbers;
                r = items && numbers ? 0 : -ENOMEM;
                for (uint32_t i = 1; !r && i < n; i++)
                        items[i] = make(&d->runs[k], i);
                if (!r && n > 1)
                        r = ls_match(&m, items + 1, n - 1, rules, numbers + 1);
                free(items);
        }
        *ret_n = m.n + 1;
        ls_match_done(&m);
        return r;
}

static uint32_t count_sources(const struct ls_profile *p)
{
        return p->n_sources;
}

static uint32_t count_functions(const struct ls_profile *p)
{
        return p->n_functions;
}

static uint32_t **sources_of(struct ls_diff_run *run)
{
        return &run->source_of;
}

static uint32_t **functions_of(struct ls_diff_run *run)
{
        return &run->function_of;
}

/* Lines can only be compared by number where all recordings are of one text. */
static int find_changed(struct ls_diff *d)
{
        uint64_t *text = calloc((size_t)d->n_sources + 1, sizeof(*text));

        d->changed = calloc((size_t)d->n_sources + 1, 1);
        if (!text || !d->changed) {
                free(text);
                return -ENOMEM;
        }
        for (unsigned k = 0; k < d->n_runs; k++) {
                for (uint32_t i = 1; i < d->runs[k].profile->n_sources; i++) {
                        const struct ls_source *s = &d->runs[k].profile->sources[i];
                        uint32_t at = d->runs[k].source_of[i];

                        if (!s->text_hash || (text[at] && text[at] != s->text_hash))
                                d->changed[at] = LS_CHANGED;
                        text[at] = s->text_hash;
                }
        }
        free(text);
        return 0;
}

static const struct ls_location *location_of(const struct ls_diff_run *run, uint32_t group)
{
        return &run->profile->locations[run->grouping->sample_of[group]];
}

static struct ls_match_item item_function(const struct ls_diff_run *run, uint32_t group)
{
        return (struct ls_match_item){
                .keys = { key_of('f', run->function_of[location_of(run, group)->function]) }
        };
}

/* A line of an unchanged text is its number; one of a mapped text, its number in the last one, or
 * one of no other text. Else it is counted from where its function begins. */
static uint64_t line_key(const struct ls_diff *d, const struct ls_diff_run *run,
                         const struct ls_location *l)
{
        const struct ls_function *f = &run->profile->functions[l->function];
        uint64_t function = key_of('f', run->function_of[l->function]),
                 source = key_of('l', run->source_of[f->source]);
        const struct ls_line_map *map = run->lines ? &run->lines[f->source] : NULL;

        if (f->kind != LS_FUNC_LUA)
                return function;
        if (d->changed[run->source_of[f->source]] == LS_CHANGED)
                return ls_match_key_u64(function, (uint64_t)l->line - f->first_line);
        if (!map || !map->to || !l->line)
                return ls_match_key_u64(source, l->line);
        if (l->line <= map->n && map->to[l->line - 1])
                return ls_match_key_u64(source, map->to[l->line - 1]);
        return ls_match_key_u64(ls_match_key_u64(source,
                                                 run->profile->sources[f->source].text_hash),
                                l->line);
}

static struct ls_match_item item_module(const struct ls_diff_run *run, uint32_t group)
{
        uint32_t function = location_of(run, group)->function;
        const struct ls_function *f = &run->profile->functions[function];
        uint64_t key;

        if (f->kind == LS_FUNC_LUA)
                key = key_of('s', run->source_of[f->source]);
        else if (f->kind == LS_FUNC_C || f->kind == LS_FUNC_NATIVE)
                key = ls_match_key_u64(key_str('m',
                                               last_part(run->profile->mappings[f->mapping].path)),
                                       f->kind);
        else
                key = f->kind == LS_FUNC_BUILTIN ? key_of('b', 0)
                                                 : key_of('f', run->function_of[function]);
        return (struct ls_match_item){ .keys = { key } };
}

/* Threads of a name, in the order of their numbers, which are those of their starts. */
static struct ls_match_item item_thread(const struct ls_diff_run *run, uint32_t group)
{
        const struct ls_thread *t = &run->profile->threads[run->grouping->sample_of[group]];

        return (struct ls_match_item){ .keys = { group ? key_str('t', t->name) : key_of('0', 0) },
                                       .order = t->tid };
}

static struct ls_match_item item_vm(const struct ls_diff_run *run, uint32_t group)
{
        const struct ls_vm *vm = &run->profile->vms[run->grouping->sample_of[group]];

        return (struct ls_match_item){ .keys = { group ? key_of('V', vm->number) : key_of('0', 0) },
                                       .order = vm->process };
}

static struct ls_match_item item_coroutine(const struct ls_diff_run *run, uint32_t group)
{
        const struct ls_coroutine *c = &run->profile->coroutines[run->grouping->sample_of[group]];

        return (struct ls_match_item){
                .order = c->vm,
                .keys = { group ? ls_match_key_u64(key_of('c', run->function_of[c->function]),
                                                   c->generation)
                                : key_of('0', 0) }
        };
}

/* Traces by where they start, which is more than their numbers say; what is not compiled is one
 * thing. */
static uint64_t trace_key(const struct ls_diff *d, const struct ls_diff_run *run, uint32_t group)
{
        const struct ls_jittrace *t = &run->profile->jittraces[run->grouping->sample_of[group]];

        if (!group)
                return key_of('0', 0);
        return ls_match_key_u64(line_key(d, run, &run->profile->locations[t->start]),
                                t->root ? 2 : 1);
}

static struct ls_match_item item_text(const struct ls_diff_run *run, uint32_t group)
{
        const char *text = ls_group_text(run->grouping, group);

        return (struct ls_match_item){ .keys = { ls_match_key('x', text, strlen(text)) } };
}

static struct ls_match_item item_line(const struct ls_diff *d, const struct ls_diff_run *run,
                                      uint32_t group)
{
        return (struct ls_match_item){ .keys = { line_key(d, run, location_of(run, group)) } };
}

static struct ls_match_item item_trace(const struct ls_diff *d, const struct ls_diff_run *run,
                                       uint32_t group)
{
        return (struct ls_match_item){
                .keys = { trace_key(d, run, group) },
                .order = run->profile->jittraces[run->grouping->sample_of[group]].number
        };
}

/* By what the groups of a key are known; keys that are not listed are known by their text. */
static const struct {
        const char *name;
        item_fn item;
        struct ls_match_item (*item_of_diff)(const struct ls_diff *d, const struct ls_diff_run *run,
                                             uint32_t group);
} keys[] = {
        { "function", item_function, NULL },
        { "module-function", item_function, NULL },
        { "line", NULL, item_line },
        { "module", item_module, NULL },
        { "thread", item_thread, NULL },
        { "vm", item_vm, NULL },
        { "coroutine", item_coroutine, NULL },
        { "jit-trace", NULL, item_trace },
};

static struct ls_match_item group_item(const struct ls_diff *d, const struct ls_diff_run *run,
                                       uint32_t group)
{
        const struct ls_grouping *g = run->grouping;

        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
                if (!strcmp(keys[i].name, g->key->name))
                        return keys[i].item ? keys[i].item(run, group)
                                            : keys[i].item_of_diff(d, run, group);
        return item_text(run, group);
}

/* Numbers of threads are of one recording: their names are shown alone. */
static char *group_name(const struct ls_diff_run *run, uint32_t group)
{
        const struct ls_grouping *g = run->grouping;
        char *text = NULL;

        if (!strcmp(g->key->name, "thread") && group) {
                const struct ls_str *name = &run->profile->threads[g->sample_of[group]].name;

                return name->len ? ls_visible(name->s, name->len) : strdup("(no name)");
        }
        if (!strcmp(g->key->name, "vm") && group)
                return asprintf(&text, "VM %u", g->key->number(g, group)) < 0 ? NULL : text;
        return strdup(ls_group_text(g, group));
}

/* The last recording that has an item gives it its name: the lines of a function are those after
 * the edit. */
static int name_items(struct ls_diff *d)
{
        d->items = calloc((size_t)d->n_items + 1, sizeof(*d->items));
        if (!d->items)
                return -ENOMEM;
        for (unsigned k = d->n_runs; k-- > 0;) {
                const struct ls_diff_run *run = &d->runs[k];
                const struct ls_report r = { .o = &d->o->o,
                                             .profile = run->profile,
                                             .labels = run->labels };

                for (uint32_t i = 0; i < run->grouping->n_groups; i++) {
                        struct ls_diff_item *item = &d->items[run->item_of[i]];
                        const struct ls_key *key = run->grouping->key;

                        if (item->name)
                                continue;
                        item->name = group_name(run, i);
                        if (!item->name)
                                return -ENOMEM;
                        if (key->function)
                                item->place = ls_place_text(&r, key->function(run->grouping, i));
                }
        }
        return 0;
}

struct named { const char *name; uint32_t at; };

static int by_name(const void *x, const void *y)
{
        const struct named *a = x, *b = y;
        int c = strcmp(a->name, b->name);

        return c ? c : a->at < b->at ? -1 : a->at > b->at;
}

/* Things of one name that have no place to tell them apart get numbers: "worker", "worker #2". */
static int number_names(struct ls_diff *d)
{
        struct named *sorted = calloc((size_t)d->n_items + 1, sizeof(*sorted));
        unsigned nth = 1;
        int r = sorted ? 0 : -ENOMEM;

        for (uint32_t i = 0; !r && i < d->n_items; i++)
                sorted[i] = (struct named){ d->items[i].name, i };
        if (!r)
                qsort(sorted, d->n_items, sizeof(*sorted), by_name);
        for (uint32_t i = 1; !r && i < d->n_items; i++) {
                struct ls_diff_item *item = &d->items[sorted[i].at];
                char *text;

                nth = strcmp(sorted[i].name, sorted[i - 1].name) ? 1 : nth + 1;
                if (nth == 1)
                        continue;
                if (asprintf(&text, "%s #%u", sorted[i].name, nth) < 0) {
                        r = -ENOMEM;
                        break;
                }
                item->unnumbered = item->name;  /* the next one is compared with it */
                item->name = text;
        }
        free(sorted);
        return r;
}

static int number_groups(struct ls_diff *d)
{
        static const enum ls_match_rule rules[LS_DIFF_PASSES] = { LS_MATCH_ALL };
        struct ls_match m = { .first = 0 };
        int r = 0;

        for (unsigned k = 0; !r && k < d->n_runs; k++) {
                struct ls_diff_run *run = &d->runs[k];
                uint32_t n = run->grouping->n_groups;
                struct ls_match_item *items = calloc((size_t)n + 1, sizeof(*items));

                run->item_of = calloc((size_t)n + 1, sizeof(*run->item_of));
                r = items && run->item_of ? 0 : -ENOMEM;
                for (uint32_t i = 0; !r && i < n; i++)
                        items[i] = group_item(d, run, i);
                if (!r)
                        r = ls_match(&m, items, n, rules, run->item_of);
                free(items);
        }
        d->n_items = m.n;
        ls_match_done(&m);
        return r;
}

int ls_diff_functions(struct ls_diff *d)
{
        static const enum ls_match_rule source_rules[LS_DIFF_PASSES] = {
                LS_MATCH_ALL, LS_MATCH_ALL, LS_MATCH_ALL, LS_MATCH_EQUAL, LS_MATCH_ALL, LS_MATCH_ONE
        };
        static const enum ls_match_rule function_rules[LS_DIFF_PASSES] = {
                LS_MATCH_ALL, LS_MATCH_ALL, LS_MATCH_ALL, LS_MATCH_ALL, LS_MATCH_ONE, LS_MATCH_EQUAL
        };
        int r = number(d, source_item, source_rules, count_sources, sources_of, &d->n_sources);

        if (!r)
                r = find_changed(d);
        return r ? r
                 : number(d, function_item, function_rules, count_functions, functions_of,
                          &d->n_functions);
}

int ls_diff_names(struct ls_diff *d)
{
        const char *by = d->o->o.by[0]->name;
        int r = ls_diff_functions(d);

        if (!r && (!strcmp(by, "line") || !strcmp(by, "jit-trace")))
                r = ls_diff_lines(d);
        if (!r)
                r = number_groups(d);
        if (!r)
                r = name_items(d);
        return r || d->o->o.by[0]->function ? r : number_names(d);
}
