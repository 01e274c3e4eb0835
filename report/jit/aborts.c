/* luasample jit --aborts: what LuaJIT tried to compile and gave up, and the time that is spent
 * there. Called by jit.c. */
#include "report/jit/jit.h"
#include "formats/escape.h"
#include "report/model/keys_label.h"
#include "report/view/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct row {
        const char *key;                /* what it is grouped by; the group's own text */
        uint32_t attempt;               /* one of it */
        int for_good;                   /* LuaJIT will not try again */
        uint64_t ticks, count, bytecodes;
};

struct table {
        const struct ls_jit *j;
        enum ls_jit_by by;
        struct row *rows;
        char **keys;                    /* of attempts, to be freed */
        uint32_t n;
        uint64_t count;
};

char *ls_jit_reason(const struct ls_jit *j, uint32_t attempt)
{
        const struct ls_attempt *a = &j->r.profile->attempts[attempt];
        char *reason = ls_visible(a->reason.s, a->reason.len), *text;

        if (!reason || !a->about)
                return reason;
        text = ls_print("%s%s%s", reason, *reason ? ": " : "", j->r.labels->function[a->about]);
        free(reason);
        return text;
}

char *ls_jit_place(const struct ls_jit *j, uint32_t location)
{
        const struct ls_location *at = &j->r.profile->locations[location];
        const char *function = j->r.labels->function[at->function];

        if (!location)
                return strdup("a place that is not known");
        return at->line ? ls_print("%s:%u", function, at->line) : strdup(function);
}

static char *key_of(const struct table *t, uint32_t i)
{
        const struct ls_attempt *a = &t->j->r.profile->attempts[i];
        char *reason, *start, *stop, *text = NULL;

        if (t->by == LS_JIT_BY_REASON)
                return ls_jit_reason(t->j, i);
        if (t->by == LS_JIT_BY_LINE)
                return ls_jit_place(t->j, a->stop);
        if (t->by == LS_JIT_BY_FUNCTION)
                return strdup(
                        t->j->r.labels->function[t->j->r.profile->locations[a->stop].function]);
        reason = ls_jit_reason(t->j, i);
        start = ls_jit_place(t->j, a->start);
        stop = ls_jit_place(t->j, a->stop);
        if (reason && start && stop)
                text = ls_print("%s\n%s %s, stopped at %s", reason,
                                a->flags & LS_ATTEMPT_LOOP       ? "loop"
                                : a->flags & LS_ATTEMPT_FUNCTION ? "function"
                                : a->flags & LS_ATTEMPT_SIDE     ? "exit at"
                                                                 : "from",
                                start, stop);
        free(reason);
        free(start);
        free(stop);
        return text;
}

static int by_key(const void *a, const void *b)
{
        const struct row *x = a, *y = b;

        return strcmp(x->key, y->key);
}

static int by_time(const void *a, const void *b)
{
        const struct row *x = a, *y = b;

        if (x->ticks != y->ticks)
                return x->ticks > y->ticks ? -1 : 1;
        if (x->count != y->count)
                return x->count > y->count ? -1 : 1;
        return strcmp(x->key, y->key);
}

static int fill(struct table *t)
{
        const struct ls_profile *p = t->j->r.profile;
        uint32_t n = 0, last = 0;

        for (uint32_t i = 0; i < p->n_attempts; i++) {
                const struct ls_attempt *a = &p->attempts[i];

                if (a->flags & LS_ATTEMPT_COMPILED)
                        continue;
                t->keys[n] = key_of(t, i);
                if (!t->keys[n])
                        return -ENOMEM;
                t->rows[n] = (struct row){ t->keys[n],
                                           i,
                                           (a->flags & LS_ATTEMPT_BLACKLISTED) != 0,
                                           t->j->blame.by_attempt[i],
                                           a->count,
                                           a->bytecodes };
                t->count += a->count;
                n++;
        }
        qsort(t->rows, n, sizeof(*t->rows), by_key);
        for (uint32_t i = 1; i < n; i++) {
                struct row *to = &t->rows[last], *from = &t->rows[i];

                if (strcmp(to->key, from->key)) {
                        t->rows[++last] = *from;
                        continue;
                }
                to->ticks += from->ticks;
                to->count += from->count;
                to->bytecodes += from->bytecodes;
                to->for_good |= from->for_good;
        }
        t->n = n ? last + 1 : 0;
        qsort(t->rows, t->n, sizeof(*t->rows), by_time);
        return 0;
}

/* A key has up to two lines: the second stands below the first. */
static void put_row(const struct table *t, const struct row *row)
{
        const struct ls_report *r = &t->j->r;
        const char *second = strchr(row->key, '\n');
        size_t left = 80 - ls_number_width(r) - 19;
        char *first = strndup(row->key, second ? (size_t)(second - row->key) : strlen(row->key));

        ls_put_number(r, row->ticks, r->aggregate->ticks);
        fprintf(r->out, " %8" PRIu64 " %6.1f%%  ", row->count,
                100 * ls_share(row->count, t->count));
        if (first)
                ls_put_fit(r->out, first, row->for_good && left > 16 ? left - 16 : left, 0);
        fprintf(r->out, "%s\n", row->for_good ? ", given up" : "");
        free(first);
        if (second) {
                fprintf(r->out, "%*s", (int)(80 - left), "");
                ls_put_fit(r->out, second + 1, left, 0);
                fputc('\n', r->out);
        }
}

static void put_table(const struct table *t)
{
        const struct ls_report *r = &t->j->r;
        static const char *const titles[] = { "Why, and where", "Why", "Stopped at", "Stopped in" };
        uint32_t hidden = 0;

        fprintf(r->out, "== What LuaJIT tried to compile, and gave up ==\n"
                "An attempt follows the program for one pass from a hot loop, function or exit.\n"
                "It is given up where something comes that LuaJIT does not compile (NYI = not yet\n"
                "implemented). After some attempts LuaJIT does not try again: given up.\n"
                "Time is what was spent, not compiled, in the code around.\n\n");
        if (!t->n) {
                fprintf(r->out, t->j->blame.recorded ? "[No attempt was given up]\n"
                                                     : "[LuaJIT's attempts were not recorded]\n");
                return;
        }
        fprintf(r->out, "%s%*s %8s %7s  %s%s\n", ls_dim(r), (int)ls_number_width(r),
                ls_number_title(r, "Time"), "Attempts", "%", titles[t->by], ls_plain(r));
        for (uint32_t i = 0; i < t->n; i++) {
                const struct row *row = &t->rows[i];

                if (ls_below_min(r, row->ticks, r->aggregate->ticks) &&
                    ls_below_min(r, row->count, t->count))
                        hidden++;
                else
                        put_row(t, row);
        }
        if (hidden)
                fprintf(r->out,
                        "%s# %u more below %g%% of time and attempts (--min 0 shows all)%s\n",
                        ls_dim(r), hidden, r->o->min, ls_plain(r));
}

int ls_jit_aborts(const struct ls_jit *j, enum ls_jit_by by)
{
        uint32_t n = j->r.profile->n_attempts;
        struct table t = { j,
                           by,
                           calloc((size_t)n + 1, sizeof(*t.rows)),
                           calloc((size_t)n + 1, sizeof(char *)),
                           0,
                           0 };
        int error = t.rows && t.keys ? fill(&t) : -ENOMEM;

        if (!error)
                put_table(&t);
        for (uint32_t i = 0; t.keys && i < n; i++)
                free(t.keys[i]);
        free(t.rows);
        free(t.keys);
        return error;
}
