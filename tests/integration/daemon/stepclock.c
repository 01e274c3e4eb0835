/* Preloaded into the daemon and its recorders: a clock that somebody steps. The file that STEPCLOCK
 * names has a line for each step: from when on, in seconds since 1970, and by how many seconds.
 * What the kernel says of files made after that is stepped likewise. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

static long step_of(long seconds)
{
        const char *path = getenv("STEPCLOCK");
        FILE *f = path ? fopen(path, "re") : NULL;
        long from, by, step = 0;

        while (f && fscanf(f, "%ld %ld", &from, &by) == 2)
                if (seconds >= from)
                        step = by;
        if (f)
                fclose(f);
        return step;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
        static int (*real)(clockid_t, struct timespec *);
        int r;

        if (!real)
                *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
        r = real(id, t);
        if (!r && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
                t->tv_sec += step_of(t->tv_sec);
        return r;
}

int statx(int dir, const char *path, int flags, unsigned mask, struct statx *st)
{
        static int (*real)(int, const char *, int, unsigned, struct statx *);
        int r;

        if (!real)
                *(void **)&real = dlsym(RTLD_NEXT, "statx");
        r = real(dir, path, flags, mask, st);
        if (!r) {
                st->stx_btime.tv_sec += step_of(st->stx_btime.tv_sec);
                st->stx_mtime.tv_sec += step_of(st->stx_mtime.tv_sec);
        }
        return r;
}
