/* The recorder's own descriptors: where they are, and how many there may be. Called by all that
 * open some. */
#ifndef LS_RECORD_PROCESS_DESCRIPTORS_H
#define LS_RECORD_PROCESS_DESCRIPTORS_H

/* A descriptor above those of stdin, stdout and stderr, which may be closed and are the program's:
 * takes fd. Returns it or -errno; passes errors of fd on. */
int ls_fd_above_stdio(int fd);
/* So many descriptors may be open, if the hard limit allows it. The program has its own limit: it
 * was forked before. */
void ls_allow_files(unsigned n);

#endif
