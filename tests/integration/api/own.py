"""Programs that begin their own recorder: luasample.start and luasample_begin where nobody records. Imported by run.py."""
import os
import re
import signal
import time

import support as s
from support import check

ROOT = os.path.dirname(s.TESTS)
SCRIPT = os.path.join(s.LUA, "own.lua")


def env(luasample=None):
    """The module for programs that are not recorded, and which luasample it finds."""
    path = os.path.join(ROOT, "libsample", "api", "?.lua") + ";;"
    return s.luajit().environ({"LUA_PATH": path, "LUASAMPLE": luasample or s.luasample()})


def run_script(*args, **kw):
    return s.run([s.luajit().program, SCRIPT, *args], env=env(kw.pop("luasample", None)), timeout=60, **kw)


def ticks(trace, by, name):
    return {row[name]: row["self_ticks"] for row in s.rows(trace, "--by", by)}


def is_about(got, want):
    """Shares of the ticks: this machine may be busy, so ticks come late, but they come."""
    more = {name: n for name, n in got.items() if name not in want}
    total = sum(got.values())
    check(set(want) <= set(got) and sum(more.values()) <= 0.04 * total and total > 60, "%s, not about %s" % (got, want))
    for name, share in want.items():
        check(abs(got[name] / total - share) < 0.08 + 2 / total ** 0.5, "%s has %d of %d ticks" % (name, got[name], total))


def counters(trace):
    return {c["name"]: c["last"] for c in s.info(trace)["counters"] if not c["name"].startswith("Lua ")}       # of its own


def marks(trace):
    out = s.run([s.luasample(), "dump", "-i", trace]).ok().out
    return re.findall(r' span .*name="(.*)"', out)


def add_to(suite):
    test = suite.test

    @test("own-lua", "a script begins its own recorder, twice: shares, zones, labels, marks, counters", quick=True)
    def own_lua():
        file = s.tmpfile(".own")
        r = run_script(file).ok()
        check(r.err == "", "stderr: " + r.err)
        want = ["before\tfalse"]
        for n in "12":
            trace = file + "." + n
            want += ["start\t" + trace, "again\t" + trace, "recording\ttrue", "error\tfalse\traised", "stop\t" + trace,
                     "after\tfalse"]
        check([line for line in r.out.splitlines()] == want, r.out)
        for n in 1, 2:
            trace = "%s.%d" % (file, n)
            check(s.info(trace)["complete"], "%s is not whole" % trace)
            is_about(ticks(trace, "zone-path", "zone"), {"outer": 0.6, "outer;inner": 0.2, "(none)": 0.2})
            is_about(ticks(trace, "label:who", "label"), {"ann": 0.8, "(none)": 0.2})
            check(marks(trace) == ["mark %d" % n], "marks %s" % marks(trace))
            check(counters(trace) == {"part": n + 0.5}, "counters %s" % counters(trace))
            names = [row["function"] for row in s.rows(trace, "--by", "function") if row["self_ticks"] > 5]
            check("heavy" in s.report(trace, "--min", "0").out, "no function heavy: %s" % names)

    @test("own-c", "a C host begins its own recorder, twice, and notices neither children nor descriptors", quick=True)
    def own_c():
        file = s.tmpfile(".own")
        r = s.run([s.host("own"), file], env=env(), timeout=60).ok()
        one = ("begin 1 \nstart 1\nagain 0\nmark 1\ncounter 1\nlabel 1\nzone 1\npop 1\nrecording 1, stack 0\nstop 1\n"
               "trace %s\nrecording 0, descriptors +0\n")
        check(r.out == "before 0\n" + one % (file + ".1") + one % (file + ".2") +
              "wait -1 ECHILD, SIGCHLD 0, mask same\n" and r.err == "", r.out + r.err)
        for n in "12":
            trace = file + "." + n
            is_about(ticks(trace, "zone-path", "zone"), {"zone of C": 1})
            is_about(ticks(trace, "label:who", "label"), {"bob": 1})
            got = marks(trace), counters(trace)
            check(got == (["mark of C"], {"counter of C": -2.5}), "%s %s" % got)

    @test("own-zone-before", "LuaJIT's jit.zone, loaded before the start: its zones, those from before too, and labels")
    def own_zone_before():
        script, file = s.tmpfile(".lua"), s.tmpfile(".own")
        with open(script, "w") as f:
            f.write("""local zone, ls = require "jit.zone", require "luasample"
                local function spin(ms) local e = os.clock() + ms / 1000 repeat until os.clock() >= e end
                zone "old" ls.start { output = arg[1] }
                spin(80) zone "new" spin(80) zone() ls.zone("ours", spin, 80)
                collectgarbage() collectgarbage()
                local co = coroutine.wrap(function() ls.label("who", "co") spin(80) coroutine.yield() end)
                co() spin(80) print(ls.stop(), zone(), pcall(zone))""")
        r = s.run([s.luajit().program, script, file], env=env()).ok()
        check(r.out.startswith(file + "\told\tfalse") and "empty zone stack" in r.out, r.out + r.err)
        is_about(ticks(file, "zone-path", "zone"), {"old": 0.6, "old;new": 0.2, "old;ours": 0.2})
        is_about(ticks(file, "label:who", "label"), {"co": 0.2, "(none)": 0.8})

    @test("own-after", "what a recording that has ended leaves behind does nothing; a second one has labels of its own")
    def own_after():
        script, file = s.tmpfile(".lua"), s.tmpfile(".own")
        with open(script, "w") as f:
            f.write("""local ls = require "luasample"
                local function spin(ms) local e = os.clock() + ms / 1000 repeat until os.clock() >= e end
                ls.start { output = arg[1] } spin(30) ls.stop()
                print(pcall(ls.label, "who", "nobody"))
                print(pcall(ls.zone, "z", spin, 1))
                print(pcall(ls.ready, coroutine.create(spin)))
                ls.start { output = arg[1] .. ".2" }
                ls.label("who", "ann") spin(150) print(ls.stop())""")
        r = s.run([s.luajit().program, script, file], env=env(), timeout=60).ok()
        check(r.out == "true\ntrue\ntrue\n%s.2\n" % file, r.out + r.err)
        is_about(ticks(file + ".2", "label:who", "label"), {"ann": 1})

    @test("own-fork", "a child that is forked meanwhile is recorded too, and its stop is not its parent's")
    def own_fork():
        script, file = s.tmpfile(".lua"), s.tmpfile(".own")
        with open(script, "w") as f:
            f.write("""local ffi, ls = require "ffi", require "luasample"
                ffi.cdef [[int fork(void); void _exit(int); int waitpid(int, int *, int);]]
                local function spin(ms) local e = os.clock() + ms / 1000 repeat until os.clock() >= e end
                ls.start { output = arg[1] }
                local pid = ffi.C.fork()
                if pid == 0 then
                  local e = os.time() + 20
                  repeat spin(20) until ls.is_recording() or os.time() > e
                  print("child", ls.is_recording(), ls.stop(), ls.is_recording())
                  io.stdout:flush() ffi.C._exit(0)
                end
                ffi.C.waitpid(pid, nil, 0)
                spin(100) print("parent", ls.is_recording(), ls.stop())""")
        r = s.run([s.luajit().program, script, file], env=env(), timeout=60).ok()
        check(r.out == "child\ttrue\tnil\ttrue\nparent\ttrue\t%s\n" % file, r.out + r.err)
        check(len(s.info(file)["processes"]) == 2, "processes: %s" % s.info(file)["processes"])

    @test("own-closed", "a program without stdin and stdout begins a recorder like any other")
    def own_closed():
        script, file = s.tmpfile(".lua"), s.tmpfile(".own")
        with open(script, "w") as f:
            f.write("""local ls = require "luasample"
                local trace, why = ls.start { output = arg[1] }
                local e = os.clock() + 0.1 repeat until os.clock() >= e
                io.stderr:write(tostring(ls.stop()), " ", tostring(why), "\\n")""")
        r = s.run(["sh", "-c", 'exec "$@" <&- >&-', "sh", s.luajit().program, script, file], env=env(), timeout=40).ok()
        check(r.err == file + " nil\n", r.err)
        check(s.info(file)["complete"], "the trace is not whole")

    @test("own-joins", "under luasample record start joins that recording, and no other begins")
    def own_joins():
        file = s.tmpfile(".own")
        r = s.record([s.luajit().program, SCRIPT, file], env=env()).ok()
        check("start\n" in r.out and "stop\n" in r.out and not os.path.exists(file + ".1"), r.out)
        check(marks(r.trace) == ["unseen", "mark 1", "mark 2"], "marks %s" % marks(r.trace))

    @test("own-attached", "while record -p is attached start joins that, and stop does not end it")
    def own_attached():
        script, file, flag = s.tmpfile(".lua"), s.tmpfile(".data"), s.tmpfile(".flag")
        with open(script, "w") as f:
            f.write("""local ls = require "luasample" ls.mark "unseen" print "begin" io.stdout:flush()
                local function spin(ms) local e = os.clock() + ms / 1000 repeat until os.clock() >= e end
                repeat spin(20) until io.open(arg[1])
                print("start", ls.start { name = "joined", output = arg[1] .. ".own" })
                ls.zone("mine", spin, 200) ls.mark "here"
                print("stop", ls.stop(), ls.start(), ls.is_recording()) io.stdout:flush()
                while true do spin(50) end""")
        p = s.Started([s.luajit().program, script, flag], env=env())
        try:
            p.wait_for("begin")
            r = s.Started([s.luasample(), "record", "-p", str(p.p.pid), "-o", file])
            until = time.monotonic() + 30
            while "attached to" not in r.read(r.err):
                check(time.monotonic() < until and r.p.poll() is None, "not attached: " + r.read(r.err))
                time.sleep(0.02)
            open(flag, "w").close()
            p.wait_for("stop\t")
            r.signal(signal.SIGINT)
            check(r.wait() == 0, r.read(r.err))
            check("start\nstop\tnil\tnil\ttrue\n" in p.read(p.out) and not os.path.exists(flag + ".own"), p.read(p.out))
        finally:
            p.p.kill()
            p.p.wait()
        check(ticks(file, "zone-path", "zone").get("mine", 0) > 20 and marks(file) == ["here"], s.report(file).out)

    @test("own-none", "without an installed luasample start is silent and does nothing", quick=True)
    def own_none():
        alone = None
        for where in "/no/such/luasample", "none", "/":
            file = s.tmpfile(".own")
            r = run_script(file, luasample=where).ok()
            check(r.err == "" and not os.path.exists(file + ".1"), r.err)
            check("start\nagain\nrecording\tfalse" in r.out, r.out)
            check(alone in (None, r.out), "%s, before %s" % (r.out, alone))
            alone = r.out
            c = s.run([s.host("own"), file], env=env(where)).ok()
            check("begin 0 \nstart 0\nagain 0\n" in c.out and "trace none" in c.out and c.err == "", c.out + c.err)

    @test("own-fails", "a recorder that cannot begin says why to the program, and to nobody else")
    def own_fails():
        r = run_script("/no/such/directory/x").ok()
        check(re.search(r"^start\tnil\tcannot write /no/such/directory/x.1: No such file", r.out, re.M), r.out)
        check(r.err == "" and "recording\tfalse" in r.out and "stop\n" in r.out, r.out)
        c = s.run([s.host("own"), "/no/such/directory/x"], env=env(), timeout=60).ok()
        check(re.search(r"^begin -\d+ cannot write", c.out, re.M) and c.err == "", c.out + c.err)
        script = s.tmpfile(".lua")
        with open(script, "w") as f:
            f.write("print(require('luasample').start{ options = { '--no-such-option' } })")
        r = s.run([s.luajit().program, script], env=env()).ok()
        check(r.out.startswith("nil\t") and "--no-such-option" in r.out and r.err == "", r.out + r.err)

    @test("own-exit", "a program that ends without stop: its recorder ends too, and the trace is whole")
    def own_exit():
        file = s.tmpfile(".own")
        run_script(file, "exit").ok(3)
        until = time.monotonic() + 30
        while not s.info(file + ".1")["complete"]:
            check(time.monotonic() < until, "%s.1 is not whole after 30 s" % file)
            time.sleep(0.05)
        is_about(ticks(file + ".1", "zone-path", "zone"), {"outer": 0.6, "outer;inner": 0.2, "(none)": 0.2})
