"""What can be recorded: each kind of LuaJIT and of start; and what cannot, in one line that names it, unharmed.
Imported by run.py."""
import os
import re
import shutil
import stat

import support as s
from support import check


def sampled(r, function, least):
    """At least so many ticks of a function (or of what it calls) are in the trace."""
    ticks = sum(x.get("total_ticks") or 0 for x in r.rows("--by", "function") if x["function"].startswith(function))
    check(ticks >= least, "%d ticks of %s, expected %d; %s; stderr: %s" % (
        ticks, function, least, [x["function"] for x in r.rows()][:10], r.err[-300:]))


def says_one_line(r, status, *patterns):
    check(r.status == status, "status %d, expected %d; stderr: %s" % (r.status, status, r.err[-400:]))
    lines = [l for l in r.err.splitlines() if l.startswith("luasample")]
    hit = [l for l in lines if all(re.search(p, l, re.I) for p in patterns)]
    check(hit, "no line with %s in: %s" % (" and ".join(patterns), r.err[-600:]))


def add_to(suite):
    t = suite.test

    def each_luajit(name):
        @t("kinds.luajit." + name, "a LuaJIT of scripts/luajit-trees", name == "debian")
        def program():
            lj = s.luajit(name)
            for opts in ([], ["-joff"]):
                r = s.record_lua("seventy.lua", lj=lj, lua_opts=opts, args=["1"]).ok()
                check(r.out == "seventy done\n", "stdout %r" % r.out)
                sampled(r, "mul", 600)
    for name in ("debian", "shared", "luajit2", "luajit2so"):
        each_luajit(name)

    @t("kinds.-E", "luajit -E, which ignores the environment")
    def ignore_env():
        r = s.record_lua("seventy.lua", lua_opts=["-E"], args=["1"]).ok()
        sampled(r, "mul", 600)

    @t("kinds.-e", "a program on the command line")
    def command_line():
        r = s.record([s.luajit().program, "-e", "local x = 0 for i = 1, 2e8 do x = x + i % 7 end"]).ok()
        check(sum(x["self_ticks"] for x in r.rows()) > 100, "no samples: " + r.err)

    @t("kinds.shebang", "./app.lua with #!/usr/bin/env luajit", True)
    def shebang():
        r = s.record([os.path.join(s.LUA, "shebang.lua"), "a b"]).ok()
        check(r.out == "shebang done\ta b\n", "stdout %r" % r.out)
        sampled(r, "in_script", 250)

    @t("kinds.sh-exec", "sh -c 'exec luajit app.lua'")
    def sh_exec():
        r = s.record(["sh", "-c", "exec luajit %s/seventy.lua 1" % s.LUA]).ok()
        sampled(r, "mul", 600)

    @t("kinds.sh-c", "sh -c 'luajit app.lua': a child process is recorded; with --no-children it is named")
    def sh_child():
        command = ["sh", "-c", "luajit %s/seventy.lua 0.3; true" % s.LUA]
        r = s.record(command).ok()
        check(r.out == "seventy done\n", "stdout %r" % r.out)
        sampled(r, "mul", 150)
        r = s.record(command, "--no-children").ok()
        check(re.search(r"pid \d+ ran LuaJIT; not followed", r.err), "no 'pid N ran LuaJIT; not followed' in: " + r.err)

    @t("kinds.exec-chain", "a chain of execs in one process", True)
    def exec_chain():
        lj = s.luajit().program
        r = s.record([lj, os.path.join(s.LUA, "chain.lua"), "10", lj, "60"]).ok()
        check(r.out == "chain done\n", "stdout %r" % r.out)
        sampled(r, "link_work", 500)

    for timer in ("perf", "helper", "cputime"):
        @t("kinds.1000-execs." + timer, "1000 execs with the timer at 250 us kill nothing")
        def many_execs(timer=timer):
            lj = s.luajit().program
            r = s.record([lj, os.path.join(s.LUA, "chain.lua"), "1000", lj, "2"], "--timer", timer, interval="250us",
                         timeout=200)
            if r.status == 1 and "timer" in r.err:
                raise s.Skip(r.err[-150:])
            r.ok()
            check(r.out == "chain done\n", "stdout %r" % r.out)

    @t("kinds.host.late", "a host that creates its VM late", True)
    def late():
        r = s.record([s.host("late"), "-"]).ok()
        check(r.out == "late done\n", "stdout %r" % r.out)
        sampled(r, "burn", 600)

    @t("kinds.host.dlopen", "a host that opens libluajit itself")
    def dlopen():
        r = s.record([s.host("dlopen")]).ok()
        check(r.out == "dlopen done\n", "stdout %r" % r.out)
        sampled(r, "burn", 600)

    @t("kinds.host.thread", "a VM that runs in another thread than made it", True)
    def thread():
        r = s.record([s.host("thread")]).ok()
        rows = r.rows("--by", "thread")
        check(max(x["self"] for x in rows if x["thread"] != r.info()["pid"]) > 0.9,
              "its samples are not of the thread that ran it: %s" % rows)

    @t("kinds.host.thread.hook", "with engine hook: its samples come too, at the hook", True)
    def thread_hook():
        r = s.record([s.host("thread")], "--engine", "hook").ok()
        check(r.info()["ticks"] > 300, "%d ticks" % r.info()["ticks"])

    @t("kinds.host.coresume", "coroutines that C resumes")
    def coresume():
        r = s.record([s.host("coresume")]).ok()
        text = r.text("--format", "collapsed")
        check(re.search(r"resumed by C[^;]*;from_c;burn", text), "no '[resumed by C]' above from_c: " + text[:500])
        check(re.search(r"from_lua;[^\n]*inner;burn2", text), "from_lua is not joined above inner: " + text[:500])

    # What cannot be recorded

    def refused(name, pattern, host_name=None):
        @t("kinds.refused." + name, "one line that names it, and the program runs unharmed")
        def test():
            exe = s.host(host_name or name)
            r = s.record([exe, "-"])
            plain = s.run([exe, "-"])
            check(r.status == plain.status and r.out == plain.out, "status %d, stdout %r; without us %d %r; %s" % (
                r.status, r.out, plain.status, plain.out, r.err[-300:]))
            says_one_line(r, plain.status, pattern)
    refused("hidden", r"lua_newstate|exports")
    refused("static", r"static")
    refused("asan", r"ASan|sanitizer")

    @t("kinds.refused.setuid", "a setuid program")
    def setuid():
        if os.geteuid():
            raise s.Skip("needs root to make one")
        s.need_open()
        d = "/var/tmp" if os.access("/var/tmp", os.W_OK) else s.tmpdir()
        exe = os.path.join(d, "luasample-test-setuid-%d" % os.getpid())
        shutil.copy(s.luajit().program, exe)
        try:
            os.chown(exe, 65534, 65534)
            os.chmod(exe, 0o4755)
            r = s.record([exe, os.path.join(s.LUA, "seventy.lua"), "0.2"])
            check(r.out == "seventy done\n" and r.status == 0, "status %d stdout %r: %s" % (r.status, r.out, r.err[-300:]))
            says_one_line(r, 0, "setuid|set-user")
        finally:
            os.remove(exe)

    @t("kinds.refused.no-lua", "no LuaJIT in it: said, and doctor is named", True)
    def no_lua():
        r = s.record([s.host("plain")])
        check(r.out == "plain done\n", "stdout %r" % r.out)
        says_one_line(r, 5, "no Lua", "doctor")
        text = s.report(r.trace)
        check(re.search("no samples|no Lua", text.out + text.err, re.I), "report says nothing of it: " + text.out + text.err)

    @t("kinds.doctor", "doctor says what is permitted here", True)
    def doctor():
        out = s.run([s.luasample(), "doctor"]).ok().out
        for word in ("perf", "ptrace", "memfd", "limit|RLIMIT|pending", "timer"):
            check(re.search(word, out, re.I), "doctor says nothing of %s: %s" % (word, out))
