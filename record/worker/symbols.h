/* Names and lines of native functions: from an object file's dynamic symbols, its symbol table, its
 * separate debug file (found by build id; from a debuginfod server only when the user has set
 * DEBUGINFOD_URLS), the vdso and the kernel. Called by native/mappings.c when the recording
 * ends. */
#ifndef LS_RECORD_SYMBOLS_H
#define LS_RECORD_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "record/worker/symbols_kernel.h"

struct ls_symbols;

#define LS_KERNEL_PATH                                                                             \
        "[kernel]" /* a path that ls_symbols_open takes for it: offset 0 is LS_KERNEL_START */

/* NULL when the file cannot be read, or is not the one with this build id (len 0 = any). */
struct ls_symbols *ls_symbols_open(const char *path, const uint8_t *build_id, size_t build_id_len);
void ls_symbols_close(struct ls_symbols *s);            /* takes NULL */

/* The function that holds this offset in the file, as people write it: C++ and Rust demangled,
 * without parameters; of the vdso and the kernel with "[vdso] " or "[kernel] " before. Returns 0 or
 * -ENOENT. */
int ls_symbols_find(struct ls_symbols *s, uint64_t file_offset, char *ret_name, size_t size);

/* The build id of a file. Returns its length, 0 = none or not readable. */
size_t ls_symbols_build_id(const char *path, uint8_t *ret_id, size_t size);

/* 1 for the names that the kernel and the loader have for the vdso. */
int ls_symbols_is_vdso(const char *path);

#endif
