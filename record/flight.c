/* The last minute of a recording: see flight.h. */
#include "record/flight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/escape.h"
#include "record/process/descriptors.h"
#include "record/rotate.h"
#include "record/session.h"
#include "record/status.h"
#include "record/totals.h"

#define SECOND_NS 1000000000ull

/* Beside FILE: that disk has room for a trace. Without a name nothing is left of it when we are
 * killed. */
static int new_piece(const struct ls_session *s)
{
        const char *slash = strrchr(s->o->output, '/');
        char path[PATH_MAX];
        int fd, n = slash ? (int)(slash - s->o->output) + 1 : 2;

        if (snprintf(path, sizeof(path), "%.*s", n, slash ? s->o->output : "./") >=
            (int)sizeof(path))
                return -ENAMETOOLONG;
        fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd < 0 && snprintf(path + n, sizeof(path) - (size_t)n, ".luasample-XXXXXX") <
                              (int)sizeof(path) - n) {
                fd = mkostemp(path, O_CLOEXEC);
                if (fd >= 0)
                        unlink(path);
        }
        return ls_fd_above_stdio(fd < 0 ? -errno : fd);
}

int ls_flight_begin(struct ls_session *s)
{
        struct stat st;
        int fd;

        s->flight.out_fd = -1;
        if (!s->o->ring_ns)
                return 0;
        if (fstat(s->trace_fd, &st) < 0 || !S_ISREG(st.st_mode))
                return -EINVAL;
        fd = new_piece(s);
        if (fd < 0)
                return fd;
        s->flight.out_fd = s->trace_fd;
        s->trace_fd = fd;
        return 0;
}

static void forget_old(struct ls_flight *f, uint64_t since_ns)
{
        unsigned gone = 0;

        while (gone < f->n && f->pieces[gone].end_ns < since_ns)
                close(f->pieces[gone++].fd);
        f->n -= gone;
        memmove(f->pieces, f->pieces + gone, f->n * sizeof(*f->pieces));
}

/* What there is from the last piece on is one, too; the trace goes on in fd, which is taken, or is
 * -errno. */
static int end_piece(struct ls_session *s, int fd)
{
        struct ls_flight *f = &s->flight;
        struct ls_flight_piece p = { .begin_ns = s->rotate.begin_ns, .before = s->rotate.before,
                                     .enabled_before_ns = s->rotate.enabled_before_ns,
                                     .recorder_before_ns = s->rotate.recorder_before_ns };

        if (fd < 0)
                return fd;
        forget_old(f, s->rotate.begin_ns > s->o->ring_ns ? s->rotate.begin_ns - s->o->ring_ns : 0);
        if (f->n == LS_FLIGHT_MOST) {
                close(fd);
                return -EBUSY;
        }
        ls_rotate_to(s, fd, &p.fd);
        p.end_ns = s->rotate.begin_ns;
        f->pieces[f->n++] = p;
        return 0;
}

static int next_piece(struct ls_session *s)
{
        return end_piece(s, new_piece(s));
}

/* After the end nothing comes any more: so that needs no room beside FILE, whose directory may be
 * gone. */
static int last_piece(struct ls_session *s)
{
        int fd = memfd_create("luasample", MFD_CLOEXEC);

        return end_piece(s, ls_fd_above_stdio(fd < 0 ? -errno : fd));
}

/* All pieces become one file, which the writer of this session goes on with; its totals are those
 * from the first piece on. What goes wrong is known when it is closed. */
static void join_pieces(struct ls_session *s, int fd)
{
        struct ls_flight *f = &s->flight;

        ls_out_tell(s->out, &(struct ls_out_message){ .op = LS_OUT_LEAVE, .fds = { fd } }, NULL);
        for (unsigned i = 0; i < f->n; i++)
                ls_out_tell(s->out,
                            &(struct ls_out_message){ .op = LS_OUT_PIECE,
                                                      .fds = { f->pieces[i].fd } },
                            NULL);
        f->sums = s->rotate.before;
        s->end_ns = f->pieces[f->n - 1].end_ns;
        s->rotate.begin_ns = f->pieces[0].begin_ns;
        s->rotate.before = f->pieces[0].before;
        s->rotate.enabled_before_ns = f->pieces[0].enabled_before_ns;
        s->rotate.recorder_before_ns = f->pieces[0].recorder_before_ns;
        f->joined = 1;
        f->recorder_ns = ls_totals_own_cpu(s);
        ls_totals_start(s);
        ls_session_tell(s, LS_OUT_PIECES_END, 0, 0, 0);
}

static int open_numbered(struct ls_session *s, char path[PATH_MAX])
{
        int fd = -1;

        errno = EEXIST;
        while (fd < 0 && errno == EEXIST) {
                if (snprintf(path, PATH_MAX, "%s.%u", s->o->output, ++s->flight.number) >= PATH_MAX)
                        return -ENAMETOOLONG;
                fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        }
        return fd < 0 ? -errno : fd;
}

static int open_named(const char *name, char path[PATH_MAX])
{
        int fd;

        if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
                return -ENAMETOOLONG;
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        return fd < 0 ? -errno : fd;
}

/* A copy of the writer does it: neither the writer nor we must be away for as long as that takes.
 * It has the pieces as they are now, and we go on with the session as it was. */
static int start_copy(struct ls_session *s, int fd)
{
        static struct ls_session then;

        s->flight.copy = ls_out_copy(s->out);
        if (!s->flight.copy)
                return -errno;
        s->flight.recorder_ns = ls_totals_own_cpu(s);
        then = *s;
        then.out = s->flight.copy;
        join_pieces(&then, fd);
        ls_totals_write(&then);
        ls_session_tell(&then, LS_OUT_CLOSE, 0, 0, 0);
        return 0;
}

int ls_flight_write(struct ls_session *s, const char *name, unsigned client)
{
        struct ls_flight *f = &s->flight;
        int fd, r;

        if (f->copy || f->n > LS_FLIGHT_MOST - LS_FLIGHT_PIECES - 2)
                return -EBUSY;
        fd = name ? open_named(name, f->path) : open_numbered(s, f->path);
        if (fd < 0)
                return fd;
        fd = ls_fd_above_stdio(fd);
        r = fd < 0 ? fd : next_piece(s);
        if (r == 0)
                r = start_copy(s, fd);
        if (fd >= 0)
                close(fd);
        if (r < 0) {
                unlink(f->path);
                return r;
        }
        f->asker = client;
        return 0;
}

/* err: an errno, 0 = it is written. */
static void copy_ended(struct ls_session *s, int err)
{
        struct ls_flight *f = &s->flight;

        ls_out_end(f->copy);
        f->copy = NULL;
        if (f->asker)
                ls_control_answer(&s->control, f->asker, err ? "snapshot: %s: %s" : NULL, f->path,
                                  strerror(err));
        f->asker = 0;
        if (err) {
                unlink(f->path);
                ls_error("cannot write %s: %s; the recording goes on", f->path, strerror(err));
        } else if (!s->o->quiet) {
                ls_status_clear(s);
                fputs("[ luasample: wrote ", stderr);
                ls_put_visible(stderr, f->path);
                fputs(" ]\n", stderr);
        }
}

static void look_at_copy(struct ls_session *s, int wait)
{
        int err;

        if (s->flight.copy && ls_out_has_closed(s->flight.copy, wait, &err))
                copy_ended(s, -err);
}

/* Once a second: whether the program has passed --last-on-cpu, from below. */
static int has_become_busy(struct ls_session *s, uint64_t now_ns)
{
        struct ls_flight *f = &s->flight;
        uint64_t passed = now_ns - f->cpu_at_ns, cpu;
        struct ls_sums sums;
        int was = f->busy;

        if (!s->o->ring_cpu || passed < SECOND_NS)
                return 0;
        ls_totals_sums(s, &sums);
        cpu = sums.process_cpu_ns > f->cpu_ns ? sums.process_cpu_ns - f->cpu_ns : 0;
        f->busy = f->cpu_at_ns && cpu > passed / 100 * s->o->ring_cpu;
        f->cpu_ns = sums.process_cpu_ns;
        f->cpu_at_ns = now_ns;
        return f->busy && !was;
}

/* Of marks without end one is answered each time that the ring has filled anew: so each is in a
 * file, and none is filled twice. */
static int has_been_marked(struct ls_session *s, uint64_t now_ns)
{
        struct ls_flight *f = &s->flight;
        uint32_t marks = ls_out_figures(s->out)->marked;

        if (marks == f->marks || (f->marked_ns && now_ns - f->marked_ns < s->o->ring_ns))
                return 0;
        f->marks = marks;
        f->marked_ns = now_ns;
        return 1;
}

void ls_flight_look(struct ls_session *s, uint64_t now_ns)
{
        struct ls_flight *f = &s->flight;

        if (f->out_fd < 0)
                return;
        look_at_copy(s, 0);
        if (has_become_busy(s, now_ns) || has_been_marked(s, now_ns))
                f->asked = 1;
        if (f->asked && !f->copy) {
                int r = ls_flight_write(s, NULL, 0);

                f->asked = 0;
                if (r < 0)
                        ls_error("cannot write the last %.0f s: %s", (double)s->o->ring_ns / 1e9,
                                 strerror(-r));
        }
        if (now_ns - s->rotate.begin_ns >= s->o->ring_ns / LS_FLIGHT_PIECES)
                next_piece(s);
}

int ls_flight_finish(struct ls_session *s)
{
        struct ls_flight *f = &s->flight;
        int r;

        if (f->out_fd < 0)
                return 0;
        look_at_copy(s, 1);
        r = last_piece(s);
        if (r == 0) {
                close(s->trace_fd);
                s->trace_fd = f->out_fd;
                f->out_fd = -1;
                join_pieces(s, s->trace_fd);
        }
        s->end_ns = s->end_ns ? s->end_ns : ls_session_clock(CLOCK_MONOTONIC);
        return r;
}

void ls_flight_done(struct ls_session *s)
{
        ls_out_end(s->flight.copy);
        s->flight.copy = NULL;
        forget_old(&s->flight, UINT64_MAX);
        if (s->flight.out_fd >= 0)
                close(s->flight.out_fd);
        s->flight.out_fd = -1;
}
