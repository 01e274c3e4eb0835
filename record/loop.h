/* The loop of a recording: of a program that it starts, of the children of that, of processes
 * that run already. Called by record.c. */
#ifndef LS_RECORD_LOOP_H
#define LS_RECORD_LOOP_H

struct ls_record_options;

/* Records what o asks for. Returns the status to exit with. */
int ls_loop_run(const struct ls_record_options *o);

#endif
