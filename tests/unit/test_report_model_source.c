/* report/model/source.c and report/model/aggregate.c's margins: texts from files and traces,
 * hostile paths. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "report/model/aggregate.h"
#include "report/model/source.h"
#include "tests/unit/profile_fixture.h"

static char dir[64];

static int make_dir(void **state)
{
        (void)state;
        strcpy(dir, "/tmp/luasample-source-XXXXXX");
        return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int remove_dir(void **state)
{
        char command[128];

        (void)state;
        snprintf(command, sizeof(command), "rm -rf '%s'", dir);
        return chdir("/") || system(command);
}

static void write_file(const char *path, const char *text)
{
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

/* Reads source 1 of a profile that has only that, and checks how it went. */
static void check(struct ls_source source, const char *source_dir, enum ls_source_problem problem,
                  const char *first_line, uint32_t n_lines)
{
        struct ls_source sources[2] = { { .name = { "", 0 } }, source };
        struct ls_profile p = { .sources = sources, .n_sources = 2 };
        struct ls_report_options o = { .source_dir = { source_dir },
                                       .n_source_dirs = source_dir != NULL };
        struct ls_source_text t;

        assert_int_equal(ls_source_read(&p, 1, &o, &t), 0);
        assert_int_equal(t.problem, problem);
        assert_int_equal(t.n_lines, n_lines);
        if (first_line) {
                assert_int_equal(t.lines[0].len, strlen(first_line));
                assert_memory_equal(t.lines[0].s, first_line, strlen(first_line));
        }
        ls_source_done(&t);
}

static struct ls_source named(const char *name)
{
        return (struct ls_source){ .name = fixture_str(name),
                                   .path = fixture_str(""),
                                   .text = fixture_str("") };
}

static void texts(void **state)
{
        struct ls_source s = named("@app.lua");

        (void)state;
        write_file("app.lua", "one\ntwo\r\nthree");
        check(s, NULL, LS_SOURCE_UNKNOWN, "one", 3);    /* no hash: any file may have this name */
        s.size = 14;
        s.text_hash = XXH64("one\ntwo\r\nthree", 14, 0);
        check(s, NULL, LS_SOURCE_OK, "one", 3);
        s.text_hash ^= 1;
        check(s, NULL, LS_SOURCE_CHANGED, "one", 3);
        s.text = fixture_str("as it was\n");    /* the trace knows better than the changed file */
        check(s, NULL, LS_SOURCE_OK, "as it was", 1);
        mkdir("moved", 0755);
        write_file("moved/other.lua", "moved\n");
        check(named("@deep/other.lua"), "moved", LS_SOURCE_UNKNOWN, "moved", 1);
        check(named("@deep/other.lua"), NULL, LS_SOURCE_UNREADABLE, NULL, 0);
        write_file("empty.lua", "");
        check(named("@empty.lua"), NULL, LS_SOURCE_UNKNOWN, NULL, 0);
        check(named("=stdin"), NULL, LS_SOURCE_NOT_A_FILE, NULL, 0);
        check(named("return 1"), NULL, LS_SOURCE_NOT_A_FILE, NULL, 0);
        write_file("code.luac", "\033LJ");
        check(named("@code.luac"), NULL, LS_SOURCE_BYTECODE, NULL, 0);
}

/* What a trace calls a source may be no file to read: it must neither hang nor read without end. */
static void hostile(void **state)
{
        char zero[] = "@app.lua\0x";
        struct ls_source s = named("@x");

        (void)state;
        assert_int_equal(mkfifo("fifo", 0600), 0);
        check(named("@fifo"), NULL, LS_SOURCE_UNREADABLE, NULL, 0);
        check(named("@/dev/zero"), NULL, LS_SOURCE_UNREADABLE, NULL, 0);
        check(named("@."), NULL, LS_SOURCE_UNREADABLE, NULL, 0);
        s.name = (struct ls_str){ zero, sizeof(zero) - 1 };
        check(s, NULL, LS_SOURCE_NOT_A_FILE, NULL, 0);
}

/* Wilson's interval, from the textbook: 15 of 100 has the 95 % interval 0.0931 .. 0.2328. */
static void margins(void **state)
{
        (void)state;
        assert_true(fabs(ls_margin(0.15, 100) - (0.2328 - 0.0931) / 2) < 0.0002);
        assert_true(fabs(ls_margin(0.5, 10000) - 0.0098) < 0.0001);
        assert_true(ls_margin(0, 100) > 0 && ls_margin(1, 100) > 0);
        assert_true(ls_margin(0.3, 0) == 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(texts),
                cmocka_unit_test(hostile),
                cmocka_unit_test(margins),
        };

        return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
