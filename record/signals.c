/* Signals and stops: the recorder behaves as if it were the program that the shell started. Both
 * are in one process group, so the terminal's signals reach the program without us; what a process
 * sends to us is passed on. */
#include "record/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/process/descriptors.h"
#include "record/process/sentinel.h"
#include "record/recording.h"
#include "record/rotate.h"
#include "record/session.h"
#include "record/status.h"

#define CONT_WAIT_NS 50000000ull        /* for the shell's own SIGCONT to reach the program */

/* What a fault of our own raises must kill us. */
static const int never_blocked[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

int ls_signals_open(struct ls_session *s)
{
        struct sigaction sa = { .sa_handler = SIG_DFL };
        sigset_t set;
        int fd;

        sigfillset(&set);
        for (unsigned i = 0; i < sizeof(never_blocked) / sizeof(*never_blocked); i++)
                sigdelset(&set, never_blocked[i]);
        sigprocmask(SIG_SETMASK, &set, &s->saved.mask);
        /* Ignored, as we may have inherited it, it would take the program's exit status away. */
        sigaction(SIGCHLD, &sa, &s->saved.sigchld);
        fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        s->signal_fd = ls_fd_above_stdio(fd < 0 ? -errno : fd);
        return s->signal_fd < 0 ? s->signal_fd : 0;
}

/* Takes the notice of a continued program, if there is one. */
static int was_continued(struct ls_session *s)
{
        siginfo_t si = { 0 };

        return waitid(P_PID, (id_t)s->pid, &si, WCONTINUED | WNOHANG) == 0 && si.si_pid == s->pid;
}

static int has_ended(struct ls_session *s)
{
        siginfo_t si = { 0 };

        return waitid(P_PID, (id_t)s->pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               si.si_pid == s->pid;
}

/* We were continued. A shell continues the whole group; a kill -CONT to us alone is passed on. */
static void continue_program(struct ls_session *s)
{
        const struct timespec ms = { 0, 1000000 };
        uint64_t until = ls_session_clock(CLOCK_MONOTONIC) + CONT_WAIT_NS;

        while (!was_continued(s) && !has_ended(s)) {
                if (ls_session_clock(CLOCK_MONOTONIC) > until) {
                        kill(s->pid, SIGCONT);
                        return;
                }
                nanosleep(&ms, NULL);
        }
}

/* The program was stopped by sig: stop in the same way, so that the shell sees what it would see
 * without us. */
static void stop_too(struct ls_session *s, int sig)
{
        const struct timespec none = { 0, 0 };
        sigset_t set, old;

        if (s->recording) {
                ls_recording_work(s, 1);
                ls_rotate_flush(s);
        }
        ls_status_clear(s);
        ls_recording_away(s, 1);
        sigemptyset(&set);
        sigaddset(&set, sig);
        while (sigtimedwait(&set, NULL, &none) == sig)
                ;                       /* else the same stop, by the terminal, would be a second
                                         * one */
        kill(getpid(), sig);
        pthread_sigmask(SIG_UNBLOCK, &set, &old);       /* stops here */
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        ls_recording_away(s, 0);
        continue_program(s);
}

static void look_at_program(struct ls_session *s)
{
        siginfo_t si;

        for (;;) {
                si.si_pid = 0;
                if (waitid(P_PID, (id_t)s->pid, &si, WSTOPPED | WCONTINUED | WNOHANG) < 0 ||
                    si.si_pid != s->pid)
                        break;
                if (si.si_code == CLD_STOPPED)
                        stop_too(s, si.si_status);
        }
        if (has_ended(s))
                s->exited = 1;
}

static void pass_on(struct ls_session *s, const struct signalfd_siginfo *si)
{
        union sigval value = { .sival_ptr = (void *)(uintptr_t)si->ssi_ptr };

        /* Above 0: from the kernel, to the terminal's whole group. Ours: SIGPIPE and the like, by
         * our own writes. */
        if (si->ssi_code > 0 || si->ssi_pid == (uint32_t)getpid() || s->exited)
                return;
        if (ls_sentinel_has(s->sentinel, (int)si->ssi_signo))
                return;
        if (si->ssi_code == SI_QUEUE)
                sigqueue(s->pid, (int)si->ssi_signo, value);
        else
                kill(s->pid, (int)si->ssi_signo);
}

/* Of a program that ends by it, what it started is not waited for. */
static int is_wish_to_end(int sig)
{
        return sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT;
}

/* The terminal's stop of a recorder that has no program of its own: the agents wait for us. */
static void stop_alone(struct ls_session *s)
{
        ls_recording_away(s, 1);
        kill(getpid(), SIGSTOP);
        ls_recording_away(s, 0);
}

void ls_signals_handle(struct ls_session *s)
{
        struct signalfd_siginfo si;
        int came = 0;

        while (read(s->signal_fd, &si, sizeof(si)) == sizeof(si)) {
                /* SIGCONT has reached us because we were stopped, which stop_too deals with, or
                 * runs already. */
                if (si.ssi_signo == SIGCHLD || si.ssi_signo == SIGCONT)
                        continue;
                if (si.ssi_signo == SIGUSR2 && s->flight.out_fd >= 0) {
                        s->flight.asked = 1;
                        continue;
                }
                if (is_wish_to_end((int)si.ssi_signo))
                        s->stopping = 1;
                if (s->launch.pid)
                        pass_on(s, &si);
                else if (si.ssi_signo == SIGTSTP)
                        stop_alone(s);
                came = 1;
        }
        if (!s->launch.pid || s->exited)
                return;
        if (came) {                     /* a new one, with nothing pending */
                ls_sentinel_stop(s->sentinel);
                s->sentinel = ls_sentinel_start();
        }
        look_at_program(s);
}
