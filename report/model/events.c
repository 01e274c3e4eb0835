/* Which event's rows are shown: see events.h. */
#include "report/model/events.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int ls_event_overlaps(uint8_t id)
{
        const struct ls_event_kind_info *k = ls_event_kind(id);

        return k && k->overlaps;
}

const char *ls_event_name(uint8_t id)
{
        const struct ls_event_kind_info *k = ls_event_kind(id);

        return k ? k->name : "";
}

/* What is wrong with a name: "give cpu, wall, suspended or ready; ...". */
static const char *not_a_name(void)
{
        static char sentence[LS_EVENT_NAMES + 64];
        char names[LS_EVENT_NAMES], *last = strrchr(ls_event_names(ls_event_is_shown, names), ',');

        if (last)
                *last = 0;
        snprintf(sentence, sizeof(sentence),
                 "give %s%s%s; several, as cpu,wall, are shown side by side", names,
                 last ? " or" : "", last ? last + 1 : "");
        return sentence;
}

const char *ls_events_parse(const char *text, struct ls_event_choice *ret)
{
        for (const char *p = text;;) {
                size_t len = strcspn(p, ",");
                uint8_t id = ls_event_of_name(ls_event_is_shown, p, len);

                if (!id)
                        return not_a_name();
                if (ret->n == LS_EVENTS_SHOWN || memchr(ret->id, id, ret->n))
                        return "each event once";
                ret->id[ret->n++] = id;
                if (!p[len])
                        return NULL;
                p += len + 1;
        }
}

int ls_events_have(const struct ls_profile *p, uint8_t id)
{
        for (uint32_t i = 0; i < p->n_events; i++)
                if (p->events[i].id == id)
                        return 1;
        return 0;
}

int ls_events_besides_cpu(const struct ls_profile *p)
{
        for (uint32_t i = 0; i < p->n_events; i++)
                if (p->events[i].id != LS_EVENT_CPU && ls_event_is_shown(p->events[i].id))
                        return 1;
        return 0;
}

const struct ls_event_kind_info *ls_events_settle(const struct ls_profile *p,
                                                  struct ls_event_choice *c)
{
        for (unsigned i = 0; i < c->n; i++)
                if (!ls_events_have(p, c->id[i]))
                        return ls_event_kind(c->id[i]);
        if (!c->n) {
                static const uint8_t first[] = { LS_EVENT_CPU,   LS_EVENT_WALL,
                                                 LS_EVENT_CALLTIME, LS_EVENT_LINES,
                                                 LS_EVENT_INSTRUCTIONS, LS_EVENT_CALLS,
                                                 LS_EVENT_COVERAGE,
                                                 LS_EVENT_LIVE,  LS_EVENT_ALLOC };

                c->n = 1;
                c->id[0] = LS_EVENT_CPU;
                for (size_t i = sizeof(first); i-- > 0;)
                        if (ls_events_have(p, first[i]))
                                c->id[0] = first[i];
        }
        return NULL;
}

int ls_events_count(const struct ls_event_choice *c)
{
        return ls_event_is_exact(c->id[0]);
}

int ls_events_time(const struct ls_event_choice *c)
{
        return ls_event_is_time(c->id[0]);
}

int ls_events_amount(const struct ls_event_choice *c)
{
        return ls_event_is_amount(c->id[0]);
}

const char *ls_amount_text(uint8_t event, double amount, char buf[LS_AMOUNT])
{
        static const char *const units[][6] = { { "B", "kB", "MB", "GB", "TB", "PB" },
                                                { "", "k", "M", "G", "T", "P" } };
        const struct ls_event_kind_info *k = ls_event_kind(event);
        int count = !k || k->unit != LS_UNIT_bytes, unit = 0;

        for (; fabs(amount) >= 999.95 && unit < 5; unit++)
                amount /= 1000;
        snprintf(buf, LS_AMOUNT, unit ? "%.1f%s%s" : "%.0f%s%s", amount,
                 *units[count][unit] ? " " : "", units[count][unit]);
        return buf;
}

int ls_events_wait(const struct ls_event_choice *c)
{
        return c->n == 1 && ls_event_overlaps(c->id[0]);
}

void ls_event_rows(uint8_t id, uint8_t rows[256])
{
        memset(rows, 0, 256);
        rows[id] = 1;
        if (id == LS_EVENT_WALL)
                rows[LS_EVENT_CPU] = 1;
}

void ls_event_rows_once(uint8_t id, uint8_t rows[256])
{
        ls_event_rows(id, rows);
        if (id == LS_EVENT_LIVE)
                rows[LS_EVENT_FREED] = 1;
        if (id == LS_EVENT_LIVE_OBJECTS)
                rows[LS_EVENT_FREED_OBJECTS] = 1;
}
