/* One trace in several files: see rotate.h. */
#include "record/rotate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/pause.h"
#include "record/session.h"
#include "record/status.h"
#include "record/totals.h"

int ls_rotate_flush(struct ls_session *s)
{
        int err = ls_out_tell(s->out, &(struct ls_out_message){ .op = LS_OUT_FLUSH }, NULL);

        if (err < 0 && !s->write_error)
                s->write_error = err;
        return err;
}

int ls_rotate_begin(struct ls_session *s)
{
        struct ls_rotate *r = &s->rotate;
        struct stat st;
        int wanted = s->o->switch_bytes || s->o->switch_ns;

        r->begin_ns = s->start_ns;
        r->possible = (wanted || s->o->control) && strcmp(s->o->output, LS_TRACE_STDOUT) != 0 &&
                      fstat(s->trace_fd, &st) == 0 && S_ISREG(st.st_mode);
        if (wanted && !r->possible) {
                ls_error("--switch-output: %s is not a file of its own; name one with -o",
                         s->o->output);
                return -EINVAL;
        }
        if (s->o->keep && !(r->kept = calloc(s->o->keep, sizeof(*r->kept))))
                return -ENOMEM;
        if (s->o->ring_ns)
                r->possible = 0;        /* flight.c does it */
        if (r->possible || s->o->ring_ns)
                ls_session_tell(s, LS_OUT_REPEAT, 0, 0, 0);
        return 0;
}

void ls_rotate_done(struct ls_session *s)
{
        free(s->rotate.kept);
        s->rotate.kept = NULL;
}

/* Whether FILE is what is being written: somebody may have moved it away. */
static int is_there(const struct ls_session *s)
{
        struct stat a, b;

        return fstat(s->trace_fd, &a) == 0 && lstat(s->o->output, &b) == 0 &&
               a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Never onto another file. */
static int move(const char *from, const char *to)
{
        if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
                return 0;
        if (errno != EINVAL)
                return -errno;
        if (access(to, F_OK) == 0)      /* a file system that cannot do that */
                return -EEXIST;
        return rename(from, to) < 0 ? -errno : 0;
}

/* The next number that no file has, of this recording or of another one. */
static int move_to_number(struct ls_session *s, char path[PATH_MAX])
{
        int r = -EEXIST;

        for (uint32_t n = s->rotate.number + 1; r == -EEXIST && n < UINT32_MAX; n++) {
                if (snprintf(path, PATH_MAX, "%s.%u", s->o->output, n) >= PATH_MAX)
                        return -ENAMETOOLONG;
                r = move(s->o->output, path);
                if (!r)
                        s->rotate.number = n;
        }
        return r;
}

static void keep(struct ls_session *s)
{
        struct ls_rotate *r = &s->rotate;
        char path[PATH_MAX];

        if (!s->o->keep)
                return;
        if (r->n_kept == s->o->keep) {
                if (snprintf(path, sizeof(path), "%s.%u", s->o->output, r->kept[0]) <
                    (int)sizeof(path))
                        unlink(path);
                memmove(r->kept, r->kept + 1, --r->n_kept * sizeof(*r->kept));
        }
        r->kept[r->n_kept++] = r->number;
}

/* All that came until now, and the totals of this file. */
static void finish_file(struct ls_session *s)
{
        ls_session_tell(s, LS_OUT_SETTLE, 0, 0, 0);
        for (unsigned i = 0; i < s->n_targets; i++) {
                ls_target_second(s->targets[i]);
                ls_target_hold(s->targets[i], 1);       /* what comes now is the next file's, to the
                                                         * last tick */
        }
        s->end_ns = ls_session_clock(CLOCK_MONOTONIC);
        ls_totals_clocks(s);
        ls_totals_write(s);
}

static void remember_sums(struct ls_session *s)
{
        struct ls_rotate *r = &s->rotate;

        r->begin_ns = s->end_ns;
        r->enabled_before_ns = ls_pause_enabled_ns(s);
        r->recorder_before_ns = ls_totals_own_cpu(s);
        ls_totals_sums(s, &r->before);
        for (unsigned i = 0; i < s->n_targets; i++) {
                s->targets[i]->before = s->targets[i]->held;
                ls_target_hold(s->targets[i], 0);
        }
        ls_session_tell(s, LS_OUT_RESUME, 0, 0, 0);
        memset(s->lost_written, 0, sizeof(s->lost_written));
        s->runtime_written = 0;
        s->end_ns = 0;
}

int ls_rotate_to(struct ls_session *s, int fd, int *ret_old)
{
        struct ls_out_reply reply = { .error = 0 };
        int begun, r;

        finish_file(s);
        r = ls_out_tell(s->out, &(struct ls_out_message){ .op = LS_OUT_SWITCH, .fds = { fd } },
                        &reply);
        begun = reply.value < 4096 ? -(int)reply.value : -EIO;
        if (r < 0 && !s->write_error)
                s->write_error = r;
        *ret_old = s->trace_fd;
        s->trace_fd = fd;
        remember_sums(s);
        if (begun == 0) {
                ls_totals_start(s);
                begun = ls_rotate_flush(s);
        }
        if (begun < 0 && !s->write_error)
                s->write_error = begun;
        return r;
}

int ls_rotate_now(struct ls_session *s, const char *path)
{
        char numbered[PATH_MAX];
        int r, fd, old;

        if (!s->rotate.possible)
                return -ENOTSUP;
        if (!is_there(s))
                return -ESTALE;
        r = path ? move(s->o->output, path) : move_to_number(s, numbered);
        if (r < 0)
                return r;
        fd = ls_trace_file_open(s->o->output, &s->trace_file);
        if (fd < 0) {
                move(path ? path : numbered, s->o->output);
                return fd;
        }
        r = ls_rotate_to(s, fd, &old);
        close(old);
        s->rotate.files++;
        if (!path)
                keep(s);
        return r;
}

void ls_rotate_look(struct ls_session *s, uint64_t now_ns)
{
        const struct ls_record_options *o = s->o;
        char text[160];
        int r;

        if (!s->rotate.possible ||
            ((!o->switch_bytes || ls_out_figures(s->out)->size < o->switch_bytes) &&
             (!o->switch_ns || now_ns - s->rotate.begin_ns < o->switch_ns)))
                return;
        r = ls_rotate_now(s, NULL);
        if (r == 0 || s->write_error)
                return;
        s->rotate.possible = 0;
        snprintf(text, sizeof(text),
                 "--switch-output: no further file could be begun (%s): the rest is in this one",
                 strerror(-r));
        ls_status_say(s, text);
}
