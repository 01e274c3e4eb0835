/* luasample: main() and the table of commands. */
#include "cli/command.h"
#include "cli/keep.h"
#include "daemon/commands.h"
#ifdef LS_HAVE_HTTP
#include "daemon/http/http.h"
#endif
#include "push/commands.h"
#include "record/commands.h"
#include "record/worker/apart.h"
#include "record/worker/worker.h"
#include "record/writer/main.h"
#include "report/commands.h"
#include "report/coverage/command.h"
#include "report/diff/command.h"
#include "report/jit/jit.h"
#include "report/heap/heap.h"
#include "report/options/follow.h"
#include "report/tui/command.h"
#include "store/commands.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

const struct ls_command *const ls_commands[] = {
        &ls_cmd_record,
        &ls_cmd_report,
        &ls_cmd_export,
        &ls_cmd_tui,
        &ls_cmd_top,
        &ls_cmd_jit,
        &ls_cmd_diff,
        &ls_cmd_coverage,
        &ls_cmd_merge,
        &ls_cmd_dump,
        &ls_cmd_info,
        &ls_cmd_stack,
        &ls_cmd_heap,
        &ls_cmd_doctor,
        &ls_cmd_daemon,
        &ls_cmd_ctl,
        &ls_cmd_store,
        &ls_cmd_push,
        NULL,
};

/* A command of the daemon's that reads what is stored: see record/worker/apart.h. */
static int run_apart(int argc, const char **argv)
{
        int status;

        ls_store_apart.drop = ls_apart_drop;
        ls_store_apart.bytes_most = LS_STORE_APART_BYTES;
        status = ls_main(argc, argv);
        if (status != LS_EXIT_FAIL || !ls_store_apart.error)
                return status;
        return ls_store_apart.error == -E2BIG ? LS_STORE_EXIT_MUCH : LS_STORE_EXIT_NONE;
}

#if defined(__SANITIZE_ADDRESS__)
#define LOOKS_FOR_LEAKS 1               /* at its end, by means that who has no rights lacks */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOOKS_FOR_LEAKS 1
#endif
#endif

#ifndef LOOKS_FOR_LEAKS
static int drop_to_show(void)
{
        return ls_keep(ls_apart_view);
}
#endif

/* Root shows what the store has of other users' programs. */
static void show_as_nobody(const char *name)
{
#ifndef LOOKS_FOR_LEAKS
        for (const struct ls_command *const *c = ls_commands; *c; c++)
                if ((*c)->shows && !strcmp((*c)->name, name))
                        ls_store_apart = (struct ls_store_apart){ .drop = drop_to_show };
        ls_follow_show = ls_apart_view;
#else
        (void)name;
#endif
}

/* Closed ones are taken by what cannot be read or written, so that none of our own files gets their
 * numbers. A program that is recorded has them closed. */
static void keep_stdio(void)
{
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_PATH | O_CLOEXEC) < 0)
                        return;
}

int main(int argc, const char **argv)
{
        keep_stdio();
#ifdef LS_HAVE_HTTP
        if (argc > 1 && !strcmp(argv[0], LS_WORKER_ARGV0) && !strcmp(argv[1], LS_HTTP_ROLE))
                return ls_http_main(argc, argv);
#endif
        if (argc > 0 && !strcmp(argv[0], LS_WORKER_ARGV0))
                return argc > 1 && !strcmp(argv[1], LS_OUT_ROLE) ? ls_serve_main(argc, argv)
                                                                 : ls_worker_main(argc, argv);
        if (!geteuid())
                show_as_nobody(argc > 1 ? argv[1] : "");
        ls_follow_drop = geteuid() ? NULL : ls_apart_drop;
        if (!geteuid() && argc > 1 && !strcmp(argv[1], ls_cmd_store.name))
                ls_store_apart.drop = ls_apart_drop;
        ls_heap_drop = geteuid() ? NULL : ls_apart_drop;
        if (argc > 0 && !strcmp(argv[0], LS_APART_ARGV0))
                return run_apart(argc, argv);
        return ls_main(argc, argv);
}
