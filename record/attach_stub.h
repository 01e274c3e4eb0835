/* Code that attach_inject.c puts into the program: position-independent, and calls only what struct ls_attach names.
 *
 * Its first instruction is a system call that a thread of the program is made to execute: clone. The new thread has no
 * thread data of the C library's own but zeros (enough for pthread_create), makes a proper thread, and ends. That one makes the
 * memory files, waits until the recorder has filled them, loads the agent, and jumps to its entry, which unmaps all of this. */
#ifndef LS_RECORD_ATTACH_STUB_H
#define LS_RECORD_ATTACH_STUB_H

extern const char ls_attach_stub[], ls_attach_stub_end[];

#endif
