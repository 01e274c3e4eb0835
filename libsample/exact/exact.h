/* Exact counts of a VM's bytecodes, with the JIT compiler on. The interpreter counts in cells of
 * shared memory by stubs in the VM's dispatch tables (stubs.c); compiled code by counters at a
 * trace's head, at its loop and at its exits (sites.c), from which and from the order in which its
 * bytecodes were recorded (traces.c) the rest follows (formats/exact/flow.c). What is written is in
 * formats/wire/exact.h. docs/exact.md.
 *
 * Called by vm/counting.c, and by tests/exact/truth.c, in the VM's own thread and normal context,
 * but for ls_exact_after_fork. */
#ifndef LS_LIBSAMPLE_EXACT_EXACT_H
#define LS_LIBSAMPLE_EXACT_EXACT_H

#include <stdint.h>

typedef struct lua_State lua_State;
struct ls_exact;

/* Finds the dispatch tables in the probe's VM and patches the function that rewrites them. Where
 * ls_vm_probe has found nothing wrong, after ls_jit_probe. Protected by the caller. */
void ls_exact_probe(lua_State *L);
/* NULL = verified, else why bytecodes cannot be counted, in compiled code too when that is asked
 * for; for people. */
const char *ls_exact_why_not(int compiled);

/* Maps the memory of the process's counts from fd, a file of LS_EXACT_SIZE bytes; near: an address
 * of the window that has cells. Returns 0 or -errno: -EBUSY when another image has counted
 * there. */
int ls_exact_map(int fd, uintptr_t near);

/* Measures in a VM of our own, which has nothing but Lua's base functions, what watching a call
 * costs, once. After ls_exact_map, before a VM is opened with LS_EXACT_TIME. */
void ls_exact_calibrate(lua_State *L);

/* Counts what L's VM does from now on; want: enum ls_exact_want. Returns NULL when it cannot, with
 * why. */
struct ls_exact *ls_exact_open(lua_State *L, uint32_t vm_id, unsigned want, const char **ret_why);
/* After lua_close: finalizers are counted too. */
void ls_exact_close(struct ls_exact *exact);
/* The same for the VM of this global_State and number, if it is counted. */
void ls_exact_closed(const char *global, uint32_t vm_id);
/* In a forked child: what it does is counted in memory of its own, which nobody reads. */
void ls_exact_after_fork(void);

/* Every number of how the counting went. */
struct ls_exact_figures { uint64_t updates, traces, aborts, flushes, no_head, no_loop; };
const struct ls_exact_figures *ls_exact_figures(const struct ls_exact *exact);

#endif
