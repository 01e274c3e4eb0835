/* Exporter "otlp": OpenTelemetry profiles, a ProfilesData message of opentelemetry-proto 1.11.0, package
 * opentelemetry.proto.profiles.v1development. That package may still change, hence --experimental.
 *
 * A ResourceProfiles for each process, with one profile of time; a sample for each stack, VM state, zone, thread, VM,
 * coroutine and set of labels, with the sum of its time and no timestamps. What a sample refers to becomes an element of the
 * dictionary when first needed. The dictionary is written in pieces as it grows: a reader joins the pieces of such a message.
 */
#include "formats/escape.h"
#include "formats/export/export.h"
#include "formats/export/protobuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#include <uthash.h>

#define PIECE (4u << 20)                /* bytes of the dictionary that are kept in memory */

enum { /* fields */
       DATA_RESOURCE = 1,
       DATA_DICTIONARY,
       DICT_MAPPING = 1,
       DICT_LOCATION,
       DICT_FUNCTION,
       DICT_LINK,
       DICT_STRING,
       DICT_ATTRIBUTE,
       DICT_STACK,
       RP_RESOURCE = 1,
       RP_SCOPE_PROFILES,
       RESOURCE_ATTRIBUTE = 1,
       KEYVALUE_KEY = 1,
       KEYVALUE_VALUE,
       SP_SCOPE = 1,
       SP_PROFILE,
       SCOPE_NAME = 1,
       SCOPE_VERSION,
       PROFILE_SAMPLE_TYPE = 1,
       PROFILE_SAMPLE,
       PROFILE_TIME,
       PROFILE_DURATION,
       PROFILE_PERIOD_TYPE,
       PROFILE_PERIOD,
       TYPE_TYPE = 1,
       TYPE_UNIT,
       SAMPLE_STACK = 1,
       SAMPLE_ATTRIBUTE,
       SAMPLE_VALUE = 4,
       MAPPING_START = 1,
       MAPPING_LIMIT,
       MAPPING_OFFSET,
       MAPPING_FILE,
       MAPPING_ATTRIBUTE,
       STACK_LOCATION = 1,
       LOCATION_MAPPING = 1,
       LOCATION_ADDRESS,
       LOCATION_LINE,
       LOCATION_ATTRIBUTE,
       LINE_FUNCTION = 1,
       LINE_LINE,
       FUNCTION_NAME = 1,
       FUNCTION_SYSTEM_NAME,
       FUNCTION_FILE,
       FUNCTION_START_LINE,
       ATTRIBUTE_KEY = 1,
       ATTRIBUTE_VALUE,
       VALUE_STRING = 1,
       VALUE_INT = 3,
       LINK_TRACE = 1,
       LINK_SPAN,
};

static const struct dim { unsigned dim; const char *key; } dims[] = {
        { LS_DIM_VMSTATE, "luasample.vmstate" },
        { LS_DIM_ZONE, "luasample.zone" },
        { LS_DIM_THREAD, "thread.name" },
        { LS_DIM_VM, "luasample.vm" },
        { LS_DIM_COROUTINE, "luasample.coroutine" },
        { LS_DIM_TYPE, "luasample.type" },
};
#define N_DIMS (sizeof(dims) / sizeof(dims[0]))

struct known_string {
        uint32_t id;
        int failed;
        UT_hash_handle hh;
        char text[];
};

struct otlp {
        const struct ls_export *in;
        const struct ls_profile *p;
        FILE *out;
        struct ls_buf dictionary;       /* what of it is not written yet */
        struct ls_buf element, inner, value;    /* in the making */
        struct ls_buf sample, packed;
        struct ls_buf *samples;         /* [n_processes] */
        struct known_string *strings;   /* no string is there twice */
        uint32_t n_strings, n_mappings, n_locations, n_functions, n_stacks, n_attributes;
        uint32_t key[N_DIMS], thread_id_key, event, unit;        /* strings */
        uint32_t frame_type[2];         /* attributes */
        /* Numbers in the dictionary by ours; 0 = not there yet. */
        uint32_t *mapping, *location, *function, *source, *stack;
        uint32_t *dim_attribute[N_DIMS], *thread_id;
        uint32_t *label_key, *label_attribute;  /* string and attribute of each label of the
                                                 * program */
        int failed;                     /* -errno */
};

/* An element, or a message of the top level, and what it is made in is empty again. */
static void add(struct otlp *s, uint32_t table, struct ls_buf *element)
{
        ls_proto_message(&s->dictionary, table, element);
}

static void put_message(struct otlp *s, uint32_t field, struct ls_buf *message)
{
        uint8_t head[2 * LS_VARINT_MAX],
                *end = ls_varint_put(head, (uint64_t)field << 3 | LS_PROTO_BYTES);

        if (message->failed)
                s->failed = -ENOMEM;
        end = ls_varint_put(end, message->len);
        fwrite(head, 1, (size_t)(end - head), s->out);
        fwrite(message->data, 1, message->len, s->out);
        message->len = 0;
}

static void flush_dictionary(struct otlp *s, size_t above)
{
        if (s->dictionary.len > above)
                put_message(s, DATA_DICTIONARY, &s->dictionary);
}

static uint32_t string(struct otlp *s, const char *text)
{
        size_t n = strlen(text);
        struct known_string *e;

        HASH_FIND(hh, s->strings, text, n, e);
        if (e)
                return e->id;
        e = calloc(1, sizeof(*e) + n + 1);
        if (!e) {
                s->failed = -ENOMEM;
                return 0;
        }
        memcpy(e->text, text, n);
        e->id = s->n_strings++;
        HASH_ADD(hh, s->strings, text, n, e);
        if (e->failed) {
                free(e);
                s->failed = -ENOMEM;
                return 0;
        }
        ls_proto_bytes(&s->dictionary, DICT_STRING, text, n);
        return e->id;
}

static uint32_t visible_string(struct otlp *s, struct ls_str text)
{
        char *visible = ls_visible(text.s, text.len);
        uint32_t id = string(s, visible ? visible : "");

        if (!visible)
                s->failed = -ENOMEM;
        free(visible);
        return id;
}

static void make_string_value(struct otlp *s, const char *text)
{
        ls_proto_bytes(&s->value, VALUE_STRING, text, strlen(text));
}

/* A number that is 0 has to be there too: which of the kinds of value it is, is told by its
 * presence. */
static void make_int_value(struct otlp *s, uint64_t n)
{
        ls_proto_tag(&s->value, VALUE_INT, LS_PROTO_VARINT);
        ls_buf_varint(&s->value, n);
}

/* An attribute of the dictionary with the value that was made. */
static uint32_t attribute(struct otlp *s, uint32_t key)
{
        ls_proto_u64(&s->inner, ATTRIBUTE_KEY, key);
        ls_proto_message(&s->inner, ATTRIBUTE_VALUE, &s->value);
        add(s, DICT_ATTRIBUTE, &s->inner);
        return s->n_attributes++;
}

static uint32_t string_attribute(struct otlp *s, uint32_t key, const char *text)
{
        make_string_value(s, text);
        return attribute(s, key);
}

/* The first element of each table means "none". */
static void put_nothings(struct otlp *s)
{
        static const uint8_t zeros[16];

        string(s, "");
        add(s, DICT_MAPPING, &s->element);
        add(s, DICT_LOCATION, &s->element);
        add(s, DICT_FUNCTION, &s->element);
        add(s, DICT_ATTRIBUTE, &s->element);
        add(s, DICT_STACK, &s->element);
        ls_proto_bytes(&s->element, LINK_TRACE, zeros, 16);
        ls_proto_bytes(&s->element, LINK_SPAN, zeros, 8);
        add(s, DICT_LINK, &s->element);
        s->n_mappings = s->n_locations = s->n_functions = s->n_attributes = s->n_stacks = 1;
}

static void put_keys(struct otlp *s)
{
        uint32_t type = string(s, "profile.frame.type");

        for (size_t i = 0; i < N_DIMS; i++)
                s->key[i] = string(s, dims[i].key);
        s->thread_id_key = string(s, "thread.id");
        s->event = string(s, s->in->event);
        s->unit = string(s, !s->in->exact                  ? "nanoseconds"
                            : strcmp(s->in->unit, "bytes") ? "1"
                                                           : "By");
        s->frame_type[0] = string_attribute(s, type, "lua");
        s->frame_type[1] = string_attribute(s, type, "native");
}

static int is_native(const struct ls_function *f)
{
        return f->kind == LS_FUNC_C || f->kind == LS_FUNC_NATIVE;
}

static uint32_t mapping_number(struct otlp *s, uint32_t id)
{
        const struct ls_mapping *m = &s->p->mappings[id];
        char hex[2 * 64 + 1];
        uint32_t file, build_id = 0;

        if (!id || s->mapping[id])
                return s->mapping[id];
        file = visible_string(s, m->path);
        if (m->build_id.len && m->build_id.len <= 64) {
                for (uint32_t i = 0; i < m->build_id.len; i++)
                        sprintf(hex + 2 * i, "%02x", (uint8_t)m->build_id.s[i]);
                build_id = string_attribute(s, string(s, "process.executable.build_id.gnu"), hex);
        }
        ls_proto_u64(&s->element, MAPPING_START, m->start);
        ls_proto_u64(&s->element, MAPPING_LIMIT, m->end);
        ls_proto_u64(&s->element, MAPPING_OFFSET, m->file_offset);
        ls_proto_u64(&s->element, MAPPING_FILE, file);
        if (build_id) {
                ls_buf_varint(&s->packed, build_id);
                ls_proto_message(&s->element, MAPPING_ATTRIBUTE, &s->packed);
        }
        add(s, DICT_MAPPING, &s->element);
        return s->mapping[id] = s->n_mappings++;
}

static uint32_t source_string(struct otlp *s, uint32_t source)
{
        struct ls_str path = ls_source_path(&s->p->sources[source]);

        if (!s->source[source])
                s->source[source] = path.len ? visible_string(s, path)
                                             : string(s, s->in->labels->source[source]);
        return s->source[source];
}

static uint32_t function_number(struct otlp *s, uint32_t id)
{
        const struct ls_function *f = &s->p->functions[id];
        const char *label = s->in->labels->function[id];
        uint32_t name, file;

        if (s->function[id])
                return s->function[id];
        name = string(s, *label ? label : "[no name]");
        file = f->kind == LS_FUNC_LUA ? source_string(s, f->source) : 0;
        ls_proto_u64(&s->element, FUNCTION_NAME, name);
        ls_proto_u64(&s->element, FUNCTION_SYSTEM_NAME, name);
        ls_proto_u64(&s->element, FUNCTION_FILE, file);
        ls_proto_u64(&s->element, FUNCTION_START_LINE, f->kind == LS_FUNC_LUA ? f->first_line : 0);
        add(s, DICT_FUNCTION, &s->element);
        return s->function[id] = s->n_functions++;
}

static uint32_t location_number(struct otlp *s, uint32_t id)
{
        const struct ls_location *l = &s->p->locations[id];
        const struct ls_function *f = &s->p->functions[l->function];
        uint32_t *number = &s->location[id], function, mapping;

        if (*number)
                return *number;
        function = function_number(s, l->function);
        mapping = is_native(f) ? mapping_number(s, f->mapping) : 0;
        ls_proto_u64(&s->element, LOCATION_MAPPING, mapping);
        if (mapping && f->offset >= s->p->mappings[f->mapping].file_offset)
                ls_proto_u64(&s->element, LOCATION_ADDRESS,
                             s->p->mappings[f->mapping].start +
                                     (f->offset - s->p->mappings[f->mapping].file_offset));
        ls_proto_u64(&s->inner, LINE_FUNCTION, function);
        ls_proto_u64(&s->inner, LINE_LINE, l->line);
        ls_proto_message(&s->element, LOCATION_LINE, &s->inner);
        ls_buf_varint(&s->packed, s->frame_type[is_native(f)]);
        ls_proto_message(&s->element, LOCATION_ATTRIBUTE, &s->packed);
        add(s, DICT_LOCATION, &s->element);
        return *number = s->n_locations++;
}

static uint32_t stack_number(struct otlp *s, uint32_t stack)
{
        const struct ls_stack *stacks = s->p->stacks;
        uint32_t *number = &s->stack[stack];

        if (!stack || *number)
                return stack ? *number : 0;
        for (uint32_t at = stack; at; at = stacks[at].parent)   /* locations first: they use the
                                                                 * same buffers */
                location_number(s, stacks[at].location);
        for (uint32_t at = stack; at; at = stacks[at].parent)
                ls_buf_varint(&s->packed, location_number(s, stacks[at].location));
        ls_proto_message(&s->element, STACK_LOCATION, &s->packed);
        add(s, DICT_STACK, &s->element);
        return *number = s->n_stacks++;
}

static uint32_t dim_attribute(struct otlp *s, size_t i, uint32_t id)
{
        const char *text;

        if (!s->dim_attribute[i][id]) {
                text = s->in->dim_text(s->in, dims[i].dim, id);
                if (!text)
                        return 0;
                s->dim_attribute[i][id] = string_attribute(s, s->key[i], text);
        }
        return s->dim_attribute[i][id];
}

static uint32_t thread_id_attribute(struct otlp *s, uint32_t thread)
{
        if (!s->thread_id[thread]) {
                make_int_value(s, s->p->threads[thread].tid);
                s->thread_id[thread] = attribute(s, s->thread_id_key);
        }
        return s->thread_id[thread];
}

static int is_key_of(const struct otlp *s, uint32_t key)
{
        for (size_t i = 0; i < N_DIMS; i++)
                if (key == s->key[i])
                        return 1;
        return key == s->thread_id_key;
}

/* The labels that the program gave, each under its own key, which a sample may have once only: the
 * innermost's, and ours before theirs. Returns how many. */
static unsigned label_attributes(struct otlp *s, uint32_t label, uint32_t numbers[LS_EXPORT_LABELS])
{
        uint32_t keys[LS_EXPORT_LABELS];
        unsigned n = 0;

        for (unsigned step = 0; label && step < LS_EXPORT_LABELS;
             label = s->p->sample_labels[label].parent, step++) {
                const struct ls_sample_label *l = &s->p->sample_labels[label];
                unsigned i = 0;

                if (!ls_export_wants_label(s->in, l->key))
                        continue;
                if (!s->label_key[label])
                        s->label_key[label] = visible_string(s, l->key);
                while (i < n && keys[i] != s->label_key[label])
                        i++;
                if (i < n || is_key_of(s, s->label_key[label]))
                        continue;
                if (!s->label_attribute[label]) {
                        char *value = ls_visible(l->value.s, l->value.len);

                        if (!value)
                                s->failed = -ENOMEM;
                        s->label_attribute[label] =
                                string_attribute(s, s->label_key[label], value ? value : "");
                        free(value);
                }
                keys[n] = s->label_key[label];
                numbers[n++] = s->label_attribute[label];
        }
        return n;
}

static uint64_t to_ns(const struct ls_export *in, uint64_t ticks)
{
        unsigned __int128 ns = (unsigned __int128)ticks * (in->exact ? 1 : in->interval_ns);

        return ns < INT64_MAX ? (uint64_t)ns : INT64_MAX;
}

static void add_sample(struct otlp *s, const struct ls_export_cell *c)
{
        uint32_t stack = stack_number(s, c->stack), numbers[N_DIMS + 1 + LS_EXPORT_LABELS];
        size_t n = N_DIMS + 1;

        for (size_t i = 0; i < N_DIMS; i++)     /* without a VM the main coroutine is none */
                numbers[i] = (dims[i].dim & s->in->without) ||
                                             (dims[i].dim == LS_DIM_COROUTINE && !c->vm)
                                     ? 0
                                     : dim_attribute(s, i, ls_export_cell_id(c, dims[i].dim));
        numbers[N_DIMS] = c->thread && !(s->in->without & LS_DIM_THREAD)
                                  ? thread_id_attribute(s, c->thread)
                                  : 0;
        n += label_attributes(s, c->label, numbers + n);
        ls_proto_u64(&s->sample, SAMPLE_STACK, stack);
        for (size_t i = 0; i < n; i++)
                if (numbers[i])
                        ls_buf_varint(&s->packed, numbers[i]);
        ls_proto_message(&s->sample, SAMPLE_ATTRIBUTE, &s->packed);
        ls_buf_varint(&s->packed, to_ns(s->in, c->ticks));
        ls_proto_message(&s->sample, SAMPLE_VALUE, &s->packed);
        ls_proto_message(&s->samples[s->p->threads[c->thread].process], PROFILE_SAMPLE, &s->sample);
        flush_dictionary(s, PIECE);
}

/* An attribute of a resource has its key as text. */
static void add_fact(struct otlp *s, struct ls_buf *resource, const char *key, struct ls_str value,
                     uint64_t number)
{
        char *visible = value.s ? ls_visible(value.s, value.len) : NULL;

        if (visible)
                make_string_value(s, visible);
        else
                make_int_value(s, number);
        free(visible);
        ls_proto_bytes(&s->inner, KEYVALUE_KEY, key, strlen(key));
        ls_proto_message(&s->inner, KEYVALUE_VALUE, &s->value);
        ls_proto_message(resource, RESOURCE_ATTRIBUTE, &s->inner);
}

static void add_resource(struct otlp *s, struct ls_buf *resource, uint32_t process)
{
        static const struct { const char *key; enum ls_info_key info;
        } facts[] = {
                { "process.command_line", LS_INFO_COMMAND },
                { "process.runtime.description", LS_INFO_RUNTIME },
                { "host.name", LS_INFO_HOST },
        };
        const struct ls_process *p = &s->p->processes[process];

        if (p->name.len) {
                add_fact(s, resource, "service.name", p->name, 0);
                add_fact(s, resource, "process.executable.name", p->name, 0);
        }
        add_fact(s, resource, "process.pid", (struct ls_str){ NULL, 0 }, p->pid);
        for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
                struct ls_str text = ls_profile_str(s->p, facts[i].info);

                if (text.len)
                        add_fact(s, resource, facts[i].key, text, 0);
        }
}

/* samples: a profile already, but for what is the same in all. */
static void add_profile_facts(struct otlp *s, struct ls_buf *profile)
{
        uint64_t start, elapsed;

        ls_export_times(s->in, &start, &elapsed);
        for (int i = 0; i < 2; i++) {
                ls_proto_u64(&s->inner, TYPE_TYPE, s->event);
                ls_proto_u64(&s->inner, TYPE_UNIT, s->unit);
                ls_proto_message(profile, i ? PROFILE_PERIOD_TYPE : PROFILE_SAMPLE_TYPE, &s->inner);
        }
        ls_proto_u64(profile, PROFILE_PERIOD,
                     s->in->exact                     ? 1
                     : s->in->interval_ns < INT64_MAX ? s->in->interval_ns
                                                      : 0);
        ls_proto_fixed64(profile, PROFILE_TIME, start);
        ls_proto_u64(profile, PROFILE_DURATION, elapsed);
}

static void put_process(struct otlp *s, uint32_t process)
{
        struct ls_buf *profile = &s->samples[process], message = { 0 }, part = { 0 };

        add_profile_facts(s, profile);
        ls_proto_bytes(&s->inner, SCOPE_NAME, "luasample", strlen("luasample"));
        ls_proto_bytes(&s->inner, SCOPE_VERSION, LS_VERSION, strlen(LS_VERSION));
        ls_proto_message(&part, SP_SCOPE, &s->inner);
        ls_proto_message(&part, SP_PROFILE, profile);
        add_resource(s, &s->element, process);
        ls_proto_message(&message, RP_RESOURCE, &s->element);
        ls_proto_message(&message, RP_SCOPE_PROFILES, &part);
        put_message(s, DATA_RESOURCE, &message);
        ls_buf_free(profile);
        ls_buf_free(&message);
        ls_buf_free(&part);
}

static int new_tables(struct otlp *s)
{
        const struct ls_profile *p = s->p;
        struct { uint32_t **table; uint32_t n;
        } tables[] = {
                { &s->mapping, p->n_mappings },
                { &s->location, p->n_locations },
                { &s->function, p->n_functions },
                { &s->source, p->n_sources },
                { &s->stack, p->n_stacks },
                { &s->thread_id, p->n_threads },
                { &s->dim_attribute[0], LS_NVMSTATES },
                { &s->dim_attribute[1], p->n_zones },
                { &s->dim_attribute[2], p->n_threads },
                { &s->dim_attribute[3], p->n_vms },
                { &s->dim_attribute[4], p->n_coroutines },
                { &s->dim_attribute[5], LS_NOBJTYPES },
                { &s->label_key, p->n_sample_labels },
                { &s->label_attribute, p->n_sample_labels },
        };
        int ok;

        s->samples = calloc((size_t)p->n_processes + 1, sizeof(*s->samples));
        ok = s->samples != NULL;
        for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
                *tables[i].table = calloc((size_t)tables[i].n + 1, sizeof(uint32_t));
                ok = ok && *tables[i].table;
        }
        return ok ? 0 : -ENOMEM;
}

static void free_tables(struct otlp *s)
{
        struct ls_buf *buffers[] = { &s->dictionary, &s->element, &s->inner,
                                     &s->value,      &s->sample,  &s->packed };
        uint32_t *tables[] = { s->mapping, s->location, s->function, s->source, s->stack,
                               s->thread_id, s->label_key, s->label_attribute };

        struct known_string *e, *next;

        HASH_ITER(hh, s->strings, e, next) {
                HASH_DEL(s->strings, e);
                free(e);
        }
        for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
                ls_buf_free(buffers[i]);
        for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
                free(tables[i]);
        for (size_t i = 0; i < N_DIMS; i++)
                free(s->dim_attribute[i]);
        for (uint32_t i = 0; s->samples && i < s->p->n_processes; i++)
                ls_buf_free(&s->samples[i]);
        free(s->samples);
}

static int otlp_write(FILE *out, const struct ls_export *in)
{
        struct otlp s = { .in = in, .p = in->profile, .out = out };
        int r = new_tables(&s);

        if (!r) {
                put_nothings(&s);
                put_keys(&s);
        }
        for (size_t i = 0; !r && i < in->n_cells; i++) {
                if (in->cells[i].ticks)
                        add_sample(&s, &in->cells[i]);
                r = s.failed                                 ? s.failed
                    : s.dictionary.failed || s.sample.failed ? -ENOMEM
                    : ferror(out)                            ? -EIO
                                                             : 0;
        }
        for (uint32_t i = 0; !r && i < in->profile->n_processes; i++)
                if (s.samples[i].len)
                        put_process(&s, i);
        if (!r) {
                flush_dictionary(&s, 0);
                r = s.failed;
        }
        free_tables(&s);
        return ferror(out) ? 0 : r;     /* the caller says what is wrong with out */
}

const struct ls_exporter ls_export_otlp = {
        .name = "otlp",
        .suffix = ".otlp",
        .help = "OpenTelemetry profiles (opentelemetry-proto 1.11.0, v1development)",
        .flags = LS_EXPORT_EXPERIMENTAL | LS_EXPORT_BINARY,
        .dims = LS_DIM_VMSTATE | LS_DIM_ZONE | LS_DIM_THREAD | LS_DIM_VM | LS_DIM_COROUTINE |
                LS_DIM_LABEL | LS_DIM_TYPE,
        .write = otlp_write,
};
