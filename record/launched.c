/* A program that is started to be recorded: see launched.h. */
#include "record/launched.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsample/inject/environment.h"
#include "libsample/inject/inspect.h"
#include "record/process/agent_path.h"
#include "record/process/sentinel.h"
#include "record/processes.h"
#include "record/recording.h"
#include "record/session.h"
#include "record/signals.h"

/* What the program is decides how it is started. Returns -1 to go on, else the status to exit
 * with. */
static int inspect_program(struct ls_session *s, char *sentence, size_t size)
{
        static struct ls_image image;   /* 8 KiB */
        const char *name = s->o->command[0];

        ls_image_inspect(name, getenv("PATH"), LS_INSPECT_SHELL | LS_INSPECT_TEXT, &image);
        *sentence = 0;
        if (image.kind == LS_IMAGE_MISSING && access(image.file[0] ? image.file : name, F_OK) < 0) {
                ls_error("%s: command not found", name);
                return LS_EXIT_NOCMD;
        }
        if (image.kind == LS_IMAGE_NOT_EXECUTABLE) {
                ls_error("%s: cannot be executed: permission denied, or it is a directory", name);
                return LS_EXIT_NOEXEC;
        }
        s->with_agent =
                ls_image_preloadable(&image) &&
                !(image.contains_luajit && !image.exports_lua_newstate && !image.needs_luajit);
        if (!s->with_agent)
                ls_image_describe(&image, sentence, size);
        return -1;
}

static int prepare_env(struct ls_session *s, struct ls_env *env)
{
        char preload[PATH_MAX], memory[LS_ENV_MEMORY_MAX];
        struct ls_env_memory m = { .pid = (int)getpid(), .fd = s->targets[0]->memory.fd,
                                   .generation = s->targets[0]->memory.shm->generation };
        int err;

        s->launch.env = environ;
        if (!s->with_agent)
                return 0;
        err = ls_processes_agent(s);
        if (err < 0)
                return err;
        err = ls_agent_preload_path(s->agent, preload, sizeof(preload));
        ls_env_memory_format(&m, memory);
        if (err == 0)
                err = ls_env_add_agent(environ, preload, memory, env);
        if (err < 0) {
                ls_error("cannot preload %s: %s", s->agent, strerror(-err));
                return err;
        }
        s->launch.env = env->env;
        return 0;
}

/* Signals tell, as the program is our child. */
static int has_ended(struct ls_session *s, struct ls_target *t, uint64_t now_ns)
{
        (void)t, (void)now_ns;
        return s->exited;
}

static const struct ls_process_kind launched = { .has_ended = has_ended };

/* Memory and environment of the program, which is the session's first process. Returns 0 or
 * -errno after a line. */
static int prepare_program(struct ls_session *s, struct ls_env *env)
{
        struct ls_target *t = malloc(sizeof(*t));
        int err = t ? ls_target_init(t, s->o) : -ENOMEM;

        if (err == 0) {
                t->kind = &launched;
                s->targets[s->n_targets++] = t;
                err = ls_processes_init(s);
        } else {
                free(t);
        }
        if (err < 0) {
                ls_error("cannot share memory with the program: %s; see: luasample doctor",
                         strerror(-err));
                return err;
        }
        return prepare_env(s, env);
}

/* Without it only the time on a CPU is known. */
static int start_watcher(struct ls_session *s)
{
        int err = s->with_agent ? ls_target_watch(s->targets[0], s->o) : 0;

        if (err < 0)
                ls_error("-e wall: cannot start the process that watches for blocked threads: %s",
                         strerror(-err));
        s->launch.watcher = s->targets[0]->watcher.pid;
        return err;
}

/* The child waits for our go. Returns 0 or -errno after a line. */
static int prepare_with_child(struct ls_session *s)
{
        struct ls_target *t = s->targets[0];
        int err;

        t->memory.shm->root_pid = (uint32_t)s->pid;
        atomic_store(&t->memory.shm->recording, 1);
        atomic_store(&t->memory.shm->heartbeat_ns, ls_session_clock(CLOCK_MONOTONIC));
        err = ls_recording_timer(s, s->pid);
        t->memory.shm->timer = (uint8_t)s->timer;
        if (err == 0)
                err = ls_recording_begin(s, t);
        if (err < 0)
                return err;
        err = s->with_agent ? ls_target_tick(t, s->timer, s->o, s->full_fd) : 0;
        if (err < 0)
                ls_error("cannot start the timer: %s", strerror(-err));
        return err;
}

/* sentence: why it runs without being recorded. Returns -1: it runs; else the status to exit
 * with, and it is gone. */
static int start_program(struct ls_session *s, const char *sentence)
{
        int err;

        if (start_watcher(s) < 0)
                return LS_EXIT_FAIL;
        s->launch.argv = s->o->command;
        s->launch.saved = &s->saved;
        err = ls_launch_fork(&s->launch);
        if (err < 0) {
                ls_error("cannot start %s: %s", s->o->command[0], strerror(-err));
                return LS_EXIT_FAIL;
        }
        s->pid = s->launch.pid;
        ls_watcher_target(&s->targets[0]->watcher, s->pid);
        if (prepare_with_child(s) < 0) {
                ls_launch_cancel(&s->launch);
                return LS_EXIT_FAIL;
        }
        if (*sentence) {
                ls_warning("%s; it runs without being recorded", sentence);
                ls_out_tell(s->out, &(struct ls_out_message){ .op = LS_OUT_NOTICE, .data = sentence,
                                                              .len = strlen(sentence) }, NULL);
        }
        ls_processes_open(s);           /* the program may fork at once */
        err = ls_launch_exec(&s->launch);
        if (err < 0) {                  /* although the file looked good */
                ls_error("%s: %s", s->o->command[0], strerror(-err));
                return err == -ENOENT ? LS_EXIT_NOCMD : LS_EXIT_NOEXEC;
        }
        s->sentinel = ls_sentinel_start();
        return -1;
}

int ls_launched_begin(struct ls_session *s)
{
        struct ls_env env = { 0 };
        char sentence[PATH_MAX + 256];
        int status, err;

        if (!getcwd(s->cwd, sizeof(s->cwd)))
                strcpy(s->cwd, "/");
        status = inspect_program(s, sentence, sizeof(sentence));
        if (status >= 0)
                return status;
        if (ls_recording_open(s) < 0)
                return LS_EXIT_FAIL;
        err = ls_signals_open(s);
        if (err < 0)
                ls_error("cannot receive signals: %s", strerror(-err));
        else
                err = ls_recording_writer(s);
        if (err == 0)
                err = prepare_program(s, &env);
        status = err < 0 ? LS_EXIT_FAIL : start_program(s, sentence);
        if (status >= 0)
                ls_trace_file_undo(s->o->output, &s->trace_file);
        ls_env_done(&env);
        return status;
}

void ls_launched_reap(struct ls_session *s)
{
        int status = 0;

        if (s->reaped || !s->launch.pid)
                return;
        s->reaped = 1;
        ls_target_finish(s->targets[0]);        /* its clocks can be read until it is reaped */
        while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
                ;
        s->exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        s->exited_ns = ls_session_clock(CLOCK_MONOTONIC);
        ls_sentinel_stop(s->sentinel);
        s->sentinel = 0;
}
