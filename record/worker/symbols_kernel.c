/* Names of the kernel's functions; see symbols_kernel.h. Only root sees their addresses, as a
 * rule. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/worker/symbols_kernel.h"

#define SYMBOLS_MAX (1u << 20)

struct symbol { uint64_t addr; char *name; };

struct ls_kernel_symbols {
        struct symbol *list;            /* by address */
        size_t n, cap;
};

static int by_addr(const void *a, const void *b)
{
        const struct symbol *x = a, *y = b;

        return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int add(struct ls_kernel_symbols *k, uint64_t addr, const char *name)
{
        if (k->n == k->cap) {
                size_t cap = k->cap ? k->cap * 2 : 4096;
                struct symbol *grown =
                        cap <= SYMBOLS_MAX ? reallocarray(k->list, cap, sizeof(*grown)) : NULL;

                if (!grown)
                        return -ENOMEM;
                k->list = grown;
                k->cap = cap;
        }
        k->list[k->n] = (struct symbol){ addr, strdup(name) };
        if (!k->list[k->n].name)
                return -ENOMEM;
        k->n++;
        return 0;
}

static FILE *given;

void ls_kernel_symbols_from(int fd)
{
        given = fdopen(fd, "r");
}

struct ls_kernel_symbols *ls_kernel_symbols_open(const char *path)
{
        struct ls_kernel_symbols *k = calloc(1, sizeof(*k));
        FILE *f = !k ? NULL : given ? given : fopen(path, "re");
        char line[1024], name[512], type;
        uint64_t addr;

        if (given)
                rewind(given);
        while (f && fgets(line, sizeof(line), f)) {
                if (sscanf(line, "%" SCNx64 " %c %511s", &addr, &type, name) != 3 ||
                    !strchr("tTwW", type))
                        continue;
                /* Hidden addresses are all 0. */
                if (addr < LS_KERNEL_START || add(k, addr, name) < 0)
                        break;
        }
        if (f && f != given)
                fclose(f);
        if (!k || !k->n) {
                ls_kernel_symbols_close(k);
                return NULL;
        }
        qsort(k->list, k->n, sizeof(*k->list), by_addr);
        return k;
}

void ls_kernel_symbols_close(struct ls_kernel_symbols *k)
{
        if (!k)
                return;
        for (size_t i = 0; i < k->n; i++)
                free(k->list[i].name);
        free(k->list);
        free(k);
}

int ls_kernel_symbols_find(const struct ls_kernel_symbols *k, uint64_t addr, char *ret_name,
                           size_t size)
{
        size_t lo = 0, hi = k->n;

        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;

                if (k->list[mid].addr > addr)
                        hi = mid;
                else
                        lo = mid + 1;
        }
        if (!lo)
                return -ENOENT;
        snprintf(ret_name, size, "%s", k->list[lo - 1].name);
        return 0;
}
