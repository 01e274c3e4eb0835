/* The processes of a trace, as luasample info shows them. Called by info.c. */
#ifndef LS_REPORT_INFO_PROCESSES_H
#define LS_REPORT_INFO_PROCESSES_H

#include <stdio.h>

#include "formats/json.h"
#include "formats/profile.h"

/* Nothing for a trace of one process. */
void ls_info_processes(FILE *out, const struct ls_profile *p);
void ls_info_processes_json(struct ls_js *g, const struct ls_profile *p);

#endif
