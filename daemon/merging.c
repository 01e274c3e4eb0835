/* Chunks of a time that is over become one: see daemon.h and store/tier.c. A child reads them
 * (`luasample store merge`) and writes what comes of it beside the store; we commit that, when the
 * chunks are still those that it was told of, and remove them then. */
#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/command.h"
#include "formats/escape.h"
#include "record/worker/apart.h"

/* A sink is in the middle of it: to merge moves samples to the end of their second, and the next
 * ones of them would be sent twice, or what is sent again would have another id. */
static int is_being_sent(const struct ls_daemon *d, const struct ls_window *w)
{
        const uint64_t end_ms = w->end_ms + 2 * d->config.chunk_ns / 1000000;

        for (unsigned i = 0; i < d->config.n_sinks; i++)
                for (unsigned k = 0; k < d->n_sendings; k++) {
                        const struct ls_sending *s = &d->sendings[k];

                        if (strcmp(s->name, d->config.sinks[i].name))
                                continue;
                        if ((s->from_ms > w->begin_ms && s->from_ms < end_ms) ||
                            (s->until_ms > w->begin_ms && s->from_ms < end_ms))
                                return 1;
                }
        return 0;
}

static int is_unmerged(void *ctx, const struct ls_window *w)
{
        const struct ls_daemon *d = ctx;

        if (is_being_sent(d, w))
                return 1;
        for (unsigned i = 0; i < sizeof(d->unmerged) / sizeof(*d->unmerged); i++)
                if (d->unmerged[i].level == w->level && d->unmerged[i].begin_ms == w->begin_ms &&
                    !strcmp(d->unmerged[i].service, w->service))
                        return 1;
        return 0;
}

static void note_unmerged(struct ls_daemon *d)
{
        d->unmerged[d->n_unmerged++ % (sizeof(d->unmerged) / sizeof(*d->unmerged))] = d->window;
}

static void become_merger(const struct ls_daemon *d, pid_t parent)
{
        const struct ls_window *w = &d->window;
        char *window =
                ls_print("%" PRIu64 ",%" PRIu64 ",%" PRIu32, w->begin_ms, w->end_ms, w->level);
        const char *words[] = { LS_APART_ARGV0, "store",    "--store", d->store.path, "--service",
                                w->service,     "--window", window,    "merge",       NULL };
        const struct ls_child merger = { .words = words,
                                         .parent = parent,
                                         .end_signal = SIGKILL,
                                         .out = STDOUT_FILENO,
                                         .err = STDERR_FILENO,
                                         .cpu_s = LS_MERGE_CPU_S,
                                         .memory = LS_MERGE_BYTES,
                                         .nice = 10 };

        if (!window)
                _exit(LS_EXIT_FAIL);
        ls_child_become(&merger);
}

/* What a daemon that was killed has not removed any more. */
static void remove_hidden(const struct ls_daemon *d, struct ls_chunks *all)
{
        struct ls_chunks hidden;

        if (ls_store_hide(all, &hidden))
                return;
        for (size_t i = 0; i < hidden.n; i++)
                ls_store_remove(&d->store, &hidden.v[i]);
        ls_chunks_done(&hidden);
}

static void find_end(struct ls_daemon *d, const struct ls_chunks *all)
{
        d->merged_until_ms = 0;
        for (size_t i = 0; i < all->n; i++)
                if (all->v[i].level && all->v[i].end_ms > d->merged_until_ms)
                        d->merged_until_ms = all->v[i].end_ms;
}

/* Chunks are not committed any more so long after the end of a time, but for late ones. */
static uint64_t grace_ms(const struct ls_daemon *d)
{
        return d->config.chunk_ns / 1000000 * 3 + LS_MERGE_MS;
}

void ls_merging(struct ls_daemon *d)
{
        uint64_t before = ls_store_now_ms() - grace_ms(d);
        struct ls_chunks all;
        pid_t self = getpid();

        if (d->merger || d->stopping || ls_store_list(&d->store, NULL, 0, UINT64_MAX, &all))
                return;
        remove_hidden(d, &all);
        find_end(d, &all);
        if (!ls_window_find(&all, 1, d->config.merge_ns / 1000000, before, is_unmerged, d,
                            &d->window) &&
            !ls_window_find(&all, 2, d->config.merge_old_ns / 1000000, before, is_unmerged, d,
                            &d->window)) {
                ls_chunks_done(&all);
                return;
        }
        if (d->window.end_ms > d->merged_until_ms)
                d->merged_until_ms = d->window.end_ms;
        d->merger = fork();
        if (d->merger == 0)
                become_merger(d, self);
        if (d->merger < 0) {
                d->merger = 0;
                ls_chunks_done(&all);
                return;
        }
        d->inputs = all;
}

/* Whether what is in the window is what was in it when the merger began. */
static int is_same(const struct ls_window *w, const struct ls_chunks *a, const struct ls_chunks *b)
{
        size_t i = 0, k = 0;

        for (;; i++, k++) {
                while (i < a->n && !ls_window_has(w, &a->v[i]))
                        i++;
                while (k < b->n && !ls_window_has(w, &b->v[k]))
                        k++;
                if (i == a->n || k == b->n)
                        return i == a->n && k == b->n;
                if (strcmp(a->v[i].name, b->v[k].name) || strcmp(a->v[i].day, b->v[k].day))
                        return 0;
        }
}

static void take(struct ls_daemon *d)
{
        const struct ls_window *w = &d->window;
        struct ls_chunk m = { .begin_ms = w->begin_ms, .end_ms = w->end_ms, .level = w->level };
        struct ls_chunks now;

        if (ls_store_list(&d->store, NULL, 0, UINT64_MAX, &now))
                return;
        memcpy(m.service, w->service, sizeof(m.service));
        if (is_same(w, &d->inputs, &now)) {
                int error = ls_store_commit(&d->store, d->store.incoming_fd, LS_STORE_MERGING, &m);

                for (size_t i = 0; !error && i < now.n; i++)
                        if (ls_window_has(w, &now.v[i]))
                                ls_store_remove(&d->store, &now.v[i]);
                d->merged_chunks += !error;
                if (error)
                        note_unmerged(d);
        }
        ls_chunks_done(&now);
}

static void forget(struct ls_daemon *d)
{
        unlinkat(d->store.incoming_fd, LS_STORE_MERGING, 0);
        ls_chunks_done(&d->inputs);
        d->merger = 0;
}

void ls_merging_ended(struct ls_daemon *d, int status)
{
        int merged = WIFEXITED(status) && !WEXITSTATUS(status);

        if (merged)
                take(d);
        else
                note_unmerged(d);
        forget(d);
        if (merged && !d->stopping)
                ls_merging(d);          /* the next; after a failure when its time comes again */
}

void ls_merging_stop(struct ls_daemon *d)
{
        if (!d->merger)
                return;
        kill(d->merger, SIGKILL);
        waitpid(d->merger, NULL, 0);
        forget(d);
}
