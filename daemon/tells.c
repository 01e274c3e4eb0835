/* What rules want to hear from recorders (record --tell): marks of a name, counters that pass a
 * number. Only the recorder's writer, which has no rights, looks at what programs say; here a line
 * comes, with the number of what was asked for. See daemon.h. */
#include "daemon/daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "formats/escape.h"
#include "record/writer/wire.h"

struct asked {
        unsigned rule;                  /* its index */
        int is_counter;
        const char *pattern;
};

/* Of a service, in the order of the configuration: number n, from 0. Returns 1, or 0: there are
 * not so many. */
static int find(const struct ls_config *c, const char *service, unsigned n, struct asked *ret)
{
        for (unsigned i = 0; i < c->n_rules; i++) {
                const struct ls_when *r = &c->rules[i];
                unsigned all = r->mark.n + r->counter.n;

                if (!ls_rule_is_for(r, service))
                        continue;
                if (n >= all) {
                        n -= all;
                        continue;
                }
                ret->rule = i;
                ret->is_counter = n >= r->mark.n;
                ret->pattern = ret->is_counter ? r->counter.text[n - r->mark.n] : r->mark.text[n];
                return 1;
        }
        return 0;
}

char *ls_tells_word(const struct ls_config *c, const char *service, unsigned n)
{
        struct asked a;

        if (n >= LS_TELLS_MOST || !find(c, service, n, &a))
                return NULL;
        return ls_print("--tell=%s:%s", a.is_counter ? "counter" : "mark", a.pattern);
}

int ls_tells_same(const struct ls_config *x, const struct ls_config *y, const char *service)
{
        for (unsigned n = 0;; n++) {
                struct asked a, b;
                const int in_x = find(x, service, n, &a), in_y = find(y, service, n, &b);

                if (!in_x || !in_y)
                        return in_x == in_y;
                if (a.is_counter != b.is_counter || strcmp(a.pattern, b.pattern))
                        return 0;
        }
}

const char *ls_tells_hold(const struct ls_config *c, const struct ls_watched *w, unsigned rule)
{
        struct asked a;

        for (unsigned n = 0; w->told >> n && find(c, w->service, n, &a); n++)
                if (a.rule == rule && a.is_counter && w->told >> n & 1)
                        return a.pattern;
        return NULL;
}

/* A mark is an instant; a counter is over its number until it says otherwise. */
void ls_tells_line(struct ls_daemon *d, struct ls_watched *w, const char *text)
{
        char *end, why[LS_WHY];
        unsigned long n = strtoul(text, &end, 10);
        const int no_more = !strncmp(end, " no more: ", 10);
        struct asked a;

        if (w->stale || n < 1 || n > LS_TELLS_MOST ||
            !find(&d->config, w->service, (unsigned)n - 1, &a))
                return;
        if (a.is_counter) {
                const uint32_t bit = 1u << (n - 1);

                w->told = no_more ? w->told & ~bit : w->told | bit;
                return;
        }
        snprintf(why, sizeof(why), "mark %s", a.pattern);
        if (!w->off)
                ls_triggers_fire(d, &d->config.rules[a.rule], w, why);
}
