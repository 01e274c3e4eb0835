#!/usr/bin/python3
"""Many processes in one trace: run.py [--quick] [--list] [NAME...]

Which processes of a family are recorded, that each has its own share of CPU time, and that none of them sees or feels it.
Programs are tests/hosts/family.c, luajit and shells. Needs the build directory in LUASAMPLE_BUILD (default build/)."""
import os
import re
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))
import support as s
from support import check

suite = s.Suite("processes")
SEVENTY = os.path.join(s.LUA, "seventy.lua")


def family(*args):
    return [s.host("family"), *args]


def luajit():
    return s.luajit().program


def ticks(r, function):
    """Ticks with this function anywhere in the stack."""
    return sum(x["total_ticks"] for x in r.rows("--by", "function") if x["function"].split("@")[0] == function)


def at_least(r, **want):
    """Milliseconds of CPU time, less what a loaded machine spends before the first tick."""
    for function, ms in want.items():
        got = ticks(r, function)
        check(got >= 0.8 * ms, "%d ticks in %s, expected about %d; %s" % (got, function, ms, r.err[-300:]))


def sums_hold(r):
    """The totals are the sums of what is said of each process, and what was written can be read."""
    i = r.info()
    for key in "samples", "ticks", "lost_ticks":
        check(i[key] == sum(p[key] for p in i["processes"]),
              "%s: %d in all, processes: %s" % (key, i[key], [p[key] for p in i["processes"]]))
    check(i["readable_samples"] == i["samples"], "%d samples of %d" % (i["readable_samples"], i["samples"]))
    check(i["lost"].get("bad-record", 0) == 0, "bad records: %s" % i["lost"])
    return i


def same_as_without(cmd, r):
    plain = s.run(cmd)
    check(plain.status == r.status, "status %d, without luasample %d" % (r.status, plain.status))
    check(sorted(plain.out.split("\n")) == sorted(r.out.split("\n")), "prints %r, without luasample %r" % (r.out, plain.out))


@suite.test("fork-with-vm", "children of fork go on with the parent's VM and compiled code", quick=True)
def fork_with_vm():
    cmd = family("fork_before")
    r = s.record(cmd).ok()
    same_as_without(cmd, r)
    at_least(r, parent=150 + 2 * 50, after=150, first=200, second=200)
    i = sums_hold(r)
    check(len(i["processes"]) == 3, "processes: %s" % i["processes"])
    rows = {x["process"]: x["self_ticks"] for x in r.rows("--by", "process")}
    check(sum(rows.values()) == i["readable_ticks"] and len(rows) == 3, "rows by process: %s" % rows)
    for p in i["processes"]:
        only = r.rows("--by", "function", "--process", str(p["pid"]))
        check(sum(x["self_ticks"] for x in only) == rows[p["pid"]], "--process %d: %s" % (p["pid"], only))
    # what was compiled before the fork is known in the children too
    unknown = i["lost"].get("map-missing", 0)
    check(unknown == 0, "%d traces without a map" % unknown)
    check(not [x for x in r.rows("--by", "jit-trace") if "not recorded" in str(x.get("trace"))], "a trace is not in the file")


@suite.test("fork-engines", "the same with the hook engine and with other timers")
def fork_engines():
    for opts in ("--engine", "hook"), ("--timer", "helper"), ("--timer", "cputime"):
        r = s.record(family("fork_before"), *opts).ok()
        at_least(r, first=200, second=200, after=150)


@suite.test("fork-without-vm", "children of fork make their own VMs", quick=True)
def fork_without_vm():
    cmd = family("fork_after")
    r = s.record(cmd).ok()
    same_as_without(cmd, r)
    at_least(r, first=200, second=200)
    sums_hold(r)


@suite.test("fork-in-thread", "a thread forks while another makes VMs")
def fork_in_thread():
    r = s.record(family("threads")).ok()
    check(r.out == "child ended 300\n", "prints %r" % r.out)
    at_least(r, thread_parent=100, thread_child=200)


@suite.test("execute-popen", "os.execute and io.popen, a shell in between")
def execute_popen():
    script = s.tmpfile(".lua")
    with open(script, "w") as f:
        f.write("print(os.execute('%s %s 0.2'))\nlocal f = io.popen('%s %s 0.2; echo popen; exit 5')\n"
                "print(f:read('*a'))\nprint(f:close())\n" % ((luajit(), SEVENTY) * 2))
    cmd = [luajit(), script]
    r = s.record(cmd).ok()
    same_as_without(cmd, r)
    i = sums_hold(r)
    check(len(i["processes"]) == 3, "processes: %s" % i["processes"])
    at_least(r, mul=0.7 * 400)


@suite.test("shells", "all ways to use popen and system return what they would; the environment stays what it is for other threads")
def shells():
    cmd = [s.host("shells"), "all"]
    same_as_without(cmd, s.record(cmd).ok())
    r = s.record([s.host("shells"), "readers", "5"])
    check(r.status == 0 and r.out == "many looks, 0 strange\n", "status %d, %r" % (r.status, r.out))


@suite.test("spawn", "posix_spawn, vfork with exec, system in four threads")
def spawn():
    for how, n in (("spawn", 1), ("vfork", 3)):
        cmd = family(how, luajit(), SEVENTY, "0.15")
        r = s.record(cmd).ok()
        same_as_without(cmd, r)
        at_least(r, mul=0.7 * 150 * n)
    cmd = family("systems", "%s %s 0.3 >/dev/null; exit 7" % (luajit(), SEVENTY))
    r = s.record(cmd).ok()
    same_as_without(cmd, r)
    at_least(r, mul=0.7 * 300 * 4)
    sums_hold(r)


for timer, most in ("perf", 3), ("helper", 7):
    @suite.test("queue-" + timer, "more programs than processors: where a turn ends is no place like others, --timer " + timer)
    def queue(timer=timer, most=most):
        each = "%s %s 1 >/dev/null & " % (luajit(), SEVENTY)
        r = s.record(["sh", "-c", each * 2 * os.cpu_count() + "wait"], "--timer", timer).ok()
        rows = {x["function"]: 100 * x["self"] for x in r.rows("--by", "function", "--min", "0")}
        clock, mul, add = (rows.get(name, 0) for name in ("os.clock", "mul", "add"))
        check(clock <= most, "os.clock, a few us a ms, has %.1f %%" % clock)
        s.check_near("mul of mul and add, per cent", 100 * mul / (mul + add), 70, 5)


@suite.test("exec-chain", "sh, env, sh, luajit, each the child of the one before")
def exec_chain():
    r = s.record(["sh", "-c", "env FOO=1 sh -c 'sh -c \"%s %s 0.2\"; exit 4'; exit $?" % (luajit(), SEVENTY)]).ok(4)
    at_least(r, mul=0.7 * 200)


@suite.test("daemon", "a daemon is recorded until it ends; the exit status is the program's", quick=True)
def daemon():
    r = s.record(family("daemon", "600")).ok(0)
    check("still recorded" in r.err, "no word about the daemon: " + r.err)
    at_least(r, parent=100, resident=600)
    cpu = r.info()["recorder_cpu_ns"]
    check(cpu < 0.2e9, "the recorder used %.2f s" % (cpu / 1e9))
    sums_hold(r)
    r = s.record(["sh", "-c", "%s %s 0.3 & exit 6" % (luajit(), SEVENTY)]).ok(6)
    at_least(r, mul=0.7 * 300)
    # one that takes its time before it execs, and one that never has a VM
    r = s.record(["sh", "-c", "(sleep 0.3; %s %s 0.3) & exit 6" % (luajit(), SEVENTY)]).ok(6)
    at_least(r, mul=0.7 * 300)
    start = time.monotonic()
    s.record(["sh", "-c", "sleep 20 >&- 2>&- & exit 6"]).ok(6)
    check(time.monotonic() - start < 15, "it is waited for")


@suite.test("daemon-ends", "-d, --no-wait and SIGINT end a recording that only a daemon keeps; the daemon goes on")
def daemon_ends():
    start = time.monotonic()
    r = s.record(family("daemon", "20000"), "-d", "1").ok(0)
    check(time.monotonic() - start < 15, "-d 1 did not end it")
    r2 = s.record(family("daemon", "20000"), "--no-wait").ok(0)
    check("still recorded" not in r2.err, r2.err)
    p = s.Started(s.record_cmd(family("daemon", "20000"), trace=s.tmpfile(".data")))
    end = time.monotonic() + 20
    while "still recorded" not in p.read(p.err) and time.monotonic() < end:
        time.sleep(0.02)
    p.p.send_signal(signal.SIGINT)
    check(p.wait(20) == 0, "SIGINT: " + p.read(p.err))
    check("wrote" in p.read(p.err), "no summary: " + p.read(p.err))
    left = [d for d in os.listdir("/proc") if d.isdigit() and daemon_of_ours(d)]
    check(len(left) == 3, "%d daemons go on, expected 3" % len(left))
    for pid in left:
        os.kill(int(pid), signal.SIGKILL)


def daemon_of_ours(pid):
    try:
        with open("/proc/%s/cmdline" % pid, "rb") as f:
            return f.read().split(b"\0")[:3] == [os.fsencode(s.host("family")), b"daemon", b"20000"]
    except OSError:
        return False


@suite.test("killed", "kill -9 of a child loses nothing that was committed", quick=True)
def killed():
    cmd = family("killed")
    r = s.record(cmd).ok()
    same_as_without(cmd, r)
    at_least(r, parent=100, victim=300, after=100)


@suite.test("storm", "200 short children, many at a time")
def storm():
    r = s.record(family("storm", "200")).ok()
    check(r.out == "storm over\n", "prints %r" % r.out)
    i = sums_hold(r)
    check(len(i["processes"]) >= 190, "%d processes of 201" % len(i["processes"]))
    check(i["recorder_cpu_ns"] < 5e9, "the recorder used %.1f s" % (i["recorder_cpu_ns"] / 1e9))
    s.check_near("ticks of the CPU time", i["ticks"] * 1e6, i["cpu_ns"], 0.12 * i["cpu_ns"])


@suite.test("unseen", "environment and descriptors of the program and its children are as without luasample")
def unseen():
    env = dict(os.environ, FAMILY="x y", LD_PRELOAD="")
    env.pop("LD_PRELOAD")
    cmd = family("look")
    for extra in {}, {"LD_PRELOAD": "/lib/x86_64-linux-gnu/libm.so.6"}, {"LD_PRELOAD": "/lib/x86_64-linux-gnu/libm.so.6:libdl.so.2"}:
        e = dict(env, **extra)
        plain, r = s.run(cmd, env=e), s.record(cmd, env=e)
        check(r.status == plain.status == 0, "status %d and %d" % (r.status, plain.status))
        for a, b in zip(sorted(plain.out.split("\n")), sorted(r.out.split("\n"))):
            check(a == b, "with %s: %r, without luasample %r" % (extra, b, a))
        check(r.out.count("\n") == plain.out.count("\n"), "%r" % r.out)
    at_least(r, parent=50, child=50)


@suite.test("no-children", "--no-children leaves all of them", quick=True)
def no_children():
    r = s.record(family("fork_before"), "--no-children").ok()
    at_least(r, parent=150, after=150)
    check(ticks(r, "first") == ticks(r, "second") == 0, "a child was recorded")
    check(len(r.info()["processes"]) == 1, "processes: %s" % r.info()["processes"])


@suite.test("refusals", "children that cannot hold the agent run as they are; the recorder says which ran LuaJIT")
def refusals():
    for name in "static", "asan":
        try:
            program = s.host(name)
        except s.Skip:
            continue
        r = s.record(["sh", "-c", "%s -; true" % program]).ok()
        plain = s.run(["sh", "-c", "%s -; true" % program])
        check(r.out == plain.out, "%s: prints %r, without luasample %r" % (name, r.out, plain.out))


@suite.test("hostile", "children that scribble over all shared memory do not harm the recorder")
def hostile():
    for timer in "perf", "helper":      # the recorder's own signals are no stranger's, whatever is written over its id
        scribbled_over(s.record(family("hostile", "4"), "--timer", timer, timeout=60))


def scribbled_over(r):
    check(r.status == 0 and r.out.endswith("hostile over\n"), "status %d, prints %r; %s" % (r.status, r.out, r.err[-300:]))
    check(re.search(r"scribbles over [1-9]", r.out), r.out)
    # One that finds no seat, since another has scribbled over the registry, still has its parent's memory.
    at_least(r, parent=100)
    size = os.path.getsize(r.trace)
    check(size < 64 << 20, "the trace has %d bytes" % size)


if __name__ == "__main__":
    sys.exit(suite.main())
