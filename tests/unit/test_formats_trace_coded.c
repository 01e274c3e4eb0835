/* Coded columns of the trace: what the writer is given comes back, at all sizes of chunks. */
#include "tests/unit/trace_fixture.h"
#include "formats/trace/reader.h"
#include "formats/trace/dump.h"

/* Chunks of all sizes around those that are coded, with what the models expect and what they do
 * not: steps of one interval in each thread and others, stacks new and old, a coroutine for each
 * stack and exceptions. */
#define CODED_NODES 40000u
#define CODED_ROWS 60000u

static uint32_t odd(unsigned i, unsigned salt)
{
        uint32_t x = (i + salt) * 2246822519u;

        return (x ^ x >> 13) * 2654435761u >> 8;
}

static uint32_t coded_parent(unsigned id)
{
        return odd(id, 1) % 4 ? id - 1 : odd(id, 2) % id;
}

static struct ls_sample_row coded_row(unsigned i)
{
        unsigned defined = i < CODED_NODES ? i + 1 : CODED_NODES;
        struct ls_sample_row row = {
                .event = LS_EVENT_CPU, .thread = 1 + odd(i, 3) % 3, .weight = 1, .vm = 1
        };

        row.stack = odd(i, 4) % 3 ? defined : odd(i, 5) % (defined + 1);
        row.coroutine = odd(i, 6) % 50 ? odd(row.stack, 7) % 9 : odd(i, 8) % 9;
        row.vmstate = (uint8_t)(odd(i, 9) % 5 ? row.stack % LS_NVMSTATES : 1);
        row.time_ns = START + i * INTERVAL + odd(i, 10) % 16 * (INTERVAL / 16);
        if (odd(i, 11) % 100 == 0) {            /* far away, back and forth, and heavy */
                row.time_ns = START + (uint64_t)odd(i, 12) * INTERVAL * (i % 2 ? 1 : 1000);
                row.weight = odd(i, 13);
                row.zone = odd(i, 14) % 9;
                row.flags = (uint8_t)(odd(i, 15) % 32 * 2);
        }
        return row;
}

static int check_coded(void *ctx, const struct ls_sample_block *b)
{
        unsigned *next = ctx;

        for (uint32_t k = 0; k < b->n; k++, (*next)++) {
                struct ls_sample_row row = coded_row(*next);

                assert_int_equal(b->thread[k], row.thread);
                assert_int_equal(b->stack[k], row.stack);
                assert_int_equal(b->coroutine[k], row.coroutine);
                assert_int_equal(b->vmstate[k], row.vmstate);
                assert_int_equal(b->flags[k], row.flags);
                assert_int_equal(b->zone[k], row.zone);
                assert_int_equal(b->weight[k], row.weight);
                if (b->time_ns)
                        assert_int_equal(b->time_ns[k], row.time_ns);
        }
        return 0;
}

static int check_coded_dump(void *ctx, uint64_t chunk, uint64_t offset, const char *kind,
                            const struct ls_dump_field *fields, unsigned n)
{
        unsigned *next = ctx;

        (void)chunk;
        (void)offset;
        if (strcmp(kind, "sample"))
                return 0;
        for (unsigned i = 0; i < n; i++) {
                struct ls_sample_row row = coded_row(*next);

                if (!strcmp(fields[i].key, "coroutine"))
                        assert_int_equal(fields[i].u64, row.coroutine);
                if (!strcmp(fields[i].key, "time_ns"))
                        assert_int_equal(fields[i].u64, row.time_ns);
        }
        (*next)++;
        return 0;
}

static void define_others(struct ls_trace_writer *w)
{
        uint32_t process = ls_trace_process(w, 1, 0),
                 f = ls_trace_function(w, &(struct ls_function_def){ .kind = 1 });

        for (unsigned i = 1; i < 10; i++) {
                ls_trace_thread(w, process, i, 0);
                ls_trace_coroutine(w, ls_trace_vm(w, process, i, 0), f, i);
                ls_trace_zone(w, i - 1, 0);
        }
}

static void coded_columns_come_back(void **state)
{
        struct ls_trace_writer *w;
        struct ls_profile *p;
        unsigned next = 0, per = 1, at = 0;
        int fd = create_temp();

        (void)state;
        assert_int_equal(ls_trace_writer_open(fd, INTERVAL, &w), 0);
        define_others(w);
        for (unsigned i = 0; i < CODED_ROWS; i++) {
                struct ls_sample_row row = coded_row(i);

                if (i < CODED_NODES)            /* each has a location of its own, so no two are the
                                                 * same */
                        assert_int_equal(ls_trace_stack(w, coded_parent(i + 1), i + 1), i + 1);
                ls_trace_sample(w, &row);
                if (++at >= per) {
                        assert_int_equal(ls_trace_flush(w, 0, 1), 0);
                        per = per * 3 / 2 + 1 < 9000 ? per * 3 / 2 + 1 : 1;
                        at = 0;
                }
        }
        assert_int_equal(ls_trace_writer_close(w), 0);
        close(fd);
        p = open_temp();
        assert_int_equal(p->n_damages, 0);
        for (unsigned i = 0; i < CODED_NODES; i++)
                assert_int_equal(p->stacks[i + 1].parent, coded_parent(i + 1));
        assert_int_equal(ls_profile_samples(p, LS_COL_TIME, check_coded, &next), 0);
        assert_int_equal(next, CODED_ROWS);
        next = 0;
        assert_int_equal(ls_profile_samples(p, 0, check_coded, &next), 0);
        next = 0;
        assert_int_equal(ls_profile_dump(p, check_coded_dump, &next), 0);
        assert_int_equal(next, CODED_ROWS);
        ls_profile_close(p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(coded_columns_come_back),
        };

        return cmocka_run_group_tests(tests, NULL, remove_temp);
}
