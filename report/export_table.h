/* An export as a table of cells: see export_table.c. */
#ifndef LS_REPORT_EXPORT_TABLE_H
#define LS_REPORT_EXPORT_TABLE_H

#include "formats/export/export.h"

/* Prints the table: a line for each cell. */
int ls_export_table(const struct ls_export *in, ls_export_line_fn fn, void *ctx);

#endif
