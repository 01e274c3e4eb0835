/* luasample diff --html: the page of the later side, with the ticks of the earlier one as its base. The page shows one profile:
 * several recordings of a side are merged first, in a file without a name. Called by diff.c. */
#include "formats/trace_merge.h"
#include "report/diff.h"
#include "report/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_merged(const struct ls_diff *d, int side, struct ls_profile **ret)
{
        struct ls_merge_input *in = calloc(d->n_side[side], sizeof(*in));
        FILE *f = in ? tmpfile() : NULL;
        unsigned n = 0, a = 0, b = 0;
        uint64_t interval_ns;
        const char *why;
        char path[40];
        int r = in && f ? 0 : -ENOMEM;

        for (unsigned k = 0; !r && k < d->n_runs; k++)
                if (d->runs[k].side == side)
                        in[n++] = (struct ls_merge_input){ .profile = d->runs[k].profile, .name = d->runs[k].path };
        if (!r)
                r = ls_merge_plan(in, n, &interval_ns, &a, &b);
        if (r == -EDOM)
                ls_error("diff: %s and %s have ticks of different length: give one recording of each side with --html",
                         in[a].name, in[b].name);
        if (!r)
                r = ls_merge_write(fileno(f), in, n, interval_ns);
        if (!r) {
                snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(f));
                r = ls_profile_open(path, ret, &why);
        }
        if (f)
                fclose(f);
        free(in);
        return r;
}

/* A profile of its own, since the later one's tables are added to. */
static int open_side(const struct ls_diff *d, int side, struct ls_profile **ret)
{
        const char *path = d->o->files[side][0], *why;

        if (d->n_side[side] > 1 || !strcmp(path, "-"))
                return open_merged(d, side, ret);
        return ls_profile_open(path, ret, &why);
}

static char *title_of(const struct ls_diff *d, int side)
{
        char *text;

        if (d->n_side[side] == 1)
                return strdup(d->o->files[side][0]);
        return asprintf(&text, "%s and %u more", d->o->files[side][0], d->n_side[side] - 1) < 0 ? NULL : text;
}

/* Labels, filter and ticks of a side; of the later one after its tables have grown. */
static int load(struct ls_diff_run *run, const struct ls_report_options *o, unsigned dims)
{
        int r;

        ls_labels_free(run->labels);
        run->labels = NULL;
        r = ls_labels_new(run->profile, o->full_path, &run->labels);
        if (!r)
                r = ls_filter_init(&run->filter, run->profile, run->labels, o);
        return r ? r : ls_aggregate_new(run->profile, &run->filter, dims, &run->aggregate);
}

static int write_page(const struct ls_diff *d, struct ls_diff *two, FILE *out)
{
        const struct ls_report_options *o = &d->o->o;
        char *titles[2] = { title_of(d, LS_BEFORE), title_of(d, LS_AFTER) };
        struct ls_diff_run *before = &two->runs[0], *after = &two->runs[1];
        struct ls_report r = { .o = o, .out = out };
        struct ls_page page = { .report = &r, .title = titles[1], .base_title = titles[0] };
        struct ls_cell *base = NULL;
        int e = load(before, o, LS_DIM_VMSTATE | LS_DIM_ZONE | LS_DIM_THREAD | LS_DIM_NOLINE);

        if (!e)
                e = ls_labels_new(after->profile, o->full_path, &after->labels);
        if (!e)
                e = ls_diff_functions(two);
        if (!e)
                e = ls_diff_join(two, before->aggregate->cells, before->aggregate->n_cells, &base);
        if (!e)
                e = load(after, o, 0);
        if (!e) {
                r.profile = after->profile;
                r.labels = after->labels;
                r.filter = &after->filter;
                r.aggregate = after->aggregate;
                page.base = base;
                page.n_base = before->aggregate->n_cells;
                e = ls_page_write(&page);
        }
        free(base);
        free(titles[0]);
        free(titles[1]);
        return e;
}

int ls_diff_html(const struct ls_diff *d, FILE *out)
{
        struct ls_diff two = { .o = d->o, .n_runs = 2, .n_side = { 1, 1 } };
        int r;

        two.runs = calloc(2, sizeof(*two.runs));
        r = two.runs ? open_side(d, LS_BEFORE, &two.runs[0].profile) : -ENOMEM;
        if (!r)
                r = open_side(d, LS_AFTER, &two.runs[1].profile);
        if (!r)
                r = write_page(d, &two, out);
        if (!two.runs)
                two.n_runs = 0;
        ls_diff_done(&two);
        return r;
}
