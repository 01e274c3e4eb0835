/* What the command that pushes may still do once it has given up its rights: look up names and
 * connect, or make files in a directory; and nothing that takes over more. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/worker/confine.h"

enum {
        CONNECTS, LOOKS_UP, HAS_THREADS, MAPS_LIBRARY, READS, MAKES, RENAMES, REMOVES,
        OVERWRITES, APPENDS, LINKS, FORKS, EXECS, KILLS, TRACES, NEW_CODE, CHANGES_CODE,
        RAW_SOCKET, LISTENS, BECOMES_ROOT, MOUNTS, NTRIES
};

static struct shared { int dir, port, listens; pid_t other; char done[NTRIES]; } *shared;

static int is_open(int fd)
{
        if (fd >= 0)
                close(fd);
        return fd >= 0;
}

static int connects(void)
{
        struct sockaddr_in to = { .sin_family = AF_INET };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

        to.sin_port = htons((uint16_t)shared->port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        r = connect(fd, (struct sockaddr *)&to, sizeof(to));
        r = r == 0 || errno == EINPROGRESS;
        close(fd);
        return r;
}

static int looks_up(void)
{
        struct addrinfo *found, hints = { .ai_socktype = SOCK_STREAM };

        if (getaddrinfo("localhost", "80", &hints, &found))
                return 0;
        freeaddrinfo(found);
        return 1;
}

static void *of_thread(void *done)
{
        *(char *)done = 1;
        return NULL;
}

static int has_threads(void)
{
        char done = 0;
        pthread_t t;

        return pthread_create(&t, NULL, of_thread, &done) == 0 && pthread_join(t, NULL) == 0 &&
               done;
}

static char is_code(int flags, int fd)
{
        return mmap(NULL, 4096, PROT_READ | PROT_EXEC, flags, fd, 0) != MAP_FAILED;
}

/* Each as one who has taken the process over would try it; noted when it works. */
static void try_all(void)
{
        const int makes = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
        char *done = shared->done;
        int own = open("/proc/self/exe", O_RDONLY);
        void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pid_t child;

        done[CONNECTS] = (char)connects();
        done[LOOKS_UP] = (char)looks_up();
        done[HAS_THREADS] = (char)has_threads();
        done[READS] = (char)is_open(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
        done[MAPS_LIBRARY] = is_code(MAP_PRIVATE, own);
        done[MAKES] = (char)is_open(openat(shared->dir, "a", makes, 0600));
        done[RENAMES] = renameat(shared->dir, "there", shared->dir, "b") == 0;
        done[REMOVES] = unlinkat(shared->dir, "b", 0) == 0;
        done[OVERWRITES] = (char)is_open(openat(shared->dir, "other", O_RDWR));
        done[APPENDS] = (char)is_open(openat(shared->dir, "other", O_WRONLY | O_APPEND));
        done[LINKS] = linkat(shared->dir, "other", shared->dir, "c", 0) == 0;
        child = fork();
        if (child == 0)
                _exit(0);
        done[FORKS] = child > 0;
        done[KILLS] = kill(shared->other, 0) == 0;
        done[TRACES] = ptrace(PTRACE_SEIZE, shared->other, NULL, NULL) == 0;
        done[NEW_CODE] = is_code(MAP_PRIVATE | MAP_ANONYMOUS, -1);
        done[CHANGES_CODE] = mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0;
        done[RAW_SOCKET] = (char)is_open(socket(AF_PACKET, SOCK_RAW, 0));
        done[LISTENS] = listen(shared->listens, 1) == 0;
        done[BECOMES_ROOT] = geteuid() != 0 && setresuid(0, 0, 0) == 0;
        done[MOUNTS] = unshare(CLONE_NEWUSER) == 0;
        done[EXECS] = 1;                /* until we are still here */
        execl("/bin/true", "true", (char *)NULL);
        done[EXECS] = 0;
}

/* What of it works in that room: a bit each. */
static unsigned in_room(enum ls_confine_room room)
{
        struct ls_rights rights;
        unsigned bits = 0;
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                ls_rights_nobody(&rights);
                if (ls_confine(&rights, -1, room, 1) < 0)
                        _exit(2);
                try_all();
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        for (unsigned i = 0; i < NTRIES; i++)
                bits |= shared->done[i] ? 1u << i : 0;
        memset(shared->done, 0, sizeof(shared->done));
        return bits;
}

static void make_file(const char *name)
{
        int fd = openat(shared->dir, name, O_WRONLY | O_CREAT, 0666);

        assert_true(fd >= 0 && fchmod(fd, 0666) == 0);
        close(fd);
}

static void rooms_of_push(void **state)
{
        const unsigned reads = 1u << READS;

        (void)state;
        make_file("there");
        make_file("other");
        assert_int_equal(in_room(LS_CONFINE_PUSH),
                         reads | 1u << CONNECTS | 1u << LOOKS_UP | 1u << HAS_THREADS |
                         1u << MAPS_LIBRARY);
        /* A name of /etc/hosts is looked up by reading a file. */
        assert_int_equal(in_room(LS_CONFINE_PUSH_FILES) & ~(1u << LOOKS_UP),
                         reads | 1u << MAKES | 1u << RENAMES | 1u << REMOVES);
}

/* What is tried does work where nothing is given up. */
static void room_of_views(void **state)
{
        (void)state;
        make_file("there");
        make_file("other");
        assert_int_equal(in_room(LS_CONFINE_VIEW) & ~(1u << LOOKS_UP), 1u << READS);
}

static void without_a_room(void **state)
{
        pid_t pid;

        (void)state;
        make_file("there");
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                try_all();
                _exit(0);
        }
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        for (unsigned i = 0; i < NTRIES; i++)
                if (!shared->done[i] && i != TRACES && i != RAW_SOCKET && i != BECOMES_ROOT &&
                    i != MOUNTS)
                        fail_msg("try %u never works", i);
        memset(shared->done, 0, sizeof(shared->done));
}

/* A directory for all, a port that listens, a process of the same user. */
static int set_up(void **state)
{
        static char dir[] = "/tmp/luasample-confine-XXXXXX";
        struct sockaddr_in at = { .sin_family = AF_INET };
        socklen_t n = sizeof(at);
        int server = socket(AF_INET, SOCK_STREAM, 0);
        pid_t pid;

        *state = dir;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                      -1, 0);
        if (shared == MAP_FAILED || !mkdtemp(dir) || chmod(dir, 0777) ||
            (shared->dir = open(dir, O_RDONLY | O_DIRECTORY)) < 0 ||
            bind(server, (struct sockaddr *)&at, sizeof(at)) ||
            listen(server, 8) || getsockname(server, (struct sockaddr *)&at, &n))
                return -1;
        shared->port = ntohs(at.sin_port);
        shared->listens = socket(AF_INET, SOCK_STREAM, 0);
        pid = fork();
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        pause();
        }
        shared->other = pid;
        return pid > 0 ? 0 : -1;
}

static int tear_down(void **state)
{
        static const char *const names[] = { "a", "b", "c", "there", "other" };

        kill(shared->other, SIGKILL);
        waitpid(shared->other, NULL, 0);
        for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
                unlinkat(shared->dir, names[i], 0);
        return rmdir(*state);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(rooms_of_push),
                cmocka_unit_test(room_of_views),
                cmocka_unit_test(without_a_room),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
