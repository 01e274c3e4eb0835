/* Exporters: a profile, filtered, in the format of another tool. One file and one row of the table
 * for each. Called by report/export.c. */
#ifndef LS_FORMATS_EXPORT_EXPORT_H
#define LS_FORMATS_EXPORT_EXPORT_H

#include <stdio.h>

#include "formats/dims.h"
#include "formats/label.h"
#include "formats/profile.h"

#define LS_EXPORT_LABELS 64u /* of a sample that are written: a hostile trace may nest any number */

struct ls_export_cell {                 /* ticks of one stack, after all filters */
        uint64_t ticks;
        uint32_t stack;
        uint32_t prefix, suffix;        /* tags: a frame above the roots, a frame below the leaf; 0
                                         * = none */
        uint32_t trace;                 /* this and the rest: of the dims that the exporter asked
                                         * for; else 0 */
#define LS_DIM(NAME, name, bits, KIND, key) LS_DIM_TYPE_##bits name;
#include "formats/dims.def"
#undef LS_DIM
};

/* Its value of one LS_DIM_*. */
static inline uint32_t ls_export_cell_id(const struct ls_export_cell *c, unsigned dim)
{
#define LS_DIM(NAME, name, bits, KIND, key) if (dim == LS_DIM_##NAME) return c->name;
#include "formats/dims.def"
#undef LS_DIM
        return c->trace;
}

/* Sample rows that pass the filters, as in struct ls_sample_block: wanted[i] says whether row i is.
 * Rows of one thread come in time order. Non-zero stops and is returned. */
typedef int (*ls_export_rows_fn)(void *ctx, const struct ls_sample_block *block,
                                 const uint8_t *wanted);

/* One line of a table: column i is called names[i], its text is values[i]; NULL = it has none here.
 * The first line is the head, without values. Non-zero stops and is returned. */
typedef int (*ls_export_line_fn)(void *ctx, const char *const *names, const char *const *values,
                                 unsigned n);

#define LS_EXPORT_EVENTS_MOST 4u

struct ls_export_event {
        const char *name;               /* "cpu" */
        int exact;                      /* as in struct ls_export */
        const char *unit;
        const struct ls_export_cell *cells;
        size_t n_cells;
};

struct ls_export {
        struct ls_profile *profile;
        const struct ls_labels *labels;
        const struct ls_export_cell *cells;     /* of exporters without LS_EXPORT_ROWS */
        size_t n_cells;
        uint64_t ticks;                 /* sum of all cells, and of all rows */
        const char *const *tags;        /* texts of prefix and suffix, from 1 */
        const uint32_t *frame_of_location;      /* what a frame is shown as: [n_locations] ->
                                                 * number */
        const char *(*frame_text)(void *ctx, uint32_t frame);
        void *ctx;
        uint32_t n_frames;
        uint64_t interval_ns;
        const char *event;              /* what passed during a tick: "cpu" */
        int exact;                      /* 1 = ticks are no time: how often the event was counted,
                                         * or an amount */
        const char *unit;               /* of the event's sum: ns, count or bytes */
        /* For LS_EXPORT_EVENTS: all that are shown, of which those above are the first. */
        struct ls_export_event events[LS_EXPORT_EVENTS_MOST];
        unsigned n_events;
        uint64_t from_ns, to_ns;        /* what --time leaves, of CLOCK_MONOTONIC; 0 = open */
        unsigned part;                  /* of LS_EXPORT_PARTS with --per-thread: number of the file;
                                         * 0 = all threads */
        uint32_t part_thread;           /* whose part it is */
        /* What a zone (its path), thread, VM, coroutine, trace or VM state is called, by its one
         * LS_DIM_*; NULL = none. For dims of the exporter only. */
        const char *(*dim_text)(const struct ls_export *in, unsigned dim, uint32_t id);
        /* Streams the rows; can be called again. columns: LS_COL_*. 0 or -errno. */
        int (*rows)(const struct ls_export *in, unsigned columns, ls_export_rows_fn fn, void *ctx);
        /* Streams the lines of the table that report would show, all with the same columns. 0 or
         * -errno. */
        int (*table)(const struct ls_export *in, ls_export_line_fn fn, void *ctx);
        void *caller_ctx;               /* the caller's */
        unsigned without;               /* LS_DIM_* that pprof and otlp leave out, though they know
                                         * them */
        const char *const *label_keys;  /* of the program's labels they write these, ended by NULL;
                                         * NULL = all */
        unsigned depth;                 /* pprof: most frames of a stack, from the leaf; 0 = all */
        int time_is_end;                /* pprof: its time is that of the end */
        uint64_t wall_from_ns, wall_to_ns;      /* CLOCK_REALTIME of a time of the store, whatever
                                                 * there is at its ends; 0 = as the trace says */
};

/* When it was recorded (CLOCK_REALTIME), and how long, from the facts of the recording or its
 * clocks; of it what --time leaves. In ns. */
void ls_export_times(const struct ls_export *in, uint64_t *ret_start, uint64_t *ret_elapsed);
/* Whether label_keys has it. */
int ls_export_wants_label(const struct ls_export *in, struct ls_str key);

/* Who takes an export in parts of no more than so many cells: the same of the same trace. take gets
 * each; -EFBIG = it is too large, and is to come as two; else non-zero stops and is returned. */
struct ls_export_taker {
        size_t cells;
        unsigned without, depth;        /* as in struct ls_export, and the next four */
        const char *const *label_keys;
        int time_is_end;
        uint64_t wall_from_ns, wall_to_ns;
        int (*take)(void *ctx, const struct ls_export *part);
        void *ctx;
};

#define LS_EXPORT_ROWS 1u /* reads rows(), not cells: one sample after the other, with its time */
#define LS_EXPORT_EXPERIMENTAL 2u       /* needs --experimental: the format is not settled */
#define LS_EXPORT_PARTS        4u       /* knows --per-thread: a file for each thread */
#define LS_EXPORT_TABLE 8u /* reads table(), not cells: any --by, --depth and --split */
#define LS_EXPORT_BY           16u      /* shows what --by says: tags, frame_of_location */
#define LS_EXPORT_TIMELINE     64u      /* lays samples on the time line of their thread */
#define LS_EXPORT_EVENTS       128u     /* knows several events at a time */
#define LS_EXPORT_BINARY       32u      /* not for a terminal */

struct ls_exporter {
        const char *name;               /* --format NAME */
        const char *suffix;             /* usual end of its file names: picks the format of export
                                         * -o */
        const char *prefix;             /* usual start, which picks it when no suffix does; NULL =
                                         * none */
        const char *help;
        unsigned flags;                 /* LS_EXPORT_* */
        unsigned dims;                  /* LS_DIM_* by which cells are told apart, or that dim_text
                                         * is asked for */
        int (*write)(FILE *out, const struct ls_export *in);    /* 0 or -errno; the caller checks
                                                                 * out */
};

#define LS_EXPORTER(ident, name) extern const struct ls_exporter ls_export_##ident;
#include "formats/export/exporters.def"
#undef LS_EXPORTER

/* All exporters, ended by NULL. */
extern const struct ls_exporter *const ls_exporters[];

/* Whether value i of a counter is in the time that --time leaves, or holds when that begins;
 * *ret_ns is when it begins there. */
int ls_export_has_count(const struct ls_export *in, const struct ls_counter_series *s, uint32_t i,
                        uint64_t *ret_ns);

/* The exporter whose files are named so: the longest suffix that fits, else a prefix; NULL =
 * none. */
const struct ls_exporter *ls_exporter_of_path(const char *path);

#endif
