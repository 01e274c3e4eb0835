/* Writes the golden traces, which are in tests/golden. `gen_golden FILE`: one synthetic record of
 * every kind, those included that nothing records yet, an event and a record kind that no version
 * knows, and a column of a newer writer. `gen_golden --coded FILE`: what has coded columns, three
 * threads in coroutines on stacks of a tree. `gen_golden --jit FILE`: traces of the JIT
 * compiler. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "formats/trace/record.h"
#include "formats/trace/writer_parts.h"
#include "formats/trace/writer.h"
#include "formats/process_totals.h"

#define T 7000000000ull

static uint32_t str(struct ls_trace_writer *w, const char *s)
{
        return ls_trace_string(w, s, strlen(s));
}

static void add_dictionaries(struct ls_trace_writer *w)
{
        static const uint8_t build_id[] = { 0xde, 0xad, 0xbe, 0xef };
        struct ls_source_def file = { .name = str(w, "@app.lua"),
                                      .path = str(w, "/srv/app.lua"),
                                      .size = 120,
                                      .text_hash = 0x1122334455667788ull };
        struct ls_source_def text = { .name = str(w, "return 1+1"),
                                      .size = 10,
                                      .text_hash = 0x99aabbccddeeff00ull };
        uint32_t source = ls_trace_source(w, &file), loaded = ls_trace_source(w, &text), f[6], root,
                 stack;
        uint32_t process = ls_trace_process(w, 4000, str(w, "luajit")), map;

        ls_trace_text(w, loaded, "return 1+1", 10);
        map = ls_trace_mapping(w, str(w, "/usr/lib/lpeg.so"), 0x7f0000001000, 0x7f0000009000,
                               0x1000, build_id, 4);
        f[1] = ls_trace_function(w, &(struct ls_function_def){ .kind = LS_FUNC_LUA,
                                                               .flags = LS_FUNCF_MAIN |
                                                                        LS_FUNCF_VARARG,
                                                               .source = source,
                                                               .last_line = 30,
                                                               .hash = 11 });
        f[2] = ls_trace_function(w, &(struct ls_function_def){ .kind = LS_FUNC_LUA,
                                                               .source = source,
                                                               .first_line = 5,
                                                               .last_line = 9,
                                                               .hash = 22 });
        f[3] = ls_trace_function(w, &(struct ls_function_def){
                                            .kind = LS_FUNC_C, .mapping = map, .offset = 0x1234 });
        f[4] = ls_trace_function(w, &(struct ls_function_def){ .kind = LS_FUNC_BUILTIN,
                .identity_name = str(w, "string.format") });
        f[5] = ls_trace_function(w, &(struct ls_function_def){ .kind = LS_FUNC_PSEUDO,
                .identity_name = str(w, "[resumed by C]") });
        ls_trace_name(w, f[2], LS_NAME_GLOBAL, str(w, "app.work"));
        ls_trace_name(w, f[3], LS_NAME_CALLSITE, str(w, "match"));
        root = ls_trace_stack(w, 0, ls_trace_location(w, f[1], 20));
        stack = ls_trace_stack(w, root, ls_trace_location(w, f[2], 7));
        ls_trace_stack(w, stack, ls_trace_location(w, f[4], 0));
        ls_trace_stack(w, stack, ls_trace_location(w, f[3], 0));
        ls_trace_stack(w, 0, ls_trace_location(w, f[5], 0));
        ls_trace_zone(w, ls_trace_zone(w, 0, str(w, "AI")), str(w, "A*"));
        ls_trace_thread(w, process, 4000, str(w, "luajit"));
        ls_trace_vm(w, process, 1, str(w, "LuaJIT 2.1"));
        ls_trace_coroutine(w, 1, f[2], 3);
        ls_trace_event(w, LS_EVENT_CPU, 1000000);
        ls_trace_event(w, LS_EVENT_CALLS, 0);
        ls_trace_event(w, LS_EVENT_LINES, 0);
}

static void add_facts(struct ls_trace_writer *w)
{
        ls_trace_info_str(w, "command", "luajit app.lua");
        ls_trace_info_u64(w, "ticks", 20);
        ls_trace_info_u64(w, "lost.ring-full", 3);
        ls_trace_clocks(w, T, 1700000000000000000ull, T + 5);
        ls_trace_threadcpu(w, 1, T + 9000000, 8000000);
        ls_trace_process_totals(w, 1,
                                &(struct ls_process_totals){ 12, 9, 3, 12000000, 40000, T,
                                                             T + 9000000 });
        ls_trace_region(w, 1, 1, T + 1000000, 900000, str(w, "startup"));
        ls_trace_region(w, 0, 1, T + 5000000, 4500000, str(w, "startup"));
        ls_trace_notice(w, "pid 4001 ran LuaJIT; not followed");
}

static uint64_t real(double value)
{
        uint64_t bits;

        memcpy(&bits, &value, sizeof(bits));
        return bits;
}

/* Kinds that are reserved: their rows are written as they are. */
static void add_reserved(struct ls_trace_writer *w)
{
        ls_trace_row(w, LS_REC_AGGREGATE,
                     (const uint64_t[LS_COLUMNS_MAX]){ LS_EVENT_CALLS, 41, 2, 1, 1, 1, 2, 41,
                                                       123456, 100000, 4096 });
        ls_trace_row(w, LS_REC_SPAN,
                     (const uint64_t[LS_COLUMNS_MAX]){ LS_EVENT_JIT, 1, 1, 9, T + 2000000, 1, 1, 2,
                                                       str(w, "compile") });
        ls_trace_row(w, LS_REC_SPAN,
                     (const uint64_t[LS_COLUMNS_MAX]){ LS_EVENT_JIT, 0, 2, 9, T + 2500000, 1, 1, 2,
                                                       str(w, "compile") });
        ls_trace_row(w, LS_REC_LINECOUNT,
                     (const uint64_t[LS_COLUMNS_MAX]){ LS_EVENT_LINES, 1000, 2, 7 });
        ls_trace_row(w, LS_REC_JITTRACE,
                     (const uint64_t[LS_COLUMNS_MAX]){ 1, 5, 0, 0, 0, 2, str(w, "loop"), 5, 0,
                                                       0x7e0000000000, 512, str(w, "IR"),
                                                       str(w, "MAP") });
        ls_trace_count(w, ls_trace_counter(w, 1, str(w, "requests"), 0, 0), T + 1000000, real(0));
        ls_trace_count(w, 1, T + 2000000, real(12));
        ls_trace_count(w, 1, T + 3500000, real(2.5));
        ls_trace_count(w, 1, T + 4000000, real(1e300 * 1e300));         /* no value */
        ls_trace_count(w, 7, T + 4000000, real(1));                     /* of no counter */
        ls_trace_row(w, LS_REC_ATTEMPT,
                     (const uint64_t[LS_COLUMNS_MAX]){ 1, 2, 5, 9, 3, LS_ATTEMPT_FUNCTION,
                                                       str(w, "NYI: bytecode FNEW"), 0, 10, 5000,
                                                       70 });
        ls_trace_row(w, LS_REC_LABEL,
                     (const uint64_t[LS_COLUMNS_MAX]){ 0, str(w, "request"), str(w, "42") });
}

/* A record kind that no version has, and a zone with a column that this version has not. */
static void add_unknown(struct ls_trace_writer *w)
{
        struct ls_buf body = { 0 };

        ls_buf_add(&body, "future", 6);
        ls_record_end(&w->raw, 60, &body);
        ls_record_begin(&body, 3, 1);
        ls_column_put(&body, LS_C_ZONE_NAME, LS_ENC_CONST, 3, (const uint64_t[]){ str(w, "new") },
                      1);
        ls_column_put(&body, 30, LS_ENC_CONST, 3, (const uint64_t[]){ 77 }, 1);
        ls_record_end(&w->raw, LS_REC_ZONE, &body);
        ls_buf_free(&body);
}

static void add_samples(struct ls_trace_writer *w)
{
        for (unsigned i = 0; i < 10; i++) {
                struct ls_sample_row row = { .event = LS_EVENT_CPU,
                                             .thread = 1,
                                             .vm = 1,
                                             .coroutine = i % 3 == 0,
                                             .zone = i % 4 == 1 ? 2 : 0,
                                             .stack = 1 + i % 5,
                                             .weight = 1 + i % 2,
                                             .time_ns = T + i * 1000000 + i * 7919,
                                             .vmstate = i % LS_NVMSTATES,
                                             .flags = i > 0 && i < 5 ? LS_SAMPLE_IN_REGION : 0 };

                ls_trace_sample(w, &row);
                if (i == 7) {
                        row.flags = LS_SAMPLE_CONT;
                        row.vmstate = LS_VMSTATE_GC;
                        row.weight = 3;
                        ls_trace_sample(w, &row);
                }
        }
        ls_trace_sample(w, &(struct ls_sample_row){ .event = 200,
                                                    .thread = 1,
                                                    .stack = 2,
                                                    .time_ns = T + 11000000,
                                                    .weight = 12345 });
}

static void add_coded(struct ls_trace_writer *w)
{
        uint32_t process = ls_trace_process(w, 4000, str(w, "luajit")),
                 vm = ls_trace_vm(w, process, 1, 0), f[9];
        uint32_t stack[80] = { 0 }, seed = 1;

        for (unsigned i = 0; i < 9; i++) {
                f[i] = ls_trace_function(w, &(struct ls_function_def){ .kind = LS_FUNC_LUA,
                                                                       .first_line = 10 * i + 1,
                                                                       .last_line = 10 * i + 9,
                                                                       .hash = i });
                ls_trace_coroutine(w, vm, f[i], 1);
        }
        for (unsigned i = 1; i < 4; i++)
                ls_trace_thread(w, process, 4000 + i, 0);
        for (unsigned i = 1; i < 80; i++)
                stack[i] = ls_trace_stack(w, stack[i % 5 ? i - 1 : i * i % 37 % i],
                                          ls_trace_location(w, f[i * i % 9],
                                                            10 * (i * i % 9) + i % 4));
        for (unsigned i = 0; i < 300; i++) {
                unsigned at = (seed = seed * 1103515245 + 12345) >> 16 & 63, late = seed >> 24 & 7;
                struct ls_sample_row row = { .event = LS_EVENT_CPU,
                                             .thread = 1 + i % 7 % 3,
                                             .vm = vm,
                                             .coroutine = i % 40 ? at % 10 : 0,
                                             .stack = stack[at + 1],
                                             .weight = 1 + (i % 29 == 0),
                                             .vmstate = i % 5 ? at % LS_NVMSTATES : 2,
                                             .time_ns = T + i * 1000000 +
                                                        (late ? 0 : seed % 999999) };

                ls_trace_sample(w, &row);
        }
}

/* Traces without a map, so that what they mean can be told from the page alone: a root, its side
 * trace, one of another VM, and one that has no record; samples at two places of each, and one that
 * stands on nothing. */
static void add_jit(struct ls_trace_writer *w)
{
        struct ls_source_def file = { .name = str(w, "@app.lua"),
                                      .size = 120,
                                      .text_hash = 0x1122334455667788ull };
        struct ls_function_def lua = { .kind = LS_FUNC_LUA,
                                       .source = ls_trace_source(w, &file),
                                       .first_line = 5,
                                       .last_line = 9,
                                       .hash = 22 };
        uint32_t process = ls_trace_process(w, 4000, str(w, "luajit")), work, main_chunk, below,
                 root, code[4];

        ls_trace_thread(w, process, 4000, str(w, "luajit"));
        ls_trace_thread(w, process, 4001, str(w, "worker"));
        ls_trace_vm(w, process, 1, str(w, "LuaJIT 2.1"));
        ls_trace_vm(w, process, 2, str(w, "LuaJIT 2.1"));
        ls_trace_event(w, LS_EVENT_CPU, 1000000);
        work = ls_trace_function(w, &lua);
        ls_trace_name(w, work, LS_NAME_GLOBAL, str(w, "app.work"));
        lua.first_line = 0;
        lua.flags = LS_FUNCF_MAIN;
        main_chunk = ls_trace_function(w, &lua);
        for (unsigned i = 0; i < 4; i++)
                code[i] = ls_trace_function(w, &(struct ls_function_def){ .kind = LS_FUNC_TRACE,
                                                                          .offset = i + 1,
                                                                          .hash = 1 });
        root = ls_trace_stack(w, 0, ls_trace_location(w, main_chunk, 20));
        below = ls_trace_stack(w, root, ls_trace_location(w, work, 6));
        ls_trace_irnames(w, 1, str(w, "NOP   ADD   "));
        for (unsigned i = 0; i < 3; i++) {
                uint64_t row[LS_COLUMNS_MAX] = {
                        [LS_C_JITTRACE_VM] = 1 + i / 2,
                        [LS_C_JITTRACE_NUMBER] = 5 + i,
                        [LS_C_JITTRACE_ROOT] = i == 1 ? 5 : 0,
                        [LS_C_JITTRACE_PARENT] = i == 1 ? code[0] : 0,
                        [LS_C_JITTRACE_EXIT] = i == 1 ? 2 : 0,
                        [LS_C_JITTRACE_LINK_KIND] = str(w, i == 1 ? "root" : "loop"),
                        [LS_C_JITTRACE_START] =
                                ls_trace_location(w, i == 2 ? main_chunk : work, 7 + i),
                        [LS_C_JITTRACE_LINK] = i == 1 ? 5 : 5 + i,
                        [LS_C_JITTRACE_ADDRESS] = 0x7e0000000000 + i * 4096,
                        [LS_C_JITTRACE_SIZE] = 512,
                        [LS_C_JITTRACE_FUNCTION] = code[i],
                };
                const struct ls_map_row map = { code[i], 6 };

                ls_trace_row(w, LS_REC_JITTRACE, row);
                ls_buf_add(&w->map_rows, &map, sizeof(map));
                ls_buf_add(&w->maps, "no map", 6);
        }
        ls_trace_flush(w, T, 1);
        for (unsigned i = 0; i < 20; i++) {
                uint32_t line = i % 3 * 17, where = i % 5 == 4 ? 0 : i % 7 == 6 ? root : below;
                struct ls_sample_row row = { .event = LS_EVENT_CPU,
                                             .thread = 1 + i % 2,
                                             .vm = 1 + i % 4 / 2,
                                             .weight = 1 + i % 3,
                                             .time_ns = T + i * 1000000,
                                             .vmstate = LS_VMSTATE_NATIVE };

                row.stack = ls_trace_stack(w, where, ls_trace_location(w, code[i % 4], line));
                ls_trace_sample(w, &row);
        }
}

/* Those that are a trace of their own. */
static const struct { const char *option; void (*add)(struct ls_trace_writer *w); } makers[] = {
        { "--jit", add_jit },
        { "--coded", add_coded },
};

static void add_every_kind(struct ls_trace_writer *w)
{
        add_dictionaries(w);
        add_facts(w);
        add_reserved(w);
        add_unknown(w);
        ls_trace_flush(w, T, 1);
        add_samples(w);
}

int main(int argc, char **argv)
{
        void (*add)(struct ls_trace_writer *w) = argc == 2 ? add_every_kind : NULL;
        struct ls_trace_writer *w;
        int fd, r;

        for (unsigned i = 0; argc == 3 && i < sizeof(makers) / sizeof(*makers); i++)
                if (!strcmp(argv[1], makers[i].option))
                        add = makers[i].add;
        fd = add ? open(argv[argc - 1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
        if (fd < 0) {
                fprintf(stderr, "usage: gen_golden [--jit|--coded] FILE\n");
                return 129;
        }
        r = ls_trace_writer_open(fd, 1000000, &w);
        if (!r) {
                add(w);
                r = ls_trace_writer_close(w);
        }
        if (r || close(fd)) {
                fprintf(stderr, "gen_golden: %s: %s\n", argv[argc - 1], strerror(r ? -r : errno));
                return 1;
        }
        return 0;
}
