/* INFO of a merged trace: what is counted is added up, what describes is kept, or listed where the
 * inputs differ. Called by merge.c when all samples are written. */
#include "formats/merge/info.h"

#include "formats/escape.h"
#include "formats/trace/writer.h"
#include "formats/wire/kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTED_MOST 8                   /* different values of a text that are listed */

enum how { SAME, SUM, TICKS, MOST, NO_LIMIT, OWN };     /* see info.def */

static const struct { const char *key; enum how how; } rules[] = {
#define LS_INFO(NAME, key, type, merged, help) { key, merged },
#include "formats/info.def"
#undef LS_INFO
#define LS_LOSS(NAME, key, unit, counted, part, label)                                             \
        { "lost." key, LS_LOSS_IN_##counted ? TICKS : SUM },
#include "formats/wire/losses.def"
#undef LS_LOSS
};

static enum how rule_of(const char *key)
{
        for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
                if (!strcmp(rules[i].key, key))
                        return rules[i].how;
        return SAME;
}

static const struct ls_info *find(const struct ls_profile *p, const char *key)
{
        for (uint32_t i = 0; i < p->n_infos; i++)
                if (strlen(key) == p->infos[i].key.len &&
                    !memcmp(p->infos[i].key.s, key, p->infos[i].key.len))
                        return &p->infos[i];
        return NULL;
}

static uint64_t join_two(enum how how, uint64_t a, uint64_t b)
{
        switch (how) {
        case NO_LIMIT:
                return !a || !b ? 0 : a > b ? a : b;
        case MOST:
                return a > b ? a : b;
        default:
                return a + b;
        }
}

static void join_numbers(struct ls_merge *m, const struct ls_merge_input *in, unsigned n,
                         const char *key, enum how how)
{
        uint64_t all = 0;
        unsigned had = 0;

        for (unsigned i = 0; i < n; i++) {
                const struct ls_info *info = find(in[i].profile, key);
                uint64_t v = info && info->is_u64 ? info->u64 : 0;

                if (!info || !info->is_u64)
                        continue;
                if (how == TICKS)
                        v *= in[i].scale;
                if (how == SAME && had && v != all)
                        return;
                all = !had ? v : how == SAME ? all : join_two(how, all, v);
                had++;
        }
        if (had)
                ls_trace_info_u64(m->w, key, all);
}

/* "luajit a.lua; luajit b.lua": each value once, in the order of the inputs. */
static void join_texts(struct ls_merge *m, const struct ls_merge_input *in, unsigned n,
                       const char *key)
{
        struct ls_str seen[LISTED_MOST];
        unsigned n_seen = 0, more = 0;
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        for (unsigned i = 0; f && i < n; i++) {
                const struct ls_info *info = find(in[i].profile, key);
                unsigned k = 0;

                if (!info || info->is_u64)
                        continue;
                while (k < n_seen && (seen[k].len != info->str.len ||
                                      memcmp(seen[k].s, info->str.s, seen[k].len)))
                        k++;
                if (k < n_seen)
                        continue;
                if (n_seen == LISTED_MOST) {
                        more++;
                        continue;
                }
                seen[n_seen++] = info->str;
                fprintf(f, "%s%s", n_seen > 1 ? "; " : "", info->str.s);
        }
        if (f && more)
                fprintf(f, "; %u more", more);
        if (f && !fclose(f))
                ls_trace_info_str(m->w, key, text);
        free(text);
}

/* Totals that each input has, said or not, and when the whole began and ended. */
static void add_own(struct ls_merge *m, const struct ls_merge_input *in, unsigned n)
{
        uint64_t start = UINT64_MAX, end = 0, realtime = 0, samples = 0, ticks = 0, complete = 1;

        for (unsigned i = 0; i < n; i++) {
                const struct ls_profile *p = in[i].profile;
                uint64_t from = in[i].start_ns + in[i].shift_ns, to = in[i].end_ns + in[i].shift_ns;

                if (from < start) {
                        start = from;
                        realtime = ls_profile_u64(p, LS_INFO_START_REALTIME, 0);
                }
                end = to > end ? to : end;
                samples += ls_profile_u64(p, LS_INFO_SAMPLES, p->recorded_samples);
                ticks += ls_profile_u64(p, LS_INFO_TICKS, p->recorded_ticks) * in[i].scale;
                complete &= ls_profile_u64(p, LS_INFO_COMPLETE, 0);
        }
        ls_trace_info_u64(m->w, ls_info_key(LS_INFO_ASKED_INTERVAL), m->interval_ns);
        ls_trace_info_u64(m->w, ls_info_key(LS_INFO_START_MONOTONIC), start);
        if (realtime)
                ls_trace_info_u64(m->w, ls_info_key(LS_INFO_START_REALTIME), realtime);
        ls_trace_info_u64(m->w, ls_info_key(LS_INFO_ELAPSED), end - start);
        ls_trace_info_u64(m->w, ls_info_key(LS_INFO_SAMPLES), samples);
        ls_trace_info_u64(m->w, ls_info_key(LS_INFO_TICKS), ticks);
        ls_trace_info_u64(m->w, ls_info_key(LS_INFO_COMPLETE), complete);
        if (!m->pieces)
                return;
        ls_trace_info_u64(m->w, ls_info_key(LS_INFO_THREADS), m->known[LS_REC_THREAD].n);
        ls_trace_info_u64(m->w, ls_info_key(LS_INFO_VMS), m->known[LS_REC_VM].n);
}

/* Takes text; NULL = no memory. */
static void put_notice(struct ls_merge *m, char *text)
{
        if (text)
                ls_trace_notice(m->w, text);
        free(text);
}

#define notice(m, ...) put_notice(m, ls_print(__VA_ARGS__))

/* Adds notices of what readers of the merged trace cannot see of its inputs. */
static void add_notices(struct ls_merge *m, const struct ls_merge_input *in, unsigned n)
{
        if (n > 1 && !m->pieces)
                notice(m, "merged from %u recordings", n);
        for (unsigned i = 0; i < n; i++) {
                uint64_t ticks = 0;

                if (in[i].boot != in[0].boot)
                        notice(m,
                               "%s: of another boot or machine than %s: its times were moved by "
                               "%" PRId64 " ms",
                               in[i].name, in[0].name, (int64_t)in[i].shift_ns / 1000000);
                if (in[i].scale != 1)
                        notice(m,
                               "%s: recorded every %" PRIu64
                               " ns: each of its ticks counts as %" PRIu64,
                               in[i].name, in[i].profile->interval_ns, in[i].scale);
                for (uint32_t k = 0; k < in[i].profile->n_damages; k++)
                        ticks += in[i].profile->damages[k].ticks;
                if (in[i].profile->n_damages)
                        notice(m, "%s: %u chunks were damaged, with %" PRIu64 " ticks or more",
                               in[i].name, in[i].profile->n_damages, ticks);
                if (!in[i].profile->complete)
                        notice(m, "%s: had no end: it was still being written, or was cut off",
                               in[i].name);
        }
}

void ls_merge_info(struct ls_merge *m, const struct ls_merge_input *in, unsigned n)
{
        for (unsigned i = 0; i < n; i++) {
                const struct ls_profile *p = in[i].profile;

                for (uint32_t k = 0; k < p->n_infos; k++) {
                        const char *key = p->infos[k].key.s;
                        int done = strlen(key) !=
                                   p->infos[k].key.len; /* a zero inside: no key of ours */

                        for (unsigned before = 0; !done && before < i; before++)
                                done = find(in[before].profile, key) != NULL;
                        if (done || rule_of(key) == OWN)
                                continue;
                        if (p->infos[k].is_u64)
                                join_numbers(m, in, n, key, rule_of(key));
                        else
                                join_texts(m, in, n, key);
                }
        }
        add_own(m, in, n);
        add_notices(m, in, n);
}
