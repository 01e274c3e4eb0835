/* The command luasample daemon. */
#include "daemon/daemon.h"
#include "daemon/commands.h"
#include "daemon/rules.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/places.h"

static struct { char *config; int user, check, list_keys; } opt;

static const struct poptOption options[] = {
        { "config", 0, POPT_ARG_STRING, &opt.config, 0,
          "configuration to read, and FILE.d/*.conf (/etc/luasample/daemon.conf)", "FILE" },
        { "user", 0, POPT_ARG_NONE, &opt.user, 0,
          "places of one user: configuration, store and socket below the home", NULL },
        { "check", 0, POPT_ARG_NONE, &opt.check, 0,
          "check the configuration and print which programs it names now", NULL },
        { "list-keys", 0, POPT_ARG_NONE | POPT_ARGFLAG_DOC_HIDDEN, &opt.list_keys, 0,
          "for tests/check_man.py: the keys of the configuration", NULL },
        POPT_TABLEEND
};

static void put_match(const struct ls_service *s, const struct ls_proc *p, const char *off)
{
        printf("%-16s %7d  ", s->name, (int)p->pid);
        ls_put_visible(stdout, *p->cmd ? p->cmd : p->exe);
        if (off)
                printf("  (left alone: %s)", off);
        putchar('\n');
}

/* What a rule names now. Whether LuaJIT is in it is seen when it is attached to. */
static void check_programs(const struct ls_config *c)
{
        static unsigned matched[LS_SERVICES_MOST];
        DIR *dir = opendir("/proc");
        struct dirent *e;

        while (dir && (e = readdir(dir))) {
                pid_t pid = isdigit((unsigned char)e->d_name[0])
                                    ? (pid_t)strtol(e->d_name, NULL, 10)
                                    : 0;
                const struct ls_service *s;
                struct ls_proc_id id;
                struct ls_proc p;
                const char *off;

                if (pid <= 0 || pid == getpid() || ls_proc_identify(pid, &id) < 0 || id.kernel ||
                    ls_program_read(pid, &p) < 0)
                        continue;
                s = ls_rules_find(c, &p, &off);
                if (!s)
                        continue;
                put_match(s, &p, off);
                matched[s - c->services]++;
        }
        if (dir)
                closedir(dir);
        for (unsigned i = 0; i < c->n_services; i++)
                if (!matched[i])
                        printf("%-16s       -  no program matches its rule (%s)\n",
                               c->services[i].name, c->services[i].where);
        if (!c->n_services)
                printf("no [service NAME] in the configuration: nothing is attached to\n");
}

static int run_daemon(struct ls_daemon *d)
{
        int status;

        if (ls_store_open(&d->store, d->config.store, LS_STORE_WRITE))
                return LS_EXIT_FAIL;
        status = ls_socket_open(d) || ls_web_open(d) ? LS_EXIT_FAIL : ls_supervise(d);
        ls_store_close(&d->store);
        return status;
}

static int daemon_run(int argc, const char **argv)
{
        static struct ls_daemon d;
        poptContext ctx = ls_options_begin(&ls_cmd_daemon, argc, argv, 0);
        int val = ls_options_next(&ls_cmd_daemon, ctx), status = 0;
        const char *extra = val == -1 ? poptGetArg(ctx) : NULL;
        char *place = NULL;

        if (extra)
                ls_error("daemon: unexpected argument '%s'", extra);
        if (val == -3 || val < -1 || extra) {
                poptFreeContext(ctx);
                return val == -3 ? 0 : LS_EXIT_USAGE;
        }
        if (opt.list_keys) {
                ls_config_list();
                poptFreeContext(ctx);
                return 0;
        }
        if (!opt.config)
                place = ls_place_config(opt.user);
        d.config_path = opt.config ? opt.config : place;
        d.must_exist = opt.config != NULL;
        d.user = opt.user;
        if (!d.config_path) {
                ls_error("daemon: --user: HOME is not set: give --config FILE");
                status = LS_EXIT_FAIL;
        } else if (ls_config_read(d.config_path, d.must_exist, d.user, &d.config)) {
                status = LS_EXIT_FAIL;
        } else if (opt.check) {
                check_programs(&d.config);
        } else {
                status = run_daemon(&d);
        }
        ls_config_done(&d.config);
        free(place);
        poptFreeContext(ctx);
        return status;
}

const struct ls_command ls_cmd_daemon = {
        .name = "daemon",
        .summary = "record the programs that rules name, all the time, into a store",
        .usage = "[--config FILE] [--user] [--check]",
        .options = options,
        .run = daemon_run,
};
