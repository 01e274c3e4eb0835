/* record/translate/translate.c with many rings: the ids of each are its own, a ring that another
 * thread gets starts anew, and traces of the JIT compiler are written when a sample asks for them,
 * whatever came first. */
#include "tests/unit/memory_used.h"
#include "tests/unit/translate_fixture.h"
#include "tests/unit/jit_fixture.h"

#include <sys/resource.h>

#include "formats/trace/reader.h"
#include "record/process/ids.h"

static struct ls_ring *at(unsigned i)
{
        return ls_memory_ring(&memory, i);
}

static void put_thread(unsigned i, uint32_t tid, const char *name)
{
        const struct ls_rec_thread t = { i + 1, tid, (uint32_t)strlen(name), 0 };

        atomic_store(&at(i)->tid, tid);
        atomic_fetch_add(&at(i)->claim, 1);
        fake_put(at(i), LS_REC_THREAD, &t, sizeof(t), name, strlen(name));
}

static void put_function(unsigned i, uint32_t id, uint32_t first_line, const char *name)
{
        fake_source(at(i), 1, "@/nowhere/app.lua", 0);
        fake_function(at(i), id, 1, first_line, first_line + 9);
        fake_name(at(i), id, LS_NAME_DEFINITION, name);
}

static void put_sample(unsigned i, uint32_t func, uint32_t line, uint32_t vm, uint32_t jit_id,
                       uint32_t offset)
{
        const struct ls_frame frame = { func, line };
        struct ls_rec_sample s = sample(0, 1);

        s.vm_id = vm;
        s.jit_id = jit_id;
        s.jit_offset = offset;
        if (jit_id)
                s.weight[LS_VMSTATE_NATIVE] = 1;
        fake_sample(at(i), s, &frame);
}

/* Each row with its thread, VM and trace. */
static int put_rows(void *ctx, const struct ls_sample_block *b)
{
        (void)ctx;
        for (uint32_t i = 0; i < b->n && text_len < sizeof(text) - 4096; i++) {
                const struct ls_jittrace *t = b->trace ? &profile->jittraces[b->trace[i]] : NULL;

                text_len += (size_t)snprintf(text + text_len, sizeof(text) - text_len,
                                             "%u VM%u T%u ", profile->threads[b->thread[i]].tid,
                                             profile->vms[b->vm[i]].number, t ? t->number : 0);
                put_stack(b->stack[i]);
                text_len += (size_t)snprintf(text + text_len, sizeof(text) - text_len, "\n");
        }
        return 0;
}

static const char *all_rows(void)
{
        text_len = 0;
        *text = 0;
        ls_profile_samples(profile, LS_COL_TRACE, put_rows, NULL);
        return text;
}

static void ids_are_the_rings_own(void **state)
{
        (void)state;
        put_thread(0, 100, "main");
        put_thread(1, 101, "worker");
        put_thread(63, 163, "last");
        put_function(0, 1, 10, "a");
        put_function(1, 1, 20, "b");
        put_function(63, 1, 10, "a");
        put_sample(0, 1, 11, 1, 0, 0);
        put_sample(1, 1, 21, 2, 0, 0);
        put_sample(63, 1, 11, 3, 0, 0);
        finish();
        assert_string_equal(all_rows(), "100 VM1 T0 a:11\n101 VM2 T0 b:21\n163 VM3 T0 a:11\n");
        assert_int_equal(profile->n_sources, 3);        /* none, one, lost */
        assert_int_equal(profile->n_functions, 4);      /* the same function is one, whoever defined
                                                         * it */
        assert_int_equal(translate.bad_records + translate.definition_missing, 0);
}

/* As far apart as they may be, in each ring: a few hundred records are no reason for a GB. */
static void claimed_ids_cost_little(void **state)
{
        const struct rlimit most = { 4ull << 30, RLIM_INFINITY };
        uint64_t before = memory_used();
        struct rlimit was;

        (void)state;
        getrlimit(RLIMIT_AS, &was);
        if (MEASURES_MEMORY)
                assert_int_equal(setrlimit(RLIMIT_AS, &most), 0);
        for (unsigned i = 0; i < 64; i++) {
                uint32_t id = 262144;

                put_thread(i, 100 + i, "liar");
                fake_source(at(i), 1, "@/nowhere/app.lua", 0);
                for (int n = 0; n < 12 && id < LS_ID_MAX; n++, id += id / 2 + 262144 + 64)
                        fake_function(at(i), id, 1, 1, 2);
                run_drain();
        }
        if (MEASURES_MEMORY)
                assert_in_range(memory_used() - before, 0, 300u << 20);
        assert_true(translate.bad_records > 0);
        setrlimit(RLIMIT_AS, &was);
        /* What is dense is still taken. */
        put_function(63, 1, 10, "a");
        put_sample(63, 1, 11, 3, 0, 0);
        finish();
        assert_string_equal(all_rows(), "163 VM3 T0 a:11\n");
}

static void a_ring_is_used_again(void **state)
{
        struct ls_rec_function open_ended = {
                .func_id = 2, .kind = LS_FUNC_LUA, .source_id = 1, .first_line = 5
        };

        (void)state;
        put_thread(1, 101, "one");
        put_function(1, 1, 10, "a");
        put_sample(1, 1, 11, 1, 0, 0);
        fake_reserve(at(1), LS_REC_SAMPLE, 64);         /* the thread ended in the middle of it */
        atomic_store(&at(1)->last_cpu_ns, 5000000);
        atomic_store(&at(1)->closing, 1);
        run_drain();
        assert_int_equal(at(1)->tid, 0);
        assert_int_equal(at(1)->closing, 0);
        assert_int_equal(at(1)->in_write, 0);
        assert_int_equal(drain.abandoned, 1);
        /* What the first one defined is not known any more. */
        put_thread(1, 102, "two");
        fake_put(at(1), LS_REC_FUNCTION, &open_ended, sizeof(open_ended), NULL, 0);
        put_sample(1, 1, 11, 1, 0, 0);
        put_function(1, 1, 20, "b");
        put_sample(1, 1, 21, 1, 0, 0);
        finish();
        assert_string_equal(all_rows(),
                            "101 VM1 T0 a:11\n102 VM1 T0 [definition lost]:0\n102 VM1 T0 b:21\n");
        assert_int_equal(translate.definition_missing, 2);
}

static void threads_come_and_go(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < 5000; i++) {
                unsigned ring_number = i % 63 + 1;

                put_thread(ring_number, 1000 + i, "short");
                put_function(ring_number, 1, 10, "a");
                put_sample(ring_number, 1, 11, 1, 0, 0);
                atomic_store(&at(ring_number)->closing, 1);
                if (i % 60 == 0)
                        run_drain();
                if (at(ring_number % 63 + 1)->tid)
                        run_drain();
        }
        finish();
        assert_int_equal(profile->recorded_samples, 5000);
        assert_int_equal(profile->n_threads, 5001);
        assert_int_equal(profile->n_functions, 3);
        assert_int_equal(translate.bad_records + translate.definition_missing + drain.abandoned, 0);
        for (unsigned i = 1; i < 64; i++)
                assert_null(translate.rings[i].functions);
}

/* The text of a chunk that several threads load is in the trace once. */
static void texts_are_written_once(void **state)
{
        const struct ls_rec_text piece = { 1, 0, 8, 8 };

        (void)state;
        for (unsigned i = 0; i < 4; i++) {
                put_thread(i, 100 + i, "loader");
                fake_source(at(i), 1, "return 1", 8);
                fake_put(at(i), LS_REC_TEXT, &piece, sizeof(piece), "return 1", 8);
                fake_function(at(i), 1, 1, 0, 1);
                put_sample(i, 1, 1, 1, 0, 0);
        }
        finish();
        assert_int_equal(profile->n_sources, 3);
        assert_int_equal(profile->sources[1].text.len, 8);
        assert_int_equal(translate.sources.written_bytes,
                         2 * 8); /* the name of a chunk without one is its text */
        assert_int_equal(translate.sources.text_bytes, 8);
        assert_int_equal(translate.sources.text_cut, 0);
}

static void put_jittrace(unsigned i, struct ls_rec_jittrace head, const uint32_t *functions,
                         uint32_t n)
{
        static const struct jit_part parts[] = { { 0, 0, 12 }, { 1, 1, 25 }, { 0, 0, 13 } };
        uint32_t size;
        struct ls_rec_jittrace *rec = jit_record(head, functions, n, parts, 3, &size);

        assert_int_equal(fake_put(at(i), LS_REC_JITTRACE, rec, size, NULL, 0), 0);
        free(rec);
}

static void put_irnames(uint32_t vm)
{
        const struct ls_rec_irnames names = { vm, sizeof(JIT_NAMES) - 1 };

        fake_put(ring, LS_REC_IRNAMES, &names, sizeof(names), JIT_NAMES, sizeof(JIT_NAMES) - 1);
}

static void traces_become_frames(void **state)
{
        const uint32_t functions[] = { 1, 2 };

        (void)state;
        put_thread(0, 100, "main");
        put_function(0, 1, 10, "a");
        put_function(0, 2, 20, "b");
        put_irnames(1);
        put_jittrace(0,
                     (struct ls_rec_jittrace){
                             .jit_id = 1, .vm_id = 1, .number = 7, .start_line = 12 },
                     functions, 2);
        put_jittrace(0, (struct ls_rec_jittrace){ .jit_id = 2, .vm_id = 1, .number = 8 }, functions,
                     2);
        put_sample(0, 1, 0, 1, 1, 5);
        put_sample(0, 1, 0, 1, 1, JIT_PART_BYTES + 3);
        put_sample(0, 1, 0, 1, 1, 2 * JIT_PART_BYTES + 1);
        put_sample(0, 1, 0, 1, 1, LS_JIT_NO_OFFSET);
        put_sample(0, 1, 15, 1, 0, 0);
        finish();
        assert_string_equal(all_rows(), "100 VM1 T7 a:12\n100 VM1 T7 a:12;b:25\n100 VM1 T7 a:13\n"
                                        "100 VM1 T7 a:0\n100 VM1 T0 a:15\n");
        /* The other one has no samples: it is not in the file. */
        assert_int_equal(profile->n_jittraces, 2);
        assert_int_equal(profile->jit_ticks, 4);
        assert_int_equal(profile->jit_unknown_ticks, 1);
        assert_int_equal(profile->jit_approximate_ticks, 0);
        assert_int_equal(translate.jit.missing, 0);
}

/* The definition may come after the sample, in the ring of another thread, and may never come. */
static void samples_before_their_trace(void **state)
{
        const uint32_t functions[] = { 5, 6 };

        (void)state;
        put_thread(0, 100, "user");
        put_function(0, 1, 10, "a");
        put_sample(0, 1, 0, 1, 3, 5);
        put_sample(0, 1, 0, 1, 4, 5);
        run_drain();
        put_thread(1, 101, "maker");
        put_function(1, 5, 10, "a");
        put_function(1, 6, 20, "b");
        put_irnames(1);
        put_jittrace(1,
                     (struct ls_rec_jittrace){
                             .jit_id = 3, .vm_id = 1, .number = 7, .start_line = 12 },
                     functions, 2);
        finish();
        assert_string_equal(all_rows(), "100 VM1 T7 a:12\n100 VM1 T0 a:0\n");
        assert_int_equal(profile->jit_unknown_ticks, 1);
        assert_int_equal(profile->n_jittraces, 3);
}

static void side_traces_bring_their_parents(void **state)
{
        const uint32_t functions[] = { 1, 2 };
        struct ls_rec_jittrace head = { .jit_id = 1, .vm_id = 1, .number = 1, .start_line = 12 };

        (void)state;
        put_thread(0, 100, "main");
        put_function(0, 1, 10, "a");
        put_function(0, 2, 20, "b");
        put_irnames(1);
        put_jittrace(0, head, functions, 2);
        for (uint32_t id = 2; id <= 20; id++) {
                head = (struct ls_rec_jittrace){ .jit_id = id,
                                                 .vm_id = 1,
                                                 .number = id,
                                                 .root = 1,
                                                 .parent_id = id - 1,
                                                 .parent_exit = 0 };
                put_jittrace(0, head, functions, 2);
        }
        put_sample(0, 1, 0, 1, 10, JIT_PART_BYTES + 3);
        finish();
        assert_string_equal(all_rows(), "100 VM1 T10 a:12;b:25\n");
        assert_int_equal(profile->n_jittraces, 11);     /* those before it, none after it */
        assert_int_equal(profile->jittraces[10].parent, 9);
        assert_int_equal(profile->jittraces[1].parent, 0);
}

/* A trace that says it is its own parent, or its child's child. */
static void circles_of_parents(void **state)
{
        const uint32_t functions[] = { 1, 1 };

        (void)state;
        put_thread(0, 100, "main");
        put_function(0, 1, 10, "a");
        for (uint32_t id = 1; id <= 4; id++)
                put_jittrace(0,
                             (struct ls_rec_jittrace){ .jit_id = id,
                                                       .vm_id = 1,
                                                       .number = id,
                                                       .root = 1,
                                                       .parent_id = id % 4 + 1 },
                             functions, 2);
        for (uint32_t id = 1; id <= 4; id++)
                put_sample(0, 1, 0, 1, id, 1);
        finish();
        assert_int_equal(profile->recorded_samples, 4);
        assert_int_equal(profile->n_jittraces, 5);
}

static void hostile_traces(void **state)
{
        static const struct jit_part parts[] = { { 0, 0, 12 }, { 1, 1, 25 } };
        const uint32_t functions[] = { 1, 99 };
        uint32_t size;
        uint64_t seed = 88172645463325252ull;

        (void)state;
        put_thread(0, 100, "main");
        put_function(0, 1, 10, "a");
        for (unsigned round = 0; round < 3000; round++) {
                struct ls_rec_jittrace head = { .jit_id = round % 50 + 1,
                                                .vm_id = round % 3,
                                                .number = 1 };
                struct ls_rec_jittrace *rec = jit_record(head, functions, 2, parts, 2, &size);
                uint32_t *words = (uint32_t *)rec,
                         at_word = (uint32_t)(fake_random(&seed) % (size / 4));

                words[at_word] = (uint32_t)fake_random(&seed);
                fake_put(ring, LS_REC_JITTRACE, rec,
                         fake_random(&seed) % 4 ? size : fake_random(&seed) % size, NULL, 0);
                put_sample(0, 1, 0, 1, round % 60 + 1, (uint32_t)fake_random(&seed) % 64);
                free(rec);
                if (round % 50 == 0)
                        run_drain();
        }
        finish();
        assert_int_equal(profile->recorded_samples, 3000);
        assert_true(translate.bad_records > 100);
        all_rows();
}

/* Definitions that nobody asks for are held up to a limit; one that is asked for too late is
 * counted. */
static void kept_definitions_have_a_limit(void **state)
{
        static struct jit_part parts[4096];
        const uint32_t functions[] = { 1, 1 };
        uint32_t n = 0, size = 1;

        (void)state;
        put_thread(0, 100, "main");
        put_function(0, 1, 10, "a");
        for (uint64_t bytes = 0; bytes < LS_JIT_KEPT_MAX + (8u << 20); bytes += size) {
                struct ls_rec_jittrace head = { .jit_id = n + 1, .vm_id = 1, .number = n + 1 };
                struct ls_rec_jittrace *rec = jit_record(head, functions, 2, parts, 4096, &size);

                assert_int_equal(fake_put(ring, LS_REC_JITTRACE, rec, size, NULL, 0), 0);
                free(rec);
                n++;
                run_drain();
                assert_true(ls_jit_keep_bytes(&translate.jit) <= LS_JIT_KEPT_MAX);
        }
        put_sample(0, 1, 0, 1, 1, 5);
        put_sample(0, 1, 0, 1, 1, 6);
        put_sample(0, 1, 0, 1, n, 5);
        finish();
        all_rows();
        assert_int_equal(translate.jit.missing, 1);
        assert_int_equal(profile->jit_unknown_ticks, 2);
        assert_int_equal(profile->jit_ticks, 3);
}

static void native_on(void)
{
        translate.cfg.native = 1;
        assert_int_equal(ls_native_init(&translate.native, &translate.mappings), 0);
}

/* A sample of two Lua frames, then what is said to be its native stack. */
static int put_native(uint32_t keep, const void *native, uint32_t size, uint32_t said)
{
        const struct ls_frame frames[] = { { 2, 20 + keep }, { 1, 10 } };
        struct ls_rec_sample s = sample(keep, 2 - keep);
        char more[4096];

        s.native_size = said;
        s.event = LS_EVENT_CPU;
        s.weight[LS_VMSTATE_C] = 1;
        memcpy(more, frames, (2 - keep) * sizeof(*frames));
        memcpy(more + (2 - keep) * sizeof(*frames), native, size);
        return fake_put(ring, LS_REC_SAMPLE, &s, sizeof(s), more,
                        (2 - keep) * sizeof(*frames) + size);
}

/* Where nothing is found in the native stack the Lua frames are there all the same, also those that
 * are kept. */
static void native_stacks_that_lead_nowhere(void **state)
{
        struct { struct ls_native head; struct ls_native_cframe c; uint64_t words[4];
        } n = { .head = { .ip = 0x10, .sp = 0x7ffe00000000, .ncframes = 1, .nbytes = 32 },
                .c = { 0x7ffe00001000, 2, 0 } };

        (void)state;
        native_on();
        put_thread(0, 100, "main");
        put_function(0, 1, 10, "a");
        put_function(0, 2, 20, "b");
        put_native(0, &n, sizeof(n), sizeof(n));
        put_native(1, &n, sizeof(n), sizeof(n));
        put_native(0, &n, 0, 0);
        finish();
        all_rows();
        assert_non_null(strstr(text, "a:10;b:20"));
        assert_non_null(strstr(text, "a:10;b:21"));
        assert_int_equal(profile->recorded_samples, 3);
        assert_int_equal(translate.native_cut, 2);
        assert_int_equal(translate.bad_records, 0);
}

static void hostile_native_stacks(void **state)
{
        uint64_t seed = 88172645463325252ull, words[64];
        unsigned put = 0;

        (void)state;
        native_on();
        put_thread(0, 100, "main");
        put_function(0, 1, 10, "a");
        put_function(0, 2, 20, "b");
        for (unsigned round = 0; round < 5000; round++) {
                struct ls_native *head = (struct ls_native *)words;
                uint32_t size = (uint32_t)(fake_random(&seed) % sizeof(words)) & ~7u;

                for (unsigned i = 0; i < 64; i++)
                        words[i] = fake_random(&seed) >> fake_random(&seed) % 60;
                if (round % 4) {
                        head->ncframes = (uint32_t)fake_random(&seed) % 4;
                        head->nbytes = (uint32_t)fake_random(&seed) % 256 & ~7u;
                        head->keep = round % 3 ? 0 : (uint32_t)fake_random(&seed) % 512;
                }
                put += put_native(round % 2, words, size,
                                  round % 5 ? size : (uint32_t)fake_random(&seed) % 1024) == 0;
                if (round % 50 == 0)
                        run_drain();
        }
        finish();
        all_rows();
        assert_int_equal(profile->recorded_samples + translate.bad_records, put);
        assert_true(profile->recorded_samples > 3000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(ids_are_the_rings_own),
                TEST(claimed_ids_cost_little),
                TEST(a_ring_is_used_again),
                TEST(threads_come_and_go),
                TEST(texts_are_written_once),
                TEST(traces_become_frames),
                TEST(samples_before_their_trace),
                TEST(side_traces_bring_their_parents),
                TEST(circles_of_parents),
                TEST(hostile_traces),
                TEST(kept_definitions_have_a_limit),
                TEST(native_stacks_that_lead_nowhere),
                TEST(hostile_native_stacks),
        };

        return cmocka_run_group_tests_name("record_rings", tests, NULL, NULL);
}
