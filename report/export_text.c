/* What zones, threads, VMs, coroutines, traces and VM states are called in exports: as --by shows them. Called by the
 * exporters, through report/export.c. */
#include "report/export_text.h"

#include "formats/export/export.h"
#include "report/export_job.h"

#include <errno.h>
#include <string.h>

static const struct { unsigned dim; const char *key; } dim_keys[] = {
        { LS_DIM_VMSTATE, "vmstate" },
        { LS_DIM_ZONE, "zone-path" },
        { LS_DIM_THREAD, "thread" },
        { LS_DIM_VM, "vm" },
        { LS_DIM_COROUTINE, "coroutine" },
        { LS_DIM_TRACE, "trace" },
};

static unsigned bit_of(unsigned dim)
{
        return (unsigned)__builtin_ctz(dim);
}

int ls_export_dims_new(struct ls_export_job *job)
{
        int error = 0;

        for (size_t i = 0; !error && i < sizeof(dim_keys) / sizeof(dim_keys[0]); i++) {
                const struct ls_key *key = ls_key_find(dim_keys[i].key, (uint32_t)strlen(dim_keys[i].key));

                if (job->r->o->exporter->dims & dim_keys[i].dim)
                        error = ls_grouping_new(key, job->r->profile, job->r->labels, &job->dims[bit_of(dim_keys[i].dim)]);
        }
        return error;
}

void ls_export_dims_free(struct ls_export_job *job)
{
        for (unsigned i = 0; i < LS_EXPORT_DIMS; i++)
                ls_grouping_free(job->dims[i]);
}

/* A cell of which only one dim is known. */
static struct ls_cell cell_of(unsigned dim, uint32_t id)
{
        switch (dim) {
        case LS_DIM_VMSTATE:    return (struct ls_cell){ .vmstate = (uint8_t)id };
        case LS_DIM_ZONE:       return (struct ls_cell){ .zone = id };
        case LS_DIM_THREAD:     return (struct ls_cell){ .thread = id };
        case LS_DIM_VM:         return (struct ls_cell){ .vm = id };
        case LS_DIM_COROUTINE:  return (struct ls_cell){ .coroutine = id };
        default:                return (struct ls_cell){ .trace = id };
        }
}

const char *ls_export_dim_text(const struct ls_export *in, unsigned dim, uint32_t id)
{
        const struct ls_export_job *job = in->caller_ctx;
        const struct ls_grouping *g = job->dims[bit_of(dim)];
        struct ls_cell cell = cell_of(dim, id);

        if (!g || (!id && dim != LS_DIM_VMSTATE && dim != LS_DIM_COROUTINE))
                return NULL;
        return ls_group_text(g, ls_group_of_cell(g, &cell));
}
