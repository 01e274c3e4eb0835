/* The table of exporters, made from exporters.def. */
#include "formats/export/export.h"

#include <stddef.h>
#include <string.h>

const struct ls_exporter *const ls_exporters[] = {
#define LS_EXPORTER(ident, name) &ls_export_##ident,
#include "formats/export/exporters.def"
#undef LS_EXPORTER
        NULL,
};

const struct ls_exporter *ls_exporter_of_path(const char *path)
{
        const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
        const struct ls_exporter *best = NULL;
        size_t len = strlen(base), best_len = 0;

        for (const struct ls_exporter *const *e = ls_exporters; *e; e++) {
                size_t n = strlen((*e)->suffix);

                if (n > best_len && len > n && !strcmp(base + len - n, (*e)->suffix)) {
                        best = *e;
                        best_len = n;
                }
        }
        for (const struct ls_exporter *const *e = ls_exporters; *e && !best; e++)
                if ((*e)->prefix && !strncmp(base, (*e)->prefix, strlen((*e)->prefix)))
                        best = *e;
        return best;
}

int ls_export_has_count(const struct ls_export *in, const struct ls_counter_series *s, uint32_t i,
                        uint64_t *ret_ns)
{
        uint64_t ns = s->counts[i].time_ns;

        if ((in->to_ns && ns > in->to_ns) ||
            (i + 1 < s->n && s->counts[i + 1].time_ns <= in->from_ns))
                return 0;
        *ret_ns = ns < in->from_ns ? in->from_ns : ns;
        return 1;
}

int ls_export_wants_label(const struct ls_export *in, struct ls_str key)
{
        const char *const *k = in->label_keys;

        while (k && *k && (strlen(*k) != key.len || memcmp(*k, key.s, key.len)))
                k++;
        return !k || *k;
}

void ls_export_times(const struct ls_export *in, uint64_t *ret_start, uint64_t *ret_elapsed)
{
        const struct ls_profile *p = in->profile;
        uint64_t start = ls_profile_u64(p, LS_INFO_START_REALTIME,
                                        p->n_clocks ? p->clocks[0].realtime_ns : 0);
        uint64_t from = ls_profile_u64(p, LS_INFO_START_MONOTONIC,
                                       p->n_clocks ? p->clocks[0].monotonic_ns : 0);
        uint64_t elapsed = ls_profile_u64(p, LS_INFO_ELAPSED, 0), end;

        if (!elapsed && p->n_clocks &&
            p->clocks[p->n_clocks - 1].monotonic_ns > p->clocks[0].monotonic_ns)
                elapsed = p->clocks[p->n_clocks - 1].monotonic_ns - p->clocks[0].monotonic_ns;
        end = from + elapsed;
        if (elapsed && end > from && in->to_ns && in->to_ns < end)
                end = in->to_ns > from ? in->to_ns : from;
        if (elapsed && in->from_ns > from && in->from_ns <= end) {
                start += in->from_ns - from;
                from = in->from_ns;
        }
        elapsed = end - from;
        if (in->wall_from_ns && in->from_ns > ls_profile_u64(p, LS_INFO_START_MONOTONIC, 0))
                start = in->wall_from_ns;
        if (in->wall_to_ns)
                elapsed = in->wall_to_ns > start ? in->wall_to_ns - start : 0;
        *ret_start = start;
        *ret_elapsed = elapsed;
}
