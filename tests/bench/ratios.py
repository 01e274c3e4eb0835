"""Parts of the bench that run the benchmark programs in paired rounds under each config of measure.py: what profiling
costs, and whether it changes what the JIT compiler does. Used by bench.py."""
import math
import os
import re
import statistics

import measure as m
import support as s

TRACES = os.path.join(m.HERE, "traces.lua")


def rounds_of(luajit, name, configs, rounds, seconds):
    """{config name: [Measured per round]}; the order rotates, so that no config always runs first."""
    size = m.sized_for(luajit, name, seconds)
    got = {c.name: [] for c in configs}
    for r in range(rounds):
        for c in configs[r % len(configs):] + configs[:r % len(configs)]:
            got[c.name].append(c.run(luajit, name, size))
    return got


def ratios(got, name, base):
    return [p.cpu / q.cpu for p, q in zip(got[name], got[base])]


def geometric(values):
    return math.exp(statistics.mean(math.log(v) for v in values))


def print_means(luajit, a, programs, configs):
    """A line a program, and the mean of them, with the target where TARGETS has one of the config's name."""
    print("CPU of the program, %d paired rounds of %g s: ratio to the unprofiled run; median (lowest-highest)" % (a.rounds, a.seconds))
    medians = {c.name: [] for c in configs[1:]}
    for name in programs:
        got = rounds_of(luajit, name, configs, a.rounds, a.seconds)
        line = "  %-10s" % name
        for c in configs[1:]:
            ratio = ratios(got, c.name, "unprofiled")
            medians[c.name].append((statistics.median(ratio), name))
            line += " %s %-22s" % (c.name, m.spread(ratio))
        print(line, flush=True)
    for c in configs[1:]:
        mean = geometric(v for v, _ in medians[c.name])
        print("  %-12s geometric mean %.3f %s, dearest %.3f %s" % (c.name, mean, m.verdict(mean, c.name) if c.name in m.TARGETS else "",
                                                                *max(medians[c.name])))
    print()


def tick_costs(got, config):
    """us a tick of a config with bare ticks, from each pair: what the run used more than the same without ticks."""
    return [(b.cpu - n.cpu) * 1e6 / max(b.signals(), 1) for b, n in zip(got[config.name], got[config.base])]


def own_per_tick(runs):
    return statistics.median(r.own_us() / max(r.signals(), 1) for r in runs)


def sample_costs(got, name):
    """us a sample taken, all that the profiler added to the program; none for perf, whose samples are not counted."""
    return [(p.cpu - q.cpu) * 1e6 / p.samples for p, q in zip(got[name], got["unprofiled"]) if p.samples]


def print_program(name, got, configs):
    print("%s (%.2f s of CPU unprofiled)" % (name, statistics.median(r.cpu for r in got["unprofiled"])))
    for c in configs[1:]:
        runs = got[c.name]
        line = "  %-14s %-21s %-21s" % (c.name, m.spread(ratios(got, c.name, "unprofiled")),
                                       m.spread(ratios(got, c.name, c.base)) if c.base else "")
        if c.own:
            own = [r.own_percent() for r in runs]
            line += " own %-22s %-6s %6.2f us/tick, lost %.1f %%" % (
                m.spread(own, "%.2f") + " %", "ok" if statistics.median(own) <= m.TARGETS[c.own] else "above",
                own_per_tick(runs), statistics.median(r.lost_percent() for r in runs))
        elif c.base:
            line += " %s us/tick" % m.spread(tick_costs(got, c), "%.1f")
        elif c.name == "-jp=i1":
            line += " %d samples/s" % statistics.median(r.samples / r.cpu for r in runs)
        print("%s  %s" % (line, c.unlike(runs)) if c.unlike(runs) else line, flush=True)


def print_ratios(all_of, configs):
    """One line a config: its ratio in the middle program and in the dearest."""
    print("All %d programs: median of each program's rounds; middle program, dearest program; us a sample taken"
          % len(all_of))
    print("  %-14s %-24s %-42s %s" % ("", "CPU/unprofiled", "CPU/the same without ticks",
                                      "us a sample, median [quartiles]"))
    medians = {}
    for c in configs[1:]:
        def per_program(base):
            return sorted((statistics.median(ratios(got, c.name, base)), name) for name, got in all_of)
        whole, ticks = per_program("unprofiled"), per_program(c.base) if c.base else []
        costs = [x for _, got in all_of for x in sample_costs(got, c.name)]
        line = "  %-14s %.3f, %-17s" % (c.name, statistics.median(x for x, _ in whole), "%.3f %s" % whole[-1])
        text = ""
        if ticks:
            mid = statistics.median(x for x, _ in ticks)
            text = "%.3f, %s" % (mid, "%.3f %s" % ticks[-1])
            if c.own and c.interval == "1ms":
                text += " " + m.verdict(mid, "ratio")
        medians[c.name] = statistics.median(costs) if costs else None
        print(line + " %-42s" % text + (m.middle(costs, "%.1f") if costs else "-"))
    ours, jp = medians.get("walk map"), medians.get("-jp=i1")
    if ours is not None and jp is not None:
        print("  walk map %.1f us a sample, -jp=i1 %.1f: %s (target: not more)" % (
            ours, jp, "ok" if ours <= jp else "above"))
    print()


def tick_ratio(bare, own):
    return "%.2f" % ((bare + own) / bare) if bare > 0 else "below noise"


def bare_ticks(all_of, steady, configs):
    """{config with bare ticks: [(where they were measured, us a tick of each pair)]}"""
    by_name = {c.name: c for c in configs}
    return {name: [("the programs", [x for _, got in all_of for x in tick_costs(got, by_name[name])]),
                   ("a steady loop", tick_costs(steady, by_name[name]))]
            for name in sorted({c.bare for c in configs if c.bare})}


def print_ticks(all_of, steady, configs):
    """The cost of a tick beside the cost of a bare one, both terms. The bare tick comes from the pairs of all programs,
    whose runs differ by more than their ticks cost: the lower quartile says what that does to the ratio, and pairs of a
    loop that differ little are a second opinion."""
    bares = bare_ticks(all_of, steady, configs)
    print("A bare tick, us, from the paired runs: median [quartiles] of all pairs")
    for name, measured in bares.items():
        print("  %-14s %s" % (name, "; ".join("%s: %s" % (where, m.middle(pairs)) for where, pairs in measured)))
    print("A tick: (bare + own account) / bare, of the middle program, of the dearest, with the lower quartile of bare")
    for c in configs:
        if not c.bare:
            continue
        own = statistics.median(own_per_tick(got[c.name]) for _, got in all_of)
        dearest, where_dearest = max((own_per_tick(got[c.name]), name) for name, got in all_of)
        print("  %-14s own %.2f us, dearest %.2f %s" % (c.name, own, dearest, where_dearest))
        for where, pairs in bares[c.bare]:
            bare, low = statistics.median(pairs), statistics.quantiles(pairs, n=4)[0] if len(pairs) > 1 else pairs[0]
            said = m.verdict((bare + own) / bare, c.tick) if c.tick and bare > 0 else ""
            print("  %-14s + bare of %-14s %6.2f: ratio %-5s %-19s dearest %s; lower quartile %s" % (
                "", where, bare, tick_ratio(bare, own), said, tick_ratio(bare, dearest), tick_ratio(low, own)))
    print()


def print_own(all_of, configs):
    print("Own account, % of the program's CPU (names and definitions of its start included; part size has long runs)")
    for c in configs:
        if not c.own:
            continue
        shares = sorted((statistics.median(r.own_percent() for r in got[c.name]), name) for name, got in all_of)
        above = [name for x, name in shares if x > m.TARGETS[c.own]]
        print("  %-14s middle program %.2f, dearest %.2f %-9s %s%s" % (
            c.name, statistics.median(x for x, _ in shares), *shares[-1], m.verdict(shares[-1][0], c.own),
            ": " + ", ".join(above) if above else ""))
    print()


def part_run(luajit, a):
    """benchmark programs at 1 ms and 100 us beside -jp and perf: CPU ratios, cost of a tick, own account"""
    configs = m.configs(a.configs)
    print("CPU of the program, %d paired rounds of %g s: ratio to the unprofiled run, ratio to the same without ticks; "
          "median (lowest-highest)" % (a.rounds, a.seconds))
    all_of = []
    for name in a.programs:
        got = rounds_of(luajit, name, configs, a.rounds, a.seconds)
        print_program(name, got, configs)
        all_of.append((name, got))
    bare = [c for c in configs if c.name == "no ticks" or c.base and not c.own]
    steady = rounds_of(luajit, "steady", bare, 2 * a.rounds, a.seconds) if bare else {}
    timers = {r.info.get("timer") for _, got in all_of for runs in got.values() for r in runs} - {None}
    print("timer: %s; load %.2f\n" % (", ".join(sorted(timers)), os.getloadavg()[0]))
    print_ratios(all_of, configs)
    print_ticks(all_of, steady, configs)
    print_own(all_of, configs)


# What the JIT compiler does, with and without. The counts depend on where the program's objects lie, so the noise from
# run to run shows only when they are moved ("moved": by some more in each run).
MOVED = "moved"
TRACE_CONFIGS = [("unprofiled", None), (MOVED, None), ("walk map", m.WALK),
                 ("walk root", m.WALK + ["--jit-leaf", "root"]), ("hook", m.HOOK)]
FIELDS = ["start", "stop", "abort", "flush", "live"]


def run_traces(luajit, name, size, options, handler, moved):
    """Counts of one run: {field: number}. handler: count events by jit.attach, else only live traces at the end. moved:
    objects made before the program's."""
    out, trace = s.tmpfile(".traces"), s.tmpfile(".data")
    before = [] if options is None else [s.luasample(), "record", "-q", *options, "-o", trace, "--"]
    m.quiet([*before, luajit, TRACES, out, "events" if handler else "end", str(moved), m.program(name), str(size)])
    with open(out) as f:
        text = f.read()
    os.remove(out)
    if options is not None:
        os.remove(trace)
    return {k: int(v) for k, v in re.findall(r"(\w+) (\d+)", text)}


def print_traces(name, counts, fields):
    for config, runs in counts.items():
        print("  %-10s %-12s %s" % (name, config, "  ".join(
            "%-5s %-16s" % (f, m.spread([r[f] for r in runs], "%d")) for f in fields)), flush=True)
        name = ""


def part_traces(luajit, a):
    """traces, aborts and flushes of a program with and without (tests check it; here it is shown)"""
    print("Traces of %d runs each: median (lowest-highest). Counted by a handler of the program (jit.attach).\n"
          "moved: unprofiled, with some objects made before the program's, more in each run" % a.runs)
    live = []
    for name in a.programs:
        size = m.sized_for(luajit, name, a.seconds * 0.4)
        counted = {c: [] for c, _ in TRACE_CONFIGS}
        ends = {c: [] for c, options in TRACE_CONFIGS[:4]}
        for r in range(a.runs):
            for c, options in TRACE_CONFIGS:
                moved = 7 * r + 1 if c == MOVED else 0
                counted[c].append(run_traces(luajit, name, size, options, True, moved))
                if c in ends:
                    ends[c].append(run_traces(luajit, name, size, options, False, moved))
        print_traces(name, counted, FIELDS)
        live.append((name, ends))
    print("Live traces at the end of runs in which the program has no handler")
    for name, ends in live:
        print("  %-10s %s" % (name, "  ".join("%s %-16s" % (c, m.spread([r["live"] for r in runs], "%d"))
                                               for c, runs in ends.items())))
    print()
