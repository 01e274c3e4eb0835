/* libsample/libc/real.c: the functions behind the interposed ones are those that dlsym finds, and
 * one that comes later is found when it is called. */
#include "libsample/libc/real.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "libsample/handler/functions.h"

struct ls_interposed ls_interposed[LS_INTERPOSED_MOST];
extern const char ls_libc_late[];

static const char *const names[] = {
#define LS_REAL(ret, name, params) #name,
#define LS_WAIT(ret, name, params, args, when) #name,
#include "libsample/libc/real.def"
#undef LS_REAL
#undef LS_WAIT
};
#define ENTRIES (sizeof names / sizeof *names)

/* The program's own is before the C library's, as the agent's are: it is interposed. */
LS_EXPORT int sigpending(sigset_t *set)
{
        (void)set;
        return 77;
}

static void test_as_dlsym(void **state)
{
        (void)state;
        ls_libc_resolve();
        for (size_t i = 0; i < ENTRIES; i++) {
                void *fn = ((void **)&ls_libc_table)[i];

                if (fn != ls_libc_late + 16 * i)
                        assert_ptr_equal(fn, dlsym(RTLD_NEXT, names[i]));
                else
                        assert_null(dlsym(RTLD_NEXT, names[i]));
        }
        assert_ptr_equal(ls_libc_table.posix_spawn,
                         dlsym(RTLD_NEXT, "posix_spawn")); /* it has two versions */
        assert_int_equal(sizeof ls_libc_table, sizeof(void *) * ENTRIES);
}

static void test_interposed(void **state)
{
        unsigned i = 0;

        (void)state;
        while (ls_interposed[i].ours && ls_interposed[i].ours != (uintptr_t)sigpending)
                i++;                    /* a sanitizer's */
        assert_int_equal(ls_interposed[i].ours, (uintptr_t)sigpending);
        assert_ptr_equal((void *)ls_interposed[i].real, dlsym(RTLD_NEXT, "sigpending"));
}

static size_t number_of(const char *name)
{
        size_t i = 0;

        while (strcmp(names[i], name))
                i++;
        return i;
}

/* As if no object had had it: six arguments arrive, and the next call goes there straight away. */
static void test_late(void **state)
{
        size_t i = number_of("recvfrom");
        struct sockaddr_storage from;
        socklen_t len = sizeof from;
        char buf[8] = "";
        int fds[2];

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), 0);
        assert_int_equal(write(fds[1], "abcdefg", 7), 7);
        ((const void **)&ls_libc_table)[i] = ls_libc_late + 16 * i;
        memset(&from, 0xff, sizeof from);
        assert_int_equal(ls_libc()->recvfrom(fds[0], buf, 5, MSG_TRUNC | MSG_DONTWAIT,
                                             (struct sockaddr *)&from, &len),
                         7);
        assert_string_equal(buf, "abcde");
        assert_true(len < sizeof from);
        assert_ptr_equal(ls_libc()->recvfrom, dlsym(RTLD_NEXT, "recvfrom"));
        close(fds[0]);
        close(fds[1]);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_as_dlsym),
                                            cmocka_unit_test(test_interposed),
                                            cmocka_unit_test(test_late) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
