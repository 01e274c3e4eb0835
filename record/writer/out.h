/* The recorder's end of the writer: the process without rights that alone looks at the rings of the
 * targets, and writes the trace (main.c, ops.c). Called by the session, in the recorder's main
 * thread. When the writer has died all of this does nothing. */
#ifndef LS_RECORD_WRITER_OUT_H
#define LS_RECORD_WRITER_OUT_H

#include "record/writer/wire.h"

struct ls_out;

struct ls_out_config {
        struct ls_out_setup setup;
        struct ls_workers *workers;     /* those that the writer asks: nobody else does; the
                                         * caller's */
        int full_fd;                    /* an eventfd: readable when the rings of a target fill */
        /* A text of the writer's, or of the program's, for people: whatever it may hold. */
        void (*notice)(void *ctx, const char *text);
        /* A target that has no name wants one soon. */
        void (*look)(void *ctx);
        void *ctx;
};

struct ls_out_message {                 /* see ops.def */
        enum ls_out_op op;
        unsigned target;
        uint64_t arg[3];
        const void *data;
        size_t len;
        int fds[LS_OUT_FDS];            /* 0 = none; the caller's */
};

/* Starts the process, which gives up its rights meanwhile. Returns 0 or -errno. */
int ls_out_start(const struct ls_out_config *cfg, struct ls_out **ret);
/* Ends it, whatever it does. Takes NULL. */
void ls_out_end(struct ls_out *o);

/* Tells it something; in what order is kept. What is answered waits for that, and answers its
 * questions meanwhile: returns the answer's error, or -EOWNERDEAD: it has died. ret: may be
 * NULL. */
int ls_out_tell(struct ls_out *o, const struct ls_out_message *m, struct ls_out_reply *ret);
/* Sends what was told so far, and answers its questions. */
void ls_out_serve(struct ls_out *o);
/* What becomes readable when it asks something, or has died; -1 = it has. */
int ls_out_fd(const struct ls_out *o);
int ls_out_is_dead(const struct ls_out *o);

/* A number for a target, and its process, whose files it may have; -1 = there is none. Given back
 * by what tells DONE. */
int ls_out_number(struct ls_out *o, pid_t pid);
void ls_out_done(struct ls_out *o, unsigned target);

/* Another end, of a copy that the writer has made of itself: it writes one trace, is not waited
 * for, and has no targets. Returns NULL and errno. */
struct ls_out *ls_out_copy(struct ls_out *o);
/* Of a copy, which was told to CLOSE: 1 when it has, *ret_error is 0 or -errno then. wait: until it
 * has. */
int ls_out_has_closed(struct ls_out *copy, int wait, int *ret_error);

/* Never NULL. */
const struct ls_out_figures *ls_out_figures(const struct ls_out *o);
/* CPU time of it and of its workers so far, ns. */
uint64_t ls_out_cpu_ns(const struct ls_out *o);

#endif
