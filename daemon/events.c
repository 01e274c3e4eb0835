/* The kernel's own word of programs that begin and end (the proc connector), where it is permitted:
 * see daemon.h. It only says where to look sooner: what is there is read of /proc as by the scan,
 * which goes on beside it. */
#include "daemon/daemon.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READS_MOST 64                   /* of one turn */

static int subscribe(struct mnl_socket *nl)
{
        char buf[256];
        struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
        struct cn_msg *cn =
                mnl_nlmsg_put_extra_header(h, sizeof(*cn) + sizeof(enum proc_cn_mcast_op));
        const enum proc_cn_mcast_op op = PROC_CN_MCAST_LISTEN;

        h->nlmsg_type = NLMSG_DONE;
        cn->id.idx = CN_IDX_PROC;
        cn->id.val = CN_VAL_PROC;
        cn->len = sizeof(op);
        memcpy(cn->data, &op, sizeof(op));
        return mnl_socket_sendto(nl, h, h->nlmsg_len) < 0 ? -errno : 0;
}

void ls_events_open(struct ls_daemon *d)
{
        struct mnl_socket *nl = mnl_socket_open2(NETLINK_CONNECTOR, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (!nl)
                return;
        if (mnl_socket_bind(nl, CN_IDX_PROC, MNL_SOCKET_AUTOPID) < 0 || subscribe(nl) < 0) {
                mnl_socket_close(nl);
                return;
        }
        d->events = nl;
}

void ls_events_done(struct ls_daemon *d)
{
        if (d->events)
                mnl_socket_close(d->events);
        d->events = NULL;
        d->events_heard = 0;
}

int ls_events_fd(const struct ls_daemon *d)
{
        return d->events ? mnl_socket_get_fd(d->events) : -1;
}

/* More programs than can be looked at one by one: all are looked at together, soon. */
static int may_look(struct ls_daemon *d, uint64_t now)
{
        if (now - d->looks_ns >= SECOND_NS) {
                d->looks_ns = now;
                d->looks = 0;
        }
        if (d->looks++ < LS_LOOKS_MOST)
                return 1;
        if (d->next_scan_ns > d->looks_ns + SECOND_NS)
                d->next_scan_ns = d->looks_ns + SECOND_NS;
        return 0;
}

static pid_t take_exit(struct ls_daemon *d, pid_t pid, int status)
{
        ls_triggers_exit(d, ls_daemon_find(d, pid), status);
        return pid;
}

static void take_event(struct ls_daemon *d, const struct proc_event *e, uint64_t now)
{
        pid_t pid = 0;

        if (e->what == PROC_EVENT_NONE)
                d->events_heard = !e->event_data.ack.err;
        else if (e->what == PROC_EVENT_EXEC)
                pid = e->event_data.exec.process_tgid;
        else if (e->what == PROC_EVENT_FORK &&
                 e->event_data.fork.child_pid == e->event_data.fork.child_tgid &&
                 ls_daemon_find(d, e->event_data.fork.parent_tgid))
                pid = e->event_data.fork.child_tgid;    /* a worker; others begin a program, or the
                                                         * scan sees them */
        else if (e->what == PROC_EVENT_EXIT &&
                 e->event_data.exit.process_pid == e->event_data.exit.process_tgid &&
                 ls_daemon_find(d, e->event_data.exit.process_tgid))
                pid = take_exit(d, e->event_data.exit.process_tgid,
                                (int)e->event_data.exit.exit_code);
        if (pid > 0 && pid != getpid() && may_look(d, now))
                ls_scan_look(d, pid);
}

static void take_message(struct ls_daemon *d, const struct nlmsghdr *h, uint64_t now)
{
        const struct cn_msg *cn = mnl_nlmsg_get_payload(h);
        struct proc_event e;

        if (mnl_nlmsg_get_payload_len(h) < sizeof(*cn) + sizeof(e) || cn->id.idx != CN_IDX_PROC ||
            cn->id.val != CN_VAL_PROC)
                return;
        memcpy(&e, cn->data, sizeof(e));
        take_event(d, &e, now);
}

void ls_events_read(struct ls_daemon *d)
{
        static char buf[16384] __attribute__((aligned(8)));
        uint64_t now = ls_daemon_now();

        for (int i = 0; d->events && i < READS_MOST; i++) {
                struct sockaddr_nl from;
                socklen_t len = sizeof(from);
                ssize_t n = recvfrom(ls_events_fd(d), buf, sizeof(buf), 0, (struct sockaddr *)&from,
                                     &len);
                int left = (int)n;

                if (n < 0 && errno == ENOBUFS)          /* some are lost */
                        d->next_scan_ns = now;
                if (n <= 0)
                        return;
                if (len != sizeof(from) || from.nl_pid)
                        continue;                       /* not the kernel */
                for (const struct nlmsghdr *h = (const void *)buf; mnl_nlmsg_ok(h, left);
                     h = mnl_nlmsg_next(h, &left))
                        take_message(d, h, now);
        }
}
