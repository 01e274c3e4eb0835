/* A library that exports lua_newstate and is no LuaJIT: it must be left alone, and be named. */
void *lua_newstate(void *f, void *ud, long seed);

void *lua_newstate(void *f, void *ud, long seed)
{
        (void)f, (void)ud;
        return seed == 42 ? &lua_newstate : 0;
}
