/* Records and their columns, both ways. A record is a table: some rows, stored column by column.
 * Called by the writer (flush.c) and by all parts of the reader. */
#ifndef LS_FORMATS_TRACE_RECORD_H
#define LS_FORMATS_TRACE_RECORD_H

#include "formats/buffer.h"
#include "formats/trace/format.h"

struct ls_column_view {                 /* a column as it lies in a payload */
        uint8_t present;
        uint8_t encoding;
        uint64_t constant;              /* LS_ENC_CONST, and 0 when absent */
        const uint8_t *data;
        size_t len;
};

struct ls_record {                      /* a record of a payload; points into it */
        uint32_t kind;
        const uint8_t *body;
        size_t body_len;
        uint32_t first;                 /* id of row 0 */
        uint32_t count;
        struct ls_column_view col[LS_COLUMNS_MAX];
};

/* Reads the record at *p, which it moves behind it. The columns are there for kinds of the schema;
 * others have only kind and body. Returns 1, 0 at end, or -EBADMSG when the bytes make no sense. */
int ls_record_next(const uint8_t **p, const uint8_t *end, struct ls_record *ret_rec);

/* Decodes column number-1 of a record into out[count]. Returns 0, or -EBADMSG: too short or long
 * for its rows, or a value greater than max. A column of bytes cannot be decoded. */
int ls_column_u64(const struct ls_record *rec, unsigned column, uint64_t max, uint64_t *out);
int ls_column_u32(const struct ls_record *rec, unsigned column, uint32_t max, uint32_t *out);
int ls_column_u8(const struct ls_record *rec, unsigned column, uint8_t max, uint8_t *out);

/* Appends a column to a record body: constant ones as such, zeros not at all, others in the
 * encoding given, or in runs when that is clearly shorter. first: id of row 0 (for LS_ENC_BACK). */
void ls_column_put(struct ls_buf *body, unsigned column, unsigned encoding, uint64_t first,
                   const uint64_t *values, uint32_t n);
void ls_column_put_bytes(struct ls_buf *body, unsigned column, const void *bytes, size_t len);
/* Starts a record's body, and appends a finished body to a payload. */
void ls_record_begin(struct ls_buf *body, uint64_t first, uint32_t count);
void ls_record_end(struct ls_buf *payload, unsigned kind, const struct ls_buf *body);

#endif
