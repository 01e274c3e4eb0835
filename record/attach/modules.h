/* The objects that are loaded in another process, and their symbols, read from its memory: so they are found whatever its
 * file system is, and when their files were replaced meanwhile. Called by the other files of attach/ What is read is hostile. */
#ifndef LS_RECORD_ATTACH_MODULES_H
#define LS_RECORD_ATTACH_MODULES_H

#include <stdint.h>
#include <sys/types.h>

#define LS_MODULES_MOST 1024u

struct ls_module {
        uint64_t base;                  /* where its file's first byte is mapped */
        char *path;                     /* as in /proc/PID/maps */
};

struct ls_modules {
        int mem_fd;                     /* /proc/PID/mem, read and written; -1 = none */
        unsigned n;
        struct ls_module *m;
};

/* Opens the process. Returns 0 or -errno. */
int ls_modules_open(struct ls_modules *ms, pid_t pid);
void ls_modules_close(struct ls_modules *ms);

/* All n bytes at address. Return 0 or -errno. */
int ls_remote_read(const struct ls_modules *ms, uint64_t address, void *to, size_t n);
int ls_remote_write(const struct ls_modules *ms, uint64_t address, const void *from, size_t n);
/* A string of less than size bytes, as far as it can be read. */
void ls_remote_string(const struct ls_modules *ms, uint64_t address, char *to, size_t size);

/* A defined symbol of this object, 0 = it has none of that name. *ret_size (may be NULL): its size. */
uint64_t ls_module_symbol(const struct ls_modules *ms, const struct ls_module *m, const char *name, uint64_t *ret_size);
/* The first object that has it, NULL = none has. *ret_address (may be NULL): the symbol's. */
const struct ls_module *ls_modules_find(const struct ls_modules *ms, const char *name, uint64_t *ret_address);
/* Thread data that the C library gives each new thread: size bytes at image, which go to offset (negative) from the thread
 * pointer. Found by way of errno, which is among them. Returns 0, or -ENOENT. */
struct ls_thread_data { uint64_t image, size; int64_t offset; };
int ls_module_thread_data(const struct ls_modules *ms, const struct ls_module *libc, struct ls_thread_data *ret);
/* Behind the last byte of its code in memory, 0 = it has none. */
uint64_t ls_module_code_end(const struct ls_modules *ms, const struct ls_module *m);
/* The version of the GNU C library, as 100 * 2 + 36; 0 = not known. */
unsigned ls_module_libc_version(const struct ls_modules *ms, const struct ls_module *libc);
/* The GNU build id. Returns its length, 0 = it has none. */
size_t ls_module_build_id(const struct ls_modules *ms, const struct ls_module *m, uint8_t ret_id[64]);

#endif
