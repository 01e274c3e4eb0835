/* The reader's inside: shared by scan.c (bytes to sound chunks), tables.c (records to rows),
 * resolve.c (rows to the profile), no_line.c, jit.c, reader.c, samples.c and dump.c. */
#ifndef LS_FORMATS_TRACE_READER_PARTS_H
#define LS_FORMATS_TRACE_READER_PARTS_H

#include "formats/trace/chunk.h"
#include "formats/trace/dict.h"
#include "formats/profile.h"
#include "formats/trace/record.h"

struct ls_chunk_ref {                   /* a chunk whose header and payload check, at the time of
                                         * the scan */
        uint64_t offset;
        uint32_t number;
        uint8_t type;
        uint8_t bad;                    /* its payload makes no sense: skipped, and listed as
                                         * damage */
};

struct ls_text_piece { uint32_t source, offset, total, len; const uint8_t *bytes; };

struct ls_map_piece { uint32_t function, len; const uint8_t *bytes; }; /* 8-aligned */

struct ls_block {                       /* memory that lives as long as the reader */
        struct ls_block *next;
        size_t len, cap;
        char bytes[];
};

/* What becomes of a stack of the file that ends in machine code: jit.c. */
struct ls_jit_move {
        uint32_t to;                    /* the stack that is meant */
        uint32_t trace : 30, doubt : 2; /* index of jittraces, 0 = none; LS_JIT_MOVE_* */
};
#define LS_JIT_MOVE_APPROXIMATE 1u
#define LS_JIT_MOVE_NO_MAP 2u           /* it is the root function's, in a line that is not known */

struct ls_event_sum { uint64_t rows, samples, sum; };

struct ls_reader {
        struct ls_profile *p;
        int fd;
        uint64_t size;                  /* of the file when it was opened */
        uint64_t interval_ns;           /* from the file header, 0 when that is damaged */
        int header_ok;
        uint16_t minor;                 /* likewise */

        struct ls_chunk_ref *chunks;
        uint32_t n_chunks, cap_chunks;
        uint64_t next_number;           /* least number of the next chunk */
        uint32_t cap_damages;
        uint64_t wasted;                /* payload bytes of damaged chunks that were read */

        uint8_t *window;                /* LS_WINDOW bytes of the file, for headers and searches */
        uint64_t window_offset;
        size_t window_len;
        struct ls_buf stored, raw;      /* one chunk; room for the largest so far */
        uint8_t extra[UINT8_MAX];       /* of that chunk */
        ZSTD_DCtx *zstd;
        uint64_t *scratch[LS_COLUMNS_MAX];      /* columns of one record */
        uint32_t scratch_rows[LS_COLUMNS_MAX];  /* room in each */

        struct ls_dict dict[LS_KINDS];  /* rows of all kinds but samples and texts; strings:
                                         * (length, pointer) */
        uint64_t table_bytes;           /* of all of them, gaps included, and of strings, texts and
                                         * maps */
        uint64_t payload_bytes;         /* of definition chunks */
        struct ls_text_piece *texts;
        uint32_t n_texts, cap_texts;
        struct ls_map_piece *maps;
        uint32_t n_maps, cap_maps;
        struct ls_block *blocks;
        struct ls_event_sum sums[256];  /* samples by event number, as chunk headers say */
        struct ls_event_sum exact[256]; /* aggregates, spans and line counts by event number */

        uint32_t lost_function, lost_location;
        uint32_t lost[LS_KINDS];        /* by kind: the entry for ids of rows without definition, 0
                                         * = it is none */
        int holes;                      /* some stack ids have no definition */
        struct ls_sample_buffers *buffers;
        struct ls_jit_move *jit_moves;  /* by stack of the file; NULL = none ends in machine code */
        uint32_t n_jit_moves;
        uint32_t *no_line;              /* by stack of the file: the same with a leaf at line 0,
                                         * where a row with LS_SAMPLE_NO_LINE has it; NULL = no row
                                         * has the flag */
};

#define LS_WINDOW (256u << 10)

/* scan.c. */
int ls_scan(struct ls_reader *r);
/* Reads a chunk again into stored and raw; *ret_why says what is wrong with it. */
int ls_chunk_load(struct ls_reader *r, const struct ls_chunk_ref *ref,
                  struct ls_chunk_header *ret_h, const char **ret_why);
int ls_read_at(int fd, void *buf, size_t len, uint64_t offset, size_t *ret_len);
int ls_damage_add(struct ls_reader *r, uint64_t chunk, uint64_t offset, uint64_t bytes,
                  const char *why);
/* Entry of the list in a chunk's extra: n numbers. Returns 1, 0 at the end, or -EBADMSG. */
int ls_extra_next(const uint8_t **p, const uint8_t *end, unsigned n, uint64_t *ret);

/* tables.c: takes the records of a definition chunk. Returns 0, or -EBADMSG and why. */
int ls_tables_add(struct ls_reader *r, const uint8_t *payload, size_t len, const char **ret_why);
void *ls_block_alloc(struct ls_reader *r, size_t n);
/* Decodes all number columns of rec into r->scratch. Returns 0 or -errno. */
int ls_columns_decode(struct ls_reader *r, const struct ls_record *rec);
/* The coroutine that samples of a stack refer to with LS_COROUTINE_OF_STACK; 0 when it is not
 * known. */
uint32_t ls_stack_coroutine(const struct ls_reader *r, uint64_t stack);

/* resolve.c: fills the profile from the tables. */
int ls_resolve(struct ls_reader *r);
/* counts.c: counters and their values. Returns 0 or -ENOMEM. */
int ls_resolve_counters(struct ls_reader *r);
int ls_resolve_attempts(struct ls_reader *r);   /* attempts.c, when locations are there */
/* Fills events and the recorded totals from the sums. */
int ls_resolve_totals(struct ls_reader *r);
struct ls_str ls_reader_str(const struct ls_reader *r, uint64_t string);

/* jit.c: resolves stacks that end in machine code, after all else. Returns 0 or -ENOMEM. */
int ls_resolve_jit(struct ls_reader *r);
/* Moves the stacks of n rows, whose ids are checked, and adds their ticks up; ret_trace (may be
 * NULL) gets their traces. Only when there are jit_moves. */
void ls_jit_move_rows(struct ls_reader *r, const uint32_t *weight, uint32_t n, uint32_t *stack,
                      uint32_t *ret_trace);

/* no_line.c: makes r->no_line of the rows of an old file, before ls_resolve_jit. Returns 0 or
 * -ENOMEM. */
int ls_resolve_no_line(struct ls_reader *r);
/* Moves the rows with LS_SAMPLE_NO_LINE to stacks that have none. Only when there is no_line. */
void ls_no_line_move_rows(const struct ls_reader *r, const uint8_t *vmstate, const uint8_t *flags,
                          uint32_t n, uint32_t *stack);

/* samples.c. */
/* Gives all rows to fn, by stacks of the file whose ids are checked; chunks that make no sense are
 * left out. Returns 0, -ENOMEM, or what fn returned. */
int ls_samples_scan(struct ls_reader *r, ls_sample_fn fn, void *ctx);
void ls_sample_buffers_free(struct ls_sample_buffers *b);

#endif
