/* The command luasample ctl: asks the daemon, and shows what it answers. */
#include "daemon/client/client.h"
#include "daemon/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

#include "cli/places.h"
#include "cli/suggest.h"
#include "formats/escape.h"

static struct { char *socket, *last; int json; } opt;

static const struct poptOption options[] = {
        { "socket", 0, POPT_ARG_STRING, &opt.socket, 0,
          "socket of the daemon (LUASAMPLE_SOCKET, else that of the host)", "PATH" },
        { "last", 0, POPT_ARG_STRING, &opt.last, 0,
          "of snapshot: how much is kept, such as 1h (10m)", "TIME" },
        { "json", 0, POPT_ARG_NONE, &opt.json, 0, "print the answer as JSON", NULL },
        POPT_TABLEEND
};

static const char *text_of(yajl_val v, const char *key)
{
        const char *path[] = { key, NULL };
        yajl_val found = yajl_tree_get(v, path, yajl_t_string);

        return found ? YAJL_GET_STRING(found) : "";
}

static long long number_of(yajl_val v, const char *key)
{
        const char *path[] = { key, NULL };
        yajl_val found = yajl_tree_get(v, path, yajl_t_number);

        return found && YAJL_IS_INTEGER(found) ? YAJL_GET_INTEGER(found) : 0;
}

static yajl_val array_of(yajl_val v, const char *key)
{
        const char *path[] = { key, NULL };

        return yajl_tree_get(v, path, yajl_t_array);
}

static void show_service(yajl_val s)
{
        printf("%-16s %-10s %3lld of %lld", text_of(s, "name"), text_of(s, "state"),
               number_of(s, "recorded"), number_of(s, "processes"));
        printf("  %lld chunks, %lld KiB", number_of(s, "chunks"), number_of(s, "bytes") / 1024);
        if (number_of(s, "aside_s"))
                printf("  for %lld s", number_of(s, "aside_s"));
        if (*text_of(s, "reason"))
                printf("  (%s)", text_of(s, "reason"));
        putchar('\n');
}

static void show_rules(yajl_val rules)
{
        for (size_t i = 0; rules && i < YAJL_GET_ARRAY(rules)->len; i++) {
                yajl_val r = YAJL_GET_ARRAY(rules)->values[i];

                printf("rule %-11s acted %lld times, held back %lld", text_of(r, "name"),
                       number_of(r, "acted"), number_of(r, "held_back"));
                if (number_of(r, "failed"))
                        printf(", its command failed %lld times", number_of(r, "failed"));
                if (*text_of(r, "last"))
                        printf("  (%s)", text_of(r, "last"));
                putchar('\n');
        }
}

static void show_sinks(yajl_val sinks)
{
        for (size_t i = 0; sinks && i < YAJL_GET_ARRAY(sinks)->len; i++) {
                yajl_val s = YAJL_GET_ARRAY(sinks)->values[i];

                printf("sink %-11s %s, %lld profiles sent, %lld s behind", text_of(s, "name"),
                       text_of(s, "state"), number_of(s, "sent"), number_of(s, "behind_s"));
                if (number_of(s, "spool_chunks"))
                        printf(", %lld chunks (%lld KiB) to send", number_of(s, "spool_chunks"),
                               number_of(s, "spool_bytes") / 1024);
                if (number_of(s, "refused"))
                        printf(", %lld times refused", number_of(s, "refused"));
                if (number_of(s, "given_up_s"))
                        printf(", %lld s given up", number_of(s, "given_up_s"));
                if (number_of(s, "again_s"))
                        printf(", again in %lld s", number_of(s, "again_s"));
                if (*text_of(s, "last"))
                        printf("  (%s)", text_of(s, "last"));
                putchar('\n');
        }
}

static void show_status(yajl_val v)
{
        yajl_val services = array_of(v, "services");

        printf("daemon %lld, version %s, for %lld s; store %s\n", number_of(v, "pid"),
               text_of(v, "version"), number_of(v, "uptime_s"), text_of(v, "store"));
        printf("%lld chunks of %lld h are stored, %lld MiB; %lld times are kept for good, %lld "
               "MiB\n",
               number_of(v, "stored_chunks"), number_of(v, "stored_s") / 3600,
               number_of(v, "stored_bytes") >> 20, number_of(v, "kept"),
               number_of(v, "kept_bytes") >> 20);
        printf("programs are found by %s\n", strcmp(text_of(v, "programs_by"), "scan")
                                                     ? "the kernel's events and a scan of /proc"
                                                     : "a scan of /proc");
        if (number_of(v, "disk_full"))
                printf("the store's disk is full: nothing is recorded\n");
        if (number_of(v, "disk_full_s"))
                printf("%lld s were not recorded, for lack of disk space\n",
                       number_of(v, "disk_full_s"));
        if (number_of(v, "dropped_ticks"))
                printf("%lld ticks were dropped, for lack of disk space\n",
                       number_of(v, "dropped_ticks"));
        if (number_of(v, "slowed"))
                printf("%lld times an interval was doubled, for its cost; %lld times it came "
                       "back\n",
                       number_of(v, "slowed"), number_of(v, "quickened"));
        if (*text_of(v, "pressure"))
                printf("nothing is attached to: %s\n", text_of(v, "pressure"));
        if (number_of(v, "merged_chunks"))
                printf("%lld times the chunks of some time became one\n",
                       number_of(v, "merged_chunks"));
        if (number_of(v, "pruned_chunks"))
                printf("%lld chunks were removed (%lld KiB)\n", number_of(v, "pruned_chunks"),
                       number_of(v, "pruned_bytes") / 1024);
        if (number_of(v, "commit_errors"))
                printf("%lld times a chunk could not be stored: %s\n",
                       number_of(v, "commit_errors"), text_of(v, "commit_error"));
        if (number_of(v, "processes_left_out"))
                printf("%lld processes are too many to be watched\n",
                       number_of(v, "processes_left_out"));
        if (!services || !YAJL_GET_ARRAY(services)->len)
                printf("no services: the configuration has no [service NAME]\n");
        for (size_t i = 0; services && i < YAJL_GET_ARRAY(services)->len; i++)
                show_service(YAJL_GET_ARRAY(services)->values[i]);
        show_rules(array_of(v, "rules"));
        show_sinks(array_of(v, "sinks"));
}

static void show_targets(yajl_val v)
{
        if (!YAJL_IS_ARRAY(v))
                return;
        for (size_t i = 0; i < YAJL_GET_ARRAY(v)->len; i++) {
                yajl_val t = YAJL_GET_ARRAY(v)->values[i];

                printf("%7lld %-16s %-16s %-9s %6lld s", number_of(t, "pid"), text_of(t, "name"),
                       text_of(t, "service"), text_of(t, "state"), number_of(t, "since_s"));
                if (number_of(t, "recorder"))
                        printf("  %lld ms", number_of(t, "interval_ns") / 1000000);
                if (number_of(t, "burst"))
                        printf(", closely");
                if (number_of(t, "cost_ppm"))
                        printf(", costs %.2f%%", (double)number_of(t, "cost_ppm") / 10000);
                if (*text_of(t, "reason"))
                        printf("  (%s)", text_of(t, "reason"));
                putchar('\n');
        }
        if (!YAJL_GET_ARRAY(v)->len)
                printf("no process matches a rule\n");
}

static void show_snapshot(yajl_val v)
{
        printf("%s\n", text_of(v, "kept"));
}

enum takes { NONE, ONE, MAY };          /* an argument */
static const struct request {
        const char *name;
        enum takes takes;
        void (*show)(yajl_val v);       /* NULL = there is nothing to show */
} requests[] = {
        { "status", NONE, show_status }, { "targets", NONE, show_targets }, { "attach", ONE, NULL },
        { "detach", ONE, NULL }, { "burst", ONE, NULL }, { "snapshot", ONE, show_snapshot },
        { "reload", NONE, NULL }, { "flush", MAY, NULL }, { "stop", NONE, NULL },
};

#define N_REQUESTS (sizeof(requests) / sizeof(*requests))

static const struct request *find_request(const char *name)
{
        const char *words[N_REQUESTS + 1] = { NULL };
        int at;

        for (size_t i = 0; i < N_REQUESTS; i++)
                words[i] = requests[i].name;
        return ls_one_of("ctl", "request", name, words, &at) ? NULL : &requests[at];
}

static int show(const struct request *r, const char *answer)
{
        char why[128];
        yajl_val v;

        if (opt.json) {
                puts(answer);
                return 0;
        }
        if (!r->show)
                return 0;
        v = yajl_tree_parse(answer, why, sizeof(why));
        if (!v) {
                ls_error("ctl: the answer of the daemon is not understood; is it of another "
                         "version?");
                return LS_EXIT_FAIL;
        }
        r->show(v);
        yajl_tree_free(v);
        return 0;
}

static int ask(const struct request *r, const char *argument)
{
        char *path = opt.socket ? strdup(opt.socket) : ls_place_of_socket(), *answer = NULL;
        char *line = argument ? ls_print("%s %s%s%s", r->name, argument, opt.last ? " " : "",
                                         opt.last ? opt.last : "")
                              : strdup(r->name);
        int fd = path && line ? ls_client_ask(path, line, &answer) : -ENOENT, status = LS_EXIT_FAIL;

        if (fd >= 0) {
                status = show(r, answer);
                close(fd);
        } else if (fd == -EPROTO) {
                ls_error("ctl: %s", answer);
        } else if (fd == -ENOENT || fd == -ECONNREFUSED) {
                ls_error("ctl: no daemon listens at %s: start it with luasample daemon, or name "
                         "its socket with --socket",
                         path ? path : "a socket");
        } else if (fd == -EPERM || fd == -EACCES) {
                ls_error("ctl: %s: only root and the daemon's own user may ask it", path);
        } else {
                ls_error("ctl: %s: %s", path, strerror(-fd));
        }
        free(answer);
        free(line);
        free(path);
        return status;
}

static int run_words(const char **words)
{
        const struct request *r = words && words[0] ? find_request(words[0]) : NULL;
        unsigned n = 0;

        while (words && words[n])
                n++;
        if (!n)
                ls_error("ctl: what is asked? status, targets, attach, detach, burst, snapshot, "
                         "reload, flush or stop");
        if (!r)
                return LS_EXIT_USAGE;
        if (opt.last && (strcmp(r->name, "snapshot") || strpbrk(opt.last, " \n"))) {
                ls_error("ctl: --last TIME is for snapshot");
                return LS_EXIT_USAGE;
        }
        if ((r->takes == MAY ? n > 2 : n != (r->takes == ONE ? 2u : 1u)) ||
            (n == 2 && strpbrk(words[1], " \n"))) {
                ls_error(r->takes == ONE   ? "ctl: %s: give one PID or SERVICE"
                         : r->takes == MAY ? "ctl: %s: give one SINK, or none"
                                           : "ctl: %s takes no argument",
                         r->name);
                return LS_EXIT_USAGE;
        }
        return ask(r, n == 2 ? words[1] : NULL);
}

static int ctl_run(int argc, const char **argv)
{
        poptContext ctx = ls_options_begin(&ls_cmd_ctl, argc, argv, 0);
        int val = ls_options_next(&ls_cmd_ctl, ctx);
        int status = val == -3 ? 0 : val == -1 ? run_words(poptGetArgs(ctx)) : LS_EXIT_USAGE;

        poptFreeContext(ctx);
        return status;
}

const struct ls_command ls_cmd_ctl = {
        .name = "ctl",
        .summary = "ask the daemon what it does, and tell it what to do",
        .usage = "[OPTION...] status|targets|attach PID|SERVICE|detach PID|SERVICE|burst "
                 "PID|SERVICE|snapshot SERVICE|reload|flush [SINK]|stop",
        .options = options,
        .run = ctl_run,
};
