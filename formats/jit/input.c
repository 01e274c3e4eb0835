/* Checks a JITTRACE record before anything in it is used: the only place that trusts no count.
 * Called by whoever reads records, before ls_jit_map_new. */

#include "formats/jit/input.h"

#include <errno.h>

/* Takes count elements from the front of what is left of the record, and the padding to 8 behind them. NULL = too few.
 */
static const void *take(const uint8_t **at, size_t *left, size_t count, size_t size)
{
        const uint8_t *start = *at;
        size_t bytes;

        if (count > *left / size)
                return NULL;
        bytes = count * size;
        bytes += -bytes & 7;
        if (bytes > *left)
                bytes = *left;          /* the last array's padding may be missing */
        *at += bytes;
        *left -= bytes;
        return start;
}

int ls_jit_input_parse(const void *blob, size_t len, struct ls_jit_input *ret)
{
        const struct ls_rec_jittrace *h = blob;
        const uint8_t *at = blob;
        size_t left = len;

        if (((uintptr_t)blob & 7) || !take(&at, &left, 1, sizeof(*h)))
                return -EINVAL;
        if (h->nir > JIT_MAX_REFS || h->nsnapshots > UINT16_MAX || h->nfunctions > UINT16_MAX ||
            h->mcode_loop > h->mcode_size)
                return -EINVAL;
        *ret = (struct ls_jit_input){ .head = h };
        ret->functions = take(&at, &left, h->nfunctions, sizeof(*ret->functions));
        if (!ret->functions)
                return -EINVAL;
        ret->events = take(&at, &left, h->nevents, sizeof(*ret->events));
        if (!ret->events)
                return -EINVAL;
        ret->snapshots = take(&at, &left, h->nsnapshots, sizeof(*ret->snapshots));
        if (!ret->snapshots)
                return -EINVAL;
        ret->ir = take(&at, &left, h->nir, sizeof(*ret->ir));
        if (!ret->ir)
                return -EINVAL;
        ret->code = take(&at, &left, h->mcode_size, 1);
        return ret->code ? 0 : -EINVAL;
}
