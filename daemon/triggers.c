/* [rule NAME]: when a process uses much, stalls, says so itself (tells.c), or ends with an error,
 * the last minute is kept, it is recorded closely, a command runs: see daemon.h. A rule acts once
 * each time that it comes true, and so often in a time as it says. */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/command.h"
#include "formats/escape.h"

#define LOOK_NS SECOND_NS
#define STIRRED_NS (5 * SECOND_NS)
#define KEEP_AFTER_NS (3 * SECOND_NS)   /* what was recorded until then is in the store */

struct ls_firing *ls_firing(struct ls_daemon *d, const char *name)
{
        for (unsigned i = 0; i < d->n_firings; i++)
                if (!strcmp(d->firings[i].name, name))
                        return &d->firings[i];
        if (d->n_firings == LS_RULES_MOST) {            /* of rules that are in no configuration any
                                                         * more */
                memmove(d->firings, d->firings + 1, (LS_RULES_MOST - 1) * sizeof(*d->firings));
                d->n_firings--;
        }
        memset(&d->firings[d->n_firings], 0, sizeof(*d->firings));
        strcpy(d->firings[d->n_firings].name, name);
        return &d->firings[d->n_firings++];
}

/* What the operator has written, with the daemon's rights: nobody else's file, and nothing of the
 * target but escaped. */
static void become_command(const struct ls_when *r, const struct ls_watched *w, const char *why,
                           pid_t parent)
{
        char *name = ls_visible(w->comm, strlen(w->comm));
        char *env[] = { ls_print("PATH=/usr/sbin:/usr/bin:/sbin:/bin"),
                        ls_print("LUASAMPLE_RULE=%s", r->name),
                        ls_print("LUASAMPLE_SERVICE=%s", w->service),
                        ls_print("LUASAMPLE_PID=%d", (int)w->pid),
                        ls_print("LUASAMPLE_NAME=%s", name ? name : ""),
                        ls_print("LUASAMPLE_WHY=%s", why),
                        NULL };
        const char *words[] = { r->run, NULL };
        const struct ls_child command = {
                .words = words, .path = r->run, .env = env, .parent = parent, .end_signal = SIGKILL
        };
        int fd = open(r->run, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        struct stat st;

        signal(SIGPIPE, SIG_DFL);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
            (st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & (S_IWGRP | S_IWOTH))
                _exit(LS_EXIT_NOEXEC);
        if (chdir("/") < 0)
                _exit(LS_EXIT_FAIL);
        ls_child_become(&command);
}

/* `luasample stack`, whose workers read the process with its own rights. */
static void become_stack(const struct ls_watched *w, int out, pid_t parent)
{
        const char *words[] = { "luasample", "stack", ls_print("%d", (int)w->pid), NULL };
        const struct ls_child stack = {
                .words = words, .parent = parent, .end_signal = SIGTERM, .out = out, .err = out
        };

        ls_child_become(&stack);
}

/* stack_fd: where the stack is written to; -1 = what the rule says is run. */
static void run_command(struct ls_daemon *d, const struct ls_when *r, const struct ls_watched *w,
                        const char *why, int stack_fd)
{
        pid_t self = getpid();

        for (unsigned i = 0; i < LS_COMMANDS_MOST; i++) {
                if (d->commands[i].pid)
                        continue;
                d->commands[i].pid = fork();
                if (d->commands[i].pid == 0 && stack_fd >= 0)
                        become_stack(w, stack_fd, self);
                if (d->commands[i].pid == 0)
                        become_command(r, w, why, self);
                if (d->commands[i].pid < 0)
                        d->commands[i].pid = 0;
                d->commands[i].stops = stack_fd >= 0 ? w->pid : 0;
                memcpy(d->commands[i].rule, r->name, sizeof(r->name));
                d->commands[i].until_ns = ls_daemon_now() + LS_COMMAND_NS;
                return;
        }
        ls_daemon_say("rule %s: %u commands run already", r->name, LS_COMMANDS_MOST);
}

int ls_triggers_stop(const struct ls_daemon *d, pid_t pid)
{
        for (unsigned i = 0; i < LS_COMMANDS_MOST; i++)
                if (d->commands[i].pid && d->commands[i].stops == pid)
                        return 1;
        return 0;
}

int ls_triggers_ended(struct ls_daemon *d, pid_t pid, int status)
{
        for (unsigned i = 0; i < LS_COMMANDS_MOST; i++) {
                if (d->commands[i].pid != pid)
                        continue;
                if (WIFSIGNALED(status) || WEXITSTATUS(status)) {
                        ls_firing(d, d->commands[i].rule)->failed++;
                        ls_daemon_say("rule %s: its command ended with %s %d", d->commands[i].rule,
                                      WIFSIGNALED(status) ? "signal" : "status",
                                      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
                }
                d->commands[i].pid = 0;
                return 1;
        }
        return 0;
}

void ls_triggers_count(struct ls_daemon *d)
{
        ls_store_kept(&d->store, NULL, NULL, &d->kept);
}

/* Whether there is room for so much more in kept/NAME. Returns 0, or -EDQUOT with why. */
static int has_room(struct ls_daemon *d, const char *owner, const char *name, uint64_t bytes,
                    char *why, size_t size)
{
        struct ls_kept kept;

        if (ls_store_kept(&d->store, owner, name, &kept))
                return 0;
        if (kept.times >= LS_KEPT_MOST)
                snprintf(why, size, "%u times are kept already: remove some of kept/",
                         LS_KEPT_MOST);
        else if (kept.of_owner >= LS_KEPT_EACH_MOST)
                snprintf(why, size, "%u times of %s are kept already: remove some of kept/",
                         LS_KEPT_EACH_MOST, owner);
        else if (kept.bytes + bytes > d->config.max_kept)
                snprintf(why, size,
                         "%" PRIu64 " bytes are kept, and these are %" PRIu64
                         ": more than max-kept; remove some of kept/",
                         kept.bytes, bytes);
        else
                return 0;
        return -EDQUOT;
}

static int is_wanted(const struct ls_keeping *k, const struct ls_chunk *c)
{
        return !k->pid || !c->pid || c->pid == (uint32_t)k->pid;
}

/* A name more for what the store has of that minute: it stays when the first one is pruned or
 * merged. Returns the chunks, or -errno with why. */
static int keep_chunks(struct ls_daemon *d, const struct ls_keeping *k, char *why, size_t size)
{
        struct ls_chunks all;
        uint64_t bytes = 0;
        int n = 0, error = ls_store_list(&d->store, k->service, k->from_ms, k->to_ms, &all);

        if (error) {
                snprintf(why, size, "%s", strerror(-error));
                return error;
        }
        for (size_t i = 0; i < all.n; i++)
                bytes += is_wanted(k, &all.v[i]) ? all.v[i].size : 0;
        error = has_room(d, k->owner, k->name, bytes, why, size);
        for (size_t i = 0; i < all.n && !error; i++)
                if (is_wanted(k, &all.v[i]))
                        n += !ls_store_keep(&d->store, &all.v[i], k->name);
        ls_chunks_done(&all);
        return error ? error : n;
}

static void keep(struct ls_daemon *d, const struct ls_keeping *k)
{
        struct ls_operation *o = ls_operation_find(d, k->operation);
        char text[sizeof(o->text)];
        int n = keep_chunks(d, k, text, sizeof(text));

        if (n >= 0)
                snprintf(text, sizeof(text), "kept/%s: %d chunk%s", k->name, n, n == 1 ? "" : "s");
        ls_daemon_say("%s of %s: %s", k->operation ? "snapshot" : "what is kept",
                      k->operation ? k->service : k->owner, text);
        ls_triggers_count(d);
        if (!o)
                return;
        o->ended = 1;
        o->failed = n <= 0;
        strcpy(o->text, text);
}

int ls_triggers_keep(struct ls_daemon *d, const struct ls_keeping *what, uint64_t ms, char *why,
                     size_t size)
{
        struct ls_keeping *k = NULL;
        uint64_t now_ms = ls_store_now_ms();

        if (has_room(d, what->owner, what->name, 0, why, size))
                return -EDQUOT;
        for (unsigned i = 0; i < LS_KEEPINGS_MOST && !k; i++)
                if (!d->keeping[i].due_ns)
                        k = &d->keeping[i];
        if (!k) {
                snprintf(why, size, "%u are about to be kept already: try again in some seconds",
                         LS_KEEPINGS_MOST);
                return -EBUSY;
        }
        *k = *what;
        k->from_ms = now_ms > ms ? now_ms - ms : 0;
        k->to_ms = now_ms;
        k->due_ns = ls_daemon_now() + KEEP_AFTER_NS;
        for (unsigned i = 0; i < d->n_watched; i++) {
                struct ls_watched *w = d->watched[i];

                if (w->state == LS_WATCH_RECORDING &&
                    (k->pid ? w->pid == k->pid : !strcmp(w->service, k->service)))
                        ls_recorder_flush(w);
        }
        return 0;
}

static void keep_stack(struct ls_daemon *d, const struct ls_when *r, const char *name,
                       const struct ls_watched *w, const char *why)
{
        char full[256];
        int fd;

        if (has_room(d, r->name, name, 0, full, sizeof(full))) {
                ls_daemon_say("rule %s: no stack is kept: %s", r->name, full);
                return;
        }
        fd = ls_store_keep_file(&d->store, name, "stack.txt");
        if (fd < 0) {
                ls_daemon_say("%s/kept/%s/stack.txt: %s", d->store.path, name, strerror(-fd));
                return;
        }
        run_command(d, r, w, why, fd);
        close(fd);
}

static void keep_minute(struct ls_daemon *d, const struct ls_when *r, const char *name,
                        const struct ls_watched *w)
{
        struct ls_keeping k = { .pid = w->pid };
        char full[256];

        snprintf(k.name, sizeof(k.name), "%s", name);
        snprintf(k.owner, sizeof(k.owner), "%s", r->name);
        snprintf(k.service, sizeof(k.service), "%s", w->service);
        if (ls_triggers_keep(d, &k, LS_KEEP_NS / 1000000, full, sizeof(full)) < 0)
                ls_daemon_say("rule %s: process %d: nothing is kept: %s", r->name, (int)w->pid,
                              full);
}

void ls_triggers_fire(struct ls_daemon *d, const struct ls_when *r, struct ls_watched *w,
                      const char *why)
{
        const uint64_t now = ls_daemon_now();
        struct ls_firing *f = ls_firing(d, r->name);
        char name[sizeof(d->keeping->name)];

        if (!f->since_ns || now - f->since_ns >= r->per_ns) {
                f->since_ns = now;
                f->n = 0;
        }
        if (f->n >= r->at_most) {
                f->held_back++;
                return;
        }
        f->n++;
        f->fired++;
        snprintf(f->last, sizeof(f->last), "process %d of %s: %s", (int)w->pid, w->service, why);
        ls_daemon_say("rule %s: %s", r->name, f->last);
        snprintf(name, sizeof(name), "%s.%" PRIu64 ".%d", r->name, ls_store_now_ms(), (int)w->pid);
        if (r->stack)
                keep_stack(d, r, name, w, why);
        if (r->keep)
                keep_minute(d, r, name, w);
        if (r->burst && ls_decide_burst(d, w) < 0)
                ls_daemon_say("rule %s: process %d is not recorded closely: it is not being "
                              "recorded, is so already, or %u are",
                              r->name, (int)w->pid, LS_BURSTS_MOST);
        if (r->run)
                run_command(d, r, w, why, -1);
}

/* Puts down why, and how long it must hold. */
static int is_true(const struct ls_daemon *d, unsigned rule, const struct ls_watched *w,
                   char why[LS_WHY], uint64_t *ret_for_ns)
{
        const struct ls_when *r = &d->config.rules[rule];
        const char *counter = r->counter.n ? ls_tells_hold(&d->config, w, rule) : NULL;

        *ret_for_ns = r->for_ns;
        if (r->cpu && w->usage_known && w->cpu_percent > r->cpu) {
                strcpy(why, "cpu");
        } else if (r->rss && w->rss > r->rss) {
                strcpy(why, "rss");
        } else if (counter) {
                snprintf(why, LS_WHY, "counter %s", counter);
        } else if (r->stall_ns && w->stall_ns && w->usage_ns - w->stall_ns >= r->stall_ns) {
                strcpy(why, "stall");
                *ret_for_ns = 0;
        } else {
                return 0;
        }
        return 1;
}

static void look_at_rule(struct ls_daemon *d, unsigned i, struct ls_watched *w, uint64_t now)
{
        const struct ls_when *r = &d->config.rules[i];
        char why[LS_WHY];
        uint64_t for_ns;

        if (!ls_rule_is_for(r, w->service) || w->off || !is_true(d, i, w, why, &for_ns)) {
                w->true_ns[i] = 0;
                w->acted[i] = 0;
                return;
        }
        if (!w->true_ns[i])
                w->true_ns[i] = now;
        if (w->acted[i] || now - w->true_ns[i] < for_ns)
                return;
        w->acted[i] = 1;
        w->stirred_ns = now;
        ls_triggers_fire(d, r, w, why);
}

static int wants_stalls(const struct ls_daemon *d, const struct ls_watched *w)
{
        for (unsigned i = 0; i < d->config.n_rules; i++)
                if (d->config.rules[i].stall_ns && ls_rule_is_for(&d->config.rules[i], w->service))
                        return 1;
        return 0;
}

/* A thread that has not slept between two looks has the same number of switches at both, and does
 * not sleep at either; in a call that is no wait for events it is asleep, for as long as the number
 * is the same. What a rule does stops the thread, as a stack that is taken, and that counts as a
 * switch, too: for a while after it another number is the same stall. */
static void look_for_stall(const struct ls_daemon *d, struct ls_watched *w, uint64_t now)
{
        uint64_t switches;

        if (!wants_stalls(d, w) || ls_proc_stalls(w->pid, &switches) <= 0) {
                w->stall_ns = 0;
        } else if (!w->stall_ns || switches != w->stall_switches) {
                if (!w->stall_ns || !w->stirred_ns || now - w->stirred_ns > STIRRED_NS)
                        w->stall_ns = now;
                w->stall_switches = switches;
        }
}

static void measure(struct ls_watched *w, uint64_t now)
{
        uint64_t cpu_ns, passed = now - w->usage_ns;

        if (ls_proc_usage(w->pid, &cpu_ns, &w->rss) < 0)
                return;
        w->usage_known = w->usage_ns && cpu_ns >= w->cpu_ns;
        w->cpu_percent = w->usage_known && passed ? (cpu_ns - w->cpu_ns) * 100 / passed : 0;
        w->cpu_ns = cpu_ns;
        w->usage_ns = now;
}

void ls_triggers(struct ls_daemon *d)
{
        uint64_t now = ls_daemon_now();

        for (unsigned i = 0; i < LS_COMMANDS_MOST; i++)
                if (d->commands[i].pid && now > d->commands[i].until_ns)
                        kill(-d->commands[i].pid, SIGKILL);
        for (unsigned i = 0; i < LS_KEEPINGS_MOST; i++)
                if (d->keeping[i].due_ns && now >= d->keeping[i].due_ns) {
                        keep(d, &d->keeping[i]);
                        d->keeping[i].due_ns = 0;
                }
        if (!d->config.n_rules || now - d->usage_ns < LOOK_NS || d->stopping)
                return;
        d->usage_ns = now;
        for (unsigned k = 0; k < d->n_watched; k++) {
                measure(d->watched[k], now);
                look_for_stall(d, d->watched[k], now);
                for (unsigned i = 0; i < d->config.n_rules; i++)
                        look_at_rule(d, i, d->watched[k], now);
        }
}

void ls_triggers_exit(struct ls_daemon *d, struct ls_watched *w, int status)
{
        char why[32];

        if (!status || w->off)
                return;
        if (WIFSIGNALED(status))
                snprintf(why, sizeof(why), "signal %d", WTERMSIG(status));
        else
                snprintf(why, sizeof(why), "exit %d", WEXITSTATUS(status));
        for (unsigned i = 0; i < d->config.n_rules; i++)
                if (d->config.rules[i].exit && ls_rule_is_for(&d->config.rules[i], w->service))
                        ls_triggers_fire(d, &d->config.rules[i], w, why);
}
