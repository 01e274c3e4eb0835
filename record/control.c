/* Commands to a recording that runs: see control.h. */
#include "record/control.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "record/control/clients.h"
#include "record/flight.h"
#include "record/pause.h"
#include "record/rotate.h"
#include "record/session.h"
#include "record/totals.h"

static void do_enable(struct ls_session *s, struct ls_control_client *c, const char *argument)
{
        (void)argument;
        ls_pause_set(s, 0);
        ls_control_reply(c, NULL);
}

static void do_disable(struct ls_session *s, struct ls_control_client *c, const char *argument)
{
        (void)argument;
        ls_pause_set(s, 1);
        ls_control_reply(c, NULL);
}

static void do_ping(struct ls_session *s, struct ls_control_client *c, const char *argument)
{
        (void)s, (void)argument;
        ls_control_reply(c, NULL);
}

/* The file is whole when the answer comes. */
static void do_snapshot(struct ls_session *s, struct ls_control_client *c, const char *argument)
{
        int r;

        if (s->flight.out_fd >= 0) {
                r = ls_flight_write(s, argument, c->serial);
                if (r < 0)
                        ls_control_reply(c, "snapshot: %s: %s", argument ? argument : s->o->output,
                               r == -EBUSY ? "others are being written; try again" : strerror(-r));
                return;
        }
        r = ls_rotate_now(s, argument);
        if (r == -ENOTSUP)
                ls_control_reply(c, "snapshot: %s is not a file of its own", s->o->output);
        else if (r == -ESTALE)
                ls_control_reply(c, "snapshot: %s is no longer the file that is being written",
                                 s->o->output);
        else if (r < 0)
                ls_control_reply(c, "snapshot: %s: %s", argument ? argument : s->o->output,
                                 strerror(-r));
        else
                ls_control_reply(c, NULL);
}

/* What the recording costs so far, and what it lost for lack of disk space. */
static void do_cost(struct ls_session *s, struct ls_control_client *c, const char *argument)
{
        struct ls_sums sums;

        (void)argument;
        ls_totals_sums(s, &sums);
        ls_control_tell(c,
                        "agent_ns=%" PRIu64 " cpu_ns=%" PRIu64 " recorder_ns=%" PRIu64
                        " dropped_ticks=%" PRIu64,
                        sums.own_handler_ns + sums.own_hook_ns, sums.process_cpu_ns,
                        ls_totals_own_cpu(s), (uint64_t)ls_out_figures(s->out)->dropped_ticks);
}

/* Its answer comes when the trace is whole. */
static void do_stop(struct ls_session *s, struct ls_control_client *c, const char *argument)
{
        (void)argument;
        s->control.stop = 1;
        s->control.stopper = c;
}

static const struct {
        const char *name;
        int takes_argument;
        void (*run)(struct ls_session *s, struct ls_control_client *c, const char *argument);
} commands[] = {
        { "enable", 0, do_enable },
        { "disable", 0, do_disable },
        { "snapshot", 1, do_snapshot },
        { "ping", 0, do_ping },
        { "cost", 0, do_cost },
        { "stop", 0, do_stop },
};

static void run_line(void *ctx, struct ls_control_client *c)
{
        struct ls_session *s = ctx;
        char *line = c->line, *argument;
        size_t n = c->len;

        while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' '))
                n--;
        line[n] = 0;
        if (!n)
                return;
        argument = strchr(line, ' ');
        if (argument)
                *argument++ = 0;
        for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
                if (strcmp(line, commands[i].name) != 0)
                        continue;
                if (strlen(line) + (argument ? strlen(argument) + 1 : 0) != n)
                        ls_control_reply(c, "%s: there is a zero byte in the line", line);
                else if (argument && !commands[i].takes_argument)
                        ls_control_reply(c, "%s takes no argument", line);
                else
                        commands[i].run(s, c, argument);
                return;
        }
        ls_control_reply(c,
                         "no such command; there are: enable, disable, snapshot, ping, cost, stop");
}

void ls_control_handle(struct ls_session *s)
{
        ls_control_read(&s->control, run_line, s);
}
