"""Part export of the bench: exports of generated traces, their time and memory."""
import os
import subprocess
import sys
import time

import measure as m
import support as s

SECONDS, MIB = 5, 500                   # targets for 10 million samples, of the formats that hold sums
# What gen_trace makes: as it is, and with many different stacks, deep, on many threads.
TRACES = [("default", []),
          ("wide: 1,000,000 stacks, depth 50, 60 threads", ["--stacks", "1000000", "--depth", "50", "--threads", "60"])]
FORMATS = [("collapsed", [], True), ("pprof", [], True), ("callgrind", [], True), ("csv", [], False),
           ("jsonl", ["--time", "0,5%"], False)]


def timed(trace, *args):
    """Seconds by the clock and of CPU, MiB, bytes written."""
    start = time.monotonic()
    out = s.tmpfile(".out")
    p = subprocess.Popen([s.luasample(), "export", "-i", trace, "-o", out, *args], stderr=subprocess.PIPE)
    err = p.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = status
    if status:
        sys.exit("bench: status %d: export %s: %s" % (status, " ".join(args), err[-200:]))
    size = os.path.getsize(out)
    os.remove(out)
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, size


def part_export(luajit, a):
    """exports of generated traces of 10 million samples"""
    gen = os.path.join(s.build_dir(), "tests", "gen", "gen_trace")
    if not os.path.exists(gen):
        print("export: %s is not built: part left out\n" % gen)
        return
    samples = 1000000 if a.quick else 10000000
    for title, options in TRACES:
        trace = s.tmpfile(".data")
        m.quiet([gen, "-o", trace, "--samples", str(samples), *options])
        print("Exports of a generated trace (%s): %d samples, %.1f MiB" % (title, samples, os.path.getsize(trace) / 2 ** 20))
        for name, args, has_target in FORMATS:
            wall, cpu, mib, size = timed(trace, "--format", name, *args)
            verdict = "" if not has_target else "ok" if cpu <= SECONDS and mib <= MIB else "above"
            print("  %-22s %6.2f s wall  %6.2f s CPU  %4d MiB  %7.1f MB written  %s" % (
                " ".join([name, *args]), wall, cpu, mib, size / 1e6, verdict), flush=True)
        os.remove(trace)
    print("Targets for 10 million: collapsed, pprof and callgrind %d s of CPU and %d MiB\n" % (SECONDS, MIB))
