/* formats/export/timeline.c, formats/export/spool.c, formats/json.c: what the exporters of samples
 * in time order are made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "formats/json.h"
#include "formats/export/spool.h"
#include "formats/export/timeline.h"
#include "tests/unit/profile_fixture.h"

#define MS 1000000ull

struct row { uint32_t thread, stack, weight; uint64_t time_ns; };

struct rows { const struct row *rows; uint32_t n; };

static int give(const struct ls_export *in, unsigned columns, ls_export_rows_fn fn, void *ctx)
{
        const struct rows *s = in->caller_ctx;

        assert_true(columns & LS_COL_TIME);
        for (uint32_t i = 0; i < s->n; i++) {
                const uint32_t zero = 0;
                const uint8_t none = 0, wanted = 1;
                struct ls_sample_block b = { .n = 1,
                                             .stack = &s->rows[i].stack,
                                             .weight = &s->rows[i].weight,
                                             .time_ns = &s->rows[i].time_ns,
                                             .vmstate = &none,
                                             .flags = &none,
                                             .event = &none,
                                             .zone = &zero,
                                             .thread = &s->rows[i].thread,
                                             .vm = &zero,
                                             .coroutine = &zero,
                                             .label = &zero };
                int r = fn(ctx, &b, &wanted);

                if (r)
                        return r;
        }
        return 0;
}

static const char *frame_text(void *ctx, uint32_t frame)
{
        const struct ls_labels *labels = ctx;

        return labels->function[frame];
}

struct seen { struct ls_timeline_sample samples[16]; unsigned n; };

static int keep(void *ctx, const struct ls_timeline_sample *s)
{
        struct seen *seen = ctx;

        assert_true(seen->n < 16);
        seen->samples[seen->n++] = *s;
        return 0;
}

/* A timeline of rows of two threads over three stacks: 1 = f1, 2 = f1 f2, 3 = f2. To be freed with
 * fixture and labels. */
static struct ls_timeline *timeline(struct fixture *f, struct ls_export *in,
                                    struct ls_labels **labels, struct rows *rows)
{
        static struct ls_thread threads[3];
        static uint32_t frames[16];
        struct ls_timeline *t = NULL;

        fixture_make(f, 2, 3, 1);
        f->p.stacks[1] = (struct ls_stack){ 0, 1, 1 };
        f->p.stacks[2] = (struct ls_stack){ 1, 3, 2 };
        f->p.stacks[3] = (struct ls_stack){ 0, 3, 1 };
        f->p.threads = threads;
        f->p.n_threads = 3;
        assert_int_equal(ls_labels_new(&f->p, 0, labels), 0);
        for (uint32_t i = 0; i < f->p.n_locations; i++)
                frames[i] = f->p.locations[i].function;
        *in = (struct ls_export){ .profile = &f->p,
                                  .labels = *labels,
                                  .frame_of_location = frames,
                                  .frame_text = frame_text,
                                  .ctx = *labels,
                                  .n_frames = f->p.n_functions,
                                  .interval_ns = MS,
                                  .rows = give,
                                  .caller_ctx = rows };
        assert_int_equal(ls_timeline_new(in, &t), 0);
        return t;
}

/* Jitter makes neither gaps nor overlaps, a wait is a gap, and no tick is lost or stretched. */
static void places(void **state)
{
        static const struct row rows[] = {
                { 1, 1, 1, 101 * MS },          { 2, 3, 1, 101 * MS },
                { 1, 2, 1, 102 * MS + 300000 }, { 1, 2, 1, 103 * MS - 200000 },
                { 1, 1, 2, 150 * MS },          { 1, 0, 3, 152 * MS },
                { 2, 3, 4, 105 * MS },
        };
        struct rows all = { rows, sizeof(rows) / sizeof(rows[0]) };
        struct seen seen = { .n = 0 };
        struct ls_labels *labels;
        struct ls_export in;
        struct fixture f;
        struct ls_timeline *t = timeline(&f, &in, &labels, &all);
        uint64_t at[3] = { 0 }, ticks = 0;

        (void)state;
        assert_int_equal(ls_timeline_each(t, keep, &seen), 0);
        assert_int_equal(seen.n, all.n);
        for (unsigned i = 0; i < seen.n; i++) {
                const struct ls_timeline_sample *s = &seen.samples[i];

                assert_int_equal(s->to_ns - s->from_ns, s->ticks * MS);
                assert_int_equal(s->first, at[s->thread] == 0);
                if (!s->first)
                        assert_int_equal(s->from_ns - s->gap_ns, at[s->thread]);
                at[s->thread] = s->to_ns;
                ticks += s->ticks;
                assert_true(s->node > 0 && s->node < t->tree->n);
        }
        assert_int_equal(seen.samples[2].gap_ns, 0);            /* 0.3 ms late */
        assert_int_equal(seen.samples[3].gap_ns, 0);            /* and then early */
        assert_int_equal(seen.samples[4].gap_ns, 148 * MS - 103 * MS);
        assert_int_equal(seen.samples[5].gap_ns, 0);            /* more ticks than have passed: it
                                                                 * ends late */
        assert_int_equal(t->ticks, ticks);
        assert_int_equal(t->n_threads, 2);
        assert_int_equal(t->threads[1].ticks, 8);
        assert_int_equal(t->threads[2].ticks, 5);
        assert_int_equal(t->zero_ns, 100 * MS);
        assert_int_equal(t->to_ns, 153 * MS);
        ls_timeline_free(t);
        ls_labels_free(labels);
        fixture_free(&f);
}

/* Weights and times at their limits end in no overflow. */
static void limits(void **state)
{
        static const struct row rows[] = {
                { 1, 1, UINT32_MAX, 5 },
                { 1, 1, UINT32_MAX, UINT64_MAX },
                { 1, 2, 1, 0 },
                { 1, 3, 0, 7 },
        };
        struct rows all = { rows, 4 };
        struct seen seen = { .n = 0 };
        struct ls_labels *labels;
        struct ls_export in;
        struct fixture f;
        struct ls_timeline *t = timeline(&f, &in, &labels, &all);

        (void)state;
        in.interval_ns = UINT64_MAX;
        assert_int_equal(ls_timeline_each(t, keep, &seen), 0);
        assert_int_equal(seen.n, 3);                            /* no ticks, no sample */
        for (unsigned i = 0; i < seen.n; i++) {
                assert_true(seen.samples[i].from_ns <= seen.samples[i].to_ns);
                assert_true(i == 0 || seen.samples[i].from_ns >= seen.samples[i - 1].to_ns);
        }
        ls_timeline_free(t);
        ls_labels_free(labels);
        fixture_free(&f);
}

static int in_order(void *ctx, const void *record)
{
        uint64_t *next = ctx, got;

        memcpy(&got, record, sizeof(got));
        assert_int_equal(got, *next);
        *next += 3;
        return 0;
}

static void spool(void **state)
{
        struct ls_spool *s;

        (void)state;
        assert_int_equal(ls_spool_new(3, sizeof(uint64_t), &s), 0);
        for (uint64_t i = 0; i < 30000; i++)
                assert_int_equal(ls_spool_add(s, (uint32_t)(i % 3), &i), 0);
        for (uint32_t pass = 0; pass < 2; pass++) {
                for (uint32_t stream = 0; stream < 3; stream++) {
                        uint64_t next = stream;

                        assert_int_equal(ls_spool_count(s, stream), 10000);
                        assert_int_equal(ls_spool_each(s, stream, in_order, &next), 0);
                        assert_int_equal(next, 30000 + stream);
                }
        }
        ls_spool_free(s);
        ls_spool_free(NULL);
}

static void json(void **state)
{
        static const struct { uint64_t n; const char *ms, *us;
        } numbers[] = {
                { 0, "0", "0" },
                { 1, "0.000001", "0.001" },
                { 1500000, "1.5", "1500" },
                { 1000001, "1.000001", "1000.001" },
                { UINT64_MAX, "18446744073709.551615", "18446744073709551.615" },
        };
        char *text = NULL, want[100];
        size_t size = 0;
        struct ls_js j = { .out = open_memstream(&text, &size) };

        (void)state;
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
                rewind(j.out);
                j.comma = 0;
                ls_js_open(&j, '[');
                ls_js_millionths(&j, numbers[i].n);
                ls_js_thousandths(&j, numbers[i].n);
                ls_js_close(&j, ']');
                putc('\0', j.out);
                fflush(j.out);
                snprintf(want, sizeof(want), "[%s,%s]", numbers[i].ms, numbers[i].us);
                assert_string_equal(text, want);
        }
        rewind(j.out);
        j.comma = 0;
        ls_js_open(&j, '{');
        ls_js_key_open(&j, "a", '[');
        ls_js_close(&j, ']');
        ls_js_key_u64(&j, "b", 7);
        ls_js_key(&j, "c");
        ls_js_text(&j, (struct ls_str){ "\"\\\n\xff\xc3\xa9\0", 7 });
        ls_js_key(&j, "d");
        ls_js_null(&j);
        ls_js_key_bool(&j, "e", 1);
        ls_js_key(&j, "f");
        ls_js_minus_one(&j);
        ls_js_close(&j, '}');
        putc('\0', j.out);
        fclose(j.out);
        assert_string_equal(text, "{\"a\":[],\"b\":7,"
                                  "\"c\":\"\\\"\\\\\\\\n\\\\xff\xc3\xa9\\\\x00\",\"d\":null,\"e\":"
                                  "true,\"f\":-1}");
        free(text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(places),
                cmocka_unit_test(limits),
                cmocka_unit_test(spool),
                cmocka_unit_test(json),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
