/* The configuration of the daemon: one INI file and its drop-ins, read and checked whole. Called by
 * daemon.c and by the supervisor when it reloads. */
#ifndef LS_DAEMON_CONFIG_H
#define LS_DAEMON_CONFIG_H

#include <stdint.h>

#include "daemon/bounds.h"

#define LS_PATTERNS_MOST 32u            /* of one key of a rule */
#define LS_SERVICES_MOST 256u
#define LS_SERVICE_NAME 64u             /* bytes of its name, with the 0 */

struct ls_patterns {
        char *text[LS_PATTERNS_MOST];
        unsigned n;
};

struct ls_service {
        char name[LS_SERVICE_NAME];
#define LS_RULE(key, member, argument, help) struct ls_patterns member;
#include "daemon/rules.def"
#undef LS_RULE
        uint64_t interval_ns, canary_ns, burst_ns;
        uint64_t native, source, args;
        uint64_t seen;                  /* bits of options that the file which is being read has
                                         * given */
        const char *where;              /* "FILE:LINE" of its first section; the configuration's */
};

struct ls_when {                        /* [rule NAME] */
        char name[LS_SERVICE_NAME], service[LS_SERVICE_NAME];   /* service: empty = all */
        uint64_t cpu, rss, exit, for_ns;        /* cpu: percent of a processor; 0 = not asked */
        uint64_t stall_ns;                      /* 0 = not asked */
        struct ls_patterns mark, counter;       /* counter: "PATTERN>N" */
        uint64_t burst, keep, stack, at_most, per_ns;
        char *run;                              /* NULL = nothing */
        uint64_t seen;
        const char *where;
};

struct ls_sink_rule {                   /* [sink NAME] */
        char name[LS_SERVICE_NAME];
        char *type, *url, *labels, *tenant, *auth_file, *table;         /* NULL = not given */
        struct ls_patterns series;
        uint64_t every_ns, max_age_ns, experimental;
        uint64_t seen;
        char *where;
};

struct ls_config {
        char *store, *socket;
        uint64_t http;
        char *http_socket, *http_listen, *http_group, *http_host;       /* NULL = none */
        char *http_token, *http_certificate, *http_key;
        uint64_t process_events, discover_ns, overhead_ppm, host_ppm, overhead_window_ns,
                overhead_calm_ns, max_targets, chunk_ns, merge_ns, merge_old_ns, max_age_ns,
                max_size, max_kept, min_free;
        uint64_t seen;
        struct ls_service *services;
        unsigned n_services, n_files;
        struct ls_when *rules;
        unsigned n_rules;
        struct ls_sink_rule *sinks;
        unsigned n_sinks;
        char *rule_texts[LS_RULES_MOST];        /* where of the rules */
        char *texts[LS_SERVICES_MOST];  /* where of the services */
};

/* Reads path, then path.d/ (each *.conf, in the order of names). must_exist 0: path may be missing.
 * user: whose places the defaults are. Each error is said with its file and line. Returns 0, or
 * -EINVAL, -errno: then *ret is empty. */
int ls_config_read(const char *path, int must_exist, int user, struct ls_config *ret);
void ls_config_done(struct ls_config *c);

/* One service with the defaults of the table, without a rule. */
void ls_service_init(struct ls_service *s, const char *name);
/* Whether a rule is for that service. */
int ls_rule_is_for(const struct ls_when *r, const char *service);
/* Whether a service may have that name: it is a directory of the store. */
int ls_service_name_ok(const char *name);
/* For check_man.py: a line for each key. */
void ls_config_list(void);

#endif
