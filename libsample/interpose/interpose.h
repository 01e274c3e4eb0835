/* What the interposed functions, the entry patches and preload.c share. Not seen by the engine. */
#ifndef LS_LIBSAMPLE_INTERPOSE_INTERPOSE_H
#define LS_LIBSAMPLE_INTERPOSE_INTERPOSE_H

#include <signal.h>
#include <sys/types.h>

#include "libsample/agent.h"
#include "libsample/inject/environment.h"
#include "libsample/inject/objects.h"
#include "libsample/recording/preload.h"

/* process.c: what makes this process a recorded one. */
/* The constructor: memory says whose it is. Leaves the process as it is when that cannot be had. */
void ls_process_start(const struct ls_env_memory *memory);
/* Gives this process, a child that has or will have a VM, memory of its own. Returns 1 when it is
 * recorded. At once, but for at most 100 ms when many ask; async-signal-safe. */
int ls_process_join(void);
/* 1 when this process is not recorded, but may join. In a child of vfork, which shares its parent's
 * memory, it is 0. */
int ls_process_may_join(void);
/* Children are on their way (n 1), or are there, or did not come (-1). */
void ls_process_child_comes(int n);
/* In the child, for which that was said: it has memory by now, or may yet ask for some when it
 * makes a VM or execs. */
void ls_process_child_is_here(void);
extern int ls_process_has_left;         /* process.c: 1 = it, and what it forks, is left alone */
/* 1 when the agent has something to do in this process: it is recorded, or passes itself on to
 * children. */
static inline int ls_process_is_known(void)
{
        return !ls_process_has_left && (ls_agent.shm || ls_preload.registry.pid);
}

/* Leaves it alone from now on, once nothing samples any more; quiet: no tick comes any more. */
void ls_process_leave(int quiet);

/* process.c: hears of children made by fork, for good. */
void ls_process_watch_forks(void);
/* process.c: a word, zero, that the kernel zeroes in forked children, raw clone included. NULL = it
 * cannot be had. */
volatile uint64_t *ls_process_make_generation(void);

/* signal.c: the program's own disposition of LS_TICK_SIGNAL, kept beside the agent's. */
/* ignored: the signal may be ignored because the program wants it so; else it is because the agent
 * in the image before this one had to ignore it until exec was over. */
void ls_signals_start(int ignored);
/* 1 when the program ignores the tick's signal. */
int ls_signals_ignored(void);
/* Gives the kernel the program's disposition; a tick that is pending anywhere in the process is
 * discarded first. */
void ls_signals_end(void);
/* Gives the kernel the program's disposition: in a forked child. */
void ls_signals_after_fork(void);
/* Before exec: an ignored signal stays ignored in the new image, where a handled one does not. Puts
 * the action that it replaced into *ret_old and returns 1 when there was something to do. */
int ls_signals_before_exec(struct sigaction *ret_old);
/* A tick signal that the program or another process sent: does what the program's own disposition
 * says. Called by the tick's handler for a signal that is not the timer's. */
void ls_signals_foreign(int sig, siginfo_t *info, void *context);

/* spawn.c: tells the recorder that a child runs file, if that is LuaJIT. search_path as in
 * inspect.h. Async-signal-safe; in a child too. Keeps errno. */
void ls_note_child(pid_t pid, const char *file, const char *search_path);
/* The same for the program that a shell command starts with: settings of variables and "exec" are
 * skipped. Only as good as needed to tell that a LuaJIT is run. */
void ls_note_command(pid_t pid, const char *command);
/* The same for a shell with the command that argv gives it ("-c"). */
void ls_note_shell(pid_t pid, char *const argv[]);

/* library.c: looks for lua_newstate in what is loaded and patches the first that has it; sends what
 * is new of the mappings. in_constructor: no other thread runs yet. Cheap when nothing was loaded
 * since. Normal context. */
void ls_vm_library_scan(int in_constructor);
/* Takes the patches back: the attachment ends. */
void ls_vm_library_leave(void);
/* In a forked child: no other thread scans. */
void ls_vm_library_after_fork(void);
/* Fills ls_lua from this object. Normal context. */
void ls_vm_library_resolve(const struct ls_object *object);

/* exec.c: the environment of a child that is to run file, with the agent in it when the child can
 * hold it, and can find the recorder; else env itself. *made is for ls_env_done; when there is
 * something in it the child is on its way. search_path and flags as in inspect.h. */
char *const *ls_env_of_child(const char *file, const char *search_path, unsigned flags,
                             char *const env[], struct ls_env *made);

#define LS_SHELL "/bin/sh"              /* of system and popen */

/* popen.c: in a forked child no other thread is in popen. */
void ls_popen_after_fork(void);

/* wait.c: 1 once the program asked for a timeout on a socket. */
extern int ls_socket_timeouts;

#endif
