"""Many attachments to each of 20 kinds of program, all under load: none dies, none changes."""
import os
import random
import subprocess
import threading
import time

import process
import support
from basic import LOOP
from support import Fail, Skip, check, host, luajit, luasample, tmpfile
from unusual import Unusual, compare

LONG = 300
attachments = 5                         # to each; run.py --long: 300
AT_A_TIME = 4                           # kinds; on top of them AT_A_TIME burners
OPTIONS = [(), ("-i", "100us"), ("--native",), ("--timer", "helper"), ("--timer", "cputime"), ("-e", "wall"),
           ("-e", "cpu,suspended"), ("-i", "1s"), ("--native", "-i", "100us", "-e", "wall,suspended")]
ALL = tuple(process.PARTS)
CALM = ("status", "mappings", "descriptors", "timers", "code", "comm", "environment")   # its threads differ by what they do
BUSY = ("timers", "code", "comm", "environment")                        # so do its descriptors and libraries

POPEN = "print 'begin' io.stdout:flush() while true do local f = io.popen('true') f:read('*a') f:close() os.execute('true') end"
GARBAGE = "print 'begin' io.stdout:flush() local t = {} for i = 1, 1e12 do t[i % 1000] = tostring(i) .. 'x' .. i % 97 end"
COROUTINES = "print 'begin' io.stdout:flush() local function body() for i = 1, 20 do coroutine.yield(i) end end " \
             "while true do local co = coroutine.wrap(body) for i = 1, 20 do co() end end"
ERRORS = "print 'begin' io.stdout:flush() local function deep(n) if n == 0 then error({}) end return 1 + deep(n - 1) end " \
         "while true do pcall(deep, 150) end"
SLEEPS = "local ffi = require('ffi') ffi.cdef[[int poll(void *, unsigned long, int); int usleep(unsigned); int epoll_create1(int);\n" \
         "struct ev { uint32_t e; uint64_t d; } __attribute__((packed)); int epoll_wait(int, struct ev *, int, int);]]\n" \
         "local ep, ev = ffi.C.epoll_create1(0), ffi.new('struct ev[1]') print 'begin' io.stdout:flush()\n" \
         "while true do for k = 1, 3000 do end assert(ffi.C.poll(nil, 0, 3) == 0) assert(ffi.C.usleep(2000) == 0)\n" \
         "assert(ffi.C.epoll_wait(ep, ev, 1, 4) == 0) end"


def lua(text):
    path = tmpfile(".lua")
    with open(path, "w") as f:
        f.write(text)
    return [luajit().program, path]


def script(name, *args, opts=()):
    return [luajit().program, *opts, os.path.join(support.LUA, name), *args]


def kinds():
    """(name, what starts it, what of it must not change)."""
    return [
        ("compiled", script("attachloop.lua", "1000000"), ALL),
        ("interpreted", script("attachloop.lua", "1000000", opts=["-joff"]), ALL),
        ("inlined", script("attachinline.lua", "flush"), ALL),
        ("names", script("attachnames.lua"), ALL),
        ("garbage", lua(GARBAGE), ALL),
        ("coroutines", lua(COROUTINES), ALL),
        ("errors", lua(ERRORS), ALL),
        ("sleeps", lua(SLEEPS), ALL),
        ("popen", lua(POPEN), BUSY),
        ("newstate", [host("newstate"), "4"], ALL),
        ("ghosts", [host("ghosts")], ALL),
        ("leader", [host("leader"), "3"], ("signals", "timers", "comm")),       # a first thread that has ended has no memory
        ("execs", [host("execs"), "2000000000", "1"], ALL),
        ("churn", [host("workers"), "4", "1000000", "100"], BUSY),
        ("threads", [host("workers"), "8", "1", "2000000", "60"], ALL),
        ("deaf", [host("blocks"), "100000000"], ALL),
        ("malloc", [host("allocator"), "own", "100000000"], ALL),
        ("unusual", (), ALL),
        ("sandboxed", ("sandbox",), ALL),
        ("locked", ("lock",), ALL),
    ]


class Kind(threading.Thread):
    def __init__(self, name, start, parts):
        super().__init__()
        self.name, self.parts, self.bad, self.refused, self.done, self.slowest = name, parts, [], 0, 0, 0.0
        self.unusual = Unusual(*start) if isinstance(start, tuple) else None
        if not self.unusual:
            self.out = tmpfile(".out")
            self.p = subprocess.Popen(start, stdin=subprocess.DEVNULL, stdout=open(self.out, "wb"), stderr=subprocess.STDOUT,
                                      preexec_fn=support.plain_signals(), start_new_session=True)
            support.started().append(self.p)
        else:
            self.p = self.unusual.p.p
        self.random = random.Random(name)

    def begin(self):
        """Until it has got going."""
        time.sleep(0.5)
        if self.unusual:
            self.told = self.unusual.tell()
        while not self.done or self.done == self.refused < 5:   # on a busy machine one may take too long
            self.attach()               # the first leaves what stays: see luasample-record(1)
        if self.unusual:
            self.told = self.unusual.tell()
        self.before = process.state(self.p.pid, self.parts)

    def attach(self):
        opts, trace = self.random.choice(OPTIONS), tmpfile(".data")
        if self.name == "sleeps" and "helper" in opts:  # its ticks end sleeps: see --timer
            opts = ()
        cmd = [luasample(), "record", "-q", "-p", str(self.p.pid), "-d", "%dms" % self.random.randrange(1, 60), "-o", trace, *opts]
        start = time.monotonic()
        try:
            r = subprocess.run(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        except subprocess.TimeoutExpired:
            self.bad.append("no end: %s" % " ".join(cmd))
            return
        finally:
            self.done += 1
            self.slowest = max(self.slowest, time.monotonic() - start)
            if os.path.exists(trace):
                os.unlink(trace)
        if r.returncode:
            self.refused += 1
            self.last = "%d %s" % (r.returncode, r.stderr.decode("utf-8", "replace").strip()[-300:])

    def run(self):
        try:
            self.begin()
            while self.done <= attachments and not self.bad:
                self.attach()
                if self.p.poll() is not None:
                    self.bad.append("it ended with %d at attachment %d" % (self.p.poll(), self.done))
            if self.p.poll() is None:
                self.bad += process.differences(self.before, process.state(self.p.pid, self.parts))
                if self.unusual:
                    compare("what it tells of itself", self.told, self.unusual.tell())
                if process.writable_and_executable(self.p.pid) and not self.bad and self.parts is ALL:
                    self.bad.append("%r" % process.writable_and_executable(self.p.pid))
        except (Fail, OSError, KeyError) as e:
            self.bad.append("%s: %s" % (type(e).__name__, e))
        finally:
            if self.p.poll() is None:
                self.p.kill()
            self.p.wait()


def add_to(suite):
    @suite.test("kinds", "attachments to each of 20 kinds of program, under load: none dies, none changes")
    def _():
        if os.geteuid():
            raise Skip("some kinds of program need root")
        waiting, running, bad = kinds(), [], []
        burners = [subprocess.Popen(lua("while true do end"), start_new_session=True) for _ in range(AT_A_TIME)]
        support.started().extend(burners)
        total = 0
        while waiting or running:
            while waiting and len(running) < AT_A_TIME:
                k = Kind(*waiting.pop(0))
                k.start()
                running.append(k)
            for k in [k for k in running if not k.is_alive()]:
                k.join()
                running.remove(k)
                total += k.done
                print("     %-12s %4d attachments, %d not made%s, slowest %.1f s%s" % (
                    k.name, k.done, k.refused, " (%s)" % k.last if k.refused else "", k.slowest, "; " + "; ".join(k.bad)[:600]
                    if k.bad else ""), flush=True)
                bad += ["%s: %s" % (k.name, x) for x in k.bad]
                if k.refused > 1 and k.refused * 10 > k.done:    # one may be: the machine is busy
                    bad.append("%s: %d of %d were not made" % (k.name, k.refused, k.done))
            time.sleep(0.05)
        for p in burners:
            p.kill()
        print("     %d attachments" % total)
        check(not bad, "; ".join(bad)[:3000])
