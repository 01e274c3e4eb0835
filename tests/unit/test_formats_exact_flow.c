/* The arithmetic of exact counts (formats/exact/flow.c): a loop whose counts are known, and memory
 * that says what cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/exact/flow.h"

#define LOW   UINT64_C(0x7f0000000000)
#define CODE  (LOW + 4096)
#define N     6u                        /* instructions of the one prototype */

static char *memory;
static int fd;
static struct ls_exact_head *head;

/* A record at the log's end, of size bytes; rounded up. */
static void *append(uint32_t kind, size_t size)
{
        struct ls_exact_rec *rec = (void *)(memory + LS_EXACT_LOG + atomic_load(&head->log_used));

        size = (size + 7) & ~(size_t)7;
        memset(rec, 0, size);
        rec->size = (uint32_t)size;
        rec->kind = kind;
        atomic_fetch_add(&head->log_used, size);
        return rec;
}

static struct ls_exact_proto *append_proto(uint32_t id)
{
        struct ls_exact_proto *proto = append(LS_EXACT_PROTO, sizeof *proto + 4 + 8 * N);

        proto->id = id;
        proto->code = CODE;
        proto->n = N;
        proto->name_len = 2;
        proto->has_lines = 1;
        memcpy(proto + 1, "=x", 2);
        return proto;
}

/* A loop of the instructions 2 to 4 with two exits in each half: before 3, and before 4. */
static struct ls_exact_trace *append_trace(uint32_t id)
{
        enum { EVENTS = 3, SNAPS = 6 };
        static const uint32_t before[SNAPS] = { 0, 1, 2, 0, 1, 2 };
        struct ls_exact_trace *trace =
                append(LS_EXACT_TRACE, sizeof *trace + 8 * EVENTS + 4 * SNAPS);
        struct ls_exact_event *events = (void *)(trace + 1);

        trace->id = id;
        trace->flags = LS_EXACT_LOOP;
        trace->link_kind = 2;
        trace->nevents = EVENTS;
        trace->nsnapshots = SNAPS;
        trace->nfirst = 3;
        trace->entries = 1;
        trace->iterations = 2;
        trace->exits = 3;
        for (uint32_t i = 0; i < EVENTS; i++)
                events[i] = (struct ls_exact_event){ 1, i + 2 };
        memcpy(events + EVENTS, before, sizeof before);
        return trace;
}

static void set_counters(void)
{
        uint64_t *counters = (uint64_t *)(memory + LS_EXACT_COUNTERS);
        const uint64_t exits[7] = { 0, 1, 2, 0, 3, 4, 0 };

        counters[1] = 10;               /* entered: 1 and 2 leave in the first half, 7 arrive in the
                                         * loop */
        counters[2] = 100;              /* which 3 and 4 leave, of 100 times that it ran */
        memcpy(counters + 3, exits, sizeof exits);
        atomic_store(&head->counters_used, 11);
}

static int setup(void **state)
{
        (void)state;
        fd = memfd_create("counts", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, (off_t)LS_EXACT_SIZE))
                return -1;
        memory = mmap(NULL, LS_EXACT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
                      0);
        if (memory == MAP_FAILED)
                return -1;
        head = (struct ls_exact_head *)memory;
        head->low = LOW;
        set_counters();
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        close(fd);
        return munmap(memory, LS_EXACT_SIZE);
}

static uint64_t *cells(void)
{
        return (uint64_t *)(memory + LS_EXACT_CELLS + 2 * (CODE + 4 - LOW));
}

static void a_loop_is_added(void **state)
{
        static const uint64_t want[N] = { 1, 1, 10 + 100, 9 + 97, 7 + 93, 5 };
        struct ls_flow flow;

        (void)state;
        append_proto(1);
        append_trace(1);
        cells()[0] = cells()[1] = 1;
        cells()[5] = 5;
        assert_int_equal(ls_flow_read(fd, &flow), 0);
        assert_int_equal(flow.nprotos, 2);
        for (unsigned i = 0; i < N; i++)
                assert_int_equal(flow.protos[1].counts[i], want[i]);
        assert_int_equal(flow.compiled, 110 + 106 + 100);
        assert_int_equal(flow.unbalanced, 0);
        assert_int_equal(flow.damaged, 0);
        ls_flow_free(&flow);
}

/* The name that its definition gives a function is behind that of its chunk. */
static void a_definitions_name_is_read(void **state)
{
        struct ls_exact_proto *proto = append(LS_EXACT_PROTO, sizeof *proto + 4 + 8 + 8 * N);
        uint32_t *lines = (uint32_t *)((char *)(proto + 1) + 12);
        struct ls_flow flow;

        (void)state;
        proto->id = 1;
        proto->code = CODE;
        proto->n = N;
        proto->name_len = 2;
        proto->function_len = 5;
        proto->has_lines = 1;
        memcpy(proto + 1, "=x\0\0fails", 9);
        lines[0] = 7;
        lines[N] = 8;
        assert_int_equal(ls_flow_read(fd, &flow), 0);
        assert_memory_equal(flow.protos[1].function, "fails", 5);
        assert_int_equal(flow.protos[1].lines[0], 7);
        assert_int_equal(flow.protos[1].code[0], 8);
        ls_flow_free(&flow);
}

static void a_name_too_long_is_damage(void **state)
{
        struct ls_flow flow;

        (void)state;
        append_proto(1)->function_len = UINT16_MAX;
        append_proto(2);
        assert_int_equal(ls_flow_read(fd, &flow), 0);
        assert_int_equal(flow.damaged, 1);
        assert_null(flow.protos[1].rec);
        ls_flow_free(&flow);
}

static void an_exit_goes_on_in_a_side_trace(void **state)
{
        struct ls_exact_trace *side;
        struct ls_flow flow;

        (void)state;
        append_proto(1);
        append_trace(1);
        side = append(LS_EXACT_TRACE, sizeof *side);
        side->id = 2;
        side->parent = 1;
        side->exit = 4;                 /* in the loop part, before the second: 20 times more than
                                         * were counted there */
        side->entries = 10;
        side->link_kind = 6;
        ((uint64_t *)(memory + LS_EXACT_COUNTERS))[10] = 20;
        ((uint64_t *)(memory + LS_EXACT_COUNTERS))[1] = 30;
        assert_int_equal(ls_flow_read(fd, &flow), 0);
        assert_int_equal(flow.protos[1].counts[2], 30 + 100);
        assert_int_equal(flow.protos[1].counts[3], 29 + 100 - 23);
        assert_int_equal(flow.unbalanced, 0);
        assert_int_equal(flow.damaged, 0);
        ls_flow_free(&flow);
}

static void what_was_gone_is_kept(void **state)
{
        struct ls_exact_gone *gone;
        struct ls_flow flow;

        (void)state;
        append_proto(1);
        gone = append(LS_EXACT_GONE, sizeof *gone + 8 * N);
        gone->id = 1;
        gone->n = N;
        ((uint64_t *)(gone + 1))[3] = 7;
        append_proto(2);                /* another one at its place */
        cells()[3] = 1000;
        assert_int_equal(ls_flow_read(fd, &flow), 0);
        assert_int_equal(flow.protos[1].counts[3], 7);
        assert_int_equal(flow.protos[2].counts[3], 1000);
        assert_int_equal(flow.damaged, 0);
        ls_flow_free(&flow);
}

static void append_calls(uint32_t caller, uint32_t pos, uint32_t callee, uint64_t times)
{
        struct ls_exact_calls *calls = append(LS_EXACT_CALLS, sizeof *calls);

        calls->caller = caller;
        calls->pos = pos;
        calls->callee = callee;
        calls->times = times;
}

/* By the interpreter, and by a trace: where its own bytecodes have the call, and where its
 * parent's do. */
static void calls_have_callers(void **state)
{
        struct ls_exact_trace *trace;
        struct ls_exact_event *events;
        struct ls_flow flow;

        (void)state;
        append_proto(1);
        append_calls(1, 3, 1, 7);
        append_calls(1, 5, 1, 3);
        trace = append_trace(1);
        events = (void *)(trace + 1);
        events[0].pos = 3;
        events[1] = (struct ls_exact_event){ LS_EXACT_UNKNOWN, 0 };     /* as pcall is */
        events[2] = (struct ls_exact_event){ 1, 0 };
        trace = append(LS_EXACT_TRACE, sizeof *trace + 8);
        trace->id = 2;
        trace->parent = 1;
        trace->exit = 4;
        trace->entries = 10;
        trace->link_kind = 1;
        trace->nevents = 1;
        *(struct ls_exact_event *)(trace + 1) = (struct ls_exact_event){ 1, 0 };
        ((uint64_t *)(memory + LS_EXACT_COUNTERS))[10] = 20;
        append_calls(1, 3, 2, 1);       /* there is no such function, */
        append_calls(2, 3, 1, 1);
        append_calls(1, N, 1, 1);       /* and no such instruction */
        assert_int_equal(ls_flow_read(fd, &flow), 0);
        assert_int_equal(flow.damaged, 3);
        assert_int_equal(flow.ncalls, 2);
        assert_int_equal(flow.calls[0].pos, 3);
        assert_int_equal(flow.calls[0].times, 7 + 7 + 73 + 20);
        assert_int_equal(flow.calls[1].pos, 5);
        assert_int_equal(flow.calls[1].times, 3);
        ls_flow_free(&flow);
}

static void append_node(uint32_t id, uint32_t parent, uint32_t proto)
{
        struct ls_exact_node *node = append(LS_EXACT_NODE, sizeof *node);

        node->id = id;
        node->parent = parent;
        node->proto = proto;
}

static void timed_calls_have_a_path(void **state)
{
        struct ls_flow flow;

        (void)state;
        append_proto(1);
        append_node(1, 0, 1);
        append_node(2, 1, 1);
        append_node(2, 1, 1);           /* it is there, */
        append_node(3, 3, 1);           /* its own parent, */
        append_node(5, 4, 1);           /* a parent that is not there, */
        append_node(6, 1, 7);           /* no such function, */
        append_node(UINT32_MAX, 1, 1);  /* more than there can be */
        assert_int_equal(ls_flow_read(fd, &flow), 0);
        assert_int_equal(flow.nnodes, 3);
        assert_int_equal(flow.nodes[2]->parent, 1);
        assert_int_equal(flow.damaged, 5);
        ls_flow_free(&flow);
}

static void what_cannot_be_is_left_out(void **state)
{
        struct ls_exact_trace *trace;
        struct ls_flow flow;

        (void)state;
        append_proto(0);
        append_proto(UINT32_MAX);
        append_proto(1)->n = UINT32_MAX;
        append_proto(1)->name_len = UINT32_MAX;
        append_proto(1)->code = 0;
        append_proto(1);
        append_proto(1);                /* a second time */
        append_trace(UINT32_MAX);
        append_trace(1)->nevents = UINT32_MAX;
        append_trace(1)->nsnapshots = UINT32_MAX;
        append_trace(1)->exits = UINT32_MAX;
        append_trace(1)->nfirst = 7;
        append_trace(1)->nbefore_head = UINT16_MAX;
        append(99, 64);
        trace = append_trace(1);
        ((struct ls_exact_event *)(trace + 1))[0] = (struct ls_exact_event){ 77, 0 };
        ((struct ls_exact_event *)(trace + 1))[1].pos = UINT32_MAX;
        assert_int_equal(ls_flow_read(fd, &flow), 0);
        assert_int_equal(flow.damaged, 13);
        assert_int_equal(flow.protos[1].counts[4], 100);
        ls_flow_free(&flow);
}

static void no_log_is_refused(void **state)
{
        struct ls_flow flow;

        (void)state;
        append_proto(1)->rec.size = 0;
        assert_int_equal(ls_flow_read(fd, &flow), -EBADMSG);
        atomic_store(&head->log_used, UINT64_MAX);
        assert_int_equal(ls_flow_read(fd, &flow), -EBADMSG);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_loop_is_added, setup, teardown),
                cmocka_unit_test_setup_teardown(a_definitions_name_is_read, setup, teardown),
                cmocka_unit_test_setup_teardown(a_name_too_long_is_damage, setup, teardown),
                cmocka_unit_test_setup_teardown(an_exit_goes_on_in_a_side_trace, setup, teardown),
                cmocka_unit_test_setup_teardown(what_was_gone_is_kept, setup, teardown),
                cmocka_unit_test_setup_teardown(calls_have_callers, setup, teardown),
                cmocka_unit_test_setup_teardown(timed_calls_have_a_path, setup, teardown),
                cmocka_unit_test_setup_teardown(what_cannot_be_is_left_out, setup, teardown),
                cmocka_unit_test_setup_teardown(no_log_is_refused, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
