#!/usr/bin/python3
"""Tests of what luasample does with what belongs to somebody else: run.py [--quick] [--list] [NAME...]

A program under measurement may be hostile to the user who looks at it, root before all. What it names is read by processes
of its own rights (record/worker). Needs the build directory in LUASAMPLE_BUILD (default build/)."""
import contextlib
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))
import support as s
from support import Skip, check

suite = s.Suite("rights")
NOBODY = 65534


def as_nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root, whom the programs of these tests attack")


@contextlib.contextmanager
def shared_dir():
    """A directory that nobody can read, in one that everybody can enter."""
    mode = os.stat(s.tmpdir()).st_mode & 0o777
    os.chmod(s.tmpdir(), 0o755)
    path = s.tmpfile(".d")
    os.mkdir(path)
    os.chown(path, NOBODY, NOBODY)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.chmod(s.tmpdir(), mode)


@contextlib.contextmanager
def nobodys(cmd, **env):
    """A process of nobody's that has said that it is up."""
    out = s.tmpfile(".out")
    with open(out, "wb") as f:
        p = subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=f, stderr=f, preexec_fn=as_nobody,
                             env=dict(os.environ, **env))
    try:
        end = time.monotonic() + 20
        while "up" not in open(out, encoding="utf-8").read():
            check(time.monotonic() < end and p.poll() is None, "does not come up: " + open(out, encoding="utf-8").read()[-300:])
            time.sleep(0.01)
        yield p
    finally:
        p.kill()
        p.wait()


def wait_until(is_so, what, timeout=20):
    end = time.monotonic() + timeout
    while not is_so():
        check(time.monotonic() < end, "%s: not after %d s" % (what, timeout))
        time.sleep(0.01)


def read(pid, name):
    with open("/proc/%d/%s" % (pid, name), "rb") as f:
        return f.read().decode("utf-8", "replace")


def status_of(pid):
    return dict(line.split(":", 1) for line in read(pid, "status").splitlines() if ":" in line)


def who_has_mapped(path, other_than, until):
    """The process that has the file mapped, beside those given."""
    while time.monotonic() < until:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if int(pid) not in other_than and path in read(int(pid), "maps"):
                    return int(pid)
        time.sleep(0.01)
    return None


CAP_SYS_PTRACE = 1 << 19


def check_confined(pid, uid, what, capabilities=0):
    """It has the rights of uid, of capabilities at most these, and nothing of ours."""
    st = status_of(pid)
    ids = st["Uid"].split() + st["Gid"].split()
    check(ids == [str(uid)] * 8 and st["Groups"].split() in ([], [str(uid)]), "%s: %s %s" % (what, ids, st["Groups"]))
    has = int(st["CapEff"], 16) | int(st["CapPrm"], 16) | int(st["CapInh"], 16) | int(st["CapAmb"], 16)
    check(has & ~capabilities == 0, "%s has capabilities: %x" % (what, has))
    check(st["NoNewPrivs"].strip() == "1" and st["Seccomp"].strip() == "2", "%s: NoNewPrivs %s, Seccomp %s"
          % (what, st["NoNewPrivs"], st["Seccomp"]))
    check("SECRET" not in read(pid, "environ"), "%s has our environment" % what)
    adjusted = int(read(pid, "oom_score_adj"))
    check(adjusted >= 500, "%s does not end first where memory is short: oom_score_adj %d" % (what, adjusted))
    fields = read(pid, "stat").rsplit(")", 1)[1].split()
    check(int(fields[3]) == pid and int(fields[4]) == 0, "%s is in session %s with terminal %s" % (what, fields[3], fields[4]))
    for fd in range(3):
        check(os.readlink("/proc/%d/fd/%d" % (pid, fd)) == "/dev/null", "%s has our descriptor %d" % (what, fd))


@contextlib.contextmanager
def hostile(where):
    """A process of nobody's with a library in it that looks like a LuaJIT."""
    program, lib = os.path.join(where, "program"), os.path.join(where, "liblua.so")
    with contextlib.suppress(FileNotFoundError):
        os.unlink("/tmp/luasample-hostile")
    shutil.copy(s.host("hostile_load"), program)
    shutil.copy(os.path.join(s.build_dir(), "tests/hosts/hostile_luajit.so"), lib)
    with nobodys([program, lib], HOSTILE="1") as p:
        yield p, lib


@suite.test("stack", "stack PID: what a program offers as its LuaJIT runs with that program's rights, and nothing of ours", True)
def stack():
    need_root()
    with shared_dir() as where, hostile(where) as (p, lib):
        r = s.Started([s.luasample(), "stack", str(p.pid)], env=dict(os.environ, SECRET="of root"))
        pid = who_has_mapped(lib, {p.pid, r.p.pid}, time.monotonic() + 20)
        check(pid, "nobody loads the library; %r" % r.read(r.err))
        check_confined(pid, NOBODY, "the process that loads it")
        check(r.wait() == 1 and len(r.read(r.err).splitlines()) == 1, "%r" % r.read(r.err))
        check(p.poll() is None, "the program has ended")
        check(not os.path.exists("/tmp/luasample-hostile"), "it has made a file")


def put_libraries_into(root, *files):
    """What these need, at the same places in another root."""
    for word in " ".join(s.run(["ldd", f]).out for f in files).split():
        if word.startswith("/") and not os.path.exists(root + word):
            os.makedirs(os.path.dirname(root + word), exist_ok=True)
            shutil.copy(word, root + word)


@suite.test("chrooted", "stack PID: what root's process in another root offers as its LuaJIT does not run as root outside of that", True)
def chrooted():
    need_root()
    with shared_dir() as where, hostile(where) as (other, lib):
        put_libraries_into(where, where + "/program", lib)
        p = s.Started(["chroot", where, "/program", "/liblua.so"], env=dict(os.environ, HOSTILE="1"))
        p.wait_for("up")
        r = s.Started([s.luasample(), "stack", str(p.p.pid)], env=dict(os.environ, SECRET="of root"))
        pid = who_has_mapped(lib, {other.pid, p.p.pid, r.p.pid}, time.monotonic() + 20)
        check(pid, "nobody loads the library; %r" % r.read(r.err))
        check_confined(pid, NOBODY, "the process that loads it")
        check(r.wait() == 1 and len(r.read(r.err).splitlines()) == 1, "%r" % r.read(r.err))
        p.p.kill()
        p.p.wait()


@suite.test("core", "stack --core: code of a file that belongs to neither root nor the user runs on --trust alone")
def core():
    need_root()
    with shared_dir() as where, hostile(where) as (p, lib):
        path = os.path.join(where, "core")
        s.run([s.need("gcore"), "-o", path, str(p.pid)])
        path += ".%d" % p.pid
        check(os.path.exists(path), "gcore wrote nothing")
        os.chown(path, 0, 0)
        for owner, opts, runs in ((NOBODY, (), False), (NOBODY, ("--trust",), True), (0, (), True)):
            os.chown(lib, owner, owner)
            r = s.Started([s.luasample(), "stack", "--core", path, *opts], env=dict(os.environ, SECRET="of root"))
            pid = who_has_mapped(lib, {p.pid, r.p.pid}, time.monotonic() + (20 if runs else 1.5))
            check(bool(pid) == runs, "owner %d, %s: %s; %r" % (owner, opts, pid, r.read(r.err)))
            if runs:
                check_confined(pid, NOBODY, "the process that loads it")
            check(r.wait() == 1, r.read(r.err))
            lines = r.read(r.err).splitlines()
            check(len(lines) == 1 and (runs or "belongs to another user" in lines[0] and "--trust" in lines[0]), "%s" % lines)


BURN = "int burn(int n); int burn(int n) { volatile int x = 0; for (int i = 0; i < n; i++) x += i; return x; }"
BURNS = """
local ffi = require "ffi"
ffi.cdef "int burn(int n);"
local large = arg[2] and ffi.new("char[?]", tonumber(arg[2]))
if large then ffi.fill(large, tonumber(arg[2]), 1) end
local lib = ffi.load(arg[1])
io.write("up\\n") io.flush()
while true do lib.burn(100000) end
"""


@contextlib.contextmanager
def burning(where, *args):
    """A program of nobody's that is in a library of its own most of the time. args: bytes of memory that it uses."""
    source, lib, script = (os.path.join(where, n) for n in ("burn.c", "libburn.so", "burn.lua"))
    for path, text in ((source, BURN), (script, BURNS)):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    s.run([s.need("gcc"), "-O1", "-g", "-shared", "-fPIC", "-o", lib, source]).ok()
    with nobodys([s.luajit().program, script, lib, *args]) as p:
        yield p, lib


def recorded(pid, *opts, during=None, seconds=1.0):
    """The trace of an attachment that ends by SIGINT, and the time from there to its end."""
    trace = s.tmpfile(".data")
    r = s.Started([s.luasample(), "record", "-p", str(pid), "-o", trace, *opts], env=dict(os.environ, SECRET="of root"))
    until = time.monotonic() + 20
    while "luasample" not in read(pid, "maps"):
        check(time.monotonic() < until and r.p.poll() is None, "does not attach: %r" % r.read(r.err))
        time.sleep(0.01)
    if during:
        during(r)
    time.sleep(seconds)
    r.signal(signal.SIGINT)
    began = time.monotonic()
    check(r.wait(100) == 0, r.read(r.err))
    return trace, r.read(r.err), time.monotonic() - began


def worker_of(pid, role="files", timeout=20):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        for child in s.children_of(pid):
            with contextlib.suppress(OSError):
                if read(child, "cmdline").startswith("luasample-worker\0%s\0" % role):
                    return child
        time.sleep(0.01)
    return None


@suite.test("native", "record --native -p: the program's files are read with its rights", True)
def native():
    need_root()
    with shared_dir() as where, burning(where) as (p, lib):
        seen = []

        def look(r):
            pid = worker_of(r.p.pid)
            check(pid, "there is no worker: %r" % r.read(r.err))
            time.sleep(0.2)             # it has given up its rights
            check_confined(pid, NOBODY, "the worker")
            seen.append(pid)
        trace, err, _ = recorded(p.pid, "--native", during=look)
        check(seen and s.share(s.rows(trace), function="burn") > 80, "burn has not its name: %s; %s" % (s.rows(trace)[:3], err))
        check(not os.path.exists("/proc/%d" % seen[0]), "the worker lives on")


# It opens nothing and asks for no memory but by descriptors that it is given: with this one right it can do no more.
READS_REGISTERS = CAP_SYS_PTRACE


@suite.test("watcher", "record -e wall -p: what reads the memory of blocked threads has the program's rights", True)
def watcher():
    need_root()
    with shared_dir() as where:
        script = os.path.join(where, "sleep.lua")
        with open(script, "w", encoding="utf-8") as f:
            f.write('local ffi = require "ffi"\nffi.cdef "int poll(void *, unsigned long, int);"\n'
                    'io.write("up\\n") io.flush()\nfunction nap() ffi.C.poll(nil, 0, 20) end\nwhile true do nap() end\n')
        with nobodys([s.luajit().program, script]) as p:
            def look(r):
                pid = worker_of(r.p.pid, "watch")
                check(pid, "there is no watcher: %r" % r.read(r.err))
                time.sleep(0.3)
                check_confined(pid, NOBODY, "the watcher", READS_REGISTERS)
            trace, err, _ = recorded(p.pid, "-e", "wall,cpu", during=look)
            rows = s.rows(trace, "--event", "wall")
            check(s.share(rows, function="nap", field="total") > 40, "nap has not the wall time: %s; %s" % (rows[:4], err))


BECOMES = """
local ffi = require "ffi"
ffi.cdef "int poll(void *, unsigned long, int); int setresuid(int, int, int); int setresgid(int, int, int);"
local function before() for i = 1, 1e6 do end ffi.C.poll(nil, 0, 20) end
function nap() for i = 1, 1e6 do end ffi.C.poll(nil, 0, 20) end
io.write("up\\n") io.flush()
while not io.open(arg[1]) do before() end
assert(ffi.C.setresgid(65534, 65534, 65534) == 0 and ffi.C.setresuid(65534, 65534, 65534) == 0)
while true do nap() end
"""


@suite.test("becomes", "record -e wall -p: when a daemon that started as root becomes another user, so does what reads its memory", True)
def becomes():
    need_root()
    with shared_dir() as where:
        script, go = os.path.join(where, "becomes.lua"), os.path.join(where, "go")
        with open(script, "w", encoding="utf-8") as f:
            f.write(BECOMES)
        out = s.tmpfile(".out")
        with open(out, "wb") as f:
            p = subprocess.Popen([s.luajit().program, script, go], stdin=subprocess.DEVNULL, stdout=f, stderr=f)
        try:
            wait_until(lambda: "up" in open(out, encoding="utf-8").read(), "the program")

            def look(r):
                first = worker_of(r.p.pid, "watch")
                check(first and status_of(first)["Uid"].split()[1] == "0", "the first watcher is %s" % first)
                time.sleep(1)           # the agent has looked around, which it may no more as another user
                open(go, "w", encoding="utf-8").close()
                end = time.monotonic() + 30
                uid = None
                while uid != str(NOBODY):
                    check(time.monotonic() < end, "the watcher of nobody's program still has the user %s" % uid)
                    time.sleep(0.05)
                    with contextlib.suppress(OSError, KeyError, TypeError):
                        uid = status_of(worker_of(r.p.pid, "watch", timeout=5))["Uid"].split()[1]
                time.sleep(0.3)
                check_confined(worker_of(r.p.pid, "watch"), NOBODY, "the second watcher", READS_REGISTERS)
                check(not os.path.exists("/proc/%d" % first), "the first watcher lives on")
            trace, err, _ = recorded(p.pid, "-e", "wall,cpu", during=look, seconds=2.0)
            rows = s.rows(trace, "--event", "wall")
            check(s.share(rows, function="nap", field="total") > 30, "nap has not the wall time: %s; %s" % (rows[:4], err))
            i = s.info(trace)
            check(i["complete"] and not i.get("losses", {}).get("abandoned"), "%s" % i)
        finally:
            p.kill()
            p.wait()


@suite.test("together", "record -e wall -p: watchers that stand still are waited for together, not one after the other")
def together():
    need_root()
    n = 6
    with contextlib.ExitStack() as stack:
        where = stack.enter_context(shared_dir())
        script = os.path.join(where, "loop.lua")
        with open(script, "w", encoding="utf-8") as f:
            f.write('local ffi = require "ffi"\nffi.cdef "int poll(void *, unsigned long, int);"\n'
                    'io.write("up\\n") io.flush()\nwhile true do ffi.C.poll(nil, 0, 5) end\n')
        ps = [stack.enter_context(nobodys([s.luajit().program, script])) for _ in range(n)]
        r = s.Started([s.luasample(), "record", "-e", "wall,cpu", "-o", s.tmpfile(".data"), "-p", ",".join(str(p.pid) for p in ps)])

        def watchers():
            found = []
            for c in s.children_of(r.p.pid):
                with contextlib.suppress(OSError):
                    if read(c, "cmdline").startswith("luasample-worker\0watch\0"):
                        found.append(c)
            return found
        wait_until(lambda: len(watchers()) == n, "%d watchers" % n)
        all_of_them = watchers()
        for pid in all_of_them:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(0.5)
        r.signal(signal.SIGINT)
        left, ended = set(all_of_them), []
        end = time.monotonic() + 60
        while left and time.monotonic() < end:
            for pid in list(left):
                if not os.path.exists("/proc/%d" % pid):
                    left.discard(pid)
                    ended.append(time.monotonic())
            time.sleep(0.002)
        check(r.wait(60) == 0, r.read(r.err))
        # Each may take half a second; one after the other they end in 2.5 s.
        check(not left and ended[-1] - ended[0] < 1.5, "they end within %.2f s" % (ended[-1] - ended[0]))
        check(all(p.poll() is None for p in ps), "a program has ended")


@suite.test("reader", "stack PID: what reads the memory of a process has its rights")
def reader():
    need_root()
    with shared_dir() as where, burning(where, "600000000") as (p, lib):         # the search for VMs takes some time
        end = time.monotonic() + 60
        seen = 0
        while not seen and time.monotonic() < end:
            r = s.Started([s.luasample(), "stack", str(p.pid)], env=dict(os.environ, SECRET="of root"))
            pid = worker_of(r.p.pid, "look", timeout=2)
            with contextlib.suppress(OSError, KeyError, TypeError):     # it lives for milliseconds, and may not be met
                os.kill(pid, signal.SIGSTOP)
                if status_of(pid)["Seccomp"].strip() == "2":
                    check_confined(pid, NOBODY, "the reader", READS_REGISTERS)
                    seen = 1
                os.kill(pid, signal.SIGCONT)
            check(r.wait() == 0 and "main chunk@burn.lua" in r.read(r.out), "%r %r" % (r.read(r.err), r.read(r.out)))
        check(seen, "the reader was never met after it had given up its rights")


SLOT = """
local ffi = require "ffi"
io.write("up\\n") io.flush()
local at
repeat                  -- the memory that is shared with the recorder
        for line in io.lines("/proc/self/maps") do
                local from = line:match("^(%x+)%-%x+ rw%-s .*memfd:luasample")
                at = at or from and ffi.cast("char *", tonumber(from, 16))
        end
until at
local slot = at + tonumber(arg[1])
while true do
        ffi.copy(slot + tonumber(arg[2]), arg[3])
        ffi.cast("uint32_t *", slot)[0] = 1
        for i = 1, 1e6 do end
end
"""


@suite.test("shown", "stack PID: what root shows of a process's memory is read as nobody")
def shown():
    need_root()
    with shared_dir() as where, nobodys([s.luajit().program, "-e", "print(\"up\") io.flush() while true do end"]) as p:
        log = os.path.join(where, "calls")
        time.sleep(0.2)
        r = s.run([s.need("strace"), "-f", "-qq", "-e", "trace=setresuid,execve,read,pread64,mmap", "-o", log, s.luasample(), "stack",
                   str(p.pid)], timeout=60).ok()
        with open(log, encoding="utf-8", errors="replace") as f:
            lines = f.read().splitlines()
    begin = [i for i, line in enumerate(lines) if '"report", "--stacks"' in line]
    check("main chunk" in r.out and len(begin) == 1, "%s %s" % (r.out, r.err))
    own = [line for line in lines[begin[0]:] if line.split()[0] == lines[begin[0]].split()[0]]
    fd = re.search(r'"/proc/self/fd/(\d+)"', own[0]).group(1)
    nobody = [i for i, line in enumerate(own) if "setresuid(65534, 65534, 65534)    = 0" in line or
              re.search(r"setresuid\(65534, 65534, 65534\) += 0", line)]
    check(len(nobody) == 1, "it stays root: %s" % own[0])
    touched = [line for line in own[1:nobody[0]] if re.search(r" (read|pread64)\(%s," % fd, line)]
    check(not touched, "read as root: %s" % touched[:2])


def read_as_nobody(words, log, what, r):
    """In what strace wrote no file that matches was read by a process that had not given up its rights."""
    with open(log, encoding="utf-8", errors="replace") as f:
        lines = f.read().splitlines()
    dropped, touched = {}, 0
    for line in lines:
        pid = line.split()[0]
        for step, word in enumerate(("setresuid(65534, 65534, 65534)", "{effective=0, permitted=0,", "SECCOMP_SET_MODE_FILTER, 0, {len")):
            if word in line and line.rstrip().endswith("= 0"):
                dropped.setdefault(pid, set()).add(step)
        if re.search(what, line):
            touched += 1
            check(len(dropped.get(pid, ())) == 3, "%s: read as root: %s" % (words, line))
    check(touched, "%s: nothing is read: %s %s" % (words, r.err, lines[-3:]))


CHUNK = r'(?:read|pread64|mmap)\((?:NULL, \d+, \w+, \w+, )?\d+<[^>]*/services/[^>]*>'


@suite.test("views", "report, export, diff --service: what root shows of a store is read as nobody; what it writes is root's")
def views():
    need_root()
    with shared_dir() as where:
        log, store, out = (os.path.join(where, n) for n in ("calls", "store", "out"))
        os.chmod(where, 0o700)
        os.makedirs(os.path.join(store, "services", "web"), 0o700)
        os.chmod(store, 0o700)
        with open(os.path.join(store, "version"), "w", encoding="utf-8") as f:
            f.write("luasample store 1\n")
        begin = (int(time.time()) - 7200) // 60 * 60
        s.run([os.path.join(s.build_dir(), "tests", "gen", "gen_day"), os.path.join(store, "services", "web"), "web", "7", str(begin), "3", "60",
               "20"]).ok()
        times = ["--since", "@%d" % (begin + 60), "--until", "@%d" % (begin + 120)]
        for words in (["report"], ["report", "--html", "-o", out], ["report", "--annotate"], ["export", "--format", "csv", "-o", out],
                      ["diff", *times, "--before", "1m", "-o", out]):
            r = s.run([s.need("strace"), "-f", "-qq", "-y", "-e", "trace=setresuid,capset,seccomp,read,pread64,mmap", "-o", log,
                       s.luasample(), *words, "--service", "web", "--store", store], timeout=60).ok()
            read_as_nobody(words, log, CHUNK, r)
            if "-o" in words:
                st = os.stat(out)
                check(st.st_uid == 0 and st.st_size > 50, "%s: %s has the owner %d, %d bytes" % (words, out, st.st_uid, st.st_size))
                check([n for n in os.listdir(where) if n.startswith("out.")] == [], "temporary files are left: %s" % os.listdir(where))
                os.remove(out)


FILES = r'(?:read|pread64|mmap)\((?:NULL, \d+, \w+, \w+, )?\d+<[^>]*/(?:one|two)\.data>'


@suite.test("files", "report, export, diff, merge, jit, dump, info of files: what root reads of a trace is read as nobody; a private source is shown when it "
            "is what was recorded", quick=True)
def files():
    need_root()
    with shared_dir() as where:
        os.chown(where, 0, 0)
        os.chmod(where, 0o700)
        log, out, program = (os.path.join(where, n) for n in ("calls", "out", "private.lua"))
        one, two = (os.path.join(where, n) for n in ("one.data", "two.data"))
        with open(program, "w", encoding="utf-8") as f:
            f.write("local function hot() local x = 0 for i = 1, 4e7 do x = x + i % 7 end return x end -- only root knows\nhot()\n")
        os.chmod(program, 0o600)
        for trace in one, two:
            s.run([s.luasample(), "record", "-q", "-o", trace, "--", s.luajit().program, program], timeout=60).ok()
            os.chmod(trace, 0o600)
        for words in (["report", "-i", one], ["report", "-i", one, "--html", "-o", out], ["export", "-i", one, "--format", "csv", "-o", out],
                      ["diff", one, two, "-o", out], ["diff", one, "--", two, two], ["merge", one, two, "-o", out], ["jit", "-i", one], ["dump", "-i", one],
                      ["info", "-i", one]):
            r = s.run([s.need("strace"), "-f", "-qq", "-y", "-e", "trace=setresuid,capset,seccomp,read,pread64,mmap", "-o", log,
                       s.luasample(), *words], timeout=60)
            check(r.status == 0 or words[0] == "diff", r.err)
            read_as_nobody(words, log, FILES, r)
            if "-o" in words:
                st = os.stat(out)
                check(st.st_uid == 0 and st.st_size > 50, "%s: %s has the owner %d, %d bytes" % (words, out, st.st_uid, st.st_size))
                check(words[0] != "merge" or st.st_mode & 0o777 == 0o600, "what is merged is for all: %o" % st.st_mode)
                os.remove(out)
        r = s.run(["sh", "-c", '"$0" report --annotate -i - < "$1"', s.luasample(), one]).ok()
        check("only root knows" in r.out, "stdin: " + r.out)
        check("only root knows" in s.run([s.luasample(), "report", "--annotate", "-i", one]).ok().out, "its source is not shown")
        with open(program, "a", encoding="utf-8") as f:
            f.write("-- now there is a secret\n")
        r = s.run([s.luasample(), "report", "--annotate", "-i", one])
        check("secret" not in r.out and "only root knows" not in r.out and "root alone may read it" in r.out, r.out + r.err)
        os.chmod(program, 0o644)
        os.chmod(where, 0o755)
        check("has changed since" in s.run([s.luasample(), "report", "--annotate", "-i", one]).ok().out, "what all may read is shown")


@suite.test("verify", "store verify: chunks are read as nobody, and a damaged one is named")
def verify():
    need_root()
    with shared_dir() as where:
        store, log = os.path.join(where, "store"), os.path.join(where, "calls")
        os.chmod(where, 0o700)
        os.makedirs(os.path.join(store, "services", "web"), 0o700)
        os.chmod(store, 0o700)
        with open(os.path.join(store, "version"), "w", encoding="utf-8") as f:
            f.write("luasample store 1\n")
        s.run([os.path.join(s.build_dir(), "tests", "gen", "gen_day"), os.path.join(store, "services", "web"), "web", "7", "1767312000", "100", "60",
               "20"]).ok()
        r = s.run([s.need("strace"), "-f", "-qq", "-y", "-e", "trace=setresuid,capset,seccomp,read,pread64,mmap", "-o", log,
                   s.luasample(), "store", "--store", store, "verify"], timeout=60).ok()
        check("100 chunks, 0 damaged" in r.out, r.out)
        read_as_nobody(["verify"], log, CHUNK, r)
        names = sorted(os.path.join(d, n) for d, _, all in os.walk(store) for n in all if n.endswith(".luasample"))
        with open(names[70], "r+b") as f:
            f.seek(os.path.getsize(names[70]) // 2)
            f.write(b"\xff" * 40)
        r = s.run([s.luasample(), "store", "--store", store, "verify"])
        check(r.status == 1 and "100 chunks, 1 damaged" in r.out and os.path.basename(names[70]) in r.err, r.out + r.err)


@suite.test("slot", "record -p: a program that says that init is its child has no file looked at with root's rights")
def slot():
    need_root()
    source, offsets = s.tmpfile(".c"), s.tmpfile()
    with open(source, "w", encoding="utf-8") as f:
        f.write('#include <stddef.h>\n#include <stdio.h>\n#include "formats/wire/shm.h"\nint main(void) { printf("%zu %zu", offsetof(struct ls_shm, '
                'children), offsetof(struct ls_child_exec, path)); }\n')
    s.run([s.need("gcc"), "-D_GNU_SOURCE", "-I", s.ROOT, "-o", offsets, source]).ok()
    with shared_dir() as where:
        script = os.path.join(where, "slot.lua")
        with open(script, "w", encoding="utf-8") as f:
            f.write(SLOT)
        with nobodys([s.luajit().program, "-joff", script, *s.run([offsets]).ok().out.split(), where + "/program"]) as p:
            seen = set()

            def look(r):
                end = time.monotonic() + 3
                while time.monotonic() < end:
                    for child in s.children_of(r.p.pid):
                        with contextlib.suppress(OSError, KeyError):
                            if read(child, "cmdline").startswith("luasample-worker\0files") and status_of(child)["Seccomp"].strip() == "2":
                                seen.add(status_of(child)["Uid"].split()[0])
                    time.sleep(0.01)
            recorded(p.pid, during=look)
            check(seen == {str(NOBODY)}, "workers of the users %s" % seen)


@suite.test("fifo", "record --native -p: a FIFO in place of the program's library does not hold the recording up")
def fifo():
    need_root()
    with shared_dir() as where, burning(where) as (p, lib):
        os.rename(lib, lib + ".was")
        os.mkfifo(lib)
        os.chown(lib, NOBODY, NOBODY)
        trace, err, seconds = recorded(p.pid, "--native")
        rows = s.rows(trace)
        check(seconds < 60 and sum(r["self"] for r in rows) > 0.99, "%.1f s, %s" % (seconds, rows[:3]))
        check(p.poll() is None, "the program has ended")


@suite.test("shrinks", "record --native -p: a library that shrinks under its reader costs its names, and no samples")
def shrinks():
    need_root()
    with shared_dir() as where, burning(where) as (p, lib):
        copy = lib + ".copy"
        shutil.copy(lib, copy)

        def cut(r):
            check(worker_of(r.p.pid), "there is no worker")
            os.rename(copy, lib)                # another file: the program has the first one mapped
            os.truncate(lib, 4096)
        trace, err, seconds = recorded(p.pid, "--native", during=cut)
        i = s.info(trace)
        check(i["complete"] and i["sample_ticks"] + i["lost_ticks"] == i["ticks"] > 50 and seconds < 60, "%s; %s" % (i, err))
        check(p.poll() is None, "the program has ended")


@suite.test("debuglink", "record --native -p: a debug file that lets its reader wait is given up")
def debuglink():
    need_root()
    with shared_dir() as where, burning(where) as (p, lib):
        debug = os.path.join(where, "burn.debug")
        s.run([s.need("objcopy"), "--only-keep-debug", lib, debug]).ok()
        s.run(["objcopy", "-S", "--remove-section=.note.gnu.build-id", "--add-gnu-debuglink=" + debug, lib, lib + ".new"]).ok()
        os.rename(lib + ".new", lib)
        os.unlink(debug)
        os.mkfifo(debug)
        os.chown(debug, NOBODY, NOBODY)
        trace, err, seconds = recorded(p.pid, "--native")
        i = s.info(trace)
        check(i["complete"] and i["sample_ticks"] + i["lost_ticks"] == i["ticks"] > 50 and seconds < 60,
              "%.1f s, %s; %s" % (seconds, i, err))


@suite.test("lost", "record --native -p: a worker that is killed takes some names along, and no samples", True)
def lost():
    need_root()
    with shared_dir() as where, burning(where) as (p, lib):
        def kill(r):
            until = time.monotonic() + 20
            ticks = 1 << (signal.SIGSTKFLT - 1) if hasattr(signal, "SIGSTKFLT") else 1 << 15
            while not int(re.search(r"SigCgt:\s*(\w+)", read(p.pid, "status")).group(1), 16) & ticks:
                check(time.monotonic() < until, "no handler of the tick's signal: it is not attached to")
                time.sleep(0.01)
            pid = worker_of(r.p.pid)
            check(pid, "there is no worker")
            os.kill(pid, signal.SIGKILL)
        trace, err, _ = recorded(p.pid, "--native", during=kill)
        i = s.info(trace)
        check(i["complete"] and i["sample_ticks"] + i["lost_ticks"] == i["ticks"] > 50, "%s; %s" % (i, err))


def whole_calls(path):
    """[(pid, call)] of what strace -f wrote down, by their ends: one that others' lines have cut in two is put together."""
    found, begun = [], {}
    for line in open(path, encoding="utf-8", errors="replace"):
        pid, _, call = line.rstrip().partition(" ")
        call = call.lstrip()
        if call.endswith("<unfinished ...>"):
            begun[pid] = call[:-len("<unfinished ...>")].rstrip()
            continue
        if "resumed>" in call:
            call = begun.pop(pid, "") + call.partition("resumed>")[2]
        found.append((pid, call))
    return found


def is_filtered(calls):
    """A filter has been set: libseccomp asks before, without one, what the kernel can do."""
    return re.search(r"SECCOMP_SET_MODE_FILTER, \w+, \{len=\d+[^)]*\) += 0", calls)


def touched(calls, by_workers):
    """Files that were opened, not merely seen by O_PATH, and those of which was read, as strace -f -y wrote it down: by our
    workers, or by all others of ours."""
    workers, found = set(), []
    for pid, call in whole_calls(calls):
        if "execve(" in call and '"luasample-worker"' in call:
            workers.add(pid)
        m = re.search(r"open(?:at2?)?\(.*= \d+<(.*)>$", call.rstrip())
        if m and "O_PATH" not in call and (pid in workers) == by_workers:
            found.append(("opened", m.group(1)))
        m = re.match(r"(?:read|pread64|readv|preadv|mmap)\((?:\w+, \d+, \w+, \w+, )?\d+<(.*?)>", call)
        if m and (pid in workers) == by_workers:
            found.append(("read", m.group(1)))
    return found


@suite.test("opens", "record -p, stack and stack --core as root open no file of the program's but in processes of its rights", True)
def opens():
    need_root()
    with shared_dir() as where:
        program, script, calls = (os.path.join(where, n) for n in ("luajit", "loop.lua", "calls"))
        shutil.copy(s.luajit().program, program)
        with open(script, "w", encoding="utf-8") as f:
            f.write('io.write("up\\n") io.flush()\nwhile true do end\n')
        with nobodys([program, script]) as p:
            core = s.tmpfile(".core")
            s.run([s.need("gcore"), "-o", core, str(p.pid)]).ok()
            core += ".%d" % p.pid
            for cmd in (["record", "-d", "0.5", "-o", s.tmpfile(".data"), "-p", str(p.pid)], ["stack", str(p.pid)],
                        ["stack", "--trust", "--core", core]):
                r = s.run([s.need("strace"), "-f", "-y", "-o", calls, "-e", "trace=open,openat,openat2,execve,read,pread64,readv,preadv,mmap",
                           s.luasample(), *cmd])
                check(r.status == 0, "%s: %s" % (cmd, r.err))
                by_root = [x for x in touched(calls, False) if x[1].startswith(where) or x == ("read", core)]
                check(not by_root, "%s: with root's rights: %s" % (cmd[0], by_root))
                by_workers = touched(calls, True)
                check(("read", "/proc/%d/mem" % p.pid) in by_workers or ("read", core) in by_workers,
                      "%s: strace has not seen who reads: this test sees nothing" % cmd)


@suite.test("writes", "stack, stack --core: what turns the reader's records into a trace has given up all rights before", True)
def writes():
    need_root()
    with shared_dir() as where, burning(where) as (p, _):
        core, trace, calls = s.tmpfile(".core"), s.tmpfile(".data"), s.tmpfile(".calls")
        s.run([s.need("gcore"), "-o", core, str(p.pid)]).ok()
        for cmd in ([str(p.pid)], ["--core", "%s.%d" % (core, p.pid)]):
            r = s.run([s.need("strace"), "-f", "-y", "-o", calls, "-e", "trace=setresuid,seccomp,write,prctl", s.luasample(), "stack",
                       "-o", trace, *cmd])
            check(r.status == 0, r.err)
            lines = whole_calls(calls)
            wrote = {pid for pid, call in lines if call.startswith("write(") and "<%s>" % trace in call}
            check(len(wrote) == 1, "%s write the trace" % wrote)
            mine = [call for pid, call in lines if pid in wrote]
            first = next(i for i, call in enumerate(mine) if "<%s>" % trace in call)
            before = " ".join(mine[:first])
            check("setresuid(65534, 65534, 65534)" in before, "it keeps its user: %s" % before)
            check(is_filtered(before), "it has no filter: %s" % before)


@suite.test("heap", "heap: a snapshot is opened, then all rights are given up, and only then it is read", True)
def heap():
    need_root()
    with shared_dir() as where, burning(where) as (p, _):
        snapshot, calls = s.tmpfile(".json"), s.tmpfile(".calls")
        s.run([s.luasample(), "heap", "-p", str(p.pid), "-o", snapshot]).ok()
        for cmd, name in (([snapshot], snapshot), ([snapshot, snapshot], snapshot), (["-p", str(p.pid)], "memfd:luasample")):
            r = s.run([s.need("strace"), "-f", "-y", "-o", calls, "-e", "trace=setresuid,seccomp,read,pread64,mmap", s.luasample(),
                       "heap", *cmd])
            check(r.status == 0 and "KiB" in r.out, "%s: %s" % (cmd, r.err))
            lines = whole_calls(calls)
            shows = lines[0][0]                 # the process that was started
            mine = [call for pid, call in lines if pid == shows]
            reads = [i for i, call in enumerate(mine) if re.match(r"(read|pread64|mmap)\(", call) and name in call]
            check(reads, "strace has not seen who reads %s" % name)
            before = " ".join(mine[:reads[0]])
            check("setresuid(65534, 65534, 65534)" in before and is_filtered(before),
                  "%s is read before rights are given up: %s" % (name, before[-500:]))


@suite.test("rings", "record, record -p: one process alone takes what is in the rings, and has given up all rights before it sees them", True)
def rings():
    need_root()
    with shared_dir() as where, burning(where) as (p, _):
        seen = []

        def look(r):
            writer = worker_of(r.p.pid, "write")
            check(writer, "there is no writer: %r" % r.read(r.err))
            wait_until(lambda: read(writer, "maps").count("memfd:luasample") > 1, "the writer has no rings")
            check_confined(writer, NOBODY, "the writer")
            seen.append(writer)
        trace, err, _ = recorded(p.pid, "-e", "cpu,wall", "--native", during=look)
        i = s.info(trace)
        check(i["complete"] and i["samples"] > 0 and s.share(s.rows(trace), function="burn") > 80, "%s; %s" % (i, err))
        check(not os.path.exists("/proc/%d" % seen[0]) and p.poll() is None, "the writer lives on, or the program does not")
        calls = s.tmpfile(".calls")
        for cmd in (["-p", str(p.pid), "-d", "0.5"], ["--", s.luajit().program, "-e", "local t = os.clock() while os.clock() < t + 0.3 do end"]):
            trace = s.tmpfile(".data")
            r = s.run([s.need("strace"), "-f", "-y", "-o", calls, "-e", "trace=setresuid,seccomp,write,mmap,recvmsg,prctl", s.luasample(),
                       "record", "-o", trace, *cmd])
            check(r.status == 0, "%s; the program: %s" % (r.err, p.poll()))
            lines = whole_calls(calls)
            wrote = {pid for pid, call in lines if call.startswith("write(") and "<%s>" % trace in call}
            check(len(wrote) == 1, "%s write the trace" % wrote)
            mine = [call for pid, call in lines if pid in wrote]
            first = next(i for i, call in enumerate(mine) if call.startswith("mmap(") and "memfd:luasample" in call and "SECCOMP" in
                         " ".join(mine[:i]))
            before = " ".join(mine[:first])
            check("setresuid(65534, 65534, 65534)" in before, "it keeps its user: %s" % before)
            check(is_filtered(before), "it has no filter: %s" % before)
            check(sum("memfd:luasample" in call for call in mine[:first] if call.startswith("mmap(")) == 1,
                  "it has mapped more than the page of figures before: %s" % before[-500:])


@suite.test("writer", "record -p: a writer that is killed costs the rest of the trace, and neither the program nor what was written", True)
def writer():
    need_root()
    with shared_dir() as where, burning(where) as (p, _):
        trace = s.tmpfile(".data")
        r = s.Started([s.luasample(), "record", "-p", str(p.pid), "-o", trace])
        wait_until(lambda: os.path.exists(trace) and os.path.getsize(trace) > 1000 or r.p.poll() is not None, "nothing is written")
        os.kill(worker_of(r.p.pid, "write"), signal.SIGKILL)
        check(r.wait(60) == 0, "status; %r" % r.read(r.err))
        said = [x for x in r.read(r.err).splitlines() if "has died" in x]
        check(said == ["luasample: %s: the process that writes it has died; what was written before can be reported" % trace], r.read(r.err))
        check(s.report(trace).status == 0 and s.info(trace)["complete"] == 0, "what was written cannot be read")
        again, err, _ = recorded(p.pid)
        i = s.info(again)
        check(p.poll() is None and i["complete"] and i["samples"] > 0, "it cannot be recorded again: %s; %s" % (i, err))


MANY = """
local ffi = require "ffi"
ffi.cdef "int open(const char *, int); void *mmap(void *, size_t, int, int, int, long);"
local libc = io.open("/proc/self/maps"):read("*a"):match("%S*libc%.so%S*")
local fd = ffi.C.open(libc, 0)
for i = 1, 1000 do ffi.C.mmap(nil, 2^20, 1, 2, fd, 0) end
io.write("up\\n") io.flush()
while true do end
"""


@suite.test("waits", "record -p, doctor: when the reader of the program's headers stands still, or dies, one line says so in seconds")
def waits():
    need_root()
    with shared_dir() as where:
        script = os.path.join(where, "many.lua")
        with open(script, "w", encoding="utf-8") as f:
            f.write(MANY)
        with nobodys([s.luajit().program, script]) as p:
            for cmd in (["record", "-d", "0.5", "-o", s.tmpfile(".data"), "-p", str(p.pid)], ["doctor", str(p.pid)]):
                for what in (signal.SIGSTOP, signal.SIGKILL):
                    r = s.Started([s.luasample(), *cmd])
                    pid = worker_of(r.p.pid)
                    check(pid, "there is no worker: %r" % r.read(r.err))
                    os.kill(pid, what)
                    check(r.wait(60) == 1 and "take too long to read" in r.read(r.out) + r.read(r.err),
                          "%s: %r %r" % (cmd, r.read(r.out), r.read(r.err)))
            check(p.poll() is None, "the program has ended")


HEADERS = """
local ffi = require "ffi"
ffi.cdef [[
int open(const char *, int); void *mmap(void *, size_t, int, int, int, long); int close(int);
]]
for i = 1, #arg do
        local fd = ffi.C.open(arg[i], 0)
        ffi.C.mmap(nil, 65536, 1, 2, fd, 0)
        ffi.C.close(fd)
end
io.write("up\\n") io.flush()
while true do end
"""


def object_file(phnum=1, segments=(), size=65536, body=b""):
    """An ELF file of a library with these program headers; the first page is mapped at its address 0."""
    head = b"\177ELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, phnum, 64, 0, 0)
    head += b"".join(struct.pack("<IIQQQQQQ", kind, 4, offset, offset, offset, length, length, 8) for kind, offset, length in segments)
    return (head + bytes(4096 - len(head)) + body).ljust(size, b"\0")[:size]


def endless_chain():
    """Dynamic section at 4096; hash table, one bucket, at 8192, whose chain has no end and only symbols of another name."""
    names = ("lua_newstate", "gnu_get_libc_version", "errno")
    dynamic = struct.pack("<QQQQQQ", 5, 60000, 6, 50000, 0x6ffffef5, 8192) + struct.pack("<QQ", 14, 0) * 253
    return object_file(2, ((1, 0, 65536), (2, 4096, 4096)),
                       body=dynamic.ljust(4096, b"\1") + struct.pack("<IIIII", 1, 0, 0, 0, 0) + bytes(len(names)))


@suite.test("headers", "record -p, stack: objects whose headers lie, end early or never end cost no time, and are no VM")
def headers():
    need_root()
    files = {
        "phdrs": object_file(65535),
        "notes": object_file(2, ((1, 0, 65536), (4, 4096, 1 << 60)), body=struct.pack("<III", 0, 0, 1) * 5000),
        "far": object_file(3, ((1, 0, 65536), (2, (1 << 63) - 8, 1 << 62), (3, 1 << 62, 1 << 62))),
        "chain": endless_chain(),
        "short": object_file(64, size=100),
        "magic": b"\177ELF",
    }
    with shared_dir() as where:
        script = os.path.join(where, "headers.lua")
        with open(script, "w", encoding="utf-8") as f:
            f.write(HEADERS)
        paths = []
        for name, content in files.items():
            paths.append(os.path.join(where, name))
            with open(paths[-1], "wb") as f:
                f.write(content)
        with nobodys([s.luajit().program, script, *paths]) as p:
            trace = s.tmpfile(".data")
            os.truncate(paths[0], 0)            # what was there is SIGBUS by now
            os.unlink(paths[1])
            os.mkfifo(paths[1])
            for cmd in (["record", "-d", "0.5", "-o", trace, "-p", str(p.pid)], ["stack", str(p.pid)]):
                r = s.run([s.luasample(), *cmd], timeout=60)
                check(r.status == 0, "%s: %s" % (cmd, r.err))
            check(s.info(trace)["samples"] > 20, "%s" % s.info(trace))
            check(p.poll() is None, "the program has ended")


@suite.test("planted", "-o as root: a link that nobody has laid in a directory for all is not followed, to a file or a device")
def planted():
    need_root()
    with shared_dir() as where:
        os.chown(where, 0, 0)
        os.chmod(where, 0o1777)
        kept, trace, node = s.tmpfile(), s.tmpfile(".data"), s.tmpfile()
        with open(kept, "w", encoding="utf-8") as f:
            f.write("root's own")
        os.mkfifo(node)
        link = os.path.join(where, "link")
        s.run([s.luasample(), "record", "-q", "-o", trace, s.luajit().program, "-e", "for i = 1, 1e8 do end"]).ok(0)
        for cmd in (["report", "-i", trace], ["report", "--html", "-i", trace], ["export", "--format", "pprof", "-i", trace]):
            os.symlink(kept, link)
            os.lchown(link, NOBODY, NOBODY)
            r = s.run([s.luasample(), *cmd, "-o", link])
            check(r.status != 0 and "Permission denied" in r.err, "%s: %d: %s" % (cmd, r.status, r.err))
            with open(kept, encoding="utf-8") as f:
                check(f.read() == "root's own", "%s wrote over root's file" % cmd)
            os.unlink(link)
        # One that leads to a device, or what stands for it, is kept as FILE.old.
        os.symlink(node, link)
        os.lchown(link, NOBODY, NOBODY)
        r = s.run([s.luasample(), "record", "-q", "-o", link, "true"], timeout=20).ok(0)
        check(os.path.isfile(link) and not os.path.islink(link) and os.path.islink(link + ".old"), str(os.listdir(where)))


@suite.test("device-link", "record -o /dev/stdout as root, with stdout a file: /dev/stdout stays what it is")
def device_link():
    need_root()
    out = s.tmpfile()
    script = ("mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && ln -s /proc/self/fd/1 /dev/stdout && "
              "{ \"$1\" record -q -o /dev/stdout true > \"$2\"; echo $?; readlink /dev/stdout; ls /dev; }")
    r = s.run(["unshare", "-m", "sh", "-c", script, "sh", s.luasample(), out]).ok(0)
    check(r.out == "1\n/proc/self/fd/1\nnull\nstdout\n" and "cannot write /dev/stdout" in r.err, r.out + r.err)


@suite.test("root-of-one", "a root who cannot become another user records, attaches and reads as a user does")
def root_of_one():
    need_root()
    one = ["unshare", "-r", "sh", "-c"]
    bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "sh", "-c"]
    trace, own = s.tmpfile(".data"), s.tmpfile(".data")
    script = ("%(l)s record -q -o %(own)s --native %(j)s -e 'for i = 1, 1e8 do end' && %(l)s report -i %(own)s && "
              "%(l)s export --format pprof -i %(own)s -o %(own)s.pb && { %(j)s -e 'for i = 1, 1e11 do end' & p=$!; "
              "sleep 0.3; %(l)s record -q -p $p -d 0.3 -o %(trace)s; e=$?; %(l)s stack $p; kill $p; [ $e = 0 ]; } && "
              "%(l)s report -i %(trace)s")
    tried = 0
    for root in (one, bare):
        if s.run([*root, "true"]).status:       # no namespaces of users here
            continue
        tried += 1
        for path in (trace, own):
            if os.path.exists(path):
                os.unlink(path)
        r = s.run([*root, script % {"l": s.luasample(), "j": s.luajit().program, "own": own, "trace": trace}], timeout=60)
        r.ok(0)
        check(r.out.count("main chunk@(command line)") >= 3, "%s: %s" % (root[0], r.out + r.err))
    check(tried, "neither of them can be made")


if __name__ == "__main__":
    sys.exit(suite.main())
