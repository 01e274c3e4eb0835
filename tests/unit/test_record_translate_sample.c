/* record/translate/sample.c with the watcher's rings: blocked time among the rows of its thread, in
 * order of time; whose stack a sample without one has; coroutines that agent and watcher number for
 * themselves; places and time of suspended ones; records that make no sense. */
#include "tests/unit/translate_fixture.h"
#include "formats/trace/reader.h"

#define MS 1000000ull

static struct ls_ring *watchers(void)
{
        return ls_memory_ring(&memory, memory.of[LS_ROLE_BLOCKED].first);
}

static void define(struct ls_ring *r, uint32_t claim)
{
        const struct ls_rec_thread t = { 1, 42, 4, 0 };

        r->tid = 42;
        r->claim = claim;
        fake_put(r, LS_REC_THREAD, &t, sizeof(t), "main", 4);
        fake_source(r, 1, "@/nowhere/app.lua", 0);
        for (uint32_t i = 1; i <= 2; i++) {
                fake_function(r, i, 1, 10 * i, 10 * i + 9);
                fake_name(r, i, LS_NAME_DEFINITION, i == 1 ? "runs" : "waits");
        }
}

/* A sample at so many ms: of function f at its first line, or like another. */
static int put(struct ls_ring *r, uint64_t ms, uint32_t f, enum ls_like like, uint32_t ticks,
               uint32_t coroutine)
{
        const struct ls_frame frame = { f, 10 * f };
        struct ls_rec_sample s = { .time_ns = START_NS + ms * MS,
                                   .nframes = !like,
                                   .like = like,
                                   .coroutine_id = coroutine,
                                   .event = r == ring ? LS_EVENT_CPU : LS_EVENT_WALL,
                                   .flags = r == ring ? 0 : LS_SAMPLE_OFF_CPU };

        s.weight[r == ring ? LS_VMSTATE_INTERPRETED : LS_VMSTATE_C] = ticks;
        return fake_put(r, LS_REC_SAMPLE, &s, sizeof(s), &frame, s.nframes * sizeof(frame));
}

static int put_row(void *ctx, const struct ls_sample_block *b)
{
        static const char *const events[256] = {
                [LS_EVENT_CPU] = "cpu",
                [LS_EVENT_WALL] = "wall",
                [LS_EVENT_SUSPENDED] = "suspended",
                [LS_EVENT_READY] = "ready",
        };

        (void)ctx;
        for (uint32_t i = 0; i < b->n; i++) {
                text_len += (size_t)
                        snprintf(text + text_len, sizeof(text) - text_len, "%llu %s%s ",
                                 (unsigned long long)((b->time_ns[i] - START_NS + MS / 2) / MS),
                                 events[b->event[i]],
                                 b->flags[i] & LS_SAMPLE_OFF_CPU ? " off" : "");
                text_len += (size_t)snprintf(text + text_len, sizeof(text) - text_len,
                                             "%u:", b->weight[i]);
                put_stack(b->stack[i]);
                if (b->coroutine[i])
                        text_len += (size_t)snprintf(text + text_len, sizeof(text) - text_len,
                                                     " co%u", b->coroutine[i]);
                text_len += (size_t)snprintf(text + text_len, sizeof(text) - text_len, "\n");
        }
        return 0;
}

static const char *all_rows(void)
{
        text_len = 0;
        *text = 0;
        ls_profile_samples(profile, LS_COL_TIME, put_row, NULL);
        return text;
}

static int setup_both(void **state)
{
        fake_events = LS_RECORD_CPU | LS_RECORD_WALL;
        return setup(state);
}

static int setup_wall(void **state)
{
        fake_events = LS_RECORD_WALL;
        return setup(state);
}

static void rows_are_in_order_of_time(void **state)
{
        (void)state;
        define(ring, 1);
        define(watchers(), 1);
        put(ring, 10, 1, LS_LIKE_NONE, 1, 0);
        put(watchers(), 30, 2, LS_LIKE_NONE, 20, 0);
        put(watchers(), 40, 0, LS_LIKE_RING, 10, 0);
        put(ring, 41, 1, LS_LIKE_NONE, 1, 0);
        put(watchers(), 44, 0, LS_LIKE_THREAD, 3, 0);
        put(watchers(), 60, 0, LS_LIKE_RING, 5, 0);
        run_drain();
        ls_translate_settle(&translate);
        /* found out late: it does not go back in time */
        put(ring, 70, 1, LS_LIKE_NONE, 1, 0);
        run_drain();
        ls_translate_settle(&translate);
        put(watchers(), 65, 0, LS_LIKE_THREAD, 4, 0);
        finish();
        assert_string_equal(all_rows(),
                            "10 cpu 1:runs:10\n30 wall off 20:waits:20\n40 wall off 10:waits:20\n"
                            "41 cpu 1:runs:10\n44 wall off 3:runs:10\n60 wall off 5:waits:20\n70 "
                            "cpu 1:runs:10\n"
                            "70 wall off 4:runs:10\n");
        assert_int_equal(translate.bad_records + translate.definition_missing, 0);
        assert_int_equal(translate.sample_ticks, 3);
        assert_int_equal(translate.wall_ticks, 42);
        assert_int_equal(profile->recorded_ticks, 3);
}

static void without_any_stack_it_is_outside_of_lua(void **state)
{
        (void)state;
        define(watchers(), 1);
        put(watchers(), 5, 0, LS_LIKE_RING, 1, 0);
        put(watchers(), 6, 0, LS_LIKE_THREAD, 2, 0);
        finish();
        assert_string_equal(all_rows(),
                            "5 wall off 1:[outside Lua]:0\n6 wall off 2:[outside Lua]:0\n");
}

static void coroutines_are_the_same(void **state)
{
        const struct ls_rec_coroutine agents[] = { { 1, 1, 1, 1, 0x1000 }, { 2, 1, 2, 1, 0x2000 } };
        const struct ls_rec_coroutine theirs[] = { { 1, 1, 1, 1, 0x2000 },
                                                   { 2, 1, 2, 1, 0x3000 },
                                                   { 3, 1, 3, 1, 0x1000 } };

        (void)state;
        define(ring, 1);
        define(watchers(), 1);
        /* the watcher meets 0x2000 first, the agent 0x1000 */
        fake_put(watchers(), LS_REC_COROUTINE, &theirs[0], sizeof(theirs[0]), NULL, 0);
        put(watchers(), 1, 2, LS_LIKE_NONE, 1, 1);
        run_drain();
        fake_put(ring, LS_REC_COROUTINE, &agents[0], sizeof(agents[0]), NULL, 0);
        fake_put(ring, LS_REC_COROUTINE, &agents[1], sizeof(agents[1]), NULL, 0);
        put(ring, 2, 1, LS_LIKE_NONE, 1, 1);
        put(ring, 3, 1, LS_LIKE_NONE, 1, 2);
        run_drain();
        fake_put(watchers(), LS_REC_COROUTINE, &theirs[1], sizeof(theirs[1]), NULL, 0);
        fake_put(watchers(), LS_REC_COROUTINE, &theirs[2], sizeof(theirs[2]), NULL, 0);
        put(watchers(), 4, 2, LS_LIKE_NONE, 1, 2);
        put(watchers(), 5, 2, LS_LIKE_NONE, 1, 3);
        finish();
        assert_string_equal(all_rows(),
                            "1 wall off 1:waits:20 co1\n2 cpu 1:runs:10 co2\n3 cpu 1:runs:10 co1\n"
                            "4 wall off 1:waits:20 co3\n5 wall off 1:waits:20 co2\n");
        assert_int_equal(profile->n_coroutines, 4);
        for (uint32_t i = 1; i < 4; i++)
                assert_int_equal(profile->coroutines[i].generation, i);
}

static void wall_alone_has_one_event(void **state)
{
        (void)state;
        define(ring, 1);
        define(watchers(), 1);
        put(ring, 1, 1, LS_LIKE_NONE, 2, 0);
        put(watchers(), 4, 2, LS_LIKE_NONE, 3, 0);
        finish();
        assert_string_equal(all_rows(), "1 wall 2:runs:10\n4 wall off 3:waits:20\n");
}

/* Another image of the program: what waits for its rows is not lost. */
static void a_new_image_loses_nothing(void **state)
{
        (void)state;
        define(ring, 1);
        define(watchers(), 1);
        run_drain();
        put(watchers(), 100, 2, LS_LIKE_NONE, 100, 0);
        define(watchers(), 2);
        put(watchers(), 150, 1, LS_LIKE_NONE, 50, 0);
        define(ring, 2);
        run_drain();
        finish();
        assert_string_equal(all_rows(), "100 wall off 100:waits:20\n150 wall off 50:runs:10\n");
}

static void nonsense_is_counted(void **state)
{
        struct ls_rec_sample s = { .time_ns = START_NS + MS,
                                   .event = LS_EVENT_WALL,
                                   .weight = { 1 } };
        const struct ls_frame frame = { 1, 10 };

        (void)state;
        define(ring, 1);
        define(watchers(), 1);
        fake_put(ring, LS_REC_SAMPLE, &s, sizeof(s), NULL, 0); /* the agent sends no wall time */
        s.event = LS_EVENT_CPU;
        fake_put(watchers(), LS_REC_SAMPLE, &s, sizeof(s), NULL,
                 0); /* nor the watcher time on a CPU */
        s.event = LS_EVENT_WALL;
        s.like = LS_LIKE_THREAD + 1;
        fake_put(watchers(), LS_REC_SAMPLE, &s, sizeof(s), NULL, 0);
        s.like = LS_LIKE_RING;
        s.nframes = 1;
        fake_put(watchers(), LS_REC_SAMPLE, &s, sizeof(s), &frame, sizeof(frame));
        finish();
        assert_int_equal(translate.bad_records, 4);
        assert_string_equal(all_rows(), "");
}

static struct ls_ring *suspended_ring(void)
{
        return ls_memory_ring(&memory, memory.of[LS_ROLE_SUSPENDED].first);
}

static int setup_suspended(void **state)
{
        fake_events = LS_RECORD_CPU | LS_RECORD_SUSPENDED;
        return setup(state);
}

/* Of a suspended coroutine at so many ms: the stack of function f, as a place, or time there. */
static void put_suspended(uint64_t ms, uint32_t event, uint32_t f, uint32_t place, uint32_t ticks,
                          uint32_t coroutine)
{
        const struct ls_frame frame = { f, 10 * f };
        struct ls_rec_sample s = { .time_ns = START_NS + ms * MS,
                                   .nframes = f != 0,
                                   .like = f ? LS_LIKE_NONE : LS_LIKE_PLACE,
                                   .coroutine_id = coroutine,
                                   .event = event,
                                   .flags = LS_SAMPLE_SUSPENDED,
                                   .place = place,
                                   .vm_id = 1 };

        s.weight[LS_VMSTATE_C] = ticks;
        fake_put(suspended_ring(), LS_REC_SAMPLE, &s, sizeof(s), &frame, s.nframes * sizeof(frame));
}

static void places_are_sent_once(void **state)
{
        const struct ls_rec_coroutine agents = { 1, 2, 1, 1, 0x1000 },
                                      theirs = { 5, 2, 1, 1, 0x1000 };

        (void)state;
        define(ring, 1);
        define(suspended_ring(), 1);
        fake_put(ring, LS_REC_COROUTINE, &agents, sizeof(agents), NULL, 0);
        put(ring, 10, 1, LS_LIKE_NONE, 1, 1);
        fake_put(suspended_ring(), LS_REC_COROUTINE, &theirs, sizeof(theirs), NULL, 0);
        put_suspended(20, LS_EVENT_SUSPENDED, 2, 7, 0, 0);
        put_suspended(30, LS_EVENT_SUSPENDED, 0, 7, 20, 5);
        put_suspended(30, LS_EVENT_READY, 0, 7, 4, 5);
        put_suspended(40, LS_EVENT_SUSPENDED, 1, 7, 0, 0);      /* a number is used again */
        put_suspended(50, LS_EVENT_SUSPENDED, 0, 7, 3, 0);
        put_suspended(60, LS_EVENT_SUSPENDED, 0, 8, 2, 0);      /* what it says was lost */
        finish();
        assert_int_equal(translate.bad_records, 0);
        assert_int_equal(translate.definition_missing, 1);
        assert_int_equal(translate.suspended_ticks, 25);
        assert_int_equal(translate.ready_ticks, 4);
        assert_int_equal(translate.sample_ticks, 1);
        assert_string_equal(all_rows(),
                            "10 cpu 1:runs:10 co1\n30 suspended 20:waits:20 co1\n30 ready "
                            "4:waits:20 co1\n"
                            "50 suspended 3:runs:10\n60 suspended 2:[definition lost]:0\n");
}

static void suspended_nonsense_is_counted(void **state)
{
        (void)state;
        define(suspended_ring(), 1);
        put_suspended(1, LS_EVENT_SUSPENDED, 2, 0, 0, 0);       /* no number */
        put_suspended(2, LS_EVENT_SUSPENDED, 2, 1u << 20, 0, 0);
        put_suspended(3, LS_EVENT_SUSPENDED, 0, 1, 0, 0);       /* no time */
        put_suspended(4, LS_EVENT_CPU, 0, 1, 1, 0);             /* another's event */
        put_suspended(5, LS_EVENT_SUSPENDED, 0, 1, UINT32_MAX, 0);      /* more than has passed */
        finish();
        assert_int_equal(translate.bad_records, 5);
        assert_string_equal(all_rows(), "");
}

#define BOTH(name) cmocka_unit_test_setup_teardown(name, setup_both, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                BOTH(rows_are_in_order_of_time),
                BOTH(without_any_stack_it_is_outside_of_lua),
                BOTH(coroutines_are_the_same),
                BOTH(a_new_image_loses_nothing),
                BOTH(nonsense_is_counted),
                cmocka_unit_test_setup_teardown(places_are_sent_once, setup_suspended, teardown),
                cmocka_unit_test_setup_teardown(suspended_nonsense_is_counted, setup_suspended,
                                                teardown),
                cmocka_unit_test_setup_teardown(wall_alone_has_one_event, setup_wall, teardown),
        };

        return cmocka_run_group_tests_name("record_wall", tests, NULL, NULL);
}
