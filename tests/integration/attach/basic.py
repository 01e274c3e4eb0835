"""Attaching to programs that run: their samples, and that they are afterwards what they were before."""
import os
import re
import signal
import time

import process
import support
from support import Fail, Started, check, check_near, host, info, json_of, luajit, run, rows, tmpfile

LOOP = os.path.join(support.LUA, "attachloop.lua")
INLINE = os.path.join(support.LUA, "attachinline.lua")
SLEEP = os.path.join(support.LUA, "attachsleep.lua")


def attach(pid, *opts, duration="500ms", trace=None, status=0, **kw):
    trace = trace or tmpfile(".data")
    r = run([support.luasample(), "record", "-p", str(pid), "-d", duration, "-o", trace, *opts], timeout=60, **kw)
    r.trace = trace
    return r.ok(status)


def attach_until(pid, ticks, *opts, **kw):
    """Attaches for a second, or for longer where the machine has let the program run too little for so many ticks."""
    for duration in ("1s", "4s", "16s"):
        r = attach(pid, *opts, duration=duration, **kw)
        if info(r.trace)["ticks"] >= ticks:
            break
    return r


def stop_ms(r):
    m = re.search(r"stopped for ([0-9.]+) ms", r.err)
    check(m, "no stop time in: " + r.err)
    return float(m.group(1))


def begun(*args, env=None):
    p = Started([luajit().program, *args], env=env)
    p.wait_for("begin")
    return p


def until_threads(p, n, seconds=20):
    deadline = time.monotonic() + seconds
    while len(os.listdir("/proc/%d/task" % p.p.pid)) < n:
        check(p.p.poll() is None, "it ended")
        check(time.monotonic() < deadline, "fewer than %d threads" % n)
        time.sleep(0.02)


def queued_ns(pid):
    """How long its first thread has waited for processors."""
    with open("/proc/%d/schedstat" % pid) as f:
        return int(f.read().split()[1])


def attach_without_processor(*cmd):
    """To a program that gets no processor for seconds: as soon as it has one."""
    if os.geteuid():
        raise support.Skip("a priority that keeps it waiting needs root")
    # What runs beside it has nearly all of the one processor that both may use.
    hog = "import time\nprint('begin', flush=True)\nt = time.monotonic() + 5\nwhile time.monotonic() < t: pass\nprint('end', flush=True)"
    cpu = str(max(os.sched_getaffinity(0)))
    p = Started(["taskset", "-c", cpu, "chrt", "-i", "0", *cmd])
    p.wait_for("begin")
    h = Started(["taskset", "-c", cpu, "nice", "-n", "-20", "python3", "-c", hog])
    h.wait_for("begin")
    began = time.monotonic()
    waited = queued_ns(p.p.pid)
    r = attach(p.p.pid, duration="300ms")
    waited = queued_ns(p.p.pid) - waited
    check(waited > 1.5e9, "it waited for %.1f s of %.1f s only: nothing was tried" % (waited / 1e9, time.monotonic() - began))
    check(p.p.poll() is None and "attached to %d" % p.p.pid in r.err, r.err)
    end(p)


def end(p):
    p.p.kill()
    p.p.wait()


def same(before, pid):
    bad = process.differences(before, process.state(pid))
    check(not bad, "not as before: " + "; ".join(bad)[:1500])


def shares(r, heavy=0.7):
    rs = rows(r.trace, "--min", "0")
    ticks = sum(x["self_ticks"] for x in rs)
    check(ticks > 40, "%d ticks" % ticks)
    got = sum(x["self_ticks"] for x in rs if x["name"] == "heavy") / ticks
    check_near("share of heavy", got, heavy, 0.06 + 1.5 / ticks ** 0.5)


def clean(r):
    lost = {k: n for k, n in info(r.trace)["lost"].items()
            if n and k in ("bad-record", "definition-lost", "abandoned", "ring-full", "signal-failed", "bad-stack")}
    check(not lost, "losses: %r" % lost)


def cpu_of(pid, comm):
    """CPU time in ns of the thread of this name."""
    for tid in os.listdir("/proc/%d/task" % pid):
        if process.read(pid, "task/%s/comm" % tid) == comm + "\n":
            return int(process.read(pid, "task/%s/schedstat" % tid).split()[0])
    raise Fail("no thread %s" % comm)


def add_to(suite):
    test = suite.test

    for interval in ("250us", "10ms"):
        @test("eintr-" + interval, "no system call of a program with four threads is interrupted")
        def _(interval=interval):
            p = Started([host("eintr"), "60", "100"])
            p.wait_for("begin")
            r = attach(p.p.pid, "-i", interval, duration="60s")
            status, out = p.wait(60), p.read(p.out)
            m = re.search(r"calls (\d+) eintr (\d+)", out)
            check(status == 0 and m and int(m.group(1)) == 6000, "status %d, it printed %r" % (status, out))
            check(int(m.group(2)) <= 1, "%s of %s calls were interrupted" % (m.group(2), m.group(1)))
            check(info(r.trace)["threads"] > 50, "%s threads were seen" % info(r.trace)["threads"])

    for mode, opts in (("compiled", ()), ("interpreted", ("-joff",))):
        @test("loop-" + mode, "an endless loop, %s: shares, and the process as before" % mode, quick=mode == "compiled")
        def _(opts=opts):
            p = begun(*opts, LOOP, "60")
            before = process.state(p.p.pid)
            r = attach_until(p.p.pid, 200)
            same(before, p.p.pid)
            end(p)
            shares(r)
            clean(r)
            i = info(r.trace)
            check(i["vms"] == 1 and i["threads"] == 1, "%d VMs, %d threads" % (i["vms"], i["threads"]))
            print("     stopped for %.2f ms; CPU %.3f s, %d ticks" % (stop_ms(r), i["cpu_ns"] / 1e9, i["ticks"]))
            check(stop_ms(r) < 20, "stopped for %.2f ms" % stop_ms(r))

    @test("inlined", "functions that compiled code has inlined are seen in traces that were there before, and after a flush")
    def _():
        seen = {}
        for kind, args, opts in (("map", (), ()), ("flush", ("flush",), ()), ("root", (), ("--jit-leaf", "root"))):
            p = begun(INLINE, *args)
            time.sleep(0.3)
            before = process.state(p.p.pid)
            r = attach(p.p.pid, *opts, duration="1s")
            same(before, p.p.pid)
            end(p)
            clean(r)
            seen[kind] = {x["line_defined"]: (x["self"], x["total"]) for x in rows(r.trace, "--min", "0") if x["line_defined"]}
            i = info(r.trace)
            marked = i["jit_approximate_ticks"] / max(i["jit_ticks"], 1)
            check(marked > 0.9 if kind != "root" else marked == 0, "%s: %.2f of the ticks are marked as approximate" % (kind, marked))
        near, step = 7, 18
        for kind in ("map", "flush"):
            got = seen[kind]
            check(near in got and got[near][0] > 0.02, "%s: the inlined function is not there: %s" % (kind, got))
            check(got[step][1] > got[near][0], "%s: its caller has less than itself: %s" % (kind, got))
        alone = seen["root"].get(near, (0, 0))[0]
        check(alone < seen["map"][near][0] / 2, "root shows %.3f of it, map %.3f" % (alone, seen["map"][near][0]))

    @test("again", "twenty times the same process: nothing piles up")
    def _():
        p = begun(LOOP, "120")
        pid = p.p.pid
        attach(pid, duration="50ms")
        before, maps = process.state(pid), process.read(pid, "maps").count("\n")
        stops = []
        for _ in range(int(os.environ.get("LUASAMPLE_ATTACHMENTS", "20"))):
            stops.append(stop_ms(attach(pid, duration="50ms")))
        same(before, pid)
        check(not process.writable_and_executable(pid), "%r" % process.writable_and_executable(pid))
        grown = process.read(pid, "maps").count("\n") - maps
        check(grown <= 2, "%d mappings more" % grown)
        end(p)
        print("     stopped for %.2f to %.2f ms, median %.2f" % (min(stops), max(stops), sorted(stops)[len(stops) // 2]))

    @test("output", "a program that is attached to twice says what it says alone")
    def _():
        alone = run([luajit().program, LOOP, "60", "400"], timeout=60).ok()
        p = begun(LOOP, "60", "400")
        attach(p.p.pid, duration="150ms")
        attach(p.p.pid, "--native", duration="150ms")
        status = p.wait()
        check(status == 0 and p.read(p.out) == alone.out, "status %d, %r, alone %r" % (status, p.read(p.out), alone.out))
        check(p.read(p.err) == alone.err, "stderr %r" % p.read(p.err))

    @test("sleepers", "system calls that sleep: attached to twice they return what they would, when they would")
    def _():
        begun_all = {}
        for name in ("nanosleep", "poll", "epoll", "select"):
            begun_all[name] = begun(SLEEP, name)
        for name, p in begun_all.items():
            for _ in range(2):
                r = attach(p.p.pid, duration="50ms")
                check("too little CPU time" in r.err, "no samples of a sleeper, and no word: " + r.err)
        for name, p in begun_all.items():
            status = p.wait()
            said = p.read(p.out).split("\n")[1].split("\t")
            check(status == 0 and said[0] == name and said[1] == "0", "%s: status %d, %r" % (name, status, said))
            # the rest of epoll_wait's time is reckoned from the scheduler's figures, which may be late on a busy machine
            check((1.9 if name == "epoll" else 2.45) < float(said[3]) < 3.2, "%s slept %s s of 2.5" % (name, said[3]))

    @test("read", "a read from a pipe that waits for long is not interrupted")
    def _():
        r, w = os.pipe()
        p = Started.__new__(Started)
        import subprocess
        p.out, p.err = tmpfile(".out"), tmpfile(".err")
        p.p = subprocess.Popen([luajit().program, SLEEP, "read"], stdin=r, stdout=open(p.out, "wb"), stderr=open(p.err, "wb"))
        os.close(r)
        p.wait_for("begin")
        attach(p.p.pid, duration="100ms")
        os.write(w, b"x")
        check(p.wait() == 0 and p.read(p.out).split()[2] == "1", "read said %r" % p.read(p.out))
        os.close(w)

    @test("threads", "eight threads with a VM each: time and VM of each, and their VMs that close")
    def _():
        p = Started([host("workers"), "8", "1", "2000000"])
        pid = p.p.pid
        until_threads(p, 9)
        time.sleep(0.1)
        before = process.state(pid)
        r = attach_until(pid, 400)
        after = process.state(pid)
        if len(after["threads"]) == len(before["threads"]):
            bad = process.differences(before, after)
            check(not bad, "not as before: " + "; ".join(bad)[:1500])
        end(p)
        i = info(r.trace)
        clean(r)
        check(i["vms"] == 8, "%d VMs" % i["vms"])
        by = json_of(["report", "-i", r.trace, "--min", "0", "--json", "--by", "thread,vm"])["rows"]
        seen = [x for x in by if x["self_ticks"] > 5]
        check(len(seen) >= 7, "%d threads have samples: %r" % (len(seen), by))
        vms = [max(x["children"], key=lambda c: c["self_ticks"])["name"] for x in seen]
        check(len(set(vms)) == len(vms), "VMs of the threads: %r" % vms)
        check_near("CPU time", i["ticks"] * 1e6, i["cpu_ns"], 0.1 * i["cpu_ns"] + 2e7)

    @test("many-threads", "more threads than are looked at first: the agent's own is found, and those without a ring are said")
    def _():
        p = Started([host("workers"), "60", "1", "2000000", "240"])
        until_threads(p, 301, 60)
        r = attach_until(p.p.pid, 300)
        alive, i = p.p.poll() is None, info(r.trace)
        end(p)
        check(alive and i["ticks"] >= 300, "%d ticks, it %s: %s" % (i["ticks"], "runs" if alive else "ended", r.err))
        check(i["sample_ticks"] + i["lost_ticks"] == i["ticks"] and i["sample_ticks"] > 0.8 * i["ticks"],
              "of %d ticks %d are in samples, %d lost: %s" % (i["ticks"], i["sample_ticks"], i["lost_ticks"], r.err))
        check("threads were not recorded" in r.err and 30 < i["threads_unrecorded"] <= 301 - i["threads"],
              "%s of 301 threads are not recorded: %s" % (i["threads_unrecorded"], r.err))

    @test("no-processor", "a program that gets no processor for seconds: attached to as soon as it has one")
    def _():
        attach_without_processor(luajit().program, LOOP, "60")

    @test("patched-while-called", "threads that call what is patched, without a pause, are never in the middle of a patch")
    def _():
        p = Started([host("newstate"), "8"])
        p.wait_for("begin")
        before = process.state(p.p.pid)
        for i in range(20):
            r = attach(p.p.pid, duration="20ms")
            check(p.p.poll() is None, "it ended with %s after %d attachments: %s" % (p.p.poll(), i + 1, p.read(p.err)))
            check("cannot be watched" not in r.err, r.err)
        same(before, p.p.pid)
        p.signal(signal.SIGTERM)
        status = p.wait()
        made, closed, tried = (int(x) for x in p.read(p.out).split("\n")[1].split())
        check(status == 0 and made == closed > 0 and tried > 1000, "status %d, %d VMs made, %d closed, %d tries" % (
            status, made, closed, tried))

    @test("ghosts", "memory that looks like a VM, and is gone when it is looked at again")
    def _():
        p = Started([host("ghosts")])
        p.wait_for("begin")
        for i in range(40):
            attach(p.p.pid, "-i", "1s", duration="1ms")         # no tick looks at it
            check(p.p.poll() is None, "it ended with %s after %d attachments: %s" % (p.p.poll(), i + 1, p.read(p.err)))
        p.signal(signal.SIGTERM)
        status = p.wait()
        check(status == 0 and int(p.read(p.out).split()[-1]) > 20, "status %d: %s" % (status, p.read(p.out)))

    @test("names", "functions that only run compiled have the names that a program started by luasample would show")
    def _():
        p = begun(os.path.join(support.LUA, "attachnames.lua"))
        time.sleep(0.3)                         # until all of it is compiled
        r = attach_until(p.p.pid, 200)
        end(p)
        rs = rows(r.trace, "--min", "0")
        ticks = sum(x["self_ticks"] for x in rs)
        named = {name: sum(x["self_ticks"] for x in rs if x["name"] == name) / ticks for name in ("spinning.field", "spin_global")}
        check(all(v > 0.2 for v in named.values()) and sum(named.values()) > 0.9, "%r of %d ticks: %r" % (
            named, ticks, [(x["name"], x["self_ticks"]) for x in rs[:6]]))

    @test("signals-blocked", "a thread that blocks all signals: what is not sampled of it is counted and said")
    def _():
        def looked_at(i, err, ms, room):
            got = i["lost"]["signal-blocked"]
            check_near("ticks of the thread that blocks signals", got, ms, room)
            check("(deaf) blocks signal 16 (SIGSTKFLT)" in err and "the thread blocked the tick's signal" in err, err)
            check(i["samples"] > 5, "%d samples of the other" % i["samples"])
        r = support.record([host("blocks"), "400"]).ok()
        looked_at(info(r.trace), r.err, 400, 60)
        p = Started([host("blocks"), "60000"])
        p.wait_for("begin")
        until_threads(p, 2)
        time.sleep(0.1)
        before = cpu_of(p.p.pid, "deaf")
        r = attach(p.p.pid, duration="1s")
        ms = (cpu_of(p.p.pid, "deaf") - before) / 1e6
        end(p)
        looked_at(info(r.trace), r.err, ms, 0.4 * ms + 50)     # its time before and after the recording is in it

    @test("churn", "threads and VMs that come and go while it is attached to: the later ones are recorded too")
    def _():
        p = Started([host("workers"), "4", "1000", "300"])
        until_threads(p, 3)
        for duration in ("1500ms", "6s", "20s"):        # until some have come and gone
            r = attach(p.p.pid, duration=duration)
            i = info(r.trace)
            if i["vms"] >= 6 and i["threads"] >= 5 and i["samples"] > 20:
                break
        attach(p.p.pid, duration="300ms")
        check(p.p.poll() is None, "it ended: %s %s" % (p.p.poll(), p.read(p.err)))
        end(p)
        check(i["vms"] >= 6 and i["threads"] >= 5, "%d VMs, %d threads" % (i["vms"], i["threads"]))
        check(i["samples"] > 20, "%d samples" % i["samples"])

    @test("pool", "threads that end while they are listed: one behind them that lives keeps what is its own")
    def _():
        p = Started([host("pool"), "20"])
        p.wait_for("begin")
        r = attach(p.p.pid, "-i", "250us", duration="15s")
        status = p.wait()
        check(status == 0, "it ended with %s while it was attached to: %s" % (status, r.err))
        check("threads have ended" in p.read(p.out), p.read(p.out))
        check(info(r.trace)["threads"] > 20, "%d threads: %s" % (info(r.trace)["threads"], r.err))

    @test("timers", "each timer ticks an attached process; cputime timers are gone afterwards")
    def _():
        p = begun(LOOP, "60")
        before = process.state(p.p.pid)
        for timer in ("helper", "cputime"):
            r = attach_until(p.p.pid, 40, "--timer", timer)
            same(before, p.p.pid)
            check(info(r.trace)["timer"] == timer and info(r.trace)["ticks"] > 20, "timer %s: %r" % (timer, r.err))
        end(p)
