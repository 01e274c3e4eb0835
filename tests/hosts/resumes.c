/* A thread that runs Lua beside another whose VM is in a coroutine, resumed from C: resumes. The
 * coroutine's lua_State is in a page of its own, which that thread may unmap at any time. Prints
 * how much of the page was read while that thread slept and the other ran: "referenced 0 kB"
 * alone. */
#include "tests/hosts/host.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define PAGES 64

static void *pages[PAGES];              /* what is small is in a page of its own each */
static const void *coroutine;
static sem_t sleeps, wake;

static void *in_pages(void *ud, void *p, size_t old, size_t n)
{
        void **at = pages;

        (void)ud;
        (void)old;
        while (at < pages + PAGES && *at != p)
                at++;
        if (p && at < pages + PAGES) {
                if (n)
                        return NULL;
                munmap(p, PAGE);
                return *at = NULL;
        }
        if (!p && n >= 64 && n <= 128 && at < pages + PAGES) {
                p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                return *at = p == MAP_FAILED ? NULL : p;
        }
        if (n)
                return realloc(p, n);
        free(p);
        return NULL;
}

static int doze(lua_State *L)
{
        coroutine = L;
        sem_post(&sleeps);
        while (sem_wait(&wake))
                ;
        return 0;
}

static void *resume(void *arg)
{
        lua_State *L = lua_newstate(in_pages, NULL), *co;

        if (!L || !(co = lua_newthread(L)))
                exit(1);
        host_check(co, luaL_loadstring(co, "local doze = ... doze()"));
        lua_pushcfunction(co, doze);
        host_check(co, lua_resume(co, 1));
        lua_settop(L, 0);
        lua_gc(L, LUA_GCCOLLECT, 0);
        lua_close(L);
        return arg;
}

/* KiB of the page that was touched since the last call of forget, -1 = not known. */
static int referenced(const void *page)
{
        FILE *f = fopen("/proc/self/smaps", "r");
        unsigned long start, end;
        int here = 0, kib = -1;
        char line[512];

        while (f && kib < 0 && fgets(line, sizeof(line), f)) {
                if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
                        here = (uintptr_t)page >= start && (uintptr_t)page < end;
                else if (here)
                        sscanf(line, "Referenced: %d kB", &kib);
        }
        if (f)
                fclose(f);
        return kib;
}

static void forget(void)
{
        int fd = open("/proc/self/clear_refs", O_WRONLY);

        if (fd < 0 || write(fd, "1", 1) != 1)
                exit(77);
        close(fd);
}

int main(void)
{
        lua_State *L = host_new();
        pthread_t thread;

        host_run(L, HOST_BURN, "=resumes");
        sem_init(&sleeps, 0, 0);
        sem_init(&wake, 0, 0);
        if (pthread_create(&thread, NULL, resume, NULL))
                return 1;
        while (sem_wait(&sleeps))
                ;
        if (madvise((void *)((uintptr_t)coroutine & ~(PAGE - 1)), PAGE, MADV_DONTDUMP))
                return 1;               /* else it would be one mapping with those beside it */
        forget();
        host_run(L, "burn(300)", "=burn");
        printf("referenced %d kB\n", referenced(coroutine));
        sem_post(&wake);
        pthread_join(thread, NULL);
        lua_close(L);
        return 0;
}
