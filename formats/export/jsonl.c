/* Exporter "jsonl": a JSON object on a line for each row of samples, in the order of the file, for programs of one's own.
 * Streamed: what a frame, a zone, a thread looks like is made when it is first met. */
#include "formats/escape.h"
#include "formats/export/export.h"
#include "formats/real.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_gen.h>


struct jsonl {
        const struct ls_export *in;
        const struct ls_profile *p;
        FILE *out;
        yajl_gen gen;                   /* makes the texts */
        uint64_t start_ns;
        char **frame;                   /* by location, and of leaves without a line by n_locations + function */
        char *vmstate[LS_NVMSTATES];
        char **zone, **thread, **coroutine;     /* thread: its three members */
        char **label;                   /* an object */
        uint8_t *shown;                 /* by process: it has rows */
        int failed;
};

static void add_text(yajl_gen g, const char *key, const char *text)
{
        if (key)
                yajl_gen_string(g, (const unsigned char *)key, strlen(key));
        if (text)
                yajl_gen_string(g, (const unsigned char *)text, strlen(text));
        else
                yajl_gen_null(g);
}

static void add_number(yajl_gen g, const char *key, uint32_t value)
{
        if (key)
                yajl_gen_string(g, (const unsigned char *)key, strlen(key));
        yajl_gen_integer(g, value);
}

/* Takes what was made since the last time. */
static char *take(struct jsonl *s)
{
        const unsigned char *text;
        char *copy = NULL;
        size_t n;

        if (yajl_gen_get_buf(s->gen, &text, &n) == yajl_gen_status_ok)
                copy = strndup((const char *)text, n);
        yajl_gen_clear(s->gen);
        yajl_gen_reset(s->gen, "");     /* a new text; "" between this one and the last */
        s->failed |= !copy;
        return copy;
}

static const char *frame(struct jsonl *s, uint32_t location)
{
        const struct ls_profile *p = s->p;
        const struct ls_location *l = &p->locations[location];
        const struct ls_function *f = &p->functions[l->function];
        char **text = &s->frame[location];

        if (*text)
                return *text;
        yajl_gen_map_open(s->gen);
        add_text(s->gen, "function", s->in->labels->function[l->function]);
        if (f->kind == LS_FUNC_LUA) {
                add_text(s->gen, "source", s->in->labels->source[f->source]);
                add_number(s->gen, "line_defined", f->first_line);
                if (l->line)
                        add_number(s->gen, "line", l->line);
        }
        yajl_gen_map_close(s->gen);
        *text = take(s);
        return *text ? *text : "{}";
}

/* The text of an id as a JSON string, or null. */
static const char *dim(struct jsonl *s, char **texts, unsigned which, uint32_t id)
{
        if (!texts[id]) {
                add_text(s->gen, NULL, s->in->dim_text(s->in, which, id));
                texts[id] = take(s);
        }
        return texts[id] ? texts[id] : "null";
}

/* "process":4242,"thread":4243,"thread_name":"worker" */
static const char *thread(struct jsonl *s, uint32_t id)
{
        const struct ls_thread *t = &s->p->threads[id];
        char *name = s->thread[id] ? NULL : ls_visible(t->name.s, t->name.len), *quoted;

        if (s->thread[id])
                return s->thread[id];
        add_text(s->gen, NULL, name ? name : "");
        quoted = take(s);
        if (!name || !quoted || asprintf(&s->thread[id], "\"process\":%u,\"thread\":%u,\"thread_name\":%s",
                                         s->p->processes[t->process].pid, t->tid, quoted) < 0) {
                s->thread[id] = NULL;
                s->failed = 1;
        }
        free(name);
        free(quoted);
        return s->thread[id] ? s->thread[id] : "";
}

/* The labels that the program gave, as an object. */
static const char *labels(struct jsonl *s, uint32_t id)
{
        const struct ls_sample_label *all = s->p->sample_labels;

        if (s->label[id])
                return s->label[id];
        yajl_gen_map_open(s->gen);
        for (uint32_t at = id, n = 0; at && n < LS_EXPORT_LABELS; at = all[at].parent, n++) {
                char *key = ls_visible(all[at].key.s, all[at].key.len);
                char *value = ls_visible(all[at].value.s, all[at].value.len);

                add_text(s->gen, key ? key : "", value);
                free(key);
                free(value);
        }
        yajl_gen_map_close(s->gen);
        s->label[id] = take(s);
        return s->label[id] ? s->label[id] : "{}";
}

static void put_stack(struct jsonl *s, uint32_t stack)
{
        const struct ls_profile *p = s->p;

        fputs_unlocked(",\"stack\":[", s->out);
        for (uint32_t at = stack; at; at = p->stacks[at].parent) {
                if (at != stack)
                        fputc_unlocked(',', s->out);
                fputs_unlocked(frame(s, p->stacks[at].location), s->out);
        }
        fputs_unlocked("]}\n", s->out);
}

static void put_row(struct jsonl *s, const struct ls_sample_block *b, uint32_t i)
{
        uint64_t after = b->time_ns[i] > s->start_ns ? b->time_ns[i] - s->start_ns : 0;

        fputc_unlocked('{', s->out);
        if (b->event[i] != LS_EVENT_CPU)
                fprintf(s->out, "\"event\":\"%s\",", s->in->event);   /* only of the one that is shown are there others */
        fprintf(s->out, "\"time_ns\":%" PRIu64 ",\"weight\":%u,\"continues\":%s,\"vmstate\":%s,\"zone\":%s,%s", after,
                b->weight[i], b->flags[i] & LS_SAMPLE_CONT ? "true" : "false",
                dim(s, s->vmstate, LS_DIM_VMSTATE, b->vmstate[i]), dim(s, s->zone, LS_DIM_ZONE, b->zone[i]),
                thread(s, b->thread[i]));
        if (b->vm[i])
                fprintf(s->out, ",\"vm\":%u,\"coroutine\":%s", s->p->vms[b->vm[i]].number,
                        dim(s, s->coroutine, LS_DIM_COROUTINE, b->coroutine[i]));
        else
                fputs_unlocked(",\"vm\":null,\"coroutine\":null", s->out);
        if (b->label[i])
                fprintf(s->out, ",\"labels\":%s", labels(s, b->label[i]));
        put_stack(s, b->stack[i]);
}

static int put_rows(void *ctx, const struct ls_sample_block *b, const uint8_t *wanted)
{
        struct jsonl *s = ctx;

        for (uint32_t i = 0; i < b->n && !s->failed; i++)
                if (wanted[i]) {
                        s->shown[s->p->threads[b->thread[i]].process] = 1;
                        put_row(s, b, i);
                }
        return s->failed ? -ENOMEM : ferror(s->out) ? -EIO : 0;
}

/* After the samples: values of counters, of processes that have some. */
static int put_counters(struct jsonl *s)
{
        uint64_t ns;

        for (uint32_t i = 1; i < s->p->n_counters; i++) {
                const struct ls_counter_series *c = &s->p->counters[i];
                char *name = s->shown[c->process] ? ls_visible(c->name.s, c->name.len) : NULL, *quoted = NULL;
                char value[LS_REAL_TEXT];

                if (name) {
                        add_text(s->gen, NULL, name);
                        quoted = take(s);
                }
                for (uint32_t k = 0; quoted && k < c->n; k++)
                        if (ls_export_has_count(s->in, c, k, &ns))
                                fprintf(s->out, "{\"time_ns\":%" PRIu64 ",\"process\":%u,\"counter\":%s,\"value\":%s}\n",
                                        ns > s->start_ns ? ns - s->start_ns : 0, s->p->processes[c->process].pid, quoted,
                                        ls_real_text(c->counts[k].value, value));
                s->failed |= s->shown[c->process] && !quoted;
                free(name);
                free(quoted);
        }
        return s->failed ? -ENOMEM : ferror(s->out) ? -EIO : 0;
}

static void free_texts(char **texts, size_t n)
{
        for (size_t i = 0; texts && i < n; i++)
                free(texts[i]);
        free(texts);
}

static int jsonl_write(FILE *out, const struct ls_export *in)
{
        const struct ls_profile *p = in->profile;
        struct jsonl s = { .in = in, .p = p, .out = out };
        size_t n_frames = (size_t)p->n_locations + p->n_functions;
        int r = -ENOMEM;

        s.start_ns = ls_profile_u64(p, LS_INFO_START_MONOTONIC, p->n_clocks ? p->clocks[0].monotonic_ns : 0);
        s.gen = yajl_gen_alloc(NULL);
        s.frame = calloc(n_frames + 1, sizeof(*s.frame));
        s.zone = calloc((size_t)p->n_zones + 1, sizeof(*s.zone));
        s.thread = calloc((size_t)p->n_threads + 1, sizeof(*s.thread));
        s.coroutine = calloc((size_t)p->n_coroutines + 1, sizeof(*s.coroutine));
        s.label = calloc((size_t)p->n_sample_labels + 1, sizeof(*s.label));
        s.shown = calloc((size_t)p->n_processes + 1, 1);
        if (s.gen && s.frame && s.label && s.zone && s.thread && s.coroutine && s.shown)
                r = in->rows(in, LS_COL_TIME, put_rows, &s);
        if (!r)
                r = put_counters(&s);
        free(s.shown);
        free_texts(s.frame, n_frames);
        free_texts(s.zone, p->n_zones);
        free_texts(s.label, p->n_sample_labels);
        free_texts(s.thread, p->n_threads);
        free_texts(s.coroutine, p->n_coroutines);
        for (unsigned i = 0; i < LS_NVMSTATES; i++)
                free(s.vmstate[i]);
        if (s.gen)
                yajl_gen_free(s.gen);
        return r == -EIO ? 0 : r;       /* whoever closes out says why */
}

const struct ls_exporter ls_export_jsonl = {
        .name = "jsonl",
        .suffix = ".jsonl",
        .help = "JSON lines: every row of samples with its time and stack, and values of counters",
        .flags = LS_EXPORT_ROWS,
        .dims = LS_DIM_VMSTATE | LS_DIM_ZONE | LS_DIM_COROUTINE,
        .write = jsonl_write,
};
