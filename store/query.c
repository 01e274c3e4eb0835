/* A time of a service as one trace: see query.h. */
#include "store/query.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/places.h"
#include "cli/suggest.h"
#include "formats/trace/reader.h"
#include "formats/escape.h"
#include "formats/merge/merge.h"
#include "store/store.h"

#define AT_ONCE 64u                     /* traces that are open at one time */
#define SERVICES_MOST 256u
#define LONGEST_MS 3600000u             /* of a chunk that is not merged */

struct piece {                          /* a chunk, or what was merged of some */
        int fd;
        char *name;
        dev_t dev;
        ino_t ino;
};

struct ls_pieces {
        struct piece *v;
        size_t n, room;
        uint64_t first_ms, last_ms;     /* of all of the service, to say what there is */
};

/* "1763822096.125" */
static int read_seconds(const char *text, uint64_t *ret_ms)
{
        uint64_t ms = 0;
        int behind = -1;                /* digits behind the point */

        if (!*text || strlen(text) > 16 || *text == '.')
                return -EINVAL;
        for (; *text; text++) {
                if (*text == '.' && behind < 0) {
                        behind = 0;
                        continue;
                }
                if (*text < '0' || *text > '9')
                        return -EINVAL;
                if (behind < 3)
                        ms = ms * 10 + (uint64_t)(*text - '0');
                behind += behind >= 0;
        }
        for (behind = behind < 0 ? 0 : behind; behind < 3; behind++)
                ms *= 10;
        *ret_ms = ms;
        return 0;
}

int ls_query_time(const char *text, uint64_t now_ms, uint64_t *ret_ms)
{
        static const char *const forms[] = { "%Y-%m-%d %H:%M:%S",
                                             "%Y-%m-%d %H:%M",
                                             "%Y-%m-%dT%H:%M:%S",
                                             "%Y-%m-%dT%H:%M",
                                             "%Y-%m-%d",
                                             "%H:%M:%S",
                                             "%H:%M" };
        time_t now = (time_t)(now_ms / 1000), then;
        uint64_t ago;

        if (*text == '@')
                return read_seconds(text + 1, ret_ms);
        if (ls_parse_duration(text, "", &ago) == 0) {
                *ret_ms = now_ms > ago / 1000000 ? now_ms - ago / 1000000 : 0;
                return 0;
        }
        for (unsigned i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
                struct tm tm;
                const char *end;

                localtime_r(&now, &tm);
                tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
                end = strptime(text, forms[i], &tm);
                if (!end || *end)
                        continue;
                tm.tm_isdst = -1;
                then = mktime(&tm);
                if (i >= 5 && then > now)
                        then -= 86400;
                if (then < 0)
                        return -EINVAL;
                *ret_ms = (uint64_t)then * 1000;
                return 0;
        }
        return -EINVAL;
}

static int open_at(int dir, const char *name)
{
        int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

        return fd < 0 ? -errno : fd;
}

/* Takes fd, which may be -errno, and name. The same file is not there twice: it may be committed
 * while we look. */
static int add_piece(struct ls_pieces *p, int fd, char *name)
{
        struct stat st;

        if (fd < 0 || !name || fstat(fd, &st) < 0)
                goto fail;
        for (size_t i = 0; i < p->n; i++)
                if (p->v[i].dev == st.st_dev && p->v[i].ino == st.st_ino) {
                        close(fd);
                        free(name);
                        return 0;
                }
        if (p->n == p->room) {
                size_t room = p->room ? p->room * 2 : 64;
                struct piece *v = realloc(p->v, room * sizeof(*v));

                if (!v)
                        goto fail;
                p->v = v;
                p->room = room;
        }
        p->v[p->n++] = (struct piece){ .fd = fd, .name = name, .dev = st.st_dev, .ino = st.st_ino };
        return 0;
fail:
        if (fd >= 0)
                close(fd);
        free(name);
        return fd == -ENOENT ? 0 : fd < 0 ? fd : -ENOMEM;       /* pruned meanwhile */
}

static void pieces_done(struct ls_pieces *p)
{
        while (p->n) {
                if (p->v[--p->n].fd >= 0)
                        close(p->v[p->n].fd);
                free(p->v[p->n].name);
        }
        free(p->v);
        memset(p, 0, sizeof(*p));
}

/* What is being written has the samples of its file's life. */
static int is_of_time(const struct statx *st, uint64_t from_ms, uint64_t to_ms)
{
        uint64_t from_s = from_ms / 1000, to_s = to_ms / 1000 + 1;

        return (uint64_t)st->stx_mtime.tv_sec + 1 >= from_s &&
               (!(st->stx_mask & STATX_BTIME) || (uint64_t)st->stx_btime.tv_sec <= to_s);
}

/* What is being written, or waits to be committed: SERVICE.PID.MS/trace* of incoming. */
static int add_recording(struct ls_pieces *p, int incoming, const char *dir_name, uint64_t from_ms,
                         uint64_t to_ms)
{
        int fd = openat(incoming, dir_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW),
            error = 0;
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        struct dirent *e;

        while (dir && !error && (e = readdir(dir))) {
                struct statx st;

                if (strncmp(e->d_name, "trace", 5) ||
                    statx(fd, e->d_name, AT_SYMLINK_NOFOLLOW,
                          STATX_BTIME | STATX_MTIME | STATX_SIZE | STATX_TYPE, &st) < 0 ||
                    !S_ISREG(st.stx_mode) || !st.stx_size || !is_of_time(&st, from_ms, to_ms))
                        continue;
                error = add_piece(p, open_at(fd, e->d_name),
                                  ls_print("incoming/%s/%s", dir_name, e->d_name));
        }
        if (dir)
                closedir(dir);
        else if (fd >= 0)
                close(fd);
        return error;
}

static int is_of_service(const char *name, const char *service)
{
        size_t n = strlen(service);

        return !strncmp(name, service, n) && name[n] == '.' &&
               strspn(name + n, ".0123456789") == strlen(name + n);
}

static int add_incoming(struct ls_pieces *p, const struct ls_store *s, const char *service,
                        uint64_t from_ms, uint64_t to_ms)
{
        int fd = openat(s->fd, "incoming", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW),
            error = 0;
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        struct dirent *e;

        while (dir && !error && (e = readdir(dir)))
                if (is_of_service(e->d_name, service))
                        error = add_recording(p, fd, e->d_name, from_ms, to_ms);
        if (dir)
                closedir(dir);
        else if (fd >= 0)
                close(fd);
        return error;
}

static int find_pieces(const struct ls_store *s, const char *service, uint64_t from_ms,
                       uint64_t to_ms, struct ls_pieces *p)
{
        struct ls_chunks all;
        int error = add_incoming(p, s, service, from_ms, to_ms);

        if (!error)
                error = ls_store_list(s, service, 0, UINT64_MAX, &all);
        if (error)
                return error;
        if (ls_store_hide(&all, NULL))
                error = -ENOMEM;
        for (size_t i = 0; i < all.n && !error; i++) {
                const struct ls_chunk *c = &all.v[i];
                /* The last chunk of a window may go on behind its end. */
                uint64_t end_ms = c->end_ms + (c->level ? LONGEST_MS : 0);

                if (!p->first_ms || c->begin_ms < p->first_ms)
                        p->first_ms = c->begin_ms;
                p->last_ms = c->end_ms > p->last_ms ? c->end_ms : p->last_ms;
                if (end_ms >= from_ms && c->begin_ms < to_ms)
                        error = add_piece(p, ls_store_open_chunk(s, c),
                                          ls_print("%s/%s/%s", c->service, c->day, c->name));
        }
        ls_chunks_done(&all);
        return error;
}

/* A file that nobody else sees. */
static int make_file(void)
{
        const char *dir = getenv("TMPDIR");
        int fd = open(dir && *dir == '/' ? dir : "/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

        if (fd < 0)
                fd = memfd_create("luasample-range", MFD_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

struct merging {
        const char *command;
        uint64_t from_ms, to_ms;        /* of the wall clock */
        struct ls_merge_input in[AT_ONCE];
        unsigned n, boots;
};

#define LATE_NS 2000000000ull           /* samples may be of so long before or behind the piece */

struct looking { uint64_t from_ns, to_ns, offset; };    /* of the wall clock, and to it */

/* Stops at the first that is of the time. */
static int look(void *ctx, const struct ls_sample_block *b)
{
        const struct looking *l = ctx;

        for (uint32_t i = 0; i < b->n; i++)
                if (b->time_ns[i] + l->offset > l->from_ns && b->time_ns[i] + l->offset <= l->to_ns)
                        return 1;
        return 0;
}

static uint64_t begin_of(const struct ls_profile *p)
{
        if (!p->n_clocks)
                return ls_profile_u64(p, LS_INFO_START_REALTIME, 0);
        return ls_profile_u64(p, LS_INFO_START_MONOTONIC, p->clocks[0].monotonic_ns) +
               p->clocks[0].realtime_ns - p->clocks[0].monotonic_ns;
}

/* Nothing of it is of the time, by its own clock: such a piece is left out, so that what is made of
 * a time is the same whether the piece is there yet or not. And a file that was written while the
 * clock was set is of a longer time by its name; with such a one no clock would fit all. */
static int is_of_other_time(const struct merging *m, struct ls_profile *p)
{
        const uint64_t begin = begin_of(p), elapsed = ls_profile_u64(p, LS_INFO_ELAPSED, 0),
                       end = elapsed ? begin + elapsed : UINT64_MAX;    /* 0: not over */
        struct looking l = { m->from_ms * 1000000, UINT64_MAX, 0 };

        if (m->to_ms < UINT64_MAX / 1000000)
                l.to_ns = m->to_ms * 1000000;
        if (!begin || (begin < l.to_ns && end > l.from_ns))
                return 0;
        if (end < l.from_ns ? l.from_ns - end > LATE_NS
                            : begin > l.to_ns && begin - l.to_ns > LATE_NS)
                return 1;
        if (p->n_clocks)
                l.offset = p->clocks[0].realtime_ns - p->clocks[0].monotonic_ns;
        else
                l.offset = begin - ls_profile_u64(p, LS_INFO_START_MONOTONIC, 0);
        return ls_profile_samples(p, LS_COL_TIME, look, &l) != 1;
}

static int compare_inputs(const void *a, const void *b)
{
        const struct ls_merge_input *x = a, *y = b;
        uint64_t at = begin_of(x->profile), other = begin_of(y->profile);

        return at != other ? at < other ? -1 : 1 : strcmp(x->name, y->name);
}

/* One at least stays, if any can be read. */
static void open_inputs(struct merging *m, const struct piece *v, size_t n)
{
        struct ls_merge_input spare = { .profile = NULL };

        m->n = 0;
        for (size_t i = 0; i < n; i++) {
                const char *why = NULL;
                struct ls_profile *p;
                int r;

                r = ls_profile_open_fd(v[i].fd, &p, &why);
                if (r) {
                        ls_warning("%s: %s: %s; the rest is shown", m->command, v[i].name,
                                   why ? why : strerror(-r));
                        continue;
                }
                if (p->n_damages)
                        ls_warning("%s: %s: %u part%s damaged (%s); the rest is shown", m->command,
                                   v[i].name, p->n_damages, p->n_damages == 1 ? " is" : "s are",
                                   p->damages->why);
                if (!p->interval_ns) {          /* nothing of it can be read */
                        ls_profile_close(p);
                        continue;
                }
                if (!is_of_other_time(m, p)) {
                        m->in[m->n++] = (struct ls_merge_input){ .profile = p, .name = v[i].name };
                        continue;
                }
                if (spare.profile)
                        ls_profile_close(spare.profile);
                spare = (struct ls_merge_input){ .profile = p, .name = v[i].name };
        }
        if (!m->n && spare.profile)
                m->in[m->n++] = spare;
        else if (spare.profile)
                ls_profile_close(spare.profile);
        /* What waits to be committed has its place there already. */
        if (m->n)
                qsort(m->in, m->n, sizeof(*m->in), compare_inputs);
}

static int merge_some(struct merging *m, const struct piece *v, size_t n, struct ls_pieces *to)
{
        unsigned a, b;
        uint64_t interval;
        const struct ls_merge_pieces pieces = { .brief = 1 };
        int fd = -1, r;

        open_inputs(m, v, n);
        r = m->n ? ls_merge_plan(m->in, m->n, &interval, &a, &b) : 0;
        if (r == -EDOM)
                ls_error("%s: the interval was changed in that time, and ticks of %s and %s cannot "
                         "be added up: "
                         "choose a shorter time",
                         m->command, m->in[a].name, m->in[b].name);
        for (unsigned i = 0; i < m->n; i++)
                m->boots += !ls_merge_one_clock(&m->in[0], &m->in[i]);
        if (!r && m->n) {
                ls_merge_by_wall(m->in, m->n);
                fd = make_file();
                r = fd < 0 ? fd : ls_merge_write(fd, m->in, m->n, interval, &pieces);
                if (!r)
                        r = add_piece(to, fd, strdup("merged"));
                else if (fd >= 0)
                        close(fd);
                if (r)
                        ls_error("%s: the time cannot be merged: %s", m->command, strerror(-r));
        }
        for (unsigned i = 0; i < m->n; i++)
                ls_profile_close(m->in[i].profile);
        return r;
}

/* One trace of all: at first of some, then of those. */
static int merge_all(const char *command, struct ls_pieces *p, uint64_t from_ms, uint64_t to_ms,
                     int *ret_fd, unsigned *ret_boots)
{
        struct merging m = { .command = command, .from_ms = from_ms, .to_ms = to_ms };
        int r = 0, merged = 0;

        while (!r && p->n && (p->n > 1 || !merged)) {
                struct ls_pieces next = { .n = 0, .first_ms = p->first_ms, .last_ms = p->last_ms };

                for (size_t i = 0; !r && i < p->n; i += AT_ONCE)
                        r = merge_some(&m, p->v + i, p->n - i < AT_ONCE ? p->n - i : AT_ONCE,
                                       &next);
                pieces_done(p);
                *p = next;
                merged = 1;
                m.from_ms = 0;          /* what is merged is of the time */
                m.to_ms = UINT64_MAX;
        }
        *ret_boots = m.boots;
        if (!r && !p->n) {
                ls_error("%s: none of the chunks can be read (luasample store verify names each)",
                         command);
                r = -EIO;
        }
        if (!r) {
                *ret_fd = p->v[0].fd;
                p->v[0].fd = -1;
        }
        return r;
}

/* Where the time is in the trace. Of several boots no clock fits all: then whole chunks are
 * shown. */
static void find_cut(struct ls_range *range, uint64_t from_ms, uint64_t to_ms, unsigned boots)
{
        const char *why;
        struct ls_profile *p;
        uint64_t start, offset;

        if (boots || ls_profile_open_fd(range->fd, &p, &why))
                return;
        if (p->n_clocks) {
                offset = p->clocks[0].realtime_ns - p->clocks[0].monotonic_ns;
                start = ls_profile_u64(p, LS_INFO_START_MONOTONIC, 0) + offset;
                range->from_ns = from_ms * 1000000 > start ? from_ms * 1000000 - start : 0;
                range->to_ns = to_ms > UINT64_MAX / 1000000 ? UINT64_MAX
                               : to_ms * 1000000 > start    ? to_ms * 1000000 - start
                                                            : 0;
                range->cut = 1;
        }
        ls_profile_close(p);
}

static void put_time(uint64_t ms, char *to, size_t size)
{
        time_t seconds = (time_t)(ms / 1000);
        struct tm tm;

        localtime_r(&seconds, &tm);
        strftime(to, size, "%Y-%m-%d %H:%M:%S", &tm);
}

/* The services of the store, by their names. */
static unsigned list_services(const struct ls_store *s, char names[SERVICES_MOST][LS_STORE_SERVICE])
{
        int fd = s->services_fd >= 0
                         ? openat(s->services_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                         : -1;
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        struct dirent *e;
        unsigned n = 0;

        while (dir && n < SERVICES_MOST && (e = readdir(dir))) {
                struct stat st;

                if (*e->d_name != '.' && strlen(e->d_name) < LS_STORE_SERVICE &&
                    fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
                        strcpy(names[n++], e->d_name);
        }
        if (dir)
                closedir(dir);
        return n;
}

/* Returns the name that is meant, or NULL after a line. */
static const char *choose_service(const char *command, const struct ls_store *s, const char *wanted)
{
        static char names[SERVICES_MOST][LS_STORE_SERVICE];
        const char *words[SERVICES_MOST + 1], *near;
        char list[512] = "";
        unsigned n = list_services(s, names);

        for (unsigned i = 0; i < n; i++) {
                size_t len = strlen(list);

                words[i] = names[i];
                if (wanted ? !strcmp(names[i], wanted) : n == 1)
                        return names[i];
                snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "", names[i]);
        }
        words[n] = NULL;
        near = wanted ? ls_suggest(wanted, words) : NULL;
        if (!n)
                ls_error("%s: nothing is in the store %s yet", command, s->path);
        else if (near)
                ls_error("%s: --service %s: the store has none of that name; did you mean %s?",
                         command, wanted, near);
        else
                ls_error("%s: give --service NAME, one of: %s", command, list);
        return NULL;
}

static int read_times(const char *command, const struct ls_query *q, uint64_t shift_ms,
                      uint64_t *from_ms, uint64_t *to_ms)
{
        uint64_t now = ls_store_now_ms();

        *from_ms = 0;
        *to_ms = UINT64_MAX;
        if ((q->since && ls_query_time(q->since, now, from_ms)) ||
            (q->until && ls_query_time(q->until, now, to_ms))) {
                ls_error("%s: --%s: give how long ago, such as 2h, or a time such as 14:30 or "
                         "'2026-11-22 14:30'",
                         command,
                         q->since && ls_query_time(q->since, now, from_ms) ? "since" : "until");
                return -EINVAL;
        }
        if (shift_ms && *to_ms == UINT64_MAX)
                *to_ms = now;
        *from_ms -= *from_ms < shift_ms ? *from_ms : shift_ms;
        *to_ms -= *to_ms < shift_ms ? *to_ms : shift_ms;
        if (*from_ms < *to_ms)
                return 0;
        ls_error("%s: --since is not before --until", command);
        return -EINVAL;
}

static int say_empty(const char *command, const char *service, const struct ls_pieces *p)
{
        char from[32], to[32];

        put_time(p->first_ms, from, sizeof(from));
        put_time(p->last_ms, to, sizeof(to));
        if (p->first_ms)
                ls_error("%s: nothing of %s was recorded in that time; the store has it from %s to "
                         "%s",
                         command, service, from, to);
        else
                ls_error("%s: the store has nothing of %s", command, service);
        return -ENODATA;
}

/* What one question may read, where it may not read all. */
static int check_size(const char *command, const struct ls_pieces *p)
{
        uint64_t bytes = 0;

        for (size_t i = 0; i < p->n; i++) {
                struct stat st;

                bytes += fstat(p->v[i].fd, &st) == 0 ? (uint64_t)st.st_size : 0;
        }
        if (!ls_store_apart.bytes_most || bytes <= ls_store_apart.bytes_most)
                return 0;
        ls_error("%s: the chunks of that time have %llu MiB, more than %llu: choose a shorter one",
                 command, (unsigned long long)(bytes >> 20),
                 (unsigned long long)(ls_store_apart.bytes_most >> 20));
        return -E2BIG;
}

static int find_range(const char *command, const struct ls_store *s, const char *service,
                      struct ls_range *ret)
{
        struct ls_pieces *p = ret->found;
        char from[32], to[32];
        uint64_t now = ls_store_now_ms();
        int r = find_pieces(s, service, ret->from_ms, ret->to_ms, p);

        if (r)
                ls_error("%s: %s: %s", command, s->path, strerror(-r));
        else if (!p->n)
                r = say_empty(command, service, p);
        else
                r = check_size(command, p);
        put_time(ret->from_ms ? ret->from_ms : p->first_ms ? p->first_ms : now, from, sizeof(from));
        put_time(ret->to_ms < UINT64_MAX ? ret->to_ms : now, to, sizeof(to));
        ret->name = ls_print("%s, %s to %s", service, from, to);
        return !r && !ret->name ? -ENOMEM : r;
}

static int find(const char *command, const struct ls_query *q, uint64_t shift_ms,
                struct ls_range *ret)
{
        char *place = q->store ? strdup(q->store) : ls_place_of_store();
        const char *service;
        struct ls_store s;
        int r;

        ls_store_allow_files();
        r = place && ret->found ? read_times(command, q, shift_ms, &ret->from_ms, &ret->to_ms)
                                : -ENOMEM;
        if (!r)
                r = ls_store_open(&s, place, LS_STORE_READ);
        free(place);
        if (r)
                return r;
        service = choose_service(command, &s, q->service);
        r = service ? find_range(command, &s, service, ret) : -ENOENT;
        ls_store_close(&s);
        return r;
}

static void found_done(struct ls_range *r)
{
        if (r->found)
                pieces_done(r->found);
        free(r->found);
        r->found = NULL;
}

int ls_query_find(const char *command, const struct ls_query *q, uint64_t shift_ms,
                  struct ls_range *ret)
{
        int r;

        *ret = (struct ls_range){ .fd = -1, .found = calloc(1, sizeof(*ret->found)) };
        r = find(command, q, shift_ms, ret);
        if (r) {
                found_done(ret);
                ls_store_apart.error = r;
        }
        return r;
}

int ls_query_read(const char *command, struct ls_range *ret)
{
        unsigned boots = 0;
        int r = ls_store_drop();

        if (r)
                ls_error("%s: the rights to read the store cannot be given up: %s", command,
                         strerror(-r));
        else
                r = merge_all(command, ret->found, ret->from_ms, ret->to_ms, &ret->fd, &boots);
        if (!r)
                find_cut(ret, ret->from_ms, ret->to_ms, boots);
        found_done(ret);
        if (r)
                ls_store_apart.error = r;
        return r;
}
