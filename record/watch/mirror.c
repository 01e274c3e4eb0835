/* Another process's memory at its own addresses: see mirror.h. */
#include "record/watch/mirror.h"
#include "formats/wire/mix.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "formats/wire/clock.h"
#include "libsample/handler/guard.h"
#include "record/watch/remote.h"
#include "libsample/seen.h"
#include "libsample/handler/guard_page.h"

#define PAGE      4096u
#define PAGES     2048u                 /* of one look; a power of two */
#define KEEP 64u /* of these, so many are fetched again at once for the next look */
#define OWN_MOST  512u                  /* ranges of our own memory */
#define LOOK_NS                                                                                    \
        UINT64_C(                                                                                  \
                100000000) /* CPU time of one look: of an honest program it takes a tenth, with the deepest stacks */
#define GROW_MOST (UINT64_C(256) << 20) /* bytes that this process may take for what it finds */

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static struct {
        int maps_fd;                    /* our own mappings */
        volatile sig_atomic_t looking;  /* a fault is a read of the other's memory */
        sigjmp_buf out;
        uint64_t until_ns;              /* CPU time at which the look ends; 0 = it has not taken
                                         * long yet */
        int fd;                         /* memory that holds the pages: to be written here, */
        char *copies;                   /* in order, and to be read at their addresses */
        uintptr_t slots[2 * PAGES];     /* pages that are there, by address; 0 = none */
        uintptr_t pages[PAGES];         /* the same in order */
        unsigned n;
} m;
struct ls_seen ls_seen = { UINTPTR_MAX, LS_SEEN_STEPS };

static uintptr_t *slot_of(uintptr_t address)
{
        size_t i = (size_t)(ls_mix(address) >> 40);

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

/* Returns 1 when the page is there now. Nothing that follows a pointer of the program's can write
 * to it. */
static int fetch(uintptr_t address)
{
        uintptr_t *slot = slot_of(address);
        off_t at = (off_t)m.n * PAGE;
        void *p;

        if (*slot)
                return 1;
        if (!address || m.n == PAGES || ls_remote_memory(address, m.copies + at, PAGE))
                return 0;
        p = mmap((void *)address, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_POPULATE,
                 m.fd, at);
        if (p == MAP_FAILED)
                return 0;
        if (p != (void *)address) {
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

static __attribute__((noreturn)) void leave(int how)
{
        m.looking = 0;
        siglongjmp(m.out, how);
}

int ls_seen_copy(void *to, uintptr_t from, size_t n)
{
        return ls_remote_memory(from, to, n);
}

static void look_at_clock(void)
{
        uint64_t now = ls_clock_ns(CLOCK_PROCESS_CPUTIME_ID);

        if (!m.until_ns)
                m.until_ns = now + LOOK_NS;
        if (now > m.until_ns)
                leave(ETIME);
        ls_seen.left = LS_SEEN_STEPS;
}

const void *ls_seen_at(const void *p, size_t n)
{
        uintptr_t first = (uintptr_t)p / PAGE, last = ((uintptr_t)p + n - 1) / PAGE;
        size_t steps = 1 + n / 64;

        if (!m.looking || !n)
                return p;
        if (ls_seen.left > steps)
                ls_seen.left -= (uint32_t)steps;
        else
                look_at_clock();
        if (last < first)
                leave(EFAULT);
        for (uintptr_t page = first; page <= last; page++)
                if (!ls_page_readable(page))
                        leave(EFAULT);
        ls_seen.page = last;
        return p;
}

/* A read that was not asked for: of the program's memory all the same. */
static void on_fault(int sig, siginfo_t *info, void *context)
{
        uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1);
        int writes = (((const ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;

        if (!m.looking || info->si_code <= 0 || writes) {       /* a fault of our own */
                signal(sig, SIG_DFL);
                return;
        }
        /* An address that is none faults without saying which it was. */
        if (*slot_of(page) || !ls_page_readable(page / PAGE))
                leave(EFAULT);
}

/* What was read before is read again: most of a thread's next stack is where the last one was. */
static void refresh(void)
{
        struct iovec here[KEEP], there[KEEP];
        uint8_t read[KEEP];

        if (ls_remote_is_core())
                return;
        if (m.n > KEEP) {
                drop_all();
                return;
        }
        for (unsigned i = 0; i < m.n; i++) {
                here[i] = (struct iovec){ m.copies + i * (size_t)PAGE, PAGE };
                there[i] = (struct iovec){ (void *)m.pages[i], PAGE };
        }
        ls_remote_pieces(here, there, m.n, read);
        if (memchr(read, 0, m.n))
                drop_all();
}

int ls_mirror_look(int (*look)(void *arg), void *arg)
{
        int r;

        refresh();
        ls_seen = (struct ls_seen){ UINTPTR_MAX, LS_SEEN_STEPS };
        m.until_ns = 0;
        r = -sigsetjmp(m.out, 0);
        if (!r) {
                m.looking = 1;
                r = look(arg);
                m.looking = 0;
        }
        ls_seen.page = UINTPTR_MAX;
        return r;
}

struct range { uintptr_t low, high; };

/* Calls fn for each range of a process's memory; takes its map. Returns 0 or what fn returned, or
 * -errno. */
static int each_range(FILE *f, int (*fn)(void *ctx, const struct range *r), void *ctx)
{
        char line[512];
        int r = 0;

        if (!f)
                return -errno;
        while (!r && fgets(line, sizeof line, f)) {
                unsigned long low, high;

                /* [vsyscall] is in every process; a line that is longer goes on with a part that
                 * has no range */
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

/* What the other's memory says may not cost more than this, however much it says. */
static void limit_memory(void)
{
        unsigned long data = 0;
        FILE *f = fopen("/proc/self/statm", "re");
        struct rlimit most;

        if (f && fscanf(f, "%*u %*u %*u %*u %*u %lu", &data) == 1 &&
            getrlimit(RLIMIT_DATA, &most) == 0 && most.rlim_cur > data * PAGE + GROW_MOST) {
                most.rlim_cur = data * PAGE + GROW_MOST;
                setrlimit(RLIMIT_DATA, &most);
        }
        if (f)
                fclose(f);
}

int ls_mirror_prepare(void)
{
        void *p;

        if (m.copies)
                return 0;
        m.fd = memfd_create("luasample-mirror", MFD_CLOEXEC);
        if (m.fd < 0)
                return -errno;
        p = ftruncate(m.fd, (off_t)PAGES * PAGE)
                    ? MAP_FAILED
                    : mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
        if (p == MAP_FAILED) {
                int err = errno;

                close(m.fd);
                return -err;
        }
        m.copies = p;
        m.maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
        limit_memory();
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

int ls_mirror_open(void)
{
        static struct own own;
        struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };
        int r;

        ls_mirror_close();
        own.n = 0;
        r = ls_mirror_prepare();
        if (!r)
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
