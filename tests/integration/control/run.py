#!/usr/bin/env python3
"""Control of a recording: run.py [--list] [NAME...]

Where the trace goes, and when samples are taken. Needs the build directory in LUASAMPLE_BUILD (default build/)."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))
import support as s
from support import check

suite = s.Suite("control")
PHASES = os.path.join(HERE, "phases.lua")


def phases(*args):
    return [s.luajit().program, PHASES, *args]


def ticks(trace, function):
    """Ticks with this function anywhere in the stack."""
    return sum(x["total_ticks"] for x in s.rows(trace, "--by", "function") if x["function"] == function)


def sums_hold(trace):
    """The totals are the sums of what is said of each process, and all that was counted can be read."""
    i = s.info(trace)
    for key in "samples", "ticks", "lost_ticks":
        check(i[key] == sum(p[key] for p in i["processes"]),
              "%s: %d in all, processes: %s" % (key, i[key], [p[key] for p in i["processes"]]))
    check(i["readable_samples"] == i["samples"], "%d samples of %d" % (i["readable_samples"], i["samples"]))
    check(i["complete"], "the trace has no end")
    return i


@suite.test("stdout", "-o -: the trace goes through a pipe, what program and child print to stderr", quick=True)
def stdout():
    trace = s.tmpfile(".data")
    child = "os.execute('echo of a child') io.write('of the program\\n')"
    r = s.run([s.luasample(), "record", "-q", "-o", "-", "--", *phases("0.3", child)], binary=True)
    check(r.status == 0, "status %d: %s" % (r.status, r.err))
    check(r.err == "of a child\nof the program\n", "stderr is %r" % r.err)
    with open(trace, "wb") as f:
        f.write(r.out)
    sums_hold(trace)
    check(ticks(trace, "first") > 100, "%d ticks in first" % ticks(trace, "first"))
    piped = s.run(["sh", "-c", '"$0" record -q -o - -- "$@" | "$0" report -i -', s.luasample(), *phases("0.2")])
    check(piped.status == 0 and "phases.lua" in piped.out, "the report of a pipe: %s %s" % (piped.out[-400:], piped.err))
    check(not os.path.exists("-"), "there is a file of the name -")


@suite.test("stdout-ends", "-o -: a reader that goes away, a program that is not there, a full device")
def stdout_ends():
    r = s.run(["sh", "-c", '"$0" record -o - -- "$@" | sleep 0.4', s.luasample(),
               *phases("1.5", "io.stderr:write('ran to the end\\n')")])
    check("ran to the end" in r.err and "stdout: Broken pipe" in r.err, "stderr is %s" % r.err)
    r = s.run([s.luasample(), "record", "-o", "-", "--", "/no/such/program"])
    check(r.status == 127 and not r.out, "status %d, %d bytes" % (r.status, len(r.out)))
    r = s.run(["sh", "-c", '"$0" record -o - -- "$@" >/dev/full', s.luasample(), *phases("0.1")])
    check(r.status == 1 and "cannot write stdout: No space left" in r.err, "status %d: %s" % (r.status, r.err))


@suite.test("stdout-terminal", "-o -: a terminal gets no trace")
def stdout_terminal():
    r = s.run(["script", "-qec", "%s record -o - -- true" % s.luasample(), "/dev/null"])
    check(r.status == 129 and "not for a terminal" in r.out, "status %d: %s" % (r.status, r.out))


@suite.test("delay", "--delay: no tick of any process before, the CPU time and the rate are those of the time after", quick=True)
def delay():
    # both processes have 0.8 s of CPU time at once: the delay ends in the middle of first
    child = "io.popen('%s %s 0.8 \"\" 0.3')" % (s.luajit().program, PHASES)
    trace = s.tmpfile(".data")
    r = s.record(phases("0.8", child, "0.3"), "-D", "400", trace=trace).ok()
    i = sums_hold(trace)
    check(len(i["processes"]) == 2, "processes: %s" % i["processes"])
    check(i["enabled_ns"] < i["elapsed_ns"] - 395e6 and i["enabled_ns"] > i["elapsed_ns"] - 1500e6,
          "enabled %d of %d" % (i["enabled_ns"], i["elapsed_ns"]))
    check("samples were wanted for" in r.err, r.err)
    check(abs(i["cpu_ns"] - 1e6 * i["ticks"]) < 10e6, "%d ticks in %d ns of CPU time" % (i["ticks"], i["cpu_ns"]))
    check(i["process_cpu_ns"] > i["cpu_ns"] + 100e6, "CPU time %d of %d" % (i["cpu_ns"], i["process_cpu_ns"]))
    check(0 < ticks(trace, "first") and ticks(trace, "second") > 550, "ticks: %d, %d" %
          (ticks(trace, "first"), ticks(trace, "second")))
    early = s.report(trace, "--time", "0s,0.39s")
    check("no samples left" in early.err, "ticks before the delay was over: " + early.out)


@suite.test("delay-wall", "--delay: blocked time does not count either; -d begins after it; all of it: nothing")
def delay_wall():
    trace = s.tmpfile(".data")
    nap = "require('ffi').cdef('int usleep(unsigned)') require('ffi').C.usleep(900000)"
    s.record(phases("0.01", nap), "-e", "wall", "-D", "400ms", trace=trace).ok()
    i = s.info(trace)
    wall = s.json_of(["report", "-i", trace, "-e", "wall", "--json"])["header"]["ticks"]
    check(0.5 * i["enabled_ns"] < wall * 1e6 < i["enabled_ns"] + 30e6, "%d ticks in %d ns" % (wall, i["enabled_ns"]))
    r = s.record(phases("0.9"), "-D", "200", "-d", "300ms", trace=trace).ok()
    i = s.info(trace)
    check(0.29e9 < i["enabled_ns"] and i["elapsed_ns"] > 0.49e9, "enabled %d of %d" % (i["enabled_ns"], i["elapsed_ns"]))
    r = s.record(phases("0.2"), "-D", "1h", trace=trace).ok()
    i = sums_hold(trace)
    check(i["ticks"] == i["samples"] == i["enabled_ns"] == i["cpu_ns"] // 10**7 == 0, "%s %s" % (i, r.err))
    for bad in "-1", "x", "5y", "":
        check(s.record(phases("0"), "--delay=" + bad).status == 129, "--delay=%s is taken" % bad)


if __name__ == "__main__":
    sys.exit(suite.main())
