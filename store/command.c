/* The command luasample store: what the daemon's store holds. */
#include "store/commands.h"
#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/places.h"
#include "cli/suggest.h"
#include "formats/trace/reader.h"
#include "formats/profile.h"

static struct { char *store, *service, *max_age, *max_size, *window; } opt;

static const struct poptOption options[] = {
        { "store", 0, POPT_ARG_STRING, &opt.store, 0,
          "directory of the store (LUASAMPLE_STORE, else that of the host)", "DIR" },
        { "service", 0, POPT_ARG_STRING, &opt.service, 0, "this service only, not all", "NAME" },
        { "max-age", 0, POPT_ARG_STRING, &opt.max_age, 0, "prune: remove what is older", "TIME" },
        { "max-size", 0, POPT_ARG_STRING, &opt.max_size, 0,
          "prune: remove the oldest until so much is left", "SIZE" },
        { "window", 0, POPT_ARG_STRING | POPT_ARGFLAG_DOC_HIDDEN, &opt.window, 0,
          "merge: for the daemon", "BEGIN,END,LEVEL" },
        POPT_TABLEEND
};

static void put_time(uint64_t ms)
{
        time_t seconds = (time_t)(ms / 1000);
        char text[32];
        struct tm tm;

        localtime_r(&seconds, &tm);
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
        fputs(text, stdout);
}

static void warn_foreign(const struct ls_store *s, const struct ls_chunks *all)
{
        if (all->foreign)
                ls_warning(all->foreign == 1 ? "store: %s: %u file that is no chunk: left alone"
                                             : "store: %s: %u files that are no chunks: left alone",
                           s->path, all->foreign);
}

static int do_ls(struct ls_store *s, const struct ls_chunks *all)
{
        (void)s;
        for (size_t i = 0; i < all->n; i++) {
                const struct ls_chunk *c = &all->v[i];

                put_time(c->begin_ms);
                printf("  %8.1f s  %7" PRIu64 " KiB  %7" PRIu32 "  ",
                       (double)(c->end_ms - c->begin_ms) / 1000, c->size / 1024, c->pid);
                ls_put_visible(stdout, c->service);
                printf("/%s/%s\n", c->day, c->name);
        }
        return 0;
}

static void put_total(const char *name, size_t n, uint64_t bytes, uint64_t first_ms,
                      uint64_t last_ms)
{
        ls_put_visible(stdout, name);
        printf("%*s  %6zu chunks  %8" PRIu64 " KiB",
               strlen(name) < 16 ? (int)(16 - strlen(name)) : 0, "", n, bytes / 1024);
        if (n) {
                fputs("  ", stdout);
                put_time(first_ms);
                fputs(" to ", stdout);
                put_time(last_ms);
        }
        putchar('\n');
}

static int do_du(struct ls_store *s, const struct ls_chunks *all)
{
        uint64_t total = 0;

        (void)s;
        for (size_t i = 0; i < all->n;) {
                const char *service = all->v[i].service;
                uint64_t bytes = 0, first = all->v[i].begin_ms, last = 0;
                size_t begin = i;

                for (; i < all->n && !strcmp(all->v[i].service, service); i++) {
                        bytes += all->v[i].size;
                        last = all->v[i].end_ms > last ? all->v[i].end_ms : last;
                }
                put_total(service, i - begin, bytes, first, last);
                total += bytes;
        }
        printf("%-16s  %6zu chunks  %8" PRIu64 " KiB\n", "all", all->n, total / 1024);
        return 0;
}

/* fd: open, or -errno; closed. Returns 1 when something is wrong with the chunk. */
static int verify_chunk(int fd, const struct ls_chunk *c)
{
        struct ls_profile *p = NULL;
        const char *why = NULL;
        int r = fd < 0 ? fd : ls_profile_open_fd(fd, &p, &why), wrong = 1;

        if (fd == -ENOENT)
                return 0;               /* pruned meanwhile */
        if (r)
                ls_error("store: %s/%s/%s: %s", c->service, c->day, c->name,
                         why ? why : strerror(-r));
        else if (p->n_damages)
                ls_error("store: %s/%s/%s: %u part%s damaged: %s", c->service, c->day, c->name,
                         p->n_damages, p->n_damages == 1 ? " is" : "s are", p->damages->why);
        else
                wrong = 0;
        ls_profile_close(p);
        if (fd >= 0)
                close(fd);
        return wrong;
}

#define AT_ONCE 64u                     /* chunks that are open */

/* A chunk is of strangers' programs: some are opened, and read by a copy of this process that has
 * given up its rights before. It exits with the number of those with which something is wrong. */
static size_t verify_some(const int *fds, const struct ls_chunk *v, size_t n)
{
        pid_t pid = fork();
        int status = 0;
        size_t wrong = 0;

        if (pid == 0) {
                if (ls_store_drop()) {
                        ls_error("store: the rights to read the store cannot be given up");
                        _exit((int)n);
                }
                for (size_t i = 0; i < n; i++)
                        wrong += (size_t)verify_chunk(fds[i], &v[i]);
                _exit((int)wrong);
        }
        if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
            (size_t)WEXITSTATUS(status) <= n)
                return (size_t)WEXITSTATUS(status);
        for (size_t i = 0; n > 1 && i < n; i++) /* which is it? */
                wrong += verify_some(&fds[i], &v[i], 1);
        if (n == 1)
                ls_error("store: %s/%s/%s: what reads it has ended (%s %d)", v->service, v->day,
                         v->name, WIFSIGNALED(status) ? "signal" : "status",
                         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        return n == 1 ? 1 : wrong;
}

static int do_verify(struct ls_store *s, const struct ls_chunks *all)
{
        size_t wrong = 0;

        for (size_t at = 0; at < all->n; at += AT_ONCE) {
                size_t n = all->n - at < AT_ONCE ? all->n - at : AT_ONCE;
                int fds[AT_ONCE];

                for (size_t i = 0; i < n; i++)
                        fds[i] = ls_store_open_chunk(s, &all->v[at + i]);
                wrong += verify_some(fds, &all->v[at], n);
                for (size_t i = 0; i < n; i++)
                        if (fds[i] >= 0)
                                close(fds[i]);
        }
        printf("%zu chunks, %zu damaged\n", all->n, wrong);
        return wrong ? LS_EXIT_FAIL : 0;
}

static struct ls_store_limits limits = { .max_age_ms = UINT64_MAX, .max_size = UINT64_MAX };

/* Returns 0 or -EINVAL after a line. */
static int read_limits(void)
{
        uint64_t age;

        if ((opt.max_age && ls_parse_duration(opt.max_age, "", &age)) ||
            (opt.max_size && ls_parse_size(opt.max_size, &limits.max_size))) {
                ls_error("store: prune: give --max-age a time such as 7d, and --max-size a size "
                         "such as 4G");
                return -EINVAL;
        }
        if (opt.max_age)
                limits.max_age_ms = age / 1000000;
        return 0;
}

static int do_prune(struct ls_store *s, const struct ls_chunks *all)
{
        struct ls_pruned pruned;
        int r;

        (void)all;
        r = ls_store_prune(s, &limits, ls_store_now_ms(), &pruned);
        if (r) {
                ls_error("store: %s: %s", s->path, strerror(-r));
                return LS_EXIT_FAIL;
        }
        printf("%u chunks removed, %" PRIu64 " KiB\n", pruned.n, pruned.bytes / 1024);
        return 0;
}

/* For the daemon, which commits what comes of it: --service, --window BEGIN,END,LEVEL. */
static int do_merge(struct ls_store *s, const struct ls_chunks *all)
{
        struct ls_window w = { .level = 0 };
        int r;

        (void)all;
        if (!opt.service || strlen(opt.service) >= sizeof(w.service) || !opt.window ||
            sscanf(opt.window, "%" SCNu64 ",%" SCNu64 ",%" SCNu32, &w.begin_ms, &w.end_ms,
                   &w.level) != 3)
                return LS_EXIT_USAGE;
        strcpy(w.service, opt.service);
        r = ls_window_merge(s, &w);
        return r ? LS_EXIT_FAIL : 0;
}

static const struct request {
        const char *name;
        enum ls_store_mode mode;
        int (*run)(struct ls_store *s, const struct ls_chunks *all);
} requests[] = {
        { "ls", LS_STORE_READ, do_ls },         { "du", LS_STORE_READ, do_du },
        { "verify", LS_STORE_READ, do_verify }, { "prune", LS_STORE_WRITE, do_prune },
        { "merge", LS_STORE_READ, do_merge }, /* the last: see find_request */
};

#define N_REQUESTS (sizeof(requests) / sizeof(*requests))

static const struct request *find_request(const char *name)
{
        const char *words[N_REQUESTS + 1] = { NULL };
        int at;

        for (size_t i = 0; i < N_REQUESTS; i++)
                if (opt.window ||
                    strcmp(requests[i].name, "merge")) /* which is the daemon's alone */
                        words[i] = requests[i].name;
        return ls_one_of("store", "request", name, words, &at) ? NULL : &requests[at];
}

static int with_store(const struct request *r)
{
        char *place = opt.store ? strdup(opt.store) : ls_place_of_store();
        struct ls_chunks all;
        struct ls_store s;
        int error, status = LS_EXIT_FAIL;

        if (r->mode == LS_STORE_WRITE && place && access(place, F_OK) < 0) {
                ls_error("%s: %s", place, strerror(errno));     /* prune makes none */
                free(place);
                return status;
        }
        error = place ? ls_store_open(&s, place, r->mode) : -ENOMEM;
        free(place);
        if (error)
                return status;
        error = ls_store_list(&s, opt.service, 0, UINT64_MAX, &all);
        if (error) {
                ls_error("store: %s: %s", s.path, strerror(-error));
        } else {
                warn_foreign(&s, &all);
                status = r->run(&s, &all);
                ls_chunks_done(&all);
        }
        ls_store_close(&s);
        return status;
}

static int store_run(int argc, const char **argv)
{
        poptContext ctx = ls_options_begin(&ls_cmd_store, argc, argv, 0);
        int val = ls_options_next(&ls_cmd_store, ctx), status = val == -3 ? 0 : LS_EXIT_USAGE;
        const char **words = val == -1 ? poptGetArgs(ctx) : NULL;
        const struct request *r = words && words[0] ? find_request(words[0]) : NULL;
        int prunes = r && r->run == do_prune;

        if (val == -1 && (!words || !words[0]))
                ls_error("store: what is asked? ls, du, verify or prune");
        else if (r && words[1])
                ls_error("store: unexpected argument '%s'", words[1]);
        else if (r && prunes != (opt.max_age || opt.max_size))
                ls_error(prunes ? "store: prune: give --max-age TIME, --max-size SIZE, or both" :
                                  "store: --max-age and --max-size are for prune");
        else if (r && prunes && opt.service)
                ls_error("store: prune: is for all services");
        else if (r && opt.service && (*opt.service == '.' || strchr(opt.service, '/')))
                ls_error("store: --service %s: not a name of a service", opt.service);
        else if (r && !read_limits())
                status = with_store(r);
        poptFreeContext(ctx);
        return status;
}

const struct ls_command ls_cmd_store = {
        .name = "store",
        .summary = "show what the daemon has stored, check it, remove some of it",
        .usage = "[OPTION...] ls|du|verify|prune",
        .options = options,
        .run = store_run,
};
