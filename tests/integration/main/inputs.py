"""Bad input: one clear line, the right exit status, nothing lost. Imported by run.py."""
import os
import re
import struct

import support as s
from support import check

USAGE, FAIL, NOEXEC, NOCMD = 129, 1, 126, 127


def bad(cmd, status, *patterns, **kw):
    r = s.run([s.luasample(), *cmd], **kw)
    check(r.status == status, "%s: status %d, expected %d: %s" % (" ".join(cmd)[-80:], r.status, status, r.err[-300:]))
    check(len(r.err.strip().splitlines()) == 1, "%s: not one line: %r" % (" ".join(cmd)[-80:], r.err[-400:]))
    for p in patterns:
        check(re.search(p, r.err, re.I), "%s: no %s in %r" % (" ".join(cmd)[-80:], p, r.err))
    return r


def add_to(suite):
    t = suite.test

    @t("inputs.interval", "0, negative, unknown unit, too short", True)
    def interval():
        for v in ("0", "-1ms", "1parsec", "1ns", "", "1e99s", "ms"):
            bad(["record", "-i", v, "-o", s.tmpfile(), "--", "true"], USAGE, "interval|-i")
        for v in ("0", "-5", "x", "1e12"):
            bad(["record", "-F", v, "-o", s.tmpfile(), "--", "true"], USAGE, "freq|-F")

    @t("inputs.command", "not found, not executable, a directory, none", True)
    def command():
        path = s.tmpfile(".lua")
        with open(path, "w") as f:
            f.write("print(1)\n")
        bad(["record", "-o", s.tmpfile(), "--", "no-such-command-x"], NOCMD, "no-such-command-x")
        bad(["record", "-o", s.tmpfile(), "--", path], NOEXEC, os.path.basename(path))
        bad(["record", "-o", s.tmpfile(), "--", "/tmp"], NOEXEC, "/tmp")
        bad(["record"], USAGE)
        bad(["reprot"], USAGE, "report")
        bad(["report", "--bogus"], USAGE, "bogus")
        check(s.run([s.luasample()]).status == USAGE, "no command: status")
        for cmd in (["--version"], ["--help"], ["help", "record"], ["report", "--help"]):
            s.run([s.luasample(), *cmd]).ok()

    @t("inputs.output", "not writable, a directory, existing", True)
    def output():
        bad(["record", "-o", "/no/such/dir/x", "--", "true"], FAIL, "/no/such/dir/x")
        bad(["record", "-o", "/tmp", "--", "true"], FAIL, "/tmp")
        trace = s.tmpfile(".data")
        with open(trace, "w") as f:
            f.write("precious")
        s.record([s.luajit().program, "-e", "local x = 0 for i = 1, 1e7 do x = x + i end"], "-q", trace=trace).ok()
        with open(trace + ".old") as f:
            check(f.read() == "precious", "the old file is not kept as FILE.old")

    @t("inputs.trace", "missing, empty, not a trace, a directory, newer version", True)
    def trace():
        bad(["report", "-i", "/no/such"], FAIL, "/no/such")
        empty, text = s.tmpfile(), s.tmpfile()
        open(empty, "w").close()
        with open(text, "w") as f:
            f.write("this is no trace\n" * 100)
        for command in ("report", "info", "dump"):
            bad([command, "-i", empty], FAIL, "empty")
            bad([command, "-i", text], FAIL, "not a")
            bad([command, "-i", "/tmp"], FAIL, "/tmp")
        r = s.record_lua("seventy.lua", "-q", args=["0.1"]).ok()
        with open(r.trace, "rb") as f:
            data = bytearray(f.read())
        try:
            import xxhash
        except ImportError:
            raise s.Skip("python3-xxhash is not installed: no newer version made")
        data[8:10] = struct.pack("<H", 77)      # the file header: magic, major, minor, pad, interval, check
        data[24:32] = struct.pack("<Q", xxhash.xxh64(bytes(data[:24])).intdigest())
        newer = s.tmpfile()
        with open(newer, "wb") as f:
            f.write(data)
        for command in ("report", "info", "dump"):
            bad([command, "-i", newer], FAIL, "version|newer")

    @t("inputs.flipped", "a flipped bit: the chunk is named, the rest is reported exactly")
    def flipped():
        r = s.record_lua("calls.lua", "-q", args=["4.5"]).ok()
        whole = sum(x["self_ticks"] for x in r.rows())
        with open(r.trace, "rb") as f:
            data = f.read()
        damaged = 0
        for at in range(64, len(data), max(1, len(data) // 60)):
            path = s.tmpfile()
            with open(path, "wb") as f:
                f.write(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:])
            x = s.report(path, "--json")
            check(x.status == 0, "byte %d: status %d: %s" % (at, x.status, x.err[-200:]))
            got = sum(y["self_ticks"] for y in s.rows(path))
            check(got <= whole, "byte %d: %d ticks, more than %d" % (at, got, whole))
            if got < whole:
                check(re.search("chunk", x.err, re.I), "byte %d: %d of %d ticks and no chunk named: %r" % (at, got, whole, x.err))
                damaged += 1
            os.remove(path)
        check(damaged, "no flip cost anything: nothing was tested")

    @t("inputs.options", "unknown view, format, filter; filter without matches")
    def options():
        r = s.record_lua("seventy.lua", "-q", args=["0.2"]).ok()
        for args, pattern in ((["--by", "colour"], "colour"), (["--format", "elf"], "elf"), (["--min", "x"], "min"),
                              (["--vmstate", "zz"], "vmstate"), (["--time", "5"], "time"), (["--sort", "up"], "up"),
                              (["--by", "functoin"], "function")):
            bad(["report", "-i", r.trace, *args], USAGE, pattern)
        for args in (["--function", "nothing*"], ["--zone", "nozone"], ["--thread", "1"], ["--time", "100,200"]):
            x = s.report(r.trace, *args)
            check(re.search("match|no samples", x.out + x.err, re.I), "%s: says nothing: %r %r" % (args, x.out, x.err))

    @t("inputs.stdout", "stdout closed early or full", True)
    def stdout():
        r = s.record_lua("seventy.lua", "-q", args=["0.3"]).ok()
        for args in (["report", "-i", r.trace], ["dump", "-i", r.trace], ["info", "-i", r.trace], ["--help"],
                     ["help", "record"], ["help", "report"], ["help"], ["record", "--help"], ["doctor"]):
            x = s.run(["sh", "-c", '"$@" > /dev/full', "sh", s.luasample(), *args])
            check(x.status == FAIL and "space" in x.err, "%s > /dev/full: %d %r" % (" ".join(args), x.status, x.err))
        x = s.run(["bash", "-c", '"$@" | head -c 10 > /dev/null; echo ${PIPESTATUS[0]}', "bash", s.luasample(), "dump", "-i", r.trace])
        check(x.out.strip() in ("0", "141") and x.err == "", "closed pipe: %r %r" % (x.out, x.err))
        x = s.run(["sh", "-c", '"$@" >&-', "sh", s.luasample(), "report", "-i", r.trace])
        check(x.status != 0 and x.err, "closed stdout: %d %r" % (x.status, x.err))

    @t("inputs.no-profiler", "a LuaJIT without the profiler is named")
    def no_profiler():
        cache = os.environ.get("LUASAMPLE_TEST_CACHE", os.path.expanduser("~/.cache/luasample-tests"))
        program = os.path.join(cache, "noprofile", "bin", "luajit")
        if not os.path.exists(program):
            raise s.Skip("scripts/luajit-trees made no LuaJIT without the profiler")
        env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(cache, "noprofile", "lib"))
        r = s.record([program, os.path.join(s.LUA, "seventy.lua"), "0.2"], "--engine", "hook", env=env).ok()
        check(r.out == "seventy done\n", "the program did not run: %r" % r.out)
        check(re.search("profiler", r.err), "nothing said: " + r.err)
        check("cannot be sampled" in r.err and "other threads" not in r.err, "the time without samples has a wrong cause: " + r.err)
