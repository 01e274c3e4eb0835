/* Reads the zone of a sample from the VM. See handler/zones.h. */

#include "libsample/handler/zones.h"

#include "libsample/agent.h"
#include "libsample/handler/proto_hash.h"
#include "libsample/handler/walk.h"
#include "libsample/pages.h"
#include "libsample/rawtab.h"

#define CHAIN_MOST 256 /* coroutines that resumed one another; LuaJIT allows 200 nested C calls */
#define KNOWN_MOST  4096                /* different zone paths */
#define NAME_MOST   4096

struct ls_zones {
        struct { uint64_t hash; uint32_t parent, id; } known[KNOWN_MOST];
        uint32_t next_id, used;
        int32_t chain[CHAIN_MOST];
};

struct ls_zones *ls_zones_new(void)
{
        return ls_pages_new(sizeof(struct ls_zones));
}

void ls_zones_free(struct ls_zones *zones)
{
        ls_pages_free(zones, sizeof *zones);
}

static int reads(struct ls_guard *g, const void *p, size_t n)
{
        return !g || ls_guard_reads(g, p, n);
}

/* A number as Lua prints it, for those that a zone is likely to be: whole ones; others with six
 * digits after the point. */
static uint32_t number_text(double number, char *buf)
{
        char digits[24], *p = buf;
        uint64_t whole, rest = 0;
        unsigned n = 0;

        if (!(number > -1e15 && number < 1e15)) {
                memcpy(buf, "(number)", 8);
                return 8;
        }
        if (number < 0) {
                *p++ = '-';
                number = -number;
        }
        whole = (uint64_t)number;
        rest = (uint64_t)((number - (double)whole) * 1e6 + 0.5);
        do
                digits[n++] = (char)('0' + whole % 10);
        while (whole /= 10);
        while (n)
                *p++ = digits[--n];
        if (rest && rest < 1000000) {
                *p++ = '.';
                for (uint32_t unit = 100000; rest && unit; rest %= unit, unit /= 10)
                        *p++ = (char)('0' + rest / unit);
        }
        return (uint32_t)(p - buf);
}

LS_HANDLER const char *ls_read_text(uint64_t tv, struct ls_guard *g, char *buf, uint32_t *ret_len)
{
        static const char other[] = "(zone that is no string)";
        double number;

        if (ls_istype(tv, LS_T_STR)) {
                const char *s = ls_gcptr(tv);

                if (!reads(g, s, LS_STR_DATA) || LS_READ(uint8_t, s, LS_GC_TYPE) != LS_T_STR)
                        return NULL;
                *ret_len = ls_str_len(s) < NAME_MOST ? ls_str_len(s) : NAME_MOST;
                if (*ret_len && !reads(g, ls_str_data(s), *ret_len < 4095 ? *ret_len : 4095))
                        return NULL;
                return ls_at(ls_str_data(s), *ret_len);
        }
        if (tv >> 47 >= 0x1fff0) {
                *ret_len = sizeof other - 1;
                return other;
        }
        memcpy(&number, &tv, 8);
        *ret_len = number_text(number, buf);
        return buf;
}

static uint32_t intern(struct ls_thread *t, uint32_t parent, const char *name, uint32_t len)
{
        struct ls_zones *zones = t->zones;
        uint64_t hash = ls_bytes_hash(name, len) * 31 + parent;
        uint32_t i = (uint32_t)(hash >> 20) % KNOWN_MOST;
        struct ls_rec_zone rec = { zones->next_id + 1, parent, len, 0 };
        char *body;

        for (; zones->known[i].id; i = (i + 1) % KNOWN_MOST)
                if (zones->known[i].hash == hash && zones->known[i].parent == parent)
                        return zones->known[i].id;
        if (zones->used >= KNOWN_MOST / 2) {    /* forget all: they are sent again, with new ids */
                memset(zones->known, 0, sizeof zones->known);
                zones->used = 0;
        }
        body = ls_ring_reserve(t->ring, LS_REC_ZONE, sizeof rec + len, LS_RESERVE_DEFINITION);
        if (!body) {
                atomic_fetch_add(&ls_agent.shm->lost[LS_LOSS_DEFINITION_LOST], 1);
                return parent;
        }
        memcpy(body, &rec, sizeof rec);
        memcpy(body + sizeof rec, name, len);
        ls_ring_commit(t->ring, body);
        zones->known[i].hash = hash;
        zones->known[i].parent = parent;
        zones->used++;
        return zones->known[i].id = ++zones->next_id;
}

/* L and those that resumed it, directly or not, as owners are noted. Returns how many. */
static unsigned chain_of(const lua_State *L, struct ls_guard *g, int32_t chain[CHAIN_MOST])
{
        unsigned n = 0;
        int by_c;

        for (; L && n < CHAIN_MOST && reads(g, L, LS_L_CFRAME + 8);
             L = ls_walk_resumer(L, g, &by_c))
                chain[n++] = (int32_t)(uintptr_t)L;
        return n;
}

static int is_among(int32_t owner, const int32_t *chain, unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                if (chain[i] == owner)
                        return 1;
        return 0;
}

LS_HANDLER uint64_t ls_read_element(const char *t, uint32_t i, struct ls_guard *g)
{
        const char *array;

        if (!g)
                return ls_tab_geti(t, i);
        if (!reads(g, t, LS_TAB_HMASK) || i >= LS_READ(uint32_t, t, LS_TAB_ASIZE))
                return LS_NIL;
        array = LS_READ(const char *, t, LS_TAB_ARRAY);
        return reads(g, array + 8 * (size_t)i, 8) ? LS_READ(uint64_t, array, 8 * (size_t)i)
                                                  : LS_NIL;
}

LS_HANDLER uint32_t ls_zone_id(struct ls_thread *t, const struct ls_vm *vm, const lua_State *L,
                               struct ls_guard *g)
{
        const struct ls_vm_zones *zones = vm->zones;
        uint32_t id = 0, n, len;
        unsigned nchain;
        const char *names;
        int tracked;
        char buf[LS_READ_TEXT];

        if (!zones || !(names = LS_FIELD(zones, names)))
                return 0;
        tracked = LS_FIELD(zones, tracked);
        n = tracked ? (uint32_t)LS_FIELD(zones, own[0]) : LS_ZONE_OWNERS - 1;
        if (!n)
                return 0;
        nchain = tracked ? chain_of(L, g, t->zones->chain) : 0;
        for (uint32_t i = 1; i <= n && i < LS_ZONE_OWNERS; i++) {
                const char *name;
                uint64_t tv;

                if (tracked && !is_among(LS_FIELD(zones, own[i]), t->zones->chain, nchain))
                        continue;
                tv = ls_read_element(names, i, g);
                if (tv == LS_NIL || !(name = ls_read_text(tv, g, buf, &len)))
                        break;
                id = intern(t, id, name, len);
        }
        return id;
}

void ls_zones_close(struct ls_vm *vm)
{
        struct ls_vm_zones *zones = vm->zones;

        vm->zones = NULL;
        if (!vm->lent)
                ls_pages_free(zones, sizeof *zones);
}
