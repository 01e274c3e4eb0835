/* luasample diff --html: the page of the later side, with the earlier one as its base. The page
 * shows one recording of each: several are merged first, in a file without a name. Called by
 * diff.c. */
#include "formats/merge/merge.h"
#include "formats/trace/reader.h"
#include "report/diff/diff.h"
#include "report/page/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int open_merged(const struct ls_diff *d, int side, struct ls_profile **ret)
{
        struct ls_merge_input *in = calloc(d->n_side[side], sizeof(*in));
        int fd = in ? memfd_create("luasample-side", MFD_CLOEXEC) : -1;
        unsigned n = 0, a = 0, b = 0;
        uint64_t interval_ns;
        const char *why;
        int r = !in ? -ENOMEM : fd < 0 ? -errno : 0;

        for (unsigned k = 0; !r && k < d->n_runs; k++)
                if (d->runs[k].side == side)
                        in[n++] = (struct ls_merge_input){ .profile = d->runs[k].profile,
                                                           .name = d->runs[k].path };
        if (!r)
                r = ls_merge_plan(in, n, &interval_ns, &a, &b);
        if (r == -EDOM)
                ls_error("diff: %s and %s have ticks of different length: give one recording of "
                         "each side with --html",
                         in[a].name, in[b].name);
        if (!r)
                r = ls_merge_write(fd, in, n, interval_ns, NULL);
        if (!r)
                r = ls_profile_open_fd(fd, ret, &why);
        if (fd >= 0)
                close(fd);
        free(in);
        return r;
}

/* Recording that the page shows of a side: the recording, or a joint one of its own. */
struct page_side {
        struct ls_diff_run own;         /* not used when the side has one recording */
        const struct ls_diff_run *run;
        struct ls_report report;
        char *title;
};

static int side_init(struct page_side *s, const struct ls_diff *d, int side, FILE *out)
{
        int r = 0;

        for (unsigned k = d->n_runs; k-- > 0;)
                s->run = d->runs[k].side == side ? &d->runs[k] : s->run;
        if (d->n_side[side] == 1) {
                s->title = strdup(s->run->path);
        } else {
                if (asprintf(&s->title, "%s and %u more", s->run->path, d->n_side[side] - 1) < 0)
                        s->title = NULL;
                r = open_merged(d, side, &s->own.profile);
                if (!r)
                        r = ls_diff_load(&s->own, &d->o->o);
                s->run = &s->own;
        }
        s->report = (struct ls_report){ .o = &d->o->o,
                                        .profile = s->run->profile,
                                        .labels = s->run->labels,
                                        .filter = &s->run->filter,
                                        .aggregate = s->run->aggregate,
                                        .out = out };
        return r ? r : s->title ? 0 : -ENOMEM;
}

static void side_done(struct page_side *s)
{
        ls_diff_run_done(&s->own);
        free(s->title);
}

/* The later one's function for each of the earlier one's, 0 = it has none. */
static int match_functions(const struct page_side *before, const struct page_side *after,
                           uint32_t **ret)
{
        struct ls_diff_run runs[2] = {
                { .profile = before->run->profile, .labels = before->run->labels },
                { .profile = after->run->profile, .labels = after->run->labels }
        };
        struct ls_diff two = { .runs = runs, .n_runs = 2 };
        uint32_t n = runs[0].profile->n_functions, *same = calloc((size_t)n + 1, sizeof(*same)),
                 *later = NULL;
        int r = same ? ls_diff_functions(&two) : -ENOMEM;

        if (!r) {
                later = calloc((size_t)two.n_functions + 1, sizeof(*later));
                r = later ? 0 : -ENOMEM;
        }
        for (uint32_t i = 1; !r && i < runs[1].profile->n_functions; i++)
                later[runs[1].function_of[i]] = i;
        for (uint32_t i = 1; !r && i < n; i++)
                same[i] = later[runs[0].function_of[i]];
        for (int i = 0; i < 2; i++) {
                free(runs[i].source_of);
                free(runs[i].function_of);
        }
        free(two.changed);
        free(later);
        *ret = same;
        return r;
}

int ls_diff_html(const struct ls_diff *d, FILE *out)
{
        struct page_side before = { .run = NULL }, after = { .run = NULL };
        uint32_t *same = NULL;
        int r = side_init(&before, d, LS_BEFORE, out);

        if (!r)
                r = side_init(&after, d, LS_AFTER, out);
        if (!r)
                r = match_functions(&before, &after, &same);
        if (!r)
                r = ls_page_write(&(struct ls_page){ .report = &after.report,
                                                     .base = &before.report,
                                                     .same_function = same,
                                                     .title = after.title,
                                                     .base_title = before.title });
        free(same);
        side_done(&before);
        side_done(&after);
        return r;
}
