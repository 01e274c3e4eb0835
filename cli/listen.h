/* Sockets with a name in the file system, which programs of one user ask. Used by daemon/ and
 * record/. */
#ifndef LS_CLI_LISTEN_H
#define LS_CLI_LISTEN_H

/* Binds and listens for most clients: its owner alone may connect. A socket at path that its
 * process left behind, and that nobody listens to any more, is replaced; nothing else is. fd: of
 * socket(AF_UNIX), stays the caller's. Returns 0 or -errno: -EADDRINUSE = there is something,
 * -ENAMETOOLONG. Not while other threads make files: umask(2) is the process's. */
int ls_listen_at(int fd, const char *path, int most);

#endif
