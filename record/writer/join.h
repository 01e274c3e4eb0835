/* The pieces of a flight recording, in one trace. Called by ops.c. */
#ifndef LS_RECORD_WRITER_JOIN_H
#define LS_RECORD_WRITER_JOIN_H

#include "record/writer/serve.h"

/* Samples of a trace that this writer has written, under its ids. Returns 0 or -errno. */
int ls_serve_piece(struct ls_serve *s, int fd);
/* What all pieces have of each process. */
void ls_serve_pieces_end(struct ls_serve *s);

#endif
