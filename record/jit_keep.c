/* Traces of the JIT compiler, kept until a sample runs in one: see jit_keep.h. */
#include "record/jit_keep.h"

#include "record/jit_place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#include <uthash.h>
#include <utlist.h>

#define SIDE_MAX 4096                   /* side traces of side traces that are followed; LuaJIT has 1000 traces */

struct ls_jit_entry {
        UT_hash_handle hh;
        struct ls_jit_entry *prev, *next;       /* in kept */
        struct ls_rec_jittrace *rec;    /* its definition, until it is in the file */
        uint32_t size;                  /* of that */
        uint32_t jit_id;
        uint32_t vm;                    /* the writer's id */
        uint32_t function;              /* the writer's id, 0 = no sample yet */
        uint32_t generation;            /* 1, 2, ... when the program has replaced itself and counts from 1 again */
        uint64_t hash;                  /* of the definition, 0 = none came */
        struct ls_jit_places places;    /* once it is in the file */
        uint8_t written;
        int failed;
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

void ls_jit_keep_init(struct ls_jit_keep *k, struct ls_trace_writer *w, uint32_t ordinal)
{
        memset(k, 0, sizeof(*k));
        k->ordinal = ordinal;
        k->writer = w;
}

void ls_jit_keep_done(struct ls_jit_keep *k)
{
        struct ls_jit_entry *e, *next;
        struct ls_jit_names *n, *next_n;

        HASH_ITER(hh, k->entries, e, next) {
                HASH_DEL(k->entries, e);
                ls_jit_places_done(&e->places);
                free(e->rec);
                free(e);
        }
        HASH_ITER(hh, k->names, n, next_n) {
                HASH_DEL(k->names, n);
                free(n->names);
                free(n);
        }
        k->kept = NULL;
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
static void unkeep(struct ls_jit_keep *k, struct ls_jit_entry *e)
{
        if (!e->rec)
                return;
        DL_DELETE(k->kept, e);
        k->kept_bytes -= e->size;
        free(e->rec);
        e->rec = NULL;
}

static void drop_oldest(struct ls_jit_keep *k)
{
        struct ls_jit_entry *e = k->kept;

        unkeep(k, e);
        if (e->jit_id > k->dropped_to)
                k->dropped_to = e->jit_id;
        HASH_DEL(k->entries, e);
        free(e);
}

static struct ls_jit_entry *find(const struct ls_jit_keep *k, uint32_t jit_id)
{
        struct ls_jit_entry *e;

        HASH_FIND(hh, k->entries, &jit_id, sizeof(jit_id), e);
        return e;
}

static struct ls_jit_entry *find_or_make(struct ls_jit_keep *k, uint32_t jit_id)
{
        struct ls_jit_entry *e = find(k, jit_id);

        if (e)
                return e;
        e = calloc(1, sizeof(*e));
        if (!e)
                return NULL;
        e->jit_id = jit_id;
        e->generation = 1;
        HASH_ADD(hh, k->entries, jit_id, sizeof(e->jit_id), e);
        if (e->failed) {
                free(e);
                return NULL;
        }
        return e;
}

int ls_jit_keep_names(struct ls_jit_keep *k, uint32_t vm, const char *names, uint32_t len)
{
        struct ls_jit_names *n;

        HASH_FIND(hh, k->names, &vm, sizeof(vm), n);
        if (!n) {
                n = calloc(1, sizeof(*n));
                if (!n)
                        return -ENOMEM;
                n->vm = vm;
                HASH_ADD(hh, k->names, vm, sizeof(n->vm), n);
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
        struct ls_jit_names *n;

        HASH_FIND(hh, k->names, &vm, sizeof(vm), n);
        if (n && !n->written)
                ls_trace_irnames(k->writer, vm, n->string);
        if (n)
                n->written = 1;
        return n;
}

static uint32_t function_of(struct ls_jit_keep *k, struct ls_jit_entry *e)
{
        struct ls_function_def def = { .kind = LS_FUNC_TRACE, .offset = e->jit_id,
                                       .hash = (uint64_t)k->ordinal << 32 | e->generation };

        if (!e->function)
                e->function = ls_trace_function(k->writer, &def);
        return e->function;
}

static void write_one(struct ls_jit_keep *k, struct ls_jit_entry *e)
{
        struct ls_rec_jittrace *rec = e->rec;
        struct ls_jit_entry *parent = rec->parent_id ? find(k, rec->parent_id) : NULL;
        const uint32_t *functions = (const uint32_t *)(rec + 1);
        struct ls_jit_names *names;
        uint32_t start = rec->start_function < rec->nfunctions ? functions[rec->start_function] : 0;

        rec->jit_id = function_of(k, e);
        rec->vm_id = e->vm;
        rec->parent_id = parent ? parent->function : 0;
        ls_trace_jittrace(k->writer, rec, e->size, start);
        names = write_names(k, e->vm);
        ls_jit_places_init(&e->places, rec, e->size, names ? names->names : NULL, names ? names->len : 0,
                           parent ? &parent->places : NULL);
        unkeep(k, e);
        e->written = 1;
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
                e = e->rec->parent_id && e->rec->parent_id < e->jit_id ? find_or_make(k, e->rec->parent_id) : NULL;
                if (e)
                        function_of(k, e);
        }
        while (n > 0)
                write_one(k, chain[--n]);
}

/* The program has replaced itself by exec, and its new image numbers from 1 again. */
static void renew(struct ls_jit_keep *k, struct ls_jit_entry *e)
{
        unkeep(k, e);
        ls_jit_places_done(&e->places);
        e->generation++;
        e->function = 0;
        e->written = 0;
}

int ls_jit_keep_add(struct ls_jit_keep *k, const struct ls_rec_jittrace *rec, uint32_t size, uint32_t vm)
{
        uint64_t hash = XXH64(rec, size, 0) | 1;
        struct ls_jit_entry *e = find_or_make(k, rec->jit_id);

        if (!e)
                return -ENOMEM;
        if (e->hash == hash)            /* sent again */
                return 0;
        if (e->hash)
                renew(k, e);
        e->rec = malloc(size);
        if (!e->rec)
                return -ENOMEM;
        memcpy(e->rec, rec, size);
        e->hash = hash;
        e->size = size;
        e->vm = vm;
        DL_APPEND(k->kept, e);
        k->kept_bytes += size;
        if (e->function)                /* the sample came first */
                write_chain(k, e);
        while (k->kept_bytes > LS_JIT_KEPT_MAX)
                drop_oldest(k);
        return 0;
}

static void copy_entry(struct ls_jit_keep *k, const struct ls_jit_entry *from)
{
        struct ls_jit_entry *e = find_or_make(k, from->jit_id);

        if (!e || e->hash)
                return;
        e->vm = from->vm;
        e->function = from->function;   /* in the file already: then both have one */
        e->generation = from->generation;
        e->hash = from->hash;
        e->written = from->written;
        ls_jit_places_copy(&e->places, &from->places);
        e->rec = from->rec ? malloc(from->size) : NULL;
        if (!e->rec)
                return;
        memcpy(e->rec, from->rec, from->size);
        e->size = from->size;
        DL_APPEND(k->kept, e);
        k->kept_bytes += e->size;
}

void ls_jit_keep_copy(struct ls_jit_keep *k, const struct ls_jit_keep *from, uint32_t last)
{
        const struct ls_jit_names *n;

        for (const struct ls_jit_entry *e = from->entries; e; e = e->hh.next)
                if (e->jit_id <= last)
                        copy_entry(k, e);
        for (n = from->names; n; n = n->hh.next) {
                struct ls_jit_names *own;

                ls_jit_keep_names(k, n->vm, n->names, n->len);
                HASH_FIND(hh, k->names, &n->vm, sizeof(n->vm), own);
                if (own)
                        own->written = n->written;
        }
        k->dropped_to = from->dropped_to < last ? from->dropped_to : last;
}

uint32_t ls_jit_keep_function(struct ls_jit_keep *k, uint32_t jit_id, uint32_t *offset)
{
        struct ls_jit_entry *e = find(k, jit_id);

        if (!e) {
                e = find_or_make(k, jit_id);
                if (!e)
                        return 0;
                k->missing += jit_id <= k->dropped_to;
        }
        if (e->rec)
                write_chain(k, e);
        *offset = ls_jit_place(&e->places, *offset);
        return function_of(k, e);
}
