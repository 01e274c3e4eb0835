/* The commands of record/, for the table in luasample.c. */
#ifndef LS_RECORD_COMMANDS_H
#define LS_RECORD_COMMANDS_H

#include "cli/command.h"

extern const struct ls_command ls_cmd_record;
extern const struct ls_command ls_cmd_doctor;
extern const struct ls_command ls_cmd_stack;

#endif
