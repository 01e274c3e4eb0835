/* Samples from the rings into the trace: stacks that build on the one before, places in compiled
 * code, native stacks. Called by translate.c. */
#include "record/translate/sample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record/process/ids.h"
#include "record/translate/known.h"
#include "record/translate/live.h"

#define DEPTH_MAX (1u << 20)            /* logical depth of a stack that we keep track of */
#define UNKNOWN_MAX                                                                                \
        (1u << 16) /* of it, frames that no record brought: filling them is our own work */
#define PLACES_MAX 65536u
#define LATE_NS                                                                                    \
        1000000000ull /* clocks of two processors may differ, and a sample may be just before start */

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

/* Room for the logical depth; what lies between the old depth and to is filled with one pseudo
 * frame on top of what is known. */
static int extend(struct ls_translate *t, struct ls_translate_ring *r, uint32_t from, uint32_t to,
                  uint32_t total, uint32_t location)
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
                if (t->cfg.native) {
                        struct ls_native_lua *lua = reallocarray(r->lua, cap, sizeof(*lua));

                        if (!lua)
                                return -ENOMEM;
                        r->lua = lua;
                }
                r->cap = cap;
        }
        if (from >= to)
                return 0;
        filler = ls_trace_stack(t->cfg.writer, from ? r->stacks[from - 1] : 0, location);
        for (uint32_t i = from; i < to; i++) {
                r->stacks[i] = filler;
                if (r->lua)             /* one frame stands for them all; N of one location would be
                                         * N frames */
                        r->lua[i] = (struct ls_native_lua){ 0, i == from ? location : 0 };
        }
        return 0;
}

static uint32_t frame_location(struct ls_translate *t, const struct ls_translate_ring *r,
                               const struct ls_frame *frame)
{
        uint32_t function = ls_translate_function_id(r, frame->func_id);

        if (!function) {
                t->definition_missing++;
                return lost_location(t);
        }
        return ls_trace_location(t->cfg.writer, function, frame->line);
}

/* The place in the machine code, which the reader turns into lines; it stands above the frames. 0 =
 * none. */
static uint32_t jit_location(struct ls_translate *t, const struct ls_rec_sample *rec)
{
        uint32_t offset = rec->jit_offset;
        uint32_t function = rec->jit_id ? ls_jit_keep_function(&t->jit, rec->jit_id, &offset) : 0;
        uint32_t line = offset == LS_JIT_NO_OFFSET ? 0 : offset + 1;

        return function ? ls_trace_location(t->cfg.writer, function, line) : 0;
}

/* Takes the frames that follow the record, so that r->stacks is of this sample; work is in
 * proportion to their number. *ret_stack is the Lua stack's id in the trace, 0 = no Lua runs. */
static int lua_stack(struct ls_translate *t, struct ls_translate_ring *r,
                     const struct ls_rec_sample *rec, uint32_t *ret_stack)
{
        const struct ls_frame *frames = (const struct ls_frame *)(rec + 1);
        uint64_t total = (uint64_t)rec->keep + rec->cut + rec->nframes;
        uint32_t base = rec->keep + rec->cut, parent;
        int err;

        if (total > DEPTH_MAX)
                return -EINVAL;
        /* It builds on frames of a sample that we do not have. */
        err = extend(t, r, r->depth, rec->keep, (uint32_t)total,
                     r->depth < rec->keep ? lost_location(t) : 0);
        if (err == 0 && rec->cut)
                err = extend(t, r, rec->keep, base, (uint32_t)total,
                             pseudo_location(t, "[middle cut]", &t->cut_location));
        if (err < 0)
                return err;
        parent = base ? r->stacks[base - 1] : 0;
        for (uint32_t i = 0; i < rec->nframes; i++) {
                const struct ls_frame *frame = &frames[rec->nframes - 1 - i];
                uint32_t location = frame_location(t, r, frame);

                parent = ls_trace_stack(t->cfg.writer, parent, location);
                r->stacks[base + i] = parent;
                if (r->lua)
                        r->lua[base + i] =
                                (struct ls_native_lua){ frame->func_id < r->n_functions
                                                                ? r->functions[frame->func_id].addr
                                                                : 0,
                                                        location };
        }
        r->depth = (uint32_t)total;
        *ret_stack = parent;
        return 0;
}

/* Frames and native stack of a sample: the stack's id in the trace. */
static int sample_stack(struct ls_translate *t, struct ls_translate_ring *r,
                        const struct ls_rec_sample *rec, uint32_t *ret_stack)
{
        const char *native = (const char *)(rec + 1) + rec->nframes * sizeof(struct ls_frame);
        enum ls_unwind_end end = LS_UNWIND_COMPLETE;
        uint32_t stack, location;
        int err = lua_stack(t, r, rec, &stack);

        if (err < 0)
                return err;
        location = jit_location(t, rec);
        if (t->cfg.native && rec->native_size &&
            ls_native_sample(&t->native, &r->native, native, rec->native_size, r->lua, r->depth,
                             location, ret_stack, &end) == 0) {
                t->native_cut += end != LS_UNWIND_COMPLETE;
                return 0;
        }
        t->native_cut += rec->native_size != 0;
        if (!stack)
                stack = ls_trace_stack(t->cfg.writer, 0,
                                       pseudo_location(t, "[outside Lua]", &t->outside_location));
        *ret_stack = location ? ls_trace_stack(t->cfg.writer, stack, location) : stack;
        if (location && rec->callee_id)
                *ret_stack =
                        ls_trace_stack(t->cfg.writer, *ret_stack,
                                       frame_location(t, r,
                                                      &(struct ls_frame){ rec->callee_id, 0 }));
        return 0;
}

/* 1 for a time of the recording. */
static int is_in_time(struct ls_translate *t, uint64_t time_ns)
{
        uint64_t now;

        /* The recorder may have lost its processor while it drained the rings. */
        if (time_ns > t->now_ns && t->cfg.clock && (now = t->cfg.clock()) > t->now_ns)
                t->now_ns = now;
        return time_ns + LATE_NS >= t->cfg.start_ns && time_ns <= t->now_ns + LATE_NS;
}

/* Ticks of a sample, 0 when its figures cannot be: more CPU time than has passed, or a time outside
 * the recording. */
static uint64_t sane_ticks(struct ls_translate *t, const struct ls_rec_sample *rec)
{
        uint64_t sum = 0, most;

        if (!is_in_time(t, rec->time_ns))
                return 0;
        most = (t->now_ns - t->cfg.start_ns + 2 * LATE_NS) / t->cfg.interval_ns;
        for (unsigned i = 0; i < LS_NVMSTATES; i++)
                sum += rec->weight[i];
        return sum > most ? 0 : sum;
}

_Static_assert(LS_DIMS == 9, "fill_row and struct ls_rec_sample have each dimension of dims.def");

/* What a row of this sample has beside weight and VM state. */
static void fill_row(struct ls_translate *t, unsigned ring, const struct ls_rec_sample *rec,
                     uint32_t stack, struct ls_sample_row *row)
{
        const struct ls_translate_ring *r = &t->rings[ring];

        *row = (struct ls_sample_row){
                .event = t->cfg.wall_only && rec->event == LS_EVENT_CPU ? LS_EVENT_WALL
                                                                        : (uint8_t)rec->event,
                .flags = (uint8_t)(rec->flags & ~(uint32_t)(LS_SAMPLE_CONT | LS_SAMPLE_NO_LINE)),
                .thread = ls_translate_thread(t, ring),
                .vm = ls_translate_vm(t, rec->vm_id),
                .coroutine = ls_translate_lookup(r->coroutines, r->n_coroutines, rec->coroutine_id),
                .zone = ls_translate_lookup(r->zones, r->n_zones, rec->zone_id),
                .label = ls_translate_lookup(r->labels, r->n_labels, rec->label_id),
                .type = rec->type < LS_NOBJTYPES ? (uint8_t)rec->type : 0,
                .stack = stack,
                .time_ns = rec->time_ns,
        };
        if ((rec->zone_id && !row->zone) || (rec->coroutine_id && !row->coroutine) ||
            (rec->vm_id && !row->vm))
                t->definition_missing++;
}

/* Whose suspended coroutines are those of this VM. */
static void note_vm_ring(struct ls_translate *t, unsigned ring, uint32_t vm_id)
{
        if (vm_id && ls_ids_reserve(&t->ids, (void **)&t->vm_rings, &t->n_vm_rings,
                                    sizeof(*t->vm_rings), vm_id) == 0)
                t->vm_rings[vm_id] = (uint8_t)ring;
}

static void write_rows(struct ls_translate *t, unsigned ring, const struct ls_rec_sample *rec,
                       uint32_t stack)
{
        struct ls_translate_ring *r = &t->rings[ring];
        struct ls_sample_row row;

        ls_translate_wall_until(t, ring, rec->time_ns);
        note_vm_ring(t, ring, rec->vm_id);
        fill_row(t, ring, rec, stack, &row);
        for (unsigned i = 0; i < LS_NVMSTATES; i++) {
                if (!rec->weight[i])
                        continue;
                row.vmstate = (uint8_t)i;
                row.weight = rec->weight[i];
                row.stack = i == LS_VMSTATE_NATIVE && (rec->flags & LS_SAMPLE_NO_LINE)
                            ? ls_trace_stack_no_line(t->cfg.writer, stack) : stack;
                ls_trace_sample(t->cfg.writer, &row);
                r->last = row;
                row.flags |= LS_SAMPLE_CONT;
                t->rows++;
        }
}

/* Whose place a row of blocked time takes when it has no stack of its own. */
static void take_place_of(struct ls_translate *t, struct ls_sample_row *row,
                          const struct ls_sample_row *other)
{
        const struct ls_sample_row own = *row;

        *row = *other;
        row->event = own.event;
        row->thread = own.thread;
        row->time_ns = own.time_ns;
        row->weight = own.weight;
        row->flags = (uint8_t)(LS_SAMPLE_OFF_CPU |
                               (other->flags & (LS_SAMPLE_MIDDLE_CUT | LS_SAMPLE_IN_REGION)));
        if (!row->stack)
                row->stack =
                        ls_trace_stack(t->cfg.writer, 0,
                                       pseudo_location(t, "[outside Lua]", &t->outside_location));
}

void ls_translate_wall_until(struct ls_translate *t, unsigned ring, uint64_t time_ns)
{
        struct ls_translate_ring *r = &t->rings[ring];
        uint32_t n = 0;

        for (; n < r->n_wall && r->wall[n].row.time_ns <= time_ns; n++) {
                struct ls_sample_row *row = &r->wall[n].row;

                if (r->wall[n].like == LS_LIKE_THREAD)
                        take_place_of(t, row, &r->last);
                if (row->time_ns < r->last.time_ns)     /* found out late: rows of a thread are in
                                                         * order of time */
                        row->time_ns = r->last.time_ns;
                ls_trace_sample(t->cfg.writer, row);
                r->last = *row;
        }
        r->n_wall -= n;
        if (n)
                memmove(r->wall, r->wall + n, r->n_wall * sizeof(*r->wall));
}

/* A thread that has not been sampled since it gave itself a name: the watcher knows it. */
static void name_thread(struct ls_translate *t, struct ls_translate_ring *agent,
                        const struct ls_translate_ring *watcher)
{
        if (agent->n_named > 1 || agent->name == watcher->name)
                return;
        agent->name = watcher->name;
        if (agent->thread)
                agent->thread = ls_translate_name(t, agent);
}

/* A row of the watcher's ring: it waits with the thread's own. */
static int add_wall(struct ls_translate *t, unsigned ring, const struct ls_rec_sample *rec,
                    uint32_t stack, uint64_t ticks)
{
        struct ls_translate_ring *own = &t->rings[ring], *r = &t->rings[own->owner];
        struct ls_translate_wall *w;

        if (own->tid != r->tid && r->tid)       /* of a thread that has ended: it is written with
                                                 * what is known of it */
                r = own;
        if (r->n_wall == r->wall_room) {
                w = reallocarray(r->wall, 2 * r->wall_room + 64, sizeof(*w));
                if (!w)
                        return -ENOMEM;
                r->wall = w;
                r->wall_room = 2 * r->wall_room + 64;
        }
        w = &r->wall[r->n_wall++];
        w->like = rec->like;
        fill_row(t, ring, rec, stack, &w->row);
        if (r != own && r->tid) {
                name_thread(t, r, own);
                w->row.thread = ls_translate_thread(t, own->owner);
        }
        w->row.weight = ticks;
        note_vm_ring(t, own->owner, rec->vm_id);
        for (uint8_t i = 0; i < LS_NVMSTATES; i++)
                if (rec->weight[i])
                        w->row.vmstate = i;
        if (rec->like == LS_LIKE_NONE)
                own->own = w->row;
        else if (rec->like == LS_LIKE_RING)
                take_place_of(t, &w->row, &own->own);
        t->wall_ticks += ticks;
        if (r == own)
                ls_translate_wall_until(t, ring, UINT64_MAX);
        return 0;
}

/* The stack of a suspended coroutine is sent once, without time; then what was spent there. Such a
 * row is of the thread that ran the VM last, and need not be in order of time with its others: it
 * is none of its time. */
static int add_suspended(struct ls_translate *t, unsigned ring, const struct ls_rec_sample *rec,
                         uint32_t stack, uint64_t ticks)
{
        struct ls_translate_ring *r = &t->rings[ring];
        struct ls_sample_row row;

        if (!rec->like) {
                if (rec->place > PLACES_MAX ||
                    ls_ids_reserve(&t->ids, (void **)&r->places, &r->n_places, sizeof(*r->places),
                                   rec->place) < 0)
                        return -EINVAL;
                r->places[rec->place] = stack;
                return 0;
        }
        if (!ticks)
                return -EINVAL;
        fill_row(t, ring, rec, ls_translate_lookup(r->places, r->n_places, rec->place), &row);
        if (!row.stack) {
                row.stack = ls_trace_stack(t->cfg.writer, 0, lost_location(t));
                t->definition_missing++;
        }
        row.event = (uint8_t)rec->event;
        row.thread = ls_translate_thread(t, ls_translate_vm_ring(t, rec->vm_id));
        row.vmstate = LS_VMSTATE_C;
        row.weight = ticks;
        ls_trace_sample(t->cfg.writer, &row);
        *(rec->event == LS_EVENT_READY ? &t->ready_ticks : &t->suspended_ticks) += ticks;
        return 0;
}

#define BLOCK_MOST (UINT64_C(1) << 47)  /* bytes: all addresses that a program has */

/* An allocation becomes a row of bytes and one of objects: so many as were not sampled for each
 * that was, which is with the probability 1 - exp(-size / interval). */
static int add_alloc(struct ls_translate *t, unsigned ring, const struct ls_rec_sample *rec,
                     uint32_t stack)
{
        uint64_t size = rec->cpu_ns, states = 0, objects;
        struct ls_sample_row row;
        double weight, rest;

        fill_row(t, ring, rec, stack, &row);
        for (uint8_t i = 0; i < LS_NVMSTATES; i++) {
                states += rec->weight[i];
                if (rec->weight[i])
                        row.vmstate = i;
        }
        if (!t->cfg.alloc_interval || states != 1 || !size || size > BLOCK_MOST ||
            !is_in_time(t, rec->time_ns))
                return -EINVAL;
        if (row.vmstate == LS_VMSTATE_NATIVE && (rec->flags & LS_SAMPLE_NO_LINE))
                row.stack = ls_trace_stack_no_line(t->cfg.writer, stack);
        ls_translate_wall_until(t, ring, rec->time_ns);
        weight = -1 / expm1(-(double)size / (double)t->cfg.alloc_interval);
        row.weight = (uint64_t)((double)size * weight + 0.5);
        /* what is less than a whole one is the next one's */
        rest = weight + t->allocs_rest;
        objects = (uint64_t)rest;
        t->allocs_rest = rest - (double)objects;
        if (t->cfg.live && rec->place)
                ls_live_allocated(t, rec->place, rec->vm_id, &row, objects);
        if (t->cfg.alloc) {
                ls_trace_sample(t->cfg.writer, &row);
                row.event = LS_EVENT_ALLOC_OBJECTS;
                row.weight = objects;
                ls_trace_sample(t->cfg.writer, &row);
        }
        t->allocs++;
        return 0;
}

/* Only the watcher sends samples without a stack. */
static enum ls_like like_of(const struct ls_translate *t, unsigned ring,
                            const struct ls_rec_sample *rec)
{
        return t->rings[ring].role == LS_ROLE_AGENT ? LS_LIKE_NONE : (enum ls_like)rec->like;
}

static int is_sane(const struct ls_translate *t, unsigned ring, const struct ls_rec_sample *rec,
                   uint32_t len)
{
        static const struct { uint32_t event, other; } events[LS_NROLES] = {
                [LS_ROLE_AGENT] = { LS_EVENT_CPU, LS_EVENT_ALLOC },
                [LS_ROLE_BLOCKED] = { LS_EVENT_WALL, LS_EVENT_WALL },
                [LS_ROLE_SUSPENDED] = { LS_EVENT_SUSPENDED, LS_EVENT_READY },
        };
        enum ls_ring_role role = t->rings[ring].role;
        enum ls_like like = like_of(t, ring, rec);

        return len >= sizeof(*rec) &&
               rec->nframes <= (len - sizeof(*rec)) / sizeof(struct ls_frame) &&
               rec->native_size <= len - sizeof(*rec) - rec->nframes * sizeof(struct ls_frame) &&
               (rec->event == events[role].event || rec->event == events[role].other) &&
               (role == LS_ROLE_SUSPENDED ? !like || like == LS_LIKE_PLACE
                                          : like <= LS_LIKE_THREAD) &&
               (!like || (!rec->nframes && !rec->native_size));
}

int ls_translate_sample(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_sample *rec = body;
        struct ls_translate_ring *r = &t->rings[ring];
        uint64_t ticks;
        uint32_t stack = 0;

        if (!is_sane(t, ring, rec, len) ||
            (!like_of(t, ring, rec) && sample_stack(t, r, rec, &stack) < 0)) {
                r->depth = 0;           /* the next one may build on this */
                ls_native_gap(&r->native);
                return -EINVAL;
        }
        if (rec->event == LS_EVENT_ALLOC)
                return add_alloc(t, ring, rec, stack);
        ticks = sane_ticks(t, rec);
        if (r->role == LS_ROLE_SUSPENDED)
                return add_suspended(t, ring, rec, stack, ticks);
        if (!ticks)
                return -EINVAL;
        if (r->role == LS_ROLE_BLOCKED)
                return add_wall(t, ring, rec, stack, ticks);
        write_rows(t, ring, rec, stack);
        t->samples++;
        t->sample_ticks += ticks;
        t->kernel_delayed += rec->kernel_delayed;
        return 0;
}
