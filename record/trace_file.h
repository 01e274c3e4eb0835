/* The trace file: opened before the program starts, an existing one kept as FILE.old. Called by the
 * session. */
#ifndef LS_RECORD_TRACE_FILE_H
#define LS_RECORD_TRACE_FILE_H

#include <sys/types.h>

#define LS_TRACE_STDOUT "-"

struct ls_trace_file {                  /* what was done when it was opened */
        int made;                       /* there is a new file, which is this one: */
        dev_t dev;
        ino_t ino;
        int kept;                       /* what was there before is FILE.old now */
};

/* stdout is taken over for LS_TRACE_STDOUT: what else is written there then goes to stderr. Its
 * name in messages: */
const char *ls_trace_file_name(const char *path);
/* Returns the descriptor (close-on-exec, mode 0600), or -errno after one line that says what is
 * wrong. */
int ls_trace_file_open(const char *path, struct ls_trace_file *ret);
/* The program could not be started: removes the file that was made, and puts back what was kept for
 * it. */
void ls_trace_file_undo(const char *path, const struct ls_trace_file *file);

#endif
