/* Memory that looks like VMs, comes and goes: copies of one, at the same addresses, again and
 * again, while an agent that attaches looks for VMs. Until SIGTERM; prints how many copies there
 * were. */
#include "tests/hosts/host.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#define SIZE 8192u                      /* of each */
#define COPIES 32u
#define GLOBAL_AT 16u                   /* of a lua_State */
#define THERE_NS 8000u
#define GONE_NS 8000u

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
        stop = sig;
}

static void spin(unsigned long long ns)
{
        unsigned long long until = host_ns(CLOCK_MONOTONIC) + ns;

        while (host_ns(CLOCK_MONOTONIC) < until)
                ;
}

/* The VM's main lua_State and global_State are one object: what points into it points into the
 * copy, there. */
static void copy(char *to, const char *from, size_t size)
{
        memcpy(to, from, size);
        for (size_t i = 0; i + 8 <= size; i += 8) {
                const char *p;

                memcpy(&p, to + i, 8);
                if (p >= from && p < from + size) {
                        p = to + (p - from);
                        memcpy(to + i, &p, 8);
                }
        }
}

int main(void)
{
        const char *L, *global;
        unsigned long copies = 0;
        size_t size;
        char *at;

        signal(SIGTERM, on_term);
        L = (const char *)host_new();
        memcpy(&global, L + GLOBAL_AT, 8);
        size = (size_t)(global - L) + 1024;     /* the first parts of the second */
        if (size > SIZE)
                return 1;
        at = mmap(NULL, COPIES * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        printf("begin\n");
        fflush(stdout);
        while (!stop) {
                if (mmap(at, COPIES * SIZE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
                        return 1;
                for (unsigned i = 0; i < COPIES; i++)
                        copy(at + i * SIZE, L, size);
                copies++;
                spin(THERE_NS);
                /* the place stays taken */
                if (mmap(at, COPIES * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                         0) == MAP_FAILED)
                        return 1;
                spin(GONE_NS);
        }
        printf("%lu\n", copies);
        return 0;
}
