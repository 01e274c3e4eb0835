/* The daemon's state, and what its parts share. daemon.c: the command; supervisor.c: the loop;
 * scan.c: which programs there are; events.c: the kernel's word of them; recorder.c: the child that
 * records one; decide.c: who is recorded next, failures; incoming.c: from the recorders into the
 * store; sinks.c: to other stores; cost.c: budgets; socket.c, requests.c: ctl; pressure.c: memory.
 * One thread; nothing here opens what a target names. */
#ifndef LS_DAEMON_DAEMON_H
#define LS_DAEMON_DAEMON_H

#include <limits.h>
#include <poll.h>

#include "daemon/config.h"
#include "daemon/bounds.h"
#include "daemon/host/program.h"
#include "store/store.h"

enum ls_watch_state {
        LS_WATCH_WAITING,               /* for its turn; the reason says for what */
        LS_WATCH_STARTING,              /* its recorder is there and has not attached yet */
        LS_WATCH_RECORDING,
        LS_WATCH_ENDING,                /* its recorder was asked to end */
        LS_WATCH_REFUSED,               /* it cannot be recorded; tried again at retry_ns */
        LS_WATCH_OFF,                   /* LUASAMPLE=off, or detached by ctl */
        LS_WATCH_LENT,
};
extern const char *const ls_watch_names[];

struct ls_figures {                     /* what a recorder says of itself, since it began */
        uint64_t agent_ns, cpu_ns, recorder_ns, dropped_ticks;
};

struct ls_cost {                        /* of one process; cost.c */
        int fd;                         /* its recorder was asked; -1 = not now */
        size_t n_line;
        char line[256];
        int known, fresh;               /* last is there; it told what the last window cost */
        struct ls_figures last;
        uint64_t agent_ns, cpu_ns, recorder_ns;         /* in the last window */
        uint64_t ppm;                   /* of the agent, of the CPU time of the process */
        uint64_t calm_ns;               /* less than half of what is allowed since then; 0 = not
                                         * now */
        unsigned doublings, doubled;    /* of the interval, now; how often in all */
};

struct ls_watched {                     /* a process that a rule names */
        pid_t pid;
        uint64_t start_ticks, changed_ns;       /* when it was first seen with this program;
                                                 * CLOCK_MONOTONIC */
        char comm[LS_COMM];
        char service[LS_SERVICE_NAME];
        enum ls_watch_state state;
        char reason[256];
        int there;                      /* seen in the look that is being made */
        int asked;                      /* ctl attach: no rule is needed */
        int stale;                      /* of a configuration before: forgotten as soon as its
                                         * recorder has ended */
        int off, lent;                  /* ctl detach, LUASAMPLE=off; a client has it */
        uint64_t usage_ns, cpu_ns, cpu_percent, rss;    /* triggers.c: at the last look */
        int usage_known;
        uint64_t true_ns[LS_RULES_MOST];                /* since when a rule is true; 0 = it is
                                                         * not */
        char acted[LS_RULES_MOST];
        uint32_t told;                  /* tells.c: bits of counters that are over their number */
        uint64_t stall_switches, stall_ns;      /* triggers.c: its main thread neither waits nor
                                                 * sleeps since then; 0 = it does */
        uint64_t stirred_ns;            /* triggers.c: when a rule did something to it */
        unsigned refusals, commits;
        uint64_t retry_ns, since_ns;    /* since: of the state */
        pid_t recorder;                 /* 0 = none */
        int err_fd;                     /* its stderr; -1 = none */
        int attached;                   /* it has said so */
        int killed;
        char dir[160];                  /* its directory in incoming */
        char control[108];              /* its --control; empty = none */
        struct ls_cost cost;
        int burst_due;                  /* it is still recorded as usual: its stack is being
                                         * taken */
        uint64_t burst_ns;              /* it is recorded closely for so long, from when it is
                                         * attached to; 0 = not now */
        char line[512];                 /* of its stderr, so far */
        size_t n_line;
};

struct ls_serving {                     /* a service while the daemon runs; kept across reloads */
        char name[LS_SERVICE_NAME];
        int off;                        /* ctl detach */
        int proven;                     /* its first process was recorded long enough */
        unsigned failures;              /* in the last LS_ASIDE_NS */
        uint64_t failed_ns, aside_until_ns, retry_ns;
        char reason[256];
        uint64_t chunks, bytes;         /* committed since the daemon began */
};

struct ls_firing {                      /* a rule while the daemon runs; kept across reloads */
        char name[LS_SERVICE_NAME];
        uint64_t since_ns;              /* of the time that is counted in */
        unsigned n, fired, held_back, failed;   /* failed: its command */
        char last[LS_SERVICE_NAME + 352];
};

struct ls_operation {
        uint64_t id;
        const char *kind;               /* "burst", "snapshot" */
        char target[LS_SERVICE_NAME + 16];
        int ended, failed;
        char text[256];                 /* what came of it */
        pid_t pids[LS_BURSTS_MOST];     /* that are recorded closely */
        unsigned n_pids;
};

struct ls_sending {                     /* a sink while the daemon runs; kept across reloads */
        char name[LS_SERVICE_NAME];
        uint64_t from_ms, until_ms;     /* sent until from; a window is being sent: until, 0 =
                                         * none */
        uint64_t parts;                 /* profiles of the next service that were taken */
        char done[LS_STORE_SERVICE], service[LS_STORE_SERVICE];         /* of the window: the last
                                                                         * that is through, the
                                                                         * one that is sent */
        int unwritten;                  /* its place could not be written: nothing is sent */
        pid_t child;                    /* 0 = none */
        int fd;                         /* what it says; -1 = none */
        uint64_t started_ns, retry_ns;
        unsigned failures;              /* one after the other */
        uint64_t flush_ms;              /* all until then is sent as soon as it can be; 0 = nothing
                                         * is wanted */
        uint64_t spool_chunks, spool_bytes;     /* of the store that are not sent, when they were
                                                 * counted last */
        uint64_t sent, retries, refused, given_up_ms;   /* sent: profiles; refused: services of a
                                                         * window */
        char last[512];                 /* its last error; "" = the last went well */
};

struct ls_keeping {                     /* what will be kept when it is in the store */
        uint64_t due_ns, from_ms, to_ms;        /* due: 0 = nothing */
        char service[LS_SERVICE_NAME];
        char name[LS_SERVICE_NAME + 48];
        char owner[LS_SERVICE_NAME];    /* the rule or service that keeps it */
        pid_t pid;                      /* 0 = all of the service */
        uint64_t operation;             /* 0 = a rule's */
};

struct ls_client {
        int fd;                         /* -1 = none */
        size_t n_in;
        char in[LS_REQUEST_MOST];
        char *out;                      /* NULL = nothing yet */
        size_t n_out, at_out;
        uint64_t until_ns;              /* then it is hung up on */
        enum { LS_PENDING_NONE, LS_PENDING_LEND, LS_PENDING_FLUSH,
               LS_PENDING_SINK, LS_PENDING_STOP } pending;
        int holds;                      /* what is lent comes back when it goes */
        pid_t lent[LS_LENT_MOST];
        unsigned n_lent;
        char sink[LS_SERVICE_NAME];     /* to be flushed too; "" = none */
        uint64_t flush_ms, sink_failures;       /* until when; how often it had failed or refused */
        unsigned *flush_from;           /* commits of each watched process when the flush began */
};

struct ls_seen {                        /* a process that no rule names */
        pid_t pid;
        uint64_t start_ticks;
        char comm[LS_COMM];
        uint64_t first_ns;
};

struct ls_daemon {
        const char *config_path;
        int must_exist, user;
        char own_exe[PATH_MAX];
        struct ls_config config;
        struct ls_store store;
        struct ls_watched *watched[LS_WATCHED_MOST];
        unsigned n_watched, left_out;   /* left_out: named by rules, beyond LS_WATCHED_MOST */
        struct ls_serving *servings;    /* [LS_SERVICES_MOST + 1] */
        unsigned n_servings;
        struct ls_seen *seen;           /* in the order of pids */
        size_t n_seen;
        struct ls_firing firings[LS_RULES_MOST];
        unsigned n_firings;
        struct ls_sending sendings[LS_SINKS_MOST];
        unsigned n_sendings;
        struct {
                pid_t pid;              /* 0 = none */
                pid_t stops;            /* process that it stops to take its stack, 0 = none */
                uint64_t until_ns;
                char rule[LS_SERVICE_NAME];
        } commands[LS_COMMANDS_MOST];
        struct ls_keeping keeping[LS_KEEPINGS_MOST];
        struct ls_operation operations[LS_OPERATIONS_MOST];
        uint64_t n_operations;          /* begun so far */
        struct ls_web *web;             /* NULL = none */
        uint64_t usage_ns;
        struct ls_client clients[LS_CLIENTS_MOST];
        int signal_fd, listener;
        char *made_socket;              /* to be removed at the end */
        uint64_t start_ns, next_scan_ns, next_work_ns, next_prune_ns;
        struct mnl_socket *events;      /* of the kernel; NULL = none */
        int events_heard;               /* the kernel has said that it tells */
        unsigned looks;                 /* that events have brought, since looks_ns */
        uint64_t looks_ns;
        const char *pressure;           /* NULL = none */
        int full;                       /* the store's disk has no room */
        uint64_t full_since_ns, full_ns;
        pid_t merger;                   /* 0 = none */
        struct ls_window window;        /* that it merges */
        struct ls_chunks inputs;        /* what was in it when it began */
        struct ls_window unmerged[16];  /* the last that could not be merged: level 0 = none */
        unsigned n_unmerged;
        uint64_t merged_until_ms;       /* what begins before it may be of a time that is merged, or
                                         * being merged */
        uint64_t merged_chunks;
        uint64_t cost_ns, cost_own_ns;  /* the last overhead-window ended then; own CPU time then */
        uint64_t host_ppm;              /* what all recordings take of the host */
        uint64_t slowed, quickened;     /* intervals that were doubled, that came back */
        uint64_t dropped_ticks;         /* by recorders, for lack of disk space */
        struct ls_kept kept;            /* when it was counted last, as are */
        uint64_t stored_chunks, stored_bytes, oldest_ms;
        uint64_t pruned_chunks, pruned_bytes, commit_errors;
        char commit_error[512];
        int stopping;
};

uint64_t ls_daemon_now(void);
/* A line on stderr: "[ luasample: ... ]". */
void ls_daemon_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* supervisor.c: runs until it is told to stop. Returns the exit status. */
int ls_supervise(struct ls_daemon *d);
/* The configuration anew. Returns 0, or -errno with the first error in why: then the old one
 * stays. */
int ls_daemon_reload(struct ls_daemon *d, char *why, size_t size);
struct ls_watched *ls_daemon_find(struct ls_daemon *d, pid_t pid);
const struct ls_service *ls_daemon_service(const struct ls_daemon *d, const char *name,
                                           struct ls_service *of_attached);

/* scan.c */
void ls_daemon_scan(struct ls_daemon *d);
/* At one process, now. */
void ls_scan_look(struct ls_daemon *d, pid_t pid);
/* Those that have ended, and are recorded no more. */
void ls_scan_forget(struct ls_daemon *d);
/* ctl attach PID. Returns 0 or -errno. */
int ls_scan_attach(struct ls_daemon *d, pid_t pid);
void ls_scan_done(struct ls_daemon *d);

/* events.c: the kernel says which programs begin and end, where that is permitted. */
void ls_events_open(struct ls_daemon *d);
int ls_events_fd(const struct ls_daemon *d);             /* -1 = none */
void ls_events_read(struct ls_daemon *d);
void ls_events_done(struct ls_daemon *d);

/* decide.c */
struct ls_serving *ls_serving(struct ls_daemon *d, const char *name);
void ls_decide(struct ls_daemon *d);
void ls_watch_state(struct ls_watched *w, enum ls_watch_state state, const char *reason);
/* Records it closely for a while. Returns 0, or -EBUSY: it is not being recorded, is already, or
 * too many are. */
int ls_decide_burst(struct ls_daemon *d, struct ls_watched *w);
/* Its recorder has ended; status as waitpid has it. */
void ls_decide_ended(struct ls_daemon *d, struct ls_watched *w, int status);

/* recorder.c */
int ls_recorder_start(struct ls_daemon *d, struct ls_watched *w);
void ls_recorder_end(struct ls_watched *w, const char *reason);
void ls_recorder_listen(struct ls_daemon *d, struct ls_watched *w);
/* The interval of its samples now. */
uint64_t ls_recorder_interval(const struct ls_watched *w, const struct ls_service *s);
/* Says a line to its recorder. Returns the connection, where the answer comes, or -errno. */
int ls_recorder_ask(const struct ls_watched *w, const char *line);
void ls_recorder_flush(struct ls_watched *w);
/* Closes what is left of one that was reaped. */
void ls_recorder_done(struct ls_daemon *d, struct ls_watched *w);

/* cost.c: asks what the recordings cost, and changes their intervals. */
void ls_cost(struct ls_daemon *d);
/* Its recorder has ended. */
void ls_cost_forget(struct ls_watched *w);

/* tells.c: marks and counters of rules. The n-th (from 0) of a service as a word for its recorder,
 * NULL = there is none. */
char *ls_tells_word(const struct ls_config *c, const char *service, unsigned n);
int ls_tells_same(const struct ls_config *x, const struct ls_config *y, const char *service);
/* A line of a recorder, behind "[ luasample: tell ". */
void ls_tells_line(struct ls_daemon *d, struct ls_watched *w, const char *text);
/* The counter of a rule (its index) that is over its number, or NULL. */
const char *ls_tells_hold(const struct ls_config *c, const struct ls_watched *w, unsigned rule);

/* triggers.c: [rule NAME]. */
void ls_triggers(struct ls_daemon *d);
/* It has come true. why: at most LS_WHY bytes of words for people. */
#define LS_WHY 288u
void ls_triggers_fire(struct ls_daemon *d, const struct ls_when *r, struct ls_watched *w,
                      const char *why);
/* A process that a rule may be for has ended; status as waitpid has it. */
void ls_triggers_exit(struct ls_daemon *d, struct ls_watched *w, int status);
/* Whether a stack of the process is being taken: an agent can neither leave nor come meanwhile. */
int ls_triggers_stop(const struct ls_daemon *d, pid_t pid);
/* Returns 1 when it was a command of a rule. */
int ls_triggers_ended(struct ls_daemon *d, pid_t pid, int status);
struct ls_firing *ls_firing(struct ls_daemon *d, const char *name);

/* Keeps what was recorded in the last ms, of a process, 0 = of all of the service, in kept/NAME, as
 * soon as it is in the store. owner: the rule or service that wants it. Returns 0, or -errno with
 * why: LS_KEEPINGS_MOST wait already, or too much is kept. */
int ls_triggers_keep(struct ls_daemon *d, const struct ls_keeping *k, uint64_t ms, char *why,
                     size_t size);
/* How much is kept. */
void ls_triggers_count(struct ls_daemon *d);

/* operations.c: the last LS_OPERATIONS_MOST. */
struct ls_operation *ls_operation_new(struct ls_daemon *d, const char *kind, const char *target);
struct ls_operation *ls_operation_find(struct ls_daemon *d, uint64_t id);
const char *ls_operation_state(const struct ls_daemon *d, struct ls_operation *o);

/* web.c: HTTP. Opens the sockets. Returns 0 or -errno, after a line. */
int ls_web_open(struct ls_daemon *d);
/* Takes what [http] of another configuration says, before it is taken. Returns 0, or -errno after a
 * line: then nothing has changed. */
int ls_web_reload(struct ls_daemon *d, const struct ls_config *c);
void ls_web_start(struct ls_daemon *d);
int ls_web_fd(const struct ls_daemon *d);                /* -1 = none */
/* Does what it was asked for, and starts the process when there is none. */
void ls_web_read(struct ls_daemon *d);
/* Returns 1 when it was one of its processes. */
int ls_web_ended(struct ls_daemon *d, pid_t pid, int status);
void ls_web_done(struct ls_daemon *d);

/* incoming.c: commits what recorders have finished, also of those that an earlier daemon left. */
void ls_incoming(struct ls_daemon *d);

/* merging.c: begins a merger when there is something to merge; its end, status as waitpid has
 * it. */
void ls_merging(struct ls_daemon *d);
void ls_merging_ended(struct ls_daemon *d, int status);
void ls_merging_stop(struct ls_daemon *d);

/* sinks.c: [sink NAME]. */
void ls_send(struct ls_daemon *d);
/* What the store has, and what of it is to be sent, for ctl status. */
void ls_send_count(struct ls_daemon *d);
/* Returns 1 when it was a child of a sink; status as waitpid has it. */
int ls_send_ended(struct ls_daemon *d, pid_t pid, int status);
void ls_send_stop(struct ls_daemon *d);
/* NULL = there are too many. */
struct ls_sending *ls_sending(struct ls_daemon *d, const char *name);

/* pressure.c: why nothing should be attached to now, or NULL. Of /proc/meminfo and
 * /proc/pressure/memory. */
const char *ls_pressure(const char *meminfo, const char *psi);

/* notify.c: "READY=1" and the like for systemd, if it wants to hear. */
void ls_notify(const char *state);

/* socket.c */
int ls_socket_open(struct ls_daemon *d);
unsigned ls_socket_poll(struct ls_daemon *d, struct pollfd *p);
void ls_socket_handle(struct ls_daemon *d, uint64_t now);
void ls_socket_done(struct ls_daemon *d);
/* A socket of systemd's: 0 = that of ctl, 1 = that of HTTP. Returns the descriptor or -1. */
int ls_socket_inherited(int which);
/* Makes the directory of a socket, and checks whose it is. Returns 0, or -errno after a line. */
int ls_socket_directory(const char *path);
/* Answers: text is taken (to be freed by the socket); error gets "error: " before it. */
void ls_socket_answer(struct ls_client *c, char *text);
void ls_socket_error(struct ls_client *c, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));

/* requests.c: does what a line asks for. */
void ls_request(struct ls_daemon *d, struct ls_client *c, char *line);
/* Those that wait for something. */
void ls_request_pending(struct ls_daemon *d, struct ls_client *c, uint64_t now);
void ls_request_gone(struct ls_daemon *d, struct ls_client *c);
/* Which processes are lent now; after a look for programs, too. */
void ls_request_lent(struct ls_daemon *d);

#endif
