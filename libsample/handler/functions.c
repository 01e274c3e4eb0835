/* Functions, by identity, with the ids that ring records use. See functions.h. */

#include "libsample/handler/functions.h"
#include "formats/wire/mix.h"

#include "libsample/handler/builtins.h"

#include "libsample/agent.h"
#include "libsample/handler/proto_hash.h"
#include "libsample/handler/sources.h"
#include "libsample/handler/vms.h"
#include "libsample/handler/walk.h"
#include "libsample/pages.h"

#define KEY_C       (UINT64_C(1) << 63)
#define KEY_BUILTIN (UINT64_C(1) << 62)

/* A function's address may be given to another once it was collected. Its shape is compared at each
 * use, its hash at least so often. */
#define VERIFY_NS UINT64_C(100000000)

/* With so many functions, such as a program that loads code all the time, all is forgotten and sent
 * again. */
#define MOST_FUNCTIONS (1u << 15)

struct ls_functions {
        struct ls_fn *slots;            /* open addressing; a power of two */
        size_t nslots, used;
        uint32_t next_id, global_named;
        struct ls_fn *last;
        struct { const char *name; uint32_t id; } pseudo[8];
};

struct ls_functions *ls_functions_new(void)
{
        return ls_pages_new(sizeof(struct ls_functions));
}

void ls_functions_free(struct ls_functions *fns)
{
        if (fns)
                ls_pages_free(fns->slots, fns->nslots * sizeof *fns->slots);
        ls_pages_free(fns, sizeof *fns);
}

static uint64_t key_of(const char *fn)
{
        uint8_t ffid = LS_READ(uint8_t, fn, LS_FN_FFID);

        if (ffid == LS_FFID_LUA)
                return (uint64_t)(uintptr_t)ls_fn_proto(fn);
        if (ffid == LS_FFID_C)
                return LS_READ(uint64_t, fn, LS_FN_ADDR) | KEY_C;
        return ffid | KEY_BUILTIN;
}

static struct ls_fn *slot_of(const struct ls_functions *fns, uint64_t key)
{
        size_t i = (size_t)(ls_mix(key) >> 20);

        for (;; i++) {
                struct ls_fn *s = &fns->slots[i & (fns->nslots - 1)];

                if (!s->id || s->key == key)
                        return s;
        }
}

/* Room for one more. */
static int make_room(struct ls_functions *fns)
{
        struct ls_fn *old = fns->slots;
        size_t n = fns->nslots;

        if (old && fns->used * 2 < n)
                return 0;
        if (n >= 2 * MOST_FUNCTIONS) {
                memset(old, 0, n * sizeof *old);
                fns->used = 0;
                return 0;
        }
        fns->slots = ls_pages_new((n ? n * 2 : 1024) * sizeof *old);
        if (!fns->slots) {
                fns->slots = old;
                return -1;
        }
        fns->nslots = n ? n * 2 : 1024;
        for (size_t i = 0; i < n; i++)
                if (old[i].id)
                        *slot_of(fns, old[i].key) = old[i];
        ls_pages_free(old, n * sizeof *old);
        return 0;
}

/* 1 when the entry still is the function at its address. */
static int still(struct ls_fn *s, uint64_t now_ns)
{
        const char *pt = (const char *)(uintptr_t)s->key;

        if (s->key & (KEY_C | KEY_BUILTIN))
                return 1;
        if (s->chunkname != LS_READ(const char *, pt, LS_PT_CHUNKNAME) ||
            s->shape != ls_pt_shape(pt) ||
            s->name_hash != LS_READ(uint32_t, s->chunkname, LS_STR_HASH))
                return 0;
        if (now_ns - s->verified_ns < VERIFY_NS &&
            s->vms_closed == atomic_load_explicit(&ls_vms_closed, memory_order_relaxed))
                return 1;
        s->vms_closed = atomic_load_explicit(&ls_vms_closed, memory_order_relaxed);
        s->verified_ns = now_ns;
        return s->hash == ls_proto_hash(pt);
}

static void *put_function(struct ls_thread *t, const struct ls_rec_function *rec, const char *name)
{
        char *body = ls_ring_reserve(t->ring, LS_REC_FUNCTION, sizeof *rec + rec->name_len,
                                     LS_RESERVE_DEFINITION);

        if (!body) {
                atomic_fetch_add(&ls_agent.shm->lost[LS_LOSS_DEFINITION_LOST], 1);
                return NULL;
        }
        memcpy(body, rec, sizeof *rec);
        memcpy(body + sizeof *rec, name, rec->name_len);
        ls_ring_commit(t->ring, body);
        return body;
}

/* Fills the record for fn. Returns 0, or -1 when its source could not be sent. */
static int describe(struct ls_thread *t, const char *fn, struct ls_rec_function *rec,
                    struct ls_fn *s, const char **ret_name)
{
        uint8_t ffid = LS_READ(uint8_t, fn, LS_FN_FFID);

        *ret_name = "";
        if (ffid == LS_FFID_LUA) {
                const char *pt = ls_fn_proto(fn);
                int loaded;

                s->chunkname = LS_READ(const char *, pt, LS_PT_CHUNKNAME);
                s->shape = ls_pt_shape(pt);
                s->name_hash = LS_READ(uint32_t, s->chunkname, LS_STR_HASH);
                s->vms_closed = atomic_load_explicit(&ls_vms_closed, memory_order_relaxed);
                s->hash = ls_proto_hash(pt);
                rec->kind = LS_FUNC_LUA;
                rec->source_id = ls_source_id(t, s->chunkname, &loaded);
                rec->first_line = LS_READ(uint32_t, pt, LS_PT_FIRSTLINE);
                rec->last_line = rec->first_line + LS_READ(uint32_t, pt, LS_PT_NUMLINE);
                rec->hash = s->hash;
                rec->flags =
                        (uint8_t)((rec->first_line == 0 ? LS_FUNCF_MAIN : 0) |
                                  (loaded ? LS_FUNCF_LOADED : 0) |
                                  (LS_READ(uint8_t, pt, LS_PT_FLAGS) & LS_PTF_VARARG
                                           ? LS_FUNCF_VARARG
                                           : 0) |
                                  (LS_READ(uint8_t, pt, LS_PT_FLAGS) & LS_PTF_NOJIT ? LS_FUNCF_NOJIT
                                                                                    : 0));
                return rec->source_id ? 0 : -1;
        }
        if (ffid == LS_FFID_C) {
                rec->kind = LS_FUNC_C;
                rec->addr = LS_READ(uint64_t, fn, LS_FN_ADDR);
                return 0;
        }
        rec->kind = LS_FUNC_BUILTIN;
        rec->ffid = ffid;
        rec->addr = LS_READ(uint64_t, fn, LS_FN_ADDR);
        *ret_name = ls_builtin_name(ffid);
        if (!*ret_name)
                *ret_name = "[builtin]";
        rec->name_len = (uint16_t)strlen(*ret_name);
        return 0;
}

uint32_t ls_function_id(struct ls_thread *t, const char *fn, uint64_t now_ns)
{
        struct ls_functions *fns = t->functions;
        struct ls_rec_function rec = { 0 };
        struct ls_fn *s, fresh = { 0 };
        const char *name;

        if (make_room(fns))
                return 0;
        fresh.key = key_of(fn);
        s = slot_of(fns, fresh.key);
        fns->last = s;
        if (s->id && still(s, now_ns))
                return s->id;
        rec.func_id = fns->next_id + 1;
        if (describe(t, fn, &rec, &fresh, &name) || !put_function(t, &rec, name))
                return 0;
        if (!s->id)
                fns->used++;
        fresh.id = ++fns->next_id;
        fresh.verified_ns = now_ns;
        if (rec.kind == LS_FUNC_BUILTIN) {
                fresh.rank = LS_NAME_GLOBAL;
                fns->global_named++;
        }
        *s = fresh;
        return s->id;
}

struct ls_interposed ls_interposed[LS_INTERPOSED_MOST];

static uintptr_t behind(uintptr_t address)
{
        for (unsigned i = 0; i < LS_INTERPOSED_MOST && ls_interposed[i].ours; i++)
                if (ls_interposed[i].ours == address)
                        return ls_interposed[i].real;
        return address;
}

uint32_t ls_function_c_id(struct ls_thread *t, uintptr_t called)
{
        uintptr_t address = behind(called);
        struct ls_functions *fns = t->functions;
        struct ls_rec_function rec = { .kind = LS_FUNC_C, .addr = address };
        struct ls_fn *s;

        if (make_room(fns))
                return 0;
        s = slot_of(fns, (uint64_t)address | KEY_C);
        fns->last = s;
        if (s->id)
                return s->id;
        rec.func_id = fns->next_id + 1;
        if (!put_function(t, &rec, ""))
                return 0;
        fns->used++;
        *s = (struct ls_fn){ .key = (uint64_t)address | KEY_C, .id = ++fns->next_id };
        return s->id;
}

uint32_t ls_function_define(struct ls_thread *t, struct ls_rec_function *rec, const char *name)
{
        rec->func_id = t->functions->next_id + 1;
        if (!put_function(t, rec, name))
                return 0;
        t->functions->global_named++;
        return ++t->functions->next_id;
}

uint32_t ls_function_pseudo(struct ls_thread *t, const char *name)
{
        struct ls_functions *fns = t->functions;
        struct ls_rec_function rec = { 0 };
        unsigned i = 0;

        for (; i < sizeof fns->pseudo / sizeof *fns->pseudo && fns->pseudo[i].name; i++)
                if (fns->pseudo[i].name == name)
                        return fns->pseudo[i].id;
        if (i == sizeof fns->pseudo / sizeof *fns->pseudo)
                return 0;
        rec.func_id = fns->next_id + 1;
        rec.kind = LS_FUNC_PSEUDO;
        rec.name_len = (uint16_t)strlen(name);
        if (!put_function(t, &rec, name))
                return 0;
        fns->pseudo[i].name = name;
        fns->global_named++;
        return fns->pseudo[i].id = ++fns->next_id;
}

struct ls_fn *ls_function_find(const struct ls_thread *t, const char *fn)
{
        struct ls_fn *s = t->functions->slots ? slot_of(t->functions, key_of(fn)) : NULL;

        return s && s->id ? s : NULL;
}

struct ls_fn *ls_function_find_proto(const struct ls_thread *t, const char *pt)
{
        struct ls_fn *s = t->functions->slots ? slot_of(t->functions, (uint64_t)(uintptr_t)pt)
                                              : NULL;

        return s && s->id ? s : NULL;
}

struct ls_fn *ls_function_last(const struct ls_thread *t)
{
        return t->functions->last;
}

void ls_function_name(struct ls_thread *t, struct ls_fn *fn, unsigned rank, const char *name,
                      uint32_t len)
{
        struct ls_rec_name rec = { fn->id, (uint16_t)rank, (uint16_t)(len < 1024 ? len : 1024) };
        char *body;

        if (rank <= fn->rank || !len)
                return;
        body = ls_ring_reserve(t->ring, LS_REC_NAME, sizeof rec + rec.name_len,
                               LS_RESERVE_DEFINITION);
        if (!body)
                return;
        memcpy(body, &rec, sizeof rec);
        memcpy(body + sizeof rec, name, rec.name_len);
        ls_ring_commit(t->ring, body);
        if (rank == LS_NAME_GLOBAL)
                t->functions->global_named++;
        fn->rank = (uint8_t)rank;
}

uint32_t ls_functions_unnamed(const struct ls_thread *t)
{
        return t->functions->next_id - t->functions->global_named;
}

uint32_t ls_functions_count(const struct ls_thread *t)
{
        return t->functions->next_id;
}
