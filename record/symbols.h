/* Names of functions in an object file, from its dynamic symbols, its symbol table or its separate debug file. Called
 * by mappings.c. Never asks the network. */
#ifndef LS_RECORD_SYMBOLS_H
#define LS_RECORD_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct ls_symbols;

/* NULL when the file cannot be read, or is not the one with this build id (len 0 = any). */
struct ls_symbols *ls_symbols_open(const char *path, const uint8_t *build_id, size_t build_id_len);
void ls_symbols_close(struct ls_symbols *s);            /* takes NULL */

/* The function that holds this offset in the file. Returns 0 or -ENOENT. */
int ls_symbols_find(struct ls_symbols *s, uint64_t file_offset, char *ret_name, size_t size);

/* The build id of a file. Returns its length, 0 = none or not readable. */
size_t ls_symbols_build_id(const char *path, uint8_t *ret_id, size_t size);

#endif
