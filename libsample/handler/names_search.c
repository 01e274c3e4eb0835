/* Names by path from the globals and from package.loaded: "string.format", "proxy.test.Suite.run";
 * of C functions also from lists, "package.loaders[2]", and from the metatables of userdata, which
 * the registry has: "tcp{client}.send". A breadth-first walk over tables in small steps. Between
 * two steps the program may change or free any table, so a step begins with a check of the links
 * from the root to the table where the last one stopped. */

#include "libsample/handler/names_search.h"

#include <stdatomic.h>

#include "libsample/handler/builtins.h"
#include "libsample/handler/clock.h"
#include "libsample/handler/functions.h"
#include "libsample/handler/sampler.h"
#include "formats/wire/mix.h"
#include "libsample/pages.h"
#include "libsample/rawtab.h"

#define QUEUE_MOST   16384u             /* tables of one search */
#define PATH_MOST    12                 /* tables from the root */
#define FIELDS_MOST                                                                                \
        1024u /* a larger table holds data: its functions count, its tables are not entered */
#define NAME_MOST    512
#define LIST_MOST    16u                /* a longer list holds data */
#define METHODS      2                  /* tables from the registry: a metatable and its __index */
#define VIA_META     UINT32_MAX         /* link: the metatable, not an entry */

struct table {
        const char *table;
        uint32_t parent;                /* index in the queue; roots have themselves */
        uint32_t node;                  /* where the parent holds it, or VIA_META */
};

struct ls_names {
        const char *global;             /* VM of this search */
        struct table *queue;
        uint32_t *seen;                 /* hash of generation << 16 | queue position, twice the
                                         * queue's room */
        uint32_t generation;            /* of this search, from 1: entries of older ones are free
                                         * slots */
        uint32_t head, tail;            /* being looked at; end */
        uint32_t roots;                 /* so many are the first in the queue */
        uint32_t registry;              /* which of them is the registry; UINT32_MAX: none */
        uint32_t node;                  /* next entry of the table at head */
        uint32_t functions_at_start;    /* functions known when the last search began */
        int running;
};

struct ls_names *ls_names_new(void)
{
        return ls_pages_new(sizeof(struct ls_names));
}

void ls_names_free(struct ls_names *search)
{
        if (!search)
                return;
        ls_pages_free(search->queue, QUEUE_MOST * sizeof *search->queue);
        ls_pages_free(search->seen, 2 * QUEUE_MOST * sizeof *search->seen);
        ls_pages_free(search, sizeof *search);
}

static uint32_t *seen_slot(struct ls_names *search, const char *table)
{
        size_t i = (size_t)(ls_mix((uint64_t)(uintptr_t)table) >> 32);

        for (;; i++) {
                uint32_t *s = &search->seen[i & (2 * QUEUE_MOST - 1)];

                if (*s >> 16 != search->generation || search->queue[*s & 0xffff].table == table)
                        return s;
        }
}

static void enqueue(struct ls_names *search, const char *table, uint32_t parent, uint32_t node)
{
        uint32_t *seen;

        if (search->tail == QUEUE_MOST)
                return;
        seen = seen_slot(search, table);
        if (*seen >> 16 == search->generation)
                return;
        *seen = search->generation << 16 | search->tail;
        search->queue[search->tail++] = (struct table){ table, parent, node };
}

/* The key is looked at too: after a rehash the table may be held there by one that is no string. */
static int link_holds(const struct ls_names *search, const struct table *t)
{
        const char *parent = search->queue[t->parent].table, *node;

        if (t->node == VIA_META)
                return ls_tab_meta(parent) == t->table;
        if (t->node >= ls_tab_nodes(parent))
                return 0;
        node = ls_tab_node(parent, t->node);
        return ls_node_val(node) == ls_tagged(t->table, LS_T_TAB) &&
               ls_istype(ls_node_key(node), LS_T_STR);
}

/* Follows the path from the root down to position i: each table is known to live before it is
 * read. */
static int still_there(const struct ls_names *search, uint32_t i)
{
        uint32_t path[PATH_MOST + 2];
        int n = 0;

        for (; search->queue[i].parent != i; i = search->queue[i].parent) {
                if (n == PATH_MOST + 2)
                        return 0;
                path[n++] = i;
        }
        while (n--)
                if (!link_holds(search, &search->queue[path[n]]))
                        return 0;
        return 1;
}

static uint32_t append(char *name, uint32_t len, const char *s, uint32_t n)
{
        if (len && len < NAME_MOST)
                name[len++] = '.';
        if (n > NAME_MOST - len)
                n = NAME_MOST - len;
        memcpy(name + len, ls_at(s, n), n);
        return len + n;
}

/* A metatable: of a table that was found, or of a type of userdata, which the registry has under
 * the type's name. */
static int is_meta(const struct ls_names *search, uint32_t i)
{
        const struct table *t = &search->queue[i];

        return t->node == VIA_META || (t->parent != i && t->parent == search->registry);
}

/* Path of the table at position i. A metatable and its __index have the name of their object. */
static uint32_t path_name(const struct ls_names *search, uint32_t i, char *name)
{
        const struct table *t = &search->queue[i];

        if (t->parent == i)
                return 0;
        uint32_t len = path_name(search, t->parent, name);

        if (t->node == VIA_META)
                return len;
        const char *key =
                ls_gcptr(ls_node_key(ls_tab_node(search->queue[t->parent].table, t->node)));

        if (is_meta(search, t->parent) && ls_str_len(key) == 7 &&
            !memcmp(ls_at(ls_str_data(key), 7), "__index", 7))
                return len;
        return append(name, len, ls_str_data(key), ls_str_len(key));
}

static void name_function(struct ls_thread *t, struct ls_fn *fn, uint32_t position, const char *key)
{
        char name[NAME_MOST];
        uint32_t len = path_name(t->names, position, name);

        len = append(name, len, ls_str_data(key), ls_str_len(key));
        ls_function_name(t, fn, LS_NAME_GLOBAL, name, len);
}

/* Tables between that at position i and its root, which is told. */
static int depth_of(const struct ls_names *search, uint32_t i, uint32_t *ret_root)
{
        int depth = 0;

        for (; search->queue[i].parent != i; i = search->queue[i].parent)
                depth++;
        *ret_root = i;
        return depth;
}

static int is_c(const char *fn)
{
        return LS_READ(uint8_t, fn, LS_FN_FFID) == LS_FFID_C;
}

/* C functions in a list: they have no other name. */
static void look_at_list(struct ls_thread *t, uint32_t position)
{
        const char *table = t->names->queue[position].table;
        uint32_t n = LS_READ(uint32_t, table, LS_TAB_ASIZE);

        for (uint32_t i = 1; n <= LIST_MOST && i < n; i++) {
                uint64_t val = ls_tab_geti(table, i);
                char name[NAME_MOST + 4];
                struct ls_fn *fn;
                uint32_t len;

                if (!ls_istype(val, LS_T_FUNC) || !is_c(ls_gcptr(val)) ||
                    !(fn = ls_function_find(t, ls_gcptr(val))) || fn->rank >= LS_NAME_GLOBAL)
                        continue;
                len = path_name(t->names, position, name);
                name[len++] = '[';
                if (i >= 10)
                        name[len++] = (char)('0' + i / 10);
                name[len++] = (char)('0' + i % 10);
                name[len++] = ']';
                ls_function_name(t, fn, LS_NAME_GLOBAL, name, len);
        }
}

/* methods: of userdata, where only C functions get names. */
static void look_at(struct ls_thread *t, uint32_t position, uint32_t node, int deep, int methods)
{
        struct ls_names *search = t->names;
        const char *n = ls_tab_node(search->queue[position].table, node);
        uint64_t key = ls_node_key(n), val = ls_node_val(n);

        if (!ls_istype(key, LS_T_STR))
                return;
        if (ls_istype(val, LS_T_FUNC)) {
                struct ls_fn *fn =
                        methods && !is_c(ls_gcptr(val)) ? NULL : ls_function_find(t, ls_gcptr(val));

                if (fn && fn->rank < LS_NAME_GLOBAL)
                        name_function(t, fn, position, ls_gcptr(key));
        } else if (ls_istype(val, LS_T_TAB) && !deep) {
                enqueue(search, ls_gcptr(val), position, node);
        }
}

static const char *loaded_table(const char *globals)
{
        uint64_t package = ls_tab_get(globals, "package", 7), loaded;

        if (!ls_istype(package, LS_T_TAB))
                return NULL;
        loaded = ls_tab_get(ls_gcptr(package), "loaded", 6);
        return ls_istype(loaded, LS_T_TAB) ? ls_gcptr(loaded) : NULL;
}

static const char *globals_of(const lua_State *L)
{
        const char *g = LS_READ(const char *, L, LS_L_GLREF);

        return LS_READ(const char *, LS_READ(const char *, g, ls_vm_facts.main_offset), LS_L_ENV);
}

static const char *registry_of(const lua_State *L)
{
        const char *g = LS_READ(const char *, L, LS_L_GLREF);
        uint64_t registry = ls_vm_facts.registry_offset
                                    ? LS_READ(uint64_t, g, ls_vm_facts.registry_offset)
                                    : LS_NIL;

        return ls_istype(registry, LS_T_TAB) ? ls_gcptr(registry) : NULL;
}

/* The roots go first, so that package.loaded is not reached as a field of package. */
static int begin(struct ls_thread *t, const lua_State *L)
{
        struct ls_names *search = t->names;
        const char *globals = globals_of(L), *loaded = loaded_table(globals),
                   *registry = registry_of(L);

        if (!search->queue) {
                search->queue = ls_pages_new(QUEUE_MOST * sizeof *search->queue);
                search->seen = ls_pages_new(2 * QUEUE_MOST * sizeof *search->seen);
        }
        if (!search->queue || !search->seen)
                return -1;
        if (++search->generation == 1u << 16) {
                memset(search->seen, 0, 2 * QUEUE_MOST * sizeof *search->seen);
                search->generation = 1;
        }
        search->head = search->tail = search->node = 0;
        enqueue(search, globals, 0, 0);
        if (loaded)
                enqueue(search, loaded, search->tail, 0);
        search->registry = registry ? search->tail : UINT32_MAX;
        if (registry)
                enqueue(search, registry, search->tail, 0);
        search->roots = search->tail;
        search->functions_at_start = ls_functions_count(t);
        search->global = LS_READ(const char *, L, LS_L_GLREF);
        search->running = 1;
        return 0;
}

/* The roots are read anew: the program may replace them. */
static int roots_hold(const struct ls_names *search, const lua_State *L)
{
        const char *globals = globals_of(L);
        const char *const now[] = { globals, loaded_table(globals), registry_of(L) };

        for (uint32_t i = 0, at = 0; i < search->roots; i++, at++) {
                while (at < 3 && now[at] != search->queue[i].table)
                        at++;
                if (at == 3)
                        return 0;
        }
        return 1;
}

void ls_names_search(struct ls_thread *t, const lua_State *L, uint64_t budget_ns)
{
        struct ls_names *search = t->names;
        uint64_t end = ls_now_ns() + budget_ns;
        uint32_t steps = 0;

        if ((!search->running || search->global != LS_READ(const char *, L, LS_L_GLREF) ||
             !roots_hold(search, L)) &&
            begin(t, L))
                return;
        for (; search->head < search->tail; search->head++, search->node = 0) {
                if (++steps % 64 == 0 && ls_now_ns() > end)
                        return;
                if (!still_there(search, search->head))
                        continue;
                const char *table = search->queue[search->head].table;
                uint32_t root;
                int depth = depth_of(search, search->head, &root),
                    methods = root == search->registry;
                int deep = depth >= (methods ? METHODS : PATH_MOST) ||
                           ((search->head >= search->roots || methods) &&
                            ls_tab_nodes(table) > FIELDS_MOST);

                if (search->node == 0 && ls_tab_meta(table) && !deep && !methods)
                        enqueue(search, ls_tab_meta(table), search->head, VIA_META);
                if (search->node == 0 && search->head >= search->roots && !methods)
                        look_at_list(t, search->head);
                for (; search->node < ls_tab_nodes(table); search->node++) {
                        if (++steps % 64 == 0 && ls_now_ns() > end)
                                return;
                        look_at(t, search->head, search->node, deep, methods);
                }
        }
        search->running = 0;
}

int ls_names_wanted(const struct ls_thread *t)
{
        const struct ls_names *search = t->names;

        return search->running ||
               (ls_functions_unnamed(t) && ls_functions_count(t) > search->functions_at_start);
}

static void note_library(const char *t, const char *prefix, size_t prefix_len)
{
        uint32_t n = ls_tab_nodes(t);

        for (uint32_t i = 0; n <= LS_RAWTAB_MOST && i < n; i++) {
                uint64_t key = ls_node_key(ls_tab_node(t, i)), val = ls_node_val(ls_tab_node(t, i));

                if (ls_istype(key, LS_T_STR) && ls_istype(val, LS_T_FUNC))
                        ls_builtin_note(LS_READ(uint8_t, ls_gcptr(val), LS_FN_FFID), prefix,
                                        prefix_len, ls_gcptr(key));
        }
}

/* The libraries as the program sees them, then those that only package.loaded has, then the methods
 * of files. */
void ls_names_builtins(const lua_State *L)
{
        static atomic_flag busy = ATOMIC_FLAG_INIT;
        static const char *const libraries[] = {
                "string",  "table",       "math",      "io",      "os",  "coroutine",
                "debug",   "bit",         "jit",       "package", "ffi", "jit.util",
                "jit.opt", "jit.profile", "ffi.cdata", "ffi.clib"
        }; /* these two: in the probe's VM */
        const char *globals = globals_of(L), *loaded = loaded_table(globals);

        if (atomic_flag_test_and_set(&busy))
                return;
        note_library(globals, "", 0);
        for (unsigned i = 0; i < sizeof libraries / sizeof *libraries; i++) {
                size_t len = strlen(libraries[i]);
                uint64_t t = ls_tab_get(globals, libraries[i], len);

                if (!ls_istype(t, LS_T_TAB) && loaded)
                        t = ls_tab_get(loaded, libraries[i], len);
                if (ls_istype(t, LS_T_TAB))
                        note_library(ls_gcptr(t), libraries[i], len);
                if (i == 3 && ls_istype(t, LS_T_TAB)) {
                        uint64_t out = ls_tab_get(ls_gcptr(t), "stdout", 6);

                        if (ls_istype(out, LS_T_UDATA) &&
                            LS_READ(const char *, ls_gcptr(out), LS_UDATA_META))
                                note_library(LS_READ(const char *, ls_gcptr(out), LS_UDATA_META),
                                             "file", 4);
                }
        }
        ls_builtin_note_aux();
        atomic_flag_clear(&busy);
}
