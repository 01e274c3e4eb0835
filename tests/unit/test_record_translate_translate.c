/* record/translate/translate.c with the real trace writer and reader: what the agent says is what
 * the trace says. */
#include "tests/unit/translate_fixture.h"

static void stacks_build_on_the_one_before(void **state)
{
        const struct ls_frame first[] = { { 3, 30 }, { 2, 20 }, { 1, 10 } };
        const struct ls_frame second[] = { { 4, 40 } };
        struct ls_rec_sample s;

        (void)state;
        four_functions();
        fake_sample(ring, sample(0, 3), first);
        fake_sample(ring, sample(2, 1), second);
        fake_sample(ring, sample(3, 0), NULL);
        s = sample(1, 0);
        s.weight[LS_VMSTATE_NATIVE] = 3;
        s.weight[LS_VMSTATE_GC] = 2;
        fake_sample(ring, s, NULL);
        finish();
        assert_string_equal(rows(), "1/1 main:10;b:20;c:30\n"
                                    "1/1 main:10;b:20;d:40\n"
                                    "1/1 main:10;b:20;d:40\n"
                                    "0/3 main:10\n"
                                    "3/2+ main:10\n");
        assert_int_equal(translate.samples, 4);
        assert_int_equal(translate.sample_ticks, 8);
        assert_int_equal(profile->recorded_ticks, 8);
        assert_int_equal(translate.bad_records, 0);
        assert_int_equal(profile->threads[1].tid, 42);
}

static void the_middle_that_was_cut(void **state)
{
        const struct ls_frame frames[] = { { 4, 40 }, { 3, 30 }, { 2, 20 }, { 1, 10 } };
        struct ls_rec_sample s = sample(1, 1);

        (void)state;
        four_functions();
        fake_sample(ring, sample(0, 4), frames);
        s.cut = 500;
        s.flags = LS_SAMPLE_MIDDLE_CUT;
        fake_sample(ring, s, frames);
        finish();
        assert_string_equal(rows(),
                            "1/1 main:10;b:20;c:30;d:40\n1/1 main:10;[middle cut]:0;d:40\n");
}

/* A record that its writer never finished: the samples that build on it are whole above it, and say
 * what is lost. */
static void a_lost_sample_names_nothing_wrong(void **state)
{
        const struct ls_frame frames[] = { { 3, 30 }, { 2, 20 }, { 1, 10 } };

        (void)state;
        four_functions();
        run_drain();
        fake_reserve(ring, LS_REC_SAMPLE, 128);
        atomic_store(&ring->in_write, 0);
        fake_sample(ring, sample(2, 1), frames);
        fake_sample(ring, sample(0, 3), frames);
        finish();
        assert_string_equal(rows(), "1/1 [definition lost]:0;c:30\n1/1 main:10;b:20;c:30\n");
        assert_int_equal(drain.abandoned, 1);
}

static void an_unknown_function_is_said_to_be_lost(void **state)
{
        const struct ls_frame frames[] = { { 9, 90 }, { 1, 10 } };

        (void)state;
        four_functions();
        fake_sample(ring, sample(0, 2), frames);
        finish();
        assert_string_equal(rows(), "1/1 main:10;[definition lost]:0\n");
        assert_int_equal(translate.definition_missing, 1);
}

/* After exec a new agent counts its ids from 1 again. */
static void ids_may_be_defined_anew(void **state)
{
        const struct ls_frame frame[] = { { 1, 5 } };

        (void)state;
        four_functions();
        fake_sample(ring, sample(0, 1), frame);
        fake_source(ring, 1, "@/nowhere/other.lua", 0);
        fake_function(ring, 1, 1, 0, 50);
        fake_name(ring, 1, LS_NAME_GLOBAL, "other");
        fake_sample(ring, sample(0, 1), frame);
        finish();
        assert_string_equal(rows(), "1/1 main:5\n1/1 other:5\n");
}

static void figures_that_cannot_be(void **state)
{
        const struct ls_frame frame[] = { { 1, 5 } };
        struct ls_rec_sample s;

        (void)state;
        four_functions();
        s = sample(0, 1);
        s.weight[0] = 0xffffffff;       /* more CPU time than has passed */
        fake_sample(ring, s, frame);
        s = sample(0, 1);
        s.time_ns = NOW_NS + 5000000000;
        fake_sample(ring, s, frame);
        s = sample(0, 1);
        s.time_ns = 0;
        translate.cfg.start_ns = START_NS + 5000000000;
        fake_sample(ring, s, frame);
        run_drain();
        translate.cfg.start_ns = START_NS;
        s = sample(3000000, 1);         /* frames that no record ever had */
        fake_sample(ring, s, frame);
        s = sample(0, 1);
        s.cut = 0xfffffff0;
        fake_sample(ring, s, frame);
        finish();
        assert_int_equal(translate.bad_records, 5);
        assert_int_equal(translate.samples, 0);
}

static uint64_t later(void)
{
        return NOW_NS + 6000000000;
}

/* The recorder began a run, and had no processor for six seconds. */
static void a_sample_of_during_the_run(void **state)
{
        const struct ls_frame frame[] = { { 1, 5 } };
        struct ls_rec_sample s = sample(0, 1);

        (void)state;
        four_functions();
        s.time_ns = NOW_NS + 5000000000;
        fake_sample(ring, s, frame);
        translate.cfg.clock = later;
        run_drain();
        s = sample(1, 0);
        s.time_ns = NOW_NS + 8000000000;
        fake_sample(ring, s, NULL);
        finish();
        assert_int_equal(translate.samples, 1);
        assert_int_equal(translate.bad_records, 1);
}

static void a_sample_shorter_than_it_says(void **state)
{
        struct ls_rec_sample s = sample(0, 100000);
        const struct ls_frame frame[] = { { 1, 5 } };

        (void)state;
        s.event = LS_EVENT_CPU;
        s.weight[1] = 1;
        fake_put(ring, LS_REC_SAMPLE, &s, sizeof(s), frame, sizeof(frame));
        s.nframes = 0xffffffff;
        fake_put(ring, LS_REC_SAMPLE, &s, sizeof(s), frame, sizeof(frame));
        fake_put(ring, LS_REC_SAMPLE, &s, 16, NULL, 0);
        finish();
        assert_int_equal(translate.bad_records, 3);
}

static void zones_coroutines_and_builtins(void **state)
{
        const struct ls_rec_zone outer = { 1, 0, 2, 0 }, inner = { 2, 1, 4, 0 };
        const struct ls_rec_vm vm = { 1, 0, 6, 0 };
        const struct ls_rec_thread thread = { 1, 4711, 4, 0 };
        const struct ls_rec_coroutine co = { 1, 2, 3, 1 };
        const struct ls_rec_function builtin = {
                .func_id = 5, .kind = LS_FUNC_BUILTIN, .name_len = 13, .ffid = 7
        };
        const struct ls_frame frames[] = { { 5, 0 }, { 2, 20 } };
        struct ls_rec_sample s = sample(0, 2);

        (void)state;
        four_functions();
        fake_put(ring, LS_REC_THREAD, &thread, sizeof(thread), "work", 4);
        fake_put(ring, LS_REC_VM, &vm, sizeof(vm), "LuaJIT", 6);
        fake_put(ring, LS_REC_ZONE, &outer, sizeof(outer), "AI", 2);
        fake_put(ring, LS_REC_ZONE, &inner, sizeof(inner), "path", 4);
        fake_put(ring, LS_REC_FUNCTION, &builtin, sizeof(builtin), "string.format", 13);
        fake_put(ring, LS_REC_COROUTINE, &co, sizeof(co), NULL, 0);
        s.zone_id = 2;
        s.vm_id = 1;
        s.coroutine_id = 1;
        fake_sample(ring, s, frames);
        finish();
        assert_string_equal(rows(), "1/1 b:20;string.format:0\n");
        assert_true(profile->n_zones >= 3);
        assert_string_equal(profile->zones[2].name.s, "path");
        assert_int_equal(profile->zones[2].parent, 1);
        assert_int_equal(profile->coroutines[1].generation, 3);
        assert_string_equal(profile->functions[profile->coroutines[1].function].name.s, "b");
        assert_string_equal(profile->vms[1].runtime.s, "LuaJIT");
        assert_int_equal(profile->threads[1].tid, 4711);
        assert_string_equal(profile->threads[1].name.s, "work");
}

static void put_label(uint32_t id, uint32_t parent, const char *key, const char *value)
{
        struct ls_rec_label l = { id, parent, (uint32_t)strlen(key), (uint32_t)strlen(value) };
        char both[64];
        int n = snprintf(both, sizeof(both), "%s%s", key, value);

        fake_put(ring, LS_REC_LABEL, &l, sizeof(l), both, (size_t)n);
}

/* An id that comes again means something else from then on; one that was never sent means nothing,
 * and is counted. */
static void labels_of_samples(void **state)
{
        const struct ls_rec_label lie = { 3, 0, 4000000000u, 4000000000u },
                                  far = { 70000, 0, 1, 1 };
        const struct ls_frame frame[] = { { 2, 20 } };
        struct ls_rec_sample s = sample(0, 1);

        (void)state;
        four_functions();
        put_label(1, 0, "route", "/list");
        put_label(2, 1, "user", "ann");
        fake_put(ring, LS_REC_LABEL, &lie, sizeof(lie), "ab", 2);
        fake_put(ring, LS_REC_LABEL, &far, sizeof(far), "ab", 2);
        s.label_id = 2;
        fake_sample(ring, s, frame);
        put_label(2, 0, "user", "bob");
        fake_sample(ring, s, frame);
        s.label_id = 9;
        fake_sample(ring, s, frame);
        finish();
        assert_int_equal(translate.bad_records, 2);
        assert_int_equal(profile->n_sample_labels, 3 + 2);      /* none, and what is lost */
        assert_string_equal(profile->sample_labels[2].value.s, "ann");
        assert_int_equal(profile->sample_labels[2].parent, 1);
        assert_string_equal(profile->sample_labels[3].key.s, "user");
        assert_string_equal(profile->sample_labels[3].value.s, "bob");
}

__attribute__((noinline)) int ls_test_c_function(int x);
int ls_test_c_function(int x)
{
        return x * 3;
}

/* No MAPPING record: /proc/PID/maps and the file's symbols have the name. */
static void c_functions_get_their_symbol(void **state)
{
        struct ls_rec_function f = { .func_id = 1,
                                     .kind = LS_FUNC_C,
                                     .addr = (uintptr_t)ls_test_c_function };
        struct ls_rec_function g = { .func_id = 2, .kind = LS_FUNC_C, .addr = (uintptr_t)rows };
        struct ls_rec_function nowhere = { .func_id = 3, .kind = LS_FUNC_C, .addr = 0x10 };
        const struct ls_frame frames[] = { { 1, 0 }, { 2, 0 }, { 3, 0 } };

        (void)state;
        fake_put(ring, LS_REC_FUNCTION, &f, sizeof(f), NULL, 0);
        fake_put(ring, LS_REC_FUNCTION, &g, sizeof(g), NULL, 0);
        fake_put(ring, LS_REC_FUNCTION, &nowhere, sizeof(nowhere), NULL, 0);
        fake_name(ring, 2, LS_NAME_GLOBAL, "lpeg.match");
        fake_sample(ring, sample(0, 3), frames);
        finish();
        assert_string_equal(rows(), "1/1 :0;lpeg.match:0;ls_test_c_function:0\n");
        assert_true(profile->n_mappings >= 2);
}

static void put_text(uint32_t id, uint32_t offset, uint32_t len, uint32_t total)
{
        static char bytes[65536];
        struct ls_rec_text t = { id, offset, len, total };

        memset(bytes, 'a' + (int)id, sizeof(bytes));
        fake_put(ring, LS_REC_TEXT, &t, sizeof(t), bytes, len);
        run_drain();
}

static void texts_are_put_together_within_limits(void **state)
{
        (void)state;
        fake_source(ring, 1, "=one", 100);
        put_text(1, 0, 60, 100);
        put_text(1, 60, 40, 100);
        fake_function(ring, 1, 1, 0, 9);
        fake_source(ring, 2, "=large", LS_TEXT_MAX + 1);
        put_text(2, 0, 4096, LS_TEXT_MAX + 1);
        put_text(2, 4096, 4096, LS_TEXT_MAX + 1);
        fake_function(ring, 2, 2, 0, 9);
        fake_source(ring, 3, "=torn", 100);
        put_text(3, 50, 50, 100);
        put_text(3, 0, 100, 50);
        put_text(9, 0, 10, 10);
        fake_function(ring, 3, 3, 0, 9);
        finish();
        assert_true(profile->n_sources >= 4);
        assert_int_equal(profile->sources[1].text.len, 100);
        assert_int_equal(profile->sources[2].text.len, 0);
        assert_int_equal(profile->sources[3].text.len, 0);
        assert_int_equal(translate.sources.text_cut, 2);        /* the large one, and the torn one
                                                                 * that never came */
        assert_int_equal(translate.sources.written_bytes, 100);
        assert_int_equal(translate.bad_records, 3);
}

static void all_texts_have_a_limit_too(void **state)
{
        uint32_t n = 20;

        (void)state;
        for (uint32_t id = 1; id <= n; id++) {
                char name[16];

                snprintf(name, sizeof(name), "=t%u", id);
                fake_source(ring, id, name, LS_TEXT_MAX);
                for (uint32_t at = 0; at < LS_TEXT_MAX; at += 65536)
                        put_text(id, at, 65536, LS_TEXT_MAX);
                fake_function(ring, id, id, 0, 9);
        }
        finish();
        assert_int_equal(translate.sources.text_cut, 4);
        assert_int_equal(translate.sources.written_bytes, LS_TEXT_ALL_MAX);
}

static void a_file_is_found_and_hashed(void **state)
{
        char name[80], cwd[64] = "/tmp";

        (void)state;
        translate.sources.cwd = cwd;
        snprintf(name, sizeof(name), "@%s", path + 5);          /* relative to /tmp; the trace
                                                                 * itself will do */
        fake_source(ring, 1, name, 0);
        fake_function(ring, 1, 1, 0, 9);
        fake_source(ring, 2, "@/no/such/file.lua", 0);
        fake_function(ring, 2, 2, 0, 9);
        fake_source(ring, 3, "@/dev/zero", 0);
        fake_function(ring, 3, 3, 0, 9);
        finish();
        assert_string_equal(profile->sources[1].path.s, path);
        assert_true(profile->sources[1].text_hash != 0);
        assert_int_equal(profile->sources[2].path.len, 0);
        assert_int_equal(profile->sources[3].text_hash, 0);
}

static void notices_arrive(void **state)
{
        struct ls_rec_notice n = { 5, 0 }, lie = { 500, 0 };

        (void)state;
        fake_put(ring, LS_REC_NOTICE, &n, sizeof(n), "hello", 5);
        fake_put(ring, LS_REC_NOTICE, &lie, sizeof(lie), "hello", 5);
        finish();
        assert_string_equal(notice, "hello");
        assert_int_equal(profile->n_notices, 1);
        assert_int_equal(translate.bad_records, 1);
}

/* Records of every kind with random bodies, some of them nearly right: no crash, no hang, and a
 * valid trace. */
static void garbage_of_every_kind(void **state)
{
        uint64_t seed = 0x9e3779b97f4a7c15ull, put = 0;

        (void)state;
        four_functions();
        for (int i = 0; i < 60000; i++) {
                uint64_t r = fake_random(&seed);
                uint32_t words = (uint32_t)(r % 24);
                uint64_t body[24];

                for (uint32_t w = 0; w < words; w++) {
                        body[w] = fake_random(&seed);
                        switch (body[w] % 4) {          /* small numbers pass more checks */
                        case 0: body[w] &= 0x0000000700000007ull; break;
                        case 1: body[w] &= 0x000000ff000000ffull; break;
                        case 2: body[w] = START_NS + body[w] % 1000000; break;
                        }
                }
                if (fake_put(ring, (unsigned)(r >> 32) % 32, body, words * 8, NULL, 0) < 0)
                        run_drain();
                else
                        put++;
        }
        finish();
        assert_true(put > 50000);
        assert_true(translate.bad_records > 1000);
        assert_true(translate.samples > 0);
        rows();
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(stacks_build_on_the_one_before),
                TEST(the_middle_that_was_cut),
                TEST(a_lost_sample_names_nothing_wrong),
                TEST(an_unknown_function_is_said_to_be_lost),
                TEST(ids_may_be_defined_anew),
                TEST(figures_that_cannot_be),
                TEST(a_sample_of_during_the_run),
                TEST(a_sample_shorter_than_it_says),
                TEST(zones_coroutines_and_builtins),
                TEST(labels_of_samples),
                TEST(c_functions_get_their_symbol),
                TEST(texts_are_put_together_within_limits),
                TEST(all_texts_have_a_limit_too),
                TEST(a_file_is_found_and_hashed),
                TEST(notices_arrive),
                TEST(garbage_of_every_kind),
        };

        return cmocka_run_group_tests_name("record_translate", tests, NULL, NULL);
}
