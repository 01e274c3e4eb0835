"""Nothing committed is lost, however program, recorder, terminal, disk or file end. Imported by run.py."""
import os
import re
import signal
import time

import support as s
from support import check, check_near

ENDS = os.path.join(s.LUA, "ends.lua")


def ticks(trace):
    return sum(x["self_ticks"] for x in s.rows(trace, "--by", "function"))


def started(args, *opts, interval="1ms"):
    trace = s.tmpfile(".data")
    p = s.Started(s.record_cmd([s.luajit().program, ENDS, *args], *opts, interval=interval, trace=trace))
    p.trace = trace
    return p


def pty(keys, cmd):
    r = s.run([s.host("pty"), *keys, "--", *cmd], timeout=60)
    return r, r.err.split("\n")


def add_to(suite):
    t = suite.test

    @t("ends.kill-recorder", "kill -9 of the recorder: all but a second is in the file, the program runs on", True)
    def kill_recorder():
        p = started(["wait", "3.5"])
        p.wait_for("ready")
        program = p.child()
        time.sleep(0.4)
        then = s.cpu_of(program)
        time.sleep(1.2)                         # the flush period is 1 s
        p.signal(signal.SIGKILL)
        check(p.wait() == 137, "the recorder was not killed")
        got = ticks(p.trace)
        check(got >= 1000 * then - 40, "%d ticks are readable, %.2f s of CPU were used a second before" % (got, then))
        end = time.monotonic() + 15
        while os.path.exists("/proc/%d" % program) and time.monotonic() < end:
            time.sleep(0.05)
        check("waited" in p.read(p.out), "the program did not run on to its end")

    for name, sig in (("SIGTERM", signal.SIGTERM), ("SIGINT", signal.SIGINT), ("SIGHUP", signal.SIGHUP),
                      ("SIGQUIT", signal.SIGQUIT), ("SIGUSR1", signal.SIGUSR1)):
        @t("ends.passed-on." + name, "a signal that a process sends to record reaches the program", name == "SIGTERM")
        def passed_on(sig=sig):
            p = started(["wait", "20"])
            p.wait_for("ready")
            p.signal(sig)
            status = p.wait()
            plain = s.Started([s.luajit().program, ENDS, "wait", "20"])
            plain.wait_for("ready")
            plain.signal(sig)
            want = plain.wait()                 # luajit makes an error of SIGINT; the others kill it
            check(status == want, "status %d, without us %d: %s" % (status, want, p.read(p.err)[-300:]))
            got = ticks(p.trace)
            check(got > 500, "%d ticks in the trace" % got)
            check(s.info(p.trace).get("exit_status") == want, "info has exit_status %s" % s.info(p.trace).get("exit_status"))

    @t("ends.killed-program", "kill -9 of the program from outside")
    def killed_program():
        p = started(["wait", "20"])
        p.wait_for("ready")
        os.kill(p.child(), signal.SIGKILL)
        check(p.wait() == 137, "status is not 137")
        check(ticks(p.trace) >= 590, "%d ticks of 600" % ticks(p.trace))
        check(re.search("samples", p.read(p.err)), "no summary: " + p.read(p.err))

    @t("ends.growing", "report and info work on a growing file")
    def growing():
        p = started(["wait", "6"])
        p.wait_for("ready")
        seen = []
        for _ in range(6):
            time.sleep(0.7)
            seen.append(ticks(p.trace))
            s.info(p.trace)
        p.signal(signal.SIGTERM)
        p.wait()
        check(seen == sorted(seen) and seen[-1] > seen[0], "ticks seen while it grew: %s" % seen)
        check(seen[-1] > 1000, "only %d ticks after 4 s" % seen[-1])

    @t("ends.cut", "report works on a file cut at any byte", True)
    def cut():
        r = s.record_lua("calls.lua", "-q", args=["2.4"]).ok()
        whole = ticks(r.trace)
        with open(r.trace, "rb") as f:
            data = f.read()
        last, cuts = 0, sorted({*range(0, len(data), max(1, len(data) // 40)), 1, 7, 8, 15, 16, 31, 32, 63, 64, len(data) - 1})
        for n in cuts:
            path = s.tmpfile(".cut")
            with open(path, "wb") as f:
                f.write(data[:n])
            x = s.run([s.luasample(), "report", "-i", path, "--json"])
            check(x.status in (0, 1) and (x.status == 0 or x.err.count("\n") == 1), "cut at %d: status %d, %s" % (n, x.status, x.err[-200:]))
            if x.status == 0:
                got = ticks(path)
                check(last <= got <= whole, "cut at %d: %d ticks, %d at a shorter cut" % (n, got, last))
                last = got
            os.remove(path)
        check(last > 0.9 * whole, "cut one byte short: %d of %d ticks" % (last, whole))

    @t("ends.duration", "-d ends the recording, the program runs on, record waits")
    def duration():
        r = s.record([s.luajit().program, ENDS, "wait", "2"], "-d", "1s").ok()
        check("waited" in r.out, "the program did not run on: %r" % r.out)
        check(r.seconds > 2.4, "record did not wait")
        i = s.info(r.trace)
        # A recorder that gets no processor at the end of the second is late; the program runs for two.
        check(0.95e9 < i["elapsed_ns"] < 1.9e9, "recorded for %.2f s" % (i["elapsed_ns"] / 1e9))
        check(0 < i["cpu_ns"] < 1.02 * i["elapsed_ns"], "%d ns of CPU time" % i["cpu_ns"])
        check_near("ticks in its CPU time", ticks(r.trace) + i["lost_ticks"], i["cpu_ns"] / 1e6, 5)

    @t("ends.disk-full", "disk full: a valid trace stays, without pieces of chunks, the program runs on")
    def disk_full():
        if os.geteuid():
            raise s.Skip("needs root to mount a small file system")
        d = s.tmpfile(".d")
        os.mkdir(d)
        m = s.run(["mount", "-t", "tmpfs", "-o", "size=20k", "tmpfs", d])
        if m.status:
            raise s.Skip("cannot mount: " + m.err.strip())
        try:
            script = os.path.join(s.TESTS, "bench", "programs", "parser.lua")
            r = s.record([s.luajit().program, script, "300"], interval="250us", trace=os.path.join(d, "x.data"))
            check(r.status == 0 and r.out.startswith("sum"), "the program did not run to its end: %d %s" % (r.status, r.err[-300:]))
            check(re.search("space", r.err), "no word about the full disk: " + r.err)
            check(ticks(r.trace) > 0, "nothing readable")
            pieces = [x for x in s.info(r.trace)["damage"] if x["bytes"]]
            check(not pieces, "of chunks that did not fit something stays: %s" % pieces)
        finally:
            s.run(["umount", d])

    @t("ends.recorder-stopped", "a 64 KiB ring and a recorder stopped for 2 s: no wrong name, exact losses")
    def recorder_stopped():
        maker = s.tmpfile(".lua")
        with open(maker, "w") as f:
            f.write("""local fns = {}
for i = 1, 20000 do fns[i] = load(("local function f_%d(n) local x = 0 for i = 1, n do x = x + i %% 7 end return x end return f_%d"):format(i, i), "=f_" .. i)() end
print "ready" io.stdout:flush()
local stop = os.clock() + 4
local k = 0
while os.clock() < stop do k = k % 20000 + 1 fns[k](3000) end
""")
        trace = s.tmpfile(".data")
        p = s.Started(s.record_cmd([s.luajit().program, "-joff", maker], "-m", "64K", interval="250us", trace=trace))
        p.wait_for("ready")
        time.sleep(0.5)
        p.signal(signal.SIGSTOP)
        time.sleep(2)
        p.signal(signal.SIGCONT)
        check(p.wait() == 0, "status; " + p.read(p.err)[-300:])
        i = s.info(trace)
        rows = s.rows(trace, "--by", "function")
        for x in rows:
            m = re.match(r"f_(\d+)$", x["function"])
            if m:
                check(s.basename(x["source"]).lstrip("=") == "f_" + m.group(1), "wrong name: %s" % x)
        in_samples = sum(x["self_ticks"] for x in rows)
        from jit_p import lost_ticks
        check(lost_ticks(i) > 0, "no losses counted: %s" % i)
        check_near("samples + losses", in_samples + lost_ticks(i), i["ticks"], 0)
        check_near("ticks", i["ticks"], i["cpu_ns"] / 250e3, i["cpu_ns"] / 250e3 * 0.02 + 2)

    # Through a terminal

    def job(*args):
        trace = s.tmpfile(".data")
        return trace, s.record_cmd([s.luajit().program, ENDS, *args], trace=trace)

    @t("ends.pty.ctrl-c", "Ctrl-C on a terminal: the program ends as without us, the trace is complete", True)
    def ctrl_c():
        trace, cmd = job("wait", "20")
        r, said = pty(["ready:0", "c:300"], cmd)
        check(ticks(trace) >= 590 and s.info(trace)["complete"], "trace: %d ticks" % ticks(trace))
        plain, plain_said = pty(["ready:0", "c:300"], [s.luajit().program, ENDS, "wait", "20"])
        check(said == plain_said, "said %s, without us %s; %s" % (said, plain_said, r.out[-300:]))
        check(r.out.count("ready") == plain.out.count("ready") == 1, "output differs: %r" % r.out)

    @t("ends.pty.ctrl-c-caught", "a program that catches Ctrl-C gets it once and goes on")
    def ctrl_c_caught():
        script = s.tmpfile(".lua")
        with open(script, "w") as f:
            f.write("""local ffi = require "ffi"
ffi.cdef "typedef void (*sh)(int); sh signal(int, sh); int sigaction(int, void *, void *); int usleep(unsigned);"
ffi.cdef "int pipe(int *); int signalfd(int, const void *, int); int sigprocmask(int, const void *, void *); long read(int, void *, unsigned long);"
local set = ffi.new("uint64_t[16]") set[0] = 2
ffi.C.sigprocmask(0, set, nil)
local fd = ffi.C.signalfd(-1, set, 2048)
local buf, n = ffi.new("char[256]"), 0
local stop = os.clock() + 2
local x = 0
print "ready" io.stdout:flush()
while os.clock() < stop do for i = 1, 10000 do x = x + i % 7 end if ffi.C.read(fd, buf, 256) > 0 then n = n + 1 end end
print("interrupts " .. n) os.exit(6)
""")
        trace = s.tmpfile(".data")
        cmd = s.record_cmd([s.luajit().program, script], trace=trace)
        r, said = pty(["ready:0", "c:300", "none:100"], cmd)
        check("interrupts 1" in r.out and "exited 6" in said, "%r %s" % (r.out[-300:], said))
        check(ticks(trace) > 1800, "%d ticks of 2000" % ticks(trace))

    @t("ends.pty.ctrl-z", "Ctrl-Z stops it, fg continues it, both are as without us")
    def ctrl_z():
        trace, cmd = job("wait", "1.2")
        keys = ["ready:0", "z:200", "fg:800"]
        r, said = pty(keys, cmd)
        plain, plain_said = pty(keys, [s.luajit().program, ENDS, "wait", "1.2"])
        check("waited" in r.out, "not continued: %r %s" % (r.out[-300:], said))
        check([x for x in said if x.startswith("stopped")] == [x for x in plain_said if x.startswith("stopped")],
              "said %s, without us %s" % (said, plain_said))
        check("exited 0" in said, "said %s" % said)
        check(ticks(trace) > 1650, "%d ticks of 1800" % ticks(trace))

    for key, name, sig in (("\\", "ctrl-backslash", 3), ("hup", "hangup", 1)):
        @t("ends.pty." + name, "the trace is complete afterwards")
        def other_keys(key=key, sig=sig):
            trace, cmd = job("wait", "20")
            keys = ["ready:0", key + ":300"]
            r, said = pty(keys, cmd)
            plain, plain_said = pty(keys, [s.luajit().program, ENDS, "wait", "20"])
            check("killed %d" % sig in plain_said, "the test itself: %s" % plain_said)
            check("exited %d" % (128 + sig) in said or "killed %d" % sig in said, "said %s" % said)
            check(ticks(trace) >= 590 and s.info(trace)["complete"], "%d ticks" % ticks(trace))

    @t("ends.pty.status-line", "one status line on a terminal, none with -q or without one")
    def status_line():
        trace, cmd = job("wait", "1.5")
        r, said = pty(["none:100"], cmd)
        check(re.search(r"\r[^\n]*sampl", r.out), "no status line: %r" % r.out[-400:])
        quiet = s.record([s.luajit().program, ENDS, "normal"], "-q").ok()
        check(quiet.err == "", "-q leaves %r" % quiet.err)
        piped = s.record([s.luajit().program, ENDS, "normal"]).ok()
        check("\r" not in piped.err and piped.err.strip(), "summary without a terminal: %r" % piped.err)
