#!/usr/bin/python3
"""Tests of the agent without record: run.py [--list] [NAME...]

Each runs a program without the agent and with it, under every timer at 100 us, and compares all that the program shows;
agent_run says what the agent sent meanwhile. Needs the build directory in LUASAMPLE_BUILD (default build/)."""
import os
import re
import shutil
import stat
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))
import support
from support import Fail, Skip, check

TIMERS = ["helper", "cputime", "perf"]
BIN = os.path.join(support.build_dir(), "tests", "integration", "agent")
LIBRARY = os.path.join(support.build_dir(), "libsample", "libsample.so")
suite = support.Suite("agent")


def binary(name):
    return os.path.join(BIN, name)


class Said:
    """What agent_run wrote: numbers by key, and the lines of notice, mapping and child."""
    def __init__(self, path):
        self.lines = {}
        with open(path) as f:
            for line in f:
                key, _, value = line.rstrip("\n").partition(" ")
                self.lines.setdefault(key, []).append(value)

    def __getitem__(self, key):
        return int(self.lines[key][0])

    def all(self, key):
        return self.lines.get(key, [])


def with_agent(cmd, timer="helper", interval=100000, env=None, options=(), **kw):
    out = support.tmpfile(".said")
    env = dict(env if env is not None else os.environ, AGENT_LIBRARY=LIBRARY)
    r = support.run([binary("agent_run"), "-t", timer, "-i", str(interval), "-o", out, *options, *cmd], env=env, **kw)
    r.said = Said(out)
    return r


def same(cmd, timers=TIMERS, env=None, **kw):
    """Output and status are those without the agent. Returns the last run with it."""
    kw_plain = {k: v for k, v in kw.items() if k not in ("interval", "options")}
    plain = support.run(cmd, env=env, **kw_plain)
    for timer in timers:
        r = with_agent(cmd, timer, env=env, **kw)
        if r.said.all("perf-failed"):           # not permitted here: then record does not use it either
            continue
        for what in "status", "out", "err":
            a, b = getattr(plain, what), getattr(r, what)
            check(a == b, "%s with --timer %s differs: %r instead of %r" % (what, timer, b, a))
    return r


def samples(r, least=1):
    check(r.said["samples"] >= least, "%d samples, expected %d or more" % (r.said["samples"], least))
    return r


def script(text, name=None, mode=0o755):
    path = os.path.join(support.tmpdir(), name) if name else support.tmpfile(".lua")
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def burn_lua(ms=200):
    return script("local e, x = os.clock() + %g, 0\nrepeat for i = 1, 1000 do x = x + i %% 7 end until os.clock() > e\n"
                  "io.write('done ', tostring(os.getenv('LD_PRELOAD')), ' ', "
                  "tostring(os.getenv('LUASAMPLE_AGENT_MEMORY')), '\\n')\n" % (ms / 1000))


@suite.test("environment", "getenv, environ, main's third argument, /proc, auxv and children")
def environment():
    samples(same([binary("probe_process"), "environment"]))
    path = os.environ["PATH"]
    samples(same([binary("probe_process"), "environment"], env={"B": "2", "PATH": path, "A": "1"}, timers=["helper"]))
    samples(same([binary("probe_process"), "environment"], env={}, timers=["helper"]))


@suite.test("own_preload", "the program's own LD_PRELOAD works and stays as it was")
def own_preload():
    libm = re.search(r"libm\.so\S* => (\S+)", support.run(["ldd", "/usr/bin/luajit"]).out)
    libm = libm and libm.group(1)
    if not libm:
        raise Skip("no libm to preload")
    for value in libm, libm + ":" + libm, "", " ":
        env = dict(os.environ, LD_PRELOAD=value)
        samples(same([binary("probe_process"), "environment"], env=env, timers=["helper"]))


@suite.test("descriptors", "the next open() gives the same number; close_range(3, ~0) changes no rate")
def descriptors():
    samples(same([binary("probe_process"), "descriptors"]))
    r = with_agent([binary("probe_process"), "descriptors"])
    check(r.said["handled"] > 1000, "%d ticks in 300 ms at 100 us" % r.said["handled"])


@suite.test("exec_forms", "each exec function, arguments and environment exact, recording goes on")
def exec_forms():
    for form in "execve execve-null execv execvp execvpe execl execlp execle fexecve execveat".split():
        r = samples(same([binary("probe_process"), "exec_form", form], timers=["helper"]))
        check(r.said["execs"] == 2, "%s: the agent came up %d times" % (form, r.said["execs"]))


@suite.test("exec_fails", "a failed exec: errno as without us, recording goes on")
def exec_fails():
    samples(same([binary("probe_process"), "exec_fails"]), 30)


@suite.test("exec_1000", "1000 execs with a tick every 100 us, each timer")
def exec_1000():
    for timer in TIMERS:
        r = samples(same([binary("probe_process"), "exec_chain", "1000"], timers=[timer]))
        check(r.said["execs"] == 1001, "the agent came up %d times" % r.said["execs"])


@suite.test("exec_late", "exec while the recorder has lost its processor between its last look and the signal")
def exec_late():
    for ms in 5, 40:
        samples(same([binary("probe_process"), "exec_chain", "40"], timers=["helper"], options=["-l", str(ms * 1000000)]))


@suite.test("exec_thread", "exec from another thread than the ticked one, 300 times with each timer")
def exec_thread():
    for timer in TIMERS:
        r = samples(same([binary("probe_process"), "exec_thread", "300"], timers=[timer]))
        check(r.said["execs"] == 301, "the agent came up %d times" % r.said["execs"])


@suite.test("shells", "sh -c 'exec luajit', #! lines, env -i, luajit -E")
def shells():
    lj, lua = support.need("luajit"), burn_lua()
    app = script("#!/usr/bin/env luajit\n" + open(lua).read())
    split = script("#!/usr/bin/env -S A=1 luajit -joff\n" + open(lua).read())
    for cmd, execs in ((["sh", "-c", "exec luajit " + lua], 2), ([app], 2), ([split], 2), (["env", "-i", lj, lua], 2),
                       (["sh", "-c", "exec env luajit " + lua], 3), ([lj, "-E", lua], 1),
                       (["sh", "-c", "ulimit -i 0; exec luajit " + lua], 2)):
        r = samples(same(cmd), 10)
        check(r.said["execs"] == execs, "%s: the agent came up %d times" % (" ".join(cmd), r.said["execs"]))


@suite.test("exec_unfit", "exec of a static and of an ASan program: unharmed, and named")
def exec_unfit():
    for host, word in ("static", "statically linked"), ("asan", "sanitizer"):
        r = same(["sh", "-c", "exec " + support.host(host) + " -"])
        check([n for n in r.said.all("notice") if word in n], "notices: %s" % r.said.all("notice"))
        check(r.said["execs"] == 1, "the agent came up in it")


@suite.test("sh_child", "sh -c 'luajit app.lua': not followed, and said")
def sh_child():
    lua = burn_lua(20)
    for text in "luajit %s; exit 3" % lua, "luajit %s" % lua:
        r = same(["sh", "-c", text], timers=["helper"])
        check(r.said["samples"] == 0, "a child was recorded")
        check([c for c in r.said.all("child") if c.endswith("/luajit")], "the recorder was not told of the child")
    r = same(["sh", "-c", "sh -c 'luajit %s; true'; true" % lua], timers=["helper"])
    check([c for c in r.said.all("child") if c.endswith("/luajit")], "the recorder was not told of the shell's child")
    r = same(["sh", "-c", "cat /dev/null; /bin/true"], timers=["helper"])
    check(not r.said.all("child"), "told of a child without LuaJIT: %s" % r.said.all("child"))


@suite.test("children", "fork, vfork, clone, posix_spawn, system, popen")
def children():
    r = samples(same([binary("probe_process"), "children"]), 30)
    check(r.said["forks"] == 2, "%d forks counted" % r.said["forks"])
    told = [c.split(" ", 1)[1] for c in r.said.all("child")]
    check(sum(c.endswith("/luajit") for c in told) >= 3, "children told of: %s" % told)


@suite.test("daemon", "a daemon is inert, its parent's recording goes on")
def daemon():
    samples(same([binary("probe_process"), "daemon"]), 10)


@suite.test("threads", "four threads make VMs through the patched entries")
def threads():
    r = same([binary("probe_process"), "threads", "200"])
    check(not r.said.all("notice") and not r.said.all("damage"), "notices: %s" % r.said.all("notice"))
    check(any(int(l.split()[1]) > 200 for l in r.said.all("records") if l.startswith("vm ")), "VMs are missing")


@suite.test("luajits", "every LuaJIT that is here")
def luajits():
    lua = burn_lua()
    for lj in support.luajits():
        r = samples(same([lj.program, lua], timers=["helper", "perf"], env=lj.environ()), 10)
        check(not r.said.all("notice"), "%s: notice: %s" % (lj.name, r.said.all("notice")))


@suite.test("waits", "no call that waits returns early for a tick; sent without looking whether it waits")
def waits():
    r = samples(same([binary("probe_signals"), "waits"]), 100)
    check(": 0 bad" in r.out and not re.search(r": [1-9]\d* bad", r.out), r.out)


@suite.test("sleep_left", "the program's own signal ends a sleep as before")
def sleep_left():
    same([binary("probe_signals"), "left"])


@suite.test("signals_default", "all signals set to SIG_DFL: nothing dies, ticks go on")
def signals_default():
    samples(same([binary("probe_signals"), "defaults"]), 50)


@suite.test("signals_blocked", "all signals blocked for a second, none of ours is pending")
def signals_blocked():
    samples(same([binary("probe_signals"), "blocked"]), 10)


@suite.test("disposition", "the tick's signal as the program sees and sets it")
def disposition():
    samples(same([binary("probe_signals"), "disposition"]))


@suite.test("own_signal", "a program that uses the tick's signal itself gets it")
def own_signal():
    same([binary("probe_signals"), "own_signal"])


@suite.test("signal_sets", "sigwait, sigwaitinfo and signalfd for all signals")
def signal_sets():
    samples(same([binary("probe_signals"), "signalfd"]))


def late_libraries():
    found = re.search(r"libluajit\S* => (\S+)", support.run(["ldd", binary("probe_process")]).out)
    if not found:
        raise Skip("probe_process has no shared libluajit")
    lib = os.path.join(support.tmpdir(), "lib")
    os.makedirs(lib, exist_ok=True)
    shutil.copy(found.group(1), os.path.join(lib, "libljown.so"))
    return found.group(1), shutil.copy(binary("probe_dl"), support.tmpdir())


@suite.test("dlopen", "libluajit opened late: by path, by RUNPATH, one after the other")
def dlopen():
    luajit, host = late_libraries()
    for libraries in [luajit], ["libljown.so"], [luajit, "libljown.so"], ["libljown.so", luajit]:
        r = samples(same([host, "path", *libraries]), 10)
        check(not r.said.all("notice"), "notice: %s" % r.said.all("notice"))
        check([m for m in r.said.all("mapping") if "lj" in m or "luajit" in m], "no mapping of LuaJIT")
    r = same([host, "namespace", luajit], timers=["helper"])


@suite.test("two_luajits", "two copies at once: the first is recorded, the second named")
def two_luajits():
    luajit, host = late_libraries()
    r = samples(same([host, "both", luajit, "libljown.so"]), 10)
    check([n for n in r.said.all("notice") if "second LuaJIT" in n], "notices: %s" % r.said.all("notice"))


@suite.test("other_lua", "a Lua that is no LuaJIT is left alone and named")
def other_lua():
    luajit, host = late_libraries()
    r = samples(same([host, "both", binary("libnot_luajit.so"), luajit], timers=["helper"]), 10)
    check([n for n in r.said.all("notice") if "other than LuaJIT" in n], "notices: %s" % r.said.all("notice"))


@suite.test("write_protected", "code that may not be changed: a notice, and the program runs unharmed")
def write_protected():
    cmd = [support.need("luajit"), "-joff", burn_lua(50)]
    r = with_agent(cmd, options=["-w"])
    if r.status == 96:
        raise Skip("this kernel has no PR_SET_MDWE")
    check(r.status == 0 and r.out == "done nil nil\n" and not r.err, "status %d: %s%s" % (r.status, r.out, r.err))
    check([n for n in r.said.all("notice") if "cannot be watched" in n], "notices: %s" % r.said.all("notice"))
    check(r.said["samples"] == 0, "samples without a patch")


@suite.test("bad_memory", "a variable that lies leaves the program unrecorded and unharmed")
def bad_memory():
    lua = burn_lua(10)
    for text in "", "x", "1:2", "1:2:3", "0:0:0", "999999999:1:5", "%d:0:77" % os.getpid(), "9" * 3000, ":::", "1:2:3:e":
        r = with_agent([support.need("luajit"), lua], options=["-m", text])
        check(r.status == 0 and r.out == "done nil nil\n" and not r.err, "%r: status %d: %s%s" % (text[:20], r.status, r.out, r.err))
        check(r.said["execs"] == 0, "%r was taken for a recorder's memory" % text[:20])


@suite.test("other_user", "a program that gave up its user may not open the memory: unrecorded, unharmed")
def other_user():
    if os.getuid() != 0 or not shutil.which("setpriv"):
        raise Skip("needs root and setpriv")
    support.need_open()
    same(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "luajit", "-e", "print(1)"], timers=["helper"])


@suite.test("startup", "the agent starts in less than 5 ms")
def startup():
    best = min(with_agent([support.need("luajit"), "-e", ""]).said["start-ns"] for _ in range(5))
    check(best < 5e6, "%.2f ms" % (best / 1e6))


if __name__ == "__main__":
    support.luasample = lambda: binary("agent_run")     # the program that this suite needs in the build directory
    sys.exit(suite.main())
