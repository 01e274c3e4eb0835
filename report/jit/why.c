/* The part of luasample jit's summary that says why time was spent outside of compiled code. Called
 * by text.c. */
#include "report/jit/jit.h"
#include "formats/escape.h"
#include "report/model/keys_label.h"
#include "report/view/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct { const char *key, *title, *meaning; } reasons[] = {
#define LS_REASON(NAME, key, title, meaning) { key, title, meaning },
#include "report/jit/reasons.def"
#undef LS_REASON
};

const char *ls_jit_reason_title(enum ls_reason reason)
{
        return reasons[reason].title;
}

const char *ls_jit_reason_meaning(enum ls_reason reason)
{
        return reasons[reason].meaning;
}

char *ls_jit_because(const struct ls_jit *j, enum ls_reason reason, uint32_t attempt)
{
        char *said = attempt == LS_NO_ATTEMPT ? strdup("") : ls_jit_reason(j, attempt),
             *text = NULL;

        if (said)
                text = *said ? ls_print("%s: %s", reasons[reason].title, said)
                             : strdup(reasons[reason].title);
        free(said);
        return text;
}

char *ls_jit_where(const struct ls_jit *j, uint32_t attempt)
{
        const struct ls_attempt *a = attempt == LS_NO_ATTEMPT ? NULL
                                                              : &j->r.profile->attempts[attempt];
        char *start = a ? ls_jit_place(j, a->start) : strdup(""), *text;

        if (!start || !a)
                return start;
        text = ls_print("%s %s",
                        a->flags & LS_ATTEMPT_LOOP       ? "loop"
                        : a->flags & LS_ATTEMPT_FUNCTION ? "function"
                                                         : "at",
                        start);
        free(start);
        return text;
}

static int put_row(const struct ls_jit *j, const struct ls_blame_row *row)
{
        const struct ls_report *r = &j->r;
        size_t left = 80 - ls_number_width(r) - 10;
        char *first = ls_jit_because(j, row->reason, row->attempt);
        char *place = ls_jit_where(j, row->attempt);
        int error = first && place ? 0 : -ENOMEM;

        if (!error) {
                ls_put_number(r, row->ticks, r->aggregate->ticks);
                ls_put_margin(r, ls_share(row->ticks, r->aggregate->ticks), r->aggregate->effective,
                              r->aggregate->ticks);
                fputs("  ", r->out);
                ls_put_fit(r->out, first, left, 0);
                fputc('\n', r->out);
        }
        if (!error && *place) {
                fprintf(r->out, "%*s", (int)(80 - left), "");
                ls_put_fit(r->out, place, left, 0);
                fputc('\n', r->out);
        }
        free(place);
        free(first);
        return error;
}

static void put_totals(const struct ls_jit *j)
{
        const struct ls_profile *p = j->r.profile;
        uint64_t attempts = ls_profile_u64(p, LS_INFO_JIT_ATTEMPTS, 0),
                 aborts = ls_profile_u64(p, LS_INFO_JIT_ABORTS, 0);
        uint64_t untold = ls_profile_u64(p, LS_INFO_JIT_UNTOLD, 0);
        uint64_t traces = ls_profile_u64(p, LS_INFO_JIT_FLUSH_TRACES, 0),
                 code = ls_profile_u64(p, LS_INFO_JIT_FLUSH_CODE, 0);
        uint64_t program = ls_profile_u64(p, LS_INFO_JIT_FLUSH_PROGRAM, 0);
        uint64_t types = ls_profile_u64(p, LS_INFO_JIT_FLUSH_METATABLE, 0);
        uint64_t all = traces + code + program + types;

        fprintf(j->r.out,
                "%" PRIu64 " attempts to compile, %" PRIu64 " given up (--aborts shows them)\n",
                attempts, aborts);
        if (untold)
                fprintf(j->r.out,
                        "%" PRIu64 " of them are counted only: there were too many at a time\n",
                        untold);
        if (all)
                fprintf(j->r.out,
                        "all compiled code was thrown away (a flush) %" PRIu64 " time%s: %" PRIu64
                        " for\nmaxtrace, the most traces; %" PRIu64
                        " for maxmcode, the most code; %" PRIu64
                        " by the\nprogram (jit.flush); %" PRIu64
                        " for the metatable of a type (debug.setmetatable)\n",
                        all, all == 1 ? "" : "s", traces, code, program, types);
}

int ls_jit_why(const struct ls_jit *j)
{
        const struct ls_report *r = &j->r;
        const struct ls_blame *b = &j->blame;
        uint64_t hidden = 0;
        int error = 0, meant = 0;

        fprintf(r->out, "\n== Why %.1f%% runs uncompiled: interpreted, or C called from there ==\n",
                100 * ls_share(b->ticks, r->aggregate->ticks));
        if (b->recorded)
                put_totals(j);
        else
                fprintf(r->out,
                        "[LuaJIT's attempts to compile were not recorded: there were none, the "
                        "JIT\n"
                        "compiler was off, the program ran before it was recorded (-p), or with\n"
                        "--engine hook]\n");
        if (!b->n_rows)
                return 0;
        fprintf(r->out, "\n%s%*s %7s  %s%s\n", ls_dim(r), (int)ls_number_width(r),
                ls_number_title(r, "Time"), "+-95%", "Why", ls_plain(r));
        for (uint32_t i = 0; !error && i < b->n_rows; i++) {
                if (ls_below_min(r, b->rows[i].ticks, r->aggregate->ticks))
                        hidden += b->rows[i].ticks;
                else
                        error = put_row(j, &b->rows[i]);
        }
        if (hidden)
                fprintf(r->out,
                        "%s# more rows below %g%% with %.2f%% in all (--min 0 shows all)%s\n",
                        ls_dim(r), r->o->min, 100 * ls_share(hidden, r->aggregate->ticks),
                        ls_plain(r));
        for (unsigned i = 0; i < LS_REASONS; i++) {
                if (!b->by_reason[i] || ls_below_min(r, b->by_reason[i], r->aggregate->ticks))
                        continue;
                fprintf(r->out, "%s%s:\n  %s\n", meant++ ? "" : "\n", reasons[i].title,
                        reasons[i].meaning);
        }
        return error;
}
