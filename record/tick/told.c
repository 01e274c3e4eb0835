/* Threads that would be told of ticks: see told.h. */
#include "record/tick/told.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/process/proc.h"

#define TICK_BIT (1ull << (LS_TICK_SIGNAL - 1))

static int is_blocked(const struct ls_ticker *t, const struct ls_tick_thread *h)
{
        char text[2048];
        const char *at;

        if (ls_proc_read(t->pid, h->tid, "status", text, sizeof(text)) <= 0)
                return 0;
        at = strstr(text, "\nSigBlk:");
        return at && strtoull(at + sizeof("\nSigBlk:") - 1, NULL, 16) & TICK_BIT;
}

/* 1 when it waits for the tick's signal now: the kernel has it unblocked meanwhile. */
static int is_waited_for(const struct ls_ticker *t, const struct ls_tick_thread *h)
{
        unsigned long long set = 0;
        unsigned long address;
        char text[256];
        int fd;

        if (ls_proc_read(t->pid, h->tid, "syscall", text, sizeof(text)) <= 0 ||
            strtol(text, NULL, 10) != SYS_rt_sigtimedwait ||
            sscanf(text, "%*d %lx", &address) != 1)
                return 0;
        fd = ls_proc_open(t->pid, 0, "mem", O_RDONLY);
        if (fd < 0)
                return 1;
        if (pread(fd, &set, sizeof(set), (off_t)address) != sizeof(set))
                set = TICK_BIT;
        close(fd);
        return (set & TICK_BIT) != 0;
}

int ls_tick_would_be_told(const struct ls_ticker *t, struct ls_tick_thread *h)
{
        if (!atomic_load(&t->shm->agent_tid))
                return 0;
        if (h->told_claim == h->claim + 1)
                return 1;
        for (int i = 0; i < 3; i++) {
                if (is_blocked(t, h))
                        return 1;
                if (is_waited_for(t, h)) {
                        h->told_claim = h->claim + 1;
                        return 1;
                }
        }
        return 0;
}
