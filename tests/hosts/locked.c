/* A program that locks all of its memory, and what it will have: locked SECONDS of CPU time. */
#include "tests/hosts/host.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
        lua_State *L = host_new();

        host_run(L, HOST_BURN, "=locked");
        if (argc != 2 || mlockall(MCL_CURRENT | MCL_FUTURE)) {
                perror(argc == 2 ? "locked: mlockall" : "usage: locked SECONDS");
                return argc == 2 ? 77 : 129;
        }
        puts("begin");
        fflush(stdout);
        for (double s = atof(argv[1]); s > 0; s -= 0.01)
                host_run(L, "burn(10)", "=burn");
        lua_close(L);
        return 0;
}
