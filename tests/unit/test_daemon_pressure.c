/* When memory is short, by what the kernel's files say. */
#include "daemon/daemon.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static char meminfo[] = "/tmp/luasample-meminfo-XXXXXX", psi[] = "/tmp/luasample-psi-XXXXXX";

static void put(const char *path, const char *text)
{
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

static const char *asked(const char *memory, const char *stalls)
{
        put(meminfo, memory);
        put(psi, stalls);
        return ls_pressure(meminfo, psi);
}

static void test_pressure(void **state)
{
        static const char much[] = "MemTotal: 1000000 kB\nMemFree: 10 kB\nMemAvailable: 60000 kB\n";
        static const char little[] =
                "MemTotal: 1000000 kB\nMemFree: 10 kB\nMemAvailable: 49000 kB\n";
        static const char calm[] =
                "some avg10=9.90 avg60=50.00 avg300=0.00 total=1\nfull avg10=9.00\n";
        static const char stalled[] =
                "some avg10=10.10 avg60=0.00 avg300=0.00 total=1\nfull avg10=9.00\n";

        (void)state;
        assert_null(asked(much, calm));
        assert_string_equal(asked(little, calm), "the host is short of memory");
        assert_string_equal(asked(much, stalled), "programs of the host wait for memory");
        assert_null(asked("", ""));
        assert_null(asked("MemTotal: x\n", "some avg10=\n"));
        assert_null(ls_pressure("/nonexistent/meminfo", "/nonexistent/psi"));
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_pressure) };
        int a = mkstemp(meminfo), b = mkstemp(psi), failed;

        if (a < 0 || b < 0)
                return 1;
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        close(a);
        close(b);
        unlink(meminfo);
        unlink(psi);
        return failed;
}
