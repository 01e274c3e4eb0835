/* --control: commands from outside, as lines through a FIFO or a socket, while the recording runs. Called by the session.
 * What comes is hostile: lines and clients are bounded, an answer never waits, and only the same user (or root) is heard. */
#ifndef LS_RECORD_CONTROL_H
#define LS_RECORD_CONTROL_H

#include <limits.h>
#include <poll.h>
#include <sys/stat.h>

struct ls_session;

#define LS_CONTROL_CLIENTS 8u           /* connections at one time; more wait in the socket's queue */
#define LS_CONTROL_LINE 4352u           /* bytes of a command: a path and a word */
#define LS_CONTROL_FDS (LS_CONTROL_CLIENTS + 1)

struct ls_control_client {
        int in, out;                    /* the same for a socket; -1 = none */
        int too_long;                   /* the rest of this line is left out */
        unsigned serial;                /* no two clients have the same one; 0 = none */
        unsigned len;
        char line[LS_CONTROL_LINE];
};

struct ls_control_made {                /* a name in the file system that is ours to remove; path[0] 0 = none */
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

/* Whether text is what --control can take; else a line says why, and it returns -EINVAL. */
int ls_control_check(const char *text);
/* Opens what text names, NULL = nothing. Returns 0, or -errno after a line. */
int ls_control_open(struct ls_control *c, const char *text);
/* Descriptors to wait for; room for LS_CONTROL_FDS. Returns their number. */
unsigned ls_control_poll(const struct ls_control *c, struct pollfd *p);
/* Does what was asked for. Sets c->stop. */
void ls_control_handle(struct ls_session *s);
/* Later answer to the client of that serial number, if it is still there: an error, or NULL. */
void ls_control_answer(struct ls_session *s, unsigned serial, const char *error, ...) __attribute__((format(printf, 3, 4)));
/* The trace is whole: answers who asked for it, closes and removes what was made. Takes one that was never opened. */
void ls_control_done(struct ls_control *c);

#endif
