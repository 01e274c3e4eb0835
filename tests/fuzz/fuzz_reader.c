/* libFuzzer target: any bytes as a trace. Opens, streams, dumps, and touches all that views would
 * index. Two forms of each input: as it is, and with the checksums made right, so that the fuzzer
 * gets behind them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/trace/chunk.h"
#include "formats/profile.h"
#include "tests/fuzz/touch.h"
#include "formats/trace/reader.h"

static void read_trace(const uint8_t *data, size_t size)
{
        int fd = memfd_create("fuzz", MFD_CLOEXEC);
        struct ls_profile *p = NULL;
        const char *error = NULL;
        char path[64];

        must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (ls_profile_open(path, &p, &error)) {
                must(error && *error);
        } else {
                touch_profile(p);
                ls_profile_close(p);
        }
        close(fd);
}

/* Makes the checks of the file header and of each chunk right, one behind the other as their sizes
 * say. */
static void make_right(uint8_t *data, size_t size)
{
        struct ls_chunk_header h;
        uint64_t check;

        if (size < sizeof(struct ls_file_header))
                return;
        memcpy(data, LS_FILE_MAGIC, 8);
        check = ls_hash(data, 24);
        memcpy(data + 24, &check, 8);
        for (size_t at = sizeof(struct ls_file_header); size - at >= sizeof(h);
             at += ls_chunk_size(&h)) {
                memcpy(&h, data + at, sizeof(h));
                h.magic = LS_CHUNK_MAGIC;
                h.major = LS_TRACE_MAJOR;
                h.check = 0;
                if (ls_chunk_size(&h) > size - at)
                        return;
                h.payload_check = ls_hash(data + at + sizeof(h) + h.extra_len, h.stored_size);
                memcpy(data + at, &h, sizeof(h));
                h.check = (uint32_t)ls_hash(data + at, sizeof(h) + h.extra_len);
                memcpy(data + at, &h, sizeof(h));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        uint8_t *copy = malloc(size + 1);

        read_trace(data, size);
        must(copy != NULL);
        memcpy(copy, data, size);
        make_right(copy, size);
        read_trace(copy, size);
        free(copy);
        return 0;
}
