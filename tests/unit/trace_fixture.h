/* What the trace tests share: a trace whose every sample says by its time what its name must be,
 * and files to break. */
#ifndef LS_TESTS_TRACE_FIXTURE_H
#define LS_TESTS_TRACE_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "formats/trace/chunk.h"
#include "formats/profile.h"
#include "formats/trace/record.h"
#include "formats/trace/format.h"
#include "formats/trace/writer.h"
#include "formats/trace/reader.h"

#define INTERVAL 1000000ull
#define START 5000000000ull

struct file { uint8_t *data; size_t len; };

static char trace_path[64];

/* A path for this test program's traces. */
static const char *temp_path(void)
{
        if (!trace_path[0]) {
                const char *dir = getenv("TMPDIR");

                snprintf(trace_path, sizeof(trace_path), "%.40s/lstraceXXXXXX",
                         dir && strlen(dir) < 40 ? dir : "/tmp");
                int fd = mkstemp(trace_path);

                assert_true(fd >= 0);
                close(fd);
        }
        return trace_path;
}

static inline int remove_temp(void **state)
{
        (void)state;
        if (trace_path[0])
                unlink(trace_path);
        trace_path[0] = '\0';
        return 0;
}

static inline int create_temp(void)
{
        int fd = open(temp_path(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        return fd;
}

static inline struct file load_temp(void)
{
        struct file f;
        struct stat st;
        int fd = open(temp_path(), O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(fstat(fd, &st), 0);
        f.len = (size_t)st.st_size;
        f.data = malloc(f.len + 1);
        assert_non_null(f.data);
        assert_int_equal(read(fd, f.data, f.len), (ssize_t)f.len);
        close(fd);
        return f;
}

static inline void store_temp(const void *data, size_t len)
{
        int fd = create_temp();

        assert_int_equal(write(fd, data, len), (ssize_t)len);
        close(fd);
}

static inline struct ls_profile *open_temp(void)
{
        struct ls_profile *p = NULL;
        const char *error = NULL;
        int r = ls_profile_open(temp_path(), &p, &error);

        if (r)
                print_error("%s\n", error);
        assert_int_equal(r, 0);
        return p;
}

static inline int str_is(struct ls_str s, const char *want)
{
        return s.len == strlen(want) && !memcmp(s.s, want, s.len) && s.s[s.len] == '\0';
}

/* The stack of sample number i: two frames, main and a function whose number is i / 3. Every chunk
 * so has old and new definitions. */
static inline uint32_t numbered_stack(struct ls_trace_writer *w, unsigned i)
{
        char name[32];
        int len = snprintf(name, sizeof(name), "function%u", i / 3);
        struct ls_source_def source = { .name = ls_trace_string(w, "@app.lua", 8), .size = 1 };
        struct ls_function_def f = { .kind = LS_FUNC_LUA,
                                     .source = ls_trace_source(w, &source),
                                     .first_line = i / 3 + 1,
                                     .last_line = i / 3 + 9,
                                     .hash = i / 3 };
        struct ls_function_def main_f = { .kind = LS_FUNC_PSEUDO,
                                          .identity_name = ls_trace_string(w, "main", 4) };
        uint32_t id = ls_trace_function(w, &f), root;

        ls_trace_name(w, id, LS_NAME_GLOBAL, ls_trace_string(w, name, (size_t)len));
        root = ls_trace_stack(w, 0, ls_trace_location(w, ls_trace_function(w, &main_f), 0));
        return ls_trace_stack(w, root, ls_trace_location(w, id, i / 3 + 2));
}

#define SAMPLE_WEIGHT(i) ((uint64_t)((i) % 4 + 1))

/* Adds samples [from, to), number i at START + i intervals. Returns their ticks. */
static inline uint64_t add_numbered(struct ls_trace_writer *w, unsigned from, unsigned to)
{
        uint64_t ticks = 0;

        for (unsigned i = from; i < to; i++) {
                struct ls_sample_row row = { .event = LS_EVENT_CPU,
                                             .stack = numbered_stack(w, i),
                                             .thread = 1,
                                             .weight = SAMPLE_WEIGHT(i),
                                             .time_ns = START + i * INTERVAL,
                                             .vmstate = LS_VMSTATE_INTERPRETED };

                ls_trace_sample(w, &row);
                ticks += row.weight;
        }
        return ticks;
}

/* Writes a trace of chunks sample chunks of per samples. */
static inline void write_numbered(unsigned chunks, unsigned per)
{
        struct ls_trace_writer *w;
        int fd = create_temp();

        assert_int_equal(ls_trace_writer_open(fd, INTERVAL, &w), 0);
        ls_trace_event(w, LS_EVENT_CPU, INTERVAL);
        ls_trace_thread(w, ls_trace_process(w, 7, ls_trace_string(w, "app", 3)), 7,
                        ls_trace_string(w, "app", 3));
        for (unsigned c = 0; c < chunks; c++) {
                add_numbered(w, c * per, (c + 1) * per);
                assert_int_equal(ls_trace_flush(w, START, 1), 0);
        }
        assert_int_equal(ls_trace_writer_close(w), 0);
        assert_int_equal(close(fd), 0);
}

struct seen {                   /* what check_block finds */
        const struct ls_profile *p;
        uint64_t rows, ticks, lost, wrong;
        uint8_t *sample;        /* by number: 1 = was there. May be NULL */
        unsigned n;
};

/* Each row of a numbered trace has the right weight for its time, and the right name or that of
 * lost definitions. */
static inline int check_block(void *ctx, const struct ls_sample_block *b)
{
        struct seen *s = ctx;

        for (uint32_t i = 0; i < b->n; i++) {
                uint64_t number = (b->time_ns[i] - START) / INTERVAL;
                char want[32];
                struct ls_str name;

                assert_true(b->stack[i] < s->p->n_stacks);
                assert_true(s->p->stacks[b->stack[i]].location < s->p->n_locations);
                assert_true(s->p->locations[s->p->stacks[b->stack[i]].location].function <
                            s->p->n_functions);
                name = s->p->functions[s->p->locations[s->p->stacks[b->stack[i]].location].function]
                               .name;
                snprintf(want, sizeof(want), "function%u", (unsigned)number / 3);
                s->rows++;
                s->ticks += b->weight[i];
                if (b->stack[i] == s->p->lost_stack || str_is(name, LS_LOST_NAME))
                        s->lost += b->weight[i];
                else if (!str_is(name, want) || b->weight[i] != SAMPLE_WEIGHT(number))
                        s->wrong++;
                if (s->sample && number < s->n)
                        s->sample[number]++;
        }
        return 0;
}

static inline struct seen see(struct ls_profile *p)
{
        struct seen s = { .p = p };

        assert_int_equal(ls_profile_samples(p, LS_COL_TIME, check_block, &s), 0);
        assert_int_equal(s.ticks, p->recorded_ticks);
        assert_int_equal(s.wrong, 0);
        return s;
}

static inline uint64_t ticks_of(unsigned from, unsigned to)
{
        uint64_t t = 0;

        for (unsigned i = from; i < to; i++)
                t += SAMPLE_WEIGHT(i);
        return t;
}

#endif
