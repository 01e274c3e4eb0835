/* The part of luasample jit's summary that says what could be changed, and what that is worth at
 * most: the time that bears it. Called by text.c. */
#include "report/jit/jit.h"
#include "report/view/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ADVICE_MOST 62                  /* columns of 80 behind a share and its margin */
#define BEFORE_MOST (ADVICE_MOST - 8)

enum bears { WORDS, FLUSH_TRACES, FLUSH_CODE, FLUSH_PROGRAM, FLUSH_METATABLE, OFF };

static const struct row {
        enum bears bears;
        const char *words, *change, *before, *after;
} rows[] = {
#define LS_ADVICE(BEARS, words, change, before, after) { BEARS, words, change, before, after },
#include "report/jit/advice.def"
#undef LS_ADVICE
};

#define N_ROWS (sizeof(rows) / sizeof(*rows))

#define FITS(text, most) (sizeof(text) <= (most) + 1)
#define LS_ADVICE(BEARS, words, change, before, after)                                      \
        _Static_assert(FITS(change, ADVICE_MOST) && FITS(before, BEFORE_MOST) &&            \
                       FITS(after, BEFORE_MOST), "a text is too long: " change);
#include "report/jit/advice.def"
#undef LS_ADVICE
#undef FITS

struct borne {
        uint64_t ticks, most;           /* most: of one place */
        uint32_t attempt;               /* that place's; LS_NO_ATTEMPT = none */
};

/* The row whose words what was given up has; N_ROWS = none. */
static size_t row_of(const char *reason)
{
        for (size_t i = 0; i < N_ROWS; i++) {
                const char *words = rows[i].words;

                if (rows[i].bears == WORDS && !strncmp(reason, words, strlen(words)))
                        return i;
        }
        return N_ROWS;
}

static int add_words(const struct ls_jit *j, struct borne borne[N_ROWS])
{
        for (uint32_t i = 0; i < j->blame.n_rows; i++) {
                const struct ls_blame_row *b = &j->blame.rows[i];
                char *reason;
                size_t row;

                if (b->attempt == LS_NO_ATTEMPT)
                        continue;
                reason = ls_jit_reason(j, b->attempt);
                if (!reason)
                        return -1;
                row = row_of(reason);
                free(reason);
                if (row == N_ROWS)
                        continue;
                borne[row].ticks += b->ticks;
                if (b->ticks > borne[row].most) {
                        borne[row].most = b->ticks;
                        borne[row].attempt = b->attempt;
                }
        }
        return 0;
}

/* What flushes cost: code that runs again until it is hot, and compiling it again. Of several
 * causes each has the part that its count has. */
static void add_conditions(const struct ls_jit *j, struct borne borne[N_ROWS])
{
        static const unsigned keys[] = {
                [FLUSH_TRACES] = LS_INFO_JIT_FLUSH_TRACES, [FLUSH_CODE] = LS_INFO_JIT_FLUSH_CODE,
                [FLUSH_PROGRAM] = LS_INFO_JIT_FLUSH_PROGRAM,
                [FLUSH_METATABLE] = LS_INFO_JIT_FLUSH_METATABLE,
        };
        uint64_t cost = j->blame.by_reason[LS_REASON_FLUSH] + j->states[LS_VMSTATE_JIT];
        double count[FLUSH_METATABLE + 1] = { 0 }, all = 0;

        for (unsigned k = FLUSH_TRACES; k <= FLUSH_METATABLE; k++) {
                count[k] = (double)ls_profile_u64(j->r.profile, keys[k], 0);
                all += count[k];
        }
        for (size_t i = 0; i < N_ROWS; i++) {
                if (rows[i].bears == OFF)
                        borne[i].ticks = j->blame.by_reason[LS_REASON_OFF];
                else if (rows[i].bears != WORDS && all > 0)
                        borne[i].ticks = (uint64_t)((double)cost * count[rows[i].bears] / all);
        }
}

static void put(const struct ls_jit *j, const struct row *row, const struct borne *b, char *place)
{
        const struct ls_report *r = &j->r;
        const struct ls_aggregate *a = r->aggregate;
        int indent = (int)ls_number_width(r) + 10;

        ls_put_number(r, b->ticks, a->ticks);
        ls_put_margin(r, ls_share(b->ticks, a->ticks), a->effective, a->ticks);
        fprintf(r->out, "  %s\n", row->change);
        if (place) {
                fprintf(r->out, "%*smostly at ", indent, "");
                ls_put_fit(r->out, place, (size_t)(80 - indent - 10), 0);
                fputc('\n', r->out);
        }
        fprintf(r->out, "%*sbefore: %s\n", indent, "", row->before);
        fprintf(r->out, "%*safter:  %s\n", indent, "", row->after);
}

int ls_jit_advice(const struct ls_jit *j)
{
        const struct ls_report *r = &j->r;
        struct borne borne[N_ROWS];
        int said = 0;

        for (size_t i = 0; i < N_ROWS; i++)
                borne[i] = (struct borne){ .attempt = LS_NO_ATTEMPT };
        if (add_words(j, borne))
                return -ENOMEM;
        add_conditions(j, borne);
        for (;;) {
                char *place = NULL;
                size_t best = 0;

                for (size_t i = 1; i < N_ROWS; i++)
                        best = borne[i].ticks > borne[best].ticks ? i : best;
                if (!borne[best].ticks || ls_below_min(r, borne[best].ticks, r->aggregate->ticks))
                        return 0;
                if (!said++)
                        fputs("\n== Advice ==\nThe share is the time that a change is about: "
                              "it can save no more than that.\n\n", r->out);
                if (borne[best].attempt != LS_NO_ATTEMPT) {
                        const struct ls_attempt *a = &r->profile->attempts[borne[best].attempt];

                        place = ls_jit_place(j, a->stop ? a->stop : a->start);
                        if (!place)
                                return -ENOMEM;
                }
                put(j, &rows[best], &borne[best], place);
                free(place);
                borne[best].ticks = 0;
        }
}
