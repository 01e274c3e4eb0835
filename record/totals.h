/* Facts and totals of the trace. Called by the session, by rotate.c and flight.c. */
#ifndef LS_RECORD_TOTALS_H
#define LS_RECORD_TOTALS_H

#include <stdint.h>

struct ls_session;
struct ls_sums;
struct ls_target;

void ls_totals_start(struct ls_session *s);             /* once, before the program runs */
void ls_totals_clocks(struct ls_session *s);            /* at start, each minute, at the end */
void ls_totals_second(struct ls_session *s, uint64_t now_ns);
/* What is counted of one process; when it leaves the recording, and at the end. */
void ls_totals_process(struct ls_session *s, const struct ls_target *t);
void ls_totals_write(struct ls_session *s);             /* now and then, and at the end */
/* All processes so far, those that have ended too. */
void ls_totals_sums(const struct ls_session *s, struct ls_sums *ret);
/* Makes figures of the whole recording those of this file: before is what files before it have. */
void ls_totals_since(struct ls_sums *sums, const struct ls_sums *before);
/* Sum of the losses counted in ticks. */
uint64_t ls_totals_lost_ticks(const struct ls_sums *sums);
/* CPU time of the recorder and its workers so far, ns. */
uint64_t ls_totals_own_cpu(const struct ls_session *s);

#endif
