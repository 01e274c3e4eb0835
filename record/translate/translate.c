/* Turns records from the rings into the trace: see translate.h. One function for each kind of
 * record, in a table. */
#include "record/translate/translate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/translate/counts.h"
#include "record/translate/known.h"
#include "record/translate/sample.h"
#include "record/translate/live.h"

#define NOTICES_MAX 64
#define LABELS_MAX 65536        /* of a trace */
#define LABELS_MORE 4096
#define LABEL_IDS_MAX 65536     /* of a ring: the agent uses them again */
#define MARKS_MAX 65536         /* of a process: a program may mark in a loop */

int ls_translate_init(struct ls_translate *t, const struct ls_translate_config *cfg)
{
        memset(t, 0, sizeof(*t));
        t->cfg = *cfg;
        ls_sources_init(&t->sources, cfg->writer, cfg->worker, &t->ids, cfg->cwd, cfg->pid,
                        cfg->no_source);
        ls_mappings_init(&t->mappings, cfg->writer, cfg->worker, &t->ids, cfg->pid);
        t->mappings.shared = cfg->maps;
        t->rings = calloc(cfg->memory->ring_count, sizeof(*t->rings));
        for (unsigned i = 0; t->rings && i < cfg->memory->ring_count; i++)
                t->rings[i] =
                        (struct ls_translate_ring){ .role = ls_memory_role(cfg->memory, i),
                                                    .owner = ls_memory_owner(cfg->memory, i) };
        if (!t->rings || ls_jit_keep_init(&t->jit, cfg->writer, cfg->ordinal) < 0)
                return -ENOMEM;
        return cfg->native ? ls_native_init(&t->native, &t->mappings) : 0;
}

void ls_translate_worker(struct ls_translate *t, struct ls_worker *worker)
{
        t->cfg.worker = t->sources.worker = t->mappings.worker = worker;
}

/* What the ids in its records meant, and which thread it was. */
static void forget_ring(struct ls_translate *t, struct ls_translate_ring *r)
{
        ls_sources_finish(&t->sources, &r->sources);
        ls_source_table_done(&t->sources, &r->sources);
        ls_ids_free(&t->ids, r->functions, r->n_functions, sizeof(*r->functions));
        ls_ids_free(&t->ids, r->zones, r->n_zones, sizeof(*r->zones));
        ls_ids_free(&t->ids, r->labels, r->n_labels, sizeof(*r->labels));
        ls_ids_free(&t->ids, r->coroutines, r->n_coroutines, sizeof(*r->coroutines));
        ls_ids_free(&t->ids, r->places, r->n_places, sizeof(*r->places));
        ls_ids_free(&t->ids, r->generations, r->n_generations, sizeof(*r->generations));
        free(r->stacks);
        free(r->lua);
        free(r->wall);
        free(r->known);
        ls_native_ring_done(&r->native);
        *r = (struct ls_translate_ring){ .role = r->role, .owner = r->owner };
}

void ls_translate_done(struct ls_translate *t)
{
        for (unsigned i = 0; t->rings && i < t->cfg.memory->ring_count; i++)
                forget_ring(t, &t->rings[i]);
        free(t->rings);
        free(t->vms);
        ls_counts_free(t);
        free(t->vm_rings);
        ls_live_done(t);
        ls_jit_keep_done(&t->jit);
        ls_attempts_done(&t->attempts);
        if (t->cfg.native)
                ls_native_done(&t->native);
        ls_sources_done(&t->sources);
        ls_mappings_done(&t->mappings);
        memset(t, 0, sizeof(*t));
}

/* 1 when len bytes hold the fixed part and a string of name_len after it. */
static int fits(uint32_t len, size_t fixed, uint64_t name_len)
{
        return len >= fixed && name_len <= len - fixed;
}

static int on_source(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_source *rec = body;

        if (!fits(len, sizeof(*rec), rec->name_len))
                return -EINVAL;
        return ls_sources_define(&t->sources, &t->rings[ring].sources, rec,
                                 (const char *)(rec + 1));
}

static int on_text(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_text *rec = body;

        if (!fits(len, sizeof(*rec), rec->len))
                return -EINVAL;
        return ls_sources_text(&t->sources, &t->rings[ring].sources, rec, (const char *)(rec + 1));
}

static int on_function(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_function *rec = body;
        struct ls_function_def def = { .kind = rec->kind, .flags = rec->flags };
        struct ls_translate_function f = { .addr = rec->addr,
                                           .slot = UINT32_MAX,
                                           .kind = rec->kind };
        struct ls_translate_ring *r = &t->rings[ring];

        if (!fits(len, sizeof(*rec), rec->name_len))
                return -EINVAL;
        switch (rec->kind) {
        case LS_FUNC_LUA:
                def.source = ls_sources_trace_id(&t->sources, &r->sources, rec->source_id);
                def.first_line = rec->first_line;
                def.last_line = rec->last_line;
                def.hash = rec->hash;
                if (ls_sources_is_loaded(&r->sources, rec->source_id))
                        def.flags |= LS_FUNCF_LOADED;
                if (!def.source && rec->source_id)
                        t->definition_missing++;
                break;
        case LS_FUNC_BUILTIN:
        case LS_FUNC_PSEUDO:
                if (!rec->name_len)
                        return -EINVAL;
                def.identity_name =
                        ls_trace_string(t->cfg.writer, (const char *)(rec + 1), rec->name_len);
                break;
        case LS_FUNC_C:
                break;
        default:
                return -EINVAL;
        }
        if (ls_ids_reserve(&t->ids, (void **)&r->functions, &r->n_functions, sizeof(*r->functions),
                           rec->func_id) < 0)
                return -EINVAL;
        if (rec->kind == LS_FUNC_C)
                f.trace_id = ls_mappings_function(&t->mappings, rec->addr, &f.slot);
        else
                f.trace_id = ls_trace_function(t->cfg.writer, &def);
        r->functions[rec->func_id] = f;
        return 0;
}

static int on_name(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_name *rec = body;
        struct ls_translate_ring *r = &t->rings[ring];
        struct ls_translate_function *f;

        if (!fits(len, sizeof(*rec), rec->name_len) || rec->rank > LS_NAME_GLOBAL ||
            !rec->name_len || rec->func_id >= r->n_functions ||
            !r->functions[rec->func_id].trace_id)
                return -EINVAL;
        f = &r->functions[rec->func_id];
        if (rec->rank <= f->rank)
                return 0;
        f->rank = (uint8_t)rec->rank;
        /* A symbol is a better name for a C function than a caller's word. */
        if (rec->rank > LS_NAME_CALLSITE || f->slot == UINT32_MAX)
                ls_mappings_named(&t->mappings, f->slot);
        ls_trace_name(t->cfg.writer, f->trace_id, (enum ls_name_rank)rec->rank,
                      ls_trace_string(t->cfg.writer, (const char *)(rec + 1), rec->name_len));
        return 0;
}

static int on_zone(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_zone *rec = body;
        struct ls_translate_ring *r = &t->rings[ring];
        uint32_t name, parent;

        if (!fits(len, sizeof(*rec), rec->name_len) ||
            ls_ids_reserve(&t->ids, (void **)&r->zones, &r->n_zones, sizeof(*r->zones),
                           rec->zone_id) < 0)
                return -EINVAL;
        parent = ls_translate_lookup(r->zones, r->n_zones, rec->parent_id);
        if (rec->parent_id && !parent)
                t->definition_missing++;
        name = ls_trace_string(t->cfg.writer, (const char *)(rec + 1), rec->name_len);
        r->zones[rec->zone_id] = ls_trace_zone(t->cfg.writer, parent, name);
        return 0;
}

/* A value that changes all the time (a frame's number) would fill the trace: when there are
 * LABELS_MAX sets of labels, new values are one, and what holds with it has room of its own, a
 * little. */
static uint32_t trace_label(struct ls_translate *t, uint32_t parent, uint32_t key, uint32_t value)
{
        static const char others[] = "(other values)";
        uint32_t n = ls_trace_labels(t->cfg.writer);

        if (n < LABELS_MAX || (parent > LABELS_MAX && n < LABELS_MAX + LABELS_MORE))
                return ls_trace_label(t->cfg.writer, parent, key, value);
        return ls_trace_label(t->cfg.writer, parent > LABELS_MAX ? parent : 0, key,
                              ls_trace_string(t->cfg.writer, others, sizeof(others) - 1));
}

static int on_label(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_label *rec = body;
        struct ls_translate_ring *r = &t->rings[ring];
        const char *key = (const char *)(rec + 1);
        uint32_t parent, value, n = ls_trace_labels(t->cfg.writer);

        if (!fits(len, sizeof(*rec), (uint64_t)rec->key_len + rec->value_len) ||
            rec->label_id > LABEL_IDS_MAX ||
            ls_ids_reserve(&t->ids, (void **)&r->labels, &r->n_labels, sizeof(*r->labels),
                           rec->label_id) < 0)
                return -EINVAL;
        parent = ls_translate_lookup(r->labels, r->n_labels, rec->parent_id);
        if (rec->parent_id && !parent)
                t->definition_missing++;
        r->labels[rec->label_id] = parent;
        if (n >= LABELS_MAX + 2 * LABELS_MORE)
                return 0;
        value = n < LABELS_MAX + LABELS_MORE
                        ? ls_trace_string(t->cfg.writer, key + rec->key_len, rec->value_len)
                        : 0;
        r->labels[rec->label_id] =
                trace_label(t, parent, ls_trace_string(t->cfg.writer, key, rec->key_len), value);
        return 0;
}

static int on_thread(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_thread *rec = body;
        struct ls_translate_ring *r = &t->rings[ring];
        uint32_t claim = atomic_load_explicit(&ls_memory_ring(t->cfg.memory, ring)->claim,
                                              memory_order_relaxed);

        if (!fits(len, sizeof(*rec), rec->name_len))
                return -EINVAL;
        if (r->tid && (r->tid != rec->tid || r->claim != claim)) {
                if (r->role == LS_ROLE_AGENT)
                        ls_translate_wall_until(t, ring, UINT64_MAX);
                forget_ring(t, r);
        }
        if (r->tid != rec->tid || r->claim != claim)
                r->outer_tid = 0;
        r->tid = rec->tid;
        r->claim = claim;
        r->name = ls_trace_string(t->cfg.writer, (const char *)(rec + 1), rec->name_len);
        if (r->thread)                  /* it has a new name */
                r->thread = ls_translate_name(t, r);
        r->n_named++;
        return 0;
}

static int on_vm(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_vm *rec = body;

        (void)ring;
        if (!fits(len, sizeof(*rec), rec->name_len) ||
            ls_ids_reserve(&t->ids, (void **)&t->vms, &t->n_vms, sizeof(*t->vms), rec->vm_id) < 0)
                return -EINVAL;
        t->vms[rec->vm_id] =
                ls_trace_vm(t->cfg.writer, t->cfg.process, rec->vm_id,
                            ls_trace_string(t->cfg.writer, (const char *)(rec + 1), rec->name_len));
        return 0;
}

static int on_coroutine(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_coroutine *rec = body;
        struct ls_translate_ring *r = &t->rings[ring];

        if (len < sizeof(*rec) || ls_ids_reserve(&t->ids, (void **)&r->coroutines, &r->n_coroutines,
                                                 sizeof(*r->coroutines), rec->coroutine_id) < 0)
                return -EINVAL;
        return ls_translate_coroutine(t, ring, rec, ls_translate_function_id(r, rec->func_id),
                                      &r->coroutines[rec->coroutine_id]);
}

static int on_mapping(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_mapping *rec = body;
        const char *path = (const char *)(rec + 1);

        (void)ring;
        if (!fits(len, sizeof(*rec), (uint64_t)rec->path_len + rec->build_id_len))
                return -EINVAL;
        return ls_mappings_add(&t->mappings, rec, path, (const uint8_t *)path + rec->path_len);
}

static int on_region(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_region *rec = body;

        if (!fits(len, sizeof(*rec), rec->name_len))
                return -EINVAL;
        ls_trace_region(t->cfg.writer, rec->begin != 0, ls_translate_thread(t, ring), rec->time_ns,
                        rec->cpu_ns,
                        ls_trace_string(t->cfg.writer, (const char *)(rec + 1), rec->name_len));
        return 0;
}

static int on_span(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_span *rec = body;

        if (!fits(len, sizeof(*rec), rec->name_len) || rec->phase != LS_SPAN_INSTANT)
                return -EINVAL;
        if (t->cfg.marked)
                t->cfg.marked(t->cfg.notice_ctx, (const char *)(rec + 1), rec->name_len);
        if (t->marks == MARKS_MAX) {
                t->marks_dropped++;
                return 0;
        }
        t->marks++;
        ls_trace_mark(t->cfg.writer, ls_translate_thread(t, ring), rec->time_ns,
                      ls_trace_string(t->cfg.writer, (const char *)(rec + 1), rec->name_len));
        return 0;
}

static int on_notice(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_notice *rec = body;
        char text[1024];
        uint32_t n;

        (void)ring;
        if (!fits(len, sizeof(*rec), rec->len) || t->notices == NOTICES_MAX)
                return -EINVAL;
        n = rec->len < sizeof(text) ? rec->len : (uint32_t)sizeof(text) - 1;
        memcpy(text, rec + 1, n);
        text[n] = 0;
        t->notices++;
        ls_trace_notice(t->cfg.writer, text);
        if (t->cfg.notice)
                t->cfg.notice(t->cfg.notice_ctx, text);
        return 0;
}

static int on_runtime(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        (void)t, (void)ring, (void)body, (void)len;     /* the session takes it from the control
                                                         * page */
        return 0;
}

/* body is drain.c's copy, and may be changed. */
static int on_jittrace(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        struct ls_rec_jittrace *rec = (struct ls_rec_jittrace *)(uintptr_t)body;
        const struct ls_translate_ring *r = &t->rings[ring];
        uint32_t size = ls_jit_record_size(rec, len), *functions = (uint32_t *)(rec + 1);

        if (!size || !rec->jit_id)
                return -EINVAL;
        for (uint32_t i = 0; i < rec->nfunctions; i++) {
                functions[i] = ls_translate_function_id(r, functions[i]);
                t->definition_missing += !functions[i];
        }
        return ls_jit_keep_add(&t->jit, rec, size, ls_translate_vm(t, rec->vm_id));
}

static int on_irnames(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_irnames *rec = body;

        (void)ring;
        if (!fits(len, sizeof(*rec), rec->len))
                return -EINVAL;
        return ls_jit_keep_names(&t->jit, ls_translate_vm(t, rec->vm_id), (const char *)(rec + 1),
                                 rec->len);
}

static int on_attempt(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_attempt *rec = body;
        const struct ls_translate_ring *r = &t->rings[ring];
        struct ls_attempt_kind kind = {
                .vm = ls_translate_vm(t, rec->vm_id),
                .start = ls_translate_function_id(r, rec->start_function),
                .first_line = rec->first_line, .last_line = rec->last_line,
                .flags = rec->flags & LS_ATTEMPT_FLAGS,
                .stop = ls_translate_function_id(r, rec->stop_function),
                .about = ls_translate_function_id(r, rec->about),
        };

        if (!fits(len, sizeof(*rec), rec->reason_len) || rec->reason_len > LS_ATTEMPT_REASON)
                return -EINVAL;
        kind.start_line = kind.start ? rec->start_line : 0;
        kind.stop_line = kind.stop ? rec->stop_line : 0;
        return ls_attempts_add(&t->attempts, kind, (const char *)(rec + 1), rec->reason_len,
                               rec->ns, rec->bytecodes);
}

static const struct {
        int (*take)(struct ls_translate *t, unsigned ring, const void *body, uint32_t len);
        uint32_t fixed;                 /* bytes without which nothing can be said */
} takers[] = {
        [LS_REC_SAMPLE] = { ls_translate_sample, sizeof(struct ls_rec_sample) },
        [LS_REC_SOURCE] = { on_source, sizeof(struct ls_rec_source) },
        [LS_REC_TEXT] = { on_text, sizeof(struct ls_rec_text) },
        [LS_REC_FUNCTION] = { on_function, sizeof(struct ls_rec_function) },
        [LS_REC_NAME] = { on_name, sizeof(struct ls_rec_name) },
        [LS_REC_ZONE] = { on_zone, sizeof(struct ls_rec_zone) },
        [LS_REC_LABEL] = { on_label, sizeof(struct ls_rec_label) },
        [LS_REC_THREAD] = { on_thread, sizeof(struct ls_rec_thread) },
        [LS_REC_VM] = { on_vm, sizeof(struct ls_rec_vm) },
        [LS_REC_COROUTINE] = { on_coroutine, sizeof(struct ls_rec_coroutine) },
        [LS_REC_MAPPING] = { on_mapping, sizeof(struct ls_rec_mapping) },
        [LS_REC_REGION] = { on_region, sizeof(struct ls_rec_region) },
        [LS_REC_SPAN] = { on_span, sizeof(struct ls_rec_span) },
        [LS_REC_JITTRACE] = { on_jittrace, sizeof(struct ls_rec_jittrace) },
        [LS_REC_IRNAMES] = { on_irnames, sizeof(struct ls_rec_irnames) },
        [LS_REC_NOTICE] = { on_notice, sizeof(struct ls_rec_notice) },
        [LS_REC_RUNTIME] = { on_runtime, 0 },
        [LS_REC_ATTEMPT] = { on_attempt, sizeof(struct ls_rec_attempt) },
        [LS_REC_HEAP] = { ls_counts_heap, sizeof(struct ls_rec_heap) },
        [LS_REC_FREE] = { ls_live_record, sizeof(struct ls_rec_free) },
        [LS_REC_COUNT] = { ls_counts_record, sizeof(struct ls_rec_count) },
};

void ls_translate_record(void *ctx, unsigned ring, unsigned kind, const void *body, uint32_t len)
{
        struct ls_translate *t = ctx;

        if (kind >= sizeof(takers) / sizeof(*takers) || !takers[kind].take ||
            len < takers[kind].fixed || takers[kind].take(t, ring, body, len) < 0)
                t->bad_records++;
}

void ls_translate_gap(void *ctx, unsigned ring)
{
        struct ls_translate *t = ctx;

        t->rings[ring].depth = 0;
        ls_native_gap(&t->rings[ring].native);
}

void ls_translate_closed(void *ctx, unsigned ring)
{
        struct ls_translate *t = ctx;

        ls_translate_wall_until(t, ring, UINT64_MAX);
        if (t->cfg.ended)
                t->cfg.ended(t->cfg.ended_ctx, ring);
        forget_ring(t, &t->rings[ring]);
}

void ls_translate_settle(struct ls_translate *t)
{
        for (unsigned i = 0; i < t->cfg.memory->of[LS_ROLE_AGENT].n; i++)
                ls_translate_wall_until(t, i, UINT64_MAX);
        ls_counts_look(t, 0);
}

static void say(struct ls_translate *t, const char *text)
{
        ls_trace_notice(t->cfg.writer, text);
        if (t->cfg.notice)
                t->cfg.notice(t->cfg.notice_ctx, text);
}

void ls_translate_finish(struct ls_translate *t)
{
        char text[128];

        ls_counts_look(t, 1);
        ls_attempts_write(&t->attempts, t->cfg.writer);
        if (t->attempts.dropped) {
                snprintf(text, sizeof(text),
                         "%llu attempts of the JIT compiler are only counted: they are of too many "
                         "kinds",
                         (unsigned long long)t->attempts.dropped);
                say(t, text);
        }
        if (t->marks_dropped) {
                snprintf(text, sizeof(text),
                         "of the program's marks the first %u are kept, and %llu more are not",
                         MARKS_MAX, (unsigned long long)t->marks_dropped);
                say(t, text);
        }
        if (t->counts.dropped) {
                snprintf(text, sizeof(text),
                         "%llu values of the program's counters are not kept: there are too many",
                         (unsigned long long)t->counts.dropped);
                say(t, text);
        }
        if (t->counts.heaps_dropped) {
                snprintf(text, sizeof(text),
                         "%llu readings of the VMs' heaps are not kept: there are too many",
                         (unsigned long long)t->counts.heaps_dropped);
                say(t, text);
        }
        ls_live_finish(t);
        if (t->live_lost) {
                snprintf(text, sizeof(text),
                         "%llu sampled blocks were not followed: there are too many",
                         (unsigned long long)t->live_lost);
                say(t, text);
        }
        ls_mappings_name_functions(&t->mappings);
        for (unsigned i = 0; i < t->cfg.memory->ring_count; i++)
                ls_sources_finish(&t->sources, &t->rings[i].sources);
}
