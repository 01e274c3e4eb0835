/* Member "meta" of a Firefox Profiler file: what version it is, categories, kinds of markers, facts
 * of the recording. Called by firefox.c. */
#include "formats/export/firefox.h"

#define GECKO_VERSION 29                /* of the format that this one was once made from */
#define PROCESSED_VERSION 61

#define NAME "{marker.name}"
#define VALUE "{marker.data.value}"

static const struct { const char *name, *text, *row, *description;
} marker_kinds[] = {
        [LS_FX_MARKER_ZONE] = { "zone", NAME, NAME,
                                "A zone of jit.zone: begins and ends at the first and last sample "
                                "in it." },
        [LS_FX_MARKER_REGION] = { "region", NAME, NAME,
                                  "A region between luasample.start() and luasample.stop()." },
        [LS_FX_MARKER_LABEL] = { "label", VALUE, NAME ": " VALUE,
                                 "A label of luasample.label(), as long as it has one value." },
        [LS_FX_MARKER_MARK] = { "mark", NAME, NAME,
                                "An instant that the program marked with luasample.mark()." },
        [LS_FX_MARKER_PHASE] = { "collector", NAME, NAME,
                                 "A phase of a VM's garbage collector, as ticks read it." },
};

const char *ls_fx_marker_name(unsigned kind)
{
        return marker_kinds[kind].name;
}

void ls_fx_put_ms(struct ls_fx *x, uint64_t ns)
{
        ls_js_millionths(&x->j, ns > x->t->zero_ns ? ns - x->t->zero_ns : 0);
}

static void put_category(struct ls_fx *x, const char *name, const char *color)
{
        ls_js_open(&x->j, '{');
        ls_js_key_string(&x->j, "name", name);
        ls_js_key_string(&x->j, "color", color);
        ls_js_key_open(&x->j, "subcategories", '[');
        ls_js_string(&x->j, "Other");
        ls_js_close(&x->j, ']');
        ls_js_close(&x->j, '}');
}

static void put_categories(struct ls_fx *x)
{
        static const char *const names[] = {
#define LS_VMSTATE(letter, NAME, name, label) label,
#include "formats/wire/vmstates.def"
#undef LS_VMSTATE
        };
        static const char *const colors[LS_NVMSTATES] = {
                [LS_VMSTATE_NATIVE] = "green", [LS_VMSTATE_INTERPRETED] = "yellow",
                [LS_VMSTATE_C] = "blue",       [LS_VMSTATE_GC] = "orange",
                [LS_VMSTATE_JIT] = "magenta",
        };

        ls_js_key_open(&x->j, "categories", '[');
        put_category(x, "Other", "grey");
        for (unsigned i = 0; i < LS_NVMSTATES; i++)
                put_category(x, names[i], colors[i]);
        put_category(x, "Lua", "lightblue");
        put_category(x, "Native", "purple");
        ls_js_close(&x->j, ']');
}

static void put_value_field(struct ls_fx *x)
{
        ls_js_open(&x->j, '{');
        ls_js_key_string(&x->j, "key", "value");
        ls_js_key_string(&x->j, "label", "Value");
        ls_js_key_string(&x->j, "format", "unique-string");
        ls_js_close(&x->j, '}');
}

static void put_marker_schema(struct ls_fx *x)
{
        ls_js_key_open(&x->j, "markerSchema", '[');
        for (size_t i = 0; i < sizeof(marker_kinds) / sizeof(marker_kinds[0]); i++) {
                if ((i == LS_FX_MARKER_MARK && !x->p->n_marks) ||
                    (i == LS_FX_MARKER_PHASE && !x->has_phases) ||
                    (i == LS_FX_MARKER_LABEL && !x->used_labels))
                        continue;
                ls_js_open(&x->j, '{');
                ls_js_key_string(&x->j, "name", marker_kinds[i].name);
                ls_js_key_string(&x->j, "chartLabel", marker_kinds[i].text);
                ls_js_key_string(&x->j, "tooltipLabel", marker_kinds[i].row);
                ls_js_key_string(&x->j, "tableLabel", marker_kinds[i].row);
                ls_js_key_string(&x->j, "description", marker_kinds[i].description);
                ls_js_key_open(&x->j, "display", '[');
                ls_js_string(&x->j, "marker-chart");
                ls_js_string(&x->j, "marker-table");
                ls_js_string(&x->j, "timeline-overview");
                ls_js_close(&x->j, ']');
                ls_js_key_open(&x->j, "fields", '[');
                if (i == LS_FX_MARKER_LABEL)
                        put_value_field(x);
                ls_js_close(&x->j, ']');
                ls_js_close(&x->j, '}');
        }
        ls_js_close(&x->j, ']');
}

static void put_fact(struct ls_fx *x, const char *key, enum ls_info_key info)
{
        struct ls_str s = ls_profile_str(x->p, info);

        if (!s.len)
                return;
        ls_js_key(&x->j, key);
        ls_js_text(&x->j, s);
}

static void open_entry(struct ls_fx *x, const char *label)
{
        ls_js_open(&x->j, '{');
        ls_js_key_string(&x->j, "label", label);
        ls_js_key_string(&x->j, "format", "string");
}

static void put_extra(struct ls_fx *x)
{
        static const struct { const char *label; enum ls_info_key info;
        } facts[] = {
                { "Lua", LS_INFO_RUNTIME },
                { "Engine", LS_INFO_ENGINE },
                { "Timer", LS_INFO_TIMER },
                { "Host", LS_INFO_HOST },
        };

        ls_js_key_open(&x->j, "extra", '[');
        ls_js_open(&x->j, '{');
        ls_js_key_string(&x->j, "label", "Recording");
        ls_js_key_open(&x->j, "entries", '[');
        for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
                if (!ls_profile_str(x->p, facts[i].info).len)
                        continue;
                open_entry(x, facts[i].label);
                put_fact(x, "value", facts[i].info);
                ls_js_close(&x->j, '}');
        }
        open_entry(x, "Time");
        ls_js_key_string(&x->j, "value", x->t->in->event);
        ls_js_close(&x->j, '}');
        ls_js_close(&x->j, ']');
        ls_js_close(&x->j, '}');
        ls_js_close(&x->j, ']');
}

void ls_fx_put_meta(struct ls_fx *x)
{
        struct ls_js *j = &x->j;

        ls_js_key_open(j, "meta", '{');
        ls_js_key_u64(j, "version", GECKO_VERSION);
        ls_js_key_u64(j, "preprocessedProfileVersion", PROCESSED_VERSION);
        ls_js_key_string(j, "product", "luasample");
        ls_js_key_string(j, "importedFrom", "luasample " LS_VERSION);
        ls_js_key(j, "interval");
        ls_js_millionths(j, x->t->in->interval_ns);
        ls_js_key(j, "startTime");
        ls_js_millionths(j, x->t->zero_realtime_ns);
        ls_js_key_u64(j, "startTimeAsClockMonotonicNanosecondsSinceBoot", x->t->zero_ns);
        ls_js_key_u64(j, "profilingStartTime", 0);
        ls_js_key(j, "profilingEndTime");
        ls_fx_put_ms(x, x->t->to_ns + x->t->in->interval_ns); /* a sample at the very end would be
                                                               * outside */
        ls_js_key_u64(j, "processType", 0);
        ls_js_key_u64(j, "stackwalk", 1);
        ls_js_key_bool(j, "debug", 0);
        ls_js_key_bool(j, "symbolicated", 1);
        ls_js_key_bool(j, "symbolicationNotSupported", 1);
        ls_js_key_bool(j, "sourceCodeIsNotOnSearchfox", 1);
        put_fact(x, "arguments", LS_INFO_COMMAND);
        put_fact(x, "oscpu", LS_INFO_KERNEL);
        if (ls_profile_u64(x->p, LS_INFO_CPUS, 0))
                ls_js_key_u64(j, "logicalCPUs", ls_profile_u64(x->p, LS_INFO_CPUS, 0));
        ls_js_key_open(j, "sampleUnits", '{');
        ls_js_key_string(j, "time", "ms");
        ls_js_key_string(j, "eventDelay", "ms");
        ls_js_key_string(j, "threadCPUDelta", "ns");
        ls_js_close(j, '}');
        put_categories(x);
        put_marker_schema(x);
        put_extra(x);
        ls_js_close(j, '}');
}
