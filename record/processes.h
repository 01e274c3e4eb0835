/* The processes of a recording beyond the program itself: takes those in that have come, and lets those go that have ended.
 * Called by session.c, in the recorder's main thread. */
#ifndef LS_RECORD_PROCESSES_H
#define LS_RECORD_PROCESSES_H

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

struct ls_session;

/* The way to the registry goes into the program's memory, unless children are not followed. Returns 0 or -errno. */
int ls_processes_init(struct ls_session *s);
void ls_processes_done(struct ls_session *s);
struct ls_target;
/* A process becomes one of the recording. Returns 0 or -errno. */
int ls_processes_begin(struct ls_session *s, struct ls_target *t, pid_t pid);
/* From now on children may come. */
void ls_processes_open(struct ls_session *s);
/* Takes in, names, and lets go. */
void ls_processes_look(struct ls_session *s, uint64_t now_ns);
/* Each second. */
void ls_processes_second(struct ls_session *s);
/* What becomes readable when there is something to look at; p has room for LS_TARGETS_MAX + 1. Returns how many. */
unsigned ls_processes_poll(const struct ls_session *s, struct pollfd *p);
/* Processes other than the program that are recorded now. */
unsigned ls_processes_left(const struct ls_session *s);
/* 1 when processes say that children of theirs are on their way. */
int ls_processes_come(const struct ls_session *s);
/* 1 when pid is recorded. */
int ls_processes_has(const struct ls_session *s, pid_t pid);
/* The program has ended: its last records are taken. */
void ls_processes_root_ended(struct ls_session *s);
/* The recording ends: all do. */
void ls_processes_finish(struct ls_session *s);

#endif
