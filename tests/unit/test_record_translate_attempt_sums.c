/* record/translate/attempt_sums.c: attempts of the JIT compiler on their way into the trace, and a
 * program that makes up places and reasons without end. */
#include "record/translate/attempt_sums.h"
#include "tests/unit/translate_fixture.h"

#include <string.h>

#define MADE_UP (3 * LS_ATTEMPT_KINDS)

static void put(uint32_t line, uint32_t flags, const char *reason)
{
        struct ls_rec_attempt rec = {
                .start_function = 1, .start_line = line, .first_line = line, .last_line = line + 1,
                .stop_function = 2, .stop_line = line, .flags = flags, .bytecodes = 3, .ns = 10,
                .reason_len = (uint32_t)strlen(reason),
        };
        int error = fake_put(ring, LS_REC_ATTEMPT, &rec, sizeof(rec), reason, rec.reason_len);

        assert_int_equal(error, 0);
}

static const struct ls_attempt *find(const char *reason, uint32_t line)
{
        for (uint32_t i = 0; i < profile->n_attempts; i++) {
                const struct ls_attempt *a = &profile->attempts[i];

                if (a->first_line == line && !strcmp(a->reason.s, reason))
                        return a;
        }
        fail_msg("no attempt at line %u for '%s'", line, reason);
        return NULL;
}

static void those_alike_are_added_up(void **state)
{
        const struct ls_attempt *a;

        (void)state;
        four_functions();
        for (uint32_t i = 0; i < 5; i++)
                put(7, LS_ATTEMPT_LOOP, "one");
        put(7, LS_ATTEMPT_LOOP, "another");
        put(7, LS_ATTEMPT_LOOP | LS_ATTEMPT_COMPILED, "");
        finish();
        assert_int_equal(profile->n_attempts, 3);
        a = find("one", 7);
        assert_int_equal(a->count, 5);
        assert_int_equal(a->ns, 50);
        assert_int_equal(a->bytecodes, 15);
        assert_int_equal(profile->locations[a->start].line, 7);
        assert_int_equal(profile->locations[a->stop].line, 7);
        assert_int_not_equal(profile->locations[a->start].function,
                             profile->locations[a->stop].function);
        assert_int_equal(find("another", 7)->count, 1);
        assert_int_equal(find("", 7)->flags, LS_ATTEMPT_LOOP | LS_ATTEMPT_COMPILED);
}

/* What is written in between is written once: the reader adds up. */
static void rows_of_a_snapshot_add_up(void **state)
{
        uint64_t count = 0;

        (void)state;
        four_functions();
        put(7, LS_ATTEMPT_LOOP, "one");
        run_drain();
        ls_attempts_write(&translate.attempts, writer);
        ls_attempts_write(&translate.attempts, writer);
        put(7, LS_ATTEMPT_LOOP, "one");
        finish();
        for (uint32_t i = 0; i < profile->n_attempts; i++)
                count += profile->attempts[i].count;
        assert_int_equal(count, 2);
}

/* Of more kinds than fit neither a place nor a reason comes into the trace. */
static void what_is_made_up_is_bounded(void **state)
{
        uint64_t count = 0;
        uint32_t bound = 2 * LS_ATTEMPT_KINDS + 16;

        (void)state;
        four_functions();
        for (uint32_t i = 0; i < MADE_UP; i++) {
                put(i + 1, LS_ATTEMPT_LOOP, "one");
                if (i % 1024 == 0)
                        run_drain();
        }
        finish();
        for (uint32_t i = 0; i < profile->n_attempts; i++)
                count += profile->attempts[i].count;
        assert_int_equal(profile->n_attempts, LS_ATTEMPT_KINDS);
        assert_int_equal(count, LS_ATTEMPT_KINDS);
        assert_int_equal(translate.attempts.dropped, MADE_UP - LS_ATTEMPT_KINDS);
        assert_true(profile->n_locations <= bound);
        assert_non_null(strstr(notice, "32768 attempts of the JIT compiler are only counted"));
}

static void reasons_are_bounded(void **state)
{
        char reason[32];

        (void)state;
        four_functions();
        for (uint32_t i = 0; i < 4 * LS_ATTEMPT_REASONS; i++) {
                snprintf(reason, sizeof(reason), "reason %u", i);
                put(7, LS_ATTEMPT_LOOP, reason);
                if (i % 1024 == 0)
                        run_drain();
        }
        put(7, LS_ATTEMPT_LOOP, "reason 0");    /* known ones go on */
        finish();
        assert_int_equal(profile->n_attempts, LS_ATTEMPT_REASONS);
        assert_int_equal(find("reason 0", 7)->count, 2);
        assert_int_equal(translate.attempts.dropped, 3 * LS_ATTEMPT_REASONS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(those_alike_are_added_up, setup, teardown),
                cmocka_unit_test_setup_teardown(rows_of_a_snapshot_add_up, setup, teardown),
                cmocka_unit_test_setup_teardown(what_is_made_up_is_bounded, setup, teardown),
                cmocka_unit_test_setup_teardown(reasons_are_bounded, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
