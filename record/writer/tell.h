/* --tell: what a recorder wants to hear of while it records: marks of a name, counters that pass a
 * number. Read by options.c and recording.c; compared by ops.c, in the writer, where names come
 * in. */
#ifndef LS_RECORD_WRITER_TELL_H
#define LS_RECORD_WRITER_TELL_H

#include "record/translate/state.h"
#include "record/writer/wire.h"

/* "mark:PATTERN", "counter:PATTERN>N" or "counter:PATTERN<N". Returns 0 or -EINVAL. */
int ls_tell_read(const char *text, struct ls_tell *ret);

/* A mark, a counter's value (as ls_translate_config has it): counted in the figures. */
void ls_tell_mark(const struct ls_out_setup *setup, struct ls_out_figures *f, const char *name,
                  uint32_t len);
void ls_tell_count(const struct ls_out_setup *setup, struct ls_out_figures *f, struct ls_told *told,
                   const char *name, uint32_t len, double value);

#endif
