"""luasample top: the browser while the program runs. Imported by run.py."""
import os
import re
import signal
import stat
import sys

import support as s

sys.path.append(os.path.join(s.TESTS, "integration", "daemon"))
import shared
from support import check
from browse import flat_rows, report_rows, same
from screen import Screen
from terminal import SANE, is_sane, wait_for_end

LOOP = ("print('to '..'stdout') io.flush() io.stderr:write('to '..'stderr\\n') "
        "while not io.open('%s') do for i = 1, 2e5 do n = (n or 0) + i %% 7 end end")


def top(*args, **kw):
    home = s.tmpfile(".run")
    os.mkdir(home, 0o700)
    w = Screen([s.luasample(), "top", *args], env={"XDG_RUNTIME_DIR": home}, **kw)
    w.home = home
    return w


def program(end):
    """A program that runs until a file is there."""
    return ["luajit", "-e", LOOP % end]


def sleeper(text):
    """A program with usleep, as a file."""
    path = s.tmpfile(".lua")
    with open(path, "w") as f:
        f.write("local f = require 'ffi' f.cdef 'int usleep(unsigned);'\n" + text)
    return ["luajit", path]


def recorded(w):
    """The program and what it runs under: pids of the recorder and of the program."""
    recorder = s.Started.child(type("P", (), {"p": type("Q", (), {"pid": w.pid()})})())
    end = s.time.monotonic() + 20
    while s.time.monotonic() < end:
        kids = [k for k in s.children_of(recorder) if "luajit" in open("/proc/%d/cmdline" % k).read().split("\0")[0]]
        if kids:
            return recorder, kids[0]
        s.time.sleep(0.02)
    raise s.Fail("no program under the recorder %d" % recorder)


def is_nobody(pid):
    try:
        with open("/proc/%d/status" % pid) as f:
            return "0" not in [l.split()[1:] for l in f if l.startswith("Uid:")][0]
    except OSError:
        return False


def add_to(suite):
    t = suite.test

    @t("top", "numbers grow while the program runs, and stay when it has ended", quick=True)
    def _():
        s.need("luajit")
        end, kept, log = s.tmpfile(), s.tmpfile(".data"), s.tmpfile(".log")
        with top("--raw", "-o", kept, "--log", log, "--", *program(end), width=200, height=50) as w:
            first = int(w.wait(r"^ running \d+ s: luajit[^$]*^ ([1-9]\d*) samples").group(1))
            w.wait(r"^ %d samples" % first, gone=True)
            more = int(w.wait(r"^ (\d+) samples").group(1))
            check(more > first, "%d samples after %d" % (more, first))
            w.keys("p", until="paused")
            w.keys("p", until="running")
            open(end, "w").close()
            w.wait(r"^ ended with status 0 after \d+ s: luajit")
            info = s.info(kept)
            w.wait(r"^ %d samples" % info["samples"])
            same("at the end", lambda: flat_rows(w), report_rows(kept))
            w.keys("t", until="call tree")
            w.keys("q", until="^status 0")
            w.wait("the trace is")
        with open(log) as f:
            check(sorted(f.read().splitlines()) == ["to stderr", "to stdout"], "the log has other lines")

    @t("top.wall", "-e wall records it; a filter goes on showing it, and -e cpu shows the other")
    def _():
        s.need("luajit")
        cmd = sleeper("function nap() f.C.usleep(20000) end while true do nap() end\n")
        with top("-e", "wall", "--", *cmd, width=120) as w:
            w.wait(r"^ wall time, [^;]*; \d+ samples")
            w.wait(r"^ +[\d.]+% +[\d.]+% +(100\.00|\d\d\.\d\d)%.* nap ")
            w.keys("f", until="^filter:")
            w.type("--function nap")
            w.keys("Enter", until="^ filter .*--function nap")
            w.wait(r"^ wall time, ")
            w.keys("F", until="no filters")
            w.wait(r"^ wall time, ")
            w.keys("o", until=r"Event: +wall \d+ ticks .*; recorded too: cpu")
            w.keys("q", until=r"by function, sorted")
            w.keys("f", until="^filter:")
            w.type("-e cpu")
            w.keys("Enter", until=r"^ cpu time, ")
            w.keys("Q", until="Quit.*y/n")
            w.keys("y", until="^status 0")

    @t("top.suspended", "-e suspended records that beside the time on a CPU")
    def _():
        s.need("luajit")
        cmd = sleeper("local function waits() while true do coroutine.yield() end end\n"
                      "local co = coroutine.wrap(waits) while true do co() f.C.usleep(50000) end\n")
        with top("-e", "suspended", "--", *cmd, width=120) as w:
            w.wait(r"^ suspended time, [^;]*; \d+ samples")
            w.wait(r"^ +100\.00% +[\d.]+% +100\.00%.* coroutine\.yield ")
            w.keys("Q", until="Quit.*y/n")
            w.keys("y", until="^status 0")

    @t("top.private", "the trace is private, and gone at the end; quitting asks, and ends the program")
    def _():
        s.need("luajit")
        with top("--", *program("/nonexistent"), then=SANE) as w:
            w.wait("^ running")
            w.wait(r"^ [1-9]\d* samples")
            there = os.listdir(w.home)
            check(len(there) == 1, "%r in the private place" % there)
            d = os.path.join(w.home, there[0])
            check(stat.S_IMODE(os.stat(d).st_mode) == 0o700, "the directory is not private")
            check(stat.S_IMODE(os.stat(os.path.join(d, "trace")).st_mode) == 0o600, "the trace is not private")
            recorder, pid = recorded(w)
            w.keys("q", until="Quit.*y/n")
            w.keys("n")
            w.wait("y/n", gone=True)
            check("to std" not in w.text(), "the program wrote on the screen")
            w.keys("q", until="Quit.*y/n")
            w.keys("y", until="^status 0")
            is_sane(w)
            wait_for_end(pid)
            wait_for_end(recorder)
            check(os.listdir(w.home) == [], "%r is left" % os.listdir(w.home))

    @t("top.killed", "SIGTERM and SIGKILL end the program too; nothing is left after the first")
    def _():
        s.need("luajit")
        for sig in (signal.SIGTERM, signal.SIGKILL):
            with top("--", *program("/nonexistent")) as w:
                w.wait("^ running")
                recorder, pid = recorded(w)
                os.kill(w.pid(), sig)
                w.wait("^status %d" % (128 + sig) if sig == signal.SIGTERM else "status %d" % (128 + sig))
                wait_for_end(pid)
                wait_for_end(recorder)
                check(sig == signal.SIGKILL or os.listdir(w.home) == [], "%r is left" % os.listdir(w.home))

    @t("top.none", "what cannot be recorded is said as record says it", quick=True)
    def _():
        for args, words, status in ((["--", "/nonexistent/program"], "/nonexistent/program", 127),
                                    (["-i", "wrong", "--", "true"], "-i wrong", 129),
                                    (["--record", "--nosuch", "--", "true"], "unknown option --nosuch", 129)):
            with top(*args) as w:
                w.wait(re.escape(words))
                w.wait("^status %d" % status)
                check(os.listdir(w.home) == [], "%r is left" % os.listdir(w.home))
        with top("--", "true") as w:            # ends at once, without Lua
            w.wait("ended with status 0")
            w.wait("No samples collected")
            w.keys("q", until="^status 0")

    @t("top.pid", "a running process is watched and let go")
    def _():
        if "--pid" not in s.run([s.luasample(), "record", "--help"]).out:
            raise s.Skip("this luasample cannot attach")
        end = s.tmpfile()
        p = s.Started(program(end))
        try:
            p.wait_for("to stdout")
            with top("-p", str(p.p.pid), then=SANE) as w:
                w.wait(r"^ watched \d+ s")
                w.wait(r"^ [1-9]\d* samples")
                w.wait("main chunk")
                w.keys("q", until="^status 0")
                is_sane(w)
                check(os.listdir(w.home) == [], "%r is left" % os.listdir(w.home))
            check(p.p.poll() is None, "the process ended with top")
        finally:
            open(end, "w").close()
        check(p.wait() == 0, "the process did not end well")

    @t("top.service", "what the daemon records is shown while it grows, as root merged with nobody's rights; nothing ends with it")
    def _():
        s.need("luajit")
        service = shared.Service("topped", share=0.8)
        d = shared.Daemon(shared.rule("topped"))
        try:
            d.until_state(service.pid, "recording")
            shared.until("a chunk", lambda: d.chunks("topped"))
            with top("--service", "topped", "--store", d.store, "--since", "5m", "--raw", width=120, then=SANE) as w:
                first = int(w.wait(r"^ stored: [^$]*^ ([1-9]\d*) samples").group(1))
                w.wait("hot")
                w.wait(r"^ %d samples" % first, gone=True)
                more = int(w.wait(r"^ (\d+) samples").group(1))
                check(more > first, "%d samples after %d" % (more, first))
                finder = s.children_of(w.pid())
                check(len(finder) == 1, "%s find chunks" % finder)
                if os.getuid() == 0:
                    shared.until("chunks are merged with nobody's rights", lambda: any(is_nobody(k) for k in
                                                                                      s.children_of(finder[0])))
                w.keys("t", until="call tree")
                w.keys("q", until="^status 0")
                is_sane(w)
                for pid in finder:
                    wait_for_end(pid)
            check(d.target(service.pid)["state"] == "recording", "the recording ended with top")
        finally:
            d.stop()
            service.end()
        for args, words, status in ((["--service", "toped"], "did you mean topped", 1),
                                    (["--service", "topped", "--since", "tomorrow"], "--since: give how long ago", 129),
                                    (["--service", "topped", "-p", "1"], "no program", 129),
                                    (["--service", "topped", "--time", "1,2"], "--since and --until say", 129)):
            with top("--store", d.store, *args, width=150) as w:
                w.wait(re.escape(words))
                w.wait("^status %d" % status)
