/* See find.h, and search.h for what is looked for. Memory is read through /proc/thread-self/mem,
 * which fails where a mapping was taken away meanwhile, and only where pages are present: nothing
 * is brought in from swap, and no page is made. */

#include "libsample/vm/find.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "libsample/pages.h"
#include "libsample/vm/search.h"

#define CHUNK (256u << 10)              /* bytes read at a time */
#define PAGE 4096u
#define PAGES (CHUNK / PAGE)
#define PRESENT                                                                                    \
        (UINT64_C(3)                                                                               \
         << 62) /* of a word of pagemap: in memory, or in swap; what is in swap is left there */
#define IN_SWAP (UINT64_C(1) << 62)

struct search {
        int mem, pagemap;
        void (*found)(lua_State *L);
        uint64_t *words;                /* CHUNK bytes */
        uint64_t flags[PAGES];
};

static int read_at(int fd, uint64_t at, void *to, size_t n)
{
        return pread(fd, to, n, (off_t)at) == (ssize_t)n;
}

static int read_own(void *ctx, uint64_t at, void *to, size_t n)
{
        return read_at(((const struct search *)ctx)->mem, at, to, n);
}

static void found_at(void *ctx, uint64_t L)
{
        ((const struct search *)ctx)->found((lua_State *)(uintptr_t)L);
}

static void search_mapping(struct search *s, uint64_t start, uint64_t end)
{
        const struct ls_vm_search how = { read_own, found_at, s };

        for (uint64_t at = start; at < end; at += CHUNK) {
                size_t pages = (end - at < CHUNK ? end - at : CHUNK) / PAGE, first, n;

                if (s->pagemap < 0 || !read_at(s->pagemap, at / PAGE * 8, s->flags, pages * 8))
                        memset(s->flags, 0xbf, sizeof s->flags);        /* all present */
                for (first = 0; first < pages; first += n) {
                        for (n = 0; first + n < pages && (s->flags[first + n] & PRESENT) &&
                                    !(s->flags[first + n] & IN_SWAP);
                             n++)
                                ;
                        if (n && read_at(s->mem, at + first * PAGE, s->words, n * PAGE))
                                ls_vm_search(&how, s->words, at + first * PAGE, n * PAGE / 8);
                        n += n == 0;
                }
        }
}

static uint64_t hex(const char **p)
{
        uint64_t n = 0;

        for (;; (*p)++) {
                char c = **p;

                if (c >= '0' && c <= '9')
                        n = n << 4 | (uint64_t)(c - '0');
                else if (c >= 'a' && c <= 'f')
                        n = n << 4 | (uint64_t)(c - 'a' + 10);
                else
                        return n;
        }
}

/* A line of maps: writable memory of no file is searched. */
static void search_line(struct search *s, const char *line)
{
        uint64_t start = hex(&line), end;
        const char *name;

        if (*line++ != '-')
                return;
        end = hex(&line);
        name = line + strcspn(line, "/[\n");
        if (memcmp(line, " rw", 3) || line[4] != 'p' || *name == '/' ||
            !strncmp(name, "[stack", 6) || !strncmp(name, "[v", 2) || start % PAGE || end % PAGE)
                return;
        search_mapping(s, start, end);
}

#define LINES (64u << 10)

static void search_all(struct search *s, int maps, char *buf)
{
        size_t n = 0;
        ssize_t r;

        while ((r = read(maps, buf + n, LINES - 1 - n)) > 0) {
                char *line = buf, *end;

                n += (size_t)r;
                buf[n] = 0;
                for (; (end = memchr(line, '\n', n - (size_t)(line - buf))); line = end + 1) {
                        *end = 0;
                        search_line(s, line);
                }
                n -= (size_t)(line - buf);
                memmove(buf, line, n);
                if (n == LINES - 1)
                        n = 0;
        }
}

void ls_find_vms(void (*found)(lua_State *L))
{
        struct search s = { .found = found };
        char *buf = ls_pages_new(LINES);
        int maps = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);

        s.mem = open("/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
        s.pagemap = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
        s.words = ls_pages_new(CHUNK);
        if (buf && s.words && maps >= 0 && s.mem >= 0)
                search_all(&s, maps, buf);
        ls_pages_free(s.words, CHUNK);
        ls_pages_free(buf, LINES);
        if (s.pagemap >= 0)
                close(s.pagemap);
        if (s.mem >= 0)
                close(s.mem);
        if (maps >= 0)
                close(maps);
}
