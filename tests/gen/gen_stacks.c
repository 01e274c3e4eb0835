/* Makes a trace from a description on stdin, so that tests choose every name and number in it: gen_stacks FILE < TEXT
 *
 * One thing a line, fields separated by spaces. Names are written in hex ("-" = none), since they may hold any byte. Things
 * are referred to by their place among those of their kind, from 1; definitions come before their use.
 *   interval NS              first line
 *   start MONOTONIC REALTIME BOOTTIME    of the recording, in ns
 *   info KEY NUMBER | text KEY NAME
 *   thread TID NAME
 *   source NAME TEXT_HASH
 *   function SOURCE FIRST_LINE LAST_LINE HASH NAME       of Lua; FIRST_LINE 0: the main chunk
 *   builtin NAME
 *   zone PARENT NAME
 *   samples COUNT WEIGHT VMSTATE ZONE THREAD FUNCTION:LINE...     root first; functions and builtins count together */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/trace/writer.h"

struct gen {
        struct ls_trace_writer *w;
        uint64_t interval_ns, now_ns;
        uint32_t vm;
        char *words[20000];
        unsigned n;
};

static uint64_t num(const struct gen *g, unsigned i)
{
        return i < g->n ? strtoull(g->words[i], NULL, 0) : 0;
}

/* The bytes of a name in hex, in place of it. Returns their number. */
static size_t name_of(const struct gen *g, unsigned i)
{
        char *s = i < g->n ? g->words[i] : NULL;
        size_t n = 0;

        for (unsigned byte; s && s[0] != '-' && sscanf(s + 2 * n, "%2x", &byte) == 1; n++)
                s[n] = (char)byte;
        return n;
}

static uint32_t str(struct gen *g, unsigned i)
{
        size_t n = name_of(g, i);

        return n ? ls_trace_string(g->w, g->words[i], n) : 0;
}

static void add_function(struct gen *g)
{
        struct ls_function_def f = { .kind = LS_FUNC_LUA,
                                     .source = (uint32_t)num(g, 1),
                                     .first_line = (uint32_t)num(g, 2),
                                     .last_line = (uint32_t)num(g, 3),
                                     .hash = num(g, 4) };
        uint32_t id;

        f.flags = f.first_line ? 0 : LS_FUNCF_MAIN | LS_FUNCF_VARARG;
        id = ls_trace_function(g->w, &f);
        ls_trace_name(g->w, id, LS_NAME_GLOBAL, str(g, 5));
}

static void add_samples(struct gen *g)
{
        uint32_t stack = 0;

        for (unsigned i = 6; i < g->n; i++) {
                unsigned function = 0, line = 0;

                sscanf(g->words[i], "%u:%u", &function, &line);
                stack = ls_trace_stack(g->w, stack, ls_trace_location(g->w, function, line));
        }
        for (uint64_t i = num(g, 1); i > 0; i--) {
                g->now_ns += num(g, 2) * g->interval_ns;
                ls_trace_sample(g->w, &(struct ls_sample_row){ .event = LS_EVENT_CPU,
                                                               .vmstate = (uint8_t)num(g, 3),
                                                               .zone = (uint32_t)num(g, 4),
                                                               .thread = (uint32_t)num(g, 5),
                                                               .vm = g->vm,
                                                               .stack = stack,
                                                               .time_ns = g->now_ns,
                                                               .weight = num(g, 2) });
        }
}

static void add_info(struct gen *g)
{
        ls_trace_info_u64(g->w, g->words[1], num(g, 2));
}

static void add_text(struct gen *g)
{
        char value[4096];
        size_t n = name_of(g, 2);

        if (n >= sizeof(value))
                n = sizeof(value) - 1;
        memcpy(value, g->words[2], n);
        value[n] = '\0';
        ls_trace_info_str(g->w, g->words[1], value);
}

static void add_start(struct gen *g)
{
        g->now_ns = num(g, 1);
        ls_trace_info_u64(g->w, "start_monotonic_ns", num(g, 1));
        ls_trace_info_u64(g->w, "start_realtime_ns", num(g, 2));
        ls_trace_clocks(g->w, num(g, 1), num(g, 2), num(g, 3));
}

static void add_thread(struct gen *g)
{
        uint32_t process = ls_trace_process(g->w, 4242, ls_trace_string(g->w, "made", 4));

        ls_trace_thread(g->w, process, (uint32_t)num(g, 1), str(g, 2));
        g->vm = ls_trace_vm(g->w, process, 1, ls_trace_string(g->w, "LuaJIT 2.1", 10));
}

static void add_source(struct gen *g)
{
        ls_trace_source(g->w, &(struct ls_source_def){
                                      .name = str(g, 1), .text_hash = num(g, 2), .size = 1000 });
}

static void add_builtin(struct gen *g)
{
        ls_trace_function(g->w, &(struct ls_function_def){ .kind = LS_FUNC_BUILTIN,
                                                           .identity_name = str(g, 1) });
}

static void add_zone(struct gen *g)
{
        ls_trace_zone(g->w, (uint32_t)num(g, 1), str(g, 2));
}

static const struct { const char *word; unsigned words; void (*add)(struct gen *g);
} lines[] = {
        { "start", 4, add_start },     { "info", 3, add_info },     { "text", 3, add_text },
        { "thread", 3, add_thread },   { "source", 3, add_source }, { "function", 6, add_function },
        { "builtin", 2, add_builtin }, { "zone", 3, add_zone },     { "samples", 7, add_samples },
};

static int add_line(struct gen *g, char *line)
{
        g->n = 0;
        for (char *save, *word = strtok_r(line, " \n", &save); word && g->n < 20000;
             word = strtok_r(NULL, " \n", &save))
                g->words[g->n++] = word;
        for (size_t i = 0; g->n && i < sizeof(lines) / sizeof(lines[0]); i++) {
                if (strcmp(lines[i].word, g->words[0]) || g->n < lines[i].words)
                        continue;
                lines[i].add(g);
                return 0;
        }
        fprintf(stderr, "gen_stacks: line not understood: %.80s\n", g->n ? g->words[0] : "(empty)");
        return -EINVAL;
}

int main(int argc, char **argv)
{
        static struct gen g;
        char *line = NULL;
        size_t size = 0;
        int fd = argc == 2 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1,
            r = -EINVAL, end;

        if (fd < 0 || getline(&line, &size, stdin) < 0 ||
            sscanf(line, "interval %" SCNu64, &g.interval_ns) != 1) {
                fprintf(stderr, "usage: gen_stacks FILE < TEXT\n");
                return 129;
        }
        g.now_ns = 1000000000;
        r = ls_trace_writer_open(fd, g.interval_ns, &g.w);
        if (r)
                return 1;
        ls_trace_event(g.w, LS_EVENT_CPU, g.interval_ns);
        while (!r && getline(&line, &size, stdin) >= 0)
                r = add_line(&g, line);
        end = ls_trace_writer_close(g.w);
        free(line);
        if (r || end || close(fd)) {
                fprintf(stderr, "gen_stacks: %s: %s\n", argv[1],
                        strerror(r     ? -r
                                 : end ? -end
                                       : errno));
                return 1;
        }
        return 0;
}
