/* Another process's memory at its own addresses: see mirror.h. */
#include "libsample/outside/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libsample/handler/guard.h"
#include "libsample/outside/remote.h"

#define PAGE      4096u
#define PAGES     2048u                 /* of one look; a power of two */
#define KEEP      64u                   /* of these, so many are fetched again at once for the next look */
#define OWN_MOST  512u                  /* ranges of our own memory */

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static struct {
        pid_t pid;
        int maps_fd;                    /* our own mappings */
        volatile sig_atomic_t looking;  /* a fault is a read of the other's memory */
        sigjmp_buf out;
        uintptr_t slots[2 * PAGES];     /* pages that are there, by address; 0 = none */
        uintptr_t pages[PAGES];         /* the same in order */
        unsigned n;
} m;

static uintptr_t *slot_of(uintptr_t address)
{
        size_t i = (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 40);

        while (m.slots[i & (2 * PAGES - 1)] && m.slots[i & (2 * PAGES - 1)] != address)
                i++;
        return &m.slots[i & (2 * PAGES - 1)];
}

static void drop_all(void)
{
        for (unsigned i = 0; i < m.n; i++)
                munmap((void *)m.pages[i], PAGE);
        memset(m.slots, 0, sizeof m.slots);
        m.n = 0;
}

/* Returns 1 when the page is there now. */
static int fetch(uintptr_t address)
{
        uintptr_t *slot = slot_of(address);
        void *p;

        if (*slot)
                return 1;
        if (!address || m.n == PAGES)
                return 0;
        p = mmap((void *)address, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (p == MAP_FAILED)
                return 0;
        if (p != (void *)address || ls_remote_memory(address, p, PAGE)) {
                munmap(p, PAGE);
                return 0;
        }
        *slot = m.pages[m.n++] = address;
        return 1;
}

LS_HANDLER int ls_page_readable(uintptr_t page)
{
        return page < UINT64_C(1) << 35 && fetch(page * PAGE);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
        uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1);

        (void)context;
        if (!m.looking || info->si_code <= 0) {         /* a fault of our own */
                signal(sig, SIG_DFL);
                return;
        }
        /* An address that is none faults without saying which it was. */
        if (*slot_of(page) || !fetch(page))
                siglongjmp(m.out, 1);
}

/* What was read before is read again: most of a thread's next stack is where the last one was. */
static void refresh(void)
{
        struct iovec v[KEEP];
        uint8_t read[KEEP];

        if (ls_remote_is_core())
                return;
        if (m.n > KEEP) {
                drop_all();
                return;
        }
        for (unsigned i = 0; i < m.n; i++)
                v[i] = (struct iovec){ (void *)m.pages[i], PAGE };
        ls_remote_pieces(v, v, m.n, read);
        if (memchr(read, 0, m.n))
                drop_all();
}

int ls_mirror_look(int (*look)(void *arg), void *arg)
{
        int r;

        refresh();
        if (sigsetjmp(m.out, 1)) {
                m.looking = 0;
                return -EFAULT;
        }
        m.looking = 1;
        r = look(arg);
        m.looking = 0;
        return r;
}

struct range { uintptr_t low, high; };

/* Calls fn for each range of a process's memory; takes its map. Returns 0 or what fn returned, or -errno. */
static int each_range(FILE *f, int (*fn)(void *ctx, const struct range *r), void *ctx)
{
        char line[512];
        int r = 0;

        if (!f)
                return -errno;
        while (!r && fgets(line, sizeof line, f)) {
                unsigned long low, high;

                /* [vsyscall] is in every process; a line that is longer goes on with a part that has no range */
                if (sscanf(line, "%lx-%lx ", &low, &high) == 2 && high <= UINT64_C(1) << 47)
                        r = fn(ctx, &(struct range){ low, high });
        }
        fclose(f);
        return r;
}

struct own { struct range r[OWN_MOST]; unsigned n; };

static int note_own(void *ctx, const struct range *r)
{
        struct own *own = ctx;

        if (own->n == OWN_MOST)
                return -E2BIG;
        own->r[own->n++] = *r;
        return 0;
}

static int compare_own(void *ctx, const struct range *r)
{
        const struct own *own = ctx;

        for (unsigned i = 0; i < own->n; i++)
                if (r->low < own->r[i].high && own->r[i].low < r->high)
                        return -EEXIST;
        return 0;
}

int ls_mirror_prepare(void)
{
        m.maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
        return m.maps_fd < 0 ? -errno : 0;
}

/* As they are now; each reading begins anew. */
static FILE *own_maps(void)
{
        int fd = dup(m.maps_fd);
        FILE *f;

        if (fd < 0)
                return NULL;
        lseek(fd, 0, SEEK_SET);
        f = fdopen(fd, "r");
        if (!f)
                close(fd);
        return f;
}

int ls_mirror_open(pid_t pid)
{
        static struct own own;
        struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };
        int r;

        ls_mirror_close();
        m.pid = pid;
        own.n = 0;
        r = each_range(own_maps(), note_own, &own);
        if (!r)
                r = each_range(ls_remote_maps(), compare_own, &own);
        if (!r && (sigaction(SIGSEGV, &sa, NULL) || sigaction(SIGBUS, &sa, NULL)))
                r = -errno;
        return r;
}

void ls_mirror_close(void)
{
        drop_all();
}
