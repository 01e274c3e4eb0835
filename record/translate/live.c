/* See live.h. */
#include "record/translate/live.h"

#include <errno.h>
#include <stdlib.h>

#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define BLOCKS_MOST (1u << 22)          /* of a process, with those not heard of yet */

struct ls_live_block {
        uint32_t id, vm_id;             /* of the agent */
        int linked;                     /* 1 = in its VM's list; 0 = freed before its allocation
                                         * has come, at row.time_ns */
        struct ls_sample_row row;
        uint64_t objects;
        int failed;
        struct ls_live_block *next, *before;    /* of its VM */
        UT_hash_handle hh;
};

static struct ls_live_block **vm_list(struct ls_translate *t, uint32_t vm_id)
{
        if (ls_ids_reserve(&t->ids, (void **)&t->live_vms, &t->n_live_vms, sizeof(*t->live_vms),
                           vm_id) < 0)
                return NULL;
        return &t->live_vms[vm_id];
}

static void forget(struct ls_translate *t, struct ls_live_block *b)
{
        if (b->before)
                b->before->next = b->next;
        else if (b->linked)
                t->live_vms[b->vm_id] = b->next;
        if (b->next)
                b->next->before = b->before;
        HASH_DEL(t->live, b);
        free(b);
}

static struct ls_live_block *find(const struct ls_translate *t, uint32_t id)
{
        struct ls_live_block *b;

        HASH_FIND(hh, t->live, &id, sizeof(id), b);
        return b;
}

static struct ls_live_block *add(struct ls_translate *t, uint32_t id)
{
        struct ls_live_block *b = HASH_COUNT(t->live) < BLOCKS_MOST ? calloc(1, sizeof(*b)) : NULL;

        if (!b)
                return NULL;
        b->id = id;
        HASH_ADD(hh, t->live, id, sizeof(b->id), b);
        if (!b->failed)
                return b;
        free(b);
        return NULL;
}

/* The row of a block, and that of its objects. */
static void write_rows(struct ls_translate *t, const struct ls_sample_row *block, uint64_t objects,
                       enum ls_event_kind event, enum ls_event_kind event_objects)
{
        struct ls_sample_row row = *block;

        row.event = (uint8_t)event;
        ls_trace_sample(t->cfg.writer, &row);
        row.event = (uint8_t)event_objects;
        row.weight = objects;
        ls_trace_sample(t->cfg.writer, &row);
}

/* Of a block that was freed at this time. */
static void write_freed(struct ls_translate *t, const struct ls_sample_row *block, uint64_t objects,
                        uint64_t freed_ns)
{
        struct ls_sample_row row = *block;
        uint64_t units;

        if (freed_ns > t->now_ns)       /* the program says so */
                freed_ns = t->now_ns;
        units = freed_ns > row.time_ns ? (freed_ns - row.time_ns) / LS_LIVED_NS : 0;
        row.lived = units < UINT32_MAX ? (uint32_t)units + 1 : UINT32_MAX;
        write_rows(t, &row, objects, LS_EVENT_FREED, LS_EVENT_FREED_OBJECTS);
}

void ls_live_allocated(struct ls_translate *t, uint32_t id, uint32_t vm_id,
                       const struct ls_sample_row *row, uint64_t objects)
{
        struct ls_live_block *b = find(t, id), **list;

        if (b) {                        /* freed already; or said twice, which is wrong */
                if (!b->linked && row->stack)
                        write_freed(t, row, objects, b->row.time_ns);
                forget(t, b);
                return;
        }
        list = row->stack ? vm_list(t, vm_id) : NULL;   /* a row without a stack is no allocation */
        b = list ? add(t, id) : NULL;
        if (!b) {
                t->live_lost++;
                return;
        }
        b->linked = 1;
        b->vm_id = vm_id;
        b->row = *row;
        b->objects = objects;
        b->next = *list;
        if (b->next)
                b->next->before = b;
        *list = b;
}

static void end(struct ls_translate *t, struct ls_live_block *b, uint64_t freed_ns)
{
        write_freed(t, &b->row, b->objects, freed_ns);
        forget(t, b);
}

int ls_live_record(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_free *rec = body;
        const uint32_t *ids = (const uint32_t *)(rec + 1);

        (void)ring;
        if (rec->n > (len - sizeof(*rec)) / sizeof(*ids) || !t->cfg.live)
                return -EINVAL;
        while (rec->vm_id && rec->vm_id < t->n_live_vms && t->live_vms[rec->vm_id])
                end(t, t->live_vms[rec->vm_id], rec->time_ns);
        for (uint32_t i = 0; i < rec->n; i++) {
                struct ls_live_block *b = find(t, ids[i]);

                if (b && b->linked)
                        end(t, b, rec->time_ns);
                else if (!b && !(b = add(t, ids[i])))
                        t->live_lost++;
                else if (!b->linked)
                        b->row.time_ns = rec->time_ns;
        }
        return 0;
}

void ls_live_finish(struct ls_translate *t)
{
        struct ls_live_block *b, *next;

        HASH_ITER(hh, t->live, b, next) {
                if (b->linked)
                        write_rows(t, &b->row, b->objects, LS_EVENT_LIVE, LS_EVENT_LIVE_OBJECTS);
        }
        ls_live_done(t);
}

void ls_live_done(struct ls_translate *t)
{
        struct ls_live_block *b, *next;

        HASH_ITER(hh, t->live, b, next) {
                HASH_DEL(t->live, b);
                free(b);
        }
        free(t->live_vms);
        t->live_vms = NULL;
        t->n_live_vms = 0;
}
