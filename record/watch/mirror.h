/* Another process's memory, read as if it were our own: a page of it is fetched to its own address
 * when it is first touched, to be read only. So all code of libsample/handler that reads a VM reads
 * it from outside too; seen.h tells how it is kept to what was fetched. Only in a process that does
 * nothing else (watch.c): it has a handler of SIGSEGV and a limit of its memory, and its own memory
 * must not lie where the other's does. */
#ifndef LS_RECORD_WATCH_MIRROR_H
#define LS_RECORD_WATCH_MIRROR_H

/* What takes rights that the process may give up afterwards. First of all. Returns 0 or -errno. */
int ls_mirror_prepare(void);
/* From now on the memory is that of the process of remote.h. Returns 0; -EPERM or another -errno:
 * it may not be read; -EEXIST: our own memory lies at addresses that it uses too, as without
 * address space randomization. */
int ls_mirror_open(void);
/* Gives all pages back. */
void ls_mirror_close(void);

/* Calls look(arg), which reads the other's memory: of this moment, and what it has read once it
 * reads again unchanged. Returns what look returned; -EFAULT when it touched what cannot be read,
 * -ETIME when it took longer than any honest program's memory makes it take: it was left half way
 * then. */
int ls_mirror_look(int (*look)(void *arg), void *arg);

#endif
