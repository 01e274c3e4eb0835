/* A host that has no LuaJIT until it opens the library itself: dlopen LIBRARY. */
#include "tests/hosts/host.h"

#include <dlfcn.h>
#include <string.h>

int main(int argc, char **argv)
{
        void *lib = dlopen(argc > 1 ? argv[1] : "libluajit-5.1.so.2", RTLD_NOW | RTLD_LOCAL);
        lua_State *(*newstate)(void);
        void (*openlibs)(lua_State *);
        int (*load)(lua_State *, const char *, size_t, const char *);
        int (*call)(lua_State *, int, int, int);
        void (*close)(lua_State *);
        const char *text = HOST_BURN "burn(700) print('dlopen done')";
        lua_State *L;

        if (!lib) {
                fprintf(stderr, "dlopen: %s\n", dlerror());
                return 1;
        }
        *(void **)&newstate = dlsym(lib, "luaL_newstate");
        *(void **)&openlibs = dlsym(lib, "luaL_openlibs");
        *(void **)&load = dlsym(lib, "luaL_loadbuffer");
        *(void **)&call = dlsym(lib, "lua_pcall");
        *(void **)&close = dlsym(lib, "lua_close");
        L = newstate();
        openlibs(L);
        if (load(L, text, strlen(text), "=dlopen") || call(L, 0, 0, 0))
                return 1;
        close(L);
        return 0;
}
