/* libFuzzer target: any bytes as the files and the memory of a program that is to be recorded: what
 * is executed, a core file, an object that is loaded in a process to attach to. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsample/inject/elf_file.h"
#include "libsample/inject/inspect.h"
#include "record/watch/core.h"
#include "record/worker/object.h"
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
        struct ls_object object;

        if (ls_object_of_memory(fd, 0, &object) == 0) {
                must(object.id_len <= sizeof(object.id) && object.thread.size <= LS_OBJECT_TLS);
                must(object.thread.offset <= 0 && object.thread.offset >= -LS_OBJECT_TLS_FAR &&
                     object.libc_version < 10000);
        }
        ls_object_of_file(fd, &object);
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
