"""Many threads and VMs: each has its own time, name, VM and coroutines in the trace; threads that come and go all the time
neither leak nor get lost; more than can be recorded at one time are counted."""
import collections
import os

from support import Skip, check, check_near, host, json_of, record, run

INTERVAL_NS = 1000000
MOST = 255                                      # threads at one time beside the first (record/process/memory.h)


def workers(threads, rounds, loops, *opts):
    """The recording, its info, and the threads' CPU time as they say it: {(name, tid): ns}."""
    r = record([host("workers"), str(threads), str(rounds), str(loops)], *opts).ok()
    said = {}
    for line in r.out.splitlines():
        name, tid, ns = line.split()
        said[name, int(tid)] = int(ns)
    check(len(said) >= threads * rounds * 0.9, "%d lines of %d threads" % (len(said), threads * rounds))
    return r, r.info(), said


def by_two(r, first, second):
    """{key of first: {name of second: ticks}}"""
    rows = json_of(["report", "-i", r.trace, "--min", "0", "--json", "--by", "%s,%s" % (first, second)])["rows"]
    return {row[first]: {c["name"]: c["self_ticks"] for c in row["children"]} for row in rows}


def clean(j, *allowed):
    bad = {k: n for k, n in j["lost"].items() if n and k in ("bad-record", "definition-lost", "abandoned", "ring-full",
                                                            "signal-failed") and k not in allowed}
    check(not bad, "losses: %r" % bad)


def add_to(suite):
    test = suite.test

    for timer in ("perf", "helper", "cputime"):
        @test("threads-%s" % timer, "four threads with a VM each: time, name and VM of each", quick=timer == "helper")
        def _(timer=timer):
            r, j, said = workers(4, 1, 2500, "--timer", timer)
            clean(j)
            check(j["vms"] == 4 and j["threads"] in (4, 5), "%d VMs, %d threads" % (j["vms"], j["threads"]))
            check_near("CPU time", j["cpu_ns"], sum(said.values()), 0.05 * sum(said.values()))
            vms = by_two(r, "thread", "vm")
            for (name, tid), ns in said.items():
                check(tid in vms, "no samples of %s" % name)
                check_near("ticks of " + name, sum(vms[tid].values()), ns / INTERVAL_NS, 0.05 * ns / INTERVAL_NS + 5)
            main_vm = {tid: max(v, key=v.get) for tid, v in vms.items() if sum(v.values()) > 20}
            check(len(set(main_vm.values())) == 4, "VMs of the threads: %r" % main_vm)
            names = json_of(["report", "-i", r.trace, "--min", "0", "--json", "--by", "thread"])["rows"]
            check({n["name"] for n in names} >= {"%s (%d)" % k for k in said}, "names: %r" % names)

    @test("thread-coroutines", "samples of each thread know the coroutine that they are in")
    def _():
        r, j, said = workers(3, 1, 2500)
        ticks = collections.Counter()
        for row in json_of(["report", "-i", r.trace, "--min", "0", "--json", "--by", "coroutine"])["rows"]:
            ticks["main" if row["name"] == "main" else "body"] += row["self_ticks"]
        # of numbers alone 2 parts of 5 are in the coroutine
        share = ticks["body"] / sum(ticks.values())
        check(0.15 < share < 0.45, "%.2f of the time in the coroutines" % share)

    for timer in ("perf", "helper"):
        @test("threads-come-and-go-%s" % timer, "400 threads of some 15 ms: all are seen, none leaks")
        def _(timer=timer):
            r, j, said = workers(8, 50, 60, "--timer", timer)
            clean(j)
            check(j["threads"] in (400, 401) and j["vms"] == 400, "%d threads, %d VMs" % (j["threads"], j["vms"]))
            check(not j["threads_unrecorded"], "%d threads not recorded" % j["threads_unrecorded"])
            cpu = sum(said.values())
            check(j["ticks"] >= 0.85 * cpu / INTERVAL_NS, "%d ticks of %.0f" % (j["ticks"], cpu / INTERVAL_NS))
            check(j["tables"]["threads"] <= 401, "%d entries for threads" % j["tables"]["threads"])

    for timer in ("perf", "helper"):
        @test("threads-short-%s" % timer, "2400 threads of less than a tick: all are seen, and what no tick saw is counted")
        def _(timer=timer):
            r, j, said = workers(8, 300, 1, "--timer", timer)
            check(j["threads_unrecorded"] <= 0.1 * len(said), "%d threads not recorded" % j["threads_unrecorded"])
            check(j["lost"]["thread-ended"] > 0.1 * j["ticks"], "losses %r" % j["lost"])
            check_near("ticks of the CPU time", j["ticks"] * INTERVAL_NS, j["cpu_ns"], 0.02 * j["cpu_ns"])

    @test("other-threads-vm", "the lua_State that runs on another thread, which may free it at any time, is not read")
    def _():
        alone = run([host("resumes")])
        check(alone.status == 0 and alone.out == "referenced 0 kB\n", "alone: status %d, %r" % (alone.status, alone.out))
        r = record([host("resumes")]).ok()
        check(r.out == alone.out, "recorded: %r" % r.out)
        check(r.info()["ticks"] > 100, "%d ticks" % r.info()["ticks"])

    @test("vms-close", "a thread that is ahead of one in the middle of a tick waits until that has read its VM, before it closes it")
    def _():
        if os.geteuid():
            raise Skip("realtime classes need root")
        r = record([host("closes"), "12"], "-i", "50us")
        check(r.status == 0 and r.out == "many closed\n", "status %d, %r" % (r.status, r.out))

    @test("too-many-threads", "more threads at one time than can be recorded: the rest is counted")
    def _():
        r, j, said = workers(300, 1, 200)
        clean(j)
        check(MOST <= j["threads"] <= 301, "%d threads" % j["threads"])
        check(j["threads"] + j["threads_unrecorded"] >= 300,
              "%d recorded, %d not" % (j["threads"], j["threads_unrecorded"]))
        if j["threads_unrecorded"]:
            check("not recorded" in r.err, "the summary does not say so: %s" % r.err[-500:])
