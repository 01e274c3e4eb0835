/* Coded columns: numbers as bits, and the bits through an adaptive range coder that has learnt from
 * the rows before. For the columns that make the size of a trace: samples and stacks of small
 * records, where tables that are learnt on the way cost less than tables in the file. Used by
 * block.c and flush.c (to write), samples.c and tables.c (to read). luasample-trace(5), CODED
 * COLUMNS, says what the bytes are. */
#ifndef LS_FORMATS_TRACE_CODED_H
#define LS_FORMATS_TRACE_CODED_H

#include "formats/trace/record.h"

/* Appends a column of samples in coded form to a record body. context: the values of the column
 * that ls_coded_context() names. Returns 0, -ERANGE when the values or the number of rows cannot be
 * coded (nothing is appended), or -ENOMEM. */
int ls_coded_put(struct ls_buf *body, unsigned column, const uint64_t *values,
                 const uint64_t *context, uint32_t n);
/* Decodes a coded column of samples. Returns 0, -EBADMSG or -ENOMEM. */
int ls_coded_get(const struct ls_record *rec, unsigned column, const uint64_t *context,
                 uint64_t *out);
/* The column of samples that a coded column is predicted from. */
unsigned ls_coded_context(unsigned column);

/* Parents and locations of stacks, both in the coded column of the parents. first: id of row 0.
 * Return as above. */
int ls_coded_put_stacks(struct ls_buf *body, uint64_t first, const uint64_t *parents,
                        const uint64_t *locations, uint32_t n);
int ls_coded_get_stacks(const struct ls_record *rec, uint64_t *parents, uint64_t *locations);

static inline int ls_is_coded(const struct ls_record *rec, unsigned column)
{
        return rec->col[column].present && rec->col[column].encoding == LS_ENC_CODED;
}

#endif
