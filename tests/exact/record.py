"""Recordings with -e coverage, lines, calls and instructions: what reaches the user. Tests of run.py."""
import html.parser
import json
import os
import re
import signal
import sys
import tempfile
import xml.etree.ElementTree as xml_tree

import support as s

HERE = os.path.dirname(os.path.abspath(__file__))
OWN = os.path.join(HERE, "programs")
BENCH = os.path.join(s.TESTS, "bench", "programs")
ALL = "lines,calls,instructions"


def record(program, *args, events=ALL, lj=None, lua_opts=(), env=None, opts=(), **kw):
    lj = lj or s.luajit()
    return s.record([lj.program, *lua_opts, program, *args], "-e", events, *opts, env=lj.environ(env), **kw)


def by_line(trace, event):
    return {r["name"]: r["self_ticks"] for r in s.rows(trace, "--by", "line", "--full-path", "--event", event)}


def listing(trace, program, event):
    """Line -> hits, of one file."""
    files = s.json_of(["report", "-i", trace, "--annotate=" + os.path.basename(program), "--event", event, "--json"])["files"]
    s.check(len(files) == 1, "%d files" % len(files))
    return {l["line"]: l["self_ticks"] for l in files[0]["lines"]}


def expected(program, n):
    """What the comments of lines.lua say."""
    hits = {}
    with open(program) as f:
        for number, line in enumerate(f, 1):
            m = re.search(r"--= ([^ \n]+)", line)
            if m:
                hits[number] = 0 if m.group(1) == "." else int(eval(m.group(1), {"N": n}))
    return hits


def callers_of(trace, program):
    """(line of the call or 0, line of the called function) -> calls, of one file."""
    calls, name = {}, os.path.basename(program) + ":"
    for line in s.run([s.luasample(), "export", "-i", trace, "--event", "calls", "--by", "line", "--format", "collapsed"]).ok().out.splitlines():
        stack, n = line.rsplit(" ", 1)
        stack = [x[len(name):] for x in stack.split(";") if x.startswith(name)]
        caller = int(stack[0]) if len(stack) > 1 else 0
        if stack and stack[-1] != "?":          # the main chunk
            s.check((caller, int(stack[-1])) not in calls, "twice: " + line)
            calls[caller, int(stack[-1])] = int(n)
    return calls


def expected_callers(program, n):
    """What the comments of callers.lua say."""
    calls = {}
    with open(program) as f:
        for number, line in enumerate(f, 1):
            for caller, times in re.findall(r"(\d+):(\S+)", line.partition("--=")[2]):
                calls[int(caller), number] = int(eval(times, {"N": n}))
    return calls


def expected_branches(program, n):
    """What the comments of branches.lua say: line -> a pair for each branch, None = it was not reached."""
    want = {}
    with open(program) as f:
        for number, line in enumerate(f, 1):
            pairs = line.partition("--= ")[2].split()
            if pairs:
                want[number] = [None if p == ".,." else tuple(int(eval(x, {"N": n}))
                                                              for x in p.split(",")) for p in pairs]
    return want


def read_branches(lcov):
    """Of one file: line -> a pair for each branch."""
    got = {}
    for line, block, arm, taken in re.findall(r"^BRDA:(\d+),(\d+),(\d+),(-|\d+)$", lcov, re.M):
        at = got.setdefault(int(line), [])
        s.check(len(at) == int(block) + int(arm), "line %s: block %s" % (line, block))
        if arm == "0":
            at.append(None if taken == "-" else (int(taken),))
        else:
            s.check((at[-1] is None) == (taken == "-"), "line %s is half reached" % line)
            at[-1] = at[-1] and at[-1] + (int(taken),)
    return got


def read_lcov(text):
    """Path -> line -> hits, path -> function -> calls."""
    lines, functions, path = {}, {}, None
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key == "SF":
            path = value
            lines[path], functions[path] = {}, {}
        elif key == "DA":
            number, hits = value.split(",")
            s.check(int(number) not in lines[path], "line %s twice" % number)
            lines[path][int(number)] = int(hits)
        elif key == "FNDA":
            calls, name = value.split(",", 1)
            functions[path][name] = int(calls)
        elif key in ("LF", "LH"):
            n = len(lines[path]) if key == "LF" else sum(h > 0 for h in lines[path].values())
            s.check(int(value) == n, "%s %s, not %d" % (key, value, n))
    return lines, functions


class Page(html.parser.HTMLParser):
    """The page of luasample coverage: rows, as lists of their cells' text, by file; and its elements."""

    def __init__(self, text):
        super().__init__()
        self.files, self.rows, self.tags, self.cell = {}, [], set(), None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for key, value in attrs:
            harmless = key != "href" or re.match(r"#f\d+$|data:,$", value)
            s.check(harmless and not key.startswith("on"), "%s %s" % (tag, attrs))
        if tag == "details":
            self.rows = []
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "summary"):
            self.cell = ""

    def handle_endtag(self, tag):
        if tag == "td":
            self.rows[-1].append(self.cell)
        elif tag == "summary":
            self.files[self.cell] = self.rows

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data


def check_page(text, want, hit):
    page = Page(text)
    s.check(page.tags == {"html", "head", "meta", "link", "title", "style", "body", "h1", "section",
                          "table", "tr", "th", "td", "a", "b",
                          "details", "summary", "span"}, "%s" % page.tags)
    rows = [rows for name, rows in page.files.items() if "cover/loaded.lua" in name]
    s.check(len(rows) == 1, "%s" % list(page.files))
    shown = {int(r[0]): r[1] for r in rows[0] if r[1]}
    counted = hit(2) == 2
    s.check(shown == {k: str(n) if counted or not n else "+" for k, n in want.items()},
            "%s" % shown)
    s.check(rows[0][2][-1] == "function M.used(x)                                --= 1",
            "%s" % rows[0][2])


def add(suite, luajits):
    for name in luajits:
        @suite.test("lines." + name, "hits of lines that the program says itself", name == "debian")
        def lines(name=name):
            program = os.path.join(OWN, "lines.lua")
            plain = s.run([s.luajit(name).program, program], env=s.luajit(name).environ())
            for opts in ((), ("-joff",)):
                r = record(program, lj=s.luajit(name), lua_opts=opts).ok()
                got, want = listing(r.trace, program, "lines"), expected(program, 1000)
                s.check(got == want, "lines %s" % [(k, got.get(k), want.get(k)) for k in sorted(set(got) | set(want))
                                                   if got.get(k) != want.get(k)][:8])
                s.check(r.out == plain.out, "another output")
                compiled = s.info(r.trace)["counted_compiled"]
                s.check((compiled == 0) == bool(opts), "%d bytecodes in compiled code" % compiled)

        @suite.test("branches." + name, "how often each way of a branch is taken, as the program says itself", name == "debian")
        def branches(name=name):
            program = os.path.join(OWN, "branches.lua")
            want = expected_branches(program, 1000)
            arms = [n for pairs in want.values() for pair in pairs for n in pair or (0, 0)]
            for opts in ((), ("-joff",)):
                r = record(program, events="branches", lj=s.luajit(name), lua_opts=opts).ok()
                base = [s.luasample(), "coverage", "-i", r.trace]
                text = s.run(base + ["--lcov", "-"]).ok().out
                got = read_branches(text)
                s.check(got == want, "%s" % [(k, got.get(k), want.get(k))
                                             for k in sorted(set(got) | set(want))
                                             if got.get(k) != want.get(k)][:8])
                hit = sum(n > 0 for n in arms)
                s.check("\nBRF:%d\nBRH:%d\n" % (len(arms), hit) in text, text[-200:])
                tree = xml_tree.fromstring(s.run(base + ["--cobertura", "-"]).ok().out)
                s.check((tree.get("branches-valid"),
                         tree.get("branches-covered")) == (str(len(arms)),
                                                           str(hit)), "%s" % tree.attrib)
                got = {int(l.get("number")): l.get("condition-coverage")
                       for l in tree.findall(".//class/lines/line[@branch='true']")}
                s.check(set(got) == set(want) and got[12] == "75% (3/4)" and got[22] == "0% (0/4)",
                        "%s" % got)
                s.check(re.search(r"%% +%d/%d +1 file$" % (hit, len(arms)), s.run(base).ok().out,
                                  re.M), s.run(base).out)
                merged = s.tmpfile(".data")
                s.run([s.luasample(), "merge", "-o", merged, r.trace, r.trace]).ok()
                got = read_branches(s.run([s.luasample(), "coverage", "-i", merged, "--lcov",
                                           "-"]).ok().out)
                s.check(got == {k: [p and (2 * p[0], 2 * p[1]) for p in v] for k,
                                v in want.items()}, "merged: %s" % got)
                s.check((s.info(r.trace)["counted_compiled"] == 0) == bool(opts), "compiled")

        @suite.test("callers." + name, "who calls whom, as the program says itself", name == "debian")
        def callers(name=name):
            program = os.path.join(OWN, "callers.lua")
            plain = s.run([s.luajit(name).program, program], env=s.luajit(name).environ())
            for opts in ((), ("-joff",)):
                r = record(program, lj=s.luajit(name), lua_opts=opts).ok()
                got, want = callers_of(r.trace, program), expected_callers(program, 1000)
                s.check(want and got == want, "%s" % [(k, got.get(k), want.get(k)) for k in sorted(set(got) | set(want))
                                                      if got.get(k) != want.get(k)][:8])
                s.check(r.out == plain.out, "another output")
                text = s.report(r.trace, "--event", "calls", "--split", "--min", "0").ok().out
                s.check(re.search(r"^ +7000 .*callers\.lua:3\n(    <-.*\n)*    <- +2000 ", text, re.M), text)

        for bench, rounds in (("richards", "3"), ("json", "3"), ("life", "20"), ("ring", "300"), ("trees", "1")):
            @suite.test("record.%s.%s" % (bench, name), "as many as without the JIT compiler", name == "debian" and bench != "trees")
            def same(name=name, bench=bench, rounds=rounds):
                program = os.path.join(BENCH, bench + ".lua")
                on = record(program, rounds, lj=s.luajit(name)).ok()
                off = record(program, rounds, lj=s.luajit(name), lua_opts=["-joff"]).ok()
                both = record(program, rounds, lj=s.luajit(name), events=ALL + ",cpu").ok()
                s.check(on.out == off.out == both.out, "another output")
                for event in ALL.split(","):
                    want = by_line(off.trace, event)
                    s.check(sum(want.values()) > 1000, "%d %s" % (sum(want.values()), event))
                    for what, r in (("JIT", on), ("JIT and cpu", both)):
                        got = by_line(r.trace, event)
                        s.check(got == want, "%s, %s: %s" % (what, event, [(k, got.get(k), want.get(k))
                                                                          for k in set(got) | set(want) if got.get(k) != want.get(k)][:5]))
                s.check(s.info(on.trace)["counted_compiled"] > 0, "nothing was compiled: this proves nothing")

    @suite.test("record.hooks", "as many instructions as a hook of Lua's C API counts", True)
    def hooks(count=suite.count):
        program = os.path.join(BENCH, "richards.lua")
        hooked, _, _ = count(s.luajit(), "hook", program, "2", "-joff")
        hooked = {k: n for k, n in hooked.items() if " calls " not in k[0]}
        want = sum(n for (where, pos), n in hooked.items() if pos != "0" and where.startswith("@" + program[:40]))
        calls = sum(n for (where, pos), n in hooked.items() if pos == "0" and where.startswith("@" + program[:40]))
        r = record(program, "2").ok()
        got = sum(by_line(r.trace, "instructions").values())
        s.check(got == want, "%d instructions, not %d" % (got, want))
        got = sum(by_line(r.trace, "calls").values())
        s.check(got == calls, "%d calls, not %d" % (got, calls))

    @suite.test("record.coverage", "the lines that have hits, with the interpreter's stubs alone", True)
    def coverage():
        program = os.path.join(OWN, "lines.lua")
        r = record(program, events="coverage").ok()
        got, want = listing(r.trace, program, "coverage"), expected(program, 1000)
        # A line of two functions is one of each.
        s.check({k: min(v, 1) for k, v in got.items()} == {k: min(v, 1) for k, v in want.items()}, "%s" % got)

    @suite.test("record.views", "each view and export has the same sums", True)
    def views():
        program = os.path.join(BENCH, "richards.lua")
        r = record(program, "2", events=ALL + ",cpu").ok()
        want = sum(by_line(r.trace, "lines").values())
        flat = sum(x["self_ticks"] for x in s.rows(r.trace, "--event", "lines"))
        s.check(flat == want, "flat %d, not %d" % (flat, want))
        text = s.report(r.trace, "--annotate", "--event", "lines,cpu").ok().out
        s.check(re.search(r"^ +lines +\| +cpu +\| *$", text, re.M), text[:400])
        s.check(re.search(r"^ +\d+ +\| +[\d.]+s +\| ", text, re.M), "no line has both")
        s.check(re.search(r"^# +Count +Share  Function", s.report(r.trace, "--event", "lines").ok().out, re.M), "titles")
        s.run([s.luasample(), "jit", "-i", r.trace]).ok()
        r1 = s.run([s.luasample(), "jit", "-i", r.trace, "--event", "lines"])
        s.check(r1.status == 1 and "has no time" in r1.err, "%d %s" % (r1.status, r1.err))
        for fmt, pattern in (("callgrind", r"^totals: (\d+)$"), ("csv", None), ("collapsed", None)):
            out = s.run([s.luasample(), "export", "-i", r.trace, "--event", "lines", "--format", fmt]).ok().out
            if fmt == "callgrind":
                s.check("\nevents: Lines\n" in out, out[:300])
                got = int(re.search(pattern, out, re.M).group(1))
            elif fmt == "collapsed":
                got = sum(int(line.rsplit(" ", 1)[1]) for line in out.splitlines())
            else:
                import csv
                got = sum(int(x["self_ticks"]) for x in csv.DictReader(out.splitlines()))
            s.check(got == want, "%s: %d, not %d" % (fmt, got, want))
        merged = s.tmpfile(".data")
        s.run([s.luasample(), "merge", "-o", merged, r.trace, r.trace]).ok()
        got = sum(by_line(merged, "lines").values())
        s.check(got == 2 * want, "merged: %d, not twice %d" % (got, want))
        r2 = s.run([s.luasample(), "export", "-i", r.trace, "--event", "lines", "--format", "chrome"])
        s.check(r2.status != 0 and "counts have no time" in r2.err, "%d %s" % (r2.status, r2.err))

    @suite.test("diff", "instructions as a check without noise", True)
    def diff():
        program = os.path.join(BENCH, "richards.lua")
        one, same, more = (record(program, n, events="instructions").ok().trace for n in ("50", "50", "51"))
        base = [s.luasample(), "diff", "--event", "instructions", "--fail-above", "1%"]
        r = s.run(base + ["--min", "0", one, same]).ok()
        rows = re.findall(r"^ +(\d+) +(\d+) +(\S+) ", r.out, re.M)
        s.check(len(rows) > 10 and all(a == b and d == "+0" for a, b, d in rows), r.out)
        s.check(re.search(r"All in all: (\d+) before, \1 after, \+0 \(\+0\.00%\)", r.out), r.out)
        r = s.run(base + [one, more])
        s.check(r.status == 1 and re.search(r"All in all: (\d+) before, (\d+) after, .*\+(1\.99|2\.00)%\) \*", r.out), "%d %s" % (r.status, r.out))
        s.check(re.search(r"^# Before: .*: \d+ instructions: ", r.out, re.M), r.out)
        r = s.run(base + ["--normalize", "time", one, same])
        s.check(r.status == 129 and "are no time" in r.err, "%d %s" % (r.status, r.err))

    @suite.test("record.refused", "what cannot be counted is said in a line", True)
    def refused():
        program = os.path.join(OWN, "lines.lua")
        for opts, words in ((["--last", "10s"], "of the whole recording"), (["--switch-output", "1M"], "of the whole recording")):
            r = record(program, opts=opts)
            s.check(r.status == 129 and words in r.err and r.err.count("\n") == 1, "%d %s" % (r.status, r.err))
        r = s.run([s.luasample(), "record", "-e", "lines", "-p", str(os.getpid()), "-o", s.tmpfile(".data")])
        s.check(r.status == 129 and "from a program's start" in r.err, "%d %s" % (r.status, r.err))
        # The address space is limited: the program runs, and nothing is counted.
        lj = s.luajit()
        r = s.run(["sh", "-c", "ulimit -v 8000000; exec \"$@\"", "sh", s.luasample(), "record", "-e", "lines", "-o", s.tmpfile(".data"),
                   "--", lj.program, program], env=lj.environ())
        s.check(r.status == 0 and r.out == "1002011\t100\n", "%d %s" % (r.status, r.out))
        s.check(r.err.count("is not counted: there is no room") == 1, r.err)
        cache = os.environ.get("LUASAMPLE_TEST_CACHE", os.path.expanduser("~/.cache/luasample-tests"))
        tree = os.path.join(cache, "nojit")
        if os.path.exists(os.path.join(tree, "bin", "luajit")):
            lj = s.LuaJIT("nojit", os.path.join(tree, "bin", "luajit"), {"LD_LIBRARY_PATH": os.path.join(tree, "lib")})
            r = record(program, lj=lj)
            s.check(r.status == 0 and r.out == "1002011\t100\n" and "is not counted: " in r.err, "%d %s" % (r.status, r.err))

    def other_sethook(follows):
        """A LuaJIT whose lua_sethook does not rewrite the dispatch table, or, with follows, does so through an instruction
        that cannot be moved, in place of lua_equal, so that there can be no patch."""
        lj, folder = s.luajit("shared"), tempfile.mkdtemp(dir=s.tmpdir())
        source = os.path.realpath(os.path.join(lj.env["LD_LIBRARY_PATH"], "libluajit-5.1.so.2"))
        names = s.run([s.need("nm"), "-D", source]).ok().out
        symbols = {n: int(a, 16) for a, n in re.findall(r"^(\w+) T (\w+)$", names, re.M)}
        head = s.run([s.need("objdump"), "-h", source]).ok().out
        text = re.search(r" \.text +\w+ +(\w+) +\w+ +(\w+) ", head)
        to_file = int(text.group(2), 16) - int(text.group(1), 16)
        start = symbols["lua_sethook"]
        code = s.run(["objdump", "-d", "--start-address=%d" % start, "--stop-address=%d" % (start + 192), source]).ok().out
        m = re.search(r"^ *(\w+):\te8 (?:\w\w ){4}\s*call +(\w+) <lj_dispatch_update", code, re.M)
        if not m:
            raise s.Skip("lua_sethook of the LuaJIT named shared calls nothing that is named lj_dispatch_update")
        at, update, room = int(m.group(1), 16), int(m.group(2), 16), symbols["lua_equal"]
        relative = lambda source, target: (target - source).to_bytes(4, "little", signed=True)
        with open(source, "rb") as f:
            image = bytearray(f.read())

        def put(where, code):
            image[where + to_file:where + to_file + len(code)] = code
        put(at, b"\xe8" + relative(at + 5, room) if follows else b"\x90" * 5)
        put(room, b"\xe3\x00\xe9" + relative(room + 7, update))        # jrcxz to the next one; jmp
        with open(os.path.join(folder, "libluajit-5.1.so.2"), "wb") as f:
            f.write(image)
        return s.LuaJIT("patched", lj.program, dict(lj.env, LD_LIBRARY_PATH=folder))

    @suite.test("record.unpatched", "a LuaJIT whose dispatch cannot be followed is not counted, says so in a line, and runs", True)
    def unpatched():
        program = os.path.join(OWN, "lines.lua")
        for follows, why in ((True, "what rewrites the dispatch table cannot be patched"), (False, "the hook mask is not in the global state")):
            r = record(program, lj=other_sethook(follows), events="instructions,cpu")
            s.check((r.status, r.out) == (0, "1002011\t100\n"), "%d %s %s" % (r.status, r.out, r.err))
            s.check(r.err.count("what a VM executes is not counted: " + why) == 1, r.err)
            s.check("instructions were counted" not in r.err and "has counted nothing" not in r.err, r.err)

    @suite.test("record.mdwe", "where no code may be changed nothing is counted, and the program runs", True)
    def mdwe():
        program = os.path.join(OWN, "lines.lua")
        lj = s.luajit()
        prefix = [sys.executable, "-c", "import ctypes, os, sys\n"
                  "if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0): sys.exit(77)\n"
                  "os.execvp(sys.argv[1], sys.argv[1:])"]
        plain = s.run([*prefix, lj.program, program], env=lj.environ())
        if plain.status == 77:
            raise s.Skip("this kernel has no PR_SET_MDWE")
        r = s.run([*prefix, s.luasample(), "record", "-e", ALL, "-o", s.tmpfile(".data"), "--", lj.program, program], env=lj.environ())
        s.check((r.status, r.out) == (plain.status, plain.out), "%d %s, not %d %s" % (r.status, r.out, plain.status, plain.out))
        s.check("VMs made by it are not recorded" in r.err, r.err)

    @suite.test("record.callgrind", "CG02, CG03, CG08, CG09: instructions, calls and ticks at once, read by callgrind_annotate", True)
    def callgrind():
        program = os.path.join(BENCH, "richards.lua")
        r = record(program, "10", events="instructions,calls,cpu").ok()
        path = s.tmpfile(".callgrind")
        s.run([s.luasample(), "export", "-i", r.trace, "--event", "instructions,calls,cpu", "-o", path]).ok()
        text = s.run([s.need("callgrind_annotate"), "--auto=no", "--threshold=100", "--tree=both", "--show-percs=no", path])
        s.check(text.status == 0 and text.err == "", "%d %s" % (text.status, text.err))
        s.check(re.search(r"^Events recorded: +Instructions Calls Samples Microseconds$", text.out, re.M), text.out[:400])
        number = lambda t: int(t.replace(",", ""))
        totals = [number(t) for t in re.search(r"^(.*) PROGRAM TOTALS$", text.out, re.M).group(1).split()]
        want = [sum(by_line(r.trace, e).values()) for e in ("instructions", "calls", "cpu")]
        s.check(totals[:3] == want and min(want) > 0, "%s, not %s" % (totals, want))
        # "> function (times x)" below "* caller": how often, which is what report --split says.
        got, caller = {}, None
        for line in text.out.splitlines():
            m = re.match(r"^.*? ([*><]) +\S*?richards\.lua:(.+?)(?: \(([\d,]+)x\))?(?: \[.*\])?$", line)
            if not m or m.group(1) == "*":
                caller = m and m.group(2)
            elif caller and m.group(1) == ">" and m.group(3) and number(m.group(3)):
                got[caller, m.group(2)] = number(m.group(3))
        calls = {}
        out = s.run([s.luasample(), "export", "-i", r.trace, "--event", "calls", "--format", "collapsed"]).ok().out
        for line in out.splitlines():
            stack, n = line.rsplit(" ", 1)
            if ";" in stack:
                calls[tuple(stack.split(";"))] = int(n)
        s.check(len(calls) > 10 and got == calls, "%s, not %s" % (sorted(got.items()), sorted(calls.items())))

    def read_callgrind(text):
        """(events, {function: [cost]}, {(caller, line, callee): (calls, [inclusive])}, {function: object}) of a file of one part."""
        names, self_cost, edges, objects = {}, {}, {}, {}
        fn = callee = ob = calls = events = None
        at = 0

        def name(kind, word):
            m = re.match(r"\((\d+)\)(?: (.*))?$", word)
            if m.group(2) is not None:
                names[kind, m.group(1)] = m.group(2)
            return names[kind, m.group(1)]
        for line in text.splitlines():
            m = re.match(r"(c?)(ob|fl|fi|fe|fn)=(.*)$", line)
            if m:
                found = name({"fi": "fl", "fe": "fl"}.get(m.group(2), m.group(2)), m.group(3))
                if m.group(2) == "ob" and not m.group(1):
                    ob = found
                elif m.group(2) == "fn" and m.group(1):
                    callee = found
                elif m.group(2) == "fn":
                    fn, objects[found] = found, ob
            elif line.startswith("events: "):
                events = line.split()[1:]
            elif line.startswith("calls="):
                calls = int(line[6:].split()[0])
            elif re.match(r"[+*\d-]", line):
                where, *cost = line.split()
                at = at if where == "*" else at + int(where) if where[0] in "+-" else int(where)
                cost = [int(c) for c in cost]
                if calls is None:
                    self_cost[fn] = [a + b for a, b in zip(self_cost.get(fn, [0] * len(cost)), cost)]
                else:
                    edges[fn, at, callee] = (calls, cost)
                calls = None
        return events, self_cost, edges, objects

    @suite.test("record.time-of-call", "report --event calls,cpu: own time of a call, marked where it is of few ticks", True)
    def time_of_call():
        r = record(os.path.join(BENCH, "richards.lua"), "20", events="calls,cpu").ok()
        report = lambda *o: s.run([s.luasample(), "report", "-i", r.trace, *o]).ok().out
        doc = json.loads(report("--event", "calls,cpu", "--min", "0", "--json"))
        rows = [x for x in doc["rows"] if "ns_a_call" in x]
        s.check(len(rows) > 5 and sum(x["cpu"]["self_ticks"] > 9 for x in rows) > 1, "%d rows" % len(rows))
        for x in rows:
            s.check(abs(x["ns_a_call"] - x["cpu"]["self_ticks"] * 1e6 / x["calls"]["self_ticks"]) < 1e-5, "%s" % x)
        for x in doc["rows"]:
            s.check(("ns_a_call" in x) == bool(x["calls"]["self_ticks"] and x["cpu"]["self_ticks"]), "%s" % x)
        text = report("--event", "calls,cpu", "--min", "0")
        s.check(re.search(r"^# +Share +Self calls +Self cpu +cpu a call +Function$", text, re.M), text)
        shown = {m[2]: (m[1], float(m[0])) for m in re.findall(r"([\d.]+)s +(~?)[\d.]+ [nu]s +(\S+)", text)}
        s.check(len(shown) == len(rows) and all((rough == "~") == (seconds < 0.0095) for rough, seconds in shown.values()), text)
        s.check("a call" not in report("--event", "calls,cpu", "--by", "line") + report("--event", "cpu"), "a column too many")

    callgraphs = []

    def make_callgraph(n, events="instructions,calls,cpu"):
        r = record(os.path.join(OWN, "callgraph.lua"), str(n), "exit", events=events)
        s.check((r.status, r.out) == (3, "8000000\t%d\texit\n" % n), "%d %s %s" % (r.status, r.out, r.err))
        out = s.run([s.luasample(), "export", "-i", r.trace, "--event", events, "--format", "callgrind"]).ok()
        return (r, out.out, *read_callgrind(out.out))

    def callgraph():
        """The recording of callgraph.lua, and what its file says; made once."""
        if not callgraphs:
            callgraphs.append(make_callgraph(100))
        return callgraphs[0]

    def line_of(comment):
        with open(os.path.join(OWN, "callgraph.lua")) as f:
            return next(n for n, line in enumerate(f, 1) if line.rstrip().endswith("--= " + comment))

    @suite.test("callgrind.file", "the program gets its arguments; a file by its name, and stdout", True, "CG01")
    def callgrind_file():
        r, text, *_ = callgraph()
        path = os.path.join(s.tmpdir(), "callgrind.out.app")
        s.run([s.luasample(), "export", "-i", r.trace, "--event", "instructions,calls,cpu", "-o", path]).ok()
        with open(path) as f:
            s.check(f.read() == text and text.startswith("# callgrind format\n"), "the file is not what stdout had")

    @suite.test("callgrind.linear", "instructions are the same in each run, and so many more for each round", True, "CG02")
    def callgrind_linear():
        # Without samples all names are those of definitions: a sample may find a global's path.
        one, again, two, three = (make_callgraph(n, "instructions,calls")[3] for n in (100, 100, 200, 300))
        s.check(one == again and {"outer", "leaf", "fails", "after", "run", "hot"} < set(one), "%s, then %s" % (one, again))
        for fn in again:
            s.check(three[fn][0] - two[fn][0] == two[fn][0] - again[fn][0], "%s: %s %s %s" % (fn, again[fn], two[fn], three[fn]))
        s.check(two["leaf"][0] - again["leaf"][0] == 100 * (6 + 2 * 1000 + 6 + 2 * 2000), "%s %s" % (again["leaf"], two["leaf"]))

    @suite.test("callgrind.sums", "own costs of all functions are the total; each call is there once, names are numbers", True, "CG03")
    def callgrind_sums():
        r, text, _, self_cost, edges, _ = callgraph()
        totals = [int(n) for n in re.search(r"^totals: (.*)$", text, re.M).group(1).split()]
        s.check(totals == [sum(c) for c in zip(*self_cost.values())], "%s" % totals)
        s.check(totals[:3] == [sum(by_line(r.trace, e).values()) for e in ("instructions", "calls", "cpu")], "%s" % totals)

    @suite.test("callgrind.exit", "there is a file after os.exit, and after the main chunk's end", True, "CG08")
    def callgrind_exit():
        calls = {k: n for k, (n, _) in callgraph()[4].items()}         # the program ended by os.exit(3)
        r = record(os.path.join(OWN, "callgraph.lua"), "100", events="instructions,calls,cpu").ok()
        out = s.run([s.luasample(), "export", "-i", r.trace, "--event", "instructions,calls,cpu", "--format", "callgrind"]).ok().out
        ended = {k: n for k, (n, _) in read_callgrind(out)[2].items() if n}
        s.check(ended == {k: n for k, n in calls.items() if n} and len(ended) > 8, "%s, not %s" % (ended, calls))

    @suite.test("callgrind.small", "each line of a function and each call is there once, and each name", True, "CG09")
    def callgrind_small():
        _, text, _, _, edges, _ = callgraph()
        s.check(len(re.findall("^calls=", text, re.M)) == len(edges), "a call is there twice")
        named = [(kind.replace("i", "l"), name) for kind, name in re.findall(r"^c?(ob|f[lie]|fn)=\(\d+\) (.*)$", text, re.M)]
        s.check(len(named) > 10 and len(named) == len(set(named)), "a name is there twice: %s" % named)
        s.check(len(text) < 4096, "%d bytes for 311 calls" % len(text))

    @suite.test("callgrind.lines", "calls and ticks of a callee are on the line that calls", True, "CG04")
    def callgrind_lines():
        _, _, events, self_cost, edges, _ = callgraph()
        s.check(events == ["Instructions", "Calls", "Samples", "Microseconds"], "%s" % events)
        last = lambda name: name.rsplit(".", 1)[-1]     # a tick may find the path of a global
        calls = {(last(caller) if caller.endswith(".run") else caller, line): n
                 for (caller, line, callee), (n, _) in edges.items() if callee in ("leaf", "outer")}
        want = {("outer", line_of("leaf")): 100, ("outer", line_of("leaf again")): 100, ("main chunk@callgraph.lua", line_of("outer")): 100,
                ("after", 17): 1, ("run", 19): 1}
        s.check(calls == want, "%s, not %s" % (calls, want))
        s.check(all(cost[1] == n for (caller, _, callee), (n, cost) in edges.items() if n and caller != callee), "a call has other costs than calls")
        hot = [(line, cost) for (_, line, callee), (_, cost) in edges.items() if callee == "proxy.test.Suite.hot"]
        own = self_cost["proxy.test.Suite.hot"]
        s.check(len(hot) == 1 and hot[0][0] == line_of("hot") and hot[0][1][2:] == own[2:] and own[2] > 50, "%s %s" % (hot, own))

    @suite.test("callgrind.errors", "errors that pcall catches leave no wrong callers", True, "CG05")
    def callgrind_errors():
        _, _, _, _, edges, _ = callgraph()
        main, fails = "main chunk@callgraph.lua", "fails"
        got = {k: n for k, (n, _) in edges.items() if n}
        function = [k for k in got if k[1] == line_of("function")]
        s.check(function == [(main, line_of("function"), "function@callgraph.lua:%d" % line_of("function"))], "%s" % function)
        s.check({k: n for k, n in got.items() if k[2] == fails} ==
                {(main, line_of("fails"), fails): 1, (fails, line_of("itself"), fails): 4}, "%s" % got)
        s.check([k for k in got if k[1] == line_of("after")] == [(main, line_of("after"), "after")], "%s" % got)

    @suite.test("callgrind.names", "names by the path from a global, by the definition, by the place where there is none", True, "CG06")
    def callgrind_names():
        _, _, _, self_cost, _, _ = callgraph()
        want = {"main chunk@callgraph.lua", "leaf", "outer", "proxy.test.Suite.hot", "fails", "after",
                "function@callgraph.lua:%d" % line_of("function")}
        s.check(want <= set(self_cost), "%s" % sorted(self_cost))

    @suite.test("callgrind.c", "functions of C are there: with their own ticks, and without instructions", True, "CG07")
    def callgrind_c():
        _, _, _, self_cost, edges, objects = callgraph()
        rep = self_cost.get("string.rep")
        s.check(rep and rep[0] == 0 and rep[2] > 10 and objects["string.rep"].endswith("luajit"), "%s" % self_cost)
        s.check(any(callee == "string.rep" and cost[2] > 10 for (_, _, callee), (_, cost) in edges.items()), "%s" % edges)

    @suite.test("record.pprof", "counts are sample types beside the time", True)
    def pprof():
        r = record(os.path.join(BENCH, "richards.lua"), "10", events="instructions,calls,cpu").ok()
        path = s.tmpfile(".pb.gz")
        s.run([s.luasample(), "export", "-i", r.trace, "--event", "instructions,calls,cpu",
               "--format",
               "pprof", "-o", path]).ok()
        text = s.run([s.need("go"), "tool", "pprof", "-raw", path], timeout=300).ok().out
        types = re.search(r"^Samples:\n(.*)$", text, re.M).group(1).split()
        s.check([x.split("[")[0] for x in types] ==
                ["instructions/count", "calls/count", "samples/count",
                 "cpu/nanoseconds"], "%s" % types)
        sums = [0] * 4
        for line in re.findall(r"^((?: +\d+){4}): ", text, re.M):
            sums = [a + int(b) for a, b in zip(sums, line.split())]
        want = [sum(by_line(r.trace, e).values()) for e in ("instructions", "calls", "cpu")]
        s.check(sums[:3] == want and min(want) > 0, "%s, not %s" % (sums, want))

    @suite.test("record.busted", "busted and the programs that its tests start are covered", True)
    def busted():
        if not os.path.exists("/usr/share/lua/5.1/busted/runner.lua"):
            raise s.Skip("busted is not installed (lua-busted)")
        lj, work = s.luajit(), tempfile.mkdtemp(dir=s.tmpdir())
        with open(os.path.join(work, "app_spec.lua"), "w") as f:
            f.write("local loaded = require 'cover.loaded'\ndescribe('all', function()\n  it('works', function()\n"
                    "    assert.equal(7, loaded.used(7))\n    assert.equal(0, os.execute('%s %s >/dev/null'))\n"
                    "  end)\nend)\n" % (lj.program, os.path.join(OWN, "lines.lua")))
        with open(os.path.join(work, "run.lua"), "w") as f:
            f.write("require 'busted.runner' { standalone = false }\n")
        r = s.record([lj.program, "run.lua", "app_spec.lua"], "-e", "branches", cwd=work,
                     env=lj.environ({"LUA_PATH": OWN + "/?.lua;;"}))
        s.check(r.status == 0 and "1 success" in r.out, "%d %s %s" % (r.status, r.out, r.err))
        lines, _ = read_lcov(s.run([s.luasample(), "coverage", "-i", r.trace, "--lcov",
                                    "-"]).ok().out)
        once = lambda hits: {k: min(n, 1) for k, n in hits.items()}
        loaded = os.path.join(OWN, "cover", "loaded.lua")
        want = once(expected(loaded, 0))
        want[7] = 0                     # for x of 1, which the test has not
        s.check(once(lines[loaded]) == want, "%s" % lines[loaded])
        want = expected(os.path.join(OWN, "lines.lua"), 1000)
        got = lines[os.path.join(OWN, "lines.lua")]
        s.check(once(got) == once(want), "the child: %s" % got)

    @suite.test("record.fork", "a child of fork is not counted, and says so; its parent is", True)
    def fork():
        program = os.path.join(OWN, "forks.lua")
        r = record(program).ok()
        calls = by_line(r.trace, "calls")
        work = [n for k, n in calls.items() if k.endswith("forks.lua:4")]
        s.check(work == [2], "work was called %s times" % calls)
        s.check(re.search(r"process \d+ has counted nothing: it was forked, or ran no Lua", r.err), r.err)

    @suite.test("record.vms", "two VMs at a time, and one in another thread")
    def vms():
        r = s.record([s.host("twovm")], "-e", "calls,lines").ok()
        calls = {x["name"]: x["self_ticks"] for x in s.rows(r.trace, "--event", "calls", "--by", "line")}
        text = s.report(r.trace, "--event", "calls", "--raw", "--min", "0").ok().out
        got = {}
        for x in s.rows(r.trace, "--event", "calls"):
            got.setdefault(x["source"], []).append(x["self_ticks"])
        for source, n in (("first", 14), ("second", 8), ("thread", 1)):
            s.check(n in got.get(source, []), "%s: no %d calls in %s: %s\n%s" % (source, n, got, calls, text))

    @suite.test("record.killed", "what a process had counted when it was killed", True)
    def killed():
        program = os.path.join(OWN, "killed.lua")
        r = record(program)
        s.check(r.status == 128 + signal.SIGKILL, "status %d: %s" % (r.status, r.err))
        s.check(12345 in by_line(r.trace, "lines").values(), "%s" % by_line(r.trace, "lines"))

    @suite.test("record.children", "programs that a program starts have counts of their own", True)
    def children():
        program = os.path.join(OWN, "lines.lua")
        lj = s.luajit()
        r = s.record(["sh", "-c", '"$0" "$1" 1000; "$0" "$1" 2000; :', lj.program, program], "-e", "lines", env=lj.environ()).ok()
        got = listing(r.trace, program, "lines")
        one, two = expected(program, 1000), expected(program, 2000)
        s.check(got == {k: one[k] + two[k] for k in one}, "%s" % got)

    @suite.test("coverage", "luasample coverage: table, LCOV, luacov.stats.out, Cobertura, --fail-under", True)
    def coverage_command():
        program, cover = os.path.join(OWN, "covered.lua"), os.path.join(OWN, "cover")
        loaded, never = os.path.join(cover, "loaded.lua"), os.path.join(cover, "never.lua")
        want = {program: expected(program, 0), loaded: expected(loaded, 0), never: {2: 0, 4: 0, 5: 0, 7: 0}}
        for events in ("coverage", "lines,calls"):
            hit = (lambda n: min(n, 1)) if events == "coverage" else (lambda n: n)
            r = record(program, events=events).ok()
            base = [s.luasample(), "coverage", "-i", r.trace]
            text = s.run(base).ok().out
            s.check(re.search(r"^ *88\.89% +8/9 +50\.00% +1/2 +\S*cover/loaded\.lua +11$", text, re.M), text)
            s.check("never" not in text, text)
            lcov = s.run(base + ["--include", OWN, "--lcov", "-"]).ok().out
            got, functions = read_lcov(lcov)
            for path in want:
                s.check(got.get(path) == {k: hit(v) for k, v in want[path].items()}, "%s: %s" % (path, got.get(path)))
            s.check(functions[loaded] == {"M.used:3": hit(1000), "M.unused:10": 0}, "%s" % functions)
            stats = s.tmpfile(".stats.out")
            s.run(base + ["--include", OWN, "-q", "--luacov", stats]).ok()
            with open(stats) as f:
                words = dict(zip(*[iter(f.read().split("\n"))] * 2))
            hits = words["19:" + loaded].split()
            s.check([int(n) for n in hits] == [hit(want[loaded].get(n, 0)) for n in range(1, 20)], "%s" % hits)
            s.check(not any("never" in w for w in words), "%s" % words)
            xml = s.run(base + ["--include", OWN, "--cobertura", "-"]).ok().out
            tree = xml_tree.fromstring(xml)
            got = {int(l.get("number")): int(l.get("hits")) for l in tree.findall(".//class[@name='loaded.lua']/lines/line")}
            s.check(got == {k: hit(v) for k, v in want[loaded].items()}, "%s" % got)
            check_page(s.run(base + ["--include", OWN, "--html", "-"]).ok().out, want[loaded], hit)
            table = s.run(base + ["--include", cover, "--fail-under", "80"])
            s.check(table.status == 1 and "61.53% of the lines were executed, 80% are wanted" in table.err,
                    "%d %s%s" % (table.status, table.out, table.err))
            s.check(re.search(r"0/4 .*never\.lua +never loaded$", table.out, re.M), table.out)
            s.run(base + ["--include", cover, "--fail-under", "61"]).ok()
            none = s.run(base + ["--include", "/nowhere"])
            s.check(none.status == 1 and "no file" in none.err and none.err.count("\n") == 1, none.err)
        r = s.record_lua("kinds.lua", "-e", "cpu", args=["0.05"])
        none = s.run([s.luasample(), "coverage", "-i", r.trace])
        s.check(none.status == 1 and "has no coverage; record it with" in none.err, "%d %s" % (none.status, none.err))

    @suite.test("coverage.hostile", "names and sources are text of the page, and nothing else",
                True)
    def hostile():
        work = s.tmpdir()
        name = os.path.join(work, '"><img src=x onerror=alert(1)>&\n.lua')
        with open(name, "wb") as f:
            f.write(b"local x = '</td><script>alert(1)</script>'\n"
                    b"local y = \"\\xff\x1b[31m\xe2\x80\xae\"\nprint(#x)\n")
        r = record(name, events="branches").ok()
        page = Page(s.run([s.luasample(), "coverage", "-i", r.trace, "--html", "-"]).ok().out)
        s.check(not {"img", "script"} & page.tags, "%s" % page.tags)
        ((title, rows),) = page.files.items()
        s.check('"><img src=x onerror=alert(1)>&\\n.lua' in title, title)
        s.check(rows[0][-1] == "local x = '</td><script>alert(1)</script>'", "%s" % rows[0])
        s.check("\x1b" not in rows[1][-1] and "\u202e" not in rows[1][-1], "%s" % rows[1])
        with open(name, "ab") as f:
            f.write(b"-- more\n")
        page = Page(s.run([s.luasample(), "coverage", "-i", r.trace, "--html", "-"]).ok().out)
        ((title, rows),) = page.files.items()
        s.check([r[0] for r in rows] == ["1", "2", "3"] and not any(r[-1] for r in rows),
                "%s" % rows)

    @suite.test("record.control", "a count that is moved by one is found", True)
    def control():
        program = os.path.join(OWN, "lines.lua")
        got, want = listing(record(program).ok().trace, program, "lines"), expected(program, 1000)
        line = max(want, key=want.get)
        want[line] += 1
        s.check(got != want, "it was not found")
