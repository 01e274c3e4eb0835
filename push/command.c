/* The command luasample push: a trace, or a time of the daemon's store, to a store of profiles.
 *
 * Each event of the trace becomes profiles, each no larger than the store takes (sinks.def). They
 * are the same each time that the same is pushed, and named by their content: so one that is sent
 * twice, since its answer was lost, can be recognised. From the moment when the files are open the
 * command may only connect, or write to its directory, and is nobody where it was root: traces, and
 * what stores answer, are of strangers. */
#include "push/commands.h"

#include "formats/escape.h"
#include "formats/trace/reader.h"
#include "push/directory.h"
#include "push/http.h"
#include "push/options.h"
#include "record/worker/confine.h"
#include "report/model/events.h"
#include "report/options/range.h"
#include "report/options/trace.h"
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define EXIT_LATER 75                   /* the same may succeed later; EX_TEMPFAIL of sysexits.h */
#define EXIT_REFUSED 76                 /* the store has refused it, and would again; EX_PROTOCOL */
#define WAIT_MOST_MS 60000u             /* for a store that says how long */

struct pushing {
        struct ls_push_options *o;
        struct ls_report_options report;
        struct ls_export_taker taker;
        int dir_fd;
        uint64_t sent, seen;            /* profiles */
        uint64_t ns, cut;               /* of the event: time sent; stacks that were cut */
        uint64_t retry_ms;
        int status;
};

/* The exporters know how large a profile is: pprof by the last bytes of its gzip. */
static size_t raw_size(const struct ls_push *p)
{
        const uint8_t *end = p->profile.data + p->profile.len;

        if ((p->sink->flags & LS_SINK_OTLP) || p->profile.len < 4)
                return p->profile.len;
        return (size_t)end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 |
               (size_t)end[-1] << 24;
}

static int make_profile(struct ls_push *p, const struct ls_exporter *e, const struct ls_export *in)
{
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        int r = f ? e->write(f, in) : -ENOMEM;

        if (f && (ferror(f) | fclose(f)))
                r = -ENOMEM;
        p->profile.len = 0;
        if (!r)
                ls_buf_add(&p->profile, text, size);
        free(text);
        return r ? r : p->profile.failed ? -ENOMEM : 0;
}

/* A UUID of version 8: of the profile, and of whom it is. */
static void make_id(struct ls_push *p, const char *event)
{
        XXH3_state_t state;
        XXH128_canonical_t id;
        char *to = p->id;

        XXH3_128bits_reset(&state);
        XXH3_128bits_update(&state, p->profile.data, p->profile.len);
        XXH3_128bits_update(&state, event, strlen(event) + 1);
        XXH3_128bits_update(&state, p->service, strlen(p->service) + 1);
        for (unsigned i = 0; i < p->n_labels; i++) {
                XXH3_128bits_update(&state, p->labels[i].name, strlen(p->labels[i].name) + 1);
                XXH3_128bits_update(&state, p->labels[i].value, strlen(p->labels[i].value) + 1);
        }
        XXH128_canonicalFromHash(&id, XXH3_128bits_digest(&state));
        id.digest[6] = (uint8_t)((id.digest[6] & 15) | 0x80);
        id.digest[8] = (uint8_t)((id.digest[8] & 63) | 0x80);
        for (unsigned i = 0; i < 16; i++)
                to += sprintf(to, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                              id.digest[i]);
}

/* Half a second, then twice as long each time, and up to as much again, so that many do not come at
 * one time. */
static void wait_for(uint64_t round, const struct ls_answer *a)
{
        uint64_t ms = a->retry_ms ? a->retry_ms : (uint64_t)500 << (round < 6 ? round : 6);
        uint16_t random = 0;
        struct timespec t;

        if (getrandom(&random, sizeof(random), 0) != sizeof(random))
                random = 0;
        ms += ms * random / 65536 / (a->retry_ms ? 10 : 1);
        t = (struct timespec){ (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
        nanosleep(&t, NULL);
}

static int send_once(const struct pushing *s, const struct ls_export *in, struct ls_answer *a)
{
        const struct ls_push *p = &s->o->push;
        struct ls_buf body = { 0 };
        int r;

        if (p->sink->flags & LS_SINK_DIR)
                return ls_push_file(p, s->dir_fd, in, a);
        r = p->sink->body(p, in, &body);
        r = r ? r : ls_push_http(p, &body, a);
        ls_buf_free(&body);
        return r;
}

static int send_profile(struct pushing *s, const struct ls_export *in)
{
        struct ls_answer a;

        for (uint64_t round = 0;; round++) {
                int r = send_once(s, in, &a);

                if (r || !*a.why) {
                        s->sent += !r;
                        return r;
                }
                s->retry_ms = a.retry_ms;
                if (!a.again || round == s->o->retries || a.retry_ms > WAIT_MOST_MS)
                        break;
                wait_for(round, &a);
        }
        ls_error("push: %s: %s%s", s->o->push.url, a.why,
                 a.again ? "; what is left can be pushed again later" : "");
        s->status = a.again ? EXIT_LATER : EXIT_REFUSED;
        return -ECANCELED;
}

/* Stacks with more frames than the store takes lose those at their root. */
static void count_cut(struct pushing *s, const struct ls_export *in)
{
        unsigned most = s->o->push.sink->depth;

        for (size_t i = 0; most && i < in->n_cells; i++) {
                uint32_t at = in->cells[i].stack;
                unsigned depth = 0;

                for (; at && depth <= most; depth++)
                        at = in->profile->stacks[at].parent;
                s->cut += depth > most;
        }
}

static uint64_t cells_ns(const struct ls_export *in)
{
        uint64_t ns = 0;

        for (size_t i = 0; i < in->n_cells; i++)
                ns += in->cells[i].ticks * (in->exact ? 1 : in->interval_ns);
        return ns;
}

static int take(void *ctx, const struct ls_export *in)
{
        struct pushing *s = ctx;
        struct ls_push *p = &s->o->push;
        int r = make_profile(p, s->report.exporter, in);

        if (!r && raw_size(p) > p->sink->bytes && in->n_cells > 1)
                return -EFBIG;
        if (!r && s->seen++ < s->o->skip) {
                s->sent++;
                return 0;
        }
        make_id(p, in->event);
        if (!r)
                r = send_profile(s, in);
        if (!r) {
                count_cut(s, in);
                s->ns += cells_ns(in);
        }
        return r;
}

static const struct ls_exporter *exporter_of(const struct ls_sink *s)
{
        return s->flags & LS_SINK_OTLP ? &ls_export_otlp : &ls_export_pprof;
}

static void say_event(const struct pushing *s, const char *event, uint64_t before)
{
        const struct ls_event_choice one = s->report.want.events;
        int counts = ls_events_count(&one);

        if (s->o->porcelain || s->sent == before)
                return;
        printf("%s: %" PRIu64 "%s in %" PRIu64 " profile%s to %s\n", event, s->ns,
               counts ? "" : " ns", s->sent - before, s->sent - before == 1 ? "" : "s",
               s->o->push.url);
        if (s->cut)
                ls_warning("push: %" PRIu64 " stack%s of %s had more than %u frames: those at the "
                                            "root were left out",
                           s->cut, s->cut == 1 ? "" : "s", event, s->o->push.sink->depth);
}

static int push_event(struct pushing *s, struct ls_profile *p, uint8_t event)
{
        uint64_t before = s->sent;
        int status;

        s->report.want.events = (struct ls_event_choice){ .id = { event }, .n = 1 };
        s->ns = s->cut = 0;
        status = ls_report_run_on(&s->report, p);
        if (!s->status)
                s->status = status;
        say_event(s, ls_event_name(event), before);
        return s->status;
}

/* Each that the trace has, or that were asked for. */
static int push_events(struct pushing *s, struct ls_profile *p)
{
        const struct ls_event_choice asked = s->o->report.want.events;
        int status = 0;

        for (unsigned i = 0; !status && i < asked.n; i++)
                status = push_event(s, p, asked.id[i]);
        for (unsigned e = 0; !status && !asked.n && e < 256; e++)
                if (*ls_event_name((uint8_t)e) && ls_events_have(p, (uint8_t)e))
                        status = push_event(s, p, (uint8_t)e);
        return status;
}

/* Name of the service: by --service of the store, else by the program. */
static char *name_service(const struct pushing *s, const struct ls_profile *p)
{
        struct ls_str command = ls_profile_str(p, LS_INFO_COMMAND);
        const char *name = s->report.input, *end;

        if (s->o->push.service)
                return ls_visible(s->o->push.service, strlen(s->o->push.service));
        if (s->o->range)
                return ls_visible(name, strcspn(name, ","));
        end = command.len ? memchr(command.s, ' ', command.len) : NULL;
        end = end ? end : command.s + command.len;
        name = command.s;
        for (const char *c = command.s; c && c < end; c++)
                if (*c == '/')
                        name = c + 1;
        return name && name < end ? ls_visible(name, (size_t)(end - name)) : strdup("lua");
}

static int push_profile(struct pushing *s, struct ls_profile *p)
{
        struct ls_str host = ls_profile_str(p, LS_INFO_HOST);
        char *service = name_service(s, p), *visible = ls_visible(host.len ? host.s : "", host.len);
        int status = LS_EXIT_FAIL;

        s->o->push.service = service;
        s->o->push.host = visible;
        if (service && visible && *service)
                status = push_events(s, p);
        else
                ls_error("push: the service has no name: give --service-name NAME");
        if (!status && !s->sent && !s->o->porcelain)
                ls_warning("push: nothing was pushed: there are no samples");
        if (s->o->porcelain)
                printf("sent %" PRIu64 "\nretry-after-ms %" PRIu64 "\n", s->sent, s->retry_ms);
        free(service);
        free(visible);
        return status;
}

/* Nobody, where this process is root; who owns the directory that is written to. What is not needed
 * to send or to write is forbidden to every user. Returns 0, or -EPERM, which is said. */
static int give_up_rights(void *ctx)
{
        const struct pushing *s = ctx;
        struct ls_rights rights;
        struct stat st;
        int err;

        ls_rights_nobody(&rights);
        if (!rights.is_own && s->dir_fd >= 0 && fstat(s->dir_fd, &st) == 0)
                rights.uid = st.st_uid; /* the owner needs no group */
        if (!rights.is_own && !rights.uid) {
                ls_error("push: %s belongs to root, who reads no traces here: give it to another "
                         "user (chown nobody)",
                         s->o->push.url);
                return -EPERM;
        }
        ls_push_http_begin();
        err = ls_confine(&rights, -1, s->dir_fd >= 0 ? LS_CONFINE_PUSH_FILES : LS_CONFINE_PUSH, 1);
        if (err < 0)
                ls_error("push: rights cannot be given up: %s", strerror(-err));
        return err < 0 ? -EPERM : 0;
}

static int open_range(struct pushing *s)
{
        struct ls_report_options *o = &s->report;
        int status;

        if (o->want.from.kind != LS_BOUND_OPEN || o->want.to.kind != LS_BOUND_OPEN) {
                ls_error("push: --time is for a file; --since and --until say which time of the "
                         "store");
                return LS_EXIT_USAGE;
        }
        status = ls_range_open("push", NULL, &o->input);
        if (!status && give_up_rights(s))
                status = LS_EXIT_FAIL;
        if (!status)
                status = ls_range_read("push");
        if (!status) {
                ls_range_bounds(o->input, &o->want);
                ls_range_times(o->input, &s->taker.wall_from_ns, &s->taker.wall_to_ns);
        }
        return status;
}

/* Opens what is read, gives up rights, and only then looks into it. Returns 0 or the status to exit
 * with. */
static int open_input(struct pushing *s, struct ls_profile **ret)
{
        const char *why = NULL;
        int fd, r, status;

        if (s->o->range) {
                status = open_range(s);
                return status ? status : ls_open_trace("push", s->report.input, ret);
        }
        fd = strcmp(s->report.input, "-") ? open(s->report.input, O_RDONLY | O_CLOEXEC)
                                          : STDIN_FILENO;
        r = fd < 0 ? -errno : give_up_rights(s);
        if (!r)
                r = ls_profile_open_fd(fd, ret, &why);
        if (r && (r != -EPERM || fd < 0))
                ls_error("push: %s: %s", s->report.input, why ? why : strerror(-r));
        if (!r && (*ret)->n_damages)
                ls_warning("push: %s: %u of its parts are damaged; the rest is pushed",
                           s->report.input, (*ret)->n_damages);
        return r ? LS_EXIT_FAIL : 0;
}

static int push_run(int argc, const char **argv)
{
        struct ls_push_options o;
        struct pushing s = { .o = &o, .dir_fd = -1 };
        struct ls_profile *p;
        int status = ls_push_options_read(argc, argv, &o);

        if (status != LS_GO_ON)
                return status;
        signal(SIGPIPE, SIG_IGN);
        s.taker = (struct ls_export_taker){ .cells = o.push.sink->cells,
                                            .without = o.without,
                                            .depth = o.push.sink->depth,
                                            .label_keys = o.label_keys,
                                            .time_is_end = (o.push.sink->flags & LS_SINK_END) != 0,
                                            .take = take,
                                            .ctx = &s };
        s.report = o.report;
        s.report.taker = &s.taker;
        s.report.exporter = exporter_of(o.push.sink);
        if (o.push.sink->flags & LS_SINK_DIR)
                s.dir_fd = open(o.push.url, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if ((o.push.sink->flags & LS_SINK_DIR) && s.dir_fd < 0) {
                ls_error("push: %s: %s", o.push.url, strerror(errno));
                return LS_EXIT_FAIL;
        }
        status = open_input(&s, &p);
        if (!status) {
                status = push_profile(&s, p);
                ls_profile_close(p);
        }
        ls_buf_free(&o.push.profile);
        return status;
}

const struct ls_command ls_cmd_push = {
        .name = "push",
        .summary = "send profiles to a store: Pyroscope, Parca, ClickHouse and others",
        .usage = "[FILE] --to TYPE:URL [OPTION...]",
        .options = ls_push_option_table,
        .run = push_run,
};
