/* Looks for programs that rules name: see daemon.h. /proc is read each few seconds; a process that
 * no rule names is looked at again until it is some seconds old, and when it begins another
 * program. */
#include "daemon/daemon.h"
#include "daemon/rules.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int by_pid(const void *a, const void *b)
{
        const struct ls_seen *x = a, *y = b;

        return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static struct ls_watched *add_watched(struct ls_daemon *d, pid_t pid, const struct ls_proc_id *id,
                                      const char *service)
{
        struct ls_watched *w;

        if (d->n_watched == LS_WATCHED_MOST) {
                d->left_out++;
                return NULL;
        }
        w = calloc(1, sizeof(*w));
        if (!w)
                return NULL;
        w->pid = pid;
        w->start_ticks = id->start_ticks;
        memcpy(w->comm, id->comm, sizeof(w->comm));
        strcpy(w->service, service);
        w->err_fd = w->cost.fd = -1;
        w->there = 1;
        w->changed_ns = ls_daemon_now();
        if (ls_proc_age_ns(id->start_ticks) > LS_FIRST_NS &&
            d->start_ns + LS_FIRST_NS > w->changed_ns)
                w->changed_ns = 0;      /* was there before us */
        ls_watch_state(w, LS_WATCH_WAITING, "");
        d->watched[d->n_watched++] = w;
        return w;
}

static void remove_watched(struct ls_daemon *d, unsigned i)
{
        free(d->watched[i]);
        d->watched[i] = d->watched[--d->n_watched];
}

static void set_off(struct ls_watched *w, const char *why)
{
        w->off = 1;
        if (w->recorder)
                ls_recorder_end(w, why);
        else
                ls_watch_state(w, LS_WATCH_OFF, why);
}

/* Whether the entry goes on to the next look. */
static int look_at_new(struct ls_daemon *d, struct ls_seen *s, const struct ls_proc_id *id,
                       uint64_t now)
{
        const struct ls_service *service;
        struct ls_watched *w;
        struct ls_proc p;
        const char *off;

        if (now - s->first_ns > LS_SETTLED_NS && s->first_ns)
                return 1;
        if (ls_program_read(s->pid, &p) < 0)
                return 1;
        service = strcmp(p.exe, d->own_exe) ? ls_rules_find(&d->config, &p, &off) : NULL;
        if (!service)
                return 1;               /* no rule, however wide, means recorders */
        w = add_watched(d, s->pid, id, service->name);
        if (w && off)
                set_off(w, off);
        return !w;
}

static void look_at_watched(struct ls_watched *w, const struct ls_proc_id *id, uint64_t now)
{
        if (w->start_ticks != id->start_ticks || id->state == 'Z' || id->state == 'X')
                return;                 /* another process has the number, or it has ended */
        if (strcmp(w->comm, id->comm) && !w->asked) {
                memcpy(w->comm, id->comm, sizeof(w->comm));
                if (w->recorder) {      /* a thread's name, or another program: its recorder sees
                                         * that itself */
                        w->there = 1;
                        return;
                }
                w->changed_ns = now;    /* the rules are asked again */
                w->there = 0;
                return;
        }
        w->there = 1;
}

static int look_at(struct ls_daemon *d, pid_t pid, struct ls_seen *now_seen, uint64_t now)
{
        struct ls_watched *w = ls_daemon_find(d, pid);
        struct ls_seen key = { .pid = pid }, *before;
        struct ls_proc_id id;

        if (ls_proc_identify(pid, &id) < 0 || id.kernel)
                return 0;
        if (w) {
                look_at_watched(w, &id, now);
                return 0;
        }
        if (id.state == 'Z' || id.state == 'X')
                return 0;
        before = d->n_seen ? bsearch(&key, d->seen, d->n_seen, sizeof(key), by_pid) : NULL;
        *now_seen = (struct ls_seen){ .pid = pid, .start_ticks = id.start_ticks, .first_ns = now };
        memcpy(now_seen->comm, id.comm, sizeof(id.comm));
        if (before && before->start_ticks == id.start_ticks && !strcmp(before->comm, id.comm))
                now_seen->first_ns = before->first_ns;
        return look_at_new(d, now_seen, &id, now);
}

/* Those that have ended. One whose recorder still runs is let go when that has ended. */
void ls_scan_forget(struct ls_daemon *d)
{
        for (unsigned i = d->n_watched; i-- > 0;)
                if ((!d->watched[i]->there || d->watched[i]->stale) && !d->watched[i]->recorder)
                        remove_watched(d, i);
}

void ls_daemon_scan(struct ls_daemon *d)
{
        uint64_t now = ls_daemon_now();
        size_t room = d->n_seen + 256, n = 0;
        struct ls_seen *list = malloc(room * sizeof(*list));
        DIR *dir = opendir("/proc");
        struct dirent *e;

        for (unsigned i = 0; i < d->n_watched; i++)
                d->watched[i]->there = 0;
        d->left_out = 0;
        while (list && dir && (e = readdir(dir))) {
                pid_t pid = isdigit((unsigned char)e->d_name[0])
                                    ? (pid_t)strtol(e->d_name, NULL, 10)
                                    : 0;

                if (pid <= 0 || pid == getpid())
                        continue;
                if (n == room) {
                        struct ls_seen *more = realloc(list, (room *= 2) * sizeof(*list));

                        if (!more)
                                break;
                        list = more;
                }
                n += (size_t)look_at(d, pid, &list[n], now);
        }
        if (dir)
                closedir(dir);
        if (list) {
                qsort(list, n, sizeof(*list), by_pid);
                free(d->seen);
                d->seen = list;
                d->n_seen = n;
        }
        ls_scan_forget(d);
}

void ls_scan_look(struct ls_daemon *d, pid_t pid)
{
        struct ls_watched *w = ls_daemon_find(d, pid);
        uint64_t now = ls_daemon_now();
        struct ls_seen spare;

        if (w)
                w->there = 0;
        look_at(d, pid, &spare, now);
        if (!w || w->there || w->recorder)
                return;
        for (unsigned i = 0; i < d->n_watched; i++)
                if (d->watched[i] == w) {
                        remove_watched(d, i);
                        break;
                }
        look_at(d, pid, &spare, now);   /* another program, perhaps */
}

int ls_scan_attach(struct ls_daemon *d, pid_t pid)
{
        struct ls_watched *w = ls_daemon_find(d, pid);
        const char *off = ls_rules_off(pid);
        struct ls_proc_id id;
        int error = ls_proc_identify(pid, &id);

        if (error || id.kernel)
                return error ? error : -EINVAL;
        if (off)
                return -EPERM;
        if (!w)
                w = add_watched(d, pid, &id, "attached");
        if (!w)
                return -ENOSPC;
        if (!strcmp(w->service, "attached"))
                w->asked = 1;
        w->off = 0;
        w->retry_ns = 0;
        w->refusals = 0;
        if (!w->recorder && !w->lent)
                ls_watch_state(w, LS_WATCH_WAITING, "");
        return 0;
}

void ls_scan_done(struct ls_daemon *d)
{
        while (d->n_watched)
                remove_watched(d, d->n_watched - 1);
        free(d->seen);
        d->seen = NULL;
}
