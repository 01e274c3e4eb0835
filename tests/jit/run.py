#!/usr/bin/python3
"""Truth of places in JIT code: run.py [--quick] [--dump] [NAME...]

Runs the programs of programs/ and some of tests/bench/programs under a LuaJIT that logs which machine code each IR
instruction became (scripts/luajit-trees makes it, tree jittruth), samples them, and compares the functions and lines
that formats/jit/map.h gives with the logged ones: at most 2 points of difference by function and 3 by line, for the
samples and for all bytes of all traces; the frames of inlined functions must be those that LuaJIT's exits restore.
Asked for places 64 bytes off the same comparison must fail, where a program's lines are that close together. Programs
are also run as on a processor without BMI2 and SSE 4.1 (NAME.plain). --dump NAME prints the traces with both views of
each x86 instruction.

recorded.PROGRAM.LUAJIT: the whole way, through record and report, for programs whose shares by line are known."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import support as s

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(s.TESTS, "bench", "programs")
FUNCTION_POINTS, LINE_POINTS = 2.0, 3.0
STACKS_RIGHT = 98.0             # percent of the snapshots that can be compared
APPROXIMATE = 10.0              # percent of the samples may be in traces that are marked so
MS_A_TRACE = 1.5
SECONDS = "0.7"                 # of CPU time that each program of programs/ takes
# Programs of tests/bench and their argument, for about a second.
BENCH_ROUNDS = {"richards": "30", "json": "150", "fannkuch": "3", "life": "2000", "nbody": "400000", "parser": "15",
                "strings": "20"}
# Where 64 bytes further there is always another line.
CONTROL = {"arith", "fields", "nested", "branches", "text", "richards"}
QUICK = {"arith", "branches", "richards"}
HEAD = "%-18s %7s %7s %6s  %15s  %15s  %7s %6s %7s" % (
    "program", "samples", "placed", "traces", "samples F/L", "bytes F/L", "control", "approx", "ms")

suite = s.Suite("jit")
printed = []


def truth_luajit():
    cache = os.environ.get("LUASAMPLE_TEST_CACHE", os.path.expanduser("~/.cache/luasample-tests"))
    tree = os.path.join(cache, "jittruth")
    program = os.path.join(tree, "bin", "luajit")
    if not os.path.exists(program):
        raise s.Skip("no LuaJIT named jittruth (scripts/luajit-trees makes it)")
    return s.LuaJIT("jittruth", program, {"LD_LIBRARY_PATH": os.path.join(tree, "lib"),
                                          "LUA_PATH": os.path.join(tree, "share", "?.lua") + ";;"})


def score(path, arg, plain, dump=False):
    """The figures of a run (score.c), and what was dumped."""
    lj = truth_luajit()
    module = os.path.join(s.build_dir(), "tests", "jit", "jitscore.so")
    if not os.path.exists(module):
        raise s.Skip("jitscore.so is not built (libluajit-5.1-dev missing?)")
    out = s.tmpfile(".score")
    s.run([lj.program, os.path.join(HERE, "drive.lua"), module, out, "0" if dump else "-1", path, arg],
          env=lj.environ({"JIT_PLAIN_CPU": "1"} if plain else None), timeout=60).ok()
    with open(out) as f:
        lines = f.read().splitlines()
    return json.loads(lines[-1]), lines[:-1]


def show(name, r):
    if not printed:
        print(HEAD)
        printed.append(1)
    print("%-18s %7d %7d %6d  %7.2f/%7.2f  %7.2f/%7.2f  %7.1f %5.1f%% %7.3f" % (
        name, r["ticks"], r["placed"], r["traces"], r["function"], r["line"], r["bytes_function"], r["bytes_line"],
        r["control_line"], share(r), r["ms"]))


def share(r):
    return 100.0 * r["approximate_ticks"] / max(1, r["placed"])


def judge(name, r, control):
    s.check(r["failed"] == 0, "%d traces gave no map" % r["failed"])
    s.check(r["placed"] >= 100, "only %d samples in compiled code" % r["placed"])
    for key, most in (("function", FUNCTION_POINTS), ("line", LINE_POINTS), ("bytes_function", FUNCTION_POINTS),
                      ("bytes_line", LINE_POINTS)):
        s.check(r[key] <= most, "%s: %.2f points of error, at most %.1f" % (key, r[key], most))
    s.check(r["stacks_right"] >= STACKS_RIGHT,
            "inlined frames: %.1f %% of %d snapshots" % (r["stacks_right"], r["stacks"]))
    s.check(share(r) <= APPROXIMATE, "%.1f %% of the samples are in traces marked approximate" % share(r))
    if control:
        s.check(r["control_line"] > LINE_POINTS, "places 64 bytes off pass too: the comparison proves nothing")


def add(name, path, arg, plain):
    full = name + (".plain" if plain else "")

    def test():
        r, _ = score(path, arg, plain)
        show(full, r)
        judge(name, r, name in CONTROL)
        s.check(r["ms"] <= 4 * MS_A_TRACE, "%.2f ms a trace" % r["ms"])   # the machine may be busy
    suite.test(full, "", name in QUICK and not plain)(test)


def known_shares(name):
    """{line: percent} of the programs whose lines all take as long as each other's: a chain of dependent divisions."""
    times = {"arith": [(3, 8, 1), (12, 13, 1)], "nested": [(3, 5, 2), (9, 9, 2), (11, 11, 2), (15, 15, 1), (18, 18, 1)]}
    lines = {l: n for a, b, n in times[name] for l in range(a, b + 1)}
    return {l: 100.0 * n / sum(lines.values()) for l, n in lines.items()}


def recorded_error(name, lj, *opts):
    """Half the sum of the differences between what a recording says of each line and what is known, and the limit: what so
    many samples differ by chance (of a normal distribution |x| has the mean 0.80 and the variance 0.36), and half a point."""
    r = s.record_lua(os.path.join(OWN, name + ".lua"), *opts, lj=lj, args=["3"], interval="250us").ok()
    want = known_shares(name)
    got = {k["line"]: 100 * k["self"] for k in r.rows("--by", "line") if s.basename(k.get("source")) == name + ".lua"}
    samples = s.effective_samples(r.trace)
    errors = [100 * (p / 100 * (1 - p / 100) / samples) ** 0.5 for p in want.values()]
    most = 0.5 * 0.8 * sum(errors) + s.SIGMAS * 0.5 * (0.36 * sum(e * e for e in errors)) ** 0.5 + s.SYSTEMATIC
    return sum(abs(got.get(l, 0) - want.get(l, 0)) for l in set(got) | set(want)) / 2, most


def add_recorded(name, lj_name):
    def test():
        error, most = recorded_error(name, s.luajit(lj_name))
        s.check(error <= most, "%.2f points of error by line, more than %.2f" % (error, most))
        error, most = recorded_error(name, s.luajit(lj_name), "--jit-leaf=root")
        s.check(error > most, "only %.1f points of error with --jit-leaf=root: this proves nothing" % error)
    suite.test("recorded.%s.%s" % (name, lj_name), "", name == "nested" and lj_name == "debian")(test)


OWN = os.path.join(HERE, "programs")
PROGRAMS = [(f[:-4], os.path.join(OWN, f), SECONDS) for f in sorted(os.listdir(OWN))]
PROGRAMS += [(n, os.path.join(BENCH, n + ".lua"), rounds) for n, rounds in BENCH_ROUNDS.items()]
for p in PROGRAMS:
    add(*p, False)
for p in PROGRAMS:
    if p[0] not in BENCH_ROUNDS or p[0] in QUICK:
        add(*p, True)

add_recorded("arith", "debian")
for lj in ("debian", "shared", "luajit2"):
    add_recorded("nested", lj)

if __name__ == "__main__":
    if "--dump" in sys.argv:
        sys.argv.remove("--dump")
        for p in PROGRAMS:
            if p[0] in sys.argv[1:]:
                print("\n".join(score(*p[1:], False, True)[1]))
        s.finish_tmp()
        sys.exit(0)
    sys.exit(suite.main())
