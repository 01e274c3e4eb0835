"""Processes that cannot be attached to: each reason is said in a line of its own, and nothing is harmed."""
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile

import process
import support
from basic import LOOP, begun, end
from ends import started
from support import Skip, Started, check, host, luajit, need, run, tmpfile


def refused(pid, *words, cmd=(), cwd=None):
    r = run([*cmd, support.luasample(), "record", "-p", str(pid), "-d", "100ms", "-o", tmpfile(".data")], timeout=60, cwd=cwd)
    check(r.status == 1, "status %d: %s" % (r.status, r.err))
    lines = r.err.splitlines()
    check(len(lines) == 1 and lines[0].startswith("luasample: "), "not one line: %r" % r.err)
    for word in words:
        check(word in r.err, "no %r in %r" % (word, r.err))
    return r


def compiled(compiler, source, *opts):
    path, src = tmpfile(".exe"), tmpfile(".c")
    with open(src, "w") as f:
        f.write(source)
    r = subprocess.run([need(compiler), *opts, src, "-o", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, universal_newlines=True, timeout=60)
    if r.returncode:
        raise Skip("%s %s: %s" % (compiler, " ".join(opts), r.stdout[-200:]))
    return path


def open_copy():
    """A directory that all may read, with a luasample in it: the build directory may be closed to others."""
    d = tempfile.mkdtemp()
    os.chmod(d, 0o777)
    shutil.copy(support.luasample(), d)
    os.makedirs(os.path.join(d, "libsample"))
    shutil.copy(os.path.join(support.build_dir(), "libsample", "libsample.so"), os.path.join(d, "libsample"))
    return d


def as_nobody():
    return [need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups"]


WAITS = "#include <unistd.h>\nint main(void) { if (write(1, \"begin\\n\", 6) == 6) for (;;) pause(); return 1; }\n"


# PR_SET_DUMPABLE 0: the kernel then refuses its own user as Yama refuses those who are not its ancestors
CLOSED = "local ffi = require('ffi') ffi.cdef[[int prctl(int, unsigned long, ...);]] ffi.C.prctl(4, 0) " \
         "print('begin') io.stdout:flush() while true do end"
YAMA = "mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && echo 1 > /proc/sys/kernel/yama/ptrace_scope " \
       "|| exit 77; exec \"$0\" \"$@\""


def waiting(program):
    p = Started([program])
    p.wait_for("begin")
    return p


VFORKED = """local ffi = require("ffi")
ffi.cdef [[typedef struct { char data[80]; } actions; int posix_spawn_file_actions_init(actions *);
int posix_spawn_file_actions_addopen(actions *, int, const char *, int, unsigned); int waitpid(int, int *, int);
int posix_spawn(int *, const char *, const actions *, const void *, char *const *, char *const *);]]
local a, pid = ffi.new("actions"), ffi.new("int[1]")
local argv = ffi.new("char *[2]")
argv[0] = ffi.cast("char *", "true")
ffi.C.posix_spawn_file_actions_init(a)
ffi.C.posix_spawn_file_actions_addopen(a, 9, arg[1], 0, 0)     -- a pipe that nobody writes to: the parent waits in vfork
print "begin" io.stdout:flush()
print(ffi.C.posix_spawn(pid, "/bin/true", a, nil, argv, argv + 1)) io.stdout:flush()
while true do end"""


def add_to(suite):
    test = suite.test

    @test("in-kernel", "a thread that does not leave the kernel is not attached to, and not held when it does")
    def _():
        script, pipe = tmpfile(".lua"), tmpfile(".pipe")
        with open(script, "w") as f:
            f.write(VFORKED)
        os.mkfifo(pipe)
        v, loop = begun(script, pipe), begun(LOOP, "60")
        r = started("%d,%d" % (v.p.pid, loop.p.pid))
        check("does not leave the kernel" in r.read(r.err), r.read(r.err))
        with open(pipe, "w"):
            v.wait_for("begin\n0\n")
        check(r.p.poll() is None, "the recorder has ended: " + r.read(r.err))
        r.signal(signal.SIGINT)
        check(r.wait() == 0, r.read(r.err))
        end(v)
        end(loop)

    @test("usage", "what is no list of processes, and a list beside a command", quick=True)
    def _():
        for args in (["-p", "x"], ["-p", "0"], ["-p", "1,"], ["-p", "-5"], ["-p", "1", "--", "true"], ["-p", "1", "--engine", "hook"]):
            r = run([support.luasample(), "record", *args])
            check(r.status == 129 and r.err.startswith("luasample: "), "%r: %d %s" % (args, r.status, r.err))

    @test("no-process", "no such process, a thread of one, itself, one that has ended", quick=True)
    def _():
        pid = 4194303
        while os.path.exists("/proc/%d" % pid):
            pid -= 1
        refused(pid, "there is no process %d" % pid)
        p = subprocess.Popen(["true"])
        os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
        refused(p.pid, "has ended")
        p.wait()
        if os.path.exists("/proc/2/comm") and not process.read(2, "cmdline"):
            refused(2, "thread of the kernel")

    @test("thread", "a thread's id")
    def _():
        p = Started([host("workers"), "2", "1", "2000000"])
        tid = None
        while tid is None:
            tid = next((int(t) for t in os.listdir("/proc/%d/task" % p.p.pid) if int(t) != p.p.pid), None)
        refused(tid, "is a thread of process %d" % p.p.pid)
        end(p)

    @test("not-permitted", "another user's process: whose it is, and what to grant")
    def _():
        if os.geteuid():
            raise Skip("needs root to be somebody else")
        p = begun(LOOP, "60")
        d = open_copy()
        r = run([*as_nobody(), d + "/luasample", "record", "-p", str(p.p.pid), "-d", "100ms", "-o", d + "/x.data"])
        check(r.status == 1 and "not permitted to attach to %d (luajit)" % p.p.pid in r.err and "CAP_SYS_PTRACE" in r.err and
              "user id 0" in r.err, r.err)
        check(len(r.err.splitlines()) == 1, r.err)
        end(p)
        shutil.rmtree(d)

    @test("closed", "a user's own process that is closed to tracing, and where Yama restricts that (simulated)")
    def _():
        if os.geteuid():
            raise Skip("needs root to be somebody else")
        d = open_copy()
        p = Started([*as_nobody(), luajit().program, "-e", CLOSED])
        p.wait_for("begin")
        record = [*as_nobody(), d + "/luasample", "record", "-p", str(p.p.pid), "-d", "100ms", "-o", d + "/x.data"]
        yama = [need("unshare"), "--mount", "sh", "-c", YAMA, *record]
        for cmd, words in ((record, ("has closed itself to tracing", "CAP_SYS_PTRACE")),
                           (yama, ("kernel.yama.ptrace_scope is 1", "CAP_SYS_PTRACE", "sysctl kernel.yama.ptrace_scope=0"))):
            r = run(cmd)
            if r.status == 77:
                raise Skip("/proc/sys/kernel cannot be covered here: " + r.err.strip()[-200:])
            check(r.status == 1 and len(r.err.splitlines()) == 1 and
                  "not permitted to attach to %d (luajit)" % p.p.pid in r.err, "%d %r" % (r.status, r.err))
            for word in words:
                check(word in r.err, "no %r in %r" % (word, r.err))
        end(p)
        shutil.rmtree(d)

    @test("no-lua", "a program without Lua, and one whose LuaJIT is hidden")
    def _():
        p = Started(["sleep", "60"])
        while process.read(p.p.pid, "comm") != "sleep\n":
            pass
        refused(p.p.pid, "no Lua VM was found", "(sleep)", "not loaded LuaJIT")
        end(p)
        p = Started([host("hidden"), LOOP, "60"])
        p.wait_for("begin")
        refused(p.p.pid, "no Lua VM was found", "does not export lua_newstate")
        end(p)

    for name, compiler, opts, words in (
            ("32-bit", "gcc", ["-m32"], "is a 32-bit program"), ("musl", "musl-gcc", [], "linked with musl"),
            ("static", "gcc", ["-static"], "is statically linked")):
        @test(name, "a program that is %s" % name)
        def _(compiler=compiler, opts=opts, words=words):
            p = waiting(compiled(compiler, WAITS, *opts))
            refused(p.p.pid, words)
            check(p.p.poll() is None, "it ended")
            end(p)

    @test("stopped-program", "a process that is stopped, and one that is traced")
    def _():
        p = begun(LOOP, "60")
        p.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, p.p.pid, os.WSTOPPED | os.WNOWAIT)
        refused(p.p.pid, "is stopped", "kill -CONT %d" % p.p.pid)
        p.signal(signal.SIGCONT)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        if libc.ptrace(0x4206, p.p.pid, None, None):
            raise Skip("ptrace is not permitted here")
        refused(p.p.pid, "is traced already, by process %d" % os.getpid())
        end(p)

    @test("claimed-files", "a program that names files of its choice as the agent's: nothing is opened, changed or run")
    def _():
        d, shm = open_copy(), tempfile.mkdtemp(dir="/dev/shm")
        shutil.copy(host("claims"), d)
        os.chmod(shm, 0o755)
        victim, fifo = os.path.join(shm, "victim"), os.path.join(shm, "fifo")
        with open(victim, "wb") as f:
            f.write(b"x" * 5000)
        os.chmod(victim, 0o600)
        os.mkfifo(fifo, 0o600)
        before = os.stat(victim)
        user = as_nobody() if os.geteuid() == 0 else []
        for claim in (victim, fifo, "/dev/null", "/proc/self/environ", shm, "sealed", "filled", "readonly"):
            for claims in ((claim, "memfd"), ("memfd", claim)):
                p = Started([*user, os.path.join(d, "host_claims"), *claims])
                p.wait_for("begin ")
                fds = [int(fd) for fd in p.read(p.out).split()[1:3]]
                opened = "/proc/%d/fd/%d" % (p.p.pid, fds[claims.index(claim)])
                held = os.stat(opened)
                refused(p.p.pid, "it names another file than the memory file that was to be made in it")
                check(p.p.poll() is None, "%r: it ended" % (claims,))
                now = os.stat(opened)
                check((held.st_size, held.st_mtime_ns) == (now.st_size, now.st_mtime_ns), "%r: changed" % (claims,))
                end(p)
        after = os.stat(victim)
        check((before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns), "the file was changed")
        shutil.rmtree(shm)
        shutil.rmtree(d)

    @test("attached", "a process that is recorded already: attached to, or started by luasample")
    def _():
        p = begun(LOOP, "60")
        r = started(p.p.pid)
        refused(p.p.pid, "is recorded by another luasample already")
        r.signal(signal.SIGINT)
        check(r.wait() == 0, r.read(r.err))
        end(p)
        r = Started([support.luasample(), "record", "-o", tmpfile(".data"), "--", luajit().program, LOOP, "60"])
        r.wait_for("begin")
        pid = r.child()
        refused(pid, "was started by luasample record")
        os.kill(pid, signal.SIGKILL)
        r.wait()
