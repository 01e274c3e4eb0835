#!/usr/bin/python3
"""Truth tests: run.py [--quick] [--all] [NAME...]

Records the programs of this directory at 250 us, each with every LuaJIT of scripts/luajit-trees' list (Debian's
static and the shared one; others with --all), compiled and interpreted, and compares what luasample reports with what
the program measured itself in the same run (truth.lua): each share within the sampling error of as many samples
(support.margin) and half a point, lines of compiled code half a point more; where the kernel delays ticks as much as the
program has measured of that; the sum of the weights within 2 % of the CPU time, and at most 1 % of the stacks incomplete.
Each comparison is then made again on a trace whose weights were moved to the next stack or one soon after it (shift_trace): that one must
fail, else the test proves nothing. A test is named PROGRAM.LUAJIT.MODE; PROGRAM.LUAJIT.MODE.hook is one with LuaJIT's
own profiler (--engine hook), for programs whose truth that can tell. At the end the worst shares of
incomplete stacks are printed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import support as s

HERE = os.path.dirname(os.path.abspath(__file__))
INTERVAL = "250us"
SECONDS = 2.7                   # of CPU time: 10,800 ticks
COMPILED_LINE_POINTS = 0.5      # more than support.SYSTEMATIC
WEIGHTS = 2.0                   # percent
INCOMPLETE = 1.0                # percent of the stacks
LUAJITS = ["debian", "shared"]
MODES = {"jit": [], "joff": ["-joff"]}
COMPILED_ONLY = {"jlines"}
QUICK = {"split", "twoloops", "coroutines", "zones", "builtins", "cfunctions", "fficalls"}
HOOK = {"split", "twoloops", "coroutines", "zones", "recursion", "pcalls"}

suite = s.Suite("truth")
incomplete = []                 # of each recording: percent, name, the losses


def read_truth(path):
    """{key: percent of the program's CPU time}, that time in ns, and the percentage of it whose ticks may come late."""
    with open(path) as f:
        pairs = [line.rstrip("\n").split("\t") for line in f]
    cpu = float(pairs[0][1])
    s.check(pairs[0][0] == "cpu" and cpu > 0, "no truth in " + path)
    truth = {k: 100 * float(v) / cpu for k, v in pairs[1:]}
    return truth, cpu, truth.pop("late", 0.0)


STATES = {"N": "Compiled", "I": "Interpreted", "C": "C code", "G": "Garbage Collector", "J": "JIT Compiler"}


class Views:
    """The rows of a trace's views, each read when a key needs it."""
    def __init__(self, trace, name):
        self.trace, self.source, self.read = trace, name + ".lua", {}

    def rows(self, *args):
        if args not in self.read:
            self.read[args] = s.rows(self.trace, *args)
        return self.read[args]

    def own(self, *args, source=None):
        """Those of the program's own file, or of another."""
        return [r for r in self.rows(*args) if s.basename(r.get("source")) == (source or self.source)]

    def lines(self, field, lines, source, *args):
        first, last = map(int, lines.split("-"))
        return s.share(self.own("--by", "line", *args, source=source), field,
                       line=lambda l: l is not None and first <= l <= last)

    def state(self, letter):
        return s.share(self.rows("--by", "vmstate"), vmstate=STATES[letter])


def of_function(v, field, line):
    return s.share(v.own("--by", "function"), field, line_defined=int(line))


def oneline(v, line, i):
    rows = [r for r in v.own("--by", "function") if r.get("line_defined") == int(line)]
    same = sorted((100 * r["self"] for r in rows), reverse=True)
    return same[int(i) - 1] if len(same) >= int(i) else 0.0


def leaf(v, name):
    return s.share(v.rows("--by", "function"), function=name)


def all_of_state(v, letter, lines, source=None):
    """Of the state's ticks: those whose stack has one of the lines."""
    return v.lines("total", lines, source, "--vmstate", letter) if v.state(letter) else 0.0


def state_lines(v, letter, lines, source=None):
    """The same, of all ticks."""
    return all_of_state(v, letter, lines, source) * v.state(letter) / 100


# The share in percent that luasample reports for a key of truth.lua.
REPORTED = {
    "self": lambda v, line: of_function(v, "self", line),
    "total": lambda v, line: of_function(v, "total", line),
    "oneline": oneline,
    "leaf": leaf,
    "lines": lambda v, lines, source=None: v.lines("self", lines, source),
    "tlines": lambda v, lines, source=None: v.lines("total", lines, source),
    "zone": lambda v, *name: s.share(v.rows("--by", "zone-path"), zone=" ".join(name)),
    "vmstate": lambda v, letter: v.state(letter),
    "statelines": state_lines,
    "alllines": all_of_state,
}
BY_LINE = {"lines", "tlines", "statelines", "alllines"}


def compare(trace, truth, late, name, mode):
    """Lines that tell each difference of more than the tolerance; empty when all is right."""
    views, wrong, samples = Views(trace, name), [], s.effective_samples(trace)
    for key, want in truth.items():
        kind, *args = key.split(" ")
        got = REPORTED[kind](views, *args)
        most = s.margin(want, samples * (views.state(args[0]) / 100 if kind == "alllines" else 1), s.SYSTEMATIC + late +
                        (COMPILED_LINE_POINTS if kind in BY_LINE and mode == "jit" else 0))
        if abs(got - want) > most:
            wrong.append("%s: reported %.2f %%, true %.2f +- %.2f %%" % (key, got, want, most))
    return wrong


def shifted(trace, steps):
    out = s.tmpfile(".data")
    s.run([os.path.join(s.build_dir(), "tests", "truth", "shift_trace"), trace, out, str(steps)]).ok()
    return out


def run_one(name, lj, mode, engine):
    out = s.tmpfile(".truth")
    r = s.record_lua(os.path.join(HERE, name + ".lua"), *(["--engine", engine] if engine else []), lj=lj,
                     args=[out, str(SECONDS), os.path.join(s.build_dir(), "tests", "truth")], lua_opts=MODES[mode],
                     interval=INTERVAL).ok()
    truth, cpu, late = read_truth(out)
    i = r.info()
    s.check(i["engine"] == (engine or "walk"), "the engine is %s" % i["engine"])
    wrong = compare(r.trace, truth, late, name, mode)
    # info's ticks are those of the whole VM's life, the program's clock starts a little later.
    ticks = cpu / i["asked_interval_ns"]
    if abs(i["ticks"] / ticks - 1) * 100 > WEIGHTS:
        wrong.append("ticks %d, CPU time says %.0f" % (i["ticks"], ticks))
    weights = sum(x["self_ticks"] for x in s.rows(r.trace, "--by", "function"))
    if abs(weights / ticks - 1) * 100 > WEIGHTS:
        wrong.append("weights %d, CPU time says %.0f" % (weights, ticks))
    lost = {k: n for k, n in i["lost"].items() if n}
    if not engine:
        incomplete.append((100 * i["incomplete"], "%s.%s.%s" % (name, lj.name, mode), lost))
        if 100 * i["incomplete"] > INCOMPLETE:
            wrong.append("%.2f %% of the stacks are incomplete: %s" % (100 * i["incomplete"], lost))
    s.check(not wrong, "; ".join(wrong))
    s.check(any(compare(shifted(r.trace, steps), truth, late, name, mode) for steps in (1, 2, 3)),
            "the shifted trace passes too: the comparison proves nothing")


def add(name, lj_name, mode, engine=None):
    def test():
        run_one(name, s.luajit(lj_name), mode, engine)
    quick = name in QUICK and lj_name == "debian" and not engine
    suite.test("%s.%s.%s%s" % (name, lj_name, mode, "." + engine if engine else ""), "", quick)(test)


# The interpreter of both LuaJITs is one source: the second one's is tried with the quick programs, or with --all.
everything = "--all" in sys.argv
if everything:
    sys.argv.remove("--all")
    LUAJITS = [l.name for l in s.luajits()]
for file in sorted(os.listdir(HERE)):
    program = file[:-4]
    if file.endswith(".lua") and program != "truth":
        for lj in LUAJITS:
            for mode in MODES:
                if mode == "joff" and lj != "debian" and program not in QUICK and not everything:
                    continue
                if mode == "jit" or program not in COMPILED_ONLY:
                    add(program, lj, mode)
        for mode in MODES if program in HOOK else []:
            add(program, "debian", mode, "hook")

if __name__ == "__main__":
    status = suite.main()
    for share, test, lost in sorted(incomplete, key=lambda x: x[0], reverse=True)[:5]:
        print("incomplete stacks: %.2f %% %s %s" % (share, test, lost))
    sys.exit(status)
