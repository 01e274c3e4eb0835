/* Memory pressure of the host: see daemon.h. */
#include "daemon/daemon.h"

#include <stdio.h>

static int stalls(void)
{
        FILE *f = fopen("/proc/pressure/memory", "re");
        double avg10 = 0;

        if (!f)
                return 0;
        if (fscanf(f, "some avg10=%lf", &avg10) != 1)
                avg10 = 0;
        fclose(f);
        return avg10 > LS_PRESSURE_PERCENT;
}

static int is_scarce(void)
{
        FILE *f = fopen("/proc/meminfo", "re");
        unsigned long long total = 0, available = 0;
        char line[128];

        if (!f)
                return 0;
        while (fgets(line, sizeof(line), f)) {
                sscanf(line, "MemTotal: %llu", &total);
                if (sscanf(line, "MemAvailable: %llu", &available) == 1)
                        break;
        }
        fclose(f);
        return total && available < total / 100 * LS_AVAILABLE_PERCENT;
}

const char *ls_pressure(void)
{
        if (is_scarce())
                return "the host is short of memory";
        return stalls() ? "programs of the host wait for memory" : NULL;
}
