"""How the program is started: as without us, or not at all with one clear line."""
import os
import re
import shutil
import signal
import stat
import subprocess

from support import LUA, Fail, Skip, build_dir, check, info, luasample, need, record, run, tmpdir, tmpfile

# What a shell command tells about the process that it runs in.
SELF = """
ls -l /proc/self/fd | awk 'NR > 1 { print $9 }' | sort -n | tr '\\n' ' '; echo
grep -E '^(SigBlk|SigIgn|SigCgt|NoNewPrivs|Seccomp):' /proc/self/status
ulimit -a
ps -o pgid=,sid=,tpgid= -p $$ | awk '{ print ($1 == $$) }'
umask
pwd
"""


def both(cmd, **kw):
    """Runs cmd without and with record; returns the two Runs."""
    return run(cmd, **kw), record(cmd, **kw)


def same(cmd, **kw):
    plain, recorded = both(cmd, **kw)
    for what in ("status", "out"):
        a, b = getattr(plain, what), getattr(recorded, what)
        check(a == b, "%s of %s: %r without, %r with record" % (what, cmd[:2], a, b))
    return recorded


def one_line(r, status, *words):
    lines = [l for l in r.err.splitlines() if l]
    check(r.status == status, "status %d, expected %d; stderr: %s" % (r.status, status, r.err))
    check(len(lines) == 1 and lines[0].startswith("luasample: "), "not one line of ours: %r" % r.err)
    for w in words:
        check(w in lines[0], "no %r in %r" % (w, lines[0]))


def compiled(name, text, *flags):
    cc = need("gcc")
    src, exe = tmpfile("-%s.c" % name), tmpfile("-" + name)
    with open(src, "w") as f:
        f.write(text)
    r = run([cc, "-o", exe, src, *flags])
    if r.status:
        raise Skip("gcc %s: %s" % (" ".join(flags), r.err[-200:]))
    return exe


HELLO = '#include <stdio.h>\nint main(void) { puts("hello"); return 3; }\n'


def add_to(suite):
    test = suite.test

    @test("exit-status", "the program's own", quick=True)
    def _():
        for n in (0, 1, 3, 127, 255):
            same(["sh", "-c", "exit %d" % n])

    @test("exit-killed", "128 + the signal", quick=True)
    def _():
        for s in ("TERM", "KILL", "SEGV", "ABRT", "USR1", "PIPE"):
            same(["sh", "-c", "kill -%s $$" % s])

    @test("not-found", "127 and one line; the old trace is not touched", quick=True)
    def _():
        trace = tmpfile(".data")
        with open(trace, "w") as f:
            f.write("old")
        one_line(record(["no-such-command-here"], trace=trace), 127, "no-such-command-here")
        one_line(record(["./no/such/file"], trace=trace), 127, "./no/such/file")
        check(open(trace).read() == "old" and not os.path.exists(trace + ".old"), "the old trace is gone")

    @test("not-executable", "126 and one line", quick=True)
    def _():
        f = tmpfile(".txt")
        open(f, "w").close()
        one_line(record([f]), 126, f)
        one_line(record([tmpdir()]), 126)

    @test("bad-interpreter", "a script without its interpreter: as exec says, the old trace is back", quick=True)
    def _():
        f, trace = tmpfile(".sh"), tmpfile(".data")
        with open(f, "w") as o:
            o.write("#!/no/such/interpreter\n")
        os.chmod(f, 0o755)
        with open(trace, "w") as o:
            o.write("old")
        r = record([f], trace=trace)
        check(r.status in (126, 127), "status %d" % r.status)
        check(open(trace).read() == "old", "the old trace is gone")

    @test("usage", "wrong values: 129, one line each, nothing runs", quick=True)
    def _():
        mark = tmpfile(".ran")
        for opts in (["-i", "0"], ["-i", "-1"], ["-i", "1parsec"], ["-i", "1ns"], ["-F", "0"], ["-d", "never"],
                     ["--scope", "x"], ["--timer", "sundial"], ["--depth", "-1"], ["-m", "1"], ["--nonsense"]):
            one_line(run([luasample(), "record", *opts, "--", "touch", mark]), 129)
        one_line(run([luasample(), "record"]), 129)
        check(not os.path.exists(mark), "the program ran")

    @test("argv", "arguments arrive unchanged", quick=True)
    def _():
        same(["printf", "%s|", "a b", "", "-i", "--", "*", "\n", "'", "\\"])

    @test("stdin", "belongs to the program", quick=True)
    def _():
        same(["cat"], input=b"one\ntwo\n")

    @test("stdout-bytes", "binary output is exact", quick=True)
    def _():
        cmd = ["head", "-c", "300000", luasample()]
        a, b = run(cmd, binary=True), record(cmd, binary=True)
        check(a.out == b.out, "output differs")

    @test("self", "descriptors, signal mask and dispositions, limits, group", quick=True)
    def _():
        same(["sh", "-c", SELF])

    @test("self-lua", "descriptors and signals inside luajit", quick=True)
    def _():
        # SigCgt: the tick signal's handler is there, for the kernel; the program's sigaction does not see it.
        script = ("local f = io.open('/proc/self/status') for l in f:lines() do if l:match('^Sig[BI]') then print(l) end"
                  " end f:close() os.execute('ls /proc/'..io.open('/proc/self/stat'):read('*n')..'/fd')")
        same([need("luajit"), "-e", script])

    @test("dispositions", "inherited ignored and blocked signals stay so")
    def _():
        def strange():
            for s in (signal.SIGHUP, signal.SIGCHLD, signal.SIGINT, signal.SIGPIPE):
                signal.signal(s, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])
        same(["grep", "^Sig[BIC]", "/proc/self/status"], preexec=strange)

    @test("environment", "as without us, in the same order; children too")
    def _():
        show = [need("luajit"), "-e", "print(os.getenv('LD_PRELOAD'), os.getenv('LUASAMPLE_AGENT_MEMORY'), "
                                      "os.getenv('B')) io.stdout:flush() os.execute('env')"]
        path = {"PATH": os.environ["PATH"]}
        for extra in ({}, {"LD_PRELOAD": "", "A": "1"}, {"A": "1", "LD_PRELOAD": "libm.so.6", "B": "2"}):
            same(show, env=dict(path, **extra))
            same(["env"], env=dict(extra, **path))
            same(["sh", "-c", "exec env"], env=dict(extra, **path))

    @test("stdio-closed", "closed stdin, stdout, stderr: nothing of ours gets their numbers", quick=True)
    def _():
        trace = tmpfile(".data")
        cmd = "%s record -o %s -- luajit -e 'local t = os.clock() + 0.3 while os.clock() < t do end os.exit(5)' %s"
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            r = run(["sh", "-c", cmd % (luasample(), trace, closed)])
            check(r.status == 5, "%s: status %d" % (closed, r.status))
            check(info(trace)["complete"] == 1, "%s: the trace is not complete" % closed)
            check("warning" not in r.err, "%s: %s" % (closed, r.err))
        for closed in ("<&-", "2>&-", "<&- 2>&-"):
            seen = [run(["sh", "-c", "%s sh -c 'echo /proc/self/fd/*' %s" % (how, closed)]).out
                    for how in ("", "%s record -q -o %s --" % (luasample(), trace))]
            check(seen[0] == seen[1], "%s: the program has the descriptors %r, else %r" % (closed, seen[1], seen[0]))
        r = run(["sh", "-c", "%s report -i %s >&-" % (luasample(), trace)])
        check(r.status == 1 and "the output is not complete" in r.err, "report without stdout: %d %r" % (r.status, r.err))

    @test("sandbox", "a program that forbids itself system calls lives on, and is recorded until then, or to its end", quick=True)
    def _():
        script = os.path.join(LUA, "sandbox.lua")
        for how, call in (("strict", "all but four system calls"), ("filter", "clock_gettime"), ("tsync", "clock_gettime"),
                          ("allow", None)):
            r = record(["luajit", script, how]).ok()
            check(r.out == "done\n", "%s: %r" % (how, r.out))
            said = "forbids itself %s (seccomp)" % call in r.err if call else "forbids itself" not in r.err
            check(said, "%s: %s" % (how, r.err))
            j = r.info()
            share = j["cpu_ns"] / j["process_cpu_ns"]
            check(0.1 < share < 0.6 if call else share > 0.9, "%s: %.2f of its time was recorded" % (how, share))
            check(j["samples"] > 20, "%s: %d samples" % (how, j["samples"]))

    @test("no-vm", "a program without LuaJIT: recorded, and said", quick=True)
    def _():
        r = record(["true"]).ok()
        check("no Lua VM was seen" in r.err and "doctor" in r.err, r.err)
        check(r.info()["samples"] == 0, "samples")

    @test("only-app-profiler", "-jp from begin to end: the reason is the program's profiler, not its short run")
    def _():
        r = record(["luajit", "-jp=1", "-e", "local t = os.clock() + 0.2 while os.clock() < t do end"],
                   "--engine", "hook").ok()
        check("own profiler" in r.err and "shorter" not in r.err, r.err)

    @test("quiet", "-q prints nothing", quick=True)
    def _():
        check(record(["true"], "-q").ok().err == "", "stderr is not empty")

    @test("static", "a static program runs unharmed, one line names it")
    def _():
        exe = compiled("static", HELLO, "-static")
        r = record([exe])
        check(r.status == 3 and r.out == "hello\n", "status %d, out %r" % (r.status, r.out))
        check(exe in r.err and "static" in r.err, r.err)

    @test("asan", "a sanitizer-built program runs unharmed, one line names it")
    def _():
        exe = compiled("asan", HELLO, "-fsanitize=address")
        r = record([exe])
        check(r.status == 3 and r.out == "hello\n", "status %d, out %r" % (r.status, r.out))
        check(exe in r.err and "sanitizer" in r.err, r.err)

    @test("bits32", "a 32-bit program runs unharmed, one line names it")
    def _():
        exe = compiled("bits32", HELLO, "-m32")
        r = record([exe])
        check(r.status == 3 and "32-bit" in r.err, "status %d, %s" % (r.status, r.err))

    @test("musl", "a musl program runs unharmed, one line names it")
    def _():
        cc = need("musl-gcc")
        src, exe = tmpfile(".c"), tmpfile("-musl")
        with open(src, "w") as f:
            f.write(HELLO)
        run([cc, "-o", exe, src]).ok()
        r = record([exe])
        check(r.status == 3 and "musl" in r.err, "status %d, %s" % (r.status, r.err))

    @test("setuid", "a setuid program runs unharmed, one line names it")
    def _():
        if os.getuid() != 0:
            raise Skip("needs root to make one")
        exe = compiled("setuid", HELLO)
        os.chown(exe, 65534, 65534)
        os.chmod(exe, 0o4755)
        r = record([exe])
        check(r.status == 3 and r.out == "hello\n", "status %d, out %r" % (r.status, r.out))
        check("setuid" in r.err, r.err)

    @test("exec-in-place", "sh -c 'exec luajit' is followed", quick=True)
    def _():
        r = record(["sh", "-c", "exec luajit -e 'local t = os.clock() + 0.3 while os.clock() < t do end'"]).ok()
        check(r.info()["ticks"] > 100, "%d ticks" % r.info()["ticks"])

    @test("child-not-followed", "with --no-children a child that ran LuaJIT is named, once", quick=True)
    def _():
        for cmd in ("luajit -e 'print(1)'; true", "env luajit -e 'local t = os.clock() + 1.6 while os.clock() < t do end'; true"):
            r = record(["sh", "-c", cmd], "--no-children").ok()
            said = re.findall(r"pid \d+ ran LuaJIT; not followed", r.err)
            check(len(said) == 1, "%s: %r" % (cmd, r.err))

    @test("agent-missing", "one line, nothing runs", quick=True)
    def _():
        alone = os.path.join(tmpdir(), "alone")
        os.makedirs(alone, exist_ok=True)
        exe = shutil.copy(luasample(), os.path.join(alone, "luasample"))
        r = run([exe, "record", "-o", tmpfile(), "--", "luajit", "-v"])
        if r.status == 0:
            raise Skip("luasample is installed here")
        one_line(r, 1, "libsample.so")

    @test("strange-paths", "spaces and colons in the path of the agent; another working directory")
    def _():
        odd = os.path.join(tmpdir(), "a b:c $ORIGIN")
        os.makedirs(os.path.join(odd, "libsample"))
        exe = shutil.copy(luasample(), odd)
        shutil.copy(os.path.join(build_dir(), "libsample", "libsample.so"), os.path.join(odd, "libsample"))
        trace = tmpfile(".data")
        script = "local t = os.clock() + 0.3 while os.clock() < t do end os.execute('echo LD_PRELOAD=$LD_PRELOAD')"
        r = run([exe, "record", "-o", trace, "--", "luajit", "-e", script], cwd="/").ok()
        check(r.out == "LD_PRELOAD=\n", r.out)
        check(info(trace)["ticks"] > 100, "no ticks: %s" % r.err)

    @test("nested", "a recording inside a recording: nothing is said of LuaJIT in luasample itself")
    def _():
        outer, inner = tmpfile(".data"), tmpfile(".data")
        r = run([luasample(), "record", "-o", outer, "--", luasample(), "record", "-q", "-o", inner, "--", "luajit", "-e",
                 "local t = os.clock() + 0.3 while os.clock() < t do end"]).ok()
        check("contains LuaJIT" not in r.err, r.err)
        check(info(inner)["ticks"] > 100, "no ticks in the inner recording")

    @test("installed", "meson install, also into another place")
    def _():
        dest = os.path.join(tmpdir(), "dest")
        r = run([need("meson"), "install", "-C", build_dir(), "--no-rebuild", "--destdir", dest])
        r.ok()
        exe = subprocess.run(["find", dest, "-path", "*/bin/luasample", "-type", "f"], stdout=subprocess.PIPE,
                             check=True).stdout.decode().split()[0]
        trace = tmpfile(".data")
        run([exe, "record", "-o", trace, "--", "luajit", "-e", "local t = os.clock() + 0.3 while os.clock() < t do end"],
            cwd="/").ok()
        check(info(trace)["ticks"] > 100, "no ticks")
        for name in ("luasample.1", "luasample-record.1", "luasample-report.1", "luasample-trace.5", "_luasample",
                     "luasample.lua", "iprof.lua", "openresty.lua", "luasample.h", "luasample.pc", "luasample-api.3"):
            check(subprocess.run(["find", dest, "-name", name + "*"], stdout=subprocess.PIPE).stdout, "no " + name)
