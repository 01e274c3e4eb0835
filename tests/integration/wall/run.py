#!/usr/bin/python3
"""Integration tests of wall time (record -e wall, report --event): run.py [--list] [NAME...]

One recording of tests/lua/wall.lua serves most of them: the program says by its own clock how long each of its functions
took, and the trace must say the same. Needs the build directory in LUASAMPLE_BUILD (default build/)."""
import os
import re
import resource
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
import support as s
from support import check, check_near

suite = s.Suite("wall")
MS = 1e6
_once = {}


def program_times(out):
    return {m.group(1): float(m.group(2)) for m in re.finditer(r"^(\w+) (-?\d+)$", out, re.M)}


def both():
    """The recording of cpu and wall, and what the program said."""
    if "both" not in _once:
        r = s.record_lua("wall.lua", "-e", "cpu,wall").ok()
        _once["both"] = r, program_times(r.out)
    return _once["both"]


def event_ticks(r, event):
    return s.json_of(["report", "-i", r.trace, "-e", event, "--min", "0", "--json"])["header"]["ticks"]


def total_ns(r, name, event="wall"):
    """Time in a function and what it called, by ticks of 1 ms."""
    return sum(row["total_ticks"] for row in r.rows("-e", event) if row["function"] == name) * MS


def near(what, got, want, least=30 * MS):
    """Within 3 % and some looks; the ends of each wait are seen up to one look late."""
    check_near(what + " in ms", got / MS, want / MS, (0.03 * want + least) / MS)


@suite.test("sum", "wall ticks are the time that passed, cpu ticks the time on a CPU")
def sums():
    r, took = both()
    i = r.info()
    wall, cpu = event_ticks(r, "wall") * MS, event_ticks(r, "cpu") * MS
    near("all wall time", wall + i["lost_ticks"] * MS, took["all"], 60 * MS)
    near("cpu time", cpu + i["lost_ticks"] * MS, i["cpu_ns"], 3 * MS)
    check(wall > 1.5 * cpu, "wall %g ms is hardly more than cpu %g ms" % (wall / MS, cpu / MS))


@suite.test("functions", "each function has the wall time that the program measured, compiled or not")
def functions():
    r, took = both()
    for name in ("nap", "await", "burn"):
        near(name, total_ns(r, name), took[name])
    near("short_naps", total_ns(r, "short_naps"), took["short_naps"], 60 * MS)
    check(total_ns(r, "nap", "cpu") < 30 * MS, "nap has %g ms of CPU time" % (total_ns(r, "nap", "cpu") / MS))
    near("CPU time of burn", total_ns(r, "burn", "cpu"), 500 * MS, 40 * MS)


@suite.test("lines", "blocked time stands at the line that waits")
def lines():
    r, took = both()
    with open(os.path.join(s.LUA, "wall.lua")) as f:
        text = f.read().split("\n")
    for marker, name in (("if C.usleep(400)", "short_naps"), ("if C.usleep(ms * 1000)", "nap"), ("if C.poll", "await")):
        line = 1 + next(n for n, l in enumerate(text) if marker in l)
        got = sum(row["total_ticks"] for row in r.rows("-e", "wall", "--by", "line")
                  if row.get("line") == line and s.basename(row.get("source")) == "wall.lua") * MS
        check(got > 0.8 * took[name], "line %d has %g ms of the %g ms of %s" % (line, got / MS, took[name] / MS, name))


@suite.test("callee", "what the FFI calls is named, also where compiled code calls it")
def callee():
    r, took = both()
    rows = r.rows("-e", "wall")
    usleep = [row for row in rows if row["function"].startswith("usleep")]
    poll = [row for row in rows if re.match("_*poll", row["function"])]
    check(len(usleep) == 1 and len(poll) == 1, "usleep %s, poll %s among %s" % (usleep, poll, [row["function"] for row in rows]))
    near("usleep", usleep[0]["self_ticks"] * MS,
         took["nap"] + took["slow_worker"] + took["fast_worker"] + took["short_naps"], 90 * MS)
    near("poll", poll[0]["self_ticks"] * MS, took["await"])
    check(not any(row["function"] == "[builtin]" for row in rows), "a builtin without name")
    unnamed = sum(row["self_ticks"] for row in rows if row["function"].endswith(".__call")) * MS
    check(unnamed <= 5 * MS, "%g ms of calls through the FFI have no name" % (unnamed / MS))


@suite.test("undisturbed", "no wait is interrupted, and a blocked thread is not woken")
def undisturbed():
    r, took = both()
    check(took["interrupted"] == 0, "%d waits were interrupted" % took["interrupted"])
    check(took["switches"] <= 4, "%d switches during one sleep" % took["switches"])
    i = s.json_of(["info", "-i", r.trace, "--json"])
    check(i["lost"].get("wall-guessed", 0) <= 20, "%d ticks were guessed" % i["lost"]["wall-guessed"])


# How long a function took by the program's own clock: waking up on a busy machine takes its time, too.
TIMED = """local ffi = require 'ffi'
ffi.cdef 'typedef struct { long s, ns; } now_t; int clock_gettime(int, now_t *); int usleep(unsigned);'
local t = ffi.new 'now_t'
local function now() ffi.C.clock_gettime(1, t) return tonumber(t.s) * 1e9 + tonumber(t.ns) end
local function timed(name, fn, ...)
  local start = now()
  fn(...)
  io.write(name, ' ', ('%.0f'):format(now() - start), '\\n')
  io.flush()
end
"""


def program(text):
    path = s.tmpfile(".lua")
    with open(path, "w") as f:
        f.write(TIMED + text)
    return path


@suite.test("no-signals", "a program that only sleeps gets no signal at all")
def no_signals():
    r = s.record_lua(program("local function sleeps() assert(ffi.C.usleep(600000) == 0) end timed('sleeps', sleeps)\n"),
                     "-e", "wall").ok()
    near("sleeps", total_ns(r, "sleeps"), program_times(r.out)["sleeps"])
    signals = dump_numbers(r.trace, "signals")
    check(signals and signals[-1] <= 5, "%s signals for a program that sleeps" % signals)


def dump_numbers(trace, key):
    out = s.run([s.luasample(), "dump", "-i", trace]).out
    return [int(m) for m in re.findall(r'info +key="%s" is_str=0 number=(\d+)' % key, out)]


@suite.test("coroutines", "a coroutine that waits has the time, by one name for its cpu and its wall time")
def coroutines():
    r, took = both()
    rows = r.rows("-e", "wall", "--by", "coroutine")
    for name in ("slow_worker", "fast_worker"):
        mine = [row for row in rows if row["name"].startswith(name)]
        check(len(mine) == 1, "%d coroutines of %s: %s" % (len(mine), name, [row["name"] for row in rows]))
        near(name, mine[0]["self_ticks"] * MS, took[name])


@suite.test("alone", "-e wall alone: the same, and it is what report shows")
def alone():
    r = s.record_lua("wall.lua", "-e", "wall").ok()
    took = program_times(r.out)
    for args in ((), ("-e", "wall")):
        ticks = s.json_of(["report", "-i", r.trace, *args, "--json"])["header"]["ticks"]
        near("all of it", ticks * MS, took["all"], 60 * MS)
    near("nap", total_ns(r, "nap"), took["nap"])
    near("burn", total_ns(r, "burn"), took["burn"])
    w = s.report(r.trace, "-e", "cpu")
    check(w.status == 1 and "no such event" in w.err, "--event cpu of a trace without it: %d %s" % (w.status, w.err))
    w = s.run([s.luasample(), "diff", both()[0].trace, r.trace])
    check(w.status == 1 and "has cpu time" in w.err and "has wall time" in w.err, "diff of both: %d %s" % (w.status, w.err))
    s.run([s.luasample(), "diff", "-e", "wall", both()[0].trace, r.trace]).ok()


@suite.test("one-chunk", "a chunk without a file is one, with its text, whether ticks or the watcher met it first")
def one_chunk():
    functions = """local ffi = require "ffi" ffi.cdef "int usleep(unsigned);"
        local function nap() ffi.C.usleep(60000) end
        local function burn() local e, x = os.clock() + 0.06, 0 repeat for i = 1, 1e5 do x = x + i % 7 end until os.clock() > e end
        local function work(what) for _ = 1, 2 do what() end end """
    for order in ("work(nap) work(burn)", "work(burn) work(nap)"):
        r = s.record([s.luajit().program, "-e", functions + order], "-e", "cpu,wall").ok()
        names = [row["function"] for row in r.rows("-e", "wall", "--min", "0")]
        check(sorted(names) == sorted(set(names)) and "work" in names, "%s: functions %s" % (order, names))
        text = s.report(r.trace, "-e", "wall", "--annotate").ok().out
        check("repeat for i" in text and text.count("======") == 2, "%s: %s" % (order, text))


@suite.test("default", "without -e nothing of it is recorded")
def default():
    r = s.record_lua("fib.lua" if os.path.exists(os.path.join(s.LUA, "fib.lua")) else "seventy.lua").ok()
    check([e["name"] for e in r.info()["events"]] == ["cpu"], "events: %s" % r.info()["events"])
    w = s.report(r.trace, "--event", "wall")
    check(w.status == 1 and "record it with -e wall" in w.err, "--event wall: %d %s" % (w.status, w.err))


@suite.test("views", "every view and exporter counts the chosen event, both events stand side by side")
def views():
    r, _ = both()
    wall, cpu = event_ticks(r, "wall"), event_ticks(r, "cpu")
    for view in ((), ("--tree",), ("--split",), ("--by", "vmstate,function"), ("--annotate",)):
        j = s.json_of(["report", "-i", r.trace, "-e", "wall", "--min", "0", *view, "--json"])
        check(j["header"]["ticks"] == wall, "%s: %d ticks" % (view, j["header"]["ticks"]))
        s.report(r.trace, "-e", "wall", *view).ok()
    for event, want in (("wall", wall), ("cpu", cpu)):
        out = s.report(r.trace, "-e", event, "--format", "collapsed").ok().out
        got = sum(int(line.rsplit(" ", 1)[1]) for line in out.splitlines())
        check(got == want, "collapsed has %d ticks of %s, expected %d" % (got, event, want))
    j = s.json_of(["report", "-i", r.trace, "-e", "cpu,wall", "--min", "0", "--json"])
    check([e["ticks"] for e in j["events"]] == [cpu, wall], "events %s" % j["events"])
    for event, want in (("cpu", cpu), ("wall", wall)):
        check(sum(row[event]["self_ticks"] for row in j["rows"]) == want, "rows of %s do not sum to %d" % (event, want))
    for row in j["rows"]:
        check(row["cpu"]["self_ticks"] <= row["wall"]["self_ticks"], "more cpu than wall: %s" % row)
    for format_, tells in (("callgrind", "desc: Time: wall\n"), ("speedscope", ", wall time\""), ("chrome", "\"name\":\"wall\""),
                           ("firefox", "\"value\":\"wall\""), ("perf-script", "wall-clock:"), ("jsonl", "{\"event\":\"wall\",")):
        for event in ("cpu", "wall"):
            out = s.report(r.trace, "-e", event, "--format", format_).ok().out
            check((tells in out) == (event == "wall"), "%s of %s time: %.300r" % (format_, event, out))
    text = s.run([s.luasample(), "diff", "-e", "wall", r.trace, r.trace]).ok().out
    check(text.count(" of wall time") == 2, "diff: " + text)
    check(re.search(r"Event: +cpu \d+ ticks .*; recorded too: wall \(see --event\)", s.report(r.trace).ok().out),
          "nothing is said of the wall time that was recorded")
    text = s.report(r.trace, "-e", "cpu,wall", "--sort", "total").ok().out
    check(re.search(r"Self cpu +Self wall +Total cpu +Total wall", text), "no title: " + text)
    check(re.search(r"nap +wall\.lua", text), "no nap in: " + text)


@suite.test("usage", "what cannot be is said in one line")
def usage():
    r, _ = both()
    for cmd, status, text in (
            ((s.luasample(), "record", "-e", "cpus", "--", "true"), 129, "-e cpus: give cpu, wall, alloc, "),
            ((s.luasample(), "report", "-i", r.trace, "-e", "all"), 129, "give cpu, wall, alloc, "),
            ((s.luasample(), "report", "-i", r.trace, "-e", "cpu,wall", "--tree"), 129, "flat view"),
            ((s.luasample(), "report", "-i", r.trace, "-e", "wall,wall"), 129, "each event once")):
        w = s.run(list(cmd))
        check(w.status == status and text in w.err and w.err.count("\n") <= 2, "%s: %d %s" % (cmd[2:], w.status, w.err))


@suite.test("threads", "each thread has its own wait, for as long as it lived")
def threads():
    r = s.record([s.host("waits"), "600"], "-e", "cpu,wall").ok()
    lived = {m.group(1): float(m.group(2)) for m in re.finditer(r"^(\w+) \d+ (\d+)$", r.out, re.M)}
    for thread, function in (("poller", "wait_poll"), ("reader", "wait_read"), ("sleeper", "wait_semaphore")):
        rows = r.rows("-e", "wall", "--thread", thread)
        got = sum(row["total_ticks"] for row in rows if row["function"] == function) * MS
        near(function, got, lived[thread])
    ticks = s.json_of(["report", "-i", r.trace, "-e", "wall", "--thread", "spinner", "--json"])["header"]["ticks"]
    near("spinner", ticks * MS, lived["spinner"])


@suite.test("files", "three open files for each thread: the limit is raised, and when it cannot be, that is said")
def files():
    for hard in (None, 100):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1] if hard is None else hard
        r = s.record([s.host("workers"), "1", "1", "6000", "60"], "-e", "cpu,wall",
                     preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, limit))).ok()
        said, lived = "ulimit -n" in r.err, int(r.out.split()[2])
        check(said == (hard is not None), "hard limit %s: %s" % (limit, r.err))
        if not hard:                            # sixty sleep while one works
            check(event_ticks(r, "wall") * MS > 50 * lived, "%d ticks of wall time, %g ms each" % (
                event_ticks(r, "wall"), lived / MS))


@suite.test("killed", "of a program that is killed in its sleep, what was seen by then is in the trace")
def killed():
    path, trace = s.tmpfile(".lua"), s.tmpfile(".data")
    with open(path, "w") as f:
        f.write("local ffi = require 'ffi' ffi.cdef 'int usleep(unsigned);'\n"
                "local function asleep() ffi.C.usleep(60e6) end io.write 'sleeping\\n' io.flush() asleep()\n")
    p = s.Started(s.record_cmd([s.luajit().program, path], "-q", "-e", "wall", trace=trace))
    p.wait_for("sleeping")
    start = time.monotonic()
    kids = s.children_of(p.p.pid)
    time.sleep(0.7)                         # this is what is measured
    for kid in kids:
        with open("/proc/%d/comm" % kid) as f:
            if f.read().startswith("luajit"):
                slept = time.monotonic() - start
                os.kill(kid, s.SIGNALS.SIGKILL)
    check(p.wait() == 137, "not killed: " + p.read(p.err))
    got = sum(row["total_ticks"] for row in s.rows(trace) if row["function"] == "asleep") * MS
    near("asleep", got, slept * 1e9, 150 * MS)


@suite.test("exec", "the image after exec is watched as well")
def execs():
    path = program("ffi.cdef 'int execv(const char *, char *const *);'\n"
                   "local function before() ffi.C.usleep(200000) end local function after() ffi.C.usleep(300000) end\n"
                   "if ... == 'again' then timed('after', after) os.exit(0) end timed('before', before)\n"
                   "local argv, keep = ffi.new 'char *[4]', {}\n"
                   "for i, a in ipairs { ..., arg[0], 'again' } do\n"
                   "  keep[i] = ffi.new('char[?]', #a + 1, a) argv[i - 1] = keep[i] end\n"
                   "ffi.C.execv(..., argv)\n")
    r = s.record_lua(path, "-e", "wall", args=[s.luajit().program]).ok()
    took = program_times(r.out)
    for name in ("before", "after"):
        near(name, total_ns(r, name), took[name])


def waits():
    """The recording of suspended.lua, and how long its coroutines waited."""
    if "waits" not in _once:
        r = s.record_lua("suspended.lua", "-e", "cpu,wall,suspended", args=["2500", "4", "abandon"]).ok()
        _once["waits"] = r, program_times(r.out)
    return _once["waits"]


WAITS = ("wait_reply", "wait_timer", "wait_turn", "forgotten")


def near_waits(what, got, want):
    """Each look stands for the time since the one before: each wait is met by chance at its ends."""
    check_near(what + " in ms", got / MS, want / MS, 0.1 * want / MS + 300)


RESERVED = """
local ffi = require "ffi"
ffi.cdef "void *mmap(void *, size_t, int, int, int, long);"
assert(ffi.C.mmap(nil, 2^39, 0, 0x4022, -1, 0) ~= ffi.cast("void *", -1))       -- private, anonymous, no reserve
local function wait_here() ffi.C.usleep(20000) end
timed("wait", function() for i = 1, 150 do wait_here() end end)
"""


@suite.test("reserved", "a program that has half of the addresses that libraries are placed in: another watcher takes the place of one that is in its way")
def reserved():
    r = s.record_lua(program(RESERVED), "-e", "wall").ok()
    check("randomization" not in r.err, r.err)
    check(total_ns(r, "wait_here") > 0, "no blocked time")


@suite.test("suspended", "coroutines have the time that they waited in yield, by the function that waits")
def suspended():
    r, took = waits()
    for name in WAITS[:3]:
        near_waits(name, total_ns(r, name, "suspended"), took[name])
    leaves = {row["function"] for row in r.rows("-e", "suspended") if row["self_ticks"]}
    check(leaves == {"coroutine.yield"}, "they wait in %s" % leaves)
    near_waits("all of it", event_ticks(r, "suspended") * MS, sum(took[name] for name in WAITS))


@suite.test("ready", "the time between ready(co) and its turn is told apart")
def ready():
    r, took = waits()
    near_waits("ready", event_ticks(r, "ready") * MS, took["ready"])
    near_waits("ready of wait_turn", total_ns(r, "wait_turn", "ready"), took["ready"])


@suite.test("collected", "a coroutine that is collected while it waits, waits no longer, and no other has its name")
def collected():
    r, took = waits()
    by = {}
    for row in r.rows("-e", "suspended", "--by", "coroutine"):
        by[row["name"].split(" ")[0]] = by.get(row["name"].split(" ")[0], 0) + row["self_ticks"] * MS
    with open(os.path.join(s.LUA, "suspended.lua")) as f:
        line = 1 + next(n for n, l in enumerate(f) if "function forgotten" in l)
    mine = [ns for name, ns in by.items() if name in ("forgotten", "function@suspended.lua:%d" % line)]
    near_waits("forgotten", sum(mine), took["forgotten"])


@suite.test("suspended-apart", "what is suspended is no part of wall time, and every view has it only when asked")
def suspended_apart():
    r, took = waits()
    near("wall time", (event_ticks(r, "wall") + r.info()["lost_ticks"]) * MS, took["all"], 100 * MS)
    ticks = event_ticks(r, "suspended")
    text = s.report(r.trace, "-e", "suspended").ok().out
    check(re.search(r"Event: +suspended %d ticks .*; recorded too: cpu, wall, ready \(" % ticks, text), "header: " + text)
    check(text.count("Event:") == 1 and "in no view" not in text, "header: " + text)
    check(re.search(r"wait_reply +suspended\.lua:\d+$", text, re.M), "who waits is not shown: " + text)
    for view in (("--tree",), ("--split",), ("--by", "thread"), ("--by", "vm"), ("--annotate",)):
        j = s.json_of(["report", "-i", r.trace, "-e", "suspended", "--min", "0", *view, "--json"])
        check(j["header"]["ticks"] == ticks, "%s: %d ticks" % (view, j["header"]["ticks"]))
    j = s.json_of(["report", "-i", r.trace, "-e", "cpu,wall,suspended,ready", "--by", "coroutine", "--min", "0", "--json"])
    check([e["name"] for e in j["events"]] == ["cpu", "wall", "suspended", "ready"], "events %s" % j["events"])
    for e in j["events"]:
        got = sum(row[e["name"]]["self_ticks"] for row in j["rows"])
        check(got == e["ticks"] == event_ticks(r, e["name"]), "%s: %d of %d ticks in rows" % (e["name"], got, e["ticks"]))
    text = s.report(r.trace, "-e", "wall,suspended", "--by", "coroutine").ok().out
    check(re.search(r"Self wall +Self suspended", text), "no title: " + text)
    out = s.report(r.trace, "-e", "suspended", "--format", "collapsed").ok().out
    check(sum(int(line.rsplit(" ", 1)[1]) for line in out.splitlines()) == ticks, "collapsed has other ticks")
    for name in ("chrome", "firefox", "perf-script", "speedscope"):
        w = s.report(r.trace, "-e", "suspended", "--format", name)
        check(w.status == 129 and "beside each other" in w.err, "%s: %d %s" % (name, w.status, w.err))
    text = s.run([s.luasample(), "diff", "-e", "suspended", r.trace, r.trace]).ok().out
    check("of suspended time" in text and re.search(r" wait_reply +suspended\.lua", text), "diff: " + text)
    merged = s.tmpfile(".data")
    s.run([s.luasample(), "merge", "-o", merged, r.trace, r.trace]).ok()
    j = s.json_of(["report", "-i", merged, "-e", "suspended", "--json"])
    check(j["header"]["ticks"] == 2 * ticks, "merged: %d of %d ticks" % (j["header"]["ticks"], 2 * ticks))


WORKERS = """local function burn() local x = 0 for i = 1, 3e6 do x = x + i % 7 end return x end
local function blocked() while true do burn() ffi.C.usleep(10000) coroutine.yield() end end
local function busy() while true do burn() coroutine.yield() end end
local function rounds()
  local co = {}
  for i = 1, 3 do co[i], co[i + 3] = coroutine.create(blocked), coroutine.create(busy) end
  for r = 1, 12 do
    for i = 1, 6 do assert(coroutine.resume(co[i])) end
    ffi.C.usleep(20000)
  end
end
timed("all", rounds)
"""


@suite.test("suspended-by", "what a coroutine ran, blocked and waited is all of its life, in one row")
def suspended_by():
    r = s.record_lua(program(WORKERS), "-e", "cpu,wall,suspended").ok()
    took = program_times(r.out)["all"]
    rows = s.json_of(["report", "-i", r.trace, "-e", "cpu,wall,suspended", "--by", "coroutine", "--min", "0", "--json"])["rows"]
    rows = [row for row in rows if row["name"] != "main"]
    check(len(rows) == 6, "six coroutines are %s" % [row["name"] for row in rows])
    for row in rows:
        check(row["cpu"]["self_ticks"] > 0 and row["wall"]["self_ticks"] >= row["cpu"]["self_ticks"], "never ran: %s" % row)
        near_waits("%s's life" % row["name"], (row["wall"]["self_ticks"] + row["suspended"]["self_ticks"]) * MS, took)
    events = ["cpu", "wall", "suspended"]
    rows = s.json_of(["report", "-i", r.trace, "-e", ",".join(events), "--sort", "total", "--min", "0", "--json"])["rows"]
    ranks = [(row["suspended"]["total_ticks"], sum(row[e]["total_ticks"] for e in events)) for row in rows]
    check(ranks == sorted(ranks, reverse=True), "rows that never wait are in no order: %s" % ranks)


@suite.test("suspended-many", "five thousand coroutines that wait cost the program nothing, and the recorder little")
def suspended_many():
    r = s.record_lua("suspended.lua", "-e", "cpu,suspended", args=["3000", "5000"]).ok()
    took = program_times(r.out)
    near_waits("wait_reply", total_ns(r, "wait_reply", "suspended"), took["wait_reply"])
    text = s.run([s.luasample(), "info", "-i", r.trace]).ok().out
    i = {m.group(1): int(m.group(2)) for m in re.finditer(r"^(\w+) +(\d+)", text, re.M)}
    check(i["suspended_looks"] >= 3, "%d looks" % i["suspended_looks"])
    # one per cent and what may be used at once, and time for busy processors
    check(i["watcher_cpu_ns"] < 0.03 * i["elapsed_ns"] + 150 * MS, "the watcher used %g ms" % (i["watcher_cpu_ns"] / MS))
    check(i["process_cpu_ns"] < 150 * MS, "the program, which sleeps, used %g ms" % (i["process_cpu_ns"] / MS))


GARBAGE = """local keep, co, n = {}, {}, 0
local function wait_here() coroutine.yield() end
local function body() while true do wait_here() end end
local function spawn(i) co[i] = coroutine.create(body) coroutine.resume(co[i]) end
for i = 1, 100 do spawn(i) end
local function run()
  local stop = now() + 2e9
  while now() < stop do
    n = n + 1
    for i = 1, 500 do keep[(n * 7919 + i * 31) % 2000 + 1] = { i } end
    if n % 20 == 0 then spawn(n / 20 % 100 + 1) end
  end
end
timed("all", run)
"""


@suite.test("suspended-garbage", "coroutines that come and go among garbage, while the collector works, are neither missed nor kept")
def suspended_garbage():
    r = s.record_lua(program(GARBAGE), "-e", "cpu,suspended").ok()
    life = 100 * program_times(r.out)["all"]
    got = event_ticks(r, "suspended") * MS
    # Walks through a list that changes may end early: they are counted, and what they miss is missing.
    check(0.5 * life < got < 1.2 * life, "%g ms of %g ms" % (got / MS, life / MS))
    names = {row["function"].split("@")[0] for row in r.rows("-e", "suspended")}
    check(names <= {"coroutine.yield", "wait_here", "body", "function", "[stack not read]"}, "names: %s" % names)


@suite.test("suspended-alone", "-e suspended alone is recorded beside the time on a CPU")
def suspended_alone():
    r = s.record_lua("suspended.lua", "-e", "suspended", args=["300", "2"]).ok()
    check([e["name"] for e in r.info()["events"]] == ["cpu", "suspended", "ready"], "events: %s" % r.info()["events"])
    check(event_ticks(r, "suspended") > 300, "nothing is suspended")
    r = s.record([s.luajit().program, "-e", "for i = 1, 1e8 do end"], "-e", "suspended").ok()
    check("[No suspended time was recorded]" in s.report(r.trace, "-e", "suspended").ok().out, "without coroutines")


if __name__ == "__main__":
    sys.exit(suite.main())
