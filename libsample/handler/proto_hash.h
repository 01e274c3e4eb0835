/* Hash of a function's definition. Called by functions.c; any context. */
#ifndef LS_PROTO_HASH_H
#define LS_PROTO_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Of a GCproto: the same whether its loops are compiled or not, never 0. A few ns an instruction;
 * in the middle of a function of more than 8192 instructions or constants a change does not
 * show. */
uint64_t ls_proto_hash(const char *pt);
/* Of bytes; of long ones the first and the last 128 KiB count, and the length. */
uint64_t ls_bytes_hash(const char *s, size_t len);
/* The same of bytes of the VM's. */
uint64_t ls_text_hash(const char *s, size_t len);

#endif
