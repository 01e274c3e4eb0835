"""What luasample must leave as it is in the JIT compiler: the number of traces and of aborted ones differs from that of
unrecorded runs by no more than these differ among themselves, and nothing is flushed. Imported by run.py."""
import concurrent.futures
import os
import re
import statistics

import support as s
from support import check

RUNS = 12                       # of each, each with another layout of memory
MORE = {"parser": 30}           # it compiles some 160 traces or 200 to 600, by chance: fewer runs may be all of one kind
SURE = 3.3                      # standard deviations: one comparison in a thousand is as far off by chance
LEAST = 2                       # and so many traces between the medians
PROGRAMS = {"richards": "30", "json": "120", "fannkuch": "3", "life": "1500", "nbody": "400000", "parser": "15",
            "strings": "30", "ring": "15000", "trees": "1"}


def counts(program, seed, opts):
    """traces, aborts and flushes of a run: recorded, or with opts None not."""
    script = os.path.join(s.LUA, "counttraces.lua")
    path = os.path.join(s.TESTS, "bench", "programs", program + ".lua")
    cmd = [s.luajit().program, script, str(seed), path, PROGRAMS[program]]
    r = s.run(cmd).ok() if opts is None else s.record(cmd, "-q", *opts).ok()
    m = re.search(r"^traces (\d+) aborts (\d+) flushes (\d+)$", r.err, re.M)
    check(m, "no counts: %r" % r.err[-300:])
    return tuple(map(int, m.groups()))


def runs(program, opts):
    seeds = [1000 * i + 17 for i in range(1, MORE.get(program, RUNS) + 1)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:         # a run has a processor
        return list(zip(*pool.map(lambda seed: counts(program, seed, opts), seeds)))


def rank_sum(a, b):
    """How far b is above or below a as a whole, in standard deviations (Mann and Whitney's test, with ties)."""
    above = sum((x < y) + 0.5 * (x == y) for x in a for y in b)
    n, m, both = len(a), len(b), list(a) + list(b)
    ties = sum(c ** 3 - c for c in (both.count(v) for v in set(both)))
    deviation = (n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))) ** 0.5
    return abs(above - n * m / 2) / deviation if deviation else 0.0


def differences(plain, recorded):
    """Of traces and aborts: those that differ more than the unrecorded runs do among themselves."""
    wrong = []
    for what, a, b in zip(("traces", "aborts"), plain, recorded):
        if rank_sum(a, b) > SURE and abs(statistics.median(a) - statistics.median(b)) >= LEAST:
            wrong.append("%s %s, recorded %s" % (what, sorted(a), sorted(b)))
    return wrong


def add_to(suite):
    t = suite.test
    unrecorded = {}

    def plain(program):
        if program not in unrecorded:
            unrecorded[program] = runs(program, None)
        return unrecorded[program]

    for leaf in ("map", "root"):
        @t("traces." + leaf, "traces and aborts of the programs of tests/bench: as without us, within the noise")
        def as_without(leaf=leaf):
            wrong = []
            for program in PROGRAMS:
                recorded = runs(program, ["--jit-leaf", leaf])
                wrong += [program + ": " + w for w in differences(plain(program), recorded)]
                if sum(recorded[2]) > sum(plain(program)[2]):
                    wrong.append("%s: flushes %s, without us %s" % (program, recorded[2], plain(program)[2]))
            check(not wrong, "\n".join(wrong))

    @t("traces.check", "the same comparison finds what LuaJIT's checks change: it can fail")
    def control():
        check(differences(plain("nbody"), runs("nbody", ["--engine", "hook"])), "nbody has as many traces with them")

    @t("traces.heap", "LuaJIT's heap lies in one piece, as without us: no page of ours is between two of its own")
    def heap():
        unrecorded = s.run([s.luajit().program, os.path.join(s.LUA, "heappieces.lua")]).ok().out
        check(re.match(r"pieces \d+$", unrecorded), "no pieces: %r" % unrecorded)
        for opts in ([], ["--jit-leaf", "root"], ["--native"]):
            r = s.record_lua("heappieces.lua", "-q", *opts).ok()
            check(r.out == unrecorded, "%s: %r, without us %r" % (opts, r.out, unrecorded))

    @t("traces.flushes", "no flush after the VM was made")
    def flushes():
        for opts in ([], ["--jit-leaf", "root"], ["--native"]):
            r = s.record_lua("flushes.lua", "-q", *opts).ok()
            check(r.out == "flushes 0\n", "%s: %r" % (opts, r.out))
