/* A recording: its trace is opened, takes what comes, and is ended. See recording.h. */
#include "record/recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/control/open.h"
#include "record/flight.h"
#include "record/pause.h"
#include "record/processes.h"
#include "record/rotate.h"
#include "record/session.h"
#include "record/status.h"
#include "record/tick/perf.h"
#include "record/tick/signal.h"
#include "record/telling.h"
#include "record/totals.h"
#include "record/worker/worker.h"
#include "record/writer/tell.h"

#define SECOND_NS 1000000000ull
#define AWAY_NS (365ull * 86400 * 1000000000)

static void look_soon(void *session)
{
        struct ls_session *s = session;

        s->look_soon = 1;
}

int ls_recording_writer(struct ls_session *s)
{
        struct ls_out_config cfg = { .setup = { .interval_ns = s->o->interval_ns,
                                                .alloc_interval = s->o->alloc_interval,
                                                .alloc = (s->o->events & LS_RECORD_ALLOC) != 0,
                                                .live = (s->o->events & LS_RECORD_LIVE) != 0,
                                                .no_source = s->o->no_source != 0,
                                                .wall_only = !(s->o->events & LS_RECORD_CPU),
                                                .native = s->o->native_bytes != 0,
                                                .servers = getenv("DEBUGINFOD_URLS") != NULL },
                                     .workers = s->lent,
                                     .full_fd = s->full_fd,
                                     .notice = ls_status_notice,
                                     .look = look_soon,
                                     .ctx = s };
        int err;

        if (s->o->ring_mark)
                snprintf(cfg.setup.mark, sizeof(cfg.setup.mark), "%s", s->o->ring_mark);
        for (unsigned i = 0; i < s->o->n_tells; i++)
                ls_tell_read(s->o->tells[i], &cfg.setup.tells[i]);
        err = ls_out_start(&cfg, &s->out);
        if (err < 0)
                ls_error("cannot start the process that writes the trace: %s", strerror(-err));
        return err;
}

int ls_recording_open(struct ls_session *s)
{
        s->workers = ls_workers_new(ls_status_notice, s);
        s->lent = ls_workers_new(NULL, NULL);
        if (s->workers && s->lent && ls_control_open(&s->control, s->o->control) == 0)
                s->trace_fd = ls_trace_file_open(s->o->output, &s->trace_file);
        return s->trace_fd < 0 ? -1 : 0;
}

/* What the writer knows of the file, and of its own end. */
static void look_at_writer(struct ls_session *s)
{
        uint32_t error = ls_out_figures(s->out)->error;

        ls_out_serve(s->out);
        if (s->write_error)
                return;
        if (ls_out_is_dead(s->out))
                s->write_error = -EOWNERDEAD;
        else if (error && error < 4096)
                s->write_error = -(int)error;
}

static int open_trace(struct ls_session *s)
{
        return ls_out_tell(s->out,
                           &(struct ls_out_message){ .op = LS_OUT_OPEN, .fds = { s->trace_fd } },
                           NULL);
}

int ls_recording_timer(struct ls_session *s, pid_t pid)
{
        int asked = s->o->timer;
        int perf = asked < 0 || asked == LS_TIMER_PERF ? ls_ticker_perf_probe(pid) : -EINVAL;
        int helper = asked < 0 || asked == LS_TIMER_HELPER ? ls_ticker_helper_probe(pid) : -EINVAL;

        s->timer = perf == 0 ? LS_TIMER_PERF : helper == 0 ? LS_TIMER_HELPER : LS_TIMER_CPUTIME;
        if (asked >= 0 && asked != (int)s->timer) {
                ls_error("--timer %s: %s; leave it out for the best that works, or see: luasample "
                         "doctor",
                         ls_timer_names[asked], strerror(asked == LS_TIMER_PERF ? -perf : -helper));
                return -EPERM;
        }
        return 0;
}

/* The program's name in the trace: its command line, as of its children. */
static void name_first(struct ls_session *s, struct ls_target *t)
{
        size_t n = 0;

        for (const char **a = s->o->command; *a && n < sizeof(t->name) && (!s->o->no_args || !n);
             a++)
                n += (size_t)snprintf(t->name + n, sizeof(t->name) - n, n ? " %s" : "%s", *a);
        ls_target_name(t, t->name);
}

int ls_recording_begin(struct ls_session *s, struct ls_target *first)
{
        int err = ls_flight_begin(s);

        if (err == 0)
                err = open_trace(s);
        if (err < 0) {
                ls_error("cannot write %s: %s; give another file with -o",
                         ls_trace_file_name(s->o->output), strerror(-err));
                return err;
        }
        s->start_ns = ls_session_clock(CLOCK_MONOTONIC);
        err = ls_processes_begin(s, first, s->pid);
        if (err < 0) {
                ls_error("cannot record: %s", strerror(-err));
                return err;
        }
        name_first(s, first);
        s->recording = 1;
        s->status_ns = s->start_ns;
        s->next_second_ns = s->start_ns + SECOND_NS;
        s->next_minute_ns = s->start_ns + 60 * SECOND_NS;
        s->children = (struct ls_children){
                .notice = ls_status_say, .ctx = s, .workers = s->workers, .cwd = s->cwd,
                .is_recorded = ls_processes_has,
                .following = s->registry.fd >= 0 || (!s->launch.pid && !s->o->no_children) };
        err = ls_rotate_begin(s);
        if (err < 0)
                return err;
        ls_pause_begin(s);
        ls_totals_start(s);
        err = ls_rotate_flush(s);
        if (err < 0)
                ls_error("cannot write %s: %s; give another file with -o",
                         ls_trace_file_name(s->o->output), strerror(-err));
        return err;
}

static void each_second(struct ls_session *s, uint64_t now)
{
        s->next_second_ns = now + SECOND_NS;
        ls_totals_second(s);
        ls_workers_second(s->lent);
        ls_workers_second(s->workers);
        if (!s->exited)
                ls_children_walk(&s->children, s->pid);
        ls_status_line(s, now);
        if (now >= s->next_minute_ns) {
                s->next_minute_ns = now + 60 * SECOND_NS;
                ls_totals_clocks(s);
                ls_totals_write(s);
        }
}

void ls_recording_away(struct ls_session *s, int away)
{
        uint64_t until_ns = ls_session_clock(CLOCK_MONOTONIC) + (away ? AWAY_NS : 0);

        for (unsigned i = 0; i < s->n_targets; i++)
                atomic_store(&s->targets[i]->memory.shm->heartbeat_ns, until_ns);
}

static void look_at_children(struct ls_session *s)
{
        for (unsigned i = 0; i < s->n_targets; i++)
                ls_children_poll(&s->children, s->targets[i]->memory.shm, s->targets[i]->worker);
}

void ls_recording_work(struct ls_session *s, int at_once)
{
        uint64_t now = ls_session_clock(CLOCK_MONOTONIC);

        s->look_soon = 0;
        ls_processes_look(s, now);
        ls_pause_look(s, now);
        if (at_once)
                ls_session_tell(s, LS_OUT_WORK, 0, 0, 0);
        look_at_children(s);
        if (now >= s->next_second_ns)
                each_second(s, now);
        look_at_writer(s);
        ls_rotate_look(s, now);
        ls_flight_look(s, now);
        ls_telling_look(s, now, 0);
}

#define LOOK_NS 100000000ull            /* between two looks at what processes say of themselves */

uint64_t ls_recording_wait_ns(const struct ls_session *s, uint64_t now)
{
        uint64_t due = s->next_second_ns;

        if (s->look_soon)
                return 0;
        if (s->pause.until_ns && s->pause.until_ns < due)
                due = s->pause.until_ns;
        for (unsigned i = 0; i < s->n_targets; i++)
                if (!s->targets[i]->named && s->targets[i]->name_ns < due)
                        due = s->targets[i]->name_ns;
        if (s->n_targets && now + LOOK_NS < due)
                due = now + LOOK_NS;
        return due > now ? due - now : 0;
}

void ls_recording_end(struct ls_session *s)
{
        struct stat st;
        int err;

        s->end_ns = ls_session_clock(CLOCK_MONOTONIC);
        ls_processes_finish(s);
        ls_telling_look(s, s->end_ns, 1);
        look_at_children(s);
        if (ls_watcher_complaint(&s->targets[0]->memory))
                ls_status_say(s, ls_watcher_complaint(&s->targets[0]->memory));
        err = ls_flight_finish(s);
        if (err < 0 && !s->write_error)
                s->write_error = err;
        ls_totals_clocks(s);
        ls_totals_write(s);
        ls_rotate_flush(s);
        look_at_writer(s);
        s->dropped_chunks = ls_out_figures(s->out)->dropped;
        s->final_size = ls_out_figures(s->out)->size;
        err = ls_out_tell(s->out, &(struct ls_out_message){ .op = LS_OUT_CLOSE }, NULL);
        if (err < 0 && !s->write_error)
                s->write_error = err;
        /* With what closing added: the repeated definitions and the index. */
        if (fstat(s->trace_fd, &st) == 0 && S_ISREG(st.st_mode))
                s->final_size = (uint64_t)st.st_size;
        close(s->trace_fd);
        s->trace_fd = -1;
        s->recording = 0;
        ls_control_done(&s->control);
        ls_status_summary(s);
}
