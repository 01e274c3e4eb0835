/* Copies native stacks: see native.h. */

#include "libsample/handler/native.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libsample/agent.h"
#include "libsample/pages.h"

#define STEP 1024u /* a cut copy ends at a multiple: so that the next one may end there too */

struct ls_native_copy {
        uint32_t most;                  /* bytes of a copy */
        uint32_t size;                  /* of this and the bytes */
        uintptr_t low, high;            /* addresses of what bytes hold */
        uint32_t next, keep;            /* ls_native_measure's: bytes to send, bytes that are as
                                         * before */
        uint32_t cut;
        int foreign;                    /* a stack of the program's own: what lies above it may go
                                         * away at any time */
        char bytes[];                   /* for addresses high - most to high: the outermost byte is
                                         * the last */
};

struct ls_native_copy *ls_native_new(void)
{
        uint32_t most = ls_agent.shm->native_bytes & ~7u;
        struct ls_native_copy *c = ls_agent.shm->native && most ? ls_pages_new(sizeof *c + most)
                                                                : NULL;

        if (c) {
                c->most = most;
                c->size = (uint32_t)sizeof *c + most;
        }
        return c;
}

void ls_native_free(struct ls_native_copy *c)
{
        if (c)
                ls_pages_free(c, c->size);
}

/* End of what is copied of the stack that sp is in. */
static uintptr_t end_of(const struct ls_thread *t, const struct ls_native_copy *c, uintptr_t sp,
                        uint32_t *ret_cut)
{
        uintptr_t high = t->stack_high;

        *ret_cut = 0;
        if (sp >= t->stack_low && sp < high) {
                if (high - sp <= c->most)
                        return high & ~(uintptr_t)7;
        } else {                        /* a stack of the program's own: as far as it can be read */
                high = sp;
                while (high - sp < c->most && ls_readable((const void *)high, 1))
                        high = (high | 4095) + 1;
                if (high - sp <= c->most)
                        return high;
        }
        *ret_cut = 1;
        return (sp + c->most) & ~(uintptr_t)(STEP - 1);
}

__attribute__((no_sanitize_address)) /* other functions' frames */
LS_HANDLER size_t
ls_native_measure(struct ls_thread *t, const struct ls_regs *regs, const struct ls_walk *w)
{
        struct ls_native_copy *c = t->sampler->native;
        uintptr_t sp = regs->sp & ~(uintptr_t)7, high, low;

        if (!c)
                return 0;
        high = end_of(t, c, sp, &c->cut);
        if (high <= sp)
                return 0;
        c->keep = 0;
        c->foreign = !(sp >= t->stack_low && sp < t->stack_high);
        if (high == c->high && !c->foreign) {
                const uint64_t *now = (const uint64_t *)high,
                               *old = (const uint64_t *)(const void *)(c->bytes + c->most);

                low = sp > c->low ? sp : c->low;
                while ((uintptr_t)(now - 1) >= low && LS_GET(now[-1]) == old[-1]) {
                        now--;
                        old--;
                }
                c->keep = (uint32_t)(high - (uintptr_t)now);
        }
        c->next = (uint32_t)(high - sp) - c->keep;
        c->low = sp;
        c->high = high;
        return sizeof(struct ls_native) + w->ncframes * sizeof(struct ls_native_cframe) + c->next;
}

/* Not memcpy: a sanitizer's would say that these are other functions' frames. */
static void copy_stack(void *to, uintptr_t from, size_t size)
{
        size_t words = size / 8;

        __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
}

/* Page by page, as far as it can be read; the rest is zeros. Returns 1 when there is a rest. */
#if !LS_ITSELF
static uint32_t copy_foreign(void *to, uintptr_t from, size_t size)
{
        for (size_t at = 0, part; at < size; at += part) {
                part = 4096 - ((from + at) & 4095);
                part = part < size - at ? part : size - at;
                if (ls_seen_copy((char *)to + at, from + at, part)) {
                        memset((char *)to + at, 0, size - at);
                        return 1;
                }
        }
        return 0;
}
#else
static uint32_t copy_foreign(void *to, uintptr_t from, size_t size)
{
        struct iovec local = { to, size }, remote[32];
        unsigned n = 0;
        long copied;

        for (size_t at = 0; at < size && n < 32; n++) {
                size_t part = 4096 - ((from + at) & 4095);

                remote[n] =
                        (struct iovec){ (void *)(from + at), part < size - at ? part : size - at };
                at += remote[n].iov_len;
        }
        copied = syscall(SYS_process_vm_readv, (long)ls_agent.pid, &local, 1L, remote, (long)n, 0L);
        if (copied < 0)
                copied = 0;
        memset((char *)to + copied, 0, size - (size_t)copied);
        return (size_t)copied < size;
}
#endif

LS_HANDLER void ls_native_write(struct ls_thread *t, const struct ls_regs *r,
                                const struct ls_walk *w, void *out)
{
        struct ls_native_copy *c = t->sampler->native;
        struct ls_native *head = out;
        struct ls_native_cframe *cf = (struct ls_native_cframe *)(head + 1);

        *head = (struct ls_native){ .ip = r->ip,
                                    .sp = r->sp,
                                    .bp = r->bp,
                                    .bx = r->bx,
                                    .r12 = r->r12,
                                    .r13 = r->r13,
                                    .r14 = r->r14,
                                    .r15 = r->r15,
                                    .ncframes = w->ncframes,
                                    .nbytes = c->next,
                                    .keep = c->keep,
                                    .cut = c->cut };
        for (unsigned i = 0; i < w->ncframes; i++)
                *cf++ = (struct ls_native_cframe){ (uintptr_t)w->cframes[i].cframe,
                                                   (uint32_t)w->cframes[i].frames, 0 };
        if (c->foreign)
                head->cut |= copy_foreign(cf, c->low, c->next);
        else
                copy_stack(cf, (uintptr_t)ls_at((const void *)c->low, c->next), c->next);
        memcpy(c->bytes + c->most - (c->high - c->low), cf, c->next);
}

LS_HANDLER void ls_native_forget(struct ls_thread *t)
{
        t->sampler->native->low = t->sampler->native->high = 0;
}
