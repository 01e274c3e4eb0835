/* What an ELF object says of itself, as far as somebody who attaches asks: read from the memory of
 * the process that has it loaded, so that it is found whatever the process's file system is, or
 * from its file. What is read is hostile: loops are bounded, and each answer is a struct of fixed
 * size, which worker.c checks. Called by serve.c in a worker, and by tests. */
#ifndef LS_RECORD_WORKER_OBJECT_H
#define LS_RECORD_WORKER_OBJECT_H

#include <stddef.h>
#include <stdint.h>

#define LS_OBJECT_ID 64u                /* bytes of a build id */
#define LS_OBJECT_TLS 4096u /* most bytes of thread data that are copied for a new thread */
#define LS_OBJECT_TLS_FAR (1 << 19)     /* and how far from the thread pointer they may be */

/* The symbols that anybody asks for. */
#define LS_OBJECT_SYMBOLS(X)                                                                       \
        X("gnu_get_libc_version")                                                                  \
        X("syscall") X("errno") X("__errno_location") X("__tls_get_addr") X("pthread_create")      \
                X("pthread_detach") X("pthread_self") X("__pthread_get_minstack") X("dlopen")      \
                        X("dlsym") X("dlerror") X("_dlfcn_hook") X("munmap") X("lua_newstate")     \
                                X("luaJIT_setmode") X("luasample_attach")                          \
                                        X("luasample_attach_status")
#define LS_OBJECT_COUNT(name) + 1
enum { LS_OBJECT_NSYMBOLS = 0 LS_OBJECT_SYMBOLS(LS_OBJECT_COUNT) };

/* Thread data that the C library gives each new thread: size bytes at image, which go to offset
 * (negative) from the thread pointer; 0 = not known. Found by way of errno, which is among them. */
struct ls_thread_data { uint64_t image, size; int64_t offset; };

struct ls_object {
        uint64_t bias;                  /* to be added to its own addresses; of a file: what it asks
                                         * its first byte to be loaded at */
        uint64_t code_end;              /* behind the last byte of its code in memory, 0 = it has
                                         * none */
        uint64_t symbols[LS_OBJECT_NSYMBOLS];   /* address of each that it defines, else 0; of a
                                                 * file: 1 */
        struct ls_thread_data thread;   /* of the C library */
        uint32_t libc_version;          /* 100 * 2 + 36; 0 = it is not the GNU C library, or not
                                         * known */
        uint32_t id_len;                /* GNU build id; 0 = it has none */
        uint8_t id[LS_OBJECT_ID];
        uint8_t is_elf;                 /* of a kind that the kernel runs; else nothing but the next
                                         * two is known */
        uint8_t bits32, other_arch;
        uint8_t has_interpreter;        /* it is a program, */
        uint8_t is_glibc, is_musl;      /* whose loader is this one's */
        uint8_t sanitizer;              /* it needs one, or was built with it */
        uint8_t hides_luajit;           /* of a file that exports no lua_newstate: LuaJIT's version
                                         * is in it */
};

/* Its number in symbols; LS_OBJECT_NSYMBOLS = nobody asks for that. */
unsigned ls_object_symbol(const char *name);

/* The object whose first byte is at base of the memory that fd reads. Returns 0, or -ENOEXEC: there
 * is none. */
int ls_object_of_memory(int fd, uint64_t base, struct ls_object *ret);
/* A regular file, open. Returns likewise. */
int ls_object_of_file(int fd, struct ls_object *ret);

#endif
