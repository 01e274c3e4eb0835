/* A hostile program: when it is attached to, it answers in the agent's place and names files of its
 * choice: claims FOR_AGENT FOR_MEMORY. Each is a path (of any file, of which it has no more than
 * O_PATH), or memfd, sealed, filled, readonly: memory files of its own. */
#include "tests/hosts/host.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/wire/attach.h"

static int claimed[2];

static int memory_file(const char *kind)
{
        int fd = memfd_create("claimed", MFD_CLOEXEC | MFD_ALLOW_SEALING), again;
        char path[32];

        if (!strcmp(kind, "sealed"))
                fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW);
        if (!strcmp(kind, "filled") && write(fd, "its own", 7) != 7)
                return -1;
        if (!strcmp(kind, "readonly")) {        /* as another program would have passed it */
                snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
                if (write(fd, "its own", 7) != 7)
                        return -1;
                again = open(path, O_RDONLY);
                close(fd);
                fd = again;
        }
        return fd;
}

/* Instead of the C library's: no thread begins. */
static int answer(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *page)
{
        struct ls_attach *a = page;

        (void)thread;
        (void)attr;
        (void)start;
        a->fd_agent = claimed[0];
        a->fd_memory = claimed[1];
        a->state = LS_ATTACH_FILES;
        return 0;
}

/* mov $answer, %rax; jmp *%rax */
static void take_over(void *function)
{
        uint8_t code[12] = { 0x48, 0xb8, [10] = 0xff, 0xe0 };
        uintptr_t at = (uintptr_t)answer, page = (uintptr_t)function & ~(uintptr_t)4095;

        memcpy(code + 2, &at, sizeof(at));
        if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
                exit(1);
        memcpy(function, code, sizeof(code));
}

int main(int argc, char **argv)
{
        if (argc != 3)
                return 2;
        lua_close(host_new());
        for (int i = 0; i < 2; i++) {
                claimed[i] = strchr(argv[i + 1], '/') ? open(argv[i + 1], O_PATH)
                                                      : memory_file(argv[i + 1]);
                if (claimed[i] < 0)
                        return 3;
        }
        take_over(dlsym(RTLD_DEFAULT, "pthread_create"));
        printf("begin %d %d\n", claimed[0], claimed[1]);
        fflush(stdout);
        for (;;)
                pause();
}
