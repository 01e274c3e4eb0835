/* What the recorder tells the writer, done: a function for each row of ops.def. See ops.h. */
#include "record/writer/ops.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/escape.h"
#include "formats/wire/clock.h"
#include "record/translate/counts.h"
#include "record/worker/symbols_kernel.h"
#include "record/worker/worker.h"
#include "record/writer/ask.h"
#include "record/writer/join.h"
#include "record/writer/tell.h"

/* A message as its function has it. */
struct message {
        const struct ls_out_head *head;
        const char *data;
        size_t len;
        int *fds;                       /* -1 = none: what is kept is taken out */
        uint64_t value;                 /* of the answer */
};

static uint64_t now(void)
{
        return ls_clock_ns(CLOCK_MONOTONIC);
}

static int take_fd(struct message *m)
{
        int fd = m->fds[0];

        m->fds[0] = -1;
        return fd < 0 ? -EBADF : fd;
}

static struct ls_taken *target_of(const struct ls_serve *s, uint64_t number)
{
        return number < LS_TARGETS_MAX ? s->targets[number] : NULL;
}

int ls_serve_flush(struct ls_serve *s, uint64_t now_ns, int force)
{
        int err = ls_trace_flush(s->trace, now_ns, force);

        s->figures->size = ls_trace_size(s->trace);
        s->figures->dropped = ls_trace_dropped(s->trace);
        s->figures->dropped_ticks = ls_trace_dropped_ticks(s->trace);
        if (err < 0 && !s->figures->error)
                s->figures->error = (uint32_t)-err;
        return err;
}

static int do_SETUP(struct ls_serve *s, struct message *m)
{
        if (m->len != sizeof(s->setup))
                return -EPROTO;
        memcpy(&s->setup, m->data, sizeof(s->setup));
        s->workers = ls_ask_begin(LS_OUT_FD_ASK, s->setup.servers);
        if (m->fds[0] >= 0)
                ls_kernel_symbols_from(take_fd(m));
        return s->workers ? 0 : -ENOMEM;
}

static int do_OPEN(struct ls_serve *s, struct message *m)
{
        int fd = take_fd(m);

        return fd < 0 ? fd : ls_trace_writer_open(fd, s->setup.interval_ns, &s->trace);
}

static int do_REPEAT(struct ls_serve *s, struct message *m)
{
        (void)m;
        ls_trace_writer_repeat(s->trace);
        return 0;
}

static int do_INFO_U64(struct ls_serve *s, struct message *m)
{
        ls_trace_info_u64(s->trace, m->data, m->head->arg[0]);
        return 0;
}

static int do_INFO_STR(struct ls_serve *s, struct message *m)
{
        size_t key = strlen(m->data) + 1;

        if (key < m->len)
                ls_trace_info_str(s->trace, m->data, m->data + key);
        return 0;
}

static int do_EVENT(struct ls_serve *s, struct message *m)
{
        ls_trace_event(s->trace, (enum ls_event_kind)m->head->arg[0], m->head->arg[1]);
        return 0;
}

static int do_CLOCKS(struct ls_serve *s, struct message *m)
{
        ls_trace_clocks(s->trace, m->head->arg[0], m->head->arg[1], m->head->arg[2]);
        return 0;
}

static int do_NOTICE(struct ls_serve *s, struct message *m)
{
        ls_trace_notice(s->trace, m->data);
        return 0;
}

/* From the translator. The recorder only hears that one came. */
static void marked(void *ctx, const char *name, uint32_t len)
{
        struct ls_serve *s = ctx;
        char *visible = *s->setup.mark ? ls_visible(name, len) : NULL;

        if (visible && fnmatch(s->setup.mark, visible, 0) == 0)
                s->figures->marked++;
        free(visible);
        ls_tell_mark(&s->setup, s->figures, name, len);
}

static void counted(void *ctx, struct ls_told *told, const char *name, uint32_t len, double value)
{
        struct ls_serve *s = ctx;

        ls_tell_count(&s->setup, s->figures, told, name, len, value);
}

static int do_BEGIN(struct ls_serve *s, struct message *m)
{
        uint32_t number = m->head->target;
        struct ls_translate_config tr = { .writer = s->trace,
                                          .maps = &s->maps,
                                          .interval_ns = s->setup.interval_ns,
                                          .no_source = s->setup.no_source,
                                          .alloc_interval = s->setup.alloc_interval,
                                          .alloc = s->setup.alloc,
                                          .live = s->setup.live,
                                          .wall_only = s->setup.wall_only,
                                          .native = s->setup.native,
                                          .worker = ls_workers_of(s->workers, 0, NULL),
                                          .notice = ls_ask_notice,
                                          .marked = marked,
                                          .counted = s->setup.tells[0].kind ? counted : NULL,
                                          .notice_ctx = s };
        struct ls_taken *t;
        int err;

        if (number >= LS_TARGETS_MAX || s->targets[number] || m->len != sizeof(struct ls_out_begin))
                return -EPROTO;
        t = malloc(sizeof(*t));
        if (!t)
                return -ENOMEM;
        memset(&s->figures->targets[number], 0, sizeof(s->figures->targets[number]));
        err = ls_taken_begin(t, (const struct ls_out_begin *)(const void *)m->data, &tr, m->fds,
                             &s->figures->targets[number]);
        if (err < 0) {
                free(t);
                return err;
        }
        s->targets[number] = t;
        if (number >= s->n_targets)
                s->n_targets = number + 1;
        return 0;
}

static int do_NAME(struct ls_serve *s, struct message *m)
{
        struct ls_taken *t = target_of(s, m->head->target);

        if (!t || t->process)
                return -EPROTO;
        ls_taken_name(t, m->data, strlen(m->data));
        if (t->process > s->n_processes)
                s->n_processes = t->process;
        return 0;
}

static int do_INHERIT(struct ls_serve *s, struct message *m)
{
        struct ls_taken *child = target_of(s, m->head->target),
                        *parent = target_of(s, m->head->arg[0]);

        if (child && parent)
                ls_taken_inherit(child, parent, now());
        return 0;
}

static int do_WORKER(struct ls_serve *s, struct message *m)
{
        struct ls_taken *t = target_of(s, m->head->target);

        if (t && !t->finished)
                ls_translate_worker(&t->translate,
                                    ls_workers_place(s->workers, (unsigned)m->head->arg[0],
                                                     (uint32_t)m->head->arg[1]));
        return 0;
}

/* A round over all targets. */
static int do_WORK(struct ls_serve *s, struct message *m)
{
        (void)m;
        for (unsigned i = 0; i < s->n_targets && !s->settled; i++)
                if (s->targets[i])
                        ls_taken_work(s->targets[i], now(), 1);
        return 0;
}

static int do_SECOND(struct ls_serve *s, struct message *m)
{
        (void)m;
        for (unsigned i = 0; i < s->n_targets; i++)
                if (s->targets[i])
                        ls_taken_clocks(s->targets[i], now());
        return 0;
}

static int do_FINISH(struct ls_serve *s, struct message *m)
{
        struct ls_taken *t = target_of(s, m->head->target);

        if (!t)
                return -EPROTO;
        t->ended = m->head->arg[0] == 1;
        ls_taken_finish(t, now());
        return 0;
}

static int do_EXACT(struct ls_serve *s, struct message *m)
{
        struct ls_taken *t = target_of(s, m->head->target);

        if (!t)
                return -EPROTO;
        ls_taken_exact(t, m->fds[0], (uint32_t)m->head->arg[0]);
        return 0;
}

static int do_TOTALS(struct ls_serve *s, struct message *m)
{
        const struct ls_taken *t = target_of(s, m->head->target);

        if (t && t->process && m->len == sizeof(struct ls_process_totals))
                ls_trace_process_totals(s->trace, t->process,
                                        (const struct ls_process_totals *)(const void *)m->data);
        return 0;
}

static int do_DONE(struct ls_serve *s, struct message *m)
{
        struct ls_taken *t = target_of(s, m->head->target);

        if (t) {
                ls_taken_done(t);
                s->targets[m->head->target] = NULL;
        }
        free(t);
        return 0;
}

static int do_SETTLE(struct ls_serve *s, struct message *m)
{
        (void)m;
        for (unsigned i = 0; i < s->n_targets; i++)
                if (s->targets[i])
                        ls_taken_settle(s->targets[i], now(), s->setup.native);
        s->settled = 1;
        return 0;
}

static int do_SWITCH(struct ls_serve *s, struct message *m)
{
        int fd = take_fd(m), begun = 0, err;

        if (fd < 0)
                return fd;
        err = ls_trace_writer_switch(s->trace, fd, &begun);
        m->value = (uint64_t)-begun;
        s->figures->size = ls_trace_size(s->trace);
        return err;
}

static int do_RESUME(struct ls_serve *s, struct message *m)
{
        (void)m;
        for (unsigned i = 0; i < s->n_targets; i++)
                if (s->targets[i])
                        ls_counts_restart(&s->targets[i]->translate);
        s->settled = 0;
        return 0;
}

static int do_FLUSH(struct ls_serve *s, struct message *m)
{
        (void)m;
        return ls_serve_flush(s, now(), 1);
}

/* The copy has all dictionaries; what is not in a file yet is the original's. */
static int do_COPY(struct ls_serve *s, struct message *m)
{
        static struct ls_out_figures own;
        int socket = take_fd(m);
        pid_t pid;

        if (socket < 0)
                return socket;
        ls_serve_flush(s, now(), 1);
        pid = fork();
        if (pid) {
                close(socket);
                return pid < 0 ? -errno : 0;
        }
        close(s->socket);
        ls_ask_end();
        s->socket = socket;
        s->full_fd = -1;
        s->figures = &own;
        s->settled = 1;
        return LS_SERVE_QUIET;
}

static int do_LEAVE(struct ls_serve *s, struct message *m)
{
        int fd = take_fd(m);

        s->error = fd < 0 ? fd : ls_trace_writer_leave(s->trace, fd);
        return 0;
}

static int do_PIECE(struct ls_serve *s, struct message *m)
{
        if (!s->error)
                s->error = m->fds[0] < 0 ? -EBADF : ls_serve_piece(s, m->fds[0]);
        return 0;
}

static int do_PIECES_END(struct ls_serve *s, struct message *m)
{
        (void)m;
        ls_serve_pieces_end(s);
        return 0;
}

static int do_CLOSE(struct ls_serve *s, struct message *m)
{
        int err = ls_serve_flush(s, now(), 1), closed;

        m->value = ls_trace_size(s->trace);
        closed = ls_trace_writer_close(s->trace);
        s->trace = NULL;
        return s->error ? s->error : err < 0 ? err : closed;
}

static const struct {
        int (*run)(struct ls_serve *s, struct message *m);
        int answered;
} ops[] = {
#define LS_OUT(NAME, answered) [LS_OUT_##NAME] = { do_##NAME, answered },
#include "record/writer/ops.def"
#undef LS_OUT
};

int ls_serve_answers(uint32_t op)
{
        return op < LS_OUT_NOPS && ops[op].answered;
}

int ls_serve_op(struct ls_serve *s, const struct ls_out_head *h, const char *data, size_t len,
                int fds[LS_OUT_FDS], uint64_t *ret_value)
{
        struct message m = { .head = h, .data = data, .len = len, .fds = fds };
        int err = h->op >= LS_OUT_NOPS               ? -ENOSYS
                  : !s->trace && h->op > LS_OUT_OPEN ? -EBADF
                                                     : ops[h->op].run(s, &m);

        *ret_value = m.value;
        for (unsigned i = 0; i < LS_OUT_FDS; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
        return err;
}
