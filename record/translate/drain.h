/* Reader side of the rings. Copies each record out of the shared memory before anything in it is
 * looked at, and gives it to the translator. Called by the session, in the recorder's main
 * thread. */
#ifndef LS_RECORD_TRANSLATE_DRAIN_H
#define LS_RECORD_TRANSLATE_DRAIN_H

#include <stdint.h>

#include "record/process/memory.h"

/* What takes the records: translate.c, or a test. */
struct ls_drain_sink {
        /* A committed record: kind as it stands in the ring, len bytes of body, 8-aligned, valid
         * until it returns. */
        void (*record)(void *ctx, unsigned ring, unsigned kind, const void *body, uint32_t len);
        /* Records between the last one and the next are missing. */
        void (*gap)(void *ctx, unsigned ring);
        /* Its thread has ended and all its records were taken: the ring will be another's. May be
         * NULL. */
        void (*closed)(void *ctx, unsigned ring);
        void *ctx;
};

struct ls_drain_ring {
        uint64_t tail;                  /* ours: the one in the memory is only for the writer */
        uint64_t stuck_at;              /* position of an open record that holds us up */
        uint64_t stuck_since_ns;        /* 0 = not held up */
        uint64_t stuck_signals;         /* the ring's signals then */
};

struct ls_drain {
        const struct ls_memory *memory;
        struct ls_drain_sink sink;
        struct ls_drain_ring *rings;
        uint8_t *copy;                  /* one record */
        uint64_t abandoned;             /* losses, see losses.def */
        uint64_t bad_records;
        uint64_t bytes;                 /* consumed since the start */
        uint32_t fill;                  /* how full the fullest ring was at the last run, in
                                         * 1/1024 */
};

int ls_drain_init(struct ls_drain *d, const struct ls_memory *m, const struct ls_drain_sink *sink);
void ls_drain_done(struct ls_drain *d);

/* Takes what is committed, and gives rings back whose thread has ended. writer_gone: the process is
 * dead, so what is open stays open. now_ns: CLOCK_MONOTONIC. Always ends: it looks no further than
 * where the writer was when it began. */
void ls_drain_run(struct ls_drain *d, int writer_gone, uint64_t now_ns);

#endif
