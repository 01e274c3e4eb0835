"""The timers: what they cost, and what happens when one cannot be had. That the rates hold: tests/integration/main/interval.py."""
import collections
import ctypes
import os
import re
import struct
import time

from support import (Fail, Skip, Started, check, check_near, children_of, info, luasample, record, record_cmd, run, tmpfile)
from launch import one_line

def deny(number, action):
    """A system call fails, or ends its process, as with a container's or the program's own filter: seccomp."""
    libc = ctypes.CDLL(None, use_errno=True)
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, action), (0x06, 0, 0, 0x7fff0000)]
    filters = b"".join(struct.pack("HBBI", *c) for c in code)
    buf = ctypes.create_string_buffer(filters, len(filters))
    prog = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(buf)), 16)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, prog, 0, 0):
        os._exit(99)


def deny_perf():
    """perf_event_open fails with EACCES."""
    deny(298, 0x00050000 | 13)


def need_seccomp():
    if run(["true"], preexec=deny_perf).status == 99:
        raise Skip("no seccomp filters here")


class Used(collections.namedtuple("Used", "wakes ns")):
    """How often threads went to sleep, and their CPU time."""
    def __sub__(self, other):
        return Used(*(a - b for a, b in zip(self, other)))


def used_by(pids):
    wakes = ns = 0
    for pid in pids:
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/status" % (pid, tid)) as status, open("/proc/%d/task/%s/schedstat" % (pid, tid)) as stat:
                wakes += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status.read(), re.M).group(1))
                ns += int(stat.read().split()[0])
    return Used(wakes, ns)


def add_to(suite):
    test = suite.test

    @test("no-perf", "without perf events the next best timer is taken")
    def _():
        need_seccomp()
        r = record(["luajit", "-e", "local t = os.clock() + 0.5 while os.clock() < t do end"], preexec=deny_perf).ok()
        j = r.info()
        check(j["timer"] == "helper", "timer %s" % j["timer"])
        check_near("ticks", j["ticks"], j["cpu_ns"] / 1e6, 12)

    @test("no-perf-asked", "--timer perf, and it cannot be had: one line, nothing runs")
    def _():
        need_seccomp()
        mark = tmpfile(".ran")
        r = run([luasample(), "record", "--timer", "perf", "-o", tmpfile(), "--", "touch", mark], preexec=deny_perf)
        one_line(r, 1, "--timer perf")
        check(not os.path.exists(mark), "the program ran")

    @test("no-perf-doctor", "doctor says so, and what follows")
    def _():
        need_seccomp()
        r = run([luasample(), "doctor"], preexec=deny_perf).ok()
        check("timer: helper" in r.out, r.out)

    @test("forbidden", "on a busy machine, too, ticks make no system call that sandboxes forbid: getrusage of a thread")
    def _():
        need_seccomp()
        n = 2 * os.cpu_count() + 1
        each = "luajit -e \"local t = os.clock() + 0.3 while os.clock() < t do end print 'end'\" & "
        r = record(["sh", "-c", each * n + "wait"], "--timer", "helper", preexec=lambda: deny(98, 0x80000000)).ok()
        check(r.out == "end\n" * n, "of %d programs %d ended in order: %s" % (n, r.out.count("end"), r.err[-300:]))

    @test("idle", "a program that sleeps is not woken, and costs the recorder next to nothing")
    def _():
        p = Started(record_cmd(["luajit", "-e", "io.write('begin') io.flush() os.execute('sleep 4') io.write(' end')"],
                               trace=tmpfile(".data")))
        p.wait_for("begin")
        time.sleep(1)                           # what a beginning costs is over
        program = p.child()
        own = [p.p.pid] + [kid for kid in children_of(p.p.pid) if kid != program]
        began, ours, its = time.monotonic(), used_by(own), used_by([program])
        time.sleep(2)
        seconds, ours, its = time.monotonic() - began, used_by(own) - ours, used_by([program]) - its
        check("end" not in p.read(p.out) and p.wait() == 0 and p.read(p.out) == "begin end", p.read(p.err))
        check(not its.wakes and not its.ns, "the program woke %d times, and ran for %d ns" % (its.wakes, its.ns))
        check(0 < ours.wakes < 30 * seconds, "the recorder woke %.1f times a second" % (ours.wakes / seconds))
        check(ours.ns < 0.01 * seconds * 1e9, "the recorder had %.2f %% of a processor" % (ours.ns / seconds / 1e7))

    @test("own-cpu", "record's own CPU is under 1 % of a core at 1 ms")
    def _():
        code = "local t = os.clock() + 6 local x = 0 while os.clock() < t do for i = 1, 1000 do x = x + i % 7 end end"
        j = record(["luajit", "-e", code]).ok().info()
        share = j["recorder_cpu_ns"] / j["elapsed_ns"]
        check(j["timer"] != "perf" or share < 0.01, "%.2f %% with timer %s" % (100 * share, j["timer"]))
