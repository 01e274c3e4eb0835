"""Parts of the bench that need no pairs, since each figure is counted by luasample itself or stands alone: one sample
by depth of its stack, the agent's start, memory, size of the trace, the recorder's CPU, reports. Used by bench.py."""
import os
import statistics
import subprocess
import sys
import time

import measure as m
import support as s

STEADY = os.path.join(s.LUA, "stacks.lua")
CHANGING = os.path.join(m.HERE, "newstacks.lua")
DEPTHS = (20, 200, 1000, 10000)
# (name, options of record, script): how stacks differ from sample to sample, and what is read of them.
DEEP = [
    ("same stack", m.WALK, STEADY),
    ("new stacks", m.WALK, CHANGING),
    ("same, native", ["--engine", "walk", "--native"], STEADY),
    ("same, hook", m.HOOK, STEADY),
]


def record_deep(luajit, lua_options, options, script, depth, seconds):
    """`luasample info` of a recording of a script that works at a depth."""
    trace = s.tmpfile(".data")
    m.quiet([s.luasample(), "record", "-q", "-i", "1ms", *options, "-o", trace, "--", luajit, *lua_options, script,
             str(depth), str(seconds)])
    return m.trace_info(trace)


def print_depth(depth, name, i):
    signals, samples = max(i.get("signals") or 0, 1), max(i.get("samples") or 0, 1)
    handler, hook = (i.get("own_handler_ns") or 0) / 1e3, (i.get("own_hook_ns") or 0) / 1e3
    us = handler / samples              # ticks that took no sample cost next to nothing: they would flatter the figure
    lost = {k: v for k, v in i["lost"].items() if v and k in ("busy", "middle-cut", "bad-stack", "ring-full")}
    said = m.verdict(us, "sample 200") if depth == 200 and i.get("engine") == "walk" else ""
    print("  %6d frames  %-13s handler %7.2f us/tick %7.2f us/sample %6.1f ns/frame  hook %7.2f us/sample  own %5.2f %%"
          "  %6.2f bytes/sample  %s %s" % (
              depth, name, handler / signals, us, us * 1e3 / depth, hook / samples,
              (handler + hook) * 1e5 / max(i.get("process_cpu_ns") or i["cpu_ns"], 1), i["file_size"] / samples, said,
              " ".join("%s %d" % kv for kv in lost.items())), flush=True)


def part_deep(luajit, a):
    """cost of one sample at 20, 200, 1000 and 10,000 frames, interpreted and compiled"""
    seconds = a.seconds * 2
    print("Cost of a sample by depth, %g s each: time in the handler (own_handler_ns) by ticks and by samples, and in "
          "the VM's hook.\n"
          "same stack: the deep part stays from sample to sample; new stacks: each differs from the root on" % seconds)
    for mode, lua_options in (("interpreted", ["-joff"]), ("compiled", [])):
        print(mode)
        for name, options, script in DEEP:
            for depth in DEPTHS:
                i = record_deep(luajit, lua_options, options, script, depth, seconds)
                print_depth(depth, name, i)
                for notice in i.get("notices") or []:
                    print("         notice: %s" % notice)
    print("load %.2f\n" % os.getloadavg()[0])


# Start and memory.

START_CONFIGS = [("map", m.WALK), ("native", ["--engine", "walk", "--native"]), ("hook", m.HOOK)]


def starts(luajit, empty, options, n):
    """Of n starts, in ms: (the agent's own account, CPU of the recorded empty program less that of the plain one)."""
    own, cpus = [], []
    for _ in range(n):
        plain, recorded, trace = s.tmpfile(".used"), s.tmpfile(".used"), s.tmpfile(".data")
        m.quiet([luajit, m.TIMED, plain, empty])
        m.quiet([s.luasample(), "record", "-q", *options, "-o", trace, "--", luajit, m.TIMED, recorded, empty])
        cpus.append((m.read_used(recorded)[0] - m.read_used(plain)[0]) * 1e3)
        own.append((m.trace_info(trace).get("own_start_ns") or 0) / 1e6)
    return own, cpus


def part_start(luajit, a):
    """agent start-up and memory of the program"""
    empty = s.tmpfile(".lua")
    open(empty, "w").close()
    n = 15 if a.quick else 50
    print("Agent start-up (wall time of its own account) and CPU that an empty program uses more, ms, %d starts" % n)
    for name, options in START_CONFIGS:
        own, cpus = starts(luajit, empty, options, n)
        least, mid = min(own), statistics.median(own)
        print("  %-8s start: minimum %.2f %s, median %.2f %s, most %.2f; CPU: %s" % (
            name, least, m.verdict(least, "start"), mid, m.verdict(mid, "start"), max(own), m.middle(cpus)), flush=True)
    print("Memory of the program: peak resident size, KiB (rings included, as far as they were used)")
    for name in ("json", "parser"):
        size = m.sized_for(luajit, name, a.seconds)
        plain = statistics.median(m.run_plain(luajit, name, size).peak for _ in range(3))
        for config, options in START_CONFIGS:
            peak = statistics.median(m.run_record(luajit, name, size, options).peak for _ in range(3))
            more = (peak - plain) / 1024
            print("  %-8s %-8s %d plain, %d recorded: +%.2f MiB %s" % (name, config, plain, peak, more,
                                                                     m.verdict(more, "memory")), flush=True)
    print()


def watch_worker(pid, role):
    """Peak memory in KiB and CPU time in ms of the worker with that role of a recorder that runs, until it ends; and how long
    after the recorder's start it was there, ms."""
    began, found, peak, cpu, came = time.monotonic(), None, 0, 0.0, 0.0
    while os.path.exists("/proc/%d/cwd" % pid) and time.monotonic() - began < 60:
        try:
            for child in [found] if found else s.children_of(pid):
                with open("/proc/%d/cmdline" % child, encoding="utf-8") as f:
                    if not f.read().startswith("luasample-worker\0" + role):
                        continue
                found, came = child, came or (time.monotonic() - began) * 1e3
                with open("/proc/%d/status" % child, encoding="utf-8") as f:
                    peak = max([peak] + [int(l.split()[1]) for l in f if l.startswith("VmHWM")])
                with open("/proc/%d/schedstat" % child, encoding="utf-8") as f:
                    cpu = int(f.read().split()[0]) / 1e6
        except (OSError, ValueError, IndexError):
            if found:
                break
        time.sleep(0.002)
    return peak, cpu, came


def part_worker(luajit, a):
    """workers, which read files and memory with the program's rights: when they come, memory, CPU; and stack PID"""
    program = os.path.join(m.HERE, "programs", "json.lua")
    for role, options in (("files", ["--native"]), ("watch", ["-e", "cpu,wall"])):
        rows = []
        for _ in range(2 if a.quick else 5):
            trace = s.tmpfile(".data")
            p = subprocess.Popen([s.luasample(), "record", "-q", "-i", "1ms", *options, "-o", trace, "--", luajit, program,
                                  str(m.sized_for(luajit, "json", a.seconds * 2))], stdout=subprocess.DEVNULL)
            peak, cpu, came = watch_worker(p.pid, role)
            p.wait()
            i = m.trace_info(trace)
            rows.append((came, peak / 1024, cpu, i["recorder_cpu_ns"] / 1e6, i["samples"]))
        came, peak, cpu, recorder, samples = (statistics.median(r[k] for r in rows) for k in range(5))
        print("  %-6s there after %6.1f ms  peak %5.1f MiB  CPU %6.2f ms  (recorder with it %6.2f ms, %d samples)"
              % (role, came, peak, cpu, recorder, samples), flush=True)
    p = subprocess.Popen([luajit, "-e", "while true do end"])
    times = []
    for _ in range(3 if a.quick else 15):
        began = time.monotonic()
        m.quiet([s.luasample(), "stack", str(p.pid)])
        times.append((time.monotonic() - began) * 1e3)
    p.kill()
    p.wait()
    print("  stack PID: %.0f ms at the median, %.0f at most\n" % (statistics.median(times), max(times)))


# The trace, and the commands that write and read it.

# (name, options of record, programs or None for all, target of the own account)
SIZES = [("walk map", m.WALK, None, "own"),
         ("walk native", ["--engine", "walk", "--native"], ["json", "parser"], "own native"),
         ("hook", m.HOOK, None, "own hook")]


def print_size(name, config, own_target, run):
    i = run.info
    per = i["file_size"] / max(run.samples, 1)
    recorder = 100.0 * (i.get("recorder_cpu_ns") or 0) / 1e9 / run.cpu
    notes = {k: v for k, v in i["lost"].items() if v and k != "kernel-delayed"}
    print("  %-9s %-12s %6d samples  %8d bytes  %6.2f bytes/sample %-17s recorder %.2f %% %-17s own %.2f %% %s  %s" % (
        name, config, run.samples, i["file_size"], per, m.verdict(per, "bytes deep" if name == "parser" else "bytes"),
        recorder, m.verdict(recorder, "recorder"), run.own_percent(), m.verdict(run.own_percent(), own_target),
        " ".join("%s %d" % kv for kv in notes.items())), flush=True)


def part_size(luajit, a):
    """bytes a sample on disk, the recorder's own CPU, own account, on 10 s runs"""
    seconds = a.long
    print("Trace of a %g s run at 1 ms: bytes a sample; the recorder's CPU per CPU second of the program, which is its "
          "share of a core; own account" % seconds)
    if seconds < 10:
        print("The targets are for 10 s: in short runs the fixed part of a trace weighs more")
    for config, options, only, own_target in SIZES:
        for name in [p for p in a.programs + ["parser"] if only is None or p in only]:
            print_size(name, config, own_target,
                       m.run_record(luajit, name, m.sized_for(luajit, name, seconds), options))
    print()


def timed_report(trace, *args):
    start = time.monotonic()
    p = subprocess.Popen([s.luasample(), "report", "-i", trace, *args], stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE)
    err = p.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = status
    if status:
        sys.exit("bench: status %d: report %s: %s" % (status, " ".join(args), err[-200:]))
    return "%6.2f s wall  %6.2f s CPU  %4d MiB" % (time.monotonic() - start, usage.ru_utime + usage.ru_stime,
                                                usage.ru_maxrss / 1024)


def part_report(luajit, a):
    """reports on a generated trace of 10 million samples"""
    gen = os.path.join(s.build_dir(), "tests", "gen", "gen_trace")
    if not os.path.exists(gen):
        print("report: %s is not built: part left out\n" % gen)
        return
    trace = s.tmpfile(".data")
    samples = 1000000 if a.quick else 10000000
    m.quiet([gen, "-o", trace, "--samples", str(samples)])
    print("Reports on a generated trace: %d samples, %.1f MiB, %.2f bytes/sample" % (
        samples, os.path.getsize(trace) / 2 ** 20, os.path.getsize(trace) / samples))
    print("Targets for 10 million: function 0.5 s and 200 MiB, the others 2 s")
    for view in (["--by", "function"], ["--by", "line"], ["--split"], ["--tree"], ["--annotate"],
                 ["--format", "callgrind"], ["--format", "collapsed"], ["--json"]):
        print("  %-24s %s" % (" ".join(view), timed_report(trace, *view)), flush=True)
    os.remove(trace)
    print()
