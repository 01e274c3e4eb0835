/* A host that loads LuaJIT late: probe_dl path|both|namespace LIBRARY... Runs a VM of each and says
 * what it computed. "path" closes one before it opens the next, "both" keeps all open. A name
 * without a slash is found by this program's RUNPATH. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct lua_State lua_State;

static int run(const char *library, int namespace)
{
        void *handle = namespace ? dlmopen(LM_ID_NEWLM, library, RTLD_NOW)
                                 : dlopen(library, RTLD_NOW | RTLD_LOCAL);
        lua_State *(*newstate)(void);
        void (*openlibs)(lua_State *), (*close)(lua_State *);
        int (*load)(lua_State *, const char *), (*call)(lua_State *, int, int, int);
        double (*number)(lua_State *, int);
        lua_State *L;

        if (!handle) {
                printf("%s\n", dlerror());
                return 1;
        }
        newstate = (lua_State *(*)(void))dlsym(handle, "luaL_newstate");
        openlibs = (void (*)(lua_State *))dlsym(handle, "luaL_openlibs");
        close = (void (*)(lua_State *))dlsym(handle, "lua_close");
        load = (int (*)(lua_State *, const char *))dlsym(handle, "luaL_loadstring");
        call = (int (*)(lua_State *, int, int, int))dlsym(handle, "lua_pcall");
        number = (double (*)(lua_State *, int))dlsym(handle, "lua_tonumber");
        if (!newstate) {
                printf("no luaL_newstate in it\n");
                return 0;
        }
        L = newstate();
        openlibs(L);
        if (load(L, "local e = os.clock() + 0.2 local x = 0 repeat for i = 1, 1000 do x = x + i % "
                    "7 end "
                    "until os.clock() > e return 42") ||
            call(L, 0, 1, 0))
                printf("failed\n");
        printf("%g\n", number(L, -1));
        close(L);
        dlclose(handle);
        return 0;
}

int main(int argc, char **argv)
{
        int bad = 0;

        for (int i = 2; i < argc && !strcmp(argv[1], "both"); i++)
                printf("loaded %d\n", dlopen(argv[i], RTLD_NOW | RTLD_LOCAL) != NULL);
        printf("RTLD_NEXT %d\n", dlsym(RTLD_NEXT, "puts") != NULL);
        printf("nothing %d\n", dlopen("libnosuch.so.9", RTLD_NOW) == NULL);
        puts(dlerror() ? "with a reason" : "without a reason");
        printf("self %d\n", dlopen(NULL, RTLD_NOW) != NULL);
        for (int i = 2; i < argc; i++)
                bad += run(argv[i], !strcmp(argv[1], "namespace"));
        return bad;
}
