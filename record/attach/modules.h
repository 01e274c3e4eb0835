/* The objects that are loaded in another process, and their symbols, read from its memory: so they
 * are found whatever its file system is, and when their files were replaced meanwhile. A worker
 * with the process's rights reads them, once, when it is opened. Called by the other files of
 * attach/. What is said of them is hostile: addresses are used in that process alone. */
#ifndef LS_RECORD_ATTACH_MODULES_H
#define LS_RECORD_ATTACH_MODULES_H

#include <stdint.h>
#include <sys/types.h>

#include "record/worker/worker.h"

#define LS_MODULES_MOST 1024u

struct ls_module {
        uint64_t base;                  /* where its file's first byte is mapped */
        char *path;                     /* as in /proc/PID/maps */
        struct ls_object object;
};

struct ls_modules {
        int mem_fd;                     /* /proc/PID/mem, read and written; -1 = none */
        unsigned n;
        struct ls_module *m;
};

/* Opens the process. workers: NULL = this process reads itself (tests). Returns 0 or -errno:
 * -EBADMSG, what is in its memory could not be read in the time, or by a worker. */
int ls_modules_open(struct ls_modules *ms, pid_t pid, struct ls_workers *workers);
void ls_modules_close(struct ls_modules *ms);

/* All n bytes at address. Return 0 or -errno. */
int ls_remote_read(const struct ls_modules *ms, uint64_t address, void *to, size_t n);
int ls_remote_write(const struct ls_modules *ms, uint64_t address, const void *from, size_t n);
/* A string of less than size bytes, as far as it can be read. */
void ls_remote_string(const struct ls_modules *ms, uint64_t address, char *to, size_t size);

/* A symbol that this object defines, of those in worker/object.h; 0 = it does not. */
uint64_t ls_module_symbol(const struct ls_module *m, const char *name);
/* The first object that has it, NULL = none has. */
const struct ls_module *ls_modules_find(const struct ls_modules *ms, const char *name);

#endif
