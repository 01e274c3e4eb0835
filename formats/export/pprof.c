/* Exporter "pprof": profile.proto in gzip, for go tool pprof and what else reads it.
 *
 * It is written in one pass over the cells: a location, function, mapping or string becomes an
 * element of the profile when a sample first needs it, with the next number. Each frame is a
 * location of its own with one line (speedscope keeps only the last one), and Lua's frames lie in
 * mapping 1, the runtime, which has all names: so no reader looks for symbols. Nor have functions a
 * system name: go tool pprof would take one that equals the name for a mangled one of C++, and
 * shorten it. */
#include "formats/escape.h"
#include "formats/export/export.h"
#include "formats/export/gzip.h"
#include "formats/export/protobuf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { /* fields of the messages of profile.proto */
       PROFILE_SAMPLE_TYPE = 1,
       PROFILE_SAMPLE,
       PROFILE_MAPPING,
       PROFILE_LOCATION,
       PROFILE_FUNCTION,
       PROFILE_STRING,
       PROFILE_TIME_NANOS = 9,
       PROFILE_DURATION_NANOS,
       PROFILE_PERIOD_TYPE,
       PROFILE_PERIOD,
       PROFILE_COMMENT,
       PROFILE_DEFAULT_SAMPLE_TYPE,
       TYPE_TYPE = 1,
       TYPE_UNIT,
       SAMPLE_LOCATION = 1,
       SAMPLE_VALUE,
       SAMPLE_LABEL,
       LABEL_KEY = 1,
       LABEL_STR,
       MAPPING_ID = 1,
       MAPPING_START,
       MAPPING_LIMIT,
       MAPPING_OFFSET,
       MAPPING_FILE,
       MAPPING_BUILD_ID,
       MAPPING_HAS_FUNCTIONS,
       MAPPING_HAS_FILENAMES,
       MAPPING_HAS_LINES,
       LOCATION_ID = 1,
       LOCATION_MAPPING,
       LOCATION_ADDRESS,
       LOCATION_LINE,
       LINE_FUNCTION = 1,
       LINE_LINE,
       FUNCTION_ID = 1,
       FUNCTION_NAME,
       FUNCTION_FILE = 4,
       FUNCTION_START_LINE,
};

#define RUNTIME_MAPPING 1u

static const struct dim { unsigned dim; const char *key; } dims[] = {
        { LS_DIM_VMSTATE, "vmstate" },
        { LS_DIM_ZONE, "zone" },
        { LS_DIM_THREAD, "thread" },
        { LS_DIM_VM, "vm" },
        { LS_DIM_COROUTINE, "coroutine" },
        { LS_DIM_TYPE, "type" },
};
#define N_DIMS (sizeof(dims) / sizeof(dims[0]))

struct pprof {
        const struct ls_export *in;
        const struct ls_profile *p;
        struct ls_gzip *gzip;
        struct ls_buf message, inner, packed;   /* of the sample; */
        struct ls_buf element, part;            /* of what it needs, which is written before it */
        uint32_t n_strings, n_locations, n_functions, n_mappings;
        /* Numbers in the profile, by ours; 0 = not there yet. */
        uint32_t *location, *function, *mapping, *source;
        uint32_t *dim_text[N_DIMS];     /* string + 1 of each id */
        uint32_t dim_key[N_DIMS];
        uint32_t *label_key, *label_value;      /* strings + 1 of each label of the program */
};

static void put(struct pprof *s, uint32_t field, struct ls_buf *message)
{
        uint8_t head[2 * LS_VARINT_MAX],
                *end = ls_varint_put(head, (uint64_t)field << 3 | LS_PROTO_BYTES);

        end = ls_varint_put(end, message->len);
        ls_gzip_write(s->gzip, head, (size_t)(end - head));
        ls_gzip_write(s->gzip, message->data, message->len);
        message->len = 0;
}

static uint32_t string(struct pprof *s, const char *text)
{
        struct ls_buf view = { .data = (uint8_t *)(uintptr_t)text, .len = text ? strlen(text) : 0 };

        if (!view.len && s->n_strings)
                return 0;               /* string 0 is "" */
        put(s, PROFILE_STRING, &view);
        return s->n_strings++;
}

static uint32_t visible_string(struct pprof *s, struct ls_str text)
{
        char *visible = ls_visible(text.s, text.len);
        uint32_t id = string(s, visible);

        s->element.failed |= !visible;
        free(visible);
        return id;
}

static uint32_t put_mapping(struct pprof *s, const struct ls_mapping *m, struct ls_str file)
{
        static const char digits[] = "0123456789abcdef";
        uint32_t name = visible_string(s, file), build_id = 0;

        if (m && m->build_id.len && m->build_id.len <= 64) {
                char text[129];

                for (uint32_t i = 0; i < m->build_id.len; i++) {
                        text[2 * i] = digits[(uint8_t)m->build_id.s[i] >> 4];
                        text[2 * i + 1] = digits[(uint8_t)m->build_id.s[i] & 15];
                }
                text[2 * m->build_id.len] = '\0';
                build_id = string(s, text);
        }
        ls_proto_u64(&s->element, MAPPING_ID, ++s->n_mappings);
        ls_proto_u64(&s->element, MAPPING_START, m ? m->start : 0);
        ls_proto_u64(&s->element, MAPPING_LIMIT, m ? m->end : 0);
        ls_proto_u64(&s->element, MAPPING_OFFSET, m ? m->file_offset : 0);
        ls_proto_u64(&s->element, MAPPING_FILE, name);
        ls_proto_u64(&s->element, MAPPING_BUILD_ID, build_id);
        ls_proto_u64(&s->element, MAPPING_HAS_FUNCTIONS, 1);
        ls_proto_u64(&s->element, MAPPING_HAS_FILENAMES, 1);
        ls_proto_u64(&s->element, MAPPING_HAS_LINES, 1);
        put(s, PROFILE_MAPPING, &s->element);
        return s->n_mappings;
}

/* Functions of machine code have a mapping; all others are of the runtime. */
static const struct ls_mapping *mapping_of(const struct ls_profile *p, const struct ls_function *f)
{
        return (f->kind == LS_FUNC_C || f->kind == LS_FUNC_NATIVE) && f->mapping
                       ? &p->mappings[f->mapping]
                       : NULL;
}

static uint32_t mapping_id(struct pprof *s, const struct ls_function *f)
{
        const struct ls_mapping *m = mapping_of(s->p, f);

        if (!m)
                return RUNTIME_MAPPING;
        if (!s->mapping[f->mapping])
                s->mapping[f->mapping] = put_mapping(s, m, m->path);
        return s->mapping[f->mapping];
}

/* 0 when it does not lie in the mapping. */
static uint64_t address_of(const struct ls_profile *p, const struct ls_function *f)
{
        const struct ls_mapping *m = mapping_of(p, f);

        if (!m || f->offset < m->file_offset || m->end < m->start ||
            f->offset - m->file_offset >= m->end - m->start)
                return 0;
        return m->start + (f->offset - m->file_offset);
}

static uint32_t source_string(struct pprof *s, uint32_t source)
{
        struct ls_str path = ls_source_path(&s->p->sources[source]);

        if (source && !s->source[source])
                s->source[source] = path.len ? visible_string(s, path)
                                             : string(s, s->in->labels->source[source]);
        return s->source[source];
}

static uint32_t function_id(struct pprof *s, uint32_t function)
{
        const struct ls_function *f = &s->p->functions[function];
        uint32_t name, file;

        if (s->function[function])
                return s->function[function];
        name = string(s, s->in->labels->function[function]);
        file = f->kind == LS_FUNC_LUA ? source_string(s, f->source) : 0;
        ls_proto_u64(&s->element, FUNCTION_ID, ++s->n_functions);
        ls_proto_u64(&s->element, FUNCTION_NAME, name);
        ls_proto_u64(&s->element, FUNCTION_FILE, file);
        ls_proto_u64(&s->element, FUNCTION_START_LINE, f->first_line);
        put(s, PROFILE_FUNCTION, &s->element);
        return s->function[function] = s->n_functions;
}

static uint32_t location_id(struct pprof *s, uint32_t location)
{
        const struct ls_location *l = &s->p->locations[location];
        const struct ls_function *f = &s->p->functions[l->function];
        uint32_t *id = &s->location[location], function, mapping;

        if (*id)
                return *id;
        function = function_id(s, l->function);
        mapping = mapping_id(s, f);
        ls_proto_u64(&s->part, LINE_FUNCTION, function);
        ls_proto_u64(&s->part, LINE_LINE, l->line);
        ls_proto_u64(&s->element, LOCATION_ID, ++s->n_locations);
        ls_proto_u64(&s->element, LOCATION_MAPPING, mapping);
        ls_proto_u64(&s->element, LOCATION_ADDRESS, address_of(s->p, f));
        ls_proto_message(&s->element, LOCATION_LINE, &s->part);
        put(s, PROFILE_LOCATION, &s->element);
        return *id = s->n_locations;
}

/* What is none (no zone, no VM, the main coroutine of no VM) has no label. */
static void add_label(struct pprof *s, const struct ls_export_cell *c, unsigned i)
{
        uint32_t id = ls_export_cell_id(c, dims[i].dim), *text = &s->dim_text[i][id];

        if ((dims[i].dim & s->in->without) || (dims[i].dim == LS_DIM_COROUTINE && !c->vm))
                return;
        if (!*text)
                *text = 1 + string(s, s->in->dim_text(s->in, dims[i].dim, id));
        if (*text == 1)
                return;
        if (!s->dim_key[i])
                s->dim_key[i] = string(s, dims[i].key);
        ls_proto_u64(&s->inner, LABEL_KEY, s->dim_key[i]);
        ls_proto_u64(&s->inner, LABEL_STR, *text - 1);
        ls_proto_message(&s->message, SAMPLE_LABEL, &s->inner);
}

/* The labels that the program gave, under their own keys. */
static void add_own_labels(struct pprof *s, uint32_t label)
{
        for (unsigned n = 0; label && n < LS_EXPORT_LABELS;
             label = s->p->sample_labels[label].parent, n++) {
                const struct ls_sample_label *l = &s->p->sample_labels[label];

                if (!ls_export_wants_label(s->in, l->key))
                        continue;
                if (!s->label_key[label]) {
                        s->label_key[label] = 1 + visible_string(s, l->key);
                        s->label_value[label] = 1 + visible_string(s, l->value);
                }
                ls_proto_u64(&s->inner, LABEL_KEY, s->label_key[label] - 1);
                ls_proto_u64(&s->inner, LABEL_STR, s->label_value[label] - 1);
                ls_proto_message(&s->message, SAMPLE_LABEL, &s->inner);
        }
}

static uint64_t to_ns(const struct ls_export *in, uint64_t ticks)
{
        unsigned __int128 ns = (unsigned __int128)ticks * in->interval_ns;

        return ns > INT64_MAX ? INT64_MAX : (uint64_t)ns;
}

/* Of each event, and 0 of those that the sample is not of. */
static void add_values(struct pprof *s, unsigned event, uint64_t ticks)
{
        for (unsigned e = 0; e < s->in->n_events; e++) {
                uint64_t n = e == event ? ticks : 0;

                ls_buf_varint(&s->packed, n < INT64_MAX ? n : INT64_MAX);
                if (!s->in->events[e].exact)
                        ls_buf_varint(&s->packed, to_ns(s->in, n));
        }
}

static void put_sample(struct pprof *s, unsigned event, const struct ls_export_cell *c)
{
        const struct ls_profile *p = s->p;
        uint32_t at = c->stack, depth = 1;

        ls_buf_varint(&s->packed, location_id(s, p->stacks[at].location));
        while (depth++ != s->in->depth && at && (at = p->stacks[at].parent) != 0)
                ls_buf_varint(&s->packed, location_id(s, p->stacks[at].location));
        ls_proto_message(&s->message, SAMPLE_LOCATION, &s->packed);
        add_values(s, event, c->ticks);
        ls_proto_message(&s->message, SAMPLE_VALUE, &s->packed);
        for (unsigned i = 0; i < N_DIMS; i++)
                add_label(s, c, i);
        add_own_labels(s, c->label);
        put(s, PROFILE_SAMPLE, &s->message);
}

static void put_type(struct pprof *s, uint32_t field, uint32_t type, uint32_t unit)
{
        ls_proto_u64(&s->element, TYPE_TYPE, type);
        ls_proto_u64(&s->element, TYPE_UNIT, unit);
        put(s, field, &s->element);
}

static void add_times(struct pprof *s, struct ls_buf *b)
{
        uint64_t start, elapsed;

        ls_export_times(s->in, &start, &elapsed);
        if (s->in->time_is_end)
                start += elapsed;
        ls_proto_u64(b, PROFILE_TIME_NANOS, start <= INT64_MAX ? start : 0);
        ls_proto_u64(b, PROFILE_DURATION_NANOS, elapsed <= INT64_MAX ? elapsed : 0);
}

/* What Go's tools call it. */
static const char *name_of(const char *event)
{
        static const struct { const char *event, *name; } names[] = {
                { "alloc", "alloc_space" }, { "alloc-objects", "alloc_objects" },
                { "live", "inuse_space" }, { "live-objects", "inuse_objects" },
        };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (!strcmp(names[i].event, event))
                        return names[i].name;
        return event;
}

/* Types of the values: a count has one, a time two. Samples of several clocks have the name of
 * theirs. Returns the first event that is a time, n_events = there is none. */
static unsigned put_types(struct pprof *s, uint32_t samples, uint32_t count, uint32_t nanoseconds)
{
        const struct ls_export *in = s->in;
        unsigned times = 0, first = in->n_events;
        char name[64];

        for (unsigned e = 0; e < in->n_events; e++)
                times += !in->events[e].exact;
        for (unsigned e = 0; e < in->n_events; e++) {
                int exact = in->events[e].exact;

                if (!exact && times > 1)
                        snprintf(name, sizeof(name), "%s samples", in->events[e].name);
                if (!exact)
                        put_type(s, PROFILE_SAMPLE_TYPE, times > 1 ? string(s, name) : samples,
                                 count);
                put_type(s, PROFILE_SAMPLE_TYPE, string(s, name_of(in->events[e].name)),
                         exact ? string(s, in->events[e].unit) : nanoseconds);
                if (!exact && first == in->n_events)
                        first = e;
        }
        return first;
}

static void put_head(struct pprof *s)
{
        uint32_t event, nanoseconds, samples, count, comment, command;
        unsigned time;
        struct ls_str runtime = ls_profile_str(s->p, LS_INFO_RUNTIME_PATH);

        string(s, "");
        samples = string(s, "samples");
        count = string(s, "count");
        event = string(s, name_of(s->in->event));
        nanoseconds = string(s, "nanoseconds");
        comment = string(s, "luasample " LS_VERSION);
        command = visible_string(s, ls_profile_str(s->p, LS_INFO_COMMAND));
        time = put_types(s, samples, count, nanoseconds);
        if (time < s->in->n_events)
                put_type(s, PROFILE_PERIOD_TYPE, string(s, s->in->events[time].name), nanoseconds);
        put_mapping(s, NULL, runtime.len ? runtime : (struct ls_str){ "Lua", 3 });
        add_times(s, &s->element);
        ls_proto_u64(&s->element, PROFILE_PERIOD,
                     time < s->in->n_events && s->in->interval_ns <= INT64_MAX ? s->in->interval_ns
                                                                               : 0);
        ls_proto_u64(&s->element, PROFILE_COMMENT, comment);
        ls_proto_u64(&s->element, PROFILE_COMMENT, command);
        ls_proto_u64(&s->element, PROFILE_DEFAULT_SAMPLE_TYPE, event);
        ls_gzip_write(s->gzip, s->element.data, s->element.len);
        s->element.len = 0;
}

static int new_tables(struct pprof *s)
{
        const struct ls_profile *p = s->p;
        const uint32_t sizes[N_DIMS] = { LS_NVMSTATES, p->n_zones, p->n_threads, p->n_vms,
                                         p->n_coroutines, LS_NOBJTYPES };
        int ok;

        s->location = calloc((size_t)p->n_locations + 1, sizeof(*s->location));
        s->function = calloc((size_t)p->n_functions + 1, sizeof(*s->function));
        s->mapping = calloc((size_t)p->n_mappings + 1, sizeof(*s->mapping));
        s->source = calloc((size_t)p->n_sources + 1, sizeof(*s->source));
        s->label_key = calloc((size_t)p->n_sample_labels + 1, sizeof(*s->label_key));
        s->label_value = calloc((size_t)p->n_sample_labels + 1, sizeof(*s->label_value));
        ok = s->label_key && s->label_value && s->location && s->function && s->mapping &&
             s->source;
        for (unsigned i = 0; i < N_DIMS; i++) {
                s->dim_text[i] = calloc((size_t)sizes[i] + 1, sizeof(*s->dim_text[i]));
                ok = ok && s->dim_text[i];
        }
        return ok ? 0 : -ENOMEM;
}

static void free_tables(struct pprof *s)
{
        struct ls_buf *buffers[] = { &s->message, &s->inner, &s->packed, &s->element, &s->part };

        for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
                ls_buf_free(buffers[i]);
        for (unsigned i = 0; i < N_DIMS; i++)
                free(s->dim_text[i]);
        free(s->label_key);
        free(s->label_value);
        free(s->location);
        free(s->function);
        free(s->mapping);
        free(s->source);
}

static int pprof_write(FILE *out, const struct ls_export *in)
{
        struct pprof s = { .in = in, .p = in->profile };
        int r = new_tables(&s), end;

        if (!r)
                r = ls_gzip_new(out, &s.gzip);
        if (!r)
                put_head(&s);
        for (unsigned e = 0; e < in->n_events; e++)
                for (size_t i = 0; !r && i < in->events[e].n_cells; i++) {
                        if (in->events[e].cells[i].ticks)
                                put_sample(&s, e, &in->events[e].cells[i]);
                        if (s.message.failed || s.packed.failed || s.element.failed)
                                r = -ENOMEM;
                }
        end = ls_gzip_end(s.gzip);
        free_tables(&s);
        return r ? r : end;
}

const struct ls_exporter ls_export_pprof = {
        .name = "pprof",
        .suffix = ".pb.gz",
        .help = "profile.proto, for go tool pprof and others",
        .flags = LS_EXPORT_BINARY | LS_EXPORT_EVENTS,
        .dims = LS_DIM_VMSTATE | LS_DIM_ZONE | LS_DIM_THREAD | LS_DIM_VM | LS_DIM_COROUTINE |
                LS_DIM_LABEL | LS_DIM_TYPE,
        .write = pprof_write,
};
