/* The daemon's store: a directory of whole traces, by service and time. Called by the daemon, which writes it, by `luasample
 * store`, and by the commands that read a time of it.
 *
 *      version                         what this is, one line
 *      lock                            flock of the daemon, or of `store prune`
 *      incoming/RECORDING/trace[.N]    what recorders write
 *      services/SERVICE/DAY/CHUNK      what is committed: 2026-11-22/143000.125-60000-4711-0.luasample has begun at 14:30:00.125
 *                                      UTC, is of 60 s of the process 4711, and was not merged;
 *                                      ...-7200000-0-2: merged, of all processes (tier.c)
 *      kept/NAME/CHUNK                 what rules have kept: the same files, which nothing removes
 *
 * The names are the index: nothing else has to be kept whole. A chunk comes by one rename, and is never changed. */
#ifndef LS_STORE_STORE_H
#define LS_STORE_STORE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LS_STORE_SERVICE 64u            /* bytes of a service's name, with the 0 */
#define LS_STORE_DAY 11u                /* "2026-11-22" */
#define LS_STORE_CHUNK 64u

struct ls_store {
        int fd, services_fd, incoming_fd;       /* directories */
        int lock_fd;                    /* -1 = not locked by us */
        char *path;
};

struct ls_chunk {
        char service[LS_STORE_SERVICE], day[LS_STORE_DAY], name[LS_STORE_CHUNK];
        uint64_t begin_ms, end_ms;      /* CLOCK_REALTIME */
        uint32_t pid;
        uint32_t level;                 /* 0 = as it was recorded; else it was merged */
        uint64_t size;                  /* on the disk */
};

struct ls_chunks {
        struct ls_chunk *v;
        size_t n, room;
        unsigned foreign;               /* names among them that are none of chunks */
};

/* Rights that a reader of a store gives up before it reads the first trace, when all files are open
 * that it needs: drop gives up the rights of this process, and returns 0 or -errno. bytes_most: of
 * chunks, that are read at all. error: why a time could not be found or read. Set by main(); drop
 * NULL = rights are kept, bytes_most 0 = all. */
struct ls_store_apart {
        int (*drop)(void);
        uint64_t bytes_most;
        int error;
};
extern struct ls_store_apart ls_store_apart;
#define LS_STORE_APART_BYTES (512ull << 20)
#define LS_STORE_EXIT_NONE 3            /* exit statuses of such a process: the store has nothing of
                                         * that, or nothing that can be read; */
#define LS_STORE_EXIT_MUCH 4            /* more than bytes_most */
/* Calls drop, once. Returns 0 or -errno. */
int ls_store_drop(void);
/* Allows this process as many descriptors as it may have: all chunks of a time are open at once. */
void ls_store_allow_files(void);

enum ls_store_mode { LS_STORE_READ, LS_STORE_WRITE };

/* Opens path; WRITE makes it when it is not there or empty, and locks it. Returns 0, or -errno
 * after a line. */
int ls_store_open(struct ls_store *s, const char *path, enum ls_store_mode mode);
void ls_store_close(struct ls_store *s);

/* The chunks of a service, NULL = of all, that overlap the time, in the order of service and time.
 * Returns 0 or -errno. */
int ls_store_list(const struct ls_store *s, const char *service, uint64_t from_ms, uint64_t to_ms,
                  struct ls_chunks *ret);
void ls_chunks_done(struct ls_chunks *c);
/* For reading, never through a link. Returns the descriptor or -errno. */
int ls_store_open_chunk(const struct ls_store *s, const struct ls_chunk *c);
int ls_store_remove(const struct ls_store *s, const struct ls_chunk *c);

/* Gives the chunk a second name in kept/NAME, which nothing removes. Returns 0 or -errno. */
int ls_store_keep(const struct ls_store *s, const struct ls_chunk *c, const char *name);
/* A new file of kept/NAME, to be written. Returns the descriptor or -errno. */
int ls_store_keep_file(const struct ls_store *s, const char *name, const char *file);
struct ls_kept {
        unsigned times, of_owner;       /* directories of kept */
        uint64_t bytes;                 /* a file with several names counts once */
};
/* kept.c: how much is kept; owner: a service or rule, whose times are counted too, NULL = nobody's;
 * but: a time that is not counted, NULL = all are. Returns 0 or -errno. */
int ls_store_kept(const struct ls_store *s, const char *owner, const char *but,
                  struct ls_kept *ret);

/* Puts the file name of the directory from_fd, which nobody writes any more, into the store, on the
 * disk when it returns. Returns 0 or -errno: then it is where it was. */
int ls_store_commit(const struct ls_store *s, int from_fd, const char *name, struct ls_chunk *c);

/* Names and times. Returns 0, or -EINVAL: not a name of ours. */
int ls_chunk_parse(const char *day, const char *name, struct ls_chunk *ret);
void ls_chunk_name(struct ls_chunk *c);         /* day and name, of the times, pid and level */

/* tier.c: chunks of a time that is over are merged. */
struct ls_window {                      /* of a service: what begins in [begin, end) and is below
                                         * level becomes a chunk of level */
        char service[LS_STORE_SERVICE];
        uint64_t begin_ms, end_ms;
        uint32_t level;
};
/* Takes away those whose samples are in a merged chunk that is there, too; *ret_hidden gets them,
 * NULL = nobody asks. Returns 0, or -1: no memory. */
int ls_store_hide(struct ls_chunks *all, struct ls_chunks *ret_hidden);
/* The level that a chunk must have so that no merged one hides it: it came when its time had been
 * merged. */
uint32_t ls_store_level(const struct ls_chunks *all, const struct ls_chunk *c);
int ls_window_has(const struct ls_window *w, const struct ls_chunk *c);
/* The first window of length_ms that ended before before_ms, is not skipped, and has something to
 * merge. Returns 1 when there is one. */
int ls_window_find(const struct ls_chunks *all, uint32_t level, uint64_t length_ms,
                   uint64_t before_ms, int (*skip)(void *ctx, const struct ls_window *w), void *ctx,
                   struct ls_window *ret);

#define LS_STORE_MERGING "merging"      /* in incoming: what is being merged */
/* Merges what a window has into LS_STORE_MERGING, which is on the disk then. For a process of its
 * own, since it reads traces; nothing else is changed. Returns 0 or -errno: a chunk is damaged, of
 * another boot, or cannot be added up. */
int ls_window_merge(const struct ls_store *s, const struct ls_window *w);

struct ls_store_limits {
        uint64_t max_age_ms, max_size, min_free;        /* min_free in percent */
};
struct ls_pruned {
        unsigned n;
        uint64_t bytes;
        unsigned by_age, by_size, by_free;
};
/* Removes what is too much, the oldest first. Returns 0 or -errno. */
int ls_store_prune(const struct ls_store *s, const struct ls_store_limits *limits, uint64_t now_ms,
                   struct ls_pruned *ret);
/* Whether the file system has at least that share free; 1 when it cannot be known. */
int ls_store_has_room(const struct ls_store *s, uint64_t min_free);
uint64_t ls_store_now_ms(void);

#endif
