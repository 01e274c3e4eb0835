/* What translate.c (definitions) and sample.c (samples and their stacks) share. */
#ifndef LS_RECORD_TRANSLATE_TRANSLATE_PRIVATE_H
#define LS_RECORD_TRANSLATE_TRANSLATE_PRIVATE_H

#include "record/translate/translate.h"

/* Takes a SAMPLE record, as all takers in translate.c do. Returns 0 or -errno: it makes no sense, or there is no memory. */
int ls_translate_sample(struct ls_translate *t, unsigned ring, const void *body, uint32_t len);

/* Writes the blocked time of the agent's ring that is not after time_ns. */
void ls_translate_wall_until(struct ls_translate *t, unsigned ring, uint64_t time_ns);

/* The agent's ring of the thread that ran this VM last: its suspended coroutines are that thread's. */
unsigned ls_translate_vm_ring(const struct ls_translate *t, uint32_t vm_id);

static inline int ls_translate_is_suspended_ring(const struct ls_translate *t, unsigned ring)
{
        return ring == 2 * t->cfg.memory->agent_rings;
}

/* The writer's id of a VM, which is made if need be; 0 = none. */
uint32_t ls_translate_vm(struct ls_translate *t, uint32_t id);

static inline uint32_t ls_translate_lookup(const uint32_t *table, uint32_t n, uint32_t id)
{
        return id < n ? table[id] : 0;
}

/* The writer's id of a function of a ring, 0 = not defined. */
static inline uint32_t ls_translate_function_id(const struct ls_translate_ring *r, uint32_t id)
{
        return id < r->n_functions ? r->functions[id].trace_id : 0;
}

#endif
