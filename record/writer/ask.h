/* What the writer needs of the recorder's rights: it asks, and waits. Called by main.c, and by what
 * is told to ask here in place of the kernel (record/process/proc.h, record/worker/worker.h).
 * answer.c is the other side. */
#ifndef LS_RECORD_WRITER_ASK_H
#define LS_RECORD_WRITER_ASK_H

#include <stdint.h>

struct ls_workers;

/* From now on questions go over this socket. servers: as in struct ls_out_setup. Returns the
 * workers that can be asked, NULL = no memory. */
struct ls_workers *ls_ask_begin(int socket, int servers);
/* In a copy of the writer: nobody answers. */
void ls_ask_end(void);
/* A line for people, once. ctx: as a callback has it; not used. */
void ls_ask_notice(void *ctx, const char *text);
/* A target without a name fills its rings. */
void ls_ask_look(void);

#endif
