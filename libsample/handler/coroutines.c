/* Coroutines by body function and generation. See coroutines.h.
 *
 * A bounded number is remembered: programs make coroutines by the million. One that is met again
 * after it was forgotten counts as another generation, and after GENERATIONS_MOST of one body all
 * further ones share one definition, so that the trace does not grow without bound. */

#include "libsample/handler/coroutines.h"
#include "formats/wire/mix.h"

#include "libsample/agent.h"
#include "libsample/handler/ring_writer.h"
#include "libsample/pages.h"

#define KNOWN       2048u               /* coroutines remembered, by address */
#define BODIES      1024u               /* bodies whose generations are counted */
#define GENERATIONS_MOST 1000u

struct ls_coroutines {
        struct {
                const lua_State *L;
                const char *body_fn;
                uint32_t id, body_id, vm_id;
        } known[KNOWN];
        struct { uint32_t body_id, generations, shared_id; } bodies[BODIES];
        uint32_t next_id;
};

struct ls_coroutines *ls_coroutines_new(void)
{
        return ls_pages_new(sizeof(struct ls_coroutines));
}

void ls_coroutines_free(struct ls_coroutines *co)
{
        ls_pages_free(co, sizeof *co);
}

uint32_t ls_coroutine_define(struct ls_thread *t, const lua_State *L, uint32_t body_id,
                             uint32_t generation, uint32_t vm_id)
{
        struct ls_rec_coroutine *rec =
                ls_ring_reserve(t->ring, LS_REC_COROUTINE, sizeof *rec, LS_RESERVE_DEFINITION);

        if (!rec) {
                atomic_fetch_add(&ls_agent.shm->lost[LS_LOSS_DEFINITION_LOST], 1);
                return 0;
        }
        *rec = (struct ls_rec_coroutine){ t->coroutines->next_id + 1, body_id, generation, vm_id,
                                          generation ? (uintptr_t)L : 0 };
        ls_ring_commit(t->ring, rec);
        return ++t->coroutines->next_id;
}

/* A new coroutine of this body. */
static uint32_t another(struct ls_thread *t, const lua_State *L, uint32_t body_id, uint32_t vm_id)
{
        struct ls_coroutines *co = t->coroutines;
        uint32_t i = body_id * 2654435761u % BODIES, n = 0;

        while (co->bodies[i].body_id && co->bodies[i].body_id != body_id && n++ < BODIES)
                i = (i + 1) % BODIES;
        if (co->bodies[i].body_id != body_id) {
                co->bodies[i].body_id = body_id;         /* the table is full: another body's
                                                          * place */
                co->bodies[i].generations = co->bodies[i].shared_id = 0;
        }
        if (co->bodies[i].generations < GENERATIONS_MOST) {
                uint32_t id =
                        ls_coroutine_define(t, L, body_id, co->bodies[i].generations + 1, vm_id);

                co->bodies[i].generations += id != 0;
                return id;
        }
        if (!co->bodies[i].shared_id)
                co->bodies[i].shared_id = ls_coroutine_define(t, L, body_id, 0, vm_id);
        return co->bodies[i].shared_id;
}

uint32_t ls_coroutine_id(struct ls_thread *t, const lua_State *L, const char *body_fn,
                         uint32_t body_id, uint32_t vm_id)
{
        struct ls_coroutines *co = t->coroutines;
        uint32_t i = (uint32_t)(ls_mix((uint64_t)(uintptr_t)L) >> 40) % KNOWN;

        if (co->known[i].L != L || co->known[i].body_fn != body_fn ||
            co->known[i].body_id != body_id || co->known[i].vm_id != vm_id || !co->known[i].id) {
                co->known[i].id = another(t, L, body_id, vm_id);
                co->known[i].L = L;
                co->known[i].body_fn = body_fn;
                co->known[i].body_id = body_id;
                co->known[i].vm_id = vm_id;
        }
        return co->known[i].id;
}
