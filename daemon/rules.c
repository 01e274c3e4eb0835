/* Rules: see rules.h. A function for each row of rules.def. */
#include "daemon/rules.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int match_exe(const struct ls_proc *p, const char *pattern)
{
        const char *slash = strrchr(p->exe, '/');

        return *p->exe &&
               fnmatch(pattern, strchr(pattern, '/') || !slash ? p->exe : slash + 1, 0) == 0;
}

static int match_cmd(const struct ls_proc *p, const char *pattern)
{
        return fnmatch(pattern, p->cmd, 0) == 0;
}

static int match_user(const struct ls_proc *p, const char *number)
{
        return strtoul(number, NULL, 10) == p->uid;
}

static int match_cgroup(const struct ls_proc *p, const char *pattern)
{
        return *p->cgroup && fnmatch(pattern, p->cgroup, 0) == 0;
}

static int match_unit(const struct ls_proc *p, const char *pattern)
{
        return *p->unit && fnmatch(pattern, p->unit, 0) == 0;
}

static int match_container(const struct ls_proc *p, const char *pattern)
{
        return *p->container && fnmatch(pattern, p->container, 0) == 0;
}

static int match_env(const struct ls_proc *p, const char *pattern)
{
        const char *value = strchr(pattern, '=');
        size_t n = value ? (size_t)(value - pattern) : strlen(pattern);
        char name[256], text[LS_CMD_MOST];

        snprintf(name, sizeof(name), "%.*s", (int)n, pattern);
        if (ls_proc_env(p->pid, name, text, sizeof(text)) <= 0)
                return 0;
        return !value || fnmatch(value + 1, text, 0) == 0;
}

/* A key that is not given fits. */
static int any(const struct ls_patterns *list, const struct ls_proc *p,
               int (*match)(const struct ls_proc *, const char *))
{
        for (unsigned i = 0; i < list->n; i++)
                if (match(p, list->text[i]))
                        return 1;
        return !list->n;
}

static int fits(const struct ls_service *s, const struct ls_proc *p)
{
        return 1
#define LS_RULE(key, member, argument, help) && any(&s->member, p, match_##member)
#include "daemon/rules.def"
#undef LS_RULE
                ;
}

const char *ls_rules_off(pid_t pid)
{
        char value[8];
        int r = ls_proc_env(pid, "LUASAMPLE", value, sizeof(value));

        if (r < 0)
                return "its environment cannot be read, so it may say LUASAMPLE=off";
        return r && !strcmp(value, "off") ? "LUASAMPLE=off in its environment" : NULL;
}

const struct ls_service *ls_rules_find(const struct ls_config *c, const struct ls_proc *p,
                                       const char **ret_off)
{
        *ret_off = NULL;
        for (unsigned i = 0; i < c->n_services; i++)
                if (fits(&c->services[i], p)) {
                        *ret_off = ls_rules_off(p->pid);
                        return &c->services[i];
                }
        return NULL;
}
