/* Who is recorded next, and what follows from failures: see daemon.h. A service is tried with one
 * process first. */
#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

const char *const ls_watch_names[] = { "waiting", "starting", "recording", "ending",
                                       "refused", "off",      "lent" };

void ls_watch_state(struct ls_watched *w, enum ls_watch_state state, const char *reason)
{
        if (w->state != state || !w->since_ns)
                w->since_ns = ls_daemon_now();
        w->state = state;
        if (reason != w->reason)
                snprintf(w->reason, sizeof(w->reason), "%s", reason);
}

struct ls_serving *ls_serving(struct ls_daemon *d, const char *name)
{
        for (unsigned i = 0; i < d->n_servings; i++)
                if (!strcmp(d->servings[i].name, name))
                        return &d->servings[i];
        if (d->n_servings == LS_SERVICES_MOST + 1) {    /* of services that are in no configuration
                                                         * any more */
                memmove(d->servings, d->servings + 1, (LS_SERVICES_MOST) * sizeof(*d->servings));
                d->n_servings--;
        }
        memset(&d->servings[d->n_servings], 0, sizeof(*d->servings));
        strcpy(d->servings[d->n_servings].name, name);
        return &d->servings[d->n_servings++];
}

static unsigned count(const struct ls_daemon *d, const char *service, int starting_only)
{
        unsigned n = 0;

        for (unsigned i = 0; i < d->n_watched; i++) {
                const struct ls_watched *w = d->watched[i];

                if (w->recorder && (!service || !strcmp(w->service, service)) &&
                    (!starting_only || w->state == LS_WATCH_STARTING))
                        n++;
        }
        return n;
}

/* Why this one is not recorded now, or NULL. */
static const char *stands_against(struct ls_daemon *d, const struct ls_watched *w,
                                  struct ls_serving *s, uint64_t now)
{
        if (s->off)
                return "its service was detached";
        if (s->aside_until_ns > now)
                return "its service is put aside";
        if (w->retry_ns > now || s->retry_ns > now)
                return "it is tried again soon";
        if (ls_proc_age_ns(w->start_ticks) < LS_FIRST_NS || now - w->changed_ns < LS_FIRST_NS)
                return "it has just begun";
        if (d->full)
                return "the store's disk is full";
        if (d->pressure)
                return d->pressure;
        if (count(d, NULL, 0) >= d->config.max_targets)
                return "max-targets processes are recorded";
        if (!s->proven && count(d, w->service, 0))
                return "the first process of its service is tried";
        if (count(d, NULL, 1) >= LS_STARTING_MOST)
                return "others are attached to first";
        return NULL;
}

static void try(struct ls_daemon *d, struct ls_watched *w, uint64_t now)
{
        struct ls_serving *s = ls_serving(d, w->service);
        const char *why = stands_against(d, w, s, now);
        int error;

        if (why) {
                if (w->state != LS_WATCH_REFUSED)
                        ls_watch_state(w, LS_WATCH_WAITING, why);
                return;
        }
        error = ls_recorder_start(d, w);
        if (error) {
                char text[128];

                snprintf(text, sizeof(text), "its recorder cannot be started: %s",
                         strerror(-error));
                w->retry_ns = now + LS_REFUSED_NS;
                ls_watch_state(w, LS_WATCH_REFUSED, text);
        }
}

/* The first process was recorded for long enough: the others may be. */
static void prove(struct ls_daemon *d, const struct ls_watched *w, uint64_t now)
{
        struct ls_service spare;
        const struct ls_service *s = ls_daemon_service(d, w->service, &spare);

        if (w->state == LS_WATCH_RECORDING && now - w->since_ns >= s->canary_ns)
                ls_serving(d, w->service)->proven = 1;
}

int ls_decide_burst(struct ls_daemon *d, struct ls_watched *w)
{
        struct ls_service spare;
        unsigned n = 0;

        for (unsigned i = 0; i < d->n_watched; i++)
                n += d->watched[i]->burst_ns != 0;
        if (w->state != LS_WATCH_RECORDING || w->burst_ns || n >= LS_BURSTS_MOST)
                return -EBUSY;
        w->burst_ns = ls_daemon_service(d, w->service, &spare)->burst_ns;
        w->burst_due = 1;
        return 0;
}

static void look_at_recorder(const struct ls_daemon *d, struct ls_watched *w, uint64_t now)
{
        if (w->state == LS_WATCH_RECORDING && w->burst_due) {
                if (!ls_triggers_stop(d, w->pid))
                        ls_recorder_end(w, "it is recorded closely");
        } else if (w->state == LS_WATCH_RECORDING && w->burst_ns &&
                   now - w->since_ns > w->burst_ns) {
                w->burst_ns = 0;
                ls_recorder_end(w, "it was recorded closely");
        }
        if (w->state == LS_WATCH_STARTING && now - w->since_ns > LS_ATTACH_NS)
                ls_recorder_end(w, "it could not be attached to in time");
        if (w->state == LS_WATCH_ENDING && now - w->since_ns > LS_END_NS && !w->killed) {
                w->killed = 1;          /* the agent leaves by itself */
                kill(w->recorder, SIGKILL);
        }
}

void ls_decide(struct ls_daemon *d)
{
        uint64_t now = ls_daemon_now();

        for (unsigned i = 0; i < d->n_watched; i++) {
                struct ls_watched *w = d->watched[i];

                if (w->recorder) {
                        prove(d, w, now);
                        look_at_recorder(d, w, now);
                        if (ls_serving(d, w->service)->off)
                                ls_recorder_end(w, "detached");
                        else if (d->full)
                                ls_recorder_end(w, "the store's disk is full");
                        continue;
                }
                if (!w->off && !w->lent && !w->stale && w->there && !d->stopping)
                        try(d, w, now);
        }
}

static void fail_service(struct ls_daemon *d, struct ls_watched *w, const char *reason,
                         uint64_t now)
{
        struct ls_serving *s = ls_serving(d, w->service);

        if (now - s->failed_ns > LS_ASIDE_NS)
                s->failures = 0;
        s->failures++;
        s->failed_ns = now;
        s->retry_ns = now + LS_BACK_OFF_NS;
        snprintf(s->reason, sizeof(s->reason), "process %d: %s", (int)w->pid, reason);
        ls_daemon_say("%s: %s", w->service, s->reason);
        if (s->failures < LS_FAILURES_MOST)
                return;
        s->aside_until_ns = now + LS_ASIDE_NS;
        s->failures = 0;
        s->proven = 0;
        ls_daemon_say("%s is put aside for an hour", w->service);
        for (unsigned i = 0; i < d->n_watched; i++)
                if (!strcmp(d->watched[i]->service, w->service))
                        ls_recorder_end(d->watched[i], "its service is put aside");
}

/* The agent of a recorder that was killed leaves some seconds later; until then this is no reason
 * to wait for long. */
static void refuse(struct ls_daemon *d, struct ls_watched *w, uint64_t now)
{
        uint64_t wait = LS_REFUSED_NS << (w->refusals < 10 ? w->refusals : 10);

        if (ls_serving(d, w->service)->failed_ns + LS_LEAVES_NS > now) {
                wait = LS_BACK_OFF_NS;
                w->refusals = 0;
        }

        if (w->burst_ns)
                ls_daemon_say("process %d of %s is not recorded closely: %s", (int)w->pid,
                              w->service, *w->reason ? w->reason : "it could not be attached to");
        w->refusals++;
        w->burst_ns = 0;
        w->retry_ns = now + (wait < LS_REFUSED_MOST_NS ? wait : LS_REFUSED_MOST_NS);
        ls_watch_state(w, LS_WATCH_REFUSED, *w->reason ? w->reason : "it could not be attached to");
}

void ls_decide_ended(struct ls_daemon *d, struct ls_watched *w, int status)
{
        enum ls_watch_state before = w->state;
        uint64_t now = ls_daemon_now();
        struct ls_proc_id id;
        int lives, failed = !w->attached && WIFEXITED(status);
        char text[128];

        ls_recorder_done(d, w);
        lives = ls_proc_identify(w->pid, &id) == 0 && id.start_ticks == w->start_ticks &&
                id.state != 'Z' && id.state != 'X';
        if (!lives || before == LS_WATCH_ENDING) {
                if (!lives && w->attached)
                        ls_serving(d, w->service)->proven = 1;
                w->there = lives;
                if (w->lent)
                        ls_watch_state(w, LS_WATCH_LENT, "");
                else if (w->off)
                        ls_watch_state(w, LS_WATCH_OFF, w->reason);
                else if (!w->attached)
                        refuse(d, w, now);
                else
                        ls_watch_state(w, LS_WATCH_WAITING, w->reason);
                return;
        }
        if (failed) {
                refuse(d, w, now);
                return;
        }
        if (WIFSIGNALED(status))
                snprintf(text, sizeof(text), "its recorder was ended by signal %d",
                         WTERMSIG(status));
        else
                snprintf(text, sizeof(text), "its recorder ended with status %d",
                         WEXITSTATUS(status));
        ls_watch_state(w, LS_WATCH_WAITING, text);
        fail_service(d, w, text, now);
}
