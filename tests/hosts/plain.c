/* A program without Lua: plain. Spins for 200 ms and ends with status 5. */
#include "tests/hosts/host.h"

int main(void)
{
        host_spin_ms(200);
        puts("plain done");
        return 5;
}
