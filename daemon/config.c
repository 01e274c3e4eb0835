/* Reads the configuration: see config.h. inih splits the lines; what they mean is in options.def
 * and rules.def. */
#include "daemon/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <pwd.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/places.h"
#include "cli/suggest.h"
#include "formats/escape.h"
#include "record/writer/tell.h"

#define LINE_MOST 4096u
#define TEXT_MOST 1024u                 /* bytes of a name or address */
#define ERRORS_SAID 50u /* of one file: who gives another file by mistake reads no thousand lines */

enum section { DAEMON, STORE, HTTP, SERVICE, RULE, SINK };
enum kind { PATH, TEXT, TIME, SIZE, COUNT, PERCENT, SHARE, SWITCH, NAME, PATTERNS };

static const char *const section_names[] = { "daemon", "store", "http", "service",
                                             "rule",   "sink",  NULL };

struct option {
        enum section section;
        const char *key;
        enum kind kind;
        size_t offset;                  /* in the service, or in the configuration */
        const char *def;
        uint64_t least, most;
        const char *argument, *help;
};

#define IN_DAEMON(member) offsetof(struct ls_config, member)
#define IN_STORE(member) offsetof(struct ls_config, member)
#define IN_HTTP(member) offsetof(struct ls_config, member)
#define IN_SERVICE(member) offsetof(struct ls_service, member)
#define IN_RULE(member) offsetof(struct ls_when, member)
#define IN_SINK(member) offsetof(struct ls_sink_rule, member)

static const struct option options[] = {
#define LS_OPTION(section, key, kind, member, def, least, most, argument, help) \
        { section, key, kind, IN_##section(member), def, least, most, argument, help },
#include "daemon/options.def"
#undef LS_OPTION
#define LS_RULE(key, member, argument, help)                                                       \
        { SERVICE, key, PATTERNS, IN_SERVICE(member), NULL, 0, 0, argument, help },
#include "daemon/rules.def"
#undef LS_RULE
};

#define N_OPTIONS (sizeof(options) / sizeof(*options))
_Static_assert(N_OPTIONS <= 64, "bits of seen");

struct reading {
        struct ls_config *c;
        const char *path;
        FILE *file;
        unsigned line, errors;
        void *base;                     /* what the section that is being read sets, */
        uint64_t *seen;                 /* and which keys it has given */
        int section;                    /* enum section; -1 = none, or one that is not known */
        char text[LINE_MOST];
};

static void wrong(struct reading *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void wrong(struct reading *r, const char *fmt, ...)
{
        char text[512];
        va_list ap;

        if (r->errors++ >= ERRORS_SAID)
                return;
        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        ls_error("%s:%u: %s", r->path, r->line, text);
}

int ls_service_name_ok(const char *name)
{
        size_t n = strlen(name);

        return n > 0 && n < LS_SERVICE_NAME && *name != '.' && *name != '-' &&
               strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
                       n;
}

/* "0.5%" in millionths. */
static int read_share(const char *text, uint64_t *ret)
{
        char *end;
        double v = *text >= '0' && *text <= '9' ? strtod(text, &end) : -1;

        if (v < 0 || v > 100 || (*end == '%' ? end[1] : *end))
                return -EINVAL;
        *ret = (uint64_t)(v * 10000 + 0.5);
        return 0;
}

static int read_number(const struct option *o, const char *text, uint64_t *ret)
{
        char copy[64], *end;
        unsigned long long n;
        size_t len = strlen(text);

        switch (o->kind) {
        case TIME:
                return ls_parse_duration(text, "", ret);
        case SIZE:
                return ls_parse_size(text, ret);
        case SHARE:
                return read_share(text, ret);
        case SWITCH:
                *ret = !strcmp(text, "yes");
                return *ret || !strcmp(text, "no") ? 0 : -EINVAL;
        default:
                if (!len || len >= sizeof(copy) || *text < '0' || *text > '9')
                        return -EINVAL;
                strcpy(copy, text);
                if (o->kind == PERCENT && copy[len - 1] == '%')
                        copy[len - 1] = 0;
                errno = 0;
                n = strtoull(copy, &end, 10);
                *ret = n;
                return *end || errno ? -EINVAL : 0;
        }
}

/* The defaults of one section, which the table has as they would be written. */
static void set_defaults(void *to, int named)
{
        for (size_t i = 0; i < N_OPTIONS; i++)
                if ((options[i].section < SERVICE ? 0 : (int)options[i].section) == named &&
                    options[i].def)
                        read_number(&options[i], options[i].def,
                                    (uint64_t *)((char *)to + options[i].offset));
}

void ls_service_init(struct ls_service *s, const char *name)
{
        memset(s, 0, sizeof(*s));
        snprintf(s->name, sizeof(s->name), "%s", name);
        s->where = "";
        set_defaults(s, SERVICE);
}

static const char *what_is_meant(const struct option *o, char *buf, size_t size)
{
        switch (o->kind) {
        case TIME:
                return o->least < 1000000000 ? "a time such as 10ms or 5s"
                                             : "a time such as 10s, 5m, 2h or 7d";
        case SIZE:
                return "a size such as 500M or 4G";
        case SWITCH:
                return "yes or no";
        case PERCENT:
                return "a share such as 5%";
        case SHARE:
                return "a share from 0.0001% to 100%";
        default:
                snprintf(buf, size, "a number from %llu to %llu", (unsigned long long)o->least,
                         (unsigned long long)o->most);
                return buf;
        }
}

static void say_range(struct reading *r, const struct option *o, const char *value)
{
        const char *unit = "";
        uint64_t by = 1;

        if (o->kind == TIME) {
                by = o->least < 1000000000 ? 1000000 : 1000000000;
                unit = o->least < 1000000000 ? "ms" : "s";
        }
        wrong(r, "%s = %s: give from %llu%s to %llu%s", o->key, value,
              (unsigned long long)(o->least / by), unit, (unsigned long long)(o->most / by), unit);
}

static void set_value(struct reading *r, const struct option *o, void *to, const char *value)
{
        char buf[64];
        uint64_t n;

        if (read_number(o, value, &n) < 0)
                wrong(r, "%s = %s: give %s", o->key, value, what_is_meant(o, buf, sizeof(buf)));
        else if (o->kind == SHARE && !n)
                wrong(r, "%s = %s: give %s", o->key, value, what_is_meant(o, buf, sizeof(buf)));
        else if (o->most && (n < o->least || n > o->most))
                say_range(r, o, value);
        else
                *(uint64_t *)to = n;
}

static void set_path(struct reading *r, const struct option *o, char **to, const char *value)
{
        if (*value != '/') {
                wrong(r, "%s = %s: give an absolute path", o->key, value);
                return;
        }
        free(*to);
        *to = strdup(value);
}

static void set_text(struct reading *r, const struct option *o, char **to, const char *value)
{
        if (!*value || *value == '-' || strlen(value) > TEXT_MOST || strpbrk(value, " \t")) {
                wrong(r, "%s = %s: give %s", o->key, value, o->argument);
                return;
        }
        free(*to);
        *to = strdup(value);
}

static void set_name(struct reading *r, char *to, const char *value)
{
        if (!ls_service_name_ok(value))
                wrong(r, "service = %s: a name has letters, digits, _, . and -, at most %u", value,
                      LS_SERVICE_NAME - 1);
        else
                strcpy(to, value);
}

/* A user is kept as a number: names are asked for once, and never while programs are looked at. */
static char *user_number(struct reading *r, const char *value)
{
        struct passwd *pw;

        if (*value && strspn(value, "0123456789") == strlen(value) && strlen(value) < 10)
                return strdup(value);
        pw = getpwnam(value);
        if (!pw) {
                wrong(r, "user = %s: there is no such user", value);
                return NULL;
        }
        return ls_print("%lu", (unsigned long)pw->pw_uid);
}

/* As record --tell takes it. */
static int is_tell(const struct option *o, const char *value)
{
        struct ls_tell tell;
        char *text = ls_print("%s:%s", o->key, value);
        int ok = text && ls_tell_read(text, &tell) == 0;

        free(text);
        return ok;
}

static void add_pattern(struct reading *r, const struct option *o, struct ls_patterns *to,
                        const char *value)
{
        char *text;

        if (!*value || (!strcmp(o->key, "env") && *value == '=') ||
            (o->section == RULE && !is_tell(o, value))) {
                wrong(r, "%s = %s: give %s", o->key, value, o->argument);
                return;
        }
        if (to->n == LS_PATTERNS_MOST) {
                wrong(r, "%s: more than %u patterns", o->key, LS_PATTERNS_MOST);
                return;
        }
        text = !strcmp(o->key, "user") ? user_number(r, value) : strdup(value);
        if (text)
                to->text[to->n++] = text;
}

static void unknown_key(struct reading *r, const char *key)
{
        const char *words[N_OPTIONS + 1], *near;
        unsigned n = 0;

        for (size_t i = 0; i < N_OPTIONS; i++)
                if ((int)options[i].section == r->section)
                        words[n++] = options[i].key;
        words[n] = NULL;
        near = ls_suggest(key, words);
        if (near)
                wrong(r, "unknown key '%s' in [%s]; did you mean '%s'?", key,
                      section_names[r->section], near);
        else
                wrong(r, "unknown key '%s' in [%s] (luasample-daemon.conf(5) lists all)", key,
                      section_names[r->section]);
}

/* Called by inih for each "key = value". */
static int take_value(void *ctx, const char *section, const char *key, const char *value)
{
        struct reading *r = ctx;
        size_t i = 0;

        if (r->section < 0) {
                if (!*section)
                        wrong(r,
                              "'%s' stands in no section; begin with [daemon], [store], [http] or "
                              "[service NAME]",
                              key);
                return 1;
        }
        while (i < N_OPTIONS &&
               ((int)options[i].section != r->section || strcmp(options[i].key, key)))
                i++;
        if (i == N_OPTIONS) {
                unknown_key(r, key);
                return 1;
        }
        if (options[i].kind != PATTERNS && *r->seen & 1ull << i)
                wrong(r, "'%s' is given twice", key);
        *r->seen |= 1ull << i;
        if (options[i].kind == PATTERNS)
                add_pattern(r, &options[i],
                            (struct ls_patterns *)(void *)((char *)r->base + options[i].offset),
                            value);
        else if (options[i].kind == PATH)
                set_path(r, &options[i], (char **)(void *)((char *)r->base + options[i].offset),
                         value);
        else if (options[i].kind == TEXT)
                set_text(r, &options[i], (char **)(void *)((char *)r->base + options[i].offset),
                         value);
        else if (options[i].kind == NAME)
                set_name(r, (char *)r->base + options[i].offset, value);
        else
                set_value(r, &options[i], (char *)r->base + options[i].offset, value);
        return 1;
}

static struct ls_service *find_service(struct reading *r, const char *name)
{
        struct ls_config *c = r->c;
        struct ls_service *s;

        for (unsigned i = 0; i < c->n_services; i++)
                if (!strcmp(c->services[i].name, name))
                        return &c->services[i];
        if (c->n_services == LS_SERVICES_MOST) {
                wrong(r, "more than %u services", LS_SERVICES_MOST);
                return NULL;
        }
        s = &c->services[c->n_services];
        ls_service_init(s, name);
        c->texts[c->n_services] = ls_print("%s:%u", r->path, r->line);
        s->where = c->texts[c->n_services++];
        return s;
}

static struct ls_when *find_rule(struct reading *r, const char *name)
{
        struct ls_config *c = r->c;
        struct ls_when *rule;

        for (unsigned i = 0; i < c->n_rules; i++)
                if (!strcmp(c->rules[i].name, name))
                        return &c->rules[i];
        if (c->n_rules == LS_RULES_MOST) {
                wrong(r, "more than %u rules", LS_RULES_MOST);
                return NULL;
        }
        rule = &c->rules[c->n_rules];
        memset(rule, 0, sizeof(*rule));
        strcpy(rule->name, name);
        set_defaults(rule, RULE);
        c->rule_texts[c->n_rules] = ls_print("%s:%u", r->path, r->line);
        rule->where = c->rule_texts[c->n_rules++];
        return rule;
}

static struct ls_sink_rule *find_sink(struct reading *r, const char *name)
{
        struct ls_config *c = r->c;
        struct ls_sink_rule *sink;

        for (unsigned i = 0; i < c->n_sinks; i++)
                if (!strcmp(c->sinks[i].name, name))
                        return &c->sinks[i];
        if (c->n_sinks == LS_SINKS_MOST) {
                wrong(r, "more than %u sinks", LS_SINKS_MOST);
                return NULL;
        }
        sink = &c->sinks[c->n_sinks++];
        memset(sink, 0, sizeof(*sink));
        strcpy(sink->name, name);
        set_defaults(sink, SINK);
        sink->where = ls_print("%s:%u", r->path, r->line);
        return sink;
}

/* [service NAME], [rule NAME] and [sink NAME] */
static void begin_named(struct reading *r, int section, const char *name)
{
        name += strspn(name, " ");
        if (!ls_service_name_ok(name)) {
                wrong(r, "[%s %s]: a name has letters, digits, _, . and -, at most %u",
                      section_names[section], name, LS_SERVICE_NAME - 1);
        } else if (section == SERVICE) {
                struct ls_service *s = find_service(r, name);

                r->base = s;
                r->seen = s ? &s->seen : NULL;
        } else if (section == SINK) {
                struct ls_sink_rule *sink = find_sink(r, name);

                r->base = sink;
                r->seen = sink ? &sink->seen : NULL;
        } else {
                struct ls_when *rule = find_rule(r, name);

                r->base = rule;
                r->seen = rule ? &rule->seen : NULL;
        }
        r->section = r->base ? section : -1;
}

static void begin_section(struct reading *r, char *name)
{
        char *end = strrchr(name, ']');
        const char *near;

        r->section = -1;
        r->base = NULL;
        if (!end) {
                wrong(r, "a ] is missing");
                return;
        }
        *end = 0;
        if (!strncmp(name, "service ", 8)) {
                begin_named(r, SERVICE, name + 8);
                return;
        }
        if (!strncmp(name, "rule ", 5)) {
                begin_named(r, RULE, name + 5);
                return;
        }
        if (!strncmp(name, "sink ", 5)) {
                begin_named(r, SINK, name + 5);
                return;
        }
        for (int i = 0; i < SERVICE; i++)
                if (!strcmp(name, section_names[i]))
                        r->section = i;
        r->base = r->c;
        r->seen = &r->c->seen;
        if (r->section >= 0)
                return;
        near = ls_suggest(name, section_names);
        if (!strcmp(name, "service") || !strcmp(name, "rule") || !strcmp(name, "sink"))
                wrong(r, "[%s]: a %s needs a name, such as [%s web]", name, name, name);
        else if (near)
                wrong(r, "unknown section [%s]; did you mean [%s]?", name, near);
        else
                wrong(r,
                      "unknown section [%s]; there are [daemon], [store], [http], [service NAME], "
                      "[rule NAME] and [sink NAME]",
                      name);
}

/* For inih: the next line. What it would pass over is looked at here, where the number of the line
 * is known. */
static char *next_line(char *to, int size, void *stream)
{
        struct reading *r = stream;
        size_t len, blank;
        int c;

        if (!fgets(r->text, sizeof(r->text), r->file))
                return NULL;
        r->line++;
        len = strlen(r->text);
        if (len + 1 == sizeof(r->text) || len + 2 >= (size_t)size) {
                wrong(r, "the line has more than %d bytes", size - 3);
                while (len + 1 == sizeof(r->text) && r->text[len - 1] != '\n' &&
                       (c = getc(r->file)) != EOF && c != '\n')
                        ;
                r->text[0] = 0;
        }
        if (r->line == 1 && !strncmp(r->text, "\xef\xbb\xbf", 3))
                memmove(r->text, r->text + 3, strlen(r->text + 3) + 1);
        blank = strspn(r->text, " \t\r\n");
        memcpy(to, r->text, strlen(r->text) + 1);
        if (!r->text[blank] || r->text[blank] == ';' || r->text[blank] == '#')
                return to;
        if (!blank && r->text[0] == '[') {
                begin_section(r, r->text + 1);
        } else if (blank || !strpbrk(r->text, "=:")) {
                wrong(r, blank ? "a line cannot begin with a space"
                               : "neither [section] nor key = value");
                *to = 0;
        }
        return to;
}

/* What decides what root attaches to is nobody else's to write. */
static int check_owner(const char *path, FILE *f)
{
        struct stat st;

        if (fstat(fileno(f), &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode)) {
                ls_error("%s: not a file", path);
                return -EINVAL;
        }
        if ((st.st_uid == geteuid() || st.st_uid == 0) && !(st.st_mode & S_IWOTH))
                return 0;
        ls_error("%s: others can write to it; make it yours, and chmod o-w", path);
        return -EPERM;
}

static int read_file(struct ls_config *c, const char *path, int must_exist)
{
        struct reading r = { .c = c, .path = path, .section = -1 };
        int error = 0;

        r.file = fopen(path, "re");
        if (!r.file) {
                if (errno == ENOENT && !must_exist)
                        return 0;
                error = -errno;
                ls_error("%s: %s", path, strerror(-error));
                return error;
        }
        c->n_files++;
        c->seen = 0;
        for (unsigned i = 0; i < c->n_services; i++)
                c->services[i].seen = 0;
        for (unsigned i = 0; i < c->n_rules; i++)
                c->rules[i].seen = 0;
        for (unsigned i = 0; i < c->n_sinks; i++)
                c->sinks[i].seen = 0;
        error = check_owner(path, r.file);
        if (!error && ini_parse_stream(next_line, &r, take_value, &r) && !r.errors)
                wrong(&r, "not understood");
        if (!error && ferror(r.file))
                wrong(&r, "cannot be read");
        fclose(r.file);
        if (r.errors > ERRORS_SAID)
                ls_error("%s: %u errors more", path, r.errors - ERRORS_SAID);
        return error ? error : r.errors ? -EINVAL : 0;
}

static int is_drop_in(const struct dirent *e)
{
        size_t n = strlen(e->d_name);

        return n > 5 && *e->d_name != '.' && !strcmp(e->d_name + n - 5, ".conf");
}

static int read_drop_ins(struct ls_config *c, const char *path)
{
        struct dirent **entries;
        char *dir = ls_print("%s.d", path);
        int n = dir ? scandir(dir, &entries, is_drop_in, alphasort) : -1, error = 0;

        for (int i = 0; i < n; i++) {
                char *file = ls_print("%s/%s", dir, entries[i]->d_name);
                int r = file ? read_file(c, file, 1) : -ENOMEM;

                error = error ? error : r;
                free(file);
                free(entries[i]);
        }
        if (n >= 0)
                free(entries);
        free(dir);
        return error;
}

static int has_rule(const struct ls_service *s)
{
        unsigned n = 0;

#define LS_RULE(key, member, argument, help) n += s->member.n;
#include "daemon/rules.def"
#undef LS_RULE
        return n != 0;
}

int ls_rule_is_for(const struct ls_when *r, const char *service)
{
        return !*r->service || !strcmp(r->service, service);
}

/* A recorder is told all that is to be heard of its service. */
static int check_tells(const struct ls_config *c, const struct ls_service *s)
{
        unsigned n = 0;

        for (unsigned i = 0; i < c->n_rules; i++)
                if (ls_rule_is_for(&c->rules[i], s->name))
                        n += c->rules[i].mark.n + c->rules[i].counter.n;
        if (n <= LS_TELLS_MOST)
                return 0;
        ls_error("%s: [service %s]: its rules have %u marks and counters: at most %u", s->where,
                 s->name, n, LS_TELLS_MOST);
        return -EINVAL;
}

static int check_rule(const struct ls_config *c, const struct ls_when *r)
{
        unsigned i = 0;

        if (!r->cpu && !r->rss && !r->exit && !r->mark.n && !r->counter.n && !r->stall_ns)
                ls_error("%s: [rule %s] says not when: give cpu, rss, mark, counter, stall or exit",
                         r->where, r->name);
        else if (!r->keep && !r->burst && !r->stack && !r->run)
                ls_error("%s: [rule %s] says not what to do: give keep, burst, stack or run",
                         r->where, r->name);
        else {
                while (*r->service && i < c->n_services && strcmp(c->services[i].name, r->service))
                        i++;
                if (!*r->service || i < c->n_services)
                        return 0;
                ls_error("%s: [rule %s]: there is no [service %s]", r->where, r->name, r->service);
        }
        return -EINVAL;
}

/* Beside the control socket. */
static char *http_place(const char *socket)
{
        const char *slash = strrchr(socket, '/');

        return slash ? ls_print("%.*s/http", (int)(slash - socket), socket) : NULL;
}

/* What its line of `luasample push` would refuse, as far as that can be told here. */
static int check_sink(const struct ls_sink_rule *s)
{
        static const char *const types[] = {
#define LS_SINK(ident, name, path, answer, cells, bytes, depth, flags, help) name,
#include "push/sinks.def"
#undef LS_SINK
                NULL
        };
        unsigned i = 0;

        while (s->type && types[i] && strcmp(types[i], s->type))
                i++;
        if (!s->type || !types[i])
                ls_error("%s: [sink %s]: give type, one of pyroscope, parca, coroot, pprof, otlp, "
                         "clickhouse or dir",
                         s->where, s->name);
        else if (!s->url || (strcmp(s->type, "dir") ? strncmp(s->url, "http://", 7) &&
                                                              strncmp(s->url, "https://", 8)
                                                    : *s->url != '/'))
                ls_error("%s: [sink %s]: give url, %s", s->where, s->name,
                         strcmp(s->type, "dir") ? "which begins with http:// or https://"
                                                : "an absolute path");
        else if (!strcmp(s->type, "otlp") && !s->experimental)
                ls_error("%s: [sink %s]: OTLP profiles are not settled yet: experimental = yes "
                         "sends them",
                         s->where, s->name);
        else
                return 0;
        return -EINVAL;
}

/* What no single line can tell. */
static int check_whole(struct ls_config *c, int user)
{
        int error = 0;

        for (unsigned i = 0; i < c->n_services; i++)
                if (!has_rule(&c->services[i])) {
                        ls_error("%s: [service %s] names no program: give exe, cmd, user, cgroup, "
                                 "unit, container or env",
                                 c->services[i].where, c->services[i].name);
                        error = -EINVAL;
                }
        for (unsigned i = 0; i < c->n_rules; i++)
                if (check_rule(c, &c->rules[i]))
                        error = -EINVAL;
        for (unsigned i = 0; i < c->n_services; i++)
                if (check_tells(c, &c->services[i]))
                        error = -EINVAL;
        for (unsigned i = 0; i < c->n_sinks; i++)
                if (check_sink(&c->sinks[i]))
                        error = -EINVAL;
        if (!c->store)
                c->store = ls_place_store(user);
        if (!c->socket)
                c->socket = ls_place_socket(user);
        if (!c->http_socket && c->socket)
                c->http_socket = http_place(c->socket);
        if (!c->http_certificate != !c->http_key) {
                ls_error("[http]: certificate and key are given together");
                error = -EINVAL;
        }
        if (c->store && c->socket)
                return error;
        ls_error("--user: there is no place for the %s: set %s", c->store ? "socket" : "store",
                 c->store ? "XDG_RUNTIME_DIR" : "HOME");
        return -EINVAL;
}

int ls_config_read(const char *path, int must_exist, int user, struct ls_config *c)
{
        int error, more;

        memset(c, 0, sizeof(*c));
        set_defaults(c, 0);
        c->services = calloc(LS_SERVICES_MOST, sizeof(*c->services));
        c->rules = calloc(LS_RULES_MOST, sizeof(*c->rules));
        c->sinks = calloc(LS_SINKS_MOST, sizeof(*c->sinks));
        if (!c->services || !c->rules || !c->sinks) {
                ls_config_done(c);
                return -ENOMEM;
        }
        error = read_file(c, path, must_exist);
        more = read_drop_ins(c, path);
        error = error ? error : more;
        more = check_whole(c, user);
        error = error ? error : more;
        if (error)
                ls_config_done(c);
        return error;
}

static void patterns_done(struct ls_patterns *p)
{
        while (p->n)
                free(p->text[--p->n]);
}

static void sink_done(struct ls_sink_rule *s)
{
        char *const texts[] = { s->type,      s->url,   s->labels, s->tenant,
                                s->auth_file, s->table, s->where };

        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
                free(texts[i]);
        patterns_done(&s->series);
}

void ls_config_done(struct ls_config *c)
{
        for (unsigned i = 0; i < c->n_services; i++) {
#define LS_RULE(key, member, argument, help) patterns_done(&c->services[i].member);
#include "daemon/rules.def"
#undef LS_RULE
                free(c->texts[i]);
        }
        for (unsigned i = 0; i < c->n_rules; i++) {
                patterns_done(&c->rules[i].mark);
                patterns_done(&c->rules[i].counter);
                free(c->rules[i].run);
                free(c->rule_texts[i]);
        }
        for (unsigned i = 0; i < c->n_sinks; i++)
                sink_done(&c->sinks[i]);
        free(c->sinks);
        free(c->rules);
        free(c->services);
        free(c->store);
        free(c->socket);
        free(c->http_socket);
        free(c->http_listen);
        free(c->http_group);
        free(c->http_host);
        free(c->http_token);
        free(c->http_certificate);
        free(c->http_key);
        memset(c, 0, sizeof(*c));
}

void ls_config_list(void)
{
        for (size_t i = 0; i < N_OPTIONS; i++)
                printf("%s\t%s\t%s\t%s\t%s\n", section_names[options[i].section], options[i].key,
                       options[i].argument, options[i].def ? options[i].def : "-", options[i].help);
}
