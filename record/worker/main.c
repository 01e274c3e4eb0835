/* The processes that main() becomes under the worker's name, each a role: what it gives up, and
 * what it does then. Started by ls_worker_spawn alone: argv and descriptors are the recorder's, and
 * trusted. */
#include "record/worker/worker.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "record/worker/confine.h"
#include "record/worker/outside.h"
#include "record/worker/serve.h"

enum { SOCKET = 3, ROOT = 4 };

static unsigned number(const char *text)
{
        return (unsigned)strtoul(text, NULL, 10);
}

/* The next request, and the descriptors that come with it: -1 = none. Returns its bytes. */
static ssize_t receive(struct ls_worker_request *to, int ret_fds[LS_WORKER_FDS])
{
        union { struct cmsghdr head; char bytes[CMSG_SPACE(LS_WORKER_FDS * sizeof(int))]; } control;
        struct iovec v = { to, sizeof(*to) };
        struct msghdr m = { .msg_iov = &v,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control) };
        ssize_t n = recvmsg(SOCKET, &m, MSG_CMSG_CLOEXEC);
        const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;

        memset(ret_fds, -1, LS_WORKER_FDS * sizeof(*ret_fds));
        if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len <= CMSG_LEN(LS_WORKER_FDS * sizeof(int)))
                memcpy(ret_fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
        return n;
}

/* files UID GID root|-: answers questions about files until the socket is closed. */
static int serve_files(int argc, const char **argv)
{
        static struct ls_worker_request request;
        static struct ls_worker_reply reply;
        struct ls_rights rights;
        int has_root, fds[LS_WORKER_FDS];
        ssize_t n;

        if (argc != 5)
                return 1;
        rights = (struct ls_rights){ .uid = number(argv[2]), .gid = number(argv[3]) };
        has_root = !strcmp(argv[4], "root");
        if (ls_confine(&rights, has_root ? ROOT : -1, LS_CONFINE_FILES,
                       !getenv("DEBUGINFOD_URLS")) < 0)
                return 1;
        if (has_root) {
                close(ROOT);
                ls_worker_has_root();
        }
        while ((n = receive(&request, fds)) > 0) {
                size_t size = ls_worker_answer(&request, (size_t)n, fds, &reply);

                for (unsigned i = 0; i < LS_WORKER_FDS; i++)
                        if (fds[i] >= 0)
                                close(fds[i]);
                if (send(SOCKET, &reply, size, MSG_NOSIGNAL) != (ssize_t)size)
                        return 1;
        }
        return 0;
}

enum { IMAGE = 3, AGENT = 4, ANSWER = 5, PROBE_ROOT = 6 };

/* Becomes the program, which the preloaded agent ends before its own code runs. By this path the
 * agent knows that it was not loaded by attach. */
static int probe_program(void)
{
        char *argv[] = { "/proc/self/fd/3", NULL };
        char *env[] = { "LD_PRELOAD=/proc/self/fd/4", "LUASAMPLE_PROBE=5", NULL };

        return execve(argv[0], argv, env);
}

static int probe_library(void)
{
        int (*probe)(int fd);
        void *lib;

        if (!dlopen("/proc/self/fd/3", RTLD_NOW | RTLD_GLOBAL))
                return 1;
        lib = dlopen("/proc/self/fd/4", RTLD_NOW);
        probe = lib ? (int (*)(int))dlsym(lib, "luasample_probe") : NULL;
        return probe && probe(ANSWER) == 0 ? 0 : 1;
}

/* probe UID GID program|library root|-: loads a LuaJIT and the agent, which tells how that LuaJIT
 * lays out its VMs. */
static int probe(int argc, const char **argv)
{
        struct ls_rights rights;

        if (argc != 6)
                return 1;
        rights = (struct ls_rights){ .uid = number(argv[2]), .gid = number(argv[3]) };
        if (ls_confine(&rights, strcmp(argv[5], "root") ? -1 : PROBE_ROOT, LS_CONFINE_PROBE, 1) < 0)
                return 1;
        fcntl(PROBE_ROOT, F_SETFD, FD_CLOEXEC);
        _exit(strcmp(argv[4], "program") ? probe_library() : probe_program());
}

static const struct { const char *name; int (*run)(int argc, const char **argv); } roles[] = {
        { "files", serve_files },
        { "probe", probe },
        { "watch", ls_worker_watch },
        { "look", ls_worker_look },
};

int ls_worker_main(int argc, const char **argv)
{
        for (size_t i = 0; argc > 1 && i < sizeof(roles) / sizeof(*roles); i++)
                if (!strcmp(argv[1], roles[i].name))
                        return roles[i].run(argc, argv);
        return 129;
}
