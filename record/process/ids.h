/* Tables by ids that come from the rings of a process: they grow with what is defined, never with
 * what is claimed. */
#ifndef LS_RECORD_PROCESS_IDS_H
#define LS_RECORD_PROCESS_IDS_H

#include <stddef.h>
#include <stdint.h>

#define LS_ID_MAX (1u << 24)

struct ls_ids {                         /* all the tables of a process; zeroed at the start */
        uint64_t bytes;                 /* they take */
        uint64_t defined;               /* entries, each time that one was */
};

/* Makes room for entry id, which is to be defined, in *table, of *n zeroed entries of size bytes.
 * Ids are dense: where they leave more room between them than lost definitions do, they are lies.
 * Returns 0, -EINVAL (0, or too far) or -ENOMEM. */
int ls_ids_reserve(struct ls_ids *all, void **table, uint32_t *n, size_t size, uint32_t id);

/* Frees a table of n entries of size bytes. */
void ls_ids_free(struct ls_ids *all, void *table, uint32_t n, size_t size);

#endif
