/* Hash of a function's definition. Called by functions.c; normal context, the sampled thread. */
#ifndef LS_PROTO_HASH_H
#define LS_PROTO_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Of a GCproto: the same whether its loops are compiled or not, never 0. A few ns an instruction. */
uint64_t ls_proto_hash(const char *pt);
uint64_t ls_bytes_hash(const char *s, size_t len);

#endif
