/* Values of counters become rows: at first one an interval of each counter, and half as many each
 * time that it has filled DENSE rows, so that a recording of days keeps a curve of each and no disk
 * is filled. The value that holds at the end is always there: what was passed over, or came through
 * no ring, is in the table of the memory. All that is in there was written by the program, and may
 * be anything. */
#include "record/translate/counts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/translate/known.h"

#define DENSE 16384u                    /* rows of a counter in a file before they get sparser */
#define ROWS_MAX (1u << 20)             /* of a process in a file, but for last values */
#define LATE_NS 1000000000ull /* older than the start, or newer than the last look at the clock */

/* A copy of its name, which may change at any time. 0 = it has none. */
static int name_of(const struct ls_translate *t, uint32_t i, char name[LS_COUNTER_NAME],
                   uint32_t *ret_len)
{
        struct ls_counter *c = &ls_shm_counters(t->cfg.memory->shm)[i];
        uint32_t named = atomic_load_explicit(&c->named, memory_order_acquire);

        if (!named || named - 1 > LS_COUNTER_NAME)
                return 0;
        memcpy(name, c->name, LS_COUNTER_NAME);
        *ret_len = named - 1;
        return 1;
}

/* The writer's id, made at the first value. 0 = it has no name. */
static uint32_t id_of(struct ls_translate *t, uint32_t i)
{
        char name[LS_COUNTER_NAME];
        uint32_t len;

        if (!t->counts.one[i].id && name_of(t, i, name, &len))
                t->counts.one[i].id = ls_trace_counter(t->cfg.writer, t->cfg.process,
                                                       ls_trace_string(t->cfg.writer, name, len),
                                                       LS_COUNTER_OWN, 0);
        return t->counts.one[i].id;
}

static void say_value(const struct ls_translate *t, struct ls_told *told, const char *name,
                      uint32_t len, uint64_t time_ns, double value)
{
        if (time_ns < told->time_ns)
                return;                 /* the table of the memory had a newer one already */
        told->time_ns = time_ns;
        t->cfg.counted(t->cfg.notice_ctx, told, name, len, value);
}

/* Who wants to hear of it hears of each value, also of those that get no row. */
static void say_own(struct ls_translate *t, uint32_t i, uint64_t time_ns, uint64_t bits)
{
        struct ls_told *told = &t->counts.told[i];
        char name[LS_COUNTER_NAME];
        uint32_t len = 0;
        double value;

        memcpy(&value, &bits, sizeof(value));
        if (t->cfg.counted && (told->asked ? told->fits != 0 : name_of(t, i, name, &len)))
                say_value(t, told, name, len, time_ns, value);
}

static int makes_sense(const struct ls_translate *t, uint64_t time_ns, uint64_t bits)
{
        double value;

        memcpy(&value, &bits, sizeof(value));
        return isfinite(value) && time_ns + LATE_NS >= t->cfg.start_ns &&
               time_ns <= t->now_ns + LATE_NS;
}

static void write_row(struct ls_translate *t, struct ls_counts_one *one, uint64_t time_ns,
                      uint64_t value)
{
        ls_trace_count(t->cfg.writer, one->id, time_ns, value);
        one->time_ns = time_ns;
        one->value = value;
        if (!one->apart_ns)
                one->apart_ns = t->cfg.interval_ns;
        if (++one->rows % DENSE == 0 && one->apart_ns < UINT64_MAX / 2)
                one->apart_ns *= 2;
        t->counts.rows++;
}

/* A value that may be written, if there was none for long enough at due_ns. */
static void take(struct ls_translate *t, uint32_t i, uint64_t time_ns, uint64_t value,
                 uint64_t due_ns)
{
        struct ls_counts_one *one = &t->counts.one[i];

        if (!id_of(t, i) || (one->time_ns && time_ns < one->time_ns) ||
            (one->time_ns == time_ns && one->value == value))
                return;
        if (one->time_ns && due_ns - one->time_ns < one->apart_ns)
                return;
        if (due_ns == UINT64_MAX || t->counts.rows < ROWS_MAX)
                write_row(t, one, time_ns, value);
        else
                t->counts.dropped++;
}

int ls_counts_record(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_count *rec = body;

        (void)ring;
        if (len < sizeof(*rec) || rec->counter >= LS_COUNTERS ||
            !makes_sense(t, rec->time_ns, rec->value))
                return -EINVAL;
        say_own(t, rec->counter, rec->time_ns, rec->value);
        take(t, rec->counter, rec->time_ns, rec->value, rec->time_ns);
        return 0;
}

void ls_counts_look(struct ls_translate *t, int last)
{
        struct ls_shm *shm = t->cfg.memory->shm;
        uint32_t n = atomic_load_explicit(&shm->counters, memory_order_acquire);

        for (uint32_t i = 0; i < n && i < LS_COUNTERS; i++) {
                struct ls_counter *c = &ls_shm_counters(shm)[i];
                uint64_t time_ns = atomic_load_explicit(&c->time_ns, memory_order_acquire);
                uint64_t value = atomic_load_explicit(&c->value, memory_order_relaxed);

                if (!time_ns || !makes_sense(t, time_ns, value))
                        continue;
                say_own(t, i, time_ns, value);
                take(t, i, time_ns, value, last ? UINT64_MAX : t->now_ns);
        }
}

#define HEAPS_MOST 1024u                /* VMs of a process whose heaps are kept */
#define HEAP_IDS   65536u               /* and the last of their numbers */

static struct ls_counts_heap *heap_of(struct ls_translate *t, uint32_t vm)
{
        struct ls_counts *c = &t->counts;

        if (!vm || vm > HEAP_IDS ||
            ls_ids_reserve(&t->ids, (void **)&c->heaps, &c->n_heaps, sizeof(*c->heaps), vm) < 0)
                return NULL;
        if (!c->heaps[vm].white && c->heaps_used == HEAPS_MOST)
                return NULL;
        c->heaps_used += !c->heaps[vm].white;
        return &c->heaps[vm];
}

static int heap_name(char text[64], uint32_t what, uint32_t vm)
{
        static const char *const names[LS_COUNTER_WHATS] = {
                [LS_COUNTER_HEAP] = "Lua heap",
                [LS_COUNTER_THRESHOLD] = "Lua heap: threshold",
                [LS_COUNTER_PHASE] = "Lua collector: phase",
                [LS_COUNTER_CYCLES] = "Lua collector: cycles"
        };

        return vm == 1 ? snprintf(text, 64, "%s", names[what])
                       : snprintf(text, 64, "%s, VM %u", names[what], vm);
}

static void say_heap(struct ls_translate *t, struct ls_counts_heap *h, uint32_t vm,
                     uint64_t time_ns, uint64_t total)
{
        char name[64];

        if (!t->cfg.counted || (h->told.asked && !h->told.fits))
                return;
        say_value(t, &h->told, name, (uint32_t)heap_name(name, LS_COUNTER_HEAP, vm), time_ns,
                  (double)total);
}

static void name_heap(struct ls_translate *t, struct ls_counts_heap *h, uint32_t vm)
{
        char text[64];

        for (uint32_t i = LS_COUNTER_HEAP; i < LS_COUNTER_WHATS; i++) {
                int n = heap_name(text, i, vm);

                h->one[i].id = ls_trace_counter(t->cfg.writer, t->cfg.process,
                                                ls_trace_string(t->cfg.writer, text, (size_t)n), i,
                                                ls_translate_vm(t, vm));
        }
}

/* A value that differs from the one in the file. */
static void put_heap(struct ls_translate *t, struct ls_counts_one *one, uint64_t time_ns,
                     uint64_t value)
{
        uint64_t bits = ls_count_bits((double)value);

        if (!one->time_ns || (one->value != bits && time_ns >= one->time_ns))
                write_row(t, one, time_ns, bits);
}

/* The collector steps past its threshold while it works: what it says between two cycles is the
 * size at which the next begins. A cycle changes the colour of new objects once. Of readings that
 * come too soon after another, in a long file, only a peak is kept. */
int ls_counts_heap(struct ls_translate *t, unsigned ring, const void *body, uint32_t len)
{
        const struct ls_rec_heap *rec = body;
        struct ls_counts_heap *h;

        (void)ring;
        if (len < sizeof(*rec) || rec->phase >= LS_GC_PHASES || !makes_sense(t, rec->time_ns, 0) ||
            rec->total >> 47)
                return -EINVAL;
        h = heap_of(t, rec->vm_id);
        if (h)
                say_heap(t, h, rec->vm_id, rec->time_ns, rec->total);
        if (!h || t->counts.rows >= ROWS_MAX) {
                t->counts.heaps_dropped++;
                return 0;
        }
        if (!h->one[LS_COUNTER_HEAP].id)
                name_heap(t, h, rec->vm_id);
        h->cycles += h->white && h->white != rec->white;
        h->white = rec->white ? rec->white : 1;
        if (h->one[LS_COUNTER_HEAP].time_ns && rec->total <= h->peak &&
            rec->time_ns - h->one[LS_COUNTER_HEAP].time_ns < h->one[LS_COUNTER_HEAP].apart_ns)
                return 0;
        h->peak = rec->total > h->peak ? rec->total : h->peak;
        put_heap(t, &h->one[LS_COUNTER_HEAP], rec->time_ns, rec->total);
        if (rec->phase == LS_GC_PAUSE && !(rec->threshold >> 47))
                put_heap(t, &h->one[LS_COUNTER_THRESHOLD], rec->time_ns, rec->threshold);
        put_heap(t, &h->one[LS_COUNTER_PHASE], rec->time_ns, rec->phase);
        put_heap(t, &h->one[LS_COUNTER_CYCLES], rec->time_ns, h->cycles);
        return 0;
}

/* What held when the last file ended. */
static void restart_heaps(struct ls_translate *t)
{
        for (uint32_t vm = 0; vm < t->counts.n_heaps; vm++) {
                struct ls_counts_heap *h = &t->counts.heaps[vm];

                h->peak = 0;
                for (uint32_t i = LS_COUNTER_HEAP; i < LS_COUNTER_WHATS; i++) {
                        uint64_t value = h->one[i].value;
                        int held = h->one[i].time_ns != 0;

                        h->one[i] = (struct ls_counts_one){ .id = h->one[i].id };
                        if (held)
                                write_row(t, &h->one[i], t->now_ns, value);
                }
        }
}

void ls_counts_free(struct ls_translate *t)
{
        for (uint32_t i = 0; t->cfg.counted && i < LS_COUNTERS; i++)
                t->cfg.counted(t->cfg.notice_ctx, &t->counts.told[i], NULL, 0, 0);
        for (uint32_t vm = 0; t->cfg.counted && vm < t->counts.n_heaps; vm++)
                t->cfg.counted(t->cfg.notice_ctx, &t->counts.heaps[vm].told, NULL, 0, 0);
        free(t->counts.heaps);
}

void ls_counts_restart(struct ls_translate *t)
{
        for (uint32_t i = 0; i < LS_COUNTERS; i++)
                t->counts.one[i] = (struct ls_counts_one){ .id = t->counts.one[i].id };
        t->counts.rows = 0;
        restart_heaps(t);
}
