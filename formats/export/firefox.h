/* The inside of exporter "firefox": firefox.c reads the samples and writes threads, firefox_meta.c
 * writes meta, firefox_tables.c numbers and writes the tables that threads share. */
#ifndef LS_FORMATS_EXPORT_FIREFOX_H
#define LS_FORMATS_EXPORT_FIREFOX_H

#include "formats/json.h"
#include "formats/export/spool.h"
#include "formats/export/timeline.h"

/* Categories: one for each VM state, which the frame that ran has, and others for its callers. The
 * first is the grey one that the format asks for. */
enum {
        LS_FX_OTHER,
        LS_FX_VMSTATES,
        LS_FX_LUA = LS_FX_VMSTATES + LS_NVMSTATES,
        LS_FX_NATIVE,
        LS_FX_CATEGORIES
};

#define LS_FX_CALLER 0xffu              /* in place of a VM state: the frame called another */

enum { LS_FX_MARKER_ZONE, LS_FX_MARKER_REGION, LS_FX_MARKER_LABEL, LS_FX_MARKER_MARK,
       LS_FX_MARKER_PHASE };

struct ls_fx_row { uint32_t id; uint8_t vmstate; };     /* of the frame table, a location; of the
                                                         * stack table, a stack */

struct ls_fx_numbers {                  /* rows of a table, by id: first that of a caller, then one
                                         * for each VM state */
        uint8_t *caller, *vmstates;     /* [n] whether there is such a row; bits */
        uint32_t *first;                /* [n] number of its first row */
        struct ls_fx_row *rows;
        uint32_t n_rows;
};

struct ls_fx_open {                     /* zones and labels of a thread that have not ended */
        uint32_t zone, label;           /* where it was last */
        uint64_t zone_since[LS_TIMELINE_ZONES];         /* start of the zone on each level */
        struct { uint32_t label; uint64_t since_ns; } labels[LS_TIMELINE_LABELS];
        unsigned n_labels;
};

struct ls_fx {
        struct ls_timeline *t;
        const struct ls_profile *p;
        struct ls_js j;
        struct ls_spool *samples, *markers;     /* by thread */
        struct ls_fx_numbers stacks, frames;
        /* Sources and modules of the functions that are there; numbers from 1. */
        uint32_t *source_number, *lib_number, *sources, *libs;
        uint32_t n_sources, n_libs;
        struct ls_fx_open **open;       /* [n_threads] NULL = none */
        uint32_t thread;                /* whose zone or label changes, */
        uint64_t time_ns;               /* and when */
        int has_phases;                 /* a marker is one of a collector */
        uint8_t *used_labels;           /* [n_sample_labels] 1 = a marker has it; NULL = none has */
        int error;
};

/* 0 or -errno. The second when all samples were seen: bits in stacks.vmstates say what there is. */
int ls_fx_number_files(struct ls_fx *x);
int ls_fx_number_stacks(struct ls_fx *x);
uint32_t ls_fx_row(const struct ls_fx_numbers *n, uint32_t id, uint8_t vmstate);
void ls_fx_put_meta(struct ls_fx *x);
const char *ls_fx_marker_name(unsigned kind);
/* All times are counted from the start of the recording, in ms. */
void ls_fx_put_ms(struct ls_fx *x, uint64_t ns);
void ls_fx_put_libs(struct ls_fx *x);
void ls_fx_put_shared(struct ls_fx *x);
/* firefox_counters.c */
void ls_fx_put_counters(struct ls_fx *x);
/* Indexes of the string table. */
uint32_t ls_fx_zone_string(const struct ls_fx *x, uint32_t zone);
uint32_t ls_fx_region_string(const struct ls_fx *x, uint32_t region);
uint32_t ls_fx_mark_string(const struct ls_fx *x, uint32_t mark);
uint32_t ls_fx_phase_string(const struct ls_fx *x, unsigned phase);
uint32_t ls_fx_label_string(const struct ls_fx *x,
                            uint32_t label); /* of its key; that of its value is the next */
void ls_fx_free_numbers(struct ls_fx *x);

#endif
