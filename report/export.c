/* luasample report --format: gives the filtered samples to an exporter of formats/. Called by report/report.c. */
#include "report/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Keys of the sample as a whole become frames: before the root when they come first in --by, else after the leaf. */
struct tags {
        const char **texts;             /* from 1 */
        size_t n;
        uint32_t base[2];               /* tag of group 0 of each level; 0 = this level is of frames */
};

static const char *frame_text(void *ctx, uint32_t frame)
{
        return ls_group_text(ctx, frame);
}

unsigned ls_report_export_dims(const struct ls_report_options *o)
{
        return LS_DIM_NOLINE | o->exporter->dims | o->by[0]->dims | (o->by[1] ? o->by[1]->dims : 0);
}

static int add_tags(struct tags *t, int level, const struct ls_grouping *g)
{
        const char **bigger = realloc(t->texts, (t->n + g->n_groups + 2) * sizeof(*bigger));

        if (!bigger)
                return -ENOMEM;
        t->texts = bigger;
        if (t->n == 0)
                t->texts[t->n++] = "";
        t->base[level] = (uint32_t)t->n;
        for (uint32_t i = 0; i < g->n_groups; i++)
                t->texts[t->n++] = ls_group_text(g, i);
        return 0;
}

static int find_frames(const struct ls_report *r, struct ls_grouping *g[2], struct tags *tags, struct ls_grouping **ret)
{
        int error = 0;

        *ret = NULL;
        for (int level = 0; !error && level < 2 && r->o->by[level]; level++) {
                error = ls_grouping_new(r->o->by[level], r->profile, r->labels, &g[level]);
                if (!error && g[level]->key->is_frame)
                        *ret = *ret ? *ret : g[level];
                else if (!error)
                        error = add_tags(tags, level, g[level]);
        }
        return error;
}

static struct ls_export_cell *make_cells(const struct ls_report *r, struct ls_grouping *const g[2], const struct tags *tags,
                                         const struct ls_grouping *frames, uint32_t noline_tag)
{
        const struct ls_aggregate *a = r->aggregate;
        struct ls_export_cell *cells = calloc(a->n_cells + 1, sizeof(*cells));

        for (size_t i = 0; cells && i < a->n_cells; i++) {
                const struct ls_cell *c = &a->cells[i];

                cells[i] = (struct ls_export_cell){ .ticks = c->ticks, .stack = c->stack, .zone = c->zone, .thread = c->thread,
                                                    .vm = c->vm, .coroutine = c->coroutine, .trace = c->trace,
                                                    .vmstate = c->vmstate, .noline = c->noline };
                if (tags->base[0])
                        cells[i].prefix = tags->base[0] + ls_group_of_cell(g[0], c);
                if (tags->base[1])
                        cells[i].suffix = tags->base[1] + ls_group_of_cell(g[1], c);
                /* A leaf shown as a line that is not known gives its place to a frame that says so. */
                if (c->noline && frames->noline_group && noline_tag && !cells[i].suffix) {
                        cells[i].stack = r->profile->stacks[c->stack].parent;
                        cells[i].suffix = noline_tag;
                }
        }
        return cells;
}

struct rows {                           /* a pass over the rows that pass the filters */
        const struct ls_filter *filter;
        ls_export_rows_fn fn;
        void *ctx;
        uint8_t *wanted;
        uint32_t n_wanted;
};

static int give_rows(void *ctx, const struct ls_sample_block *b)
{
        struct rows *s = ctx;
        int any = 0;

        if (b->n > s->n_wanted) {
                uint8_t *bigger = realloc(s->wanted, b->n);

                if (!bigger)
                        return -ENOMEM;
                s->wanted = bigger;
                s->n_wanted = b->n;
        }
        for (uint32_t i = 0; i < b->n; i++) {
                s->wanted[i] = s->filter->events[b->event[i]] && ls_filter_wants(s->filter, b, i);
                any |= s->wanted[i];
        }
        return any ? s->fn(s->ctx, b, s->wanted) : 0;
}

static int stream_rows(const struct ls_export *in, unsigned columns, ls_export_rows_fn fn, void *ctx)
{
        struct rows s = { .filter = in->rows_ctx, .fn = fn, .ctx = ctx };
        int error = ls_profile_samples(in->profile, columns | s.filter->columns, give_rows, &s);

        free(s.wanted);
        return error;
}

int ls_report_export(const struct ls_report *r)
{
        struct ls_grouping *g[2] = { NULL, NULL }, *frames = NULL, *functions = NULL;
        struct tags tags = { .n = 0 };
        struct ls_export_cell *cells = NULL;
        uint32_t noline_tag = 0;
        int error = find_frames(r, g, &tags, &frames);

        if (!error && !frames) {        /* --by vmstate alone: of functions */
                error = ls_grouping_new(&ls_keys[0], r->profile, r->labels, &functions);
                frames = functions;
        }
        if (!error && frames->noline_group && r->o->exporter == &ls_export_collapsed) {
                const char **bigger = realloc(tags.texts, (tags.n + 2) * sizeof(*bigger));

                if (bigger) {
                        tags.texts = bigger;
                        if (tags.n == 0)
                                tags.texts[tags.n++] = "";
                        noline_tag = (uint32_t)tags.n;
                        tags.texts[tags.n++] = ls_group_text(frames, frames->noline_group);
                }
        }
        if (!error) {
                cells = make_cells(r, g, &tags, frames, noline_tag);
                error = cells ? 0 : -ENOMEM;
        }
        if (!error)
                error = r->o->exporter->write(r->out, &(struct ls_export){
                        .profile = r->profile, .labels = r->labels, .cells = cells, .n_cells = r->aggregate->n_cells,
                        .tags = tags.texts, .frame_of_location = frames->group_of, .frame_text = frame_text,
                        .ctx = frames, .n_frames = frames->n_groups, .interval_ns = r->profile->interval_ns,
                        .ticks = r->aggregate->ticks, .per_thread = r->o->per_thread, .rows = stream_rows,
                        .rows_ctx = (void *)(uintptr_t)r->filter,
                });
        free(cells);
        free(tags.texts);
        ls_grouping_free(g[0]);
        ls_grouping_free(g[1]);
        ls_grouping_free(functions);
        return error;
}
