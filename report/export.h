/* A report in one of the formats of formats/export: see export.c. */
#ifndef LS_REPORT_EXPORT_H
#define LS_REPORT_EXPORT_H

#include "report/model/report.h"

/* Writes it in the format of --format. Returns 0 or -errno; and the dims that this needs. */
int ls_report_export(const struct ls_report *r);
unsigned ls_report_export_dims(const struct ls_report_options *o);

#endif
