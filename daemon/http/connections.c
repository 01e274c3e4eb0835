/* Who is connected: a request must be whole after IDLE_S, and a client that holds its connection
 * for long gives way to a new one. What waits for us is left alone. See http.h. */
#include "daemon/http/http.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "formats/wire/clock.h"

#define SPARE 4u                        /* connections that are left free for the next clients */

struct connection {
        struct MHD_Connection *con;     /* NULL = none */
        const void *where;              /* its listener */
        uint64_t since_ns; /* when it began to send its request, or to read its answer */
        enum { SENDS, WAITS, READS } does;
};

static struct connection all[2 * LS_HTTP_CALLS_MOST];
#define N_ALL (sizeof(all) / sizeof(*all))

static uint64_t now_ns(void)
{
        return ls_clock_ns(CLOCK_MONOTONIC);
}

/* Its end is what libmicrohttpd sees next. */
static void hang_up(struct connection *c)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(c->con, MHD_CONNECTION_INFO_CONNECTION_FD);

        if (info)
                shutdown(info->connect_fd, SHUT_RDWR);
        c->does = WAITS;                /* for its end */
}

/* There are LS_HTTP_CALLS_MOST at most of a listener. */
static void make_room(const void *where)
{
        struct connection *oldest = NULL;
        unsigned n = 0;

        for (size_t i = 0; i < N_ALL; i++) {
                if (!all[i].con || all[i].where != where)
                        continue;
                n++;
                if (all[i].does != WAITS && (!oldest || all[i].since_ns < oldest->since_ns))
                        oldest = &all[i];
        }
        if (n > LS_HTTP_CALLS_MOST - SPARE && oldest)
                hang_up(oldest);
}

void ls_http_connection(void *cls, struct MHD_Connection *con, void **context,
                        enum MHD_ConnectionNotificationCode code)
{
        struct connection *c = *context;

        if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
                if (c)
                        c->con = NULL;
                *context = NULL;
                return;
        }
        make_room(cls);
        for (size_t i = 0; i < N_ALL && !c; i++)
                if (!all[i].con)
                        c = &all[i];
        if (c)
                *c = (struct connection){
                        .con = con, .where = cls, .since_ns = now_ns(), .does = SENDS
                };
        *context = c;
}

static void does(struct MHD_Connection *con, int what)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(con, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        struct connection *c = info ? info->socket_context : NULL;

        if (!c)
                return;
        c->does = what;
        c->since_ns = now_ns();
}

void ls_http_waits(struct MHD_Connection *con)
{
        does(con, WAITS);
}

void ls_http_reads(struct MHD_Connection *con)
{
        does(con, READS);
}

void ls_http_sends(struct MHD_Connection *con)
{
        does(con, SENDS);
}

int ls_http_has_gone(struct MHD_Connection *con)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(con, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct pollfd p = { .fd = info ? info->connect_fd : -1, .events = POLLRDHUP };

        return poll(&p, 1, 0) == 1;
}

int ls_http_late(void)
{
        const uint64_t now = now_ns(), most = LS_HTTP_IDLE_S * 1000000000ull;
        uint64_t next = UINT64_MAX;

        for (size_t i = 0; i < N_ALL; i++) {
                if (!all[i].con || all[i].does != SENDS)
                        continue;
                if (now - all[i].since_ns >= most)
                        hang_up(&all[i]);
                else if (all[i].since_ns + most - now < next)
                        next = all[i].since_ns + most - now;
        }
        return next == UINT64_MAX ? -1 : (int)(next / 1000000) + 1;
}
