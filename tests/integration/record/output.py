"""The trace file: opened, kept, cut short, and what it holds."""
import os
import resource
import signal
import stat
import subprocess
import tempfile
import time

from support import Fail, Skip, Started, check, check_near, info, luasample, need, record, report, rows, run, tmpdir, tmpfile, writer_of
from launch import compiled, one_line

BUSY = "local t = os.clock() + %g while os.clock() < t do end print('ran')"


# Many functions and stacks: a trace that grows.
ALLOC = ("local fs = {} for i = 1, 300 do fs[i] = load('return function(f, n) local x = 0 for i = 1, 2000 do x = x + i %% 7 "
         "end if n > 0 then return 1 + f(n - 1) end return x end')() end "
         "local t = os.clock() + %g while os.clock() < t do for i = 1, 300 do local g g = function(n) return fs[i](g, n) end "
         "g(i %% 9) end end print('ran')")


# Finds the memory that it shares with record and writes random words into it for a second, but leaves the agent alone.
SCRIBBLER = r"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
int main(void)
{
        char line[512];
        uint64_t *p = NULL, r = 88172645463325252ull;
        unsigned long a = 0, b = 0, n = 0;
        FILE *f = fopen("/proc/self/maps", "r");
        struct timespec t0, t;
        while (f && fgets(line, sizeof(line), f))
                if (strstr(line, "memfd:luasample") && sscanf(line, "%lx-%lx", &a, &b) == 2 && b - a > 1u << 20)
                        p = (uint64_t *)a, n = (b - a) / 8;
        if (!p)
                return 1;
        clock_gettime(CLOCK_MONOTONIC, &t0);
        do {
                for (int i = 0; i < 2000; i++) {
                        r ^= r << 13, r ^= r >> 7, r ^= r << 17;
                        unsigned long at = r % 3 ? 512 + 512 + r / 8 % (n - 1024) : r / 8 % 600;
                        /* the header's constants are for the agent, and the generation keeps it away */
                        p[at < 12 ? 12 : at] = r % 5 ? r : 0x444f4e45ull | (r % 4096 * 8 << 8 | r % 30) << 32;
                        if (r % 7 == 0)
                                p[512] += r % 4096 * 8;                 /* head of the ring */
                }
                clock_gettime(CLOCK_MONOTONIC, &t);
        } while (t.tv_sec - t0.tv_sec < 2);
        puts("done");
        return 5;
}
"""


def busy(seconds):
    return ["luajit", "-e", BUSY % seconds]


def add_to(suite):
    test = suite.test

    @test("mode", "0600 whatever the umask", quick=True)
    def _():
        r = record(["true"], preexec=lambda: os.umask(0)).ok()
        check(stat.S_IMODE(os.stat(r.trace).st_mode) == 0o600, oct(os.stat(r.trace).st_mode))

    @test("kept-old", "an existing file is kept as FILE.old", quick=True)
    def _():
        trace = tmpfile(".data")
        for n in range(3):
            if n:
                before = open(trace, "rb").read()
            record(["true"], trace=trace).ok()
            if n:
                check(open(trace + ".old", "rb").read() == before, "the old one is not there")

    @test("links", "a link is kept as FILE.old, whether it leads to a file or nowhere: nothing is written through it", quick=True)
    def _():
        d = tempfile.mkdtemp(dir=tmpdir())
        trace, aim = os.path.join(d, "trace"), os.path.join(d, "aim")
        for text in (None, "not a trace"):
            if text:
                with open(aim, "w") as f:
                    f.write(text)
            if os.path.lexists(trace):
                os.unlink(trace)
            os.symlink(aim, trace)
            record(["true"], trace=trace).ok()
            check(not os.path.islink(trace) and os.readlink(trace + ".old") == aim, os.listdir(d))
            check(open(aim).read() == text if text else not os.path.exists(aim), "it was written through the link")

    @test("visible", "messages show what acts on a terminal, in C1 and in bytes that are no UTF-8 too", quick=True)
    def _():
        name = b"/no/\xc2\x9b2J\xff\x1b]0;x\x07\xe2\x80\xae"
        for args in (["report", "-i", name], ["record", "-o", name + b"/x", "--", "true"], ["record", "--", name],
                     ["doctor", name], ["export", "-i", name, "--format", "csv"], ["doctor", "--json", name]):
            said = subprocess.run([luasample(), *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=60).stdout
            check(b"\\u009b2J" in said.replace(b"\\\\", b"\\"), "%r: %r" % (args, said))
            for bad in (b"\xc2\x9b", b"\xff", b"\x1b", b"\x07", b"\xe2\x80\xae"):
                check(bad not in said, "%r: %r" % (args, said))

    @test("undone", "a program that cannot be started leaves what was there, and no FILE.old of another day is moved", quick=True)
    def _():
        program, d = tmpfile(".exe"), tempfile.mkdtemp(dir=tmpdir())
        with open(need("true"), "rb") as f:
            text = f.read()
        at = text.index(b"/lib64/ld-linux-x86-64.so.2")
        with open(program, "wb") as f:
            f.write(text[:at] + b"/nolib" + text[at + 6:])
        os.chmod(program, 0o755)
        for here in ([], ["trace"], ["trace.old"], ["trace", "trace.old"]):
            for name in os.listdir(d):
                os.unlink(os.path.join(d, name))
            for name in here:
                with open(os.path.join(d, name), "w") as f:
                    f.write("this was " + name)
            r = record([program], trace=os.path.join(d, "trace"))
            check(r.status in (126, 127), "%d: %s" % (r.status, r.err))
            left = {name: open(os.path.join(d, name)).read() for name in os.listdir(d)}
            # FILE.old made room for FILE, which is back
            expected = ["trace"] if "trace" in here else here
            check(left == {name: "this was " + name for name in expected}, "%r: %r %s" % (here, left, r.err))

    @test("not-writable", "a directory, a missing one, a read-only one, an empty name: one line, nothing runs", quick=True)
    def _():
        mark = tmpfile(".ran")
        for out in (tmpdir(), "/no/such/dir/x", "/proc/x", "/dev/full", ""):
            r = run([luasample(), "record", "-o", out, "--", "touch", mark], cwd=tmpdir())
            one_line(r, 1 if "/" in out else 129)
        check(not os.path.exists(mark), "the program ran")

    @test("output-dash", "-o before -- or another option, of every command: 129, one line, no file of that name", quick=True)
    def _():
        where = tmpfile(".d")
        os.mkdir(where)
        lines = [line.split("\t") for line in run([luasample(), "--list-options"]).ok().out.splitlines()]
        commands = [fields[0] for fields in lines if fields[1] in ("output", "--output")]
        check(len(commands) >= 9, "commands with -o: %s" % commands)
        for command in commands:
            for words in (["-o", "--"], ["-o", "-q"], ["--output=--tree"], ["-o--"]):
                r = run([luasample(), command, *words, "echo", "ran"], cwd=where)
                one_line(r, 129, "-o")
                check(r.out == "" and os.listdir(where) == [], "%s %s: %r, files %s" % (command, words, r.out, os.listdir(where)))
        r = run([luasample(), "record", "-q", "-o", "./--", "--", need("luajit"), "-e", BUSY % 0.05], cwd=where).ok()
        check(os.listdir(where) == ["--"] and r.out == "ran\n", "./--: files %s" % os.listdir(where))

    @test("not-a-file", "a pipe and /dev/null can be written")
    def _():
        record(["true"], trace="/dev/null").ok()
        check(os.path.exists("/dev/null"), "/dev/null is gone")

    @test("disk-full", "what was written is a valid trace, the program runs on, one line")
    def _():
        if os.getuid() != 0 or run(["unshare", "-m", "true"]).status:
            raise Skip("needs root, to mount a small file system")
        mnt, trace = os.path.join(tmpdir(), "small"), tmpfile(".data")
        os.makedirs(mnt)
        full = ("mount -t tmpfs -o size=4k tmpfs %s && cd %s && (%s record -i 250us -o t.data -- luajit -e \"%s\"; s=$?; "
                "cp t.data %s; exit $s)" % (mnt, mnt, luasample(), ALLOC % 3, trace))
        r = run(["unshare", "-m", "sh", "-c", full])
        check(r.status == 0 and "ran" in r.out, "status %d, out %r, err %r" % (r.status, r.out, r.err))
        errors = [l for l in r.err.splitlines() if "No space" in l]
        check(len(errors) == 1 and "t.data" in errors[0] and "lost" in errors[0], r.err)
        check(0 < os.path.getsize(trace) <= 4096, "%d bytes" % os.path.getsize(trace))
        check(info(trace)["chunks"] > 0 and report(trace).status == 0, "not a valid trace")

    @test("scribbler", "a program that writes over the shared memory: record neither crashes nor hangs, the trace is valid")
    def _():
        r = record([compiled("scribbler", SCRIBBLER)])
        check(r.status == 5 and r.out == "done\n", "status %d, out %r, err %r" % (r.status, r.out, r.err[-300:]))
        check(info(r.trace)["complete"] == 1 and report(r.trace).status == 0, "not a valid trace")

    @test("file-size-limit", "ulimit -f: one line, and the program is not killed by our SIGXFSZ")
    def _():
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        one_line(run([luasample(), "record", "-o", tmpfile(), "--", "true"], preexec=limited), 1, "too large")

    @test("recorder-killed", "kill -9 of record: all but the last second is readable, the program runs on")
    def _():
        trace = tmpfile(".data")
        code = ("local last, x = 0, 0 while last < 5 do for i = 1, 1e6 do x = x + i % 7 end "
                "if os.clock() > last + 0.1 then last = os.clock() print(last) io.flush() end end print('ran')")
        s = Started([luasample(), "record", "-o", trace, "--", "luajit", "-e", code])
        end = time.monotonic() + 60
        while not [l for l in s.read(s.out).split() if float(l) > 3]:
            check(time.monotonic() < end, "the program is too slow")
            time.sleep(0.02)
        s.signal(signal.SIGKILL)
        check(s.wait() == 137, "not killed")
        cpu = float(s.read(s.out).split()[-1])
        j = info(trace)
        check(report(trace).status == 0 and j["complete"] == 0, "not readable")
        ticks = sum(r["self_ticks"] for r in rows(trace, "--by", "vmstate"))
        check((cpu - 1.3) * 1000 < ticks <= cpu * 1000 + 50, "%d ticks readable after %.2f s of CPU" % (ticks, cpu))
        while "ran" not in s.read(s.out):
            check(time.monotonic() < end, "the program does not end well: %r" % s.read(s.out)[-100:])
            time.sleep(0.05)

    @test("writer-killed", "kill -9 of what writes the trace: one line, what was written is readable, the program runs on as without us")
    def _():
        trace = tmpfile(".data")
        s = Started([luasample(), "record", "-o", trace, "--", "luajit", "-e", "local t, n = os.clock(), 0 while os.clock() < t + 2 do "
                     "n = n + 1 end print('ran') os.exit(7)"])
        end = time.monotonic() + 60
        while not os.path.exists(trace) or os.path.getsize(trace) < 600:
            check(time.monotonic() < end, "nothing is written")
            time.sleep(0.02)
        os.kill(writer_of(s.p.pid), signal.SIGKILL)
        check(s.wait() == 7 and s.read(s.out) == "ran\n", "status, out %r, err %r" % (s.read(s.out), s.read(s.err)))
        died = [l for l in s.read(s.err).splitlines() if "has died" in l]
        check(died == ["luasample: %s: the process that writes it has died; what was written before can be reported" % trace], s.read(s.err))
        check(report(trace).status == 0 and info(trace)["complete"] == 0, "not readable")

    @test("growing", "report and info work while the file grows")
    def _():
        trace = tmpfile(".data")
        s = Started([luasample(), "record", "-o", trace, "--", *busy(3)])
        time.sleep(2.2)
        check(report(trace).status == 0, "report fails")
        check(info(trace)["complete"] == 0, "complete already")
        check("LuaJIT" in info(trace)["runtime"], "no runtime before the end")
        check(s.wait() == 0, "status")
        check(info(trace)["complete"] == 1, "not complete at the end")

    @test("killed-losses", "kill -9 of record after losses: the trace has them")
    def _():
        trace = tmpfile(".data")
        s = Started([luasample(), "record", "-i", "100us", "-m", "64K", "-o", trace, "--", "luajit", "-e",
                     "local function f(n) if n > 0 then return 1 + f(n - 1) end return 0 end "
                     "local t = os.clock() + 6 while os.clock() < t do f(math.random(1, 150)) end"])
        time.sleep(0.5)
        writer = writer_of(s.p.pid)
        os.kill(writer, signal.SIGSTOP)
        time.sleep(2)
        os.kill(writer, signal.SIGCONT)
        time.sleep(2.2)
        s.signal(signal.SIGKILL)
        s.wait()
        i = info(trace)
        check(i["complete"] == 0 and i["lost"]["ring-full"] > 0, "losses %s" % i["lost"])

    @test("duration", "-d ends the recording; record waits for the program", quick=True)
    def _():
        trace = tmpfile(".data")
        start = time.monotonic()
        r = record(busy(1.5), "-d", "500ms", trace=trace).ok()
        check("ran" in r.out and time.monotonic() - start > 1.4, "did not wait")
        j = info(trace)
        check(j["complete"] == 1, "not complete")
        check(j["elapsed_ns"] < 0.8e9, "%.2f s recorded" % (j["elapsed_ns"] / 1e9))
        check_near("ticks a second of CPU", j["ticks"] / (j["cpu_ns"] / 1e9), 1000, 20)

    @test("duration-quiet-after", "after -d the program is no longer ticked")
    def _():
        code = ("local function sw() local n = 0 for l in io.lines('/proc/self/status') do "
                "n = tonumber(l:match('^nonvoluntary_ctxt_switches:%s+(%d+)')) or n end return n end "
                "local t = os.clock() + 2 while os.clock() < t do end")
        r = record(["luajit", "-e", code], "-d", "300ms").ok()
        check(r.info()["signals"] < 400, "%d signals" % r.info()["signals"])

    @test("no-args", "the arguments are not in the trace")
    def _():
        secret = "hunter2-%d" % os.getpid()
        script = tmpfile(".lua")
        with open(script, "w") as f:
            f.write("local t = os.clock() + 0.2 while os.clock() < t do end")
        for opts in (["--no-args"], []):
            r = record(["luajit", script, secret], *opts).ok()
            dump = run([luasample(), "dump", "-i", r.trace]).ok().out
            check((secret in dump) == (not opts), "with %r the secret is %sin the trace" % (opts, "not " if opts == [] else ""))
            check(r.info()["private_args"] == (0 if opts else 1), "private_args")

    @test("no-source", "the text of loaded chunks is not in the trace")
    def _():
        code = "load('local secret_word = 1 local t = os.clock() + 0.3 while os.clock() < t do end')()"
        with open(tmpfile(".lua"), "w") as f:
            f.write(code)
        r = record(["luajit", f.name], "--no-source").ok()
        check("secret_word" not in run([luasample(), "dump", "-i", r.trace]).ok().out, "the text is in the trace")
        check(r.info()["private_source"] == 0, "private_source")
        r = record(["luajit", f.name]).ok()
        check("secret_word" in run([luasample(), "dump", "-i", r.trace]).ok().out, "without --no-source it is not there")

    @test("info-keys", "every key of formats/info.def is in a trace", quick=True)
    def _():
        import re
        from support import ROOT
        keys = re.findall(r'^LS_INFO\(\w+,\s+"(\w+)"', open(os.path.join(ROOT, "formats", "info.def")).read(), re.M)
        r = record(busy(0.5), "-D", "1").ok()
        dump = run([luasample(), "dump", "-i", r.trace]).ok().out
        # only when something was dropped, and of luasample stack
        optional = {"dropped_chunks", "dropped_ticks", "stopped_ns", "core_file"}
        missing = [k for k in keys if k not in dump and k not in optional]
        check(not missing and len(keys) > 30, "missing: %s" % missing)
