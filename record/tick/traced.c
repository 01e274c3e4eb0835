/* A debugger that holds the program: see traced.h. */
#include "record/tick/traced.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/process/proc.h"

/* Tracers that a signal passes, and stay so. Any other may stop at each: gdb has no name for ours,
 * and cannot even go on then. */
static const char *const passes[] = { "strace", "ltrace", "perf" };

static int stops_at_ticks(pid_t tracer)
{
        char name[32];
        ssize_t n = ls_proc_read(tracer, 0, "comm", name, sizeof(name));

        if (n <= 0)
                return 0;
        name[strcspn(name, "\n")] = '\0';
        for (size_t i = 0; i < sizeof(passes) / sizeof(*passes); i++)
                if (!strcmp(name, passes[i]))
                        return 0;
        return strncmp(name, program_invocation_short_name, 15) != 0;   /* one that reads stacks */
}

static pid_t tracer_of(pid_t pid)
{
        char text[1024];
        const char *at;

        if (ls_proc_read(pid, 0, "status", text, sizeof(text)) <= 0)
                return 0;
        at = strstr(text, "\nTracerPid:");
        return at ? (pid_t)strtol(at + sizeof("\nTracerPid:") - 1, NULL, 10) : 0;
}

int ls_tick_is_traced(struct ls_ticker *t)
{
        uint64_t now = ls_clock_ns(CLOCK_MONOTONIC);
        pid_t tracer;

        if (t->traced_look_ns && now - t->traced_look_ns < LS_TICKER_IDLE_NS)
                return (int)(t->traced & 1);
        if (t->traced & 1)
                atomic_fetch_add(&t->totals.traced_ns, now - t->traced_look_ns);
        t->traced_look_ns = now;
        tracer = tracer_of(t->pid);
        if ((tracer && stops_at_ticks(tracer)) != (int)(t->traced & 1))
                atomic_store(&t->shm->traced, ++t->traced);
        return (int)(t->traced & 1);
}
