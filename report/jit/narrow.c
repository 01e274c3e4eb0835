/* --line of luasample jit: the time of one line alone, with the builtins and C functions that it
 * called. Called by jit.c, before anything is summed up. */
#include "report/jit/jit.h"
#include "report/model/keys.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct wanted {
        char *file;                     /* pattern */
        uint32_t line;
};

static int is_file(const char *pattern, const char *label)
{
        const char *last = strrchr(label, '/');

        return fnmatch(pattern, label, 0) == 0 || (last && fnmatch(pattern, last + 1, 0) == 0);
}

static int fits(const struct ls_report *r, const struct wanted *w, uint32_t location)
{
        const struct ls_location *at = &r->profile->locations[location];
        const struct ls_function *f = &r->profile->functions[at->function];

        return f->source && at->line == w->line && is_file(w->file, r->labels->source[f->source]);
}

static void keep(const struct ls_report *r, struct ls_aggregate *a, const struct wanted *w,
                 const uint32_t *pays)
{
        const struct ls_profile *p = r->profile;
        uint64_t all = a->ticks;
        size_t n = 0;

        a->ticks = a->gc_ticks = 0;
        for (size_t i = 0; i < a->n_cells; i++) {
                const struct ls_cell *c = &a->cells[i];

                if (!fits(r, w, p->stacks[pays[c->stack]].location)) {
                        a->self[c->stack] = 0;
                        continue;
                }
                a->ticks += c->ticks;
                a->gc_ticks += c->vmstate == LS_VMSTATE_GC ? c->ticks : 0;
                a->cells[n++] = *c;
        }
        a->n_cells = n;
        a->effective = all ? a->effective * (double)a->ticks / (double)all : 0;
}

static const char *line_of(const char *text, unsigned long *ret)
{
        const char *colon = strrchr(text, ':');
        char *end = NULL;

        *ret = colon && colon[1] >= '0' && colon[1] <= '9' ? strtoul(colon + 1, &end, 10) : 0;
        return end && !*end && colon > text && *ret && *ret < UINT32_MAX ? colon : NULL;
}

int ls_jit_is_line(const char *text)
{
        unsigned long line;

        return line_of(text, &line) != NULL;
}

int ls_jit_narrow(const struct ls_report *r, struct ls_aggregate *a, const char *line)
{
        struct wanted w;
        unsigned long n;
        const char *colon = line_of(line, &n);
        uint32_t *pays;

        if (!colon)
                return -EINVAL;
        w.line = (uint32_t)n;
        w.file = strndup(line, (size_t)(colon - line));
        pays = w.file ? ls_paying_stacks(r->profile) : NULL;
        if (pays)
                keep(r, a, &w, pays);
        free(w.file);
        if (!pays)
                return -ENOMEM;
        free(pays);
        return a->ticks ? 0 : -ENOENT;
}
