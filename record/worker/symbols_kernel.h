/* The kernel's functions, from /proc/kallsyms. Called by symbols.c, and by the writer. */
#ifndef LS_RECORD_WORKER_SYMBOLS_KERNEL_H
#define LS_RECORD_WORKER_SYMBOLS_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#define LS_KERNEL_START UINT64_C(0xffff800000000000) /* addresses from here on are the kernel's */

struct ls_kernel_symbols;

/* A process that can open nothing has the file open: fd, which is taken, stands for it from now
 * on. */
void ls_kernel_symbols_from(int fd);
struct ls_kernel_symbols *ls_kernel_symbols_open(
        const char *path); /* NULL = cannot be read, or shows no address */
void ls_kernel_symbols_close(struct ls_kernel_symbols *k);              /* takes NULL */
/* The function at an address. Returns 0, or -ENOENT (also when that may not be read). */
int ls_kernel_symbols_find(const struct ls_kernel_symbols *k, uint64_t addr, char *ret_name,
                           size_t size);

#endif
