/* The command coverage, for the table in luasample.c. */
#ifndef LS_REPORT_COVERAGE_COMMAND_H
#define LS_REPORT_COVERAGE_COMMAND_H

#include "cli/command.h"

extern const struct ls_command ls_cmd_coverage;

#endif
