"""Processes that an attachment could harm: refused in a line that says by what, left as they were, and attached to with --force."""
import json
import os
import resource
import shutil
import subprocess
import time

import calls
import process
import support
from basic import LOOP, attach, attach_without_processor, begun, end, same
from refusals import as_nobody, compiled, open_copy, refused
from support import Skip, Started, check, host, info, luajit, need, run, tmpfile
from unusual import Unusual

ALLOW, KILL, TRAP, EPERM = 0x7fff0000, 0x80000000, 0x00030000, 0x00050001
SANDBOX = os.path.join(support.LUA, "attachsandbox.lua")
FORCE = "--force does it all the same"


def sandboxed(default, *pairs, user=()):
    p = Started([*user, luajit().program, "-joff", SANDBOX, str(default), *("%d:%d" % x for x in pairs)])
    p.wait_for("begin")
    return p


def need_root():
    if os.geteuid():
        raise Skip("needs root")


def doctor(pid, *cmd):
    r = run([*(cmd or [support.luasample()]), "doctor", "--json", str(pid)], timeout=60)
    return r.status, [x["text"] for x in json.loads(r.out)["processes"]]


def refused_for(pid, *words):
    """record -p and doctor say so, and the process is as before."""
    before = process.state(pid)
    refused(pid, *words, FORCE)
    status, reasons = doctor(pid)
    check(status == 1 and any(all(w in text for w in words) for text in reasons), "doctor: %d %r" % (status, reasons))
    same(before, pid)


def add_to(suite):
    test = suite.test

    @test("calls", "the table of the system calls that an attachment makes is complete")
    def _():
        need_root()
        number, table = calls.numbers(), {name for name, _ in calls.table(support.ROOT)}
        names = {number[name]: name for name in number}
        rows = calls.rows(support.ROOT)
        judged = {names[nr] for nr, known in rows if known} - {"mmap", "openat", "prctl", "fcntl"}      # the program's, too
        for cmd, opts in (([luajit().program, LOOP, "60"], ["--native"]), ([host("leader"), "3"], ["--timer", "cputime"]),
                          ([host("leader"), "3"], ["-e", "wall,suspended", "--timer", "helper"]),
                          ([host("locked"), "60"], [])):
            w = calls.Watched(cmd)
            w.wait_for_begin()
            time.sleep(0.3)
            w.on = True
            attach(w.p.pid, "--force", *opts, duration="1s")
            attach(w.p.pid, "--force", *opts, duration="300ms")         # by the agent that is there
            check(w.p.poll() is None, "it ended")
            w.on = False
            made = {names[nr] for nr, _ in w.seen} - {"write"}          # of the program
            other = {(names[nr], args) for nr, args in w.seen if names[nr] in judged and
                     not any(n == nr and all(args[i] & 0xffffffff == v & 0xffffffff for i, v in known.items())
                             for n, known in rows)}
            w.end()
            check(len(made) > 20, "only %r" % made)
            check(made <= table, "not in the table: %r" % sorted(made - table))
            check(not other, "not with these arguments: %r" % sorted(other))

    @test("late-tick", "an agent that is slow when it gives the tick's signal back: no CPU-time timer ticks then")
    def _():
        need_root()
        number = calls.numbers()["rt_sigaction"]
        w = calls.Watched([luajit().program, LOOP, "60"])
        w.wait_for_begin()
        w.slow_after = lambda nr, args: nr == number and args[0] == 16 and args[1]
        for _ in range(3):
            w.slow = 0
            r = attach(w.p.pid, "--force", "--timer", "cputime", duration="300ms")
            check(w.p.poll() is None, "it ended with %r: %s" % (w.p.poll(), r.err))
            check(w.slow, "no disposition was set")
        w.end()

    @test("sandbox-allows", "a filter that allows what is in the table, and kills for all else, is known to: attached to")
    def _():
        need_root()
        number = calls.numbers()
        p = sandboxed(KILL, *[(number[name], ALLOW) for name, _ in calls.table(support.ROOT)], (number["write"], ALLOW))
        before = process.state(p.p.pid)
        check(doctor(p.p.pid) == (0, ["%d (luajit) can be attached to" % p.p.pid]), "doctor: %r" % (doctor(p.p.pid),))
        for opts in ((), ("--native",), ("--timer", "cputime"), ("-e", "wall", "--timer", "helper")):
            r = attach(p.p.pid, *opts, duration="300ms")
            check(p.p.poll() is None, "it ended: %r, %s" % (p.p.poll(), r.err))
        same(before, p.p.pid)
        end(p)

    @test("sandbox-kills", "for each system call that an attachment makes: a filter that kills for it")
    def _():
        need_root()
        number = calls.numbers()
        for name in dict.fromkeys(name for name, _ in calls.table(support.ROOT)):
            p = sandboxed(ALLOW, (number[name], TRAP if name == "getpid" else KILL))
            refused(p.p.pid, "seccomp filter kills it at %s," % name, FORCE)
            time.sleep(0.02)
            check(p.p.poll() is None, "%s: it ended with %r" % (name, p.p.poll()))
            end(p)
        p = sandboxed(ALLOW, (number["memfd_create"], KILL))
        refused_for(p.p.pid, "seccomp filter kills it at memfd_create")
        r = run([support.luasample(), "record", "--force", "-p", str(p.p.pid), "-d", "100ms", "-o", tmpfile(".data")])
        check("warning: %d (luajit): its seccomp filter kills it at memfd_create" % p.p.pid in r.err, r.err)
        check(p.p.wait(20) == -31, "the filter does not kill: %r" % p.p.poll())

    @test("sandbox-fails", "filters that let calls fail: refused for those that are needed, attached to where there is another way")
    def _():
        need_root()
        number = calls.numbers()
        for name, error, words in (("memfd_create", 1, "lets memfd_create fail"), ("mprotect", 1, "lets mprotect fail"),
                                   ("clone3", 1, "lets clone3 fail"), ("clone", 1, "lets clone fail")):
            p = sandboxed(ALLOW, (number[name], 0x50000 | error))
            refused_for(p.p.pid, words)
            end(p)
        # as containers have it: the C library takes clone then
        p = sandboxed(ALLOW, (number["clone3"], 0x50000 | 38), (number["close_range"], EPERM), (number["munlock"], EPERM))
        before = process.state(p.p.pid)
        attach(p.p.pid, duration="200ms")
        same(before, p.p.pid)
        end(p)

    @test("sandbox-thread", "a filter that one thread has, not the first")
    def _():
        need_root()
        u = Unusual("closed")
        u.tell()
        refused_for(u.pid, "seccomp filter kills it at getpid")
        end(u.p)

    @test("sandbox-no-processor", "a filter of a program that gets no processor for seconds is read as soon as it has one")
    def _():
        need_root()
        attach_without_processor(luajit().program, "-joff", SANDBOX, str(ALLOW), "163:%d" % KILL)

    @test("sandbox-unreadable", "a user cannot read filters: refused, and attached to with --force")
    def _():
        need_root()
        support.need_open()
        d = open_copy()
        p = sandboxed(ALLOW, (163, KILL), user=as_nobody())
        ours = [*as_nobody(), d + "/luasample"]
        r = run([*ours, "record", "-p", str(p.p.pid), "-d", "100ms", "-o", d + "/x.data"])
        check(r.status == 1 and "only root" in r.err and FORCE in r.err and len(r.err.splitlines()) == 1, r.err)
        status, reasons = doctor(p.p.pid, *ours)
        check(status == 1 and "only root" in reasons[0], "%r" % reasons)
        r = run([*ours, "record", "--force", "-p", str(p.p.pid), "-d", "200ms", "-o", d + "/x.data"]).ok()
        check("warning: " in r.err and p.p.poll() is None, r.err)
        end(p)
        shutil.rmtree(d)

    @test("force", "--force is for processes that run already")
    def _():
        r = run([support.luasample(), "record", "--force", "--", "true"])
        check(r.status == 129 and "--force" in r.err, r.err)

    @test("locked", "a program that locks its memory gets little of it locked, and refuses where it has no room")
    def _():
        need_root()
        u = Unusual("lock")
        before = process.resident_kib(u.pid)
        r = Started([support.luasample(), "record", "-p", str(u.pid), "-d", "3s", "-o", tmpfile(".data")])
        deadline = time.monotonic() + 30
        while "attached to" not in r.read(r.err):
            check(time.monotonic() < deadline and r.p.poll() is None, r.read(r.err))
            time.sleep(0.02)
        time.sleep(0.5)
        during = process.resident_kib(u.pid)
        check(r.wait() == 0, r.read(r.err))
        after = process.resident_kib(u.pid)
        print("     resident: %d KiB, %d while it is recorded, %d after" % (before, during, after))
        stack = 5 << 10                         # of the agent's thread, as this program has it
        check(during - before < stack + (12 << 10), "%d KiB more" % (during - before))
        check(after - before < stack + (8 << 10), "%d KiB more after it" % (after - before))
        end(u.p)

    @test("locked-limit", "one that may lock no more")
    def _():
        need_root()
        lock = "local ffi = require('ffi') ffi.cdef[[int mlockall(int);]] assert(ffi.C.mlockall(3) == 0) " \
               "print('begin') io.stdout:flush() while true do end"
        p = Started([need("prlimit"), "--memlock=%d" % (8 << 20), *as_nobody(), luajit().program, "-e", lock])
        p.wait_for("begin")
        refused_for(p.p.pid, "locks all of its memory", "of the 8 that it may (RLIMIT_MEMLOCK)")
        end(p)

    @test("address-space", "one whose address space has no room")
    def _():
        p = Started([need("prlimit"), "--as=%d" % (200 << 20), luajit().program, LOOP, "60"])
        p.wait_for("begin")
        refused_for(p.p.pid, "of the 200 of address space", "RLIMIT_AS")
        end(p)

    @test("processes", "one whose user may have no more threads")
    def _():
        need_root()
        support.need_open()
        user = [need("setpriv"), "--reuid=54321", "--regid=54321", "--clear-groups"]
        # its own, and our worker's that looks at its files
        for limit, words in ((3, "user id 54321 has 2 threads of the 3 that this process allows (RLIMIT_NPROC)"), (4, None)):
            p = Started([*user, need("prlimit"), "--nproc=%d" % limit, luajit().program, LOOP, "60"])
            p.wait_for("begin")
            if words:
                refused_for(p.p.pid, words)
            else:
                attach(p.p.pid, duration="200ms")
            end(p)

    @test("group", "one whose control group may have no more threads")
    def _():
        need_root()
        root = next((d for d in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup") if os.path.exists(d)), None)
        group = os.path.join(root or "", "luasample-test-%d" % os.getpid())
        try:
            os.mkdir(group)
            with open(group + "/pids.max", "w") as f:
                f.write("2")
        except OSError as e:
            raise Skip("no control group of pids: %s" % e)
        p = begun(LOOP, "60")
        try:
            with open(group + "/cgroup.procs", "w") as f:
                f.write(str(p.p.pid))
            refused_for(p.p.pid, "has 1 of 2 threads (pids.max)")
        finally:
            end(p)
            os.rmdir(group)

    @test("doctor", "doctor PID names each reason, and says when there is none")
    def _():
        need_root()
        p = begun(LOOP, "60")
        check(doctor(p.p.pid) == (0, ["%d (luajit) can be attached to" % p.p.pid]), "%r" % (doctor(p.p.pid),))
        r = run([support.luasample(), "doctor", str(p.p.pid)]).ok()
        check("ok    %d " % p.p.pid in r.out, r.out)
        end(p)
        p = Started([need("prlimit"), "--as=%d" % (200 << 20), luajit().program, "-joff", SANDBOX, str(ALLOW), "%d:%d" % (319, KILL)])
        p.wait_for("begin")
        status, reasons = doctor(p.p.pid)
        check(status == 1 and len(reasons) == 2 and "memfd_create" in reasons[0] and "RLIMIT_AS" in reasons[1], "%r" % reasons)
        r = run([support.luasample(), "doctor", str(p.p.pid)])
        check(r.status == 1 and r.out.count("fail  %d " % p.p.pid) == 2 and "record -p is not possible" in r.out, r.out)
        end(p)
        p = Started(["sleep", "60"])
        while process.read(p.p.pid, "comm") != "sleep\n":
            pass
        status, reasons = doctor(p.p.pid)
        check(status == 1 and ["not loaded LuaJIT" in x for x in reasons] == [True], "%r" % reasons)
        end(p)
        status, reasons = doctor(4194303)
        check(status == 1 and reasons == ["there is no process 4194303"], "%r" % reasons)

    LUA_LIKE = "#include <unistd.h>\n__attribute__((visibility(\"default\"))) void *lua_newstate(void) { return 0; }\n" \
               "__attribute__((visibility(\"default\"))) int luaJIT_setmode(void) { return 0; }\n%s" \
               "int main(void) { if (write(1, \"begin\\n\", 6) == 6) for (;;) pause(); return 1; }\n"

    for name, compiler, opts, extra, words in (
            ("musl-lua", "musl-gcc", ["-rdynamic"], "", "is linked with musl"),
            ("musl-static-lua", "musl-gcc", ["-static"], "", "is statically linked"),
            ("odd-library", "gcc", ["-rdynamic"], "const char *gnu_get_libc_version(void) { return \"2.99\"; }\n",
             "has a C library that is not known")):
        @test(name, "a program with a Lua, of another C library: refused with a word")
        def _(compiler=compiler, opts=opts, extra=extra, words=words):
            p = Started([compiled(compiler, LUA_LIKE % extra, *opts)])
            p.wait_for("begin")
            before = process.state(p.p.pid)
            refused(p.p.pid, words)
            status, reasons = doctor(p.p.pid)
            check(status == 1 and words in reasons[0], "%r" % reasons)
            same(before, p.p.pid)
            end(p)
