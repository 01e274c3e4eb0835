/* All objects of a process's VMs: see snapshot.h. */
#include "record/watch/snapshot.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsample/handler/tick.h"
#include "record/watch/remote.h"

#define ARENA      (UINT64_C(6) << 30)  /* addresses: the copy, and what is known of its objects */
#define COPY_MOST  (UINT64_C(2) << 30)
#define RANGES     4096u                /* of the process's memory */
#define PIECE      (UINT64_C(1) << 20)  /* bytes that are read at once */
#define PAGE       4096u
#define OBJECT     16u                  /* bytes that each object has at least */
#define TEXT_MOST  60u                  /* of a string that is kept */
#define ENTRIES    (UINT64_C(1) << 28)  /* slots of a table or a stack that are looked at */
#define T_UPVALUE  5u
#define T_TRACE    9u
#define WEAK_KEYS   8u                  /* in the mark of a table, since the last cycle */
#define WEAK_VALUES 16u
#define DATA_LEN   24u                  /* of a userdata: its bytes behind the head */
#define DATA_HEAD  48u
#define STACK_SIZE 88u                  /* of a lua_State: slots of its stack */
#define ENV        16u                  /* of a function or userdata */
#define CDATA_ID   10u                  /* of C data: number of its type */
#define CDATA_VAR  0x80u                /* in its mark: what was allocated is told before it: */
#define CDATA_HEAD 8u                   /* uint16_t offset, bytes beside the value; uint32_t of the
                                         * value */
#define CTYPES     4096u                /* of a global_State: a pointer to the table of C types is
                                         * in it */
#define CTYPE_SIZE 24u                  /* of an entry there: uint32_t info, size; name at 16 */

struct range { uint64_t low, high; const char *copy; };
struct object { uint64_t at; uint32_t type, vm; };

static struct {
        char *arena;
        uint64_t used, most;            /* bytes of it that hold the copy; that an earlier one
                                         * took */
        struct range ranges[RANGES];
        unsigned n_ranges, last;
        struct object *objects;         /* from 1 */
        uint32_t n, room;
        uint32_t *by_place;             /* the object that begins at each word of the copy, 0 = none
                                         * is known */
        uint32_t vm;                    /* whose objects are found */
        struct { uint64_t at, n; uint32_t vm; } ctypes; /* table of C types of a VM */
        uint64_t left;                  /* words of tables and stacks that may be looked at */
        char before[64][LS_G_COLLECTOR_END + 16];       /* of the VMs' state, when the copy began */
} m;

int ls_snapshot_reserve(void)
{
        void *p = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        m.arena = p == MAP_FAILED ? NULL : p;
        return m.arena ? 0 : -errno;
}

/* Private writable memory: VMs are nowhere else. Returns its bytes. */
static uint64_t list_ranges(void)
{
        char line[512], rights[8];
        FILE *f = ls_remote_maps();
        uint64_t bytes = 0;

        m.n_ranges = m.last = 0;
        while (f && fgets(line, sizeof line, f)) {
                unsigned long low, high;

                if (sscanf(line, "%lx-%lx %7s", &low, &high, rights) != 3 ||
                    rights[0] != 'r' || rights[1] != 'w' || rights[3] == 's' ||
                    low >= high || high > UINT64_C(1) << 47 || m.n_ranges == RANGES)
                        continue;
                m.ranges[m.n_ranges++] = (struct range){ low, high, NULL };
                bytes += high - low;
        }
        if (f)
                fclose(f);
        return bytes;
}

void ls_snapshot_prepare(struct ls_now *n)
{
        n->heap_bytes = list_ranges();
        if (n->heap_bytes >= COPY_MOST)
                n->error = -E2BIG;
        else
                madvise(m.arena, n->heap_bytes, 23);    /* MADV_POPULATE_WRITE: faults would make
                                                         * the stop longer */
}

/* What cannot be read is zeros. */
static void copy_range(struct range *r)
{
        char *to = m.arena + m.used;

        r->copy = to;
        for (uint64_t at = r->low; at < r->high; at += PIECE) {
                uint64_t size = r->high - at < PIECE ? r->high - at : PIECE;

                if (!ls_remote_memory(at, to + (at - r->low), size))
                        continue;
                for (uint64_t page = at; page < at + size; page += PAGE)
                        if (ls_remote_memory(page, to + (page - r->low), PAGE))
                                memset(to + (page - r->low), 0, PAGE);
        }
        m.used += r->high - r->low;
}

/* Its allocator, heap, collector and newest object. */
static void read_states(const struct ls_now *n, char (*to)[LS_G_COLLECTOR_END + 16])
{
        for (uint32_t i = 0; i < n->vms && i < 64; i++) {
                uint64_t global = (uintptr_t)atomic_load(&ls_vms[i].global);

                if (ls_remote_memory(global, to[i], LS_G_COLLECTOR_END) ||
                    ls_remote_memory(global + ls_vm_facts.objects_offset,
                                     to[i] + LS_G_COLLECTOR_END, 8))
                        memset(to[i], 0, sizeof to[i]);
        }
}

void ls_snapshot_copy(struct ls_now *n)
{
        static char after[64][LS_G_COLLECTOR_END + 16];

        n->error = 0;
        m.most = m.used > m.most ? m.used : m.most;
        m.used = 0;
        n->heap_bytes = list_ranges();
        if (n->heap_bytes >= COPY_MOST) {
                n->error = -E2BIG;
                return;
        }
        read_states(n, m.before);
        for (unsigned i = 0; i < m.n_ranges; i++)
                copy_range(&m.ranges[i]);
        read_states(n, after);
        if (memcmp(m.before, after, sizeof after))
                n->error = -EAGAIN;
}

/* n bytes of the copy, NULL = there is no such memory. */
static const char *at(uint64_t address, uint64_t n)
{
        const struct range *r = &m.ranges[m.last];
        unsigned low = 0, high = m.n_ranges;

        if (m.n_ranges && address >= r->low && address < r->high)
                return n <= r->high - address ? r->copy + (address - r->low) : NULL;
        while (low < high) {
                unsigned mid = (low + high) / 2;

                if (m.ranges[mid].high <= address)
                        low = mid + 1;
                else
                        high = mid;
        }
        if (low == m.n_ranges || address < m.ranges[low].low || n > m.ranges[low].high - address)
                return NULL;
        m.last = low;
        return m.ranges[low].copy + (address - m.ranges[low].low);
}

static uint64_t word(uint64_t address, uint64_t offset)
{
        const char *p = at(address + offset, 8);

        return p ? LS_READ_COPY(uint64_t, p, 0) : 0;
}

static uint32_t half(uint64_t address, uint64_t offset)
{
        const char *p = at(address + offset, 4);

        return p ? LS_READ_COPY(uint32_t, p, 0) : 0;
}

static uint8_t byte(uint64_t address, uint64_t offset)
{
        const char *p = at(address + offset, 1);

        return p ? (uint8_t)*p : 0;
}

/* The object of this type, which is found by that; 0 = there is none. */
static uint32_t object(uint64_t address, unsigned type)
{
        const char *p = address && !(address & 7) ? at(address, OBJECT) : NULL;
        uint32_t *slot;

        if (!p || LS_READ_COPY(uint8_t, p, LS_GC_TYPE) != type || type < LS_T_STR ||
            type > LS_T_UDATA)
                return 0;
        slot = &m.by_place[(p - m.arena) / 8];
        if (!*slot) {
                if (m.n + 1 >= m.room)
                        return 0;
                *slot = ++m.n;
                m.objects[m.n] = (struct object){ address, type, m.vm };
        }
        return *slot;
}

static uint32_t object_of_any(uint64_t address)
{
        return object(address, byte(address, LS_GC_TYPE));
}

static uint32_t object_of_value(uint64_t tv)
{
        unsigned type = (unsigned)(~(tv >> 47) & 0x1ffff);

        return type >= LS_T_STR && type <= LS_T_UDATA ? object(tv & ((UINT64_C(1) << 47) - 1), type)
                                                      : 0;
}

/* How an object holds another: luasample-heap(5) has the same numbers. */
enum {
        BY_INDEX,
        BY_NAME,
        BY_KEY,
        AS_KEY,
        BY_METATABLE,
        BY_ENV,
        BY_UPVALUE,
        BY_PROTO,
        BY_CONSTANT,
        BY_CHUNK,
        BY_STACK,
        BY_VALUE
};

typedef void (*edge_fn)(void *ctx, unsigned how, uint64_t which, uint32_t target);

static void edge(edge_fn fn, void *ctx, unsigned how, uint64_t which, uint32_t target)
{
        if (target)
                fn(ctx, how, which, target);
}

#define NUMBERS 0x1fff2u                /* tags below are of numbers: doubles */

/* 1 when a key is a whole number, such as those of an array. */
static int whole(uint64_t tv, uint64_t *ret)
{
        double d;

        memcpy(&d, &tv, sizeof d);
        if (tv >> 47 >= NUMBERS || !(d >= 0 && d < UINT32_MAX / 2))
                return 0;
        *ret = (uint64_t)d;
        return (double)*ret == d;
}

/* n slots of so many bytes when the memory at p has them, else 0: lies. Each word of the copy is
 * one object's: objects that claim the same again and again come to an end. */
static uint64_t in_memory(uint64_t p, uint64_t n, unsigned size)
{
        if (!n || n >= ENTRIES || !at(p, n * size) || n * size / 8 > m.left)
                return 0;
        m.left -= n * size / 8;
        return n;
}

static void each_of_table(uint64_t t, edge_fn fn, void *ctx)
{
        uint8_t weak = byte(t, LS_GC_MARKED);
        uint64_t array = word(t, LS_TAB_ARRAY), node = word(t, LS_TAB_NODE);
        uint64_t n = weak & WEAK_VALUES ? 0 : in_memory(array, half(t, LS_TAB_ASIZE), 8);
        uint64_t hmask = half(t, LS_TAB_HMASK);
        uint64_t nodes = hmask ? in_memory(node, hmask + 1, LS_NODE_SIZE) : 0;

        edge(fn, ctx, BY_METATABLE, 0, object(word(t, LS_TAB_META), LS_T_TAB));
        for (uint64_t i = 0; i < n; i++)
                edge(fn, ctx, BY_INDEX, i, object_of_value(word(array, i * 8)));
        for (uint64_t i = 0; i < nodes; i++) {
                uint64_t value = word(node, i * LS_NODE_SIZE + LS_NODE_VAL),
                         key = word(node, i * LS_NODE_SIZE + LS_NODE_KEY);
                uint64_t index;
                uint32_t name;

                if (value == ~UINT64_C(0))      /* nil: its key may be gone */
                        continue;
                name = object_of_value(key);
                if (!(weak & WEAK_KEYS))
                        edge(fn, ctx, AS_KEY, 0, name);
                if (!(weak & WEAK_VALUES) && whole(key, &index))
                        edge(fn, ctx, BY_INDEX, index, object_of_value(value));
                else if (!(weak & WEAK_VALUES))
                        edge(fn, ctx, name && m.objects[name].type == LS_T_STR ? BY_NAME : BY_KEY,
                             name, object_of_value(value));
        }
}

static void each_of_function(uint64_t f, edge_fn fn, void *ctx)
{
        int is_lua = byte(f, LS_FN_FFID) == LS_FFID_LUA;
        unsigned n = byte(f, LS_FN_NUPVALUES);

        edge(fn, ctx, BY_ENV, 0, object(word(f, ENV), LS_T_TAB));
        if (is_lua)
                edge(fn, ctx, BY_PROTO, 0, object(word(f, LS_FN_PC) - LS_PT_SIZE, LS_T_PROTO));
        for (unsigned i = 0; i < n; i++)
                edge(fn, ctx, BY_UPVALUE, i,
                     is_lua ? object(word(f, LS_FN_UPVALUES + 8 * i), T_UPVALUE)
                            : object_of_value(word(f, LS_FN_UPVALUES + 8 + 8 * i)));
}

static void each_of_proto(uint64_t p, edge_fn fn, void *ctx)
{
        uint64_t k = word(p, LS_PT_K), n = half(p, LS_PT_SIZEKGC);

        n = n < ENTRIES && k >= 8 * n ? in_memory(k - 8 * n, n, 8) : 0;
        edge(fn, ctx, BY_CHUNK, 0, object(word(p, LS_PT_CHUNKNAME), LS_T_STR));
        for (uint64_t i = 0; i < n; i++)
                edge(fn, ctx, BY_CONSTANT, i, object_of_any(word(k - 8 * (i + 1), 0)));
}

static void each_of_thread(uint64_t L, edge_fn fn, void *ctx)
{
        uint64_t stack = word(L, LS_L_STACK), top = word(L, LS_L_TOP);
        uint64_t n = top > stack ? in_memory(stack, (top - stack) / 8, 8) : 0;

        edge(fn, ctx, BY_ENV, 0, object(word(L, LS_L_ENV), LS_T_TAB));
        for (uint64_t i = 0; i < n; i++)
                edge(fn, ctx, BY_STACK, i, object_of_value(word(stack, i * 8)));
}

static void each_edge(uint32_t id, edge_fn fn, void *ctx)
{
        uint64_t o = m.objects[id].at;

        switch (m.objects[id].type) {
        case LS_T_TAB:
                each_of_table(o, fn, ctx);
                break;
        case LS_T_FUNC:
                each_of_function(o, fn, ctx);
                break;
        case LS_T_PROTO:
                each_of_proto(o, fn, ctx);
                break;
        case LS_T_THREAD:
                each_of_thread(o, fn, ctx);
                break;
        case T_UPVALUE:
                edge(fn, ctx, BY_VALUE, 0, object_of_value(word(word(o, LS_UV_VALUE), 0)));
                break;
        case LS_T_UDATA:
                edge(fn, ctx, BY_ENV, 0, object(word(o, ENV), LS_T_TAB));
                edge(fn, ctx, BY_METATABLE, 0, object(word(o, LS_UDATA_META), LS_T_TAB));
        }
}

/* What of these bytes lies in memory. */
static uint64_t part(uint64_t p, uint64_t bytes)
{
        return bytes < UINT64_C(1) << 40 && at(p, bytes) ? bytes : 0;
}

/* The C types of this VM: what points to them knows the VM, too. */
static void find_ctypes(uint32_t vm)
{
        uint64_t global = 0;

        for (uint32_t i = 0; i < LS_VMS_MOST && !global; i++)
                if (ls_vms[i].vm_id == vm)
                        global = (uintptr_t)atomic_load(&ls_vms[i].global);
        m.ctypes.vm = vm;
        m.ctypes.n = 0;
        for (unsigned i = 0; global && i < CTYPES; i += 8) {
                uint64_t state = word(global, i), n = half(state, 8);

                if (!state || word(state, 24) != global || n > half(state, 12) || n > UINT16_MAX ||
                    !at(word(state, 0), n * CTYPE_SIZE))
                        continue;
                m.ctypes.at = word(state, 0);
                m.ctypes.n = n;
                return;
        }
}

/* The type of C data behind its attributes, 0 = not known. */
static uint64_t ctype_of(const struct object *o)
{
        uint32_t id = half(o->at, CDATA_ID - 2) >> 16, info = 8u << 28;
        uint64_t type = 0;

        if (m.ctypes.vm != o->vm)
                find_ctypes(o->vm);
        for (int i = 0; i < 16 && info >> 28 == 8; i++, id = info & 0xffff) {
                if (id >= m.ctypes.n)
                        return 0;
                type = m.ctypes.at + (uint64_t)id * CTYPE_SIZE;
                info = half(type, 0);
        }
        return type;
}

/* Bytes of C data. What has no size of its own (a function) is a pointer. */
static uint64_t size_of_cdata(const struct object *o)
{
        uint64_t type, size, head = o->at - CDATA_HEAD;

        if (byte(o->at, LS_GC_MARKED) & CDATA_VAR) {
                size = (half(head, 0) >> 16) + (uint64_t)half(head, 4);
                return half(head, 4) && part(o->at, LS_CDATA_VALUE + half(head, 4)) ? size
                                                                            : LS_CDATA_VALUE;
        }
        type = ctype_of(o);
        size = type && half(type, 0) >> 28 <= 5 ? half(type, 4) : 8;
        return part(o->at, LS_CDATA_VALUE + size) ? LS_CDATA_VALUE + size : LS_CDATA_VALUE;
}

/* Bytes of an object, with what it alone has. Of traces nothing is known. */
static uint64_t size_of(const struct object *o)
{
        uint64_t n, t = o->at;

        switch (o->type) {
        case LS_T_STR:
                return LS_STR_DATA + (part(t, LS_STR_DATA + (uint64_t)half(t, LS_STR_LEN))
                                              ? ((uint64_t)half(t, LS_STR_LEN) + 4) / 4 * 4
                                              : 0);
        case T_UPVALUE:
                return LS_UV_VALUE + 16;
        case LS_T_THREAD:
                return 96 + part(word(t, LS_L_STACK), 8 * (uint64_t)half(t, STACK_SIZE));
        case LS_T_PROTO:
                return part(t, half(t, LS_PT_SIZEPT));
        case LS_T_FUNC:
                return LS_FN_UPVALUES + 8 * (uint64_t)byte(t, LS_FN_NUPVALUES) +
                       (byte(t, LS_FN_FFID) == LS_FFID_LUA ? 0 : 8);
        case LS_T_CDATA:
                return size_of_cdata(o);
        case LS_T_TAB:
                n = half(t, LS_TAB_HMASK)
                            ? part(word(t, LS_TAB_NODE),
                                   LS_NODE_SIZE * ((uint64_t)half(t, LS_TAB_HMASK) + 1))
                            : 0;
                return 64 + n +
                       (half(t, LS_TAB_ASIZE)
                                ? part(word(t, LS_TAB_ARRAY), 8 * (uint64_t)half(t, LS_TAB_ASIZE))
                                : 0);
        case LS_T_UDATA:
                return DATA_HEAD + part(t, half(t, DATA_LEN));
        }
        return 0;
}

static void discover(void *ctx, unsigned how, uint64_t which, uint32_t target)
{
        (void)ctx, (void)how, (void)which, (void)target;        /* object() has noted it */
}

/* The list of all objects, then what they hold: strings are in no list. Each is taken once; a list
 * that leads into itself comes to where it was. */
static void find_objects(const struct ls_now *n)
{
        uint64_t pages = (m.used > m.most ? m.used : m.most) + PAGE;    /* zeros begin there */

        m.room =
                (uint32_t)(m.used / OBJECT < UINT32_MAX / 4 ? m.used / OBJECT + 2 : UINT32_MAX / 4);
        m.objects = (struct object *)(void *)(m.arena + (pages & ~(uint64_t)(PAGE - 1)));
        m.by_place = (uint32_t *)(void *)(m.objects + m.room);
        m.n = 0;
        m.ctypes.vm = 0;
        m.left = m.used / 8;
        for (uint32_t i = 0; i < n->vms; i++) {
                uint64_t global = (uintptr_t)atomic_load(&ls_vms[i].global),
                         o = word(global, ls_vm_facts.objects_offset);
                uint64_t mark = 0;      /* where it was at the last power of two of steps */

                m.vm = ls_vms[i].vm_id;
                object((uintptr_t)ls_vms[i].main, LS_T_THREAD);
                object_of_value(word(global, ls_vm_facts.registry_offset));
                for (uint64_t steps = 1; o != mark && object_of_any(o); o = word(o, 0), steps++)
                        if (!(steps & (steps - 1)))
                                mark = o;
        }
        for (uint32_t i = 1; i <= m.n; i++) {
                m.vm = m.objects[i].vm;
                each_edge(i, discover, NULL);
        }
}

static struct { char bytes[1 << 16]; size_t n; int fd, error; } out;

static void flush(void)
{
        for (size_t done = 0; done < out.n && !out.error;) {
                ssize_t r = write(out.fd, out.bytes + done, out.n - done);

                if (r < 0 && errno != EINTR)
                        out.error = -errno;
                done += r > 0 ? (size_t)r : 0;
        }
        out.n = 0;
}

static void put(const char *text, size_t n)
{
        if (out.n + n > sizeof out.bytes)
                flush();
        memcpy(out.bytes + out.n, text, n);
        out.n += n;
}

static void put_number(uint64_t n)
{
        char digits[24], *p = digits + sizeof digits;

        do
                *--p = (char)('0' + n % 10);
        while (n /= 10);
        put(p, (size_t)(digits + sizeof digits - p));
}

/* A byte is a character, as Latin-1 has them: any bytes are text then. */
static void put_text(const char *s, size_t n)
{
        char code[8];

        put("\"", 1);
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)s[i];

                if (c < 32 || c > 126 || c == '"' || c == '\\')
                        put(code, (size_t)snprintf(code, sizeof code, "\\u%04x", c));
                else
                        put(s + i, 1);
        }
        put("\"", 1);
}

/* The string that is the name of a struct or enum, 0 = it has none. */
static uint64_t name_of_ctype(const struct object *o)
{
        uint64_t type = ctype_of(o), name = type ? word(type, 16) : 0;

        return name && byte(name, LS_GC_TYPE) == LS_T_STR ? name : 0;
}

/* The text of a string; the name of a C type; where a function was defined; nothing of others. */
static void put_text_of(const struct object *o)
{
        uint64_t s = o->at, pt = o->type == LS_T_PROTO ? o->at : word(o->at, LS_FN_PC) - LS_PT_SIZE;
        char text[TEXT_MOST + 24];
        uint32_t len;
        const char *p;
        size_t n;

        if (o->type == LS_T_FUNC && byte(o->at, LS_FN_FFID) != LS_FFID_LUA) {
                put_text("[C]", 3);
                return;
        }
        if (o->type == LS_T_PROTO || o->type == LS_T_FUNC)
                s = word(pt, LS_PT_CHUNKNAME);
        else if (o->type == LS_T_CDATA)
                s = name_of_ctype(o);
        else if (o->type != LS_T_STR)
                s = 0;
        len = half(s, LS_STR_LEN);
        len = len < TEXT_MOST ? len : TEXT_MOST;
        p = s ? at(s + LS_STR_DATA, len) : NULL;
        n = p ? len : 0;
        if (n)
                memcpy(text, p, n);
        if (p && o->type != LS_T_STR && o->type != LS_T_CDATA)
                n += (size_t)snprintf(text + n, sizeof text - n, ":%u", half(pt, LS_PT_FIRSTLINE));
        put_text(text, n);
}

static void put_edge(void *ctx, unsigned how, uint64_t which, uint32_t target)
{
        int *more = ctx;

        put(",", *more);
        *more = 1;
        put_number(how);
        put(",", 1);
        put_number(which);
        put(",", 1);
        put_number(target);
}

static void put_object(uint32_t id)
{
        const struct object *o = &m.objects[id];
        int more = 0;

        put(id > 1 ? ",\n[" : "[", id > 1 ? 3 : 1);
        put_number(o->at);
        put(",", 1);
        put_number(o->type);
        put(",", 1);
        put_number(size_of(o));
        put(",", 1);
        put_number(o->vm);
        put(",", 1);
        put_text_of(o);
        put(",[", 2);
        each_edge(id, put_edge, &more);
        put("]]", 2);
}

static void put_vm(uint32_t i)
{
        uint64_t global = (uintptr_t)atomic_load(&ls_vms[i].global),
                 main = (uintptr_t)ls_vms[i].main;

        put(i ? ",\n[" : "[", i ? 3 : 1);
        put_number(ls_vms[i].vm_id);
        put(",", 1);
        put_number(ls_vm_facts.collector ? word(global, LS_G_TOTAL) : 0);
        put(",", 1);
        put_number(object(main, LS_T_THREAD));
        put(",", 1);
        put_number(object_of_value(word(global, ls_vm_facts.registry_offset)));
        put(",", 1);
        put_number(object(word(main, LS_L_ENV), LS_T_TAB));
        put("]", 1);
}

int ls_snapshot_write(const struct ls_now *n, int fd)
{
        static const char head[] = "\"vms\": [\n", middle[] = "],\n\"objects\": [\n";

        out.fd = fd;
        find_objects(n);
        put(head, sizeof head - 1);
        for (uint32_t i = 0; i < n->vms; i++)
                put_vm(i);
        put(middle, sizeof middle - 1);
        m.left = m.used / 8;
        for (uint32_t i = 1; i <= m.n && !out.error; i++)
                put_object(i);
        put("]}\n", 3);
        flush();
        return out.error;
}
