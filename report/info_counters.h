/* The program's counters in luasample info. */
#ifndef LS_REPORT_INFO_COUNTERS_H
#define LS_REPORT_INFO_COUNTERS_H

#include <stdio.h>

#include "formats/json.h"
#include "formats/profile.h"

void ls_info_counters(FILE *out, const struct ls_profile *p);
void ls_info_counters_json(struct ls_js *g, const struct ls_profile *p);

#endif
