/* What this machine permits, asked one question at a time. Called by doctor.c. */
#ifndef LS_RECORD_TICK_PROBES_H
#define LS_RECORD_TICK_PROBES_H

#include <sys/types.h>

enum ls_probe_status { LS_PROBE_OK, LS_PROBE_NOTE, LS_PROBE_FAIL };

struct ls_probe_result {
        enum ls_probe_status status;    /* NOTE: works, but something could be better */
        char text[512];                 /* what was found */
        char hint[256];                 /* how to gain more; empty = nothing to gain */
};

struct ls_probe {
        const char *name;               /* stable, for --json */
        const char *title;
        int needed;                     /* no recording without it */
        /* child: a process of ours that does nothing. */
        void (*run)(pid_t child, struct ls_probe_result *ret);
};

extern const struct ls_probe ls_probes[];
extern const unsigned ls_n_probes;

/* Can this program be recorded? Its own row of the table. */
void ls_probe_program(const char *name, struct ls_probe_result *ret);

#endif
