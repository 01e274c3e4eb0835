/* The trace file as it is on disk: headers, chunk types, encodings, limits, and the table of record
 * layouts. Used by the writer, the reader and dump; luasample-trace(5) says the same in words. All
 * numbers are little-endian. */
#ifndef LS_FORMATS_TRACE_FORMAT_H
#define LS_FORMATS_TRACE_FORMAT_H

#include <stdint.h>

#include "formats/wire/kinds.h"

#define LS_TRACE_MAJOR 1u               /* a reader refuses a greater one */
#define LS_TRACE_MINOR                                                                             \
        1u /* grows with additions that old readers may skip; 1: LS_SAMPLE_NO_LINE has ended */

#define LS_FILE_MAGIC "\x89LST\r\n\x1a\n"       /* 8 bytes; a transfer as text breaks it */

struct ls_file_header {                 /* bytes 0 to 31 of the file, in this layout in every
                                         * version */
        uint8_t magic[8];
        uint16_t major, minor;
        uint32_t pad;                   /* 0 */
        uint64_t interval_ns;
        uint64_t check;                 /* xxh64 of the 24 bytes before */
};
_Static_assert(sizeof(struct ls_file_header) == 32, "the file header is 32 bytes on disk");

#define LS_CHUNK_MAGIC 0x43534ca7u      /* A7 'L' 'S' 'C' */

struct ls_chunk_header {                /* extra_len bytes of varints follow, then stored_size bytes
                                         * of payload */
        uint32_t magic;
        uint8_t major;
        uint8_t type;                   /* LS_CHUNK_* */
        uint8_t flags;                  /* LS_CHUNKF_* */
        uint8_t extra_len;              /* bytes of the list of what is in the chunk */
        uint32_t number;                /* 0, 1, ...; one that was not written leaves a gap */
        uint32_t stored_size;
        uint32_t raw_size;              /* of the payload when decompressed */
        uint32_t check;                 /* low half of xxh64 of header and extra with this field
                                         * 0 */
        uint64_t payload_check;         /* xxh64 of the payload as stored */
};
_Static_assert(sizeof(struct ls_chunk_header) == 32, "the chunk header is 32 bytes on disk");

#define LS_CHUNK_DEFINITIONS 1u         /* extra: kind, first id, count */
#define LS_CHUNK_SAMPLES     2u         /* extra: event, rows, samples, sum of weights */
#define LS_CHUNK_CHECKPOINT  3u         /* as DEFINITIONS, repeats what earlier chunks said */
#define LS_CHUNK_INDEX       4u         /* extra: empty */
#define LS_CHUNK_PARITY      5u         /* of older writers: skipped */

#define LS_CHUNKF_ZSTD 0x01u /* the payload is one zstd frame; else it is stored as it is */
#define LS_CHUNKF_END  0x02u            /* the last chunk of a trace that was ended in order */

/* How the values of a column are written. Part of the format. */
enum ls_encoding {
        LS_ENC_CONST = 0,       /* one varint, the value of all rows */
        LS_ENC_VARINT = 1,      /* a varint for each row */
        LS_ENC_DELTA = 2,       /* zigzag varints: difference from the row before, the first from
                                 * 0 */
        LS_ENC_FIXED = 3,       /* 8 bytes for each row */
        LS_ENC_BYTES = 4,       /* column of bytes: bytes, cut by the column "length" */
        LS_ENC_CODED = 4,       /* column of numbers: see coded.h */
        LS_ENC_RUNS = 5,        /* varint value, varint (rows - 1), until all rows are covered */
        LS_ENC_PLANES = 6,      /* byte w, then the lowest bytes of all rows, the second lowest, ...
                                 * w planes */
        LS_ENC_BACK = 7,        /* varints: own id (first + row) - value */
};

/* Limits that a file must keep; a chunk or record beyond them is damaged. */
#define LS_MAX_RAW      (4u << 20)      /* bytes of a decompressed payload */
#define LS_MAX_STORED   (LS_MAX_RAW + (LS_MAX_RAW >> 7) + 512u)
#define LS_MAX_ROWS     262144u         /* rows of all records of a chunk */
#define LS_MAX_STRING   (1u << 20)      /* bytes of a string; the writer cuts longer ones */
#define LS_MAX_TEXT     (64u << 20)     /* bytes of one source text */
#define LS_CODED_ROWS_MAX 16384u        /* rows of a record with coded columns */

/* The writer's sizes. */
#define LS_FLUSH_BYTES  (256u << 10)    /* pending bytes that make a chunk */
#define LS_FLUSH_NS     1000000000ull   /* age that makes a chunk */
/* Samples of a chunk that are coded, if that is shorter: up to two threads at 1 ms. Many more are
 * fewer bytes each with any encoding, and coded ones take ten times as long to read. */
#define LS_CODED_ROWS   2048u
#define LS_CODED_STACKS                                                                            \
        8192u /* new stacks of a chunk that are coded: more than a second has of deep ones */
#define LS_CODED_STACKS_MIN 16u
#define LS_FACTS_NS                                                                                \
        4000000000ull /* age that makes a chunk of INFO and THREADCPU alone: no news but totals */
#define LS_FLUSH_ROWS   65536u          /* samples that make a chunk: about LS_FLUSH_BYTES */
#define LS_CHECKPOINT_CHUNKS 64u
#define LS_ZSTD_SAMPLES 3
#define LS_ZSTD_DEFINITIONS 12
#define LS_ZSTD_BRIEF 1
#define LS_MANY_STACKS 2000u /* so many since a checkpoint are not repeated by the next */

#define LS_KINDS        37u             /* record kinds are less than this */
#define LS_COLUMNS_MAX  16u             /* column numbers are 1 to this */

enum ls_column_type { LS_TYPE_NUM, LS_TYPE_HASH, LS_TYPE_STR, LS_TYPE_BYTES, LS_TYPE_REAL };

struct ls_column {
        const char *name;               /* NULL = no such column */
        uint8_t type;                   /* enum ls_column_type */
        uint8_t encoding;               /* enum ls_encoding: the writer's choice */
};

#define LS_COROUTINE_OF_STACK UINT32_MAX        /* in column coroutine of a sample */

/* How the rows of a kind are told apart. */
enum ls_rows {
        LS_ROWS_NONE,           /* the kind is not in files */
        LS_ROWS_DENSE,          /* by id: row i of a record has id first + i; ids count from 1 */
        LS_ROWS_KEYED,          /* by their first column; a later row replaces an earlier one */
        LS_ROWS_STREAM,         /* not at all */
};

struct ls_schema {
        const char *name;               /* NULL = no such kind */
        enum ls_rows rows;
        uint32_t max;                   /* most ids */
};

/* LS_C_STACK_PARENT and so on: index of a column in a row, its number - 1. */
enum ls_column_index {
#define LS_COLUMN(KIND, number, NAME, name, type, encoding, help) LS_C_##KIND##_##NAME = number - 1,
#include "formats/trace/columns.def"
#undef LS_COLUMN
};

#define LS_LOST_NAME "[definition lost]"

#endif
