/* Which event's rows are shown: --event, or what the trace has. Called by report.c and the export
 * command's exporters. */
#ifndef LS_REPORT_MODEL_EVENTS_H
#define LS_REPORT_MODEL_EVENTS_H

#include "formats/profile.h"
#include "formats/wire/events.h"

#define LS_EVENTS_SHOWN 4               /* side by side, at most */

struct ls_event_choice {
        uint8_t id[LS_EVENTS_SHOWN];    /* enum ls_event_kind */
        unsigned n;                     /* 0 = not asked for: the trace says */
};

/* Reads "cpu" or "cpu,wall,suspended". Returns NULL, or what is wrong with it. */
const char *ls_events_parse(const char *text, struct ls_event_choice *ret);

/* Makes sure that the trace has what was asked for, else chooses: cpu, or the first that the trace
 * has. Returns NULL or the event that it has not. */
const struct ls_event_kind_info *ls_events_settle(const struct ls_profile *p,
                                                  struct ls_event_choice *choice);

const char *ls_event_name(uint8_t id);
int ls_events_have(const struct ls_profile *p, uint8_t id);
/* Whether the trace has other events than the time on a CPU, so that a view has to say which it
 * shows. */
int ls_events_besides_cpu(const struct ls_profile *p);
/* 1 = its rows are of coroutines that wait beside each other: they add up to more than the time
 * that passed, and lie on no line of time. */
int ls_event_overlaps(uint8_t id);

/* 1 = what is shown, or shown first, is counted each time that it happens: not a time, and without
 * a margin. */
int ls_events_count(const struct ls_event_choice *choice);

/* 1 = what is shown, or shown first, is a time. */
int ls_events_time(const struct ls_event_choice *choice);
/* 1 = it is a sample of amounts that are no time: memory, or objects. */
int ls_events_amount(const struct ls_event_choice *choice);

#define LS_AMOUNT 24u
/* "209.7 MB" of bytes, "1.03 M" of what is counted; in units of a thousand. Returns buf. */
const char *ls_amount_text(uint8_t event, double amount, char buf[LS_AMOUNT]);

/* 1 = what is shown is one such event: all stacks end in coroutine.yield, and what tells them apart
 * is who called it. */
int ls_events_wait(const struct ls_event_choice *choice);

/* rows[e] = 1: a row of event e counts for this event. The time on a CPU is wall time too, and
 * stands in a trace once. */
void ls_event_rows(uint8_t id, uint8_t rows[256]);
/* The same for what it was at a moment, which is not what it is at the end. */
void ls_event_rows_once(uint8_t id, uint8_t rows[256]);

#endif
