/* Loading of objects: a newly loaded LuaJIT gets its entries patched before the program can call
 * it. What dlopen finds depends on who calls it (RPATH, RUNPATH, $ORIGIN): then the call is passed
 * on with the caller's return address, and the search for LuaJIT waits for the next dlopen or
 * dlsym, which a program needs to reach what it loaded. */
#include "libsample/libc/real.h"

#include <string.h>

#include "libsample/agent.h"
#include "libsample/inject/objects.h"
#include "libsample/interpose/interpose.h"

static int scan_pending;

/* Called by the entries below. The function to jump to, or NULL: ls_dl_open does it. */
__attribute__((used)) void *ls_dl_open_from(const char *name, int mode, const void *caller);
__attribute__((used)) void *ls_dl_open(const char *name, int mode);
__attribute__((used)) void *ls_dl_mopen_from(Lmid_t ns, const char *name, int mode);
__attribute__((used)) void *ls_dl_sym_from(void *handle, const char *name);

static void scan_if_pending(void)
{
        if (__builtin_expect(scan_pending, 0) && ls_process_is_known()) {
                scan_pending = 0;
                ls_vm_library_scan(0);
        }
}

void *ls_dl_open_from(const char *name, int mode, const void *caller)
{
        struct ls_object object;
        void *real = (void *)ls_libc()->dlopen;

        (void)mode;
        if (!ls_process_is_known())
                return real;
        scan_if_pending();
        if (!name || !*name)
                return real;
        if (strchr(name, '$') || (!strchr(name, '/') && (!ls_object_of_address(caller, &object) ||
                                                         ls_object_has_runpath(&object)))) {
                scan_pending = 1;
                return real;
        }
        return NULL;
}

void *ls_dl_open(const char *name, int mode)
{
        void *handle = ls_libc()->dlopen(name, mode);

        if (handle)
                ls_vm_library_scan(0);
        return handle;
}

void *ls_dl_mopen_from(Lmid_t ns, const char *name, int mode)
{
        (void)ns, (void)name, (void)mode;
        if (ls_process_is_known()) {
                scan_if_pending();
                scan_pending = 1;
        }
        return (void *)ls_libc()->dlmopen;
}

void *ls_dl_sym_from(void *handle, const char *name)
{
        (void)handle, (void)name;
        scan_if_pending();
        return (void *)ls_libc()->dlsym;
}

/* On entry the stack holds the caller's return address; three words more align it. */
#define SAVE "pushq %rdi\n\tpushq %rsi\n\tpushq %rdx\n\t"
#define RESTORE "popq %rdx\n\tpopq %rsi\n\tpopq %rdi\n\t"

LS_EXPORT __attribute__((naked)) void *dlopen(const char *name __attribute__((unused)),
                                              int mode __attribute__((unused)))
{
        __asm__(SAVE
                "movq 24(%rsp), %rdx\n\t"
                "call ls_dl_open_from\n\t"
                RESTORE
                "testq %rax, %rax\n\t"
                "jz ls_dl_open\n\t"
                "jmp *%rax");
}

LS_EXPORT __attribute__((naked)) void *dlmopen(Lmid_t ns __attribute__((unused)),
                                               const char *name __attribute__((unused)),
                                               int mode __attribute__((unused)))
{
        __asm__(SAVE
                "call ls_dl_mopen_from\n\t"
                RESTORE
                "jmp *%rax");
}

LS_EXPORT __attribute__((naked)) void *dlsym(void *handle __attribute__((unused)),
                                             const char *name __attribute__((unused)))
{
        __asm__(SAVE
                "call ls_dl_sym_from\n\t"
                RESTORE
                "jmp *%rax");
}
