"""luasample jit: why code is not compiled, of programs that say how long they ran a case of which the reason is known, and its
double that is compiled; and attempts against what jit.v hears in the same run. Imported by run.py."""
import collections
import os
import re

import support as s
from support import check

SECONDS = 1
GOOD, NOW, EXIT = "given up for good", "given up for now", "behind an exit, given up"
# case: (what its rows begin with, least part of the case's time that has this reason, the collector's time is the case's too).
# What LuaJIT compiles of a case is not interpreted: the least is then below 1, and the rest is seen by the double.
CASES = {
    "bytecode": (("%s: NYI: bytecode FNEW" % GOOD,), 1, True),
    "off_function": (("the JIT compiler was off",), 1, False),
    "stitch": (("call that is not compiled: string.gsub",), 0.6, False),
    "exit": (("behind exits, not compiled",), 0.3, False),
    "exit_aborted": (tuple("%s: NYI: bytecode FNEW" % r for r in (GOOD, NOW, EXIT)), 0.4, True),
}
# case: the flushes' cause, None = it has no flush
FLUSHES = {"flush": "by the program", "flush_full": "by the program", "metatable": "metatable", "traces": "maxtrace",
           "code": "maxmcode", "table": None}
# case of advice.lua: what is to be said of it. What says nothing, and is compiled, gets no advice.
ADVICE = {
    "closure": "make the closure once, outside of what is hot",
    "upvalue": "keep locals that closures use out of what is hot",
    "gsub": "no patterns where it is hot: find plain text, bytes",
    "gmatch": "no patterns where it is hot: find plain text, bytes",
    "match": "no patterns where it is hot: find plain text, bytes",
    "find": "give find plain text: find(s, text, start, true)",
    "unpack": "name what is unpacked",
    "coroutine": "do more between two switches of coroutines",
    "long": "let a trace be longer, or split what is hot",
    "other": "keep what LuaJIT does not compile out of what is hot",
    "traces": "let LuaJIT keep more traces, and more machine code",
    "code": "let LuaJIT keep more machine code",
    "flush": "do not throw compiled code away: no jit.flush()",
    "metatable": "give a basic type its metatable once, at the start",
    "none": None,
}
FLUSHED = ("traces", "code", "flush", "metatable")
ROW = re.compile(r"^ *(\d+) +\d+  (\S.*)$", re.M)


def reasons(trace, *args):
    """{text of a row: ticks} of the reasons, {state: ticks}, and the text."""
    out = s.run([s.luasample(), "jit", "-i", trace, "--raw", "--min", "0", *args]).ok().out
    states, why = re.split(r"^== Why .*\n", re.split(r"^== (?:Advice|Traces)", out, flags=re.M)[0], flags=re.M)
    rows = collections.Counter()
    for ticks, text in ROW.findall(why):
        rows[text] += int(ticks)
    return rows, {text.split("  ")[0]: int(ticks) for ticks, text in ROW.findall(states)}, out


def record(case, *opts):
    script = os.path.join(s.LUA, "reasons.lua")
    return s.record([s.luajit().program, *opts, script, case, str(SECONDS)], "-q").ok()


def add_to(suite):
    t = suite.test

    for case, (begins, least, collects) in CASES.items():
        @t("reasons." + case, "luasample jit: the time of code that is not compiled has its reason, its double's has not", True)
        def reason(case=case, begins=begins, least=least, collects=collects):
            r = record(case)
            mine, double = map(float, r.out.split())
            rows, states, out = reasons(r.trace)
            whole = sum(states.values())
            got = sum(n for text, n in rows.items() if text.startswith(begins))
            got += states["Garbage Collector"] if collects else 0
            share, want = 100 * got / whole, 100 * mine / (mine + double)
            room = s.margin(want, whole / 2) + 2       # what comes before both parts
            check(want * least - room <= share <= want + room, "%s: %.1f%% has the reason, %.1f%% is the case: %s"
                  % (case, share, want, out))

    @t("reasons.off", "luasample jit: with the compiler off that is the reason of all", True)
    def off():
        for opts in ((), ("-joff",)):
            rows, states, out = reasons(record("off", *opts).trace)
            check(set(rows) == {"the JIT compiler was off"} and sum(rows.values()) == sum(states.values()) -
                  states["Garbage Collector"], "not all is off: " + out)

    @t("reasons.flushes", "luasample jit: flushes are counted by their cause, and only by that", True)
    def flushes():
        for case, cause in FLUSHES.items():
            _, _, out = reasons(record(case).trace)
            m = re.search(r"thrown away \(a flush\) (\d+) times?: (\d+) for\nmaxtrace, the most traces; (\d+) for maxmcode, "
                          r"the most code; (\d+) by the\nprogram \(jit.flush\); (\d+) for the metatable of a type", out)
            if not cause:
                check("a flush" not in out, case + " has a flush: " + out)
                continue
            check(m, case + " has no flush: " + out)
            n = dict(zip(("maxtrace", "maxmcode", "by the program", "metatable"), map(int, m.groups()[1:])))
            check(n.pop(cause) == int(m.group(1)) > 0 and not any(n.values()), "%s: %s" % (case, m.group(0)))

    @t("reasons.advice", "luasample jit: each reason for which there is advice has it, and a program that is compiled has none")
    def advice():
        def said(trace, least):
            out = s.run([s.luasample(), "jit", "-i", trace, "--min", least]).ok().out
            part = re.search(r"^== Advice ==\n(.*?)^== Traces", out, re.M | re.S)
            wide = [line for line in out.splitlines() if len(line) > 80 and not line.startswith("#")]
            check(not wide, "wider than 80: %r" % wide)
            return re.findall(r"^ *([\d.]+)% +[\d.]+%  (\S.*)$", part.group(1) if part else "", re.M)

        for case, text in ADVICE.items():
            r = s.record([s.luajit().program, os.path.join(s.LUA, "advice.lua"), case, "0.3"], "-q").ok()
            rows = said(r.trace, "5")
            if case in FLUSHED:         # LuaJIT tells no cause: of some flushes it is not known
                rows = rows[:1]
            check([x for _, x in rows] == [text] if text else not rows, "%s: %r" % (case, rows))
        rows = said(record("off").trace, "5")
        check([x for _, x in rows] == ["turn the compiler on, or off for single functions"], "off: %r" % rows)

    @t("reasons.fail-on", "luasample jit --fail-on: exit status 1 with the figure when the reason has --min, else 0")
    def fail_on():
        r = record("stitch")
        for args, status, said in ((("stitch",), 1, "for the reason 'stitch': --fail-on stitch allows less than 1%"),
                                   (("off,stitch", "--min", "99"), 0, ""), (("off,blacklisted",), 0, ""),
                                   (("stich",), 129, "did you mean 'stitch'?")):
            x = s.run([s.luasample(), "jit", "-i", r.trace, "--fail-on", *args])
            check(x.status == status and said in x.err and x.err.count("\n") == (status != 0), "%r: %d %s" % (args, x.status, x.err))

    @t("reasons.attempts", "luasample jit --aborts has the attempts that jit.v hears in the same run, place by place", True)
    def attempts():
        log = s.tmpfile(".jitv")
        r = record("exit_aborted", "-jv=" + log)
        with open(log) as f:
            heard = collections.Counter((int(a), int(b or a)) for a, b in re.findall(      # no second place: it is the first
                r"^\[TRACE --- (?:\(\S+\) )?reasons\.lua:(\d+) -- .*?(?: at reasons\.lua:(\d+))?\]$", f.read(), re.M))
        out = s.run([s.luasample(), "jit", "-i", r.trace, "--aborts", "--raw", "--min", "0"]).ok().out
        told = collections.Counter()
        for n, a, b in re.findall(r"^ *\d+ +(\d+) +[\d.]+%  .*\n +\S.*?:(\d+), stopped at \S.*?:(\d+)$", out, re.M):
            told[(int(a), int(b))] += int(n)
        check(heard and heard == told, "jit.v heard %r, --aborts has %r: %s" % (heard, told, out))
        wide = [line for line in out.splitlines() if len(line) > 80 and not line.startswith("#")]
        check(not wide, "wider than 80: %r" % wide)
        for by, wanted in (("reason", "NYI: bytecode FNEW"), ("line", "adder:"), ("function", "adder")):
            out = s.run([s.luasample(), "jit", "-i", r.trace, "--aborts", "--by", by, "--raw", "--min", "0"]).ok().out
            counts = [int(n) for n in re.findall(r"^ *\d+ +(\d+) +[\d.]+%  ", out, re.M)]
            check(wanted in out and sum(counts) == sum(told.values()), "--by %s: %s" % (by, out))
