/* Growing arrays of the agent's own, in pages of their own: the program's allocator is never
 * called, since its state belongs to the program. Bare system calls: any context, signal handlers
 * too (errno is not kept).
 *
 * The pages lie far from all that the kernel places for the program. LuaJIT's allocator joins the
 * pieces of memory that the kernel gives it one beside the other; a page of ours between two of
 * them gives the program's functions other places, by which LuaJIT counts how hot code is, and so
 * other traces. */
#ifndef LS_PAGES_H
#define LS_PAGES_H

#include <stddef.h>

/* Where n bytes may be mapped: a hint for mmap, which has no room for them or takes them; another
 * one at each call. */
void *ls_pages_place(size_t n);

/* n zeroed bytes, or NULL. Freed with ls_pages_free. */
void *ls_pages_new(size_t n);
void ls_pages_free(void *p, size_t n);

/* Room for want elements of size bytes in *array, which has room for *room; keeps the contents.
 * Returns 0, or -1 and leaves all as it was. */
int ls_pages_grow(void **array, size_t *room, size_t want, size_t size);

#endif
