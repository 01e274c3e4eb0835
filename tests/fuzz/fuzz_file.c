/* libFuzzer target: any bytes as the files and the memory of a program that is to be recorded: what is executed, a core file, an
 * object that is loaded in a process to attach to. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsample/inject/elf_file.h"
#include "libsample/inject/inspect.h"
#include "record/watch/core.h"
#include "record/attach/modules.h"
#include "tests/fuzz/touch.h"

static void inspect(int fd)
{
        char text[PATH_MAX + 256];
        struct ls_image image;

        ls_image_inspect_fd(fd, "/bin", LS_INSPECT_TEXT, &image);
        must(image.kind < LS_NIMAGE_KINDS);
        must(strlen(ls_image_describe(&image, text, sizeof(text))) < sizeof(text));
}

static void read_core(const char *path)
{
        struct ls_core core;
        char bytes[64];

        if (ls_core_open(path, &core))
                return;
        must(core.n_threads <= LS_CORE_THREADS && memchr(core.name, 0, sizeof(core.name)));
        for (unsigned i = 0; i < core.n_segments; i++) {
                must(core.segments[i].start <= core.segments[i].end);
                ls_core_read(&core, core.segments[i].start, bytes, sizeof(bytes));
                ls_core_read(&core, core.segments[i].end - 1, bytes, sizeof(bytes));
        }
        ls_core_close(&core);
}

static void look_up(int fd)
{
        static const char *const names[] = { "dlopen", "lua_newstate", "", "__libc_dlopen_mode", "errno" };
        struct ls_module module = { .path = (char *)"/lib/libc.so.6" };
        struct ls_modules modules = { .mem_fd = fd, .n = 1, .m = &module };
        struct ls_thread_data data;
        uint8_t id[64];
        uint64_t size;

        for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
                ls_module_symbol(&modules, &module, names[i], &size);
        ls_module_thread_data(&modules, &module, &data);
        must(ls_module_build_id(&modules, &module, id) <= sizeof(id));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        int fd = memfd_create("fuzz", MFD_CLOEXEC);
        char path[64];

        must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        inspect(fd);
        read_core(path);
        look_up(fd);
        close(fd);
        return 0;
}
