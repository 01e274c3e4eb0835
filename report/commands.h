/* The commands of report/, for the table in luasample.c. */
#ifndef LS_REPORT_COMMANDS_H
#define LS_REPORT_COMMANDS_H

#include "cli/command.h"

extern const struct ls_command ls_cmd_report;
extern const struct ls_command ls_cmd_export;
extern const struct ls_command ls_cmd_merge;
extern const struct ls_command ls_cmd_dump;
extern const struct ls_command ls_cmd_info;
extern const struct ls_command ls_cmd_top;

#endif
