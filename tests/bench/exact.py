"""Part of the bench for exact counts: what -e coverage and -e lines,calls,instructions cost. Used by bench.py."""
import measure as m
import ratios

ALL = "lines,calls,instructions"
CONFIGS = [
    m.Config("unprofiled", run=m.run_plain),
    m.Config("coverage", ["-e", "coverage"]),
    m.Config("all counts", ["-e", ALL]),
    m.Config("JIT off", run=lambda luajit, name, size: m.run_plain(luajit, name, size, options=["-joff"])),
]


def part_exact(luajit, a):
    """exact counts: CPU ratios of coverage, and of lines, calls and instructions together"""
    ratios.print_means(luajit, a, a.programs, CONFIGS)
