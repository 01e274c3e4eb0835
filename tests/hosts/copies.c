/* Links a LuaJIT, and loads and unloads a copy of it, whose calls of itself the loader may bind to
 * the first: copies LIBRARY ROUNDS. */
#include "tests/hosts/host.h"

#include <dlfcn.h>

#define WORK \
        "local s = 0 for i = 1, 3e5 do s = s + #tostring(i % 100) end assert(s == 570000, s)"

static void *find(void *library, const char *name)
{
        void *f = dlsym(library, name);

        if (!f)
                exit(2);
        return f;
}

static void work(const char *path)
{
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

        if (!library)
                exit(3);
        lua_State *(*newstate)(void) = (lua_State * (*)(void)) find(library, "luaL_newstate");
        void (*openlibs)(lua_State *) = (void (*)(lua_State *))find(library, "luaL_openlibs");
        int (*load)(lua_State *, const char *) =
                (int (*)(lua_State *, const char *))find(library, "luaL_loadstring");
        int (*call)(lua_State *, int, int, int) =
                (int (*)(lua_State *, int, int, int))find(library, "lua_pcall");
        void (*end)(lua_State *) = (void (*)(lua_State *))find(library, "lua_close");
        lua_State *L = newstate();

        openlibs(L);
        if (load(L, WORK) || call(L, 0, 0, 0))
                exit(4);
        end(L);
        dlclose(library);
}

int main(int argc, char **argv)
{
        lua_State *L = host_new();

        if (argc < 3)
                return 1;
        host_run(L, WORK, "=first");
        lua_close(L);
        for (int i = 0; i < atoi(argv[2]); i++)
                work(argv[1]);
        printf("end\n");
        return 0;
}
