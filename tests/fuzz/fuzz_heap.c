/* libFuzzer target: any bytes as a snapshot of luasample heap. What is read is a graph whose
 * numbers lead nowhere else, of which no object retains more than all of them have; all views of it
 * come to their end. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report/heap/heap.h"
#include "tests/fuzz/touch.h"

#define NULL_FILE "/dev/null"

static void check_graph(const struct ls_heap *h)
{
        uint64_t all = 0;

        for (uint32_t i = 0; i < h->n_edges; i++)
                must(h->edges[i].target < h->n);
        for (uint32_t i = 1; i < h->n; i++) {
                must(h->objects[i].text + h->objects[i].text_len < h->n_texts);
                must(h->objects[i].first <= h->objects[i + 1].first);
                all += h->objects[i].size;
        }
        for (uint32_t i = 0; i < h->n; i++) {
                int held = h->parent[i] != LS_HEAP_NONE;

                must(h->retained[i] <= all);
                must(!i || held == (h->dominator[i] != LS_HEAP_NONE));
                must(!held || (h->parent[i] < h->n && (!i || h->dominator[i] < h->n)));
        }
}

static void check_views(const struct ls_heap *h)
{
        static const char *const whys[] = { "_G", "_G.a", "4096", "0x1000", "table", "" };
        FILE *out = fopen(NULL_FILE, "we");

        must(out != NULL);
        must(ls_heap_show(out, h, 0) == 0 && ls_heap_show(out, h, 1) == 0);
        for (unsigned i = 0; i < sizeof(whys) / sizeof(*whys); i++)
                ls_heap_why(out, h, whys[i]);
        must(ls_heap_compare(out, h, h) == 0);
        fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        int fd = memfd_create("heap", MFD_CLOEXEC);
        struct ls_heap *h = NULL;
        const char *why;
        FILE *f;

        must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
        must(lseek(fd, 0, SEEK_SET) == 0);
        f = fdopen(fd, "r");
        must(f != NULL);
        if (ls_heap_open(f, &h, &why) == 0) {
                must(ls_heap_dominate(h) == 0);
                check_graph(h);
                check_views(h);
                ls_heap_close(h);
        }
        return 0;
}
