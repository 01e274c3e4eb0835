/* Names of the fast functions (builtins that have a number) in this build of LuaJIT. Filled by
 * names_search.c, read for each sample. */
#ifndef LS_LIBSAMPLE_HANDLER_BUILTINS_H
#define LS_LIBSAMPLE_HANDLER_BUILTINS_H

#include <stddef.h>
#include <stdint.h>

/* Name of a fast function in this build, found in the libraries of a VM (names_search.c); NULL =
 * none. */
const char *ls_builtin_name(uint8_t ffid);
/* Their texts, by number; and what makes use of a table that was filled from another process's. */
char (*ls_builtin_table(size_t *ret_size))[40];
void ls_builtin_adopt(void);
/* The function of this number is the one that the library prefix (of prefix_len bytes) has by
 * this key (a GCstr); the first name stays. */
void ls_builtin_note(uint8_t ffid, const char *prefix, size_t prefix_len, const char *key);
/* Names of those that no library has, where they have none. */
void ls_builtin_note_aux(void);

#endif
