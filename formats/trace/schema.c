/* The table of record kinds and their columns, made from records.def and columns.def. */
#include "formats/trace/schema.h"

#define M (1u << 20)

/* Most ids of a kind: what a hostile file can make the reader hold. A real trace stays far
 * below. */
const struct ls_schema ls_schemas[LS_KINDS] = {
        [LS_REC_SAMPLE]    = { "sample",    LS_ROWS_STREAM, 0 },
        [LS_REC_STRING]    = { "string",    LS_ROWS_DENSE,  8 * M },
        [LS_REC_SOURCE]    = { "source",    LS_ROWS_DENSE,  M },
        [LS_REC_TEXT]      = { "text",      LS_ROWS_STREAM, 0 },
        [LS_REC_FUNCTION]  = { "function",  LS_ROWS_DENSE,  4 * M },
        [LS_REC_NAME]      = { "name",      LS_ROWS_KEYED,  4 * M },
        [LS_REC_LOCATION]  = { "location",  LS_ROWS_DENSE,  16 * M },
        [LS_REC_STACK]     = { "stack",     LS_ROWS_DENSE,  32 * M },
        [LS_REC_ZONE]      = { "zone",      LS_ROWS_DENSE,  M },
        [LS_REC_THREAD]    = { "thread",    LS_ROWS_DENSE,  M },
        [LS_REC_VM]        = { "vm",        LS_ROWS_DENSE,  M },
        [LS_REC_COROUTINE] = { "coroutine", LS_ROWS_DENSE,  4 * M },
        [LS_REC_MAPPING]   = { "mapping",   LS_ROWS_DENSE,  M },
        [LS_REC_PROCESS]   = { "process",   LS_ROWS_DENSE,  M },
        [LS_REC_EVENT]     = { "event",     LS_ROWS_KEYED,  256 },
        [LS_REC_INFO]      = { "info",      LS_ROWS_KEYED,  65536 },
        [LS_REC_CLOCKS]    = { "clocks",    LS_ROWS_DENSE,  M },
        [LS_REC_THREADCPU] = { "threadcpu", LS_ROWS_KEYED,  M },
        [LS_REC_REGION]    = { "region",    LS_ROWS_DENSE,  4 * M },
        [LS_REC_NOTICE]    = { "notice",    LS_ROWS_DENSE,  65536 },
        [LS_REC_INDEX]     = { "index",     LS_ROWS_KEYED,  16 * M },
        [LS_REC_AGGREGATE] = { "aggregate", LS_ROWS_DENSE,  16 * M },
        [LS_REC_SPAN]      = { "span",      LS_ROWS_DENSE,  16 * M },
        [LS_REC_LINECOUNT] = { "linecount", LS_ROWS_DENSE,  16 * M },
        [LS_REC_JITTRACE]  = { "jittrace",  LS_ROWS_DENSE,  M },
        [LS_REC_JITMAP]    = { "jitmap",    LS_ROWS_STREAM, 0 },
        [LS_REC_IRNAMES]   = { "irnames",   LS_ROWS_KEYED,  M },
        [LS_REC_PROCTOTALS] = { "proctotals", LS_ROWS_KEYED, M },
        [LS_REC_LABEL]     = { "label",     LS_ROWS_DENSE,  M },
        [LS_REC_COUNTER]   = { "counter",   LS_ROWS_DENSE,  M },
        [LS_REC_COUNT]     = { "count",     LS_ROWS_DENSE,  64 * M },
        [LS_REC_ATTEMPT]   = { "attempt",   LS_ROWS_DENSE,  16 * M },
};

#undef M

const struct ls_column ls_columns[LS_KINDS][LS_COLUMNS_MAX] = {
#define LS_COLUMN(KIND, number, NAME, name, type, encoding, help) \
        [LS_REC_##KIND][number - 1] = { name, LS_TYPE_##type, LS_ENC_##encoding },
#include "formats/trace/columns.def"
#undef LS_COLUMN
};

unsigned ls_schema_ncolumns(unsigned kind)
{
        unsigned n = 0;

        while (n < LS_COLUMNS_MAX && ls_columns[kind][n].name)
                n++;
        return n;
}
