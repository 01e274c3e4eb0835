/* Exporters: a profile, filtered, in the format of another tool. One file and one row of the table for each. Called by
 * report/export.c. */
#ifndef LS_FORMATS_EXPORT_H
#define LS_FORMATS_EXPORT_H

#include <stdio.h>

#include "formats/dims.h"
#include "formats/label.h"
#include "formats/profile.h"

struct ls_export_cell {                 /* ticks of one stack, after all filters */
        uint64_t ticks;
        uint32_t stack;
        uint32_t prefix, suffix;        /* tags: a frame above the roots, a frame below the leaf; 0 = none */
        uint32_t zone, thread, vm, coroutine, trace;    /* of the dims that the exporter asked for; else 0 */
        uint8_t vmstate;                /* likewise */
        uint8_t noline;                 /* the leaf's line is not known */
};

/* Sample rows that pass the filters, as in struct ls_sample_block: wanted[i] says whether row i is. Rows of one thread
 * come in time order. Non-zero stops and is returned. */
typedef int (*ls_export_rows_fn)(void *ctx, const struct ls_sample_block *block, const uint8_t *wanted);

struct ls_export {
        struct ls_profile *profile;
        const struct ls_labels *labels;
        const struct ls_export_cell *cells;     /* of exporters without LS_EXPORT_ROWS */
        size_t n_cells;
        uint64_t ticks;                 /* sum of all cells, and of all rows */
        const char *const *tags;        /* texts of prefix and suffix, from 1 */
        const uint32_t *frame_of_location;      /* what a frame is shown as: [n_locations] -> number */
        const char *(*frame_text)(void *ctx, uint32_t frame);
        void *ctx;
        uint32_t n_frames;
        uint64_t interval_ns;
        int per_thread;                 /* --per-thread */
        /* Streams the rows; can be called again. columns: LS_COL_*. 0 or -errno. */
        int (*rows)(const struct ls_export *in, unsigned columns, ls_export_rows_fn fn, void *ctx);
        void *rows_ctx;                 /* the caller's */
};

#define LS_EXPORT_ROWS         1u       /* reads rows(), not cells: one sample after the other, with its time */
#define LS_EXPORT_EXPERIMENTAL 2u       /* needs --experimental: the format is not settled */
#define LS_EXPORT_PER_THREAD   4u       /* knows --per-thread */

struct ls_exporter {
        const char *name;               /* --format NAME */
        const char *suffix;             /* usual end of its file names: picks the format of export -o */
        const char *help;
        unsigned flags;                 /* LS_EXPORT_* */
        unsigned dims;                  /* LS_DIM_* by which cells are told apart */
        int (*write)(FILE *out, const struct ls_export *in);    /* 0 or -errno; the caller checks out */
};

extern const struct ls_exporter ls_export_collapsed;
extern const struct ls_exporter ls_export_callgrind;
extern const struct ls_exporter ls_export_speedscope;
extern const struct ls_exporter ls_export_chrome;
extern const struct ls_exporter ls_export_perf_script;

/* All exporters, ended by NULL. */
extern const struct ls_exporter *const ls_exporters[];

#endif
