#!/usr/bin/python3
"""Tests of luasample stack, which reads a process that knows nothing of it: run.py [--quick] [--list] [NAME...]

Needs the build directory in LUASAMPLE_BUILD (default build/)."""
import contextlib
import json
import os
import random
import re
import resource
import signal
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))
import heaps
import support as s
from support import check

suite = s.Suite("stack")

PROGRAM = """
local ffi = require "ffi"
ffi.cdef "int poll(void *, unsigned long, int);"
function leaf(n) local x = 0 for i = 1, n do x = x + i %% 7 end return x end
function worker(name)
        while true do
                coroutine.yield(name)           -- line 7
                leaf(10)
        end
end
cos = {}
for i = 1, %(coroutines)d do cos[i] = coroutine.wrap(worker) cos[i]("w" .. i) end
function busy()
        leaf(20000)
        return busy()
end
function blocked()
        ffi.C.poll(nil, 0, -1)                  -- line 18
        return true
end
function outer(f)
        f()
        return 1
end
io.write("up\\n") io.flush()
outer(%(run)s)
print("never")
"""


@contextlib.contextmanager
def running(cmd, **kw):
    p = s.Started(cmd, **kw)
    try:
        p.wait_for("\n")
        yield p
    finally:
        p.p.kill()
        p.p.wait()


def program(run, coroutines=3, lj=None, opts=()):
    path = s.tmpfile(".lua")
    with open(path, "w") as f:
        f.write((PROGRAM % {"run": run, "coroutines": coroutines}).replace("\\\\n", "\\n"))
    lj = lj or s.luajit()
    return running([lj.program, *opts, path], env=lj.environ())


def stack(pid, *opts, tries=3):
    """The stacks as JSON. A stack that changed while it was read is said, and read again."""
    for left in range(tries, 0, -1):
        r = s.run([s.luasample(), "stack", "--json", *opts, str(pid)]).ok()
        j = json.loads(r.out)
        if j["stacks"] or left == 1:
            return j["stacks"]


def functions(one):
    return [f["function"] for f in one["frames"]]


def state_of(pid):
    with open("/proc/%d/status" % pid) as f:
        return dict(l.split(":\t", 1) for l in f.read().splitlines() if ":\t" in l)


def wait_blocked(pid):
    end = time.monotonic() + 20
    while state_of(pid)["State"][0] != "S":
        check(time.monotonic() < end, "it does not block")
        time.sleep(0.01)


for name, opts, state in (("compiled", (), "Compiled"), ("interpreted", ("-joff",), "Interpreted")):
    @suite.test(name, "an endless loop, %s: its stack, and three coroutines" % name, True)
    def loop(opts=opts, state=state):
        for lj in s.luajits():
            with program("busy", lj=lj, opts=opts) as p:
                for _ in range(5):
                    found = stack(p.p.pid)
                    threads = [x for x in found if x["state"] != "suspended"]
                    check(len(threads) == 1 and threads[0]["tid"] == p.p.pid, "threads: %s" % threads)
                    check(threads[0]["state"] == state, "state %s, not %s" % (threads[0]["state"], state))
                    names = functions(threads[0])
                    check("busy" in names or "leaf" in names, "frames: %s" % names)
                    check([n for n in names if n.startswith("main chunk@")], "no main chunk: %s" % names)
                    waiting = [x for x in found if x["state"] == "suspended"]
                    check(sum(x["times"] for x in waiting) == 3, "coroutines: %s" % waiting)
                    lines = {f.get("line") for x in waiting for f in x["frames"]}
                    check(7 in lines, "coroutines wait at lines %s" % lines)
                check(p.p.poll() is None, "the program has ended")


@suite.test("blocked", "a process that sleeps: the line that waits; it sleeps on", True)
def blocked():
    for lj in s.luajits():
        with program("blocked", lj=lj) as p:
            wait_blocked(p.p.pid)
            before = state_of(p.p.pid)
            for _ in range(10):
                found = [x for x in stack(p.p.pid) if x["state"] == "blocked"]
                check(len(found) == 1, "blocked threads: %s" % found)
                lua = [(f["function"], f.get("line")) for f in found[0]["frames"] if f.get("source")]
                check(("blocked", 18) in lua and "outer" in functions(found[0]), "frames %s" % found[0]["frames"])
            after = state_of(p.p.pid)
            keys = ("SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd", "Threads", "TracerPid", "FDSize", "voluntary_ctxt_switches")
            check([before[k] for k in keys] == [after[k] for k in keys], "changed: %s" % [
                (k, before[k], after[k]) for k in keys if before[k] != after[k]])
            check("never" not in p.read(p.out), "it was woken")


RESERVE = """(function()
        ffi.cdef "void *mmap(void *, size_t, int, int, int, long);"
        assert(ffi.C.mmap(nil, 2^38, 0, 0x4022, -1, 0) ~= ffi.cast("void *", -1))       -- private, anonymous, no reserve
        return blocked
end)()"""


@suite.test("reserved", "a process that has a quarter of the addresses that libraries are placed in: one reader in five is in its way")
def reserved():
    with program(RESERVE) as p:
        wait_blocked(p.p.pid)
        for _ in range(5):
            check([x for x in stack(p.p.pid) if x["state"] == "blocked"], "no blocked thread")


@suite.test("not-random", "a process and a reader whose memory lies at the same addresses each time: one line, and it goes on")
def not_random():
    p = s.Started(["setarch", "-R", s.luajit().program, "-e", "io.write('up\\n') io.flush() while true do end"])
    try:
        p.wait_for("\n")
        r = s.run(["setarch", "-R", s.luasample(), "stack", str(p.p.pid)])
        check(r.status == 1 and "address space randomization is off" in r.err and r.err.count("\n") == 1, r.err)
        check(p.p.poll() is None, "it has ended")
    finally:
        p.p.kill()
        p.p.wait()


@suite.test("eintr", "no system call of a process is interrupted")
def eintr():
    with contextlib.ExitStack() as stop:
        p = s.Started([s.host("eintr"), "4000"])
        stop.callback(p.p.kill)
        looks = 0
        while p.p.poll() is None:
            s.run([s.luasample(), "stack", "--json", str(p.p.pid)])
            looks += 1
        out = p.read(p.out)
        m = re.search(r"calls (\d+) eintr (\d+)", out)
        check(p.wait() == 0 and m, "the host printed %r" % out)
        check(int(m.group(2)) == 0, "%s calls, %s interrupted, %d looks" % (m.group(1), m.group(2), looks))
        check(looks >= 5, "only %d looks" % looks)


@suite.test("threads", "threads with a VM each")
def threads():
    with contextlib.ExitStack() as stop:
        p = s.Started([s.host("workers"), "4", "1", "20000"])
        stop.callback(p.p.wait)
        stop.callback(p.p.kill)
        end, best = time.monotonic() + 30, []
        while len(best) < 4 and time.monotonic() < end:
            found = s.run([s.luasample(), "stack", "--json", str(p.p.pid)])
            if found.status == 0:
                best = [x for x in json.loads(found.out)["stacks"] if x.get("vm") and re.match(r"worker\d", x.get("thread", ""))]
        check(len(best) == 4 and len({x["vm"] for x in best}) == 4, "threads with a VM: %s" % best)
        check(all({"numbers", "tables", "main chunk@workers"} & set(functions(x)) for x in best), "frames: %s" % best)


@suite.test("kept", "-o: a trace that report shows again; text and JSON agree")
def kept():
    path = s.tmpfile(".data")
    with program("blocked") as p:
        wait_blocked(p.p.pid)
        r = s.run([s.luasample(), "stack", "-o", path, str(p.p.pid)]).ok()
    check(re.search(r"^Thread \d+ luajit, VM 1: blocked$", r.out, re.M) and "3 coroutines, VM 1: suspended" in r.out, r.out)
    check(re.search(r"^# Process: .*stopped for [\d.]+ [mu]s$", r.out, re.M), r.out[:200])
    again = s.run([s.luasample(), "report", "--stacks", "-i", path]).ok()
    check(again.out == r.out, "report shows %r, stack %r" % (again.out, r.out))
    j = s.json_of(["report", "--stacks", "--json", "-i", path])["stacks"]
    shown = [l.split("  ")[2] for l in r.out.splitlines() if l.startswith("    ")]
    check(shown == [f["function"] for x in j for f in x["frames"]], "text %s, JSON %s" % (shown, j))


@suite.test("refusals", "each refusal is one line that says what to do", True)
def refusals():
    def refused(args, pattern, status=1, wrap=()):
        r = s.run([*wrap, s.luasample(), "stack", *args])
        lines = r.err.splitlines()
        check(r.status == status and len(lines) == 1 and re.search(pattern, lines[0]) and not r.out,
              "%s: status %d, %r %r" % (args, r.status, r.err, r.out))
    refused([], "give the number of one process", 129)
    refused(["1", "2"], "give the number of one process", 129)
    refused(["nginx"], "'nginx' is not the number", 129)
    refused(["4194303"], "there is no process 4194303")
    with running(["sh", "-c", "echo up; exec sleep 100"]) as p:
        refused([str(p.p.pid)], r"has no LuaJIT in it")
    with program("busy") as p:
        if os.geteuid() == 0:
            with contextlib.ExitStack() as stop:
                copy = s.tmpfile(".d")
                os.mkdir(copy, 0o755)
                os.chmod(s.tmpdir(), 0o755)
                stop.callback(os.chmod, s.tmpdir(), 0o700)
                refused([str(p.p.pid)], "may not be read: run as its user", wrap=["setpriv", "--reuid=65534", "--clear-groups"]
                        if os.access(s.luasample(), os.X_OK) and others_may_run(s.luasample()) else [sys.executable, "-c", DROP])
        tracer = s.Started([s.need("strace"), "-f", "-p", str(p.p.pid), "-o", "/dev/null"])
        try:
            end = time.monotonic() + 20
            while state_of(p.p.pid)["TracerPid"] == "0":
                check(time.monotonic() < end, "strace does not attach")
                time.sleep(0.02)
            refused([str(p.p.pid)], "is being traced by another program")
        finally:
            tracer.p.terminate()
            tracer.wait()
        check(p.p.poll() is None, "the program has ended")


# Runs luasample as another user though its directory is not open to others: by a descriptor.
DROP = "import os, sys; fd = os.open(sys.argv[1], os.O_PATH); os.setgroups([]); os.setuid(65534); " \
       "os.set_inheritable(fd, True); os.execv('/proc/self/fd/%d' % fd, sys.argv[1:])"


def others_may_run(path):
    while path != "/":
        if not os.stat(path).st_mode & 1:
            return False
        path = os.path.dirname(path)
    return True


def core_of(p):
    """A core file: the kernel's where it writes one to the directory, else gdb's."""
    path = s.tmpfile(".core")
    r = s.run([s.need("gcore"), "-o", path, str(p.p.pid)])
    written = "%s.%d" % (path, p.p.pid)
    check(os.path.exists(written), "gcore wrote nothing: %s" % (r.out + r.err)[-300:])
    return written


@suite.test("core", "a core file: as the process was; a damaged one is one line")
def core():
    with program("busy") as p:
        path = core_of(p)
    found = json.loads(s.run([s.luasample(), "stack", "--json", "--core", path]).ok().out)["stacks"]
    threads = [x for x in found if x["state"] == "Compiled"]
    check(len(threads) == 1 and "busy" in functions(threads[0]), "threads: %s" % found)
    check([n for n in functions(threads[0]) if n.startswith("main chunk@")], "no main chunk: %s" % found)
    check(sum(x["times"] for x in found if x["state"] == "suspended") == 3, "coroutines: %s" % found)
    with open(path, "rb") as f:
        good = f.read()
    random.seed(7)
    notes = len(good) - 20000           # gdb's are at the end
    for i in range(60):
        bad = bytearray(good)
        for _ in range(random.choice((1, 8, 64))):
            at = random.choice((random.randrange(4096), random.randrange(notes, len(bad)), random.randrange(len(bad))))
            bad[at] = random.randrange(256)
        with open(path, "wb") as f:
            f.write(bad[:random.randrange(len(bad))] if i % 4 == 0 else bad)
        r = s.run([s.luasample(), "stack", "--core", path])
        check(r.status in (0, 1) and len(r.err.splitlines()) <= 1 + (r.status == 0), "status %d, %r" % (r.status, r.err))
    for text, pattern in (("", "is no core file"), ("text\n", "is no core file")):
        with open(path, "w") as f:
            f.write(text)
        r = s.run([s.luasample(), "stack", "--core", path])
        check(r.status == 1 and pattern in r.err, "%d %r" % (r.status, r.err))


def note(kind, desc):
    return struct.pack("<III", 5, len(desc), kind) + b"CORE\0\0\0\0" + desc + b"\0" * (-len(desc) % 4)


@suite.test("core-mappings", "a core file of sixty thousand segments and as many files twice")
def core_mappings():
    segments, files = 60000, 120000
    notes = note(1, b"\0" * 336)                           # NT_PRSTATUS
    spans = b"".join(struct.pack("<QQQ", 0x10000000 + i * 0x2000, 0x10001000 + i * 0x2000, i) for i in range(files))
    notes += note(0x46494c45, struct.pack("<QQ", files, 4096) + spans + b"/f\0" * files)
    at = 64 + 56 * segments
    heads = struct.pack("<IIQQQQQQ", 4, 4, at, 0, 0, len(notes), 0, 4)
    heads += b"".join(struct.pack("<IIQQQQQQ", 1, 6, 0, 0x7f0000000000 + i * 0x2000, 0, 0, 4096, 4096) for i in range(segments - 1))
    path = s.tmpfile(".core")
    with open(path, "wb") as f:
        f.write(b"\x7fELF\2\1\1" + b"\0" * 9 + struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, segments, 0, 0, 0))
        f.write(heads + notes)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    r = s.run([s.luasample(), "stack", "--core", path], timeout=300)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    check(r.status == 1 and len(r.err.splitlines()) == 1, "status %d, %r" % (r.status, r.err))
    check(used < 10, "%.1f s of CPU time" % used)


@suite.test("repeated", "a hundred times: the process is as before, and prints what it would have")
def repeated():
    def shape(pid):
        with open("/proc/%d/maps" % pid) as f:
            maps = [l.split()[5:] for l in f if "/" in l]
        return maps, sorted(os.listdir("/proc/%d/fd" % pid)), os.listdir("/proc/%d/task" % pid)
    with program("busy") as p:
        before, times = shape(p.p.pid), []
        for _ in range(100):
            r = s.run([s.luasample(), "stack", "--no-native", str(p.p.pid)]).ok()
            m = re.search(r"stopped for ([\d.]+) (ms|us|s)", r.out)
            times.append(float(m.group(1)) * {"us": 0.001, "ms": 1, "s": 1000}[m.group(2)])
        check(shape(p.p.pid) == before, "its maps, descriptors or threads have changed")
        check(p.p.poll() is None and p.read(p.out) == "up\n", "printed %r" % p.read(p.out))
        times.sort()
        print("     stopped for %.2f ms at least, %.2f at the median, %.2f at most" % (times[0], times[50], times[-1]))


heaps.add_to(suite, running)

if __name__ == "__main__":
    sys.exit(suite.main())
