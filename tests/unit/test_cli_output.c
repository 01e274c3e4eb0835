/* cli/output.c: -o writes a whole file or none; colours and width follow the environment. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/output.h"

static char dir[64];

static int make_dir(void **state)
{
        (void)state;
        strcpy(dir, "/tmp/luasample-output-XXXXXX");
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

static void assert_file(const char *path, const char *text)
{
        char got[256];
        FILE *f = fopen(path, "r");
        size_t n;

        assert_non_null(f);
        n = fread(got, 1, sizeof(got) - 1, f);
        got[n] = '\0';
        fclose(f);
        assert_string_equal(got, text);
}

/* Entries of the directory: nothing temporary may stay. */
static int count_files(void)
{
        FILE *f = popen("ls -A | wc -l", "r");
        int n = -1;

        assert_non_null(f);
        assert_int_equal(fscanf(f, "%d", &n), 1);
        pclose(f);
        return n;
}

static void new_file(void **state)
{
        struct ls_output o;
        struct stat st;

        (void)state;
        umask(022);
        assert_int_equal(ls_output_open(&o, "new", LS_COLOR_AUTO, 0), 0);
        fputs("text", o.file);
        assert_int_equal(access("new", F_OK), -1);      /* not before it is whole */
        assert_int_equal(ls_output_close(&o, 0), 0);
        assert_file("new", "text");
        assert_int_equal(stat("new", &st), 0);
        assert_int_equal(st.st_mode & 0777, 0644);
        assert_int_equal(o.color, 0);
        unlink("new");
}

static void replaced_file(void **state)
{
        struct ls_output o;

        (void)state;
        write_file("old", "before");
        assert_int_equal(ls_output_open(&o, "old", LS_COLOR_AUTO, 0), 0);
        fputs("after", o.file);
        assert_int_equal(ls_output_close(&o, 1), 0);    /* the command failed */
        assert_file("old", "before");
        assert_int_equal(ls_output_open(&o, "old", LS_COLOR_AUTO, 0), 0);
        fputs("after", o.file);
        assert_int_equal(ls_output_close(&o, 0), 0);
        assert_file("old", "after");
        assert_int_equal(count_files(), 1);
        unlink("old");
}

static void link_is_followed(void **state)
{
        struct ls_output o;
        struct stat st;

        (void)state;
        write_file("target", "before");
        assert_int_equal(symlink("target", "link"), 0);
        assert_int_equal(ls_output_open(&o, "link", LS_COLOR_AUTO, 0), 0);
        fputs("after", o.file);
        assert_int_equal(ls_output_close(&o, 0), 0);
        assert_file("target", "after");
        assert_int_equal(lstat("link", &st), 0);
        assert_true(S_ISLNK(st.st_mode));
        unlink("link");
        unlink("target");
}

static void bad_places(void **state)
{
        struct ls_output o;

        (void)state;
        assert_int_equal(ls_output_open(&o, "/", LS_COLOR_AUTO, 0), -EISDIR);
        assert_int_equal(ls_output_open(&o, "none/file", LS_COLOR_AUTO, 0), -ENOENT);
        assert_int_equal(ls_output_open(&o, "/dev/full", LS_COLOR_AUTO, 0), 0);
        fputs("text", o.file);
        assert_int_equal(ls_output_close(&o, 0), -ENOSPC);
}

static void colors(void **state)
{
        struct ls_output o;
        enum ls_color_when when;

        (void)state;
        assert_int_equal(ls_parse_color("always", &when), 0);
        assert_int_equal(when, LS_COLOR_ALWAYS);
        assert_int_equal(ls_parse_color("sometimes", &when), -EINVAL);
        setenv("COLUMNS", "123", 1);
        assert_int_equal(ls_output_open(&o, NULL, LS_COLOR_ALWAYS, 0), 0);
        assert_int_equal(o.color, 1);
        assert_int_equal(o.width, 123);
        assert_int_equal(ls_output_open(&o, "-", LS_COLOR_NEVER, 0), 0);
        assert_int_equal(o.color, 0);
        setenv("COLUMNS", "wide", 1);
        assert_int_equal(ls_output_open(&o, NULL, LS_COLOR_NEVER, 0), 0);
        assert_int_not_equal(o.width, 123);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(new_file),
                cmocka_unit_test(replaced_file),
                cmocka_unit_test(link_is_followed),
                cmocka_unit_test(bad_places),
                cmocka_unit_test(colors),
        };

        return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
