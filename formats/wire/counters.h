/* The counters of a process: a table in its memory, behind the control page. The agent names them
 * and keeps their last values there, whatever went into a ring; the recorder reads both, and trusts
 * neither. */
#ifndef LS_WIRE_COUNTERS_H
#define LS_WIRE_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#define LS_COUNTERS     128u            /* of a process */
#define LS_COUNTER_NAME 216u            /* bytes of a name that count */

struct ls_counter {
        _Atomic uint64_t value;         /* the last: bits of a double. Two threads that count at one
                                         * instant may mix value */
        _Atomic uint64_t time_ns;       /* and time. CLOCK_MONOTONIC, 0 = none yet */
        _Atomic uint64_t sent_ns;       /* agent: of the last one that went into a ring */
        _Atomic uint32_t named;         /* bytes of its name + 1, stored last; 0 = it has none
                                         * yet */
        uint32_t pad[3];
        char name[LS_COUNTER_NAME];
};
_Static_assert(sizeof(struct ls_counter) == 256, "a counter is 256 bytes");

#endif
