/* The writer's process: what it has. Used by main.c, ops.c and join.c. */
#ifndef LS_RECORD_WRITER_SERVE_H
#define LS_RECORD_WRITER_SERVE_H

#include "formats/trace/writer.h"
#include "record/native/mappings.h"
#include "record/writer/taken.h"

enum {
        LS_OUT_FD_SOCKET = 3,
        LS_OUT_FD_ASK,
        LS_OUT_FD_FIGURES,
        LS_OUT_FD_FULL
}; /* of a writer that begins */

#define LS_SERVE_QUIET 1 /* there is no answer: this is the copy, whose original answers */

struct ls_serve {
        struct ls_out_setup setup;
        struct ls_out_figures *figures;         /* shared with the recorder */
        int socket;
        int full_fd;                            /* readable: the rings of a target fill */
        uint64_t full_ns;                       /* CLOCK_MONOTONIC when we last knew */
        struct ls_workers *workers;
        struct ls_trace_writer *trace;          /* NULL = not open */
        struct ls_map_shared maps;              /* files that several targets have mapped */
        struct ls_taken *targets[LS_TARGETS_MAX];       /* by number, NULL = there is none */
        unsigned n_targets;                     /* numbers that have been used */
        uint32_t n_processes;                   /* that have a name in the trace */
        int settled;                            /* nothing is taken from rings now */
        struct ls_process_totals *pieces;       /* what the pieces have, by the process's id in the
                                                 * trace; NULL = there are none */
        int error;                              /* of the pieces, first -errno */
};

#endif
