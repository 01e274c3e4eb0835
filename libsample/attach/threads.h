/* Threads of a process that runs already: nobody tells the agent when one begins or ends. Called by
 * attach.c, in its own thread, and by the tick's handler. */
#ifndef LS_LIBSAMPLE_ATTACH_THREADS_H
#define LS_LIBSAMPLE_ATTACH_THREADS_H

/* Gives a ring to each thread that has none and takes it from those that have ended. */
void ls_attach_threads_refresh(void);
/* Ends all, with the ticks stopped and their signal gone: waits until no handler runs. The calling
 * thread's own ring is left. */
void ls_attach_threads_end(void);
/* Where the C library's thread data have the thread's id: before any tick. */
void ls_attach_threads_begin(unsigned tid_offset);
/* 1 when the thread that runs has thread data of its own: one that a bare clone made may have none,
 * or another's, and all that is __thread is there. Uses none itself. For ls_tick_has_data. */
int ls_attach_threads_have_data(void);
/* At the first tick of a thread: finds what was made for it. For ls_tick_newcomer. */
struct ls_thread *ls_attach_threads_newcomer(const void *context);

#endif
