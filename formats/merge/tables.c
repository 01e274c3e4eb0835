/* Dictionaries of the inputs of a merge: what is equal becomes one. Functions and sources are equal
 * by their identity; mapped files by what they are, not by where they were mapped; processes,
 * threads and VMs never are, since numbers are used again: each recording keeps its own. Called by
 * merge.c. */
#include "formats/merge/tables.h"

#include "formats/trace/chunk.h"
#include "formats/trace/schema.h"
#include "formats/trace/writer.h"
#include "formats/wire/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COL(KIND, NAME) row[LS_C_##KIND##_##NAME]
#define ROW(...) ((const uint64_t[LS_COLUMNS_MAX]){ __VA_ARGS__ })

uint32_t ls_merge_id(const uint32_t *table, uint32_t n, uint64_t id)
{
        return id < n ? table[id] : 0;
}

int ls_merge_ids_init(struct ls_merge_ids *ids, struct ls_merge *m, const struct ls_merge_input *in)
{
        const struct ls_profile *p = in->profile;
        const struct { uint32_t **table, n;
        } tables[] = {
                { &ids->sources, p->n_sources },       { &ids->functions, p->n_functions },
                { &ids->locations, p->n_locations },   { &ids->stacks, p->n_stacks },
                { &ids->zones, p->n_zones },           { &ids->processes, p->n_processes },
                { &ids->threads, p->n_threads },       { &ids->vms, p->n_vms },
                { &ids->coroutines, p->n_coroutines }, { &ids->mappings, p->n_mappings },
                { &ids->labels, p->n_sample_labels },  { &ids->counters, p->n_counters },
        };

        memset(ids, 0, sizeof(*ids));
        ids->m = m;
        ids->in = in;
        ids->p = p;
        for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
                *tables[i].table = calloc((size_t)tables[i].n + 1, sizeof(uint32_t));
                if (!*tables[i].table)
                        return -ENOMEM;
        }
        return 0;
}

void ls_merge_ids_done(struct ls_merge_ids *ids)
{
        free(ids->sources);
        free(ids->functions);
        free(ids->locations);
        free(ids->stacks);
        free(ids->zones);
        free(ids->processes);
        free(ids->threads);
        free(ids->vms);
        free(ids->coroutines);
        free(ids->mappings);
        free(ids->labels);
        free(ids->counters);
        free(ids->has_trace);
}

void ls_merge_traces_done(struct ls_merge *m)
{
        struct ls_merge_trace *t, *next;

        HASH_ITER(hh, m->traces, t, next) {
                HASH_DEL(m->traces, t);
                free(t);
        }
}

static uint32_t str(const struct ls_merge_ids *ids, struct ls_str s)
{
        return s.len ? ls_trace_string(ids->m->w, s.s, s.len) : 0;
}

/* A text is written once, with the first recording that has it. */
static int add_text(struct ls_merge_ids *ids, const struct ls_source *s, uint32_t id)
{
        struct ls_merge *m = ids->m;

        if (!s->text.len || !id)
                return 0;
        if (id >= m->n_has_text) {
                uint32_t n = id * 2 + 64;
                uint8_t *bigger = realloc(m->has_text, n);

                if (!bigger)
                        return -ENOMEM;
                memset(bigger + m->n_has_text, 0, n - m->n_has_text);
                m->has_text = bigger;
                m->n_has_text = n;
        }
        if (!m->has_text[id])
                ls_trace_text(m->w, id, s->text.s, s->text.len);
        m->has_text[id] = 1;
        return 0;
}

static int add_source(struct ls_merge_ids *ids, uint32_t i)
{
        const struct ls_source *s = &ids->p->sources[i];

        if (!i || ids->sources[i])
                return 0;
        ids->sources[i] =
                ls_trace_source(ids->m->w, &(struct ls_source_def){ .name = str(ids, s->name),
                                                                    .path = str(ids, s->path),
                                                                    .size = s->size,
                                                                    .text_hash = s->text_hash });
        return add_text(ids, s, ids->sources[i]);
}

static int add_mapping(struct ls_merge_ids *ids, uint32_t i)
{
        const struct ls_mapping *map = &ids->p->mappings[i];
        struct ls_merge *m = ids->m;
        uint32_t path = str(ids, map->path), build_id = str(ids, map->build_id), id;
        int is_new;

        id = ls_dict_intern(&m->mappings,
                            ROW(path, 0, map->end - map->start, map->file_offset, build_id),
                            &is_new);
        if (!id)
                return -ENOMEM;
        if (id >= m->cap_mapping_ids) {
                uint32_t *bigger = reallocarray(m->mapping_ids, id * 2 + 64, sizeof(*bigger));

                if (!bigger)
                        return -ENOMEM;
                m->mapping_ids = bigger;
                m->cap_mapping_ids = id * 2 + 64;
        }
        if (is_new)
                m->mapping_ids[id] =
                        ls_trace_mapping(m->w, path, map->start, map->end, map->file_offset,
                                         (const uint8_t *)map->build_id.s, map->build_id.len);
        ids->mappings[i] = m->mapping_ids[id];
        return 0;
}

static int add_function(struct ls_merge_ids *ids, uint32_t i)
{
        const struct ls_function *f = &ids->p->functions[i];
        uint64_t row[LS_COLUMNS_MAX];
        struct ls_function_def def = { .kind = f->kind,
                                       .flags = f->flags,
                                       .first_line = f->first_line,
                                       .last_line = f->last_line,
                                       .hash = f->hash,
                                       .offset = f->offset };

        if (!i || ids->functions[i])
                return 0;
        if (f->source && add_source(ids, f->source))
                return -ENOMEM;
        def.source = ids->sources[f->source];
        def.mapping = ids->mappings[f->mapping];
        if (!ls_profile_row(ids->p, LS_REC_FUNCTION, i, row))
                def.identity_name = str(ids, f->name);
        else if (COL(FUNCTION, NAME))
                def.identity_name = str(ids, ls_profile_string(ids->p, COL(FUNCTION, NAME)));
        if (f->kind == LS_FUNC_TRACE && ids->m->pieces) {
                def.offset = ++ids->m->jit_base;
        } else if (f->kind == LS_FUNC_TRACE) {
                def.offset += ids->m->jit_base;
                ids->jit_most = f->offset > ids->jit_most ? f->offset : ids->jit_most;
        }
        ids->functions[i] = ls_trace_function(ids->m->w, &def);
        if (!def.identity_name && f->name.len)
                ls_trace_name(ids->m->w, ids->functions[i], f->name_rank, str(ids, f->name));
        return 0;
}

static int add_location(struct ls_merge_ids *ids, uint32_t i)
{
        const struct ls_location *l = &ids->p->locations[i];

        if (!i || ids->locations[i])
                return 0;
        if (add_function(ids, l->function))
                return -ENOMEM;
        ids->locations[i] = ls_trace_location(ids->m->w, ids->functions[l->function], l->line);
        return 0;
}

/* Parents come before their children. */
static int add_stack(struct ls_merge_ids *ids, uint32_t i)
{
        const struct ls_stack *s = &ids->p->stacks[i];

        if (!i || ids->stacks[i])
                return 0;
        if (add_location(ids, s->location))
                return -ENOMEM;
        ids->stacks[i] =
                ls_trace_stack(ids->m->w, ids->stacks[s->parent], ids->locations[s->location]);
        return 0;
}

static int add_zone(struct ls_merge_ids *ids, uint32_t i)
{
        const struct ls_zone *z = &ids->p->zones[i];

        if (i && !ids->zones[i])
                ids->zones[i] = ls_trace_zone(ids->m->w, ids->zones[z->parent], str(ids, z->name));
        return 0;
}

/* Pieces have such a row once. */
static uint32_t add_row(struct ls_merge_ids *ids, unsigned kind, const uint64_t *row)
{
        int is_new = 1;
        uint32_t id = ids->m->pieces ? ls_dict_intern(&ids->m->known[kind], row, &is_new) : 0;

        if (ids->m->pieces && !is_new)
                return id;
        return ls_trace_row(ids->m->w, kind, row);
}

static int add_process(struct ls_merge_ids *ids, uint32_t i)
{
        const struct ls_process *p = &ids->p->processes[i];

        ids->processes[i] = add_row(ids, LS_REC_PROCESS, ROW(p->pid, str(ids, p->name)));
        return 0;
}

static int add_thread(struct ls_merge_ids *ids, uint32_t i)
{
        const struct ls_thread *t = &ids->p->threads[i];

        ids->threads[i] = add_row(ids, LS_REC_THREAD,
                                  ROW(ids->processes[t->process], t->tid, str(ids, t->name)));
        return 0;
}

static int add_vm(struct ls_merge_ids *ids, uint32_t i)
{
        const struct ls_vm *vm = &ids->p->vms[i];

        ids->vms[i] = add_row(ids, LS_REC_VM,
                              ROW(ids->processes[vm->process], vm->number, str(ids, vm->runtime)));
        return 0;
}

static int add_coroutine(struct ls_merge_ids *ids, uint32_t i)
{
        const struct ls_coroutine *c = &ids->p->coroutines[i];

        if (add_function(ids, c->function))
                return -ENOMEM;
        ids->coroutines[i] = ls_trace_coroutine(ids->m->w, ids->vms[c->vm],
                                                ids->functions[c->function], c->generation);
        return 0;
}

/* A lost one is alone, and says so. */
static int add_label(struct ls_merge_ids *ids, uint32_t i)
{
        const struct ls_sample_label *l = &ids->p->sample_labels[i];

        ids->labels[i] = ls_trace_label(ids->m->w, ids->labels[l->parent], str(ids, l->key),
                                        str(ids, l->value));
        return 0;
}

static int add_counter(struct ls_merge_ids *ids, uint32_t i)
{
        const struct ls_counter_series *c = &ids->p->counters[i];

        ids->counters[i] = ls_trace_counter(ids->m->w, ids->processes[c->process],
                                            str(ids, c->name), c->what, ids->vms[c->vm]);
        return 0;
}

static uint32_t function_of(const struct ls_merge_ids *ids, uint64_t id)
{
        return ls_merge_id(ids->functions, ids->p->n_functions, id);
}

/* Adds the functions that the trace's map names, which are of Lua. Returns 0 or -ENOMEM. */
static int add_map_functions(struct ls_merge_ids *ids, const struct ls_jittrace *t)
{
        const struct ls_rec_jittrace *rec = t->map;
        const uint32_t *functions = (const uint32_t *)(rec + 1);
        int r = 0;

        if (!rec || t->map_len < sizeof(*rec) ||
            rec->nfunctions > (t->map_len - sizeof(*rec)) / sizeof(*functions))
                return 0;
        for (uint32_t i = 0; !r && i < rec->nfunctions; i++)
                if (functions[i] < ids->p->n_functions &&
                    ids->p->functions[functions[i]].kind == LS_FUNC_LUA)
                        r = add_function(ids, functions[i]);
        return r;
}

/* Identity of a JIT trace: two pieces have the same one when all of this is equal. The functions of
 * its map are what bytecode they have, whatever their ids. */
static uint64_t identity_of(const struct ls_merge_ids *ids, const struct ls_jittrace *t)
{
        const struct ls_jittrace *parent = &ids->p->jittraces[t->parent];
        const struct ls_rec_jittrace *rec = t->map;
        size_t n = t->map_len >= sizeof(*rec) ? rec->nfunctions : 0;
        size_t head = sizeof(*rec) + n * sizeof(uint32_t);
        uint64_t kind = ls_hash(t->link_kind.s, t->link_kind.len);
        uint64_t parts[] = { ids->vms[t->vm], t->number, t->root, parent->number, parent->address,
                             t->exit, t->address, t->size, t->link, kind, t->map_len, 0, 0 };
        const uint32_t *functions = (const uint32_t *)(rec + 1);

        if (!rec || t->map_len < head)
                return ls_hash(parts, sizeof(parts));
        parts[11] = ls_hash((const uint8_t *)rec + head, t->map_len - head);
        for (uint32_t i = 0; i < rec->nfunctions; i++)
                parts[12] = parts[12] * 31 + function_of(ids, functions[i]);
        return ls_hash(parts, sizeof(parts));
}

/* Returns 0 or -ENOMEM. */
static int find_trace(struct ls_merge_ids *ids, uint32_t i)
{
        const struct ls_jittrace *t = &ids->p->jittraces[i];
        struct ls_merge_trace *known;
        uint64_t identity;

        if (!ids->m->pieces || !t->number)
                return 0;
        if (!ids->has_trace && !(ids->has_trace = calloc((size_t)ids->p->n_jittraces + 1, 1)))
                return -ENOMEM;
        if (add_map_functions(ids, t))
                return -ENOMEM;
        identity = identity_of(ids, t);
        HASH_FIND(hh, ids->m->traces, &identity, sizeof(identity), known);
        if (known && !ids->functions[t->function]) {
                ids->functions[t->function] = known->function;
                ids->has_trace[i] = 1;
                return 0;
        }
        if (add_function(ids, t->function))
                return -ENOMEM;
        known = known ? NULL : calloc(1, sizeof(*known));
        if (!known)
                return 0;               /* it is written again in a later piece, no more */
        known->identity = identity;
        known->function = ids->functions[t->function];
        HASH_ADD(hh, ids->m->traces, identity, sizeof(identity), known);
        return 0;
}

/* Tables by id, in the order in which they refer to each other. */
static const struct {
        unsigned kind;
        int (*add)(struct ls_merge_ids *ids, uint32_t i);
} tables[] = {
        { LS_REC_PROCESS, add_process },
        { LS_REC_THREAD, add_thread },
        { LS_REC_VM, add_vm },
        { LS_REC_MAPPING, add_mapping },
        { LS_REC_JITTRACE, find_trace },
        { LS_REC_SOURCE, add_source },
        { LS_REC_FUNCTION, add_function },
        { LS_REC_LOCATION, add_location },
        { LS_REC_STACK, add_stack },
        { LS_REC_ZONE, add_zone },
        { LS_REC_COROUTINE, add_coroutine },
        { LS_REC_LABEL, add_label },
        { LS_REC_COUNTER, add_counter },
};

/* The record that a map is made from, with the ids of the merged trace. One that makes no sense is
 * left out: it would give no map there either. */
static int add_map(struct ls_merge_ids *ids, const struct ls_jittrace *t)
{
        struct ls_rec_jittrace *rec;
        uint32_t *functions;

        if (!t->map || t->map_len < sizeof(*rec) || t->map_len > LS_TRACE_JIT_MAX)
                return 0;
        rec = malloc(t->map_len);
        if (!rec)
                return -ENOMEM;
        memcpy(rec, t->map, t->map_len);
        functions = (uint32_t *)(rec + 1);
        if (rec->nfunctions <= (t->map_len - sizeof(*rec)) / sizeof(*functions)) {
                rec->jit_id = ids->functions[t->function];
                rec->parent_id = ids->functions[ids->p->jittraces[t->parent].function];
                rec->vm_id = ids->vms[t->vm];
                for (uint32_t i = 0; i < rec->nfunctions; i++)
                        functions[i] = function_of(ids, functions[i]);
                ls_trace_jitmap(ids->m->w, rec, t->map_len);
        }
        free(rec);
        return 0;
}

static int add_jittraces(struct ls_merge_ids *ids)
{
        const uint32_t n = ls_profile_rows(ids->p, LS_REC_JITTRACE);
        int r = 0;

        for (uint32_t i = 1; !r && i <= n; i++) {
                const struct ls_jittrace *t = &ids->p->jittraces[i];
                uint64_t row[LS_COLUMNS_MAX];

                if (!ls_profile_row(ids->p, LS_REC_JITTRACE, i, row) ||
                    (ids->has_trace && ids->has_trace[i]))
                        continue;
                COL(JITTRACE, VM) = ids->vms[t->vm];
                COL(JITTRACE, PARENT) = ids->functions[ids->p->jittraces[t->parent].function];
                COL(JITTRACE, START) = ids->locations[t->start];
                COL(JITTRACE, FUNCTION) = ids->functions[t->function];
                COL(JITTRACE, LINK_KIND) = str(ids, t->link_kind);
                COL(JITTRACE, ABORT) = str(ids, ls_profile_string(ids->p, COL(JITTRACE, ABORT)));
                COL(JITTRACE, IR) = str(ids, ls_profile_string(ids->p, COL(JITTRACE, IR)));
                COL(JITTRACE, MAP) = str(ids, ls_profile_string(ids->p, COL(JITTRACE, MAP)));
                ls_trace_row(ids->m->w, LS_REC_JITTRACE, row);
                r = add_map(ids, t);
        }
        return r;
}

/* Columns of the other kinds that are not copied as they are. */
enum how {
        FUNCTION,
        LOCATION,
        STACK,
        ZONE,
        PROCESS,
        THREAD,
        VM,
        COROUTINE,
        COUNTER,
        STRING,
        TIME,
        TIME_OR_NONE,
        PERIOD,
        TICKS
};
static const struct { uint8_t kind, column, how;
} changes[] = {
        { LS_REC_IRNAMES, LS_C_IRNAMES_VM, VM },
        { LS_REC_IRNAMES, LS_C_IRNAMES_NAMES, STRING },
        { LS_REC_EVENT, LS_C_EVENT_NAME, STRING },
        { LS_REC_EVENT, LS_C_EVENT_UNIT, STRING },
        { LS_REC_EVENT, LS_C_EVENT_PERIOD, PERIOD },
        { LS_REC_EVENT, LS_C_EVENT_CLOCK, STRING },
        { LS_REC_CLOCKS, LS_C_CLOCKS_MONOTONIC, TIME },
        { LS_REC_THREADCPU, LS_C_THREADCPU_THREAD, THREAD },
        { LS_REC_THREADCPU, LS_C_THREADCPU_MONOTONIC, TIME },
        { LS_REC_PROCTOTALS, LS_C_PROCTOTALS_PROCESS, PROCESS },
        { LS_REC_PROCTOTALS, LS_C_PROCTOTALS_TICKS, TICKS },
        { LS_REC_PROCTOTALS, LS_C_PROCTOTALS_LOST, TICKS },
        { LS_REC_PROCTOTALS, LS_C_PROCTOTALS_FROM, TIME_OR_NONE },
        { LS_REC_PROCTOTALS, LS_C_PROCTOTALS_TO, TIME_OR_NONE },
        { LS_REC_REGION, LS_C_REGION_THREAD, THREAD },
        { LS_REC_REGION, LS_C_REGION_TIME, TIME },
        { LS_REC_REGION, LS_C_REGION_NAME, STRING },
        { LS_REC_NOTICE, LS_C_NOTICE_STR, STRING },
        { LS_REC_AGGREGATE, LS_C_AGGREGATE_STACK, STACK },
        { LS_REC_AGGREGATE, LS_C_AGGREGATE_THREAD, THREAD },
        { LS_REC_AGGREGATE, LS_C_AGGREGATE_VM, VM },
        { LS_REC_AGGREGATE, LS_C_AGGREGATE_COROUTINE, COROUTINE },
        { LS_REC_AGGREGATE, LS_C_AGGREGATE_ZONE, ZONE },
        { LS_REC_SPAN, LS_C_SPAN_TIME, TIME },
        { LS_REC_SPAN, LS_C_SPAN_THREAD, THREAD },
        { LS_REC_SPAN, LS_C_SPAN_COROUTINE, COROUTINE },
        { LS_REC_SPAN, LS_C_SPAN_STACK, STACK },
        { LS_REC_SPAN, LS_C_SPAN_NAME, STRING },
        { LS_REC_LINECOUNT, LS_C_LINECOUNT_FUNCTION, FUNCTION },
        { LS_REC_COUNT, LS_C_COUNT_COUNTER, COUNTER },
        { LS_REC_COUNT, LS_C_COUNT_TIME, TIME },
        { LS_REC_ATTEMPT, LS_C_ATTEMPT_VM, VM },
        { LS_REC_ATTEMPT, LS_C_ATTEMPT_START, LOCATION },
        { LS_REC_ATTEMPT, LS_C_ATTEMPT_STOP, LOCATION },
        { LS_REC_ATTEMPT, LS_C_ATTEMPT_REASON, STRING },
        { LS_REC_ATTEMPT, LS_C_ATTEMPT_ABOUT, FUNCTION },
};
static const uint8_t copied[] = { LS_REC_IRNAMES,   LS_REC_EVENT,      LS_REC_CLOCKS,
                                  LS_REC_THREADCPU, LS_REC_PROCTOTALS, LS_REC_REGION,
                                  LS_REC_NOTICE,    LS_REC_AGGREGATE,  LS_REC_SPAN,
                                  LS_REC_LINECOUNT, LS_REC_COUNT,      LS_REC_ATTEMPT };

static uint64_t change(const struct ls_merge_ids *ids, enum how how, uint64_t v)
{
        const struct ls_profile *p = ids->p;

        switch (how) {
        case FUNCTION:
                return function_of(ids, v);
        case LOCATION:
                return ls_merge_id(ids->locations, p->n_locations, v);
        case STACK:
                return ls_merge_id(ids->stacks, p->n_stacks, v);
        case ZONE:
                return ls_merge_id(ids->zones, p->n_zones, v);
        case PROCESS:
                return ls_merge_id(ids->processes, p->n_processes, v);
        case THREAD:
                return ls_merge_id(ids->threads, p->n_threads, v);
        case VM:
                return ls_merge_id(ids->vms, p->n_vms, v);
        case COROUTINE:
                return ls_merge_id(ids->coroutines, p->n_coroutines, v);
        case COUNTER:
                return ls_merge_id(ids->counters, p->n_counters, v);
        case STRING:
                return str(ids, ls_profile_string(ids->p, v));
        case TIME:
                return v + ids->in->shift_ns;
        case TIME_OR_NONE:              /* 0 = not known */
                return v ? v + ids->in->shift_ns : 0;
        case TICKS:
                return v * ids->in->scale;
        case PERIOD:                    /* of events that count ticks of the interval */
                return v == p->interval_ns ? ids->m->interval_ns : v;
        }
        return v;
}

/* Of a process that is in several pieces: each has its own. */
static void add_totals(struct ls_merge_ids *ids, const uint64_t *row)
{
        struct ls_dict *d = &ids->m->known[LS_REC_PROCTOTALS];
        uint64_t from = COL(PROCTOTALS, FROM), to = COL(PROCTOTALS, TO);
        int is_new;
        uint32_t id = ls_dict_intern(d, row, &is_new);
        uint64_t *all = id ? ls_dict_row(d, id) : NULL;

        if (!all)
                return;
        for (unsigned c = LS_C_PROCTOTALS_TICKS; !is_new && c < LS_C_PROCTOTALS_FROM; c++)
                all[c] += row[c];
        if (from && (!all[LS_C_PROCTOTALS_FROM] || from < all[LS_C_PROCTOTALS_FROM]))
                all[LS_C_PROCTOTALS_FROM] = from;
        if (to > all[LS_C_PROCTOTALS_TO])
                all[LS_C_PROCTOTALS_TO] = to;
        ls_trace_keyed(ids->m->w, LS_REC_PROCTOTALS, all);
}

static void copy_rows(struct ls_merge_ids *ids, unsigned kind)
{
        const uint32_t n = ls_profile_rows(ids->p, kind);

        for (uint32_t i = 1; i <= n; i++) {
                uint64_t row[LS_COLUMNS_MAX];

                if (!ls_profile_row(ids->p, kind, i, row))
                        continue;
                for (size_t c = 0; c < sizeof(changes) / sizeof(changes[0]); c++)
                        if (changes[c].kind == kind)
                                row[changes[c].column] =
                                        change(ids, changes[c].how, row[changes[c].column]);
                if (kind == LS_REC_PROCTOTALS && ids->m->pieces)
                        add_totals(ids, row);
                else if (ls_schemas[kind].rows == LS_ROWS_KEYED)
                        ls_trace_keyed(ids->m->w, kind, row);
                else if (kind == LS_REC_NOTICE || kind == LS_REC_CLOCKS)
                        add_row(ids, kind, row);
                else
                        ls_trace_row(ids->m->w, kind, row);
        }
}

/* The last entries of some tables stand for lost definitions: they are written when something
 * refers to them. */
int ls_merge_lost(struct ls_merge_ids *ids, uint32_t stack, uint32_t zone, uint32_t label)
{
        int r = add_stack(ids, stack);

        if (!r && label && !ids->labels[label])
                r = add_label(ids, label);
        return r ? r : add_zone(ids, zone);
}

int ls_merge_tables(struct ls_merge_ids *ids)
{
        int r = 0;

        for (size_t t = 0; !r && t < sizeof(tables) / sizeof(tables[0]); t++) {
                const uint32_t n = ls_profile_rows(ids->p, tables[t].kind);

                for (uint32_t i = 1; !r && i <= n; i++)
                        r = tables[t].add(ids, i);
        }
        if (!r)
                r = add_jittraces(ids);
        for (size_t i = 0; !r && i < sizeof(copied); i++)
                copy_rows(ids, copied[i]);
        ids->m->jit_base += ids->jit_most;
        return r;
}
