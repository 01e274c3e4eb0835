/* Native stacks of a process: see native.h. */
#include "record/native/native.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/worker/worker.h"

#define MODULES_MAX 512u               /* each holds a descriptor of the worker's */
#define STACK_MAX (1u << 20)            /* bytes of a native stack, whatever a record says */
#define CFRAMES_MAX 256u /* beyond these, stacks are not followed through compiled code */

struct module {
        char *path;
        uint8_t build_id[32];
        uint8_t build_id_len;
        struct ls_worker_file file;
};

struct ls_native_modules {
        struct module *list[MODULES_MAX];       /* number 0 = index 0 and so on; a range has number
                                                 * + 1 */
        uint32_t n;
};

static int same_module(const struct module *m, const struct ls_map_range *r)
{
        return m->build_id_len == r->build_id_len &&
               !memcmp(m->build_id, r->build_id, r->build_id_len) && !strcmp(m->path, r->path);
}

/* Finds or opens the file of a range. Returns its number + 1, or 0. */
static uint32_t module_of(struct ls_native_process *p, const struct ls_map_range *r)
{
        struct ls_native_modules *ms = p->modules;
        struct module *m;

        for (uint32_t i = 0; i < ms->n; i++)
                if (same_module(ms->list[i], r))
                        return i + 1;
        m = ms->n < MODULES_MAX ? calloc(1, sizeof(*m)) : NULL;
        if (!m)
                return 0;
        m->build_id_len = r->build_id_len;
        memcpy(m->build_id, r->build_id, r->build_id_len);
        m->path = strdup(r->path);
        if (!m->path) {
                free(m);
                return 0;
        }
        m->file = (struct ls_worker_file){ .path = m->path,
                                           .build_id = m->build_id,
                                           .build_id_len = m->build_id_len,
                                           .pid = p->mappings->pid };
        ms->list[ms->n] = m;
        return ++ms->n;
}

static int find(void *ctx, uint64_t pc, struct ls_unwind_place *ret_place)
{
        struct ls_native_process *p = ctx;
        int i = ls_mappings_find(p->mappings, pc);
        struct ls_map_range *r;

        if (i < 0)
                return i;
        r = &p->mappings->ranges[i];
        if (!r->module)
                r->module = module_of(p, r);
        ret_place->file = r->module ? &p->modules->list[r->module - 1]->file : NULL;
        ret_place->file_offset = pc - r->start + r->file_offset;
        ret_place->module = (uint32_t)i;
        return 0;
}

static int row(void *ctx, const struct ls_unwind_place *place, struct ls_cfi_row *ret_row,
               uint64_t *ret_function)
{
        const struct ls_native_process *p = ctx;

        return ls_worker_row(p->mappings->worker, place->file, place->file_offset, ret_row,
                             ret_function);
}

static uint32_t label(void *ctx, uint64_t pc, const struct ls_unwind_place *place,
                      uint64_t function)
{
        struct ls_native_process *p = ctx;

        (void)pc;
        return ls_trace_location(p->mappings->writer,
                                 ls_mappings_native(p->mappings, place->module, function), 0);
}

static void changed(void *ctx, uint64_t start, uint64_t end)
{
        struct ls_native_process *p = ctx;

        ls_unwind_forget(p->unwinder, start, end);
}

int ls_native_init(struct ls_native_process *p, struct ls_mappings *mappings)
{
        const struct ls_unwind_owner owner = { .find = find, .row = row, .label = label, .ctx = p };

        memset(p, 0, sizeof(*p));
        p->mappings = mappings;
        p->frames = calloc(LS_NATIVE_FRAMES_MAX, sizeof(*p->frames));
        p->modules = calloc(1, sizeof(*p->modules));
        p->unwinder = ls_unwinder_new(&owner);
        if (!p->frames || !p->modules || !p->unwinder) {
                ls_native_done(p);
                return -ENOMEM;
        }
        mappings->changed = changed;
        mappings->changed_ctx = p;
        return 0;
}

void ls_native_done(struct ls_native_process *p)
{
        if (p->mappings)
                p->mappings->changed = NULL;
        ls_unwinder_free(p->unwinder);
        for (uint32_t i = 0; p->modules && i < p->modules->n; i++) {
                free(p->modules->list[i]->path);
                free(p->modules->list[i]);
        }
        free(p->modules);
        free(p->frames);
        free(p->mixed);
        memset(p, 0, sizeof(*p));
}

void ls_native_gap(struct ls_native_ring *ring)
{
        ring->len = 0;
}

void ls_native_ring_done(struct ls_native_ring *ring)
{
        free(ring->bytes);
        free(ring->locations);
        free(ring->stacks);
        memset(ring, 0, sizeof(*ring));
}

/* New bytes below, the kept ones of the stack before above them. Returns 0, or -errno with the ring
 * emptied. */
static int put_together(struct ls_native_ring *ring, const uint8_t *bytes, uint32_t n,
                        uint32_t keep)
{
        size_t len = (size_t)n + keep, old = ring->len;

        ring->len = 0;
        if (keep > old || len > STACK_MAX)
                return -EINVAL;
        if (len > ring->cap) {
                uint8_t *grown = realloc(ring->bytes, len + len / 2);

                if (!grown)
                        return -ENOMEM;
                ring->bytes = grown;
                ring->cap = len + len / 2;
        }
        if (len) {
                memmove(ring->bytes + n, ring->bytes + (old - keep), keep);
                memcpy(ring->bytes, bytes, n);
        }
        ring->len = len;
        return 0;
}

static void set(struct ls_unwind_input *in, unsigned reg, uint64_t value)
{
        in->reg[reg] = value;
        in->known |= 1u << reg;
}

static void set_registers(struct ls_unwind_input *in, const struct ls_native *head)
{
        set(in, LS_REG_IP, head->ip);
        set(in, LS_REG_RSP, head->sp);
        set(in, LS_REG_RBP, head->bp);
        set(in, LS_REG_RBX, head->bx);
        set(in, LS_REG_R12, head->r12);
        set(in, LS_REG_R13, head->r13);
        set(in, LS_REG_R14, head->r14);
        set(in, LS_REG_R15, head->r15);
}

int ls_native_stack(struct ls_native_process *p, struct ls_native_ring *ring, const void *record,
                    size_t size, const struct ls_native_frame **ret_frames, size_t *ret_n,
                    enum ls_unwind_end *ret_end)
{
        uint64_t cframes[CFRAMES_MAX];
        struct ls_unwind_input in = { .cframes = cframes };
        const uint8_t *rest = (const uint8_t *)record + sizeof(struct ls_native);
        struct ls_native head;
        size_t room;

        if (size < sizeof(head))
                goto bad;
        memcpy(&head, record, sizeof(head));
        room = size - sizeof(head);
        if (head.ncframes > room / sizeof(struct ls_native_cframe) ||
            head.nbytes > room - head.ncframes * sizeof(struct ls_native_cframe))
                goto bad;
        for (; in.n_cframes < head.ncframes && in.n_cframes < CFRAMES_MAX; in.n_cframes++) {
                struct ls_native_cframe c;

                memcpy(&c, rest + in.n_cframes * sizeof(c), sizeof(c));
                cframes[in.n_cframes] = c.address;
        }
        if (put_together(ring, rest + head.ncframes * sizeof(struct ls_native_cframe), head.nbytes,
                         head.keep) < 0)
                goto bad;
        set_registers(&in, &head);
        in.stack = ring->bytes;
        in.stack_start = head.sp & ~UINT64_C(7);        /* as it is copied */
        in.stack_len = ring->len;
        *ret_n = ls_unwind(p->unwinder, &in, p->frames, LS_NATIVE_FRAMES_MAX, ret_end);
        *ret_frames = p->frames;
        /* All of the stack was there: what is beyond its end was never a frame. */
        if (*ret_end == LS_UNWIND_TRUNCATED && !head.cut)
                *ret_end = LS_UNWIND_BAD_STACK;
        p->ends[*ret_end]++;
        return 0;
bad:
        ring->len = 0;
        p->bad++;
        return -EINVAL;
}
