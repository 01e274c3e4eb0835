/* One thread of the program, read from outside: see look.h. */
#include "record/watch/look.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "libsample/agent.h"
#include "libsample/handler/coroutines.h"
#include "libsample/handler/native.h"
#include "libsample/handler/names_search.h"
#include "libsample/handler/sources.h"
#include "libsample/handler/builtins.h"
#include "libsample/handler/jit_traces.h"
#include "record/watch/mirror.h"
#include "record/watch/remote.h"
#include "libsample/handler/labels.h"
#include "libsample/pages.h"
#include "libsample/vm/view.h"
#include "libsample/handler/zones.h"

#define NAME 32u                        /* bytes of a thread's name, a zero included */
#define NAMED_NS UINT64_C(100000000)    /* between two looks at a thread's name */

struct ls_agent ls_agent;               /* of this process: what the handler's code looks at */
static struct ls_shm shm_copy;          /* it counts losses; ours are not the agent's */
static uint64_t generation = 1;
static struct ls_view view;
static uintptr_t view_at;

#define LATE_MOST 16u /* looks that took too long; then the program's memory is not read any more */
static unsigned late;
#define DEEP 8192u                      /* frames of a walk whose memory is kept for the next one */

struct ls_look {
        struct ls_thread thread;        /* with its id as it knows itself */
        int stat_fd;                    /* the thread's stat file; the caller's, -1 = none */
        const struct ls_ring *agents;   /* the thread's own ring */
        int (*still)(void *ctx);
        void *ctx;
        char name[NAME];        /* of the thread, as it was sent */
        int named;
        uint64_t named_ns;              /* when it was last asked for */
        /* the look at hand */
        struct ls_regs regs;
        struct ls_ticks ticks;
};

static int read_view(void *arg)
{
        char (*builtins)[40];
        size_t size;

        (void)arg;
        memcpy(&view, ls_at((const void *)view_at, sizeof view), sizeof view);
        if (view.size != sizeof view || view.vm_size != sizeof(struct ls_vm) ||
            view.facts_size != sizeof ls_vm_facts || view.thread_size != sizeof(struct ls_thread))
                return -EPROTO;
        memcpy(&ls_vm_facts, ls_at(view.facts, sizeof ls_vm_facts), sizeof ls_vm_facts);
        builtins = ls_builtin_table(&size);
        memcpy(builtins, ls_at(view.builtins, size), size);
        ls_builtin_adopt();
        memcpy(ls_interposed, ls_at(view.interposed, sizeof ls_interposed), sizeof ls_interposed);
        return ls_vm_facts.ok ? 0 : -EPROTO;
}

int ls_look_image(struct ls_shm *shm, pid_t pid)
{
        int r;

        view_at = (uintptr_t)atomic_load(&shm->view);
        if (!view_at || view_at & 7)
                return -EAGAIN;
        shm_copy.interval_ns = shm->interval_ns;
        shm_copy.depth = shm->depth;
        shm_copy.want_text = shm->want_text;
        shm_copy.generation = generation;
        ls_agent =
                (struct ls_agent){ .shm = &shm_copy, .generation = &generation, .pid = (int)pid };
        late = 0;
        r = ls_remote_of_process(pid);
        if (!r)
                r = ls_mirror_open();
        return r ? r : ls_mirror_look(read_view, NULL);
}

#define RANGES_MOST 8192u

static struct { uintptr_t low, high; } ranges[RANGES_MOST];     /* of the process's memory, when it
                                                                 * was opened */
static unsigned n_ranges;

static void read_ranges(void)
{
        char line[512];
        FILE *f = ls_remote_maps();

        n_ranges = 0;
        while (f && n_ranges < RANGES_MOST && fgets(line, sizeof line, f)) {
                unsigned long low, high;

                if (sscanf(line, "%lx-%lx ", &low, &high) != 2)
                        continue;
                ranges[n_ranges].low = low;
                ranges[n_ranges++].high = high;
        }
        if (f)
                fclose(f);
}

int ls_look_foreign(struct ls_shm *shm, pid_t pid)
{
        late = 0;
        read_ranges();
        shm_copy.small_size = shm->small_size;
        shm_copy.native = shm->native;
        shm_copy.native_bytes = shm->native_bytes;
        shm_copy.interval_ns = shm->interval_ns;
        shm_copy.generation = generation;
        ls_agent =
                (struct ls_agent){ .shm = &shm_copy, .generation = &generation, .pid = (int)pid };
        return ls_mirror_open();
}

static int read_vms(void *arg)
{
        uint32_t used = LS_READ(uint32_t, view.vms_used, 0);

        (void)arg;
        if (used > LS_VMS_MOST)
                return -1;
        memcpy(ls_vms, ls_at(view.vms, used * sizeof *ls_vms), used * sizeof *ls_vms);
        atomic_store(&ls_vms_used, used);
        atomic_store(&ls_vms_closed, LS_READ(uint32_t, view.vms_closed, 0));
        memcpy(ls_jit_functions, ls_at(view.jit_functions, sizeof ls_jit_functions),
               sizeof ls_jit_functions);
        return 0;
}

/* The VMs as they are now, and what belongs to the thread. */
static int read_process(struct ls_look *l)
{
        const struct ls_thread *theirs =
                (const struct ls_thread *)(uintptr_t)atomic_load(&l->agents->thread);

        if (!theirs || (uintptr_t)theirs & 7 || read_vms(NULL))
                return -1;
        l->thread.stack_low = LS_FIELD(theirs, stack_low);
        l->thread.stack_high = LS_FIELD(theirs, stack_high);
        return 0;
}

static int look(void *arg)
{
        struct ls_look *l = arg;
        int r = read_process(l);

        return r ? r : ls_tick_look(&l->thread, &l->regs, &l->ticks);
}

static int still(const struct ls_thread *t)
{
        const struct ls_look *l = (const struct ls_look *)(const void *)t;

        return !l->still || l->still(l->ctx);
}

static void fill(struct ls_ticks *ret, uint32_t ticks, uint64_t time_ns, uint64_t cpu_ns)
{
        *ret = (struct ls_ticks){
                .sum = ticks, .event = LS_EVENT_WALL, .time_ns = time_ns, .cpu_ns = cpu_ns
        };
}

static void free_walks(struct ls_sampler *s)
{
        for (int i = 0; i < 2; i++) {
                ls_pages_free(s->walks[i].frames, s->walks[i].room * sizeof(struct ls_wframe));
                s->walks[i].frames = NULL;
                s->walks[i].room = s->walks[i].n = 0;
        }
        s->last_n = 0;
}

static void free_tables(struct ls_thread *t)
{
        ls_functions_free(t->functions);
        ls_sources_free(t->sources);
        ls_coroutines_free(t->coroutines);
        ls_zones_free(t->zones);
        ls_label_cache_free(t->labels);
        ls_names_free(t->names);
        if (t->sampler)
                free_walks(t->sampler);
        if (t->sampler)
                ls_native_free(t->sampler->native);
        ls_pages_free(t->sampler, sizeof *t->sampler);
}

static int make_tables(struct ls_thread *t)
{
        t->functions = ls_functions_new();
        t->sources = ls_sources_new();
        t->coroutines = ls_coroutines_new();
        t->zones = ls_zones_new();
        t->labels = ls_label_cache_new();
        t->names = ls_names_new();
        t->sampler = ls_pages_new(sizeof *t->sampler);
        if (!t->functions || !t->sources || !t->coroutines || !t->zones || !t->labels ||
            !t->names || !t->sampler)
                return -ENOMEM;
        t->sampler->native = ls_native_new();
        t->sampler->described = 1;      /* by send_thread */
        t->sampler->still = still;
        return 0;
}

/* Its name, as its stat file has it: in parentheses, of which it may have some. Returns its
 * length. */
static uint32_t read_name(int stat_fd, char name[NAME])
{
        char text[256];
        ssize_t n = stat_fd < 0 ? 0 : pread(stat_fd, text, sizeof text - 1, 0);
        const char *from, *to;
        size_t len;

        memset(name, 0, NAME);
        text[n > 0 ? n : 0] = 0;
        from = strchr(text, '(');
        to = strrchr(text, ')');
        if (!from || !to || to <= from)
                return 0;
        len = (size_t)(to - from) - 1;
        len = len < NAME - 1 ? len : NAME - 1;
        memcpy(name, from + 1, len);
        return (uint32_t)len;
}

/* Name and tid, from which the recorder knows which thread the ring is of. Many a thread gives
 * itself its name when it was armed already. */
static void send_thread(struct ls_look *l)
{
        struct ls_thread *t = &l->thread;
        struct ls_rec_thread rec = { t->thread_id, (uint32_t)t->tid, 0, 0 };
        char name[sizeof l->name], *body;

        rec.name_len = read_name(l->stat_fd, name);
        if (l->named && (!rec.name_len || !memcmp(name, l->name, sizeof name)))
                return;
        body = ls_ring_reserve(t->ring, LS_REC_THREAD, sizeof rec + rec.name_len,
                               LS_RESERVE_DEFINITION);
        if (!body)
                return;
        memcpy(body, &rec, sizeof rec);
        memcpy(body + sizeof rec, name, rec.name_len);
        ls_ring_commit(t->ring, body);
        memcpy(l->name, name, sizeof name);
        l->named = 1;
}

struct ls_look *ls_look_new(unsigned index, int tid, int stat_fd, struct ls_ring *ring,
                            struct ls_ring *own)
{
        struct ls_look *l = ls_pages_new(sizeof *l);

        if (!l)
                return NULL;
        if (!own->size)                 /* ls_look_foreign's: nobody has used it */
                own->size = shm_copy.small_size;
        l->agents = ring;
        l->thread.ring = own;
        l->thread.index = index;
        l->thread.tid = tid;
        l->stat_fd = stat_fd;
        if (make_tables(&l->thread)) {
                ls_look_free(l);
                return NULL;
        }
        atomic_store(&own->tid, (uint32_t)tid);
        atomic_fetch_add(&own->claim, 1);
        send_thread(l);
        return l;
}

void ls_look_free(struct ls_look *l)
{
        if (!l)
                return;
        free_tables(&l->thread);
        ls_pages_free(l, sizeof *l);
}

int ls_look_vms(struct ls_look *l)
{
        (void)l;
        return ls_mirror_look(read_vms, NULL) ? -1 : 0;
}

struct ls_thread *ls_look_thread(struct ls_look *l)
{
        return &l->thread;
}

int ls_look_with(struct ls_look *l, int (*fn)(void *arg), void *arg)
{
        uint32_t in_write = atomic_load(&l->thread.ring->in_write);
        int r = late < LATE_MOST ? ls_mirror_look(fn, arg) : -ETIME;

        if (r == -ETIME && late < LATE_MOST)
                late++;
        if (r == -EFAULT || r == -ETIME) {      /* left in the middle: of the ring, or of a table */
                atomic_store(&l->thread.ring->in_write, in_write);
                free_tables(&l->thread);
                l->thread.sampler = NULL;
                if (make_tables(&l->thread))
                        _exit(1);
        } else if (l->thread.sampler->walks[0].room > DEEP ||
                   l->thread.sampler->walks[1].room > DEEP) {
                free_walks(l->thread.sampler);
        }
        return r;
}

int ls_look_send(struct ls_look *l, uintptr_t ip, uintptr_t sp, uint32_t ticks, uint64_t time_ns,
                 uint64_t cpu_ns, int (*still_fn)(void *ctx), void *ctx)
{
        int r;

        l->regs = (struct ls_regs){ .ip = ip, .sp = sp };
        if (time_ns - l->named_ns > NAMED_NS) {
                send_thread(l);
                l->named_ns = time_ns;
        }
        l->still = still_fn;
        l->ctx = ctx;
        fill(&l->ticks, ticks, time_ns, cpu_ns);
        r = ls_look_with(l, look, l);
        if (r < 0)
                l->thread.sampler->last_n = 0;
        return r < 0 ? -1 : r;
}

int ls_look_send_like(struct ls_look *l, enum ls_like like, uint32_t ticks, uint64_t time_ns,
                      uint64_t cpu_ns)
{
        struct ls_rec_sample *rec = ls_ring_reserve(l->thread.ring, LS_REC_SAMPLE, sizeof *rec, 0);

        if (!rec)
                return -1;
        memset(rec, 0, sizeof *rec);
        rec->time_ns = time_ns;
        rec->cpu_ns = cpu_ns;
        rec->weight[LS_VMSTATE_C] = ticks;
        rec->event = LS_EVENT_WALL;
        rec->flags = LS_SAMPLE_OFF_CPU;
        rec->like = like;
        ls_ring_commit(l->thread.ring, rec);
        return 0;
}

/* Which mapping of the process an address is in; 0, 0 = in none. */
static void range_of(uintptr_t at, uintptr_t *ret_low, uintptr_t *ret_high)
{
        *ret_low = *ret_high = 0;
        for (unsigned i = 0; i < n_ranges; i++)
                if (at >= ranges[i].low && at < ranges[i].high) {
                        *ret_low = ranges[i].low;
                        *ret_high = ranges[i].high;
                }
}

static int look_now(void *arg)
{
        struct ls_look *l = arg;

        return ls_tick_look(&l->thread, &l->regs, &l->ticks);
}

struct suspended { struct ls_look *l; const struct ls_vm *vm; const lua_State *L; };

static int look_suspended(void *arg)
{
        struct suspended *s = arg;

        return ls_tick_look_suspended(&s->l->thread, s->vm, s->L, &s->l->ticks);
}

/* Reads and sends one stack. */
static int one_look(struct ls_look *l, int (*fn)(void *arg), void *arg, uint8_t flags,
                    uint64_t time_ns)
{
        l->still = NULL;
        l->thread.sampler->still = NULL;
        l->ticks = (struct ls_ticks){ .sum = 1, .flags = flags, .time_ns = time_ns };
        return ls_look_with(l, fn, arg) ? -1 : 0;
}

int ls_look_now(struct ls_look *l, const struct ls_regs *regs, int blocked, uint64_t time_ns)
{
        l->regs = *regs;
        range_of(regs->sp, &l->thread.stack_low, &l->thread.stack_high);
        return one_look(l, look_now, l, blocked ? LS_SAMPLE_BLOCKED : 0, time_ns);
}

int ls_look_coroutine(struct ls_look *l, const struct ls_vm *vm, const lua_State *L,
                      uint64_t time_ns)
{
        struct suspended s = { l, vm, L };

        return one_look(l, look_suspended, &s, LS_SAMPLE_SUSPENDED, time_ns);
}
