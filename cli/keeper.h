/* Work that a command which has given up its rights leaves to the process that it was forked from:
 * files of -o, and the pager. keep.h: that process. Used by cli/. */
#ifndef LS_CLI_KEEPER_H
#define LS_CLI_KEEPER_H

#include <stdint.h>

#define LS_KEEPER_PARTS 100000u

enum ls_keeper_what { LS_KEEPER_OPEN, LS_KEEPER_CLOSE, LS_KEEPER_PAGER };

struct ls_keeper_question {             /* answered by 0 or -errno, and perhaps a descriptor */
        uint32_t what;
        uint32_t value;                 /* OPEN: the part, 0 = the whole; CLOSE: failed */
        uint32_t umask;                 /* OPEN: of the file, beside that of the command */
};

/* The value of -o, which is known before rights are given up: no other file is written. Borrowed
 * until the process ends. */
void ls_keeper_name(const char *path);
const char *ls_keeper_named(void);
/* From now on there is one, at the other end of this socket. */
void ls_keeper_use(int fd);
/* Whether this process has such a one. */
int ls_keeper_there(void);
/* Opens the file that was named, or its part "PATH-NN"; one at a time. Returns a descriptor or
 * -errno. */
int ls_keeper_open(const char *path);
/* Gives it its name, or leaves that of before with failed set. The own descriptor is closed first.
 * Returns 0 or -errno. */
int ls_keeper_close(int failed);
/* Stdout goes to the pager, when it is a terminal. */
void ls_keeper_pager(void);

#endif
