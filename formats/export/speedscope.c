/* Exporter "speedscope": the JSON of speedscope.app. A profile for each thread, its stacks in time
 * order with the CPU time of each; speedscope sums them up itself ("Left Heavy"). Stacks that
 * follow each other and are equal are one.
 *
 * speedscope recurses into its call tree and fails where browsers end that, somewhere below 5000
 * frames. So the middle of deep stacks is left out. */
#include "formats/json.h"
#include "formats/export/spool.h"
#include "formats/export/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENDS 1000u /* frames at the root, and as many at the leaf, that are never left out */

struct stretch {                        /* samples that follow each other with one stack */
        uint32_t node;
        uint64_t ticks;
};

struct speedscope {
        struct ls_timeline *t;
        struct ls_js j;
        struct ls_spool *spool;
        struct stretch *open;           /* [n_threads] that has not ended */
        uint32_t *path;
};

static int add_sample(void *ctx, const struct ls_timeline_sample *s)
{
        struct speedscope *x = ctx;
        struct stretch *open = &x->open[s->thread];
        int r = 0;

        if (open->ticks && open->node != s->node) {
                r = ls_spool_add(x->spool, s->thread, open);
                open->ticks = 0;
        }
        open->node = s->node;
        open->ticks += s->ticks;
        return r;
}

static int collect(struct speedscope *x)
{
        int r = ls_timeline_each(x->t, add_sample, x);

        for (uint32_t i = 0; !r && i < x->t->p->n_threads; i++)
                if (x->open[i].ticks)
                        r = ls_spool_add(x->spool, i, &x->open[i]);
        return r;
}

static void put_frames(struct speedscope *x)
{
        const struct ls_timeline *t = x->t;

        ls_js_key_open(&x->j, "shared", '{');
        ls_js_key_open(&x->j, "frames", '[');
        for (uint32_t i = 0; i < t->n_frames; i++) {
                uint32_t frame = t->frame_of_number[i];
                struct ls_str file = ls_timeline_file(t, frame);

                ls_js_open(&x->j, '{');
                ls_js_key_string(&x->j, "name", t->in->frame_text(t->in->ctx, frame));
                if (file.len) {
                        ls_js_key(&x->j, "file");
                        ls_js_text(&x->j, file);
                }
                if (file.len && t->frames[frame].line)
                        ls_js_key_u64(&x->j, "line", t->frames[frame].line);
                ls_js_close(&x->j, '}');
        }
        if (ls_timeline_depth(t) > 2 * ENDS) {
                ls_js_open(&x->j, '{');
                ls_js_key_string(&x->j, "name", "[middle left out]");
                ls_js_close(&x->j, '}');
        }
        ls_js_close(&x->j, ']');
        ls_js_close(&x->j, '}');
}

static int put_stack(void *ctx, const void *record)
{
        struct speedscope *x = ctx;
        const struct stretch *s = record;
        uint32_t n = ls_timeline_path(x->t, s->node, x->path);

        ls_js_open(&x->j, '[');
        for (uint32_t i = 0; i < n; i++) {
                if (i == ENDS && n > 2 * ENDS) {
                        ls_js_u64(&x->j, x->t->n_frames);
                        i = n - ENDS;
                }
                ls_js_u64(&x->j, x->t->frames[x->t->tree->nodes[x->path[i]].label].number - 1);
        }
        ls_js_close(&x->j, ']');
        return ferror(x->j.out) ? -EIO : 0;
}

/* A trace whose interval is not known has ticks in place of time. */
static uint64_t value(const struct speedscope *x, uint64_t ticks)
{
        return x->t->in->interval_ns ? ls_timeline_ns(x->t, ticks) : ticks;
}

static int put_weight(void *ctx, const void *record)
{
        struct speedscope *x = ctx;

        ls_js_u64(&x->j, value(x, ((const struct stretch *)record)->ticks));
        return ferror(x->j.out) ? -EIO : 0;
}

static int put_profile(struct speedscope *x, uint32_t thread)
{
        char *name = ls_timeline_thread_name(x->t, thread), *text = NULL;
        int r, is_cpu = !strcmp(x->t->in->event, "cpu");

        if (!name || asprintf(&text, "%s (tid %u)%s%s%s", name, x->t->p->threads[thread].tid,
                              is_cpu ? "" : ", ", is_cpu ? "" : x->t->in->event,
                              is_cpu ? "" : " time") < 0) {
                free(name);
                return -ENOMEM;
        }
        ls_js_open(&x->j, '{');
        ls_js_key_string(&x->j, "type", "sampled");
        ls_js_key_string(&x->j, "name", text);
        ls_js_key_string(&x->j, "unit", x->t->in->interval_ns ? "nanoseconds" : "none");
        ls_js_key_u64(&x->j, "startValue", 0);
        ls_js_key_u64(&x->j, "endValue", value(x, x->t->threads[thread].ticks));
        ls_js_key_open(&x->j, "samples", '[');
        r = ls_spool_each(x->spool, thread, put_stack, x);
        ls_js_close(&x->j, ']');
        ls_js_key_open(&x->j, "weights", '[');
        if (!r)
                r = ls_spool_each(x->spool, thread, put_weight, x);
        ls_js_close(&x->j, ']');
        ls_js_close(&x->j, '}');
        free(name);
        free(text);
        return r;
}

static int put_file(struct speedscope *x)
{
        const struct ls_profile *p = x->t->p;
        struct ls_str command = ls_profile_str(p, LS_INFO_COMMAND);
        uint32_t busiest = 0, number = 0, active = 0;
        int r = 0;

        ls_js_open(&x->j, '{');
        ls_js_key_string(&x->j, "$schema", "https://www.speedscope.app/file-format-schema.json");
        ls_js_key_string(&x->j, "exporter", "luasample " LS_VERSION);
        if (command.len) {
                ls_js_key(&x->j, "name");
                ls_js_text(&x->j, command);
        }
        put_frames(x);
        ls_js_key_open(&x->j, "profiles", '[');
        for (uint32_t i = 0; !r && i < p->n_threads; i++) {
                if (!x->t->threads[i].rows)
                        continue;
                if (x->t->threads[i].ticks > x->t->threads[busiest].ticks) {
                        busiest = i;
                        active = number;
                }
                number++;
                r = put_profile(x, i);
        }
        if (!r && !number)              /* speedscope takes no file without a profile */
                r = put_profile(x, 0);
        ls_js_close(&x->j, ']');
        ls_js_key_u64(&x->j, "activeProfileIndex", active);
        ls_js_close(&x->j, '}');
        putc_unlocked('\n', x->j.out);
        return r;
}

static int speedscope_write(FILE *out, const struct ls_export *in)
{
        struct speedscope x = { .j.out = out };
        int r = ls_timeline_new(in, &x.t);

        if (!r)
                r = ls_spool_new(in->profile->n_threads, sizeof(struct stretch), &x.spool);
        if (!r) {
                x.open = calloc((size_t)in->profile->n_threads + 1, sizeof(*x.open));
                x.path = malloc(((size_t)ls_timeline_depth(x.t) + 1) * sizeof(*x.path));
                r = x.open && x.path ? collect(&x) : -ENOMEM;
        }
        if (!r)
                r = put_file(&x);
        free(x.open);
        free(x.path);
        ls_spool_free(x.spool);
        ls_timeline_free(x.t);
        return ls_js_result(&x.j, r);
}

const struct ls_exporter ls_export_speedscope = {
        .name = "speedscope",
        .suffix = ".speedscope.json",
        .help = "samples of each thread in time order, for speedscope",
        .flags = LS_EXPORT_ROWS | LS_EXPORT_TIMELINE,
        .write = speedscope_write,
};
