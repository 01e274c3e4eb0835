"""Signals that processes send to record, and stops."""
import os
import signal
import time

from support import Fail, Started, check, children_of, command_of, info, luasample, run, tmpfile, writer_of

# Says which signals come; ends with status 9 on TERM.
CATCHER = """import os, signal, sys, time
def note(s, f):
    os.write(1, b"got %d\\n" % s)
    if s == signal.SIGTERM:
        sys.exit(9)
for s in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGALRM,
          signal.SIGWINCH, signal.SIGRTMIN + 3):
    signal.signal(s, note)
os.write(1, b"ready\\n")
while True:
    time.sleep(1)
"""


# Traces PID as a debugger does: stops it, lets it go on after a while, and tells how often signal 16 stopped it.
DEBUGGER = """import ctypes, os, signal, sys, time
ptrace, pid, ticks = ctypes.CDLL(None, use_errno=True).ptrace, int(sys.argv[1]), 0
ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
ATTACH, CONT, DETACH = 16, 7, 17
if ptrace(ATTACH, pid, None, None):
    sys.exit(os.strerror(ctypes.get_errno()))
def go_on(status):
    # as it came; one of a tick that was on its way is passed on, too
    sig = os.WSTOPSIG(status)
    ptrace(CONT, pid, None, None if sig == signal.SIGSTOP else sig)
    return sig
while go_on(os.waitpid(pid, 0)[1]) != signal.SIGSTOP:
    pass
os.kill(pid, signal.SIGSTOP)
status = os.waitpid(pid, 0)[1]
time.sleep(float(sys.argv[2]))
go_on(status)
end = time.monotonic() + 0.5
while time.monotonic() < end:
    stopped, status = os.waitpid(pid, os.WNOHANG)
    if stopped:
        ticks += go_on(status) == signal.SIGSTKFLT
    time.sleep(0.001)
os.kill(pid, signal.SIGSTOP)
while os.WSTOPSIG(os.waitpid(pid, 0)[1]) != signal.SIGSTOP:
    ptrace(CONT, pid, None, None)
ptrace(DETACH, pid, None, None)
print("stopped by", ticks)
"""


def catcher():
    trace = tmpfile(".data")
    # A group of its own, with this test as the parent outside it: an orphaned group is not stopped by SIGTSTP.
    group = ["python3", "-c", "import os, sys; os.setpgrp(); os.execvp(sys.argv[1], sys.argv[1:])"]
    s = Started([*group, luasample(), "record", "-q", "-o", trace, "--", "python3", "-c", CATCHER])
    s.wait_for("ready")
    return s, trace


def state(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def wait_state(pid, wanted, timeout=5):
    end = time.monotonic() + timeout
    while state(pid) not in wanted:
        check(time.monotonic() < end, "pid %d is %s, not %s" % (pid, state(pid), wanted))
        time.sleep(0.01)


def add_to(suite):
    test = suite.test

    @test("passed-on", "each signal that a process sends arrives once")
    def _():
        s, trace = catcher()
        sigs = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM,
                signal.SIGWINCH, signal.SIGRTMIN + 3]
        for n in sigs:
            s.signal(n)
            s.wait_for("got %d\n" % n)
        s.signal(signal.SIGTERM)
        check(s.wait() == 9, "status")
        got = s.read(s.out)
        for n in sigs:
            check(got.count("got %d\n" % n) == 1, "signal %d: %r" % (n, got))
        check(info(trace)["complete"] == 1, "the trace is not complete")

    @test("group", "a signal that a process sends to the whole group arrives once")
    def _():
        s, trace = catcher()
        for n in (signal.SIGINT, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGINT):
            before = s.read(s.out).count("got %d\n" % n)
            os.killpg(s.p.pid, n)
            end = time.monotonic() + 5
            while s.read(s.out).count("got %d\n" % n) == before:
                check(time.monotonic() < end, "signal %d does not arrive" % n)
                time.sleep(0.01)
            time.sleep(0.1)
            check(s.read(s.out).count("got %d\n" % n) == before + 1, "signal %d: %r" % (n, s.read(s.out)))
        s.signal(signal.SIGINT)         # and to record alone is still passed on
        end = time.monotonic() + 5
        while s.read(s.out).count("got 2\n") < 4:
            check(time.monotonic() < end, "the signal to record alone does not arrive")
            time.sleep(0.01)
        s.signal(signal.SIGTERM)
        check(s.wait() == 9, "status")

    @test("timeout", "under timeout(1), which signals record and then the group")
    def _():
        trace = tmpfile(".data")
        s = Started(["timeout", "-s", "INT", "1", luasample(), "record", "-q", "-o", trace, "--", "python3", "-c", CATCHER])
        s.wait_for("got 2\n")
        time.sleep(0.3)
        got = s.read(s.out).count("got 2\n")
        os.kill(s.child(), signal.SIGTERM)
        s.wait()
        check(got <= 2, "%d times" % got)       # timeout itself sends two

    @test("kill-record-term", "TERM to record ends the program; the trace is complete")
    def _():
        trace = tmpfile(".data")
        s = Started([luasample(), "record", "-o", trace, "--", "luajit", "-e", "print('ready') io.flush() while true do end"])
        s.wait_for("ready")
        time.sleep(0.5)
        s.signal(signal.SIGTERM)
        check(s.wait() == 143, "status")
        j = info(trace)
        check(j["complete"] == 1 and j["exit_status"] == 143, "complete %s, status %s" % (j["complete"], j["exit_status"]))
        check(j["ticks"] > 20 and j["ticks"] > 0.95 * j["cpu_ns"] / 1e6, "%d ticks in %d ns" % (j["ticks"], j["cpu_ns"]))

    @test("stop-and-continue", "the program stops, so does record; a CONT to record continues both")
    def _():
        s, trace = catcher()
        child = s.child()
        for _ in range(3):
            s.signal(signal.SIGTSTP)            # passed on
            wait_state(child, "T")
            wait_state(s.p.pid, "T")
            s.signal(signal.SIGCONT)
            wait_state(s.p.pid, "SR")
            wait_state(child, "SR")
        os.kill(child, signal.SIGSTOP)
        wait_state(s.p.pid, "T")
        s.signal(signal.SIGCONT)
        wait_state(child, "SR")
        s.signal(signal.SIGTERM)
        check(s.wait() == 9, "status")

    @test("stop-status", "the shell sees the signal that stopped the program")
    def _():
        s, trace = catcher()
        child = s.child()
        for n in (signal.SIGTSTP, signal.SIGSTOP, signal.SIGTTIN):
            os.kill(child, n)
            pid, status = os.waitpid(s.p.pid, os.WUNTRACED)
            check(os.WIFSTOPPED(status) and os.WSTOPSIG(status) == n, "status %x" % status)
            s.signal(signal.SIGCONT)
            wait_state(child, "SR")
        s.signal(signal.SIGTERM)
        check(s.wait() == 9, "status")

    @test("long-stop", "a program stopped for 3 s is sampled at its rate afterwards")
    def _():
        trace = tmpfile(".data")
        s = Started([luasample(), "record", "-o", trace, "--", "luajit", "-e",
                     "print('ready') io.flush() local t, x = os.clock() + 3, 0 "
                     "while os.clock() < t do for i = 1, 1e5 do x = x + i % 7 end end"])
        s.wait_for("ready")
        child = s.child()
        time.sleep(0.5)
        os.kill(child, signal.SIGSTOP)
        wait_state(s.p.pid, "T")
        time.sleep(3)
        s.signal(signal.SIGCONT)
        check(s.wait() == 0, "status")
        j = info(trace)
        check(j["samples"] > 2500, "%d samples" % j["samples"])

    @test("recorder-stopped", "record and its writer stopped for 3 s: losses are exact, the rate comes back")
    def _():
        trace = tmpfile(".data")
        s = Started([luasample(), "record", "-m", "64K", "-i", "250us", "-o", trace, "--", "luajit", "-e",
                     "print('ready') io.flush() local function f(n) if n > 0 then return 1 + f(n - 1) end return 0 end "
                     "local t = os.clock() + 5 while os.clock() < t do for i = 1, 50 do f(i % 30) end end"])
        s.wait_for("ready")
        time.sleep(0.5)
        both = [s.p.pid, writer_of(s.p.pid)]    # the writer goes on alone
        for pid in both:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(3)
        for pid in both:
            os.kill(pid, signal.SIGCONT)
        check(s.wait() == 0, "status")
        j = info(trace)
        lost = j["lost"]
        gone = sum(v for k, v in lost.items() if k in ("ring-full", "no-stack", "bad-stack", "no-safe-point", "other-vm"))
        check(lost["ring-full"] > 1000, "nothing was lost: %r" % lost)
        check(abs(j["sample_ticks"] + gone - j["ticks"]) <= 2, "%d in samples + %d lost is not %d" %
              (j["sample_ticks"], gone, j["ticks"]))
        check(j["sample_ticks"] > 4000, "the rate did not come back: %d" % j["sample_ticks"])

    @test("debugger", "a program that a debugger holds gets no ticks, which would stop it; they come back, and the rate is true")
    def _():
        trace = tmpfile(".data")
        s = Started([luasample(), "record", "-o", trace, "--", "luajit", "-e",
                     "print('ready') io.flush() local t = os.clock() + 3 while os.clock() < t do for i = 1, 1e5 do end end"])
        s.wait_for("ready")
        time.sleep(0.3)
        target = [kid for kid in children_of(s.p.pid) if command_of(kid)[0] == b"luajit"]
        check(len(target) == 1, "%r run luajit" % target)
        r = run(["python3", "-c", DEBUGGER, str(target[0]), "1"])
        check(r.out == "stopped by 0\n", "the debugger was %s%s" % (r.out, r.err))
        check(s.wait() == 0, "status")
        j = info(trace)
        check(1.3e9 < j["traced_ns"] < 3e9, "held for %d ns" % j["traced_ns"])
        check(abs(j["ticks"] * 1e6 / j["cpu_ns"] - 1) < 0.02, "%d ticks of 1 ms in %d ns" % (j["ticks"], j["cpu_ns"]))
        check(j["process_cpu_ns"] - j["cpu_ns"] > 5e7, "%d ns of %d of CPU are said to be sampled, also while it was held" % (
            j["cpu_ns"], j["process_cpu_ns"]))
