/* The rows of events.def: what is known of an event kind. Read by the recorder, the writer, merge
 * and the views, none of which names kinds where a column says the same. */
#ifndef LS_WIRE_EVENTS_H
#define LS_WIRE_EVENTS_H

#include <stddef.h>
#include <string.h>

#include "formats/wire/kinds.h"

enum ls_unit { LS_UNIT_ns, LS_UNIT_count, LS_UNIT_bytes };

struct ls_event_kind_info {
        const char *name, *unit_name;
        enum ls_unit unit;
        int sampled;
        const char *clock;              /* NULL = none */
        unsigned asked;                 /* enum ls_event_kind that record -e names, LS_EVENT_NONE =
                                         * none */
        int overlaps;
};

/* NULL when no such kind is known: of a newer writer. */
static inline const struct ls_event_kind_info *ls_event_kind(uint64_t number)
{
        static const struct ls_event_kind_info kinds[] = {
#define LS_EVENT(number, NAME, name, unit, sampled, clock, asked, overlaps, help)                  \
        [number] = { name, #unit, LS_UNIT_##unit, sampled, clock, LS_EVENT_##asked, overlaps },
#include "formats/wire/events.def"
#undef LS_EVENT
        };

        return number < sizeof(kinds) / sizeof(*kinds) && kinds[number].name ? &kinds[number]
                                                                             : NULL;
}

/* Whether the weights of its rows are ticks of the recording's interval. */
static inline int ls_event_is_time(uint64_t number)
{
        const struct ls_event_kind_info *k = ls_event_kind(number);

        return k && k->sampled && k->unit == LS_UNIT_ns;
}

/* Whether it is a sample of amounts that are no time, memory and what is in it: the weights of its
 * rows are estimates of these. */
static inline int ls_event_is_amount(uint64_t number)
{
        const struct ls_event_kind_info *k = ls_event_kind(number);

        return k && k->sampled && k->unit != LS_UNIT_ns;
}

/* Whether it is counted, each time that it happens: its rows have one line of a function each,
 * which may have no weight. */
static inline int ls_event_is_exact(uint64_t number)
{
        const struct ls_event_kind_info *k = ls_event_kind(number);

        return k && !k->sampled && k->asked == number;
}

/* Whether a view can show it by itself. */
static inline int ls_event_is_shown(uint64_t number)
{
        return ls_event_is_time(number) || ls_event_is_amount(number) || ls_event_is_exact(number);
}

/* Whether record -e names it. */
static inline int ls_event_is_asked(uint64_t number)
{
        const struct ls_event_kind_info *k = ls_event_kind(number);

        return k && k->asked == number;
}

#define LS_EVENT_NAMES 192u
/* "cpu, wall, suspended": the names of those that is() takes. Returns names. */
static inline char *ls_event_names(int (*is)(uint64_t number), char names[LS_EVENT_NAMES])
{
        size_t len = 0;

        for (unsigned number = 1; number < LS_EVENT_NEXT; number++) {
                size_t n = is(number) ? strlen(ls_event_kind(number)->name) : 0;

                if (!n || len + n + 3 > LS_EVENT_NAMES)
                        continue;
                if (len)
                        len = (size_t)(stpcpy(names + len, ", ") - names);
                len = (size_t)(stpcpy(names + len, ls_event_kind(number)->name) - names);
        }
        names[len] = 0;
        return names;
}

/* The one of this name, of those that is() takes; 0 = there is none. */
static inline uint8_t ls_event_of_name(int (*is)(uint64_t number), const char *name, size_t len)
{
        for (uint8_t number = 1; number < LS_EVENT_NEXT; number++)
                if (is(number) && strlen(ls_event_kind(number)->name) == len &&
                    !memcmp(ls_event_kind(number)->name, name, len))
                        return number;
        return 0;
}

#endif
