/* The command of store/, for the table in luasample.c. */
#ifndef LS_STORE_COMMANDS_H
#define LS_STORE_COMMANDS_H

#include "cli/command.h"

extern const struct ls_command ls_cmd_store;

#endif
