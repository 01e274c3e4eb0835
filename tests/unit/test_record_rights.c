/* record/rights.c: files are opened with the rights and in the root directory of a program that is another user's; and whose a
 * process may be that a program calls its child. What needs another user is skipped without root. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/attach_children.h"
#include "record/rights.h"

#define NOBODY 65534

static char dir[] = "/tmp/luasample-rights-XXXXXX";

static int make_dir(void **state)
{
        (void)state;
        return mkdtemp(dir) && chdir(dir) == 0 && chmod(dir, 0755) == 0 ? 0 : -1;
}

static int remove_dir(void **state)
{
        char command[128];

        (void)state;
        snprintf(command, sizeof(command), "rm -r '%s'", dir);
        return chdir("/") || system(command);
}

static void write_file(const char *name, const char *text, unsigned mode)
{
        FILE *f = fopen(name, "w");

        assert_non_null(f);
        fputs(text, f);
        fclose(f);
        assert_int_equal(chmod(name, mode), 0);
}

/* A process of nobody's, in another root directory when that is given. It has its rights when this returns. */
static pid_t another(const char *root)
{
        int ready[2];
        pid_t pid;
        char c;

        assert_int_equal(pipe(ready), 0);
        pid = fork();
        if (pid == 0) {
                if ((root && (chroot(root) || chdir("/"))) || setgid(NOBODY) || setuid(NOBODY) || write(ready[1], "x", 1) != 1)
                        _exit(1);
                for (;;)
                        pause();
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &c, 1), 1);
        close(ready[0]);
        return pid;
}

static void end(pid_t pid)
{
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
}

static int try(const struct ls_rights *r, const char *path)
{
        char name[PATH_MAX];
        struct stat st;
        int fd = ls_rights_open(r, path, &st, name);

        if (fd < 0)
                return fd;
        close(fd);
        return 0;
}

static void expect_text(const struct ls_rights *r, const char *path, const char *text)
{
        char buf[64] = "";
        struct stat st;
        int fd = ls_rights_open(r, path, &st, NULL);

        assert_true(fd > 2);
        assert_int_equal(read(fd, buf, sizeof(buf) - 1), (int)strlen(text));
        assert_string_equal(buf, text);
        close(fd);
}

static void only_regular_files_are_opened(void **state)
{
        struct ls_rights own = { 0 };

        (void)state;
        ls_rights_read(&own, 0);
        write_file("file", "text", 0600);
        expect_text(&own, "file", "text");
        assert_int_equal(mkfifo("fifo", 0600), 0);
        alarm(10);
        assert_int_equal(try(&own, "fifo"), -EINVAL);
        alarm(0);
        assert_int_equal(try(&own, "/dev/null"), -EINVAL);
        assert_int_equal(try(&own, "/dev/tty"), -EINVAL);
        assert_int_equal(try(&own, dir), -EISDIR);
        assert_int_equal(try(&own, "/proc/self/environ"), -EINVAL);
        assert_int_equal(try(&own, "nothing"), -ENOENT);
}

static void another_users_program_opens_nothing_of_ours(void **state)
{
        struct ls_rights its = { 0 }, unknown = { 0 };
        pid_t pid;

        (void)state;
        if (geteuid() != 0)
                skip();
        pid = another(NULL);
        ls_rights_read(&its, pid);
        write_file("secret", "root's", 0600);
        write_file("open", "all's", 0644);
        assert_int_equal(mkdir("closed", 0700), 0);
        write_file("closed/open", "all's", 0644);
        assert_int_equal(symlink("secret", "link"), 0);
        assert_int_equal(try(&its, "secret"), -EACCES);
        assert_int_equal(try(&its, "link"), -EACCES);
        assert_int_equal(try(&its, "closed/open"), -EACCES);
        expect_text(&its, "open", "all's");
        assert_int_equal(try(&unknown, "secret"), -EACCES);
        expect_text(&unknown, "open", "all's");
        end(pid);
        ls_rights_read(&its, pid);      /* it has ended: as it was */
        assert_int_equal(try(&its, "secret"), -EACCES);
        /* and ours are as before */
        assert_int_equal(access("secret", R_OK), 0);
        assert_int_equal(open("closed/open", O_RDONLY) >= 0, 1);
}

static void links_lead_where_the_program_sees_them_lead(void **state)
{
        struct ls_rights its = { 0 };
        char link[PATH_MAX];
        pid_t pid;

        (void)state;
        if (geteuid() != 0)
                skip();
        assert_int_equal(mkdir("root", 0755), 0);
        snprintf(link, sizeof(link), "root%s", dir);
        assert_int_equal(mkdir("root/tmp", 0755) || mkdir(link, 0755), 0);
        snprintf(link, sizeof(link), "%s/aim", dir);
        write_file(link, "outside", 0644);
        assert_int_equal(symlink(link, "root/link"), 0);
        pid = another("root");
        ls_rights_read(&its, pid);
        assert_int_equal(try(&its, "/link"), -ENOENT);
        snprintf(link, sizeof(link), "root%s/aim", dir);
        write_file(link, "inside", 0644);
        expect_text(&its, "/link", "inside");
        expect_text(&its, "/../../link", "inside");
        end(pid);
        assert_true(try(&its, "/link") < 0);
}

static pid_t taken(struct ls_target *t, pid_t claimed)
{
        static struct ls_attach_children children;
        pid_t pid;

        atomic_store(&t->memory.shm->forked[0], (uint32_t)claimed);
        ls_attach_children_take(&children, t, 1000);
        pid = ls_attach_children_next(&children, UINT64_MAX);
        assert_int_equal(children.n, 0);
        return pid;
}

/* All have the memory mapped, as those have it that a program has passed its memory to. */
static void a_claimed_child_is_no_other_users(void **state)
{
        struct ls_record_options o = { .ring_size = 65536 };
        static struct ls_target t;
        pid_t victim, child;

        (void)state;
        if (geteuid() != 0)
                skip();
        assert_int_equal(ls_memory_init(&t.memory, &o), 0);
        t.pid = another(NULL);
        child = another(NULL);
        victim = fork();
        if (victim == 0)
                for (;;)
                        pause();
        ls_rights_read(&t.translate.sources.rights, t.pid);
        assert_int_equal(taken(&t, victim), 0);
        assert_int_equal(taken(&t, child), child);
        end(victim);
        end(child);
        end(t.pid);
        ls_memory_done(&t.memory);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_regular_files_are_opened),
                cmocka_unit_test(another_users_program_opens_nothing_of_ours),
                cmocka_unit_test(links_lead_where_the_program_sees_them_lead),
                cmocka_unit_test(a_claimed_child_is_no_other_users),
        };

        return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
