/* libFuzzer target: any bytes as a trace. Opens, streams, dumps, and touches all that views would index. Two forms of
 * each input: as it is, and with the checksums made right, so that the fuzzer gets behind them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/chunk.h"
#include "formats/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
        if (!ok)
                abort();
}

static int touch_block(void *ctx, const struct ls_sample_block *b)
{
        const struct ls_profile *p = ctx;

        for (uint32_t i = 0; i < b->n; i++) {
                must(b->stack[i] < p->n_stacks && b->zone[i] < p->n_zones && b->thread[i] < p->n_threads);
                must(b->vm[i] < p->n_vms && b->coroutine[i] < p->n_coroutines && b->vmstate[i] < LS_NVMSTATES);
        }
        return 0;
}

static void touch_str(struct ls_str s)
{
        must(s.s && s.s[s.len] == '\0');
}

static int touch_record(void *ctx, uint64_t chunk, uint64_t offset, const char *kind,
                        const struct ls_dump_field *fields, unsigned n)
{
        volatile unsigned char *sink = ctx;

        (void)chunk;
        (void)offset;
        must(kind != NULL);
        for (unsigned i = 0; i < n; i++)
                if (!fields[i].is_u64 && fields[i].str.len)
                        *sink ^= (unsigned char)fields[i].str.s[fields[i].str.len - 1];
        return 0;
}

static void touch_tables(const struct ls_profile *p)
{
        for (uint32_t i = 0; i < p->n_functions; i++) {
                must(p->functions[i].source < p->n_sources && p->functions[i].mapping < p->n_mappings);
                touch_str(p->functions[i].name);
        }
        for (uint32_t i = 0; i < p->n_sources; i++) {
                touch_str(p->sources[i].name);
                touch_str(p->sources[i].path);
                touch_str(p->sources[i].text);
        }
        for (uint32_t i = 0; i < p->n_locations; i++)
                must(p->locations[i].function < p->n_functions);
        for (uint32_t i = 1; i < p->n_stacks; i++)
                must(p->stacks[i].parent < i && p->stacks[i].location < p->n_locations);
        for (uint32_t i = 1; i < p->n_zones; i++) {
                must(p->zones[i].parent < i);
                touch_str(p->zones[i].name);
        }
        for (uint32_t i = 0; i < p->n_threads; i++) {
                must(p->threads[i].process < p->n_processes);
                touch_str(p->threads[i].name);
        }
        for (uint32_t i = 0; i < p->n_vms; i++)
                must(p->vms[i].process < p->n_processes);
        for (uint32_t i = 0; i < p->n_coroutines; i++)
                must(p->coroutines[i].vm < p->n_vms && p->coroutines[i].function < p->n_functions);
        for (uint32_t i = 0; i < p->n_mappings; i++)
                touch_str(p->mappings[i].build_id);
        for (uint32_t i = 0; i < p->n_infos; i++)
                touch_str(p->infos[i].key);
        for (uint32_t i = 0; i < p->n_regions; i++)
                must(p->regions[i].thread < p->n_threads);
        must(p->lost_stack < p->n_stacks);
}

static void read_trace(const uint8_t *data, size_t size)
{
        int fd = memfd_create("fuzz", MFD_CLOEXEC);
        struct ls_profile *p = NULL;
        const char *error = NULL;
        unsigned char sink = 0;
        char path[64];

        must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (ls_profile_open(path, &p, &error)) {
                must(error && *error);
        } else {
                touch_tables(p);
                must(ls_profile_samples(p, LS_COL_TIME, touch_block, p) == 0);
                must(ls_profile_dump(p, touch_record, &sink) == 0);
                ls_profile_close(p);
        }
        close(fd);
}

/* Makes the checks of the file header and of each chunk right, one behind the other as their sizes say. */
static void make_right(uint8_t *data, size_t size)
{
        struct ls_chunk_header h;
        uint64_t check;

        if (size < sizeof(struct ls_file_header))
                return;
        memcpy(data, LS_FILE_MAGIC, 8);
        check = ls_hash(data, 24);
        memcpy(data + 24, &check, 8);
        for (size_t at = sizeof(struct ls_file_header); size - at >= sizeof(h); at += ls_chunk_size(&h)) {
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
