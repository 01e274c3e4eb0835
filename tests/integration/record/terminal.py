"""record on a terminal: a pty whose shell is this test. Keys reach the whole foreground group, as a terminal sends them."""
import fcntl
import os
import pty
import select
import signal
import sys
import termios
import time

from support import Fail, check, info, luasample, tmpfile
from signals import CATCHER

COUNTER = ("print('ready') io.flush() local t, x = os.clock() + %g, 0 "
           "while os.clock() < t do for i = 1, 1e5 do x = x + i %% 7 end end print('ended') os.exit(4)")


class Terminal:
    """A session with a controlling terminal. Its leader plays the shell: it runs one job in the foreground and writes what
    waitpid says of it to a pipe, a line each; SIGUSR1 to it is `fg`."""
    def __init__(self, cmd):
        r, w = os.pipe()
        self.leader, self.fd = pty.fork()
        if self.leader == 0:
            os.close(r)
            self.shell(cmd, w)
        os.close(w)
        self.events, self.output = r, b""
        self.lines = b""

    @staticmethod
    def shell(cmd, w):
        job = 0
        for s in (signal.SIGTTOU, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP):
            signal.signal(s, signal.SIG_IGN)

        def fg(s, f):
            os.tcsetpgrp(0, job)
            os.killpg(job, signal.SIGCONT)
        signal.signal(signal.SIGUSR1, fg)
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpid())
            for s in (signal.SIGTTOU, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP, signal.SIGUSR1):
                signal.signal(s, signal.SIG_DFL)
            os.execvp(cmd[0], cmd)
        os.write(w, b"job %d\n" % job)
        while True:
            pid, status = os.waitpid(job, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                os.tcsetpgrp(0, os.getpid())
                os.write(w, b"stopped %d\n" % os.WSTOPSIG(status))
            elif os.WIFEXITED(status):
                os.write(w, b"exited %d\n" % os.WEXITSTATUS(status))
                os._exit(0)
            else:
                os.write(w, b"killed %d\n" % os.WTERMSIG(status))
                os._exit(0)

    def pump(self, seconds):
        fds = [f for f in (self.fd, self.events) if f >= 0]
        ready, _, _ = select.select(fds, [], [], seconds)
        for f in ready:
            try:
                data = os.read(f, 65536)
            except OSError:                     # the other side of a pty is closed
                data = b""
            if f == self.fd:
                self.output += data
                if not data:
                    time.sleep(0.01)
            else:
                self.lines += data
                if not data:
                    self.events = -1

    def wait_for(self, text, where="output", timeout=15):
        end = time.monotonic() + timeout
        while text.encode() not in getattr(self, where):
            check(time.monotonic() < end, "no %r: output %r, events %r" % (text, self.output[-500:], self.lines))
            self.pump(0.1)

    def key(self, letter):
        os.write(self.fd, bytes([ord(letter) & 31]))

    def fg(self):
        os.kill(self.leader, signal.SIGUSR1)

    def hang_up(self):
        os.close(self.fd)
        self.fd = -1

    def job(self):
        self.wait_for("job ", "lines")
        return int(self.lines.split()[1])

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
        if self.events >= 0:
            os.close(self.events)
        os.waitpid(self.leader, 0)


def recorded(program, *opts):
    trace = tmpfile(".data")
    t = Terminal([luasample(), "record", *opts, "-o", trace, "--", *program])
    return t, trace


def plain_and_recorded(program, act):
    """Runs act(terminal) on the program alone and recorded; what the shell sees must be the same. Returns the trace."""
    seen = []
    for record in (False, True):
        trace = tmpfile(".data")
        t = Terminal([luasample(), "record", "-q", "-o", trace, "--", *program] if record else program)
        act(t)
        while t.events >= 0:
            t.pump(0.1)
        seen.append(t.lines.split(b"\n", 1)[1])
        t.close()
    check(seen[0] == seen[1], "the shell sees %r without, %r with record" % tuple(seen))
    return trace, seen[1].decode()


def add_to(suite):
    test = suite.test

    @test("ctrl-c", "Ctrl-C: as without us, the trace is complete")
    def _():
        def act(t):
            t.wait_for("ready")
            t.key("c")
            t.wait_for("\n", "lines")
        trace, seen = plain_and_recorded(["luajit", "-e", COUNTER % 20], act)
        check(info(trace)["complete"] == 1, "not complete")

    @test("ctrl-c-once", "the program gets one SIGINT, not a second from us")
    def _():
        t, trace = recorded(["python3", "-c", CATCHER], "-q")
        t.wait_for("ready")
        for n in range(1, 4):
            t.key("c")
            t.wait_for("got 2\r\n" * 1)
            time.sleep(0.3)
            t.pump(0)
            check(t.output.count(b"got 2") == n, "%r after %d keys" % (t.output, n))
        t.key("\\")
        t.wait_for("got 3")
        os.kill(t.job(), signal.SIGTERM)
        t.wait_for("exited 9", "lines")
        check(t.output.count(b"got 3") == 1, "%r" % t.output)
        t.close()
        check(info(trace)["complete"] == 1, "not complete")

    @test("ctrl-backslash", "Ctrl-\\: as without us")
    def _():
        def act(t):
            t.wait_for("ready")
            t.key("\\")
        # record exits with 128 + 3 where a shell would see the signal
        t, trace = recorded(["luajit", "-e", COUNTER % 20], "-q")
        act(t)
        t.wait_for("exited 131", "lines")
        t.close()
        j = info(trace)
        check(j["complete"] == 1 and j["exit_status"] == 131, "complete %s, status %s" % (j["complete"], j["exit_status"]))

    @test("ctrl-z", "Ctrl-Z stops both, fg continues both, the rest is recorded")
    def _():
        def act(t):
            t.wait_for("ready")
            for _ in range(2):
                t.lines = t.lines.split(b"\n", 1)[0] + b"\n" + b"".join(l + b"\n" for l in t.lines.split(b"\n")[1:-1])
                before = t.lines.count(b"stopped 20")
                t.key("z")
                end = time.monotonic() + 10
                while t.lines.count(b"stopped 20") == before:
                    check(time.monotonic() < end, "no stop: %r %r" % (t.lines, t.output))
                    t.pump(0.1)
                time.sleep(0.2)
                t.fg()
                time.sleep(0.2)
            t.wait_for("ended")
        trace, seen = plain_and_recorded(["luajit", "-e", COUNTER % 1.5], act)
        check(seen == "stopped 20\nstopped 20\nexited 4\n", repr(seen))
        j = info(trace)
        check(j["complete"] == 1 and j["samples"] > 1200, "%d samples" % j["samples"])

    @test("hang-up", "the terminal goes away: the program ends by SIGHUP, the trace is complete")
    def _():
        t, trace = recorded(["luajit", "-e", COUNTER % 20], "-q")
        t.wait_for("ready")
        job = t.job()
        t.hang_up()
        # The leader ignores SIGHUP, so the foreground group gets it from the kernel when the leader ends; a shell sends
        # it to its jobs.
        os.killpg(job, signal.SIGHUP)
        t.wait_for("exited 129", "lines")
        t.close()
        check(info(trace)["complete"] == 1, "not complete")

    @test("status-line", "on a terminal there is a status line, and a summary at the end")
    def _():
        t, trace = recorded(["luajit", "-e", COUNTER % 2.5])
        t.wait_for("exited 4", "lines")
        t.pump(0.2)
        check(t.output.count(b" samples  ") >= 2, "no status line: %r" % t.output)
        check(b"luasample: wrote" in t.output, "no summary: %r" % t.output)
        t.close()

    @test("status-line-quiet", "none of it with -q")
    def _():
        t, trace = recorded(["luajit", "-e", COUNTER % 1.5], "-q")
        t.wait_for("exited 4", "lines")
        t.pump(0.2)
        check(t.output == b"ready\r\nended\r\n", repr(t.output))
        t.close()

    @test("terminal-input", "the program reads from the terminal while it is recorded")
    def _():
        t, trace = recorded(["luajit", "-e", "print('ready') print('read ' .. io.read())"], "-q")
        t.wait_for("ready")
        os.write(t.fd, b"hello\n")
        t.wait_for("read hello")
        t.wait_for("exited 0", "lines")
        t.close()
