/* What zones, threads, VMs, coroutines, traces and VM states are called in exports: as --by shows
 * them. Called by the exporters, through report/export.c. */
#include "report/export_text.h"

#include "formats/export/export.h"
#include "report/export_job.h"

#include <errno.h>
#include <string.h>

static const struct { unsigned dim; const char *key; } dim_keys[] = {
#define LS_DIM(NAME, name, bits, KIND, key) { LS_DIM_##NAME, key },
#include "formats/dims.def"
#undef LS_DIM
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
                const char *name = dim_keys[i].key;
                const struct ls_key *key = name ? ls_key_find(name, (uint32_t)strlen(name)) : NULL;

                if (key && (job->r->o->exporter->dims & dim_keys[i].dim))
                        error = ls_grouping_new(key, job->r->profile, job->r->labels,
                                                &job->dims[bit_of(dim_keys[i].dim)]);
        }
        return error;
}

void ls_export_dims_free(struct ls_export_job *job)
{
        for (unsigned i = 0; i < LS_DIMS; i++)
                ls_grouping_free(job->dims[i]);
}

/* A cell of which only one dim is known. */
static struct ls_cell cell_of(unsigned dim, uint32_t id)
{
        struct ls_cell cell = { .trace = dim == LS_DIM_TRACE ? id : 0 };

#define LS_DIM(NAME, name, bits, KIND, key)                                                        \
        if (dim == LS_DIM_##NAME)                                                                  \
                cell.name = (LS_DIM_TYPE_##bits)id;
#include "formats/dims.def"
#undef LS_DIM
        return cell;
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
