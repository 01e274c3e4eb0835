/* See stub.h. Registers of the first thread at its start: rbx = struct ls_attach, rsp = end of its
 * stack. */
#include "record/attach/stub.h"

#include <stddef.h>

#include "formats/wire/attach.h"

#define OFFSETS(X)                                                                                 \
        X(go, 0)                                                                                   \
        X(state, 4) X(fd_agent, 8) X(fd_memory, 12) X(pthread_create, 16) X(pthread_detach, 24)    \
                X(pthread_self, 32) X(dlopen, 40) X(dlsym, 48) X(entry, 56) X(created, 64)         \
                        X(thread, 72) X(handle, 80) X(dlerror, 88) X(error_text, 96) X(pause, 104) \
                                X(looks, 120) X(mxcsr, 124) X(name, 128) X(path, 144)              \
                                        X(symbol, 176) X(carrier_tid, 208) X(region, 216)          \
                                                X(region_size, 224) X(munmap, 256) X(refused, 264)
#define CHECK(member, at)                                                                          \
        _Static_assert(offsetof(struct ls_attach, member) == at, "offset of " #member);
OFFSETS(CHECK)
#define SET(member, at) ".set ls_at_" #member ", " #at "\n"

__asm__(OFFSETS(SET)
        ".section .rodata\n"
        ".globl ls_attach_stub, ls_attach_stub_end\n"
        ".hidden ls_attach_stub, ls_attach_stub_end\n"
        "ls_attach_stub:\n"
        /* the first thread; floating point may have been in any state */
        "       fninit\n"
        "       ldmxcsr ls_at_mxcsr(%rbx)\n"
        "       cld\n"
        "       xorl    %ebp, %ebp\n"
        "       leaq    ls_at_thread(%rbx), %rdi\n"
        "       xorl    %esi, %esi\n"
        "       leaq    5f(%rip), %rdx\n"
        "       movq    %rbx, %rcx\n"
        "       call    *ls_at_pthread_create(%rbx)\n"
        "       movl    %eax, ls_at_created(%rbx)\n"
        "       testl   %eax, %eax\n"
        "       jz      1f\n"
        "       jmpq    *ls_at_refused(%rbx)\n"
        "1:     movl    $60, %eax\n"                    /* exit */
        "       xorl    %edi, %edi\n"
        "       syscall\n"
        "       ud2\n"
        /* the thread proper */
        "5:     pushq   %rbx\n"
        "       movq    %rdi, %rbx\n"
        "       call    *ls_at_pthread_self(%rbx)\n"
        "       movq    %rax, %rdi\n"
        "       call    *ls_at_pthread_detach(%rbx)\n"
        "       movl    $-1, ls_at_fd_agent(%rbx)\n"
        "       cmpq    $0, ls_at_entry(%rbx)\n"
        "       jne     1f\n"
        "       movl    $319, %eax\n"                   /* memfd_create */
        "       leaq    ls_at_name(%rbx), %rdi\n"
        "       movl    $3, %esi\n"                     /* MFD_CLOEXEC | MFD_ALLOW_SEALING */
        "       syscall\n"
        "       movl    %eax, ls_at_fd_agent(%rbx)\n"
        "1:     movl    $319, %eax\n"
        "       leaq    ls_at_name(%rbx), %rdi\n"
        "       movl    $3, %esi\n"
        "       syscall\n"
        "       movl    %eax, ls_at_fd_memory(%rbx)\n"
        "       movl    $1, ls_at_state(%rbx)\n"
        "2:     movl    ls_at_go(%rbx), %eax\n"
        "       testl   %eax, %eax\n"
        "       jnz     3f\n"
        "       decl    ls_at_looks(%rbx)\n"
        "       jz      8f\n"
        "       movl    $35, %eax\n"                    /* nanosleep */
        "       leaq    ls_at_pause(%rbx), %rdi\n"
        "       xorl    %esi, %esi\n"
        "       syscall\n"
        "       movq    ls_at_pause+8(%rbx), %rax\n"     /* rarer each time */
        "       shrq    $6, %rax\n"
        "       addq    %rax, ls_at_pause+8(%rbx)\n"
        "       jmp     2b\n"
        "3:     cmpl    $1, %eax\n"
        "       jne     8f\n"
        "       cmpq    $0, ls_at_entry(%rbx)\n"
        "       jne     4f\n"
        "       leaq    ls_at_path(%rbx), %rdi\n"
        "       movl    $2, %esi\n"                     /* RTLD_NOW */
        "       call    *ls_at_dlopen(%rbx)\n"
        "       movq    %rax, ls_at_handle(%rbx)\n"
        "       testq   %rax, %rax\n"
        "       jz      6f\n"
        "       movq    %rax, %rdi\n"
        "       leaq    ls_at_symbol(%rbx), %rsi\n"
        "       call    *ls_at_dlsym(%rbx)\n"
        "       movq    %rax, ls_at_entry(%rbx)\n"
        "       testq   %rax, %rax\n"
        "       jz      7f\n"
        "4:     movq    %rbx, %rdi\n"
        "       movq    ls_at_entry(%rbx), %rax\n"
        "       popq    %rbx\n"
        "       jmp     *%rax\n"
        "7:     movl    $3, %ecx\n"
        "       jmp     2f\n"
        "6:     movq    ls_at_dlerror(%rbx), %rax\n"
        "       testq   %rax, %rax\n"
        "       jz      1f\n"
        "       call    *%rax\n"
        "       movq    %rax, ls_at_error_text(%rbx)\n"
        "1:     movl    $2, %ecx\n"
        "2:     movl    $20, ls_at_looks(%rbx)\n"
        "       movq    $50000000, ls_at_pause+8(%rbx)\n"
        "       movl    $0, ls_at_go(%rbx)\n"           /* until the recorder has read it, or some
                                                         * time has passed */
        "       movl    %ecx, ls_at_state(%rbx)\n"
        "1:     cmpl    $0, ls_at_go(%rbx)\n"
        "       jne     9f\n"
        "       decl    ls_at_looks(%rbx)\n"
        "       jz      9f\n"
        "       movl    $35, %eax\n"
        "       leaq    ls_at_pause(%rbx), %rdi\n"
        "       xorl    %esi, %esi\n"
        "       syscall\n"
        "       jmp     1b\n"
        "8:     movl    $5, ls_at_state(%rbx)\n"
        "9:     movl    $3, %eax\n"                     /* close */
        "       movl    ls_at_fd_agent(%rbx), %edi\n"
        "       syscall\n"
        "       movl    $3, %eax\n"
        "       movl    ls_at_fd_memory(%rbx), %edi\n"
        "       syscall\n"
        "1:     movq    ls_at_carrier_tid(%rbx), %rax\n"       /* the first thread is on its way out
                                                                * of the region */
        "       cmpl    $0, (%rax)\n"
        "       je      2f\n"
        "       movl    $35, %eax\n"
        "       leaq    ls_at_pause(%rbx), %rdi\n"
        "       xorl    %esi, %esi\n"
        "       syscall\n"
        "       jmp     1b\n"
        "2:     movq    ls_at_region(%rbx), %rdi\n"
        "       movq    ls_at_region_size(%rbx), %rsi\n"
        "       movq    ls_at_munmap(%rbx), %rax\n"
        "       popq    %rbx\n"
        "       jmpq    *%rax\n"                       /* and from there back to the C library: the
                                                        * thread ends with 0 */
        "ls_attach_stub_end:\n"
        ".previous\n");
