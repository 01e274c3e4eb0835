/* The client's end of the daemon's control socket. Used by ctl, and by recorders that want a
 * process which the daemon records. */
#ifndef LS_DAEMON_CLIENT_CLIENT_H
#define LS_DAEMON_CLIENT_CLIENT_H

/* Sends a request to the socket and waits for its answer, at most 30 s: *ret_answer is what stands
 * behind "ok ", or the error; to be freed. Returns the connection, which is the caller's, or
 * -errno: -EPROTO when the answer is an error (*ret_answer says which), others with *ret_answer
 * NULL. */
int ls_client_ask(const char *socket_path, const char *request, char **ret_answer);

/* Asks the daemon, if one is there, to lend these processes ("1234,1235") until this one ends.
 * Where none is, or none of them is the daemon's, nothing happens. */
void ls_client_borrow(const char *pids);

#endif
