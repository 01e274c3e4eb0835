/* What the recorder and a program that it attaches to share before the agent has its memory: a page
 * in the program, in the region that record/attach/inject.c maps there. The recorder writes it from
 * outside; the code of record/attach/stub.c and the agent's entry luasample_attach read it inside.
 * Offsets are used by assembly. */
#ifndef LS_WIRE_ATTACH_H
#define LS_WIRE_ATTACH_H

#include <stdint.h>

#define LS_ATTACH_MAGIC   0x5441534cu   /* "LSAT" */
#define LS_ATTACH_VERSION 2u
#define LS_ATTACH_ENTRY   "luasample_attach"
#define LS_ATTACH_STATUS  "luasample_attach_status"
#define LS_ATTACH_MEMFD   "luasample"
#define LS_ATTACH_WAY                                                                              \
        "/proc/thread-self/" /* begins the agent's path: /proc/self has no files when the first thread has ended */

/* state, written in the program */
#define LS_ATTACH_BEGUN     0u
#define LS_ATTACH_FILES 1u /* fd_agent and fd_memory are made (or hold an error): waits for go */
#define LS_ATTACH_NO_LOAD   2u          /* dlopen failed: error_text may point to its reason */
#define LS_ATTACH_NO_ENTRY  3u
#define LS_ATTACH_REFUSED                                                                          \
        4u /* the agent refused: result is why. These three wait for go = 3, or some seconds */
#define LS_ATTACH_LEFT      5u          /* told to give up, or nobody said go */

struct ls_attach {
        volatile uint32_t go;           /* recorder: 1 = go on, 2 = give up, 3 = what there is to
                                         * read was read */
        volatile uint32_t state;
        int32_t fd_agent, fd_memory;    /* in the program, or -errno */
        uint64_t pthread_create;        /* addresses of functions in the program */
        uint64_t pthread_detach;
        uint64_t pthread_self;
        uint64_t dlopen;
        uint64_t dlsym;
        uint64_t entry;                 /* of an agent that is there already; 0 = it is to be
                                         * loaded */
        int32_t created;                /* what pthread_create returned; -1 = not yet */
        int32_t result;                 /* -errno of the agent, or of the kernel that makes no code
                                         * of the region */
        uint64_t thread;                /* pthread_t */
        uint64_t handle;
        uint64_t dlerror;               /* 0 = there is none */
        uint64_t error_text;
        int64_t pause[2];               /* struct timespec between two looks at go */
        uint32_t looks;                 /* left before it gives up */
        uint32_t mxcsr;
        char name[16];                  /* of the memory files */
        char path[32];                  /* LS_ATTACH_WAY "fd/N", the agent's */
        char symbol[32];                /* LS_ATTACH_ENTRY */
        uint64_t carrier_tid;           /* address of a word that the kernel clears when the first
                                         * thread has ended */
        uint64_t region, region_size;   /* all of it, for munmap */
        uint64_t generation;            /* of the memory */
        uint32_t magic, version;
        volatile uint32_t begin;        /* recorder: 1 = the region is filled, 2 = give up */
        uint32_t tid_offset;            /* in the C library's thread data: of the thread's id */
        uint64_t munmap;                /* address of the function in the program */
        uint64_t refused;               /* address of code that unmaps the region, for a first
                                         * thread that makes no other */
};
_Static_assert(sizeof(struct ls_attach) == 272, "struct ls_attach is used by assembly");

struct ls_attach_status {               /* exported by the agent as luasample_attach_status; the
                                         * recorder reads it */
        uint32_t magic, version;
        volatile uint32_t pid;          /* that it records, as that process knows itself; 0 =
                                         * none */
        uint32_t preloaded;             /* 1 = it came by LD_PRELOAD, under luasample record */
        volatile uint64_t heartbeat_at; /* address of the recorder's heartbeat, 0 = none */
};

#endif
