/* Between the recorder and the writer, which has no rights: messages with descriptors, and a page
 * of figures. Used by the files of writer/ on both sides. What the writer says is taken for a
 * figure, an errno or a text to be shown, and for nothing else. */
#ifndef LS_RECORD_WRITER_WIRE_H
#define LS_RECORD_WRITER_WIRE_H

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/process/memory.h"

#define LS_TARGETS_MAX 256              /* processes that are recorded at one time */
#define LS_PROCESSES_MAX 65536 /* and in all: what a hostile program can make of the trace */

#define LS_OUT_ROOM 65536u              /* bytes of messages that are sent together */
#define LS_OUT_FDS 2

enum ls_out_op {
#define LS_OUT(NAME, answered) LS_OUT_##NAME,
#include "record/writer/ops.def"
#undef LS_OUT
        LS_OUT_NOPS
};

struct ls_out_head {                    /* before the data, which fills up to 8 bytes */
        uint32_t op;                    /* enum ls_out_op */
        uint32_t target;                /* number of a target, where it is about one */
        uint64_t len;                   /* bytes of the data */
        uint32_t in_file;               /* 1 = they are in a file, the first descriptor */
        uint32_t pad;
        uint64_t arg[3];
};

struct ls_out_reply {
        int32_t error;                  /* 0 or -errno */
        int32_t pad;
        uint64_t value;
};

#define LS_OUT_MARK 256u
#define LS_TELLS_MOST 32u               /* of --tell */

struct ls_tell {                        /* what the recorder wants to hear of; tell.h reads it */
        enum { LS_TELL_NONE, LS_TELL_MARK, LS_TELL_OVER, LS_TELL_UNDER } kind;
        char pattern[LS_OUT_MARK];      /* of the names of marks, counters */
        double limit;                   /* that a counter is over, under */
};

struct ls_out_setup {
        uint64_t interval_ns;
        uint64_t alloc_interval;        /* bytes from sample to sample */
        uint8_t no_source, wall_only, native;
        uint8_t alloc, live;            /* which rows allocations get */
        uint8_t servers;                /* debuginfod servers may be asked, which takes long */
        char mark[LS_OUT_MARK];         /* a pattern: marks of this name are counted; "" = none */
        struct ls_tell tells[LS_TELLS_MOST];    /* those that are there first */
};

struct ls_out_begin {
        struct ls_memory memory;        /* its sizes */
        uint64_t start_ns;              /* CLOCK_MONOTONIC: no sample is older */
        uint32_t ordinal;               /* of the process, from 0 */
        int32_t pid;
        uint32_t other_namespace, has_ticker;
        char cwd[PATH_MAX];             /* the process's at its start */
};

/* What the writer counts of a target. */
struct ls_counted {
        _Atomic uint64_t samples, sample_ticks, wall_ticks, suspended_ticks, ready_ticks,
                source_bytes;
        _Atomic uint64_t abandoned, bad_records, text_cut, definition_missing, native_cut,
                map_missing;
        _Atomic uint64_t allocs;        /* samples of allocations */
        _Atomic uint64_t exact, exact_compiled; /* instructions that were counted */
};

struct ls_out_figures {                 /* the page: the writer writes it, the recorder reads it */
        _Atomic uint64_t size, dropped; /* of the file: its bytes, and chunks that found no room */
        _Atomic uint64_t dropped_ticks; /* in chunks that found no room, of all files */
        _Atomic uint32_t error;         /* first errno of a write, 0 = none */
        _Atomic uint32_t marked;        /* marks as of setup */
        struct {                        /* of each of the setup's tells */
                _Atomic uint32_t came, went;    /* how often it came true, or false */
                _Atomic uint32_t holds;         /* counters of which it is true now */
        } told[LS_TELLS_MOST];
        struct ls_counted targets[LS_TARGETS_MAX];
};

/* What the writer asks the recorder for. */
enum ls_ask_op {
        LS_ASK_FILE,                    /* a file of a target's in /proc, by name: a descriptor */
        LS_ASK_LINK,                    /* likewise a link: its text */
        LS_ASK_OUTER_ID,                /* arg: the thread as the target knows it; value: as it is
                                         * known here */
        LS_ASK_WORKER,                  /* arg: place; a worker of that place: a socket */
        LS_ASK_WORKER_END,              /* arg: place; it has died, hung, or is to begin anew */
        LS_ASK_NOTICE,                  /* text for people; not answered */
        LS_ASK_LOOK,                    /* a target that has no name yet fills its rings; not
                                         * answered */
};

struct ls_ask {
        uint32_t op;                    /* enum ls_ask_op */
        int32_t pid;
        uint32_t arg;
        char text[1028];
};

struct ls_answer {
        int32_t error;                  /* 0 or -errno */
        int32_t value;
        char text[PATH_MAX];
};

/* Sends one message with up to LS_OUT_FDS descriptors (0 = none), flags as of send(2). Returns 0 or
 * -errno. */
int ls_wire_send(int socket, const void *bytes, size_t len, const int *fds, int flags);
/* Receives one; fds: what came with it, -1 = none. Returns its bytes or -errno; -EPIPE: there is
 * nobody. */
ssize_t ls_wire_receive(int socket, void *bytes, size_t size, int fds[LS_OUT_FDS], int flags);

#endif
