#!/usr/bin/env python3
"""Truth tests: run.py [--quick] [NAME...]

Records the programs of this directory at 250 us, each with every LuaJIT of scripts/luajit-trees' list (Debian's static
and the shared one; others with --all), compiled and interpreted, and compares what luasample reports with what the
program measured itself in the same run (truth.lua): each share within 2 points, the sum of the weights within 2 % of
the CPU time. Each comparison is then made again on a trace whose weights were moved to the next stack (shift_trace):
that one must fail, else the test proves nothing. A test is named PROGRAM.LUAJIT.MODE."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import support as s

HERE = os.path.dirname(os.path.abspath(__file__))
INTERVAL = "250us"
SECONDS = 2.7                   # of CPU time: 10,800 ticks
POINTS = 2.0
WEIGHTS = 2.0                   # percent
LUAJITS = ["debian", "shared"]
MODES = {"jit": [], "joff": ["-joff"]}
# What the capture through LuaJIT's hook cannot tell, as luasample-record(1) says: counted as skipped while it is wrong
# by no more than these points.
KNOWN = {
    "library.jit": (9, "a builtin inside a trace is seen where the line next changes, in its caller"),
}
QUICK = {"split", "twoloops", "coroutines", "zones"}

suite = s.Suite("truth")


def read_truth(path):
    """{key: percent of the program's CPU time}, and that time in ns."""
    with open(path) as f:
        pairs = [line.rstrip("\n").split("\t") for line in f]
    cpu = float(pairs[0][1])
    s.check(pairs[0][0] == "cpu" and cpu > 0, "no truth in " + path)
    return {k: 100 * float(v) / cpu for k, v in pairs[1:]}, cpu


def views_of(trace, keys, name):
    """The rows of each view that the keys need, only of functions in the program's own file where that matters."""
    views = {}
    kinds = {k.split()[0] for k in keys}
    if kinds & {"self", "total", "oneline"}:
        views["function"] = [r for r in s.rows(trace, "--by", "function")
                             if s.basename(r.get("source")) == name + ".lua"]
    if "lines" in kinds:
        views["line"] = [r for r in s.rows(trace, "--by", "line")
                         if s.basename(r.get("source")) == name + ".lua"]
    if "zone" in kinds:
        views["zone"] = s.rows(trace, "--by", "zone-path")
    if "vmstate" in kinds:
        views["vmstate"] = s.rows(trace, "--by", "vmstate")
    return views


STATES = {"N": "Compiled", "I": "Interpreted", "C": "C code", "G": "Garbage Collector", "J": "JIT Compiler"}


def reported(key, views):
    """The share in percent that luasample reports for a key of truth.lua."""
    kind, *args = key.split(" ")
    if kind in ("self", "total"):
        return s.share(views["function"], kind, line_defined=int(args[0]))
    if kind == "oneline":
        same = sorted((100 * r["self"] for r in views["function"] if r.get("line_defined") == int(args[0])), reverse=True)
        return same[int(args[1]) - 1] if len(same) >= int(args[1]) else 0.0
    if kind == "lines":
        a, b = map(int, args[0].split("-"))
        return s.share(views["line"], line=lambda l: l is not None and a <= l <= b)
    if kind == "zone":
        return s.share(views["zone"], zone=" ".join(args))
    if kind == "vmstate":
        return s.share(views["vmstate"], vmstate=STATES[args[0]])
    raise s.Fail("unknown key " + key)


def compare(trace, truth, name, points=POINTS):
    """Lines that tell each difference of more than points; empty when all is right."""
    views = views_of(trace, truth, name)
    wrong = []
    for key, want in truth.items():
        got = reported(key, views)
        if abs(got - want) > points:
            wrong.append("%s: reported %.1f %%, true %.1f %%" % (key, got, want))
    return wrong


def run_one(name, lj, lua_opts):
    out = s.tmpfile(".truth")
    r = s.record_lua(os.path.join(HERE, name + ".lua"), lj=lj, args=[out, str(SECONDS)], lua_opts=lua_opts,
                     interval=INTERVAL).ok()
    truth, cpu = read_truth(out)
    i = r.info()
    wrong = compare(r.trace, truth, name)
    # info's ticks are those of the whole VM's life, the program's clock starts a little later.
    ticks = cpu / i["asked_interval_ns"]
    if abs(i["ticks"] / ticks - 1) * 100 > WEIGHTS:
        wrong.append("ticks %d, CPU time says %.0f" % (i["ticks"], ticks))
    points, known = KNOWN.get(name + (".joff" if lua_opts else ".jit"), (POINTS, ""))
    if wrong and known and not compare(r.trace, truth, name, points):
        raise s.Skip("known limit: %s (%s)" % (known, "; ".join(wrong)))
    s.check(not wrong, "; ".join(wrong))
    shifted = s.tmpfile(".data")
    s.run([os.path.join(s.build_dir(), "tests", "truth", "shift_trace"), r.trace, shifted]).ok()
    s.check(compare(shifted, truth, name), "the shifted trace passes too: the comparison proves nothing")


def add(name, lj_name, mode):
    def test():
        run_one(name, s.luajit(lj_name), MODES[mode])
    quick = name in QUICK and lj_name == "debian"
    suite.test("%s.%s.%s" % (name, lj_name, mode), "", quick)(test)


if "--all" in sys.argv:
    sys.argv.remove("--all")
    LUAJITS = [l.name for l in s.luajits()]
for file in sorted(os.listdir(HERE)):
    if file.endswith(".lua") and file != "truth.lua":
        for lj in LUAJITS:
            for mode in MODES:
                add(file[:-4], lj, mode)

if __name__ == "__main__":
    sys.exit(suite.main())
