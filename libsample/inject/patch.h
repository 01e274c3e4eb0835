/* Entry patches: a jump at the start of a function of the program to one of ours, and a trampoline
 * through which ours calls the original (the moved first instructions and a jump behind them). The
 * jump is one instruction, so it can be taken back while threads run the function. What it replaces
 * is mostly more than one: a thread that has executed the first and not the last would go on in the
 * middle of the jump. Where threads run, ls_patch_hold keeps them out. */
#ifndef LS_PATCH_H
#define LS_PATCH_H

#include <stddef.h>
#include <stdint.h>

struct ls_insn;

struct ls_patch {
        const char *name;               /* for messages */
        void *target;                   /* entry of the function; NULL = it is not there: nothing is
                                         * done */
        size_t size;                    /* its length in bytes; 0 = not known, 64 are assumed */
        void *replacement;              /* our function of the same type */
        void *original;                 /* out: trampoline to the original; set before the entry
                                         * jumps to replacement */
        void *slot;                     /* the patcher's own: where the entry jumps to, kept when
                                         * the patch is removed */
        size_t moved;                   /* bytes of the whole instructions that the jump replaces;
                                         * the patcher's own */
        int prot;                       /* of its code; the patcher's own */
        volatile int closed;            /* 1 = the entry jumps to itself, until the jump to slot is
                                         * there */
        unsigned char saved[5];         /* the bytes that the jump replaced */
        const char *why;                /* out: NULL = patched, else why not, a few words */
};

/* Where entries are patched while other threads run: keeps each of them from standing behind the
 * entry of one of the functions and within its moved bytes, until let_go. Returns NULL, or why it
 * cannot be done: then they are not patched. Set by start/attach.c; NULL = no thread can be at
 * these entries. */
extern const char *(*ls_patch_hold)(const struct ls_patch *patches, size_t n);
/* Before that, while the entries are as they were: asks whoever holds to come. NULL = that need not
 * be asked. */
extern const char *(*ls_patch_call)(void);
extern void (*ls_patch_let_go)(void);

/* Patches all of them; they lie in one object whose code has protection prot (PROT_*).
 * single_threaded: no other thread can run any of the functions now, so that an entry which no
 * atomic store can cover may be patched too. Returns how many were patched. Normal context. */
size_t ls_patch_install(struct ls_patch *patches, size_t n, int prot, int single_threaded);
/* Puts the replaced bytes back. The trampolines stay, for threads that are in them and for the next
 * installation. */
void ls_patch_remove(struct ls_patch *patches, size_t n, int prot);
/* Writes the instruction at code to *to, with relative operands widened and corrected, and sets *to
 * behind it: 15 bytes at most. Returns 0; -ENOSYS for one that cannot be moved; -ERANGE where its
 * target is out of reach. */
int ls_patch_move(const uint8_t *code, const struct ls_insn *insn, uint8_t **to);
/* Addresses within reach of a 32-bit displacement from target, mapped without access; NULL = there
 * is no room. */
void *ls_patch_reserve(uintptr_t target, size_t size);
/* In a forked child: entries that the parent was about to replace are as they were. */
void ls_patch_after_fork(struct ls_patch *patches, size_t n);

#endif
