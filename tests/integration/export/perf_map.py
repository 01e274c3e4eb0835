"""Format perf-map, read by perf: a recording of perf's that was made beside ours gets names for LuaJIT's machine code. Imported
by run.py."""
import collections
import os
import re

import shared
import support as s
from support import check

# Loops of one kind: their shares of the compiled code are 5, 3 and 2. None of them is left often: an exit runs code of LuaJIT's
# own, which perf has there, and report at the place in the trace that it leaves.
PROGRAM = "".join("""local function %s(n)
        local x = 0
        for i = 1, n do x = (x * 3 + i) %% 1013 end
        return x
end
""" % name for name in ("five", "three", "two")) + "for i = 1, 150 do five(5e5) three(3e5) two(2e5) end\n"
SHARES = {"five": 50, "three": 30, "two": 20}
LINE = re.compile(r"^[0-9a-f]+ [0-9a-f]+ \S.* \[trace \d+\]$")


def symbols(perf, recording):
    """What perf calls the machine code that lies in no file, one for each of its samples."""
    out = s.run([perf, "script", "-i", recording, "-F", "ip,sym,dso"]).ok().out
    found = re.findall(r"^\s*[0-9a-f]+ (.+) \((.*)\)$", out, re.M)
    return [symbol for symbol, file in found if "/perf-" in file or file.startswith("[JIT]") or file == "//anon"]


def add_to(suite):
    @suite.test("perf-map", "perf names LuaJIT's machine code by it, as report does: three loops of known shares")
    def named():
        perf = shared.required(s.need, "perf")
        recording, program = s.tmpfile(".perf"), s.tmpfile(".lua")
        with open(program, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        # perf needs its place among those that are recorded: the program is its child
        r = s.record([perf, "record", "-q", "-e", "cpu-clock", "-F", "1000", "-o", recording, s.luajit().program, program],
                     "-q").ok()
        pids = set(s.run([perf, "script", "-i", recording, "-F", "pid"]).ok().out.split())
        check(len(pids) == 1, "processes: %s" % pids)
        path = "/tmp/perf-%s.map" % pids.pop()
        try:
            lines = shared.export(r.trace, "-o", path).ok() and open(path, encoding="utf-8").read().splitlines()
            check(len(lines) >= 3 and all(map(LINE.match, lines)), lines[:5])
            ranges = sorted((int(a, 16), int(b, 16)) for a, b in (x.split()[:2] for x in lines))
            check(all(a + n <= b for (a, n), (b, _) in zip(ranges, ranges[1:])), "lines overlap")
            found = symbols(perf, recording)
        finally:
            if os.path.exists(path):
                os.remove(path)
        mine = [re.sub(r" \S+:\d+ \[trace \d+\]$", "", x) for x in found if "[trace " in x]
        check(len(mine) > 200 and len(mine) > 0.95 * len(found), "%d of %d samples have names" % (len(mine), len(found)))
        got, rows = collections.Counter(mine), s.rows(r.trace, "--min", "0", "--vmstate", "native")
        for name, want in SHARES.items():
            s.check_share("perf's " + name, 100 * got[name] / len(mine), want, len(mine), 2)
            s.check_share("our " + name, s.share(rows, function=name), want, s.effective_samples(r.trace), 2)

    @suite.test("perf-map.none", "a recording without compiled code is no line; names are one line each")
    def none():
        check(shared.export(s.record_lua("seventy.lua", "-q", lua_opts=["-joff"], args=["0.3", s.tmpfile()]).ok().trace,
                            "--format", "perf-map").ok().out == "", "lines of a program without traces")
        for trace in shared.synthetic():
            out = shared.export(trace, "--format", "perf-map").ok().out
            check(all(map(LINE.match, out.splitlines())), out[:300])
