/* The writer's inside, shared by writer.c (what callers add), flush.c (what goes to the file) and
 * block.c (samples). */
#ifndef LS_FORMATS_TRACE_WRITER_PARTS_H
#define LS_FORMATS_TRACE_WRITER_PARTS_H

#include "formats/trace/chunk.h"
#include "formats/trace/dict.h"

/* What ls_trace_sample sets, as bits. */
enum {
#define LS_DIM(NAME, name, bits, KIND, key) | 1u << LS_C_SAMPLE_##NAME
        LS_ROW_COLUMNS = 1u << LS_C_SAMPLE_EVENT | 1u << LS_C_SAMPLE_STACK |
        1u << LS_C_SAMPLE_FLAGS | 1u << LS_C_SAMPLE_TIME | 1u << LS_C_SAMPLE_WEIGHT
#include "formats/dims.def"
#undef LS_DIM
};

#define LS_CHUNK_EVENTS                                                                            \
        14u /* their totals fill the list in a chunk's header: 18 bytes each at most */

struct ls_event_total {                 /* of the pending samples */
        uint64_t rows, samples, sum;
};

struct ls_writer_kept { struct ls_buf rows, bytes; };      /* as texts and maps, all of the trace */

struct ls_trace_writer {
        int fd;
        int seekable;                   /* a regular file: a partial chunk can be cut off */
        int brief;                      /* written fast rather than small */
        int error;                      /* the first -errno, 0 = none */
        uint64_t interval_ns;
        uint64_t size;                  /* bytes of whole chunks in the file */
        uint64_t dropped, dropped_ticks;
        uint64_t dropped_before_ticks;  /* in the files before this one */
        uint32_t number;                /* of the next chunk */
        uint64_t last_flush_ns, last_facts_ns;
        int hold_facts;                 /* INFO and THREADCPU need not be written yet if nothing
                                         * else is */
        unsigned since_checkpoint;      /* chunks */
        uint64_t since_full;            /* bytes since the last checkpoint with everything */
        uint64_t definition_bytes;      /* stored size of all definition chunks: about that of a
                                         * full checkpoint */

        struct ls_strings strings;
        struct ls_dict dict[LS_KINDS];  /* of all other kinds with rows; by kind */
        struct ls_buf texts;            /* bytes of pending TEXT rows */
        struct ls_buf text_rows;        /* struct ls_text_row */
        struct ls_buf maps;             /* bytes of pending JITMAP rows */
        struct ls_buf map_rows;         /* struct ls_map_row */
        int repeats;                    /* the two below are filled */
        struct ls_writer_kept kept_texts, kept_maps;
        size_t pending_bytes;           /* estimate for definitions that wait */

        uint64_t *columns[LS_COLUMNS_MAX];      /* pending samples: LS_FLUSH_ROWS of each of
                                                 * LS_ROW_COLUMNS */
        uint32_t nrows;
        struct ls_event_total totals[UINT8_MAX + 1];
        unsigned nevents;               /* of them in use, at most LS_CHUNK_EVENTS */

        uint32_t homed;                 /* stacks whose coroutine is settled */
        struct ls_buf index;            /* struct ls_index_row: the chunks written */
        struct ls_buf body, raw, extra, out;    /* of the chunk in the making */
        size_t cut[2];                  /* start and end in raw of what no other bytes resemble; 0 =
                                         * nothing */
        struct ls_buf trial, packed;    /* a column in an encoding that is tried */
        uint32_t chunk_rows;            /* rows in raw */
        uint64_t *scratch;              /* LS_FLUSH_ROWS values of one column */
        ZSTD_CCtx *zstd;
};

struct ls_map_row { uint32_t function, len; };
struct ls_text_row { uint32_t source, offset, total, len; };
struct ls_index_row { uint64_t number, offset, size, type, ticks; };

/* Writes all pending definitions, then all pending samples. Return 0 or -errno. */
int ls_writer_flush(struct ls_trace_writer *w);
/* The file's own header; its last chunks. */
int ls_writer_header(struct ls_trace_writer *w);
int ls_writer_end(struct ls_trace_writer *w);
/* For a trace that goes on in another file: remembers a row that is in no dictionary. */
void ls_writer_keep(struct ls_trace_writer *w, struct ls_writer_kept *k, const void *row,
                    size_t row_len, const void *bytes, size_t len);
int ls_writer_checkpoint(struct ls_trace_writer *w, int last);
int ls_writer_index(struct ls_trace_writer *w);
int ls_writer_samples(struct ls_trace_writer *w);
/* Settles the coroutines of new stacks from the samples that wait; before their definitions are
 * written. */
void ls_writer_coroutines(struct ls_trace_writer *w);
int ls_writer_write(struct ls_trace_writer *w, const void *bytes, size_t len);
/* Writes the chunk that lies in raw and extra, and empties these. */
int ls_writer_put_chunk(struct ls_trace_writer *w, uint8_t type, uint8_t flags, uint64_t ticks);

#endif
