/* Runs a command on a terminal of its own and sends it keys: pty KEY:MILLISECONDS... -- CMD
 * [ARG...]. KEY is a letter (sent with Ctrl), "hup" (the terminal goes away), "fg" (continues the
 * stopped job, as a shell's fg does), "ready" (waits until the command has printed "ready", then
 * the time), "none" (only waits). The command's output is copied to stdout. The job is a process
 * group of its own under a session leader that plays the shell. Last line on stderr: exited N,
 * killed N; before it, stopped N for each stop. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static int report_fd;                   /* the original stderr */

static void say(const char *what, int n)
{
        dprintf(report_fd, "%s %d\n", what, n);
}

/* The session leader: starts the job in the foreground, waits, continues it when told through
 * SIGUSR1. */
static volatile sig_atomic_t want_fg, want_hup;

static void on_signal(int sig)
{
        if (sig == SIGHUP)
                want_hup = 1;           /* the terminal is gone: a shell tells its jobs */
        else
                want_fg = 1;
}

static int leader(const char *tty, char **cmd)
{
        struct sigaction sa = { .sa_handler = on_signal };
        pid_t pid;
        int fd, status;

        setsid();
        fd = open(tty, O_RDWR);
        if (fd < 0 || ioctl(fd, TIOCSCTTY, 0) < 0)
                return 125;
        signal(SIGTTOU, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        signal(SIGQUIT, SIG_IGN);
        signal(SIGTSTP, SIG_IGN);
        sigaction(SIGHUP, &sa, NULL);
        sigaction(SIGUSR1, &sa, NULL);
        pid = fork();
        if (pid == 0) {
                setpgid(0, 0);
                tcsetpgrp(fd, getpid());
                signal(SIGTTOU, SIG_DFL);
                signal(SIGINT, SIG_DFL);
                signal(SIGQUIT, SIG_DFL);
                signal(SIGTSTP, SIG_DFL);
                signal(SIGHUP, SIG_DFL);
                signal(SIGUSR1, SIG_DFL);
                dup2(fd, 0);
                dup2(fd, 1);
                dup2(fd, 2);
                close(fd);
                close(report_fd);
                execvp(cmd[0], cmd);
                _exit(127);
        }
        setpgid(pid, pid);
        tcsetpgrp(fd, pid);
        for (;;) {
                pid_t got = waitpid(pid, &status, WUNTRACED);

                if (got < 0 && errno == EINTR) {
                        if (want_fg) {
                                want_fg = 0;
                                tcsetpgrp(fd, pid);
                                kill(-pid, SIGCONT);
                        }
                        if (want_hup) {
                                want_hup = 0;
                                kill(-pid, SIGHUP);
                                kill(-pid, SIGCONT);
                        }
                        continue;
                }
                if (got < 0)
                        return 125;
                if (WIFSTOPPED(status)) {
                        say("stopped", WSTOPSIG(status));
                        tcsetpgrp(fd, getpgrp());
                        continue;
                }
                if (WIFEXITED(status))
                        say("exited", WEXITSTATUS(status));
                else
                        say("killed", WTERMSIG(status));
                return 0;
        }
}

static long now_ms(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int seen_ready;

/* Copies output until the time is up (ms >= 0) or the terminal closes. Returns 0 when closed. */
static int copy(int master, long ms)
{
        long end = now_ms() + ms;
        char buf[4096];

        for (;;) {
                struct pollfd p = { .fd = master, .events = POLLIN };
                long left = ms < 0 ? 1000 : end - now_ms();
                ssize_t n;

                if (left <= 0)
                        return 1;
                if (poll(&p, 1, (int)left) <= 0)
                        continue;
                n = read(master, buf, sizeof(buf));
                if (n <= 0)
                        return 0;
                seen_ready |= memmem(buf, (size_t)n, "ready", 5) != NULL;
                if (write(1, buf, (size_t)n) != n)
                        return 0;
        }
}

int main(int argc, char **argv)
{
        int master = posix_openpt(O_RDWR | O_NOCTTY), i = 1, keys, status;
        char *tty;
        pid_t pid;

        while (i < argc && strcmp(argv[i], "--") != 0)
                i++;
        keys = i;
        if (master < 0 || i + 1 >= argc || grantpt(master) || unlockpt(master) ||
            !(tty = ptsname(master)))
                return 125;
        report_fd = fcntl(2, F_DUPFD_CLOEXEC, 50);
        fcntl(master, F_SETFD, FD_CLOEXEC);
        pid = fork();
        if (pid == 0) {
                close(master);
                _exit(leader(tty, argv + keys + 1));
        }
        for (i = 1; i < keys; i++) {
                char *colon = strchr(argv[i], ':');
                long ms = colon ? atol(colon + 1) : 0;

                for (int k = 0; !strncmp(argv[i], "ready", 5) && !seen_ready && k < 3000; k++)
                        if (!copy(master, 10))
                                break;
                if (!copy(master, ms))
                        break;
                if (strncmp(argv[i], "hup", 3) == 0) {
                        close(master);
                        master = -1;
                        break;
                }
                if (strncmp(argv[i], "fg", 2) == 0) {
                        kill(pid, SIGUSR1);
                } else if (strncmp(argv[i], "none", 4) != 0 && strncmp(argv[i], "ready", 5) != 0) {
                        char key = argv[i][0] == '\\' ? 28 : (char)(argv[i][0] & 31);

                        if (write(master, &key, 1) != 1)
                                break;
                }
        }
        if (master >= 0)
                copy(master, -1);
        if (waitpid(pid, &status, 0) < 0)
                return 125;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
