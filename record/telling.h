/* --tell: says a line when what was asked for has come. Called by recording.c. */
#ifndef LS_RECORD_TELLING_H
#define LS_RECORD_TELLING_H

#include <stdint.h>

struct ls_session;

/* Says what has come since the last look: of each at most a line a second. last: nothing comes any
 * more. */
void ls_telling_look(struct ls_session *s, uint64_t now_ns, int last);

#endif
