/* A host that looks at its VMs' allocators and sets them: allocs MODE.
 * own: lua_newstate with a function of its own, of which lua_getallocf must tell.
 * behind: its function, set later, calls the one before. fails: memory is limited.
 * many N: opens and closes N VMs, and tells how much memory they have left behind.
 * threads: a VM that goes from thread to thread.
 * sets: as runs, and sets a function of its own before each piece of work, and what was there after
 * it. runs: goes on until SIGTERM, and tells whether its VM's allocator is the one that it had. */
#include "tests/hosts/host.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long calls;
static size_t used, most = (size_t)-1;

static void *own(void *ud, void *p, size_t osize, size_t nsize)
{
        calls++;
        if (ud != &calls)
                abort();
        if (nsize > osize && used + nsize - osize > most)
                return NULL;
        used += nsize - osize;
        if (nsize)
                return realloc(p, nsize);
        free(p);
        return NULL;
}

static struct { lua_Alloc f; void *ud; } before;

static void *behind(void *ud, void *p, size_t osize, size_t nsize)
{
        calls++;
        (void)ud;
        return before.f(before.ud, p, osize, nsize);
}

static void work(lua_State *L)
{
        if (luaL_dostring(L, "local t = {} for i = 1, 2e5 do t[i % 100] = { i, 'x' .. i } end"))
                puts(lua_tostring(L, -1));
}

static void *on_thread(void *L)
{
        work(L);
        return NULL;
}

static long resident(void)
{
        long pages = 0;
        FILE *f = fopen("/proc/self/statm", "r");

        if (!f || fscanf(f, "%*d %ld", &pages) != 1)
                abort();
        fclose(f);
        return pages * 4;
}

static void many(int n)
{
        long first = 0;

        for (int i = 0; i < n; i++) {
                lua_State *L = luaL_newstate();

                if (i == 10)
                        first = resident();
                if (luaL_dostring(L, "local t = {} for i = 1, 2000 do t[i] = { i } end"))
                        puts(lua_tostring(L, -1));
                lua_close(L);
        }
        printf("left %ld\n", resident() - first);
}

static int wrong;                       /* not what was there */

/* As hosts do that limit the memory of a request. */
static void work_behind(lua_State *L, lua_Alloc f, const void *ud)
{
        void *seen;

        before.f = lua_getallocf(L, &before.ud);
        wrong += before.f != f || before.ud != ud;
        lua_setallocf(L, behind, &before);
        work(L);
        wrong += lua_getallocf(L, &seen) != behind || seen != &before;
        lua_setallocf(L, before.f, before.ud);
}

static volatile sig_atomic_t ended;

static void on_term(int sig)
{
        (void)sig;
        ended = 1;
}

static void runs(int sets)
{
        lua_State *L = luaL_newstate();
        void *ud, *ud_before;
        lua_Alloc f = lua_getallocf(L, &ud_before);
        long first = resident();

        signal(SIGTERM, on_term);
        luaL_openlibs(L);
        puts("begin");
        fflush(stdout);
        while (!ended) {
                work(L);
                if (sets)
                        work_behind(L, f, ud_before);
        }
        if (sets)
                printf("wrong %d\n", wrong);
        printf("same %d\n", lua_getallocf(L, &ud) == f && ud == ud_before);
        lua_close(L);
        printf("left %ld\n", resident() - first);
}

int main(int argc, char **argv)
{
        const char *mode = argc > 1 ? argv[1] : "";
        void *ud = NULL;
        lua_State *L;

        if (!strcmp(mode, "many")) {
                many(argc > 2 ? atoi(argv[2]) : 1000);
                return 0;
        }
        if (!strcmp(mode, "runs") || !strcmp(mode, "sets")) {
                runs(!strcmp(mode, "sets"));
                return 0;
        }
        L = !strcmp(mode, "own") || !strcmp(mode, "fails") ? lua_newstate(own, &calls)
                                                           : luaL_newstate();
        luaL_openlibs(L);
        before.f = lua_getallocf(L, &before.ud);
        if (!strcmp(mode, "own"))
                printf("same %d\n", before.f == own && before.ud == &calls);
        if (!strcmp(mode, "behind")) {
                lua_setallocf(L, behind, &before);
                printf("same %d\n", lua_getallocf(L, &ud) == behind && ud == &before);
        }
        if (!strcmp(mode, "fails"))
                most = used + (1u << 20);
        work(L);
        if (!strcmp(mode, "threads"))
                for (int i = 0; i < 20; i++) {
                        pthread_t thread;

                        if (pthread_create(&thread, NULL, on_thread, L) ||
                            pthread_join(thread, NULL))
                                abort();
                }
        if (!strcmp(mode, "behind"))
                lua_setallocf(L, before.f, before.ud);
        if (!strcmp(mode, "fails")) {
                if (luaL_dostring(L,
                                  "local t = {} for i = 1, 1e7 do t[i] = ('x'):rep(1000) .. i end"))
                        puts(lua_tostring(L, -1));
                most = (size_t)-1;
        }
        work(L);
        printf("called %d\n", calls > 1000);
        lua_close(L);
        return 0;
}
