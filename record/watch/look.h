/* One thread of the program, read from outside: its tables, its ring, its stack. Called by
 * watch.c. */
#ifndef LS_RECORD_WATCH_LOOK_H
#define LS_RECORD_WATCH_LOOK_H

#include "libsample/handler/tick.h"

struct ls_look;

/* The image that the program runs now: what the agent has published is read. Returns 0; -EAGAIN:
 * there is nothing yet; -EPROTO: the agent is of another build; else as ls_mirror_open. shm: of the
 * recording. */
int ls_look_image(struct ls_shm *shm, pid_t pid);

/* What is kept of a thread. tid: as it knows itself; stat_fd: its stat file in /proc, which has its
 * name, -1 = none: asked now and by ls_look_send; ring: the agent's, whose place a thread has; own:
 * the ring for what is found. NULL = no memory. */
struct ls_look *ls_look_new(unsigned index, int tid, int stat_fd, struct ls_ring *ring,
                            struct ls_ring *own);
void ls_look_free(struct ls_look *l);

/* Sends the stack of the thread, which is blocked there, with so many wall ticks. still: asked at
 * the end whether it is so. Returns 0; 1 = the program does not want this time recorded; -1 = it
 * could not be read or sent. */
int ls_look_send(struct ls_look *l, uintptr_t ip, uintptr_t sp, uint32_t ticks, uint64_t time_ns,
                 uint64_t cpu_ns, int (*still)(void *ctx), void *ctx);
/* For a process without an agent: its VMs and ls_vm_facts are filled in by the caller. Returns as
 * ls_mirror_open. */
int ls_look_foreign(struct ls_shm *shm, pid_t pid);
/* Sends the stack of a thread that stands still, as one tick. Returns 0 or -1. */
int ls_look_now(struct ls_look *l, const struct ls_regs *regs, int blocked, uint64_t time_ns);
/* The same for a coroutine that nobody runs. */
int ls_look_coroutine(struct ls_look *l, const struct ls_vm *vm, const lua_State *L,
                      uint64_t time_ns);

/* For suspended.c: the VMs as they are now, in ls_vms. Returns 0 or -1. */
int ls_look_vms(struct ls_look *l);
/* The tables and the ring. */
struct ls_thread *ls_look_thread(struct ls_look *l);
/* Calls fn, which reads the program's memory and sends what it finds by that thread. Returns what
 * fn returned; -EFAULT or -ETIME (mirror.h): it was left half way, and no id that the tables gave
 * means anything any more. */
int ls_look_with(struct ls_look *l, int (*fn)(void *arg), void *arg);

/* Sends wall ticks with the stack that another sample has. Returns 0 or -1. */
int ls_look_send_like(struct ls_look *l, enum ls_like like, uint32_t ticks, uint64_t time_ns,
                      uint64_t cpu_ns);

#endif
