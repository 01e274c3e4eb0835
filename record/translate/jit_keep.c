/* Traces of the JIT compiler, kept until a sample runs in one: see jit_keep.h. */
#include "record/translate/jit_keep.h"

#include "record/translate/jit_place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#include <uthash.h>
#include <utlist.h>

#define SIDE_MAX 4096 /* side traces of side traces that are followed; LuaJIT has 1000 traces */

struct ls_jit_entry {
        UT_hash_handle hh;
        struct ls_jit_entry *prev, *next;       /* in kept */
        struct ls_jit_layer *layer;     /* that it is in */
        struct ls_rec_jittrace *rec;    /* its definition, until it is in the file */
        uint32_t size;                  /* of that */
        uint32_t jit_id;
        uint32_t vm;                    /* the writer's id */
        uint32_t function;              /* the writer's id, 0 = no sample yet */
        uint32_t generation;            /* 1, 2, ... when the program has replaced itself and counts
                                         * from 1 again */
        uint64_t hash;                  /* of the definition, 0 = none came */
        struct ls_jit_places places;    /* once it is in the file */
        int failed;
};

/* The traces of one process, or of one image of it. A forked child has those of its parent that
 * there were: nothing is copied, it looks where its parent does. */
struct ls_jit_layer {
        unsigned users;                 /* processes that have it on top, and layers that have it
                                         * below */
        uint32_t ordinal;               /* of the process */
        struct ls_jit_entry *entries;   /* by the agent's id */
        struct ls_jit_entry *kept;      /* of these, those with a definition that is not in the
                                         * file; oldest first */
        struct ls_jit_names *names;     /* by the writer's id of the VM */
        size_t kept_bytes;
        uint32_t dropped_to;            /* greatest id that was given up */
        struct ls_jit_layer *below;     /* what is not here is there, if its id is at most */
        uint32_t below_to;
};

struct ls_jit_names {
        UT_hash_handle hh;
        uint32_t vm;
        uint32_t string;                /* the writer's */
        char *names;
        uint32_t len;
        uint8_t written;
        int failed;
};

int ls_jit_keep_init(struct ls_jit_keep *k, struct ls_trace_writer *w, uint32_t ordinal)
{
        k->writer = w;
        k->missing = 0;
        k->top = calloc(1, sizeof(*k->top));
        if (!k->top)
                return -ENOMEM;
        k->top->users = 1;
        k->top->ordinal = ordinal;
        return 0;
}

static void layer_done(struct ls_jit_layer *l)
{
        struct ls_jit_entry *e, *next;
        struct ls_jit_names *n, *next_n;

        HASH_ITER(hh, l->entries, e, next) {
                HASH_DEL(l->entries, e);
                ls_jit_places_done(&e->places);
                free(e->rec);
                free(e);
        }
        HASH_ITER(hh, l->names, n, next_n) {
                HASH_DEL(l->names, n);
                free(n->names);
                free(n);
        }
        free(l);
}

void ls_jit_keep_done(struct ls_jit_keep *k)
{
        struct ls_jit_layer *l = k->top, *below;

        for (k->top = NULL; l && --l->users == 0; l = below) {
                below = l->below;
                layer_done(l);
        }
}

uint32_t ls_jit_record_size(const struct ls_rec_jittrace *rec, uint32_t len)
{
        uint64_t size = sizeof(*rec);

        if (len < sizeof(*rec))
                return 0;
        size += ((uint64_t)rec->nfunctions * sizeof(uint32_t) + 7) & ~UINT64_C(7);
        size += (uint64_t)rec->nevents * sizeof(struct ls_jit_event);
        size += (uint64_t)rec->nsnapshots * sizeof(struct ls_jit_snapshot);
        size += (uint64_t)rec->nir * sizeof(uint64_t);
        size += rec->mcode_size;
        return size <= len && size <= LS_TRACE_JIT_MAX ? (uint32_t)size : 0;
}

/* Takes an entry's definition away from it. */
static void unkeep(struct ls_jit_entry *e)
{
        if (!e->rec)
                return;
        DL_DELETE(e->layer->kept, e);
        e->layer->kept_bytes -= e->size;
        free(e->rec);
        e->rec = NULL;
}

static void drop_oldest(struct ls_jit_layer *l)
{
        struct ls_jit_entry *e = l->kept;

        unkeep(e);
        if (e->jit_id > l->dropped_to)
                l->dropped_to = e->jit_id;
        HASH_DEL(l->entries, e);
        free(e);
}

static struct ls_jit_entry *find(const struct ls_jit_layer *l, uint32_t jit_id)
{
        struct ls_jit_entry *e = NULL;

        for (; l && !e; l = jit_id <= l->below_to ? l->below : NULL)
                HASH_FIND(hh, l->entries, &jit_id, sizeof(jit_id), e);
        return e;
}

static int was_dropped(const struct ls_jit_layer *l, uint32_t jit_id)
{
        for (; l; l = jit_id <= l->below_to ? l->below : NULL)
                if (jit_id <= l->dropped_to)
                        return 1;
        return 0;
}

static struct ls_jit_entry *make(struct ls_jit_layer *l, uint32_t jit_id)
{
        struct ls_jit_entry *e = calloc(1, sizeof(*e));

        if (!e)
                return NULL;
        e->jit_id = jit_id;
        e->generation = 1;
        e->layer = l;
        HASH_ADD(hh, l->entries, jit_id, sizeof(e->jit_id), e);
        if (e->failed) {
                free(e);
                return NULL;
        }
        return e;
}

static struct ls_jit_entry *find_or_make(struct ls_jit_layer *l, uint32_t jit_id)
{
        struct ls_jit_entry *e = find(l, jit_id);

        return e ? e : make(l, jit_id);
}

static struct ls_jit_names *find_names(const struct ls_jit_layer *l, uint32_t vm)
{
        struct ls_jit_names *n = NULL;

        for (; l && !n; l = l->below)
                HASH_FIND(hh, l->names, &vm, sizeof(vm), n);
        return n;
}

int ls_jit_keep_names(struct ls_jit_keep *k, uint32_t vm, const char *names, uint32_t len)
{
        struct ls_jit_names *n = find_names(k->top, vm);

        if (!n) {
                n = calloc(1, sizeof(*n));
                if (!n)
                        return -ENOMEM;
                n->vm = vm;
                HASH_ADD(hh, k->top->names, vm, sizeof(n->vm), n);
                if (n->failed) {
                        free(n);
                        return -ENOMEM;
                }
        }
        free(n->names);
        n->names = malloc(len ? len : 1);
        n->len = n->names ? len : 0;
        if (n->names)
                memcpy(n->names, names, len);
        n->string = ls_trace_string(k->writer, names, len);
        if (n->written)
                ls_trace_irnames(k->writer, vm, n->string);
        return 0;
}

static struct ls_jit_names *write_names(struct ls_jit_keep *k, uint32_t vm)
{
        struct ls_jit_names *n = find_names(k->top, vm);

        if (n && !n->written)
                ls_trace_irnames(k->writer, vm, n->string);
        if (n)
                n->written = 1;
        return n;
}

static uint32_t function_of(struct ls_jit_keep *k, struct ls_jit_entry *e)
{
        struct ls_function_def def = { .kind = LS_FUNC_TRACE, .offset = e->jit_id,
                                       .hash = (uint64_t)e->layer->ordinal << 32 | e->generation };

        if (!e->function)
                e->function = ls_trace_function(k->writer, &def);
        return e->function;
}

static void write_one(struct ls_jit_keep *k, struct ls_jit_entry *e)
{
        struct ls_rec_jittrace *rec = e->rec;
        struct ls_jit_entry *parent = rec->parent_id ? find(e->layer, rec->parent_id) : NULL;
        const uint32_t *functions = (const uint32_t *)(rec + 1);
        struct ls_jit_names *names;
        uint32_t start = rec->start_function < rec->nfunctions ? functions[rec->start_function] : 0;

        rec->jit_id = function_of(k, e);
        rec->vm_id = e->vm;
        rec->parent_id = parent ? parent->function : 0;
        ls_trace_jittrace(k->writer, rec, e->size, start);
        names = write_names(k, e->vm);
        ls_jit_places_init(&e->places, rec, e->size, names ? names->names : NULL,
                           names ? names->len : 0, parent ? &parent->places : NULL);
        unkeep(e);
}

/* Parents first: to know the frames below a side trace one needs the trace that it left. */
static void write_chain(struct ls_jit_keep *k, struct ls_jit_entry *e)
{
        struct ls_jit_entry *chain[SIDE_MAX];
        unsigned n = 0;

        while (e && e->rec && n < SIDE_MAX) {
                chain[n++] = e;
                function_of(k, e);
                /* An older one: so there is no circle. */
                e = e->rec->parent_id && e->rec->parent_id < e->jit_id
                            ? find_or_make(e->layer, e->rec->parent_id)
                            : NULL;
                if (e)
                        function_of(k, e);
        }
        while (n > 0)
                write_one(k, chain[--n]);
}

/* On top of what is there, which others have too. */
static int put_layer(struct ls_jit_keep *k)
{
        struct ls_jit_layer *l = calloc(1, sizeof(*l));

        if (!l)
                return -ENOMEM;
        l->users = 1;
        l->ordinal = k->top->ordinal;
        l->below = k->top;              /* who had it on top now has it below */
        l->below_to = UINT32_MAX;
        k->top = l;
        return 0;
}

/* The program has replaced itself by exec, and its new image numbers from 1 again. Returns the
 * entry for its trace, or NULL. */
static struct ls_jit_entry *renew(struct ls_jit_keep *k, struct ls_jit_entry *old)
{
        struct ls_jit_entry *e = old;

        if (old->layer != k->top || k->top->users > 1) {
                /* A child that has the old image goes on with it, and with what that had from its
                 * own parent. */
                if (k->top->users > 1 && put_layer(k) < 0)
                        return NULL;
                e = make(k->top, old->jit_id);
                if (e && old->layer->ordinal == k->top->ordinal)
                        e->generation = old->generation + 1;
                return e;
        }
        unkeep(e);
        ls_jit_places_done(&e->places);
        e->generation++;
        e->function = 0;
        return e;
}

int ls_jit_keep_add(struct ls_jit_keep *k, const struct ls_rec_jittrace *rec, uint32_t size,
                    uint32_t vm)
{
        uint64_t hash = XXH64(rec, size, 0) | 1;
        struct ls_jit_entry *e = find_or_make(k->top, rec->jit_id);

        if (e && e->hash == hash)       /* sent again */
                return 0;
        if (e && e->hash)
                e = renew(k, e);
        if (!e)
                return -ENOMEM;
        e->rec = malloc(size);
        if (!e->rec)
                return -ENOMEM;
        memcpy(e->rec, rec, size);
        e->hash = hash;
        e->size = size;
        e->vm = vm;
        DL_APPEND(e->layer->kept, e);
        e->layer->kept_bytes += size;
        if (e->function)                /* the sample came first */
                write_chain(k, e);
        for (struct ls_jit_layer *l = e->layer; l->kept_bytes > LS_JIT_KEPT_MAX;)
                drop_oldest(l);
        return 0;
}

void ls_jit_keep_inherit(struct ls_jit_keep *k, const struct ls_jit_keep *from, uint32_t last)
{
        k->top->below = from->top;
        k->top->below_to = last;
        from->top->users++;
}

size_t ls_jit_keep_bytes(const struct ls_jit_keep *k)
{
        return k->top->kept_bytes;
}

uint32_t ls_jit_keep_function(struct ls_jit_keep *k, uint32_t jit_id, uint32_t *offset)
{
        struct ls_jit_entry *e = find(k->top, jit_id);

        if (!e) {
                e = make(k->top, jit_id);
                if (!e)
                        return 0;
                k->missing += (unsigned)was_dropped(k->top, jit_id);
        }
        if (e->rec)
                write_chain(k, e);
        *offset = ls_jit_place(&e->places, *offset);
        return function_of(k, e);
}
