/* Symbols of the objects that are loaded in this process, read from their own tables: unlike dlsym
 * this takes no reference, depends on no caller, and can say how long a function is. Normal context
 * only. */
#ifndef LS_OBJECTS_H
#define LS_OBJECTS_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

struct ls_object {              /* an object as dl_iterate_phdr showed it; valid while it stays
                                 * loaded */
        uintptr_t base;
        const ElfW(Phdr) *phdrs;
        unsigned nphdrs;
        const char *path;       /* file; the main program's too */
};

/* Calls fn for each loaded object in the order of symbol lookup (the main program first), while the
 * loader's lock is held: fn must not load or unload. Stops when fn returns non-zero, and returns
 * that. */
int ls_objects_each(int (*fn)(const struct ls_object *object, void *data), void *data);

/* A counter that changes whenever something is loaded or unloaded. */
unsigned long long ls_objects_version(void);

/* Address of a defined function or object in the dynamic symbols of object, in its default version;
 * NULL when it has none of this name. *ret_size (may be NULL) is its size, 0 when the table does
 * not tell. */
void *ls_object_symbol(const struct ls_object *object, const char *name, size_t *ret_size);

/* Its build id, in the object's memory: bytes through *ret_len, NULL when it has none. */
const void *ls_object_build_id(const struct ls_object *object, size_t *ret_len);

/* 1 and the object when addr is in one of its segments. */
int ls_object_of_address(const void *addr, struct ls_object *ret);

/* 1 when the object has a DT_RPATH or DT_RUNPATH: what it loads by name depends on who loads. */
int ls_object_has_runpath(const struct ls_object *object);

#endif
