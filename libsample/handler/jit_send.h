/* The definition of a trace as a record in a ring. Normal context, or the handler where nobody
 * tells of traces. */
#ifndef LS_LIBSAMPLE_HANDLER_JIT_SEND_H
#define LS_LIBSAMPLE_HANDLER_JIT_SEND_H

#include "libsample/handler/jit_traces.h"
#include "libsample/thread.h"

struct ls_jit_exit {                    /* what a snapshot says of an exit */
        const char *pc;                 /* bytecode that it goes on with */
        uint16_t ref, mcofs, nframes;   /* IR reference; offset in the code; inlined frames that it
                                         * restores */
};
/* The snapshot of this number of a trace (a GCtrace). */
struct ls_jit_exit ls_jit_exit_at(const char *trace, uint32_t number);
/* Position of a bytecode in its prototype; UINT32_MAX = it is not in this one. */
uint32_t ls_jit_pos(const char *pt, const char *pc);

/* Sends the definition of a trace, whose recorded bytecodes are in jit->events. Returns its id, 0
 * = it could not be sent. */
uint32_t ls_jit_send(struct ls_jit *jit, struct ls_thread *t, const char *trace);

/* Id of what a key stands for (struct ls_jit_raw), 0 = none, or its definition did not fit. Of a
 * builtin or function of C nothing is read but the key; a prototype must still be there. */
uint32_t ls_jit_function(struct ls_thread *t, uint64_t key, uint64_t now_ns);
/* The key of a function that is being recorded (pt: its prototype, where it is Lua's): it stays
 * valid while the function object may be collected. */
uint64_t ls_jit_key(const char *fn, const char *pt);
/* Line of a bytecode, 0 = not known. */
uint32_t ls_jit_line(const char *pt, uint32_t pos);

/* Greatest id of a trace so far. */
uint32_t ls_jit_last_id(void);

#endif
