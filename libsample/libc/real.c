/* Finds the functions behind the interposed ones, in the tables of the loaded objects: dlsym is one
 * of them, and before glibc 2.34 in a library that not every program has. See real.h. */

#include "libsample/libc/real.h"

#include <errno.h>
#include <stddef.h>

#include "libsample/agent.h"
#include "libsample/handler/functions.h"
#include "libsample/inject/objects.h"

struct ls_libc ls_libc_table;
int ls_libc_resolved;
struct ls_real ls_real;

struct entry {
        const char *name;
        size_t offset;
        int is_pointer;                 /* what it returns */
};

static const struct entry entries[] = {
#define LS_REAL(ret, name, params) \
        { #name, offsetof(struct ls_libc, name), __builtin_types_compatible_p(ret, void *) },
#define LS_WAIT(ret, name, params, args, when) LS_REAL(ret, name, params)
#include "libsample/libc/real.def"
#undef LS_REAL
#undef LS_WAIT
};
#define ENTRIES (sizeof entries / sizeof *entries)

/* What an entry is when there is no such function: only a newer program could call it. */
static long not_there(void)
{
        errno = ENOSYS;
        return -1;
}

static void *no_pointer(void)
{
        errno = ENOSYS;
        return NULL;
}

/* Entries that no object has yet: before glibc 2.34 threads, semaphores and dlopen are in libraries
 * of their own, which a program may load later. Each looks again when it is called: the code at 16
 * * N is that of the entry N. */
extern const char ls_libc_late[];
__attribute__((used)) void *ls_libc_find_late(unsigned i);
_Static_assert(ENTRIES < LS_INTERPOSED_MOST && LS_INTERPOSED_MOST == 128, "room for all");

__asm__(".pushsection .text\n"
        ".globl ls_libc_late\n"
        ".hidden ls_libc_late\n"
        ".balign 16\n"
        "ls_libc_late:\n"
        ".set .Lnumber, 0\n"
        ".rept 128\n"
        "       .balign 16\n"
        "       movl $.Lnumber, %eax\n"
        "       jmp 1f\n"
        "       .set .Lnumber, .Lnumber + 1\n"
        ".endr\n"
        "1:     pushq %rdi\n"
        "       pushq %rsi\n"
        "       pushq %rdx\n"
        "       pushq %rcx\n"
        "       pushq %r8\n"
        "       pushq %r9\n"
        "       subq $8, %rsp\n"
        "       movl %eax, %edi\n"
        "       call ls_libc_find_late\n"
        "       addq $8, %rsp\n"
        "       popq %r9\n"
        "       popq %r8\n"
        "       popq %rcx\n"
        "       popq %rdx\n"
        "       popq %rsi\n"
        "       popq %rdi\n"
        "       jmp *%rax\n"
        ".popsection\n");

static void **slot(size_t i)
{
        return (void **)((char *)&ls_libc_table + entries[i].offset);
}

static void *late(size_t i)
{
        return (void *)(uintptr_t)(ls_libc_late + 16 * i);
}

struct search {
        uintptr_t own;                  /* base of the agent */
        int behind;                     /* what comes now is behind the agent in the order of
                                         * lookup */
        void *first[ENTRIES], *next[ENTRIES];
};

/* An agent that was loaded late (start/attach.c) is the last, and interposes nothing: there the C
 * library's own are meant. */
static int look_in(const struct ls_object *object, void *data)
{
        struct search *s = data;
        int is_own = object->base == s->own;

        if (is_own || ls_object_symbol(object, "gnu_get_libc_version", NULL))
                s->behind = 1;
        for (size_t i = 0; i < ENTRIES; i++) {
                void *fn = s->next[i] ? NULL : ls_object_symbol(object, entries[i].name, NULL);

                if (fn && !s->first[i])
                        s->first[i] = fn;
                if (fn && s->behind && !is_own)
                        s->next[i] = fn;
        }
        return 0;
}

/* Fills in what is found and was not before. */
static void look(void)
{
        static unsigned n;
        struct search s = { 0 };
        struct ls_object self;

        if (ls_object_of_address((void *)ls_libc_resolve, &self))
                s.own = self.base;
        ls_objects_each(look_in, &s);
        for (size_t i = 0; i < ENTRIES; i++) {
                void *fn = s.next[i] ? s.next[i] : late(i), *was = *slot(i);

                if ((was && was != late(i)) ||
                    !__atomic_compare_exchange_n(slot(i), &was, fn, 0, __ATOMIC_RELEASE,
                                                 __ATOMIC_RELAXED))
                        continue;
                if (s.next[i] && s.first[i] != s.next[i])
                        ls_interposed[__atomic_fetch_add(&n, 1, __ATOMIC_RELAXED)] =
                                (struct ls_interposed){ (uintptr_t)s.first[i], (uintptr_t)fn };
        }
}

void *ls_libc_find_late(unsigned i)
{
        int saved = errno;
        void *fn;

        look();
        fn = *slot(i);
        errno = saved;
        return fn != late(i) ? fn : entries[i].is_pointer ? (void *)no_pointer : (void *)not_there;
}

void ls_libc_resolve(void)
{
        int saved = errno;

        look();
        ls_real.sigaction = ls_libc_table.sigaction;
        ls_real.setitimer =
                (int (*)(int, const struct itimerval *, struct itimerval *))ls_libc_table.setitimer;
        ls_real.sigprocmask = ls_libc_table.sigprocmask;
        __atomic_store_n(&ls_libc_resolved, 1, __ATOMIC_RELEASE);
        errno = saved;
}
