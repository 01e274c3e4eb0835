#!/usr/bin/python3
"""The stress test: run.py [--long | --seconds N] [--quick] [--list] [NAME...]

Programs that do what a profiler may break (stress.lua, and host.c around it) are recorded at 100 us with each engine, way
to the leaf, timer and LuaJIT. They must end as they do alone, with the same output; the recording must be whole. Prints a
table of the figures. About a minute of load; --long: ten minutes. Needs the build directory in LUASAMPLE_BUILD
(default build/)."""
import collections
import math
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE)]
import support
from support import Fail, Skip, check, check_near, luasample, run, tmpdir, tmpfile

INTERVAL_NS = 100000
PERIOD = 4                              # rounds of stress.lua that differ
HOST_STATUS = 7
SCRIPT = os.path.join(HERE, "stress.lua")
CI_SECONDS, LONG_SECONDS = 60.0, 600.0

# Each: name, program, LuaJIT, options, its share of the time, per cent of its ticks that may be lost, but for full rings and
# the threads that live for a tick or two (None: what the engine or the timer cannot see is more).
Case = collections.namedtuple("Case", "name program luajit options share most_lost")
CASES = [
    Case("host-native", "host", "debian", ["--native", "--timer", "perf"], 4, 1),
    Case("host-helper", "host", "debian", ["--jit-leaf", "root", "--timer", "helper"], 2, None),
    Case("host-cputime", "host", "debian", ["--jit-leaf", "root", "--timer", "cputime"], 2, None),
    Case("host-shared", "host", "shared", ["--native"], 2, 1),
    Case("host-luajit2", "host", "luajit2so", ["--native"], 2, 1),
    Case("script", "script", "debian", ["--native"], 2, 1),
    Case("script-luajit2", "script", "luajit2", ["--native"], 2, 1),
    Case("script-shared", "script", "shared", ["--jit-leaf", "root", "--timer", "helper"], 1, None),
    Case("script-hook", "script", "debian", ["--engine", "hook"], 1, None),
    Case("asan", "asan", "debian", ["--native"], 3, 1),
    Case("asan-root", "asan", "debian", ["--jit-leaf", "root", "--timer", "helper"], 1, None),
]
NO_LOSS = ("bad-record",)
MOST_FULL = 2                           # per cent
BUFFER = "8M"                           # half a second of stacks at 100 us and more: the drain waits for a processor, too
ASAN = {"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0:abort_on_error=1:handle_segv=0"}
figures = []                            # rows of the table


def built(name):
    path = os.path.join(support.build_dir(), "tests", "stress", name)
    if not os.path.exists(path):
        raise Skip("%s is not built (libluajit-5.1-dev missing, or not gcc?)" % name)
    return path


def recorder(case):
    """luasample; for a host with the agent in it, a copy whose own agent is an empty library."""
    if case.program != "asan":
        return luasample()
    to = os.path.join(tmpdir(), "asan")
    if not os.path.exists(to):
        os.makedirs(os.path.join(to, "libsample"))
        shutil.copy(built("nothing.so"), os.path.join(to, "libsample", "libsample.so"))
        shutil.copy(luasample(), to)
    return os.path.join(to, "luasample")


def command(case, lj, rounds):
    if case.program == "script":
        return [lj.program, SCRIPT, str(rounds)]
    name = "host_stress_asan" if case.program == "asan" else "host_stress"
    return [built(name), built("stress.so"), SCRIPT, str(rounds)]


def environment(case, lj):
    return lj.environ(ASAN if case.program == "asan" else None)


def uses(err):
    """[(KiB, descriptors)] by round, and the CPU seconds that the program says it used: its own, in short threads."""
    rows, cpu, short = [], None, 0.0
    for line in err.splitlines():
        words = line.split()
        if words[:1] == ["use"] and len(words) == 5:
            rows.append((int(words[2]), int(words[3])))
        elif words[:1] == ["cpu"] and len(words) == 2:
            cpu = float(words[1])
        elif words[:1] == ["short"] and len(words) == 2:
            short = float(words[1])
    return rows, cpu, short


alone = {}


def run_alone(case, lj):
    """{round modulo PERIOD: lines without the round's number}, seconds of a round, the program's use; unprofiled."""
    key = (case.program, lj.name)
    if key not in alone:
        rounds = 2 * PERIOD
        r = run(command(case, lj, rounds), env=environment(case, lj), timeout=600)
        r.ok(0 if case.program == "script" else HOST_STATUS)
        by_round = lines_of(r.out)
        check(sorted(by_round) == list(range(1, rounds + 1)), "rounds %r" % sorted(by_round))
        for n in range(1, PERIOD + 1):
            check(by_round[n] == by_round[n + PERIOD], "the program does not repeat itself in round %d" % n)
            check(len(by_round[n]) >= 12, "%d parts in a round" % len(by_round[n]))
        check(len({tuple(by_round[n]) for n in range(1, PERIOD + 1)}) == PERIOD, "the rounds do not differ")
        alone[key] = by_round, r.seconds / rounds, uses(r.err)[0]
    return alone[key]


def lines_of(out):
    by_round = collections.defaultdict(list)
    for line in out.splitlines():
        number, _, rest = line.partition("\t")
        by_round[int(number)].append(rest)
    return by_round


def check_output(r, expected, rounds):
    got = lines_of(r.out)
    check(sorted(got) == list(range(1, rounds + 1)), "%d rounds of %d in the output" % (len(got), rounds))
    for n in range(1, rounds + 1):
        want = expected[(n - 1) % PERIOD + 1]
        different = [(g, w) for g, w in zip(got[n], want) if g != w]
        check(got[n] == want, "the output of round %d differs: %r" % (n, different[:3]))


# What the agent's tables of functions, sources and names may hold of a program that loads new chunks all the time; they are
# full after some 60 rounds.
TABLES_KIB, TABLES_FULL = 20480, 60


def check_leaks(case, r, rounds, use):
    """Private memory and descriptors of the last third against those of the third before, or of the program alone."""
    alone_kib = max(kib for kib, _ in use)
    rows, cpu, short = uses(r.err)
    check(len(rows) == rounds and cpu, "%d reports of use" % len(rows))
    parts = rows[rounds // 3:2 * rounds // 3], rows[2 * rounds // 3:]
    early, late = (max(kib for kib, _ in part) for part in parts)
    most = early * 1.1 + 1024 if rounds >= 2 * TABLES_FULL else alone_kib + TABLES_KIB
    if case.program == "asan":          # its runtime keeps a part of each thread that has ended
        most = alone_kib + TABLES_KIB + 1.5 * rounds * (use[-1][0] - use[1][0]) / (len(use) - 2)
    check(late <= most, "private memory grew from %d to %d KiB; %d KiB without luasample" % (early, late, alone_kib))
    early, late = (max(fds for _, fds in part) for part in parts)
    # jit.p leaves its file open until the next collection when it has had no samples
    check(late <= early + 1, "descriptors: %d, then %d" % (early, late))
    return rows, cpu, short


def check_trace(case, r, j, cpu, short):
    """The recording is whole, and its ticks are the program's CPU time."""
    bad = {k: n for k, n in j["lost"].items() if n and k in NO_LOSS}
    check(not bad, "losses: %r" % bad)
    check(j["complete"] and not j["damage"], "not complete: %r" % j["damage"])
    check(j["readable_samples"] == j["samples"], "%d of %d samples can be read" % (j["readable_samples"], j["samples"]))
    full = j["lost"]["ring-full"]       # how much depends on the machine's other load
    check(100.0 * full / j["ticks"] <= MOST_FULL, "%d of %d ticks did not fit into the ring" % (full, j["ticks"]))
    # What is left of less than a tick when a thread ends: half an interval on the average.
    ended = j["lost"]["thread-ended"]
    check(ended <= 0.75 * (j["threads"] + j["threads_unrecorded"]) + 10, "%d ticks lost at the end of %d threads" % (
        ended, j["threads"]))
    if case.most_lost is not None:
        # The recorder hears of a thread after it began: those that live for less than that have no tick of their own.
        lost, most = j["lost_ticks"] - full, 1e9 * short / INTERVAL_NS + case.most_lost * j["ticks"] / 100.0
        check(lost <= most, "%d of %d ticks are lost otherwise than by full rings, more than %d: %r" % (
            lost, j["ticks"], most, {k: n for k, n in j["lost"].items() if n}))
    # What no timer could see is known, and is not much.
    seen = j["ticks"] * INTERVAL_NS / j["cpu_ns"]
    check_near("ticks of the sampled CPU time", seen, 1, 0.02)
    if case.program == "script":        # else threads begin and end all the time, some before they are sampled
        check_near("ticks of all CPU time", j["ticks"] * INTERVAL_NS / 1e9 / cpu, 1, 0.02)
    rows = r.rows("--by", "function")
    check(len(rows) > 20, "%d functions" % len(rows))
    check_near("ticks of the report", sum(row["self_ticks"] for row in rows), j["ticks"] - j["lost_ticks"],
               0.001 * j["ticks"] + 1)
    for view in (["--by", "line"], ["--by", "jit-trace"], ["--by", "vm"], ["--by", "coroutine"], ["--tree"]):
        support.report(r.trace, *view).ok()


def note(case, rounds, r, j, rows, cpu):
    figures.append((case.name, rounds, r.seconds, j, rows, cpu))


def table():
    print("%-14s %6s %6s %8s %7s %7s %7s %6s %6s %13s %4s" % ("", "rounds", "s", "samples", "ticks/", "sampled", "lost",
                                                          "own", "VMs", "KiB", "fds"))
    print("%-14s %6s %6s %8s %7s %7s %7s %6s %6s %13s %4s" % ("", "", "", "", "its CPU", "CPU", "%", "%", "", "", ""))
    for name, rounds, seconds, j, rows, cpu in figures:
        print("%-14s %6d %6.1f %8d %7.4f %7.4f %7.2f %6.2f %6d %6d-%6d %4d" % (
            name, rounds, seconds, j["samples"], j["ticks"] * INTERVAL_NS / j["cpu_ns"], j["cpu_ns"] / 1e9 / cpu,
            100.0 * j["lost_ticks"] / j["ticks"], 100.0 * j["own_cost"], j["vms"], rows[len(rows) // 3][0], rows[-1][0],
            rows[-1][1]))
        losses = ["%s %.2f %%" % (k, 100.0 * n / j["ticks"]) for k, n in sorted(j["lost"].items(), key=lambda x: -x[1]) if n]
        more = ["threads not recorded %d of %d" % (j["threads_unrecorded"], j["threads"] + j["threads_unrecorded"])] \
            if j["threads_unrecorded"] else []
        print("    " + ", ".join(losses + more))


def stress(case, seconds):
    lj = support.luajit(case.luajit)
    expected, each, use = run_alone(case, lj)
    rounds = max(2 * PERIOD, math.ceil(seconds / each))
    trace = tmpfile(".data")
    cmd = command(case, lj, rounds)
    if case.program == "asan":
        cmd = ["env", *cmd]             # record refuses a program that is built with a sanitizer
    r = run([recorder(case), "record", "-i", "100us", "-m", BUFFER, "-o", trace, *case.options, "--", *cmd], env=environment(case, lj),
            timeout=60 + 10 * seconds)
    r.trace = trace
    r.ok(0 if case.program == "script" else HOST_STATUS)
    check("AddressSanitizer: " not in r.err, r.err[-3000:])
    check_output(r, expected, rounds)
    j = r.info()
    rows, cpu, short = check_leaks(case, r, rounds, use)
    note(case, rounds, r, j, rows, cpu)
    check_trace(case, r, j, cpu, short)


GROWING = """
local function down(n) if n == 0 then return 0 end return 1 + down(n - 1) end
for i = 1, 800 do coroutine.wrap(function() return down(5000 + i % 7 * 700) end)() end
"""


def record_part(part, rounds, *opts):
    r = support.record([built("host_stress"), built("stress.so"), SCRIPT, str(rounds), part], *opts, interval="100us")
    return r.ok(HOST_STATUS).info()


def add_parts(suite):
    @suite.test("left", "handlers of the tick that the program's own leave by siglongjmp: what comes after is whole")
    def _():
        j = record_part("jumps", 40, "--native")
        check(j["samples"] > 2000, "%d samples" % j["samples"])
        check(j["lost"]["native-cut"] <= 0.05 * j["samples"], "%d native stacks of %d do not reach their end" %
              (j["lost"]["native-cut"], j["samples"]))
        check(j["lost_ticks"] <= 0.02 * j["ticks"], "%d ticks of %d are lost" % (j["lost_ticks"], j["ticks"]))

    for name in ("debian", "shared", "luajit2"):
        @suite.test("moved-" + name, "stacks of thousands of frames that are given more room at the tick")
        def _(name=name):
            lj = support.luajit(name)
            r = support.record([lj.program, "-e", GROWING], env=lj.environ(), interval="100us").ok()
            j = r.info()
            check(j["ticks"] > 1000, "%d ticks" % j["ticks"])
            # one in forty: right after the move neither place is known
            check(j["lost"]["bad-stack"] <= 0.025 * j["ticks"], "%d of %d ticks" % (j["lost"]["bad-stack"], j["ticks"]))


def main(argv):
    total = CI_SECONDS
    suite = support.Suite("stress")
    while argv and (argv[0] == "--long" or argv[0] == "--seconds"):
        total = LONG_SECONDS if argv.pop(0) == "--long" else float(argv.pop(0))
    shares = sum(case.share for case in CASES)
    for case in CASES:
        suite.test(case.name, "%s, LuaJIT %s, %s" % (case.program, case.luajit, " ".join(case.options)),
                   quick=case.name == "host-native")(lambda case=case: stress(case, total * case.share / shares))
    add_parts(suite)
    status = suite.main(argv)
    if figures:
        table()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
