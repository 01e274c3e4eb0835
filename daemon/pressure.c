/* Memory pressure of the host: see daemon.h. */
#include "daemon/daemon.h"

#include <stdio.h>

static int stalls(const char *path)
{
        FILE *f = fopen(path, "re");
        double avg10 = 0;

        if (!f)
                return 0;
        if (fscanf(f, "some avg10=%lf", &avg10) != 1)
                avg10 = 0;
        fclose(f);
        return avg10 > LS_PRESSURE_PERCENT;
}

static int is_scarce(const char *path)
{
        FILE *f = fopen(path, "re");
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

const char *ls_pressure(const char *meminfo, const char *psi)
{
        if (is_scarce(meminfo))
                return "the host is short of memory";
        return stalls(psi) ? "programs of the host wait for memory" : NULL;
}
