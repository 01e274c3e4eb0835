/* The table of record kinds and their columns. */
#ifndef LS_FORMATS_TRACE_SCHEMA_H
#define LS_FORMATS_TRACE_SCHEMA_H

#include "formats/trace/format.h"

extern const struct ls_schema ls_schemas[LS_KINDS];
extern const struct ls_column ls_columns[LS_KINDS][LS_COLUMNS_MAX];     /* by kind and number - 1 */
/* How many columns a kind has. */
unsigned ls_schema_ncolumns(unsigned kind);

#endif
