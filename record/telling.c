/* --tell: see telling.h. The writer counts what comes; a line is said here, and luasample daemon
 * reads it: "[ luasample: tell N: WHEN ]", N from 1, in the order of the options, and of a counter
 * "[ luasample: tell N no more: WHEN ]". */
#include "record/telling.h"

#include <stdio.h>

#include "record/session.h"
#include "record/status.h"

#define APART_NS 1000000000ull
_Static_assert(LS_RECORD_TELLS == LS_TELLS_MOST, "what is asked for fits");

static void say(struct ls_session *s, unsigned i, const char *more)
{
        ls_status_clear(s);
        fprintf(stderr, "[ luasample: tell %u%s: ", i + 1, more);
        ls_put_visible(stderr, s->o->tells[i]);
        fputs(" ]\n", stderr);
}

/* A counter that was over the number for a moment is said to be, and then not. */
static void look_at(struct ls_session *s, unsigned i, uint64_t now_ns, int last)
{
        struct ls_tell_said *said = &s->tells[i];
        const struct ls_out_figures *f = ls_out_figures(s->out);
        const uint32_t came = f->told[i].came, went = f->told[i].went, holds = f->told[i].holds;
        const int has_come = came != said->came, is_over = !holds && went != said->went;

        if ((!has_come && !is_over) || (!last && said->ns && now_ns - said->ns < APART_NS))
                return;
        if (has_come)
                say(s, i, "");
        if (is_over && !last)
                say(s, i, " no more");
        said->came = came;
        said->went = went;
        said->ns = now_ns;
}

void ls_telling_look(struct ls_session *s, uint64_t now_ns, int last)
{
        for (unsigned i = 0; i < s->o->n_tells; i++)
                look_at(s, i, now_ns, last);
}
