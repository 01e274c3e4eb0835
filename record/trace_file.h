/* The trace file: opened before the program starts, an existing one kept as FILE.old. Called by the session. */
#ifndef LS_RECORD_TRACE_FILE_H
#define LS_RECORD_TRACE_FILE_H

#define LS_TRACE_STDOUT "-"

/* stdout is taken over for LS_TRACE_STDOUT: what else is written there then goes to stderr. Its name in messages: */
const char *ls_trace_file_name(const char *path);
/* Returns the descriptor (close-on-exec, mode 0600), or -errno after one line that says what is wrong. */
int ls_trace_file_open(const char *path);
/* The program could not be started: removes the file again and puts FILE.old back. */
void ls_trace_file_undo(const char *path);

#endif
