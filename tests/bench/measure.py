"""Runs of the bench: a program once under each way to profile it, and what the run used. Used by bench.py and its parts
(ratios.py, costs.py, exports.py). A run that fails ends the bench with one line; a figure never does."""
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import support as s

HERE = os.path.dirname(os.path.abspath(__file__))
TIMED = os.path.join(HERE, "timed.lua")
PROGRAMS = ["nbody", "fannkuch", "trees", "richards", "json", "strings", "ring", "life"]
# Argument of each program for a run of some tenths of a second: where sized_for() begins.
CALIBRATE = {"nbody": 3e5, "fannkuch": 4, "trees": 4, "richards": 20, "json": 100, "strings": 15, "ring": 5000,
             "life": 1000, "parser": 10, "steady": 1e7, "cdata": 1e6, "closures": 1e5}

# What the issues ask for. Ratios are plain, times in us or ms, shares in percent.
TARGETS = {
    "tick": 1.2,                # (bare tick + own account) / bare tick at 1 ms, no native stacks
    "tick hook": 1.5,           # of engine hook
    "own": 0.5,                 # own account, % of the program's CPU: at 1 ms
    "own hook": 1.0,            # of engine hook
    "own native": 1.5,          # with native stacks
    "own 100us": 5.0,           # at 100 us
    "ratio": 1.03,              # CPU against the same without ticks, at 1 ms
    "sample 200": 10.0,         # us in the handler for a stack of 200 frames
    "bytes": 2.0,               # a sample on disk
    "bytes deep": 6.0,          # of deep and various stacks: the parser
    "recorder": 1.0,            # the recorder's own CPU, % of a core
    "start": 5.0,               # ms
    "coverage": 1.05,           # CPU with the executed lines counted / without, geometric mean
    "all counts": 1.15,         # with lines, calls and instructions
    "alloc": 1.05,              # CPU with allocations sampled / without, geometric mean
    "live": 1.10,               # and those that are not freed followed
    "memory": 4.0,              # MiB more in the program
}


class Measured:
    """One run: CPU seconds and peak KiB of the program, samples taken, `luasample info` of the trace."""
    def __init__(self, cpu, peak, samples=0, info=None):
        self.cpu, self.peak, self.samples, self.info = cpu, peak, samples, info or {}

    def signals(self):
        return self.info.get("signals") or 0

    def own_us(self):
        return ((self.info.get("own_handler_ns") or 0) + (self.info.get("own_hook_ns") or 0)) / 1e3

    def own_percent(self):
        return self.own_us() / self.cpu / 1e4

    def lost_percent(self):
        ticks = self.info.get("ticks") or 0
        return 100.0 * (self.info.get("lost_ticks") or 0) / ticks if ticks else 0.0


def program(name):
    return os.path.join(HERE, "programs", name + ".lua")


def quiet(cmd):
    """Runs a command, the end of the bench when it fails. Returns its stderr."""
    p = subprocess.run(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    err = p.stderr.decode(errors="replace")
    if p.returncode:
        sys.exit("bench: status %d: %s: %s" % (p.returncode, " ".join(cmd), err[-300:]))
    return err


def read_used(path):
    with open(path) as f:
        cpu, peak = f.read().split()
    os.remove(path)
    return float(cpu), int(peak)


def trace_info(trace):
    """What `luasample info` says of a trace, which is removed."""
    i = s.info(trace)
    i["file_size"] = os.path.getsize(trace)
    os.remove(trace)
    return i


def run_plain(luajit, name, size, before=(), options=()):
    out = s.tmpfile(".used")
    quiet([*before, luajit, *options, TIMED, out, program(name), str(size)])
    return Measured(*read_used(out))


def run_record(luajit, name, size, options=(), interval="1ms"):
    trace, out = s.tmpfile(".data"), s.tmpfile(".used")
    quiet([s.luasample(), "record", "-q", "-i", interval, *options, "-o", trace, "--",
           luajit, TIMED, out, program(name), str(size)])
    i = trace_info(trace)
    return Measured(*read_used(out), i.get("samples") or 0, i)


def run_jp(luajit, name, size):
    text = s.tmpfile(".jp")
    m = run_plain(luajit, name, size, options=["-jp=i1rm0," + text])
    with open(text) as f:
        m.samples = sum(int(n) for n in re.findall(r"^\s*(\d+)", f.read(), re.M))
    os.remove(text)
    return m


def run_perf(luajit, name, size, hz):
    data = s.tmpfile(".perf")
    m = run_plain(luajit, name, size, before=["perf", "record", "-q", "-B", "-N", "-g", "-F", str(hz), "-o", data])
    m.info["file_size"] = os.path.getsize(data)
    os.remove(data)
    return m


class Config:
    """A way to run a program. options: of record, None for what is not luasample. base: the config that differs from
    this one by the ticks alone; bare: the one whose ticks are bare; own, tick: targets (TARGETS) of its own account and
    of a tick beside a bare one; engine: what the VM must have been recorded with."""
    def __init__(self, name, options=None, interval="1ms", base=None, bare=None, own=None, tick=None, engine=None,
                 run=None):
        self.name, self.options, self.interval, self.base, self.bare = name, options, interval, base, bare
        self.own, self.tick, self.engine, self.other = own, tick, engine, run

    def run(self, luajit, program_name, size):
        if self.other:
            return self.other(luajit, program_name, size)
        return run_record(luajit, program_name, size, self.options, self.interval)

    def unlike(self, runs):
        """A note when the VM was not recorded as this config asks, such as a fall-back to the hook."""
        got = {m.info.get("engine") for m in runs if m.samples} if self.engine else set()
        return "" if got <= {self.engine} else "engine was " + ", ".join(sorted(str(g) for g in got))


# Native stacks are named in each, so that the table says the same whatever record's default is.
WALK = ["--no-native", "--engine", "walk"]
HOOK = ["--no-native", "--engine", "hook"]

CONFIGS = [
    Config("unprofiled", run=run_plain),
    Config("no ticks", WALK + ["--no-ticks"]),
    Config("bare tick", WALK + ["--bare-tick"], base="no ticks"),
    Config("walk map", WALK, base="no ticks", bare="bare tick", own="own", tick="tick", engine="walk"),
    Config("walk root", WALK + ["--jit-leaf", "root"], base="no ticks", bare="bare tick", own="own", tick="tick",
           engine="walk"),
    Config("walk native", ["--engine", "walk", "--native"], base="no ticks", bare="bare tick", own="own native",
           engine="walk"),
    Config("hook no ticks", HOOK + ["--no-ticks"]),
    Config("hook", HOOK, base="hook no ticks", bare="bare tick", own="own hook", tick="tick hook", engine="hook"),
    Config("-jp=i1", run=run_jp),
    Config("perf -g", run=lambda l, n, z: run_perf(l, n, z, 1000)),
    Config("bare 100us", WALK + ["--bare-tick"], "100us", base="no ticks"),
    Config("map 100us", WALK, "100us", base="no ticks", bare="bare 100us", own="own 100us", engine="walk"),
    Config("native 100us", ["--engine", "walk", "--native"], "100us", base="no ticks", bare="bare 100us",
           own="own 100us", engine="walk"),
    Config("hook 100us", HOOK, "100us", base="hook no ticks", bare="bare 100us", own="own 100us", engine="hook"),
    Config("perf 100us", run=lambda l, n, z: run_perf(l, n, z, 10000)),
]


def configs(names=None):
    """The named configs and those that they are compared with, in the table's order; perf's only when it is there."""
    by_name = {c.name: c for c in CONFIGS}
    wanted = {"unprofiled"}
    for n in names or by_name:
        if n not in by_name:
            sys.exit("bench: --config %s: give some of %s" % (n, ", ".join(by_name)))
        wanted |= {n, by_name[n].base, by_name[n].bare}
        if by_name[n].bare:
            wanted.add(by_name[by_name[n].bare].base)
    got = [c for c in CONFIGS if c.name in wanted]
    if not shutil.which("perf"):
        print("perf is not installed: its rows are left out")
        got = [c for c in got if not c.name.startswith("perf")]
    return got


_sizes = {}


def sized_for(luajit, name, seconds):
    """The program's argument for a run of so many CPU seconds, found by two runs of it."""
    if (luajit, name) not in _sizes:
        size, cpu = CALIBRATE[name], 0.0
        for _ in range(4):                      # until its start no longer matters
            cpu = min(run_plain(luajit, name, size).cpu for _ in range(2))
            if cpu > 0.1:
                break
            size *= 4
        _sizes[luajit, name] = size / max(cpu, 0.01)
    return max(1, int(_sizes[luajit, name] * seconds))


# Figures and their text.

def spread(values, form="%.3f"):
    """median (lowest-highest)"""
    return (form + " (" + form + "-" + form + ")") % (statistics.median(values), min(values), max(values))


def middle(values, form="%.2f"):
    """median [quartiles]: for many values with wild ones among them"""
    if len(values) < 4:
        return spread(values, form)
    q = statistics.quantiles(values, n=4)
    return (form + " [" + form + " " + form + "]") % (statistics.median(values), q[0], q[2])


def verdict(value, target):
    """The figure's place against its target, as each table prints it: never more than a word."""
    return "%s (target %g)" % ("ok" if value <= TARGETS[target] else "above", TARGETS[target])


def machine(luajit):
    """The line that each table stands under: figures of a busy machine are not to be quoted."""
    return "%s, %d CPUs, %s, load %s" % (os.uname().release, os.cpu_count(), luajit, " ".join(
        "%.2f" % l for l in os.getloadavg()))


def no_cores():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
