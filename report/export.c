/* luasample export, and report --format: gives the filtered samples to an exporter of formats/.
 * Called by report/report.c. */
#include "report/export.h"

#include "cli/command.h"
#include "formats/trace/reader.h"
#include "report/export_job.h"
#include "report/export_table.h"
#include "report/export_text.h"
#include "report/model/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *frame_text(void *ctx, uint32_t frame)
{
        return ls_group_text(ctx, frame);
}

unsigned ls_report_export_dims(const struct ls_report_options *o)
{
        const struct ls_exporter *e = o->exporter;
        unsigned by = o->by[0]->dims | (o->by[1] ? o->by[1]->dims : 0);

        if (e->flags & LS_EXPORT_TABLE)
                return ls_rows_dims(o);
        return (e->flags & LS_EXPORT_ROWS ? 0 : e->dims & ~(o->taker ? o->taker->without : 0)) |
               (e->flags & LS_EXPORT_BY ? by : 0) | (o->per_thread ? LS_DIM_THREAD : 0);
}

/* Room for n tags more, the first of all being 0. */
static int tags_room(struct ls_export_tags *t, size_t n)
{
        const char **bigger = realloc(t->texts, (t->n + n + 2) * sizeof(*bigger));

        if (!bigger)
                return -ENOMEM;
        t->texts = bigger;
        if (t->n == 0)
                t->texts[t->n++] = "";
        return 0;
}

static int add_tags(struct ls_export_tags *t, int level, const struct ls_grouping *g)
{
        if (tags_room(t, g->n_groups))
                return -ENOMEM;
        t->base[level] = (uint32_t)t->n;
        for (uint32_t i = 0; i < g->n_groups; i++)
                t->texts[t->n++] = ls_group_text(g, i);
        return 0;
}

static int find_frames(struct ls_export_job *job)
{
        const struct ls_report *r = job->r;
        int error = 0;

        for (int level = 0; !error && level < 2 && r->o->by[level]; level++) {
                error = ls_grouping_new(r->o->by[level], r->profile, r->labels, &job->by[level]);
                if (!error && job->by[level]->key->is_frame)
                        job->frames = job->frames ? job->frames : job->by[level];
                else if (!error)
                        error = add_tags(&job->tags, level, job->by[level]);
        }
        if (!error && !job->frames) {   /* --by vmstate alone: of functions */
                error = ls_grouping_new(&ls_keys[0], r->profile, r->labels, &job->functions);
                job->frames = job->functions;
        }
        return error;
}

static struct ls_export_cell make_cell(const struct ls_export_job *job, const struct ls_cell *c)
{
        const struct ls_export_tags *tags = &job->tags;
        struct ls_export_cell cell = { .ticks = c->ticks, .stack = c->stack, .trace = c->trace };

#define LS_DIM(NAME, name, bits, KIND, key) cell.name = c->name;
#include "formats/dims.def"
#undef LS_DIM
        if (!(job->r->o->exporter->flags & LS_EXPORT_BY))
                return cell;
        if (tags->base[0])
                cell.prefix = tags->base[0] + ls_group_of_cell(job->by[0], c);
        if (tags->base[1])
                cell.suffix = tags->base[1] + ls_group_of_cell(job->by[1], c);
        return cell;
}

/* The cells of one thread, or of all, of an event. Returns their ticks. */
static uint64_t take_cells_of(struct ls_export_job *job, unsigned event, const uint32_t *only)
{
        const struct ls_aggregate *a = job->r->events[event];
        uint64_t ticks = 0;

        job->n_cells[event] = 0;
        for (size_t i = 0; i < a->n_cells; i++) {
                if (only && a->cells[i].thread != *only)
                        continue;
                job->cells[event][job->n_cells[event]++] = make_cell(job, &a->cells[i]);
                ticks += a->cells[i].ticks;
        }
        return ticks;
}

/* Returns the ticks of the first event; *ret_all: of all. */
static uint64_t take_cells(struct ls_export_job *job, const uint32_t *only, uint64_t *ret_all)
{
        uint64_t first = take_cells_of(job, 0, only);

        *ret_all = first;
        for (unsigned e = 1; e < job->r->filter->choice.n; e++)
                *ret_all += take_cells_of(job, e, only);
        return first;
}

static int cells_room(struct ls_export_job *job)
{
        for (unsigned e = 0; e < job->r->filter->choice.n; e++) {
                job->cells[e] = malloc((job->r->events[e]->n_cells + 1) * sizeof(**job->cells));
                if (!job->cells[e])
                        return -ENOMEM;
        }
        return 0;
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

static int stream_rows(const struct ls_export *in, unsigned columns, ls_export_rows_fn fn,
                       void *ctx)
{
        const struct ls_export_job *job = in->caller_ctx;
        struct rows s = { .filter = job->r->filter, .fn = fn, .ctx = ctx };
        int error = ls_profile_samples(in->profile, columns | s.filter->columns, give_rows, &s);

        free(s.wanted);
        return error;
}

static struct ls_export make_export(struct ls_export_job *job, uint64_t ticks, unsigned part,
                                    uint32_t thread)
{
        const struct ls_report *r = job->r;
        struct ls_export in = {
                .profile = r->profile,
                .labels = r->labels,
                .cells = job->cells[0],
                .n_cells = job->n_cells[0],
                .ticks = ticks,
                .tags = job->tags.texts,
                .frame_of_location = job->frames->group_of,
                .frame_text = frame_text,
                .ctx = job->frames,
                .n_frames = job->frames->n_groups,
                .interval_ns = r->profile->interval_ns,
                .exact = !ls_events_time(&r->filter->choice),
                .unit = ls_event_kind(r->filter->choice.id[0])->unit_name,
                .event = ls_event_name(r->filter->choice.id[0]),
                .from_ns = r->filter->from_ns,
                .to_ns = r->filter->to_ns == UINT64_MAX ? 0 : r->filter->to_ns,
                .part = part,
                .part_thread = thread,
                .dim_text = ls_export_dim_text,
                .rows = stream_rows,
                .table = ls_export_table,
                .caller_ctx = job,
                .n_events = r->filter->choice.n,
        };

        for (unsigned e = 0; e < in.n_events; e++) {
                uint8_t id = r->filter->choice.id[e];

                in.events[e] = (struct ls_export_event){ ls_event_name(id), !ls_event_is_time(id),
                                                         ls_event_kind(id)->unit_name,
                                                         job->cells[e], job->n_cells[e] };
        }
        return in;
}

static int write_one(struct ls_export_job *job, FILE *out, uint64_t ticks, unsigned part,
                     uint32_t thread)
{
        const struct ls_export in = make_export(job, ticks, part, thread);

        return job->r->o->exporter->write(out, &in);
}

/* Some of the cells; what is too large as two halves. */
static int give_cells(const struct ls_export_taker *t, struct ls_export *in,
                      const struct ls_export_cell *cells, size_t n)
{
        int error;

        in->cells = in->events[0].cells = cells;
        in->n_cells = in->events[0].n_cells = n;
        in->ticks = 0;
        for (size_t i = 0; i < n; i++)
                in->ticks += cells[i].ticks;
        if (!in->ticks)
                return 0;
        error = t->take(t->ctx, in);
        if (error != -EFBIG || n < 2)
                return error;
        error = give_cells(t, in, cells, n / 2);
        return error ? error : give_cells(t, in, cells + n / 2, n - n / 2);
}

static int give_parts(struct ls_export_job *job)
{
        const struct ls_export_taker *t = job->r->o->taker;
        uint64_t all;
        struct ls_export in = make_export(job, take_cells(job, NULL, &all), 0, 0);
        const struct ls_export_cell *cells = in.cells;
        size_t n = in.n_cells;
        int error = 0;

        in.without = t->without;
        in.label_keys = t->label_keys;
        in.depth = t->depth;
        in.time_is_end = t->time_is_end;
        in.wall_from_ns = t->wall_from_ns;
        in.wall_to_ns = t->wall_to_ns;
        for (size_t i = 0; !error && i < n; i += t->cells)
                error = give_cells(t, &in, cells + i, n - i < t->cells ? n - i : t->cells);
        return error;
}

/* A file for each thread that has ticks, in the order of the threads: FILE-01, FILE-02, ... */
static int write_parts(struct ls_export_job *job)
{
        const struct ls_report_options *o = job->r->o;
        unsigned part = 0;
        int error = 0;

        for (uint32_t thread = 0; !error && thread < job->r->profile->n_threads; thread++) {
                uint64_t all, ticks = take_cells(job, &thread, &all);
                struct ls_output out;
                char *path;
                int end;

                if (!all)
                        continue;
                if (asprintf(&path, "%s-%02u", o->output, ++part) < 0)
                        return -ENOMEM;
                error = ls_output_open(&out, path, LS_COLOR_NEVER, 0);
                if (!error) {
                        error = write_one(job, out.file, ticks, part, thread);
                        end = ls_output_close(&out, error != 0);
                        error = error ? error : end;
                }
                if (error)
                        ls_error("%s: cannot write %s: %s", o->command, path, strerror(-error));
                free(path);
        }
        return error ? -ENOENT : 0;     /* it was said */
}

int ls_report_export(const struct ls_report *r)
{
        struct ls_export_job job = { .r = r };
        uint64_t all;
        int error = find_frames(&job);

        if (!error)
                error = ls_export_dims_new(&job);
        if (!error)
                error = cells_room(&job);
        if (!error && r->o->taker)
                error = give_parts(&job);
        else if (!error)
                error = r->o->per_thread
                                ? write_parts(&job)
                                : write_one(&job, r->out, take_cells(&job, NULL, &all), 0, 0);
        for (unsigned e = 0; e < LS_EXPORT_EVENTS_MOST; e++)
                free(job.cells[e]);
        free(job.tags.texts);
        ls_export_dims_free(&job);
        for (int level = 0; level < 2; level++)
                ls_grouping_free(job.by[level]);
        ls_grouping_free(job.functions);
        return error;
}
