/* formats/export*.c: what callgrind's and flamegraph.pl's readers make of it, on random stacks with
 * recursion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>
#include <zlib.h>

#include "formats/export/export.h"
#include "formats/export/gzip.h"
#include "formats/export/protobuf.h"
#include "tests/unit/profile_fixture.h"

static const char *frame_text(void *ctx, uint32_t frame)
{
        const struct ls_labels *labels = ctx;

        return labels->function[frame];
}

/* What an exporter writes for a fixture; to be freed. */
static char *export(const struct ls_exporter *exporter, struct fixture *f)
{
        struct ls_export_cell *cells = ROWS(f->p.n_stacks + 1, struct ls_export_cell);
        uint32_t *frames = ROWS(f->p.n_locations, uint32_t);
        struct ls_labels *labels = NULL;
        size_t n = 0, size = 0;
        char *text = NULL;
        FILE *out = open_memstream(&text, &size);

        assert_int_equal(ls_labels_new(&f->p, 0, &labels), 0);
        for (uint32_t i = 0; i < f->p.n_locations; i++)
                frames[i] = f->p.locations[i].function;
        for (uint32_t i = 1; i < f->p.n_stacks; i++)
                if (f->self[i])
                        cells[n++] = (struct ls_export_cell){ .ticks = f->self[i], .stack = i };
        assert_int_equal(exporter->write(out, &(struct ls_export){ .profile = &f->p,
                                                                   .labels = labels,
                                                                   .cells = cells,
                                                                   .n_cells = n,
                                                                   .events = { { "cpu", 0, "ns",
                                                                                 cells, n } },
                                                                   .n_events = 1,
                                                                   .frame_of_location = frames,
                                                                   .frame_text = frame_text,
                                                                   .ctx = labels,
                                                                   .n_frames = f->p.n_functions,
                                                                   .interval_ns = 1000000,
                                                                   .event = "cpu" }),
                         0);
        fclose(out);
        ls_labels_free(labels);
        free(frames);
        free(cells);
        return text;
}

struct graph {                          /* read as callgrind_annotate reads it */
        uint64_t self[64], in[64], totals;
        int called[64];
};

static void read_graph(char *text, struct graph *g)
{
        unsigned function = 0, callee = 0, calls = 0;
        unsigned long long ticks, us;
        long line = 0, by;
        int n, file_first = 0;

        memset(g, 0, sizeof(*g));
        for (char *at = strtok(text, "\n"); at; at = strtok(NULL, "\n")) {
                if (!strncmp(at, "fl=", 3)) {
                        file_first = 1;
                } else if (sscanf(at, "fn=(%u)", &function) == 1) {
                        assert_true(file_first);        /* fl= comes before fn= */
                        assert_true(function < 64);
                        file_first = 0;
                } else if (sscanf(at, "cfn=(%u)", &callee) == 1) {
                        assert_true(callee < 64);
                } else if (!strncmp(at, "calls=", 6)) {
                        calls = 1;
                } else if (sscanf(at, "totals: %llu %llu", &ticks, &us) == 2) {
                        g->totals = ticks;
                } else if (strchr("0123456789+-*", at[0])) {
                        if (at[0] == '*') {
                                n = 1;
                        } else {
                                assert_int_equal(sscanf(at, "%ld%n", &by, &n), 1);
                                line = at[0] == '+' || at[0] == '-' ? line + by : by;
                        }
                        assert_true(line >= 0);
                        assert_int_equal(sscanf(at + n, "%llu %llu", &ticks, &us), 2);
                        assert_int_equal(us, ticks * 1000);
                        if (calls) {
                                g->in[callee] += ticks;
                                g->called[callee] = 1;
                        } else {
                                g->self[function] += ticks;
                        }
                        calls = 0;
                }
        }
}

static void callgrind(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= 60; seed++) {
                struct fixture f;
                struct graph g;
                uint64_t *want, all = 0, self[64] = { 0 };
                char *text;

                fixture_make(&f, 1 + seed % 9, 5 + (uint32_t)seed * 5, seed);
                want = fixture_totals(&f);
                for (uint32_t i = 1; i < f.p.n_stacks; i++) {
                        self[f.p.locations[f.p.stacks[i].location].function] += f.self[i];
                        all += f.self[i];
                }
                text = export(&ls_export_callgrind, &f);
                read_graph(text, &g);
                assert_int_equal(g.totals, all);
                for (uint32_t i = 1; i < f.p.n_functions; i++) {
                        assert_int_equal(g.self[i], self[i]);
                        if (g.called[i])        /* else it is only a root: its calls are not charged
                                                 * to a caller */
                                assert_int_equal(g.in[i], want[i]);
                }
                free(text);
                free(want);
                fixture_free(&f);
        }
}

/* callgrind_annotate warns about a name that is empty or blank; load(text, "@") gives such a
 * file. */
static void callgrind_names(void **state)
{
        struct fixture f;
        char *text, *save = NULL;
        unsigned names = 0;

        (void)state;
        fixture_make(&f, 3, 20, 1);
        f.p.sources[1].name = fixture_str("@ ");
        f.p.functions[1].name = fixture_str("  ");
        text = export(&ls_export_callgrind, &f);
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                const char *after = strstr(line, "=(") && strchr("cf", line[0]) ? strchr(line, ')')
                                                                                : NULL;

                if (!after || !after[1])
                        continue;
                names++;
                assert_true(after[1 + strspn(after + 1, " ")]);
        }
        assert_true(names >= 4);
        free(text);
        fixture_free(&f);
}

static void collapsed(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= 20; seed++) {
                struct fixture f;
                uint64_t all = 0, got = 0;
                char *text, *save = NULL, before[4096] = "";

                fixture_make(&f, 1 + seed % 5, 5 + (uint32_t)seed * 5, seed);
                f.p.functions[1].name = fixture_str("a;b c");
                for (uint32_t i = 1; i < f.p.n_stacks; i++)
                        all += f.self[i];
                text = export(&ls_export_collapsed, &f);
                assert_null(strstr(text, "a;b"));
                for (char *line = strtok_r(text, "\n", &save); line;
                     line = strtok_r(NULL, "\n", &save)) {
                        char *space = strrchr(line, ' ');

                        assert_non_null(space);
                        got += strtoull(space + 1, NULL, 10);
                        *space = '\0';
                        assert_string_not_equal(line, before);  /* a stack has one line */
                        snprintf(before, sizeof(before), "%s", line);
                }
                assert_int_equal(got, all);
                free(text);
                fixture_free(&f);
        }
}

/* The bytes of the examples in the description of the encoding. */
static void protobuf(void **state)
{
        static const uint8_t want[] = {
                0x08, 0x96, 0x01, 0x12, 0x07, 't',  'e',  's',  't',  'i',  'n',  'g',  0x1a,
                0x03, 0x08, 0x96, 0x01, 0x22, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05, 0x29,
                8,    7,    6,    5,    4,    3,    2,    1,    0x80, 0x01, 0x01, 0x30, 0xff,
                0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x3a, 0x00
        };
        struct ls_buf b = { 0 }, inner = { 0 };

        (void)state;
        ls_proto_u64(&b, 1, 150);
        ls_proto_bytes(&b, 2, "testing", 7);
        ls_proto_u64(&inner, 1, 150);
        ls_proto_message(&b, 3, &inner);
        assert_int_equal(inner.len, 0);
        ls_buf_varint(&inner, 3);
        ls_buf_varint(&inner, 270);
        ls_buf_varint(&inner, 86942);
        ls_proto_message(&b, 4, &inner);
        ls_proto_fixed64(&b, 5, 0x0102030405060708);
        ls_proto_u64(&b, 16, 1);
        ls_proto_u64(&b, 6, UINT64_MAX);
        ls_proto_u64(&b, 9, 0);         /* the default: not written */
        ls_proto_fixed64(&b, 9, 0);
        ls_proto_message(&b, 7, &inner);
        assert_int_equal(b.failed, 0);
        assert_int_equal(b.len, sizeof(want));
        assert_memory_equal(b.data, want, sizeof(want));
        inner.failed = 1;               /* no memory for a part is none for the whole */
        ls_proto_message(&b, 7, &inner);
        assert_int_equal(b.failed, 1);
        ls_buf_free(&b);
        ls_buf_free(&inner);
}

/* What zlib reads back, of texts that compress and that do not, in small and large pieces. */
static void gzip(void **state)
{
        enum { N = 1 << 20 };
        struct fixture f = { .random = 7 };
        uint8_t *text = malloc(N), *got = malloc(N + 1);
        FILE *out = tmpfile();
        struct ls_gzip *z;
        gzFile in;

        (void)state;
        assert_true(text && got && out);
        for (int i = 0; i < N; i++)
                text[i] = (uint8_t)(i < N / 2 ? fixture_random(&f, 256) : 'a');
        assert_int_equal(ls_gzip_end(NULL), 0);
        assert_int_equal(ls_gzip_new(out, &z), 0);
        for (size_t i = 0, n = 0; i < N; i += n) {
                n = i < 100 ? 1 : 1 + fixture_random(&f, 200000);
                n = n > N - i ? N - i : n;
                ls_gzip_write(z, text + i, n);
        }
        ls_gzip_write(z, text, 0);
        assert_int_equal(ls_gzip_end(z), 0);
        fflush(out);
        rewind(out);
        in = gzdopen(dup(fileno(out)), "rb");
        assert_non_null(in);
        assert_int_equal(gzread(in, got, N + 1), N);
        assert_memory_equal(got, text, N);
        assert_int_equal(gzclose(in), Z_OK);    /* its checksum too */
        fclose(out);
        free(text);
        free(got);
}

static void paths(void **state)
{
        (void)state;
        for (const struct ls_exporter *const *e = ls_exporters; *e; e++) {
                char path[100];

                snprintf(path, sizeof(path), "/tmp/dir.csv/x%s", (*e)->suffix);
                assert_ptr_equal(ls_exporter_of_path(path), *e);
                assert_null(ls_exporter_of_path((*e)->suffix));
        }
        assert_ptr_equal(ls_exporter_of_path("callgrind.out.1234"), &ls_export_callgrind);
        assert_ptr_equal(ls_exporter_of_path("dir/callgrind.out.csv"), &ls_export_csv);
        assert_null(ls_exporter_of_path("dir.csv/profile"));
        assert_null(ls_exporter_of_path(""));
        assert_null(ls_exporter_of_path("/"));
}

static const char *no_text(const struct ls_export *in, unsigned dim, uint32_t id)
{
        (void)in;
        (void)dim;
        (void)id;
        return NULL;
}

/* A full disk is left to whoever closes the file. */
static void pprof_full(void **state)
{
        struct fixture f;
        struct ls_labels *labels = NULL;
        struct ls_export_cell cell = { .ticks = 1, .stack = 1 };
        FILE *out = fopen("/dev/full", "w");

        (void)state;
        if (!out)
                skip();
        fixture_make(&f, 3, 20, 1);
        assert_int_equal(ls_labels_new(&f.p, 0, &labels), 0);
        assert_int_equal(ls_export_pprof.write(out,
                                               &(struct ls_export){
                                                       .profile = &f.p,
                                                       .labels = labels,
                                                       .cells = &cell,
                                                       .n_cells = 1,
                                                       .events = { { "cpu", 0, "ns", &cell, 1 } },
                                                       .n_events = 1,
                                                       .interval_ns = 1,
                                                       .event = "cpu",
                                                       .dim_text = no_text }),
                         0);
        assert_int_equal(fflush(out), EOF);
        assert_int_equal(errno, ENOSPC);
        fclose(out);
        ls_labels_free(labels);
        fixture_free(&f);
}

/* Each exporter of the table has what --help and the manual need. */
static void table(void **state)
{
        (void)state;
        for (const struct ls_exporter *const *e = ls_exporters; *e; e++) {
                assert_non_null((*e)->write);
                assert_true(*(*e)->name && *(*e)->help && (*e)->suffix[0] == '.');
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(callgrind),
                cmocka_unit_test(callgrind_names),
                cmocka_unit_test(collapsed),
                cmocka_unit_test(protobuf),
                cmocka_unit_test(gzip),
                cmocka_unit_test(paths),
                cmocka_unit_test(pprof_full),
                cmocka_unit_test(table),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
