/* What an ELF file on disk says about itself, as far as inspect.c asks. libc only, no malloc; the
 * file is hostile. */
#ifndef LS_ELF_FILE_H
#define LS_ELF_FILE_H

#include <stdint.h>

struct ls_elf_facts {
        uint8_t bits32;
        uint8_t other_arch;
        uint8_t sanitizer;              /* needs libasan and its like, or has __asan_init */
        uint8_t needs_luajit;
        uint8_t exports_lua_newstate;
        uint8_t exports_profiler;       /* luaJIT_profile_start */
        char interpreter[128];          /* PT_INTERP; "" = none */
};

/* fd: a regular file of size bytes. Returns 0; -ENOEXEC when it is no ELF program that the kernel
 * would run. */
int ls_elf_inspect(int fd, uint64_t size, struct ls_elf_facts *ret);

/* 1 when text (short, no terminator compared) is in what is loaded of the file and never written;
 * in a file that is no 64-bit ELF file, anywhere. Reads 64 MiB of it, and no more. */
int ls_elf_contains(int fd, uint64_t size, const char *text);

#endif
