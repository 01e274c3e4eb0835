/* Answers to the writer: see answer.h. A function for each question: what it may have stands
 * there. */
#include "record/writer/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "record/process/descriptors.h"
#include "record/process/proc.h"
#include "record/process/thread_ids.h"
#include "record/worker/worker.h"

/* The mappings of a target, and nothing else. */
static void give_file(const struct ls_ask *ask, struct ls_workers *workers, struct ls_answer *ret,
                      int *ret_fd)
{
        int fd = strcmp(ask->text, "maps")
                         ? -EPERM
                         : ls_fd_above_stdio(ls_proc_open(ask->pid, 0, "maps", O_RDONLY));

        (void)workers;
        ret->error = fd < 0 ? fd : 0;
        *ret_fd = fd > 0 ? fd : 0;
}

/* Where it is. */
static void give_link(const struct ls_ask *ask, struct ls_workers *workers, struct ls_answer *ret,
                      int *ret_fd)
{
        ssize_t n = strcmp(ask->text, "cwd")
                            ? -EPERM
                            : ls_proc_link(ask->pid, "cwd", ret->text, sizeof(ret->text));

        (void)workers, (void)ret_fd;
        ret->error = n < 0 ? (int32_t)n : 0;
}

static void give_outer_id(const struct ls_ask *ask, struct ls_workers *workers,
                          struct ls_answer *ret, int *ret_fd)
{
        (void)workers, (void)ret_fd;
        ret->value = ls_thread_outer_id(ask->pid, (pid_t)ask->arg);
}

/* A process of the rights that the place has, which the recorder has chosen. */
static void give_worker(const struct ls_ask *ask, struct ls_workers *workers, struct ls_answer *ret,
                        int *ret_fd)
{
        int fd = ls_workers_lend(workers, ask->arg);

        ret->error = fd < 0 ? fd : 0;
        *ret_fd = fd > 0 ? fd : 0;
}

static void end_worker(const struct ls_ask *ask, struct ls_workers *workers, struct ls_answer *ret,
                       int *ret_fd)
{
        (void)ret, (void)ret_fd;
        ls_workers_lent_end(workers, ask->arg);
}

static const struct {
        void (*give)(const struct ls_ask *ask, struct ls_workers *workers, struct ls_answer *ret,
                     int *ret_fd);
        int of_target;
} answers[] = {
        [LS_ASK_FILE] = { give_file, 1 },
        [LS_ASK_LINK] = { give_link, 1 },
        [LS_ASK_OUTER_ID] = { give_outer_id, 1 },
        [LS_ASK_WORKER] = { give_worker, 0 },
        [LS_ASK_WORKER_END] = { end_worker, 0 },
};

void ls_answer(const struct ls_ask *ask, int is_target, struct ls_workers *workers,
               struct ls_answer *ret, int *ret_fd)
{
        if (ask->op >= sizeof(answers) / sizeof(*answers) || !answers[ask->op].give)
                ret->error = -ENOSYS;
        else if (answers[ask->op].of_target && !is_target)
                ret->error = -ESRCH;
        else
                answers[ask->op].give(ask, workers, ret, ret_fd);
}
