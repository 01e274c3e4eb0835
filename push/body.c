/* The bodies of requests: a row of sinks.def has its function here. Called by push/command.c.
 *
 * Labels of a series are what a store finds profiles by; labels of samples are in the profile
 * itself. */
#include "push/sink.h"

#include "formats/escape.h"
#include "formats/export/protobuf.h"
#include "formats/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {                                  /* push.v1: PushRequest, RawProfileSeries, RawSample;
                                         * types.v1: LabelPair */
        PUSH_SERIES = 1,
        SERIES_LABEL = 1, SERIES_SAMPLE,
        SAMPLE_PROFILE = 1, SAMPLE_ID,
        PAIR_NAME = 1, PAIR_VALUE,
};

/* Name that stores give profiles of an event. */
static const char *profile_name(const char *event)
{
        return !strcmp(event, "cpu") ? "process_cpu" : event;
}

/* The series: those that a store needs first, in the order of names, as some want it. fn gets
 * each. */
static void each_label(const struct ls_push *p, const char *event, int pyroscope,
                       void (*fn)(void *ctx, const char *name, const char *value), void *ctx)
{
        struct ls_series_label all[LS_PUSH_LABELS + 5];
        unsigned n = 0;

        if (pyroscope)
                all[n++] = (struct ls_series_label){ "__delta__", "false" };
        all[n++] = (struct ls_series_label){ "__name__", profile_name(event) };
        if (pyroscope)
                all[n++] = (struct ls_series_label){ "pyroscope_spy", "luasample" };
        all[n++] = (struct ls_series_label){ "service_name", p->service };
        if (*p->host)
                all[n++] = (struct ls_series_label){ "host", p->host };
        for (unsigned i = 0; i < p->n_labels; i++)
                all[n++] = p->labels[i];
        for (unsigned i = 1; i < n; i++)
                for (unsigned k = i; k && strcmp(all[k - 1].name, all[k].name) > 0; k--) {
                        struct ls_series_label swap = all[k];

                        all[k] = all[k - 1];
                        all[k - 1] = swap;
                }
        for (unsigned i = 0; i < n; i++)
                fn(ctx, all[i].name, all[i].value);
}

struct series { struct ls_buf message, pair; };

static void put_pair(void *ctx, const char *name, const char *value)
{
        struct series *s = ctx;

        ls_proto_bytes(&s->pair, PAIR_NAME, name, strlen(name));
        ls_proto_bytes(&s->pair, PAIR_VALUE, value, strlen(value));
        ls_proto_message(&s->message, SERIES_LABEL, &s->pair);
}

static int ls_body_pyroscope(const struct ls_push *p, const struct ls_export *in,
                             struct ls_buf *ret)
{
        struct series s = { .message = { 0 } };

        each_label(p, in->event, 1, put_pair, &s);
        ls_proto_bytes(&s.pair, SAMPLE_PROFILE, p->profile.data, p->profile.len);
        ls_proto_bytes(&s.pair, SAMPLE_ID, p->id, strlen(p->id));
        ls_proto_message(&s.message, SERIES_SAMPLE, &s.pair);
        ls_proto_message(ret, PUSH_SERIES, &s.message);
        ls_buf_free(&s.message);
        ls_buf_free(&s.pair);
        return ret->failed ? -ENOMEM : 0;
}

static void put_base64(FILE *out, const uint8_t *v, size_t n)
{
        static const char digits[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

        for (size_t i = 0; i < n; i += 3) {
                uint32_t three = (uint32_t)v[i] << 16 | (i + 1 < n ? (uint32_t)v[i + 1] << 8 : 0) |
                                 (i + 2 < n ? v[i + 2] : 0);

                fputc(digits[three >> 18], out);
                fputc(digits[three >> 12 & 63], out);
                fputc(i + 1 < n ? digits[three >> 6 & 63] : '=', out);
                fputc(i + 2 < n ? digits[three & 63] : '=', out);
        }
}

static void put_json_pair(void *ctx, const char *name, const char *value)
{
        ls_js_open(ctx, '{');
        ls_js_key_string(ctx, "name", name);
        ls_js_key_string(ctx, "value", value);
        ls_js_close(ctx, '}');
}

/* Text that is written to a file, as bytes. Returns 0 or -errno. */
static int take_text(FILE *f, char **text, size_t *size, struct ls_buf *ret)
{
        int failed = ferror(f) | fclose(f);

        if (!failed)
                ls_buf_add(ret, *text, *size);
        free(*text);
        return failed || ret->failed ? -ENOMEM : 0;
}

static int ls_body_parca(const struct ls_push *p, const struct ls_export *in, struct ls_buf *ret)
{
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        struct ls_js j = { .out = f };

        if (!f)
                return -ENOMEM;
        fputs("{\"normalized\":true,\"series\":[{\"labels\":{\"labels\":", f);
        ls_js_open(&j, '[');
        each_label(p, in->event, 0, put_json_pair, &j);
        ls_js_close(&j, ']');
        fputs("},\"samples\":[{\"rawProfile\":\"", f);
        put_base64(f, p->profile.data, p->profile.len);
        fputs("\"}]}]}", f);
        return take_text(f, &text, &size, ret);
}

/* The profile itself. */
static int ls_body_pprof(const struct ls_push *p, const struct ls_export *in, struct ls_buf *ret)
{
        (void)in;
        ls_buf_add(ret, p->profile.data, p->profile.len);
        return ret->failed ? -ENOMEM : 0;
}

#define ls_body_coroot ls_body_pprof
#define ls_body_otlp ls_body_pprof
#define ls_body_dir ls_body_pprof

static const char *function_of(const struct ls_export *in, uint32_t stack)
{
        return in->labels
                ->function[in->profile->locations[in->profile->stacks[stack].location].function];
}

/* From the root on, as flameGraph() of ClickHouse has it. */
static void put_stack(struct ls_js *j, const struct ls_export *in, uint32_t stack)
{
        const struct ls_profile *p = in->profile;
        uint32_t frames[1024], n = 0;

        do
                frames[n++] = stack;
        while (n < 1024 && stack && (stack = p->stacks[stack].parent) != 0);
        ls_js_key_open(j, "stack", '[');
        while (n)
                ls_js_string(j, function_of(in, frames[--n]));
        ls_js_close(j, ']');
}

static void put_series(void *ctx, const char *name, const char *value)
{
        if (name[0] != '_' && strcmp(name, "service_name") && strcmp(name, "host"))
                ls_js_key_string(ctx, name, value);
}

/* Labels of the sample, the innermost of a key only, and of the series; as one object of JSON. */
static int put_labels(struct ls_js *row, const struct ls_push *p, const struct ls_export *in,
                      const struct ls_export_cell *c)
{
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        struct ls_js j = { .out = f };
        struct ls_str keys[LS_EXPORT_LABELS];
        unsigned n = 0;

        if (!f)
                return -ENOMEM;
        ls_js_open(&j, '{');
        each_label(p, in->event, 0, put_series, &j);
        if (!(in->without & LS_DIM_VMSTATE))
                ls_js_key_string(&j, "vmstate", in->dim_text(in, LS_DIM_VMSTATE, c->vmstate));
        if (!(in->without & LS_DIM_ZONE) && c->zone)
                ls_js_key_string(&j, "zone", in->dim_text(in, LS_DIM_ZONE, c->zone));
        for (uint32_t at = c->label; at && n < LS_EXPORT_LABELS;
             at = in->profile->sample_labels[at].parent) {
                const struct ls_sample_label *l = &in->profile->sample_labels[at];
                unsigned i = 0;
                char *key;

                while (i < n &&
                       (keys[i].len != l->key.len || memcmp(keys[i].s, l->key.s, l->key.len)))
                        i++;
                if (i < n || !ls_export_wants_label(in, l->key))
                        continue;
                keys[n++] = l->key;
                key = ls_visible(l->key.s, l->key.len);
                ls_js_key(&j, key ? key : "");
                j.failed |= key ? 0 : -ENOMEM;
                free(key);
                ls_js_text(&j, l->value);
        }
        ls_js_close(&j, '}');
        if (ferror(f) | fclose(f) | j.failed) {
                free(text);
                return -ENOMEM;
        }
        ls_js_key_string(row, "labels", text);
        free(text);
        return 0;
}

static void put_leaf(struct ls_js *j, const struct ls_export *in, uint32_t stack)
{
        const struct ls_profile *p = in->profile;
        const struct ls_location *l = &p->locations[p->stacks[stack].location];
        const struct ls_function *f = &p->functions[l->function];

        ls_js_key_string(j, "function", in->labels->function[l->function]);
        ls_js_key_string(j, "file",
                         f->kind == LS_FUNC_LUA && f->source ? in->labels->source[f->source] : "");
        ls_js_key_u64(j, "line", l->line);
}

/* A row for each cell, one a line. */
static int ls_body_clickhouse(const struct ls_push *p, const struct ls_export *in,
                              struct ls_buf *ret)
{
        uint64_t start, elapsed;
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        int r = f ? 0 : -ENOMEM, end;

        ls_export_times(in, &start, &elapsed);
        for (size_t i = 0; !r && i < in->n_cells; i++) {
                const struct ls_export_cell *c = &in->cells[i];
                unsigned __int128 ns = (unsigned __int128)c->ticks *
                                       (in->exact ? 1 : in->interval_ns);
                struct ls_js j = { .out = f };

                ls_js_open(&j, '{');
                ls_js_key_string(&j, "service", p->service);
                ls_js_key_string(&j, "host", p->host);
                ls_js_key_string(&j, "event", in->event);
                ls_js_key_u64(&j, "start", start / 1000000000);
                ls_js_key_u64(&j, "duration_ms", elapsed / 1000000);
                ls_js_key_string(&j, "push", p->id);
                ls_js_key_u64(&j, "row", i);
                put_stack(&j, in, c->stack);
                put_leaf(&j, in, c->stack);
                r = put_labels(&j, p, in, c);
                ls_js_key_u64(&j, "ticks", c->ticks);
                ls_js_key_u64(&j, "value", ns < INT64_MAX ? (uint64_t)ns : INT64_MAX);
                ls_js_close(&j, '}');
                fputc('\n', f);
                r = r ? r : j.failed;
        }
        if (!f)
                return r;
        end = take_text(f, &text, &size, ret);
        return r ? r : end;
}

const struct ls_sink ls_sinks[] = {
#define LS_SINK(ident, name, path, answer, cells, bytes, depth, flags, help) \
        { name, path, answer, help, cells, bytes, depth, flags, ls_body_##ident },
#include "push/sinks.def"
#undef LS_SINK
        { .name = NULL },
};
