/* Finds the original functions behind the interposed ones: the next of that name after this library. */
#include "libsample/real.h"

#include <errno.h>
#include <stddef.h>

#include "libsample/agent.h"
#include "libsample/handler/functions.h"

struct ls_libc ls_libc_table;
int ls_libc_resolved;
struct ls_real ls_real;

struct entry {
        const char *name;
        size_t offset;
};

static const struct entry entries[] = {
#define LS_REAL(ret, name, params) { #name, offsetof(struct ls_libc, name) },
#define LS_WAIT(ret, name, params, args, when) { #name, offsetof(struct ls_libc, name) },
#include "libsample/real.def"
#undef LS_REAL
#undef LS_WAIT
};

/* What an entry is when this C library has no such function: only a newer program could call it. */
static long not_there(void)
{
        errno = ENOSYS;
        return -1;
}

void ls_libc_resolve(void)
{
        int saved = errno;
        /* this library's own dlsym is in front of libc's; dlvsym is not interposed and finds the old version too */
        void *(*find)(void *, const char *) = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym",
                                                                                      "GLIBC_2.2.5");

        _Static_assert(sizeof entries / sizeof *entries < LS_INTERPOSED_MOST, "room for all");
        for (size_t i = 0, n = 0; i < sizeof entries / sizeof *entries; i++) {
                void *fn = find ? find(RTLD_NEXT, entries[i].name) : NULL;
                void *ours = fn ? find(RTLD_DEFAULT, entries[i].name) : NULL;

                if (ours && ours != fn)
                        ls_interposed[n++] = (struct ls_interposed){ (uintptr_t)ours, (uintptr_t)fn };

                *(void **)((char *)&ls_libc_table + entries[i].offset) = fn ? fn : (void *)not_there;
        }
        dlerror();                      /* names that were not found leave no message for the program */
        ls_real.sigaction = ls_libc_table.sigaction;
        ls_real.setitimer = (int (*)(int, const struct itimerval *, struct itimerval *))ls_libc_table.setitimer;
        ls_real.sigprocmask = ls_libc_table.sigprocmask;
        __atomic_store_n(&ls_libc_resolved, 1, __ATOMIC_RELEASE);
        errno = saved;
}
