/* libFuzzer target: any bytes as what a recorded program writes into the memory that it shares with
 * the recorder. The input is a list of steps: records of any kind with any body, damage in the
 * ring, threads that end, time. Whatever comes, the recorder writes a trace that is whole. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/trace/writer.h"
#include "record/translate/drain.h"
#include "record/translate/translate.h"
#include "tests/fuzz/touch.h"
#include "tests/unit/record_fake.h"

#define START_NS 1000000000ull
#define RING_SIZE (64u << 10)

struct player {
        const uint8_t *data;
        size_t size, at;
        struct ls_memory memory;
        struct ls_drain drain;
        struct ls_translate translate;
        unsigned ring;
        uint64_t now_ns;
        int writer_gone;
};

static uint32_t take(struct player *p, unsigned bytes)
{
        uint32_t v = 0;

        for (unsigned i = 0; i < bytes && p->at < p->size; i++)
                v |= (uint32_t)p->data[p->at++] << 8 * i;
        return v;
}

/* The next bytes of the input, at most n. */
static const uint8_t *take_bytes(struct player *p, uint32_t *n)
{
        const uint8_t *from = p->data + p->at;

        if (*n > p->size - p->at)
                *n = (uint32_t)(p->size - p->at);
        p->at += *n;
        return from;
}

static struct ls_ring *ring_of(struct player *p)
{
        return ls_memory_ring(&p->memory, p->ring);
}

static void do_drain(struct player *p)
{
        p->translate.now_ns = p->now_ns;
        ls_drain_run(&p->drain, p->writer_gone, p->now_ns);
        ls_translate_settle(&p->translate);
}

static void do_record(struct player *p, unsigned kind)
{
        uint32_t n = take(p, 2);
        const uint8_t *body = take_bytes(p, &n);

        /* libFuzzer finds the times that are accepted only by chance. */
        if (kind == LS_REC_SAMPLE && n >= sizeof(struct ls_rec_sample)) {
                struct ls_rec_sample s;

                memcpy(&s, body, sizeof(s));
                s.time_ns = START_NS + s.time_ns % (p->now_ns - START_NS + 2000);
                fake_put(ring_of(p), kind, &s, sizeof(s), body + sizeof(s), n - sizeof(s));
        } else {
                fake_put(ring_of(p), kind, body, n, NULL, 0);
        }
}

static void do_choose(struct player *p)
{
        p->ring = take(p, 1) % p->memory.ring_count;
}

/* Bytes anywhere in the ring. */
static void do_damage(struct player *p)
{
        struct ls_ring *ring = ring_of(p);
        uint32_t at = take(p, 2) % ring->size, n = take(p, 1);
        const uint8_t *bytes = take_bytes(p, &n);

        if (n > ring->size - at)
                n = ring->size - at;
        memcpy((char *)ring + LS_RING_DATA + at, bytes, n);
}

/* What the head of the ring says, which is put right behind the recorder's back: fake_put() needs
 * it. */
static void do_head(struct player *p)
{
        struct ls_ring *ring = ring_of(p);
        uint64_t good = atomic_load(&ring->head);

        atomic_store(&ring->head, good + take(p, 4));
        ring->size = take(p, 4);
        do_drain(p);
        ring->size = ls_memory_ring_size(&p->memory, p->ring);
        atomic_store(&ring->head, atomic_load(&ring->tail) & ~7ull);
}

static void do_thread(struct player *p)
{
        struct ls_ring *ring = ring_of(p);

        ring->tid = take(p, 2);
        ring->claim = take(p, 1);
        ring->closing = take(p, 1) & 1;
        ring->in_write = take(p, 1);
        ring->signals = take(p, 2);
        ring->ticks = take(p, 4);
        ring->armed_cpu_ns = (uint64_t)take(p, 4) << take(p, 1) % 33;
}

static void do_time(struct player *p)
{
        p->now_ns += (uint64_t)take(p, 2) << take(p, 1) % 24;
}

static void do_gone(struct player *p)
{
        p->writer_gone = !p->writer_gone;
}

static void (*const steps[])(struct player *p) = { do_drain,  do_choose, do_damage, do_head,
                                                   do_thread, do_time,   do_gone };
#define NSTEPS (sizeof(steps) / sizeof(*steps))

static void play(struct player *p)
{
        while (p->at < p->size) {
                unsigned step = take(p, 1);

                if (step >= 256 - NSTEPS)
                        steps[step - (256 - NSTEPS)](p);
                else
                        do_record(p, step % 40);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct player p = { .data = data, .size = size, .now_ns = START_NS + 1000000 };
        struct ls_drain_sink sink = { ls_translate_record, ls_translate_gap, ls_translate_closed,
                                      &p.translate };
        struct ls_translate_config cfg = { .memory = &p.memory,
                                           .cwd = "/nowhere",
                                           .interval_ns = 1000000,
                                           .start_ns = START_NS,
                                           .notice = touch_notice };
        int fd = memfd_create("fuzz", MFD_CLOEXEC);
        unsigned how = take(&p, 1);

        must(fd >= 0);
        fake_events = how & 1   ? LS_RECORD_WALL
                      : how & 2 ? LS_RECORD_CPU | LS_RECORD_WALL
                                : LS_RECORD_CPU;
        fake_memory(&p.memory, RING_SIZE);
        cfg.wall_only = how & 1;
        cfg.native = how & 4 ? 1 : 0;
        must(ls_trace_writer_open(fd, cfg.interval_ns, &cfg.writer) == 0);
        cfg.process = ls_trace_process(cfg.writer, 41, ls_trace_string(cfg.writer, "app", 3));
        ls_trace_event(cfg.writer, LS_EVENT_CPU, cfg.interval_ns);
        must(ls_translate_init(&p.translate, &cfg) == 0 &&
             ls_drain_init(&p.drain, &p.memory, &sink) == 0);
        play(&p);
        do_drain(&p);
        ls_translate_finish(&p.translate);
        must(ls_trace_flush(cfg.writer, p.now_ns, 1) == 0 &&
             ls_trace_writer_close(cfg.writer) == 0);
        ls_translate_done(&p.translate);
        ls_drain_done(&p.drain);
        ls_memory_done(&p.memory);
        touch_trace(fd);
        close(fd);
        return 0;
}
