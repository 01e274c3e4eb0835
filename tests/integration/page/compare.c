/* Writes a page that compares two traces, as a caller of ls_page_write does: compare BEFORE AFTER >
 * PAGE. Functions are the same when their labels are. Run by run.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/page/page.h"
#include "formats/trace/reader.h"

static struct ls_report_options options;        /* no filters */

static void open_report(const char *path, struct ls_report *r)
{
        struct ls_filter *filter = calloc(1, sizeof(*filter));
        struct ls_aggregate *aggregate;
        struct ls_labels *labels;
        const char *why = "";

        if (!filter || ls_profile_open(path, &r->profile, &why) ||
            ls_labels_new(r->profile, 0, &labels) ||
            ls_filter_init(filter, r->profile, labels, &options.want) ||
            ls_aggregate_new(r->profile, filter, 0, &aggregate)) {
                fprintf(stderr, "compare: %s: %s\n", path, why);
                exit(1);
        }
        r->o = &options;
        r->labels = labels;
        r->filter = filter;
        r->aggregate = aggregate;
        r->out = stdout;
}

static void close_report(struct ls_report *r)
{
        ls_aggregate_free((struct ls_aggregate *)r->aggregate);
        ls_filter_done((struct ls_filter *)r->filter);
        free((struct ls_filter *)r->filter);
        ls_labels_free((struct ls_labels *)r->labels);
        ls_profile_close(r->profile);
}

int main(int argc, char **argv)
{
        struct ls_report before, after;
        uint32_t *same;
        int error;

        if (argc != 3)
                return 129;
        memset(&before, 0, sizeof(before));
        memset(&after, 0, sizeof(after));
        options.by[0] = &ls_keys[0];
        open_report(argv[1], &before);
        open_report(argv[2], &after);
        same = calloc(before.profile->n_functions, sizeof(*same));
        for (uint32_t i = 1; same && i < before.profile->n_functions; i++)
                for (uint32_t k = 1; k < after.profile->n_functions; k++)
                        if (!strcmp(before.labels->function[i], after.labels->function[k]))
                                same[i] = k;
        error = same ? ls_page_write(&(struct ls_page){ .report = &after,
                                                        .base = &before,
                                                        .same_function = same,
                                                        .title = "after.data",
                                                        .base_title = "before.data" })
                     : -1;
        free(same);
        close_report(&before);
        close_report(&after);
        return error || fflush(stdout) ? 1 : 0;
}
