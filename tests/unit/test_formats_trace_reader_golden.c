/* The golden traces, which no change of the format may break: their text is compared with the file
 * beside each. Arguments: the directory of the golden traces. LS_UPDATE=1 rewrites the text, for
 * review. */
#include "tests/unit/trace_fixture.h"
#include "formats/trace/reader.h"
#include "formats/trace/dump.h"
#include "formats/trace/schema.h"

static const char *dir;

static int print_record(void *ctx, uint64_t chunk, uint64_t offset, const char *kind,
                        const struct ls_dump_field *fields, unsigned n)
{
        FILE *out = ctx;

        (void)offset;
        fprintf(out, "%llu %s", (unsigned long long)chunk, kind);
        for (unsigned i = 0; i < n; i++) {
                fprintf(out, " %s=", fields[i].key);
                if (fields[i].is_u64)
                        fprintf(out, "%llu", (unsigned long long)fields[i].u64);
                for (uint32_t k = 0; !fields[i].is_u64 && k < fields[i].str.len; k++)
                        fprintf(out,
                                fields[i].str.s[k] >= ' ' && fields[i].str.s[k] < 127 ? "%c"
                                                                                      : "\\x%02x",
                                (unsigned char)fields[i].str.s[k]);
        }
        return fputc('\n', out) == EOF;
}

static struct ls_profile *open_golden(const char *name)
{
        struct ls_profile *p;
        const char *error = NULL;
        char path[512];

        snprintf(path, sizeof(path), "%s/%s.lst", dir, name);
        if (ls_profile_open(path, &p, &error))
                fail_msg("%s: %s", path, error);
        return p;
}

static void compare_text(const char *name)
{
        struct ls_profile *p = open_golden(name);
        char path[512], *text = NULL, *want;
        size_t len = 0, n;
        FILE *out = open_memstream(&text, &len), *f;

        assert_non_null(out);
        assert_int_equal(ls_profile_dump(p, print_record, out), 0);
        fclose(out);
        ls_profile_close(p);
        snprintf(path, sizeof(path), "%s/%s.txt", dir, name);
        if (getenv("LS_UPDATE")) {
                f = fopen(path, "w");
                assert_non_null(f);
                assert_int_equal(fwrite(text, 1, len, f), len);
                fclose(f);
        }
        f = fopen(path, "r");
        assert_non_null(f);
        want = calloc(1, len + 2);
        n = fread(want, 1, len + 1, f);
        fclose(f);
        assert_int_equal(n, len);
        assert_string_equal(text, want);
        free(text);
        free(want);
}

static void text_is_the_same(void **state)
{
        (void)state;
        compare_text("every-kind");
        compare_text("coded");
        compare_text("jit");
}

static int mark_kind(void *ctx, uint64_t chunk, uint64_t offset, const char *kind,
                     const struct ls_dump_field *fields, unsigned n)
{
        int *seen = ctx;

        (void)chunk;
        (void)offset;
        (void)fields;
        (void)n;
        for (unsigned k = 0; k < LS_KINDS; k++)
                if (ls_schemas[k].name && !strcmp(ls_schemas[k].name, kind))
                        seen[k]++;
        seen[LS_KINDS] += !strcmp(kind, "unknown");
        return 0;
}

/* All kinds of the table are in one of the files: a new kind needs a new golden trace. */
static void every_kind_is_there(void **state)
{
        struct ls_profile *p = open_golden("every-kind"), *jit = open_golden("jit");
        int seen[LS_KINDS + 1] = { 0 };

        (void)state;
        assert_int_equal(ls_profile_dump(p, mark_kind, seen), 0);
        assert_int_equal(ls_profile_dump(jit, mark_kind, seen), 0);
        ls_profile_close(jit);
        for (unsigned k = 0; k < LS_KINDS; k++)
                if (ls_schemas[k].name && !seen[k])
                        fail_msg("no record of kind %s", ls_schemas[k].name);
        assert_true(seen[LS_KINDS] > 0);
        ls_profile_close(p);
}

static void sums_of_all_events(void **state)
{
        static const struct { uint32_t id; const char *name; uint64_t rows, sum;
        } want[] = { { LS_EVENT_CPU, "cpu", 11, 18 },
                     { LS_EVENT_CALLS, "calls", 1, 41 },
                     { LS_EVENT_LINES, "lines", 1, 1000 },
                     { LS_EVENT_JIT, "", 2, 1 },
                     { 200, "", 1, 12345 } };
        struct ls_profile *p = open_golden("every-kind");

        (void)state;
        assert_int_equal(p->n_damages, 0);
        assert_true(p->complete);
        assert_int_equal(p->n_events, sizeof(want) / sizeof(*want));
        for (unsigned i = 0; i < p->n_events; i++) {
                assert_int_equal(p->events[i].id, want[i].id);
                assert_true(str_is(p->events[i].name, want[i].name));
                assert_int_equal(p->events[i].rows, want[i].rows);
                assert_int_equal(p->events[i].sum, want[i].sum);
        }
        assert_int_equal(p->recorded_samples, 10);
        assert_true(str_is(p->zones[3].name, "new"));
        ls_profile_close(p);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(text_is_the_same),
                cmocka_unit_test(every_kind_is_there),
                cmocka_unit_test(sums_of_all_events),
        };

        if (argc != 2) {
                fprintf(stderr, "usage: test_trace_golden DIRECTORY\n");
                return 129;
        }
        dir = argv[1];
        return cmocka_run_group_tests(tests, NULL, remove_temp);
}
