/* The code at which a stopped thread of the program makes our two system calls, and the way back.
 * It stands in the unused end of the last page of code of the C library or its loader, for some
 * milliseconds. Its registers are kept beside it: a thread that is let go at any instruction of it,
 * since whoever traced it is dead, undoes what there is to undo and goes on where it was. Called by
 * inject.c. */
#ifndef LS_RECORD_ATTACH_WAY_H
#define LS_RECORD_ATTACH_WAY_H

#include <stdint.h>
#include <sys/user.h>

#include "record/attach/modules.h"

struct ls_way {
        const struct ls_modules *modules;
        uint64_t at;                    /* 0 = there is none */
};

/* Where in the code a thread is put, with the registers of the call. rbx: of the page, one behind
 * the region's start. */
uint64_t ls_way_map(const struct ls_way *w);            /* mmap of the region */
uint64_t ls_way_unmap(const struct ls_way *w);          /* rdi = region; munmap of it */
uint64_t ls_way_clone(const struct ls_way *w);          /* clone of the first thread of ours, which
                                                         * waits at page.begin */
/* Where that thread goes, from anywhere, to unmap the region and end when page.go is no longer 0,
 * or nobody has looked for 3 s. */
uint64_t ls_way_refused(const struct ls_way *w);

/* Finds a place that is free. Returns 0, or -ENOSPC. */
int ls_way_find(struct ls_way *w, const struct ls_modules *modules);
/* Writes the code, for a stopped thread with these registers and this mask. Returns 0; -ESTALE: the
 * thread is in another program by now; or -errno. */
int ls_way_write(struct ls_way *w, pid_t tid, const struct user_regs_struct *saved, uint64_t mask,
                 uint64_t region_size);
/* Makes the place what it was. No thread may be in it. */
void ls_way_erase(struct ls_way *w);

#endif
