/* Writes the input traces of the golden tests of report/, with the public calls of the trace
 * writer: make_traces DIR, where DIR holds src/. What is in each trace is told beside its maker. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/trace/writer.h"
#include "tests/unit/jit_fixture.h"

#define MS 1000000ull
#define START (1000 * 1000 * MS)        /* CLOCK_MONOTONIC of all traces */

static const char *dir;

struct making {
        struct ls_trace_writer *w;
        int fd;
        uint32_t process, thread, vm;
        uint64_t now, samples, ticks;
};

static void fail(const char *what, int error)
{
        fprintf(stderr, "make_traces: %s: %s\n", what, strerror(-error));
        exit(1);
}

static uint32_t str(struct making *m, const char *s)
{
        return ls_trace_string(m->w, s, strlen(s));
}

static struct making begin(const char *name)
{
        struct making m = { .now = START };
        char path[4096];
        int r;

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        m.fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
        if (m.fd < 0)
                fail(path, -errno);
        r = ls_trace_writer_open(m.fd, MS, &m.w);
        if (r)
                fail(name, r);
        ls_trace_info_str(m.w, "version", "0");
        ls_trace_info_str(m.w, "command", "luajit src/app.lua --level 3");
        ls_trace_info_str(m.w, "runtime", "LuaJIT 2.1.0-beta3");
        ls_trace_info_str(m.w, "engine", "hook");
        ls_trace_info_str(m.w, "timer", "helper");
        ls_trace_info_str(m.w, "scope", "f");
        ls_trace_info_u64(m.w, "asked_interval_ns", MS);
        ls_trace_info_u64(m.w, "start_monotonic_ns", START);
        ls_trace_info_u64(m.w, "private_args", 1);
        ls_trace_event(m.w, LS_EVENT_CPU, MS);
        m.process = ls_trace_process(m.w, 4242, str(&m, "luajit"));
        m.thread = ls_trace_thread(m.w, m.process, 4242, str(&m, "luajit"));
        m.vm = ls_trace_vm(m.w, m.process, 1, str(&m, "LuaJIT 2.1.0-beta3"));
        return m;
}

static void end(struct making *m, uint64_t lost)
{
        int r;

        ls_trace_info_u64(m->w, "samples", m->samples);
        ls_trace_info_u64(m->w, "sample_ticks", m->ticks);
        ls_trace_info_u64(m->w, "ticks", m->ticks + lost);
        ls_trace_info_u64(m->w, "cpu_ns", (m->ticks + lost) * MS);
        ls_trace_info_u64(m->w, "elapsed_ns", m->now - START);
        ls_trace_info_u64(m->w, "complete", 1);
        r = ls_trace_writer_close(m->w);
        if (r)
                fail("close", r);
        close(m->fd);
}

/* A file of src/, known by size and hash; change = another hash than the file has now. */
static uint32_t source(struct making *m, const char *name, const char *file, int change)
{
        struct ls_source_def def = { .name = str(m, name) };
        char path[4096], bytes[65536];
        FILE *f;

        if (file) {
                snprintf(path, sizeof(path), "%s/%s", dir, file);
                f = fopen(path, "r");
                if (!f)
                        fail(path, -errno);
                def.size = fread(bytes, 1, sizeof(bytes), f);
                fclose(f);
                def.text_hash = XXH64(bytes, def.size, 0) + (change ? 1 : 0);
        }
        return ls_trace_source(m->w, &def);
}

static uint32_t lua(struct making *m, uint32_t source_id, uint32_t first, uint32_t last,
                    uint64_t hash, const char *name)
{
        struct ls_function_def def = { .kind = LS_FUNC_LUA,
                                       .source = source_id,
                                       .first_line = first,
                                       .last_line = last,
                                       .hash = hash,
                                       .flags = first == 0 ? LS_FUNCF_MAIN : 0 };
        uint32_t id = ls_trace_function(m->w, &def);

        if (name)
                ls_trace_name(m->w, id, LS_NAME_GLOBAL, str(m, name));
        return id;
}

static uint32_t named(struct making *m, uint8_t kind, const char *name)
{
        struct ls_function_def def = { .kind = kind, .identity_name = str(m, name) };

        return ls_trace_function(m->w, &def);
}

static uint32_t push(struct making *m, uint32_t parent, uint32_t function, uint32_t line)
{
        return ls_trace_stack(m->w, parent, ls_trace_location(m->w, function, line));
}

/* n samples of one tick each. */
static void sample(struct making *m, uint32_t stack, uint8_t vmstate, uint32_t zone, unsigned n,
                   uint8_t flags)
{
        struct ls_sample_row row = { .event = LS_EVENT_CPU,
                                     .vmstate = vmstate,
                                     .thread = m->thread,
                                     .vm = m->vm,
                                     .zone = zone,
                                     .stack = stack,
                                     .weight = 1,
                                     .flags = flags };

        for (unsigned i = 0; i < n; i++) {
                m->now += MS;
                row.time_ns = m->now;
                ls_trace_sample(m->w, &row);
                m->samples++;
                m->ticks++;
        }
}

/* All kinds of functions, names and sources; states, zones, two threads; losses; ticks without a
 * line. */
static void make_app(void)
{
        struct making m = begin("app.data");
        uint32_t app = source(&m, "@src/app.lua", "src/app.lua", 0),
                 hot2 = source(&m, "@src/hot2.lua", "src/hot2.lua", 0);
        uint32_t changed = source(&m, "@src/changed.lua", "src/changed.lua", 1);
        uint32_t code = source(&m, "@src/code.luac", "src/code.luac", 0);
        uint32_t util1 = source(&m, "@lib/util.lua", NULL, 0),
                 util2 = source(&m, "@other/util.lua", NULL, 0);
        uint32_t stdin_source = source(&m, "=stdin", NULL, 0),
                 text = source(&m, "local x = 1\nreturn x + ...", NULL, 0);
        uint32_t no_text = source(&m, "return 42 -- its text is not in the trace", NULL, 0);
        uint32_t main_chunk = lua(&m, app, 0, 0, 1, NULL), run = lua(&m, app, 18, 26, 2, "run");
        uint32_t fib = lua(&m, app, 4, 7, 3, "fib"), draw = lua(&m, app, 11, 16, 4, "Item.draw");
        uint32_t anonymous = lua(&m, app, 23, 23, 5, NULL);
        uint32_t twin1 = lua(&m, app, 21, 21, 6, "twin"), twin2 = lua(&m, app, 21, 21, 7, "twin");
        uint32_t plot1 = lua(&m, util1, 3, 9, 8, "plot"), plot2 = lua(&m, util2, 5, 9, 9, "plot");
        uint32_t hot = lua(&m, hot2, 0, 0, 10, NULL),
                 in_changed = lua(&m, changed, 1, 4, 11, "in_changed");
        uint32_t in_code = lua(&m, code, 1, 2, 12, "in_code"),
                 in_stdin = lua(&m, stdin_source, 0, 0, 13, NULL);
        uint32_t in_text = lua(&m, text, 0, 0, 14, NULL),
                 in_no_text = lua(&m, no_text, 0, 0, 15, NULL);
        uint32_t strange = lua(&m, app, 9, 9, 16, "evil\033[31m\nname;\xff\xc3\xa9");
        uint32_t format = named(&m, LS_FUNC_BUILTIN, "string.format"),
                 sort = named(&m, LS_FUNC_BUILTIN, "table.sort");
        uint32_t by_c = named(&m, LS_FUNC_PSEUDO, "[resumed by C]");
        uint32_t lpeg =
                ls_trace_mapping(m.w, str(&m, "/usr/lib/lua/5.1/lpeg.so"), 4096, 8192, 0, NULL, 0);
        struct ls_function_def c = { .kind = LS_FUNC_C, .mapping = lpeg, .offset = 0x1234 };
        uint32_t c_bare = ls_trace_function(m.w, &c), c_named;
        uint32_t render = ls_trace_zone(m.w, 0, str(&m, "render")),
                 text_zone = ls_trace_zone(m.w, render, str(&m, "text"));
        uint32_t io_zone = ls_trace_zone(m.w, 0, str(&m, "io"));
        uint32_t root = push(&m, 0, main_chunk, 28), in_run = push(&m, root, run, 24);
        uint32_t draw13 = push(&m, push(&m, root, run, 25), draw, 13), draw15, at;
        uint32_t worker = ls_trace_thread(m.w, m.process, 4243, str(&m, "worker"));

        c.offset = 0x2000;
        c_named = ls_trace_function(m.w, &c);
        ls_trace_name(m.w, c_named, LS_NAME_GLOBAL, str(&m, "lpeg.match"));
        ls_trace_text(m.w, text, "local x = 1\nreturn x + ...",
                      strlen("local x = 1\nreturn x + ..."));
        draw15 = push(&m, push(&m, root, run, 25), draw, 15);
        at = push(&m, in_run, fib, 6);
        for (int depth = 0; depth < 5; depth++)         /* recursion: the total is counted once */
                at = push(&m, at, fib, 6);
        sample(&m, at, LS_VMSTATE_NATIVE, 0, 120, 0);
        sample(&m, push(&m, at, fib, 5), LS_VMSTATE_NATIVE, 0, 60, 0);
        sample(&m, push(&m, at, fib, 5), LS_VMSTATE_INTERPRETED, 0, 20, 0);
        sample(&m, draw13, LS_VMSTATE_INTERPRETED, render, 40, 0);
        sample(&m, push(&m, draw15, format, 0), LS_VMSTATE_C, text_zone, 50, 0);
        sample(&m, push(&m, draw13, plot1, 5), LS_VMSTATE_NATIVE, render, 30, 0);
        sample(&m, push(&m, draw13, plot1, 0), LS_VMSTATE_NATIVE, render, 12, 0);
        sample(&m, push(&m, draw13, plot2, 7), LS_VMSTATE_NATIVE, render, 25, 0);
        sample(&m, push(&m, push(&m, in_run, sort, 0), anonymous, 23), LS_VMSTATE_INTERPRETED, 0,
               45, 0);
        sample(&m, push(&m, in_run, twin1, 21), LS_VMSTATE_INTERPRETED, 0, 22, 0);
        sample(&m, push(&m, in_run, twin2, 21), LS_VMSTATE_INTERPRETED, 0, 18, 0);
        sample(&m, push(&m, in_run, strange, 9), LS_VMSTATE_GC, 0, 21, 0);
        sample(&m, push(&m, in_run, c_bare, 0), LS_VMSTATE_C, io_zone, 20, 0);
        sample(&m, push(&m, in_run, c_named, 0), LS_VMSTATE_C, io_zone, 20, 0);
        m.thread = worker;
        sample(&m, push(&m, 0, hot, 2), LS_VMSTATE_NATIVE, 0, 80, 0);
        sample(&m, push(&m, push(&m, 0, by_c, 0), in_changed, 3), LS_VMSTATE_NATIVE, 0, 25, 0);
        sample(&m, push(&m, root, in_code, 1), LS_VMSTATE_JIT, 0, 22, 0);
        sample(&m, push(&m, root, in_stdin, 3), LS_VMSTATE_INTERPRETED, 0, 21, 0);
        sample(&m, push(&m, root, in_text, 2), LS_VMSTATE_INTERPRETED, 0, 24, 0);
        sample(&m, push(&m, root, in_no_text, 1), LS_VMSTATE_INTERPRETED, 0, 23, 0);
        sample(&m, push(&m, root, run, 20), LS_VMSTATE_INTERPRETED, 0, 5, 0);
        ls_trace_info_u64(m.w, "lost.ring-full", 7);
        ls_trace_info_u64(m.w, "lost.kernel-delayed", 31);
        ls_trace_notice(m.w, "pid 4250 ran LuaJIT; not followed");
        end(&m, 7);
}

/* One sample of several states, and weights above one. */
static void make_weights(void)
{
        struct making m = begin("weights.data");
        uint32_t app = source(&m, "@src/app.lua", "src/app.lua", 0),
                 run = lua(&m, app, 18, 26, 2, "run");
        struct ls_sample_row row = { .event = LS_EVENT_CPU,
                                     .thread = m.thread,
                                     .vm = m.vm,
                                     .stack = push(&m, 0, run, 20),
                                     .weight = 3,
                                     .vmstate = LS_VMSTATE_INTERPRETED };

        for (int i = 0; i < 50; i++) {
                row.time_ns = m.now += 5 * MS;
                row.vmstate = LS_VMSTATE_INTERPRETED;
                row.flags = 0;
                row.weight = 3;
                ls_trace_sample(m.w, &row);
                row.vmstate = LS_VMSTATE_GC;
                row.flags = LS_SAMPLE_CONT;
                row.weight = 2;
                ls_trace_sample(m.w, &row);
                m.samples++;
                m.ticks += 5;
        }
        end(&m, 0);
}

/* Two regions; samples between and outside them. */
static void make_regions(void)
{
        struct making m = begin("regions.data");
        uint32_t app = source(&m, "@src/app.lua", "src/app.lua", 0),
                 run = lua(&m, app, 18, 26, 2, "run");
        uint32_t fib = lua(&m, app, 4, 7, 3, "fib"), draw = lua(&m, app, 11, 16, 4, "Item.draw");
        static const char *const names[] = { "load", "frame" };

        sample(&m, push(&m, 0, run, 20), LS_VMSTATE_INTERPRETED, 0, 100, 0);
        for (int i = 0; i < 2; i++) {
                ls_trace_region(m.w, 1, m.thread, m.now, m.now - START, str(&m, names[i]));
                sample(&m, push(&m, 0, i ? draw : fib, i ? 13 : 6), LS_VMSTATE_NATIVE, 0,
                       i ? 75 : 25, LS_SAMPLE_IN_REGION);
                ls_trace_region(m.w, 0, m.thread, m.now, m.now - START, str(&m, ""));
                sample(&m, push(&m, 0, run, 22), LS_VMSTATE_INTERPRETED, 0, 50, 0);
        }
        end(&m, 0);
}

/* Mutual recursion and a recursive root: inclusive costs of callgrind. */
static void make_recursion(void)
{
        struct making m = begin("recursion.data");
        uint32_t app = source(&m, "@src/app.lua", "src/app.lua", 0);
        uint32_t even = lua(&m, app, 4, 7, 1, "even"), odd = lua(&m, app, 11, 16, 2, "odd");
        uint32_t root = lua(&m, app, 0, 0, 3, NULL), leaf = lua(&m, app, 18, 26, 4, "leaf");
        uint32_t at = push(&m, 0, root, 28);

        for (int i = 0; i < 6; i++) {
                at = push(&m, at, i % 2 ? odd : even, i % 2 ? 13 : 6);
                sample(&m, at, LS_VMSTATE_NATIVE, 0, 10, 0);
        }
        sample(&m, push(&m, at, leaf, 20), LS_VMSTATE_NATIVE, 0, 30, 0);
        sample(&m, push(&m, push(&m, at, root, 28), leaf, 22), LS_VMSTATE_NATIVE, 0, 10, 0);
        end(&m, 0);
}

/* Nothing was sampled. */
static void make_empty(void)
{
        struct making m = begin("nosamples.data");

        end(&m, 0);
}

/* A trace of the JIT compiler in a VM, by jit_fixture.h; its number in the recording is its number
 * in the VM. */
static uint32_t jit(struct making *m, uint32_t vm, uint32_t number, uint32_t parent, uint32_t root,
                    const uint32_t functions[2], uint32_t line)
{
        const struct jit_part parts[] = { { 0, 0, line }, { 1, 1, line + 30 }, { 0, 0, line + 1 } };
        uint32_t id = ls_trace_function(m->w,
                                        &(struct ls_function_def){ .kind = LS_FUNC_TRACE,
                                                                   .offset = vm * 100 + number,
                                                                   .hash = 1 }),
                 size;
        struct ls_rec_jittrace head = { .jit_id = id,
                                        .vm_id = vm,
                                        .number = number,
                                        .root = root,
                                        .parent_id = parent,
                                        .start_line = line,
                                        .link = number,
                                        .link_kind = 2,
                                        .mcode = 0x7f0000001000 };
        struct ls_rec_jittrace *rec = jit_record(head, functions, 2, parts, 3, &size);

        ls_trace_jittrace(m->w, rec, size, functions[0]);
        free(rec);
        return id;
}

/* n samples of a thread in a VM and coroutine, one tick each. */
static void sample_in(struct making *m, uint32_t thread, uint32_t vm, uint32_t coroutine,
                      uint32_t stack, uint8_t vmstate, unsigned n)
{
        for (unsigned i = 0; i < n; i++) {
                m->now += MS;
                ls_trace_sample(m->w, &(struct ls_sample_row){ .event = LS_EVENT_CPU,
                                                               .vmstate = vmstate,
                                                               .thread = thread,
                                                               .vm = vm,
                                                               .coroutine = coroutine,
                                                               .stack = stack,
                                                               .weight = 1,
                                                               .time_ns = m->now });
                m->samples++;
                m->ticks++;
        }
}

/* Three threads, two VMs, coroutines, traces with and without a map, a thread without Lua, parts of
 * stacks that are missing. */
static void make_threads(void)
{
        struct making m = begin("threads.data");
        uint32_t t1 = m.thread, t2 = ls_trace_thread(m.w, m.process, 4243, str(&m, "worker")),
                 vm1 = m.vm;
        uint32_t t3 = ls_trace_thread(m.w, m.process, 4244, str(&m, "worker"));
        uint32_t vm2 = ls_trace_vm(m.w, m.process, 2, str(&m, "LuaJIT 2.1.0-beta3"));
        uint32_t app = source(&m, "@src/app.lua", "src/app.lua", 0), f[2], co1, co2, many, top,
                 below, trace, side, unknown;
        uint32_t main_chunk = lua(&m, app, 0, 0, 1, NULL);

        f[0] = lua(&m, app, 10, 30, 2, "work");
        f[1] = lua(&m, app, 40, 60, 3, "helper");
        ls_trace_irnames(m.w, vm1, str(&m, JIT_NAMES));
        co1 = ls_trace_coroutine(m.w, vm1, f[0], 1);
        co2 = ls_trace_coroutine(m.w, vm1, f[0], 2);
        many = ls_trace_coroutine(m.w, vm2, f[1], 0);
        top = push(&m, 0, main_chunk, 5);
        below = push(&m, top, f[0], 11);
        trace = jit(&m, vm1, 3, 0, 0, f, 12);
        side = jit(&m, vm1, 4, trace, 3, f, 14);
        unknown = ls_trace_function(m.w, &(struct ls_function_def){
                                                 .kind = LS_FUNC_TRACE, .offset = 299, .hash = 1 });
        sample_in(&m, t1, vm1, 0, push(&m, below, trace, 1), LS_VMSTATE_NATIVE, 30);
        sample_in(&m, t1, vm1, 0, push(&m, below, trace, JIT_PART_BYTES + 1), LS_VMSTATE_NATIVE,
                  20);
        sample_in(&m, t1, vm1, co1, push(&m, below, side, 1), LS_VMSTATE_NATIVE, 10);
        sample_in(&m, t1, vm1, co2, below, LS_VMSTATE_INTERPRETED, 10);
        sample_in(&m, t2, vm2, many, push(&m, below, unknown, 1), LS_VMSTATE_NATIVE, 8);
        sample_in(&m, t2, vm2, 0, below, LS_VMSTATE_GC, 12);
        sample_in(&m, t3, vm1, 0, push(&m, top, f[1], 41), LS_VMSTATE_INTERPRETED, 6);
        sample_in(&m, t3, 0, 0, 0, LS_VMSTATE_C, 4);
        ls_trace_info_str(m.w, "engine", "walk and hook");
        ls_trace_info_str(m.w, "jit_leaf", "map");
        ls_trace_info_u64(m.w, "native_bytes", 0);
        ls_trace_info_u64(m.w, "threads", 3);
        ls_trace_info_u64(m.w, "threads_unrecorded", 2);
        ls_trace_info_u64(m.w, "vms", 2);
        ls_trace_info_u64(m.w, "vms_walk", 1);
        ls_trace_info_u64(m.w, "lost.top-guessed", 2);
        ls_trace_info_u64(m.w, "lost.trace-unknown", 1);
        ls_trace_info_u64(m.w, "lost.map-missing", 1);
        end(&m, 0);
}

int main(int argc, char **argv)
{
        if (argc != 2) {
                fprintf(stderr, "usage: make_traces DIR\n");
                return 2;
        }
        dir = argv[1];
        make_app();
        make_weights();
        make_regions();
        make_recursion();
        make_empty();
        make_threads();
        return 0;
}
