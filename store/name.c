/* Names of chunks, which are the index of the store: see store.h. */
#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DURATION_MOST (400 * 86400000ull)

void ls_chunk_name(struct ls_chunk *c)
{
        time_t seconds = (time_t)(c->begin_ms / 1000);
        struct tm tm;

        gmtime_r(&seconds, &tm);
        strftime(c->day, sizeof(c->day), "%Y-%m-%d", &tm);
        snprintf(c->name, sizeof(c->name),
                 "%02d%02d%02d.%03u-%" PRIu64 "-%" PRIu32 "-%" PRIu32 ".luasample", tm.tm_hour,
                 tm.tm_min, tm.tm_sec, (unsigned)(c->begin_ms % 1000), c->end_ms - c->begin_ms,
                 c->pid, c->level);
}

/* A name is ours only when it is written as we write it. */
int ls_chunk_parse(const char *day, const char *name, struct ls_chunk *ret)
{
        struct tm tm = { 0 };
        struct ls_chunk c = *ret;
        unsigned ms;
        uint64_t duration;
        time_t seconds;

        if (strlen(day) != LS_STORE_DAY - 1 || strlen(name) >= sizeof(c.name) ||
            sscanf(day, "%4d-%2d-%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday) != 3 ||
            sscanf(name, "%2d%2d%2d.%3u-%" SCNu64 "-%" SCNu32 "-%" SCNu32, &tm.tm_hour, &tm.tm_min,
                   &tm.tm_sec, &ms, &duration, &c.pid, &c.level) != 7 ||
            duration > DURATION_MOST)
                return -EINVAL;
        tm.tm_year -= 1900;
        tm.tm_mon--;
        seconds = timegm(&tm);
        if (seconds < 0)
                return -EINVAL;
        c.begin_ms = (uint64_t)seconds * 1000 + ms;
        c.end_ms = c.begin_ms + duration;
        ls_chunk_name(&c);
        if (strcmp(c.day, day) || strcmp(c.name, name))
                return -EINVAL;
        *ret = c;
        return 0;
}
