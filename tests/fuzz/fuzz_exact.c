/* libFuzzer target: any bytes as what a recorded program writes into the memory of its exact
 * counts. The input is where the cells begin, counters, and records of the log, of any kind with
 * any body. Whatever comes, the recorder writes a trace that is whole. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/trace/writer.h"
#include "formats/wire/exact.h"
#include "record/translate/exact.h"
#include "record/translate/translate.h"
#include "tests/fuzz/touch.h"
#include "tests/unit/record_fake.h"

#define START_NS 1000000000ull
#define RING_SIZE (64u << 10)
#define LOG_MOST (1u << 20)

struct input { const uint8_t *at, *end; };

static uint64_t take(struct input *in, unsigned bytes)
{
        uint64_t v = 0;

        for (unsigned i = 0; i < bytes && in->at < in->end; i++)
                v |= (uint64_t)*in->at++ << 8 * i;
        return v;
}

/* A byte each: small numbers, and powers of two. */
static uint64_t put_counters(int fd, struct input *in)
{
        uint64_t n = take(in, 2), values[65536] = { 0 };

        for (uint64_t i = 0; i < n; i++) {
                uint64_t v = take(in, 1);

                values[i] = v < 128 ? v : UINT64_C(1) << (v & 63);
        }
        must(pwrite(fd, values, 8 * n, (off_t)LS_EXACT_COUNTERS) == (ssize_t)(8 * n));
        return n;
}

/* The cells of a prototype that is described count, too. */
static void put_cells(int fd, uint64_t low, const struct ls_exact_proto *proto)
{
        uint64_t at = proto->code + 4 - low, cells[256];

        for (unsigned i = 0; i < 256; i++)
                cells[i] = i * i;
        if (at < LS_EXACT_WINDOW - 4096)
                must(pwrite(fd, cells, sizeof(cells), (off_t)(LS_EXACT_CELLS + 2 * at)) ==
                     (ssize_t)sizeof(cells));
}

/* A kind, the bytes of its body, the body; kind 255: what comes is no record. */
static uint64_t put_log(int fd, struct input *in, uint64_t low)
{
        static char log[LOG_MOST];
        uint64_t used = 0;

        memset(log, 0, sizeof(log));
        while (in->at < in->end) {
                uint32_t kind = (uint32_t)take(in, 1), n = (uint32_t)take(in, 3);
                struct ls_exact_rec *rec = (void *)(log + used);
                uint32_t size = (uint32_t)(sizeof(*rec) + n + 7) & ~7u;

                if (n > in->end - in->at)
                        n = (uint32_t)(in->end - in->at);
                if (n > LOG_MOST || used + size + sizeof(struct ls_exact_trace) > LOG_MOST)
                        break;
                memcpy(kind == 255 ? (char *)rec : (char *)(rec + 1), in->at, n);
                in->at += n;
                if (kind != 255)
                        *rec = (struct ls_exact_rec){ size, kind };
                if (kind == LS_EXACT_PROTO && size >= sizeof(struct ls_exact_proto))
                        put_cells(fd, low, (const struct ls_exact_proto *)rec);
                used += size;
        }
        must(pwrite(fd, log, used, (off_t)LS_EXACT_LOG) == (ssize_t)used);
        return used;
}

static int make_memory(struct input in)
{
        int fd = memfd_create("counts", MFD_CLOEXEC);
        struct ls_exact_head head = { .low = take(&in, 8) };

        must(fd >= 0 && ftruncate(fd, (off_t)LS_EXACT_SIZE) == 0);
        head.outside = take(&in, 1);
        atomic_store(&head.counters_used, put_counters(fd, &in));
        atomic_store(&head.log_used, put_log(fd, &in, head.low));
        must(pwrite(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head));
        return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const uint8_t events[] = { LS_EVENT_CALLS, LS_EVENT_LINES, LS_EVENT_INSTRUCTIONS,
                                          LS_EVENT_COVERAGE,
                                          LS_EVENT_BRANCHES };
        struct ls_memory memory;
        struct ls_translate translate;
        struct ls_translate_config cfg = { .memory = &memory,
                                           .cwd = "/nowhere",
                                           .interval_ns = 1000000,
                                           .start_ns = START_NS,
                                           .notice = touch_notice };
        uint32_t wanted = 0;
        int fd = memfd_create("fuzz", MFD_CLOEXEC),
            counts = make_memory((struct input){ data, data + size });

        must(fd >= 0);
        fake_events = LS_RECORD_CPU;
        fake_memory(&memory, RING_SIZE);
        must(ls_trace_writer_open(fd, cfg.interval_ns, &cfg.writer) == 0);
        cfg.process = ls_trace_process(cfg.writer, 41, ls_trace_string(cfg.writer, "app", 3));
        for (size_t i = 0; i < sizeof(events); i++) {
                ls_trace_event(cfg.writer, events[i], 0);
                wanted |= 1u << events[i];
        }
        must(ls_translate_init(&translate, &cfg) == 0);
        translate.now_ns = START_NS + 1000000;
        ls_exact_finish(&translate, counts, wanted);
        ls_translate_finish(&translate);
        must(ls_trace_flush(cfg.writer, translate.now_ns, 1) == 0 &&
             ls_trace_writer_close(cfg.writer) == 0);
        ls_translate_done(&translate);
        ls_memory_done(&memory);
        touch_trace(fd);
        close(counts);
        close(fd);
        return 0;
}
