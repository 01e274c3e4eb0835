/* What a program can offer in place of a LuaJIT: a library that exports what one exports, and whose
 * constructor is the program's own code. In the program that brings it (HOSTILE is set there) it
 * does nothing; elsewhere it tries to write the file that it was built to name, and stays, so that
 * a test can look at the process that it got into. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

void *lua_newstate(void *f, void *ud);
int luaJIT_setmode(void);

void *lua_newstate(void *f, void *ud)
{
        (void)f;
        return ud;
}

int luaJIT_setmode(void)
{
        return 0;
}

__attribute__((constructor)) static void take_over(void)
{
        int fd;

        if (getenv("HOSTILE"))
                return;
        fd = open(HOSTILE_FILE, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (fd >= 0)
                close(fd);
        poll(NULL, 0, 3000);
}
