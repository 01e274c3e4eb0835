/* What samples can be grouped by. A key maps locations (or samples) to dense group numbers once,
 * before the samples are read. Used by report/model/rows.c, view/tree.c and export.c. */
#include "report/model/keys.h"

#include "formats/escape.h"
#include "report/model/keys_label.h"
#include "report/model/keys_thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ZONES 64            /* zones of a path that are shown */
#define MOST_PATH 4096u         /* and bytes; the agent sends names of 4096 at most */

static const struct ls_location *location_of(const struct ls_grouping *g, uint32_t group)
{
        return &g->profile->locations[g->sample_of[group]];
}

static const struct ls_function *function_at(const struct ls_grouping *g, uint32_t group)
{
        return &g->profile->functions[location_of(g, group)->function];
}

static uint32_t source_of_frame(const struct ls_grouping *g, uint32_t group)
{
        const struct ls_function *f = function_at(g, group);

        return f->kind == LS_FUNC_LUA ? f->source : 0;
}

static int prepare_frames(struct ls_grouping *g,
                          void (*key)(const struct ls_profile *, uint32_t, struct ls_keyed *))
{
        uint32_t n = g->profile->n_locations;
        struct ls_keyed *k = malloc(((size_t)n + 1) * sizeof(*k));
        int r;

        if (!k)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                k[i] = (struct ls_keyed){ 0, 0, i };
                key(g->profile, i, &k[i]);
        }
        r = ls_number_groups(g, k, n);
        free(k);
        return r;
}

static void key_function(const struct ls_profile *p, uint32_t location, struct ls_keyed *k)
{
        k->a = p->locations[location].function;
}

/* Lines of one source are one line for all functions on it; what has no line is its function. */
static void key_line(const struct ls_profile *p, uint32_t location, struct ls_keyed *k)
{
        const struct ls_location *l = &p->locations[location];
        const struct ls_function *f = &p->functions[l->function];

        if (f->kind == LS_FUNC_LUA) {
                k->a = f->source;
                k->b = l->line;
        } else {
                k->a = (uint64_t)1 << 32 | l->function;
        }
}

/* Lua: its source. C: its mapping. Builtins together; pseudo frames each. */
static void key_module(const struct ls_profile *p, uint32_t location, struct ls_keyed *k)
{
        uint32_t function = p->locations[location].function;
        const struct ls_function *f = &p->functions[function];

        k->b = f->kind | (uint64_t)(f->flags & LS_FUNCF_INLINED) << 32;
        if (f->kind == LS_FUNC_LUA)
                k->a = f->source;
        else if (f->kind == LS_FUNC_C || f->kind == LS_FUNC_NATIVE)
                k->a = f->mapping;
        else if (f->kind != LS_FUNC_BUILTIN)
                k->a = function;
}

static int is_inlined(const struct ls_profile *p, uint32_t location)
{
        return (p->functions[p->locations[location].function].flags & LS_FUNCF_INLINED) != 0;
}

/* By stack: its own, but for builtins that compiled code has inlined: they are their callers. Both
 * stay NULL when there are none, or they are wanted. */
static int pay_for_inlined(struct ls_grouping *g)
{
        const struct ls_profile *p = g->profile;
        int any = 0;

        for (uint32_t i = 1; !any && !g->labels->inlined && i < p->n_functions; i++)
                any = (p->functions[i].flags & LS_FUNCF_INLINED) != 0;
        if (!any)
                return 0;
        g->paying = malloc(((size_t)p->n_stacks + 1) * sizeof(*g->paying));
        for (uint32_t i = 0; g->paying && i < p->n_stacks; i++)
                g->paying[i] = is_inlined(p, p->stacks[i].location) && p->stacks[i].parent
                                       ? p->stacks[i].parent
                                       : i;
        return g->paying ? 0 : -ENOMEM;
}

static int prepare_function(struct ls_grouping *g)
{
        int r = pay_for_inlined(g);

        return r ? r : prepare_frames(g, key_function);
}

uint32_t *ls_paying_stacks(const struct ls_profile *p)
{
        uint32_t *paying = calloc((size_t)p->n_stacks + 1, sizeof(*paying));

        /* A caller has a smaller number. 0 = no Lua called it. */
        for (uint32_t i = 1; paying && i < p->n_stacks; i++) {
                uint8_t kind = p->functions[p->locations[p->stacks[i].location].function].kind;

                if (kind == LS_FUNC_LUA)
                        paying[i] = i;
                else if (kind == LS_FUNC_BUILTIN || kind == LS_FUNC_C || kind == LS_FUNC_NATIVE)
                        paying[i] = paying[p->stacks[i].parent];
        }
        for (uint32_t i = 1; paying && i < p->n_stacks; i++)
                if (!paying[i])
                        paying[i] = i;
        return paying;
}

static int prepare_line(struct ls_grouping *g)
{
        g->paying = ls_paying_stacks(g->profile);
        return g->paying ? prepare_frames(g, key_line) : -ENOMEM;
}

static int prepare_module(struct ls_grouping *g)
{
        int r = pay_for_inlined(g);

        return r ? r : prepare_frames(g, key_module);
}

int ls_group_pays(const struct ls_grouping *g, uint32_t group)
{
        if (!g->paying)
                return 1;
        return g->key->line ? source_of_frame(g, group) != 0
                            : !is_inlined(g->profile, g->sample_of[group]);
}

static const char *text_function(const struct ls_grouping *g, uint32_t group)
{
        return g->labels->function[location_of(g, group)->function];
}

static char *module_text(const struct ls_grouping *g, const struct ls_function *f,
                         const char *fallback)
{
        struct ls_str path;
        const char *slash;

        switch (f->kind) {
        case LS_FUNC_LUA:
                return strdup(g->labels->source[f->source]);
        case LS_FUNC_C:
        case LS_FUNC_NATIVE:
                path = g->profile->mappings[f->mapping].path;
                if (!f->mapping || !path.len)
                        return strdup("[C]");
                slash = memrchr(path.s, '/', path.len);
                return slash ? ls_visible(slash + 1, path.len - (size_t)(slash + 1 - path.s))
                             : ls_visible(path.s, path.len);
        case LS_FUNC_BUILTIN:
                return strdup(f->flags & LS_FUNCF_INLINED ? "[inlined]" : "[builtin]");
        default:
                return strdup(fallback);
        }
}

static char *make_text(const struct ls_grouping *g, uint32_t group)
{
        const struct ls_location *l = location_of(g, group);
        const struct ls_function *f = &g->profile->functions[l->function];
        const char *function = g->labels->function[l->function];
        char *module, *text;

        if (!strcmp(g->key->name, "line")) {
                if (f->kind != LS_FUNC_LUA)
                        return strdup(function);
                if (asprintf(&text, l->line ? "%s:%u" : "%s:?", g->labels->source[f->source],
                             l->line) < 0)
                        return NULL;
                return text;
        }
        module = module_text(g, f, function);
        if (!module || !strcmp(g->key->name, "module") || f->kind != LS_FUNC_LUA)
                return !module || !strcmp(g->key->name, "module")
                               ? module
                               : (free(module), strdup(function));
        /* These labels name their file already. */
        if ((f->flags & LS_FUNCF_MAIN) || !f->name.len) {
                if (asprintf(&text, (f->flags & LS_FUNCF_MAIN) ? "%s:main chunk" : "%s:%u", module,
                             f->first_line) < 0)
                        text = NULL;
        } else if (asprintf(&text, "%s:%s", module, function) < 0) {
                text = NULL;
        }
        free(module);
        return text;
}

static const char *text_made(const struct ls_grouping *g, uint32_t group)
{
        if (!g->texts[group])
                g->texts[group] = make_text(g, group);
        return g->texts[group] ? g->texts[group] : "[out of memory]";
}

static uint32_t function_of_frame(const struct ls_grouping *g, uint32_t group)
{
        return location_of(g, group)->function;
}

static uint32_t line_of_frame(const struct ls_grouping *g, uint32_t group)
{
        return location_of(g, group)->line;
}

static int prepare_vmstate(struct ls_grouping *g)
{
        g->n_groups = LS_NVMSTATES;
        return 0;
}

static uint32_t group_vmstate(const struct ls_grouping *g, const struct ls_cell *c)
{
        (void)g;
        return c->vmstate < LS_NVMSTATES ? c->vmstate : LS_VMSTATE_INTERPRETED;
}

static const char *text_vmstate(const struct ls_grouping *g, uint32_t group)
{
        static const char *const labels[] = {
#define LS_VMSTATE(letter, NAME, name, label) label,
#include "formats/wire/vmstates.def"
#undef LS_VMSTATE
        };

        (void)g;
        return labels[group];
}

static int prepare_type(struct ls_grouping *g)
{
        g->n_groups = LS_NOBJTYPES;
        return 0;
}

static uint32_t group_type(const struct ls_grouping *g, const struct ls_cell *c)
{
        (void)g;
        return c->type;
}

static const char *text_type(const struct ls_grouping *g, uint32_t group)
{
        static const char *const names[] = {
#define LS_OBJTYPE(NAME, name, gct) name,
#include "formats/wire/objtypes.def"
#undef LS_OBJTYPE
        };

        (void)g;
        return names[group];
}

struct zone_name {
        struct ls_str name;
        uint32_t id;
};

static int by_zone_name(const void *a, const void *b)
{
        const struct zone_name *x = a, *y = b;
        uint32_t n = x->name.len < y->name.len ? x->name.len : y->name.len;
        int c = n ? memcmp(x->name.s, y->name.s, n) : 0;

        if (c)
                return c;
        if (x->name.len != y->name.len)
                return x->name.len < y->name.len ? -1 : 1;
        return x->id < y->id ? -1 : x->id > y->id;
}

/* Zones of one name are one group, whatever they are in: as with -jp=z, the innermost counts. */
static int prepare_zone(struct ls_grouping *g)
{
        uint32_t n = g->profile->n_zones;
        struct zone_name *names = malloc(((size_t)n + 1) * sizeof(*names));
        int r = -ENOMEM;

        g->group_of = calloc((size_t)n + 1, sizeof(*g->group_of));
        g->sample_of = calloc((size_t)n + 2, sizeof(*g->sample_of));
        if (names && g->group_of && g->sample_of) {
                for (uint32_t i = 1; i < n; i++)
                        names[i] = (struct zone_name){ g->profile->zones[i].name, i };
                if (n > 1)
                        qsort(names + 1, n - 1, sizeof(*names), by_zone_name);
                g->n_groups = 1;        /* group 0: no zone */
                for (uint32_t i = 1; i < n; i++) {
                        if (i == 1 || names[i].name.len != names[i - 1].name.len ||
                            memcmp(names[i].name.s, names[i - 1].name.s, names[i].name.len))
                                g->sample_of[g->n_groups++] = names[i].id;
                        g->group_of[names[i].id] = g->n_groups - 1;
                }
                r = 0;
        }
        free(names);
        return r;
}

static int prepare_zone_path(struct ls_grouping *g)
{
        uint32_t n = g->profile->n_zones;

        g->group_of = calloc((size_t)n + 1, sizeof(*g->group_of));
        g->sample_of = calloc((size_t)n + 1, sizeof(*g->sample_of));
        if (!g->group_of || !g->sample_of)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                g->group_of[i] = g->sample_of[i] = i;
        g->n_groups = n ? n : 1;
        return 0;
}

static uint32_t group_zone(const struct ls_grouping *g, const struct ls_cell *c)
{
        return g->group_of[c->zone];
}

static const char *text_zone(const struct ls_grouping *g, uint32_t group)
{
        const struct ls_str *name = &g->profile->zones[g->sample_of[group]].name;

        if (group == 0)
                return "(none)";
        if (!g->texts[group])
                g->texts[group] = ls_visible(name->s, name->len);
        return g->texts[group] ? g->texts[group] : "[out of memory]";
}

/* Outermost first: "AI;A*". Past MAX_ZONES, or so many bytes, the outer ones are left out: a
 * hostile trace may nest any number, of any length, any number of times. */
char *ls_zone_path(const struct ls_profile *p, uint32_t zone)
{
        char *text = NULL, *inner = strdup("");
        unsigned cut = 0;

        for (unsigned n = 0; inner && zone && !cut; zone = p->zones[zone].parent, n++) {
                const struct ls_str *s = &p->zones[zone].name;
                char *name;

                cut = n == MAX_ZONES || (n && strlen(inner) + s->len > MOST_PATH);
                name = cut ? strdup("...")
                           : ls_visible(s->s, s->len < MOST_PATH ? s->len : MOST_PATH);
                if (!name || asprintf(&text, "%s%s%s", name, *inner ? ";" : "", inner) < 0)
                        text = NULL;
                free(name);
                free(inner);
                inner = text;
        }
        return inner;
}

static const char *text_zone_path(const struct ls_grouping *g, uint32_t group)
{
        if (group == 0)
                return "(none)";
        if (!g->texts[group])
                g->texts[group] = ls_zone_path(g->profile, g->sample_of[group]);
        return g->texts[group] ? g->texts[group] : "[out of memory]";
}

const struct ls_key ls_keys[] = {
        { "function", "Function", "function", "by function, told apart by definition", 'f', 0, 1,
          prepare_function, NULL, text_function, function_of_frame, NULL, source_of_frame, NULL },
        { "module-function", "Module:Function", "function", "the same, shown as module:function",
          'F', 0, 1, prepare_function, NULL, text_made, function_of_frame, NULL, source_of_frame,
          NULL },
        { "line", "Line", "line", "by source line", 'l', 0, 1, prepare_line, NULL, text_made, NULL,
          line_of_frame, source_of_frame, NULL },
        { "module", "Module", "module", "by source file or C module", 0, 0, 1, prepare_module, NULL,
          text_made, NULL, NULL, source_of_frame, NULL },
        { "vmstate", "VM state", "vmstate", "by what the VM was doing", 'v', LS_DIM_VMSTATE, 0,
          prepare_vmstate, group_vmstate, text_vmstate, NULL, NULL, NULL, NULL },
        { "zone", "Zone", "zone", "by the innermost zone", 'z', LS_DIM_ZONE, 0, prepare_zone,
          group_zone, text_zone, NULL, NULL, NULL, NULL },
        { "zone-path", "Zone", "zone", "by the whole path of zones", 0, LS_DIM_ZONE, 0,
          prepare_zone_path, group_zone, text_zone_path, NULL, NULL, NULL, NULL },
        { "process", "Process", "process", "by process: its number and name", 0, LS_DIM_THREAD, 0,
          ls_prepare_process, ls_group_process, ls_text_process, NULL, NULL, NULL,
          ls_number_process },
        { "thread", "Thread", "thread", "by thread: its name and number", 0, LS_DIM_THREAD, 0,
          ls_prepare_thread, ls_group_thread, ls_text_thread, NULL, NULL, NULL, ls_number_thread },
        { "vm", "VM", "vm", "by Lua VM", 0, LS_DIM_VM, 0, ls_prepare_vm, ls_group_vm, ls_text_vm,
          NULL, NULL, NULL, ls_number_vm },
        { "coroutine", "Coroutine", "coroutine",
          "by coroutine: its body function, and which one of that body", 0, LS_DIM_COROUTINE, 0,
          ls_prepare_coroutine, ls_group_coroutine, ls_text_coroutine, NULL, NULL, NULL, NULL },
        { "jit-trace", "Trace", "trace", "by trace of the JIT compiler, and where it starts", 0,
          LS_DIM_TRACE, 0, ls_prepare_trace, ls_group_trace, ls_text_trace, NULL, NULL, NULL,
          ls_number_trace, .old_name = "trace" },
        { "type", "Type", "type", "by the type of the allocated block: string, table, ...", 0,
          LS_DIM_TYPE, 0, prepare_type, group_type, text_type, NULL, NULL, NULL, NULL },
        { "label", "Labels", "label",
          "by the labels of the program; label:KEY by the values of one", 0, LS_DIM_LABEL, 0,
          ls_prepare_label, ls_group_label, ls_text_label, NULL, NULL, NULL, NULL },
        { .name = NULL },
};

const struct ls_key *ls_key_find(const char *name, uint32_t len)
{
        for (const struct ls_key *k = ls_keys; k->name; k++) {
                size_t own = strlen(k->name);

                if (own == len && !strncmp(k->name, name, len))
                        return k;
                if (k->old_name && strlen(k->old_name) == len && !strncmp(k->old_name, name, len))
                        return k;
                if (k->dims == LS_DIM_LABEL && len > own + 1 && !strncmp(k->name, name, own) &&
                    name[own] == ':')
                        return ls_key_of_label(k, name, len);
        }
        return NULL;
}

const struct ls_key *ls_label_key(const struct ls_profile *p, uint32_t label)
{
        const struct ls_str *name = &p->sample_labels[label].key;
        char *text = strlen(name->s) == name->len ? ls_print("label:%s", name->s) : NULL;
        const struct ls_key *key = text ? ls_key_find(text, (uint32_t)strlen(text)) : NULL;

        free(text);
        return key;
}

int ls_grouping_new(const struct ls_key *key, const struct ls_profile *p,
                    const struct ls_labels *labels, struct ls_grouping **ret)
{
        struct ls_grouping *g = calloc(1, sizeof(*g));
        int r = -ENOMEM;

        if (!g)
                return r;
        g->key = key;
        g->profile = p;
        g->labels = labels;
        r = key->prepare(g);
        if (!r && !g->texts) {
                g->texts = calloc((size_t)g->n_groups + 1, sizeof(*g->texts));
                r = g->texts ? 0 : -ENOMEM;
        }
        if (r) {
                ls_grouping_free(g);
                return r;
        }
        *ret = g;
        return 0;
}

void ls_grouping_free(struct ls_grouping *g)
{
        if (!g)
                return;
        for (uint32_t i = 0; g->texts && i < g->n_groups; i++)
                free(g->texts[i]);
        free(g->texts);
        free(g->group_of);
        free(g->sample_of);
        free(g->paying);
        free(g);
}

const char *ls_group_text(const struct ls_grouping *g, uint32_t group)
{
        return group < g->n_groups ? g->key->text(g, group) : "[unknown]";
}

uint32_t ls_group_of_cell(const struct ls_grouping *g, const struct ls_cell *c)
{
        if (!g->key->is_frame)
                return g->key->group(g, c);
        return g->group_of[g->profile->stacks[g->paying ? g->paying[c->stack] : c->stack].location];
}
