/* Threads, VMs and coroutines of a process, which several rings name: see known.h. */
#include "record/translate/known.h"
#include "formats/wire/mix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/process/thread_ids.h"

uint32_t ls_translate_name(struct ls_translate *t, struct ls_translate_ring *r)
{
        if (!r->outer_tid && r->tid && t->cfg.other_namespace)
                r->outer_tid = (uint32_t)ls_thread_outer_id(t->cfg.pid, (pid_t)r->tid);
        return ls_trace_thread(t->cfg.writer, t->cfg.process,
                               r->outer_tid ? r->outer_tid
                               : r->tid     ? r->tid
                                            : (uint32_t)t->cfg.pid,
                               r->name);
}

uint32_t ls_translate_thread(struct ls_translate *t, unsigned ring)
{
        struct ls_translate_ring *r = &t->rings[ring];

        if (!r->thread) {
                const struct ls_ring *shared = ls_memory_ring(t->cfg.memory, ring);

                if (!r->tid) {          /* its THREAD record was lost */
                        r->tid = atomic_load_explicit(&shared->tid, memory_order_relaxed);
                        r->claim = atomic_load_explicit(&shared->claim, memory_order_relaxed);
                }
                r->thread = ls_translate_name(t, r);
        }
        return r->thread;
}

/* The record may still be on its way in another ring: all VMs of a process are of one runtime,
 * which the control page names. */
uint32_t ls_translate_vm(struct ls_translate *t, uint32_t id)
{
        const char *runtime = t->cfg.memory->shm->runtime;
        char name[sizeof(t->cfg.memory->shm->runtime)];

        if (!id || ls_ids_reserve(&t->ids, (void **)&t->vms, &t->n_vms, sizeof(*t->vms), id) < 0)
                return 0;
        if (!t->vms[id]) {
                memcpy(name, runtime, sizeof(name));
                name[sizeof(name) - 1] = 0;
                t->vms[id] = ls_trace_vm(t->cfg.writer, t->cfg.process, id,
                                         ls_trace_string(t->cfg.writer, name, strlen(name)));
        }
        return t->vms[id];
}

unsigned ls_translate_vm_ring(const struct ls_translate *t, uint32_t vm_id)
{
        return vm_id < t->n_vm_rings ? t->vm_rings[vm_id] : 0;
}

/* The ring in which the thread of this one, or the one that ran the VM, keeps its coroutines:
 * that of the agent. */
static struct ls_translate_ring *coroutines_ring(struct ls_translate *t, unsigned ring,
                                                 uint32_t vm_id)
{
        struct ls_translate_ring *r = &t->rings[ring], *agent;

        if (r->role == LS_ROLE_SUSPENDED)
                return &t->rings[ls_translate_vm_ring(t, vm_id)];
        agent = &t->rings[r->owner];
        return !agent->tid || agent->tid == r->tid ? agent
                                                   : r; /* 0: its records are still to come */
}

/* The next one of this body; at_least: as the agent counts. */
static int new_generation(struct ls_translate *t, struct ls_translate_ring *r, uint32_t function,
                          uint32_t at_least, uint32_t *ret)
{
        if (ls_ids_reserve(&t->ids, (void **)&r->generations, &r->n_generations,
                           sizeof(*r->generations), function) < 0)
                return -EINVAL;
        *ret = r->generations[function] + 1;
        if (*ret < at_least)
                *ret = at_least;
        r->generations[function] = *ret;
        return 0;
}

int ls_translate_coroutine(struct ls_translate *t, unsigned ring,
                           const struct ls_rec_coroutine *rec, uint32_t function, uint32_t *ret)
{
        struct ls_translate_ring *r = coroutines_ring(t, ring, rec->vm_id);
        enum ls_ring_role role = t->rings[ring].role;
        uint8_t side = (uint8_t)(1u << role);
        struct ls_translate_coroutine *k = NULL;
        uint32_t generation = 0;

        if (rec->generation && function) {
                if (!r->known)
                        r->known = calloc(LS_KNOWN_COROUTINES, sizeof(*r->known));
                if (!r->known)
                        return -ENOMEM;
                k = &r->known[ls_mix(rec->address) >> 40 & (LS_KNOWN_COROUTINES - 1)];
                if (k->address == rec->address && k->function == function && k->trace_id &&
                    !(k->sides & side)) {
                        k->sides |= side;
                        *ret = k->trace_id;
                        return 0;
                }
                if (new_generation(t, r, function, role == LS_ROLE_AGENT ? rec->generation : 0,
                                   &generation) < 0)
                        return -EINVAL;
        }
        *ret = ls_trace_coroutine(t->cfg.writer, ls_translate_vm(t, rec->vm_id), function,
                                  generation);
        if (k)
                *k = (struct ls_translate_coroutine){ rec->address, function, *ret, side };
        return 0;
}
