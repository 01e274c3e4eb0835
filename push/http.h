/* Requests to a store: see http.c. Called by push/command.c. */
#ifndef LS_PUSH_HTTP_H
#define LS_PUSH_HTTP_H

#include "push/sink.h"

/* Loads what libcurl will need, while files may still be opened with the user's rights. */
void ls_push_http_begin(void);
/* Sends one request. Returns 0, or -errno: nothing was tried. */
int ls_push_http(const struct ls_push *p, const struct ls_buf *body, struct ls_answer *ret);

#endif
