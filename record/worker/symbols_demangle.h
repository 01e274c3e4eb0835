/* Names of functions as people write them. Called by symbols.c. */
#ifndef LS_RECORD_WORKER_SYMBOLS_DEMANGLE_H
#define LS_RECORD_WORKER_SYMBOLS_DEMANGLE_H

#include <stddef.h>

/* Copies a symbol's name so. */
void ls_symbols_demangle(const char *symbol, char *ret_name, size_t size);

#endif
