/* The command line of `luasample record`, into struct ls_record_options. */
#ifndef LS_RECORD_OPTIONS_H
#define LS_RECORD_OPTIONS_H

#include "cli/command.h"
#include "record/process/asked.h"

/* Names in the order of their enums. */
extern const char *const ls_timer_names[3];
extern const char *const ls_scope_names[3];
extern const char *const ls_engine_names[3];
extern const char *const ls_jit_leaf_names[2];

/* 1 when processes that run already are to be recorded. */
int ls_record_attaches(const struct ls_record_options *o);
/* Returns LS_GO_ON when there is something to record, else the status to exit with (what was wrong
 * is printed). */
int ls_record_options_parse(const struct ls_command *cmd, int argc, const char **argv,
                            struct ls_record_options *ret);
void ls_record_options_done(struct ls_record_options *o);

extern const struct poptOption ls_record_option_table[];

#endif
