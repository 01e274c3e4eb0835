/* See types.h. */
#include "libsample/alloc/types.h"

#include <stdatomic.h>

#include "libsample/handler/guard.h"
#include "libsample/handler/walk.h"

#define PLACES     256u                 /* a power of two; LuaJIT has some 60 */
#define VOTES      4u                   /* after which a place is known well */
#define NEAR       (1 << 20)            /* bytes: LuaJIT's code is smaller */
#define ENTRY      1024                 /* the allocating functions lie so near to each other */
#define CALL       5                    /* bytes of a call instruction, e8 and a distance */
#define SAVED      16                   /* words between the two return addresses, at most */
#define PAGE       4096u
#define OWNER_SIZE 64u                  /* bytes that are read of an owner: a table */
#define GLOBAL     1024u                /* of a global_State: strings' index and buffer are in it */

struct ls_type_place {
        _Atomic uintptr_t at;           /* 0 = free */
        _Atomic uint8_t type, votes;    /* votes 0 = nothing is known */
};
static struct ls_type_place places[PLACES];

static uint32_t home(uintptr_t at)
{
        return (uint32_t)((at * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

/* The place at this address, or where it would be; NULL = there is no room. */
static struct ls_type_place *find(uintptr_t at)
{
        for (uint32_t n = 0, i = home(at); n < 16; n++, i++) {
                struct ls_type_place *p = &places[i % PLACES];
                uintptr_t there = atomic_load_explicit(&p->at, memory_order_relaxed);

                if (!there || there == at)
                        return p;
        }
        return NULL;
}

static int is_near(uintptr_t a, uintptr_t b, uintptr_t most)
{
        return a - b + most <= 2 * most;
}

/* 1 when the code before this address calls one of the functions at called. */
static int is_behind_call(uintptr_t address, uintptr_t called)
{
        const char *call = (const char *)address - CALL;
        int32_t distance;

        if (!ls_readable(call, CALL) || LS_READ(uint8_t, call, 0) != 0xe8)
                return 0;
        memcpy(&distance, call + 1, sizeof distance);
        return is_near(address + (uintptr_t)(intptr_t)distance, called, ENTRY);
}

/* So many words that are in the C stack from there up, n at most: it may end soon. */
static int words_from(const uint64_t *at, int n)
{
        uintptr_t rest = (PAGE - (uintptr_t)at % PAGE) / sizeof *at;

        return rest >= (uintptr_t)n || ls_readable(at + rest, sizeof *at) ? n : (int)rest;
}

struct ls_type_place *ls_type_at(const uint64_t *at, int in_trace, enum ls_objtype *ret_type)
{
        uintptr_t called = at[0];
        int n = words_from(at, SAVED);

        *ret_type = LS_OBJTYPE_UNKNOWN;
        for (int i = 1; i < n; i++) {
                uintptr_t address = at[i], none = 0;
                struct ls_type_place *p;

                if (is_near(address, called, NEAR)) {
                        p = find(address);
                        if (!p || (atomic_load(&p->at) != address &&
                                   (!is_behind_call(address, called) ||
                                    (!atomic_compare_exchange_strong(&p->at, &none, address) &&
                                     none != address))))
                                continue;
                        if (atomic_load(&p->votes))
                                *ret_type = (enum ls_objtype)atomic_load(&p->type);
                        return atomic_load(&p->votes) < VOTES ? p : NULL;
                }
                /* Compiled code makes nothing else by itself. */
                if (in_trace && is_near(address, called, INT32_MAX) &&
                    is_behind_call(address, called)) {
                        *ret_type = LS_OBJTYPE_CDATA;
                        return NULL;
                }
        }
        return NULL;
}

void ls_type_note(struct ls_type_look *look, struct ls_type_place *place, const uint64_t *at,
                  const void *block, size_t size)
{
        look->place = place;
        look->block = block;
        look->size = size;
        look->n_owners = 0;
        for (int i = 1, n = words_from(at, 2 * SAVED); i < n && look->n_owners < LS_TYPE_OWNERS;
             i++) {
                const char *owner = (const char *)(uintptr_t)at[i];

                if (at[i] % 8 == 0 && at[i] > UINT16_MAX && ls_readable(owner, OWNER_SIZE))
                        look->owners[look->n_owners++] = owner;
        }
}

static enum ls_objtype of_header(const char *object)
{
        static const uint8_t gcts[] = {
#define LS_OBJTYPE(NAME, name, gct) gct,
#include "formats/wire/objtypes.def"
#undef LS_OBJTYPE
        };
        uint8_t gct = LS_READ(uint8_t, object, LS_GC_TYPE);

        for (int i = 1; i < LS_NOBJTYPES; i++)
                if (gct && gcts[i] == gct)
                        return (enum ls_objtype)i;
        return LS_OBJTYPE_UNKNOWN;
}

/* What the block is of a table, a lua_State or a buffer, whichever this is. */
static enum ls_objtype part_of(const struct ls_type_look *l, const char *owner)
{
        if (!ls_readable(owner, OWNER_SIZE))
                return LS_OBJTYPE_UNKNOWN;
        switch (of_header(owner)) {
        case LS_OBJTYPE_TABLE:
                if (LS_READ(const char *, owner, LS_TAB_ARRAY) == l->block)
                        return LS_OBJTYPE_ARRAY;
                if (LS_READ(const char *, owner, LS_TAB_NODE) == l->block)
                        return LS_OBJTYPE_HASH;
                break;
        case LS_OBJTYPE_THREAD:
                if (LS_READ(const char *, owner, LS_L_STACK) == l->block)
                        return LS_OBJTYPE_STACK;
                break;
        default:
                break;
        }
        /* a buffer's end lies before its begin */
        for (unsigned i = 8; i < 32; i += 8)
                if (LS_READ(const char *, owner, i) == l->block &&
                    LS_READ(const char *, owner, i - 8) == l->block + l->size)
                        return LS_OBJTYPE_BUFFER;
        return LS_OBJTYPE_UNKNOWN;
}

/* What it is of the VM itself. */
static enum ls_objtype part_of_global(const struct ls_type_look *l, const char *global)
{
        for (unsigned i = 8; i < GLOBAL && ls_readable(global + i, 16); i += 8) {
                if (LS_READ(const char *, global, i) != l->block)
                        continue;
                if (LS_READ(const char *, global, i - 8) == l->block + l->size)
                        return LS_OBJTYPE_BUFFER;
                if ((size_t)LS_READ(uint32_t, global, i + 8) + 1 == l->size / 8)
                        return LS_OBJTYPE_STRINGS;
                /* newest of the open ones */
                if (ls_readable(l->block, OWNER_SIZE) && l->size <= OWNER_SIZE &&
                    of_header(l->block) == LS_OBJTYPE_UPVALUE)
                        return LS_OBJTYPE_UPVALUE;
        }
        return LS_OBJTYPE_UNKNOWN;
}

static int is_string(const struct ls_type_look *l)
{
        size_t chars = l->size - LS_STR_DATA, len;

        if (l->size <= LS_STR_DATA || !ls_readable(l->block, LS_STR_DATA) ||
            of_header(l->block) != LS_OBJTYPE_STRING)
                return 0;
        len = ls_str_len(l->block);
        return len < chars && chars - len <= 8;
}

static enum ls_objtype look_at(const struct ls_type_look *l, const char *global,
                               const lua_State *main, const lua_State *L)
{
        const char *newest = LS_READ(const char *, global, ls_vm_facts.objects_offset);
        enum ls_objtype type;

        if (newest == l->block)
                return ls_readable(newest, LS_GC_TYPE + 1) ? of_header(newest)
                                                           : LS_OBJTYPE_UNKNOWN;
        if (newest > l->block && newest < l->block + l->size)
                return LS_OBJTYPE_CDATA;        /* before an aligned one is how it is */
        if (LS_READ(const char *, main, 0) == l->block)
                return LS_OBJTYPE_USERDATA;     /* they follow the first lua_State */
        type = part_of(l, newest);
        if (!type && L)
                type = part_of(l, (const char *)L);
        for (uint32_t i = 0; !type && i < l->n_owners; i++)
                type = part_of(l, l->owners[i]);
        if (!type)
                type = part_of_global(l, global);
        return !type && is_string(l) ? LS_OBJTYPE_STRING : type;
}

void ls_type_learn(struct ls_type_look *look, const char *global, const lua_State *main,
                   const lua_State *L)
{
        struct ls_type_place *p = look->place;
        enum ls_objtype type;
        uint8_t votes;

        look->place = NULL;
        if (!p || !ls_vm_facts.objects_offset)
                return;
        type = look_at(look, global, main, L);
        votes = atomic_load(&p->votes);
        if (!type)
                return;
        if (!votes)
                atomic_store(&p->type, (uint8_t)type);
        if (atomic_load(&p->type) == type)
                atomic_store(&p->votes, (uint8_t)(votes + (votes < VOTES)));
        else
                atomic_store(&p->votes, (uint8_t)(votes - 1));
}
