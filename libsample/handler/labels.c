/* Reads the labels of a sample from the VM. See handler/labels.h. */

#include "libsample/handler/labels.h"

#include "libsample/agent.h"
#include "libsample/handler/proto_hash.h"
#include "libsample/handler/walk.h"
#include "libsample/handler/zones.h"
#include "libsample/pages.h"
#include "libsample/rawtab.h"

#define CHAIN_MOST 256u                 /* coroutines that resumed one another */
#define KNOWN_MOST 4096u

struct ls_label_cache {
        struct { uint64_t hash; uint32_t id; } known[KNOWN_MOST];
        uint32_t next_id;
};

struct pair { const char *key; uint64_t value; };       /* key: Lua's string object, one for each
                                                         * text */
struct pairs { struct pair at[LS_LABELS_MOST]; unsigned n; };

struct ls_label_cache *ls_label_cache_new(void)
{
        return ls_pages_new(sizeof(struct ls_label_cache));
}

void ls_label_cache_free(struct ls_label_cache *cache)
{
        ls_pages_free(cache, sizeof *cache);
}

struct ls_vm_labels *ls_labels_of(const lua_State *L)
{
        struct ls_vm *vm = ls_vm_of(L);

        if (vm && !vm->labels)
                vm->labels = ls_pages_new(sizeof *vm->labels);
        return vm ? vm->labels : NULL;
}

void ls_labels_close(struct ls_vm *vm)
{
        struct ls_vm_labels *labels = vm->labels;

        vm->labels = NULL;
        if (!vm->lent)
                ls_pages_free(labels, sizeof *labels);
}

/* 1 when the slot is that of L itself, and not of one that was freed or has the same low half. */
static int is_slot_of(const struct ls_vm_labels *labels, const struct ls_vm *vm, uint32_t slot,
                      const lua_State *L, struct ls_guard *g)
{
        uint64_t tv = ls_read_element(LS_FIELD(labels, live), slot, g);

        if (L == vm->main)
                return tv != LS_NIL;
        return ls_istype(tv, LS_T_THREAD) && ls_gcptr(tv) == (const char *)L;
}

/* The table of keys and values of L, NULL = it has none. */
static const char *set_of(const struct ls_vm_labels *labels, const struct ls_vm *vm,
                          const lua_State *L, struct ls_guard *g)
{
        uint32_t low = (uint32_t)(uintptr_t)L, hash = ls_label_hash(low);

        for (uint32_t i = 0; i < LS_LABEL_PROBES; i++) {
                uint32_t slot = ((hash + i) & (LS_LABEL_SLOTS - 1)) + 1;
                uint64_t tv;

                if ((uint32_t)LS_FIELD(labels, own[slot]) != low ||
                    !is_slot_of(labels, vm, slot, L, g))
                        continue;
                tv = ls_read_element(LS_FIELD(labels, sets), slot, g);
                return ls_istype(tv, LS_T_TAB) ? ls_gcptr(tv) : NULL;
        }
        return NULL;
}

/* Adds what the set has and pairs have not: sorted by key, so that equal ones have equal ids. */
static void add_set(struct pairs *pairs, const char *set, struct ls_guard *g)
{
        for (uint32_t i = 1; i < 2 * LS_LABELS_MOST && pairs->n < LS_LABELS_MOST; i += 2) {
                uint64_t key = ls_read_element(set, i, g), value = ls_read_element(set, i + 1, g);
                unsigned at = 0;

                if (!ls_istype(key, LS_T_STR) ||
                    (!ls_istype(value, LS_T_STR) && value >> 47 >= 0x1fff0))
                        continue;
                while (at < pairs->n && pairs->at[at].key < ls_gcptr(key))
                        at++;
                if (at < pairs->n && pairs->at[at].key == ls_gcptr(key))
                        continue;
                for (unsigned k = pairs->n++; k > at; k--)
                        pairs->at[k] = pairs->at[k - 1];
                pairs->at[at] = (struct pair){ ls_gcptr(key), value };
        }
}

static uint32_t define(struct ls_thread *t, uint32_t parent, const char *key, uint32_t key_len,
                       const char *value, uint32_t len)
{
        struct ls_label_cache *cache = t->labels;
        uint64_t hash = (ls_bytes_hash(key, key_len) * 31 + ls_bytes_hash(value, len)) * 31 +
                        parent;
        uint32_t i = (uint32_t)(hash >> 20) % KNOWN_MOST;
        struct ls_rec_label rec = { 0, parent, key_len, len };
        char *body;

        for (; cache->known[i].id; i = (i + 1) % KNOWN_MOST)
                if (cache->known[i].hash == hash)
                        return cache->known[i].id;
        rec.label_id = cache->next_id + 1;
        body = ls_ring_reserve(t->ring, LS_REC_LABEL, sizeof rec + key_len + len,
                               LS_RESERVE_DEFINITION);
        if (!body) {
                atomic_fetch_add(&ls_agent.shm->lost[LS_LOSS_DEFINITION_LOST], 1);
                return parent;
        }
        memcpy(body, &rec, sizeof rec);
        memcpy(body + sizeof rec, key, key_len);
        memcpy(body + sizeof rec + key_len, value, len);
        ls_ring_commit(t->ring, body);
        cache->known[i].hash = hash;
        return cache->known[i].id = ++cache->next_id;
}

LS_HANDLER uint32_t ls_label_id(struct ls_thread *t, const struct ls_vm *vm, const lua_State *L,
                                struct ls_guard *g)
{
        const struct ls_vm_labels *labels = vm->labels;
        struct pairs pairs = { .n = 0 };
        uint32_t id = 0;
        int by_c;

        if (!labels || !LS_FIELD(labels, sets))
                return 0;
        for (unsigned n = 0; L && n < CHAIN_MOST && (!g || ls_guard_reads(g, L, LS_L_CFRAME + 8));
             n++) {
                const char *set = set_of(labels, vm, L, g);

                if (set)
                        add_set(&pairs, set, g);
                L = ls_walk_resumer(L, g, &by_c);
        }
        /* Values that change all the time would fill the table: then all are sent again, from id 1
         * on. */
        if (pairs.n && t->labels->next_id > KNOWN_MOST / 2) {
                memset(t->labels->known, 0, sizeof t->labels->known);
                t->labels->next_id = 0;
        }
        for (unsigned i = 0; i < pairs.n; i++) {
                char key_buf[LS_READ_TEXT], buf[LS_READ_TEXT];
                uint32_t key_len, len;
                const char *key =
                        ls_read_text(ls_tagged(pairs.at[i].key, LS_T_STR), g, key_buf, &key_len);
                const char *value = ls_read_text(pairs.at[i].value, g, buf, &len);

                if (key && value)
                        id = define(t, id, key, key_len < LS_LABEL_TEXT ? key_len : LS_LABEL_TEXT,
                                    value, len < LS_LABEL_TEXT ? len : LS_LABEL_TEXT);
        }
        return id;
}
