/* Default paths, at which the daemon, its clients and the readers of its store meet. Used
 * by daemon/, store/, record/ and report/. */
#ifndef LS_CLI_PLACES_H
#define LS_CLI_PLACES_H

/* user: those of one user's own daemon, else those of the host's. To be freed; NULL = no memory, or
 * a user without a home (socket: without XDG_RUNTIME_DIR). */
char *ls_place_config(int user);
char *ls_place_store(int user);
char *ls_place_socket(int user);

/* Path for a client that names none: LUASAMPLE_STORE or LUASAMPLE_SOCKET when it is set; for root
 * the host's, for others their own if it is there, else the host's. To be freed; NULL = none (an
 * empty LUASAMPLE_SOCKET, or no memory). */
char *ls_place_of_store(void);
char *ls_place_of_socket(void);

#endif
