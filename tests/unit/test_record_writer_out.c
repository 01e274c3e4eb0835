/* The recorder and its writer: what is written, what a writer that a target has taken over can
 * still do and ask for, and what the recorder does of one that says nonsense or dies. This program
 * is both: the pattern of marks says which writer it is to be. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/worker/confine.h"
#include "record/worker/worker.h"
#include "record/writer/main.h"
#include "record/writer/out.h"

enum { SOCKET = 3, ASK, PAGE };

static struct ls_out_figures *figures;

/* Each as one who has taken the process over would try it: found works counts those that work. */
static void tries(void)
{
        char *const argv[] = { (char *)(uintptr_t)"true", NULL };
        pid_t other = (pid_t)figures->targets[1].samples;
        int root = figures->targets[1].sample_ticks == 1;
        uint64_t works = 0;

        works |= (uint64_t)(open("/etc/passwd", O_RDONLY) >= 0) << 0;
        works |= (uint64_t)(open("/proc/self/maps", O_RDONLY) >= 0) << 1;
        works |= (uint64_t)(open("/tmp/luasample-writer", O_WRONLY | O_CREAT, 0600) >= 0) << 2;
        works |= (uint64_t)(root && (geteuid() == 0 || setresuid(0, 0, 0) == 0)) << 3;
        works |= (uint64_t)(kill(other, SIGKILL) == 0) << 4;
        works |= (uint64_t)(ptrace(PTRACE_ATTACH, other, NULL, NULL) == 0) << 5;
        works |= (uint64_t)(socket(AF_UNIX, SOCK_STREAM, 0) >= 0) << 6;
        works |= (uint64_t)(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                 0) != MAP_FAILED)
                 << 7;
        works |= (uint64_t)(unlink("/tmp/luasample-writer") == 0 || errno == ENOENT) << 8;
        works |= (uint64_t)(chmod("/tmp", 0777) == 0) << 9;
        works |= (uint64_t)(isatty(0) || isatty(1) || isatty(2)) << 10;
        works |= (uint64_t)(unshare(CLONE_NEWUSER) == 0) << 11;
        works |= (uint64_t)(access("/", F_OK) == 0) << 12;
        works |= (uint64_t)(environ && *environ) << 13;
        figures->targets[0].samples = works;
        execv("/bin/true", argv);
        figures->targets[0].sample_ticks = 1;   /* we are still here */
}

static int asked(enum ls_ask_op op, int pid, uint32_t arg, const char *text)
{
        struct ls_ask ask = { .op = op, .pid = pid, .arg = arg };
        struct ls_answer a = { .error = 1 };
        int fds[LS_OUT_FDS];

        strcpy(ask.text, text);
        if (ls_wire_send(ASK, &ask, sizeof(ask), NULL, 0) < 0 ||
            ls_wire_receive(ASK, &a, sizeof(a), fds, 0) < 0)
                return 1;
        return a.error ? a.error : fds[0] >= 0 ? 2 : 0;
}

/* What is not a target's, or not what is needed of one. */
static void asks(void)
{
        static const struct {
                enum ls_ask_op op;
                int own;
                uint32_t arg;
                const char *text;
                int error;
        } cases[] = { { LS_ASK_FILE, 1, 0, "mem", -EPERM },
                      { LS_ASK_FILE, 1, 0, "../../etc/shadow", -EPERM },
                      { LS_ASK_FILE, 0, 0, "maps", -ESRCH },
                      { LS_ASK_LINK, 1, 0, "root", -EPERM },
                      { LS_ASK_LINK, 0, 0, "cwd", -ESRCH },
                      { LS_ASK_WORKER, 0, 7, "", -EPERM },
                      { LS_ASK_WORKER, 0, 4000000, "", -EPERM },
                      { LS_ASK_WORKER_END, 0, 4000000, "", 0 },
                      { LS_ASK_OUTER_ID, 0, 1, "", -ESRCH },
                      { (enum ls_ask_op)77, 1, 0, "", -ENOSYS },
                      { LS_ASK_FILE, 1, 0, "maps", 2 } };
        int pid = (int)figures->targets[1].samples;

        for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                if (asked(cases[i].op, cases[i].own ? pid : 1, cases[i].arg, cases[i].text) !=
                    cases[i].error)
                        figures->targets[0].samples |= (uint64_t)1 << i;
        figures->targets[0].sample_ticks = 1;
}

static void reply(int error)
{
        struct ls_out_reply r = { .error = error };

        ls_wire_send(SOCKET, &r, sizeof(r), NULL, 0);
}

/* The process in the writer's place. */
static int be_writer(int argc, const char **argv)
{
        static char first[LS_OUT_ROOM];
        const struct ls_out_setup *setup =
                (const struct ls_out_setup *)(const void *)(first + sizeof(struct ls_out_head));
        struct ls_rights rights;

        if (recv(SOCKET, first, sizeof(first), MSG_PEEK) <= 0 || !strcmp(setup->mark, "serves"))
                return ls_serve_main(argc, argv);
        figures = mmap(NULL, sizeof(*figures), PROT_READ | PROT_WRITE, MAP_SHARED, PAGE, 0);
        if (recv(SOCKET, first, sizeof(first), 0) <= 0)
                return 1;
        rights = (struct ls_rights){ .uid = (uid_t)atoi(argv[2]), .gid = (gid_t)atoi(argv[3]) };
        /* What is asked comes with that. */
        if (!strcmp(setup->mark, "tries") && ls_confine(&rights, -1, LS_CONFINE_WRITER, 1) == 0)
                tries();
        else if (!strcmp(setup->mark, "asks"))
                asks();
        while (!strcmp(setup->mark, "floods") && ls_wire_send(ASK, "nonsense", 8, NULL, 0) == 0)
                ;
        if (strcmp(setup->mark, "dies") != 0)
                reply(strcmp(setup->mark, "lies") ? 0 : 5);
        return strcmp(setup->mark, "dies") ? recv(SOCKET, first, sizeof(first), 0) > 0 : 3;
}

static char notices[1024];

static void notice(void *ctx, const char *text)
{
        (void)ctx;
        strncat(notices, text, sizeof(notices) - strlen(notices) - 1);
}

static void look(void *ctx)
{
        (void)ctx;
}

static struct ls_out *start(const char *how)
{
        struct ls_out_config cfg = {
                .setup = { .interval_ns = 1000000 }, .full_fd = -1, .notice = notice, .look = look
        };
        struct ls_out *o = NULL;

        strcpy(cfg.setup.mark, how);
        cfg.workers = ls_workers_new(NULL, NULL);
        assert_non_null(cfg.workers);
        assert_int_equal(ls_out_start(&cfg, &o), 0);
        return o;
}

static int tell(struct ls_out *o, enum ls_out_op op, const char *data, int fd)
{
        return ls_out_tell(o,
                           &(struct ls_out_message){ .op = op,
                                                     .data = data,
                                                     .len = data ? strlen(data) : 0,
                                                     .fds = { fd } },
                           NULL);
}

static size_t occurrences(int fd, const char *text, char *buf, size_t size)
{
        ssize_t n = pread(fd, buf, size, 0);

        return n > 0 && memmem(buf, (size_t)n, text, strlen(text)) ? (size_t)n : 0;
}

/* What is told is in the file, in one message, in several, and in one that is too large for any. */
static void what_it_is_for(void **state)
{
        static char large[300000], buf[1 << 20];
        int fd = memfd_create("trace", 0);
        struct ls_out *o = start("serves");
        struct ls_out_reply r;

        (void)state;
        assert_int_equal(tell(o, LS_OUT_OPEN, NULL, fd), 0);
        memcpy(large, "command", 8);
        for (size_t i = 8; i < sizeof(large) - 1; i++)
                large[i] = (char)('a' + random() % 26);
        assert_int_equal(ls_out_tell(o,
                                     &(struct ls_out_message){ .op = LS_OUT_INFO_STR,
                                                               .data = large,
                                                               .len = sizeof(large) - 1 },
                                     NULL),
                         0);
        assert_int_equal(tell(o, LS_OUT_NOTICE, "a sentence of ours", 0), 0);
        assert_int_equal(tell(o, LS_OUT_FLUSH, NULL, 0), 0);
        assert_true(ls_out_figures(o)->size > 100000);
        assert_int_equal(ls_out_tell(o, &(struct ls_out_message){ .op = LS_OUT_CLOSE }, &r), 0);
        assert_true(occurrences(fd, "LST", buf, sizeof(buf)) >= r.value);
        assert_false(ls_out_is_dead(o));
        /* What it is not to do makes an error, and no end. */
        assert_int_equal(tell(o, LS_OUT_SETTLE, NULL, 0), -EBADF);
        assert_false(ls_out_is_dead(o));
        ls_out_end(o);
        close(fd);
}

static void nothing_else(void **state)
{
        struct ls_out *o = start("tries");
        struct ls_out_figures *page = (struct ls_out_figures *)(uintptr_t)ls_out_figures(o);
        pid_t pid = fork();

        (void)state;
        if (pid == 0)
                for (;;)
                        pause();
        assert_true(pid > 0);
        page->targets[1].samples = (uint64_t)pid;
        page->targets[1].sample_ticks = geteuid() == 0;
        tell(o, LS_OUT_FLUSH, NULL, 0);
        assert_int_equal(page->targets[0].samples, 0);
        assert_int_equal(page->targets[0].sample_ticks, 1);
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        ls_out_end(o);
}

static void what_it_is_given(void **state)
{
        struct ls_out *o = start("asks");
        struct ls_out_figures *page = (struct ls_out_figures *)(uintptr_t)ls_out_figures(o);

        (void)state;
        assert_int_equal(ls_out_number(o, getpid()), 0);
        page->targets[1].samples = (uint64_t)getpid();
        assert_int_equal(tell(o, LS_OUT_FLUSH, NULL, 0), 0);
        assert_int_equal(page->targets[0].samples, 0);
        assert_int_equal(page->targets[0].sample_ticks, 1);
        ls_out_end(o);
}

/* One that lies, floods or dies is ended, and everything goes on without it. */
static void how_it_ends(void **state)
{
        static const char *const hows[] = { "lies", "floods", "dies" };

        (void)state;
        for (unsigned i = 0; i < sizeof(hows) / sizeof(*hows); i++) {
                struct ls_out *o = start(hows[i]);

                assert_int_equal(tell(o, LS_OUT_FLUSH, NULL, 0), -EOWNERDEAD);
                assert_true(ls_out_is_dead(o));
                assert_int_equal(tell(o, LS_OUT_NOTICE, "nobody hears it", 0), -EOWNERDEAD);
                assert_int_equal(ls_out_fd(o), -1);
                assert_null(ls_out_copy(o));
                ls_out_serve(o);
                ls_out_end(o);
        }
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_it_is_for),
                cmocka_unit_test(nothing_else),
                cmocka_unit_test(what_it_is_given),
                cmocka_unit_test(how_it_ends),
        };

        if (argc > 1 && !strcmp(argv[0], LS_WORKER_ARGV0))
                return be_writer(argc, (const char **)(uintptr_t)argv);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
