#!/usr/bin/python3
"""Control of a recording: run.py [--list] [NAME...]

Where the trace goes, and when samples are taken. Needs the build directory in LUASAMPLE_BUILD (default build/)."""
import os
import re
import signal
import socket
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))
import support as s
from support import check

suite = s.Suite("control")
PHASES = os.path.join(HERE, "phases.lua")


def phases(*args):
    return [s.luajit().program, PHASES, *args]


def ticks(trace, function):
    """Ticks with this function anywhere in the stack."""
    return sum(x["total_ticks"] for x in s.rows(trace, "--by", "function") if x["function"] == function)


def sums_hold(trace):
    """The totals are the sums of what is said of each process, and all that was counted can be read."""
    i = s.info(trace)
    for key in "samples", "ticks", "lost_ticks":
        check(i[key] == sum(p[key] for p in i["processes"]),
              "%s: %d in all, processes: %s" % (key, i[key], [p[key] for p in i["processes"]]))
    check(i["readable_samples"] == i["samples"], "%d samples of %d" % (i["readable_samples"], i["samples"]))
    check(i["complete"], "the trace has no end")
    return i


@suite.test("stdout", "-o -: the trace goes through a pipe, what program and child print to stderr", quick=True)
def stdout():
    trace = s.tmpfile(".data")
    child = "os.execute('echo of a child') io.write('of the program\\n')"
    r = s.run([s.luasample(), "record", "-q", "-o", "-", "--", *phases("0.3", child)], binary=True)
    check(r.status == 0, "status %d: %s" % (r.status, r.err))
    check(r.err == "of a child\nof the program\n", "stderr is %r" % r.err)
    with open(trace, "wb") as f:
        f.write(r.out)
    sums_hold(trace)
    check(ticks(trace, "first") > 100, "%d ticks in first" % ticks(trace, "first"))
    piped = s.run(["sh", "-c", '"$0" record -q -o - -- "$@" | "$0" report -i -', s.luasample(), *phases("0.2")])
    check(piped.status == 0 and "phases.lua" in piped.out, "the report of a pipe: %s %s" % (piped.out[-400:], piped.err))
    check(not os.path.exists("-"), "there is a file of the name -")


@suite.test("stdout-ends", "-o -: a reader that goes away, a program that is not there, a full device")
def stdout_ends():
    r = s.run(["sh", "-c", '"$0" record -o - -- "$@" | sleep 0.4', s.luasample(),
               *phases("1.5", "io.stderr:write('ran to the end\\n')")])
    check("ran to the end" in r.err and "stdout: Broken pipe" in r.err, "stderr is %s" % r.err)
    r = s.run([s.luasample(), "record", "-o", "-", "--", "/no/such/program"])
    check(r.status == 127 and not r.out, "status %d, %d bytes" % (r.status, len(r.out)))
    r = s.run(["sh", "-c", '"$0" record -o - -- "$@" >/dev/full', s.luasample(), *phases("0.1")])
    check(r.status == 1 and "cannot write stdout: No space left" in r.err, "status %d: %s" % (r.status, r.err))


@suite.test("stdout-terminal", "-o -: a terminal gets no trace")
def stdout_terminal():
    r = s.run(["script", "-qec", "%s record -o - -- true" % s.luasample(), "/dev/null"])
    check(r.status == 129 and "not for a terminal" in r.out, "status %d: %s" % (r.status, r.out))


@suite.test("delay", "--delay: no tick of any process before, the CPU time and rate are those of the time after", quick=True)
def delay():
    # both processes have 0.8 s of CPU time at once: the delay ends in the middle of first
    child = "io.popen('%s %s 0.8 \"\" 0.3')" % (s.luajit().program, PHASES)
    trace = s.tmpfile(".data")
    r = s.record(phases("0.8", child, "0.3"), "-D", "400", trace=trace).ok()
    i = sums_hold(trace)
    check(len(i["processes"]) == 2, "processes: %s" % i["processes"])
    check(i["enabled_ns"] < i["elapsed_ns"] - 395e6 and i["enabled_ns"] > i["elapsed_ns"] - 1500e6,
          "enabled %d of %d" % (i["enabled_ns"], i["elapsed_ns"]))
    check("samples were wanted for" in r.err, r.err)
    check(abs(i["cpu_ns"] - 1e6 * i["ticks"]) < 10e6, "%d ticks in %d ns of CPU time" % (i["ticks"], i["cpu_ns"]))
    # What is not counted is what is missing of first, whose CPU time is known, however much of it was over by then.
    s.check_near("CPU time before", i["process_cpu_ns"] - i["cpu_ns"], 1.6e9 - 1e6 * ticks(trace, "first"), 20e6)
    check(0 < ticks(trace, "first") and ticks(trace, "second") > 550, "ticks: %d, %d" %
          (ticks(trace, "first"), ticks(trace, "second")))
    early = s.report(trace, "--time", "0s,0.39s")
    check("[No samples left" in early.out, "ticks before the delay was over: " + early.out)


@suite.test("delay-wall", "--delay: blocked time does not count either; -d begins after it; all of it: nothing")
def delay_wall():
    trace = s.tmpfile(".data")
    nap = "require('ffi').cdef('int usleep(unsigned)') require('ffi').C.usleep(900000)"
    s.record(phases("0.01", nap), "-e", "wall", "-D", "400ms", trace=trace).ok()
    i = s.info(trace)
    wall = s.json_of(["report", "-i", trace, "-e", "wall", "--json"])["header"]["ticks"]
    check(0.5 * i["enabled_ns"] < wall * 1e6 < i["enabled_ns"] + 30e6, "%d ticks in %d ns" % (wall, i["enabled_ns"]))
    r = s.record(phases("0.9"), "-D", "200", "-d", "300ms", trace=trace).ok()
    i = s.info(trace)
    check(0.29e9 < i["enabled_ns"] and i["elapsed_ns"] > 0.49e9, "enabled %d of %d" % (i["enabled_ns"], i["elapsed_ns"]))
    r = s.record(phases("0.2"), "-D", "1h", trace=trace).ok()
    i = sums_hold(trace)
    check(i["ticks"] == i["samples"] == i["enabled_ns"] == i["cpu_ns"] // 10**7 == 0, "%s %s" % (i, r.err))
    for bad in "-1", "x", "5y", "":
        check(s.record(phases("0"), "--delay=" + bad).status == 129, "--delay=%s is taken" % bad)


def until_there(path, started):
    until = time.monotonic() + 20
    while not os.path.exists(path):
        check(started.p.poll() is None and time.monotonic() < until, "no %s: %s" % (path, started.read(started.err)))
        time.sleep(0.01)


def end(started):
    """The recorder and all that it runs: a process group of their own."""
    try:
        os.killpg(started.p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    started.wait()


class Control:
    """A recording that is told what to do through a socket."""
    def __init__(self, cmd, *opts):
        self.path, self.trace = s.tmpfile(".sock"), s.tmpfile(".data")
        self.started = s.Started(s.record_cmd(cmd, *opts, "--control", "unix:" + self.path, trace=self.trace))
        until_there(self.path, self.started)
        self.sock = self.client()

    def client(self):
        c = socket.socket(socket.AF_UNIX)
        c.settimeout(60)
        for _ in range(100):
            try:
                c.connect(self.path)
                break
            except (ConnectionRefusedError, BlockingIOError):   # nobody listens yet; too many wait
                time.sleep(0.05)
        return c

    def say(self, line, sock=None):
        sock = sock or self.sock
        sock.sendall(line if isinstance(line, bytes) else line.encode() + b"\n")
        return self.hear(sock)

    def hear(self, sock=None):
        got = b""
        while not got.endswith(b"\n"):
            piece = (sock or self.sock).recv(4096)
            if not piece:
                break
            got += piece
        return got.decode()

    def ack(self, line):
        got = self.say(line)
        check(got == "ack\n", "%s: %r" % (line, got))


def forked(seconds):
    return "io.popen('%s %s %s')" % (s.luajit().program, PHASES, seconds)


@suite.test("control", "enable and disable by a socket, for all processes; stop gives a whole trace at once", quick=True)
def control():
    c = Control(phases("0", forked("30"), "30"), "--delay=-1")
    try:
        mode = os.stat(c.path).st_mode & 0o777
        check(mode == 0o600, "mode %o" % mode)
        c.ack("ping")
        time.sleep(0.3)
        c.ack("enable")
        c.ack("enable")
        time.sleep(0.5)
        c.ack("disable")
        time.sleep(0.3)
        c.ack("enable")
        time.sleep(0.5)
        cost = c.say("cost")
        words = dict(w.split("=") for w in cost.split()[1:])
        check(cost.startswith("ack agent_ns=") and 0 < int(words["agent_ns"]) < int(words["cpu_ns"]) and
              int(words["recorder_ns"]) > 0 and words["dropped_ticks"] == "0", cost)
        c.ack("stop")
        i = sums_hold(c.trace)
        check(not os.path.exists(c.path), "the socket is still there")
    finally:
        end(c.started)
    check(len(i["processes"]) == 2, "processes: %s" % i["processes"])
    check(abs(i["cpu_ns"] - 1e6 * i["ticks"]) < 20e6, "%d ticks in %d ns of CPU time" % (i["ticks"], i["cpu_ns"]))
    check(0.99e9 < i["enabled_ns"] < i["elapsed_ns"] - 0.59e9, "enabled %d of %d" % (i["enabled_ns"], i["elapsed_ns"]))
    check(0 < i["ticks"] * 1e6 < 2 * i["enabled_ns"] + 30e6, "%d ticks in %d ns" % (i["ticks"], i["enabled_ns"]))
    check(ticks(c.trace, "first") > 0 and ticks(c.trace, "second") > 0, "one process has no ticks")


@suite.test("control-fifo", "the same by two FIFOs, made by record, and made before")
def control_fifo():
    ctl, ack, trace = s.tmpfile(".ctl"), s.tmpfile(".ack"), s.tmpfile(".data")
    os.mkfifo(ack, 0o600)
    p = s.Started(s.record_cmd(phases("30"), "--control", "fifo:%s,%s" % (ctl, ack), trace=trace))
    try:
        until_there(ctl, p)
        with open(ack) as answers:
            for line, answer in ("ping", "ack"), ("dance", "error: no such command"), ("disable now", "error: disable"), \
                    ("stop", "ack"):
                with open(ctl, "w") as f:
                    f.write(line + "\n")
                got = answers.readline()
                check(got.startswith(answer), "%s: %r" % (line, got))
        check(s.info(trace)["complete"] and not os.path.exists(ctl) and os.path.exists(ack), "what is left: %s %s" %
              (os.path.exists(ctl), os.path.exists(ack)))
    finally:
        end(p)


@suite.test("control-hostile", "floods, endless lines, zeros, clients that do not read; the recording is as without")
def control_hostile():
    c = Control(phases("1.5"))
    check(c.say(b"x" * 100000 + b"\n").startswith("error: the line has more"), "a line of 100000 bytes is taken")
    check("zero byte" in c.say(b"ping \0stop\n"), "a zero byte is taken")
    check(c.say(b"\xff\x1b[2J\n").startswith("error: no such command"), "no answer to bytes")
    more = [c.client() for i in range(12)]
    deaf = more[0]
    deaf.setblocking(False)
    sent = 0
    try:
        for i in range(3000):
            sent += deaf.send(b"ping\n" * 1000)
            time.sleep(0 if i % 10 else 0.001)
    except (BlockingIOError, BrokenPipeError, ConnectionResetError):
        pass
    check(sent > 0, "nothing could be sent")
    for m in more:
        m.close()
    c.ack("ping")
    check(c.started.wait() == 0, "record failed: %s" % open(c.started.err).read())
    i = sums_hold(c.trace)
    check(i["ticks"] > 1300 and i["lost_ticks"] < 0.02 * i["ticks"], "%d ticks, %d lost" % (i["ticks"], i["lost_ticks"]))


def files_of(trace):
    d, name = os.path.split(trace)
    numbers = sorted(int(f[len(name) + 1:]) for f in os.listdir(d) if f.startswith(name + "."))
    return ["%s.%d" % (trace, n) for n in numbers] + [trace]


def from_text(seconds):
    """Lua that makes a function whose source is in no file, and runs it for long at once, compiled."""
    return ("local f = assert(loadstring([[local ends = os.clock() + %g\n local n = 0\n while os.clock() < ends do\n"
            " for i = 1, 20000 do n = n + i %% 9 end\n end]])) f()" % seconds)


@suite.test("switch", "--switch-output: each file is whole, has names, lines and texts, and its own totals", quick=True)
def switch():
    d = os.path.join(s.tmpdir(), "switch")
    os.mkdir(d)
    trace = os.path.join(d, "x.data")
    with open(trace + ".2", "w") as f:
        f.write("of somebody")
    r = s.record(phases("0.1", forked("0.2") + from_text(2.5)), "--switch-output", "1s", trace=trace).ok()
    check(open(trace + ".2").read() == "of somebody", "a file that was there is gone")
    os.unlink(trace + ".2")
    files = files_of(trace)
    check(len(files) >= 3 and trace + ".1" in files and trace + ".3" in files, "files: %s" % files)
    infos = [sums_hold(f) for f in files]
    check(re.search(r"wrote %d files? before" % (len(files) - 1), r.err), r.err)
    for f, i, then in zip(files, infos, infos[1:] + [None]):
        check(os.stat(f).st_mode & 0o777 == 0o600, "mode of " + f)
        check(abs(i["cpu_ns"] - 1e6 * i["ticks"]) < 30e6, "%s: %d ticks in %d ns" % (f, i["ticks"], i["cpu_ns"]))
        check(i["lost"].get("map-missing", 0) == 0, "%s: %s" % (f, i["lost"]))
        if then:
            check(i["start_monotonic_ns"] + i["elapsed_ns"] == then["start_monotonic_ns"], "%s ends at another time" % f)
    # the middle one: compiled and loaded before, and all of it in the text
    lines = s.rows(files[1], "--by", "line")
    in_text = sum(x["self_ticks"] for x in lines if x.get("source", "").startswith('[string "local ends') and x["line"] == 4)
    check(in_text > 0.3 * infos[1]["readable_ticks"], "%d of %d ticks in line 4: %s" %
          (in_text, infos[1]["readable_ticks"], lines[:4]))
    check(not [x for x in lines if "lost" in x["name"]], "lines without a name: %s" % lines)
    jit = s.run([s.luasample(), "info", "-i", files[1]]).out
    check("compiled code" in jit and "no map" not in jit, jit)
    text = s.report(files[1], "--annotate").out
    check("n = n + i % 9" in text, "the text of the chunk is not in the second file: " + text)
    merged = s.tmpfile(".data")
    s.run([s.luasample(), "merge", "-q", *files, "-o", merged]).ok()
    i = s.info(merged)
    check(i["ticks"] == sum(x["ticks"] for x in infos) and i["readable_samples"] == sum(x["samples"] for x in infos),
          "merged: %d ticks" % i["ticks"])
    check(abs(i["elapsed_ns"] - sum(x["elapsed_ns"] for x in infos)) < 50e6, "merged: %d ns" % i["elapsed_ns"])


# Hardly a stack twice: a trace that grows fast.
MANY_STACKS = """jit.off() local random, clock = math.random, os.clock
local function f(d)
  if d == 0 then local n = 0 for i = 1, 3000 do n = n + i % 7 end return n end
  if random() < 0.5 then
    return 1 + f(d - 1)
  end
  return 2 + f(d - 1)
end
local ends = clock() + 1.5
while clock() < ends do f(40) end"""


@suite.test("switch-keep", "--keep removes the oldest; what cannot be switched is refused")
def switch_keep():
    d = os.path.join(s.tmpdir(), "keep")
    os.mkdir(d)
    trace = os.path.join(d, "x.data")
    r = s.record(phases("0", MANY_STACKS), "--switch-output", "64K", "--keep", "2", "-i", "100us", trace=trace).ok()
    check(", the last 2 of which are kept ]" in r.err, "files that were removed are not said: " + r.err)
    files = files_of(trace)
    check(len(files) == 3 and files[0] != trace + ".1", "files: %s" % files)
    for f in files[:-1]:
        check(os.path.getsize(f) >= 65536 and s.info(f)["complete"], f)
    for status, opts in ((129, ["--switch-output", "10"]), (129, ["--switch-output", "1K"]),
                         (129, ["--switch-output", "10ms"]),
                         (129, ["--keep", "3"]), (129, ["--switch-output", "1s", "--keep", "0"]),
                         (1, ["--switch-output", "1s", "-o", "/dev/null"]), (1, ["--switch-output", "1s", "-o", "-"])):
        r = s.run([s.luasample(), "record", "-o", s.tmpfile(), *opts, "--", "true"])
        check(r.status == status and len(r.err.splitlines()) == 1, "%s: status %d: %s" % (opts, r.status, r.err))
    check(os.path.exists("/dev/null"), "/dev/null is gone")


def until_used(c, seconds):
    """The program has used so much CPU time, however much of the machine it gets."""
    recorder, until = c.started.p.pid, time.monotonic() + 60
    while True:
        with open("/proc/%d/task/%d/children" % (recorder, recorder)) as f:
            used = [s.cpu_of(int(pid)) for pid in f.read().split()]
        if max(used, default=0) >= seconds:
            return
        check(time.monotonic() < until, "CPU time of the recorder's children: %s" % used)
        time.sleep(0.02)


@suite.test("snapshot", "snapshot: the file so far, by a name or a number; native names are in it")
def snapshot():
    c = Control(phases("30"), "--native")
    try:
        until_used(c, 0.3)
        one = s.tmpfile(".one")
        c.ack("snapshot " + one)
        check(c.say("snapshot " + one).startswith("error: snapshot: %s: File exists" % one), "a file is replaced")
        check(c.say("snapshot /no/such/x").startswith("error"), "an impossible name")
        until_used(c, 0.6)
        c.ack("snapshot")
        c.ack("stop")
    finally:
        end(c.started)
    infos = [sums_hold(f) for f in (one, c.trace + ".1", c.trace)]
    check(infos[0]["ticks"] > 100 and infos[1]["ticks"] > 50, "ticks: %s" % [i["ticks"] for i in infos])
    for f in one, c.trace + ".1":
        text = s.report(f, "--min", "0").out
        check("main" in text, "no native names in %s: %s" % (f, text))
    moved = Control(phases("30"))
    try:
        os.rename(moved.trace, moved.trace + ".away")
        check("no longer the file" in moved.say("snapshot"), "a file that was moved away")
        moved.ack("stop")
        check(s.info(moved.trace + ".away")["complete"], "the file that was moved away is not whole")
    finally:
        end(moved.started)


def snapshot_of(c, path):
    """That of the CPU time may be at work."""
    until = time.monotonic() + 30
    while True:
        got = c.say("snapshot " + path)
        if "try again" not in got or time.monotonic() > until:
            return got
        time.sleep(0.05)


@suite.test("ring", "--last: the last seconds of all processes, by a command, a signal, CPU time, and at the end", quick=True)
def ring():
    nap = "require('ffi').cdef('int usleep(unsigned)') require('ffi').C.usleep(2500000) "
    c = Control(phases("1.2", nap + forked("2") + " " + from_text(2)), "--last", "2s", "--last-on-cpu", "20%")
    try:
        time.sleep(0.7)
        check(c.say("ping") == "ack\n" and os.path.getsize(c.trace) == 0, "there is something in the file already")
        one = s.tmpfile(".one")
        check(snapshot_of(c, one) == "ack\n", "no snapshot")
        first = sums_hold(one)
        check(snapshot_of(c, one).startswith("error: snapshot: %s: File exists" % one), "a file is replaced")
        before = len(files_of(c.trace))
        c.started.signal(signal.SIGUSR2)
        until_there("%s.%d" % (c.trace, before), c.started)
        check(c.started.wait(120) == 0, "status; stderr: %s" % c.started.read(c.started.err))
    finally:
        end(c.started)
    check(first["elapsed_ns"] > 0.5e9 and first["ticks"] > 50, "the first: %s" % first)
    files = files_of(c.trace)
    # the signal's, and that of the CPU time before and after the nap
    check(len(files) >= 4, "files: %s" % files)
    infos = [sums_hold(f) for f in files]
    for f, i in zip(files, infos):
        check(i["elapsed_ns"] < 2.6e9 + 0.4 * i["elapsed_ns"], "%s has %d ns" % (f, i["elapsed_ns"]))
        check(abs(i["cpu_ns"] - 1e6 * i["ticks"]) < 40e6, "%s: %d ticks in %d ns" % (f, i["ticks"], i["cpu_ns"]))
        check(i["lost"].get("map-missing", 0) == 0, "%s: %s" % (f, i["lost"]))
    check(max(sum(p["ticks"] > 0 for p in i["processes"]) for i in infos) == 2, "never two processes: %s" % infos[-1])
    check(infos[-1]["start_monotonic_ns"] > first["start_monotonic_ns"] + 2e9, "what is long past is in the last file")
    lines = s.rows(c.trace, "--by", "line")
    check(sum(x["self_ticks"] for x in lines if x.get("source", "").startswith('[string "local ends')) > 100, "%s" % lines[:4])
    check("n = n + i % 9" in s.report(c.trace, "--annotate").out, "no text in the last file")
    for opts in (["--last", "10ms"], ["--last-on-cpu", "90%"], ["--last", "2s", "--last-on-cpu", "x"],
                 ["--last", "2s", "--switch-output", "1s"], ["--last", "2s", "-o", "-"]):
        r = s.run([s.luasample(), "record", "-o", s.tmpfile(), *opts, "--", "true"])
        check(r.status == 129 and len(r.err.splitlines()) == 1, "%s: status %d: %s" % (opts, r.status, r.err))


@suite.test("ring-moved", "--last: the directory of the file is moved away: what there is goes into the file all the same")
def ring_moved():
    there, away = s.tmpfile(".d"), s.tmpfile(".away")
    os.mkdir(there)
    r = s.Started(s.record_cmd(phases("1"), "--last", "60s", trace=os.path.join(there, "x")))
    until_there(os.path.join(there, "x"), r)
    time.sleep(0.2)
    os.rename(there, away)
    check(r.wait() == 0, r.read(r.err))
    sums_hold(os.path.join(away, "x"))
    check(s.info(os.path.join(away, "x"))["ticks"] > 300, r.read(r.err))


@suite.test("ring-mark", "--last-on-mark: the marks that match write the last seconds, with their counters and labels")
def ring_mark():
    script = s.tmpfile(".lua")
    with open(script, "w") as f:
        f.write("""local ls = require "luasample"
            local function spin(ms) local e = os.clock() + ms / 1000 repeat until os.clock() >= e end
            require("ffi").cdef "int usleep(unsigned)"
            ls.label("part", "early") ls.counter("n", 1) ls.counter("old", 5)
            spin(100) ls.mark("quick one")
            ls.label("part", "late") ls.counter("n", 2)
            spin(100) ls.mark("slow 1")
            spin(200) for i = 1, 1000 do ls.mark("slow again") end
            spin(100) require("ffi").C.usleep(2500000)
            ls.counter("n", 3) spin(100)""")
    trace = s.tmpfile(".data")
    r = s.record([s.luajit().program, script], "--last", "2s", "--last-on-mark", "slow*", trace=trace)
    r.ok()
    files = [trace + ".1", trace + ".2", trace + ".3"]
    check([os.path.exists(f) for f in files] == [True, True, False], "files: %s" % files_of(trace))
    for f, last, labels in ((files[0], 2, {"early", "late"}), (trace, 3, {"late"})):
        i = s.info(f)
        check(i["complete"] and i["ticks"] > 50, "%s: %s" % (f, i))
        by = {c["name"]: c for c in i["counters"]}
        check(by["n"]["last"] == last and by["old"]["last"] == 5, "%s: counters %s" % (f, by))
        got = {x["label"] for x in s.rows(f, "--by", "label:part", "--function", "spin")}
        check(got == labels, "%s: labels %s" % (f, got))
    r = s.run([s.luasample(), "record", "--last-on-mark", "x", "--", "true"])
    check(r.status == 129 and "give --last with it" in r.err, r.err)


@suite.test("tell", "--tell: a line when a mark of that name or a counter's value comes, at most one a second of each; nothing of others")
def tell():
    script = s.tmpfile(".lua")
    with open(script, "w") as f:
        f.write("""local ls = require "luasample"
            require("ffi").cdef "int usleep(unsigned)"
            local function sleep(s) require("ffi").C.usleep(s * 1e6) end
            ls.counter("queue", 1) ls.counter("queues", 5000) ls.counter("free", 50)
            local t = {} while os.clock() < 0.3 do t[#t % 1000 + 1] = {} end
            sleep(0.5)
            for i = 1, 1000 do ls.mark("slow " .. i) ls.mark("quick") end
            ls.counter("queue", 1001) ls.counter("free", 9)
            sleep(2.5) ls.counter("queue", 3)
            sleep(1.5) ls.counter("queue", 2000) ls.counter("queue", 4)
            sleep(1.5) ls.mark("slow at the end")""")
    words = ["mark:slow*", "counter:queue>1000", "counter:free<10", "mark:none", "counter:Lua?heap>1000", "counter:queue>1e9"]
    r = s.record([s.luajit().program, script], "-q", *["--tell=" + w for w in words])
    r.ok()
    said = [l for l in r.err.splitlines() if "tell" in l]
    no, yes = " no more", ""
    want = {2: [no, yes, no, yes, no], 3: [no, yes], 4: [], 5: [yes], 6: [no]}
    for n, how in want.items():
        got = [l for l in said if l.startswith("[ luasample: tell %d" % n)]
        check(got == ["[ luasample: tell %d%s: %s ]" % (n, more, words[n - 1]) for more in how], "%s: %s" % (words[n - 1], got))
    marks = [l for l in said if l.startswith("[ luasample: tell 1")]
    check(set(marks) == {"[ luasample: tell 1: mark:slow* ]"} and 2 <= len(marks) <= 4, marks)     # 1001 came, in some 6 s
    for bad in ("slow", "mark:", "counter:queue", "counter:>5", "counter:queue>", "counter:queue>x", "counter:queue>inf", "mark:" + "x" * 256):
        r = s.run([s.luasample(), "record", "--tell=" + bad, "--", "true"])
        check(r.status == 129 and r.err.startswith("luasample: --tell " + bad) and len(r.err.splitlines()) == 1, "%s: %r" % (bad, r.err))
    r = s.run([s.luasample(), "record"] + ["--tell=mark:x"] * 33 + ["--", "true"])
    check(r.status == 129 and "32 are asked for already" in r.err, r.err)


@suite.test("control-refused", "--control: what cannot be used is refused in a line, and nothing runs")
def control_refused():
    plain, link, open_fifo, mark = s.tmpfile(), s.tmpfile(), s.tmpfile(), s.tmpfile()
    open(plain, "w").close()
    os.symlink(plain + ".target", link)
    os.mkfifo(open_fifo)
    os.chmod(open_fifo, 0o622)
    for status, how in ((129, "x"), (129, "fifo:"), (129, "fifo:a,"), (129, "fifo:,a"), (129, "unix:"),
                        (129, "unix:/" + "x" * 120),
                        (1, "fifo:" + plain), (1, "fifo:" + link), (1, "fifo:" + open_fifo), (1, "fifo:/no/such/x"),
                        (1, "unix:" + plain), (1, "unix:" + link), (1, "unix:/no/such/x")):
        r = s.run([s.luasample(), "record", "-o", s.tmpfile(), "--control", how, "--", "touch", mark])
        check(r.status == status and len(r.err.splitlines()) == 1, "%s: status %d: %s" % (how, r.status, r.err))
    check(not os.path.exists(mark) and not os.path.exists(plain + ".target"), "something was run or made")
    # a socket that a killed recorder left is taken over, one in use is not
    left = s.tmpfile(".sock")
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(left)
    dead.listen()
    for closed in False, True:
        r = s.run([s.luasample(), "record", "-q", "-o", s.tmpfile(), "--control", "unix:" + left, "--", "true"])
        check(r.status == (0 if closed else 1), "in use %s: status %d: %s" % (not closed, r.status, r.err))
        dead.close()


if __name__ == "__main__":
    sys.exit(suite.main())
