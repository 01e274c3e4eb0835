/* Prints a snapshot: see heap.h. */
#include "report/heap/heap.h"

#include "formats/escape.h"
#include "formats/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN    20u
#define WAY_MOST 24u                    /* steps of a way that are shown */
#define PATHS    2000u                  /* objects that are compared */
#define LEAST    4096u                  /* bytes: smaller changes are not shown */

static const char *type_name(unsigned type)
{
        static const struct { unsigned gct; const char *name; } types[] = {
#define LS_OBJTYPE(NAME, name, gct) { gct, name },
#include "formats/wire/objtypes.def"
#undef LS_OBJTYPE
        };

        for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
                if (type && types[i].gct == type)
                        return types[i].name;
        return types[0].name;
}

static double kib(uint64_t bytes)
{
        return (double)bytes / 1024;
}

static struct ls_str text_of(const struct ls_heap *h, uint32_t id)
{
        return (struct ls_str){ h->texts + h->objects[id].text, id ? h->objects[id].text_len : 0 };
}

/* How an object is held, in few characters. */
static void put_step(FILE *f, const struct ls_heap *h, uint32_t id)
{
        static const char *const roots[] = { "_G", "[registry]", "[main thread]" };
        static const char *const hows[16] = { "[%u]",         NULL,          "[key]",
                                              "<a key>",      "<metatable>", "<environment>",
                                              "<upvalue %u>", "<prototype>", "<constant %u>",
                                              "<chunk name>", "<slot %u>",   "<value>" };
        const struct ls_heap_edge *e = &h->edges[h->by[id]];

        if (!h->parent[id]) {
                fputs(roots[e->which % 3], f);
        } else if (e->how == 1) {
                struct ls_str s = text_of(h, e->which);
                char *name = ls_visible(s.s, s.len);

                fprintf(f, ".%s", name ? name : "?");
                free(name);
        } else {
                const char *how = hows[e->how] ? hows[e->how] : "<?>", *number = strstr(how, "%u");

                if (number)
                        fprintf(f, "%.*s%u%s", (int)(number - how), how, e->which, number + 2);
                else
                        fputs(how, f);
        }
}

/* The way from the root; of a long one its ends. To be freed; NULL = no memory. */
static char *way_text(const struct ls_heap *h, uint32_t id)
{
        uint32_t way[WAY_MOST], n = 0;
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        int cut = 0;

        if (!f)
                return NULL;
        for (uint32_t v = id; v && h->parent[v] != LS_HEAP_NONE; v = h->parent[v]) {
                if (n == WAY_MOST) {
                        memmove(way + WAY_MOST / 2, way + WAY_MOST / 2 + 1,
                                (WAY_MOST / 2 - 1) * sizeof(*way));
                        n--;
                        cut = 1;
                }
                way[n++] = v;
        }
        for (uint32_t i = n; i-- > 0;) {
                put_step(f, h, way[i]);
                if (cut && i == WAY_MOST / 2)
                        fputs(" ... ", f);
        }
        if (!n)
                fputs(id ? "[nothing holds it]" : "[root]", f);
        fclose(f);
        return text;
}

struct sum { uint64_t objects, bytes, retained; };

/* Of a type, retained is what would go with all of its objects, each byte once. */
static int sum_types(const struct ls_heap *h, struct sum *sums, struct sum *ret_loose)
{
        uint16_t *above = calloc((size_t)h->n + 1, sizeof(*above));
        uint32_t *stack = malloc(((size_t)h->n + 1) * sizeof(*stack));

        *ret_loose = (struct sum){ 0 };
        for (uint32_t i = 1; above && stack && i < h->n; i++) {
                const struct ls_heap_object *o = &h->objects[i];
                uint32_t n = 0, v = i;

                sums[o->type].objects++;
                sums[o->type].bytes += o->size;
                if (h->parent[i] == LS_HEAP_NONE) {
                        ret_loose->objects++;
                        ret_loose->bytes += o->size;
                        continue;
                }
                /* Types of all that dominates it, known already of some of them: bit 15 says so. */
                for (; v && !above[v]; v = h->dominator[v])
                        stack[n++] = v;
                while (n--) {
                        uint32_t d = h->dominator[stack[n]];

                        above[stack[n]] = (uint16_t)(1u << 15 | above[d] |
                                                     (d ? 1u << (h->objects[d].type % 15) : 0));
                }
                if (!(above[i] & 1u << (o->type % 15)))
                        sums[o->type].retained += h->retained[i];
        }
        free(above);
        free(stack);
        return above && stack ? 0 : -ENOMEM;
}

static const uint64_t *sort_by;

static int by_retained(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        if (sort_by[x] != sort_by[y])
                return sort_by[x] > sort_by[y] ? -1 : 1;
        return x < y ? -1 : x > y;
}

/* Objects that something holds, those that retain most first. To be freed; NULL = no memory. */
static uint32_t *ranked(const struct ls_heap *h, uint32_t *ret_n)
{
        uint32_t *all = malloc(((size_t)h->n + 1) * sizeof(*all)), n = 0;

        for (uint32_t i = 1; all && i < h->n; i++)
                if (h->parent[i] != LS_HEAP_NONE)
                        all[n++] = i;
        sort_by = h->retained;
        if (all)
                qsort(all, n, sizeof(*all), by_retained);
        *ret_n = n;
        return all;
}

static void show_types(FILE *out, const struct sum *sums, const struct sum *all,
                       const struct sum *loose)
{
        uint32_t shown = 0;

        fprintf(out, "#     KiB   Share   Objects  Retained KiB  Type\n");
        for (;;) {
                unsigned best = LS_HEAP_TYPES;

                for (unsigned i = 0; i < LS_HEAP_TYPES; i++)
                        if (sums[i].objects && !(shown & 1u << i) &&
                            (best == LS_HEAP_TYPES || sums[i].bytes > sums[best].bytes))
                                best = i;
                if (best == LS_HEAP_TYPES)
                        break;
                shown |= 1u << best;
                fprintf(out, "%9.1f  %5.1f%% %9" PRIu64 "  %12.1f  %s\n", kib(sums[best].bytes),
                        all->bytes ? 100 * (double)sums[best].bytes / (double)all->bytes : 0,
                        sums[best].objects, kib(sums[best].retained), type_name(best));
        }
        if (loose->objects)
                fprintf(out,
                        "# of these %.1f KiB in %" PRIu64
                        " objects are held by nothing that was read: garbage, most likely\n",
                        kib(loose->bytes), loose->objects);
}

static void show_largest(FILE *out, const struct ls_heap *h, const uint32_t *order, uint32_t n)
{
        fprintf(out, "\n# Retained KiB   Own KiB  Type       Where\n");
        for (uint32_t i = 0; i < n && i < SHOWN; i++) {
                char *way = way_text(h, order[i]);

                fprintf(out, "%14.1f %9.1f  %-9s  %s\n", kib(h->retained[order[i]]),
                        kib(h->objects[order[i]].size), type_name(h->objects[order[i]].type),
                        way ? way : "?");
                free(way);
        }
}

static void show_json(FILE *out, const struct ls_heap *h, const struct sum *sums,
                      const struct sum *loose, const uint32_t *order, uint32_t n)
{
        struct ls_js j = { .out = out, .indent = 1 };

        ls_js_open(&j, '{');
        ls_js_key_u64(&j, "pid", h->pid);
        ls_js_key_u64(&j, "stopped_ns", h->stopped_ns);
        ls_js_key_u64(&j, "copied_bytes", h->copied);
        ls_js_key_open(&j, "vms", '[');
        for (uint32_t i = 0; i < h->n_vms; i++) {
                ls_js_open(&j, '{');
                ls_js_key_u64(&j, "vm", h->vms[i].number);
                ls_js_key_u64(&j, "bytes", h->vms[i].bytes);
                ls_js_close(&j, '}');
        }
        ls_js_close(&j, ']');
        ls_js_key_open(&j, "types", '{');
        for (unsigned i = 0; i < LS_HEAP_TYPES; i++) {
                if (!sums[i].objects)
                        continue;
                ls_js_key_open(&j, type_name(i), '{');
                ls_js_key_u64(&j, "objects", sums[i].objects);
                ls_js_key_u64(&j, "bytes", sums[i].bytes);
                ls_js_key_u64(&j, "retained", sums[i].retained);
                ls_js_close(&j, '}');
        }
        ls_js_close(&j, '}');
        ls_js_key_u64(&j, "unheld_objects", loose->objects);
        ls_js_key_u64(&j, "unheld_bytes", loose->bytes);
        ls_js_key_open(&j, "largest", '[');
        for (uint32_t i = 0; i < n && i < 10 * SHOWN; i++) {
                char *way = way_text(h, order[i]);

                ls_js_open(&j, '{');
                ls_js_key_string(&j, "type", type_name(h->objects[order[i]].type));
                ls_js_key_u64(&j, "address", h->objects[order[i]].at);
                ls_js_key_u64(&j, "bytes", h->objects[order[i]].size);
                ls_js_key_u64(&j, "retained", h->retained[order[i]]);
                ls_js_key_string(&j, "where", way ? way : "");
                ls_js_close(&j, '}');
                free(way);
        }
        ls_js_close(&j, ']');
        ls_js_close(&j, '}');
}

int ls_heap_show(FILE *out, const struct ls_heap *h, int json)
{
        struct sum sums[LS_HEAP_TYPES] = { { 0 } }, all = { 0 }, loose;
        char *name = ls_visible(h->name, strlen(h->name));
        uint32_t n, *order = ranked(h, &n);
        uint64_t counted = 0;
        int r = order && name ? sum_types(h, sums, &loose) : -ENOMEM;

        for (unsigned i = 0; i < LS_HEAP_TYPES; i++)
                all.bytes += sums[i].bytes;
        for (uint32_t i = 0; i < h->n_vms; i++)
                counted += h->vms[i].bytes;
        if (!r && json) {
                show_json(out, h, sums, &loose, order, n);
        } else if (!r) {
                fprintf(out, "# Process:  %" PRIu64 " (%s), stopped for %.1f ms to copy %.1f MiB\n",
                        h->pid, name, (double)h->stopped_ns / 1e6, kib(h->copied) / 1024);
                fprintf(out,
                        "# Objects:  %u of %.1f KiB in %u VM%s; the collector counts %.1f KiB\n#\n",
                        h->n - 1, kib(all.bytes), h->n_vms, h->n_vms == 1 ? "" : "s", kib(counted));
                show_types(out, sums, &all, &loose);
                show_largest(out, h, order, n);
        }
        free(order);
        free(name);
        return r;
}

/* The object at that place from the globals: names with dots. 0 = there is none. */
static uint32_t at_path(const struct ls_heap *h, uint32_t from, const char *path)
{
        if (!strncmp(path, "_G.", 3))
                path += 3;
        else if (!strcmp(path, "_G"))
                path = "";
        while (from && *path) {
                size_t len = strcspn(path, ".");
                uint32_t to = 0;

                for (uint32_t i = h->objects[from].first; i < h->objects[from + 1].first && !to;
                     i++) {
                        const struct ls_heap_edge *e = &h->edges[i];
                        struct ls_str s = text_of(h, e->which < h->n ? e->which : 0);

                        if (e->how == 1 && s.len == len && !memcmp(s.s, path, len))
                                to = e->target;
                }
                from = to;
                path += len + (path[len] == '.');
        }
        return from;
}

/* By address, type (the one that retains most), or path. */
static uint32_t find(const struct ls_heap *h, const char *what)
{
        char *end;
        uint64_t at = strtoull(what, &end, 0);
        uint32_t best = 0;

        if (end != what && !*end) {
                for (uint32_t i = 1; i < h->n; i++)
                        if (h->objects[i].at == at)
                                return i;
                return 0;
        }
        for (uint32_t i = 1; i < h->n; i++)
                if (!strcmp(type_name(h->objects[i].type), what) && h->parent[i] != LS_HEAP_NONE &&
                    (!best || h->retained[i] > h->retained[best]))
                        best = i;
        for (uint32_t i = 0; i < h->n_vms && !best; i++)
                best = h->vms[i].globals < h->n ? at_path(h, h->vms[i].globals, what) : 0;
        return best;
}

int ls_heap_why(FILE *out, const struct ls_heap *h, const char *what)
{
        uint32_t id = find(h, what), n = 0;
        uint32_t *way = malloc(((size_t)h->n + 1) * sizeof(*way));

        if (!id || !way) {
                free(way);
                return id ? -ENOMEM : -ENOENT;
        }
        if (h->parent[id] == LS_HEAP_NONE)
                fprintf(out, "[nothing that was read holds it: garbage, most likely]\n");
        for (uint32_t v = id; v && h->parent[v] != LS_HEAP_NONE; v = h->parent[v])
                way[n++] = v;
        fprintf(out, "# Retained KiB   Own KiB  Type       Address         Held by\n");
        while (n--) {
                const struct ls_heap_object *o = &h->objects[way[n]];
                struct ls_str s = text_of(h, way[n]);
                char *text = ls_visible(s.s, s.len);

                fprintf(out, "%14.1f %9.1f  %-9s  %#" PRIx64 "  ", kib(h->retained[way[n]]),
                        kib(o->size), type_name(o->type), o->at);
                put_step(out, h, way[n]);
                fprintf(out, "%s%s\n", s.len ? "  " : "", text ? text : "");
                free(text);
        }
        free(way);
        return 0;
}

struct place { char *way; uint64_t retained[2]; int64_t grew; };

static int by_way(const void *a, const void *b)
{
        return strcmp(((const struct place *)a)->way, ((const struct place *)b)->way);
}

static int by_growth(const void *a, const void *b)
{
        const struct place *x = a, *y = b;

        if (x->grew != y->grew)
                return x->grew > y->grew ? -1 : 1;
        return strcmp(x->way, y->way);
}

/* Places of both, those of one name together. */
static uint32_t gather(const struct ls_heap *const *two, struct place *places)
{
        uint32_t n = 0, kept = 0;

        for (int k = 0; k < 2; k++) {
                uint32_t objects, *order = ranked(two[k], &objects);

                for (uint32_t i = 0; order && i < objects && i < PATHS; i++) {
                        places[n].way = way_text(two[k], order[i]);
                        places[n].retained[k] = two[k]->retained[order[i]];
                        n += places[n].way != NULL;
                }
                free(order);
        }
        qsort(places, n, sizeof(*places), by_way);
        for (uint32_t i = 0; i < n; i++) {
                if (kept && !strcmp(places[kept - 1].way, places[i].way)) {
                        places[kept - 1].retained[0] += places[i].retained[0];
                        places[kept - 1].retained[1] += places[i].retained[1];
                        free(places[i].way);
                } else {
                        places[kept++] = places[i];
                }
        }
        for (uint32_t i = 0; i < kept; i++)
                places[i].grew = (int64_t)(places[i].retained[1] - places[i].retained[0]);
        qsort(places, kept, sizeof(*places), by_growth);
        return kept;
}

int ls_heap_compare(FILE *out, const struct ls_heap *a, const struct ls_heap *b)
{
        const struct ls_heap *const two[] = { a, b };
        struct sum sums[2][LS_HEAP_TYPES] = { { { 0 } } }, loose;
        struct place *places = calloc(2 * PATHS + 1, sizeof(*places));
        int r = places ? sum_types(a, sums[0], &loose) : -ENOMEM;
        uint32_t n;

        if (!r)
                r = sum_types(b, sums[1], &loose);
        if (!r) {
                fprintf(out, "# Change KiB   Change  Objects before     after  Type\n");
                for (unsigned i = 0; i < LS_HEAP_TYPES; i++)
                        if (sums[0][i].objects || sums[1][i].objects)
                                fprintf(out,
                                        "%12.1f %+8" PRId64 " %15" PRIu64 " %9" PRIu64 "  %s\n",
                                        kib(sums[1][i].bytes) - kib(sums[0][i].bytes),
                                        (int64_t)(sums[1][i].objects - sums[0][i].objects),
                                        sums[0][i].objects, sums[1][i].objects, type_name(i));
                n = gather(two, places);
                fprintf(out, "\n# Change KiB   Retained before     after  Where\n");
                for (uint32_t i = 0; i < n && i < SHOWN && places[i].grew > LEAST; i++)
                        fprintf(out, "%12.1f %17.1f %9.1f  %s\n", (double)places[i].grew / 1024,
                                kib(places[i].retained[0]), kib(places[i].retained[1]),
                                places[i].way);
                for (uint32_t i = 0; i < n; i++)
                        free(places[i].way);
        }
        free(places);
        return r;
}
