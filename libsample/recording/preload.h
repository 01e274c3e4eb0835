/* How the agent came into the process. */
#ifndef LS_LIBSAMPLE_RECORDING_PRELOAD_H
#define LS_LIBSAMPLE_RECORDING_PRELOAD_H

#include "libsample/inject/environment.h"

/* How the agent came in, kept by preload.c for the next image of the same process and for
 * children. */
struct ls_preload {
        char library[4096];             /* as it stood in LD_PRELOAD */
        struct ls_env_memory where;     /* the memory of this process; pid 0 = it has none */
        struct ls_env_memory registry;  /* where children find theirs; pid 0 = they are not
                                         * followed */
};
extern struct ls_preload ls_preload;

#endif
