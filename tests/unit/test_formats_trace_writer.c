/* What the trace writer is given, the reader gives back: every kind of definition, every column of
 * a sample. */
#include "tests/unit/trace_fixture.h"
#include "formats/trace/reader.h"
#include "formats/trace/dump.h"

#define LONG_STRING 65536

static char long_string[LONG_STRING];
static const char bad_utf8[] = "a\xff\xfe\0b\xc3";
static const uint8_t build_id[] = { 1, 0, 2, 0xff };

static void write_everything(int fd)
{
        struct ls_trace_writer *w;
        struct ls_source_def source = { .text_hash = 0x1234567890abcdefull, .size = 77 };
        struct ls_function_def lua = { .kind = LS_FUNC_LUA,
                                       .flags = LS_FUNCF_MAIN | LS_FUNCF_VARARG,
                                       .source = 1,
                                       .first_line = 3,
                                       .last_line = 9,
                                       .hash = 0xfedcba9876543210ull };
        struct ls_function_def c = { .kind = LS_FUNC_C, .mapping = 1, .offset = 0x1a2b3c };
        struct ls_function_def pseudo = { .kind = LS_FUNC_PSEUDO };
        static char text[300000];

        assert_int_equal(ls_trace_writer_open(fd, INTERVAL, &w), 0);
        assert_int_equal(ls_trace_string(w, "", 0), ls_trace_string(w, "x", 0));
        source.name = ls_trace_string(w, bad_utf8, sizeof(bad_utf8) - 1);
        source.path = ls_trace_string(w, long_string, LONG_STRING);
        assert_int_equal(ls_trace_source(w, &source), 1);
        assert_int_equal(ls_trace_source(w, &source), 1);
        for (size_t i = 0; i < sizeof(text); i++)
                text[i] = (char)(i * 7 % 251);
        ls_trace_text(w, 1, text, sizeof(text));
        assert_int_equal(ls_trace_mapping(w, ls_trace_string(w, "/lib/x.so", 9), 4096, 8192, 512,
                                          build_id, sizeof(build_id)),
                         1);
        assert_int_equal(ls_trace_function(w, &lua), 1);
        assert_int_equal(ls_trace_function(w, &c), 2);
        pseudo.identity_name = ls_trace_string(w, "[resumed by C]", 14);
        assert_int_equal(ls_trace_function(w, &pseudo), 3);
        assert_int_equal(ls_trace_function(w, &lua), 1);
        ls_trace_name(w, 1, LS_NAME_DEFINITION, ls_trace_string(w, "better", 6));
        ls_trace_name(w, 1, LS_NAME_CALLSITE, ls_trace_string(w, "worse", 5));
        ls_trace_name(w, 2, LS_NAME_CALLSITE, ls_trace_string(w, "worse", 5));
        ls_trace_flush(w, 0, 1);
        ls_trace_name(w, 2, LS_NAME_GLOBAL, ls_trace_string(w, "lpeg.match", 10));
        assert_int_equal(ls_trace_location(w, 1, 5), 1);
        assert_int_equal(ls_trace_location(w, 3, 0), 2);
        assert_int_equal(ls_trace_stack(w, 0, 2), 1);
        assert_int_equal(ls_trace_stack(w, 1, 1), 2);
        assert_int_equal(ls_trace_stack(w, 1, 1), 2);
        assert_int_equal(ls_trace_zone(w, 0, ls_trace_string(w, "AI", 2)), 1);
        assert_int_equal(ls_trace_zone(w, 1, ls_trace_string(w, "A*", 2)), 2);
        assert_int_equal(ls_trace_process(w, 99, ls_trace_string(w, "p", 1)), 1);
        assert_int_equal(ls_trace_thread(w, 1, 100, ls_trace_string(w, "t", 1)), 1);
        assert_int_equal(ls_trace_vm(w, 1, 1, ls_trace_string(w, "LuaJIT", 6)), 1);
        assert_int_equal(ls_trace_coroutine(w, 1, 1, 4), 1);
        ls_trace_event(w, LS_EVENT_CPU, INTERVAL);
        ls_trace_clocks(w, 1, 2, 3);
        ls_trace_clocks(w, 4, 5, UINT64_MAX);
        ls_trace_threadcpu(w, 1, 10, 1000);
        ls_trace_threadcpu(w, 1, 20, 2000);
        ls_trace_region(w, 1, 1, 11, 12, ls_trace_string(w, "r", 1));
        ls_trace_region(w, 0, 1, 13, 14, 0);
        ls_trace_notice(w, "a notice");
        ls_trace_notice(w, "another");
        ls_trace_info_u64(w, "ticks", 5);
        ls_trace_info_str(w, "command", "luajit");
        ls_trace_flush(w, 0, 1);
        ls_trace_info_u64(w, "ticks", UINT64_MAX);
        ls_trace_sample(w, &(struct ls_sample_row){ .event = 1,
                                                    .vmstate = 4,
                                                    .flags = LS_SAMPLE_STATE_GUESS,
                                                    .thread = 1,
                                                    .vm = 1,
                                                    .coroutine = 1,
                                                    .zone = 2,
                                                    .stack = 2,
                                                    .time_ns = START,
                                                    .weight = 3 });
        ls_trace_sample(w, &(struct ls_sample_row){ .event = 1,
                                                    .vmstate = 0,
                                                    .flags = LS_SAMPLE_CONT,
                                                    .thread = 1,
                                                    .vm = 1,
                                                    .stack = 1,
                                                    .time_ns = START - 7 * INTERVAL,
                                                    .weight = 1 });
        ls_trace_sample(w, &(struct ls_sample_row){ .event = 77,
                                                    .stack = 0,
                                                    .time_ns = START + 3600 * 1000 * INTERVAL,
                                                    .weight = 5000000000ull });
        assert_int_equal(ls_trace_writer_close(w), 0);
}

static int check_rows(void *ctx, const struct ls_sample_block *b)
{
        assert_int_equal(b->n, 4);
        assert_int_equal(b->event[0], 1);
        assert_int_equal(b->vmstate[0], 4);
        assert_int_equal(b->flags[0], LS_SAMPLE_STATE_GUESS);
        assert_int_equal(b->thread[0], 1);
        assert_int_equal(b->vm[0], 1);
        assert_int_equal(b->coroutine[0], 1);
        assert_int_equal(b->zone[0], 2);
        assert_int_equal(b->stack[0], 2);
        assert_int_equal(b->time_ns[0], START);
        assert_int_equal(b->weight[0], 3);
        assert_int_equal(b->zone[1], 0);
        assert_int_equal(b->flags[1], LS_SAMPLE_CONT);
        assert_int_equal(b->time_ns[1], START - 7 * INTERVAL);
        assert_int_equal(b->event[2], 77);
        assert_int_equal(b->stack[2], 0);
        assert_int_equal(b->weight[2], UINT32_MAX);
        assert_int_equal(b->weight[3], 5000000000ull - UINT32_MAX);
        assert_int_equal(b->flags[3], LS_SAMPLE_CONT);
        assert_int_equal(b->time_ns[3], START + 3600 * 1000 * INTERVAL);
        assert_false(b->same_event);
        (*(int *)ctx)++;
        return 0;
}

static void check_everything(struct ls_profile *p)
{
        int blocks = 0;

        assert_int_equal(p->n_damages, 0);
        assert_true(p->complete);
        assert_int_equal(p->interval_ns, INTERVAL);
        assert_int_equal(p->recorded_ticks, 4);
        assert_int_equal(p->recorded_samples, 1);
        assert_int_equal(p->sources[1].name.len, sizeof(bad_utf8) - 1);
        assert_memory_equal(p->sources[1].name.s, bad_utf8, sizeof(bad_utf8));
        assert_int_equal(p->sources[1].path.len, LONG_STRING);
        assert_memory_equal(p->sources[1].path.s, long_string, LONG_STRING);
        assert_int_equal(p->sources[1].text_hash, 0x1234567890abcdefull);
        assert_int_equal(p->sources[1].size, 77);
        assert_int_equal(p->sources[1].text.len, 300000);
        for (unsigned i = 0; i < 300000; i++)
                if (p->sources[1].text.s[i] != (char)(i * 7 % 251))
                        fail_msg("text differs at %u", i);
        assert_int_equal(p->functions[1].kind, LS_FUNC_LUA);
        assert_int_equal(p->functions[1].flags, LS_FUNCF_MAIN | LS_FUNCF_VARARG);
        assert_int_equal(p->functions[1].source, 1);
        assert_int_equal(p->functions[1].first_line, 3);
        assert_int_equal(p->functions[1].last_line, 9);
        assert_int_equal(p->functions[1].hash, 0xfedcba9876543210ull);
        assert_true(str_is(p->functions[1].name, "better"));
        assert_int_equal(p->functions[1].name_rank, LS_NAME_DEFINITION);
        assert_int_equal(p->functions[2].mapping, 1);
        assert_int_equal(p->functions[2].offset, 0x1a2b3c);
        assert_true(str_is(p->functions[2].name, "lpeg.match"));
        assert_true(str_is(p->functions[3].name, "[resumed by C]"));
        assert_int_equal(p->locations[1].line, 5);
        assert_int_equal(p->stacks[2].parent, 1);
        assert_int_equal(p->stacks[2].depth, 2);
        assert_int_equal(p->stacks[1].location, 2);
        assert_true(str_is(p->zones[2].name, "A*"));
        assert_int_equal(p->zones[2].parent, 1);
        assert_int_equal(p->processes[1].pid, 99);
        assert_int_equal(p->threads[1].tid, 100);
        assert_int_equal(p->threads[1].cpu_ns, 2000);
        assert_true(str_is(p->vms[1].runtime, "LuaJIT"));
        assert_int_equal(p->coroutines[1].generation, 4);
        assert_int_equal(p->mappings[1].end, 8192);
        assert_int_equal(p->mappings[1].file_offset, 512);
        assert_int_equal(p->mappings[1].build_id.len, sizeof(build_id));
        assert_memory_equal(p->mappings[1].build_id.s, build_id, sizeof(build_id));
        assert_int_equal(p->n_clocks, 2);
        assert_int_equal(p->clocks[1].boottime_ns, UINT64_MAX);
        assert_int_equal(p->n_regions, 2);
        assert_true(str_is(p->regions[0].name, "r") && p->regions[0].begin);
        assert_int_equal(p->regions[1].cpu_ns, 14);
        assert_int_equal(p->n_notices, 2);
        assert_true(str_is(p->notices[1], "another"));
        assert_int_equal(ls_profile_u64(p, LS_INFO_TICKS, 0), UINT64_MAX);
        assert_true(str_is(ls_profile_str(p, LS_INFO_COMMAND), "luajit"));
        assert_int_equal(ls_profile_u64_of(p, "nothing", 42), 42);
        assert_int_equal(p->n_events, 2);
        assert_true(str_is(p->events[0].name, "cpu") && str_is(p->events[0].unit, "ns"));
        assert_int_equal(p->events[0].period_ns, INTERVAL);
        assert_int_equal(p->events[1].id, 77);
        assert_int_equal(p->events[1].rows, 2);
        assert_int_equal(p->events[1].sum, 5000000000ull);
        for (int again = 0; again < 2; again++)
                assert_int_equal(ls_profile_samples(p, LS_COL_TIME, check_rows, &blocks), 0);
        assert_int_equal(blocks, 2);
        assert_int_equal(p->lost_ticks, 0);
}

static void everything_comes_back(void **state)
{
        int fd = create_temp();
        struct ls_profile *p;

        (void)state;
        write_everything(fd);
        close(fd);
        p = open_temp();
        check_everything(p);
        ls_profile_close(p);
}

/* The writer into a pipe, the reader from one: neither seeks. */
static void pipes_do(void **state)
{
        struct ls_profile *p;
        const char *error;
        int in[2], saved = dup(STDIN_FILENO);

        (void)state;
        assert_int_equal(pipe(in), 0);
        assert_true(fcntl(in[1], F_SETPIPE_SZ, 1 << 20) >= 1 << 20);
        write_everything(in[1]);
        close(in[1]);
        dup2(in[0], STDIN_FILENO);
        close(in[0]);
        assert_int_equal(ls_profile_open("-", &p, &error), 0);
        check_everything(p);
        ls_profile_close(p);
        dup2(saved, STDIN_FILENO);
        close(saved);
}

/* Each time is rounded for itself: after 10,000 odd steps it is still within half a unit. */
static int check_rounding(void *ctx, const struct ls_sample_block *b)
{
        uint64_t *next = ctx, unit = 333333 / 16 + 1;

        for (uint32_t i = 0; i < b->n; i++, (*next)++) {
                int64_t off = (int64_t)(b->time_ns[i] - (START + *next * 333331));

                assert_true(off <= (int64_t)unit / 2 + 1 && off >= -(int64_t)unit / 2 - 1);
        }
        return 0;
}

static void rounding_never_adds_up(void **state)
{
        struct ls_trace_writer *w;
        struct ls_profile *p;
        uint64_t next = 0;
        int fd = create_temp();

        (void)state;
        assert_int_equal(ls_trace_writer_open(fd, 333333, &w), 0);
        for (unsigned i = 0; i < 100000; i++)
                ls_trace_sample(w, &(struct ls_sample_row){ .event = 1,
                                                            .time_ns = START + i * 333331ull,
                                                            .weight = 1 });
        assert_int_equal(ls_trace_writer_close(w), 0);
        close(fd);
        p = open_temp();
        assert_int_equal(ls_profile_samples(p, LS_COL_TIME, check_rounding, &next), 0);
        assert_int_equal(next, 100000);
        ls_profile_close(p);
}

/* Flushed after a second or when forced, not before. */
static void flush_keeps_its_times(void **state)
{
        struct ls_trace_writer *w;
        uint64_t size;
        int fd = create_temp();

        (void)state;
        assert_int_equal(ls_trace_writer_open(fd, INTERVAL, &w), 0);
        assert_int_equal(ls_trace_flush(w, START, 0), 0);
        size = ls_trace_size(w);
        add_numbered(w, 0, 10);
        assert_int_equal(ls_trace_flush(w, START + 900000000, 0), 0);
        assert_int_equal(ls_trace_size(w), size);
        assert_int_equal(ls_trace_flush(w, START + 1000000000, 0), 0);
        assert_true(ls_trace_size(w) > size);
        size = ls_trace_size(w);
        assert_int_equal(ls_trace_flush(w, START + 9000000000, 0), 0);
        assert_int_equal(ls_trace_size(w), size);
        add_numbered(w, 10, 20);
        assert_int_equal(ls_trace_flush(w, START + 9000000001, 1), 0);
        assert_true(ls_trace_size(w) > size);
        assert_int_equal((off_t)ls_trace_size(w), lseek(fd, 0, SEEK_END));
        assert_int_equal(ls_trace_writer_close(w), 0);
        close(fd);
}

/* Columns that vary in every way, so that each encoding is used: what comes back is what went
 * in. */
static uint32_t mixed(unsigned column, unsigned i)
{
        static const uint32_t range[] = { 14, 5, 3, 4, 3, 70000, LS_NVMSTATES, 32, 9 };
        uint32_t x = (i + 1) * 2654435761u ^ column * 40503u;

        x ^= x >> 15;
        if (i % 2000 < 400)                     /* runs */
                x = column;
        else if (i % 2000 < 800)                /* steps */
                x = i;
        return x % range[column];
}

static int check_mixed(void *ctx, const struct ls_sample_block *b)
{
        unsigned *next = ctx;

        for (uint32_t k = 0; k < b->n; k++, (*next)++) {
                assert_int_equal(b->event[k], mixed(0, *next));
                assert_int_equal(b->thread[k], mixed(1, *next));
                assert_int_equal(b->vm[k], mixed(2, *next));
                assert_int_equal(b->coroutine[k], mixed(3, *next));
                assert_int_equal(b->zone[k], mixed(4, *next));
                assert_int_equal(b->stack[k], mixed(5, *next));
                assert_int_equal(b->vmstate[k], mixed(6, *next));
                assert_int_equal(b->flags[k], mixed(7, *next));
                assert_int_equal(b->weight[k], mixed(8, *next));
        }
        return 0;
}

static void define_all(struct ls_trace_writer *w)
{
        uint32_t process = ls_trace_process(w, 1, 0),
                 f = ls_trace_function(w, &(struct ls_function_def){ .kind = 1 });

        for (unsigned i = 1; i < 10; i++) {
                ls_trace_thread(w, process, i, 0);
                ls_trace_vm(w, process, i, 0);
                ls_trace_coroutine(w, 1, f, i);
                ls_trace_zone(w, i - 1, 0);
        }
        for (unsigned i = 1; i < 70001; i++)
                ls_trace_stack(w, 0, ls_trace_location(w, f, i));
}

static void mixed_columns_come_back(void **state)
{
        struct ls_trace_writer *w;
        struct ls_profile *p;
        int fd = create_temp();

        (void)state;
        assert_int_equal(ls_trace_writer_open(fd, INTERVAL, &w), 0);
        define_all(w);
        for (unsigned i = 0; i < 200000; i++) {
                ls_trace_sample(w, &(struct ls_sample_row){ .event = (uint8_t)mixed(0, i),
                                                            .thread = mixed(1, i),
                                                            .vm = mixed(2, i),
                                                            .coroutine = mixed(3, i),
                                                            .zone = mixed(4, i),
                                                            .stack = mixed(5, i),
                                                            .vmstate = (uint8_t)mixed(6, i),
                                                            .flags = (uint8_t)mixed(7, i),
                                                            .weight = mixed(8, i),
                                                            .time_ns = START + i * INTERVAL });
                if (i % 7001 == 0)
                        ls_trace_flush(w, 0, 1);
        }
        assert_int_equal(ls_trace_writer_close(w), 0);
        close(fd);
        p = open_temp();
        for (int again = 0; again < 2; again++) {
                unsigned next = 0;

                assert_int_equal(ls_profile_samples(p, 0, check_mixed, &next), 0);
                assert_int_equal(next, 200000);
        }
        assert_int_equal(p->n_damages, 0);
        assert_int_equal(p->lost_ticks, 0);
        ls_profile_close(p);
}

static void all_events_at_once(void **state)
{
        struct ls_trace_writer *w;
        struct ls_profile *p;
        int fd = create_temp();

        (void)state;
        assert_int_equal(ls_trace_writer_open(fd, INTERVAL, &w), 0);
        for (unsigned i = 0; i < 1024; i++)
                ls_trace_sample(w, &(struct ls_sample_row){ .event = (uint8_t)i,
                                                            .weight = UINT32_MAX,
                                                            .time_ns = START });
        assert_int_equal(ls_trace_writer_close(w), 0);
        close(fd);
        p = open_temp();
        assert_int_equal(p->n_damages, 0);
        assert_int_equal(p->n_events, 256);
        for (unsigned i = 0; i < 256; i++)
                assert_int_equal(p->events[i].sum, 4ull * UINT32_MAX);
        ls_profile_close(p);
}

static int count_dump(void *ctx, uint64_t chunk, uint64_t offset, const char *kind,
                      const struct ls_dump_field *fields, unsigned n)
{
        unsigned *counts = ctx;

        (void)chunk;
        (void)offset;
        assert_true(n > 0 && fields[0].key);
        counts[0] += !strcmp(kind, "sample");
        counts[1] += !strcmp(kind, "region");
        counts[2] += !strcmp(kind, "damage");
        return 0;
}

static void dump_shows_every_row(void **state)
{
        unsigned counts[3] = { 0 };
        struct ls_profile *p;
        int fd = create_temp();

        (void)state;
        write_everything(fd);
        close(fd);
        p = open_temp();
        assert_int_equal(ls_profile_dump(p, count_dump, counts), 0);
        assert_int_equal(counts[0], 4);
        assert_int_equal(counts[1], 4);         /* the regions and their copies in the checkpoint */
        assert_int_equal(counts[2], 0);
        ls_profile_close(p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(everything_comes_back),
                cmocka_unit_test(pipes_do),
                cmocka_unit_test(mixed_columns_come_back),
                cmocka_unit_test(all_events_at_once),
                cmocka_unit_test(rounding_never_adds_up),
                cmocka_unit_test(flush_keeps_its_times),
                cmocka_unit_test(dump_shows_every_row),
        };

        for (size_t i = 0; i < LONG_STRING; i++)
                long_string[i] = (char)(i * 31 % 127 + 1);
        return cmocka_run_group_tests(tests, NULL, remove_temp);
}
