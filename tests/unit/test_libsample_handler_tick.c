/* A tick that meets normal code of the agent at work on the thread's tables, as the stub of an
 * allocator is: what that code knows of the program's memory stays its own. Linked with libluajit,
 * for the facts that a tick reads VMs by. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include <lauxlib.h>
#include <lua.h>

#include "libsample/agent.h"
#include "libsample/handler/guard.h"
#include "libsample/handler/guard_page.h"
#include "libsample/handler/tick.h"
#include "tests/unit/vm_agent.h"

#define PAGE 4096u

static struct ls_thread *self;
static char *leaves;                    /* a page that goes once it was found to be there */

LS_HANDLER int __real_ls_page_readable(uintptr_t page);
LS_HANDLER int __wrap_ls_page_readable(uintptr_t page);

/* Another thread gives the page back, counted as munmap is, and a tick comes. */
LS_HANDLER int __wrap_ls_page_readable(uintptr_t page)
{
        int readable = __real_ls_page_readable(page);
        char *p = leaves;

        if (!p || page != (uintptr_t)p / PAGE)
                return readable;
        leaves = NULL;
        atomic_fetch_add(&ls_unmaps.begun, 1);
        munmap(p, PAGE);
        atomic_fetch_add(&ls_unmaps.ended, 1);
        raise(SIGPROF);
        return readable;
}

static char *new_page(void)
{
        char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        assert_ptr_not_equal(p, MAP_FAILED);
        return p;
}

static struct ls_guard *guard_of_code(void)
{
        return &self->sampler->walks[self->sampler->current].guard;
}

static int setup(void **state)
{
        struct sigaction act = { .sa_sigaction = ls_tick_handler, .sa_flags = SA_SIGINFO };

        (void)state;
        lua_close(luaL_newstate());     /* so that the library is there */
        vm_agent_probe();
        self = ls_thread_own;
        assert_true(ls_vm_facts.ok);
        ls_agent.shm->interval_ns = 1000;
        atomic_store(&ls_agent.shm->recording, 1);
        self->sampler->ready = 1;
        atomic_store(&ls_heap_is_watched, 1);
        return sigaction(SIGPROF, &act, NULL);
}

/* What was asked before the page went is not known any more afterwards. */
static void page_that_goes(void **state)
{
        struct ls_guard *g = guard_of_code();
        char *p = new_page();
        uint64_t ticks = atomic_load(&self->ring->ticks);

        (void)state;
        ls_thread_enter(self);
        ls_guard_begin(g);
        leaves = p;
        ls_guard_reads(g, p, 8);
        assert_null(leaves);
        assert_true(atomic_load(&self->ring->ticks) > ticks);
        ls_guard_begin(g);
        assert_false(ls_guard_reads(g, p, 8));
        ls_thread_leave(self);
}

/* The Lua stack that the code has found is sure until it ends. */
static void what_is_sure(void **state)
{
        struct ls_guard *g = guard_of_code();
        char *p = new_page(), *q = new_page();

        (void)state;
        ls_thread_enter(self);
        ls_guard_begin(g);
        g->sure[1].low = (uintptr_t)p;
        g->sure[1].high = (uintptr_t)p + PAGE;
        raise(SIGPROF);
        assert_true(g->sure[1].low == (uintptr_t)p && g->sure[1].high == (uintptr_t)p + PAGE);
        assert_true(ls_guard_reads(g, q, 8));
        ls_thread_leave(self);
        raise(SIGPROF);                 /* the code has ended: a tick has the guard again */
        assert_true(g->sure[1].low == 0);
        munmap(p, PAGE);
        munmap(q, PAGE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(page_that_goes),
                cmocka_unit_test(what_is_sure),
        };

        return cmocka_run_group_tests(tests, setup, NULL);
}
