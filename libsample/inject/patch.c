/* See patch.h. Per function a slot of a page within 2 GiB of it:
 *
 *   0   jmp *[rip]; .quad replacement          where the patched entry jumps to
 *   16  moved instructions; jmp *[rip]; .quad entry + n
 */

#include "libsample/inject/patch.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "libsample/inject/decode.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define PAGE 4096u
#define SLOT 128u
#define MOST (PAGE / SLOT)             /* functions at a time */
#define TRAMPOLINE 16u                  /* offset in a slot */
#define JUMP_LEN 5u                     /* jmp rel32 */
#define FAR_JUMP_LEN 14u                /* jmp *[rip]; .quad */
#define MUST_CHECK 64u                  /* bytes of a function that must be understood */
#define MAX_CHECK 65536u
#define REACH (INT64_C(1) << 31)

static uint8_t *put_far_jump(uint8_t *to, const void *where)
{
        static const uint8_t code[6] = { 0xff, 0x25, 0, 0, 0, 0 };

        memcpy(to, code, sizeof code);
        memcpy(to + sizeof code, &where, sizeof where);
        return to + FAR_JUMP_LEN;
}

static int put_rel32(uint8_t *at, const uint8_t *target)
{
        int64_t rel = (int64_t)((uintptr_t)target - (uintptr_t)(at + 4));
        int32_t rel32 = (int32_t)rel;

        if (rel != rel32)
                return -ERANGE;
        memcpy(at, &rel32, sizeof rel32);
        return 0;
}

/* Bytes of whole instructions that the jump overwrites, or 0 with *ret_why. */
static size_t overwritten(const uint8_t *entry, size_t size, const char **ret_why)
{
        struct ls_insn insn;
        size_t n = 0;

        while (n < JUMP_LEN) {
                if (ls_decode(entry + n, size - n, &insn) < 0) {
                        *ret_why = n < size ? "its first instructions are not known"
                                            : "it is too short";
                        return 0;
                }
                n += insn.length;
                if (n < JUMP_LEN && (insn.flow == LS_FLOW_END || insn.flow == LS_FLOW_JUMP)) {
                        *ret_why = "it is too short";
                        return 0;
                }
        }
        return n;
}

/* NULL unless a branch in the function leads into the n bytes that will move, or its start is not
 * understood. Where size is a guess the function ends with the first instruction that does not go
 * on and that no branch skips. */
static const char *check_branches(const uint8_t *entry, size_t size, int guess, size_t n)
{
        const uint8_t *furthest = entry;
        struct ls_insn insn;

        for (size_t at = 0; at < size; at += insn.length) {
                const uint8_t *target;

                if (ls_decode(entry + at, size - at, &insn) < 0)
                        return at < MUST_CHECK ? "its first instructions are not known" : NULL;
                target = insn.rel_at ? ls_insn_target(entry + at, &insn) : NULL;
                if (target > entry && target < entry + n)
                        return "it branches into its first instructions";
                if (target > furthest && insn.flow != LS_FLOW_CALL)
                        furthest = target;
                if (guess && furthest <= entry + at &&
                    (insn.flow == LS_FLOW_END || insn.flow == LS_FLOW_JUMP))
                        break;
        }
        return NULL;
}

int ls_patch_move(const uint8_t *code, const struct ls_insn *insn, uint8_t **to)
{
        uint8_t *p = *to;
        const uint8_t *target;
        int32_t rel;
        int r = 0;

        switch (insn->flow) {
        case LS_FLOW_CALL:
        case LS_FLOW_JUMP:
                *p++ = insn->flow == LS_FLOW_CALL ? 0xe8 : 0xe9;
                r = put_rel32(p, ls_insn_target(code, insn));
                p += 4;
                break;
        case LS_FLOW_BRANCH:
                *p++ = 0x0f;
                *p++ = 0x80 | insn->condition;
                r = put_rel32(p, ls_insn_target(code, insn));
                p += 4;
                break;
        case LS_FLOW_LOOP:
                return -ENOSYS;
        default:
                memcpy(p, code, insn->length);
                if (insn->rip_at) {     /* the displacement counts from the instruction's end */
                        memcpy(&rel, code + insn->rip_at, sizeof rel);
                        target = code + insn->length + rel;
                        r = put_rel32(p + insn->rip_at, target - (insn->length - insn->rip_at - 4));
                }
                p += insn->length;
        }
        *to = p;
        return r;
}

static const char *make_trampoline(const uint8_t *entry, size_t n, uint8_t *to)
{
        struct ls_insn insn;

        for (size_t at = 0; at < n; at += insn.length) {
                if (ls_decode(entry + at, 15, &insn) < 0 ||
                    ls_patch_move(entry + at, &insn, &to) < 0)
                        return "its first instructions cannot be moved";
        }
        put_far_jump(to, entry + n);
        return NULL;
}

/* Memory within reach of all the targets. Below them first: what lies above a program is its heap's
 * room to grow. */
static uint8_t *map_near(uintptr_t low, uintptr_t high, size_t size, int prot)
{
        static const struct { int64_t step, limit; } ways[] = {
                { -0x10000, 64 }, { -0x100000, 256 }, { -0x1000000, 120 }, { 0x1000000, 120 },
        };

        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
                for (int64_t k = 1; k <= ways[i].limit; k++) {
                        uintptr_t from = ways[i].step < 0 ? low : high;
                        uintptr_t want = (from & ~(uintptr_t)(PAGE - 1)) +
                                         (uintptr_t)(ways[i].step * k);
                        void *p;

                        if (ways[i].step < 0 && (uintptr_t)(-ways[i].step * k) + 0x10000 > low)
                                break;
                        if ((int64_t)(high - want) > REACH - (int64_t)size ||
                            (int64_t)(want - low) > REACH - (int64_t)size)
                                break;
                        p = mmap((void *)want, size, prot,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                                 -1, 0);
                        if (p == (void *)want)
                                return p;
                        if (p != MAP_FAILED)    /* an old kernel took the address as a hint */
                                munmap(p, size);
                }
        }
        return NULL;
}

void *ls_patch_reserve(uintptr_t target, size_t size)
{
        return map_near(target, target, size, PROT_NONE);
}

/* Stores n bytes, JUMP_LEN at most, over those at entry in one store where 8 or 16 aligned bytes
 * hold them: a thread that calls the function meanwhile runs the old or the new instructions. */
static int store(uint8_t *entry, const uint8_t *code, size_t n, int single_threaded)
{
        uint8_t *word8 = (uint8_t *)((uintptr_t)entry & ~(uintptr_t)7);
        uint8_t *word16 = (uint8_t *)((uintptr_t)entry & ~(uintptr_t)15);
        uint8_t bytes[16];
        uint64_t word[2], old[2];

        if (entry + n <= word8 + 8) {
                memcpy(bytes, word8, 8);
                memcpy(bytes + (entry - word8), code, n);
                memcpy(word, bytes, 8);
                __atomic_store_n((uint64_t *)word8, word[0], __ATOMIC_SEQ_CST);
                return 0;
        }
        if (entry + n <= word16 + 16) {
                unsigned char done;

                memcpy(old, word16, 16);
                memcpy(bytes, word16, 16);
                memcpy(bytes + (entry - word16), code, n);
                memcpy(word, bytes, 16);
                __asm__ volatile("lock cmpxchg16b %1\n\tsete %0"
                                 : "=q"(done), "+m"(*(unsigned __int128 *)word16), "+a"(old[0]),
                                   "+d"(old[1])
                                 : "b"(word[0]), "c"(word[1])
                                 : "cc", "memory");
                return done ? 0 : -EAGAIN;
        }
        if (!single_threaded)
                return -EBUSY;
        memcpy(entry, code, n);
        return 0;
}

static int store_in_text(uint8_t *entry, const uint8_t *code, size_t n, int prot,
                         int single_threaded, const char **ret_why)
{
        uintptr_t first = (uintptr_t)entry & ~(uintptr_t)(PAGE - 1);
        size_t len = (((uintptr_t)entry + 15) | (PAGE - 1)) + 1 - first;
        int r;

        *ret_why = "its code may not be made writable here";
        if (mprotect((void *)first, len, prot | PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
                return -errno;
        r = store(entry, code, n, single_threaded);
        mprotect((void *)first, len, prot);
        *ret_why = r < 0 ? "its entry cannot be replaced in one store while threads run" : NULL;
        return r;
}

static const char *patch_entry(struct ls_patch *patch, uint8_t *slot, int single_threaded)
{
        uint8_t *entry = patch->target, jump[JUMP_LEN] = { 0xe9 };
        int32_t rel = (int32_t)((uintptr_t)slot - (uintptr_t)(entry + JUMP_LEN));
        const char *why;

        memcpy(jump + 1, &rel, sizeof rel);
        if (store_in_text(entry, jump, JUMP_LEN, patch->prot, single_threaded, &why) == 0) {
                patch->slot = slot;
                patch->closed = 0;
        }
        return why;
}

const char *(*ls_patch_hold)(const struct ls_patch *patches, size_t n);
const char *(*ls_patch_call)(void);
void (*ls_patch_let_go)(void);

/* A thread that comes to the function waits there, by a jump to itself, and none gets behind its
 * entry any more: so each thread has to be looked at once only. A first instruction of one byte has
 * no room for it. */
static void close_entry(struct ls_patch *patch)
{
        static const uint8_t loop[] = { 0xeb, 0xfe };
        struct ls_insn first;
        const char *why;

        if (ls_decode(patch->target, patch->moved, &first) < 0 || first.length < sizeof loop)
                return;
        patch->closed = 1;
        if (store_in_text(patch->target, loop, sizeof loop, patch->prot, 0, &why) < 0)
                patch->closed = 0;
}

static void open_entry(struct ls_patch *patch)
{
        const uint8_t *entry = patch->target;
        const char *why;

        if (patch->closed && entry[0] == 0xeb && entry[1] == 0xfe &&
            store_in_text(patch->target, patch->saved, 2, patch->prot, 0, &why) == 0)
                patch->closed = 0;
}

/* Entries of those whose slot is given. Returns how many are patched. */
static size_t patch_entries(struct ls_patch *patches, size_t n, uint8_t *const slots[], int prot,
                            int single_threaded)
{
        const char *why = NULL;
        size_t done = 0, wanted = 0;

        for (size_t i = 0; i < n; i++) {
                patches[i].closed = 0;
                if (!slots[i])
                        continue;
                wanted++;
                patches[i].prot = prot;
                memcpy(patches[i].saved, patches[i].target, JUMP_LEN);
        }
        if (!wanted)
                return 0;
        if (ls_patch_call)
                why = ls_patch_call();
        for (size_t i = 0; ls_patch_hold && !why && i < n; i++)
                if (slots[i])
                        close_entry(&patches[i]);
        if (ls_patch_hold && !why)
                why = ls_patch_hold(patches, n);
        for (size_t i = 0; i < n; i++) {
                if (!slots[i])
                        continue;
                patches[i].why = why ? why : patch_entry(&patches[i], slots[i], single_threaded);
                open_entry(&patches[i]);        /* one that could not be patched */
                done += !patches[i].why;
        }
        if (ls_patch_hold)
                ls_patch_let_go();
        return done;
}

void ls_patch_after_fork(struct ls_patch *patches, size_t n)
{
        for (size_t i = 0; i < n; i++)
                open_entry(&patches[i]);
}

void ls_patch_remove(struct ls_patch *patches, size_t n, int prot)
{
        const char *why;

        for (size_t i = 0; i < n; i++)
                if (patches[i].slot && !patches[i].why)
                        store_in_text(patches[i].target, patches[i].saved, JUMP_LEN, prot, 0, &why);
}

/* Those that were installed once and removed. */
static size_t install_again(struct ls_patch *patches, size_t n, int prot)
{
        uint8_t *slots[MOST] = { NULL };

        for (size_t i = 0; i < n; i++)
                if (patches[i].slot && !memcmp(patches[i].target, patches[i].saved, JUMP_LEN))
                        slots[i] = patches[i].slot;
        return patch_entries(patches, n, slots, prot, 0);
}

/* Fills the slot of one function. */
static const char *prepare(struct ls_patch *patch, uint8_t *slot)
{
        size_t size = patch->size ? patch->size : MUST_CHECK + 15, n;
        const char *why = NULL;

        if (size > MAX_CHECK)
                size = MAX_CHECK;
        n = overwritten(patch->target, size, &why);
        if (n)
                why = check_branches(patch->target, size, patch->size == 0, n);
        if (!why)
                why = make_trampoline(patch->target, n, slot + TRAMPOLINE);
        if (!why) {
                patch->moved = n;
                put_far_jump(slot, patch->replacement);
                patch->original = slot + TRAMPOLINE;
        }
        return why;
}

static uint8_t *make_page(struct ls_patch *patches, size_t n)
{
        uintptr_t low = UINTPTR_MAX, high = 0;

        for (size_t i = 0; i < n; i++) {
                uintptr_t target = (uintptr_t)patches[i].target;

                if (target && target < low)
                        low = target;
                if (target && target > high)
                        high = target;
        }
        return high ? map_near(low, high, PAGE, PROT_READ | PROT_WRITE) : NULL;
}

size_t ls_patch_install(struct ls_patch *patches, size_t n, int prot, int single_threaded)
{
        uint8_t *page, *slots[MOST] = { NULL };
        const char *refused = NULL;
        size_t done;

        if (n > MOST)
                n = MOST;
        for (size_t i = 0; i < n; i++)
                if (patches[i].slot)
                        return install_again(patches, n, prot);
        page = make_page(patches, n);
        for (size_t i = 0; i < n; i++) {
                patches[i].original = NULL;
                if (!patches[i].target)
                        patches[i].why = "it is not there";
                else if (!page)
                        patches[i].why = "no memory is free near it";
                else
                        patches[i].why = prepare(&patches[i], page + i * SLOT);
        }
        if (page && mprotect(page, PAGE, PROT_READ | PROT_EXEC) < 0)
                refused = "memory may not be made executable here";
        for (size_t i = 0; i < n; i++)
                if (!patches[i].why && !(patches[i].why = refused))
                        slots[i] = page + i * SLOT;
        done = patch_entries(patches, n, slots, prot, single_threaded);
        for (size_t i = 0; i < n; i++)
                if (patches[i].why)
                        patches[i].original = NULL;
        if (page && done == 0)
                munmap(page, PAGE);
        return done;
}
