/* Resumes coroutines from C (lua_resume), where a Lua program would call coroutine.resume:
 * coresume. */
#include "tests/hosts/host.h"

int main(void)
{
        lua_State *L = host_new();

        host_run(L,
                 HOST_BURN "function from_c() for i = 1, 8 do burn(40) coroutine.yield(i) end end\n"
                           "function inner() burn2(30) coroutine.yield() end\n"
                           "function from_lua() local co = coroutine.create(function() for i = 1, "
                           "8 do inner() end end)\n"
                           "  for i = 1, 8 do coroutine.resume(co) end end\n",
                 "=coresume");
        for (int round = 0; round < 2; round++) {
                lua_State *co = lua_newthread(L);
                int status;

                lua_getglobal(co, "from_c");
                do {
                        status = lua_resume(co, 0);
                        if (status == LUA_YIELD)
                                lua_settop(co, 0);
                } while (status == LUA_YIELD);
                host_check(co, status);
                lua_pop(L, 1);
        }
        lua_getglobal(L, "from_lua");
        host_check(L, lua_pcall(L, 0, 0, 0));
        lua_close(L);
        puts("coresume done");
        return 0;
}
