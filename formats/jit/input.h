/* A JITTRACE record, checked before anything in it is used. */
#ifndef LS_FORMATS_JIT_INPUT_H
#define LS_FORMATS_JIT_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "formats/wire/ring.h"

#define JIT_MAX_REFS 0x8000u            /* instructions of a trace, whatever its record says */

/* The parts of a JITTRACE record; they point into the blob. */
struct ls_jit_input {
        const struct ls_rec_jittrace *head;
        const uint32_t *functions;
        const struct ls_jit_event *events;
        const struct ls_jit_snapshot *snapshots;
        const uint64_t *ir;
        const uint8_t *code;
};

/* Checks a record's body of len bytes, aligned to 8. 0, or -EINVAL: it is not what the head
 * says. */
int ls_jit_input_parse(const void *blob, size_t len, struct ls_jit_input *ret);

#endif
