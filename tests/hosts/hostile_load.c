/* Loads the library that its argument names, and waits: a process for luasample stack to look
 * at. */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
        if (argc != 2 || !dlopen(argv[1], RTLD_NOW)) {
                fprintf(stderr, "%s\n", dlerror());
                return 1;
        }
        puts("up");
        fflush(stdout);
        for (;;)
                pause();
}
