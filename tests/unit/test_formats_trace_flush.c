/* A disk that fills while a trace is written: what is in the file is a valid trace, and later
 * chunks are tried. */
#include <signal.h>
#include <sys/resource.h>

#include "tests/unit/trace_fixture.h"
#include "formats/trace/reader.h"

static void limit_file(rlim_t bytes)
{
        struct rlimit l;

        assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
        l.rlim_cur = bytes < l.rlim_max ? bytes : l.rlim_max;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

/* Whatever the size that is left, down to a part of a chunk. */
static void full_at_any_size(void **state)
{
        (void)state;
        for (rlim_t room = 40; room < 3000; room += 97) {
                int fd = create_temp(), failed = 0;
                struct ls_trace_writer *w;
                struct ls_profile *p;
                uint64_t size;
                struct seen s;

                assert_int_equal(ls_trace_writer_open(fd, INTERVAL, &w), 0);
                limit_file(room);
                for (unsigned c = 0; c < 20; c++) {
                        add_numbered(w, c * 8, c * 8 + 8);
                        failed |= ls_trace_flush(w, START, 1) < 0;
                        assert_true(ls_trace_size(w) <= room);
                }
                size = ls_trace_size(w);
                assert_int_equal((off_t)size, lseek(fd, 0, SEEK_END));
                assert_true(failed && ls_trace_dropped(w) > 0);
                assert_int_equal(ls_trace_writer_close(w), -EFBIG);
                limit_file(RLIM_INFINITY);
                close(fd);
                p = open_temp();
                s = see(p);             /* a definition may be lost, a name is never wrong */
                assert_true(s.ticks < ticks_of(0, 160));
                ls_profile_close(p);
        }
}

/* Full for a while: chunks before and after are there, definitions too, and the loss is counted. */
static void full_for_a_while(void **state)
{
        int fd = create_temp();
        struct ls_trace_writer *w;
        struct ls_profile *p;
        struct seen s;

        (void)state;
        assert_int_equal(ls_trace_writer_open(fd, INTERVAL, &w), 0);
        add_numbered(w, 0, 10);
        assert_int_equal(ls_trace_flush(w, START, 1), 0);
        limit_file(ls_trace_size(w) + 20);
        add_numbered(w, 10, 20);
        assert_true(ls_trace_flush(w, START, 1) < 0);
        add_numbered(w, 20, 30);
        assert_true(ls_trace_flush(w, START, 1) < 0);
        assert_int_equal(ls_trace_dropped(w), 2);
        limit_file(RLIM_INFINITY);
        add_numbered(w, 10, 40);                /* uses definitions that could not be written */
        assert_int_equal(ls_trace_flush(w, START, 1), 0);
        assert_int_equal(ls_trace_writer_close(w), -EFBIG);
        close(fd);
        p = open_temp();
        s = see(p);
        assert_int_equal(s.ticks, ticks_of(0, 40));
        assert_int_equal(s.lost, 0);
        assert_int_equal(ls_profile_u64(p, LS_INFO_DROPPED_CHUNKS, 0), 2);
        assert_int_equal(ls_profile_u64(p, LS_INFO_DROPPED_TICKS, 0), ticks_of(10, 30));
        assert_int_equal(p->n_damages, 1);
        assert_string_equal(p->damages[0].why, "it is missing");
        ls_profile_close(p);
}

static void device_full(void **state)
{
        struct ls_trace_writer *w;
        int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

        (void)state;
        if (fd < 0)
                skip();
        assert_int_equal(ls_trace_writer_open(fd, INTERVAL, &w), -ENOSPC);
        close(fd);
}

/* A pipe whose reader is slow gets part of a chunk; the reader finds the next. */
static void part_of_a_chunk_in_a_pipe(void **state)
{
        static uint8_t all[1 << 20];
        struct ls_trace_writer *w;
        struct ls_profile *p;
        int fds[2], failed = 0;
        size_t len = 0;
        struct seen s;
        ssize_t n;

        (void)state;
        assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
        fcntl(fds[1], F_SETPIPE_SZ, 4096);
        assert_int_equal(ls_trace_writer_open(fds[1], INTERVAL, &w), 0);
        for (unsigned c = 0; c < 4; c++) {
                add_numbered(w, c * 7000, c * 7000 + 7000);
                failed += ls_trace_flush(w, START, 1) < 0;
                if (c == 1)
                        while ((n = read(fds[0], all + len, sizeof(all) - len)) > 0)
                                len += (size_t)n;
        }
        fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
        add_numbered(w, 28000, 28010);
        assert_true(ls_trace_writer_close(w) < 0);
        assert_true(failed > 0);
        while ((n = read(fds[0], all + len, sizeof(all) - len)) > 0)
                len += (size_t)n;
        close(fds[0]);
        close(fds[1]);
        store_temp(all, len);
        p = open_temp();
        s = see(p);
        assert_true(s.ticks >= ticks_of(28000, 28010) && s.ticks < ticks_of(0, 28010));
        assert_int_equal(s.lost, 0);
        assert_true(p->n_damages > 0 && p->complete);
        ls_profile_close(p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(full_at_any_size),
                cmocka_unit_test(full_for_a_while),
                cmocka_unit_test(device_full),
                cmocka_unit_test(part_of_a_chunk_in_a_pipe),
        };

        signal(SIGXFSZ, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, remove_temp);
}
