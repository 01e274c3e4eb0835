/* Tells signals to the group from signals to the recorder: see sentinel.h. */
#include "record/process/sentinel.h"
#include "record/process/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOKS 3 /* a ms apart: the sender may not be through with the group yet */

pid_t ls_sentinel_start(void)
{
        pid_t parent = getpid(), pid = fork();

        if (pid != 0)
                return pid < 0 ? -errno : pid;
        /* Async-signal-safe calls only: the recorder may have threads. Its signals are all blocked
         * already. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close_range(0, ~0u, 0);
        while (getppid() == parent)
                pause();
        _exit(0);
}

void ls_sentinel_stop(pid_t pid)
{
        if (pid <= 0)
                return;
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}

static uint64_t pending(pid_t pid)
{
        FILE *f = ls_proc_file(pid, 0, "status");
        uint64_t set = 0;
        char line[256];

        while (f && fgets(line, sizeof(line), f))
                if (sscanf(line, "ShdPnd: %" SCNx64, &set) == 1)
                        break;
        if (f)
                fclose(f);
        return set;
}

int ls_sentinel_has(pid_t pid, int sig)
{
        const struct timespec ms = { 0, 1000000 };

        for (int i = 0; pid > 0 && i < LOOKS; i++) {
                if (pending(pid) & (uint64_t)1 << (sig - 1))
                        return 1;
                nanosleep(&ms, NULL);
        }
        return 0;
}
