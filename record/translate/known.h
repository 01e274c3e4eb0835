/* The writer's ids of threads, VMs and coroutines: several rings name the same one. Called by
 * translate.c and sample.c. */
#ifndef LS_RECORD_TRANSLATE_KNOWN_H
#define LS_RECORD_TRANSLATE_KNOWN_H

#include "record/translate/state.h"

/* Thread of a ring in the trace. It is put there at its first use: many a thread first gets its
 * name. */
uint32_t ls_translate_thread(struct ls_translate *t, unsigned ring);
/* The thread that r has, with what is known of it now. */
uint32_t ls_translate_name(struct ls_translate *t, struct ls_translate_ring *r);

/* The writer's id of a VM, which is made if need be; 0 = none. */
uint32_t ls_translate_vm(struct ls_translate *t, uint32_t id);
/* The agent's ring of the thread that ran this VM last: its suspended coroutines are that
 * thread's. */
unsigned ls_translate_vm_ring(const struct ls_translate *t, uint32_t vm_id);
/* The writer's id of a coroutine, whose body is the writer's function. One that the other side
 * has described already is the same. Returns 0 or -errno. */
int ls_translate_coroutine(struct ls_translate *t, unsigned ring,
                           const struct ls_rec_coroutine *rec, uint32_t function, uint32_t *ret);

#endif
