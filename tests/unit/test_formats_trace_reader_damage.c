/* A damaged trace loses the ticks of its damaged chunks and nothing else; a cut or growing one is
 * read up to its end. */
#include "tests/unit/trace_fixture.h"
#include "formats/trace/reader.h"

#define MAX_CHUNKS 512

struct place { uint64_t offset, size; unsigned type; };

/* Chunks of a sound file. */
static unsigned find_chunks(const struct file *f, struct place *c)
{
        unsigned n = 0;

        for (size_t at = sizeof(struct ls_file_header); at < f->len; n++) {
                struct ls_chunk_header h;

                assert_true(ls_chunk_header_ok(f->data + at, f->len - at, &h));
                assert_int_equal(h.number, n);
                assert_true(n < MAX_CHUNKS);
                c[n] = (struct place){ at, ls_chunk_size(&h), h.type };
                at += ls_chunk_size(&h);
        }
        return n;
}

/* Opens the file with [at, at + 1) flipped. Every chunk but the damaged one is exact; no name is
 * wrong. Returns the ticks that are there; *ret_lost those whose stack is lost. */
static uint64_t read_flipped(const struct file *f, uint64_t at, uint8_t mask, uint64_t *ret_lost,
                             int *ret_damages)
{
        struct ls_profile *p;
        struct seen s;

        f->data[at] ^= mask;
        store_temp(f->data, f->len);
        f->data[at] ^= mask;
        p = open_temp();
        s = see(p);
        *ret_lost = s.lost;
        *ret_damages = (int)p->n_damages;
        assert_int_equal(p->interval_ns, INTERVAL);
        ls_profile_close(p);
        return s.ticks;
}

/* per samples in each of chunks chunks; every chunk flipped in its header, its list and its
 * payload. */
static void flip_all(unsigned chunks, unsigned per)
{
        static struct place c[MAX_CHUNKS];
        struct file f;
        unsigned n, samples = 0;
        uint64_t all = ticks_of(0, chunks * per);

        write_numbered(chunks, per);
        f = load_temp();
        n = find_chunks(&f, c);
        for (unsigned i = 0; i < n; i++) {
                const uint64_t at[] = { 0, 5, 7, 8, 13, 20, 25, 33, c[i].size / 2, c[i].size - 1 };
                uint64_t own = c[i].type == LS_CHUNK_SAMPLES ? ticks_of(samples, samples + per) : 0,
                         lost;
                int damages;

                for (unsigned k = 0; k < sizeof(at) / sizeof(*at); k++) {
                        assert_int_equal(read_flipped(&f, c[i].offset + at[k], 0x10, &lost,
                                                      &damages),
                                         all - own);
                        assert_int_equal(lost, 0);
                        assert_int_equal(damages, 1);
                }
                samples += c[i].type == LS_CHUNK_SAMPLES ? per : 0;
        }
        assert_int_equal(samples, chunks * per);
        free(f.data);
}

static void flipped_chunk_costs_its_ticks(void **state)
{
        (void)state;
        flip_all(5, 10);
}

/* More than one checkpoint, and definitions in every chunk. */
static void flipped_chunk_of_many(void **state)
{
        (void)state;
        flip_all(90, 7);
}

/* So many stacks that no checkpoint repeats them: a chunk that defines some costs their names, and
 * no tick. */
static void many_stacks_are_said_once(void **state)
{
        static struct place c[MAX_CHUNKS];
        uint64_t all = ticks_of(0, 8 * 3000), lost, lost_of_all = 0;
        unsigned n;
        struct file f;
        int damages;

        (void)state;
        write_numbered(8, 3000);
        f = load_temp();
        n = find_chunks(&f, c);
        for (unsigned i = 0; i < n; i++) {
                if (c[i].type == LS_CHUNK_SAMPLES)
                        continue;
                assert_int_equal(read_flipped(&f, c[i].offset + c[i].size / 2, 0x10, &lost,
                                              &damages),
                                 all);
                assert_int_equal(damages, 1);
                if (c[i].type != LS_CHUNK_DEFINITIONS)
                        assert_int_equal(lost, 0);
                assert_true(lost <= all / 7);   /* a chunk has an eighth of them */
                lost_of_all += lost;
        }
        assert_true(lost_of_all >= all * 6 / 8);
        free(f.data);
}

static void file_header_is_no_loss(void **state)
{
        struct file f;
        uint64_t lost;
        int damages;

        (void)state;
        write_numbered(3, 10);
        f = load_temp();
        for (unsigned at = 0; at < sizeof(struct ls_file_header); at++) {
                assert_int_equal(read_flipped(&f, at, 0x40, &lost, &damages), ticks_of(0, 30));
                assert_int_equal(lost, 0);
                assert_int_equal(damages, 1);
        }
        free(f.data);
}

/* Every single bit of a small trace. */
static void any_flipped_byte(void **state)
{
        struct file f;
        uint64_t lost;
        int damages;

        (void)state;
        write_numbered(2, 4);
        f = load_temp();
        for (uint64_t at = 0; at < f.len; at++) {
                uint64_t ticks = read_flipped(&f, at, (uint8_t)(1u << at % 8), &lost, &damages);

                assert_true(ticks == ticks_of(0, 8) || ticks == ticks_of(0, 4));
                assert_int_equal(lost, 0);
                assert_int_equal(damages, 1);
        }
        free(f.data);
}

static void cut_at_every_byte(void **state)
{
        static struct place c[MAX_CHUNKS];
        struct file f;
        unsigned n;

        (void)state;
        write_numbered(3, 6);
        f = load_temp();
        n = find_chunks(&f, c);
        for (size_t len = 1; len <= f.len; len++) {
                struct ls_profile *p;
                unsigned whole = 0;
                struct seen s;

                for (unsigned i = 0; i < n; i++)
                        whole += c[i].type == LS_CHUNK_SAMPLES && c[i].offset + c[i].size <= len;
                store_temp(f.data, len);
                p = open_temp();
                s = see(p);
                assert_int_equal(s.ticks, ticks_of(0, whole * 6));
                assert_int_equal(s.lost, 0);
                assert_int_equal(p->complete, len == f.len);
                ls_profile_close(p);
        }
        free(f.data);
}

static void growing_file(void **state)
{
        struct ls_trace_writer *w;
        uint64_t ticks = 0;
        int fd = create_temp();

        (void)state;
        assert_int_equal(ls_trace_writer_open(fd, INTERVAL, &w), 0);
        for (unsigned c = 0; c < 70; c++) {
                struct ls_profile *p;
                struct seen s;

                ticks += add_numbered(w, c * 5, c * 5 + 5);
                assert_int_equal(ls_trace_flush(w, START, 1), 0);
                p = open_temp();
                s = see(p);
                assert_int_equal(s.ticks, ticks);
                assert_int_equal(s.lost, 0);
                assert_int_equal(p->n_damages, 0);
                assert_false(p->complete);
                ls_profile_close(p);
        }
        assert_int_equal(ls_trace_writer_close(w), 0);
        close(fd);
}

/* Without a checkpoint the stacks of a lost definition chunk are lost, not their ticks. */
static void lost_definitions_keep_their_ticks(void **state)
{
        static struct place c[MAX_CHUNKS];
        struct file f;
        unsigned n;
        uint64_t lost;
        int damages;

        (void)state;
        write_numbered(4, 9);
        f = load_temp();
        n = find_chunks(&f, c);
        while (n > 0 && c[n - 1].type != LS_CHUNK_SAMPLES)
                n--;
        f.len = c[n - 1].offset + c[n - 1].size;
        for (unsigned i = 0; i < n; i++) {
                if (c[i].type != LS_CHUNK_DEFINITIONS)
                        continue;
                assert_int_equal(read_flipped(&f, c[i].offset + 40, 1, &lost, &damages),
                                 ticks_of(0, 36));
                assert_true(lost >= ticks_of(0, 8) / 2);
        }
        free(f.data);
}

/* A chunk taken out leaves no hole in the file; its number is missing. Bytes put in are skipped. */
static void removed_and_inserted_bytes(void **state)
{
        static struct place c[MAX_CHUNKS];
        struct ls_profile *p;
        struct file f, g;
        unsigned n;

        (void)state;
        write_numbered(3, 10);
        f = load_temp();
        n = find_chunks(&f, c);
        g.data = malloc(f.len + 100);
        assert_non_null(g.data);
        for (unsigned i = 0; i < n; i++) {
                uint64_t rest = f.len - c[i].offset - c[i].size;
                int samples = c[i].type == LS_CHUNK_SAMPLES;

                memcpy(g.data, f.data, c[i].offset);
                memcpy(g.data + c[i].offset, f.data + c[i].offset + c[i].size, rest);
                store_temp(g.data, c[i].offset + rest);
                p = open_temp();
                assert_int_equal(see(p).ticks,
                                 ticks_of(0, 30) - (samples ? p->damages[0].ticks : 0));
                assert_int_equal(p->n_damages, i + 1 < n);      /* nothing shows that the index is
                                                                 * missing */
                assert_true(!samples || p->damages[0].ticks >= ticks_of(0, 10) - 1);
                ls_profile_close(p);

                memset(g.data + c[i].offset, 0xa7, 100);
                memcpy(g.data + c[i].offset + 100, f.data + c[i].offset, f.len - c[i].offset);
                store_temp(g.data, f.len + 100);
                p = open_temp();
                assert_int_equal(see(p).ticks, ticks_of(0, 30));
                assert_int_equal(p->n_damages, 1);
                assert_int_equal(p->damages[0].offset, c[i].offset);
                assert_int_equal(p->damages[0].bytes, 100);
                ls_profile_close(p);
        }
        free(f.data);
        free(g.data);
}

static void two_traces_in_one_file(void **state)
{
        struct ls_profile *p;
        struct file f;

        (void)state;
        write_numbered(3, 10);
        f = load_temp();
        f.data = realloc(f.data, 2 * f.len);
        assert_non_null(f.data);
        memcpy(f.data + f.len, f.data, f.len);
        store_temp(f.data, 2 * f.len);
        p = open_temp();
        assert_int_equal(see(p).ticks, ticks_of(0, 30));
        assert_true(p->n_damages > 0);
        ls_profile_close(p);
        free(f.data);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(flipped_chunk_costs_its_ticks),
                cmocka_unit_test(flipped_chunk_of_many),
                cmocka_unit_test(many_stacks_are_said_once),
                cmocka_unit_test(file_header_is_no_loss),
                cmocka_unit_test(any_flipped_byte),
                cmocka_unit_test(cut_at_every_byte),
                cmocka_unit_test(growing_file),
                cmocka_unit_test(lost_definitions_keep_their_ticks),
                cmocka_unit_test(removed_and_inserted_bytes),
                cmocka_unit_test(two_traces_in_one_file),
        };

        return cmocka_run_group_tests(tests, NULL, remove_temp);
}
