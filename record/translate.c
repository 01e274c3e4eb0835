/* Turns records from the rings into the trace: see translate.h. One function for each kind of record, in a table. */
#include "record/translate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/ids.h"

#define DEPTH_MAX (1u << 20)            /* logical depth of a stack that we keep track of */
#define UNKNOWN_MAX (1u << 16)          /* of it, frames that no record brought: filling them is our own work */
#define LATE_NS 1000000000ull           /* clocks of two processors may differ, and a sample may be just before start */
#define NOTICES_MAX 64

int ls_translate_init(struct ls_translate *t, const struct ls_translate_config *cfg)
{
        memset(t, 0, sizeof(*t));
        t->cfg = *cfg;
        ls_sources_init(&t->sources, cfg->writer, cfg->cwd, cfg->pid, cfg->no_source);
        ls_mappings_init(&t->mappings, cfg->writer, cfg->pid);
        t->rings = calloc(cfg->memory->ring_count, sizeof(*t->rings));
        return t->rings ? 0 : -ENOMEM;
}

void ls_translate_done(struct ls_translate *t)
{
        for (unsigned i = 0; t->rings && i < t->cfg.memory->ring_count; i++)
                free(t->rings[i].stacks);
        free(t->rings);
        free(t->functions);
        free(t->zones);
        free(t->vms);
        free(t->coroutines);
        ls_sources_done(&t->sources);
        ls_mappings_done(&t->mappings);
        memset(t, 0, sizeof(*t));
}

static uint32_t pseudo_location(struct ls_translate *t, const char *name, uint32_t *slot)
{
        if (!*slot) {
                struct ls_function_def def = { .kind = LS_FUNC_PSEUDO };

                def.identity_name = ls_trace_string(t->cfg.writer, name, strlen(name));
                *slot = ls_trace_location(t->cfg.writer, ls_trace_function(t->cfg.writer, &def), 0);
        }
        return *slot;
}

static uint32_t lost_location(struct ls_translate *t)
{
        return pseudo_location(t, "[definition lost]", &t->lost_location);
}

/* 1 when len bytes hold the fixed part and a string of name_len after it. */
static int fits(uint32_t len, size_t fixed, uint64_t name_len)
{
        return len >= fixed && name_len <= len - fixed;
}

static uint32_t lookup(const uint32_t *table, uint32_t n, uint32_t id)
{
        return id < n ? table[id] : 0;
}

static int on_source(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_source *rec = body;

        (void)ring;
        if (!fits(len, sizeof(*rec), rec->name_len))
                return -EINVAL;
        return ls_sources_define(&t->sources, rec, (const char *)(rec + 1));
}

static int on_text(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_text *rec = body;

        (void)ring;
        if (!fits(len, sizeof(*rec), rec->len))
                return -EINVAL;
        return ls_sources_text(&t->sources, rec, (const char *)(rec + 1));
}

static int on_function(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_function *rec = body;
        struct ls_function_def def = { .kind = rec->kind, .flags = rec->flags };
        struct ls_translate_function f = { .slot = UINT32_MAX, .kind = rec->kind };

        (void)ring;
        if (!fits(len, sizeof(*rec), rec->name_len))
                return -EINVAL;
        switch (rec->kind) {
        case LS_FUNC_LUA:
                def.source = ls_sources_trace_id(&t->sources, rec->source_id);
                def.first_line = rec->first_line;
                def.last_line = rec->last_line;
                def.hash = rec->hash;
                if (!def.source && rec->source_id)
                        t->definition_missing++;
                break;
        case LS_FUNC_BUILTIN:
        case LS_FUNC_PSEUDO:
                if (!rec->name_len)
                        return -EINVAL;
                def.identity_name = ls_trace_string(t->cfg.writer, (const char *)(rec + 1), rec->name_len);
                break;
        case LS_FUNC_C:
                break;
        default:
                return -EINVAL;
        }
        if (ls_ids_reserve((void **)&t->functions, &t->n_functions, sizeof(*t->functions), rec->func_id) < 0)
                return -EINVAL;
        if (rec->kind == LS_FUNC_C)
                f.trace_id = ls_mappings_function(&t->mappings, rec->addr, &f.slot);
        else
                f.trace_id = ls_trace_function(t->cfg.writer, &def);
        t->functions[rec->func_id] = f;
        return 0;
}

static int on_name(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_name *rec = body;
        struct ls_translate_function *f;

        (void)ring;
        if (!fits(len, sizeof(*rec), rec->name_len) || rec->rank > LS_NAME_GLOBAL || !rec->name_len ||
            rec->func_id >= t->n_functions || !t->functions[rec->func_id].trace_id)
                return -EINVAL;
        f = &t->functions[rec->func_id];
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
        uint32_t name;

        (void)ring;
        if (!fits(len, sizeof(*rec), rec->name_len) ||
            ls_ids_reserve((void **)&t->zones, &t->n_zones, sizeof(*t->zones), rec->zone_id) < 0)
                return -EINVAL;
        if (rec->parent_id && !lookup(t->zones, t->n_zones, rec->parent_id))
                t->definition_missing++;
        name = ls_trace_string(t->cfg.writer, (const char *)(rec + 1), rec->name_len);
        t->zones[rec->zone_id] = ls_trace_zone(t->cfg.writer, lookup(t->zones, t->n_zones, rec->parent_id), name);
        return 0;
}

static int on_thread(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_thread *rec = body;
        struct ls_translate_ring *r = &t->rings[ring];

        if (!fits(len, sizeof(*rec), rec->name_len))
                return -EINVAL;
        r->tid = rec->tid;
        r->thread = ls_trace_thread(t->cfg.writer, t->cfg.process, rec->tid,
                                    ls_trace_string(t->cfg.writer, (const char *)(rec + 1), rec->name_len));
        return 0;
}

static int on_vm(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_vm *rec = body;

        (void)ring;
        if (!fits(len, sizeof(*rec), rec->name_len) ||
            ls_ids_reserve((void **)&t->vms, &t->n_vms, sizeof(*t->vms), rec->vm_id) < 0)
                return -EINVAL;
        t->vms[rec->vm_id] = ls_trace_vm(t->cfg.writer, t->cfg.process, rec->vm_id,
                                         ls_trace_string(t->cfg.writer, (const char *)(rec + 1), rec->name_len));
        return 0;
}

static uint32_t function_trace_id(struct ls_translate *t, uint32_t id)
{
        return id < t->n_functions ? t->functions[id].trace_id : 0;
}

static int on_coroutine(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_coroutine *rec = body;

        (void)ring;
        if (len < sizeof(*rec) ||
            ls_ids_reserve((void **)&t->coroutines, &t->n_coroutines, sizeof(*t->coroutines), rec->coroutine_id) < 0)
                return -EINVAL;
        t->coroutines[rec->coroutine_id] =
                ls_trace_coroutine(t->cfg.writer, lookup(t->vms, t->n_vms, rec->vm_id),
                                   function_trace_id(t, rec->func_id), rec->generation);
        return 0;
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
        ls_trace_region(t->cfg.writer, rec->begin != 0, ls_translate_thread(t, ring), rec->time_ns, rec->cpu_ns,
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
                t->cfg.notice(t->cfg.ctx, text);
        return 0;
}

static int on_runtime(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        (void)t, (void)ring, (void)body, (void)len;     /* the session takes it from the control page */
        return 0;
}

/* Room for the logical depth; what lies between the old depth and to is filled with one pseudo frame on top of what
 * is known. */
static int extend(struct ls_translate *t, struct ls_translate_ring *r, uint32_t from, uint32_t to, uint32_t total,
                  uint32_t location)
{
        uint32_t filler;

        if (total > DEPTH_MAX || (to > from && to - from > UNKNOWN_MAX))
                return -EINVAL;
        if (total > r->cap) {
                uint32_t cap = total + total / 2 + 64;
                uint32_t *grown = reallocarray(r->stacks, cap, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                r->stacks = grown;
                r->cap = cap;
        }
        if (from >= to)
                return 0;
        filler = ls_trace_stack(t->cfg.writer, from ? r->stacks[from - 1] : 0, location);
        for (uint32_t i = from; i < to; i++)
                r->stacks[i] = filler;
        return 0;
}

static uint32_t frame_location(struct ls_translate *t, const struct ls_frame *frame)
{
        uint32_t function = function_trace_id(t, frame->func_id);

        if (!function) {
                t->definition_missing++;
                return lost_location(t);
        }
        return ls_trace_location(t->cfg.writer, function, frame->line);
}

/* The stack's id in the trace; work is in proportion to the frames that follow the record. */
static int sample_stack(struct ls_translate *t, struct ls_translate_ring *r, const struct ls_rec_sample *rec,
                        uint32_t *ret_stack)
{
        const struct ls_frame *frames = (const struct ls_frame *)(rec + 1);
        uint64_t total = (uint64_t)rec->keep + rec->cut + rec->nframes;
        uint32_t base = rec->keep + rec->cut, parent;
        int err;

        if (total > DEPTH_MAX)
                return -EINVAL;
        /* It builds on frames of a sample that we do not have. */
        err = extend(t, r, r->depth, rec->keep, (uint32_t)total, r->depth < rec->keep ? lost_location(t) : 0);
        if (err == 0 && rec->cut)
                err = extend(t, r, rec->keep, base, (uint32_t)total,
                             pseudo_location(t, "[middle cut]", &t->cut_location));
        if (err < 0)
                return err;
        parent = base ? r->stacks[base - 1] : 0;
        for (uint32_t i = 0; i < rec->nframes; i++) {
                parent = ls_trace_stack(t->cfg.writer, parent, frame_location(t, &frames[rec->nframes - 1 - i]));
                r->stacks[base + i] = parent;
        }
        r->depth = (uint32_t)total;
        *ret_stack = parent ? parent : ls_trace_stack(t->cfg.writer, 0, lost_location(t));
        return 0;
}

/* Ticks of a sample, 0 when its figures cannot be: more CPU time than has passed, or a time outside the recording. */
static uint64_t sane_ticks(const struct ls_translate *t, const struct ls_rec_sample *rec)
{
        uint64_t sum = 0, most = (t->now_ns - t->cfg.start_ns + 2 * LATE_NS) / t->cfg.interval_ns;

        for (unsigned i = 0; i < LS_NVMSTATES; i++)
                sum += rec->weight[i];
        if (sum > most || rec->time_ns + LATE_NS < t->cfg.start_ns || rec->time_ns > t->now_ns + LATE_NS)
                return 0;
        return sum;
}

static void write_rows(struct ls_translate *t, unsigned ring, const struct ls_rec_sample *rec, uint32_t stack)
{
        struct ls_sample_row row = {
                .event = (uint8_t)rec->event,
                .flags = (uint8_t)(rec->flags & ~(uint32_t)LS_SAMPLE_CONT),
                .thread = ls_translate_thread(t, ring),
                .vm = lookup(t->vms, t->n_vms, rec->vm_id),
                .coroutine = lookup(t->coroutines, t->n_coroutines, rec->coroutine_id),
                .zone = lookup(t->zones, t->n_zones, rec->zone_id),
                .stack = stack,
                .time_ns = rec->time_ns,
        };

        if ((rec->zone_id && !row.zone) || (rec->coroutine_id && !row.coroutine) || (rec->vm_id && !row.vm))
                t->definition_missing++;
        for (unsigned i = 0; i < LS_NVMSTATES; i++) {
                if (!rec->weight[i])
                        continue;
                row.vmstate = (uint8_t)i;
                row.weight = rec->weight[i];
                ls_trace_sample(t->cfg.writer, &row);
                row.flags |= LS_SAMPLE_CONT;
                t->rows++;
        }
}

static int on_sample(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_sample *rec = body;
        struct ls_translate_ring *r = &t->rings[ring];
        uint64_t ticks;
        uint32_t stack;

        if (len < sizeof(*rec) || rec->nframes > (len - sizeof(*rec)) / sizeof(struct ls_frame) ||
            rec->event != LS_EVENT_CPU || sample_stack(t, r, rec, &stack) < 0) {
                r->depth = 0;           /* the next one may build on this */
                return -EINVAL;
        }
        ticks = sane_ticks(t, rec);
        if (!ticks)
                return -EINVAL;
        write_rows(t, ring, rec, stack);
        t->samples++;
        t->sample_ticks += ticks;
        t->kernel_delayed += rec->kernel_delayed;
        t->last_cpu_ns = rec->cpu_ns;
        return 0;
}

static const struct {
        int (*take)(struct ls_translate *t, unsigned ring, const void *body, uint32_t len);
        uint32_t fixed;                 /* bytes without which nothing can be said */
} takers[] = {
        [LS_REC_SAMPLE] = { on_sample, sizeof(struct ls_rec_sample) },
        [LS_REC_SOURCE] = { on_source, sizeof(struct ls_rec_source) },
        [LS_REC_TEXT] = { on_text, sizeof(struct ls_rec_text) },
        [LS_REC_FUNCTION] = { on_function, sizeof(struct ls_rec_function) },
        [LS_REC_NAME] = { on_name, sizeof(struct ls_rec_name) },
        [LS_REC_ZONE] = { on_zone, sizeof(struct ls_rec_zone) },
        [LS_REC_THREAD] = { on_thread, sizeof(struct ls_rec_thread) },
        [LS_REC_VM] = { on_vm, sizeof(struct ls_rec_vm) },
        [LS_REC_COROUTINE] = { on_coroutine, sizeof(struct ls_rec_coroutine) },
        [LS_REC_MAPPING] = { on_mapping, sizeof(struct ls_rec_mapping) },
        [LS_REC_REGION] = { on_region, sizeof(struct ls_rec_region) },
        [LS_REC_NOTICE] = { on_notice, sizeof(struct ls_rec_notice) },
        [LS_REC_RUNTIME] = { on_runtime, 0 },
};

void ls_translate_record(void *ctx, unsigned ring, unsigned kind, const void *body, uint32_t len)
{
        struct ls_translate *t = ctx;

        if (kind >= sizeof(takers) / sizeof(*takers) || !takers[kind].take || len < takers[kind].fixed ||
            takers[kind].take(t, ring, body, len) < 0)
                t->bad_records++;
}

void ls_translate_gap(void *ctx, unsigned ring)
{
        struct ls_translate *t = ctx;

        t->rings[ring].depth = 0;
}

uint32_t ls_translate_thread(struct ls_translate *t, unsigned ring)
{
        struct ls_translate_ring *r = &t->rings[ring];

        if (!r->thread) {
                r->tid = atomic_load_explicit(&ls_memory_ring(t->cfg.memory, ring)->tid, memory_order_relaxed);
                r->thread = ls_trace_thread(t->cfg.writer, t->cfg.process, r->tid ? r->tid : (uint32_t)t->cfg.pid, 0);
        }
        return r->thread;
}

void ls_translate_finish(struct ls_translate *t)
{
        ls_mappings_name_functions(&t->mappings);
        ls_sources_finish(&t->sources);
}
