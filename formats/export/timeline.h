/* The samples that pass the filters, as the exporters of samples in time order want them: their
 * threads, their call tree, what their frames are, and the samples one after the other.
 *
 * A sample stands for the time before it: its ticks times the interval. Laid on the time line of
 * its thread such pieces would overlap, or leave slits, by the jitter of the timer. So each begins
 * where the one before ended, unless more than an interval lies between them: then the thread did
 * not run, and there is a gap. Lengths are exact. */
#ifndef LS_FORMATS_EXPORT_TIMELINE_H
#define LS_FORMATS_EXPORT_TIMELINE_H

#include "formats/export/calltree.h"
#include "formats/export/export.h"

struct ls_timeline_thread {
        uint64_t ticks, rows;           /* rows 0 = no samples */
        uint64_t from_ns, to_ns;        /* CLOCK_MONOTONIC */
        uint64_t at_ns;                 /* private: end of the sample before */
};

struct ls_timeline_frame {
        uint32_t number;                /* from 1, of those that are in stacks; 0 = is in none */
        uint32_t location;              /* one of those that are shown as this frame */
        uint32_t line;                  /* first line of its function, or the frame's own; 0 =
                                         * none */
};

struct ls_timeline_label {              /* equal ones may stand in the trace several times, below
                                         * others */
        uint32_t same;                  /* the first of this key and value */
        uint32_t key;                   /* the first of this key */
};

struct ls_timeline {
        const struct ls_export *in;
        const struct ls_profile *p;
        struct ls_calltree *tree;       /* labels are frames */
        struct ls_timeline_thread *threads;     /* [n_threads] of the profile */
        struct ls_timeline_frame *frames;       /* [n_frames] of the export */
        uint32_t *frame_of_number;      /* [n_frames] the frame of number i + 1 */
        uint8_t *zone_level;            /* [n_zones] from 1, LS_TIMELINE_ZONES + 1 = too deep */
        struct ls_timeline_label *labels;       /* [n_sample_labels] */
        uint32_t n_threads, n_frames;   /* that have samples, that are in stacks */
        uint64_t ticks;                 /* of all */
        uint64_t zero_ns;               /* start of the recording, or of the first sample:
                                         * CLOCK_MONOTONIC */
        uint64_t zero_realtime_ns;      /* the same instant, 0 = not known */
        uint64_t to_ns;                 /* end of the last sample */
};

struct ls_timeline_sample {
        uint32_t thread, stack, zone, label, ticks;
        uint32_t node;                  /* of the tree, never 0 */
        uint8_t vmstate;
        uint8_t first;                  /* of its thread */
        uint64_t gap_ns;                /* time before it in which the thread did not run */
        uint64_t from_ns, to_ns;
};

/* Non-zero stops and is returned. */
typedef int (*ls_timeline_fn)(void *ctx, const struct ls_timeline_sample *s);

/* Reads all samples once. 0 or -errno. */
int ls_timeline_new(const struct ls_export *in, struct ls_timeline **ret);
void ls_timeline_free(struct ls_timeline *t);           /* takes NULL */
/* Streams the samples; those of a thread come in time order. Can be called again. */
int ls_timeline_each(struct ls_timeline *t, ls_timeline_fn fn, void *ctx);

uint64_t ls_timeline_ns(const struct ls_timeline *t, uint64_t ticks);
/* The nodes of a stack, root first, into path (room for the tree's depth). Returns their number. */
uint32_t ls_timeline_path(const struct ls_timeline *t, uint32_t node, uint32_t *path);
uint32_t ls_timeline_depth(const struct ls_timeline *t);        /* of the deepest stack */
/* What a frame comes from: the path of its source, or of its module; empty = neither. */
struct ls_str ls_timeline_file(const struct ls_timeline *t, uint32_t frame);
/* "lua", "c", "builtin", "native" or "other". */
const char *ls_timeline_kind(const struct ls_timeline *t, uint32_t frame);
/* Visible name of a thread: its own, else its process's, else "thread"; to be freed, NULL = no
 * memory. */
char *ls_timeline_thread_name(const struct ls_timeline *t, uint32_t thread);
/* Zones that end and begin when a thread goes from one zone to another: fn for each, innermost
 * first when they end, outermost first when they begin. level: from 0. Zones deeper than
 * LS_TIMELINE_ZONES are left out. */
#define LS_TIMELINE_ZONES 64
typedef int (*ls_timeline_zone_fn)(void *ctx, uint32_t zone, unsigned level, int begins);
int ls_timeline_zones(const struct ls_timeline *t, uint32_t from, uint32_t to,
                      ls_timeline_zone_fn fn, void *ctx);
/* The same for the labels of a thread, each by the first that is equal; one value a key, at most
 * LS_TIMELINE_LABELS. */
#define LS_TIMELINE_LABELS 64
typedef int (*ls_timeline_label_fn)(void *ctx, uint32_t label, int begins);
int ls_timeline_labels(const struct ls_timeline *t, uint32_t from, uint32_t to,
                       ls_timeline_label_fn fn, void *ctx);
/* Marks of threads that have samples, in the time that is shown. */
typedef int (*ls_timeline_mark_fn)(void *ctx, uint32_t mark);
int ls_timeline_marks(const struct ls_timeline *t, ls_timeline_mark_fn fn, void *ctx);
/* Phases of the VMs' collectors, as ticks read them, of processes that have samples and in the
 * time that is shown; not what is between cycles. counter: of the profile's, whose phases they are;
 * thread: the first of the process that has samples. */
typedef int (*ls_timeline_phase_fn)(void *ctx, uint32_t counter, uint32_t thread, unsigned phase,
                                    uint64_t from_ns, uint64_t to_ns);
int ls_timeline_phases(const struct ls_timeline *t, ls_timeline_phase_fn fn, void *ctx);
const char *ls_timeline_phase_name(unsigned phase);     /* "collector: mark" */
/* Regions of threads that have samples, cut to the time of the samples; in the order in which they
 * end. */
/* region: where it begins, of the profile's regions. */
typedef int (*ls_timeline_region_fn)(void *ctx, uint32_t region, uint64_t from_ns, uint64_t to_ns);
int ls_timeline_regions(const struct ls_timeline *t, ls_timeline_region_fn fn, void *ctx);
uint32_t ls_timeline_pid(const struct ls_timeline *t, uint32_t thread);
/* The first thread of a process that has samples, as the how-manieth of those that have, from 0; -1
 * = none has. */
int64_t ls_timeline_thread_of(const struct ls_timeline *t, uint32_t process);

#endif
