/* Traces of the JIT compiler, kept until a sample runs in one: only those go into the trace file,
 * with the traces that they left from. Called by translate.c. */
#ifndef LS_RECORD_TRANSLATE_JIT_KEEP_H
#define LS_RECORD_TRANSLATE_JIT_KEEP_H

#include <stddef.h>
#include <stdint.h>

#include "formats/trace/writer.h"
#include "formats/wire/ring.h"

#define LS_JIT_KEPT_MAX (64u << 20)     /* bytes of definitions that no sample has asked for */

struct ls_jit_layer;

struct ls_jit_keep {                    /* of one process */
        struct ls_trace_writer *writer;
        struct ls_jit_layer *top;
        uint64_t missing;               /* sampled traces that had been given up */
};

/* ordinal: of the process, 0, 1, ...; tells its traces from those of others that have the same ids.
 * Returns 0 or -ENOMEM. */
int ls_jit_keep_init(struct ls_jit_keep *k, struct ls_trace_writer *w, uint32_t ordinal);
/* Takes half-made ones, and those whose traces others have inherited. */
void ls_jit_keep_done(struct ls_jit_keep *k);

/* Bytes of a JITTRACE record as its own counts say, 0 = they are more than len, or more than a
 * trace can have. */
uint32_t ls_jit_record_size(const struct ls_rec_jittrace *rec, uint32_t len);

/* A JITTRACE record of ls_jit_record_size bytes, with the writer's ids of functions in place of the
 * ring's; vm: the writer's id. Returns 0 or -ENOMEM. */
int ls_jit_keep_add(struct ls_jit_keep *k, const struct ls_rec_jittrace *rec, uint32_t size,
                    uint32_t vm);
/* To k, which is new, what from has of the traces up to jit_id last: a forked child has the same
 * machine code. Both look at the same ones: it takes no time, however many there are. */
void ls_jit_keep_inherit(struct ls_jit_keep *k, const struct ls_jit_keep *from, uint32_t last);
/* An IRNAMES record. */
int ls_jit_keep_names(struct ls_jit_keep *k, uint32_t vm, const char *names, uint32_t len);

/* Bytes of definitions that no sample of the process has asked for; those that it inherited are not
 * among them. */
size_t ls_jit_keep_bytes(const struct ls_jit_keep *k);

/* The writer's id of the function that stands for the trace jit_id: from now on it is in the file.
 * 0 = no memory. *offset, a place in its code: becomes the first one that shows the same frames. */
uint32_t ls_jit_keep_function(struct ls_jit_keep *k, uint32_t jit_id, uint32_t *offset);

#endif
