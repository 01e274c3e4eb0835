"""A terminal for the tests: a window of a tmux server of our own. Imported by the tests of this directory."""
import os
import re
import shlex
import subprocess
import tempfile
import time

import support as s
from support import check

def eventually(fn, timeout=15):
    """A screen that is read while it is drawn may lack its end: what fn finds must become right."""
    end = time.monotonic() + timeout
    while True:
        try:
            return fn()
        except s.Fail:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


GOLDEN = os.path.join(s.TESTS, "golden", "report")

_dir = None


def tmux(*args):
    global _dir
    if not _dir:
        _dir = tempfile.mkdtemp(prefix="luasample-tmux-")
        with open(os.path.join(_dir, "conf"), "w") as f:
            f.write("set -g exit-empty off\nset -s escape-time 0\n")
    env = {k: v for k, v in os.environ.items() if k not in ("TMUX", "NO_COLOR", "COLUMNS", "LINES")}
    env["LC_ALL"] = "C.UTF-8"
    cmd = [s.need("tmux"), "-S", os.path.join(_dir, "socket"), "-f", os.path.join(_dir, "conf")]
    r = subprocess.run(cmd + list(args), env=env, timeout=30, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    check(r.returncode == 0, "tmux %s: %s" % (" ".join(args)[:100], r.stderr.decode()))
    return r.stdout.decode("utf-8", "replace")


def stop_server():
    """Ends the server and all that runs in it; without one nothing is done."""
    global _dir
    if _dir and os.path.exists(os.path.join(_dir, "socket")):
        tmux("kill-server")
    if _dir:
        s.shutil.rmtree(_dir, ignore_errors=True)
    _dir = None


class Screen:
    """A shell that runs cmd and then says "status N", so that the terminal is there when cmd has ended. The commands of
    then are typed by no one: they run after it."""
    serial = 0

    def __init__(self, cmd, width=80, height=24, env=None, then=""):
        Screen.serial += 1
        self.name = "w%d" % Screen.serial
        words = " ".join(shlex.quote(w) for w in cmd)
        sets = " ".join("%s=%s" % (k, shlex.quote(v)) for k, v in (env or {}).items())
        script = "trap : INT; %s %s; echo \"status $?\"; %s exec cat" % ("env " + sets if sets else "", words, then)
        tmux("new-session", "-d", "-s", self.name, "-x", str(width), "-y", str(height), "sh", "-c", script)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        tmux("kill-session", "-t", self.name)

    def text(self, escapes=False):
        return tmux("capture-pane", "-p", *(["-e"] if escapes else []), "-t", self.name)

    def lines(self):
        return [line.rstrip() for line in self.text().split("\n")]

    def wait(self, pattern, timeout=30, gone=False):
        """Waits until the screen has (or, gone, has not) what the expression says. Returns the match, or the text."""
        end = time.monotonic() + timeout
        while True:
            text = self.text()
            m = re.search(pattern, text, re.M)
            if bool(m) != gone:
                return m or text
            check(time.monotonic() < end, "the screen %s %r after %d s:\n%s" %
                  ("still has" if gone else "has no", pattern, timeout, text))
            time.sleep(0.02)

    def keys(self, *keys, until=None):
        """Named keys ("Down", "C-z") and single letters."""
        tmux("send-keys", "-t", self.name, *keys)
        return self.wait(until) if until else None

    def type(self, text, until=None):
        tmux("send-keys", "-t", self.name, "-l", "--", text)
        return self.wait(until) if until else None

    def resize(self, width, height):
        tmux("resize-window", "-t", self.name, "-x", str(width), "-y", str(height))

    def pid(self):
        """Of the program in the foreground."""
        shell = int(tmux("display-message", "-p", "-t", self.name, "#{pane_pid}"))
        end = time.monotonic() + 10
        while time.monotonic() < end:
            for kid in s.children_of(shell):
                return kid
            time.sleep(0.02)
        raise s.Fail("nothing runs in the window")


def tui(trace, *args, **kw):
    return Screen([s.luasample(), "tui", "-i", trace, *args], **kw)


_browsed = None


def browsed():
    """A recording that all tests share."""
    global _browsed
    _browsed = _browsed or s.record_lua("browse.lua", "-q", args=("0.06",)).ok().trace
    return _browsed
