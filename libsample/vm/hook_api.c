/* One sample of the hook engine for a runtime whose stacks cannot be read raw, such as LuaJIT
 * with 32-bit references: all through Lua's own API. Functions are known by source and lines, the
 * zone and the coroutine are not, and each frame is looked for from the top. Called by hook.c;
 * normal context of the sampled thread, inside ls_thread_enter. */

#include "libsample/vm/hook_api.h"

#include <string.h>

#include "libsample/agent.h"
#include "libsample/handler/clock.h"
#include "formats/wire/mix.h"
#include "libsample/handler/functions.h"
#include "libsample/handler/proto_hash.h"
#include "libsample/handler/sample.h"
#include "libsample/handler/sources.h"
#include "libsample/lua_debug.h"

#define LEVELS 200                      /* frames of a sample: lua_getstack counts from the top */
#define KNOWN  4096                     /* functions remembered; more are sent again */

static struct known { uint64_t key; uint32_t id; } known[KNOWN];
static uint32_t known_of;               /* thread whose ids these are */

static struct known *slot_of(uint64_t key)
{
        for (uint32_t i = (uint32_t)(key >> 32), n = 0; n < 16; i++, n++) {
                struct known *k = &known[i % KNOWN];

                if (!k->id || k->key == key)
                        return k;
        }
        return &known[(key >> 32) % KNOWN];
}

static uint32_t define(struct ls_thread *t, const struct lua_Debug *ar, const void *c_function)
{
        struct ls_rec_function rec = { .kind = LS_FUNC_C, .addr = (uint64_t)(uintptr_t)c_function };
        int loaded = 0;

        if (ar->what[0] != 'C') {
                rec.kind = LS_FUNC_LUA;
                rec.source_id =
                        ls_source_id_text(t, ar->source, (uint32_t)strlen(ar->source), &loaded);
                if (!rec.source_id)
                        return 0;
                rec.first_line = ar->linedefined > 0 ? (uint32_t)ar->linedefined : 0;
                rec.last_line = ar->lastlinedefined > 0 ? (uint32_t)ar->lastlinedefined : 0;
                rec.flags = (uint8_t)((rec.first_line == 0 ? LS_FUNCF_MAIN : 0) |
                                      (loaded ? LS_FUNCF_LOADED : 0));
        }
        return ls_function_define(t, &rec, "");
}

/* Id of the function on top of the stack, described by ar. 0 = it did not fit. */
static uint32_t function_id(struct ls_thread *t, lua_State *L, const struct lua_Debug *ar)
{
        const void *c_function = ar->what[0] == 'C' ? ls_lua.lua_tocfunction(L, -1) : NULL;
        uint64_t key = ls_bytes_hash(ar->source, strlen(ar->source)) * 31 +
                       (uint64_t)(uint32_t)ar->linedefined;
        struct known *k;

        if (ar->what[0] == 'C' && !c_function)
                return ls_function_pseudo(t, "[builtin]");
        key = c_function ? ls_mix((uint64_t)(uintptr_t)c_function)
                         : ls_mix(key) + (uint64_t)(uint32_t)ar->lastlinedefined;
        k = slot_of(key);
        if (k->id && k->key == key)
                return k->id;
        *k = (struct known){ key, define(t, ar, c_function) };
        if (k->id && ar->name && *ar->name) {
                struct ls_fn fn = { .id = k->id };

                ls_function_name(t, &fn, LS_NAME_CALLSITE, ar->name, (uint32_t)strlen(ar->name));
        }
        return k->id;
}

/* Reads up to LEVELS frames. Returns how many, or -1 when a definition did not fit. */
static int read_frames(struct ls_thread *t, lua_State *L, struct ls_frame frames[LEVELS])
{
        struct lua_Debug ar;
        int n = 0;

        for (; n < LEVELS && ls_lua.lua_getstack(L, n, &ar); n++) {
                ls_lua.lua_getinfo(L, "Slnf", &ar);
                frames[n].func_id = function_id(t, L, &ar);
                frames[n].line = ar.currentline > 0 ? (uint32_t)ar.currentline : 0;
                ls_lua.lua_settop(L, -2);
                if (!frames[n].func_id)
                        return -1;
        }
        return n;
}

static enum ls_vmstate state_of(int letter)
{
        static const char letters[LS_NVMSTATES + 1] = {
#define LS_VMSTATE(letter, NAME, name, label) [LS_VMSTATE_##NAME] = letter,
#include "formats/wire/vmstates.def"
#undef LS_VMSTATE
        };
        const char *at = letter ? strchr(letters, letter) : NULL;

        return at ? (enum ls_vmstate)(at - letters) : LS_VMSTATE_INTERPRETED;
}

void ls_hook_api(struct ls_thread *t, const struct ls_vm *vm, lua_State *L, int vmstate)
{
        struct ls_frame frames[LEVELS];
        struct ls_ticks ticks;
        uint32_t flags = 0;
        int n;

        if (known_of != t->thread_id)
                memset(known, 0, sizeof known);
        known_of = t->thread_id;
        ls_sample_flush_outside(t, NULL);
        ls_ticks_take(t->sampler, &ticks);
        if (!ticks.sum || !atomic_load_explicit(&ls_agent.shm->recording, memory_order_relaxed))
                return;
        memset(ticks.weight, 0, sizeof ticks.weight);
        ticks.weight[state_of(vmstate)] = ticks.sum;
        if (ticks.sum > 1) {
                flags |= LS_SAMPLE_STATE_GUESS;
                ls_lose(LS_LOSS_STATE_GUESSED, ticks.sum - 1);
        }
        if (ls_agent.shm->scope != LS_SCOPE_LINE && vmstate == 'N')
                flags |= LS_SAMPLE_NO_LINE;
        n = read_frames(t, L, frames);
        if (n == LEVELS) {
                flags |= LS_SAMPLE_MIDDLE_CUT;
                ls_lose(LS_LOSS_MIDDLE_CUT, 1);
        }
        if (n > 0)
                ls_sample_send_frames(t, vm, frames, (uint32_t)n, flags, &ticks);
        else
                ls_lose(n ? LS_LOSS_RING_FULL : LS_LOSS_NO_STACK, ticks.sum);
        ls_sources_send_text(t);
}
