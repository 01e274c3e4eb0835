/* The processes of a recording: takes those in that have come, and lets those go that have
 * ended. The first one stays to the end. Called by loop.c and what begins recordings, in the
 * recorder's main thread. */
#ifndef LS_RECORD_PROCESSES_H
#define LS_RECORD_PROCESSES_H

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

struct ls_session;

/* The way to the registry goes into the program's memory, unless children are not followed.
 * Returns 0 or -errno. */
int ls_processes_init(struct ls_session *s);
void ls_processes_done(struct ls_session *s);
struct ls_target;
/* Finds the agent, for s->agent. Returns 0, or -errno after a line. */
int ls_processes_agent(struct ls_session *s);
/* A process becomes one of the recording, which takes t then. Returns 0 or -errno: -E2BIG there
 * are too many. */
int ls_processes_begin(struct ls_session *s, struct ls_target *t, pid_t pid);
/* From now on children may come. */
void ls_processes_open(struct ls_session *s);
/* Takes in, names, and lets go. */
void ls_processes_look(struct ls_session *s, uint64_t now_ns);
/* What becomes readable when there is something to look at; p has room for LS_TARGETS_MAX + 1.
 * Returns how many. */
unsigned ls_processes_poll(const struct ls_session *s, struct pollfd *p);
/* Processes that are recorded and have not ended. */
unsigned ls_processes_left(const struct ls_session *s);
/* 1 when processes say that children of theirs are on their way. */
int ls_processes_come(const struct ls_session *s);
/* 1 when pid is recorded. session: as a callback has it. */
int ls_processes_has(void *session, pid_t pid);
/* The recording ends: all do. */
void ls_processes_finish(struct ls_session *s);

#endif
