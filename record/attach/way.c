/* See way.h. */
#include "record/attach/way.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>

#include "formats/wire/attach.h"

#define PLACE 512u                      /* bytes that one attachment takes */
#define PAGE 4096u
#define SIGNATURE 0x7961776c7561736cull

struct data {                           /* behind the code; its offsets are used by it */
        uint64_t signature;
        uint64_t mask;                  /* of the program's thread */
        uint64_t own_mask;              /* of ours: all signals but the two with which the C library
                                         * reaches each thread */
        uint64_t region_size;
        uint64_t flags, rax, rbx, rcx, rdx, rsi, rdi, r8, r9, r10, r11, rip;
};

#define OFFSETS(X)                                                                                 \
        X(mask, 8)                                                                                 \
        X(own_mask, 16) X(region_size, 24) X(flags, 32) X(rax, 40) X(rbx, 48) X(rcx, 56)           \
                X(rdx, 64) X(rsi, 72) X(rdi, 80) X(r8, 88) X(r9, 96) X(r10, 104) X(r11, 112)       \
                        X(rip, 120)
#define CHECK(member, at) _Static_assert(offsetof(struct data, member) == at, "offset of " #member);
OFFSETS(CHECK)
#define SET(member, at) ".set ls_way_at_" #member ", ls_way_data + " #at "\n"
_Static_assert(offsetof(struct ls_attach, go) == 0 && offsetof(struct ls_attach, result) == 68 &&
               offsetof(struct ls_attach, begin) == 248, "offsets in the page");

extern const char ls_way_code[], ls_way_code_unmap[], ls_way_code_clone[], ls_way_code_refused[],
        ls_way_data[];

__asm__(".section .rodata\n"
        ".balign 8\n"
        ".globl ls_way_code, ls_way_code_unmap, ls_way_code_clone, ls_way_code_refused, "
        "ls_way_data\n"
        ".hidden ls_way_code, ls_way_code_unmap, ls_way_code_clone, ls_way_code_refused, "
        "ls_way_data\n"
        "ls_way_code:\n"
        "       syscall\n" /* mmap */
        "       cmpq    $-4095, %rax\n"
        "       jae     3f\n"
        "       movq    %rax, %rdi\n"
        "ls_way_code_unmap:\n"
        "       movl    $11, %eax\n" /* munmap */
        "       movq    ls_way_at_region_size(%rip), %rsi\n"
        "       syscall\n"
        "       jmp     3f\n"
        "ls_way_code_clone:\n"
        "       syscall\n"
        "       testq   %rax, %rax\n"
        "       jz      5f\n"
        "       leaq    -4096(%rbx), %rdi\n"
        "       js      ls_way_code_unmap\n"
        /* back; the stack below what the thread may use of it without moving rsp */
        "3:     leaq    -128(%rsp), %rsp\n"
        "       pushq   ls_way_at_flags(%rip)\n"
        "       popfq\n"
        "       leaq    128(%rsp), %rsp\n"
        "       movl    $14, %eax\n" /* rt_sigprocmask; no instruction from here
                                                         * on changes flags */
        "       movl    $2, %edi\n"  /* SIG_SETMASK */
        "       leaq    ls_way_at_mask(%rip), %rsi\n"
        "       movl    $0, %edx\n"
        "       movl    $8, %r10d\n"
        "       syscall\n"
        "       movq    ls_way_at_rax(%rip), %rax\n"
        "       movq    ls_way_at_rbx(%rip), %rbx\n"
        "       movq    ls_way_at_rcx(%rip), %rcx\n"
        "       movq    ls_way_at_rdx(%rip), %rdx\n"
        "       movq    ls_way_at_rsi(%rip), %rsi\n"
        "       movq    ls_way_at_rdi(%rip), %rdi\n"
        "       movq    ls_way_at_r8(%rip), %r8\n"
        "       movq    ls_way_at_r9(%rip), %r9\n"
        "       movq    ls_way_at_r10(%rip), %r10\n"
        "       movq    ls_way_at_r11(%rip), %r11\n"
        "       jmpq    *ls_way_at_rip(%rip)\n"
        /* the first thread of ours */
        "5:     movl    $14, %eax\n"
        "       movl    $2, %edi\n"
        "       leaq    ls_way_at_own_mask(%rip), %rsi\n"
        "       xorl    %edx, %edx\n"
        "       movl    $8, %r10d\n"
        "       syscall\n"
        "       leaq    248(%rbx), %r12\n" /* begin */
        "       call    6f\n"
        "       cmpl    $1, %eax\n"
        "       jne     8f\n"
        "       movl    $10, %eax\n" /* mprotect: code, and no longer written */
        "       leaq    -4096(%rbx), %rdi\n"
        "       movl    $4096, %esi\n"
        "       movl    $5, %edx\n"
        "       syscall\n"
        "       leaq    -4096(%rbx), %rcx\n"
        "       testl   %eax, %eax\n"
        "       jnz     1f\n"
        "       jmpq    *%rcx\n"
        "1:     movl    %eax, 68(%rbx)\n" /* result */
        "ls_way_code_refused:\n"
        "       movq    %rbx, %r12\n" /* go */
        "       call    6f\n"
        "8:     movl    $218, %eax\n" /* set_tid_address: the word will be gone */
        "       xorl    %edi, %edi\n"
        "       syscall\n"
        "       movl    $11, %eax\n"
        "       leaq    -4096(%rbx), %rdi\n"
        "       movq    ls_way_at_region_size(%rip), %rsi\n"
        "       syscall\n"
        "       movl    $60, %eax\n" /* exit */
        "       xorl    %edi, %edi\n"
        "       syscall\n"
        "       ud2\n"
        /* until the word at r12 is not 0, or some 3 s: looks that become rarer, as many of them on
         * a busy machine. eax = word */
        "6:     movl    $400, %ebp\n"
        "       pushq   $100000\n" /* struct timespec */
        "       pushq   $0\n"
        "1:     movl    (%r12), %eax\n"
        "       testl   %eax, %eax\n"
        "       jnz     2f\n"
        "       decl    %ebp\n"
        "       jz      2f\n"
        "       movl    $35, %eax\n" /* nanosleep */
        "       movq    %rsp, %rdi\n"
        "       xorl    %esi, %esi\n"
        "       syscall\n"
        "       movq    8(%rsp), %rax\n"
        "       shrq    $6, %rax\n"
        "       addq    %rax, 8(%rsp)\n"
        "       jmp     1b\n"
        "2:     addq    $16, %rsp\n"
        "       ret\n"
        "       .balign 8\n"
        "ls_way_data:\n" OFFSETS(SET) ".previous\n");

uint64_t ls_way_map(const struct ls_way *w)
{
        return w->at;
}

uint64_t ls_way_unmap(const struct ls_way *w)
{
        return w->at + (uint64_t)(ls_way_code_unmap - ls_way_code);
}

uint64_t ls_way_clone(const struct ls_way *w)
{
        return w->at + (uint64_t)(ls_way_code_clone - ls_way_code);
}

uint64_t ls_way_refused(const struct ls_way *w)
{
        return w->at + (uint64_t)(ls_way_code_refused - ls_way_code);
}

/* A place among those up to the end of the page that is all zeros. */
static uint64_t free_place(const struct ls_modules *ms, uint64_t from)
{
        uint64_t end = (from + PAGE - 1) & ~(uint64_t)(PAGE - 1);
        static const uint8_t zeros[PLACE];
        uint8_t bytes[PLACE];

        for (uint64_t at = (from + 15) & ~15ull; at + PLACE <= end; at += PLACE)
                if (ls_remote_read(ms, at, bytes, PLACE) == 0 && !memcmp(bytes, zeros, PLACE))
                        return at;
        return 0;
}

/* Objects that are never unmapped: the C library, its loader and, where they are apart, its
 * threads. */
int ls_way_find(struct ls_way *w, const struct ls_modules *modules)
{
        static const char *const symbols[] = { "gnu_get_libc_version", "__tls_get_addr",
                                               "pthread_create" };

        *w = (struct ls_way){ .modules = modules };
        for (unsigned i = 0; !w->at && i < sizeof(symbols) / sizeof(*symbols); i++) {
                const struct ls_module *m = ls_modules_find(modules, symbols[i]);
                uint64_t end = m ? m->object.code_end : 0;

                w->at = end ? free_place(modules, end) : 0;
        }
        return w->at ? 0 : -ENOSPC;
}

/* What the kernel does with a system call that the stop has interrupted; it does so itself for a
 * thread that goes on as traced. */
static void begin_call_again(struct data *d, const struct user_regs_struct *saved)
{
        int64_t result = (int64_t)saved->rax;

        if ((int64_t)saved->orig_rax < 0 || result > -512 || result < -516 || result == -515)
                return;
        d->rax = result == -516 ? 219 /* restart_syscall */ : saved->orig_rax;
        d->rip -= 2;
}

int ls_way_write(struct ls_way *w, pid_t tid, const struct user_regs_struct *saved, uint64_t mask,
                 uint64_t region_size)
{
        size_t code = (size_t)(ls_way_data - ls_way_code);
        uint8_t bytes[PLACE] = { 0 };
        struct data d = {
                .signature = SIGNATURE,
                .mask = mask,
                .own_mask = ~(3ull << 31),
                .region_size = region_size,
                .flags = saved->eflags,
                .rax = saved->rax,
                .rbx = saved->rbx,
                .rcx = saved->rcx,
                .rdx = saved->rdx,
                .rsi = saved->rsi,
                .rdi = saved->rdi,
                .r8 = saved->r8,
                .r9 = saved->r9,
                .r10 = saved->r10,
                .r11 = saved->r11,
                .rip = saved->rip,
        };
        uint64_t there;

        if (code + sizeof(d) > PLACE)
                return -ENOSPC;
        begin_call_again(&d, saved);
        memcpy(bytes, ls_way_code, code);
        memcpy(bytes + code, &d, sizeof(d));
        if (ls_remote_write(w->modules, w->at, bytes, code + sizeof(d)) < 0)
                return -ESTALE;
        /* as the thread itself sees it: it may have begun another program since its objects were
         * looked at */
        errno = 0;
        there = (uint64_t)ptrace(PTRACE_PEEKDATA, tid, (void *)(w->at + code), NULL);
        return errno || there != SIGNATURE ? -ESTALE : 0;
}

void ls_way_erase(struct ls_way *w)
{
        static const uint8_t zeros[PLACE];

        if (w->at)
                ls_remote_write(w->modules, w->at, zeros, PLACE);
        w->at = 0;
}
