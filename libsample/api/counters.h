/* Counters of the program: see counters.c. */
#ifndef LS_LIBSAMPLE_API_COUNTERS_H
#define LS_LIBSAMPLE_API_COUNTERS_H

#include <stddef.h>

/* A counter of the process has this value from now on. NaN and infinities are no values. */
int ls_control_counter(const char *name, size_t len, double value);

#endif
