"""report, info and dump beyond what -jp shows. Imported by run.py."""
import collections
import json
import os
import re
import shutil

import support as s
from support import check, check_near

_trace = {}


def trace_of(script, *args):
    """A recording made once and used by several tests."""
    key = (script, args)
    if key not in _trace or not os.path.exists(_trace[key].trace):
        _trace[key] = s.record_lua(script, "-q", args=args).ok()
    return _trace[key]


# Every view and export, as the reader of a trace may call them.
VIEWS = [["report", *args] for args in (
    ["--json", "--min", "0"], ["--json", "--by", "line"], ["--json", "--by", "module"], ["--json", "--by", "vmstate,function"],
    ["--json", "--by", "function,line"], ["--json", "--full-path", "--by", "line"], ["--json", "--split"], ["--json", "--tree"],
    ["--format", "callgrind"], ["--format", "collapsed"], [], ["--tree"])] + [["info", "--json"], ["dump", "--json"]]


def shown(trace, cwd, env, before=()):
    """What each view prints of a trace. The path of the trace itself is not part of it."""
    out = {}
    for args in VIEWS:
        r = s.run([*before, s.luasample(), args[0], "-i", trace, *args[1:]], cwd=cwd, env=env).ok()
        check(r.err == "", "%s: %s" % (args, r.err))
        out[" ".join(args)] = r.out.replace(trace, "TRACE")
    return out


def add_to(suite):
    t = suite.test

    @t("views.header", "the flat profile has a header: command, runtime, rates, samples, losses", True)
    def header():
        text = trace_of("calls.lua").text()
        head = text[:1200]
        for word in ("calls.lua", "LuaJIT 2.1", r"1\s?ms|1000 Hz", "sample"):
            check(re.search(word, head), "no %s in the header: %s" % (word, head))

    @t("views.line-sums", "time of builtins and C functions is their callers' lines': sums are those of the flat view", True)
    def line_sums():
        for script, *filters in (("builtins.lua",), ("calls.lua",), ("builtins.lua", "--vmstate", "C"),
                                 ("builtins.lua", "--function", "string.*")):
            r = trace_of(script, *(["0.5"] if script == "builtins.lua" else []))
            rows, lines = r.rows(*filters), r.rows("--by", "line", *filters)
            flat = sum(x["self_ticks"] for x in rows)
            charged = sum(x["self_ticks"] for x in rows if x["source"] in ("[builtin]", None) or not x.get("line_defined"))
            check(flat and sum(x["self_ticks"] for x in lines) == flat, "%s %s: lines have %d of %d ticks" % (
                script, filters, sum(x["self_ticks"] for x in lines), flat))
            check(script != "builtins.lua" or charged, "%s %s: no time in builtins: %s" % (script, filters, rows))
            files = s.json_of(["report", "-i", r.trace, "--annotate", "--json", "--min", "0", *filters])["files"]
            own = sum(f["self_ticks"] for f in files)
            in_lua = sum(x["self_ticks"] for x in lines if x.get("line") or x["name"].endswith(":?"))
            check(own == in_lua, "%s %s: --annotate has %d, --by line %d" % (script, filters, own, in_lua))
            check(all(l["total_ticks"] >= l["self_ticks"] for f in files for l in f["lines"]), "a total below its own part")

    @t("views.inlined", "a builtin that compiled code inlines is its caller in flat views, unless --inlined", True)
    def inlined():
        def by(*args):
            return {x[args[1] if args else "function"]: x["self_ticks"] for x in r.rows(*args) if x["self_ticks"]}
        r = trace_of("inlined.lua", "0.8")
        for key in ("function", "module"):
            folded, apart = by("--by", key), {x[key]: x["self_ticks"] for x in r.rows("--by", key, "--inlined")}
            check(sum(folded.values()) == sum(apart.values()), "%s: %s, with --inlined %s" % (key, folded, apart))
            check(not any("inlined" in name and not name.endswith(".lua") for name in folded if name != "inlines"), folded)
        rows = {x["function"]: x["self_ticks"] for x in r.rows("--inlined")}
        found = {name: n for name, n in rows.items() if name.endswith(" (inlined)")}
        check(sum(found.values()) and set(found) <= {f + " (inlined)" for f in ("bit.band", "math.floor", "string.byte")},
              "inlined: %s" % rows)
        folded = by()
        check(folded["string.rep"] == rows["string.rep"] > 0, "what is called is no part of its caller: %s" % rows)
        check(folded["inlines"] == rows["inlines"] + sum(found.values()), "%s is not %s" % (folded, rows))
        tree = r.text("--tree", "--min", "0")
        check("(inlined)" in tree, "no frame is marked in the tree: %s" % tree)
        lines = {x["line"]: x["self_ticks"] for x in r.rows("--by", "line")}
        check(lines[6] >= sum(found.values()), "the line has less than what it inlines: %s" % lines)

    @t("views.callgrind", "callgrind_annotate takes it with empty stderr, totals agree", True)
    def callgrind():
        tool = s.need("callgrind_annotate")
        for script in ("calls.lua", "builtins.lua"):
            r = trace_of(script, *(["0.5"] if script != "calls.lua" else []))
            out = s.tmpfile(".callgrind")
            s.report(r.trace, "--format", "callgrind", "-o", out).ok()
            x = s.run([tool, out])
            check(x.status == 0 and x.err == "", "callgrind_annotate: %d %r" % (x.status, x.err[:400]))
            total = sum(y["self_ticks"] for y in r.rows())
            m = re.search(r"^([\d,]+) .*PROGRAM TOTALS", x.out, re.M)
            check(m and int(m.group(1).replace(",", "")) == total, "PROGRAM TOTALS is not %d: %s" % (total, x.out[:600]))
            with open(out) as f:
                text = f.read()
            check("events: Samples Microseconds" in text, "events line: " + text[:300])
            check(re.search(r"^fn=\(\d+\)", text, re.M) and re.search(r"^fl=\(\d+\)", text, re.M), "no name compression")

    @t("views.callgrind-caller", "a file whose functions only call those of another")
    def caller():
        busy, main, out = s.tmpfile(".lua"), s.tmpfile(".lua"), s.tmpfile(".callgrind")
        with open(busy, "w") as f:
            f.write("function busy() local e = os.clock() + 0.2 repeat for i = 1, 1e6 do local x = i % 7 end until os.clock() > e end")
        with open(main, "w") as f:
            f.write("dofile(%r)\nlocal function go()\n  return (busy())\nend\ngo()\n" % busy)
        s.report(s.record([s.luajit().program, main], "-q").ok().trace, "--format", "callgrind", "-o", out).ok()
        x = s.run([s.need("callgrind_annotate"), "--inclusive=yes", out])
        check(x.status == 0 and x.err == "", "%d %r" % (x.status, x.err[:300]))

    @t("views.recursion", "inclusive costs under recursion are counted once")
    def recursion():
        path = os.path.join(s.TESTS, "truth", "recursion.lua")
        r = s.record_lua(path, "-q", args=[s.tmpfile(".truth"), "1"]).ok()
        rows = r.rows("--by", "function")
        check(all(x["total"] <= 1.0001 for x in rows), "a total above 100 %%: %s" % max(x["total"] for x in rows))
        out = s.tmpfile(".callgrind")
        s.report(r.trace, "--format", "callgrind", "-o", out).ok()
        x = s.run([s.need("callgrind_annotate"), "--inclusive=yes", out])
        check(x.status == 0 and x.err == "", "%d %r" % (x.status, x.err[:300]))
        shares = [float(v) for v in re.findall(r"\(\s*([\d.]+)%\)", x.out)]
        check(shares and max(shares) <= 100.5, "inclusive share of %s %%" % max(shares or [0]))

    @t("views.json", "JSON has the documented names", True)
    def json_names():
        r = trace_of("calls.lua")
        row = r.rows("--by", "function")[0]
        for key in ("function", "source", "line_defined", "self", "total", "self_ticks", "total_ticks", "margin"):
            check(key in row, "no %s in %s" % (key, sorted(row)))
        check("line" in r.rows("--by", "line")[0], "no line with --by line")
        i = r.info()
        for key in ("ticks", "samples", "asked_interval_ns", "achieved_rate_hz", "cpu_ns", "lost"):
            check(key in i, "no %s in info: %s" % (key, sorted(i)))
        for line in s.run([s.luasample(), "dump", "-i", r.trace, "--json"]).ok().out.splitlines()[:50]:
            if line.strip() not in ("[", "]"):
                json.loads(line.rstrip(","))
        for args in (["--tree"], ["--split"], ["--annotate"], ["--by", "vmstate,function"]):
            s.json_of(["report", "-i", r.trace, "--json", *args])

    @t("views.jit", "luasample jit has the ticks of --by vmstate and --by jit-trace; its screens fit 80 columns", True)
    def jit():
        r = trace_of("calls.lua")
        out = {a: s.run([s.luasample(), "jit", "-i", r.trace, "--raw", "--min", "0", *a]).ok().out for a in ((), ("--tree",))}
        states, traces = re.split(r"^== Traces.*\n", re.sub(r"^#.*\n", "", out[()], flags=re.M), flags=re.M)
        names = {"Compiled", "Interpreted", "C code", "Garbage Collector", "JIT Compiler"}
        found = {m.group(2): int(m.group(1)) for m in re.finditer(r"^ *(\d+) +\d+  (\S+(?: \S+)*)  ", states, re.M)}
        check(set(found) == names, "states: %r" % states)
        want = {w["vmstate"]: w["self_ticks"] for w in r.rows("--by", "vmstate")}
        labels = dict(native="Compiled", interpreted="Interpreted", c="C code", gc="Garbage Collector", jit="JIT Compiler")
        want = {labels.get(k, k): v for k, v in want.items()}
        check({k: v for k, v in found.items() if v} == want, "states %r, --by vmstate %r" % (found, want))
        by = collections.Counter()
        for m in re.finditer(r"^ *(\d+) +\d+  (\d+) (?:root|side)", traces, re.M):
            by[int(m.group(2))] += int(m.group(1))
        want = collections.Counter()
        for w in r.rows("--by", "jit-trace"):
            if w["trace"]:
                want[w["trace"]] += w["self_ticks"]
        check(by and by == want, "traces %r, --by jit-trace %r" % (by, want))
        selfs = [int(m.group(1)) for m in re.finditer(r"^ *\d+ +(\d+)  .*trace \d+ ", out[("--tree",)], re.M)]
        check(sum(selfs) == sum(want.values()), "--tree has %d ticks, the traces %d" % (sum(selfs), sum(want.values())))
        one = s.run([s.luasample(), "jit", "-i", r.trace, "--trace", str(max(by, key=by.get))]).ok().out
        wide = [l for l in (out[()] + out[("--tree",)] + one).splitlines()
                if len(l.rstrip()) > 80 and not l.startswith("#")]
        check("Lines in it" in one and not wide, "wider than 80: %r; %s" % (wide, one))

    @t("views.jit.json", "luasample jit --json has the ticks of the summary, reasons with their attempts, traces", True)
    def jit_json():
        r = s.record_lua("reasons.lua", "-q", args=("exit_aborted", "0.6")).ok()
        j = json.loads(s.run([s.luasample(), "jit", "-i", r.trace, "--json"]).ok().out)
        text = s.run([s.luasample(), "jit", "-i", r.trace, "--raw", "--min", "0"]).ok().out
        parts = re.split(r"^== (?:Why|Traces).*\n", re.sub(r"^#.*\n", "", text, flags=re.M), flags=re.M)
        rows = [[int(n) for n in re.findall(r"^ *(\d+) +\d+  \S", x.split("== Advice")[0], re.M)] for x in parts]
        told = [[x["ticks"] for x in of] for of in (j["states"], j["uncompiled"]["reasons"], j["traces"])]
        check(told == rows, "--json has %r, the text %r" % (told, rows))
        check(sum(rows[1]) == j["uncompiled"]["ticks"] > 0, "uncompiled %r" % j["uncompiled"])
        bears = [j["attempts"][x["attempt"]] for x in j["uncompiled"]["reasons"] if x["attempt"] is not None]
        check(any(a["why"] == "NYI: bytecode FNEW" and a["count"] and not a["compiled"] for a in bears),
              "no reason: %r" % bears)
        bad = s.run([s.luasample(), "jit", "-i", r.trace, "--json", "--tree"])
        check(bad.status == 129, "--json --tree: %d" % bad.status)

    @t("views.jit.narrow", "luasample jit --line has the ticks of --by line", True)
    def jit_narrow():
        script = s.tmpfile(".lua")
        with open(script, "w", encoding="utf-8") as f:
            f.write('local function busy(n)\n    local sum = 0\n    for i = 1, n do sum = sum + #string.format("%d", i) end\n'
                    "    return sum\nend\nlocal stop = os.clock() + 0.6\nwhile os.clock() < stop do busy(2000) end\n")
        trace = s.record_lua(script, "-q").ok().trace
        lines = {x["line"]: x["self_ticks"] for x in s.rows(trace, "--by", "line", "--min", "0") if x["source"] == script and x["line"]}
        name = os.path.basename(script)

        def ticks(*args):
            return json.loads(s.run([s.luasample(), "jit", "-i", trace, "--json", *args]).ok().out)["header"]["ticks"]
        got = {line: ticks("--line", "%s:%d" % (name, line)) for line, n in lines.items() if n}
        check(got == {line: n for line, n in lines.items() if n} and max(got, key=got.get) == 3, "%r, --by line %r" % (got, lines))
        text = s.run([s.luasample(), "jit", "-i", trace, "--line", name + ":3"]).ok().out
        share = float(re.search(r"^# Only:     line .*:3, ([\d.]+)% of the time", text, re.M)[1])
        check_near("share", share, 100 * got[3] / ticks(), 0.01)
        for args, status, why in ((("--line", "x.lua"), 129, "a file and a line"), (("--line", ":3"), 129, "a file and a line"),
                                  (("--line", name + ":99"), 1, "has no time at " + name + ":99")):
            r = s.run([s.luasample(), "jit", "-i", trace, *args])
            check(r.status == status and why in r.err and r.err.count("\n") == 1 and not r.out, "%s: %d %s" % (args, r.status, r.err))

    @t("views.jit.graph", "luasample jit --graph is read by dot: the traces and exits of --tree", True)
    def jit_graph():
        program = os.path.join(s.TESTS, "bench", "programs", "richards.lua")
        r = s.record_lua(program, "-q", args=("40",)).ok()
        dot = s.run([s.luasample(), "jit", "-i", r.trace, "--graph", "--min", "0.01"]).ok().out
        plain = s.run([s.need("dot"), "-Tplain"], input=dot.encode()).ok().out
        boxes = re.findall(r'^node \S+ .*"(?:side )?trace (\d+)\\n(\S+?)\\n([\d.]+)%"', plain, re.M)
        j = json.loads(s.run([s.luasample(), "jit", "-i", r.trace, "--json"]).ok().out)
        want = {str(x["trace"]): 100 * x["ticks"] / j["header"]["ticks"] for x in j["traces"] if x["ticks"]}
        got = {n: float(share) for n, _, share in boxes}
        check(len(got) > 5 and all(abs(got[n] - share) < 0.01 for n, share in want.items()),
              "%s, traces %s" % (got, want))
        tree = s.run([s.luasample(), "jit", "-i", r.trace, "--tree", "--min", "0.01"]).ok().out
        exits = re.findall(r"exit (\d+): trace", tree)
        check(sorted(exits) == sorted(re.findall(r'label="exit (\d+)"', dot)) and exits, "exits: %s in %s" % (exits, dot))

    @t("views.jit.code", "luasample jit --trace has the instructions and exits that jit.dump "
       "has of the same trace in the same run", True)
    def jit_code():
        log = s.tmpfile(".dump")
        r = s.record([s.luajit().program, "-jdump=im," + log,
                      os.path.join(s.TESTS, "bench", "programs", "richards.lua"), "20"], "-q").ok()
        with open(log) as f:
            parts = re.split(r"^---- TRACE (\d+) (IR|mcode.*)$", f.read(), flags=re.M)
        ir, code = {}, {}
        for number, what, text in zip(parts[1::3], parts[2::3], parts[3::3]):
            if what == "IR":
                ir[int(number)] = {(n, g.strip(), t, name) for n, g, t, name in re.findall(
                    r"^(\d{4}) (.). (\S+) +(\w+)", text, re.M)}
            else:
                code[int(number)] = re.findall(r"^[0-9a-f]{8,}  (\w+)(?:.*->(\d+)$)?", text, re.M)
        numbers = {w["trace"] for w in r.rows("--by", "trace") if w["trace"]}
        checked = 0
        for number in sorted(numbers):
            out = s.run([s.luasample(), "jit", "-i", r.trace, "--trace", str(number)]).ok().out
            part = out.split("Machine code in its order", 1)
            check(len(part) == 2, "no code: " + out)
            rows = re.findall(r"^  (?:(\d{4}) (.) (...) (.{6}) .{13}|.{31})(\S+)(?: exit (\d+)$)?",
                              part[1], re.M)
            mine = {tuple(x.strip() for x in row[:4]) for row in rows if row[0] and row[3] != "LOOP  "}
            check(mine and mine <= ir[number], "trace %d: not in jit.dump's: %r; it has %r"
                  % (number, mine - ir[number], ir[number]))
            got, want = ([x[-1] if x[-2] != "jmp" else "" for x in of] for of in (rows, code[number]))
            check(got == want, "trace %d: instructions' exits are %r, jit.dump's %r" % (
                number, got, want))
            checked += len(rows)
        check(checked > 500, "only %d instructions" % checked)

    @t("views.tree", "call tree, root first and inverse", True)
    def tree():
        r = trace_of("calls.lua")
        text = re.sub(r"^#.*\n", "", r.text("--tree"), flags=re.M)
        check(text.index("outer") < text.index("middle") < text.index("leaf"), "not root first: " + text)
        inverse = r.text("--tree", "--inverse")
        lines = [l for l in inverse.splitlines() if re.search(r"^[^#].*(leaf|middle|outer)", l)]
        check(lines and "leaf" in lines[0], "not leaf first: " + inverse)

    @t("views.filters", "filters are obeyed by every view and export", True)
    def filters():
        r = trace_of("calls.lua")
        all_ticks = sum(x["self_ticks"] for x in r.rows())
        part = sum(x["self_ticks"] for x in r.rows("--function", "other"))
        rest = sum(x["self_ticks"] for x in r.rows("--exclude", "other"))
        check(part + rest == all_ticks and 0 < part < rest, "--function %d + --exclude %d is not %d" % (part, rest, all_ticks))
        text = r.text("--format", "collapsed", "--function", "other")
        check(sum(int(l.rsplit(" ", 1)[1]) for l in text.splitlines()) == part, "collapsed does not obey --function")
        halves = [sum(x["self_ticks"] for x in r.rows("--time", v)) for v in ("0%,50%", "50%,100%")]
        records = s.json_of(["dump", "-i", r.trace, "--json"])
        run = [x for x in records if x["record"] == "proctotals"][-1]
        middle = (run["from_ns"] + run["to_ns"]) / 2
        first = [sum(x["weight"] for x in records if x["record"] == "sample" and x["time_ns"] < middle + d) for d in (-2e7, 2e7)]
        check(abs(sum(halves) - all_ticks) <= 2 and first[0] <= halves[0] <= first[1] < all_ticks,
              "--time: %s of %d; before the middle were %d to %d" % (halves, all_ticks, *first))
        states = 0
        for v in ("N", "I", "C", "G", "J"):
            x = s.report(r.trace, "--min", "0", "--json", "--vmstate", v)
            states += sum(y["self_ticks"] for y in json.loads(x.out)["rows"]) if x.status == 0 else 0
        check(states == all_ticks, "--vmstate: %d of %d" % (states, all_ticks))

    @t("views.margin", "margins of shares, self and total, sort")
    def margin():
        r = trace_of("calls.lua")
        rows = r.rows()
        for x in rows:
            p, n = x["self"], sum(y["self_ticks"] for y in rows)
            if 0.05 < p < 0.95:
                want = 1.96 * (p * (1 - p) / n) ** 0.5
                check_near("margin of " + x["function"], x["margin"], want, want * 0.5 + 0.001)
        by_total = [x["total"] for x in r.rows("--sort", "total")]
        check(by_total == sorted(by_total, reverse=True), "--sort total: %s" % by_total)
        by_name = [x["function"] for x in r.rows("--sort", "name")]
        check(by_name == sorted(by_name), "--sort name: %s" % by_name)

    @t("views.annotate", "changed source, other directory, missing file")
    def annotate():
        d = s.tmpfile(".d")
        os.mkdir(d)
        script = os.path.join(d, "prog.lua")
        shutil.copy(os.path.join(s.LUA, "calls.lua"), script)
        r = s.record([s.luajit().program, script, "0.5"], "-q").ok()
        check("x = x + i % 7" in r.text("--annotate"), "no source: " + r.text("--annotate"))
        check("x = x + i % 7" in r.text("--annotate=leaf"), "no source of one function")
        with open(script, "a") as f:
            f.write("-- changed\n")
        x = s.report(r.trace, "--annotate")
        check(re.search("changed|differs", x.out + x.err), "no warning about the changed file: " + x.out[:300] + x.err)
        moved = s.tmpfile(".d")
        os.rename(d, moved)
        x = s.report(r.trace, "--annotate")
        check(x.status == 0 and x.err.count("\n") <= 1 and "prog.lua" in x.err + x.out, "missing file: %d %r" % (x.status, x.err))
        shutil.copy(os.path.join(s.LUA, "calls.lua"), os.path.join(moved, "prog.lua"))
        check("x = x + i % 7" in r.text("--annotate", "--source-dir", moved), "--source-dir does not find it")

    @t("views.color", "no colour when piped or NO_COLOR; columns fit")
    def color():
        r = trace_of("calls.lua")
        check("\033" not in r.text(), "colour in a pipe")
        check("\033" in r.text("--color", "always"), "--color always has none")
        exe = s.host("pty")
        env = dict(os.environ, TERM="xterm", PAGER="cat", COLUMNS="60")
        env.pop("NO_COLOR", None)
        on = s.run([exe, "--", s.luasample(), "report", "-i", r.trace, "--no-pager"], env=env)
        off = s.run([exe, "--", s.luasample(), "report", "-i", r.trace, "--no-pager"], env=dict(env, NO_COLOR="1"))
        check("\033[" in on.out and "\033[" not in off.out, "terminal: %r; NO_COLOR: %r" % (on.out[:200], off.out[:200]))
        lines = off.out.replace("\r", "").split("\n")
        check(max(map(len, lines)) <= 60, "longer than 60 columns: %r" % lines)
        whole = [x[12:] for x in r.text("--min", "3").split("\n") if x.startswith("# Rate:")]
        check(whole[0] in " ".join(x[12:] for x in lines if x.startswith("# ")), "not all of the rate: %r" % lines)

    @t("views.stdin", "a trace on stdin, and from another directory")
    def stdin():
        r = trace_of("calls.lua")
        with open(r.trace, "rb") as f:
            data = f.read()
        x = s.run([s.luasample(), "report", "-i", "-"], input=data).ok()
        check("leaf" in x.out, "nothing from stdin: " + x.out)
        y = s.run([s.luasample(), "report", "-i", r.trace], cwd="/").ok()
        check("leaf" in y.out, "nothing from /")

    @t("views.linear", "info agrees with itself and with the rows", True)
    def info_agrees():
        r = trace_of("calls.lua")
        i = r.info()
        from jit_p import lost_ticks
        check(sum(x["self_ticks"] for x in r.rows()) + lost_ticks(i) == i["ticks"], "rows + lost is not %d" % i["ticks"])
        check_near("ticks", i["ticks"] * i["asked_interval_ns"], i["cpu_ns"], i["cpu_ns"] * 0.02)
        text = s.run([s.luasample(), "info", "-i", r.trace]).ok().out
        check("calls.lua" in text and re.search("interval|rate", text), "info: " + text)

    @t("views.other-host", "a trace that is taken to another host reports the same there", True)
    def other_host():
        home, away = s.tmpfile(".d"), s.tmpfile(".d")
        for d in (home, away):
            os.mkdir(d)
        for name in ("calls.lua", "mixedsource.lua"):
            shutil.copy(os.path.join(s.LUA, name), home)
        r = s.record([s.luajit().program, "mixedsource.lua", "0.8"], "-q", cwd=home).ok()
        here = shown(r.trace, home, None)
        listing = s.json_of(["report", "-i", r.trace, "--annotate", "--json"])
        # Elsewhere: another name and machine type of the host, directory, home and locale; the sources are gone.
        moved = os.path.join(away, "from-there")
        shutil.copy(r.trace, moved)
        shutil.rmtree(home)
        os.unlink(r.trace)
        env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C"}
        before = ["setarch", "linux32"] if shutil.which("setarch") else []
        if os.geteuid() == 0 and s.run(["unshare", "--uts", "true"]).status == 0:
            before = ["unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh", *before]
        there = shown(moved, "/", env, before)
        for view in here:
            check(here[view] == there[view], "%s differs:\n%s\nthere:\n%s" % (view, here[view][:800], there[view][:800]))
        missing = s.run([s.luasample(), "report", "-i", moved, "--annotate"], cwd="/", env=env)
        check(missing.status == 0 and "mixedsource.lua" in missing.out + missing.err and "x = x + i % 7" in missing.out,
              "without sources: %d %s %s" % (missing.status, missing.err, missing.out[-400:]))
        # With the sources in some directory of that host, the listing is the same but for the path.
        sources = os.path.join(away, "src")
        os.mkdir(sources)
        shutil.copy(os.path.join(s.LUA, "mixedsource.lua"), sources)
        again = json.loads(s.run([s.luasample(), "report", "-i", moved, "--annotate", "--json", "--source-dir", sources],
                                 cwd="/", env=env).ok().out)
        text = json.dumps(listing).replace(home, sources)
        check(json.dumps(again) == text, "annotated:\n%.1500s\nwith --source-dir:\n%.1500s" % (text, json.dumps(again)))
