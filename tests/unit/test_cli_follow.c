/* cli/follow.c: what a name of an output leads to, and whose links are followed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

#include "cli/follow.h"

#define OTHER 65534

static char dir[64], real[PATH_MAX];
static struct stat st;

static int make_dir(void **state)
{
        (void)state;
        strcpy(dir, "/tmp/luasample-follow-XXXXXX");
        return mkdtemp(dir) && chdir(dir) == 0 && mkdir("shared", 0777) == 0 &&
               chmod("shared", 01777) == 0 && close(creat("file", 0600)) == 0 ? 0 : -1;
}

static int remove_dir(void **state)
{
        char command[128];

        (void)state;
        snprintf(command, sizeof(command), "rm -rf '%s'", dir);
        return chdir("/") || system(command);
}

static void own_links(void **state)
{
        (void)state;
        assert_int_equal(ls_follow("file", real, &st), 0);
        assert_string_equal(real, "file");
        assert_int_equal(symlink("../file", "shared/one"), 0);
        assert_int_equal(symlink("shared/one", "two"), 0);
        assert_int_equal(ls_follow("two", real, &st), 0);
        assert_true(S_ISREG(st.st_mode));
        assert_string_equal(real, "shared/../file");
        assert_int_equal(symlink("nothing", "dangling"), 0);
        assert_int_equal(ls_follow("dangling", real, &st), -ENOENT);
        assert_int_equal(symlink("loop", "loop"), 0);
        assert_int_equal(ls_follow("loop", real, &st), -ELOOP);
}

/* Whatever fs.protected_symlinks says. */
static void links_of_others(void **state)
{
        (void)state;
        if (geteuid())
                skip();
        assert_int_equal(symlink("../file", "shared/planted"), 0);
        assert_int_equal(lchown("shared/planted", OTHER, OTHER), 0);
        assert_int_equal(ls_follow("shared/planted", real, &st), -EACCES);
        assert_int_equal(symlink("shared/planted", "behind"), 0);
        assert_int_equal(ls_follow("behind", real, &st), -EACCES);
        assert_int_equal(symlink("file", "here"), 0);
        assert_int_equal(lchown("here", OTHER, OTHER), 0);
        assert_int_equal(ls_follow("here", real, &st), 0);      /* nobody else can make one here */
        assert_int_equal(chown("shared", OTHER, OTHER), 0);
        assert_int_equal(ls_follow("shared/planted", real, &st), 0);
        assert_int_equal(chown("shared", 0, 0), 0);
}

static void open_files(void **state)
{
        int pipes[2], fd;
        char name[64], text[8] = "";

        (void)state;
        assert_int_equal(pipe(pipes), 0);
        snprintf(name, sizeof(name), "/proc/self/fd/%d", pipes[1]);
        assert_int_equal(ls_follow(name, real, &st), 0);
        assert_true(S_ISFIFO(st.st_mode));
        fd = ls_follow_open(real, &st);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, "word", 4), 4);
        assert_int_equal(read(pipes[0], text, sizeof(text)), 4);
        close(fd);
        fd = open("gone", O_WRONLY | O_CREAT, 0600);
        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        assert_int_equal(ls_follow(name, real, &st), 0);
        assert_true(S_ISREG(st.st_mode));
        assert_int_equal(unlink("gone"), 0);
        assert_int_equal(ls_follow(name, real, &st), -ESTALE);
        close(fd);
}

static void replaced(void **state)
{
        (void)state;
        assert_int_equal(mkfifo("fifo", 0600), 0);
        assert_int_equal(ls_follow("fifo", real, &st), 0);
        assert_int_equal(rename("file", "fifo"), 0);
        assert_int_equal(ls_follow_open(real, &st), -EEXIST);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(own_links),
                cmocka_unit_test(links_of_others),
                cmocka_unit_test(open_files),
                cmocka_unit_test(replaced),
        };

        return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
