/* What recordings cost, and what follows from that: see daemon.h. Each recorder is asked over its
 * control socket, at the end of each overhead-window; the interval of a process whose agent takes
 * too much of it doubles, and so does that of the most expensive one when all together take too
 * much of the host. A recorder is started anew for it: each trace has one interval. */
#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "formats/wire/clock.h"

#define PPM 1000000u

static void hang_up(struct ls_cost *c)
{
        if (c->fd >= 0)
                close(c->fd);
        c->fd = -1;
}

void ls_cost_forget(struct ls_watched *w)
{
        struct ls_cost keep = w->cost;

        hang_up(&keep);
        w->cost =
                (struct ls_cost){ .fd = -1, .doublings = keep.doublings, .doubled = keep.doubled };
}

static void ask(struct ls_watched *w)
{
        struct ls_cost *c = &w->cost;

        hang_up(c);
        c->fd = ls_recorder_ask(w, "cost\n");
        c->n_line = 0;
}

/* Both are the target's word, so they cannot be more than what the kernel says that it used. */
static void take_figures(struct ls_daemon *d, struct ls_cost *c, const struct ls_figures *now)
{
        if (c->known) {
                c->cpu_ns = now->cpu_ns > c->last.cpu_ns ? now->cpu_ns - c->last.cpu_ns : 0;
                c->agent_ns = now->agent_ns > c->last.agent_ns ? now->agent_ns - c->last.agent_ns
                                                               : 0;
                c->recorder_ns = now->recorder_ns > c->last.recorder_ns
                                         ? now->recorder_ns - c->last.recorder_ns
                                         : 0;
                c->fresh = 1;
        }
        if (c->agent_ns > c->cpu_ns)
                c->agent_ns = c->cpu_ns;
        if (now->dropped_ticks > c->last.dropped_ticks)
                d->dropped_ticks += now->dropped_ticks - c->last.dropped_ticks;
        c->last = *now;
        c->known = 1;
}

static void listen_to(struct ls_daemon *d, struct ls_cost *c)
{
        struct ls_figures f;
        ssize_t n = recv(c->fd, c->line + c->n_line, sizeof(c->line) - 1 - c->n_line, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        c->n_line += n > 0 ? (size_t)n : 0;
        c->line[c->n_line] = 0;
        if (n > 0 && !strchr(c->line, '\n') && c->n_line < sizeof(c->line) - 1)
                return;
        if (sscanf(c->line,
                   "ack agent_ns=%" SCNu64 " cpu_ns=%" SCNu64 " recorder_ns=%" SCNu64
                   " dropped_ticks=%" SCNu64,
                   &f.agent_ns, &f.cpu_ns, &f.recorder_ns, &f.dropped_ticks) == 4)
                take_figures(d, c, &f);
        hang_up(c);
}

static void change(struct ls_watched *w, int by, const char *reason)
{
        w->cost.doublings += (unsigned)by;
        w->cost.calm_ns = 0;
        ls_recorder_end(w, reason);
}

static int can_double(const struct ls_daemon *d, const struct ls_watched *w)
{
        struct ls_service spare;
        const struct ls_service *s = ls_daemon_service(d, w->service, &spare);

        return w->state == LS_WATCH_RECORDING && !w->burst_ns && w->cost.fresh &&
               (s->interval_ns << w->cost.doublings) < LS_INTERVAL_MOST_NS;
}

static void slow_down(struct ls_daemon *d, struct ls_watched *w, const char *reason)
{
        w->cost.doubled++;
        d->slowed++;
        change(w, 1, reason);
}

static uint64_t share_ppm(uint64_t part, uint64_t whole)
{
        return whole ? (uint64_t)((double)part * PPM / (double)whole) : 0;
}

/* The interval comes back in the steps in which it went. */
static void judge(struct ls_daemon *d, struct ls_watched *w, uint64_t now)
{
        struct ls_cost *c = &w->cost;

        if (!c->fresh)
                return;
        c->ppm = c->cpu_ns * 100 >= d->config.overhead_window_ns ? share_ppm(c->agent_ns, c->cpu_ns)
                                                                 : 0;
        if (c->ppm > d->config.overhead_ppm && can_double(d, w)) {
                slow_down(d, w, "its interval doubles: the agent takes too much of it");
        } else if (c->ppm * 2 >= d->config.overhead_ppm || d->host_ppm * 2 >= d->config.host_ppm) {
                c->calm_ns = 0;
        } else if (!c->calm_ns) {
                c->calm_ns = now;
        } else if (c->doublings && now - c->calm_ns >= d->config.overhead_calm_ns &&
                   w->state == LS_WATCH_RECORDING && !w->burst_ns) {
                d->quickened++;
                change(w, -1, "its interval returns");
        }
}

static void judge_host(struct ls_daemon *d, uint64_t now)
{
        const uint64_t processors = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN),
                       self = ls_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        struct ls_watched *most = NULL;
        uint64_t used = self - d->cost_own_ns, most_ns = 0;

        for (unsigned i = 0; i < d->n_watched; i++) {
                struct ls_watched *w = d->watched[i];
                uint64_t ns = w->cost.fresh ? w->cost.agent_ns + w->cost.recorder_ns : 0;

                used += ns;
                if (ns > most_ns && can_double(d, w)) {
                        most = w;
                        most_ns = ns;
                }
        }
        d->host_ppm = share_ppm(used, (now - d->cost_ns) * processors);
        d->cost_own_ns = self;
        if (d->host_ppm > d->config.host_ppm && most)
                slow_down(d, most,
                          "its interval doubles: all recordings take too much of the host");
}

void ls_cost(struct ls_daemon *d)
{
        uint64_t now = ls_daemon_now();

        for (unsigned i = 0; i < d->n_watched; i++)
                if (d->watched[i]->cost.fd >= 0)
                        listen_to(d, &d->watched[i]->cost);
        if (now < d->cost_ns + d->config.overhead_window_ns)
                return;
        judge_host(d, now);
        for (unsigned i = 0; i < d->n_watched; i++)
                judge(d, d->watched[i], now);
        for (unsigned i = 0; i < d->n_watched; i++) {
                d->watched[i]->cost.fresh = 0;
                if (d->watched[i]->state == LS_WATCH_RECORDING)
                        ask(d->watched[i]);
        }
        d->cost_ns = now;
}
