/* Which event's rows are shown: see events.h. */
#include "report/model/events.h"

#include <string.h>

static const struct { uint8_t id; const char *name; int sampled; } events[] = {
#define LS_EVENT(number, NAME, name, unit, sampled, help) { number, name, sampled },
#include "formats/wire/events.def"
#undef LS_EVENT
};
#define N_EVENTS (sizeof(events) / sizeof(*events))

int ls_event_is_time(uint32_t id)
{
        return id == LS_EVENT_CPU || id == LS_EVENT_WALL || id == LS_EVENT_SUSPENDED || id == LS_EVENT_READY;
}

int ls_event_overlaps(uint8_t id)
{
        return id == LS_EVENT_SUSPENDED || id == LS_EVENT_READY;
}

const char *ls_event_name(uint8_t id)
{
        for (size_t i = 0; i < N_EVENTS; i++)
                if (events[i].id == id)
                        return events[i].name;
        return "";
}

const char *ls_events_parse(const char *text, struct ls_event_choice *ret)
{
        for (const char *p = text;;) {
                size_t len = strcspn(p, ","), i;

                for (i = 0; i < N_EVENTS; i++)
                        if (ls_event_is_time(events[i].id) && strlen(events[i].name) == len &&
                            !strncmp(events[i].name, p, len))
                                break;
                if (i == N_EVENTS)
                        return "give cpu, wall, suspended or ready; several, as cpu,wall, are shown side by side";
                if (ret->n == LS_EVENTS_SHOWN || memchr(ret->id, events[i].id, ret->n))
                        return "each event once";
                ret->id[ret->n++] = events[i].id;
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
                if (p->events[i].id != LS_EVENT_CPU && ls_event_is_time(p->events[i].id))
                        return 1;
        return 0;
}

const char *ls_events_settle(const struct ls_profile *p, struct ls_event_choice *c)
{
        for (unsigned i = 0; i < c->n; i++)
                if (!ls_events_have(p, c->id[i]))
                        return ls_event_name(c->id[i]);
        if (!c->n) {
                int only_wall = !ls_events_have(p, LS_EVENT_CPU) && ls_events_have(p, LS_EVENT_WALL);

                c->n = 1;
                c->id[0] = only_wall ? LS_EVENT_WALL : LS_EVENT_CPU;
        }
        return NULL;
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
