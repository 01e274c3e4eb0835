/* Reads Lua tables raw: no metamethod, no allocation, no hash function needed. Used by name
 * searches and zones; normal context on the sampled thread, with a verified layout (probe.c). */
#ifndef LS_LIBSAMPLE_RAWTAB_H
#define LS_LIBSAMPLE_RAWTAB_H

#include "libsample/layout.h"

/* Tables larger than this are not searched for a key: it would take too long. */
#define LS_RAWTAB_MOST 4096u

static inline uint32_t ls_tab_nodes(const char *t)
{
        return LS_READ(uint32_t, t, LS_TAB_HMASK) + 1;
}
static inline const char *ls_tab_node(const char *t, uint32_t i)
{
        return LS_READ(const char *, t, LS_TAB_NODE) + (size_t)i * LS_NODE_SIZE;
}
static inline uint64_t ls_node_val(const char *n) { return LS_READ(uint64_t, n, LS_NODE_VAL); }
static inline uint64_t ls_node_key(const char *n) { return LS_READ(uint64_t, n, LS_NODE_KEY); }

#define LS_NIL (~UINT64_C(0))

/* Value at a string key, nil when absent or when the table is too large to search. The key of an
 * entry whose value is nil may be a string that was freed: it is not read. */
static inline uint64_t ls_tab_get(const char *t, const char *key, size_t len)
{
        uint32_t n = ls_tab_nodes(t);

        for (uint32_t i = 0; n <= LS_RAWTAB_MOST && i < n; i++) {
                uint64_t k = ls_node_key(ls_tab_node(t, i));

                if (ls_node_val(ls_tab_node(t, i)) == LS_NIL || !ls_istype(k, LS_T_STR))
                        continue;
                if (ls_str_len(ls_gcptr(k)) == len &&
                    !memcmp(ls_at(ls_str_data(ls_gcptr(k)), len), key, len))
                        return ls_node_val(ls_tab_node(t, i));
        }
        return LS_NIL;
}

/* Value at an integer key, nil when absent. */
static inline uint64_t ls_tab_geti(const char *t, uint32_t key)
{
        uint32_t n = ls_tab_nodes(t);
        double number = key;
        uint64_t bits;

        if (key < LS_READ(uint32_t, t, LS_TAB_ASIZE))
                return LS_READ(uint64_t, LS_READ(const char *, t, LS_TAB_ARRAY), 8 * (size_t)key);
        memcpy(&bits, &number, 8);
        for (uint32_t i = 0; n <= LS_RAWTAB_MOST && i < n; i++)
                if (ls_node_key(ls_tab_node(t, i)) == bits)
                        return ls_node_val(ls_tab_node(t, i));
        return LS_NIL;
}

/* Metatable, NULL = none. */
static inline const char *ls_tab_meta(const char *t)
{
        return LS_READ(const char *, t, LS_TAB_META);
}

#endif
