/* The emitter of the stubs: a jump that does not reach its target is an error, never another
 * jump. */
#include "libsample/exact/stubs.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct ls_exact_facts ls_exact_facts;
struct ls_exact_head *ls_exact_head;
char *ls_exact_cells;
struct ls_vm_facts ls_vm_facts;
struct ls_jit_facts ls_jit_facts;

void *ls_pages_new(size_t n) { (void)n; return NULL; }
void ls_pages_free(void *p, size_t n) { (void)p, (void)n; }
struct ls_exact_cached *ls_exact_cache(struct ls_exact_callers *c) { (void)c; return NULL; }

void ls_exact_meet(struct ls_exact *x, const char *pc, const uint64_t *base, lua_State *L)
{
        (void)x, (void)pc, (void)base, (void)L;
}

void ls_exact_called(struct ls_exact *x, const char *pc, const uint64_t *base, lua_State *L)
{
        (void)x, (void)pc, (void)base, (void)L;
}

uint8_t ls_exact_switch_ops[3];

void ls_exact_enters(struct ls_exact *x, const char *pc, const uint64_t *base, lua_State *L)
{
        (void)x, (void)pc, (void)base, (void)L;
}

void ls_exact_returns(struct ls_exact *x, const char *pc, const uint64_t *base, lua_State *L)
{
        (void)x, (void)pc, (void)base, (void)L;
}

void ls_exact_switches(struct ls_exact *x, const char *pc, const uint64_t *base, lua_State *L)
{
        (void)x, (void)pc, (void)base, (void)L;
}

static void jump_over(size_t n, int want_too_far)
{
        uint8_t room[512] = { 0 };
        struct code c = { room, room + sizeof room, 0 };
        uint8_t *b = branch(&c, 0x75);

        c.at += n;
        here(&c, b);
        assert_int_equal(c.too_far, want_too_far);
        assert_int_equal(room[1], want_too_far ? 0 : n);
}

static void test_jumps(void **state)
{
        (void)state;
        jump_over(0, 0);
        jump_over(127, 0);
        jump_over(128, 1);
        jump_over(255, 1);
        jump_over(256, 1);
}

static void test_no_memory(void **state)
{
        struct ls_exact x = { 0 };

        (void)state;
        assert_string_equal(ls_exact_make_stubs(&x), "there is no memory for the stubs");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_jumps), cmocka_unit_test(test_no_memory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
