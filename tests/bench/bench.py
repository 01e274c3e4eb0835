#!/usr/bin/env python3
"""Speed and size: bench.py [--quick] [--rounds N] [--seconds S] [--only PROGRAM,...] [--part PART,...]

Prints the tables of what luasample costs, beside LuaJIT's own profiler and perf, all measured in this run. Parts:
  run     benchmark programs at 1 ms: CPU of the profiled program against the same scope without ticks, in paired
          rounds; median and spread (lowest to highest round)
  size    bytes a sample on disk, the recorder's own CPU
  deep    cost of one sample at 20, 200, 1000 and 10,000 frames
  start   agent start-up and memory
  report  reports on a generated trace of 10 million samples
Never a test: it fails only when something cannot be run. The machine should do nothing else meanwhile."""
import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import support as s

HERE = os.path.dirname(os.path.abspath(__file__))
TIMED = os.path.join(HERE, "timed.lua")
PROGRAMS = ["nbody", "fannkuch", "trees", "richards", "json", "strings", "ring", "life"]
CALIBRATE = {"nbody": 3e5, "fannkuch": 4, "trees": 4, "richards": 20, "json": 100, "strings": 15, "ring": 5000,
             "life": 1000, "parser": 10}


class Measured:
    def __init__(self, cpu, peak, samples=0, info=None):
        self.cpu, self.peak, self.samples, self.info = cpu, peak, samples, info or {}


def program(name):
    return os.path.join(HERE, "programs", name + ".lua")


def quiet(cmd):
    p = subprocess.run(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if p.returncode:
        sys.exit("bench: status %d: %s: %s" % (p.returncode, " ".join(cmd), p.stderr.decode(errors="replace")[-300:]))


def read_used(path):
    with open(path) as f:
        cpu, peak = f.read().split()
    os.remove(path)
    return float(cpu), int(peak)


def run_plain(luajit, name, size, before=(), options=()):
    out = s.tmpfile(".used")
    quiet([*before, luajit, *options, TIMED, out, program(name), str(size)])
    return Measured(*read_used(out))


def run_record(luajit, name, size, *options):
    trace, out = s.tmpfile(".data"), s.tmpfile(".used")
    quiet([s.luasample(), "record", "-q", "-i", "1ms", *options, "-o", trace, "--",
           luajit, TIMED, out, program(name), str(size)])
    i = s.info(trace)
    i["file_size"] = os.path.getsize(trace)
    os.remove(trace)
    return Measured(*read_used(out), i.get("samples") or 0, i)


def run_jp(luajit, name, size):
    text = s.tmpfile(".jp")
    m = run_plain(luajit, name, size, options=["-jp=i1rm0," + text])
    with open(text) as f:
        m.samples = sum(int(n) for n in re.findall(r"^\s*(\d+)", f.read(), re.M))
    os.remove(text)
    return m


def run_perf(luajit, name, size):
    data = s.tmpfile(".perf")
    m = run_plain(luajit, name, size, before=["perf", "record", "-q", "-g", "-F", "1000", "-o", data])
    m.info["file_size"] = os.path.getsize(data)
    os.remove(data)
    return m


CONFIGS = {
    "plain": lambda l, n, z: run_plain(l, n, z),
    "no ticks": lambda l, n, z: run_record(l, n, z, "--no-ticks"),
    "bare tick": lambda l, n, z: run_record(l, n, z, "--bare-tick"),
    "ours": lambda l, n, z: run_record(l, n, z),
    "-jp=i1": run_jp,
    "perf -g": run_perf,
}


def spread(values):
    return "%.3f (%.3f-%.3f)" % (statistics.median(values), min(values), max(values))


def sized_for(luajit, name, seconds):
    size = CALIBRATE[name]
    cpu = min(run_plain(luajit, name, size).cpu for _ in range(2))
    return max(1, int(size * seconds / max(cpu, 0.01)))


def rounds_of(luajit, name, configs, rounds, seconds):
    """{config: [Measured per round]}; the order rotates, so that no config always runs first."""
    size = sized_for(luajit, name, seconds)
    got = {c: [] for c in configs}
    for r in range(rounds):
        order = configs[r % len(configs):] + configs[:r % len(configs)]
        for c in order:
            got[c].append(CONFIGS[c](luajit, name, size))
    return got


def own_ns(i):
    return (i.get("own_handler_ns") or 0) + (i.get("own_hook_ns") or 0)


def part_run(luajit, a):
    configs = list(CONFIGS)
    if subprocess.run(["sh", "-c", "command -v perf"], stdout=subprocess.DEVNULL).returncode:
        configs.remove("perf -g")
    print("CPU of the program as a ratio, %d paired rounds of %g s: median (lowest-highest)" % (a.rounds, a.seconds))
    print("%-10s %-20s %-20s %-20s %-20s %-20s %s" % ("", "no ticks/plain", "bare/no ticks", "ours/no ticks",
                                                      "ours/plain", "-jp=i1/plain", "perf -g/plain"))
    totals = []
    for name in a.programs:
        got = rounds_of(luajit, name, configs, a.rounds, a.seconds)

        def ratio(x, y):
            return [p.cpu / q.cpu for p, q in zip(got[x], got[y])]
        print("%-10s %-20s %-20s %-20s %-20s %-20s %s" % (
            name, spread(ratio("no ticks", "plain")), spread(ratio("bare tick", "no ticks")),
            spread(ratio("ours", "no ticks")), spread(ratio("ours", "plain")), spread(ratio("-jp=i1", "plain")),
            spread(ratio("perf -g", "plain")) if "perf -g" in got else "-"), flush=True)
        totals.append((name, got))
    print()
    print("Per sample and in all (us a sample; own account = the agent's own time as a share of the program's CPU)")
    print("%-10s %8s %8s %10s %10s %14s %14s %12s" % ("", "samples", "rate Hz", "own us", "own acct", "bare tick us",
                                                      "(bare+own)/bare", "-jp=i1 us"))
    for name, got in totals:
        ours, jp = got["ours"], got["-jp=i1"]
        samples = statistics.median(m.samples for m in ours) or 1
        own = statistics.median(own_ns(m.info) for m in ours) / 1e3
        signals = statistics.median(m.info.get("signals") or m.samples for m in got["bare tick"]) or samples
        bare = statistics.median((b.cpu - n.cpu) * 1e6 for b, n in zip(got["bare tick"], got["no ticks"]))
        jp_us = statistics.median((j.cpu - p.cpu) * 1e6 / max(j.samples, 1) for j, p in zip(jp, got["plain"]))
        cpu = statistics.median(m.cpu for m in ours)
        print("%-10s %8d %8.0f %10.2f %9.2f%% %14.2f %14s %12.2f" % (
            name, samples, statistics.median((m.info.get("achieved_rate_hz") or 0) for m in ours), own / samples,
            own / cpu / 1e4, bare / signals, "%.2f" % ((bare + own) / bare) if bare > 0 else "bare tick < noise", jp_us))
    print()


def part_size(luajit, a):
    seconds = 10 if not a.quick else 3
    print("Trace of a %d s run: bytes a sample, and the recorder's own CPU as a share of the program's" % seconds)
    for name in a.programs + ["parser"]:
        m = run_record(luajit, name, sized_for(luajit, name, seconds))
        i = m.info
        print("%-10s samples %7d  bytes %8d  %.2f bytes/sample  recorder %.2f %%  lost %s" % (
            name, m.samples, i["file_size"], i["file_size"] / max(m.samples, 1),
            100.0 * (i.get("recorder_cpu_ns") or 0) / 1e9 / m.cpu,
            {k: v for k, v in i["lost"].items() if v and k != "kernel-delayed"} or "nothing"), flush=True)
    print()


def part_deep(luajit, a):
    print("Cost of a sample by depth (hook and ring, as the agent accounts for it)")
    script = os.path.join(s.LUA, "stacks.lua")
    base = None
    for depth in (20, 200, 1000, 10000):
        trace = s.tmpfile(".data")
        quiet([s.luasample(), "record", "-q", "-i", "1ms", "-o", trace, "--", luajit, script, str(depth),
               "1" if a.quick else "3"])
        i = s.info(trace)
        per = (i.get("own_hook_ns") or 0) / max(i["samples"], 1)
        base = per if base is None else base
        print("%6d frames  %9.0f ns a sample  %7.2f ns a frame  %.2f %% of CPU  %.2f bytes/sample" % (
            depth, per, per / depth, 100.0 * own_ns(i) / max(i.get("process_cpu_ns") or i["cpu_ns"], 1),
            os.path.getsize(trace) / max(i["samples"], 1)), flush=True)
    print()


def part_start(luajit, a):
    print("Start-up and memory")
    empty = s.tmpfile(".lua")
    open(empty, "w").close()
    cpus, plains, starts, peaks, plain_peaks = [], [], [], [], []
    for _ in range(7 if a.quick else 15):
        out, out2, trace = s.tmpfile(".used"), s.tmpfile(".used"), s.tmpfile(".data")
        quiet([luajit, TIMED, out, empty])
        quiet([s.luasample(), "record", "-q", "-o", trace, "--", luajit, TIMED, out2, empty])
        plain, recorded = read_used(out), read_used(out2)
        plains.append(plain[0] * 1e3)
        cpus.append(recorded[0] * 1e3)
        starts.append((s.info(trace).get("own_start_ns") or 0) / 1e6)
    for _ in range(3):
        plain_peaks.append(run_plain(luajit, "json", 30).peak)
        peaks.append(run_record(luajit, "json", 30).peak)
    print("agent start-up (own account) %.2f ms; empty program: CPU %.2f ms plain, %.2f ms recorded" % (
        statistics.median(starts), statistics.median(plains), statistics.median(cpus)))
    print("program memory: peak %d KiB plain, %d KiB recorded, +%.2f MiB" % (
        statistics.median(plain_peaks), statistics.median(peaks),
        (statistics.median(peaks) - statistics.median(plain_peaks)) / 1024))
    print()


def timed_report(trace, *args):
    start = time.monotonic()
    p = subprocess.Popen([s.luasample(), "report", "-i", trace, *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(p.pid, 0)
    wall = time.monotonic() - start
    err = p.stderr.read().decode(errors="replace")
    if status:
        return "status %d: %s" % (status, err[-100:])
    return "%.2f s  %d MiB" % (wall, usage.ru_maxrss / 1024)


def part_report(luajit, a):
    gen = os.path.join(s.build_dir(), "tests", "gen", "gen_trace")
    if not os.path.exists(gen):
        print("report: %s is not built: part left out\n" % gen)
        return
    trace = s.tmpfile(".data")
    samples = 1000000 if a.quick else 10000000
    quiet([gen, "-o", trace, "--samples", str(samples)])
    print("Reports on a generated trace: %d samples, %.1f MiB, %.2f bytes/sample (time, peak memory)" % (
        samples, os.path.getsize(trace) / 2 ** 20, os.path.getsize(trace) / samples))
    for view in (["--by", "function"], ["--by", "line"], ["--split"], ["--tree"], ["--annotate"],
                 ["--format", "callgrind"], ["--format", "collapsed"], ["--json"]):
        print("  %-24s %s" % (" ".join(view), timed_report(trace, *view)), flush=True)
    print()


PARTS = {"run": part_run, "size": part_size, "deep": part_deep, "start": part_start, "report": part_report}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--quick", action="store_true", help="few and short rounds: shows that it works, not the figures")
    p.add_argument("--rounds", type=int, default=0, help="paired rounds (default 7, quick 2)")
    p.add_argument("--seconds", type=float, default=0, help="CPU seconds of each run (default 2, quick 0.5)")
    p.add_argument("--only", default=",".join(PROGRAMS), help="programs")
    p.add_argument("--part", default=",".join(PARTS), help="parts")
    p.add_argument("--luajit", default="debian", help="name from scripts/luajit-trees")
    a = p.parse_args()
    a.rounds = a.rounds or (2 if a.quick else 7)
    a.seconds = a.seconds or (0.5 if a.quick else 2)
    a.programs = a.only.split(",")
    lj = s.luajit(a.luajit)
    os.environ.update(lj.env)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print("%s, %s, load %.2f" % (os.uname().release, lj.program, os.getloadavg()[0]))
    for part in a.part.split(","):
        PARTS[part](lj.program, a)
    s.finish_tmp()


main()
