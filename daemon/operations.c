/* What was begun and takes a while: close recording, and keeping what was recorded. Asked for by
 * ctl, over HTTP, and by rules: see daemon.h. */
#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct ls_operation *ls_operation_new(struct ls_daemon *d, const char *kind, const char *target)
{
        struct ls_operation *o = &d->operations[d->n_operations % LS_OPERATIONS_MOST];

        memset(o, 0, sizeof(*o));
        o->id = ++d->n_operations;
        o->kind = kind;
        snprintf(o->target, sizeof(o->target), "%s", target);
        return o;
}

struct ls_operation *ls_operation_find(struct ls_daemon *d, uint64_t id)
{
        struct ls_operation *o = id ? &d->operations[(id - 1) % LS_OPERATIONS_MOST] : NULL;

        return o && o->id == id ? o : NULL;
}

/* Whether it records one closely still, of those that it began with. */
static int is_burst(const struct ls_daemon *d, const struct ls_operation *o)
{
        for (unsigned i = 0; i < d->n_watched; i++)
                for (unsigned k = 0; k < o->n_pids; k++)
                        if (d->watched[i]->pid == o->pids[k] && d->watched[i]->burst_ns)
                                return 1;
        return 0;
}

const char *ls_operation_state(const struct ls_daemon *d, struct ls_operation *o)
{
        if (!o->ended && o->n_pids && !is_burst(d, o))
                o->ended = 1;
        return !o->ended ? "running" : o->failed ? "failed" : "done";
}
