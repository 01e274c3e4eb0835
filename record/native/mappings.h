/* Where functions of the recorded program are: addresses to files, and at the end to names. Called
 * by translate/translate.c and native.c. */
#ifndef LS_RECORD_NATIVE_MAPPINGS_H
#define LS_RECORD_NATIVE_MAPPINGS_H

#include <stddef.h>
#include <stdint.h>

#include "formats/trace/writer.h"
#include "formats/wire/ring.h"
#include "record/process/ids.h"

struct ls_map_range {
        uint64_t start, end, file_offset;
        char *path;
        uint8_t build_id[32];
        uint8_t build_id_len;
        uint8_t gone;                   /* no longer in the process */
        uint32_t trace_id;              /* 0 = not yet in the trace */
        uint32_t module;                /* of native.c, 0 = none yet */
};

struct ls_map_function {                /* a C or native function that may still want a name */
        uint32_t trace_id;              /* of the function */
        uint32_t range;                 /* index */
        uint64_t offset;                /* in the file */
        uint8_t named;                  /* the program has a good name for it */
};

/* Files that are in the trace, of all processes: what several have mapped, wherever, is one, and so
 * are its functions. */
struct ls_map_shared {
        struct ls_map_file {
                char *path;
                uint64_t file_offset;
                uint8_t build_id[32];
                uint8_t build_id_len;
                uint32_t trace_id;
        } *files;
        uint32_t n_files, cap_files;
};

struct ls_mappings {
        struct ls_map_range *ranges;    /* in order of arrival: a later one hides an earlier one */
        uint32_t n_ranges, cap_ranges;
        struct ls_map_function *functions;
        uint32_t n_functions, cap_functions;
        uint8_t *native_known;          /* by function id of the trace: 1 = is in functions */
        uint32_t n_native_known;
        struct ls_map_memory { uint64_t start, end; } *memory;  /* of no file, as of the last look;
                                                                 * sorted */
        uint32_t n_memory, cap_memory;
        struct ls_trace_writer *writer;
        struct ls_worker *worker;       /* reads the files */
        struct ls_ids *ids;             /* the process's; the caller's */
        struct ls_map_shared *shared;   /* NULL = there is one process */
        int pid;                        /* whose /proc/PID/maps helps out; 0 = none */
        const char *maps;               /* this file in its place; NULL = none */
        uint64_t maps_read_ns;
        /* Told of each change: what lies from start to end is something else now, or nothing. May
         * be NULL. */
        void (*changed)(void *ctx, uint64_t start, uint64_t end);
        void *changed_ctx;
};

/* worker: may be replaced by another one at any time. */
void ls_mappings_init(struct ls_mappings *m, struct ls_trace_writer *w, struct ls_worker *worker,
                      struct ls_ids *ids, int pid);
void ls_mappings_done(struct ls_mappings *m);
void ls_map_shared_done(struct ls_map_shared *s);

/* A MAPPING record, lengths checked by the caller. Returns 0, -EINVAL or -ENOMEM. */
int ls_mappings_add(struct ls_mappings *m, const struct ls_rec_mapping *rec, const char *path,
                    const uint8_t *build_id);

/* The range that holds addr: its index, -ENOEXEC = memory of no file, or -ENOENT. An unknown
 * address makes it look at what the process has mapped now, at most once a second. The index stays
 * valid; a pointer to the range does not. */
int ls_mappings_find(struct ls_mappings *m, uint64_t addr);

/* Interns the native function that starts at this offset of a range's file, and remembers it for
 * ls_mappings_name_functions. Returns its id in the trace. */
uint32_t ls_mappings_native(struct ls_mappings *m, uint32_t range, uint64_t file_offset);

/* Fills the mapping and offset of the C function at addr, as far as they are known, interns it, and
 * remembers it for ls_mappings_name_functions. Returns its id in the trace; *ret_slot is for
 * ls_mappings_named (UINT32_MAX = none). */
uint32_t ls_mappings_function(struct ls_mappings *m, uint64_t addr, uint32_t *ret_slot);
void ls_mappings_named(struct ls_mappings *m, uint32_t slot);

/* Looks up symbols of those without a name and puts them into the trace. Reads the files; when the
 * recording ends. */
void ls_mappings_name_functions(struct ls_mappings *m);

#endif
