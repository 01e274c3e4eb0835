"""Part of the bench for exact counts: what -e coverage, branches and all of them cost, beside what else counts lines: hooks that do
nothing, luacov, LuaJIT's own profiler. Used by bench.py."""
import os
import re

import measure as m
import ratios
import support as s

ALL = "lines,calls,instructions"
MODULE = os.path.join(s.build_dir(), "tests", "exact")
LUACOV = os.path.join(os.environ.get("LUASAMPLE_TEST_CACHE",
                                     os.path.expanduser("~/.cache/luasample-tests")), "luacov", "src")
MOST_BYTES = 24                 # of memory for each bytecode that is executed


def lua(text):
    """A run with this done first; its luacov.stats.out lies in the tests' directory."""
    return lambda luajit, name, size: m.run_plain(luajit, name, size, options=["-e", text])


CONFIGS = [
    m.Config("unprofiled", run=m.run_plain),
    m.Config("coverage", ["-e", "coverage"]),
    m.Config("branches", ["-e", "branches"]),
    m.Config("all counts", ["-e", ALL]),
    m.Config("JIT off", run=lambda luajit, name, size: m.run_plain(luajit, name, size, options=["-joff"])),
    m.Config("-jp=i1", run=m.run_jp),
]
HOOKS = [
    m.Config("C line hook", run=lua("package.cpath = %r require('exacttruth').nothing()" % (MODULE + "/?.so"))),
    m.Config("Lua line hook", run=lua("debug.sethook(function() end, 'l')")),
]
WITH_LUACOV = m.Config("luacov", run=lua(
    "package.path = %r .. package.path jit.off() require('luacov.runner')({ statsfile = %r })" %
    (LUACOV + "/?.lua;", os.path.join(s.tmpdir(), "luacov.stats.out"))))


def memory(luajit, name, size):
    """Bytes of the counts' memory for each bytecode that was executed."""
    counts, out = s.tmpfile(".memory"), s.tmpfile(".counts")
    m.quiet(["env", "LUA_CPATH=" + MODULE + "/?.so", luajit,
             os.path.join(s.TESTS, "exact", "count.lua"), "exact=" + counts, out,
             m.program(name), str(size)])
    with open(out) as f:
        executed = len(re.findall(r"^(?!#).*(?<! calls \S) [1-9]\d*$", f.read(), re.M))
    return os.stat(counts).st_blocks * 512, executed


def part_exact(luajit, a):
    """exact counts: CPU ratios of coverage, branches, and of lines, calls and instructions together, beside hooks, luacov and -jp"""
    configs = list(CONFIGS)
    if os.path.exists(os.path.join(MODULE, "exacttruth.so")):
        configs += HOOKS
    else:
        print("no hooks: exacttruth.so is not built")
    if os.path.isdir(LUACOV):
        configs.append(WITH_LUACOV)
    else:
        print("no luacov in " + LUACOV)
    ratios.print_means(luajit, a, a.programs, configs)
    if len(configs) > len(CONFIGS) + 1:
        print("Memory of the counts: bytes, bytecodes that were executed")
        for name in a.programs:
            used, executed = memory(luajit, name, m.sized_for(luajit, name, a.seconds))
            print("  %-10s %8d %6d: %6.1f a bytecode (%d at most)" % (name, used, executed,
                                                                      used / executed, MOST_BYTES))
