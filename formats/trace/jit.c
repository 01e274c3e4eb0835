/* Stacks with a frame in the machine code of a JIT trace: the place in the code becomes the frames
 * that stand there, by the map of the trace. Each distinct place and each trace is looked at once,
 * when the file is opened; samples are then moved from the stack that the file has to the one that
 * is meant, in one step a row. Called by resolve.c and samples.c. */
#include "formats/jit/maps.h"
#include "formats/trace/reader_parts.h"

#include <errno.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define COL(KIND, NAME) row[LS_C_##KIND##_##NAME]

#define FRAMES_MAX 128u        /* inlined frames at a place that are shown: LuaJIT has fewer */
#define NODES_SPARE (1u << 20) /* stacks that are made: these, and 8 for each that the file has */

struct place {                          /* a location in machine code */
        uint32_t trace;                 /* index of jittraces */
        uint32_t first, n;              /* its frames in frames[], outermost first; n 0 = not
                                         * known */
        int headless;                   /* the function that the root trace starts in is not among
                                         * them */
};

struct made { uint32_t a, b, id; };     /* what was made from a and b; id 0 = free */
struct made_table { struct made *slots; uint32_t n_slots, used; };

struct work {
        struct ls_reader *r;
        struct ls_profile *p;
        uint32_t *trace_of;             /* by function: index of jittraces, 0 = none */
        struct ls_jit_maps *maps;
        uint32_t *place_of;             /* by location: index in places, 0 = none yet */
        struct place *places;
        uint32_t n_places, cap_places;
        uint32_t *frames;               /* locations */
        uint32_t n_frames, cap_frames;
        struct made_table locations, stacks;
        uint32_t cap_locations, cap_stacks, file_stacks;
        uint32_t *inlined;              /* by function: that which stands for it where it is
                                         * inlined, 0 = none yet */
        uint32_t cap_functions, file_functions;
};

static int grow(void *array, uint32_t n, uint32_t *cap, size_t size)
{
        void *old, *bigger;
        uint32_t want = n < 64 ? 64 : n + n / 2;

        if (n < *cap)
                return 0;
        memcpy(&old, array, sizeof(old));
        bigger = reallocarray(old, want, size);
        if (!bigger)
                return -ENOMEM;
        memcpy(array, &bigger, sizeof(bigger));
        *cap = want;
        return 0;
}

/* The slot of (a, b): taken, or the free one where it belongs. NULL = no memory. */
static struct made *find_made(struct made_table *t, uint32_t a, uint32_t b)
{
        uint64_t key = (uint64_t)a << 32 | b;
        uint32_t at;

        if (t->used >= t->n_slots / 2) {
                struct made_table bigger = { .n_slots = t->n_slots ? t->n_slots * 2 : 1024 };

                bigger.slots = calloc(bigger.n_slots, sizeof(*bigger.slots));
                if (!bigger.slots)
                        return NULL;
                for (uint32_t i = 0; i < t->n_slots; i++)
                        if (t->slots[i].id)
                                *find_made(&bigger, t->slots[i].a, t->slots[i].b) = t->slots[i];
                bigger.used = t->used;
                free(t->slots);
                *t = bigger;
        }
        at = (uint32_t)XXH3_64bits(&key, sizeof(key)) & (t->n_slots - 1);
        while (t->slots[at].id && (t->slots[at].a != a || t->slots[at].b != b))
                at = (at + 1) & (t->n_slots - 1);
        return &t->slots[at];
}

/* A location that is new to the file. Returns its id, 0 without memory. */
static uint32_t make_location(struct work *w, uint32_t function, uint32_t line)
{
        struct made *m = find_made(&w->locations, function, line);

        if (!m || m->id)
                return m ? m->id : 0;
        if (grow(&w->p->locations, w->p->n_locations, &w->cap_locations, sizeof(*w->p->locations)))
                return 0;
        w->p->locations[w->p->n_locations] = (struct ls_location){ function, line };
        *m = (struct made){ function, line, w->p->n_locations++ };
        w->locations.used++;
        return m->id;
}

static uint32_t make_stack(struct work *w, uint32_t parent, uint32_t location)
{
        struct made *m = location ? find_made(&w->stacks, parent, location) : NULL;

        if (!m || m->id)
                return m ? m->id : 0;
        if (grow(&w->p->stacks, w->p->n_stacks, &w->cap_stacks, sizeof(*w->p->stacks)))
                return 0;
        w->p->stacks[w->p->n_stacks] =
                (struct ls_stack){ parent, location, w->p->stacks[parent].depth + 1 };
        *m = (struct made){ parent, location, w->p->n_stacks++ };
        w->stacks.used++;
        return m->id;
}

static int is_trace(const struct ls_profile *p, uint32_t location)
{
        return p->functions[p->locations[location].function].kind == LS_FUNC_TRACE;
}

/* Function of kind TRACE that a row's column names, else 0. */
static uint32_t trace_function(const struct ls_profile *p, uint64_t id)
{
        return id < p->n_functions && p->functions[id].kind == LS_FUNC_TRACE ? (uint32_t)id : 0;
}

static void read_trace(struct work *w, uint32_t i, const uint64_t *row)
{
        struct ls_profile *p = w->p;
        struct ls_jittrace *t = &p->jittraces[i];
        uint32_t function = trace_function(p, COL(JITTRACE, FUNCTION));

        t->vm = COL(JITTRACE, VM) < p->n_vms ? (uint32_t)COL(JITTRACE, VM) : 0;
        t->number = (uint32_t)COL(JITTRACE, NUMBER);
        t->root = (uint32_t)COL(JITTRACE, ROOT);
        t->exit = (uint32_t)COL(JITTRACE, EXIT);
        t->link = (uint32_t)COL(JITTRACE, LINK);
        t->link_kind = ls_reader_str(w->r, COL(JITTRACE, LINK_KIND));
        t->start = COL(JITTRACE, START) < p->n_locations ? (uint32_t)COL(JITTRACE, START) : 0;
        t->address = COL(JITTRACE, ADDRESS);
        t->size = COL(JITTRACE, SIZE);
        t->function = function;
        if (function && !w->trace_of[function])
                w->trace_of[function] = i;
}

/* The names of the instructions that a VM's traces are in. VMs of one process are of one
 * runtime. */
static struct ls_str ir_names(const struct work *w, uint32_t vm)
{
        const struct ls_dict *d = &w->r->dict[LS_REC_IRNAMES];
        struct ls_str found = ls_reader_str(w->r, 0);

        for (uint32_t i = 1; i <= d->n; i++) {
                const uint64_t *row = ls_dict_row(d, i);

                if (COL(IRNAMES, VM) == vm)
                        return ls_reader_str(w->r, COL(IRNAMES, NAMES));
                if (COL(IRNAMES, VM) < w->p->n_vms &&
                    w->p->vms[COL(IRNAMES, VM)].process == w->p->vms[vm].process)
                        found = ls_reader_str(w->r, COL(IRNAMES, NAMES));
        }
        return found;
}

/* The table of traces: those with a record, and those that are only known by samples in them. */
static int read_traces(struct work *w)
{
        const struct ls_dict *d = &w->r->dict[LS_REC_JITTRACE];
        struct ls_profile *p = w->p;
        uint32_t n = d->n + 1;

        w->trace_of = calloc(p->n_functions, sizeof(*w->trace_of));
        for (uint32_t i = 1; i < p->n_functions; i++)
                n += p->functions[i].kind == LS_FUNC_TRACE;
        p->jittraces = calloc(n, sizeof(*p->jittraces));
        if (!w->trace_of || !p->jittraces)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                p->jittraces[i].link_kind = p->jittraces[i].irnames = ls_reader_str(w->r, 0);
        p->n_jittraces = d->n + 1;
        for (uint32_t i = 1; i <= d->n; i++)
                if (ls_dict_has(d, i))
                        read_trace(w, i, ls_dict_row(d, i));
        for (uint32_t i = 1; i < p->n_functions; i++) {
                if (p->functions[i].kind != LS_FUNC_TRACE || w->trace_of[i])
                        continue;
                p->jittraces[p->n_jittraces].function = i;
                w->trace_of[i] = p->n_jittraces++;
        }
        for (uint32_t i = 0; i < w->r->n_maps; i++) {
                const struct ls_map_piece *m = &w->r->maps[i];
                struct ls_jittrace *t =
                        &p->jittraces[trace_function(p, m->function) ? w->trace_of[m->function]
                                                                     : 0];

                if (t->function && !t->map) {
                        t->map = m->bytes;
                        t->map_len = m->len;
                        t->irnames = ir_names(w, t->vm);
                }
        }
        for (uint32_t i = 1; i <= d->n; i++) {
                const uint64_t *row = ls_dict_has(d, i) ? ls_dict_row(d, i) : NULL;

                if (row && trace_function(p, COL(JITTRACE, PARENT)))
                        p->jittraces[i].parent = w->trace_of[COL(JITTRACE, PARENT)];
        }
        w->maps = ls_jit_maps_new(p);
        return w->maps ? 0 : -ENOMEM;
}

static int add_frame(struct work *w, uint32_t location)
{
        if (!location || grow(&w->frames, w->n_frames, &w->cap_frames, sizeof(*w->frames)))
                return -ENOMEM;
        w->frames[w->n_frames++] = location;
        return 0;
}

/* A function for a builtin where it is inlined: itself without memory. */
static uint32_t inlined(struct work *w, uint32_t function)
{
        struct ls_function f = w->p->functions[function];

        if (f.kind != LS_FUNC_BUILTIN || function >= w->file_functions)
                return function;
        if (!w->inlined)
                w->inlined = calloc(w->file_functions, sizeof(*w->inlined));
        if (!w->inlined || (!w->inlined[function] && grow(&w->p->functions, w->p->n_functions,
                                                          &w->cap_functions, sizeof(f))))
                return function;
        if (!w->inlined[function]) {
                f.flags |= LS_FUNCF_INLINED;
                w->inlined[function] = w->p->n_functions;
                w->p->functions[w->p->n_functions++] = f;
        }
        return w->inlined[function];
}

/* Fills the frames of a place; none when there is no map. */
static int fill_place(struct work *w, struct place *place, uint32_t offset)
{
        const struct ls_dict *functions = &w->r->dict[LS_REC_FUNCTION];
        struct ls_jittrace *t = &w->p->jittraces[place->trace];
        struct ls_jit_frame frames[FRAMES_MAX];
        unsigned n;
        const struct ls_jit_map *map;
        int e = ls_jit_maps_get(w->maps, place->trace, &map);

        if (e || !map)
                return e;
        t->has_map = 1;
        t->doubt = ls_jit_map_is_approximate(map);
        if (offset == LS_JIT_NO_OFFSET)
                return 0;
        n = ls_jit_map_frames(map, offset, frames, FRAMES_MAX);
        place->first = w->n_frames;
        place->headless = n && !frames[0].function;
        for (unsigned i = place->headless ? 1 : 0; !e && i < n && i < FRAMES_MAX; i++) {
                int known = ls_dict_has(functions, frames[i].function) &&
                            w->p->functions[frames[i].function].kind != LS_FUNC_TRACE;
                uint32_t function = known ? frames[i].function : w->r->lost_function;

                e = add_frame(w,
                              make_location(w, frames[i].inlined ? inlined(w, function) : function,
                                            frames[i].line));
                place->n += !e;
        }
        return e;
}

/* Index of the place that a location is, 0 without memory. */
static uint32_t place_of(struct work *w, uint32_t location)
{
        struct ls_location l = w->p->locations[location];
        struct place place = { .trace = w->trace_of[l.function] };

        if (w->place_of[location])
                return w->place_of[location];
        if (grow(&w->places, w->n_places, &w->cap_places, sizeof(*w->places)) ||
            fill_place(w, &place, l.line - 1))
                return 0;
        w->places[w->n_places] = place;
        return w->place_of[location] = w->n_places++;
}

/* Without a map: the frame below, in the line where the trace starts if it starts there. */
static uint32_t start_location(struct work *w, const struct ls_jittrace *t, uint32_t below)
{
        struct ls_location start = w->p->locations[t->start];
        uint32_t function = w->p->locations[below].function;

        return make_location(w, function,
                             t->start && start.function == function &&
                                             function != w->r->lost_function
                                     ? start.line
                                     : 0);
}

/* What is meant by a stack whose innermost frame is in a trace. 0 without memory. */
static uint32_t meant(struct work *w, uint32_t stack, const struct place *place)
{
        const struct ls_stack below =
                w->p->stacks[w->p->stacks[stack].parent]; /* the table may move */
        uint32_t base = w->r->jit_moves[below.parent].to,
                 function = w->p->locations[below.location].function;

        if (!w->p->stacks[stack].parent)
                return stack;
        if (!w->p->locations[w->p->stacks[stack].location]
                     .line) /* the place in the code is not known */
                return make_stack(w, base, make_location(w, function, 0));
        if (!place->n)                  /* nothing is known but the function */
                return make_stack(w, base,
                                  start_location(w, &w->p->jittraces[place->trace],
                                                 below.location));
        if (place->headless)
                base = make_stack(w, base, make_location(w, function, 0));
        /* The code may have returned from the function that it started in. */
        if (base && !place->headless &&
            w->p->locations[w->frames[place->first]].function != function &&
            w->p->locations[w->p->stacks[base].location].function ==
                    w->p->locations[w->frames[place->first]].function)
                base = w->p->stacks[base].parent;
        for (uint32_t i = 0; i < place->n && (base || !i); i++)
                base = make_stack(w, base, w->frames[place->first + i]);
        return base;
}

static int resolve_stack(struct work *w, uint32_t stack)
{
        struct ls_jit_move *move = &w->r->jit_moves[stack];
        uint32_t index = place_of(w, w->p->stacks[stack].location);

        if (!index)
                return -ENOMEM;
        move->trace = w->places[index].trace;
        move->doubt = !w->places[index].n                  ? LS_JIT_MOVE_NO_MAP
                      : w->p->jittraces[move->trace].doubt ? LS_JIT_MOVE_APPROXIMATE
                                                           : 0;
        if (w->p->n_stacks - w->file_stacks > NODES_SPARE + 8 * (uint64_t)w->file_stacks) {
                move->doubt = LS_JIT_MOVE_NO_MAP;
                return 0;
        }
        move->to = meant(w, stack, &w->places[index]);
        return move->to ? 0 : -ENOMEM;
}

/* 1 for the builtin that stands for whatever the FFI calls. */
static int is_ffi_call(const struct ls_function *f)
{
        static const char call[] = ".__call";
        uint32_t n = sizeof(call) - 1;

        return f->kind == LS_FUNC_BUILTIN && f->name.len > n &&
               !memcmp(f->name.s + f->name.len - n, call, n);
}

/* A stack on top of one that has moved. What compiled code has called out to is still in the trace;
 * a C function has the place of the builtin that called it, as it has in the interpreter. */
static int follow(struct work *w, uint32_t stack)
{
        const struct ls_stack s = w->p->stacks[stack];
        struct ls_jit_move below = w->r->jit_moves[s.parent];
        struct ls_jit_move *move = &w->r->jit_moves[stack];
        uint32_t kind = w->p->functions[w->p->locations[s.location].function].kind;
        int in_code = kind == LS_FUNC_C && is_trace(w->p, w->p->stacks[s.parent].location);

        if (kind == LS_FUNC_NATIVE || in_code) {
                move->trace = below.trace;
                move->doubt = below.doubt;
        }
        if (in_code &&
            is_ffi_call(
                    &w->p->functions[w->p->locations[w->p->stacks[below.to].location].function]))
                below.to = w->p->stacks[below.to].parent;
        if (below.to != s.parent)
                move->to = make_stack(w, below.to, s.location);
        return move->to ? 0 : -ENOMEM;
}

static int resolve_stacks(struct work *w)
{
        struct ls_profile *p = w->p;
        int e = 0;

        w->file_functions = w->cap_functions = p->n_functions;
        w->file_stacks = w->cap_stacks = p->n_stacks;
        w->cap_locations = p->n_locations;
        w->r->jit_moves = calloc(p->n_stacks, sizeof(*w->r->jit_moves));
        w->place_of = calloc(p->n_locations, sizeof(*w->place_of));
        w->places = calloc(1, sizeof(*w->places));
        if (!w->r->jit_moves || !w->place_of || !w->places)
                return -ENOMEM;
        w->r->n_jit_moves = p->n_stacks;
        w->n_places = w->cap_places = 1;
        for (uint32_t i = 1; !e && i < w->file_stacks; i++) {
                w->r->jit_moves[i].to = i;
                e = is_trace(p, p->stacks[i].location) ? resolve_stack(w, i)
                    : p->stacks[i].parent              ? follow(w, i)
                                                       : 0;
        }
        return e;
}

static void work_done(struct work *w)
{
        ls_jit_maps_free(w->maps);
        free(w->trace_of);
        free(w->inlined);
        free(w->place_of);
        free(w->places);
        free(w->frames);
        free(w->locations.slots);
        free(w->stacks.slots);
}

int ls_resolve_jit(struct ls_reader *r)
{
        struct work w = { .r = r, .p = r->p };
        int any = 0, e = read_traces(&w);

        for (uint32_t i = 1; !e && !any && i < r->p->n_functions; i++)
                any = r->p->functions[i].kind == LS_FUNC_TRACE;
        if (!e && any)
                e = resolve_stacks(&w);
        work_done(&w);
        return e;
}

void ls_jit_move_rows(struct ls_reader *r, const uint32_t *weight, uint32_t n, uint32_t *stack,
                      uint32_t *ret_trace)
{
        uint64_t in[4] = { 0 };

        for (uint32_t i = 0; i < n; i++) {
                const struct ls_jit_move *m =
                        &r->jit_moves[stack[i] < r->n_jit_moves ? stack[i] : 0];

                in[m->trace ? 1 + m->doubt : 0] += weight[i];
                if (ret_trace)
                        ret_trace[i] = m->trace;
                stack[i] = m->to;
        }
        r->p->jit_ticks += in[1] + in[1 + LS_JIT_MOVE_APPROXIMATE] + in[1 + LS_JIT_MOVE_NO_MAP];
        r->p->jit_approximate_ticks += in[1 + LS_JIT_MOVE_APPROXIMATE];
        r->p->jit_unknown_ticks += in[1 + LS_JIT_MOVE_NO_MAP];
}
