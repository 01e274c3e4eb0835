/* Tables by ids that come from the ring: they grow with what is defined, never with what is claimed. */
#ifndef LS_RECORD_IDS_H
#define LS_RECORD_IDS_H

#include <stddef.h>
#include <stdint.h>

#define LS_ID_MAX (1u << 24)

/* Makes room for entry id in *table, of *n zeroed entries of size bytes. Ids are dense: one far above those known is
 * a lie. Returns 0, -EINVAL (0, or too far) or -ENOMEM. */
int ls_ids_reserve(void **table, uint32_t *n, size_t size, uint32_t id);

#endif
