"""A program in which all is set to something unusual (tests/hosts/unusual.c): what it tells of itself, and what the kernel tells of
it, is the same before, during and after an attachment."""
import os
import re
import signal
import time

import process
from basic import attach_until, end, same
from ends import cpu_of, runs_for, started
from support import Skip, Started, check, host, info, tmpfile


class Unusual:
    def __init__(self, *opts):
        self.fifo = tmpfile(".fifo")
        os.mkfifo(self.fifo)
        self.p = Started([host("unusual"), self.fifo, *opts])
        self.p.wait_for("begin")
        self.pid, self.told = self.p.p.pid, 0

    def tell(self):
        """{what: value} as the program itself finds it."""
        with open(self.fifo, "w") as f:
            f.write("\n")
        deadline = time.monotonic() + 60
        while True:
            rounds = self.p.read(self.p.out).split("told\n")
            if len(rounds) > self.told + 1:
                break
            check(self.p.p.poll() is None, "it ended with %s: %s" % (self.p.p.poll(), self.p.read(self.p.err)))
            check(time.monotonic() < deadline, "it does not answer")
            time.sleep(0.02)
        self.told += 1
        text = rounds[self.told - 1].replace("begin\n", "")
        lines = [(re.match(r"(?!environment)(\w+ ?\w*)(.*)", line), line) for line in text.splitlines()]
        found = dict(m.groups() for m, _ in lines if m)
        found["environment"] = [line for m, line in lines if not m]     # one of its values may have several lines
        return found


def compare(what, before, after, but=()):
    bad = ["%s is %r, was %r" % (k, after.get(k), before.get(k)) for k in sorted(set(before) | set(after))
           if before.get(k) != after.get(k) and k not in but]
    check(not bad, "%s: %s" % (what, "; ".join(bad)[:1500]))


def add_to(suite):
    test = suite.test

    for name, opts in (("", ()), ("-sandbox", ("sandbox",)), ("-locked", ("lock",)), ("-trap", ("trap",))):
        @test("unusual" + name, "handlers of all signals, masks, stacks, limits and more: as before, during and after")
        def _(opts=opts):
            if ("sandbox" in opts or "lock" in opts) and os.geteuid():
                raise Skip("only root can read filters, and lock as much memory")
            u = Unusual(*opts)
            told, before = u.tell(), process.state(u.pid)
            check(len([k for k in told if k.startswith("signal ") and not told[k].startswith(": 0 ")]) >= 59, "too few handlers")
            for timer in ("perf", "cputime"):
                r = started(u.pid, "--timer", timer)
                during = u.tell()
                compare("during", told, during, but=("signal 16",))
                runs_for(u.pid, 0.3)
                r.signal(signal.SIGINT)
                check(r.wait() == 0, r.read(r.err))
                check(info(r.trace)["samples"] > 10, "%d samples" % info(r.trace)["samples"])
                compare("after", told, u.tell())
                same(before, u.pid)
            check(not process.writable_and_executable(u.pid), "%r" % process.writable_and_executable(u.pid))
            end(u.p)

    @test("leader", "a process whose first thread has ended by pthread_exit is recorded")
    def _():
        p = Started([host("leader"), "2"])
        p.wait_for("begin")
        while "State:\tZ" not in process.read(p.p.pid, "status"):
            time.sleep(0.01)
        r = attach_until(p.p.pid, 60)
        check(p.p.poll() is None, "it ended")
        end(p)
        i = info(r.trace)
        check(i["samples"] > 40 and i["vms"] == 2, "%d samples, %d VMs: %s" % (i["samples"], i["vms"], r.err))

    @test("executable-data", "a program whose data is executable (READ_IMPLIES_EXEC), as old ones are")
    def _():
        u = Unusual("rwx")
        check(process.writable_and_executable(u.pid), "it is not")
        r = attach_until(u.pid, 30)
        end(u.p)
        check(info(r.trace)["samples"] > 20, "%d samples: %s" % (info(r.trace)["samples"], r.err))

    for data in ("none", "shared"):
        @test("bare-thread-" + data, "a thread that a bare clone made, with %s thread data: it runs on, its time is counted, no tick uses them"
              % ("no" if data == "none" else "another's"))
        def _(data=data):
            for timer in ("perf", "cputime"):
                p = Started([host("bare"), data])
                p.wait_for("begin")
                bare, = set(os.listdir("/proc/%d/task" % p.p.pid)) - {str(p.p.pid)}
                r = started(p.p.pid, "--timer", timer)
                cpu = cpu_of(p.p.pid)
                runs_for(p.p.pid, 0.25, "task/%s/stat" % bare)
                cpu = cpu_of(p.p.pid) - cpu
                r.signal(signal.SIGINT)
                check(r.wait() == 0, r.read(r.err))
                p.signal(signal.SIGUSR1)
                check(p.wait() == 0 and p.read(p.out) == "begin\nran\n", "ended with %d: %r" % (p.wait(), p.read(p.out)))
                i = info(r.trace)
                check(i["samples"] > 10 and i["ticks"] / 1000 > cpu - 0.05, "%d samples, %d ticks in %.2f s" % (i["samples"], i["ticks"], cpu))

    for size in (2048, 4096, 8192):
        @test("signal-stack-%d" % size, "a thread that gets a signal stack of %d bytes while it is recorded: no tick uses it" % size)
        def _(size=size):
            p = Started([host("altstack"), str(size)])
            p.wait_for("begin")
            r = started(p.p.pid)
            runs_for(p.p.pid, 0.2)
            p.signal(signal.SIGUSR1)
            check(p.wait() == 0, "ended with %d" % p.wait())
            check(p.read(p.out) == "begin\n0 bytes below it were written\n", p.read(p.out))
            check(r.wait() == 0, r.read(r.err))
            check(info(r.trace)["samples"] > 300, "%d samples" % info(r.trace)["samples"])
