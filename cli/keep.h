/* A command goes on in a copy that gives up its rights. Used by luasample.c. */
#ifndef LS_CLI_KEEP_H
#define LS_CLI_KEEP_H

/* Forks: the child calls drop, and goes on with its result; the process that was there waits, does
 * what the child asks for, and ends as the child does. Returns 0 or -errno. One thread. */
int ls_keep(int (*drop)(void));

#endif
