/* Makes odd but sound traces, for tests of what writes and shows them: gen_odd KIND FILE. See the
 * table at the end. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/trace/writer.h"

#define MS 1000000ull
#define START (1000 * 1000 * MS)
#define DEPTH 10000u
#define LONG 65536u
#define REALTIME (1700000000ull * 1000 * MS)

struct odd {
        struct ls_trace_writer *w;
        uint32_t process, thread, vm, functions;
        uint64_t now, ticks;
};

static uint32_t str(struct odd *o, const char *s)
{
        return ls_trace_string(o->w, s, strlen(s));
}

static uint32_t source(struct odd *o, const char *path)
{
        char name[LONG + 8];

        snprintf(name, sizeof(name), "@%s", path);
        return ls_trace_source(o->w, &(struct ls_source_def){ .name = str(o, name),
                                                              .path = str(o, path),
                                                              .size = 100,
                                                              .text_hash = ++o->functions });
}

static uint32_t lua(struct odd *o, uint32_t file, uint32_t line, const char *name)
{
        uint32_t f = ls_trace_function(o->w, &(struct ls_function_def){ .kind = LS_FUNC_LUA,
                                                                        .source = file,
                                                                        .first_line = line,
                                                                        .last_line = line + 9,
                                                                        .hash = ++o->functions });

        ls_trace_name(o->w, f, LS_NAME_GLOBAL, str(o, name));
        return f;
}

static uint32_t push(struct odd *o, uint32_t parent, uint32_t function, uint32_t line)
{
        return ls_trace_stack(o->w, parent, ls_trace_location(o->w, function, line));
}

static void sample(struct odd *o, struct ls_sample_row row, unsigned n)
{
        for (unsigned i = 0; i < n; i++) {
                row.event = LS_EVENT_CPU;
                row.time_ns = o->now += MS;
                row.weight = row.weight ? row.weight : 1;
                row.thread = row.thread ? row.thread : o->thread;
                ls_trace_sample(o->w, &row);
                o->ticks += row.weight;
        }
}

static void make_empty(struct odd *o)
{
        (void)o;
}

static void make_one(struct odd *o)
{
        uint32_t f = lua(o, source(o, "/srv/one.lua"), 3, "one");

        sample(o, (struct ls_sample_row){ .vm = o->vm, .stack = push(o, 0, f, 4) }, 1);
}

/* Two functions that call each other 10,000 deep, and stacks that end on the way and at the end. */
static void make_deep(struct odd *o)
{
        uint32_t file = source(o, "/srv/deep.lua"),
                 f[2] = { lua(o, file, 1, "even"), lua(o, file, 20, "odd") }, stack = 0;

        for (uint32_t i = 0; i < DEPTH; i++) {
                stack = push(o, stack, f[i % 2], i % 2 ? 22 : 3);
                if (i % 2500 == 2499)
                        sample(o, (struct ls_sample_row){ .vm = o->vm, .stack = stack,
                                                          .vmstate = LS_VMSTATE_INTERPRETED }, 2);
        }
}

/* Names that are long, and names that mean something in one format or another. */
static void make_names(struct odd *o)
{
        static const char *const names[] = {
                "plain",
                "",
                " ",
                "a;b",
                "a,b \"quoted\" 'c'",
                "line\nbreak\r\ttab",
                "</script><!-- &amp; ]]>",
                "\xff\xfe\xc0\x80",
                "\xed\xa0\x80 surrogate",
                "\xe2\x80\xae bidi",
                "caf\xc3\xa9 \xf0\x9f\x98\x80",
                "(3) name",
                "fn=(1)",
                "{}[]\\u0000\\",
                "=1+1",
                "%s%n$d",
                "../../etc/passwd",
                "\x1b[31mred\x7f",
                "nan",
                "-1",
                "*",
        };
        char *big = malloc(LONG + 1);
        uint32_t file, stack = 0, zone = 0, thread;

        if (!big)
                exit(1);
        for (uint32_t i = 0; i < LONG; i++)
                big[i] = (char)(i % 61 ? 'a' + i % 26 : 0xe9);  /* not UTF-8 */
        big[LONG] = '\0';
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                file = source(o, names[i][0] ? names[i] : "/srv/empty");
                zone = ls_trace_zone(o->w, i % 2 ? zone : 0, str(o, names[i]));
                thread = ls_trace_thread(o->w, o->process, 5000 + (uint32_t)i, str(o, names[i]));
                stack = push(o, i % 5 ? stack : 0, lua(o, file, (uint32_t)i, names[i]),
                             (uint32_t)i + 1);
                sample(o,
                       (struct ls_sample_row){
                               .vm = o->vm, .stack = stack, .zone = zone, .thread = thread },
                       1 + (unsigned)i);
        }
        stack = push(o, stack, lua(o, source(o, big), 7, big), 8);
        zone = ls_trace_zone(o->w, zone, str(o, big));
        sample(o,
               (struct ls_sample_row){
                       .vm = o->vm,
                       .stack = stack,
                       .zone = zone,
                       .thread = ls_trace_thread(o->w, o->process, 5999, str(o, big)) },
               50);
        free(big);
}

/* One of everything that a sample can have: native frames in mappings, coroutines, zones, VMs,
 * threads, processes, states, compiled ticks without a line, samples in several rows. */
static void make_mixed(struct odd *o)
{
        static const uint8_t build_id[] = { 0xde, 0xad, 0xbe, 0xef, 0x00, 0x01 };
        uint32_t file = source(o, "/srv/mixed.lua"), map[2], c, native, builtin, pseudo, work,
                 chunk, top, stack[6];
        uint32_t other = ls_trace_process(o->w, 4300, str(o, "child"));
        uint32_t vm2 = ls_trace_vm(o->w, other, 1, str(o, "LuaJIT 2.1"));
        uint32_t thread2 = ls_trace_thread(o->w, other, 4301, str(o, "worker")), zone[2], coroutine;

        map[0] = ls_trace_mapping(o->w, str(o, "/usr/lib/lpeg.so"), 0x7f0000001000, 0x7f0000009000,
                                  0x1000, build_id, 6);
        map[1] = ls_trace_mapping(o->w, str(o, "/usr/lib/libc.so.6"), 0x7f1000000000,
                                  0x7f1000100000, 0, NULL, 0);
        chunk = ls_trace_function(o->w, &(struct ls_function_def){ .kind = LS_FUNC_LUA,
                                                                   .flags = LS_FUNCF_MAIN,
                                                                   .source = file,
                                                                   .last_line = 40,
                                                                   .hash = 77 });
        work = lua(o, file, 10, "work");
        c = ls_trace_function(o->w, &(struct ls_function_def){ .kind = LS_FUNC_C,
                                                               .mapping = map[0],
                                                               .offset = 0x1234 });
        native = ls_trace_function(o->w, &(struct ls_function_def){ .kind = LS_FUNC_NATIVE,
                                                                    .mapping = map[1],
                                                                    .offset = 0x2000 });
        builtin = ls_trace_function(o->w, &(struct ls_function_def){ .kind = LS_FUNC_BUILTIN,
                .identity_name = str(o, "string.format") });
        pseudo = ls_trace_function(o->w, &(struct ls_function_def){ .kind = LS_FUNC_PSEUDO,
                .identity_name = str(o, "[outside Lua]") });
        ls_trace_name(o->w, native, LS_NAME_DEFINITION, str(o, "memcpy"));
        top = push(o, 0, chunk, 2);
        stack[0] = push(o, top, work, 12);
        stack[1] = push(o, top, work, 13);
        stack[2] = push(o, stack[0], c, 0);
        stack[3] = push(o, stack[2], native, 0);
        stack[4] = push(o, stack[0], builtin, 0);
        stack[5] = push(o, 0, pseudo, 0);
        zone[0] = ls_trace_zone(o->w, 0, str(o, "outer"));
        zone[1] = ls_trace_zone(o->w, zone[0], str(o, "inner"));
        coroutine = ls_trace_coroutine(o->w, o->vm, work, 3);
        sample(o,
               (struct ls_sample_row){ .vm = o->vm,
                                       .stack = ls_trace_stack_no_line(o->w, stack[0]) },
               10);
        sample(o, (struct ls_sample_row){ .vm = o->vm, .stack = stack[0] }, 20);
        sample(o,
               (struct ls_sample_row){
                       .vm = o->vm, .stack = stack[1], .zone = zone[0], .coroutine = coroutine },
               30);
        for (unsigned i = 0; i < 5; i++) {
                sample(o,
                       (struct ls_sample_row){
                               .vm = o->vm, .stack = stack[1], .zone = zone[1], .weight = 3 },
                       1);
                o->now -= MS;
                sample(o,
                       (struct ls_sample_row){ .vm = o->vm,
                                               .stack = stack[1],
                                               .zone = zone[1],
                                               .weight = 2,
                                               .vmstate = LS_VMSTATE_GC,
                                               .flags = LS_SAMPLE_CONT },
                       1);
        }
        sample(o, (struct ls_sample_row){ .vm = o->vm, .stack = stack[2], .vmstate = LS_VMSTATE_C },
               7);
        sample(o,
               (struct ls_sample_row){
                       .vm = vm2, .thread = thread2, .stack = stack[3], .vmstate = LS_VMSTATE_C },
               11);
        sample(o,
               (struct ls_sample_row){
                       .vm = vm2, .thread = thread2, .stack = stack[4], .vmstate = LS_VMSTATE_JIT },
               13);
        sample(o,
               (struct ls_sample_row){
                       .thread = thread2, .stack = stack[5], .vmstate = LS_VMSTATE_C },
               17);
}

/* Ticks that no 32 bits hold. */
static void make_heavy(struct odd *o)
{
        uint32_t stack = push(o, 0, lua(o, source(o, "/srv/heavy.lua"), 3, "heavy"), 4);

        sample(o, (struct ls_sample_row){ .vm = o->vm, .stack = stack, .weight = UINT32_MAX }, 5);
}

static const struct kind { const char *name; void (*make)(struct odd *o); } kinds[] = {
        { "empty", make_empty },
        { "one", make_one },
        { "deep", make_deep },
        { "names", make_names },
        { "mixed", make_mixed },
        { "heavy", make_heavy },
};

static int make(const struct kind *kind, const char *path)
{
        int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644), r;
        struct odd o = { .now = START };

        if (fd < 0 || ls_trace_writer_open(fd, MS, &o.w))
                return -1;
        ls_trace_info_str(o.w, "command", "luajit odd.lua");
        ls_trace_info_str(o.w, "runtime_path", "/usr/bin/luajit");
        ls_trace_info_str(o.w, "scope", "f");
        ls_trace_info_u64(o.w, "start_monotonic_ns", START);
        ls_trace_info_u64(o.w, "start_realtime_ns", REALTIME);
        ls_trace_clocks(o.w, START, REALTIME, START);
        ls_trace_event(o.w, LS_EVENT_CPU, MS);
        o.process = ls_trace_process(o.w, 4242, str(&o, "luajit"));
        o.thread = ls_trace_thread(o.w, o.process, 4242, str(&o, "luajit"));
        o.vm = ls_trace_vm(o.w, o.process, 1, str(&o, "LuaJIT 2.1"));
        kind->make(&o);
        ls_trace_info_u64(o.w, "elapsed_ns", o.now - START);
        ls_trace_info_u64(o.w, "ticks", o.ticks);
        ls_trace_info_u64(o.w, "complete", 1);
        r = ls_trace_writer_close(o.w);
        return close(fd) || r ? -1 : 0;
}

int main(int argc, char **argv)
{
        for (size_t i = 0; argc == 3 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                if (strcmp(argv[1], kinds[i].name))
                        continue;
                if (make(&kinds[i], argv[2]) == 0)
                        return 0;
                fprintf(stderr, "gen_odd: %s: cannot be written\n", argv[2]);
                return 1;
        }
        fprintf(stderr, "usage: gen_odd KIND FILE, where KIND is one of:");
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                fprintf(stderr, " %s", kinds[i].name);
        fprintf(stderr, "\n");
        return 129;
}
