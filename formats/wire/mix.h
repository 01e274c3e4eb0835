/* The mix of all tables that are hashed by hand: those of the agent, which has libc alone, and
 * those that are looked up for each frame or word. The high bits of the product are the good
 * ones. */
#ifndef LS_FORMATS_WIRE_MIX_H
#define LS_FORMATS_WIRE_MIX_H

#include <stdint.h>

static inline uint64_t ls_mix(uint64_t key)
{
        return key * UINT64_C(0x9e3779b97f4a7c15);      /* 2^64 by the golden ratio */
}

#endif
