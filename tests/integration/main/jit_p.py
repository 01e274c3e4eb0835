"""What luajit -jp (jit.p) does: one test for each line of that checklist, with its number as tag. Imported by run.py."""
import os
import re

import support as s
from profilers import Q, add_rows, names, one, percent_rows, zone_shares
from support import check, check_near


def jp01(_):
    r, truth = s.record_seventy("-q", seconds="2")
    check_near("what the program does in mul", truth["mul"], 70, 2)
    for name in ("mul", "add"):
        s.check_share(name, 100 * one(r, name)["self"], truth[name], s.effective_samples(r.trace))
    text = r.text()
    check(re.search(r"\bmul\b", text) and re.search(r"\badd\b", text), "no mul and add in: " + text)
    check("main chunk" not in text, "the default --min shows what has under 3 %: " + text)


def jp02(r):
    out = s.tmpfile(".txt")
    w = s.report(r.trace, "-o", out).ok()
    check(w.out == "", "-o leaves text on stdout: " + w.out)
    with open(out) as f:
        check("mul" in f.read(), "no profile in the file")
    check(r.out == "seventy done\n", "the program's stdout is not its own: %r" % r.out)
    check("mul" in s.report(r.trace, "-o", "/dev/stdout").ok().out, "-o /dev/stdout writes no profile")


def jp03(r):
    got = names(r)
    check("named_local" in got, "no named_local in %s" % got)
    check([n for n in got if re.search(r"names\.lua:15$", n)], "no module:line for the anonymous one: %s" % got)


def jp04(r):
    got = [x["name"] for x in r.rows("--by", "module-function")]
    text = r.text("--by", "module-function")
    check("seventy.lua:mul" in text and "seventy.lua:add" in text, "no seventy.lua:mul in %s: %s" % (got, text))


def jp05(r):
    check("hot3.lua:3" in r.text("--by", "line"), "no hot3.lua:3 in: " + r.text("--by", "line"))
    check(s.share(r.rows("--by", "line"), line=lambda l: l in (2, 3)) > 95, "lines 2 and 3 do not have it all")


def jp06(r):
    text = r.text("--depth", "2")
    check(re.search(r"leaf < middle", text), "no 'leaf < middle' in: " + text)
    text3 = r.text("--depth", "3")
    check(re.search(r"leaf < middle < outer", text3), "no 'leaf < middle < outer' in: " + text3)


def jp07(r):
    text = r.text("--depth", "2", "--inverse")
    check(re.search(r"middle > leaf", text), "no 'middle > leaf' in: " + text)


def split_of(r, *args):
    j = s.json_of(["report", "-i", r.trace, "--json", *args])
    return j["rows"]


def children(row):
    return row.get("children", [])


def jp08(r):
    for row in split_of(r, "--split"):
        if row["self"] > 0.1:
            total = sum(c["self"] for c in children(row)) * 100
            check_near("callers of %s" % row["function"], total, 100, 2)
    leaf = [x for x in split_of(r, "--split") if x["function"] == "leaf"][0]
    got = {c["name"]: 100 * c["self"] for c in children(leaf)}
    check_near("leaf <- middle", sum(v for k, v in got.items() if "middle" in k), 75, 5)
    check_near("leaf <- other", sum(v for k, v in got.items() if "other" in k), 25, 5)
    check("<-" in r.text("--split"), "no '<-' in the text")


def jp09(r):
    rows = split_of(r, "--split=callees")
    check("->" in r.text("--split=callees"), "no '->' in the text")
    check(rows and all(children(x) is not None for x in rows), "no callees")


def jp10(r):
    check(re.search(r"(^|\s)seventy\.lua:", r.text("--by", "line")), "not the base name alone by default")
    check(os.path.join(s.LUA, "seventy.lua") in r.text("--by", "line", "--full-path"), "no full path")


VMSTATES = {"native": "Compiled", "interpreted": "Interpreted", "c": "C code", "gc": "Garbage Collector", "jit": "JIT Compiler"}


def jp11(state, label):
    def run(r):
        text = r.text("--by", "vmstate", "--min", "0")
        top = percent_rows(text)
        check(top and label in top[0][1], "%s is not first in: %s" % (label, text))
        check_near(label, top[0][0], 100, 50)
        check(label in r.text("--by", "vmstate", "--vmstate", state), "--vmstate %s hides it" % state)
    return run


def jp12(r):
    z = zone_shares(r, "zone")
    check_near("A*", z.get("A*", 0), 50, 4)
    check_near("AI", z.get("AI", 0), 30, 4)
    check_near("(none)", z.get("(none)", 0), 20, 4)


def two_level(run, first, second):
    rows = split_of(run, "--by", first + "," + second)
    return {(i, j): c["self_ticks"] for i, x in enumerate(rows) for j, c in enumerate(children(x))}, rows


def jp13(r):
    single = {}
    for by in ("function", "line", "module-function", "vmstate", "zone"):
        single[by] = sum(x["self_ticks"] for x in r.rows("--by", by))
    for a, b in (("vmstate", "function"), ("vmstate", "line"), ("vmstate", "module-function"), ("zone", "function"),
                 ("zone", "line"), ("function", "vmstate"), ("line", "vmstate"), ("function", "zone")):
        cells, rows = two_level(r, a, b)
        check(sum(cells.values()) == single[a], "--by %s,%s: cells sum to %d, not %d" % (a, b, sum(cells.values()), single[a]))
        check(sorted(x["self_ticks"] for x in rows) == sorted(x["self_ticks"] for x in r.rows("--by", a)),
              "--by %s,%s has other marginals than --by %s" % (a, b, a))
    check("--" in r.text("--by", "vmstate,function"), "no '--' for state first")
    check("<-" in r.text("--by", "function,vmstate"), "no '<-' for stack first")


def jp14(r):
    for x in split_of(r, "--by", "function,line"):
        if x["self"] > 0.1:
            check_near("lines of " + x["function"], 100 * sum(c["self"] for c in children(x)), 100, 2)
    check("--" in r.text("--by", "function,line"), "no '--'")


def jp15(r):
    rows = r.rows("--by", "function")
    check(sum(x["self_ticks"] for x in rows) == r.info()["ticks"] - lost_ticks(r.info()), "rows do not sum to the ticks")
    text = r.text("--raw", "--min", "0")
    mul = one(r, "mul")["self_ticks"]
    check(re.search(r"\b%d\b.*\bmul\b" % mul, text), "no %d for mul in: %s" % (mul, text))


def lost_ticks(i):
    """Ticks that are in no sample, by the counters of each reason; info's own sum must agree."""
    ticks = ("ring-full", "no-stack", "bad-stack", "app-profiler", "no-safe-point", "other-vm")
    lost = sum(i["lost"].get(k, 0) for k in ticks)
    check(lost == i["lost_ticks"], "info: lost_ticks is %s, the reasons sum to %d" % (i["lost_ticks"], lost))
    return lost


def jp16(r):
    text = r.text("--annotate")
    check("hot2.lua" in text and "for i = 1, 1e8 do x = x + i % 5 end" in text, "no excerpt of hot2.lua: " + text)
    check("local done = true" in text, "no context lines: " + text)


def jp17(r):
    text = r.text("--annotate", "--whole-file")
    with open(os.path.join(s.LUA, "seventy.lua")) as f:
        for line in f:
            check(line.strip() in text, "line missing: %r" % line)
    raw = r.text("--annotate", "--whole-file", "--raw")
    hot = [l for l in raw.splitlines() if "x * 1.0000001" in l or "for i = 1, n do x" in l]
    check(hot and re.search(r"\b\d{2,}\b", hot[0]), "no counts with --raw: " + raw)


def jp18(r):
    a = s.report(r.trace, "--annotate").ok()
    both = a.out + a.err
    check("x = x + i % 11" in a.out, "this file is not annotated: " + both)
    check("x = x + i % 7" in a.out, "the chunk's text, which is in the trace, is not annotated: " + both)
    notices = [l for l in both.splitlines() if re.search(r"lua_\w+|/tmp/", l)]
    check(notices, "no notice about the file that is gone: " + both)
    check(re.search(r"bytecode", both), "no notice about the stripped chunk: " + both)


def jp19(r):
    text = r.text("--format", "collapsed")
    total = 0
    for line in text.splitlines():
        check(re.fullmatch(r"[^ ].* \d+", line), "not 'stack count': %r" % line)
        total += int(line.rsplit(" ", 1)[1])
    check(total == sum(x["self_ticks"] for x in r.rows("--by", "function")), "counts sum to %d" % total)
    check(re.search(r"outer;middle;leaf \d+", text), "no root-first stack: " + text[:400])
    states = r.text("--format", "collapsed", "--by", "function,vmstate")
    check(sum(int(l.rsplit(" ", 1)[1]) for l in states.splitlines()) == total, "--by function,vmstate loses ticks")
    check(re.search("Compiled|native|Interpreted|interpreted", states), "--by function,vmstate is ignored: " + states[:300])


def jp20(r):
    check("leaf" in r.text("--min", "50%") and "other" not in r.text("--min", "50%"), "--min 50% shows less or more")
    all_rows = r.text("--min", "0", "--by", "line")
    check(len(percent_rows(all_rows)) >= len(percent_rows(r.text("--by", "line"))), "--min 0 shows less")


def jp21(r):
    for interval, hz in (("10ms", 100), ("1ms", 1000), ("250us", 4000)):
        x = s.record_lua("seventy.lua", "-q", args=["1.5"], interval=interval).ok()
        i, cpu = x.info(), s.cpu_seconds(x.info())
        check_near("ticks at " + interval, i["ticks"], cpu * hz, cpu * hz * 0.02 + 2)
        # Ticks of a thread that loses its processor come together, in a sample of that weight; the others come alone.
        weights = [d["weight"] for d in s.json_of(["dump", "-i", x.trace, "--json"]) if d.get("record") == "sample"]
        check_near("achieved rate at " + interval, i["achieved_rate_hz"], len(weights) / cpu, 0.005 * hz)
        check(weights.count(1) > 0.75 * len(weights), "%d of %d ticks at %s came alone" % (weights.count(1), sum(weights), interval))
    trace = s.tmpfile(".data")
    s.run([s.luasample(), "record", "-q", "-F", "500", "-o", trace, "--", s.luajit().program, "-e", ""]).ok()
    check(s.info(trace)["asked_interval_ns"] == 2000000, "-F 500 is not 2 ms: %s" % s.info(trace)["asked_interval_ns"])


def jp22(r):
    text = r.text("--split", "--depth", "3", "--min", "1%")
    check("<-" in text and re.search(r"middle < outer|outer", text), "no three levels: " + text)


def jp23(r):
    check(r.out.startswith("module\ttrue"), "require 'luasample' fails in a recorded program: %r" % r.out)
    rows = r.rows("--by", "function")
    check(s.share(rows, function=lambda f: f.startswith("outside")) < 2, "time outside the regions is shown: %s" % names(r))
    check(s.share(rows, function=lambda f: f.startswith("inside")) > 90, "no time inside: %s" % names(r))
    ticks = sum(x["self_ticks"] for x in rows)
    check_near("ticks in two regions of 0.4 s", ticks, 800, 60)
    first = sum(x["self_ticks"] for x in r.rows("--by", "function", "--region", "first"))
    check_near("ticks in the first region", first, 400, 40)
    alone = s.run([s.luajit().program, os.path.join(s.LUA, "regions.lua"), "0.01"])
    check(alone.status == 0, "the program without luasample: " + alone.err)


def jp24(r):
    text = s.report(r.trace)
    check(re.search("no samples", text.out + text.err, re.I), "does not say that there are no samples: " + text.out + text.err)


def jp25(r):
    tree = r.text("--format", "collapsed")
    for name in ("sort", "gsub", "pcall"):
        check(re.search(r"(^|;)(table\.|string\.)?%s;" % name, tree, re.M), "no %s as a frame in: %s" % (name, tree[:600]))
    check("table.sort" in tree and "string.gsub" in tree, "builtins lack their library: " + tree[:600])
    check("[builtin#" not in tree and not re.search(r"@?0x[0-9a-f]{6,}", tree), "unnamed builtin or bare address: " + tree[:600])
    check(";package.loaders[2]" in tree, "the C function that loads modules has no name: " + tree[:900])
    if r.out.startswith("lpeg"):
        check("lpeg.match" in tree, "the C function lpeg.match has not its path: " + tree[:900])
        check(";lpeg-pattern.__mul " in tree, "a C function of a userdata's metatable has no name: " + tree[:900])


def jp26(r):
    for how in ("error", "osexit", "osexit-true", "term", "int", "kill", "abort", "segv", "_exit"):
        x = s.record_lua("ends.lua", args=[how])
        plain = s.run([s.luajit().program, os.path.join(s.LUA, "ends.lua"), how])
        check(x.status == plain.status, "%s: status %d, without us %d; %s" % (how, x.status, plain.status, x.err[-300:]))
        check(x.out == plain.out, "%s: other stdout" % how)
        ticks = sum(y["self_ticks"] for y in x.rows("--by", "function"))
        check(ticks >= 590, "%s: only %d ticks of 600 are in the trace" % (how, ticks))


def empty_program():
    path = s.tmpfile(".lua")
    with open(path, "w") as f:
        f.write("return\n")
    return path


TABLE = [
    # name, tag, what it shows, program and arguments, record options, check, part of --quick
    ("jp.shares", "JP01", "two functions 70/30, by function", ["seventy.lua", "0.1"], Q, jp01, True),
    ("jp.to-file", "JP02", "report to a file, stdout clean", ["seventy.lua", "0.5"], Q, jp02, True),
    ("jp.names", "JP03", "names, else module:line", ["names.lua"], Q, jp03, True),
    ("jp.module-function", "JP04", "module:name", ["seventy.lua", "0.5"], Q, jp04, True),
    ("jp.by-line", "JP05", "by line", ["hot3.lua"], Q, jp05, True),
    ("jp.depth", "JP06", "callee < caller", ["calls.lua"], Q, jp06, True),
    ("jp.inverse", "JP07", "caller > callee", ["calls.lua"], Q, jp07, True),
    ("jp.split-callers", "JP08", "split by callers sums to 100", ["calls.lua"], Q, jp08, True),
    ("jp.split-callees", "JP09", "split by callees", ["calls.lua"], Q, jp09, True),
    ("jp.full-path", "JP10", "base name, full path", ["seventy.lua", "0.5"], Q, jp10, False),
    # Without the line checks: they make LuaJIT compile so much less here that the compiler no longer dominates.
    *[("jp.vmstate." + st, "JP11." + st, "VM state " + label, ["vmstates.lua", st], Q + ["--scope", "none"], jp11(st, label),
       st == "native") for st, label in VMSTATES.items()],
    ("jp.zones", "JP12", "zones", ["zones.lua"], Q, jp12, True),
    ("jp.two-levels", "JP13", "two levels, both orders, same marginals", ["zones.lua"], Q, jp13, False),
    ("jp.function-line", "JP14", "function, then line", ["twoloops"], Q, jp14, False),
    ("jp.raw", "JP15", "raw counts", ["seventy.lua", "0.5"], Q, jp15, False),
    ("jp.annotate", "JP16", "excerpt whose first hot line is 1 or 2", ["hot2.lua"], Q, jp16, True),
    ("jp.annotate-whole-file", "JP17", "whole file, counts", ["seventy.lua", "0.5"], Q, jp17, False),
    ("jp.annotate-unreadable", "JP18", "annotation goes on after what it cannot read", ["mixedsource.lua"], Q, jp18, False),
    ("jp.collapsed", "JP19", "collapsed stacks sum up", ["calls.lua"], Q, jp19, True),
    ("jp.min", "JP20", "threshold", ["calls.lua"], Q, jp20, False),
    ("jp.interval", "JP21", "the rate asked for", ["seventy.lua", "0.2"], Q, jp21, False),
    ("jp.combined", "JP22", "combined: three levels, split, 1 %", ["calls.lua"], Q, jp22, False),
    ("jp.regions", "JP23", "regions that the program marks", ["regions.lua"], Q, jp23, False),
    ("jp.no-samples", "JP24", "no samples", [empty_program], Q, jp24, True),
    ("jp.builtins", "JP25", "builtins and C functions by name", ["builtins.lua"], Q, jp25, True),
    ("jp.kept-after-ends", "JP26", "kept after error, exit, signals, kill -9", ["seventy.lua", "0.1"], Q, jp26, False),
]


def add_to(suite):
    add_rows(suite, TABLE)
