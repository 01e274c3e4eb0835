"""Recordings with -e calltime: the time of each call. Tests of run.py."""
import os
import re
import signal

import support as s
from record import OWN, record

PART = r"^(\w+) ([\d.]+) (-?[\d.]+)$"
CALLS = {"none": 1, "few": 800000, "some": 2000000, "many": 8000000}
LINE = (r"(\d+) calls took ([\d.]+) s, ([\d.]+) s with the ([\d.]+) ns that measuring one costs \(([\d.]+) of them in the function "
        r"that is called\): time of another program, its JIT compiler was off")


def calls_by_line(trace, program):
    """Line where a function begins -> calls of it and ns with what it calls, of one file."""
    name, found = os.path.basename(program) + ":", {}
    for event in ("calls", "calltime"):
        for r in s.rows(trace, "--by", "line", "--event", event):
            if r["name"].startswith(name) and r["name"][len(name):].isdigit():
                found.setdefault(int(r["name"][len(name):]), {})[event] = (r["self_ticks"], r["total_ticks"])
    return found


def expected(program, n):
    want = {}
    with open(program) as f:
        for number, line in enumerate(f, 1):
            if "--=" in line and not line.startswith("--"):
                want[number] = eval(line.partition("--=")[2], {"N": n})
    return want


def add(suite, luajits):
    for name in luajits:
        @suite.test("calltime.kinds." + name, "calls of all kinds are counted, and their time is where it belongs", name == "debian")
        def kinds(name=name):
            program, lj = os.path.join(OWN, "callkinds.lua"), s.luajit(name)
            plain = s.run([lj.program, program, "300"], env=lj.environ()).ok()
            r = record(program, "300", events="calltime", lj=lj).ok()
            s.check(r.out == plain.out, "its output differs: " + r.out)
            found, want = calls_by_line(r.trace, program), expected(program, 300)
            got = {line: found.get(line, {}).get("calls", (0, 0))[0] for line in want}
            s.check(got == want, "calls of the functions in these lines: %s, not %s" % (got, want))
            own = {line: found[line]["calltime"][0] for line in want}
            spin = next(iter(want))
            s.check(own[spin] == max(own.values()), "most of the time is in spin: %s" % own)
            below = found[spin + 1]["calls"]
            s.check(below == (599, 2 * 599), "leaf, and what it calls: %d, %d calls" % below)
            total = found[spin + 2]["calltime"][1]
            s.check(total < sum(own.values()), "recursion counts once: %d" % total)

    @suite.test("calltime.bias", "most of what measuring costs is taken off: parts with 0, 0.8, 2 and 8 million calls, against their own clock")
    def bias():
        program, lj = os.path.join(OWN, "calltime.lua"), s.luajit()
        names = ("none", "few", "some", "many")
        least, seen, line = {}, {}, None
        for _ in range(5):
            out = s.run([lj.program, "-joff", program], env=lj.environ()).ok().err
            for part, cpu, _ in re.findall(PART, out, re.M):
                least[part] = min(least.get(part, 1e9), float(cpu))
            r = record(program, events="calltime", lj=lj).ok()
            line = re.search(LINE, r.err)
            s.check(line, r.err)
            found = calls_by_line(r.trace, program)
            # It is elapsed time: what the program was off the CPU is in it.
            for part, _, off in re.findall(PART, r.err, re.M):
                ns = found[6 + names.index(part)]["calltime"][1] - 1e9 * float(off)
                seen[part] = min(seen.get(part, 1e18), ns)
        print({p: "%.3f s, %.1f %%" % (least[p], 100 * (seen[p] / 1e9 / least[p] - 1)) for p in names}, line.group(0))
        for part in names:
            off = seen[part] / 1e9 / least[part] - 1
            # One cost stands for all calls, which differ by what the processor does beside them, and a busy machine moves both.
            cost = CALLS[part] * float(line[4]) / 1e9 / least[part]
            s.check(abs(off) < max(0.05, 0.6 * cost), "%s: %.1f %% from its truth, of %.1f %% that were taken off" %
                    (part, 100 * off, 100 * cost))

    @suite.test("calltime.views", "took: how long calls took, in powers of two; the summary says what was taken off", True)
    def views():
        program = os.path.join(OWN, "callkinds.lua")
        r = record(program, "300", events="calltime").ok()
        m = re.search(LINE, r.err)
        s.check(m and r.err.count("calls took") == 1, r.err)
        s.check(0 < float(m[2]) <= float(m[3]) and 0 <= float(m[5]) <= float(m[4]), m[0])
        rows = s.rows(r.trace, "--by", "label", "--event", "calls", "--min", "0")
        took = {x["name"]: x["self_ticks"] for x in rows}
        s.check(sum(took.values()) == int(m[1]), "%s are not %s calls" % (took, m[1]))
        s.check(any(re.search(r"< [\d.e+]+ (ns|us|ms)", x) for x in took), "%s" % took)
        table = s.run([s.luasample(), "report", "-i", r.trace, "--by", "function", "--event", "calltime,calls"]).ok().out
        s.check(re.search(r"Self calltime +Self calls +Total calltime", table), table)

    @suite.test("calltime.killed", "a program that is killed loses no calls", True)
    def killed():
        program = os.path.join(OWN, "killed.lua")
        r = record(program, events="calltime")
        s.check(r.status in (-signal.SIGKILL, 128 + signal.SIGKILL), "%d %s" % (r.status, r.err))
        s.check(re.search(LINE, r.err), r.err)

    @suite.test("calltime.refused", "what does not go with it is refused in a line", True)
    def refused():
        program = os.path.join(OWN, "callkinds.lua")
        r = record(program, "1", events="calltime,lines")
        s.check(r.status == 129 and "one after the other" in r.err and r.err.count("\n") == 1, "%d %s" % (r.status, r.err))
        r = s.run([s.luasample(), "record", "-e", "calltime", "-p", str(os.getpid()), "-o", s.tmpfile(".data")])
        s.check(r.status == 129 and "from a program's start" in r.err, "%d %s" % (r.status, r.err))
