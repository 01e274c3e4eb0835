/* formats/trace/jit.c: what a file says of traces is checked, and what is lost costs no more than
 * itself. */
#include "formats/trace/writer_parts.h"
#include "tests/unit/trace_fixture.h"
#include "tests/unit/jit_fixture.h"
#include "formats/trace/reader.h"

struct making { struct ls_trace_writer *w; uint32_t vm, a, b, trace; };

static uint32_t str(struct ls_trace_writer *w, const char *s)
{
        return ls_trace_string(w, s, strlen(s));
}

static uint32_t trace_of(struct ls_trace_writer *w, uint64_t number)
{
        return ls_trace_function(w, &(struct ls_function_def){
                                            .kind = LS_FUNC_TRACE, .offset = number, .hash = 1 });
}

static struct making begin(void)
{
        struct making m;
        struct ls_function_def f = { .kind = LS_FUNC_LUA, .first_line = 10, .last_line = 19 };

        assert_int_equal(ls_trace_writer_open(create_temp(), INTERVAL, &m.w), 0);
        ls_trace_event(m.w, LS_EVENT_CPU, INTERVAL);
        m.vm = ls_trace_vm(m.w, ls_trace_process(m.w, 7, 0), 1, str(m.w, "LuaJIT"));
        f.source = ls_trace_source(m.w, &(struct ls_source_def){ .name = str(m.w, "@app.lua") });
        m.a = ls_trace_function(m.w, &f);
        f.first_line = 20;
        m.b = ls_trace_function(m.w, &f);
        ls_trace_name(m.w, m.a, LS_NAME_GLOBAL, str(m.w, "a"));
        ls_trace_name(m.w, m.b, LS_NAME_GLOBAL, str(m.w, "b"));
        m.trace = trace_of(m.w, 1);
        ls_trace_irnames(m.w, m.vm, str(m.w, JIT_NAMES));
        return m;
}

static void put_trace(struct making *m, uint32_t function, uint32_t parent, uint32_t number)
{
        static const struct jit_part parts[] = { { 0, 0, 12 }, { 1, 1, 25 } };
        const uint32_t functions[] = { m->a, m->b };
        struct ls_rec_jittrace head = { .jit_id = function,
                                        .vm_id = m->vm,
                                        .number = number,
                                        .parent_id = parent,
                                        .root = parent ? 1 : 0,
                                        .start_line = 12,
                                        .link_kind = 2 };
        uint32_t size;
        struct ls_rec_jittrace *rec = jit_record(head, functions, 2, parts, 2, &size);

        ls_trace_jittrace(m->w, rec, size, m->a);
        free(rec);
}

static void put_sample(struct making *m, uint32_t below, uint32_t function, uint32_t line)
{
        uint32_t stack = ls_trace_stack(m->w, below, ls_trace_location(m->w, function, line));

        ls_trace_sample(m->w, &(struct ls_sample_row){ .event = LS_EVENT_CPU,
                                                       .vm = m->vm,
                                                       .stack = stack,
                                                       .weight = 1,
                                                       .time_ns = START });
}

static char text[65536];

static int put_rows(void *ctx, const struct ls_sample_block *b)
{
        struct ls_profile *p = ctx;

        for (uint32_t i = 0; i < b->n && strlen(text) < sizeof(text) - 1024; i++) {
                char line[512] = "";

                for (uint32_t s = b->stack[i], n = 0; s && n < 10; s = p->stacks[s].parent, n++) {
                        const struct ls_location *l = &p->locations[p->stacks[s].location];
                        char whole[512];

                        assert_true(p->stacks[s].parent < s);
                        snprintf(whole, sizeof(whole), "%.40s:%u%s%.400s",
                                 p->functions[l->function].name.s, l->line, *line ? ";" : "", line);
                        strcpy(line, whole);
                }
                sprintf(text + strlen(text), "%u %s\n",
                        b->trace ? p->jittraces[b->trace[i]].number : 0, line);
        }
        return 0;
}

static struct ls_profile *finish(struct making *m)
{
        struct ls_profile *p;

        assert_int_equal(ls_trace_writer_close(m->w), 0);
        p = open_temp();
        *text = 0;
        assert_int_equal(ls_profile_samples(p, LS_COL_TRACE, put_rows, p), 0);
        return p;
}

static void frames_of_the_map_replace_the_one_below(void **state)
{
        struct making m = begin();
        uint32_t root = ls_trace_stack(m.w, 0, ls_trace_location(m.w, m.b, 21));
        uint32_t below = ls_trace_stack(m.w, root, ls_trace_location(m.w, m.a, 11));
        struct ls_profile *p;

        (void)state;
        put_trace(&m, m.trace, 0, 5);
        put_sample(&m, below, m.trace, 1);
        put_sample(&m, below, m.trace, JIT_PART_BYTES + 1);
        put_sample(&m, below, m.trace, 0);
        put_sample(&m, root, m.trace, JIT_PART_BYTES + 1);      /* it has returned to what called
                                                                 * b */
        put_sample(&m, 0, m.trace, 1);                          /* nothing below it that could be
                                                                 * named */
        ls_trace_sample(m.w, &(struct ls_sample_row){ .event = LS_EVENT_CPU,
                                                      .stack = below,
                                                      .weight = 1,
                                                      .time_ns = START });
        p = finish(&m);
        assert_string_equal(text, "5 b:21;a:12\n5 b:21;a:12;b:25\n5 b:21;a:0\n5 a:12;b:25\n5 :1\n0 "
                                  "b:21;a:11\n");
        assert_int_equal(p->jit_ticks, 5);
        assert_int_equal(p->jit_unknown_ticks, 1);
        assert_true(str_is(p->jittraces[1].link_kind, "loop"));
        assert_int_equal(p->locations[p->jittraces[1].start].line, 12);
        ls_profile_close(p);
}

/* A C function right above machine code stands for the builtin that called it; the sample is in the
 * trace. */
static void c_function_of_the_ffi(void **state)
{
        struct ls_function_def c = { .kind = LS_FUNC_C, .offset = 1 },
                               call = { .kind = LS_FUNC_BUILTIN };
        struct making m = begin();
        uint32_t below = ls_trace_stack(m.w, 0, ls_trace_location(m.w, m.a, 11)), stack, function;
        struct ls_profile *p;

        (void)state;
        c.identity_name = str(m.w, "usleep");
        function = ls_trace_function(m.w, &c);
        put_trace(&m, m.trace, 0, 5);
        stack = ls_trace_stack(m.w, below, ls_trace_location(m.w, m.trace, JIT_PART_BYTES + 1));
        put_sample(&m, stack, function, 0);
        put_sample(&m, ls_trace_stack(m.w, stack, ls_trace_location(m.w, function, 0)), function,
                   0);
        call.identity_name = str(m.w, "ffi.cdata.__call");
        m.b = ls_trace_function(m.w, &call);
        m.trace = trace_of(m.w, 2);
        put_trace(&m, m.trace, 0, 6);
        stack = ls_trace_stack(m.w, below, ls_trace_location(m.w, m.trace, JIT_PART_BYTES + 1));
        put_sample(&m, stack, function, 0);
        put_sample(&m, below, m.trace, JIT_PART_BYTES + 1);
        p = finish(&m);
        assert_string_equal(text,
                            "5 a:12;b:25;usleep:0\n0 a:12;b:25;usleep:0;usleep:0\n6 a:12;usleep:0\n"
                            "6 a:12;ffi.cdata.__call:25\n");
        ls_profile_close(p);
}

/* A builtin without a call in its code has a function of its own there. */
static void builtin_that_is_inlined(void **state)
{
        static const struct jit_part parts[] = { { 0, 0, 12 }, { 1, 1, 0 } };
        struct making m = begin();
        struct ls_function_def floor_def = { .kind = LS_FUNC_BUILTIN };
        struct ls_rec_jittrace head = {
                .vm_id = m.vm, .number = 5, .start_line = 12, .link_kind = 2
        };
        uint32_t below = ls_trace_stack(m.w, 0, ls_trace_location(m.w, m.a, 11)),
                 functions[2] = { m.a }, size;
        struct ls_rec_jittrace *rec;
        struct ls_profile *p;
        const struct ls_function *last;

        (void)state;
        floor_def.identity_name = str(m.w, "math.floor");
        functions[1] = ls_trace_function(m.w, &floor_def);
        head.jit_id = m.trace;
        rec = jit_record(head, functions, 2, parts, 2, &size);
        ls_trace_jittrace(m.w, rec, size, m.a);
        free(rec);
        put_sample(&m, below, m.trace, JIT_PART_BYTES + 1);
        put_sample(&m, ls_trace_stack(m.w, 0, ls_trace_location(m.w, functions[1], 0)), m.a, 11);
        p = finish(&m);
        assert_string_equal(text, "5 a:12;math.floor:0\n0 math.floor:0;a:11\n");
        last = &p->functions[p->n_functions - 1];
        assert_true(last->kind == LS_FUNC_BUILTIN && last->flags == LS_FUNCF_INLINED &&
                    str_is(last->name, "math.floor"));
        for (uint32_t i = 1; i + 1 < p->n_functions; i++)
                assert_false(p->functions[i].flags & LS_FUNCF_INLINED);
        ls_profile_close(p);
}

static void without_a_record(void **state)
{
        struct making m = begin();
        struct ls_profile *p;

        (void)state;
        put_sample(&m, ls_trace_stack(m.w, 0, ls_trace_location(m.w, m.a, 11)), m.trace, 7);
        p = finish(&m);
        assert_string_equal(text, "0 a:0\n");
        assert_int_equal(p->n_jittraces, 2);
        assert_int_equal(p->jit_unknown_ticks, 1);
        ls_profile_close(p);
}

/* Of 16000 samples at 4000 places in 40 traces each place and each trace is looked at once. */
static void many_places(void **state)
{
        struct making m = begin();
        uint32_t below = ls_trace_stack(m.w, 0, ls_trace_location(m.w, m.a, 11)), last = 0;
        struct ls_profile *p;

        (void)state;
        for (uint32_t t = 1; t <= 40; t++) {
                uint32_t f = trace_of(m.w, t);

                put_trace(&m, f, t % 4 == 1 ? 0 : last, t);
                last = f;
                for (uint32_t i = 0; i < 400; i++)
                        put_sample(&m, below, f, i % 100 + 1);
        }
        p = finish(&m);
        assert_int_equal(p->jit_ticks, 16000);
        assert_int_equal(p->jit_unknown_ticks, 0);
        assert_true(p->n_stacks < 4100);        /* what is meant is few: of a in one line, with b
                                                 * above it or not */
        ls_profile_close(p);
}

/* Rows that no writer of ours makes: ids out of bounds, parents in a circle, a map that is none,
 * one for all. */
static void hostile_rows(void **state)
{
        struct making m = begin();
        uint32_t below = ls_trace_stack(m.w, 0, ls_trace_location(m.w, m.a, 11)), f[64];
        struct ls_profile *p;

        (void)state;
        for (uint32_t i = 0; i < 64; i++)
                f[i] = trace_of(m.w, 100 + i);
        for (uint32_t i = 0; i < 64; i++) {
                uint64_t row[LS_COLUMNS_MAX] = {
                        [LS_C_JITTRACE_VM] = i == 1 ? UINT32_MAX : m.vm, [LS_C_JITTRACE_NUMBER] = i,
                        [LS_C_JITTRACE_PARENT] = i == 2 ? 1u << 30 : i == 3 ? m.a : f[(i + 1) % 64],
                        [LS_C_JITTRACE_START] = i == 4 ? UINT32_MAX : 1,
                        [LS_C_JITTRACE_FUNCTION] = i == 6 ? m.a : i == 7 ? UINT64_MAX : f[i],
                };

                struct ls_map_row map = { i == 5 ? UINT32_MAX : i == 8 ? m.a : f[i], i % 12 };

                ls_trace_row(m.w, LS_REC_JITTRACE, row);
                ls_buf_add(&m.w->map_rows, &map, sizeof(map));
                ls_buf_add(&m.w->maps, "no map at all", map.len);
                put_sample(&m, below, f[i], i);
                /* Something that stands on machine code. */
                put_sample(&m, ls_trace_stack(m.w, below, ls_trace_location(m.w, f[i], 1)),
                           f[(i + 7) % 64], 3);
        }
        p = finish(&m);
        assert_int_equal(p->recorded_samples, 128);
        assert_int_equal(p->jit_unknown_ticks, 128);
        ls_profile_close(p);
}

/* Every byte of the file is wrong once: it is read, or refused, within bounds. */
static void damaged(void **state)
{
        struct making m = begin();
        uint32_t below = ls_trace_stack(m.w, 0, ls_trace_location(m.w, m.a, 11));
        struct file f;

        (void)state;
        put_trace(&m, m.trace, 0, 5);
        for (uint32_t i = 0; i < 50; i++)
                put_sample(&m, below, m.trace, i);
        ls_profile_close(finish(&m));
        f = load_temp();
        for (size_t i = 0; i < f.len; i++) {
                struct ls_profile *p;
                const char *error;

                f.data[i] ^= 0x55;
                store_temp(f.data, f.len);
                f.data[i] ^= 0x55;
                if (ls_profile_open(temp_path(), &p, &error))
                        continue;
                *text = 0;
                ls_profile_samples(p, LS_COL_TRACE, put_rows, p);
                ls_profile_close(p);
        }
        free(f.data);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(frames_of_the_map_replace_the_one_below),
                cmocka_unit_test(without_a_record),
                cmocka_unit_test(c_function_of_the_ffi),
                cmocka_unit_test(builtin_that_is_inlined),
                cmocka_unit_test(many_places),
                cmocka_unit_test(hostile_rows),
                cmocka_unit_test(damaged),
        };

        return cmocka_run_group_tests_name("trace_jit", tests, NULL, remove_temp);
}
