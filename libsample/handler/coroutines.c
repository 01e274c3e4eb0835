/* Coroutines by body function and generation. See coroutines.h.
 *
 * A bounded number is remembered: programs make coroutines by the million. One that is met again after it was
 * forgotten counts as another generation, and after GENERATIONS_MOST of one body all further ones share one
 * definition, so that the trace does not grow without bound. */
#include "libsample/handler/coroutines.h"

#include "libsample/agent.h"
#include "libsample/handler/ring_writer.h"
#include "libsample/pages.h"

#define KNOWN       2048u               /* coroutines remembered, by address */
#define BODIES      1024u               /* bodies whose generations are counted */
#define GENERATIONS_MOST 1000u
#define GENERATIONS_SEEN 2000u          /* those that only the watcher has met are numbered from here */

struct ls_coroutines {
        struct known {
                const lua_State *L;
                const char *body_fn;
                uint32_t id, body_id, vm_id, generation;
        } known[KNOWN];
        struct { uint32_t body_id, generations, shared_id; } bodies[BODIES];
        uint32_t next_id;
        const struct ls_coroutines *agents;     /* the watcher's: the table of the thread itself, whose numbers count */
};

struct ls_coroutines *ls_coroutines_new(void)
{
        return ls_pages_new(sizeof(struct ls_coroutines));
}

void ls_coroutines_free(struct ls_coroutines *co)
{
        ls_pages_free(co, sizeof *co);
}

static uint32_t define(struct ls_thread *t, uint32_t body_id, uint32_t generation, uint32_t vm_id)
{
        struct ls_rec_coroutine *rec = ls_ring_reserve(t->ring, LS_REC_COROUTINE, sizeof *rec, LS_RESERVE_DEFINITION);

        if (!rec) {
                atomic_fetch_add(&ls_agent.shm->lost[LS_LOSS_DEFINITION_LOST], 1);
                return 0;
        }
        *rec = (struct ls_rec_coroutine){ t->coroutines->next_id + 1, body_id, generation, vm_id };
        ls_ring_commit(t->ring, rec);
        return ++t->coroutines->next_id;
}

/* A new coroutine of this body. */
static uint32_t another(struct ls_thread *t, uint32_t body_id, uint32_t vm_id, uint32_t *ret_generation)
{
        struct ls_coroutines *co = t->coroutines;
        uint32_t i = body_id * 2654435761u % BODIES, n = 0, first = co->agents ? GENERATIONS_SEEN : 0;

        while (co->bodies[i].body_id && co->bodies[i].body_id != body_id && n++ < BODIES)
                i = (i + 1) % BODIES;
        if (co->bodies[i].body_id != body_id) {
                co->bodies[i].body_id = body_id;         /* the table is full: another body's place */
                co->bodies[i].generations = co->bodies[i].shared_id = 0;
        }
        if (co->bodies[i].generations < GENERATIONS_MOST) {
                uint32_t id = define(t, body_id, first + co->bodies[i].generations + 1, vm_id);

                co->bodies[i].generations += id != 0;
                *ret_generation = first + co->bodies[i].generations;
                return id;
        }
        if (!co->bodies[i].shared_id)
                co->bodies[i].shared_id = define(t, body_id, 0, vm_id);
        *ret_generation = 0;
        return co->bodies[i].shared_id;
}

static uint32_t place_of(const lua_State *L)
{
        return (uint32_t)(((uint64_t)(uintptr_t)L * UINT64_C(0x9e3779b97f4a7c15)) >> 40) % KNOWN;
}

/* The number that the thread itself has given to this coroutine, 0 = it does not know it, or one definition is for many. */
static uint32_t agents_generation(const struct ls_coroutines *co, const lua_State *L, const char *body_fn, uint32_t vm_id)
{
        const struct known *k = co->agents ? &co->agents->known[place_of(L)] : NULL;

        return k && k->L == L && k->body_fn == body_fn && k->vm_id == vm_id && k->id ? k->generation : 0;
}

uint32_t ls_coroutine_id(struct ls_thread *t, const lua_State *L, const char *body_fn, uint32_t body_id, uint32_t vm_id)
{
        struct ls_coroutines *co = t->coroutines;
        struct known *k = &co->known[place_of(L)];
        uint32_t theirs = agents_generation(co, L, body_fn, vm_id);

        if (k->L != L || k->body_fn != body_fn || k->body_id != body_id || k->vm_id != vm_id || !k->id ||
            (theirs && k->generation != theirs)) {
                uint32_t generation = theirs, id = theirs ? define(t, body_id, theirs, vm_id) : another(t, body_id, vm_id, &generation);

                *k = (struct known){ L, body_fn, id, body_id, vm_id, generation };
        }
        return k->id;
}

void ls_coroutines_follow(struct ls_coroutines *co, const struct ls_coroutines *agents)
{
        co->agents = agents;
}
