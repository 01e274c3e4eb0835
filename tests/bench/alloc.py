"""Part of the bench for memory: what -e alloc and -e live cost programs that do little but allocate, and one that does not. Used by
bench.py."""
import measure as m
import ratios

CONFIGS = [
    m.Config("unprofiled", run=m.run_plain),
    m.Config("alloc", ["-e", "alloc"]),
    m.Config("live", ["-e", "live"]),
]
PROGRAMS = ["trees", "cdata", "closures", "strings", "json"]


def part_alloc(luajit, a):
    """memory: CPU ratios of sampled allocations, and of following what is live; of nbody, which allocates nothing"""
    ratios.print_means(luajit, a, PROGRAMS, CONFIGS)
    ratios.print_means(luajit, a, ["nbody"], CONFIGS)
