/* The command `luasample doctor`: what is permitted here, which timer follows from it, and how to
 * gain more; whether a program can be recorded, and a process that runs attached to. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/escape.h"
#include "formats/json.h"
#include "record/process/agent_path.h"
#include "record/process/memory.h"
#include "record/attach/subject.h"
#include "record/commands.h"
#include "record/options.h"
#include "record/tick/probes.h"

#define PROGRAMS_MAX 128                /* rows of programs and processes */

enum { OPT_JSON = 1000 };

static const struct poptOption doctor_options[] = {
        { "json", '\0', POPT_ARG_NONE, NULL, OPT_JSON, "print JSON", NULL },
        POPT_TABLEEND
};

enum kind { CHECK, PROGRAM, PROCESS };

struct row {
        const char *name, *title;
        enum kind kind;
        int needed;
        struct ls_probe_result result;
};

struct findings {
        struct row rows[16 + PROGRAMS_MAX];
        unsigned n;
        int can_record;
        int can_attach;                 /* to each process that was named */
        enum ls_timer timer;
};

static const char *const status_names[] = { "ok", "note", "fail" };

/* A process to try things on. */
static pid_t start_child(void)
{
        pid_t pid = fork();

        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        pause();
        }
        return pid;
}

static void end_child(pid_t pid)
{
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
}

static int is_ok(const struct findings *f, const char *name)
{
        for (unsigned i = 0; i < f->n; i++)
                if (f->rows[i].kind == CHECK && !strcmp(f->rows[i].name, name))
                        return f->rows[i].result.status == LS_PROBE_OK;
        return 0;
}

static struct row *new_row(struct findings *f, enum kind kind, const char *name, const char *title)
{
        struct row *row = f->n < sizeof(f->rows) / sizeof(*f->rows) ? &f->rows[f->n++] : NULL;

        if (row)
                *row = (struct row){ .kind = kind, .name = name, .title = title };
        return row;
}

/* A number of a process; 0 = it is the name of a program. */
static pid_t as_pid(const char *text)
{
        char *end;
        long pid = strtol(text, &end, 10);

        return *text >= '1' && *text <= '9' && !*end && pid <= INT_MAX ? (pid_t)pid : 0;
}

struct refusals {
        struct findings *f;
        const char *name;
        unsigned n;
};

static void add_refusal(void *ctx, const char *text)
{
        struct refusals *r = ctx;
        struct row *row = new_row(r->f, PROCESS, r->name, r->name);

        r->n++;
        if (!row)
                return;
        row->result.status = LS_PROBE_FAIL;
        snprintf(row->result.text, sizeof(row->result.text), "%s", text);
}

/* A row for each reason for which it cannot be attached to, or one that says that it can. */
static void look_at_process(struct findings *f, const char *name, pid_t pid)
{
        const struct ls_record_options usual = { .ring_size = LS_DEFAULT_RING };
        struct refusals refusals = { f, name, 0 };
        char agent[PATH_MAX] = "";
        struct ls_workers *workers = ls_workers_new(NULL, NULL);
        struct ls_subject subject;
        struct row *row;
        int err;

        if (!workers)
                return;

        ls_agent_path(agent, sizeof(agent));
        ls_error_to(add_refusal, &refusals);
        err = ls_subject_open(&subject, pid, workers, agent, ls_memory_size(&usual),
                              LS_SUBJECT_ALL);
        ls_error_to(NULL, NULL);
        f->can_attach &= err == 0;
        if (err == 0 && !refusals.n && (row = new_row(f, PROCESS, name, name)))
                snprintf(row->result.text, sizeof(row->result.text), "%s (%s) can be attached to",
                         name, subject.name);
        ls_subject_done(&subject);
        ls_workers_free(workers);
}

static int find_out(struct findings *f, const char **programs)
{
        static const char *const usual[] = { "luajit", NULL };
        pid_t child = start_child();
        struct row *row;

        if (child < 0)
                return -errno;
        f->can_record = f->can_attach = 1;
        for (unsigned i = 0;
             i < ls_n_probes && (row = new_row(f, CHECK, ls_probes[i].name, ls_probes[i].title));
             i++) {
                row->needed = ls_probes[i].needed;
                ls_probes[i].run(child, &row->result);
                if (row->needed && row->result.status == LS_PROBE_FAIL)
                        f->can_record = 0;
        }
        end_child(child);
        for (const char *const *p = programs && *programs ? programs : usual; *p; p++) {
                pid_t pid = as_pid(*p);

                if (pid)
                        look_at_process(f, *p, pid);
                else if ((row = new_row(f, PROGRAM, *p, *p)))
                        ls_probe_program(*p, &row->result);
        }
        f->timer = is_ok(f, "perf")     ? LS_TIMER_PERF
                   : is_ok(f, "helper") ? LS_TIMER_HELPER
                                        : LS_TIMER_CPUTIME;
        if (f->timer == LS_TIMER_CPUTIME && !is_ok(f, "cputime"))
                f->can_record = 0;
        return 0;
}

static void put_padded(const char *text, int width)
{
        ls_put_visible(stdout, text);
        printf("%*s", (int)strlen(text) < width ? width - (int)strlen(text) : 0, "");
}

static void print_text(const struct findings *f)
{
        int hints = 0;

        for (unsigned i = 0; i < f->n; i++) {
                printf("%-4s  ", status_names[f->rows[i].result.status]);
                put_padded(f->rows[i].title, 14);
                putchar(' ');
                ls_put_visible(stdout, f->rows[i].result.text);
                putchar('\n');
        }
        if (f->can_record)
                printf("\nRecording is possible; timer: %s.\n", ls_timer_names[f->timer]);
        else
                printf("\nRecording is not possible: see the rows that start with \"fail\".\n");
        if (!f->can_attach)
                printf("record -p is not possible: see the rows that start with \"fail\".\n");
        for (unsigned i = 0; i < f->n; i++)
                if (*f->rows[i].result.hint) {
                        fputs(hints++ ? "  " : "To gain more:\n  ", stdout);
                        ls_put_visible(stdout, f->rows[i].title);
                        fputs(": ", stdout);
                        ls_put_visible(stdout, f->rows[i].result.hint);
                        putchar('\n');
                }
}

static void put_rows(struct ls_js *g, const struct findings *f, const char *key, enum kind kind)
{
        ls_js_key_open(g, key, '[');
        for (unsigned i = 0; i < f->n; i++) {
                const struct row *r = &f->rows[i];

                if (r->kind != kind)
                        continue;
                ls_js_open(g, '{');
                ls_js_key_string(g, "name", r->name);
                ls_js_key_string(g, "status", status_names[r->result.status]);
                ls_js_key_string(g, "text", r->result.text);
                ls_js_key_string(g, "hint", r->result.hint);
                ls_js_key_bool(g, "needed", r->needed);
                ls_js_close(g, '}');
        }
        ls_js_close(g, ']');
}

static int print_json(const struct findings *f)
{
        struct ls_js j = { .out = stdout, .indent = 4 }, *g = &j;

        ls_js_open(g, '{');
        ls_js_key_bool(g, "can_record", f->can_record);
        ls_js_key_string(g, "timer", ls_timer_names[f->timer]);
        put_rows(g, f, "checks", CHECK);
        put_rows(g, f, "programs", PROGRAM);
        put_rows(g, f, "processes", PROCESS);
        ls_js_close(g, '}');
        return j.failed;
}

static int doctor_run(int argc, const char **argv)
{
        static struct findings findings;
        poptContext ctx = ls_options_begin(&ls_cmd_doctor, argc, argv, 0);
        int opt, json = 0, err;

        if (!ctx)
                return LS_EXIT_FAIL;
        while ((opt = ls_options_next(&ls_cmd_doctor, ctx)) > 0)
                json |= opt == OPT_JSON;
        if (opt < -1) {
                poptFreeContext(ctx);
                return ls_options_status(opt);
        }
        err = find_out(&findings, poptGetArgs(ctx));
        if (err < 0)
                ls_error("cannot start a process to try things on: %s", strerror(-err));
        else if (json)
                print_json(&findings);
        else
                print_text(&findings);
        poptFreeContext(ctx);
        return err == 0 && findings.can_record && findings.can_attach ? 0 : LS_EXIT_FAIL;
}

const struct ls_command ls_cmd_doctor = {
        .name = "doctor",
        .summary = "show what is permitted here for recording, and how to gain more",
        .usage = "[OPTION...] [PROGRAM|PID...]",
        .options = doctor_options,
        .run = doctor_run,
};
