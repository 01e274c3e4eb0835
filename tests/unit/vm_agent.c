/* The agent's readers of a VM in a test program. See vm_agent.h. Includes no header of Lua: the
 * agent has its own. */
#include "tests/unit/vm_agent.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "libsample/agent.h"
#include "libsample/handler/names_search.h"
#include "libsample/handler/coroutines.h"
#include "libsample/handler/proto_hash.h"
#include "libsample/handler/sources.h"
#include "libsample/handler/tick.h"
#include "libsample/pages.h"
#include "libsample/vm/probe.h"
#include "libsample/handler/functions.h"

struct ls_agent ls_agent;
struct ls_lua_api ls_lua;
struct ls_real ls_real = { .sigprocmask = sigprocmask };

static uint64_t generation = 7;
static struct ls_ring *ring;
static struct ls_thread thread;

void vm_agent_probe(void)
{
        enum { SIZE = 1 << 20, TOTAL = LS_SHM_RINGS + LS_RING_DATA + SIZE };

#define LS_LUA(ret, name, args) ls_lua.name = (ret (*) args)dlsym(RTLD_DEFAULT, #name);
#include "libsample/lua_api.def"
#undef LS_LUA
        ls_agent.shm = calloc(1, TOTAL);
        ls_agent.shm->generation = generation;
        ls_agent.generation = &generation;
        ring = (struct ls_ring *)((char *)ls_agent.shm + LS_SHM_RINGS);
        ring->size = SIZE;
        thread = (struct ls_thread){ .ring = ring,
                                     .functions = ls_functions_new(),
                                     .sources = ls_sources_new(),
                                     .names = ls_names_new(),
                                     .sampler = ls_pages_new(sizeof(struct ls_sampler)) };
        ls_thread_own = &thread;
        ls_thread_own_generation = generation;
        ls_vm_probe();
}

uint64_t vm_agent_hash(const char *pt)
{
        return ls_proto_hash(pt);
}

void vm_agent_search(lua_State *L, uint64_t budget_ns)
{
        ls_names_search(&thread, L, budget_ns);
        ring->tail = ring->head;
}

/* Reads the ring as the recorder does and keeps the best name of the function. */
static int name_in_ring(uint32_t id, char *ret_name, size_t size)
{
        int found = -1;

        for (uint64_t p = ring->tail; p < ring->head;) {
                struct ls_ring_rec *rec = (struct ls_ring_rec *)((char *)ring + LS_RING_DATA +
                                                                 (p & (ring->size - 1)));
                const struct ls_rec_name *name = (const void *)(rec + 1);
                const struct ls_rec_function *function = (const void *)(rec + 1);
                unsigned kind = LS_RING_KIND(rec->size_kind), len = 0;
                const char *text = NULL;

                if (kind == LS_REC_NAME && name->func_id == id) {
                        text = (const char *)(name + 1);
                        len = name->name_len;
                } else if (kind == LS_REC_FUNCTION && function->func_id == id) {
                        text = (const char *)(function + 1);
                        len = function->name_len;
                }
                if (len && len < size) {
                        memcpy(ret_name, text, len);
                        ret_name[len] = 0;
                        found = 0;
                }
                p += LS_RING_SIZE(rec->size_kind);
        }
        ring->tail = ring->head;
        return found;
}

int vm_agent_name(lua_State *L, const void *fn, char *ret_name, size_t size)
{
        uint32_t id;

        ls_names_builtins(L);
        id = ls_function_id(&thread, fn, 1);
        for (int i = 0; i < 10000 && ls_names_wanted(&thread); i++)
                ls_names_search(&thread, L, 100000);
        return name_in_ring(id, ret_name, size);
}
