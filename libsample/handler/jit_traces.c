/* The live traces of a VM, by number and by address: changed by jit/events.c when LuaJIT tells of a
 * trace, or by jit_find.c when one is first seen; read by jit_locate.c. LuaJIT gives up machine
 * code only when it flushes all of it, and tells; so an address that is in the table is that
 * trace's, however the trace object itself fares. */

#include "libsample/handler/jit_traces.h"

#include <errno.h>
#include <string.h>

#include "libsample/layout.h"
#include "libsample/pages.h"

#define JMP_REL32 0xe9
#define JMP_LEN   5

static void begin_change(struct ls_jit *jit)
{
        atomic_fetch_add_explicit(&jit->changing, 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
}

static void end_change(struct ls_jit *jit)
{
        atomic_thread_fence(memory_order_seq_cst);
        atomic_fetch_add_explicit(&jit->changing, 1, memory_order_relaxed);
}

/* Index of the first range at or above the address. */
static uint32_t place_of(const struct ls_jit *jit, uintptr_t mcode)
{
        uint32_t low = 0, high = jit->nranges;

        while (low < high) {
                uint32_t middle = (low + high) / 2;

                if (jit->ranges[middle].mcode < mcode)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static void drop_range(struct ls_jit *jit, uintptr_t mcode)
{
        uint32_t i = place_of(jit, mcode);

        if (i == jit->nranges || jit->ranges[i].mcode != mcode)
                return;
        jit->nranges--;
        memmove(jit->ranges + i, jit->ranges + i + 1, (jit->nranges - i) * sizeof *jit->ranges);
}

static int overlaps(const struct ls_jit *jit, uintptr_t mcode, uint32_t size)
{
        uint32_t i = place_of(jit, mcode);

        if (i < jit->nranges && jit->ranges[i].mcode < mcode + size)
                return 1;
        return i > 0 &&
               jit->ranges[i - 1].mcode + ls_jit_entry(jit, jit->ranges[i - 1].number)->mcode_size >
                       mcode;
}

void ls_jit_flush(struct ls_jit *jit)
{
        begin_change(jit);
        for (uint32_t i = 0; i < jit->nranges; i++)
                atomic_store_explicit(&ls_jit_entry(jit, jit->ranges[i].number)->jit_id, 0,
                                      memory_order_release);
        jit->nranges = jit->deepest = 0;
        end_change(jit);
}

static int room_for(struct ls_jit *jit, uint32_t number)
{
        _Atomic(struct ls_jit_entry *) *chunk = &jit->chunks[number / LS_JIT_CHUNK];

        if (!atomic_load_explicit(chunk, memory_order_relaxed)) {
                struct ls_jit_entry *p = ls_pages_new(LS_JIT_CHUNK * sizeof *p);

                if (!p)
                        return -ENOMEM;
                atomic_store_explicit(chunk, p, memory_order_release);
        }
        if (ls_pages_grow((void **)&jit->ranges, &jit->ranges_room, jit->nranges + 1,
                          sizeof *jit->ranges))
                return -ENOMEM;
        return 0;
}

/* Of a trace that ends in the interpreter: remembers where that is. */
static int falls_out(struct ls_jit *jit, const char *trace, const uint8_t *mcode, uint32_t size)
{
        int32_t rel;

        if (LS_READ(uint16_t, trace, LS_TR_LINK) || size < JMP_LEN ||
            mcode[size - JMP_LEN] != JMP_REL32)
                return 0;
        memcpy(&rel, mcode + size - 4, 4);
        jit->exit_interp = (uintptr_t)(mcode + size + rel);
        return 1;
}

int ls_jit_add(struct ls_jit *jit, uint32_t number, uint32_t jit_id, const char *trace)
{
        uintptr_t mcode = LS_READ(uintptr_t, trace, LS_TR_MCODE);
        uint32_t size = LS_READ(uint32_t, trace, LS_TR_MCODE_SIZE), i;
        struct ls_jit_entry *entry;
        int error;

        /* Only code that was given up is used again: a flush was not told, as while another handler
         * ran. */
        if (overlaps(jit, mcode, size))
                ls_jit_flush(jit);
        begin_change(jit);
        error = room_for(jit, number);
        if (!error) {
                entry = ls_jit_entry(jit, number);
                if (atomic_load(&entry->jit_id))
                        drop_range(jit, entry->mcode);
                atomic_store(&entry->jit_id, 0);
        }
        if (!error && jit_id) {
                entry->mcode = mcode;
                entry->mcode_size = size;
                entry->start = LS_READ(uintptr_t, trace, LS_TR_STARTPC);
                entry->spadjust = LS_READ(uint16_t, trace, LS_TR_SPADJUST);
                entry->calls_c = (uint32_t)ls_jit_has_op(trace, jit->ops.callxs);
                entry->falls_out = (uint32_t)falls_out(jit, trace, (const uint8_t *)mcode, size);
                if (entry->spadjust > jit->deepest)
                        jit->deepest = entry->spadjust;
                atomic_store_explicit(&entry->jit_id, jit_id, memory_order_release);
                i = place_of(jit, mcode);
                memmove(jit->ranges + i + 1, jit->ranges + i,
                        (jit->nranges - i) * sizeof *jit->ranges);
                jit->ranges[i] = (struct ls_jit_range){ mcode, number };
                jit->nranges++;
        }
        end_change(jit);
        return error;
}

void ls_jit_free_tables(struct ls_jit *jit)
{
        ls_jit_flush(jit);
        for (unsigned i = 0; i < LS_JIT_CHUNKS; i++)
                ls_pages_free(atomic_exchange(&jit->chunks[i], NULL),
                              LS_JIT_CHUNK * sizeof(struct ls_jit_entry));
        ls_pages_free(jit->ranges, jit->ranges_room * sizeof *jit->ranges);
        jit->ranges = NULL;
        jit->ranges_room = 0;
        ls_pages_free(jit->events, jit->events_room * sizeof *jit->events);
        jit->events = NULL;
        jit->events_room = jit->nevents = 0;
}
