/* Work that a command which has given up its rights leaves to the process that it was forked from:
 * files of -o, and the pager. keep.h: that process. Used by cli/. */
#ifndef LS_CLI_KEEPER_H
#define LS_CLI_KEEPER_H

#include <stdint.h>

#define LS_KEEPER_PARTS 100000u

#define LS_KEEPER_PATH 4096u            /* of a text, with its end */
#define LS_KEEPER_TEXTS_WRONG 10000u    /* that are not as was said: no more are looked at then */
#define LS_KEEPER_TEXT_MOST (256u << 20)

enum ls_keeper_what { LS_KEEPER_OPEN, LS_KEEPER_CLOSE, LS_KEEPER_PAGER, LS_KEEPER_TEXT };

struct ls_keeper_question {             /* answered by 0 or -errno, and perhaps a descriptor */
        uint32_t what;
        uint32_t value;                 /* OPEN: the part, 0 = the whole; CLOSE: failed */
        uint32_t umask;                 /* OPEN: of the file, beside that of the command */
        uint64_t size, hash;            /* TEXT: of the file whose path follows */
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
/* A descriptor of the bytes of a file that this process may not open, or -errno: only of one whose
 * size and XXH64 it can say, so it learns nothing. -ESTALE: another file has that name now. */
int ls_keeper_text(const char *path, uint64_t size, uint64_t hash);
/* Stdout goes to the pager, when it is a terminal. */
void ls_keeper_pager(void);

#endif
