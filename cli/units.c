/* Durations and sizes as people write them: "1ms", "1.5s", "64K"; counts as they read them. Used by
 * all commands. */
#include "cli/command.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct unit {
        const char *name;
        uint64_t factor;
};

static const struct unit times[] = {
        { "ns", 1 },
        { "us", 1000 },
        { "µs", 1000 },
        { "ms", 1000000 },
        { "s", 1000000000 },
        { "sec", 1000000000 },
        { "m", 60000000000u },
        { "min", 60000000000u },
        { "h", 3600000000000u },
        { "d", 86400000000000u },
        { NULL, 0 },
};

static const struct unit sizes[] = {
        { "", 1 },
        { "B", 1 },
        { "K", 1024 },
        { "KiB", 1024 },
        { "M", 1024 * 1024 },
        { "MiB", 1024 * 1024 },
        { "G", 1024 * 1024 * 1024 },
        { "GiB", 1024 * 1024 * 1024 },
        { NULL, 0 },
};

static const struct unit *find_unit(const struct unit *units, const char *name, int ignore_case)
{
        for (; units->name; units++)
                if (ignore_case ? !strcasecmp(units->name, name) : !strcmp(units->name, name))
                        return units;
        return NULL;
}

/* Decimal digits with an optional fraction, in integers: "0.1s" must be 100000000 ns exactly.
 * *ret_int and *ret_frac are the two parts, the fraction in 1/10^9. */
static int parse_decimal(const char **text, uint64_t *ret_int, uint64_t *ret_frac)
{
        const char *p = *text;
        uint64_t n = 0, frac = 0, scale = 100000000;
        int digits = 0;

        for (; isdigit((unsigned char)*p); p++, digits++) {
                if (n > (UINT64_MAX - 9) / 10)
                        return -ERANGE;
                n = n * 10 + (uint64_t)(*p - '0');
        }
        if (*p == '.') {
                for (p++; isdigit((unsigned char)*p); p++, digits++, scale /= 10)
                        frac += (uint64_t)(*p - '0') * scale;
        }
        if (!digits)
                return -EINVAL;
        *text = p;
        *ret_int = n;
        *ret_frac = frac;
        return 0;
}

static int scale_up(uint64_t whole, uint64_t frac, uint64_t factor, uint64_t *ret)
{
        unsigned __int128 v = (unsigned __int128)whole * factor +
                              (unsigned __int128)frac * factor / 1000000000u;

        if (v > UINT64_MAX)
                return -ERANGE;
        *ret = (uint64_t)v;
        return 0;
}

int ls_parse_duration(const char *text, const char *default_unit, uint64_t *ret_ns)
{
        const struct unit *unit;
        uint64_t whole, frac;
        int r = parse_decimal(&text, &whole, &frac);

        if (r < 0)
                return r;
        unit = find_unit(times, *text ? text : default_unit, 0);
        if (!unit)
                return -EINVAL;
        return scale_up(whole, frac, unit->factor, ret_ns);
}

int ls_parse_size(const char *text, uint64_t *ret_bytes)
{
        const struct unit *unit;
        uint64_t whole, frac;
        int r = parse_decimal(&text, &whole, &frac);

        if (r < 0)
                return r;
        unit = find_unit(sizes, text, 1);
        if (!unit)
                return -EINVAL;
        return scale_up(whole, frac, unit->factor, ret_bytes);
}

const char *ls_counted_text(uint64_t n, const char *what, char *buf, unsigned size)
{
        const char *s = strstr(what, "s ");

        if (n != 1 || !s)
                return what;
        snprintf(buf, size, "%.*s%s", (int)(s - what), what, s + 1);
        return buf;
}
