/* Counters: numbers that the program keeps saying (luasample_counter, require "luasample".counter).
 * A value goes into the ring of the thread that says it, but of each counter at most one an
 * interval; the table of the memory always has the last, which the recorder takes from there when
 * it did not come. Called by api.c and module.c. */

#include "libsample/api/counters.h"

#include <math.h>
#include <string.h>

#include "libsample/agent.h"
#include "libsample/api/control.h"
#include "libsample/handler/clock.h"
#include "libsample/handler/ring_writer.h"
#include "libsample/recording/notice.h"
#include "libsample/recording/pass.h"
#include "libsample/thread.h"

static struct ls_counter *find(struct ls_counter *all, uint32_t n, const char *name, uint32_t len)
{
        for (uint32_t i = 0; i < n && i < LS_COUNTERS; i++)
                if (atomic_load_explicit(&all[i].named, memory_order_acquire) == len + 1 &&
                    !memcmp(all[i].name, name, len))
                        return &all[i];
        return NULL;
}

/* Two threads that name the same one at an instant make two of it, which are one to the recorder:
 * nothing is locked. */
static struct ls_counter *add(struct ls_shm *shm, const char *name, uint32_t len)
{
        struct ls_counter *c;
        uint32_t i;

        if (atomic_load(&shm->counters) >= LS_COUNTERS)
                return NULL;
        i = atomic_fetch_add(&shm->counters, 1);
        if (i >= LS_COUNTERS)
                return NULL;
        c = &ls_shm_counters(shm)[i];
        memcpy(c->name, name, len);
        atomic_store_explicit(&c->named, len + 1, memory_order_release);
        return c;
}

static void send(struct ls_counter *c, uint32_t index, uint64_t now, uint64_t value)
{
        const struct ls_rec_count rec = { now, value, index, 0 };
        uint64_t sent = atomic_load_explicit(&c->sent_ns, memory_order_relaxed);
        struct ls_thread *t = ls_thread_self();
        char *body;

        if (!t || (sent && now - sent < ls_agent.shm->interval_ns) ||
            !atomic_compare_exchange_strong(&c->sent_ns, &sent, now))
                return;
        body = ls_ring_reserve(t->ring, LS_REC_COUNT, sizeof rec, 0);
        if (!body)
                return;
        memcpy(body, &rec, sizeof rec);
        ls_ring_commit(t->ring, body);
}

/* Once a recording: what has no room leaves no trace but this. */
static void say_full(const struct ls_shm *shm)
{
        static _Atomic uint64_t said;

        if (atomic_exchange(&said, shm->generation) != shm->generation)
                ls_agent_notice("the program has more than %u counters: those that came later are "
                                "not recorded",
                                LS_COUNTERS);
}

static int count(struct ls_shm *shm, const char *name, uint32_t len, double value)
{
        struct ls_counter *c = find(ls_shm_counters(shm), atomic_load(&shm->counters), name, len);
        uint64_t bits, now = ls_now_ns();

        if (!c)
                c = add(shm, name, len);
        if (!c) {
                say_full(shm);
                return 0;
        }
        memcpy(&bits, &value, sizeof bits);
        atomic_store_explicit(&c->value, bits, memory_order_relaxed);
        atomic_store_explicit(&c->time_ns, now, memory_order_release);
        send(c, (uint32_t)(c - ls_shm_counters(shm)), now, bits);
        return 1;
}

int ls_control_counter(const char *name, size_t len, double value)
{
        int done;

        if (!isfinite(value) || !ls_control_come_in())
                return 0;
        done = count(ls_agent.shm, name, len < LS_COUNTER_NAME ? (uint32_t)len : LS_COUNTER_NAME,
                     value);
        ls_control_go_out();
        return done;
}
