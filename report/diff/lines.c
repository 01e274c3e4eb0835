/* Lines of a text that was edited between recordings: which line of the last version is this one?
 * Known only where the texts of all versions can be had, in the traces or in files that have not
 * changed since. Called by names.c. */
#include "report/diff/diff.h"
#include "report/model/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct line { uint64_t hash; uint32_t at, side; };

static int by_hash(const void *x, const void *y)
{
        const struct line *a = x, *b = y;

        if (a->hash != b->hash)
                return a->hash < b->hash ? -1 : 1;
        if (a->side != b->side)
                return a->side < b->side ? -1 : 1;
        return a->at < b->at ? -1 : a->at > b->at;
}

static int equal(struct ls_str a, struct ls_str b)
{
        return a.len == b.len && !memcmp(a.s, b.s, a.len);
}

/* Lines that are there once in each text. to[n1]: the place in b plus 1, 0 = none. */
static int pair_unique(const struct ls_str *a, uint32_t n1, const struct ls_str *b, uint32_t n2,
                       uint32_t *to)
{
        size_t n = (size_t)n1 + n2;
        struct line *lines = calloc(n + 1, sizeof(*lines));

        if (!lines)
                return -ENOMEM;
        for (uint32_t i = 0; i < n1; i++)
                lines[i] = (struct line){ ls_match_key(1, a[i].s, a[i].len), i, 0 };
        for (uint32_t i = 0; i < n2; i++)
                lines[n1 + i] = (struct line){ ls_match_key(1, b[i].s, b[i].len), i, 1 };
        qsort(lines, n, sizeof(*lines), by_hash);
        for (size_t i = 0, end; i < n; i = end) {
                for (end = i + 1; end < n && lines[end].hash == lines[i].hash; end++)
                        ;
                if (end - i == 2 && lines[i].side != lines[i + 1].side)
                        to[lines[i].at] = lines[i + 1].at + 1;
        }
        free(lines);
        return 0;
}

/* Keeps of the pairs the most that are in the same order in both texts: the longest rising
 * sequence. */
static int keep_rising(uint32_t *to, uint32_t n)
{
        uint32_t *tails = calloc((size_t)n + 1, sizeof(*tails)),
                 *before = calloc((size_t)n + 1, sizeof(*before)), len = 0;

        if (!tails || !before) {
                free(tails);
                free(before);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < n; i++) {      /* tails[k]: the pair, plus 1, that ends the best
                                                 * sequence of k + 1 */
                uint32_t low = 0, high = len;

                if (!to[i])
                        continue;
                while (low < high) {
                        uint32_t mid = low + (high - low) / 2;

                        if (to[tails[mid] - 1] < to[i])
                                low = mid + 1;
                        else
                                high = mid;
                }
                before[i] = low ? tails[low - 1] : 0;
                tails[low] = i + 1;
                len += low == len;
        }
        for (uint32_t i = n, next = len ? tails[len - 1] : 0; i-- > 0;) {
                if (next == i + 1)
                        next = before[i];
                else
                        to[i] = 0;
        }
        free(tails);
        free(before);
        return 0;
}

/* Pairs lines between two that are paired: equal lines next to them, then, when as many are
 * left on both sides, each with its neighbour: lines that were edited. [a1, a2) and [b1, b2). */
static void fill_gap(const struct ls_str *a, uint32_t a1, uint32_t a2, const struct ls_str *b,
                     uint32_t b1, uint32_t b2, uint32_t *to)
{
        while (a1 < a2 && b1 < b2 && equal(a[a1], b[b1]))
                to[a1++] = ++b1;
        while (a1 < a2 && b1 < b2 && equal(a[a2 - 1], b[b2 - 1]))
                to[--a2] = b2--;
        if (a2 - a1 != b2 - b1)
                return;
        while (a1 < a2)
                to[a1++] = ++b1;
}

int ls_lines_map(const struct ls_str *a, uint32_t n1, const struct ls_str *b, uint32_t n2,
                 uint32_t *ret)
{
        uint32_t a1 = 0, b1 = 0;
        int r;

        memset(ret, 0, (size_t)n1 * sizeof(*ret));
        r = pair_unique(a, n1, b, n2, ret);
        if (!r)
                r = keep_rising(ret, n1);
        for (uint32_t i = 0; !r && i <= n1; i++) {
                if (i < n1 && !ret[i])
                        continue;
                fill_gap(a, a1, i, b, b1, i < n1 ? ret[i] - 1 : n2, ret);
                a1 = i + 1;
                b1 = i < n1 ? ret[i] : n2;
        }
        return r;
}

/* The text as it was recorded; not that of a file that has changed since. */
static int read_text(const struct ls_diff *d, const struct ls_diff_run *run, uint32_t source,
                     struct ls_source_text *ret, int *ret_ok)
{
        int r;

        memset(ret, 0, sizeof(*ret));
        *ret_ok = 0;
        if (!run->profile->sources[source].text_hash)
                return 0;
        r = ls_source_read(run->profile, source, &d->o->o, ret);
        *ret_ok = !r && ret->problem == LS_SOURCE_OK;
        return r;
}

static int map_run(const struct ls_diff *d, struct ls_diff_run *run, uint32_t source,
                   const struct ls_source_text *last, int *ret_ok)
{
        struct ls_line_map *map = &run->lines[source];
        struct ls_source_text text;
        int r = read_text(d, run, source, &text, ret_ok);

        if (r)
                return r;
        if (*ret_ok) {
                map->n = text.n_lines;
                map->to = calloc((size_t)map->n + 1, sizeof(*map->to));
                r = map->to ? ls_lines_map(text.lines, text.n_lines, last->lines, last->n_lines,
                                           map->to)
                            : -ENOMEM;
        }
        ls_source_done(&text);
        return r;
}

/* Maps all recordings' texts of one source, or none. sources: those of each run by shared number; 0
 * = it has none. */
static int map_source(struct ls_diff *d, uint32_t *const *sources, uint32_t shared)
{
        struct ls_source_text last;
        unsigned k = d->n_runs;
        int ok, r;

        while (k > 1 && !sources[k - 1][shared])
                k--;
        r = read_text(d, &d->runs[k - 1], sources[k - 1][shared], &last, &ok);
        for (unsigned i = 0; !r && ok && i < d->n_runs; i++)
                if (sources[i][shared])
                        r = map_run(d, &d->runs[i], sources[i][shared], &last, &ok);
        if (!r && ok)
                d->changed[shared] = LS_MAPPED;
        ls_source_done(&last);
        return r;
}

static int index_run(const struct ls_diff *d, struct ls_diff_run *run, uint32_t **ret_sources)
{
        uint32_t n = run->profile->n_sources;

        run->lines = calloc((size_t)n + 1, sizeof(*run->lines));
        *ret_sources = calloc((size_t)d->n_sources + 1, sizeof(**ret_sources));
        if (!run->lines || !*ret_sources)
                return -ENOMEM;
        for (uint32_t i = 1; i < n; i++)
                (*ret_sources)[run->source_of[i]] = i;
        return 0;
}

int ls_diff_lines(struct ls_diff *d)
{
        uint32_t **sources = calloc((size_t)d->n_runs + 1, sizeof(*sources));
        int r = sources ? 0 : -ENOMEM;

        for (unsigned k = 0; !r && k < d->n_runs; k++)
                r = index_run(d, &d->runs[k], &sources[k]);
        for (uint32_t i = 1; !r && i < d->n_sources; i++)
                if (d->changed[i] == LS_CHANGED)
                        r = map_source(d, sources, i);
        for (unsigned k = 0; sources && k < d->n_runs; k++)
                free(sources[k]);
        free(sources);
        return r;
}

void ls_diff_lines_done(struct ls_diff_run *run)
{
        for (uint32_t i = 0; run->lines && i < run->profile->n_sources; i++)
                free(run->lines[i].to);
        free(run->lines);
}
