/* Workers: processes that read what a recorded program names, its object files, debug information
 * and sources, with no more rights than the program has. One for each user and root directory;
 * started by its first question. What a worker answers is checked here before anybody uses it: it
 * may be the program's by then. Called by native/native.c, native/mappings.c, translate/sources.c
 * and attach/, in the recorder's main thread. serve.c is the other side. */
#ifndef LS_RECORD_WORKER_WORKER_H
#define LS_RECORD_WORKER_WORKER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/worker/cfi.h"
#include "record/worker/object.h"

#define LS_WORKER_ARGV0 "luasample-worker"      /* main() runs ls_worker_main under this name */

struct ls_worker;                       /* NULL wherever one is taken: this process answers itself
                                         * (tests) */

struct ls_workers;                      /* of a recording */

/* notice: takes a line for people about files that could not be read; may be NULL. Returns NULL
 * when there is no memory. */
struct ls_workers *ls_workers_new(void (*notice)(void *ctx, const char *text), void *ctx);
/* Ends all of them, and waits for that. Takes NULL. */
void ls_workers_free(struct ls_workers *ws);
/* The one with the rights of pid as they are now; of a process that has ended, or pid 0, that of
 * last, if there is one, else one with as few as there are. Until the next call, it may be another
 * user's then, but for those that are held. NULL only when ws is. */
struct ls_worker *ls_workers_of(struct ls_workers *ws, pid_t pid, struct ls_worker *last);
/* Keeps it for this caller, and gives it back, who gave last before: last is then what is held.
 * Both may be NULL. */
void ls_workers_hold(struct ls_worker *w, struct ls_worker *last);
/* Each second: ends those that nobody holds, and nobody has asked for a minute. Takes NULL. */
void ls_workers_second(struct ls_workers *ws);

/* For another process, which has no rights to start any, and asks them itself: it knows each by its
 * place, and by the number of the user that has had that, as ls_worker_place gives both. Returns
 * the socket of a process of the place that has just been started, in place of the one before; it
 * is closed by what ends that. Or -errno. */
int ls_workers_lend(struct ls_workers *ws, unsigned place);
void ls_workers_lent_end(struct ls_workers *ws, unsigned place);
unsigned ls_worker_place(const struct ls_worker *w, uint32_t *ret_tenant);
/* That other process: starts and ends are asked for. start returns a socket or -errno. */
struct ls_workers_door {
        int (*start)(unsigned place);
        void (*end)(unsigned place);
        int servers;                    /* debuginfod servers may be asked */
};
void ls_workers_through(struct ls_workers *ws, const struct ls_workers_door *door);
struct ls_worker *ls_workers_place(struct ls_workers *ws, unsigned place, uint32_t tenant);

/* The user whose rights it has. */
uid_t ls_worker_uid(const struct ls_worker *w);

/* A file that a worker is asked about again and again. Its strings are the caller's, and outlive
 * it. */
struct ls_worker_file {
        const char *path;               /* as the process sees it */
        const uint8_t *build_id;
        uint32_t build_id_len;          /* 0 = any */
        pid_t pid;                      /* in whose view it is looked for first; 0 = none */
        uint32_t number, generation;    /* the worker's; 0 = not asked yet */
        int bad;                        /* a worker died of it, or took too long: it is not asked
                                         * about any more */
};

/* As ls_cfi_row, ls_symbols_find and ls_symbols_build_id do it. */
int ls_worker_row(struct ls_worker *w, struct ls_worker_file *f, uint64_t offset,
                  struct ls_cfi_row *ret_row, uint64_t *ret_function);
int ls_worker_symbol(struct ls_worker *w, struct ls_worker_file *f, uint64_t offset, char *ret_name,
                     size_t size);
size_t ls_worker_build_id(struct ls_worker *w, pid_t pid, const char *path, uint8_t *ret_id,
                          size_t size);
/* Whether two paths are of one file. 0 = no, or not known. */
int ls_worker_same(struct ls_worker *w, pid_t pid, const char *a, const char *b);
/* Whether a program, or what its first line names, is a LuaJIT. 0 = no, or not known. */
int ls_worker_has_luajit(struct ls_worker *w, const char *path);
/* A source file: name, in dir when it is relative. Writes its path without links, of PATH_MAX
 * bytes, size, and XXH64 of its bytes. Returns 0 or -errno. */
int ls_worker_source(struct ls_worker *w, const char *dir, const char *name, char *ret_path,
                     uint64_t *ret_size, uint64_t *ret_hash);

/* The memory of a process, for ls_worker_loaded, and in *ret_worker who may read it: no mightier
 * than the process, which may become another program meanwhile. Returns a descriptor or -errno. */
int ls_workers_memory(struct ls_workers *ws, pid_t pid, struct ls_worker **ret_worker);
/* The object that is loaded with its first byte at base of that memory. Returns 0 or -errno;
 * -ENOEXEC: there is none. */
int ls_worker_loaded(struct ls_worker *w, int memory, uint64_t base, struct ls_object *ret);
/* A file that was named by O_PATH: the worker opens it, if it may. Returns likewise. */
int ls_worker_image(struct ls_worker *w, int seen, struct ls_object *ret);

/* What an open core file is of; writes its mappings to the file maps. Returns 0; -ENOEXEC: it is no
 * core file of an x86-64 process; or -errno. */
struct ls_worker_core;
int ls_worker_core(struct ls_worker *w, int core, int maps, struct ls_worker_core *ret);

/* CPU time of all workers so far, ns. */
uint64_t ls_workers_cpu_ns(const struct ls_workers *ws);

/* Starts a process that runs role (see serve.c) with these descriptors as 3, 4 and so on, an empty
 * environment, a session of its own and nothing else of ours. env: in place of the empty
 * environment; NULL = that. Returns its pid or -errno. */
pid_t ls_worker_spawn(const char *const argv[], char *const env[], const int *fds, unsigned n);

/* Ends it, and waits for that, so many ms at most: one that a file system of its user's does not
 * let go is left to the system. Returns 1 with what it has used when it has ended, else 0. used:
 * may be NULL. */
struct rusage;
int ls_worker_end(pid_t pid, int ms, struct rusage *ret_used);

/* The whole life of such a process. Does not return to what started it. */
int ls_worker_main(int argc, const char **argv);

#endif
