/* Code that inject.c puts into the program: position-independent, and calls only what struct
 * ls_attach names.
 *
 * It begins where the first thread of ours comes from way.c. That has no thread data of the C
 * library's own but zeros (enough for pthread_create), makes a proper thread, and ends. That one
 * makes the memory files, waits until the recorder has filled them, loads the agent, and jumps to
 * its entry, which unmaps all of this; where that does not come about it closes the files and has
 * the C library unmap it. */
#ifndef LS_RECORD_ATTACH_STUB_H
#define LS_RECORD_ATTACH_STUB_H

extern const char ls_attach_stub[], ls_attach_stub_end[];

#endif
