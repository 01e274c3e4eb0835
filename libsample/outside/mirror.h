/* Another process's memory, read as if it were our own: a page of it is fetched to its own address when it is first touched.
 * So all code of libsample/handler that reads a VM reads it from outside too. Only in a process that does nothing else
 * (watch.c): it has a handler of SIGSEGV, and its own memory must not lie where the other's does. */
#ifndef LS_OUTSIDE_MIRROR_H
#define LS_OUTSIDE_MIRROR_H

#include <sys/types.h>

/* What takes rights that the process may give up afterwards. Once, first of all. Returns 0 or -errno. */
int ls_mirror_prepare(void);
/* From now on the memory is that of pid. Returns 0; -EPERM or another -errno: it may not be read; -EEXIST: our own memory
 * lies at addresses that it uses too, as without address space randomization. */
int ls_mirror_open(pid_t pid);
/* Gives all pages back. */
void ls_mirror_close(void);

/* Calls look(arg), which reads the other's memory: of this moment, and what it has read once it reads again unchanged.
 * Returns what look returned, or -EFAULT when it touched what cannot be read: it was left half way then. */
int ls_mirror_look(int (*look)(void *arg), void *arg);

#endif
