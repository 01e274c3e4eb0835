/* View "stacks": each stack of the trace by itself, as luasample stack shows where a process is.
 * Equal ones are one. */
#include "formats/escape.h"
#include "formats/trace/reader.h"
#include "report/view/view.h"
#include "formats/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#include <uthash.h>

struct shown {                          /* samples that agree in all that is shown */
        struct { uint32_t stack, thread, vm, zone; uint8_t state, flags, pad[2]; } key;
        uint32_t coroutine;             /* of the first */
        uint64_t times;
        int failed;
        struct shown *next;
        UT_hash_handle hh;
};

struct pass {
        const struct ls_report *r;
        struct shown *hash, *first, **end;
};

static const char *const states[] = {
#define LS_VMSTATE(letter, NAME, name, label) label,
#include "formats/wire/vmstates.def"
#undef LS_VMSTATE
};

static int take_row(struct pass *s, const struct ls_sample_block *b, uint32_t i)
{
        struct shown *e, key = { .key = { .stack = b->stack[i], .vm = b->vm[i], .zone = b->zone[i],
                                           .state = b->vmstate[i] } };

        key.key.flags = b->flags[i] & (LS_SAMPLE_BLOCKED | LS_SAMPLE_SUSPENDED | LS_SAMPLE_OFF_CPU);
        if (!(key.key.flags & LS_SAMPLE_SUSPENDED))
                key.key.thread = b->thread[i];
        HASH_FIND(hh, s->hash, &key.key, sizeof(key.key), e);
        if (!e) {
                e = calloc(1, sizeof(*e));
                if (!e)
                        return -ENOMEM;
                memcpy(&e->key, &key.key, sizeof(e->key));
                e->coroutine = b->coroutine[i];
                HASH_ADD(hh, s->hash, key, sizeof(e->key), e);
                if (e->failed) {
                        free(e);
                        return -ENOMEM;
                }
                *s->end = e;
                s->end = &e->next;
        }
        e->times++;
        return 0;
}

static int take_block(void *ctx, const struct ls_sample_block *b)
{
        struct pass *s = ctx;

        for (uint32_t i = 0; i < b->n; i++)
                if (ls_filter_wants(s->r->filter, b, i) && take_row(s, b, i))
                        return -ENOMEM;
        return 0;
}

static int collect(struct pass *s)
{
        s->end = &s->first;
        return ls_profile_samples(s->r->profile, s->r->filter->columns, take_block, s);
}

static void empty(struct pass *s)
{
        HASH_CLEAR(hh, s->hash);
        while (s->first) {
                struct shown *e = s->first;

                s->first = e->next;
                free(e);
        }
}

/* "app.lua:12", the place where a frame is; else its module; to be freed, NULL = nothing to say. */
static char *frame_place(const struct ls_report *r, uint32_t location)
{
        const struct ls_location *l = &r->profile->locations[location];
        const struct ls_function *f = &r->profile->functions[l->function];
        char *text;

        if (f->source && l->line)
                return asprintf(&text, "%s:%u", r->labels->source[f->source], l->line) < 0 ? NULL
                                                                                           : text;
        return ls_place_text(r, l->function);
}

static const char *what(const struct shown *e)
{
        if (e->key.flags & LS_SAMPLE_SUSPENDED)
                return "suspended";
        return e->key.flags & (LS_SAMPLE_BLOCKED | LS_SAMPLE_OFF_CPU) ? "blocked"
                                                                      : states[e->key.state];
}

static void put_head(const struct ls_report *r, const struct shown *e)
{
        const struct ls_profile *p = r->profile;
        char *zone = e->key.zone ? ls_zone_path(p, e->key.zone) : NULL;
        FILE *out = r->out;

        if (e->key.flags & LS_SAMPLE_SUSPENDED) {
                if (e->times == 1)
                        fputs("Coroutine", out);
                else
                        fprintf(out, "%" PRIu64 " coroutines", e->times);
        } else {
                const struct ls_thread *t = &p->threads[e->key.thread];
                char *name = ls_visible(t->name.s, t->name.len);

                fprintf(out, "Thread %u%s%s", t->tid, name && *name ? " " : "", name ? name : "");
                if (e->times > 1)
                        fprintf(out, ", %" PRIu64 " times", e->times);
                free(name);
        }
        if (e->key.vm)
                fprintf(out, ", VM %u", p->vms[e->key.vm].number);
        if (e->coroutine && e->times == 1) {
                const struct ls_coroutine *c = &p->coroutines[e->coroutine];

                fprintf(out, ", coroutine %s #%u", r->labels->function[c->function], c->generation);
        }
        fprintf(out, ": %s", what(e));
        if (zone)
                fprintf(out, ", zone %s", zone);
        free(zone);
        fputc('\n', out);
}

static void put_frames(const struct ls_report *r, const struct shown *e)
{
        const struct ls_profile *p = r->profile;

        for (uint32_t at = e->key.stack; at; at = p->stacks[at].parent) {
                uint32_t location = p->stacks[at].location;
                char *place = frame_place(r, location);

                fprintf(r->out, "    %-40s%s%s%s%s\n",
                        r->labels->function[p->locations[location].function], place ? "  " : "",
                        ls_dim(r), place ? place : "", ls_plain(r));
                free(place);
        }
        fputc('\n', r->out);
}

static int stacks_text(const struct ls_report *r)
{
        struct pass s = { .r = r };
        int error = collect(&s);

        for (const struct shown *e = error ? NULL : s.first; e; e = e->next) {
                put_head(r, e);
                put_frames(r, e);
        }
        empty(&s);
        return error;
}

static void json_frames(const struct ls_report *r, struct ls_js *g, uint32_t at)
{
        const struct ls_profile *p = r->profile;

        ls_js_key_open(g, "frames", '[');
        for (; at; at = p->stacks[at].parent) {
                const struct ls_location *l = &p->locations[p->stacks[at].location];
                const struct ls_function *f = &p->functions[l->function];

                ls_js_open(g, '{');
                ls_js_key_string(g, "function", r->labels->function[l->function]);
                if (f->source)
                        ls_js_key_string(g, "source", r->labels->source[f->source]);
                if (l->line)
                        ls_js_key_u64(g, "line", l->line);
                ls_js_close(g, '}');
        }
        ls_js_close(g, ']');
}

static int stacks_json(const struct ls_report *r, struct ls_js *g)
{
        const struct ls_profile *p = r->profile;
        struct pass s = { .r = r };
        int error = collect(&s);

        ls_js_key_open(g, "stacks", '[');
        for (const struct shown *e = error ? NULL : s.first; e; e = e->next) {
                char *zone = e->key.zone ? ls_zone_path(p, e->key.zone) : NULL;

                ls_js_open(g, '{');
                ls_js_key_string(g, "state", what(e));
                ls_js_key_u64(g, "times", e->times);
                if (e->key.thread) {
                        ls_js_key_u64(g, "tid", p->threads[e->key.thread].tid);
                        ls_js_key_text(g, "thread", p->threads[e->key.thread].name);
                }
                if (e->key.vm)
                        ls_js_key_u64(g, "vm", p->vms[e->key.vm].number);
                if (e->coroutine && e->times == 1)
                        ls_js_key_string(g, "coroutine",
                                         r->labels->function[p->coroutines[e->coroutine].function]);
                if (zone)
                        ls_js_key_string(g, "zone", zone);
                json_frames(r, g, e->key.stack);
                ls_js_close(g, '}');
                free(zone);
        }
        ls_js_close(g, ']');
        empty(&s);
        return error;
}

static int stacks_chosen(const struct ls_report_options *o)
{
        return o->stacks;
}

static unsigned stacks_dims(const struct ls_report_options *o)
{
        (void)o;
        return 0;
}

const struct ls_view ls_view_stacks = {
        .name = "stacks",
        .chosen = stacks_chosen,
        .dims = stacks_dims,
        .text = stacks_text,
        .json = stacks_json,
};
