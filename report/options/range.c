/* A time of the store in the place of a trace's file: see range.h. */
#include "report/options/range.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/escape.h"
#include "store/query.h"
#include "store/store.h"

#define RANGES_MOST 2                   /* diff has two sides */

static struct { char *service, *since, *until, *store; } raw;

static struct ls_range ranges[RANGES_MOST];
static unsigned n_ranges;

#define TEXT(name, arg, help) POPT_ARG_STRING, &raw.name, 0, help, arg

const struct poptOption ls_range_option_table[] = {
        { "service", 0,
          TEXT(service, "NAME", "read what the daemon has stored of this service, not a file") },
        { "since", 0,
          TEXT(since, "TIME", "from then on: 2h ago, or 14:30, or '2026-11-22 14:30'") },
        { "until", 0, TEXT(until, "TIME", "until then, given likewise (now)") },
        { "store", 0,
          TEXT(store, "DIR", "store of the daemon (LUASAMPLE_STORE, else that of the host)") },
        POPT_TABLEEND
};

int ls_range_wanted(void)
{
        return raw.service || raw.since || raw.until || raw.store;
}

void ls_range_recent(const char *since)
{
        if (!raw.since && !raw.until)
                raw.since = strdup(since);
}

int ls_range_open(const char *command, const char *shift, const char **ret_name)
{
        const struct ls_query q = { raw.store, raw.service, raw.since, raw.until };
        uint64_t shift_ns = 0;

        if (n_ranges == RANGES_MOST)
                return LS_EXIT_FAIL;
        if (shift && (ls_parse_duration(shift, "", &shift_ns) || shift_ns < 1000000)) {
                ls_error("%s: --before %s: give how long before, such as 24h", command, shift);
                return LS_EXIT_USAGE;
        }
        switch (ls_query_find(command, &q, shift_ns / 1000000, &ranges[n_ranges])) {
        case 0:
                *ret_name = ranges[n_ranges++].name;
                return 0;
        case -EINVAL:
                return LS_EXIT_USAGE;
        default:
                return LS_EXIT_FAIL;
        }
}

int ls_range_read(const char *command)
{
        for (unsigned i = 0; i < n_ranges; i++)
                if (ls_query_read(command, &ranges[i]))
                        return LS_EXIT_FAIL;
        return 0;
}

static const struct ls_range *find(const char *name)
{
        for (unsigned i = 0; name && i < n_ranges; i++)
                if (ranges[i].name == name || !strcmp(ranges[i].name, name))
                        return &ranges[i];
        return NULL;
}

static char *time_text(const struct ls_range *r)
{
        const uint64_t second = 1000000000;
        char *from = ls_print("%" PRIu64 ".%09" PRIu64 "s,", r->from_ns / second,
                              r->from_ns % second),
             *text = from;

        if (from && r->to_ns != UINT64_MAX) {
                text = ls_print("%s%" PRIu64 ".%09" PRIu64 "s", from, r->to_ns / second,
                                r->to_ns % second);
                free(from);
        }
        return text;
}

void ls_range_bounds(const char *name, struct ls_filter_options *want)
{
        const struct ls_range *r = find(name);

        if (!r || !r->cut)
                return;
        want->from = (struct ls_time_bound){ .kind = LS_BOUND_NS, .ns = r->from_ns };
        if (r->to_ns != UINT64_MAX)
                want->to = (struct ls_time_bound){ .kind = LS_BOUND_NS, .ns = r->to_ns };
        want->time = time_text(r);      /* as if it had been given */
}

void ls_range_times(const char *name, uint64_t *ret_from_ns, uint64_t *ret_to_ns)
{
        const struct ls_range *r = find(name);

        *ret_from_ns = r && r->cut ? r->from_ms * 1000000 : 0;
        *ret_to_ns = r && r->cut && r->to_ms <= ls_store_now_ms() ? r->to_ms * 1000000 : 0;
}

int ls_range_fd(const char *name)
{
        const struct ls_range *r = find(name);

        return r ? r->fd : -1;
}

int ls_range_use(struct ls_report_options *o, const char *input)
{
        int status;

        if (input) {
                ls_error("%s: -i and --service, --since, --until or --store exclude each other",
                         o->command);
                return LS_EXIT_USAGE;
        }
        if (o->want.from.kind != LS_BOUND_OPEN || o->want.to.kind != LS_BOUND_OPEN) {
                ls_error("%s: --time is for a file; --since and --until say which time of the "
                         "store",
                         o->command);
                return LS_EXIT_USAGE;
        }
        status = ls_range_open(o->command, NULL, &o->input);
        if (!status)
                status = ls_range_read(o->command);
        if (!status)
                ls_range_bounds(o->input, &o->want);
        return status;
}
