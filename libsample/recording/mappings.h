/* Tells the recorder what is loaded where: see mappings.c. Normal context. */
#ifndef LS_LIBSAMPLE_RECORDING_MAPPINGS_H
#define LS_LIBSAMPLE_RECORDING_MAPPINGS_H

/* In a forked child nothing was sent yet. */
void ls_mappings_after_fork(void);
/* Sends a MAPPING for each executable segment that was not sent yet, if this thread may write
 * now. */
void ls_mappings_send(void);
/* The next recording has none of them. */
void ls_mappings_restart(void);
/* 1 when the calling thread has a ring. */
int ls_may_write_ring(void);

#endif
