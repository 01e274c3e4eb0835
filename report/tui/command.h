/* The command tui, for the table in luasample.c. */
#ifndef LS_REPORT_TUI_COMMAND_H
#define LS_REPORT_TUI_COMMAND_H

#include "cli/command.h"

extern const struct ls_command ls_cmd_tui;

#endif
