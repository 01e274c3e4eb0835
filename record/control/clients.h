/* Who sends commands to a recording (--control), and what they get to hear. What comes is
 * hostile: lines and clients are bounded, an answer never waits, and only the same user (or
 * root) is heard. Called by control.c and flight.c. */
#ifndef LS_RECORD_CONTROL_CLIENTS_H
#define LS_RECORD_CONTROL_CLIENTS_H

#include <limits.h>
#include <poll.h>
#include <sys/stat.h>

#define LS_CONTROL_CLIENTS 8u /* connections at one time; more wait in the socket's queue */
#define LS_CONTROL_LINE 4352u           /* bytes of a command: a path and a word */
#define LS_CONTROL_FDS (LS_CONTROL_CLIENTS + 1)

struct ls_control_client {
        int in, out;                    /* the same for a socket; -1 = none */
        int too_long;                   /* the rest of this line is left out */
        unsigned serial;                /* no two clients have the same one; 0 = none */
        unsigned len;
        char line[LS_CONTROL_LINE];
};

struct ls_control_made {                /* a name in the file system that is ours to remove; path[0]
                                         * 0 = none */
        char path[PATH_MAX];
        dev_t dev;
        ino_t ino;
};

struct ls_control {
        int listener;                   /* -1 = a FIFO, or nothing */
        struct ls_control_client clients[LS_CONTROL_CLIENTS];
        struct ls_control_client *stopper;      /* wants to hear when the trace is whole */
        unsigned serial;                /* of the last client */
        int stop;                       /* somebody wants the recording to end */
        struct ls_control_made made[2];
};

/* Descriptors to wait for; room for LS_CONTROL_FDS. Returns their number. */
unsigned ls_control_poll(const struct ls_control *c, struct pollfd *p);
/* Takes what has come, until c->stop. run: a line is whole, in client->line of client->len
 * bytes, which may be changed. */
void ls_control_read(struct ls_control *c,
                     void (*run)(void *ctx, struct ls_control_client *client), void *ctx);
/* An answer: an error, or NULL. */
void ls_control_reply(struct ls_control_client *c, const char *error, ...)
        __attribute__((format(printf, 2, 3)));
/* An answer with what was asked for. */
void ls_control_tell(struct ls_control_client *c, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/* The same, later, to the client of that serial number, if it is still there. */
void ls_control_answer(struct ls_control *c, unsigned serial, const char *error, ...)
        __attribute__((format(printf, 3, 4)));
/* The trace is whole: answers who asked for it, closes and removes what was made. Takes one that
 * was never opened. */
void ls_control_done(struct ls_control *c);

#endif
