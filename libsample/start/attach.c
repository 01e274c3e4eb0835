/* The agent in a process that runs already. record/attach/stub.c calls luasample_attach in a
 * thread that was made for it, which stays while the recording goes on, and vanishes with it.
 * Nothing in here runs on a thread of the program: it is read from outside, and its threads take
 * their samples in the tick's handler. The VMs are only read: no Lua function is called in them,
 * so their compiled code is known by the function that it starts in.
 *
 * What an attachment changes, and puts back when it ends: the first bytes of three functions of
 * LuaJIT, the disposition of the tick's signal, this thread, and with -e alloc and live the word of
 * each VM that is its allocator. What stays is inert: this
 * library, trampolines, and pages that hold zeros. */

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libsample/agent.h"
#include "libsample/attach/attached.h"
#include "libsample/attach/counted.h"
#include "libsample/attach/exec.h"
#include "libsample/attach/locked.h"
#include "libsample/attach/threads.h"
#include "libsample/handler/clock.h"
#include "libsample/handler/tick.h"
#include "libsample/inject/patch.h"
#include "libsample/interpose/interpose.h"
#include "libsample/libc/real.h"
#include "libsample/recording/mappings.h"
#include "libsample/recording/notice.h"
#include "libsample/recording/share.h"
#include "libsample/recording/threads.h"
#include "libsample/recording/tick_action.h"
#include "libsample/thread.h"
#include "libsample/vm/find.h"
#include "libsample/vm/life.h"

#define LOOK_NS UINT64_C(50000000)      /* between two looks at threads and libraries */
#define HOLD_NS UINT64_C(3000000000)    /* for the recorder to stop threads */
#define SILENT_NS UINT64_C(2000000000)  /* without a heartbeat the recorder is gone */
#define READ_NS UINT64_C(1000000000)    /* for the recorder to read why there is no agent */

LS_EXPORT void *luasample_attach(struct ls_attach *page);

static struct ls_shm *old_memory;       /* of the attachment before: zeros, an address that may be
                                         * used again */
static size_t old_size;

static void pause_ns(long ns)
{
        const struct timespec t = { 0, ns };

        nanosleep(&t, NULL);
}

static int map_memory(const struct ls_attach *a)
{
        static volatile uint64_t *generation;
        struct ls_shm *shm;
        uint64_t size;

        if (!generation)
                generation = ls_process_make_generation();
        if (!generation)
                return -ENOMEM;
        size = ls_share_sealed_size(a->fd_memory);
        shm = !size ? NULL
                    : ls_share_map_file(a->fd_memory, size, a->generation, (uint32_t)getpid(),
                                        old_size == size ? old_memory : NULL);
        if (!shm)
                return -EPROTO;
        if (old_memory && old_memory != shm)
                munmap(old_memory, old_size);
        old_memory = shm;
        old_size = (size_t)shm->total_size;
        ls_agent.pid = (int)getpid();
        ls_agent.attached = 1;
        ls_agent.generation = generation;
        ls_agent.shm = shm;
        ls_tick_recorder = (pid_t)shm->recorder_pid;
        ls_agent.mapped = old_size;
        *generation = a->generation;
        return 0;
}

static int begin(const struct ls_attach *a)
{
        int err;

        if (a->magic != LS_ATTACH_MAGIC || a->version != LS_ATTACH_VERSION)
                return -EPROTO;
        if (luasample_attach_status.preloaded || atomic_exchange(&ls_attach_taken, 1))
                return -EALREADY;
        err = map_memory(a);
        if (err < 0) {
                atomic_store(&ls_attach_taken, 0);
                return err;
        }
        ls_process_watch_forks();
        luasample_attach_status.heartbeat_at = (uintptr_t)&ls_agent.shm->heartbeat_ns;
        luasample_attach_status.pid = (uint32_t)ls_agent.pid;
        return 0;
}

/* The thread that made this one runs on the region, until it has ended. */
static void leave_region(const struct ls_attach *a)
{
        volatile uint32_t *tid = (volatile uint32_t *)(uintptr_t)a->carrier_tid;

        while (*tid)
                pause_ns(20000);
        munmap((void *)(uintptr_t)a->region, (size_t)a->region_size);
}

static void refuse(struct ls_attach *page, int err)
{
        const struct ls_attach a = *page;
        uint64_t start = ls_now_ns();

        page->go = 0;
        page->result = err;
        atomic_thread_fence(memory_order_seq_cst);
        page->state = LS_ATTACH_REFUSED;
        while (!page->go && ls_now_ns() - start < READ_NS)
                pause_ns(100000);
        leave_region(&a);
}

static void found(lua_State *L)
{
        ls_engine_vm_adopt(L);
}

/* Once there is a LuaJIT: what it looks like, and which VMs there are. */
static void look_for_vms(void)
{
        uint64_t start = ls_thread_cpu_ns();
        const char *why = ls_engine_attach();

        if (why) {
                ls_agent_notice("the Lua VMs in %s cannot be sampled in a running program: %s",
                                ls_lua.path, why);
                atomic_store(&ls_agent.shm->agent_state, LS_AGENT_REFUSED);
        } else {
                ls_find_vms(found);
                if (atomic_load(&ls_agent.shm->nvms))   /* a thread may have made one before there
                                                         * was a handler */
                        ls_threads_arm_all();
        }
        atomic_fetch_add(&ls_agent.shm->own_start_ns, ls_thread_cpu_ns() - start);
}

static const char not_held[] = "the threads that run could not be stopped outside of it";

/* Until the recorder has answered, or is gone. Returns the state. */
static uint32_t wait_for_answer(struct ls_shm *shm, uint32_t asked)
{
        const struct timespec look = { 0, (long)LOOK_NS };
        uint64_t end = ls_now_ns() + HOLD_NS;

        while (atomic_load(&shm->hold) == asked && ls_now_ns() < end &&
               !atomic_load(&shm->detach) && !ls_shm_recorder_has_ended(shm))
                syscall(SYS_futex, &shm->hold, FUTEX_WAIT, asked, &look, NULL, 0);
        return atomic_load(&shm->hold);
}

/* A thread that comes to a closed entry waits there: so the recorder is called first, which may
 * have other things to do. */
static const char *call_recorder(void)
{
        atomic_store(&ls_agent.shm->hold, LS_HOLD_WANTED);
        return wait_for_answer(ls_agent.shm, LS_HOLD_WANTED) == LS_HOLD_READY ? NULL : not_held;
}

/* The recorder looks where the program's threads are, and where that is needed stops them. */
static const char *hold(const struct ls_patch *patches, size_t n)
{
        struct ls_shm *shm = ls_agent.shm;
        uint32_t ranges = 0, state = LS_HOLD_READY;

        for (size_t i = 0; i < n && ranges < LS_HOLD_RANGES; i++)
                if (patches[i].target && patches[i].moved)
                        shm->hold_ranges[ranges++] = (struct ls_hold_range){
                                (uintptr_t)patches[i].target,
                                (uint32_t)patches[i].moved,
                                patches[i].closed != 0,
                                { patches[i].saved[0], patches[i].saved[1] },
                                0
                        };
        shm->n_hold = ranges;
        if (!atomic_compare_exchange_strong(&shm->hold, &state, LS_HOLD_ASKED))
                return not_held;
        syscall(SYS_futex, &shm->hold, FUTEX_WAKE, 1, NULL, NULL, 0);
        wait_for_answer(shm, LS_HOLD_ASKED);
        state = LS_HOLD_HELD;
        return atomic_compare_exchange_strong(&shm->hold, &state, LS_HOLD_CLAIMED) ? NULL
                                                                                   : not_held;
}

static void let_go(void)
{
        atomic_store(&ls_agent.shm->hold, LS_HOLD_NONE);
        syscall(SYS_futex, &ls_agent.shm->hold, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static int is_silent(void)
{
        uint64_t now = ls_now_ns(), beat = atomic_load(&ls_agent.shm->heartbeat_ns);

        return now > beat && now - beat > SILENT_NS;
}

/* One that is only stopped still has its perf events open: a tick that comes when its handler is
 * gone would kill the program. They are closed a little later than its end can be seen, so that is
 * seen in two looks. */
static int recorder_is_gone(int *seen)
{
        int before = *seen;

        *seen = is_silent() && ls_shm_recorder_has_ended(ls_agent.shm);
        return before && *seen;
}

#define LOOKS_AT_OTHERS 10u             /* at the life of other threads: each so many looks */

/* Returns 1 when no other thread lives. */
static int run(int *ret_status)
{
        const struct timespec look = { 0, (long)LOOK_NS };
        const char *library = NULL, *why, *said = NULL;
        unsigned looks = 0;
        int ended = 0;

        while (!atomic_load(&ls_agent.shm->detach) && !recorder_is_gone(&ended)) {
                if (++looks % LOOKS_AT_OTHERS == 0 && ls_attach_counted_alone(ret_status))
                        return 1;
                ls_vm_library_scan(0);
                ls_attach_threads_refresh();
                if (ls_lua.path && ls_lua.path != library) {
                        library = ls_lua.path;
                        look_for_vms();
                }
                why = ls_engine_why_no_memory();
                if (why && why != said)
                        ls_agent_notice("the allocations of a VM are not recorded: %s", why);
                said = why ? why : said;
                if (atomic_load(&ls_agent.shm->attach_looks) == 0)
                        atomic_store(&ls_agent.shm->attach_looks, 1);
                syscall(SYS_futex, &ls_agent.shm->detach, FUTEX_WAIT, 0, &look, NULL, 0);
        }
        return 0;
}

/* What threads of the program do in the agent at this moment is let finish; one that is stopped
 * in the middle is not waited for. */
static void wait_for_calls(void)
{
        uint64_t start = ls_now_ns();

        atomic_store(&ls_agent.leaving, 1);
        while (atomic_load(&ls_agent.calls) && ls_now_ns() - start < SILENT_NS)
                pause_ns(100000);
}

/* From here on the process is as it was. */
static void end(void)
{
        static unsigned ended;

        wait_for_calls();
        ls_tick_past_recorders[ended++ % LS_PAST_RECORDERS] = ls_tick_recorder;
        ls_tick_action_give_up();
        ls_attach_exec_end();
        ls_engine_leave();
        ls_vm_library_leave();
        ls_threads_stop();              /* CPU-time timers are the process's own, and tick until
                                         * now */
        ls_signals_end();
        wait_for_calls();               /* of VMs that were made or closed meanwhile */
        ls_attach_threads_end();
        ls_engine_detach();
        ls_tick_newcomer = NULL;
        ls_tick_has_data = NULL;
        ls_tick_vm_runs = NULL;
        atomic_store(&ls_agent.shm->agent_state, LS_AGENT_DONE);
        ls_thread_end();
        luasample_attach_status.pid = 0;
        luasample_attach_status.heartbeat_at = 0;
        *ls_agent.generation = 0;
        ls_share_leave(old_memory, old_size);
        ls_attach_locked_end();
        atomic_store(&ls_agent.leaving, 0);
        atomic_store(&ls_attach_taken, 0);
}

/* This thread gets descriptors of its own, at first none: what it opens now and then has no
 * number in the program, takes none from it while it closes one and opens another, and is in no
 * child that it forks. */
static void leave_descriptors(void)
{
        syscall(LS_SYS_CLOSE_RANGE, 0u, ~0u, 2u /* CLOSE_RANGE_UNSHARE */);
}

void *luasample_attach(struct ls_attach *page)
{
        const struct ls_attach a = *page;
        int err, alone, status = 0;

        prctl(PR_SET_NAME, "luasample", 0, 0, 0);
        if (a.fd_agent >= 0)
                close(a.fd_agent);
        err = begin(&a);
        close(a.fd_memory);
        if (err < 0) {
                refuse(page, err);
                return NULL;
        }
        leave_descriptors();
        ls_attach_locked_begin();
        ls_signals_start(1);
        ls_attach_threads_begin(a.tid_offset);
        ls_tick_has_data = ls_attach_threads_have_data;
        ls_tick_newcomer = ls_attach_threads_newcomer;
        ls_tick_vm_runs = ls_agent.shm->alloc_interval ? ls_engine_vm_runs : NULL;
        ls_patch_call = call_recorder;
        ls_patch_hold = hold;
        ls_patch_let_go = let_go;
        ls_mappings_restart();
        ls_thread_begin_quiet();
        atomic_store(&ls_agent.shm->agent_tid, (uint32_t)syscall(SYS_gettid));
        atomic_store(&ls_agent.shm->agent_state, LS_AGENT_LOADED);
        leave_region(&a);
        ls_attach_exec_begin();
        ls_attach_counted_leave();
        alone = run(&status);
        end();
        if (alone)
                ls_attach_counted_end(status);
        ls_attach_counted_return();
        return NULL;
}
