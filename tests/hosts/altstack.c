/* Gives itself a small signal stack at SIGUSR1, works for a second, and tells what was written
 * below it: altstack BYTES. */
#include "tests/hosts/host.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#define BELOW (1u << 20)
#define WORK "for i = 1, 20 do burn(1) end"

static volatile int told;

static void on_signal(int sig)
{
        told = sig;
}

int main(int argc, char **argv)
{
        lua_State *L = host_new();
        size_t size = argc > 1 ? (size_t)atol(argv[1]) : 2048, written = 0;
        unsigned char *m = mmap(NULL, BELOW + size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        stack_t stack = { .ss_sp = m + BELOW, .ss_size = size };
        uint64_t end;

        if (m == MAP_FAILED)
                return 1;
        memset(m, 0xa5, BELOW);
        signal(SIGUSR1, on_signal);
        printf("begin\n");
        fflush(stdout);
        while (!told)
                host_run(L, HOST_BURN WORK, "=altstack");
        if (sigaltstack(&stack, NULL))
                return 2;
        end = host_ns(CLOCK_PROCESS_CPUTIME_ID) + 1000000000u;
        while (host_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
                host_run(L, HOST_BURN WORK, "=altstack");
        for (size_t i = 0; i < BELOW; i++)
                written += m[i] != 0xa5;
        printf("%zu bytes below it were written\n", written);
        return 0;
}
