/* A core file: the memory of a process that has ended, and the registers of its threads. The file
 * is hostile. Called by remote.c and record/stack.c. */
#ifndef LS_RECORD_WATCH_CORE_H
#define LS_RECORD_WATCH_CORE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#define LS_CORE_THREADS 64u

struct ls_core_segment {
        uint64_t start, end, offset, held;
        uint32_t rights;
}; /* held: bytes that are in the file */

struct ls_core {
        int fd;
        struct ls_core_segment *segments;       /* by address */
        unsigned n_segments;
        unsigned n_threads, more_threads;
        struct { pid_t tid; struct user_regs_struct regs; } threads[LS_CORE_THREADS];
        pid_t pid;
        char name[17];
        int maps_fd;                    /* its mappings, in the form of /proc/PID/maps */
};

/* Returns 0; -ENOEXEC: it is no core file of an x86-64 process; or -errno. */
int ls_core_open(const char *path, struct ls_core *ret);
/* The same of a file that is open: takes fd. */
int ls_core_open_fd(int fd, struct ls_core *ret);
void ls_core_close(struct ls_core *core);

/* All n bytes at this address. Returns 0, or -1: they are not in the file. */
int ls_core_read(const struct ls_core *core, uint64_t at, void *to, size_t n);

#endif
