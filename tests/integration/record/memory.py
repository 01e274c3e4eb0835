"""Memory of a VM that comes and goes while it is sampled: nothing is read that is gone, and the kernel is not asked at each tick
what can be read. The memory between program and recorder: what comes in bursts fits."""
import os
import re
import resource
import shutil

import support
from support import check, host, json_of, record

QUESTION = "0x3039"                             # what handler/guard_page.c asks rt_sigprocmask to do


def questions(*args):
    """Page questions of what luasample does with these arguments. Those of the probe at start are few."""
    calls = support.tmpfile(".strace")
    support.run([support.need("strace"), "-f", "-e", "trace=rt_sigprocmask", "-o", calls, support.luasample(), *args], timeout=120).ok()
    with open(calls) as f:
        return sum(QUESTION in line for line in f)


def questions_of_ticks(how):
    """Those of a program in which many ticks meet C code, its samples and ticks."""
    trace = support.tmpfile(".data")
    asked = questions("record", "-q", "--no-native", "-o", trace, "--", host("allocator"), how, "400", "calm")
    i = json_of(["info", "-i", trace, "--json"])
    check(i["samples"] > 50, "%d samples" % i["samples"])
    return asked, i["samples"], i["ticks"]


def questions_of_allocations(how):
    trace = support.tmpfile(".data")
    asked = questions("record", "-q", "--no-native", "-e", "alloc", "--alloc-interval", "16K", "-o", trace, "--", host("allocs"), how)
    samples = json_of(["report", "-i", trace, "--json"])["header"]["samples"]
    check(samples > 1000, "%d samples" % samples)
    return asked / samples


def add_to(suite):
    test = suite.test

    @test("memory-copies", "a second copy of LuaJIT that comes and goes, and makes VMs by the first one's lua_newstate: not recorded, and said")
    def _():
        found = re.search(r"libluajit\S* => (\S+)", support.run(["ldd", host("copies")]).out)
        if not found:
            raise support.Skip("host_copies has no shared libluajit")
        copy = support.tmpfile(".so")
        shutil.copy(found[1], copy)
        for opts in ((), ("-e", "cpu,alloc"), ("-e", "cpu,suspended")):
            for _ in range(4):
                r = support.run([support.luasample(), "record", "-o", support.tmpfile(".data"), *opts, host("copies"), copy, "30"], timeout=60)
                check(r.status == 0 and r.out == "end\n", "%s: ended with %d: %s" % (opts, r.status, r.out + r.err))
                check("a VM of a second LuaJIT" in r.err, r.err)

    for how in "lj", "own", "wrapped":
        @test("memory-%s" % how, "a heap that grows and shrinks, ticked every 50 us: %s" % {
            "lj": "LuaJIT's own allocator", "own": "the host's allocator", "wrapped": "an allocator that is replaced"}[how])
        def _(how=how):
            r = record([host("allocator"), how, "1500"], "-i", "50us").ok()
            check(r.out == "done\n", "prints %r" % r.out)
            i = r.info()
            check(i["samples"] > 500, "%d samples" % i["samples"])
            bad = i["lost"]["bad-stack"] + i["lost"]["bad-record"]
            check(bad <= i["ticks"] / 100, "%d bad stacks of %d ticks" % (bad, i["ticks"]))

    @test("memory-questions", "pages that were read before are asked for again only when they may be gone")
    def _():
        lj, _, ticks = questions_of_ticks("lj")
        check(lj < 2 * ticks, "%d questions in %d ticks with LuaJIT's allocator" % (lj, ticks))
        for how in "own", "wrapped":
            asked, samples, _ = questions_of_ticks(how)
            check(asked - lj > samples, "%d questions of %d samples with an allocator of the host's, %d with LuaJIT's" % (
                asked, samples, lj))

    @test("memory-questions-alloc", "the same of sampled allocations: their VM may be given another allocator, too")
    def _():
        lj, behind = questions_of_allocations("plain"), questions_of_allocations("behind")
        check(behind > lj + 1, "%.2f questions a sample with an allocator of the host's, %.2f with LuaJIT's" % (behind, lj))

    @test("memory-limited", "ulimit -v: a program has the memory that it has alone, and is recorded")
    def _():
        script = "local s = 0 for i = 1, 5e7 do s = s + i % 7 end require 'ffi'.new('char[?]', 100e6) print 'enough'"
        for cmd in "exec", "":                  # the recorded program, and a child of it
            sh = "ulimit -v 160000; %s %s -e \"%s\"" % (cmd, support.luajit().program, script)
            r = record(["sh", "-c", sh], "--native").ok()
            check(r.out == "enough\n", "prints %r: %s" % (r.out, r.err))
            check(r.info()["samples"] > 20, "%d samples" % r.info()["samples"])
        # the recorder, too: room for one thread and its waits, not for those of 256
        r = record([support.luajit().program, "-e", "local s = 0 for i = 1, 5e7 do s = s + i % 7 end"], "-e", "cpu,wall",
                   preexec=lambda: resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))).ok()
        check(r.info()["samples"] > 20, "%d samples of a recorder with little memory" % r.info()["samples"])

    for timer in "perf", "helper", "cputime":
        @test("memory-bursts-%s" % timer, "a small ring after quiet times, when the recorder looks seldom, --timer %s" % timer)
        def _(timer=timer):
            script = os.path.join(support.LUA, "bursts.lua")
            with support.Late() as late:
                i = record([support.luajit().program, script], "--buffer-size", "64k", "--timer", timer).ok().info()
            check(i["ticks"] > 500, "%d ticks" % i["ticks"])
            # The ring holds some 25 ms: a recorder that the machine wakes later than that has lost what came meanwhile.
            check(i["lost"]["ring-full"] <= 0.02 * i["ticks"] + late.ms,
                  "%d of %d did not fit, %d ms late" % (i["lost"]["ring-full"], i["ticks"], late.ms))
