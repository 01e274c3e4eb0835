/* Questions of the writer: see ask.h. */
#include "record/writer/ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record/process/proc.h"
#include "record/worker/worker.h"
#include "record/writer/wire.h"

static int out = -1;

/* Of a recorder that has gone nothing is written any more. */
static int send_it(const struct ls_ask *ask)
{
        return out < 0 ? -EPIPE : ls_wire_send(out, ask, sizeof(*ask), NULL, 0);
}

/* ret_fd: for a descriptor that may come with it; NULL = none does. Returns 0 or -errno. */
static int ask_for(enum ls_ask_op op, pid_t pid, uint32_t arg, const char *text,
                   struct ls_answer *ret, int *ret_fd)
{
        struct ls_ask ask = { .op = op, .pid = (int32_t)pid, .arg = arg };
        int fds[LS_OUT_FDS] = { -1, -1 };
        ssize_t n;

        snprintf(ask.text, sizeof(ask.text), "%s", text);
        n = send_it(&ask);
        if (n == 0)
                n = ls_wire_receive(out, ret, sizeof(*ret), fds, 0);
        if (n <= (ssize_t)offsetof(struct ls_answer, text))
                return n < 0 ? (int)n : -EPROTO;
        ret->text[n - (ssize_t)offsetof(struct ls_answer, text) - 1] = 0;
        if (ret_fd)
                *ret_fd = fds[0];
        else if (fds[0] >= 0)
                close(fds[0]);
        return ret->error;
}

static int open_file(pid_t pid, const char *name)
{
        struct ls_answer a;
        int fd = -1, err = ask_for(LS_ASK_FILE, pid, 0, name, &a, &fd);

        return err < 0 ? err : fd;
}

static ssize_t read_link(pid_t pid, const char *name, char *buf, size_t size)
{
        struct ls_answer a;
        int err = ask_for(LS_ASK_LINK, pid, 0, name, &a, NULL);

        snprintf(buf, size, "%s", err < 0 ? "" : a.text);
        return err < 0 ? err : (ssize_t)strlen(buf);
}

static pid_t outer_id(pid_t pid, pid_t inner)
{
        struct ls_answer a;

        return ask_for(LS_ASK_OUTER_ID, pid, (uint32_t)inner, "", &a, NULL) < 0 ? 0 : a.value;
}

static int start_worker(unsigned place)
{
        struct ls_answer a;
        int fd = -1, err = ask_for(LS_ASK_WORKER, 0, place, "", &a, &fd);

        return err < 0 ? err : fd < 0 ? -EPIPE : fd;
}

static void end_worker(unsigned place)
{
        struct ls_answer a;

        ask_for(LS_ASK_WORKER_END, 0, place, "", &a, NULL);
}

struct ls_workers *ls_ask_begin(int socket, int servers)
{
        static const struct ls_proc_door proc = { open_file, read_link, outer_id };
        static struct ls_workers_door door = { start_worker, end_worker, 0 };
        struct ls_workers *ws = ls_workers_new(ls_ask_notice, NULL);

        out = socket;
        door.servers = servers;
        ls_proc_through(&proc);
        if (ws)
                ls_workers_through(ws, &door);
        return ws;
}

void ls_ask_end(void)
{
        close(out);
        out = -1;
}

void ls_ask_notice(void *ctx, const char *text)
{
        struct ls_ask ask = { .op = LS_ASK_NOTICE };

        (void)ctx;
        snprintf(ask.text, sizeof(ask.text), "%s", text);
        send_it(&ask);
}

void ls_ask_look(void)
{
        send_it(&(struct ls_ask){ .op = LS_ASK_LOOK });
}
