/* Rows of files of minor version 0 that say by a flag that their leaf's line is not known: they get
 * a stack whose leaf is at line 0, as later files have it. Called by resolve.c and samples.c. */
#include "formats/trace/reader_parts.h"

#include <errno.h>
#include <stdlib.h>

static int has_no_line(uint8_t vmstate, uint8_t flags)
{
        /* The flag is the whole sample's; what was not compiled code has its line. */
        return (flags & LS_SAMPLE_NO_LINE) && vmstate == LS_VMSTATE_NATIVE;
}

static int mark(void *ctx, const struct ls_sample_block *b)
{
        struct ls_reader *r = ctx;

        if (b->same_flags && b->n && !(b->flags[0] & LS_SAMPLE_NO_LINE))
                return 0;
        for (uint32_t i = 0; i < b->n; i++) {
                if (!has_no_line(b->vmstate[i], b->flags[i]))
                        continue;
                if (!r->no_line)
                        r->no_line = calloc(r->p->n_stacks, sizeof(*r->no_line));
                if (!r->no_line)
                        return -ENOMEM;
                r->no_line[b->stack[i]] = 1;
        }
        return 0;
}

/* Makes the location of a function at line 0; *made: by function, 0 = none yet. */
static uint32_t make_location(struct ls_profile *p, uint32_t function, uint32_t *made)
{
        if (!made[function]) {
                p->locations[p->n_locations] = (struct ls_location){ function, 0 };
                made[function] = p->n_locations++;
        }
        return made[function];
}

/* From marks to stacks, which are new: of no_line[], 0 where the leaf has no line in any case. */
static int make_stacks(struct ls_reader *r)
{
        struct ls_profile *p = r->p;
        uint32_t n = p->n_stacks, more = 0, *made = calloc(p->n_functions, sizeof(*made));
        size_t n_locations = (size_t)p->n_locations + p->n_functions;
        struct ls_location *locations = reallocarray(p->locations, n_locations, sizeof(*locations));
        struct ls_stack *stacks;

        p->locations = locations ? locations : p->locations;
        for (uint32_t i = 1; i < n; i++)
                more += r->no_line[i];
        stacks = reallocarray(p->stacks, (size_t)n + more, sizeof(*stacks));
        p->stacks = stacks ? stacks : p->stacks;
        for (uint32_t i = 0; made && locations && stacks && i < n; i++) {
                struct ls_location leaf = p->locations[stacks[i].location];

                if (!r->no_line[i])
                        continue;
                r->no_line[i] = 0;
                if (!i || p->functions[leaf.function].kind != LS_FUNC_LUA)
                        continue;
                r->no_line[i] = p->n_stacks;
                stacks[p->n_stacks] = stacks[i];
                stacks[p->n_stacks++].location = make_location(p, leaf.function, made);
        }
        free(made);
        return made && locations && stacks ? 0 : -ENOMEM;
}

int ls_resolve_no_line(struct ls_reader *r)
{
        int e = 0;

        if (!r->header_ok || r->minor == 0)
                e = ls_samples_scan(r, mark, r);
        r->p->lost_ticks = 0;           /* known once samples are read */
        return !e && r->no_line ? make_stacks(r) : e;
}

void ls_no_line_move_rows(const struct ls_reader *r, const uint8_t *vmstate, const uint8_t *flags,
                          uint32_t n, uint32_t *stack)
{
        for (uint32_t i = 0; i < n; i++)
                if (has_no_line(vmstate[i], flags[i]) && r->no_line[stack[i]])
                        stack[i] = r->no_line[stack[i]];
}
