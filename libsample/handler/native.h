/* Copies the native stack of a sample into the ring, to be unwound by the recorder: nothing is
 * unwound here. The outermost part that equals that of the copy before is not sent again. Tick
 * handler, on the thread whose stack it is. */
#ifndef LS_HANDLER_NATIVE_H
#define LS_HANDLER_NATIVE_H

#include "libsample/handler/sampler.h"

/* Bytes that ls_native_write will put after a sample's frames, 0 = none are wanted or none can be
 * read. */
LS_HANDLER size_t ls_native_measure(struct ls_thread *t, const struct ls_regs *regs,
                                    const struct ls_walk *walk);
/* Writes them. Directly after ls_native_measure. */
LS_HANDLER void ls_native_write(struct ls_thread *t, const struct ls_regs *regs,
                                const struct ls_walk *walk, void *out);

/* What was measured is not written: the next copy stands alone. */
LS_HANDLER void ls_native_forget(struct ls_thread *t);

/* Room for a copy, when shm wants native stacks; NULL otherwise. Normal context. */
struct ls_native_copy *ls_native_new(void);
void ls_native_free(struct ls_native_copy *copy);

#endif
