/* What /proc says of a process, as the daemon needs it; record/process/proc.h opens the files.
 * Called by the scan. All of it may be chosen by the process: it is compared and shown with
 * escapes, never opened or run. */
#ifndef LS_DAEMON_HOST_PROGRAM_H
#define LS_DAEMON_HOST_PROGRAM_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#define LS_CMD_MOST 4096u               /* bytes of a command line that are looked at */
#define LS_COMM 64u

struct ls_proc_id {                     /* read at each look */
        uint64_t start_ticks;           /* since the boot: with pid it names a process */
        char comm[LS_COMM];             /* changes when it begins another program */
        char state;                     /* as ps has it */
        int kernel;                     /* a thread of the kernel */
};

struct ls_proc {                        /* read when it is new */
        pid_t pid;
        uid_t uid;
        char exe[PATH_MAX];             /* empty = not to be read */
        char cmd[LS_CMD_MOST];          /* the words, a space between */
        char cgroup[PATH_MAX];
        char unit[256], container[65];  /* empty = none */
};

/* Returns 0 or -errno: it has ended, or may not be read. */
int ls_proc_identify(pid_t pid, struct ls_proc_id *ret);
int ls_program_read(pid_t pid, struct ls_proc *ret);
/* CPU time so far, and resident memory in bytes. */
int ls_proc_usage(pid_t pid, uint64_t *ret_cpu_ns, uint64_t *ret_rss);
/* Whether its main thread runs, or waits in a system call that is no wait for events, and how often
 * it has slept so far. Returns 1, 0 or -errno. */
int ls_proc_stalls(pid_t pid, uint64_t *ret_switches);
/* The value of a variable of its first environment. Returns 1 and the value, cut to size; 0 = not
 * there; -errno. */
int ls_proc_env(pid_t pid, const char *name, char *ret, size_t size);
/* Age of a process that began at start_ticks. */
uint64_t ls_proc_age_ns(uint64_t start_ticks);

#endif
