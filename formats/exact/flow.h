/* How often each bytecode of a process was executed, from the memory in which the agent counted
 * (formats/wire/exact.h). Read by record/translate/exact.c and tests/exact/truth.c. What is in the
 * memory is not trusted: it is copied, and may change meanwhile. */
#ifndef LS_FORMATS_EXACT_FLOW_H
#define LS_FORMATS_EXACT_FLOW_H

#include <stddef.h>
#include <stdint.h>

#include "formats/wire/exact.h"

struct ls_flow_proto {
        const struct ls_exact_proto *rec;       /* in our copy; NULL = there is none of this id */
        const char *name;                       /* rec->name_len bytes */
        const char *function;                   /* rec->function_len bytes */
        const uint32_t *lines, *code;           /* rec->n each; lines NULL = stripped */
        uint64_t *counts;                       /* rec->n */
        int at_least;                           /* 1 = some of what it did in compiled code could
                                                 * not be counted */
};

struct ls_flow_calls {
        uint32_t callee, caller, pos;   /* prototypes' ids, and the instruction of the caller's */
        uint64_t times;
};

struct ls_flow {
        struct ls_flow_proto *protos;           /* by id, from 1 */
        size_t nprotos;
        struct ls_flow_calls *calls;            /* by callee, caller and instruction, each once. A
                                                 * function's calls that are not here came from
                                                 * what is no Lua function: C, or a resume */
        size_t ncalls;
        const struct ls_exact_node **nodes; /* by id, from 1, in our copy; NULL = there is none */
        size_t nnodes;
        struct ls_exact_clock {
                uint64_t begin, begin_ns, in_callee, in_caller; /* as in struct ls_exact_head */
        } clock;
        size_t ntraces;
        uint64_t compiled;                      /* of the instructions: done by compiled code */
        uint64_t unbalanced;                    /* loops of traces that are not left as often as
                                                 * they are entered */
        uint64_t damaged;                       /* records that say what cannot be */
        uint64_t outside;                       /* instructions at addresses that have no cell */
        uint64_t lost;                          /* traces and functions that are not in the log */
        char *log;                              /* our copy */
};

/* fd: a file of LS_EXACT_SIZE bytes, of which only what is used is read. Returns 0, -ENODATA:
 * nothing was counted, -ENOMEM, or -EBADMSG: it is none. Freed with ls_flow_free. */
int ls_flow_read(int fd, struct ls_flow *ret);
void ls_flow_free(struct ls_flow *flow);

#endif
