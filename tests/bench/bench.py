#!/usr/bin/python3
"""Speed and size of luasample, beside LuaJIT's own profiler and perf, all measured in this run. Prints tables with the
target beside each figure that has one, "ok" or "above". Never a test: it fails only when something cannot be run.
The machine should do nothing else meanwhile; the load is printed. Ratios are of paired rounds, with their spread; the
own account is the agent's time in handler and hook, as it counts itself."""
import argparse
import os
import sys
import time

import alloc
import costs
import daemon
import exact
import exports
import measure as m
import nginx_load
import page
import ratios
import support as s

PARTS = {"run": ratios.part_run, "deep": costs.part_deep, "start": costs.part_start, "worker": costs.part_worker, "size": costs.part_size,
         "traces": ratios.part_traces, "report": costs.part_report,
         "exact": exact.part_exact, "alloc": alloc.part_alloc, "export": exports.part_export, "page": page.part_page,
         "nginx": nginx_load.part_nginx, "daemon": daemon.part_daemon}
# Values of the options that --quick makes small: full, quick.
AMOUNTS = {"rounds": (7, 2), "seconds": (0.4, 0.2), "long": (10, 2), "runs": (5, 2)}
QUICK_PROGRAMS = ["richards", "json", "ring"]


def some_of(text, known, what):
    """The names of a comma-separated list, each of which must be known."""
    got = text.split(",")
    for name in got:
        if name not in known:
            sys.exit("bench: %s %s: give some of %s" % (what, name, ", ".join(known)))
    return got


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                epilog="parts:\n" + "\n".join("  %-8s %s" % (n, f.__doc__) for n, f in PARTS.items())
                                + "\n\nconfigs: " + ", ".join(c.name for c in m.CONFIGS))
    p.add_argument("--quick", action="store_true",
                   help="few programs, few and short rounds, 2 minutes: shows that it works, not the figures")
    p.add_argument("--part", help="parts, comma-separated (default all)")
    p.add_argument("--only", help="programs (default %s; quick %s)" % (",".join(m.PROGRAMS), ",".join(QUICK_PROGRAMS)))
    p.add_argument("--config", dest="configs", help="configs of the part run; what they are compared with comes along")
    p.add_argument("--rounds", type=int, help="paired rounds (%d, quick %d)" % AMOUNTS["rounds"])
    p.add_argument("--seconds", type=float, help="CPU seconds of each run (%g, quick %g)" % AMOUNTS["seconds"])
    p.add_argument("--long", type=float, help="CPU seconds of the runs of part size (%g, quick %g)" % AMOUNTS["long"])
    p.add_argument("--runs", type=int, help="runs of part traces (%d, quick %d)" % AMOUNTS["runs"])
    p.add_argument("--luajit", default="debian", help="name from scripts/luajit-trees")
    a = p.parse_args()
    for name, (full, quick) in AMOUNTS.items():
        given = getattr(a, name)
        if given is not None and given <= 0:
            sys.exit("bench: --%s: give a number above 0" % name)
        setattr(a, name, given or (quick if a.quick else full))
    a.parts = some_of(a.part, PARTS, "--part") if a.part else list(PARTS)
    a.configs = a.configs.split(",") if a.configs else None
    a.programs = some_of(a.only, m.PROGRAMS, "--only") if a.only else QUICK_PROGRAMS if a.quick else m.PROGRAMS
    return a


def main():
    a = options()
    try:
        lj = s.luajit(a.luajit)
    except s.Skip as e:
        sys.exit("bench: %s" % e)
    if not os.access(s.luasample(), os.X_OK):
        sys.exit("bench: no %s: build first, or name the build directory in LUASAMPLE_BUILD" % s.luasample())
    os.environ.update(lj.env)
    m.no_cores()
    start = time.monotonic()
    try:
        for part in a.parts:
            print("== %s: %s (after %d s)\n%s" % (part, PARTS[part].__doc__, time.monotonic() - start,
                                                 m.machine(lj.program)))
            PARTS[part](lj.program, a)
    except s.Fail as e:
        sys.exit("bench: %s" % e)
    except BrokenPipeError:                     # a pager that was left early
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    finally:
        s.finish_tmp()
    print("bench: %d s in all, load now %.2f" % (time.monotonic() - start, os.getloadavg()[0]))


main()
