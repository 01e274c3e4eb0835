/* The command of push/, for the table in luasample.c. */
#ifndef LS_PUSH_COMMANDS_H
#define LS_PUSH_COMMANDS_H

#include "cli/command.h"

extern const struct ls_command ls_cmd_push;

#endif
