#!/usr/bin/python3
"""Integration tests of sampled allocations: run.py [--quick] [--list] [NAME...]

What is reported for each line is compared with what the program has counted in the same run, by the collector's own sum with the
collector stopped. Each comparison is made again on a trace whose weights were moved to another stack, and must fail there.
LUASAMPLE_ALLOC_RUNS says how many runs the mean square of the errors is taken from (default 4)."""
import json
import math
import os
import re
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "attach"))
import process
import support as s

INTERVAL = 8192
RUNS = int(os.environ.get("LUASAMPLE_ALLOC_RUNS", "4"))
SIGMAS = 4.0                    # of a site's sampling error: one of 16,000 is beyond it by chance

suite = s.Suite("alloc")


def record(script, *opts, args=(), lua_opts=(), event="alloc", interval=INTERVAL):
    return s.record_lua(os.path.join(HERE, script), "-e", event, "--alloc-interval", str(interval), *opts, args=args,
                        lua_opts=lua_opts).ok()


def by_line(trace, event, script="sites.lua"):
    return {r["line"]: r["self_ticks"] for r in s.rows(trace, "--event", event, "--by", "line")
            if s.basename(r.get("source")) == script}


def total(trace, event="alloc"):
    return sum(r["self_ticks"] for r in s.rows(trace, "--event", event, "--by", "line"))


def sites(lua_opts=(), rounds=20):
    truth = s.tmpfile(".truth")
    r = record("sites.lua", args=[truth, str(rounds)], lua_opts=lua_opts)
    with open(truth) as f:
        return r, {int(a): tuple(map(int, b)) for a, *b in (line.split() for line in f)}


def errors_of(trace, truth):
    """For each line z of its bytes and of its objects: the error in standard deviations. Of n blocks, each sampled with the
    probability p, n * p are; they stand for n with the relative error sqrt((1 - p) / (n * p))."""
    found = {}
    for i, event in enumerate(("alloc", "alloc-objects")):
        rows = by_line(trace, event)
        for line, want in truth.items():
            p = 1 - math.exp(-(want[2] if i else want[0] / want[1]) / INTERVAL)
            found[event, line] = (rows.get(line, 0) / want[i] - 1) * math.sqrt(want[1] * p / (1 - p))
    return found


def check_sites(trace, truth):
    for key, z in errors_of(trace, truth).items():
        s.check(abs(z) < SIGMAS, "%s of line %d is %.1f standard deviations away" % (*key, z))


def compare(lua_opts):
    r, truth = sites(lua_opts)
    check_sites(r.trace, truth)
    all_bytes = sum(want[0] for want in truth.values())
    seen = sum(by_line(r.trace, "alloc").get(line, 0) for line in truth)
    s.check_near("the sum of all lines", seen / all_bytes, 1, 3 / math.sqrt(all_bytes / INTERVAL))
    moved = s.tmpfile(".data")
    subprocess.run([os.path.join(s.build_dir(), "tests", "truth", "shift_trace"), r.trace, moved], check=True)
    try:
        check_sites(moved, truth)
    except s.Fail:
        return
    raise s.Fail("the comparison does not fail where weights were moved to another stack")


@suite.test("lines.jit", "bytes and objects of each line in compiled code", quick=True)
def lines_jit():
    compare(["-Ohotloop=5"])


@suite.test("lines.joff", "bytes and objects of each line in the interpreter")
def lines_joff():
    compare(["-joff"])


# Of types.lua: the types that a line makes. Bytes of one; what has no size is what remains of the line's.
TYPES = {9: {"table": 0}, 10: {"table": 64, "table array": 0}, 11: {"table": 64, "table hash": 0}, 12: {"function": 48, "upvalue": 0},
         13: {"string": 0}, 14: {"thread": 96, "Lua stack": 0}, 15: {"userdata": 0}, 16: {"cdata": 0}, 17: {"cdata": 0}, 18: {"function": 0}}


PENLIGHT = """
local List, tablex, stringx, pretty = require "pl.List", require "pl.tablex", require "pl.stringx", require "pl.pretty"
local sum = 0
for i = 1, 300 do
    local l = List.range(1, 60):map(function(x) return x * i end):filter(function(x) return x % 2 == 0 end)
    local t = tablex.index_map(tablex.map(tostring, l))
    sum = sum + #stringx.split(stringx.join(",", tablex.keys(t)), ",") + #pretty.write(t, "") % 7
end
print(sum > 0)
"""


def check_types(trace, truth, thread=96):
    rows = {x["line"]: {part["name"]: part["self_ticks"] for part in x.get("children", ())}
            for x in s.rows(trace, "--event", "alloc", "--by", "line,type") if s.basename(x.get("source")) == "types.lua"}
    for line, (objects, size) in truth.items():
        sizes = {kind: thread if kind == "thread" else n for kind, n in TYPES[line].items()}
        for kind, own in sizes.items():
            want = objects * own if own else size - sum(objects * n for n in sizes.values())
            p = 1 - math.exp(-want / objects / INTERVAL)
            error = (rows[line].get(kind, 0) / want - 1) * math.sqrt(objects * p / (1 - p))
            s.check(abs(error) < SIGMAS, "line %d: %d bytes of %s, not %d" % (line, rows[line].get(kind, 0), kind, want))
        other = sum(n for kind, n in rows[line].items() if kind not in TYPES[line])
        s.check(other < 0.01 * size, "line %d: of other types: %s" % (line, rows[line]))


def types_of(lua_opts, lj=None):
    truth = s.tmpfile(".truth")
    r = s.record_lua(os.path.join(HERE, "types.lua"), "-e", "alloc,live", "--alloc-interval", str(INTERVAL), "--buffer-size", "8M",
                     args=[truth, "120"], lua_opts=lua_opts, lj=lj).ok()
    with open(truth) as f:
        return r, {int(a): (int(b), int(c)) for a, b, c in (line.split() for line in f)}


@suite.test("types", "bytes of each type at each line, compiled and not; a trace whose types were moved fails", quick=True)
def types():
    for lua_opts in ["-joff"], ["-Ohotloop=5"]:
        r, truth = types_of(lua_opts)
        check_types(r.trace, truth)
        moved = s.tmpfile(".data")
        subprocess.run([os.path.join(s.build_dir(), "tests", "truth", "shift_trace"), r.trace, moved], check=True)
        try:
            check_types(moved, truth)
        except s.Fail:
            continue
        raise s.Fail("the comparison does not fail where weights were moved to another stack")


@suite.test("types.all", "every LuaJIT: bytes of each type; hardly any is unknown, in what was compiled before, too")
def types_all():
    for lj in s.luajits():
        r, truth = types_of([], lj)
        check_types(r.trace, truth, thread=112 if "luajit2" in lj.name else 96)     # OpenResty's has two words more
    p = begun(s.luajit().program, os.path.join(HERE, "attached.lua"), "60")
    r = attach(p)
    p.p.kill()
    p.p.wait()
    rows = {x["name"]: x["self_ticks"] for x in s.rows(r.trace, "--event", "alloc", "--by", "type")}
    s.check(rows["string"] > 1e7 and rows.get("unknown", 0) < 0.01 * sum(rows.values()), "%s" % rows)


@suite.test("types.views", "types in diff, of what is live, as tags of pprof")
def types_views():
    r, _ = types_of([])
    rows = {x["name"]: x["self_ticks"] for x in s.rows(r.trace, "--event", "live", "--by", "type")}
    s.check(rows.get("function"), "%s" % rows)
    rows = s.json_of(["diff", "--event", "alloc", "--by", "type", r.trace, r.trace, "--json"])["rows"]
    s.check({"string", "cdata", "table array"} <= {x["name"] for x in rows}, "%s" % rows)
    parts = {x["name"]: x["self_ticks"] for x in s.rows(r.trace, "--event", "alloc", "--by", "type") if x["name"].startswith("table")}
    only = s.rows(r.trace, "--event", "alloc", "--type", "table*", "--by", "type")
    s.check(len(parts) == 3 and {x["name"]: x["self_ticks"] for x in only if x["self_ticks"]} == parts, "%s, not %s" % (only, parts))
    none = s.report(r.trace, "--event", "alloc", "--type", "nonsense")
    s.check("no such type" in none.err, none.err)
    text = s.report(r.trace, "--by", "gc").out
    s.check(re.search(r"^ *\d+\.\d\d% +\d+\.\d\d% +\S+ MB +-  ", text, re.M), "time of the collector, without ticks: " + text[-900:])
    cpu = s.rows(s.record_lua("labels.lua").ok().trace, "--by", "type")
    s.check([x["name"] for x in cpu] == ["unknown"], "ticks have types: %s" % cpu)
    pb = s.tmpfile(".pb.gz")
    s.run([s.luasample(), "export", "-i", r.trace, "--event", "alloc", "-o", pb]).ok()
    tags = s.run([s.need("go"), "tool", "pprof", "-tags", pb], timeout=300).ok().out
    s.check(re.search(r"^ *type: Total", tags, re.M) and re.search(r": table array$", tags, re.M), tags)


@suite.test("spread", "the errors are as large as sampling makes them, and no larger")
def spread():
    squares = []
    for _ in range(RUNS):
        r, truth = sites(rounds=10)
        squares += [z * z for (event, _), z in errors_of(r.trace, truth).items() if event == "alloc"]
    mean = sum(squares) / len(squares)
    error = SIGMAS * math.sqrt(2 / len(squares))
    print("mean square of %d errors: %.2f" % (len(squares), mean))
    s.check(max(0.1, 1 - error) < mean < 1 + error, "the mean square of the errors is %.2f, not 1 +- %.2f" % (mean, error))


def leak(n):
    truth = s.tmpfile(".truth")
    r = record("leak.lua", args=[truth, str(n)], event="live,alloc", interval=4096)
    with open(truth) as f:
        return r, {int(a): (int(b), int(c)) for a, b, c in (line.split() for line in f)}


@suite.test("live", "what is not freed, by line: a leak of one in a hundred, and a cache", quick=True)
def live():
    r, truth = leak(1000000)
    for i, event in enumerate(("live", "live-objects")):
        rows = by_line(r.trace, event, "leak.lua")
        for line, want in truth.items():
            samples = want[0] / 4096
            s.check_near("%s of line %d" % (event, line), rows.get(line, 0) / want[i], 1, SIGMAS / math.sqrt(samples) + 0.02)
    made = by_line(r.trace, "alloc", "leak.lua")
    s.check(made[11] > 50 * by_line(r.trace, "live", "leak.lua")[11], "what was freed is live")


@suite.test("exits", "what was freed is not live in a program that exits")
def exits():
    r = record("exits.lua", event="live,alloc")
    s.check(total(r.trace) > 2e7, "the program made only %d bytes" % total(r.trace))
    s.check(total(r.trace, "live") < 2e6, "%d bytes are live" % total(r.trace, "live"))


@suite.test("growth", "a leak at one part in a hundred of what is allocated is found by diff")
def growth():
    (a, _), (b, _) = leak(500000), leak(2000000)
    rows = s.json_of(["diff", "--event", "live", "--by", "line", a.trace, b.trace, "--json"])["rows"]
    found = [x for x in rows if x.get("significant")]
    s.check(found and found[0]["name"] == "leak.lua:6", "%s" % rows[:3])


@suite.test("moments", "diff of two moments of one recording: a leak at one part in a hundred is first, what is freed is not growth", quick=True)
def moments():
    r, truth = leak(4000000)

    def diff(event, time, *args):
        return s.json_of(["diff", "--event", event, "--by", "line", "--time", time, *args, r.trace, "--json"])

    rows = [x for x in diff("live", "20%,80%")["rows"] if x["significant"]]
    s.check(rows and rows[0]["name"] == "leak.lua:6" and rows[0]["before"] == 0, "%s" % rows[:3])
    s.check_near("leaked", rows[0]["after"] / truth[6][0], 0.6, 0.25)
    s.check(all(x["difference"] < 0.5 * rows[0]["difference"] for x in rows[1:]), "%s" % rows)
    objects = diff("live-objects", "20%,80%")["rows"][0]
    s.check(objects["name"] == "leak.lua:6", "%s" % objects)
    s.check_near("objects", objects["after"] / truth[6][1], rows[0]["after"] / truth[6][0], 0.15)
    found = {x["name"]: x for x in diff("live", ",")["rows"]}["leak.lua:6"]        # from the start to the end
    s.check(found["before"] == 0, "%s" % found)
    s.check_near("all", found["after"] / by_line(r.trace, "live", "leak.lua")[6], 1, 0.05)
    s.check_near("freed", total(r.trace, "freed") / (total(r.trace) - total(r.trace, "live")), 1, 0.001)
    bad = s.run([s.luasample(), "diff", "--event", "live", "--time", "50%,50%", r.trace])
    s.check(bad.status == 1 and "is the same at" in bad.err, bad.err)
    text = s.run([s.luasample(), "diff", "--event", "live", "--time", "20%,80%", r.trace]).ok().out
    s.check("live at 80% and not at 20%" in text, text)
    p = begun(s.luajit().program, "-joff", os.path.join(HERE, "attached.lua"), "60")
    r = attach(p, seconds="2s", interval="32K")
    p.p.kill()
    p.p.wait()
    rows = [x for x in diff("live", "30%,90%", "--type", "string")["rows"] if x["significant"]]     # their table grows: old ones go
    s.check(rows and rows[0]["name"] == "attached.lua:10" and rows[0]["before"] == 0, "%s" % rows[:3])


@suite.test("lives", "VMs that are closed hold nothing; of a program's only one it is what it had at the end")
def lives():
    r = s.record([s.host("allocs"), "many", "200"], "-e", "live", "--alloc-interval", "4K").ok()
    s.check(total(r.trace, "live") < 5e5, "%d bytes of 200 VMs that were closed" % total(r.trace, "live"))
    for mode in ("own", "behind", "fails", "threads"):
        plain = s.run([s.host("allocs"), mode]).ok()
        r = s.record([s.host("allocs"), mode], "-e", "live", "--alloc-interval", "4K").ok()
        s.check(r.out == plain.out, "%s: %r, unrecorded %r" % (mode, r.out, plain.out))
        s.check(total(r.trace, "live") < 2e7, "%s: %d bytes are live" % (mode, total(r.trace, "live")))


@suite.test("programs", "luacheck and Penlight: the same output, sums that agree at two intervals, hardly a type unknown")
def programs():
    checked = s.tmpfile(".lua")
    with open(checked, "w") as f:
        for i in range(300):
            f.write("local function f%d(a, b) local c = a + %d; if b then return c end; unused = {a, b, \"s%d\"} end\nf%d(1)\n" % (i % 150, i, i, i % 150))
    penlight = s.tmpfile(".lua")
    with open(penlight, "w") as f:
        f.write(PENLIGHT)
    lua_path = "/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua;;"
    s.check(os.path.exists("/usr/share/lua/5.1/pl/List.lua") and os.path.exists("/usr/share/lua/5.1/luacheck/main.lua"), "not installed")
    for program in ([s.need("luajit"), "-e", "arg = { [0] = 'luacheck', '--no-color', %r } require 'luacheck.main'" % checked],
                    [s.need("luajit"), penlight]):
        env = dict(os.environ, LUA_PATH=lua_path)
        plain = s.run(program, env=env)
        s.check(plain.out.startswith("Checking") or plain.out == "true\n", plain.out[:300])
        sums = []
        for interval in (4096, 32768):
            r = s.record(program, "-e", "alloc,live", "--alloc-interval", str(interval), "--buffer-size", "8M", env=env)
            s.check((r.status, r.out) == (plain.status, plain.out), "%s: %d %r, unrecorded %d %r" % (program, r.status, r.out[-300:], plain.status, plain.out[-300:]))
            sums.append((total(r.trace), interval))
            rows = {x["name"]: x["self_ticks"] for x in s.rows(r.trace, "--event", "alloc", "--by", "type")}
            s.check(rows.get("unknown", 0) < 0.05 * total(r.trace), "%s: %s" % (program, rows))
            s.check(sum(n for k, n in rows.items() if k.startswith("table")) > 0.1 * total(r.trace), "%s" % rows)
        s.check(sums[0][0] > 5e6, "%d bytes" % sums[0][0])
        (a, _), (b, interval) = sums
        s.check_near("the sum at two intervals", b / a, 1, 0.03 + 4 / math.sqrt(a / interval))


@suite.test("sunk", "what compiled code does not make is no allocation", quick=True)
def sunk():
    r = record("sunk.lua")
    s.check(total(r.trace) < 2e6, "%d bytes of tables that were never made" % total(r.trace))


@suite.test("deep", "allocations that move the Lua stack which is read")
def deep():
    for options in ([], ["-joff"]):
        r = record("deep.lua", lua_opts=options, interval=4096)
        s.check("done" in r.out, r.out)
        s.check(by_line(r.trace, "alloc", "deep.lua"), "no growth of a stack was seen")


@suite.test("finalizers", "finalizers that allocate, also while the VM is closed")
def finalizers():
    s.check("true" in record("finalizers.lua", interval=1024).out, "the program")


def host(mode, *args, interval="4K"):
    return s.record([s.host("allocs"), mode, *args], "-e", "alloc", "--alloc-interval", interval).ok()


@suite.test("allocators", "a host's own allocators: it sees what it has set, and its allocations are sampled")
def allocators():
    for mode, said in (("own", "same 1"), ("behind", "same 1"), ("fails", "not enough memory"), ("threads", "called 0")):
        plain = s.run([s.host("allocs"), mode]).ok()
        r = host(mode)
        s.check(r.out == plain.out and said in r.out, "%s: %r, unrecorded %r" % (mode, r.out, plain.out))
        s.check(total(r.trace) > 1e7, "%s: only %d bytes were seen" % (mode, total(r.trace)))


@suite.test("closed", "1000 VMs that are closed leave no memory behind")
def closed():
    said = host("many", "1000", interval="64K")
    left = int(re.search(r"left (-?\d+)", said.out)[1])
    s.check(left < 4096, "%d KiB are left of 1000 VMs" % left)


@suite.test("views", "views and exports of bytes and objects; what shows time refuses them", quick=True)
def views():
    r = record("sites.lua", args=[s.tmpfile(".truth"), "3"])
    text = s.report(r.trace).ok().out
    s.check(re.search(r"Event: +alloc [\d.]+ MB \(\d+ samples, one for 8.2 kB\)", text), text)
    s.check(re.search(r"^ +[\d.]+ [kM]?B +[\d.]+% +[\d.]+% +[\d.]+ [kM]?B +tables ", text, re.M), text)
    for args in (["--tree"], ["--annotate"], ["--by", "line", "--event", "alloc,alloc-objects"], ["--raw"], ["--stacks"]):
        s.report(r.trace, *args).ok()
    for args in (["report", "--html", "-o", s.tmpfile(".html")], ["export", "--format", "speedscope"], ["jit"]):
        bad = s.run([s.luasample(), args[0], "-i", r.trace, *args[1:]])
        s.check(bad.status and re.search("no time", bad.err), "%s: %s" % (args, bad.err))
    grind = s.run([s.luasample(), "export", "-i", r.trace, "--format", "callgrind"]).ok().out
    s.check("events: Bytes\n" in grind, grind[:400])
    diff = s.run([s.luasample(), "diff", "--event", "alloc", r.trace, r.trace]).ok().out
    s.check("amounts of a run" in diff and "x1." not in diff, diff)
    merged = s.tmpfile(".data")
    s.run([s.luasample(), "merge", "-o", merged, r.trace, r.trace]).ok()
    s.check(total(merged) == 2 * total(r.trace), "merged: %d of 2 * %d" % (total(merged), total(r.trace)))


@suite.test("tools", "go tool pprof has Go's four types, callgrind_annotate bytes and objects: the numbers of report")
def tools():
    events = ["alloc", "alloc-objects", "live", "live-objects"]
    r = record("leak.lua", args=[s.tmpfile(".truth"), "100000"], event="alloc,live")
    want = {e: {x["name"]: x["self_ticks"] for x in s.rows(r.trace, "--event", e) if x["self_ticks"]} for e in events}
    s.check(all(len(want[e]) > 2 for e in events), want)
    pb, grind = s.tmpfile(".pb.gz"), s.tmpfile(".callgrind")
    s.run([s.luasample(), "export", "-i", r.trace, "--event", ",".join(events), "-o", pb]).ok()
    for event, kind in zip(events, ("alloc_space", "alloc_objects", "inuse_space", "inuse_objects")):
        out = s.run([s.need("go"), "tool", "pprof", "-sample_index=" + kind, "-unit=B" if kind.endswith("space") else "-unit=", "-top",
                     "-nodefraction=0", "-nodecount=10000", pb], timeout=300).ok().out
        s.check(re.search("^Type: %s$" % kind, out, re.M), out[:300])
        got = {m[1]: int(m[0]) for m in re.findall(r"^ *(\d+)B? +[\d.]+% +[\d.]+% +\d+B? +[\d.]+% +(.+)$", out, re.M) if int(m[0])}
        s.check(got == want[event], "%s: %s, not %s" % (kind, got, want[event]))
    for two in events[:2], events[2:]:
        s.run([s.luasample(), "export", "-i", r.trace, "--event", ",".join(two), "--format", "callgrind", "-o", grind]).ok()
        out = s.run([s.need("callgrind_annotate"), "--auto=no", "--threshold=100", "--show-percs=no", grind]).ok().out
        s.check(re.search("^Events recorded: +Bytes Objects$", out, re.M), out[:400])
        sums = re.search(r"^ *([\d,]+) +([\d,]+) +PROGRAM TOTALS$", out, re.M).groups()
        s.check([int(n.replace(",", "")) for n in sums] == [sum(want[e].values()) for e in two], "%s, not those of %s" % (sums, two))


@suite.test("cpu", "time and memory in one trace")
def with_cpu():
    r = record("sites.lua", args=[s.tmpfile(".truth"), "60"], event="alloc,cpu")
    s.check(sum(x["self_ticks"] for x in s.rows(r.trace, "--event", "cpu")) > 10, "no ticks")
    s.check(total(r.trace) > 1e6, "no bytes")
    doc = json.loads(s.report(r.trace, "--by", "gc", "--json").ok().out)
    want = {x["name"]: x["self_ticks"] for x in s.rows(r.trace, "--event", "alloc") if x["self_ticks"]}
    s.check(sorted(x["bytes"] for x in doc["allocated"]) == sorted(want.values()) and len(want) > 3, "%s, not %s" % (doc["allocated"], want))
    gc = sum(x["ticks"] for x in doc["functions"])
    text = s.report(r.trace, "--by", "gc").ok().out.split("By the function that allocated")[1]
    rows = re.findall(r"^ *([\d.]+)% +[\d.]+% +\S+ \S*B +([\d.]+)s +(.+)$", text, re.M)
    s.check(len(rows) == min(len(want), 10) and gc > 10, text)
    for share, seconds, name in rows:
        s.check(abs(float(share) - 100 * want[name] / sum(want.values())) < 0.006 and
                abs(float(seconds) - gc / 1000 * want[name] / sum(want.values())) < 0.0006, "%s: %s" % (name, text))
    alone = s.report(record("sites.lua", args=[s.tmpfile(".truth"), "3"], event="cpu").trace, "--by", "gc").ok().out
    s.check("allocated;" not in alone, alone)


def attach(p, event="live,alloc", seconds="1s", interval="8K"):
    trace = s.tmpfile(".data")
    r = s.run([s.luasample(), "record", "-p", str(p.p.pid), "-e", event, "--alloc-interval", interval, "--buffer-size", "8M",
               "-d", seconds, "-o", trace], timeout=60).ok()
    r.trace = trace
    s.check("not recorded" not in r.err, r.err)
    return r


def begun(*args):
    p = s.Started(list(args))
    p.wait_for("begin")
    return p


@suite.test("attach", "a program that runs: bytes by line, what it keeps, and the process as before", quick=True)
def attach_lines():
    p = begun(s.luajit().program, "-joff", os.path.join(HERE, "attached.lua"), "60")
    before = process.state(p.p.pid)
    for _ in range(2):
        r = attach(p)
        bad = process.differences(before, process.state(p.p.pid))
        s.check(not bad, "not as before: %s" % "; ".join(bad)[:1500])
        made, kept = (by_line(r.trace, e, "attached.lua") for e in ("alloc", "live"))
        n = made[4] / INTERVAL, made[7] / INTERVAL
        s.check_near("big to small", made[4] / made[7], 3030 / 1030, SIGMAS * 3030 / 1030 * math.sqrt(1 / n[0] + 1 / n[1]) + 0.05)
        s.check_near("kept", kept[10] / made[10], 1, 0.02)
        s.check(kept.get(4, 0) < made[4] / 3, "what was freed is live: %d of %d" % (kept.get(4, 0), made[4]))
    p.p.kill()
    p.p.wait()


@suite.test("attach.jit", "a program whose code is compiled already: all it allocates has a line")
def attach_jit():
    p = begun(s.luajit().program, os.path.join(HERE, "attached.lua"), "60")
    r = attach(p)
    p.p.kill()
    p.p.wait()
    lines = by_line(r.trace, "alloc", "attached.lua")
    s.check(total(r.trace) > 1e7 and sum(n for line, n in lines.items() if line) > 0.95 * total(r.trace), "%s" % lines)


@suite.test("attach.again", "a host finds its VM's allocator as it was, and its memory is given back; VMs that come and go; children")
def attach_again():
    p = begun(s.host("allocs"), "runs")
    for event in ("alloc", "alloc,live", "alloc,cpu", "alloc,live"):
        r = attach(p, event, "800ms")
        s.check(total(r.trace) > 1e5, "%s: nothing was seen" % event)
    p.signal(signal.SIGTERM)
    status, out = p.wait(), p.read(p.out)
    s.check(status == 0 and "same 1" in out and int(re.search(r"left (-?\d+)", out)[1]) < 8192, "status %s: %s" % (status, out))
    for args in (("newstate", "4"), ("ghosts",)):
        p = begun(s.host(args[0]), *args[1:])
        for i in range(10):
            attach(p, "live", "120ms")
            s.check(p.p.poll() is None, "%s ended with %s after %d: %s" % (args[0], p.p.poll(), i + 1, p.read(p.err)))
        p.signal(signal.SIGTERM)
        status = p.wait()
        s.check(status == 0, "%s: status %s: %s" % (args[0], status, p.read(p.err)))
    p = begun(s.luajit().program, os.path.join(HERE, "forks.lua"), "100")
    r = attach(p, "live", "10s")
    status, out = p.wait(60), p.read(p.out)
    s.check(status == 0 and "good\t100" in out, "status %s: %s" % (status, out))


@suite.test("attach.sets", "a host that is attached to sees the allocator that it has set, sets others around each piece of work, and has its own after")
def attach_sets():
    p = begun(s.host("allocs"), "sets")
    for i in range(12):
        r = attach(p, ("alloc", "live", "alloc,live", "alloc,cpu")[i % 4], "%dms" % (150 + 37 * i))
        s.check(p.p.poll() is None, "ended with %s after %d: %s" % (p.p.poll(), i + 1, p.read(p.err)))
        s.check(total(r.trace, "freed" if i % 4 == 1 else "alloc") > 1e5, "nothing was seen")
    p.signal(signal.SIGTERM)
    status, out = p.wait(), p.read(p.out)
    s.check(status == 0 and "wrong 0\nsame 1" in out and int(re.search(r"left (-?\d+)", out)[1]) < 8192, "status %s: %s" % (status, out))


@suite.test("refusals", "what cannot be has a line")
def refusals():
    for opts, said in ((["--alloc-interval", "0"], "give bytes"), (["-e", "live", "--last", "10s"], "leave out --last")):
        r = s.run([s.luasample(), "record", *opts, "--", "true"])
        s.check(r.status == 129 and said in r.err, "%s: %d %s" % (opts, r.status, r.err))
    r = s.record_lua(os.path.join(HERE, "sunk.lua"), "-e", "alloc", "--engine", "hook")
    s.check("allocations of a VM are not recorded" in r.err, r.err)


if __name__ == "__main__":
    sys.exit(suite.main())
