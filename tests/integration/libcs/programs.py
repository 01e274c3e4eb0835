"""A program in each tree: recorded from its start, attached to, seen by its wall time and by `stack`. Its two functions have 70
and 30 parts of its time, and what it prints is compared with what it prints alone. Imported by run.py."""
import re
import time

import process
import support as s
import tree
from support import check

SUITES = {"bullseye": "2.31", "bookworm": "2.36", "trixie": "2.41", "testing": None}
ATTACHMENTS = 25

# Prints a line a round; after N rounds, or when there is the file STOP, it ends. With a pause in each round it prints after
# each when that was, and how long it has been in its three functions so far. With a fourth argument it says at its end, as an
# error, the CPU time that its two functions had.
WORK = """
local rounds, stop, pause = tonumber(arg[1]), arg[2], tonumber(arg[3] or 0)
local ffi = require "ffi"
ffi.cdef [[
const char *gnu_get_libc_version(void); int poll(void *, unsigned long, int);
struct ts { long s, ns; }; int clock_gettime(int, struct ts *);
]]
local t = ffi.new("struct ts")
local function now() ffi.C.clock_gettime(1, t) return tonumber(t.s) + tonumber(t.ns) / 1e9 end
local function heavy_part() local x = 0 for i = 1, 350000 do x = (x * 31 + i) % 1000003 end return x end
local function light_part() local x = 0 for i = 1, 150000 do x = (x * 31 + i) % 1000003 end return x end
local function pausing_part() ffi.C.poll(nil, 0, pause) end
jit.off(pausing_part)           -- in compiled code attach knows where a trace began, not what it calls
local function exists(name) local f = io.open(name) if f then f:close() end return f end
io.stdout:setvbuf("line")
print("glibc " .. ffi.string(ffi.C.gnu_get_libc_version()))
local round, x, spent, cpu, clock = 0, 0, { 0, 0, 0 }, { 0, 0 }, os.clock
repeat
        round = round + 1
        local t0, c0 = now(), clock()
        local heavy = heavy_part()
        local t1, c1 = now(), clock()
        x = (x + heavy + light_part() + round) % 1000003
        local t2, c2 = now(), clock()
        cpu = { cpu[1] + c1 - c0, cpu[2] + c2 - c1 }
        print(round, x)
        if pause > 0 then
                local t3 = now()
                pausing_part()
                local t4 = now()
                spent = { spent[1] + t1 - t0, spent[2] + t2 - t1, spent[3] + t4 - t3 }
                print(("at %.5f %.5f %.5f %.5f"):format(t4, spent[1], spent[2], spent[3]))
        end
until round == rounds or rounds == 0 and exists(stop)
if arg[4] then io.stderr:write(("cpu %.6f %.6f\\n"):format(cpu[1], cpu[2])) end
"""

# A thread of the C library's, through what the program itself would call, from a library that it loads late.
THREADS = """
local ffi = require "ffi"
ffi.cdef [[
typedef unsigned long pthread_t; int pthread_create(pthread_t *, void *, void *, void *); int pthread_join(pthread_t, void **);
int getpid(void); int sem_init(void *, int, unsigned); int sem_timedwait(void *, void *);
]]
ffi.load("libpthread.so.0", true)
local pids, t, said = 0, ffi.new("pthread_t[1]"), ffi.new("void *[1]")
for i = 1, 50 do
        assert(ffi.C.pthread_create(t, nil, ffi.cast("void *", ffi.C.getpid), nil) == 0, "pthread_create")
        assert(ffi.C.pthread_join(t[0], said) == 0, "pthread_join")
        if tonumber(ffi.cast("intptr_t", said[0])) == ffi.C.getpid() then pids = pids + 1 end
end
local sem = ffi.new("char[64]")
ffi.C.sem_init(sem, 0, 2)
print(pids, ffi.C.sem_timedwait(sem, ffi.new("long[2]")))
"""


def parts(rows, want, tolerance):
    """heavy_part has this part, in percent, of the time of the two functions, which is most."""
    heavy, light = (s.share(rows, "total", function=name) for name in ("heavy_part", "light_part"))
    check(heavy + light > 85, "the functions have only %.1f and %.1f %%: %s" % (
        heavy, light, [(x["function"], round(100 * x["self"], 1)) for x in rows[:8]]))
    s.check_near("heavy_part's part of both", 100 * heavy / (heavy + light), want, tolerance)


class Program:
    """One that runs in a tree until it is told to stop, and must print then what it prints alone."""
    def __init__(self, suite, command, pause=0):
        self.suite, self.pause, self.command = suite, pause, command
        self.script = tree.file("work.lua", WORK)
        self.stop = s.tmpfile(".stop")
        # With a pause it always gets a processor at once: on a busy machine its waits for one are longer than its rounds, and
        # what comes after a pause has the wait that the program takes for pause.
        first = ["chrt", "-f", "1"] if pause else []
        if first and s.run([*first, "true"]).status:
            raise s.Skip("no real-time priority can be had")
        self.started = s.Started([*first, *tree.command(suite, *command, self.script, "0", self.stop, str(pause))])
        self.started.wait_for("\n3\t")
        self.pid = self.started.p.pid

    def end(self):
        """Its output, without what differs from run to run."""
        check(self.started.p.poll() is None, "it ended before (%s): %s" % (self.started.p.poll(), self.started.read(self.started.err)))
        open(self.stop, "w").close()
        status, out = self.started.wait(), self.started.read(self.started.out)
        check(status == 0 and not self.started.read(self.started.err), "status %d, it says %r" % (status, self.started.read(self.started.err)))
        rounds = out.count("\t")
        alone = s.run(tree.command(self.suite, *self.command, self.script, str(rounds))).ok()
        same_output(re.sub("at .*\n", "", out), alone.out, self.suite)
        return out


def same_output(out, alone, suite):
    check(out == alone, "it printed %r..., alone %r..." % (out[-200:], alone[-200:]))
    check(out.startswith("glibc %s" % (SUITES[suite] or "2.")), "its C library is %r" % out[:20])


def attach(program, *opts):
    trace = s.tmpfile(".data")
    r = s.run([tree.luasample(), "record", "-p", str(program.pid), "-o", trace, *opts]).ok()
    check("attached to %d" % program.pid in r.err, "record says %r" % r.err)
    r.trace = trace
    return r


def unchanged(program, before):
    """It is as it was; it looks for a file between two rounds, so it may have a descriptor at one moment and not at another."""
    end = time.monotonic() + 10
    while True:
        bad = process.differences(before, process.state(program.pid))
        if not bad:
            return
        check(time.monotonic() < end, "; ".join(bad)[:600])
        time.sleep(0.05)


def add_launched(suite, name):
    t = suite.test

    def record(command, what, engine):
        script = tree.file("work.lua", WORK)
        cmd = tree.command(name, *command, script, "100", "-", "0", "cpu")
        trace = s.tmpfile(".data")
        alone = s.run(cmd).ok()
        r = s.run([tree.luasample(), "record", "-o", trace, "--", *cmd]).ok()
        same_output(r.out, alone.out, name)
        r.trace = trace
        heavy, light = (float(x) for x in re.search(r"^cpu (\S+) (\S+)$", r.err, re.M).groups())
        want = 100 * heavy / (heavy + light)
        parts(r.rows("--by", "function"), want, s.margin(want, s.effective_samples(trace)))
        check(r.info()["engine"] == engine, "%s: engine %r" % (what, r.info()["engine"]))
        check(len(re.findall("warning", r.err)) == (engine != "walk"), "record says %r" % r.err)

    @t("record." + name, "recorded from its start: the same output, and the parts that its clock says", quick=name == "bullseye")
    def launched():
        record(tree.luajit(name), "luajit", "walk")

    if name == "bullseye":
        @t("record.bullseye.own", "Debian 11's own luajit, whose references have 32 bits: at safe points, and said")
        def own():
            record(["luajit"], "its own", "hook")

    @t("threads." + name, "threads and semaphores of a library that is loaded late are the program's as alone")
    def threads():
        cmd = tree.command(name, *tree.luajit(name, threads=False), tree.file("threads.lua", THREADS))
        alone = s.run(cmd).ok()
        check(alone.out == "50\t0\n", "alone it prints %r" % alone.out)
        r = s.run([tree.luasample(), "record", "-o", s.tmpfile(".data"), "--", *cmd])
        check((r.status, r.out) == (0, alone.out), "status %d, it printed %r; %s" % (r.status, r.out, r.err))


def add_running(suite, name):
    t = suite.test

    @t("attach." + name, "attached to again and again: alive, unchanged, the same output, 70 and 30 parts")
    def attached():
        program = Program(name, tree.luajit(name))
        attach(program, "-d", "50ms")           # a first time leaves the agent's library, and the C library's notes
        before = process.state(program.pid)
        traces = [attach(program, "-d", "80ms").trace for i in range(ATTACHMENTS - 1)]
        unchanged(program, before)
        program.end()
        merged = s.tmpfile(".data")
        r = s.run([tree.luasample(), "merge", "-o", merged, *traces]).ok()
        r.trace = merged
        ticks = r.info()["ticks"]
        print("     attached %d times, %d ticks" % (len(traces) + 1, ticks))
        check(ticks > ATTACHMENTS, "only %d ticks in all" % ticks)
        parts(r.rows("--by", "function"), 70, s.margin(70, ticks))

    @t("wall." + name, "its wall time: each function has the part that the program measures meanwhile")
    def wall():
        program = Program(name, tree.luajit(name), pause=5)
        r = attach(program, "-e", "wall", "-d", "1500ms")
        start = r.info()["start_monotonic_ns"] / 1e9
        times = [[float(x) for x in line.split()[1:]] for line in program.end().splitlines() if line.startswith("at ")]
        times = [x for x in times if start <= x[0] <= start + 1.5]
        first, last = times[0], times[-1]
        rows = r.rows("--by", "function")
        for i, function in enumerate(("heavy_part", "light_part", "pausing_part"), 1):
            true = 100 * (last[i] - first[i]) / (last[0] - first[0])
            s.check_near("%s's part of the wall time" % function, s.share(rows, "total", function=function), true, 8)

    @t("stack." + name, "its stack, until both functions were met: functions and lines")
    def stack():
        program = Program(name, tree.luajit(name))
        before = process.state(program.pid)
        seen = set()
        for i in range(40):                     # one in 1.6 million misses what has 30 of 100 parts by chance alone
            if len(seen) == 2:
                break
            r = s.run([tree.luasample(), "stack", str(program.pid)]).ok()
            m = re.search(r"VM 1: .*\n((?: +\S.*\n)+)", r.out)
            check(m and "main chunk@work.lua" in m.group(1), "no stack of the script: %r %r" % (r.out, r.err))
            seen.update(re.findall(r"\b(heavy_part|light_part)\b +work\.lua:\d+", m.group(1)))
        check(seen == {"heavy_part", "light_part"}, "only in %s: %r" % (seen, r.out))
        unchanged(program, before)
        program.end()


def add_to(suite):
    for name in SUITES:
        add_launched(suite, name)
        add_running(suite, name)

    @suite.test("refused.bullseye", "without libpthread no thread can be made in it: one line, and it is as it was")
    def refused():
        program = Program("bullseye", ["luajit"])
        before = process.state(program.pid)
        r = s.run([tree.luasample(), "record", "-p", str(program.pid), "-o", s.tmpfile(".data")])
        check(r.status == 1 and re.fullmatch(r"luasample: cannot attach to \d+ \(luajit\): its C library has no pthread_create; before "
                                             r"glibc 2\.34 only a program that has loaded libpthread can be attached to\n", r.err),
              "status %d, record says %r" % (r.status, r.err))
        unchanged(program, before)
        program.end()
