"""Part of the bench for exact counts: what -e coverage and -e lines,calls,instructions cost. Used by bench.py."""
import math
import statistics

import measure as m
import ratios

ALL = "lines,calls,instructions"
CONFIGS = [
    m.Config("unprofiled", run=m.run_plain),
    m.Config("coverage", ["-e", "coverage"]),
    m.Config("all counts", ["-e", ALL]),
    m.Config("JIT off", run=lambda luajit, name, size: m.run_plain(luajit, name, size, options=["-joff"])),
]


def geometric(values):
    return math.exp(statistics.mean(math.log(v) for v in values))


def part_exact(luajit, a):
    """exact counts: CPU ratios of coverage, and of lines, calls and instructions together"""
    print("CPU of the program, %d paired rounds of %g s: ratio to the unprofiled run; median (lowest-highest)" % (a.rounds, a.seconds))
    medians = {c.name: [] for c in CONFIGS[1:]}
    for name in a.programs:
        got = ratios.rounds_of(luajit, name, CONFIGS, a.rounds, a.seconds)
        line = "  %-10s" % name
        for c in CONFIGS[1:]:
            ratio = ratios.ratios(got, c.name, "unprofiled")
            medians[c.name].append((statistics.median(ratio), name))
            line += " %s %-22s" % (c.name, m.spread(ratio))
        print(line, flush=True)
    for c in CONFIGS[1:]:
        values = medians[c.name]
        target = m.verdict(geometric(v for v, _ in values), c.name) if c.name in m.TARGETS else ""
        print("  %-12s geometric mean %.3f %s, dearest %.3f %s" % (c.name, geometric(v for v, _ in values), target, *max(values)))
    print()
