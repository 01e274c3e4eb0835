/* The resolved profile: what a trace says, checked and complete, with every id valid. Views and
 * exporters read only this. Built by formats/trace/reader.c from a file that may be growing, cut,
 * damaged or hostile.
 *
 * Every id in a sample block and in these tables indexes its array safely: an id whose definition
 * is lost was replaced by the reserved entry 0 of that table where that means "none", and for
 * stacks by lost_stack. */
#ifndef LS_FORMATS_PROFILE_H
#define LS_FORMATS_PROFILE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "formats/dims.h"
#include "formats/info.h"
#include "formats/process_totals.h"
#include "formats/wire/kinds.h"

struct ls_str { const char *s; uint32_t len; };         /* also zero-terminated after len; never
                                                         * NULL */

struct ls_source {
        struct ls_str name;             /* chunk name as Lua has it */
        struct ls_str path;             /* absolute path, empty = not a file */
        uint64_t size, text_hash;       /* of the file or text; 0 = not known */
        struct ls_str text;             /* from the trace; empty = not in the trace */
};

struct ls_function {
        uint8_t kind, flags;            /* enum ls_function_kind, LS_FUNCF_* */
        uint8_t name_rank;              /* enum ls_name_rank */
        uint32_t source, mapping;       /* 0 = none */
        uint32_t first_line, last_line;
        uint64_t hash, offset;
        struct ls_str name;             /* best name, empty = anonymous */
};

struct ls_location { uint32_t function, line; };        /* line 0 = none */
struct ls_stack { uint32_t parent, location, depth; };  /* parent < own id; 0 = root's parent; depth
                                                         * from 1 */
struct ls_zone { uint32_t parent; struct ls_str name; };
struct ls_sample_label {
        uint32_t parent;
        struct ls_str key, value;
}; /* parent < own id: holds too, 0 = none */
struct ls_process { uint32_t pid; struct ls_str name; struct ls_process_totals totals; };
struct ls_thread { uint32_t process, tid; struct ls_str name; uint64_t cpu_ns; };
struct ls_vm { uint32_t process, number; struct ls_str runtime; };
struct ls_coroutine { uint32_t vm, function, generation; };
struct ls_mapping { struct ls_str path; uint64_t start, end, file_offset; struct ls_str build_id; };
struct ls_jittrace {                    /* a trace of the JIT compiler */
        uint32_t vm, number;            /* its number in the VM; 0 = nothing is known but that
                                         * samples are in it */
        uint32_t root;                  /* number of its root trace, 0 = is a root */
        uint32_t parent, exit;          /* trace that it leaves (of jittraces), 0 = none or not
                                         * known; by which exit */
        uint32_t start;                 /* location, 0 = not known */
        uint32_t link;                  /* number of the trace that it goes on to, 0 = none */
        struct ls_str link_kind;        /* "loop", "return", ... */
        uint64_t address, size;         /* of its machine code */
        uint32_t function;              /* that stands for it, of kind TRACE */
        uint8_t has_map;                /* samples are in it, and their lines are known; */
        unsigned doubt;                 /* but approximately: enum ls_jit_doubt of jit/map.h */
        const void *map;                /* what its map is made from: a JITTRACE record of
                                         * wire/ring.h; NULL = none */
        uint32_t map_len;
        struct ls_str irnames;          /* names of LuaJIT's instructions in it, 6 bytes each; empty
                                         * = not known */
};
struct ls_attempt {                     /* of the JIT compiler: those that are alike */
        uint32_t vm, start, stop;       /* VM; locations where they began and ended, 0 = not
                                         * known */
        uint32_t first_line, last_line; /* of the loop or function that they began at; 0 = at
                                         * neither */
        uint32_t flags;                 /* LS_ATTEMPT_* */
        uint32_t about;                 /* function that the reason is about, 0 = none */
        struct ls_str reason;           /* why they were given up, in LuaJIT's words; empty = they
                                         * were not */
        uint64_t count, ns, bytecodes;
};
struct ls_event {
        uint32_t id;
        struct ls_str name, unit;
        int sampled;
        uint64_t period_ns;
        uint64_t rows, sum;
};
struct ls_clocks { uint64_t monotonic_ns, realtime_ns, boottime_ns; };
struct ls_region { uint64_t time_ns, cpu_ns; uint32_t thread; int begin; struct ls_str name; };
struct ls_mark {
        uint64_t time_ns;
        uint32_t thread;
        struct ls_str name;
}; /* an instant that the program marked */
struct ls_count { uint64_t time_ns; double value; uint32_t row; };      /* from then on; finite */
struct ls_counter_series {              /* in order of time */
        uint32_t process, n;
        uint32_t what, vm;              /* enum ls_counter_what; 0 = of no VM */
        struct ls_str name;
        const struct ls_count *counts;
};
struct ls_info { struct ls_str key; int is_u64; uint64_t u64; struct ls_str str; };

struct ls_damage {                      /* a chunk that could not be read */
        uint64_t chunk, offset, bytes;  /* its number, where it starts, how long it is (to the next
                                         * good one) */
        const char *why;                /* "checksum does not match", "cut short", ... */
        uint64_t ticks;                 /* weight of its samples as the index says, 0 = not known */
};

/* table(T, n): array with count; entry 0 is always there and means "none". */
#define LS_TABLE(type, name) struct type *name; uint32_t n_##name

struct ls_profile {
        LS_TABLE(ls_source, sources);
        LS_TABLE(ls_function, functions);
        LS_TABLE(ls_location, locations);
        LS_TABLE(ls_stack, stacks);
        LS_TABLE(ls_zone, zones);
        LS_TABLE(ls_sample_label, sample_labels);
        LS_TABLE(ls_process, processes);
        LS_TABLE(ls_thread, threads);
        LS_TABLE(ls_vm, vms);
        LS_TABLE(ls_coroutine, coroutines);
        LS_TABLE(ls_mapping, mappings);
        LS_TABLE(ls_jittrace, jittraces);
        LS_TABLE(ls_counter_series, counters);
        struct ls_attempt *attempts; uint32_t n_attempts;       /* from 0, no "none" entry */
        struct ls_event *events; uint32_t n_events;     /* these from 0, no "none" entry */
        struct ls_clocks *clocks; uint32_t n_clocks;
        struct ls_region *regions; uint32_t n_regions;
        struct ls_mark *marks; uint32_t n_marks;
        struct ls_count *counts;        /* of all counters */
        struct ls_info *infos; uint32_t n_infos;        /* the last value of each key */
        struct ls_str *notices; uint32_t n_notices;
        struct ls_damage *damages; uint32_t n_damages;
        uint32_t lost_stack;            /* stack of one pseudo frame "[definition lost]" */
        uint64_t lost_ticks;            /* ticks on lost_stack; known after ls_profile_samples */
        /* Ticks in machine code of the JIT compiler, cpu or not; known after ls_profile_samples. */
        uint64_t jit_ticks;
        uint64_t jit_approximate_ticks; /* of these, with lines that are only approximate */
        uint64_t jit_unknown_ticks;     /* of these, in the root trace's function at a line that is
                                         * not known */
        uint64_t file_size;
        uint32_t n_chunks;
        int complete;                   /* an index ended the file; 0 = still growing, or cut */
        uint64_t interval_ns;
        uint64_t recorded_ticks;        /* sum of the weights of all cpu rows that can be read; of
                                         * wall, when there is no cpu */
        uint64_t recorded_samples;      /* of these, rows without LS_SAMPLE_CONT */
        void *priv;                     /* the reader's */
};

/* A run of sample rows in columns. Columns live until the callback returns. */
struct ls_sample_block {
        uint32_t n;
        uint64_t chunk;                 /* number of its chunk */
        const uint32_t *stack;
        const uint32_t *weight;
        const uint64_t *time_ns;        /* NULL unless asked for: LS_COL_TIME */
        const uint8_t *flags, *event;
#define LS_DIM(NAME, name, bits, KIND, key) const LS_DIM_TYPE_##bits *name;
#include "formats/dims.def"
#undef LS_DIM
        const uint32_t *trace;          /* of jittraces, 0 = not in compiled code; NULL unless asked
                                         * for: LS_COL_TRACE, and when the profile has no traces */
        /* 1 = the whole column holds one value, as most do: a loop may then skip it */
        uint8_t same_flags, same_event;
#define LS_DIM(NAME, name, bits, KIND, key) uint8_t same_##name;
#include "formats/dims.def"
#undef LS_DIM
};
#define LS_COL_TIME 1u
#define LS_COL_TRACE 2u
#define LS_COL_PLACE 4u /* stacks as the file has them: places in machine code are not resolved */
typedef int (*ls_sample_fn)(
        void *ctx, const struct ls_sample_block *block); /* non-zero stops and is returned */

/* The value of an INFO key, or def / "" when it is not there. */
uint64_t ls_profile_u64(const struct ls_profile *p, enum ls_info_key key, uint64_t def);
struct ls_str ls_profile_str(const struct ls_profile *p, enum ls_info_key key);
/* The same for a key that is in another table: losses.def. */
uint64_t ls_profile_u64_of(const struct ls_profile *p, const char *key, uint64_t def);

/* The bits of a counter's value, as they are in the file. */
static inline uint64_t ls_count_bits(double value)
{
        uint64_t bits;

        memcpy(&bits, &value, sizeof(bits));
        return bits;
}

#endif
