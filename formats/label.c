/* What functions and sources are called when shown. Used by the exporters and by report/. */
#include "formats/label.h"
#include "formats/escape.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PARTS 64            /* directories tried to tell two files apart */
#define MAX_CHUNK_NAME 40       /* columns of the text of a loaded chunk in its name */
#define MAX_NAME                                                                                   \
        512 /* bytes of a name that are shown: a trace may give one long name to many functions */

struct ls_str ls_source_path(const struct ls_source *s)
{
        if (s->path.len)
                return s->path;
        if (s->name.len > 1 && s->name.s[0] == '@')
                return (struct ls_str){ s->name.s + 1, s->name.len - 1 };
        return (struct ls_str){ "", 0 };
}

/* The last n parts of a path; all of it when it has fewer. */
static struct ls_str last_parts(struct ls_str path, unsigned n)
{
        uint32_t at = path.len;

        while (at > 0) {
                if (path.s[at - 1] == '/' && at < path.len && --n == 0)
                        break;
                at--;
        }
        return (struct ls_str){ path.s + at, path.len - at };
}

static char *visible_name(struct ls_str name)
{
        char *start, *text = NULL;

        if (name.len <= MAX_NAME)
                return ls_visible(name.s, name.len);
        start = ls_visible(name.s, MAX_NAME);
        if (start && asprintf(&text, "%s...", start) < 0)
                text = NULL;
        free(start);
        return text;
}

/* Lua's own way to show a chunk that is no file: [string "first line..."]. */
static char *string_chunk_label(struct ls_str name)
{
        uint32_t len = 0;
        char *text, *out;
        size_t fit;

        if (name.len && name.s[0] == '\033')
                return strdup("[bytecode]");
        while (len < name.len && len < MAX_NAME && name.s[len] != '\n' && name.s[len] != '\r')
                len++;
        text = ls_visible(name.s, len);
        if (!text)
                return NULL;
        fit = ls_fit(text, MAX_CHUNK_NAME);
        if (asprintf(&out, "[string \"%.*s%s\"]", (int)fit, text,
                     fit < strlen(text) || len < name.len ? "..." : "") < 0)
                out = NULL;
        free(text);
        return out;
}

static char *source_label(const struct ls_source *s, unsigned parts)
{
        struct ls_str path = ls_source_path(s);

        if (path.len)
                return visible_name(last_parts(path, parts));
        if (s->name.len && (s->name.s[0] == '=' || s->name.s[0] == '@'))
                return visible_name((struct ls_str){ s->name.s + 1, s->name.len - 1 });
        return string_chunk_label(s->name);
}

struct named {                          /* for finding equal labels */
        const char *text;
        uint32_t id;
};

static int by_text(const void *a, const void *b)
{
        const struct named *x = a, *y = b;
        int c = strcmp(x->text, y->text);

        return c ? c : x->id < y->id ? -1 : x->id > y->id;
}

/* Sorts labels 1..n-1 so that equal ones are neighbours. */
static struct named *sort_labels(char *const *labels, uint32_t n)
{
        struct named *sorted = malloc(((size_t)n + 1) * sizeof(*sorted));

        if (!sorted)
                return NULL;
        for (uint32_t i = 0; i < n; i++)
                sorted[i] = (struct named){ labels[i], i };
        qsort(sorted, n, sizeof(*sorted), by_text);
        return sorted;
}

/* End of the run of equal labels that starts at i. */
static uint32_t run_end(const struct named *sorted, uint32_t n, uint32_t i)
{
        uint32_t end = i + 1;

        while (end < n && !strcmp(sorted[end].text, sorted[i].text))
                end++;
        return end;
}

/* Replaces a label by a printed one. */
static int relabel(char **label, const char *fmt, const char *a, const char *b, unsigned n)
{
        char *text;

        if (asprintf(&text, fmt, a, b, n) < 0)
                return -ENOMEM;
        free(*label);
        *label = text;
        return 0;
}

/* What is still equal after all else gets a number, in order of ids: "x", "x#2". */
static int number_equals(char **labels, uint32_t n)
{
        struct named *sorted = sort_labels(labels, n);
        int r = sorted ? 0 : -ENOMEM;

        for (uint32_t i = 0, end; !r && i < n; i = end) {
                char *text = NULL;

                end = run_end(sorted, n, i);
                if (end - i < 2 || !*sorted[i].text)
                        continue;
                text = strdup(sorted[i].text);
                if (!text)
                        r = -ENOMEM;
                for (uint32_t k = i + 1; !r && k < end; k++)
                        r = relabel(&labels[sorted[k].id], "%s%s#%u", text, "", k - i + 1);
                free(text);
        }
        free(sorted);
        return r;
}

/* Gives files of equal names more of their directories, one at a time. */
static int widen_sources(const struct ls_profile *p, char **labels)
{
        int again = 1;

        for (unsigned parts = 2; again && parts <= MAX_PARTS; parts++) {
                struct named *sorted = sort_labels(labels, p->n_sources);

                if (!sorted)
                        return -ENOMEM;
                again = 0;
                for (uint32_t i = 0, end; i < p->n_sources; i = end) {
                        end = run_end(sorted, p->n_sources, i);
                        for (uint32_t k = i; end - i > 1 && k < end; k++) {
                                uint32_t id = sorted[k].id;
                                char *wider;

                                if (!ls_source_path(&p->sources[id]).len)
                                        continue;
                                wider = source_label(&p->sources[id], parts);
                                if (!wider) {
                                        free(sorted);
                                        return -ENOMEM;
                                }
                                again |= strcmp(wider, labels[id]) != 0;
                                /* sorted[] still points to the label of the run's first: replace
                                 * after the run */
                                sorted[k].text = wider;
                        }
                        for (uint32_t k = i; end - i > 1 && k < end; k++) {
                                if (sorted[k].text == labels[sorted[k].id])
                                        continue;
                                free(labels[sorted[k].id]);
                                labels[sorted[k].id] = (char *)(uintptr_t)sorted[k].text;
                        }
                }
                free(sorted);
        }
        return 0;
}

static int label_sources(const struct ls_profile *p, int full_path, struct ls_labels *l)
{
        int r;

        for (uint32_t i = 0; i < p->n_sources; i++) {
                l->source[i] = i ? source_label(&p->sources[i], full_path ? UINT32_MAX : 1)
                                 : strdup("");
                if (!l->source[i])
                        return -ENOMEM;
        }
        r = full_path ? 0 : widen_sources(p, l->source);
        return r ? r : number_equals(l->source, p->n_sources);
}

static struct ls_str mapping_name(const struct ls_profile *p, const struct ls_function *f)
{
        struct ls_str path = p->mappings[f->mapping].path;

        return f->mapping && path.len ? last_parts(path, 1)
                                      : (struct ls_str){ "[unknown module]", 16 };
}

static char *c_function_label(const struct ls_profile *p, const struct ls_function *f)
{
        struct ls_str file = mapping_name(p, f);
        char *name = visible_name(file), *out;

        if (!name || asprintf(&out, "%s+0x%llx", name, (unsigned long long)f->offset) < 0)
                out = NULL;
        free(name);
        return out;
}

static char *function_label(const struct ls_profile *p, const struct ls_labels *l, uint32_t id)
{
        const struct ls_function *f = &p->functions[id];
        char *out;
        int n;

        if (id == 0)
                return strdup("[no function]");
        if (f->kind == LS_FUNC_LUA && (f->flags & LS_FUNCF_MAIN))
                n = asprintf(&out, "main chunk@%s", l->source[f->source]);
        else if (f->name.len && (f->flags & LS_FUNCF_INLINED))
                n = asprintf(&out, "%.*s (inlined)", (int)f->name.len, f->name.s);
        else if (f->name.len)
                return visible_name(f->name);
        else if (f->kind == LS_FUNC_LUA)
                n = asprintf(&out, "function@%s:%u", l->source[f->source], f->first_line);
        else if (f->kind == LS_FUNC_C || f->kind == LS_FUNC_NATIVE)
                return c_function_label(p, f);
        else if (f->kind == LS_FUNC_TRACE)      /* with nothing below it that could be named in its
                                                 * place */
                return strdup("[compiled code]");
        else
                return strdup("[unnamed]");
        return n < 0 ? NULL : out;
}

/* Where a function is from, to tell it from others of its name. */
static int add_place(const struct ls_profile *p, struct ls_labels *l, uint32_t id, const char *name)
{
        const struct ls_function *f = &p->functions[id];
        struct ls_str file;
        char *module;
        int r;

        if (f->kind == LS_FUNC_LUA && !(f->flags & LS_FUNCF_MAIN) && f->name.len)
                return relabel(&l->function[id], "%s@%s:%u", name, l->source[f->source],
                               f->first_line);
        if (f->kind != LS_FUNC_C || !f->name.len)
                return 0;
        file = mapping_name(p, f);
        module = visible_name(file);
        if (!module)
                return -ENOMEM;
        r = relabel(&l->function[id], "%s@%s", name, module, 0);
        free(module);
        return r;
}

static int label_functions(const struct ls_profile *p, struct ls_labels *l)
{
        struct named *sorted;
        int r = 0;

        for (uint32_t i = 0; i < p->n_functions; i++) {
                l->function[i] = function_label(p, l, i);
                if (!l->function[i])
                        return -ENOMEM;
        }
        sorted = sort_labels(l->function, p->n_functions);
        if (!sorted)
                return -ENOMEM;
        for (uint32_t i = 0, end; !r && i < p->n_functions; i = end) {
                char *name = NULL;

                end = run_end(sorted, p->n_functions, i);
                if (end - i < 2)
                        continue;
                name = strdup(sorted[i].text);
                if (!name)
                        r = -ENOMEM;
                for (uint32_t k = i; !r && k < end; k++)
                        r = add_place(p, l, sorted[k].id, name);
                free(name);
        }
        free(sorted);
        return r ? r : number_equals(l->function, p->n_functions);
}

int ls_labels_new(const struct ls_profile *p, int full_path, struct ls_labels **ret)
{
        struct ls_labels *l = calloc(1, sizeof(*l));
        int r = -ENOMEM;

        if (!l)
                return -ENOMEM;
        l->n_sources = p->n_sources;
        l->n_functions = p->n_functions;
        l->source = calloc((size_t)p->n_sources + 1, sizeof(*l->source));
        l->function = calloc((size_t)p->n_functions + 1, sizeof(*l->function));
        if (l->source && l->function)
                r = label_sources(p, full_path, l);
        if (!r)
                r = label_functions(p, l);
        if (r) {
                ls_labels_free(l);
                return r;
        }
        *ret = l;
        return 0;
}

void ls_labels_free(struct ls_labels *l)
{
        if (!l)
                return;
        for (uint32_t i = 0; l->source && i < l->n_sources; i++)
                free(l->source[i]);
        for (uint32_t i = 0; l->function && i < l->n_functions; i++)
                free(l->function[i]);
        free(l->source);
        free(l->function);
        free(l);
}
