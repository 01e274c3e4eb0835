/* The page: all panels of a profile in one HTML file. The view "page" (report --html) is page.c; a
 * caller with a profile to compare with uses ls_page_write.
 *
 * The file is the template of report/page/ with one JSON object in it, which page/decode.js reads.
 * Samples are in it as ticks by (time bucket, stack, context); a context is a VM state, zone,
 * thread and labels. So sums of whole buckets are exact. Long columns are varints in base64. */
#ifndef LS_REPORT_PAGE_PAGE_H
#define LS_REPORT_PAGE_PAGE_H

#include "formats/buffer.h"
#include "report/view/view.h"

/* What the page shows. To compare two recordings, give the later one as report and the earlier one
 * as base, each with profile, labels, filter and options, and say which functions are the same. The
 * page then has the frames of both, merged by function, as wide as in the later one (or in the
 * earlier, by a switch), red where their share of the ticks has grown and blue where it has shrunk;
 * its table has a column for the change. Base has no time on the page: as a whole it is compared
 * with what is selected of the other. */
struct ls_page {
        const struct ls_report *report; /* its out is written to */
        const struct ls_report *base;   /* NULL = nothing to compare with */
        const uint32_t *same_function;  /* [n_functions of base] function of report, 0 = it has no
                                         * such function */
        const char *title, *base_title; /* what the two are called, such as file names; NULL = not
                                         * said */
};

/* Writes to report->out. Returns 0 or -errno. */
int ls_page_write(const struct ls_page *page);

/* From here on: what the files of the page share. */

struct ls_page_context {
        uint32_t zone, thread;          /* groups of the keys zone-path and thread */
        uint32_t labels;                /* a set */
        uint8_t vmstate;
};

#define LS_PAGE_KEYS 6u
struct ls_page_labels {                 /* labels.c */
        struct ls_grouping *keys[LS_PAGE_KEYS]; /* label:KEY */
        uint32_t *values[LS_PAGE_KEYS]; /* [n_sample_labels] group of the key, or one for all
                                         * others */
        unsigned n_keys;
        uint32_t *set_of;               /* [n_sample_labels] of those that samples have */
        uint32_t *sample_of;            /* [n_sets] a label */
        uint32_t n_sets;
        uint32_t left_out;              /* keys that the page has not */
};

struct ls_page_cell {
        uint32_t bucket, stack, context;
        uint64_t ticks;
};

struct ls_page_cells {                  /* cells.c */
        struct ls_page_cell *cells;     /* by bucket, stack, context; each once */
        size_t n_cells, capacity;
        struct ls_page_context *contexts;
        uint32_t n_contexts;
        uint64_t first_ns, bucket_ns;   /* start of bucket 0 after the start of the recording;
                                         * length of each */
        uint32_t n_buckets;
        uint64_t *samples;              /* by bucket */
        double *squares;                /* by bucket: sum of the squared weights of samples */
        struct ls_grouping *zones, *threads;
        struct ls_page_labels labels;
        uint64_t start_ns;              /* of the recording: CLOCK_MONOTONIC */
        struct ls_page_context_entry *hash;
};

/* With one_bucket set all ticks are in it. Returns 0 or -errno. */
int ls_page_cells_init(struct ls_page_cells *c, const struct ls_report *r, int one_bucket);
void ls_page_cells_done(struct ls_page_cells *c);

struct ls_page_ids {                    /* ids of a profile to those of the page */
        uint32_t *of;                   /* [n_old] UINT32_MAX = not in the page */
        uint32_t n_old;
        uint32_t first, n;              /* the page's own for this profile: first .. n - 1, in the
                                         * old order */
};

struct ls_page_tables {                 /* tables.c: what the cells of one recording refer to */
        const struct ls_report *r;
        const struct ls_page_cells *c;
        struct ls_page_ids stacks, locations, functions, sources, modules, zones, threads;
        uint32_t first_context, first_set;
        struct ls_grouping *module;
};

/* before: the tables of the other recording, whose numbers come first, and its functions that are
 * the same (see struct ls_page); NULL = there is none. */
int ls_page_tables_init(struct ls_page_tables *t, const struct ls_report *r,
                        const struct ls_page_cells *c, const struct ls_page_tables *before,
                        const uint32_t *same_function);
void ls_page_tables_done(struct ls_page_tables *t);
/* Of both recordings, or of one. */
int ls_page_tables_json(const struct ls_page_tables *t, unsigned n_tables, struct ls_js *g);

/* ticks: [n_sample_labels] of the samples that are shown. Returns 0 or -errno. */
int ls_page_labels_init(struct ls_page_labels *l, const struct ls_report *r, const uint64_t *ticks);
void ls_page_labels_done(struct ls_page_labels *l);
/* The elements of an array: its sets. */
void ls_page_labels_json(const struct ls_page_labels *l, struct ls_js *g);

/* source.c: member "sources": labels, and the text around the lines that are on a stack. */
int ls_page_sources_json(const struct ls_page_tables *t, unsigned n_tables, struct ls_js *g);

/* facts.c: member "facts": what is known of the recording, in words. */
void ls_page_facts_json(const struct ls_page *page, const struct ls_page_cells *c, struct ls_js *g);
/* Member "marks": what the program marked, of the threads and the time that are shown. */
void ls_page_marks_json(const struct ls_page_tables *t, struct ls_js *g);

/* jit.c: member "jit", of the first recording; null when the page's event has no time. Returns 0 or
 * -errno, as the next. */
int ls_page_jit_json(const struct ls_page_tables *t, struct ls_js *g);
/* heap.c: member "heap": the VMs' heaps over time and their collectors' phases; null when nothing
 * is known of them. */
int ls_page_heap_json(const struct ls_page_tables *t, struct ls_js *g);

/* page.c: a column of varints; frees the buffer. */
int ls_page_column(struct ls_js *g, const char *key, struct ls_buf *b);

/* Made at build time from the files of report/page/: the page before and after its data. */
extern const char ls_page_head[], ls_page_tail[];
extern const unsigned ls_page_head_len, ls_page_tail_len;

#endif
