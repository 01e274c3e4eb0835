"""How attachments end: by a signal, by the program's end or exec, by the recorder's death."""
import os
import re
import signal
import time

import process
import support
from basic import LOOP, attach, attach_until, begun, end, same, shares
from support import Started, check, host, info, json_of, luajit, need, rows, tmpfile


BURN = "local function burn(s) local e = os.clock() + s repeat until os.clock() >= e end\n"


def lua(*text):
    """A file with that program."""
    path = tmpfile(".lua")
    with open(path, "w") as f:
        f.write("".join(text))
    return path


def started(pid, *opts, then=None):
    """A recorder that is attached."""
    r = Started([support.luasample(), "record", "-p", str(pid), "-o", tmpfile(".data"), *opts], then=then)
    r.trace = r.p.args[r.p.args.index("-o") + 1]
    deadline = time.monotonic() + 30
    while "attached to" not in r.read(r.err):
        check(time.monotonic() < deadline and r.p.poll() is None, "not attached: " + r.read(r.err))
        time.sleep(0.02)
    return r


def cpu_of(pid, stat="stat"):
    """The CPU time in s of the process, or of the thread whose file stat is."""
    return sum(int(x) for x in process.read(pid, stat).rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")


def runs_for(pid, seconds, stat="stat"):
    """Waits until it has had so much CPU time: on a busy machine that takes longer."""
    start, deadline = cpu_of(pid, stat), time.monotonic() + 60
    while cpu_of(pid, stat) - start < seconds:
        check(time.monotonic() < deadline, "it does not run")
        time.sleep(0.02)


def add_to(suite):
    test = suite.test

    for how, out, status in (("pthread", "begin\nat exit\n", 0), ("raw", "begin\n", 7)):
        @test("last-" + how, "the program's last thread ends (%s): so does the process, as alone" % how)
        def _(how=how, out=out, status=status):
            p = Started([host("lastone"), how])
            p.wait_for("begin")
            r = started(p.p.pid)
            runs_for(p.p.pid, 0.3)
            p.signal(signal.SIGUSR1)
            check(p.wait(20) == status and p.read(p.out) == out, "ended with %s: %r" % (p.p.poll(), p.read(p.out)))
            check(r.wait(20) == 0 and info(r.trace)["samples"] > 50, r.read(r.err))

    for how in "timed", "fd":
        @test("sigwaits-" + how, "a thread that waits for all signals (%s) is told of no tick" % (
            "sigtimedwait" if how == "timed" else "signalfd"))
        def _(how=how):
            p = Started([host("sigwaits"), how])
            p.wait_for("begin")
            r = started(p.p.pid)
            runs_for(p.p.pid, 1)
            r.signal(signal.SIGINT)
            check(r.wait(20) == 0 and info(r.trace)["samples"] > 200, r.read(r.err))
            p.signal(signal.SIGUSR1)
            check(p.wait(20) == 0 and p.read(p.out) == "begin\ntold of 0 others\n", p.read(p.out))

    @test("interrupt", "Ctrl-C ends the recording, not the program", quick=True)
    def _():
        p = begun(LOOP, "60")
        before = process.state(p.p.pid)
        r = started(p.p.pid)
        runs_for(p.p.pid, 0.3)
        r.signal(signal.SIGINT)
        check(r.wait() == 0, "status of the recorder: " + r.read(r.err))
        same(before, p.p.pid)
        end(p)
        check(info(r.trace)["complete"], "the trace has no end")
        shares(r)

    @test("ring", "--last: SIGUSR2 writes the last seconds of a program that ran already", quick=True)
    def _():
        p = begun(LOOP, "60")
        r = started(p.p.pid, "--last", "60s")
        runs_for(p.p.pid, 0.3)
        r.signal(signal.SIGUSR2)
        deadline = time.monotonic() + 20
        while not os.path.exists(r.trace + ".1"):
            check(time.monotonic() < deadline and r.p.poll() is None, "nothing was written: " + r.read(r.err))
            time.sleep(0.02)
        r.signal(signal.SIGINT)
        check(r.wait() == 0, "status of the recorder: " + r.read(r.err))
        end(p)
        for trace in (r.trace, r.trace + ".1"):
            check(info(trace)["complete"] and info(trace)["ticks"] > 50, "%s: %s" % (trace, info(trace)))

    @test("killed", "a recorder that is killed: the agent leaves by itself, and another may come")
    def _():
        p = begun(LOOP, "60")
        before = process.state(p.p.pid)
        r = started(p.p.pid)
        time.sleep(1.5)                         # what it has written by then is kept
        r.p.kill()
        r.p.wait()
        s = started(p.p.pid)                    # waits for the agent to leave
        s.signal(signal.SIGTERM)
        check(s.wait() == 0, "status of the second recorder: " + s.read(s.err))
        same(before, p.p.pid)
        end(p)
        check(info(r.trace)["samples"] > 0, "the first recording has no samples")

    @test("stopped", "a recorder that is stopped for long: program and agent go on, and it ends as it should")
    def _():
        p = begun(LOOP, "60")
        before = process.state(p.p.pid)
        r = started(p.p.pid)
        r.signal(signal.SIGSTOP)
        time.sleep(2.6)                         # longer than the agent's patience with a recorder that has ended
        check(p.p.poll() is None, "the program has ended: %r" % p.p.poll())
        r.signal(signal.SIGCONT)
        time.sleep(0.2)
        r.signal(signal.SIGINT)
        check(r.wait() == 0, "status of the recorder: " + r.read(r.err))
        same(before, p.p.pid)
        end(p)

    @test("program-ends", "the program ends while it is attached to: its last samples are there")
    def _():
        p = begun(LOOP, "2")
        r = started(p.p.pid)
        check(p.wait() == 0 and r.wait() == 0, "status: " + r.read(r.err))
        check("done" in p.read(p.out), p.read(p.out))
        check(info(r.trace)["complete"] and info(r.trace)["samples"] > 0, "no samples: " + r.read(r.err))

    @test("program-killed", "the program is killed while it is attached to")
    def _():
        p = begun(LOOP, "60")
        r = started(p.p.pid)
        time.sleep(0.5)
        end(p)
        check(r.wait() == 0, "status: " + r.read(r.err))
        check(info(r.trace)["samples"] > 0, "no samples: " + r.read(r.err))

    @test("exec", "a program that runs another in its own place while it is attached to: no tick comes to the new image")
    def _():
        for timer in ("perf", "helper", "cputime"):
            for n in range(3):
                p = Started([luajit().program, os.path.join(support.LUA, "attachexec.lua"), str(0.5 + 0.013 * n)])
                p.wait_for("begin")
                r = started(p.p.pid, "--timer", timer, "-i", "250us")
                check(p.wait() == 0, "%s: the program ended with status %d" % (timer, p.p.returncode))
                out = p.read(p.out)
                check("new image" in out and "failed 2" in out, "%s: it printed %r" % (timer, out))
                check(r.wait() == 0, "record: %s" % r.read(r.err))

    @test("scheduling", "the recorder keeps the scheduling class that it was given, but for the moments in which threads are stopped")
    def _():
        p = begun(LOOP, "60")
        r = started(p.p.pid, then=lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)))
        seen = [os.sched_getscheduler(int(tid)) for tid in os.listdir("/proc/%d/task" % r.p.pid)]
        r.signal(signal.SIGINT)
        check(r.wait() == 0, r.read(r.err))
        end(p)
        check(set(seen) == {os.SCHED_BATCH}, "classes of its threads: %r" % seen)

    @test("raw-children", "children that are made by a bare system call while entries are closed run what they should")
    def _():
        p = Started([host("rawfork")])
        p.wait_for("begin")
        for i in range(30):
            attach(p.p.pid, "-i", "1s", duration="1ms")         # no tick comes
            check(p.p.poll() is None, "it ended with %s after %d attachments: %s" % (p.p.poll(), i + 1, p.read(p.out)))
        p.signal(signal.SIGTERM)
        status = p.wait()
        said = p.read(p.out).split("\n")[1]
        check(status == 0 and int(said.split()[0]) > 300, "status %d, it said %r" % (status, said))

    @test("children", "children of an attached program by fork, popen and exec run as they should")
    def _():
        script = tmpfile(".lua")
        with open(script, "w") as f:
            f.write("local ffi = require('ffi') ffi.cdef[[int fork(void); void _exit(int); int waitpid(int, int *, int);\n"
                    "int execlp(const char *, const char *, ...);]]\n"
                    "local function burn(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end\n"
                    "print('begin') io.stdout:flush()\n"
                    "while os.clock() < 1 do\n"
                    "  burn(3e6)\n"
                    "  assert(os.execute('true') == 0)\n"
                    "  assert(io.popen('echo x'):read('*a') == 'x\\n')\n"
                    "  local pid = ffi.C.fork() if pid == 0 then burn(3e6) ffi.C._exit(7) end\n"
                    "  local s = ffi.new('int[1]') ffi.C.waitpid(pid, s, 0) assert(s[0] == 7 * 256, s[0])\n"
                    "end\n"
                    "print('cpu', os.clock()) print('all well') io.stdout:flush()\n"
                    "ffi.C.execlp('sh', 'sh', '-c', 'echo new image', ffi.cast('char *', 0))\n")
        p = begun(script)
        attach(p.p.pid, duration="300ms")
        r = started(p.p.pid)
        before = support.cpu_of(p.p.pid)
        status = p.wait()
        check(status == 0, "status of the program: %d %s" % (status, p.read(p.err)))
        ms = 1000 * (float(re.search(r"cpu\s+([\d.]+)", p.read(p.out)).group(1)) - before)
        check("all well\nnew image\n" in p.read(p.out), p.read(p.out) + p.read(p.err))
        status = r.wait()
        i = info(r.trace)
        check(status == 0 and i["samples"] > 0, "recorder: %d %s" % (status, r.read(r.err)))
        # what starts a child by posix_spawn has its memory in common with it: the child's exec is not the program's
        own = sum(x["ticks"] for x in i["processes"] if x["pid"] == p.p.pid)
        check(own > 0.9 * ms - 20, "%d ticks of the program in %d ms: %s" % (own, ms, i["processes"]))

    @test("forks", "children that are forked while it is attached to are recorded too, and are as they should be afterwards")
    def _():
        p = begun(os.path.join(support.LUA, "attachforks.lua"))
        r = started(p.p.pid)
        deadline = time.monotonic() + 60
        while r.read(r.err).count("attached to") < 3:
            check(time.monotonic() < deadline and p.p.poll() is None, "no children: " + r.read(r.err))
            time.sleep(0.05)
        time.sleep(1)
        r.signal(signal.SIGINT)
        check(r.wait() == 0, r.read(r.err))
        by = json_of(["report", "-i", r.trace, "--min", "0", "--json", "--by", "process"])["rows"]
        parent = [x for x in by if x["name"].startswith("%d " % p.p.pid)]
        check(len(parent) == 1 and len(by) >= 3, "processes: %r" % [(x["name"], x["self_ticks"]) for x in by])
        names = {x["name"]: x["self_ticks"] for x in rows(r.trace, "--min", "0")}
        check({"parent_work", "child_work"} <= set(names), "functions: %r" % names)
        clock = names.get("os.clock", 0)        # which each calls, and which is dear on a busy machine
        check(names["child_work"] + clock >= sum(x["self_ticks"] for x in by if x not in parent) * 0.8,
              "ticks of children are not in their function: %r, %r" % (names, by))
        alone = attach(p.p.pid, "--no-children", duration="1500ms")
        by = json_of(["report", "-i", alone.trace, "--min", "0", "--json", "--by", "process"])["rows"]
        check(len(by) == 1, "--no-children: %r" % [(x["name"], x["self_ticks"]) for x in by])
        check("child_work" not in {x["name"] for x in rows(alone.trace, "--min", "0")}, "it has samples of children")
        p.wait_for("child 0", 60)
        time.sleep(0.5)                         # some more children, of which nobody knows
        for kid in support.children_of(p.p.pid):
            check(len(os.listdir("/proc/%d/task" % kid)) == 1, "a child has a thread of ours")
        p.signal(signal.SIGTERM)
        p.wait()
        said = p.read(p.out).split("\n")
        check("child 0" in said and not [x for x in said if x and x not in ("begin", "child 0")], "the children ended: %r" % said)

    @test("own-descriptors", "the agent's thread has no descriptor in common with the program, and keeps none of its own")
    def _():
        p = begun(LOOP, "60")
        r = started(p.p.pid)
        task = "/proc/%d/task" % p.p.pid
        tid, = [t for t in os.listdir(task) if process.read(p.p.pid, "task/%s/comm" % t) == "luasample\n"]
        seen = []
        for _ in range(80):                     # it opens something each 50 ms, for some microseconds
            seen.append(os.listdir("%s/%s/fd" % (task, tid)))
            time.sleep(0.02)
        check(seen.count([]) > 60 and [] in seen[-10:], "descriptors of the agent: %s" % [x for x in seen if x])
        check(len(os.listdir("/proc/%d/fd" % p.p.pid)) >= 3, "the program has lost its own")
        r.signal(signal.SIGINT)
        check(r.wait() == 0, r.read(r.err))
        end(p)

    @test("class", "the recorder has the scheduling class that its user has given it")
    def _():
        p = begun(LOOP, "60")
        for policy, priority in ((os.SCHED_BATCH, 0), (os.SCHED_IDLE, 0), (os.SCHED_RR, 2)):
            try:
                os.sched_setscheduler(0, policy, os.sched_param(priority))
                r = started(p.p.pid)
            except PermissionError:
                raise support.Skip("scheduling classes cannot be set here")
            finally:
                os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            now = os.sched_getscheduler(r.p.pid), os.sched_getparam(r.p.pid).sched_priority
            r.signal(signal.SIGINT)
            check(r.wait() == 0, r.read(r.err))
            check(now == (policy, priority), "class and priority are %s, were %s" % (now, (policy, priority)))
        end(p)

    @test("locked-all", "a program that locks all of its memory, and what it will have, gets none of the agent's locked")
    def _():
        def kib(key):
            return int(re.search(key + r":\s+(\d+)", process.read(p.p.pid, "status")).group(1))
        if os.geteuid():
            raise support.Skip("locking memory without a limit needs root")
        p = Started([support.host("locked"), "60"])
        p.wait_for("begin")
        before, seen = kib("VmRSS"), []
        for _ in range(2):
            r = started(p.p.pid)
            runs_for(p.p.pid, 0.3)
            seen.append(kib("VmRSS") - before)
            r.signal(signal.SIGINT)
            check(r.wait() == 0, r.read(r.err))
            seen.append(kib("VmRSS") - before)
        end(p)
        print("     KiB more in memory: %d during and %d after, then %d and %d" % tuple(seen))
        # what is left: two arenas of the C library's malloc, the stack's and the library's pages that were used
        check(max(seen) < 4000 and max(seen[1::2]) < 800, "KiB more during and after, twice: %s" % seen)
        check(abs(seen[3] - seen[1]) < 100, "another %d KiB at the second time" % (seen[3] - seen[1]))

    @test("daemon", "a program that forks and ends before its child has run: the child is recorded")
    def _():
        script = lua(
            "local ffi = require('ffi') ffi.cdef[[int fork(void); int usleep(unsigned);\n"
            "int __register_atfork(void *, void *, void (*child)(void), void *);]]\n", BURN,
            "function daemon_work() burn(1) end\n"
            # before the handler of the agent, which is not there yet
            "local late = ffi.cast('void (*)(void)', function() ffi.C.usleep(300000) end)\n"
            "ffi.C.__register_atfork(nil, nil, late, nil)\n"
            "burn(0.05) print('begin') io.stdout:flush()\n"
            "while not io.open(arg[1]) do burn(0.02) end\n"
            "jit.off() if ffi.C.fork() > 0 then os.exit(0, false) end\n"
            "daemon_work()\n")
        flag = tmpfile(".flag")
        p = begun(script, flag)
        r = started(p.p.pid)
        open(flag, "w").close()
        check(p.wait() == 0 and r.wait() == 0, r.read(r.err))
        check(len(info(r.trace)["processes"]) == 2, "processes: %s" % info(r.trace)["processes"])
        check("daemon_work" in {x["name"] for x in rows(r.trace, "--min", "0")}, "the child has no samples")

    @test("storm", "more children at a time than the recorder can be told of: it says how many are not recorded")
    def _():
        flag = tmpfile(".flag")
        script = lua(
            "local ffi = require('ffi') ffi.cdef[[int fork(void); int usleep(unsigned); void _exit(int);]]\n", BURN,
            "burn(0.05) print('begin') io.stdout:flush()\n"
            "while not io.open(arg[1]) do burn(0.02) end\n"
            "for i = 1, 35 do if ffi.C.fork() == 0 then ffi.C.usleep(20e6) ffi.C._exit(0) end end\n"
            "print('forked') io.stdout:flush() while true do burn(0.1) end\n")
        p = begun(script, flag)
        r = started(p.p.pid)
        r.signal(signal.SIGSTOP)
        open(flag, "w").close()
        p.wait_for("forked")
        kids = support.children_of(p.p.pid)
        deadline = time.monotonic() + 30        # each tells of itself when it runs
        while any(process.read(kid, "stat").rsplit(")", 1)[1].split()[0] != "S" for kid in kids):
            check(time.monotonic() < deadline, "the children do not run")
            time.sleep(0.02)
        r.signal(signal.SIGCONT)
        time.sleep(0.3)
        r.signal(signal.SIGINT)
        check(r.wait() == 0, r.read(r.err))
        for kid in kids:
            os.kill(kid, signal.SIGKILL)
        end(p)
        check(len(kids) == 35 and "3 forked processes are not recorded" in r.read(r.err), r.read(r.err))

    @test("leave-slowly", "one of two processes ends while the other does not let the agent go: the trace is whole")
    def _():
        a, b = begun(LOOP, "60"), begun(LOOP, "60")
        r = started("%d,%d" % (a.p.pid, b.p.pid))
        runs_for(b.p.pid, 0.2)
        a.signal(signal.SIGSTOP)
        r.signal(signal.SIGINT)
        time.sleep(0.3)
        end(b)
        check(r.wait() == 0, "status %d: %s" % (r.p.returncode, r.read(r.err)))
        check("has not let the agent go yet" in r.read(r.err), r.read(r.err))
        check(info(r.trace)["complete"], "the trace has no end")
        a.signal(signal.SIGCONT)
        end(a)

    @test("two", "two processes at once, by a list")
    def _():
        a, b = begun(LOOP, "60"), begun(LOOP, "60")
        states = process.state(a.p.pid), process.state(b.p.pid)
        r = attach_until("%d,%d" % (a.p.pid, b.p.pid), 200)
        same(states[0], a.p.pid)
        same(states[1], b.p.pid)
        end(a)
        end(b)
        check(info(r.trace)["vms"] == 2, "%d VMs" % info(r.trace)["vms"])
        shares(r)

    @test("by-name", "all processes of a name; those that cannot be attached to are said, the others recorded")
    def _():
        copy = tmpfile("-lua")
        import shutil
        shutil.copy(luajit().program, copy)
        p = Started([copy, LOOP, "60"])
        p.wait_for("begin")
        r = support.run([support.luasample(), "record", "--name", os.path.basename(copy), "-d", "400ms", "-o",
                         tmpfile(".data")], timeout=60).ok()
        end(p)
        check("attached to %d" % p.p.pid in r.err, r.err)
