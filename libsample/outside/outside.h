/* The watcher: a process beside the recorder that watches the threads of the program from outside and sends their wall
 * time. A thread that is blocked is never signalled: that it is, the kernel tells in /proc; its stack is read from its
 * memory by the code that reads it in the program (libsample/handler). Started by record/watcher.c. */
#ifndef LS_OUTSIDE_H
#define LS_OUTSIDE_H

#include "formats/wire/shm.h"

/* Watches until the recording or the program ends, or this process's parent does. shm: the memory that is shared with the
 * agent; behind its rings there is one more for each, for what is found here. The program need not run yet: its pid is
 * awaited in shm. Does not return. */
void __attribute__((noreturn)) ls_outside_watch(struct ls_shm *shm);

#endif
