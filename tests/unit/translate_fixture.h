/* What the tests of record/translate/translate.c share: records of an agent go in, a trace is
 * written and read again. */
#ifndef LS_TESTS_TRANSLATE_FIXTURE_H
#define LS_TESTS_TRANSLATE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "formats/profile.h"
#include "record/translate/drain.h"
#include "record/translate/translate.h"
#include "tests/unit/record_fake.h"
#include "formats/trace/reader.h"

#define START_NS 1000000000ull
#define NOW_NS (START_NS + 3600000000000ull)

static struct ls_memory memory;
static struct ls_drain drain;
static struct ls_translate translate;
static struct ls_trace_writer *writer;
static struct ls_profile *profile;
static struct ls_ring *ring;
static char path[64];
static __attribute__((unused)) char notice[256];

static void on_notice(void *ctx, const char *text)
{
        (void)ctx;
        snprintf(notice, sizeof(notice), "%s", text);
}

static inline int setup(void **state)
{
        struct ls_translate_config cfg = { .memory = &memory,
                                           .cwd = "/",
                                           .pid = (int)getpid(),
                                           .interval_ns = 1000000,
                                           .start_ns = START_NS,
                                           .notice = on_notice,
                                           .wall_only = fake_events == LS_RECORD_WALL };
        struct ls_drain_sink sink = { ls_translate_record, ls_translate_gap, ls_translate_closed,
                                      &translate };
        int fd;

        (void)state;
        snprintf(path, sizeof(path), "/tmp/test_record_translate.XXXXXX");
        fd = mkstemp(path);
        fake_memory(&memory, 1u << 20);
        ring = ls_memory_ring(&memory, 0);
        ring->tid = 42;
        if (fd < 0 || ls_trace_writer_open(fd, cfg.interval_ns, &writer) < 0)
                return -1;
        cfg.writer = writer;
        cfg.process = ls_trace_process(writer, 41, ls_trace_string(writer, "app", 3));
        ls_trace_event(writer, LS_EVENT_CPU, cfg.interval_ns);
        profile = NULL;
        if (ls_translate_init(&translate, &cfg) < 0 || ls_drain_init(&drain, &memory, &sink) < 0)
                return -1;
        translate.now_ns = NOW_NS;
        return 0;
}

static inline int teardown(void **state)
{
        (void)state;
        if (writer)
                ls_trace_writer_close(writer);
        writer = NULL;
        ls_profile_close(profile);
        ls_translate_done(&translate);
        ls_drain_done(&drain);
        ls_memory_done(&memory);
        unlink(path);
        return 0;
}

static inline void run_drain(void)
{
        ls_drain_run(&drain, 0, NOW_NS);
}

static inline void finish(void)
{
        const char *error;

        run_drain();
        ls_translate_settle(&translate);
        ls_translate_finish(&translate);
        assert_int_equal(ls_trace_flush(writer, NOW_NS, 1), 0);
        assert_int_equal(ls_trace_writer_close(writer), 0);
        writer = NULL;
        if (ls_profile_open(path, &profile, &error) < 0)
                fail_msg("%s", error);
        assert_int_equal(profile->n_damages, 0);
}

/* All rows as text: "state/weight[+] root;...;leaf" in one string, rows apart by a newline. */
static char text[65536];
static size_t text_len;

static void put_stack(uint32_t stack)
{
        const struct ls_stack *s = &profile->stacks[stack];
        const struct ls_location *l = &profile->locations[s->location];
        const struct ls_function *f = &profile->functions[l->function];

        if (s->parent) {
                put_stack(s->parent);
                text_len += (size_t)snprintf(text + text_len, sizeof(text) - text_len, ";");
        }
        text_len += (size_t)snprintf(text + text_len, sizeof(text) - text_len, "%s:%u", f->name.s,
                                     l->line);
}

static int on_block(void *ctx, const struct ls_sample_block *b)
{
        (void)ctx;
        for (uint32_t i = 0; i < b->n && text_len < sizeof(text) - 4096; i++) {
                text_len += (size_t)snprintf(text + text_len, sizeof(text) - text_len, "%u/%u%s ",
                                             b->vmstate[i], b->weight[i],
                                             b->flags[i] & LS_SAMPLE_CONT ? "+" : "");
                put_stack(b->stack[i]);
                text_len += (size_t)snprintf(text + text_len, sizeof(text) - text_len, "\n");
        }
        return 0;
}

static inline const char *rows(void)
{
        text_len = 0;
        *text = 0;
        ls_profile_samples(profile, 0, on_block, NULL);
        return text;
}

static inline void four_functions(void)
{
        static const char *const names[] = { "main", "b", "c", "d" };

        fake_source(ring, 1, "@/nowhere/app.lua", 0);
        for (uint32_t i = 0; i < 4; i++) {
                fake_function(ring, i + 1, 1, i * 10, i * 10 + 9);
                fake_name(ring, i + 1, LS_NAME_DEFINITION, names[i]);
        }
}

static inline struct ls_rec_sample sample(uint32_t keep, uint32_t nframes)
{
        return (struct ls_rec_sample){ .time_ns = START_NS + 1000000,
                                       .keep = keep,
                                       .nframes = nframes };
}

#endif
