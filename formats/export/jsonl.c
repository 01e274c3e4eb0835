/* Exporter "jsonl": a JSON object on a line for each row of samples, in the order of the file, for
 * programs of one's own. Streamed: what a frame, a zone, a thread looks like is made when it is
 * first met. */
#include "formats/escape.h"
#include "formats/export/export.h"
#include "formats/json.h"
#include "formats/real.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct jsonl {
        const struct ls_export *in;
        const struct ls_profile *p;
        FILE *out;
        struct ls_js js;                /* makes the texts, in made */
        char *made;
        size_t made_size;
        uint64_t start_ns;
        char **frame;                   /* by location, and of leaves without a line by n_locations
                                         * + function */
        char *vmstate[LS_NVMSTATES];
        char **zone, **thread, **coroutine;     /* thread: its three members */
        char **label;                   /* an object */
        uint8_t *shown;                 /* by process: it has rows */
        int failed;
};

static void put_or_null(struct ls_js *j, const char *text)
{
        if (text)
                ls_js_string(j, text);
        else
                ls_js_null(j);
}

/* Takes what was made since the last time. */
static char *take(struct jsonl *s)
{
        long n = fflush(s->js.out) ? -1 : ftell(s->js.out);
        char *copy = n < 0 || s->js.failed ? NULL : strndup(s->made, (size_t)n);

        rewind(s->js.out);
        s->js = (struct ls_js){ .out = s->js.out };
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
        ls_js_open(&s->js, '{');
        ls_js_key_string(&s->js, "function", s->in->labels->function[l->function]);
        if (f->kind == LS_FUNC_LUA) {
                ls_js_key_string(&s->js, "source", s->in->labels->source[f->source]);
                ls_js_key_u64(&s->js, "line_defined", f->first_line);
                if (l->line)
                        ls_js_key_u64(&s->js, "line", l->line);
        }
        ls_js_close(&s->js, '}');
        *text = take(s);
        return *text ? *text : "{}";
}

/* The text of an id as a JSON string, or null. */
static const char *dim(struct jsonl *s, char **texts, unsigned which, uint32_t id)
{
        if (!texts[id]) {
                put_or_null(&s->js, s->in->dim_text(s->in, which, id));
                texts[id] = take(s);
        }
        return texts[id] ? texts[id] : "null";
}

/* "process":4242,"thread":4243,"thread_name":"worker" */
static const char *thread(struct jsonl *s, uint32_t id)
{
        const struct ls_thread *t = &s->p->threads[id];
        char *quoted;

        if (s->thread[id])
                return s->thread[id];
        ls_js_text(&s->js, t->name);
        quoted = take(s);
        if (!quoted || asprintf(&s->thread[id], "\"process\":%u,\"thread\":%u,\"thread_name\":%s",
                                         s->p->processes[t->process].pid, t->tid, quoted) < 0) {
                s->thread[id] = NULL;
                s->failed = 1;
        }
        free(quoted);
        return s->thread[id] ? s->thread[id] : "";
}

/* The labels that the program gave, as an object. */
static const char *labels(struct jsonl *s, uint32_t id)
{
        const struct ls_sample_label *all = s->p->sample_labels;

        if (s->label[id])
                return s->label[id];
        ls_js_open(&s->js, '{');
        for (uint32_t at = id, n = 0; at && n < LS_EXPORT_LABELS; at = all[at].parent, n++) {
                char *key = ls_visible(all[at].key.s, all[at].key.len);

                s->failed |= !key;
                ls_js_key_text(&s->js, key ? key : "", all[at].value);
                free(key);
        }
        ls_js_close(&s->js, '}');
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
                fprintf(s->out, "\"event\":\"%s\",",
                        s->in->event); /* only of the one that is shown are there others */
        fprintf(s->out,
                "\"time_ns\":%" PRIu64
                ",\"weight\":%u,\"continues\":%s,\"vmstate\":%s,\"zone\":%s,%s",
                after, b->weight[i], b->flags[i] & LS_SAMPLE_CONT ? "true" : "false",
                dim(s, s->vmstate, LS_DIM_VMSTATE, b->vmstate[i]),
                dim(s, s->zone, LS_DIM_ZONE, b->zone[i]), thread(s, b->thread[i]));
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

/* After the samples: values of the program's counters, of processes that have some. */
static int put_counters(struct jsonl *s)
{
        uint64_t ns;

        for (uint32_t i = 1; i < s->p->n_counters; i++) {
                const struct ls_counter_series *c = &s->p->counters[i];
                char value[LS_REAL_TEXT], *quoted = NULL;

                if (!c->what && s->shown[c->process]) {
                        ls_js_text(&s->js, c->name);
                        quoted = take(s);
                }
                for (uint32_t k = 0; quoted && k < c->n; k++)
                        if (ls_export_has_count(s->in, c, k, &ns))
                                fprintf(s->out,
                                        "{\"time_ns\":%" PRIu64
                                        ",\"process\":%u,\"counter\":%s,\"value\":%s}\n",
                                        ns > s->start_ns ? ns - s->start_ns : 0,
                                        s->p->processes[c->process].pid, quoted,
                                        ls_real_text(c->counts[k].value, value));
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

        s.start_ns = ls_profile_u64(p, LS_INFO_START_MONOTONIC,
                                    p->n_clocks ? p->clocks[0].monotonic_ns : 0);
        s.js.out = open_memstream(&s.made, &s.made_size);
        s.frame = calloc(n_frames + 1, sizeof(*s.frame));
        s.zone = calloc((size_t)p->n_zones + 1, sizeof(*s.zone));
        s.thread = calloc((size_t)p->n_threads + 1, sizeof(*s.thread));
        s.coroutine = calloc((size_t)p->n_coroutines + 1, sizeof(*s.coroutine));
        s.label = calloc((size_t)p->n_sample_labels + 1, sizeof(*s.label));
        s.shown = calloc((size_t)p->n_processes + 1, 1);
        if (s.js.out && s.frame && s.label && s.zone && s.thread && s.coroutine && s.shown)
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
        if (s.js.out)
                fclose(s.js.out);
        free(s.made);
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
