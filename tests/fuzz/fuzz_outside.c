/* libFuzzer target: the memory of a process with a VM in it, as the watcher and `luasample stack`
 * read it (record/watch), where words of it are what the input says. The memory is a picture that
 * tests/gen/gen_vm.c made when the project was built; the input names objects in it, not addresses,
 * so that it means the same in another one. Whatever it says, each look ends soon, reads nothing
 * but that memory and writes to none of it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "libsample/handler/functions.h"
#include "record/watch/look.h"
#include "record/watch/now.h"
#include "record/watch/remote.h"
#include "record/watch/suspended.h"
#include "libsample/vm/view.h"
#include "tests/gen/vm_image.h"
#include "libsample/handler/clock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
        if (!ok)
                abort();
}

#define IMAGES       2u
#define PATCHES_MOST 48u
#define RING         (64u << 10)
#define LONGEST_NS   UINT64_C(2000000000)       /* CPU time of all looks at one input */

struct image {
        struct image_head head;
        struct image_range *ranges;
        struct image_place *places;
        uint32_t first[PLACE_KINDS + 1];        /* of a kind, in by_kind */
        uint32_t *by_kind;
        char **bytes;                   /* of each range */
        char *maps;
};

static struct image images[IMAGES];
static struct image *image;
static struct { uint64_t ip, sp, stack_low, stack_high; } regs;

/* In place of record/watch/remote.c: the process is the picture. */

static char *bytes_at(uint64_t at, size_t *ret_n)
{
        for (uint32_t i = 0; i < image->head.n_ranges; i++) {
                const struct image_range *r = &image->ranges[i];

                if (at >= r->start && at < r->end) {
                        *ret_n = (size_t)(r->end - at);
                        return image->bytes[i] + (at - r->start);
                }
        }
        return NULL;
}

int ls_remote_memory(uint64_t at, void *to, size_t n)
{
        while (n) {
                size_t part;
                const char *from = bytes_at(at, &part);

                if (!from)
                        return -1;
                part = part < n ? part : n;
                memcpy(to, from, part);
                to = (char *)to + part;
                at += part;
                n -= part;
        }
        return 0;
}

void ls_remote_pieces(const struct iovec *here, const struct iovec *there, unsigned n,
                      uint8_t *ret_read)
{
        for (unsigned i = 0; i < n; i++)
                ret_read[i] = !ls_remote_memory((uintptr_t)there[i].iov_base, here[i].iov_base,
                                                there[i].iov_len);
}

FILE *ls_remote_maps(void)
{
        return fmemopen(image->maps, strlen(image->maps), "r");
}

int ls_remote_of_process(pid_t pid)
{
        (void)pid;
        return 0;
}

int ls_remote_open(pid_t tid, const char *name)
{
        (void)tid;
        (void)name;
        return -ENOENT;
}

int ls_remote_is_core(void)
{
        return 0;
}

static void get(FILE *f, void *to, size_t n)
{
        must(fread(to, 1, n, f) == n);
}

static void sort_places(struct image *im)
{
        uint32_t n = im->head.n_places, at = 0;

        im->by_kind = calloc(n, sizeof *im->by_kind);
        for (uint32_t kind = 0; kind < PLACE_KINDS; kind++) {
                im->first[kind] = at;
                for (uint32_t i = 0; i < n; i++)
                        if (im->places[i].kind == kind)
                                im->by_kind[at++] = i;
        }
        im->first[PLACE_KINDS] = at;
        must(at == n);
}

static void load(struct image *im, const char *path)
{
        FILE *f = fopen(path, "re");
        size_t len = 0;
        FILE *maps;

        must(f != NULL);
        get(f, &im->head, sizeof im->head);
        must(im->head.magic == IMAGE_MAGIC);
        im->ranges = calloc(im->head.n_ranges, sizeof *im->ranges);
        im->places = calloc(im->head.n_places, sizeof *im->places);
        im->bytes = calloc(im->head.n_ranges, sizeof *im->bytes);
        get(f, im->ranges, im->head.n_ranges * sizeof *im->ranges);
        get(f, im->places, im->head.n_places * sizeof *im->places);
        maps = open_memstream(&im->maps, &len);
        for (uint32_t i = 0; i < im->head.n_ranges; i++) {
                const struct image_range *r = &im->ranges[i];

                im->bytes[i] = malloc(r->end - r->start);
                get(f, im->bytes[i], r->end - r->start);
                fprintf(maps, "%llx-%llx %s 0 00:00 0\n", (unsigned long long)r->start,
                        (unsigned long long)r->end, r->rights);
        }
        fclose(maps);
        fclose(f);
        sort_places(im);
}

/* The changes. */

static struct { char *at; unsigned n; char was[8]; } undo[PATCHES_MOST];
static unsigned changes;
static int whole;                       /* 1 = nothing is changed, nothing left out */

static void change(char *at, const void *to, unsigned n)
{
        undo[changes].at = at;
        undo[changes].n = n;
        memcpy(undo[changes++].was, at, n);
        memcpy(at, to, n);
}

static void change_back(void)
{
        while (changes) {
                changes--;
                memcpy(undo[changes].at, undo[changes].was, undo[changes].n);
        }
}

struct patch {                          /* in the input */
        uint8_t kind, how;
        uint16_t index, offset;
        uint8_t value[8];
};

static const struct image_place *place_of(unsigned kind, unsigned index)
{
        uint32_t first, n;

        kind %= PLACE_KINDS;
        first = image->first[kind];
        n = image->first[kind + 1] - first;
        return n ? &image->places[image->by_kind[first + index % n]] : NULL;
}

/* The address of another place, with a type's tag when that is not 0. */
static uint64_t address_of(const uint8_t v[8])
{
        const struct image_place *p = place_of(v[0], (unsigned)(v[1] | v[2] << 8));
        int32_t offset;

        memcpy(&offset, v + 4, 4);
        if (!p)
                return 0;
        return v[3] ? ls_tagged((const void *)(uintptr_t)(p->at + (uint64_t)(int64_t)offset),
                                v[3] & 31)
                    : p->at + (uint64_t)(int64_t)offset;
}

static void apply(const struct patch *p)
{
        const struct image_place *place = place_of(p->kind, p->index);
        unsigned n = p->how % 8 == 3 ? 4 : p->how % 8 == 4 ? 1 : p->how % 8 == 5 ? 2 : 8;
        uint64_t value, old;
        size_t room;
        char *at;

        if (!place || place->size < 8)
                return;
        if (place->kind == PLACE_REGS)
                at = (char *)&regs + p->offset % 32 / 8 * 8;
        else if (!(at = bytes_at(place->at + p->offset % (place->size - 7), &room)) || room < 8)
                return;
        memcpy(&old, at, 8);
        memcpy(&value, p->value, 8);
        if (p->how % 8 == 1)
                value = address_of(p->value);
        else if (p->how % 8 == 2)
                value += old;
        else if (p->how % 8 == 6)
                value ^= old;
        change(at, &value, n);
}

/* The looks. */

static uint64_t rings[2][(LS_RING_DATA + RING) / 8];
static struct sigaction own_segv;

static struct ls_ring *fresh(unsigned i)
{
        struct ls_ring *ring = (struct ls_ring *)(void *)rings[i];

        memset(ring, 0, sizeof *ring);
        ring->size = RING;
        return ring;
}

/* What was sent has a head each, and is there. Returns the number of frames. */
static unsigned check_ring(const struct ls_ring *ring)
{
        unsigned frames = 0;

        must(ring->head - ring->tail <= RING);
        for (uint64_t p = ring->tail; p != ring->head;) {
                const struct ls_ring_rec *rec =
                        (const void *)((const char *)ring + LS_RING_DATA + (p & (RING - 1)));
                uint32_t size = LS_RING_SIZE(rec->size_kind);

                must(size >= 8 && size % 8 == 0 && size <= ring->head - p);
                must(rec->state == LS_RING_STATE(p, LS_RING_DONE) ||
                     rec->state == LS_RING_STATE(p, LS_RING_OPEN));
                if (LS_RING_KIND(rec->size_kind) == LS_REC_SAMPLE)
                        frames += ((const struct ls_rec_sample *)(const void *)(rec + 1))->nframes;
                p += size;
        }
        return frames;
}

static int still(void *ctx)
{
        (void)ctx;
        return 1;
}

/* A read that nobody asked for is a fault, not a page that is fetched. */
static void keep_faults(void)
{
        struct rlimit none;

        sigaction(SIGSEGV, &own_segv, NULL);
        getrlimit(RLIMIT_DATA, &none);
        none.rlim_cur = none.rlim_max;
        setrlimit(RLIMIT_DATA, &none);
}

static void watch(struct ls_shm *shm, uint64_t now)
{
        static struct ls_ring agents;
        struct ls_look *l;

        atomic_store(&shm->view, image->head.view);
        agents.thread = image->head.thread;
        if (ls_look_image(shm, getpid()))
                return;
        keep_faults();
        l = ls_look_new(0, getpid(), -1, &agents, fresh(0));
        must(l != NULL);
        for (int i = 0; i < 3; i++)
                ls_look_send(l, regs.ip, regs.sp, 1, now + (uint64_t)i * 200000000, 0, still, NULL);
        must(check_ring((struct ls_ring *)(void *)rings[0]) >= 8 || !whole);
        ls_look_free(l);
}

static void suspended(struct ls_shm *shm, uint64_t now)
{
        struct ls_ring *ring = fresh(1);

        atomic_store(&shm->view, image->head.view);
        if (ls_look_image(shm, getpid()))
                return;
        keep_faults();
        ls_suspended_begin(shm, getpid(), ring, 1000000);
        /* On a busy machine one look has no time for all. */
        for (unsigned i = 0; i < 3 || (whole && i < 200 && check_ring(ring) < 20); i++)
                ls_suspended_look(now + i * UINT64_C(11000000000));
        atomic_store(&shm->paused, 1);          /* else it looks once more */
        ls_suspended_end();
        atomic_store(&shm->paused, 0);
        must(check_ring(ring) >= 20 || !whole);
}

static void stack(struct ls_shm *shm)
{
        static struct ls_probe_answer answer;
        struct ls_now n = { .pid = getpid(),
                            .shm = shm,
                            .answer_fd = memfd_create("fuzz", MFD_CLOEXEC),
                            .n_threads = 1 };
        const struct image_place *facts = place_of(PLACE_FACTS, 0),
                                 *builtins = place_of(PLACE_BUILTINS, 0);

        answer.size = sizeof answer;
        must(!ls_remote_memory(facts->at, &answer.facts, sizeof answer.facts));
        must(!ls_remote_memory(builtins->at, answer.builtins, sizeof answer.builtins));
        must(pwrite(n.answer_fd, &answer, sizeof answer, 0) == sizeof answer);
        ls_now_prepare(&n);
        keep_faults();
        n.threads[0] = (struct ls_now_thread){ .tid = getpid(),
                                               .ip = regs.ip,
                                               .sp = regs.sp,
                                               .bx = regs.stack_low,
                                               .dx = regs.stack_high };
        if (!n.error)
                ls_now_look(&n, whole ? UINT64_C(60000000000) : 3000000,
                            whole ? UINT64_C(60000000000) : 150000000);
        must(!whole || (!n.error && n.vms == 1 && !n.unread && n.coroutines >= 10));
        must(memchr(n.version, 0, sizeof n.version) != NULL);
        close(n.answer_fd);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
        (void)argc;
        (void)argv;
        load(&images[0], VM_IMAGE_C);
        load(&images[1], VM_IMAGE_CODE);
        sigaction(SIGSEGV, NULL, &own_segv);
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        enum { SHM = LS_SHM_RINGS + 4 * (LS_RING_DATA + RING) };
        static struct ls_shm *shm;
        struct timespec began, ended;
        unsigned how = size ? data[0] : 0, looks = how >> 1 & 3;

        if (!images[0].bytes)
                LLVMFuzzerInitialize(NULL, NULL);
        if (!shm)
                shm = calloc(1, SHM);
        image = &images[how & 1];
        memcpy(&regs, &image->head.ip, sizeof regs);
        memset(shm, 0, sizeof *shm);
        memset((char *)shm + LS_SHM_RINGS, 0, SHM - LS_SHM_RINGS);
        shm->interval_ns = 1000000;
        shm->want_text = how >> 3 & 1;
        shm->depth = how >> 4;
        shm->ring_size = shm->small_size = RING;
        shm->ring_stride = LS_RING_DATA + RING;
        shm->native = how >> 5 & 1;
        shm->native_bytes = 8192;
        whole = size == 1 && !shm->depth;
        for (size_t at = 1; at + sizeof(struct patch) <= size && changes < PATCHES_MOST;
             at += sizeof(struct patch)) {
                struct patch p;

                memcpy(&p, data + at, sizeof p);
                apply(&p);
        }
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
        if (looks != 2)
                watch(shm, ls_now_ns());
        if (looks >= 2)
                suspended(shm, ls_now_ns());
        if (looks == 3)                 /* it searches all of the picture for VMs */
                stack(shm);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
        must((uint64_t)(ended.tv_sec - began.tv_sec) * 1000000000u + (uint64_t)ended.tv_nsec -
                     (uint64_t)began.tv_nsec <
             LONGEST_NS);
        change_back();
        return 0;
}
