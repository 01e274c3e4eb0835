/* Where C functions of the recorded program are: addresses to files, and at the end to names. Called by translate.c. */
#ifndef LS_RECORD_MAPPINGS_H
#define LS_RECORD_MAPPINGS_H

#include <stddef.h>
#include <stdint.h>

#include "formats/trace_writer.h"
#include "formats/wire/ring.h"

struct ls_map_range {
        uint64_t start, end, file_offset;
        char *path;
        uint8_t build_id[32];
        uint8_t build_id_len;
        uint32_t trace_id;              /* 0 = not yet in the trace */
};

struct ls_map_function {                /* a C function that may still want a name */
        uint32_t trace_id;              /* of the function */
        uint32_t range;                 /* index */
        uint64_t offset;                /* in the file */
        uint8_t named;                  /* the program has a good name for it */
};

struct ls_mappings {
        struct ls_map_range *ranges;    /* in order of arrival: a later one hides an earlier one */
        uint32_t n_ranges, cap_ranges;
        struct ls_map_function *functions;
        uint32_t n_functions, cap_functions;
        struct ls_trace_writer *writer;
        int pid;                        /* whose /proc/PID/maps helps out; 0 = none */
        uint64_t maps_read_ns;
};

void ls_mappings_init(struct ls_mappings *m, struct ls_trace_writer *w, int pid);
void ls_mappings_done(struct ls_mappings *m);

/* A MAPPING record, lengths checked by the caller. Returns 0, -EINVAL or -ENOMEM. */
int ls_mappings_add(struct ls_mappings *m, const struct ls_rec_mapping *rec, const char *path, const uint8_t *build_id);

/* Fills the mapping and offset of the C function at addr, as far as they are known, interns it, and remembers it for
 * ls_mappings_name_functions. Returns its id in the trace; *ret_slot is for ls_mappings_named (UINT32_MAX = none). */
uint32_t ls_mappings_function(struct ls_mappings *m, uint64_t addr, uint32_t *ret_slot);
void ls_mappings_named(struct ls_mappings *m, uint32_t slot);

/* Looks up symbols of those without a name and puts them into the trace. Reads the files; when the recording ends. */
void ls_mappings_name_functions(struct ls_mappings *m);

#endif
