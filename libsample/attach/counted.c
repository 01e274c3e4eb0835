/* See counted.h. */
#include "libsample/attach/counted.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsample/inject/objects.h"

static atomic_uint *count;              /* NULL = this thread is counted */

static int find(const struct ls_object *object, void *data)
{
        size_t size = 0;
        void *at;

        if (!ls_object_symbol(object, "gnu_get_libc_version", NULL))
                return 0;
        at = ls_object_symbol(object, "__nptl_nthreads", &size);
        if (at && size == sizeof(*count))
                *(atomic_uint **)data = at;
        return 1;
}

void ls_attach_counted_leave(void)
{
        atomic_uint *found = NULL;
        unsigned n;

        ls_objects_each(find, &found);
        n = found ? atomic_load(found) : 0;
        while (n >= 2)                  /* this thread, and one more */
                if (atomic_compare_exchange_weak(found, &n, n - 1)) {
                        count = found;
                        return;
                }
}

void ls_attach_counted_return(void)
{
        if (count)
                atomic_fetch_add(count, 1);
        count = NULL;
}

/* 1 and its status, as wait has it: the last value of stat. */
static int has_ended(const char *tid, int *ret_status)
{
        char path[48], text[1024], *state, *last;
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "/proc/self/task/%.16s/stat", tid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (fd >= 0)
                close(fd);
        if (n <= 0)
                return 0;
        text[n] = '\0';
        state = strrchr(text, ')');
        last = state ? strrchr(state, ' ') : NULL;
        if (!state || (strncmp(state, ") Z", 3) && strncmp(state, ") X", 3)))
                return 0;
        *ret_status = last ? atoi(last) : 0;
        return 1;
}

/* The first thread stays in the list when it has ended, and is the only one that does. */
int ls_attach_counted_alone(int *ret_status)
{
        char pid[16], own[16];
        long n;
        char buf[256] __attribute__((aligned(8)));
        int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC), others = 0;

        if (fd < 0)
                return 0;
        snprintf(pid, sizeof(pid), "%d", (int)getpid());
        snprintf(own, sizeof(own), "%d", (int)syscall(SYS_gettid));
        n = syscall(SYS_getdents64, fd, buf, sizeof(buf));
        for (long at = 0; at < n; at += *(const unsigned short *)(const void *)(buf + at + 16)) {
                const char *name = buf + at + 19;

                others += name[0] != '.' && strcmp(name, pid) && strcmp(name, own);
        }
        close(fd);
        return n > 0 && !others && strcmp(pid, own) && has_ended(pid, ret_status);
}

/* The kernel takes the status of the thread that ends last. */
void ls_attach_counted_end(int status)
{
        int sig = status & 0x7f;
        sigset_t only;

        if (sig) {
                signal(sig, SIG_DFL);
                sigemptyset(&only);
                sigaddset(&only, sig);
                raise(sig);
                syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &only, NULL, 8);
        }
        syscall(SYS_exit, status >> 8 & 0xff);
}
