/* Files that lie: checksums are right, what they cover is not. Each is refused or skipped with a
 * reason. */
#include "tests/unit/memory_used.h"
#include "tests/unit/trace_fixture.h"
#include "formats/trace/reader.h"
#include "formats/trace/dump.h"
#include "formats/trace/schema.h"

static struct ls_buf file, raw, extra, body;
static uint32_t number;

static void begin(unsigned major)
{
        struct ls_file_header h = { .major = (uint16_t)major, .interval_ns = INTERVAL };

        memcpy(h.magic, LS_FILE_MAGIC, 8);
        h.check = ls_hash(&h, 24);
        file.len = raw.len = extra.len = body.len = 0;
        number = 0;
        ls_buf_add(&file, &h, sizeof(h));
}

static void chunk(unsigned type)
{
        ZSTD_CCtx *z = ZSTD_createCCtx();
        struct ls_chunk_header h = { .type = (uint8_t)type, .number = number++ };
        struct ls_buf out = { 0 };

        assert_int_equal(ls_chunk_make(&out, z, &h, &extra, &raw, NULL), 0);
        ls_buf_add(&file, out.data, out.len);
        ls_buf_free(&out);
        ZSTD_freeCCtx(z);
        raw.len = extra.len = 0;
}

static void record(unsigned kind)
{
        ls_record_end(&raw, kind, &body);
        body.len = 0;
}

/* With LS_KEEP_CASES=DIR the files stay, for tests/golden/rejected and the fuzzer's corpus. */
static void keep_case(void)
{
        static unsigned cases;
        const char *dir = getenv("LS_KEEP_CASES");
        char path[256];
        FILE *f;

        if (!dir || file.len > 65536)
                return;
        snprintf(path, sizeof(path), "%.200s/hostile-%02u.lst", dir, cases++);
        f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(file.data, 1, file.len, f), file.len);
        fclose(f);
}

static struct ls_profile *finish(void)
{
        keep_case();
        store_temp(file.data, file.len);
        return open_temp();
}

static int add_rows(void *ctx, const struct ls_sample_block *b)
{
        uint64_t *rows = ctx;

        *rows += b->n;
        for (uint32_t i = 0; i < b->n; i++)
                assert_true(b->vmstate[i] < LS_NVMSTATES);
        return 0;
}

/* Opens, streams, dumps; the one chunk with the lie is listed and gives no rows. */
static int ignore_record(void *ctx, uint64_t n, uint64_t offset, const char *kind,
                         const struct ls_dump_field *fields, unsigned n_fields)
{
        (void)ctx;
        (void)n;
        (void)offset;
        (void)kind;
        (void)fields;
        (void)n_fields;
        return 0;
}

static void expect_damage(void)
{
        struct ls_profile *p = finish();
        uint64_t rows = 0;

        assert_int_equal(ls_profile_samples(p, LS_COL_TIME, add_rows, &rows), 0);
        assert_int_equal(ls_profile_dump(p, ignore_record, NULL), 0);
        assert_int_equal(rows, 0);
        assert_int_equal(p->recorded_ticks, 0);
        assert_int_equal(p->n_damages, 1);
        ls_profile_close(p);
}

static void column(unsigned index, unsigned encoding, const char *bytes, size_t len)
{
        ls_buf_varint(&body, (index + 1) << 3 | encoding);
        if (encoding != LS_ENC_CONST)
                ls_buf_varint(&body, len);
        ls_buf_add(&body, bytes, len);
}

static void lying_records(void **state)
{
        (void)state;
        begin(1);                               /* more rows than a chunk may have */
        ls_record_begin(&body, 1, LS_MAX_ROWS + 1);
        record(LS_REC_STACK);
        chunk(LS_CHUNK_DEFINITIONS);
        expect_damage();

        begin(1);                               /* an id far beyond what the file can back */
        ls_record_begin(&body, 30000000, 1);
        record(LS_REC_STACK);
        chunk(LS_CHUNK_DEFINITIONS);
        expect_damage();

        begin(1);                               /* id 0 */
        ls_record_begin(&body, 0, 1);
        record(LS_REC_STACK);
        chunk(LS_CHUNK_DEFINITIONS);
        expect_damage();

        begin(1);                               /* strings longer than their bytes */
        ls_record_begin(&body, 1, 2);
        column(LS_C_STRING_LENGTH, LS_ENC_VARINT, "\3\4", 2);
        column(LS_C_STRING_BYTES, LS_ENC_BYTES, "abc", 3);
        record(LS_REC_STRING);
        chunk(LS_CHUNK_DEFINITIONS);
        expect_damage();

        begin(1);                               /* fewer values than rows */
        ls_record_begin(&body, 1, 5);
        column(LS_C_STACK_LOCATION, LS_ENC_VARINT, "\1\1", 2);
        record(LS_REC_STACK);
        chunk(LS_CHUNK_DEFINITIONS);
        expect_damage();

        begin(1);                               /* a record longer than the payload */
        ls_buf_add(&raw, "\x09\x7f\x01", 3);
        chunk(LS_CHUNK_DEFINITIONS);
        expect_damage();

        begin(1);                               /* a run beyond the rows */
        ls_record_begin(&body, 1, 3);
        column(LS_C_STACK_LOCATION, LS_ENC_RUNS, "\1\x7f", 2);
        record(LS_REC_STACK);
        chunk(LS_CHUNK_DEFINITIONS);
        expect_damage();
}

/* Coded columns where they may not be, too short, too long, or of too many rows. */
static void lying_codes(void **state)
{
        static const struct {
                unsigned kind, column;
                const char *bytes;
                size_t len;
                uint32_t rows;
        } bad[] = {
                { LS_REC_LOCATION, LS_C_LOCATION_LINE, "\1\1", 2, 1 },
                { LS_REC_STACK, LS_C_STACK_LOCATION, "\1\1", 2, 1 },
                { LS_REC_STACK, LS_C_STACK_PARENT, "", 0, 1 },
                { LS_REC_STACK, LS_C_STACK_PARENT, "\1", 1, 1 },
                { LS_REC_STACK, LS_C_STACK_PARENT, "\41\1", 2, 1 }, /* ids of 33 bits */
                { LS_REC_STACK, LS_C_STACK_PARENT, "\1\377\377\377", 4,
                  1 }, /* more bytes than one row needs */
                { LS_REC_STACK, LS_C_STACK_PARENT, "\40\1", 2,
                  1000 }, /* fewer than a thousand need */
                { LS_REC_STACK, LS_C_STACK_PARENT, "\0\377", 2, LS_CODED_ROWS_MAX + 1 },
        };

        (void)state;
        for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                begin(1);
                ls_record_begin(&body, 1, bad[i].rows);
                column(bad[i].column, LS_ENC_CODED, bad[i].bytes, bad[i].len);
                record(bad[i].kind);
                chunk(LS_CHUNK_DEFINITIONS);
                expect_damage();
        }
        begin(1);                               /* a second column of locations */
        ls_record_begin(&body, 1, 1);
        column(LS_C_STACK_PARENT, LS_ENC_CODED, "\1\1", 2);
        column(LS_C_STACK_LOCATION, LS_ENC_CONST, "\1", 1);
        record(LS_REC_STACK);
        chunk(LS_CHUNK_DEFINITIONS);
        expect_damage();
}

/* Any bytes as coded columns of samples: read to the end, or damage; nothing worse. */
static void random_codes(void **state)
{
        uint32_t seed = 1;

        (void)state;
        for (unsigned round = 0; round < 200; round++) {
                unsigned rows = 1 + round * 7 % 300;
                struct ls_profile *p;
                uint64_t n = 0;

                begin(1);
                ls_buf_varint(&extra, 0);
                ls_buf_varint(&extra, rows);
                ls_buf_varint(&extra, rows);
                ls_buf_varint(&extra, 0);
                ls_record_begin(&body, 0, rows);
                for (unsigned c = 1; c <= LS_C_SAMPLE_WEIGHT; c++) {
                        char bytes[64];
                        size_t len = 2 + round % 62;

                        for (size_t i = 0; i < len; i++)
                                bytes[i] = (char)((seed = seed * 1103515245 + 12345) >> 16);
                        bytes[0] &= 31;
                        column(c, LS_ENC_CODED, bytes, len);
                }
                record(LS_REC_SAMPLE);
                chunk(LS_CHUNK_SAMPLES);
                store_temp(file.data, file.len);
                p = open_temp();
                assert_int_equal(ls_profile_samples(p, LS_COL_TIME, add_rows, &n), 0);
                assert_int_equal(ls_profile_dump(p, ignore_record, NULL), 0);
                ls_profile_close(p);
        }
}

static void sample_chunk(unsigned rows, unsigned samples, unsigned sum, unsigned vmstate)
{
        ls_buf_varint(&extra, 1);
        ls_buf_varint(&extra, rows);
        ls_buf_varint(&extra, samples);
        ls_buf_varint(&extra, sum);
        ls_record_begin(&body, 0, 4);
        column(LS_C_SAMPLE_EVENT, LS_ENC_CONST, "\1", 1);
        column(LS_C_SAMPLE_WEIGHT, LS_ENC_CONST, "\3", 1);
        column(LS_C_SAMPLE_VMSTATE, LS_ENC_CONST, (char[]){ (char)vmstate }, 1);
        column(LS_C_SAMPLE_STACK, LS_ENC_VARINT, "\1\0\x70\2", 4);
        record(LS_REC_SAMPLE);
        chunk(LS_CHUNK_SAMPLES);
}

static void lying_totals(void **state)
{
        (void)state;
        begin(1);
        sample_chunk(5, 4, 12, 0);
        expect_damage();
        begin(1);
        sample_chunk(4, 4, 13, 0);
        expect_damage();
        begin(1);                               /* a VM state that is not */
        sample_chunk(4, 4, 12, 9);
        expect_damage();
        begin(1);                               /* totals that are no numbers */
        ls_buf_add(&extra, "\1\1", 2);
        chunk(LS_CHUNK_SAMPLES);
        expect_damage();
}

/* Ids without definition: the ticks stay, on the stack of lost definitions. */
static void unknown_stacks(void **state)
{
        struct ls_profile *p;
        uint64_t rows = 0;

        (void)state;
        begin(1);
        ls_record_begin(&body, 1, 3);           /* 2 says that its parent is 3, and 3 that it is
                                                 * 3 */
        column(LS_C_STACK_PARENT, LS_ENC_VARINT, "\0\3\3", 3);
        record(LS_REC_STACK);
        chunk(LS_CHUNK_DEFINITIONS);
        sample_chunk(4, 4, 12, 0);
        p = finish();
        assert_int_equal(ls_profile_samples(p, 0, add_rows, &rows), 0);
        assert_int_equal(rows, 4);
        assert_int_equal(p->recorded_ticks, 12);
        assert_int_equal(p->lost_ticks, 6);
        assert_true(
                str_is(p->functions[p->locations[p->stacks[p->lost_stack].location].function].name,
                       LS_LOST_NAME));
        for (uint32_t i = 1; i < p->n_stacks; i++)
                assert_true(p->stacks[i].parent < i);
        ls_profile_close(p);
}

/* Kinds, columns and chunk types of a newer writer are skipped. */
static void newer_parts_are_skipped(void **state)
{
        struct ls_profile *p;
        uint64_t rows = 0;

        (void)state;
        begin(1);
        ls_record_begin(&body, 1, 1);
        column(20, LS_ENC_VARINT, "\7", 1);
        column(LS_C_ZONE_PARENT, LS_ENC_CONST, "\0", 1);
        record(LS_REC_ZONE);
        ls_buf_add(&body, "anything at all", 15);
        record(200);
        chunk(LS_CHUNK_DEFINITIONS);
        ls_buf_add(&raw, "\xff\xff\xff", 3);
        chunk(99);
        sample_chunk(4, 4, 12, 0);
        p = finish();
        assert_int_equal(p->n_damages, 0);
        assert_int_equal(p->n_zones, 3);
        assert_int_equal(ls_profile_samples(p, 0, add_rows, &rows), 0);
        assert_int_equal(rows, 4);
        ls_profile_close(p);
}

static void expect_error(int error, const char *part)
{
        struct ls_profile *p = NULL;
        const char *why = NULL;

        assert_int_equal(ls_profile_open(temp_path(), &p, &why), error);
        assert_null(p);
        assert_non_null(why);
        if (!strstr(why, part))
                fail_msg("\"%s\" does not say \"%s\"", why, part);
}

static void refused_files(void **state)
{
        struct ls_profile *p;
        const char *why;
        static char other[100000];

        (void)state;
        store_temp("", 0);
        expect_error(-ENODATA, "empty");
        store_temp("#!/bin/sh\n", 10);
        expect_error(-EBADMSG, "not a luasample trace");
        store_temp(other, sizeof(other));
        expect_error(-EBADMSG, "not a luasample trace");
        begin(2);
        store_temp(file.data, file.len);
        expect_error(-EPROTONOSUPPORT, "newer");
        assert_int_equal(ls_profile_open("/", &p, &why), -EISDIR);
        assert_non_null(strstr(why, "directory"));
        assert_int_equal(ls_profile_open("/dev/zero", &p, &why),
                         -EBADMSG); /* not read to its end */
        assert_int_equal(ls_profile_open("/dev/null", &p, &why), -ENODATA);
        assert_int_equal(ls_profile_open("/nonexistent", &p, &why), -ENOENT);
        assert_non_null(strstr(why, "No such file"));
}

/* A zstd frame that grows beyond its stated size, and one that states too much. */
static void lying_sizes(void **state)
{
        static const uint8_t zeros[8 << 20];
        size_t bound = ZSTD_compressBound(sizeof(zeros)), n;
        struct ls_chunk_header h = { .magic = LS_CHUNK_MAGIC,
                                     .major = 1,
                                     .type = LS_CHUNK_DEFINITIONS,
                                     .flags = LS_CHUNKF_ZSTD };
        uint8_t *z = malloc(bound);

        (void)state;
        assert_non_null(z);
        n = ZSTD_compress(z, bound, zeros, sizeof(zeros), 1);
        assert_false(ZSTD_isError(n));
        for (int i = 0; i < 2; i++) {
                begin(1);
                h.raw_size = i ? sizeof(zeros) : 100;
                h.stored_size = (uint32_t)n;
                h.payload_check = ls_hash(z, n);
                h.check = 0;
                h.check = (uint32_t)ls_hash(&h, sizeof(h));
                ls_buf_add(&file, &h, sizeof(h));
                ls_buf_add(&file, z, n);
                expect_damage();
        }
        free(z);
}

/* 1 MB: what the chunks do not take is one of a type that readers skip. */
static void expect_little_memory(void)
{
        struct ls_profile *p;
        uint64_t seed = 1, before;

        while (file.len < 1000000) {
                for (int i = 0; i < 8192; i++) {
                        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
                        ls_buf_add(&raw, &seed, 8);
                }
                chunk(200);
        }
        before = memory_used();
        p = finish();
        if (MEASURES_MEMORY)
                assert_in_range(memory_used() - before, 0, 64u << 20);
        ls_profile_close(p);
}

static void kinds_of_rows(void (*put)(unsigned kind, uint32_t first, uint32_t count), uint32_t step,
                          uint32_t count)
{
        begin(1);
        for (unsigned kind = 1; kind < LS_KINDS; kind++) {
                if (!ls_schemas[kind].name || ls_schemas[kind].rows != LS_ROWS_DENSE ||
                    kind == LS_REC_STRING)
                        continue;
                for (uint32_t first = step;
                     first + count <= ls_schemas[kind].max && first < step * 64; first += step) {
                        put(kind, first, count);
                        chunk(LS_CHUNK_DEFINITIONS);
                }
        }
        expect_little_memory();
}

static void put_rows(unsigned kind, uint32_t first, uint32_t count)
{
        ls_record_begin(&body, first, count);
        record(kind);
}

/* Ids that are left out, and rows that are all the same: a few bytes for any number of them. */
static void a_small_file_takes_little_memory(void **state)
{
        (void)state;
        kinds_of_rows(put_rows, 200000, 1);
        kinds_of_rows(put_rows, 200000, 200000);
}

static int free_all(void **state)
{
        ls_buf_free(&file);
        ls_buf_free(&raw);
        ls_buf_free(&extra);
        ls_buf_free(&body);
        return remove_temp(state);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lying_records),
                cmocka_unit_test(lying_totals),
                cmocka_unit_test(unknown_stacks),
                cmocka_unit_test(newer_parts_are_skipped),
                cmocka_unit_test(refused_files),
                cmocka_unit_test(lying_sizes),
                cmocka_unit_test(lying_codes),
                cmocka_unit_test(random_codes),
                cmocka_unit_test(a_small_file_takes_little_memory),
        };

        return cmocka_run_group_tests(tests, NULL, free_all);
}
