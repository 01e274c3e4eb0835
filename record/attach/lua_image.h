/* The LuaJIT in a process that runs already: which file it is, where it is loaded, and how it lays
 * out its VMs. The last is found by loading the same file in a process of our own. Called by
 * stack.c. */
#ifndef LS_RECORD_ATTACH_LUA_IMAGE_H
#define LS_RECORD_ATTACH_LUA_IMAGE_H

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "record/worker/worker.h"

struct ls_lua_image {
        char path[PATH_MAX];            /* as the process sees it */
        uint64_t base;                  /* what its addresses are relative to */
        int is_program;                 /* it is the program itself, not a library */
        int takes_agent;                /* likewise, and what is preloaded comes up in it */
        int fd;                         /* the file, by O_PATH: nobody has opened it */
        int other_lua;                  /* there is none, but this file has another Lua in it */
};

/* workers: read what it is. pid: 0 = it has ended. maps: its mappings in the form of
 * /proc/PID/maps, taken; NULL = errno says why there are none. Returns 0; -ENOENT: there is no
 * LuaJIT in it; -ESRCH; -EACCES: its files or its memory map may not be read. */
int ls_lua_image_find(struct ls_workers *workers, pid_t pid, FILE *maps, struct ls_lua_image *ret);

/* Asks a copy of it (libsample/start/probe_entry.c), in a process that has nothing of ours
 * (worker/main.c): code of the file runs there, with the rights of the process's user; pid 0, a
 * core file's: as nobody, where we are root, and only when the file belongs to root or to us, or
 * trust is set. The answer is in the file *ret_fd, and may be anything. Returns 0; -EXDEV: it
 * belongs to another container's root, and would run as ours; -EKEYREJECTED: to another user;
 * -ETIME; or -errno. */
int ls_lua_image_probe(const struct ls_lua_image *image, pid_t pid, int trust, int *ret_fd);

#endif
