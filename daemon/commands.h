/* The commands of daemon/, for the table in luasample.c. */
#ifndef LS_DAEMON_COMMANDS_H
#define LS_DAEMON_COMMANDS_H

#include "cli/command.h"

extern const struct ls_command ls_cmd_daemon;
extern const struct ls_command ls_cmd_ctl;

#endif
