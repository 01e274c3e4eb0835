/* Stacks of a process as it is now: see now.h. All writable memory is searched for VMs
 * (libsample/vm/search.h); the coroutines are in the VM's list of objects. */
#include "record/watch/now.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsample/agent.h"
#include "libsample/handler/functions.h"
#include "libsample/handler/sample.h"
#include "libsample/handler/tick.h"
#include "record/watch/heap.h"
#include "record/watch/look.h"
#include "record/watch/remote.h"
#include "libsample/vm/view.h"
#include "libsample/vm/search.h"
#include "libsample/handler/builtins.h"

#define BLOCK      (64u << 10)          /* bytes that are read at once */
#define SEARCH_MOST (UINT64_C(4) << 30) /* bytes of memory that are searched for VMs */
#define VMS_MOST   64u

static struct ls_probe_answer answer;
static char block[BLOCK] __attribute__((aligned(8)));

static int read_answer(struct ls_now *n)
{
        size_t size;

        if (pread(n->answer_fd, &answer, sizeof answer, 0) != (ssize_t)sizeof answer ||
            answer.size != sizeof answer)
                return -ENOENT;
        answer.why[sizeof answer.why - 1] = 0;
        memcpy(n->why, answer.why, sizeof n->why);
        if (answer.error)
                return answer.error;
        ls_vm_facts = answer.facts;
        for (size_t i = 0; i < sizeof ls_vm_facts.resume_return / sizeof *ls_vm_facts.resume_return;
             i++)
                if (ls_vm_facts.resume_return[i])
                        ls_vm_facts.resume_return[i] += n->lua_base;
        ls_vm_facts.version[sizeof ls_vm_facts.version - 1] = 0;
        memcpy(n->version, ls_vm_facts.version, sizeof n->version);
        memcpy(ls_builtin_table(&size), answer.builtins, sizeof answer.builtins);
        ls_builtin_adopt();
        return ls_vm_facts.main_to_global && ls_vm_facts.main_to_global < UINT64_C(1) << 16
                       ? 0
                       : -EPROTO;
}

static int read_its(void *ctx, uint64_t at, void *to, size_t n)
{
        (void)ctx;
        return ls_remote_memory(at, to, n) == 0;
}

static void add_vm(void *ctx, uint64_t L)
{
        struct ls_now *n = ctx;
        struct ls_vm *vm = &ls_vms[n->vms];

        if (n->vms == VMS_MOST)
                return;
        vm->main = (lua_State *)(uintptr_t)L;
        vm->vm_id = ++n->vms;
        vm->engine = LS_ENGINE_WALK;
        atomic_store(&vm->global, (const char *)(uintptr_t)(L + ls_vm_facts.main_to_global));
        atomic_store(&ls_vms_used, n->vms);
}

static void search_range(struct ls_now *n, uint64_t low, uint64_t high)
{
        const struct ls_vm_search how = { read_its, add_vm, n };

        for (uint64_t at = low; at < high && n->vms < VMS_MOST; at += BLOCK) {
                size_t size = high - at < BLOCK ? (size_t)(high - at) : BLOCK;

                if (ls_remote_memory(at, block, size) == 0)
                        ls_vm_search(&how, (const uint64_t *)(const void *)block, at, size / 8);
        }
}

/* All private writable memory. */
static int find_vms(struct ls_now *n)
{
        char line[512], rights[8];
        uint64_t left = SEARCH_MOST;
        FILE *f = ls_remote_maps();

        if (!f)
                return -errno;
        while (left && fgets(line, sizeof line, f)) {
                unsigned long low, high;

                if (sscanf(line, "%lx-%lx %7s", &low, &high, rights) != 3 || rights[0] != 'r' ||
                    rights[1] != 'w' || low >= high || high > UINT64_C(1) << 47)
                        continue;
                if (high - low > left)
                        high = low + left;
                left -= high - low;
                search_range(n, low, high);
        }
        fclose(f);
        return 0;
}

void ls_now_prepare(struct ls_now *n)
{
        n->error = read_answer(n);
        if (!n->error)
                n->error = ls_look_foreign(n->shm, n->pid);
        if (!n->error)
                n->error = find_vms(n);
}

static uint64_t found[LS_NOW_COROUTINES];
static uint32_t found_vm[LS_NOW_COROUTINES];
static unsigned n_found;

/* Notes a coroutine of the VM in the slot that ctx points to, when it is suspended. */
static int note(void *ctx, uint64_t at, const char *o)
{
        if (LS_READ_COPY(uint8_t, o, LS_L_STATUS) != LS_YIELDED)
                return 0;
        if (n_found == LS_NOW_COROUTINES)
                return 1;
        found_vm[n_found] = *(const uint32_t *)ctx;
        found[n_found++] = at;
        return 0;
}

/* Returns 0 when it came to the list's end. */
static int find_coroutines(uint32_t slot, uint64_t until_ns)
{
        uint64_t now = ls_now_ns();
        struct ls_heap heap;

        return ls_heap_read(&ls_vms[slot], &heap) ||
               ls_heap_coroutines(&ls_vms[slot], heap.newest, 0,
                                  until_ns > now ? until_ns - now : 0, note, &slot);
}

void ls_now_look(struct ls_now *n, uint64_t search_ns, uint64_t budget_ns)
{
        struct ls_look *looks[LS_NOW_THREADS] = { NULL };
        uint64_t time_ns = ls_now_ns(), until = time_ns + search_ns, end = time_ns + budget_ns;
        unsigned threads = n->n_threads < LS_NOW_THREADS ? n->n_threads : LS_NOW_THREADS;

        n_found = 0;
        for (unsigned i = 0; i < threads; i++) {
                const struct ls_now_thread *t = &n->threads[i];
                struct ls_regs regs = { t->ip,  t->sp,  t->bp,  t->bx, t->dx,
                                        t->r12, t->r13, t->r14, t->r15 };
                struct ls_ring *ring =
                        (struct ls_ring *)((char *)n->shm + ls_ring_offset(n->shm->ring_size,
                                                                           n->shm->ring_stride, i));

                int stat_fd = ls_remote_is_core() ? -1 : ls_remote_open(t->tid, "stat");

                looks[i] = ls_look_new(i, t->tid, stat_fd, ring, ring);
                if (stat_fd >= 0)
                        close(stat_fd);
                if (!looks[i] || ls_now_ns() > end ||
                    ls_look_now(looks[i], &regs, t->blocked, time_ns))
                        n->unread++;
        }
        for (uint32_t i = 0; i < n->vms; i++)
                n->more |= (uint32_t)find_coroutines(i, until);
        for (unsigned i = 0; i < n_found && threads && looks[0]; i++) {
                if (ls_now_ns() > end) {
                        n->more = 1;
                        break;
                }
                if (ls_look_coroutine(looks[0], &ls_vms[found_vm[i]],
                                      (const lua_State *)(uintptr_t)found[i], time_ns))
                        n->unread++;
                else
                        n->coroutines++;
        }
        for (unsigned i = 0; i < threads; i++)
                ls_look_free(looks[i]);
}
