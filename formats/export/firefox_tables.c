/* The tables of a Firefox Profiler file that its threads share: strings, sources, libraries,
 * functions, frames, stacks.
 *
 * A frame is a location. The one that ran has the VM state of its sample as category, so a stack
 * that was seen in two states is there twice, and a third time when it called another; callers have
 * a category by what they are. */
#include "formats/export/firefox.h"
#include "formats/escape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t function_of(const struct ls_fx *x, uint32_t location)
{
        return x->p->locations[location].function;
}

static const struct ls_function *function_of_number(const struct ls_fx *x, uint32_t i)
{
        uint32_t frame = x->t->frame_of_number[i];

        return &x->p->functions[function_of(x, x->t->frames[frame].location)];
}

static uint32_t lib_of(const struct ls_fx *x, const struct ls_function *f)
{
        return f->kind == LS_FUNC_C || f->kind == LS_FUNC_NATIVE ? x->lib_number[f->mapping] : 0;
}

static uint32_t source_of(const struct ls_fx *x, const struct ls_function *f)
{
        return f->kind == LS_FUNC_LUA ? x->source_number[f->source] : 0;
}

/* Strings stand in this order: functions, paths and names of sources, names of libraries, zones,
 * regions, marks, labels. */
static uint32_t source_string(const struct ls_fx *x, uint32_t number)
{
        return x->t->n_frames + 2 * (number - 1);
}

static uint32_t lib_string(const struct ls_fx *x, uint32_t number)
{
        return x->t->n_frames + 2 * x->n_sources + number - 1;
}

uint32_t ls_fx_zone_string(const struct ls_fx *x, uint32_t zone)
{
        return x->t->n_frames + 2 * x->n_sources + x->n_libs + zone;
}

uint32_t ls_fx_region_string(const struct ls_fx *x, uint32_t region)
{
        return ls_fx_zone_string(x, x->p->n_zones) + region;
}

uint32_t ls_fx_mark_string(const struct ls_fx *x, uint32_t mark)
{
        return ls_fx_region_string(x, x->p->n_regions) + mark;
}

uint32_t ls_fx_phase_string(const struct ls_fx *x, unsigned phase)
{
        return ls_fx_mark_string(x, x->p->n_marks) + phase;
}

/* Strings of phases: of none where no counter can be one's. */
static unsigned n_phases(const struct ls_fx *x)
{
        return x->p->n_counters > 1 ? LS_GC_PHASES : 0;
}

uint32_t ls_fx_label_string(const struct ls_fx *x, uint32_t label)
{
        return ls_fx_phase_string(x, n_phases(x)) + 2 * label;
}

/* Rows of a table with n ids: what callers and vmstates say. */
static int number_rows(struct ls_fx_numbers *t, uint32_t n)
{
        size_t rows = 0;

        for (uint32_t i = 0; i < n; i++)
                rows += t->caller[i] + (unsigned)__builtin_popcount(t->vmstates[i]);
        if (rows >= UINT32_MAX)
                return -EOVERFLOW;
        t->first = calloc((size_t)n + 1, sizeof(*t->first));
        t->rows = calloc(rows + 1, sizeof(*t->rows));
        if (!t->first || !t->rows)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                t->first[i] = t->n_rows;
                if (t->caller[i])
                        t->rows[t->n_rows++] = (struct ls_fx_row){ i, LS_FX_CALLER };
                for (uint8_t v = 0; v < LS_NVMSTATES; v++)
                        if (t->vmstates[i] & 1u << v)
                                t->rows[t->n_rows++] = (struct ls_fx_row){ i, v };
        }
        return 0;
}

uint32_t ls_fx_row(const struct ls_fx_numbers *n, uint32_t id, uint8_t vmstate)
{
        if (vmstate == LS_FX_CALLER)
                return n->first[id];
        return n->first[id] + n->caller[id] +
               (uint32_t)__builtin_popcount(n->vmstates[id] & ((1u << vmstate) - 1));
}

int ls_fx_number_stacks(struct ls_fx *x)
{
        const struct ls_profile *p = x->p;
        int r;

        x->stacks.caller = calloc((size_t)p->n_stacks + 1, 1);
        x->frames.caller = calloc((size_t)p->n_locations + 1, 1);
        x->frames.vmstates = calloc((size_t)p->n_locations + 1, 1);
        if (!x->stacks.caller || !x->frames.caller || !x->frames.vmstates)
                return -ENOMEM;
        for (uint32_t i = p->n_stacks; i-- > 1;)
                if ((x->stacks.caller[i] || x->stacks.vmstates[i]) && p->stacks[i].parent)
                        x->stacks.caller[p->stacks[i].parent] = 1;
        for (uint32_t i = 0; i < p->n_stacks; i++) {    /* stack 0, which is none, is shown as
                                                         * location 0 */
                x->frames.caller[p->stacks[i].location] |= x->stacks.caller[i];
                x->frames.vmstates[p->stacks[i].location] |= x->stacks.vmstates[i];
        }
        r = number_rows(&x->stacks, p->n_stacks);
        return r ? r : number_rows(&x->frames, p->n_locations);
}

static void number_once(uint32_t *number, uint32_t *list, uint32_t *n, uint32_t id)
{
        if (number[id])
                return;
        list[*n] = id;
        number[id] = ++*n;
}

int ls_fx_number_files(struct ls_fx *x)
{
        x->source_number = calloc((size_t)x->p->n_sources + 1, sizeof(uint32_t));
        x->sources = calloc((size_t)x->p->n_sources + 1, sizeof(uint32_t));
        x->lib_number = calloc((size_t)x->p->n_mappings + 1, sizeof(uint32_t));
        x->libs = calloc((size_t)x->p->n_mappings + 1, sizeof(uint32_t));
        if (!x->source_number || !x->sources || !x->lib_number || !x->libs)
                return -ENOMEM;
        for (uint32_t i = 0; i < x->t->n_frames; i++) {
                const struct ls_function *f = function_of_number(x, i);

                if (f->kind == LS_FUNC_LUA)
                        number_once(x->source_number, x->sources, &x->n_sources, f->source);
                else if ((f->kind == LS_FUNC_C || f->kind == LS_FUNC_NATIVE) && f->mapping)
                        number_once(x->lib_number, x->libs, &x->n_libs, f->mapping);
        }
        return 0;
}

void ls_fx_free_numbers(struct ls_fx *x)
{
        struct ls_fx_numbers *tables[] = { &x->stacks, &x->frames };

        for (int i = 0; i < 2; i++) {
                free(tables[i]->caller);
                free(tables[i]->vmstates);
                free(tables[i]->first);
                free(tables[i]->rows);
        }
        free(x->source_number);
        free(x->sources);
        free(x->lib_number);
        free(x->libs);
}

static struct ls_str base_name(struct ls_str path)
{
        const char *slash = memrchr(path.s, '/', path.len);

        return slash ? (struct ls_str){ slash + 1,
                                        (uint32_t)(path.len - (size_t)(slash + 1 - path.s)) }
                     : path;
}

static void put_key_text(struct ls_fx *x, const char *key, struct ls_str text)
{
        ls_js_key(&x->j, key);
        ls_js_text(&x->j, text);
}

/* A build id as Breakpad writes it: its first 16 bytes as a GUID, whose first three fields are
 * little-endian, and an age. */
static void breakpad_id(struct ls_str id, char *text)
{
        static const uint8_t order[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };

        for (unsigned i = 0; i < 16; i++)
                sprintf(text + 2 * i, "%02X", order[i] < id.len ? (uint8_t)id.s[order[i]] : 0);
        strcpy(text + 32, "0");
}

void ls_fx_put_libs(struct ls_fx *x)
{
        char guid[40], code[2 * 64 + 1];

        ls_js_key_open(&x->j, "libs", '[');
        for (uint32_t i = 0; i < x->n_libs; i++) {
                const struct ls_mapping *m = &x->p->mappings[x->libs[i]];
                struct ls_str id = m->build_id.len <= 64 ? m->build_id : (struct ls_str){ "", 0 };

                breakpad_id(id, guid);
                for (uint32_t k = 0; k < id.len; k++)
                        sprintf(code + 2 * k, "%02x", (uint8_t)id.s[k]);
                ls_js_open(&x->j, '{');
                ls_js_key_string(&x->j, "arch", "x86_64");
                put_key_text(x, "name", base_name(m->path));
                put_key_text(x, "path", m->path);
                put_key_text(x, "debugName", base_name(m->path));
                put_key_text(x, "debugPath", m->path);
                ls_js_key_string(&x->j, "breakpadId", id.len ? guid : "");
                ls_js_key(&x->j, "codeId");
                if (id.len)
                        ls_js_string(&x->j, code);
                else
                        ls_js_null(&x->j);
                ls_js_close(&x->j, '}');
        }
        ls_js_close(&x->j, ']');
}

static void put_or_null(struct ls_fx *x, int there, uint64_t value)
{
        if (there)
                ls_js_u64(&x->j, value);
        else
                ls_js_null(&x->j);
}

/* -1 stands for none in some columns, null in others. */
static void put_or_minus(struct ls_fx *x, int there, uint64_t value)
{
        if (there)
                ls_js_u64(&x->j, value);
        else
                ls_js_minus_one(&x->j);
}

static void put_stack_frame(struct ls_fx *x, uint32_t i)
{
        const struct ls_fx_row *row = &x->stacks.rows[i];

        ls_js_u64(&x->j, ls_fx_row(&x->frames, x->p->stacks[row->id].location, row->vmstate));
}

static void put_stack_prefix(struct ls_fx *x, uint32_t i)
{
        uint32_t parent = x->p->stacks[x->stacks.rows[i].id].parent;

        put_or_null(x, parent != 0, parent ? ls_fx_row(&x->stacks, parent, LS_FX_CALLER) : 0);
}

static const struct ls_function *function_of_row(const struct ls_fx *x, uint32_t i)
{
        return &x->p->functions[function_of(x, x->frames.rows[i].id)];
}

static void put_frame_address(struct ls_fx *x, uint32_t i)
{
        const struct ls_function *f = function_of_row(x, i);

        put_or_minus(x, lib_of(x, f) != 0, f->offset);
}

static void put_zero(struct ls_fx *x, uint32_t i)
{
        (void)i;
        ls_js_u64(&x->j, 0);
}

static void put_one(struct ls_fx *x, uint32_t i)
{
        (void)i;
        ls_js_u64(&x->j, 1);
}

static void put_null(struct ls_fx *x, uint32_t i)
{
        (void)i;
        ls_js_null(&x->j);
}

static void put_frame_category(struct ls_fx *x, uint32_t i)
{
        static const uint8_t of_callers[] = { [LS_FUNC_LUA] = LS_FX_LUA,
                                              [LS_FUNC_C] = LS_FX_VMSTATES + LS_VMSTATE_C,
                                              [LS_FUNC_BUILTIN] = LS_FX_VMSTATES + LS_VMSTATE_C,
                                              [LS_FUNC_NATIVE] = LS_FX_NATIVE };
        uint8_t vmstate = x->frames.rows[i].vmstate, kind = function_of_row(x, i)->kind;

        if (vmstate != LS_FX_CALLER)
                ls_js_u64(&x->j, LS_FX_VMSTATES + vmstate);
        else
                ls_js_u64(&x->j, kind < sizeof(of_callers) ? of_callers[kind] : LS_FX_OTHER);
}

static void put_frame_function(struct ls_fx *x, uint32_t i)
{
        uint32_t frame = x->t->in->frame_of_location[x->frames.rows[i].id];

        ls_js_u64(&x->j, x->t->frames[frame].number - 1);
}

static void put_frame_line(struct ls_fx *x, uint32_t i)
{
        uint32_t line = x->p->locations[x->frames.rows[i].id].line;

        put_or_null(x, line && function_of_row(x, i)->kind == LS_FUNC_LUA, line);
}

static void put_function_name(struct ls_fx *x, uint32_t i)
{
        ls_js_u64(&x->j, i);
}

static void put_function_is_lua(struct ls_fx *x, uint32_t i)
{
        ls_js_bool(&x->j, function_of_number(x, i)->kind == LS_FUNC_LUA);
}

/* Builtins and C functions that Lua calls are shown with Lua's own; the C stack is not. */
static void put_function_relevant(struct ls_fx *x, uint32_t i)
{
        uint8_t kind = function_of_number(x, i)->kind;

        ls_js_bool(&x->j, kind != LS_FUNC_LUA && kind != LS_FUNC_NATIVE);
}

static void put_function_resource(struct ls_fx *x, uint32_t i)
{
        const struct ls_function *f = function_of_number(x, i);
        uint32_t source = source_of(x, f), lib = lib_of(x, f);

        put_or_minus(x, source || lib, source ? source - 1 : x->n_sources + lib - 1);
}

static void put_function_source(struct ls_fx *x, uint32_t i)
{
        uint32_t source = source_of(x, function_of_number(x, i));

        put_or_null(x, source != 0, source - 1);
}

static void put_function_line(struct ls_fx *x, uint32_t i)
{
        uint32_t line = x->t->frames[x->t->frame_of_number[i]].line;

        put_or_null(x, line && source_of(x, function_of_number(x, i)), line);
}

static void put_resource_name(struct ls_fx *x, uint32_t i)
{
        ls_js_u64(&x->j, i < x->n_sources ? source_string(x, i + 1) + 1
                                          : lib_string(x, i - x->n_sources + 1));
}

static void put_resource_lib(struct ls_fx *x, uint32_t i)
{
        put_or_null(x, i >= x->n_sources, i - x->n_sources);
}

static void put_resource_type(struct ls_fx *x, uint32_t i)
{
        ls_js_u64(&x->j, i < x->n_sources ? 5 : 1);     /* a URL, a library */
}

static void put_source_path(struct ls_fx *x, uint32_t i)
{
        ls_js_u64(&x->j, source_string(x, i + 1));
}

struct column { const char *name; void (*put)(struct ls_fx *x, uint32_t row); };

static void put_table(struct ls_fx *x, const char *name, uint32_t n, const struct column *columns)
{
        ls_js_key_open(&x->j, name, '{');
        ls_js_key_u64(&x->j, "length", n);
        for (; columns->name; columns++) {
                ls_js_key_open(&x->j, columns->name, '[');
                for (uint32_t i = 0; i < n; i++)
                        columns->put(x, i);
                ls_js_close(&x->j, ']');
        }
        ls_js_close(&x->j, '}');
}

static const struct column stack_columns[] = {
        { "frame", put_stack_frame },
        { "prefix", put_stack_prefix },
        { NULL, NULL }
}, frame_columns[] = {
        { "address", put_frame_address },
        { "inlineDepth", put_zero },
        { "category", put_frame_category },
        { "subcategory", put_zero },
        { "func", put_frame_function },
        { "nativeSymbol", put_null },
        { "innerWindowID", put_zero },
        { "line", put_frame_line },
        { "column", put_null },
        { NULL, NULL }
}, function_columns[] = {
        { "name", put_function_name },
        { "isJS", put_function_is_lua },
        { "relevantForJS", put_function_relevant },
        { "resource", put_function_resource },
        { "source", put_function_source },
        { "lineNumber", put_function_line },
        { "columnNumber", put_null },
        { NULL, NULL }
}, resource_columns[] = {
        { "lib", put_resource_lib },
        { "name", put_resource_name },
        { "host", put_null },
        { "type", put_resource_type },
        { NULL, NULL }
}, source_columns[] = {
        { "id", put_null },
        { "filename", put_source_path },
        { "startLine", put_one },
        { "startColumn", put_one },
        { "sourceMapURL", put_null },
        { NULL, NULL }
}, native_symbol_columns[] = {          /* all names are there already */
        { "libIndex", put_zero },
        { "address", put_zero },
        { "name", put_zero },
        { "functionSize", put_null },
        { NULL, NULL }
};

static void put_strings(struct ls_fx *x)
{
        const struct ls_export *in = x->t->in;

        ls_js_key_open(&x->j, "stringArray", '[');
        for (uint32_t i = 0; i < x->t->n_frames; i++)
                ls_js_string(&x->j, in->frame_text(in->ctx, x->t->frame_of_number[i]));
        for (uint32_t i = 0; i < x->n_sources; i++) {
                struct ls_str path = ls_source_path(&x->p->sources[x->sources[i]]);

                if (path.len)
                        ls_js_text(&x->j, path);
                else
                        ls_js_string(&x->j, in->labels->source[x->sources[i]]);
                ls_js_string(&x->j, in->labels->source[x->sources[i]]);
        }
        for (uint32_t i = 0; i < x->n_libs; i++)
                ls_js_text(&x->j, base_name(x->p->mappings[x->libs[i]].path));
        for (uint32_t i = 0; i < x->p->n_zones; i++)
                ls_js_text(&x->j, x->p->zones[i].name);
        for (uint32_t i = 0; i < x->p->n_regions; i++)
                ls_js_string(&x->j, x->p->regions[i].name.len ? x->p->regions[i].name.s : "region");
        for (uint32_t i = 0; i < x->p->n_marks; i++)
                ls_js_text(&x->j, x->p->marks[i].name);
        for (unsigned i = 0; i < n_phases(x); i++)
                ls_js_string(&x->j, ls_timeline_phase_name(i));
        for (uint32_t i = 0; x->used_labels && i < x->p->n_sample_labels; i++) {
                static const struct ls_str none = { "", 0 };
                const struct ls_sample_label *l = x->used_labels[i] ? &x->p->sample_labels[i]
                                                                    : NULL;

                ls_js_text(&x->j, l ? l->key : none);   /* a long one may be in any number of
                                                         * labels */
                ls_js_text(&x->j, l ? l->value : none);
        }
        ls_js_close(&x->j, ']');
}

void ls_fx_put_shared(struct ls_fx *x)
{
        ls_js_key_open(&x->j, "shared", '{');
        put_strings(x);
        put_table(x, "stackTable", x->stacks.n_rows, stack_columns);
        put_table(x, "frameTable", x->frames.n_rows, frame_columns);
        put_table(x, "funcTable", x->t->n_frames, function_columns);
        put_table(x, "resourceTable", x->n_sources + x->n_libs, resource_columns);
        put_table(x, "nativeSymbols", 0, native_symbol_columns);
        put_table(x, "sources", x->n_sources, source_columns);
        ls_js_close(&x->j, '}');
}
