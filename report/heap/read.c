/* Reads a snapshot, luasample-heap(5). It may come from anybody: numbers are checked before they
 * index anything, and what is nested deeper than a snapshot is refused. */
#include "report/heap/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MOST 16u                  /* of what is passed over */
#define MOST (UINT32_MAX / 2)

struct reader {
        FILE *f;
        struct ls_heap *h;
        int c;                          /* the next character, EOF = none */
        int error;                      /* 0 or -errno; then nothing is read any more */
};

static void next(struct reader *r)
{
        r->c = r->error ? EOF : getc_unlocked(r->f);
}

static void blanks(struct reader *r)
{
        while (r->c == ' ' || r->c == '\n' || r->c == '\t' || r->c == '\r')
                next(r);
}

/* 1 and behind it when it comes next. */
static int take(struct reader *r, int c)
{
        blanks(r);
        if (r->c != c || r->error)
                return 0;
        next(r);
        return 1;
}

static void expect(struct reader *r, int c)
{
        if (!take(r, c) && !r->error)
                r->error = -EINVAL;
}

static uint64_t number(struct reader *r)
{
        uint64_t n = 0;

        blanks(r);
        if (r->c < '0' || r->c > '9')
                r->error = r->error ? r->error : -EINVAL;
        for (; r->c >= '0' && r->c <= '9'; next(r)) {
                if (n > (UINT64_MAX - 9) / 10)
                        r->error = -EINVAL;
                n = n * 10 + (uint64_t)(r->c - '0');
        }
        return n;
}

/* Doubles an array when it is full; most: entries of it. */
static void *grow(struct reader *r, void *p, uint64_t n, uint64_t *room, size_t size, uint64_t most)
{
        uint64_t want = *room ? 2 * *room : 1024;
        void *q;

        if (n < *room || r->error)
                return p;
        q = n < most ? realloc(p, want * size) : NULL;
        if (!q) {
                r->error = n < most ? -ENOMEM : -EINVAL;
                return p;
        }
        *room = want;
        return q;
}

static void put_char(struct reader *r, int c)
{
        struct ls_heap *h = r->h;

        h->texts = grow(r, h->texts, h->n_texts, &h->room_texts, 1, UINT64_C(1) << 36);
        if (!r->error)
                h->texts[h->n_texts++] = (char)c;
}

static int escaped(struct reader *r)
{
        char hex[5] = "", *end;
        unsigned long c;

        next(r);
        if (r->c != 'u')
                return r->c == 'n' ? '\n' : r->c == 't' ? '\t' : r->c;
        for (int i = 0; i < 4; i++) {
                next(r);
                hex[i] = r->c == EOF ? 0 : (char)r->c;
        }
        c = strtoul(hex, &end, 16);
        if (end != hex + 4)
                r->error = -EINVAL;
        return c < 256 ? (int)c : '?';
}

/* Appends a string to texts, and a zero. Returns its bytes. */
static uint32_t string(struct reader *r)
{
        uint64_t first = r->h->n_texts;

        expect(r, '"');
        for (; r->c != '"' && !r->error; next(r)) {
                if (r->c == EOF)
                        r->error = -EINVAL;
                else
                        put_char(r, r->c == '\\' ? escaped(r) : r->c);
        }
        next(r);
        put_char(r, 0);
        return r->error || r->h->n_texts - first > MOST ? 0 : (uint32_t)(r->h->n_texts - first - 1);
}

static void pass_over(struct reader *r, unsigned depth)
{
        blanks(r);
        if (depth == DEPTH_MOST) {
                r->error = -EINVAL;
        } else if (r->c == '"') {
                uint64_t n = r->h->n_texts;

                string(r);
                r->h->n_texts = n;
        } else if (r->c == '[' || r->c == '{') {
                int end = r->c == '[' ? ']' : '}';

                next(r);
                while (!take(r, end) && !r->error) {
                        pass_over(r, depth + 1);
                        while (take(r, ',') || take(r, ':'))
                                ;
                }
        } else if (r->c == EOF || strchr(",:]}", r->c)) {
                r->error = -EINVAL;     /* no value */
        } else {
                while (r->c != EOF && !strchr(",:]} \n", r->c))
                        next(r);
                if (r->c == EOF)
                        r->error = -EINVAL;
        }
}

static uint32_t small(struct reader *r)
{
        uint64_t n = number(r);

        return n <= MOST ? (uint32_t)n : 0;
}

static void read_vms(struct reader *r)
{
        struct ls_heap *h = r->h;

        expect(r, '[');
        while (!r->error && !take(r, ']')) {
                struct ls_heap_vm *vms =
                        h->n_vms < 65536 ? realloc(h->vms, (h->n_vms + 1) * sizeof(*vms)) : NULL;

                if (!vms) {
                        r->error = -ENOMEM;
                        return;
                }
                h->vms = vms;
                expect(r, '[');
                vms[h->n_vms].number = small(r);
                expect(r, ',');
                vms[h->n_vms].bytes = number(r);
                expect(r, ',');
                vms[h->n_vms].main = small(r);
                expect(r, ',');
                vms[h->n_vms].registry = small(r);
                expect(r, ',');
                vms[h->n_vms++].globals = small(r);
                expect(r, ']');
                take(r, ',');
        }
}

static void read_edges(struct reader *r)
{
        struct ls_heap *h = r->h;

        expect(r, '[');
        while (!r->error && !take(r, ']')) {
                uint64_t room = h->room_edges;
                struct ls_heap_edge e;

                e.how = (uint8_t)(number(r) & 15);
                expect(r, ',');
                e.which = small(r);
                expect(r, ',');
                e.target = small(r);
                take(r, ',');
                h->edges = grow(r, h->edges, h->n_edges, &room, sizeof(*h->edges), MOST / 2);
                h->room_edges = (uint32_t)room;
                if (!r->error)
                        h->edges[h->n_edges++] = e;
        }
}

static struct ls_heap_object *add_object(struct reader *r)
{
        struct ls_heap *h = r->h;
        uint64_t room = h->room;

        h->objects = grow(r, h->objects, (uint64_t)h->n + 1, &room, sizeof(*h->objects), MOST / 2);
        h->room = (uint32_t)room;
        if (r->error)
                return NULL;
        h->objects[h->n] = (struct ls_heap_object){ .first = h->n_edges };
        return &h->objects[h->n++];
}

static void read_objects(struct reader *r)
{
        expect(r, '[');
        while (!r->error && !take(r, ']')) {
                struct ls_heap_object *o = add_object(r);

                if (!o)
                        return;
                expect(r, '[');
                o->at = number(r);
                expect(r, ',');
                o->type = (uint8_t)(number(r) % LS_HEAP_TYPES);
                expect(r, ',');
                o->size = number(r) & ((UINT64_C(1) << 40) - 1);
                expect(r, ',');
                o->vm = small(r);
                expect(r, ',');
                o->text = r->h->n_texts;
                o->text_len = string(r);
                expect(r, ',');
                read_edges(r);
                expect(r, ']');
                take(r, ',');
        }
}

/* The root holds what each VM begins with: the globals first, by which people know things. */
static void add_roots(struct reader *r)
{
        struct ls_heap *h = r->h;
        uint64_t room = h->room_edges;

        for (uint32_t i = 0; i < 3 * h->n_vms && !r->error; i++) {
                const struct ls_heap_vm *vm = &h->vms[i / 3];

                h->edges = grow(r, h->edges, h->n_edges, &room, sizeof(*h->edges), MOST);
                if (!r->error)
                        h->edges[h->n_edges++] = (struct ls_heap_edge){ i % 3 == 0   ? vm->globals
                                                                        : i % 3 == 1 ? vm->registry
                                                                                     : vm->main,
                                                                        i % 3, 0 };
        }
}

static void read_all(struct reader *r)
{
        struct ls_heap *h = r->h;
        int known = 0;

        expect(r, '{');
        while (!r->error && !take(r, '}')) {
                uint64_t key = h->n_texts;
                const char *name;

                string(r);
                expect(r, ':');
                h->n_texts = key;
                name = r->error ? "" : h->texts + key;
                if (!strcmp(name, "luasample_heap"))
                        known = number(r) == 1;
                else if (!strcmp(name, "pid"))
                        h->pid = number(r);
                else if (!strcmp(name, "stopped_ns"))
                        h->stopped_ns = number(r);
                else if (!strcmp(name, "copied_bytes"))
                        h->copied = number(r);
                else if (!strcmp(name, "name"))
                        string(r), h->n_texts = key,
                                   snprintf(h->name, sizeof(h->name), "%s",
                                            r->error ? "" : h->texts + key);
                else if (!strcmp(name, "vms"))
                        read_vms(r);
                else if (!strcmp(name, "objects") && known && h->n == 1)
                        read_objects(r);
                else
                        pass_over(r, 0);
                take(r, ',');
        }
        if (!r->error && (!known || h->n == 1))
                r->error = -EINVAL;
        if (!r->error && !add_object(r))        /* its edges end here */
                r->error = r->error ? r->error : -ENOMEM;
        h->n--;
        if (!r->error)
                add_roots(r);
}

/* Those of what is not there lead to the root, from which nothing is held. */
static void check_edges(struct ls_heap *h)
{
        for (uint32_t i = 0; i < h->n_edges; i++) {
                h->edges[i].target = h->edges[i].target < h->n ? h->edges[i].target : 0;
                if (h->edges[i].how == 1 && h->edges[i].which >= h->n)
                        h->edges[i].which = 0;
        }
}

int ls_heap_open(FILE *f, struct ls_heap **ret, const char **ret_why)
{
        struct reader r = { .f = f, .h = calloc(1, sizeof(*r.h)) };

        *ret_why = NULL;
        if (!r.h) {
                r.error = -ENOMEM;
        } else if (add_object(&r)) {
                next(&r);
                read_all(&r);
        }
        if (!r.error)
                check_edges(r.h);
        fclose(r.f);
        if (r.error == -EINVAL)
                *ret_why = "it is no snapshot of luasample heap, or not whole";
        if (r.error)
                ls_heap_close(r.h);
        else
                *ret = r.h;
        return r.error;
}

void ls_heap_close(struct ls_heap *h)
{
        if (!h)
                return;
        free(h->objects);
        free(h->edges);
        free(h->vms);
        free(h->texts);
        free(h->parent);
        free(h->by);
        free(h->dominator);
        free(h->retained);
        free(h);
}
