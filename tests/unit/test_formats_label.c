/* formats/escape.c and formats/label.c: what is shown is safe, readable and unique. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "formats/escape.h"
#include "formats/label.h"
#include "tests/unit/profile_fixture.h"

static void visible(void **state)
{
        static const struct { const char *raw; size_t n; const char *shown; } rows[] = {
                { "plain", 5, "plain" },
                { "", 0, "" },
                { "a\nb\tc\rd", 7, "a\\nb\\tc\\rd" },
                { "\033[31m", 5, "\\x1b[31m" },
                { "z\0z", 3, "z\\x00z" },
                { "\x7f", 1, "\\x7f" },
                { "\xc3\xa9", 2, "\xc3\xa9" },                  /* e with acute accent */
                { "\xe2\x82\xac", 3, "\xe2\x82\xac" },          /* euro */
                { "\xf0\x9f\x98\x80", 4, "\xf0\x9f\x98\x80" },
                { "\xff", 1, "\\xff" },
                { "\xc3", 1, "\\xc3" },                         /* cut short */
                { "\xc0\x80", 2, "\\xc0\\x80" },                /* overlong */
                { "\xed\xa0\x80", 3, "\\xed\\xa0\\x80" },       /* surrogate */
                { "\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80" },
                { "\xc2\x9b", 2, "\\u009b" },                   /* C1: a terminal obeys it */
                { "\xe2\x80\xae", 3, "\\u202e" },               /* turns the direction of text */
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                char *got = ls_visible(rows[i].raw, rows[i].n);

                assert_string_equal(got, rows[i].shown);
                free(got);
        }
        assert_int_equal(ls_fit("abcdef", 3), 3);
        assert_int_equal(ls_fit("abc", 9), 3);
        assert_int_equal(ls_text_columns("abc\xc3\xa9"), 4);
}

/* Every string of up to 3 bytes out of the interesting ones becomes valid UTF-8 without control
 * characters. */
static void visible_is_safe(void **state)
{
        static const unsigned char bytes[] = { 'a',  0x1b, 0x7f, 0x80, 0xbf, 0xc2,
                                               0xe2, 0xed, 0xf0, 0xf4, 0xff, 0 };
        const unsigned n = sizeof(bytes);

        (void)state;
        for (unsigned i = 0; i < n * n * n * n; i++) {
                char raw[4] = { (char)bytes[i % n], (char)bytes[i / n % n],
                                (char)bytes[i / n / n % n], (char)bytes[i / n / n / n] };
                char *got = ls_visible(raw, 4);

                for (size_t at = 0, len; got[at]; at += len) {
                        uint32_t c = 0;

                        len = ls_utf8_decode(got + at, strlen(got + at), &c);
                        assert_true(len > 0);
                        assert_true(c >= 0x20 && c != 0x7f && !(c >= 0x80 && c < 0xa0));
                }
                free(got);
        }
}

static struct ls_source file(const char *name)
{
        return (struct ls_source){ .name = fixture_str(name),
                                   .path = fixture_str(""),
                                   .text = fixture_str("") };
}

static void sources(void **state)
{
        static const struct { const char *name, *shown, *full; } rows[] = {
                { "@a/x/init.lua", "a/x/init.lua", "a/x/init.lua" },
                { "@b/x/init.lua", "b/x/init.lua", "b/x/init.lua" },
                { "@b/y/init.lua", "y/init.lua", "b/y/init.lua" },
                { "@lib/only.lua", "only.lua", "lib/only.lua" },
                { "@same.lua", "same.lua", "same.lua" },
                { "@same.lua", "same.lua#2", "same.lua#2" },
                { "=stdin", "stdin", "stdin" },
                { "return 1", "[string \"return 1\"]", "[string \"return 1\"]" },
                { "first\nsecond", "[string \"first...\"]", "[string \"first...\"]" },
                { "\033LJ\002", "[bytecode]", "[bytecode]" },
                { "@/", "/", "/" },
                { "@", "", "" },
        };
        struct fixture f;
        enum { N = sizeof(rows) / sizeof(rows[0]) };

        (void)state;
        fixture_make(&f, 2, 5, 1);
        free(f.p.sources);
        f.p.sources = ROWS(N + 1, struct ls_source);
        f.p.n_sources = N + 1;
        f.p.sources[0] = file("");
        for (unsigned i = 0; i < N; i++)
                f.p.sources[i + 1] = file(rows[i].name);
        for (int full = 0; full < 2; full++) {
                struct ls_labels *l = NULL;

                assert_int_equal(ls_labels_new(&f.p, full, &l), 0);
                for (unsigned i = 0; i < N; i++)
                        assert_string_equal(l->source[i + 1], full ? rows[i].full : rows[i].shown);
                ls_labels_free(l);
        }
        fixture_free(&f);
}

static void functions(void **state)
{
        struct fixture f;
        struct ls_labels *l = NULL;
        struct ls_function *fn;

        (void)state;
        fixture_make(&f, 9, 5, 1);
        fn = f.p.functions;
        free(f.p.mappings);
        f.p.mappings = ROWS(2, struct ls_mapping);
        f.p.n_mappings = 2;
        f.p.mappings[0].path = fixture_str("");
        f.p.mappings[1].path = fixture_str("/usr/lib/lpeg.so");
        fn[1].flags = LS_FUNCF_MAIN;
        fn[2].name = fixture_str("");
        fn[3].name = fn[4].name = fixture_str("twin");
        fn[4].first_line = fn[5].first_line = 40;
        fn[5].name = fixture_str("twin");
        fn[6] = (struct ls_function){
                .kind = LS_FUNC_C, .mapping = 1, .offset = 0x12, .name = fixture_str("")
        };
        fn[7] = (struct ls_function){ .kind = LS_FUNC_C, .offset = 0x12, .name = fixture_str("") };
        fn[8] = (struct ls_function){ .kind = LS_FUNC_BUILTIN,
                                      .name = fixture_str("string.format") };
        fn[9] = (struct ls_function){ .kind = LS_FUNC_C,
                                      .mapping = 1,
                                      .name = fixture_str("lpeg.match") };
        assert_int_equal(ls_labels_new(&f.p, 0, &l), 0);
        assert_string_equal(l->function[1], "main chunk@app.lua");
        assert_string_equal(l->function[2], "function@app.lua:20");
        assert_string_equal(l->function[3], "twin@app.lua:30");
        assert_string_equal(l->function[4], "twin@app.lua:40");
        assert_string_equal(l->function[5], "twin@app.lua:40#2");
        assert_string_equal(l->function[6], "lpeg.so+0x12");
        assert_string_equal(l->function[7], "[unknown module]+0x12");
        assert_string_equal(l->function[8], "string.format");
        assert_string_equal(l->function[9], "lpeg.match");
        ls_labels_free(l);
        fixture_free(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(visible),
                cmocka_unit_test(visible_is_safe),
                cmocka_unit_test(sources),
                cmocka_unit_test(functions),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
