/* One stack from two: native frames around the Lua frames that they belong to. Declared in
 * native.h; called by translate/translate.c.
 *
 * Native frames come innermost first. Where one of them is LuaJIT's interpreter or compiled code,
 * it stands for the Lua frames of its C frame; the record says how many Lua frames there are before
 * those of each C frame. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/native/native.h"

struct mix {
        struct ls_native_process *p;
        const struct ls_native_lua *lua;        /* from the root */
        uint32_t n_lua, next_lua;               /* next: counted from the innermost */
        const uint8_t *cframes;                 /* struct ls_native_cframe, unaligned */
        uint32_t n_cframes, next_cframe;
        uint32_t jit;                           /* 0 = none, or done */
        uint64_t native;                        /* function of the native frame just added, 0 = the
                                                 * last was another */
        size_t n;                               /* locations so far */
};

/* location 0: a Lua frame that another one stands for. */
static void add(struct mix *m, uint32_t location)
{
        if (location)
                m->p->mixed[m->n++] = location;
        m->native = 0;
}

static void add_lua(struct mix *m, uint32_t to)
{
        const struct ls_native_lua *first = &m->lua[m->n_lua - 1 - m->next_lua];

        if (to > m->n_lua)
                to = m->n_lua;
        if (m->next_lua >= to)
                return;
        /* The C function that Lua called is the outermost of the native frames before. */
        if (m->native && m->native == first->addr)
                m->n--;
        if (m->jit)
                add(m, m->jit);
        m->jit = 0;
        for (; m->next_lua < to; m->next_lua++)
                add(m, m->lua[m->n_lua - 1 - m->next_lua].location);
}

/* The Lua frames of all C frames up to this one: they end where those of the next one begin. */
static void add_cframe(struct mix *m, uint64_t cframe)
{
        struct ls_native_cframe c;

        for (; m->next_cframe < m->n_cframes; m->next_cframe++) {
                memcpy(&c, m->cframes + m->next_cframe * sizeof(c), sizeof(c));
                if (c.address > cframe) {
                        add_lua(m, c.frames);
                        return;
                }
        }
        add_lua(m, m->n_lua);
}

static void add_machine_code(struct mix *m)
{
        struct ls_trace_writer *w = m->p->mappings->writer;
        struct ls_function_def def = { .kind = LS_FUNC_PSEUDO };

        if (!m->p->machine_code) {
                def.identity_name = ls_trace_string(w, "[machine code]", 14);
                m->p->machine_code = ls_trace_location(w, ls_trace_function(w, &def), 0);
        }
        add(m, m->p->machine_code);
}

static void add_native(struct mix *m, const struct ls_native_frame *f)
{
        if (f->flags & (LS_NATIVE_LUA_VM | LS_NATIVE_JIT)) {
                if (f->cframe)
                        add_cframe(m, f->cframe);
                else if (!m->n_lua)
                        add_machine_code(m);
                return;
        }
        add(m, f->label);
        m->native = f->label ? f->function : 0;
}

static int grow(void **array, size_t *room, size_t n, size_t size)
{
        void *grown;

        if (n <= *room)
                return 0;
        n += n / 2;
        grown = reallocarray(*array, n, size);
        if (!grown)
                return -ENOMEM;
        *array = grown;
        *room = n;
        return 0;
}

/* Ids of the stack whose locations are in p->mixed; what equals the ring's stack before has its ids
 * already. */
static int intern(struct ls_native_process *p, struct ls_native_ring *ring, uint32_t n,
                  uint32_t *ret_stack)
{
        size_t room = ring->room, room2 = ring->room;
        uint32_t same = 0;

        if (grow((void **)&ring->locations, &room, n, sizeof(uint32_t)) < 0 ||
            grow((void **)&ring->stacks, &room2, n, sizeof(uint32_t)) < 0) {
                ring->depth = 0;
                return -ENOMEM;
        }
        ring->room = (uint32_t)room;
        while (same < n && same < ring->depth && ring->locations[same] == p->mixed[n - 1 - same])
                same++;
        for (uint32_t i = same; i < n; i++) {
                ring->locations[i] = p->mixed[n - 1 - i];
                ring->stacks[i] = ls_trace_stack(p->mappings->writer, i ? ring->stacks[i - 1] : 0,
                                                 ring->locations[i]);
        }
        ring->depth = n;
        *ret_stack = n ? ring->stacks[n - 1] : 0;
        return 0;
}

int ls_native_mix(struct ls_native_process *p, const struct ls_native_frame *frames, size_t n,
                  const void *cframes, uint32_t n_cframes, const struct ls_native_lua *lua,
                  uint32_t n_lua, uint32_t jit, uint32_t *ret_n)
{
        struct mix m = { .p = p,
                         .lua = lua,
                         .n_lua = n_lua,
                         .cframes = cframes,
                         .n_cframes = n_cframes,
                         .jit = jit };

        if (grow((void **)&p->mixed, &p->mixed_room, n + n_lua + 1, sizeof(*p->mixed)) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                add_native(&m, &frames[i]);
        add_lua(&m, n_lua);
        if (m.jit)
                add(&m, m.jit);
        *ret_n = (uint32_t)m.n;
        return 0;
}

int ls_native_sample(struct ls_native_process *p, struct ls_native_ring *ring, const void *record,
                     size_t size, const struct ls_native_lua *lua, uint32_t n_lua, uint32_t jit,
                     uint32_t *ret_stack, enum ls_unwind_end *ret_end)
{
        const struct ls_native_frame *frames;
        struct ls_native head;
        uint32_t n_mixed;
        size_t n;
        int err = ls_native_stack(p, ring, record, size, &frames, &n, ret_end);

        if (err < 0)
                return err;
        memcpy(&head, record, sizeof(head));
        err = ls_native_mix(p, frames, n, (const uint8_t *)record + sizeof(head), head.ncframes,
                            lua, n_lua, jit, &n_mixed);
        return err < 0 ? err : intern(p, ring, n_mixed, ret_stack);
}
