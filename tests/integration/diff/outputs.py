"""What diff prints: formats that parse back, hostile names, statuses, and what cannot be read."""
import csv
import html
import io
import os
import re

import support as s
from made import Program, diff, rows, trace
from support import check

PLAIN = Program([("main", 0, 1), ("parse", 10, 2), ("hash", 30, 3), ("render", 50, 4)])
HOSTILE = ['a|b', 'x"y,z', "</script><b>", "back`tick", "*bold* _it_", "line\nbreak", "\x1b[31mred", "\u202eturned",
           b"not\xffutf8", "=1+1", "&amp;", "tab\there", "a" * 70000]


def two(n=900):
    a = trace(PLAIN, [(["main", "parse"], 500), (["main", "hash"], 300), (["main", "render"], 200)])
    return a, trace(PLAIN, [(["main", "parse"], 500), (["main", "hash"], n), (["main", "render"], 200)])


def csv_rows(text):
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    for row in rows:
        for key in ("name", "place"):
            check(row[key][:1] not in ("=", "+", "-", "@"), "a cell is a formula: " + row[key])
            row[key] = row[key][row[key][:1] == "'":]
    return rows


def markdown_rows(text):
    table = [l for l in text.splitlines() if l.startswith("|")]
    cells = [[html.unescape(c).strip() for c in re.split(r"(?<!\\)\|", l)[1:-1]] for l in table]
    check(all(len(c) == 8 for c in cells), "rows of different length: %s" % cells)
    check(set("".join(cells[1])) <= set("-:"), cells[1])
    return cells[2:]


def add_to(suite):
    @suite.test("formats", "text, markdown, JSON and CSV say the same", quick=True)
    def formats():
        a, b = two()
        j = rows(a, b)
        for got in csv_rows(diff("--format", "csv", a, b).out):
            want = j[got["name"]]
            for key in ("before", "after", "difference", "growth", "p", "q"):
                check(abs(float(got[key]) - want[key]) < 2e-6, "%s of %s: %s, %s" % (key, got["name"], got[key], want[key]))
            check(got["significant"] == str(int(want["significant"])), got)
        marked = markdown_rows(diff("--format", "markdown", a, b).out)
        check([r[6] for r in marked] == list(j), marked)
        for r in marked:
            check(r[0] == "%.2f%%" % (100 * j[r[6]]["before"]), r)
            check((r[5] == "**differs**") == j[r[6]]["significant"], r)
        text = [l for l in diff(a, b).out.splitlines() if not l.startswith("#")]
        check([l.split()[-2] for l in text] == list(j), text)
        check([l.split()[5] == "*" for l in text] == [r["significant"] for r in j.values()], text)

    @suite.test("hostile-names", "names of any bytes stay text in every format", quick=True)
    def hostile_names():
        program = Program([(n, 10 * i, i + 1) for i, n in enumerate(["main"] + HOSTILE)])
        a = trace(program, [(["main", n], 100 + i) for i, n in enumerate(HOSTILE)])
        b = trace(program, [(["main", n], 300 - i) for i, n in enumerate(HOSTILE)])
        names = list(rows(a, b))
        check(len(names) == len(HOSTILE), names)
        check([r["name"] for r in csv_rows(diff("--format", "csv", a, b).out)] == names, "CSV")
        marked = [r[6] for r in markdown_rows(diff("--format", "markdown", "--min", "0", a, b).out)]
        check([n.strip() for n in marked] == [n.strip() for n in names], (marked, names))
        for args in ([], ["--tree"], ["--format", "markdown"], ["--format", "csv"], ["--json"]):
            out = diff(*args, "--min", "0", a, b).out
            control = re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", out.replace("\r\n", "\n"))
            check(not control, "control characters in %s" % args)
            check("nan" not in re.sub('"[^"]*"', "", out).lower().split() and " inf" not in out, args)
        narrow = s.run([s.luasample(), "diff", "--min", "0", a, b], env=dict(os.environ, COLUMNS="80")).ok()
        check(max(len(l) for l in narrow.out.splitlines() if not l.startswith("#")) <= 80, narrow.out)

    @suite.test("fail-above", "--fail-above: status 1, and the line says which", quick=True)
    def fail_above():
        a, b = two()
        r = diff("--fail-above", "5%", a, b, status=1)
        said = "diff: hash grew from 30.00% to 56.25%, by 26.25% of the whole: above --fail-above 5%"
        check(said in r.err, r.err)
        check(len(r.err.splitlines()) == 1, "only hash grew: %s" % r.err)
        diff("--fail-above", "27", a, b)
        diff("--fail-above", "0%", a, a)
        diff("--fail-above", "0%", b, b, "--normalize", "time")
        r = diff("--fail-above", "5%", "--normalize", "time", a, b, status=1)
        check("the whole grew from 1.000 s to 1.600 s, by 60.00%" in r.err and "hash grew" in r.err, r.err)
        few_a = trace(PLAIN, [(["main", "parse"], 10), (["main", "hash"], 6)])
        few_b = trace(PLAIN, [(["main", "parse"], 10), (["main", "hash"], 9)])
        diff("--fail-above", "5%", few_a, few_b)        # large, but chance
        out = s.tmpfile(".md")
        diff("--fail-above", "5%", "--format", "markdown", "-o", out, a, b, status=1)
        check("**differs**" in Path(out), "the table is written though the status is 1")
        diff("--fail-above", "5%", "--tree", a, b, status=129)

    def Path(p):
        with open(p) as f:
            return f.read()

    @suite.test("min", "--min hides what is small and may be chance, never what differs", quick=True)
    def minimum():
        a = trace(PLAIN, [(["main", "parse"], 100000), (["main", "hash"], 20), (["main", "render"], 30)])
        b = trace(PLAIN, [(["main", "parse"], 100000), (["main", "hash"], 400), (["main", "render"], 31)])
        out = diff(a, b).out
        check("hash" in out and "render" not in out and "1 more row below 1%" in out, out)
        check("render" in diff("--min", "0", a, b).out, "--min 0")
        check("hash" in diff("--tree", a, b).out, "--tree hides what differs")

    @suite.test("bad-input", "missing, empty and broken recordings, and wrong usage", quick=True)
    def bad_input():
        a, b = two()
        empty = trace(PLAIN, [])
        text = s.tmpfile(".txt")
        with open(text, "w") as f:
            f.write("no trace\n" * 10)
        for args, status, said in (
                ([a, "/nowhere"], 1, "no such file"), ([a, text], 1, "not a luasample trace"),
                ([a, empty], 1, "has no samples: there is nothing to compare"), ([empty, a], 1, "nothing to compare"),
                ([a], 129, "give two recordings"), ([], 129, "give two recordings"), ([a, b, a], 129, "A1 A2"),
                (["--", a], 129, "give two"), ([a, "--"], 129, "give two"),
                (["--by", "function,line", a, b], 129, "one level"),
                (["--by", "functon", a, b], 129, "did you mean 'function'"),
                (["--total", "--by", "zone", a, b], 129, "follow calls"),
                (["--inverse", a, b], 129, "--tree"), (["--fail-above", "much", a, b], 129, "--fail-above 'much'"),
                (["--alpha", "101", a, b], 129, "--alpha"), (["--format", "xml", a, b], 129, "--format"),
                (["--min", "x", a, b], 129, "--min"), (["-o", "/nowhere/x", a, b], 1, "cannot write /nowhere/x")):
            r = diff(*args, status=status)
            check(said in r.err and len(r.err.splitlines()) == 1, "%s: %s" % (args, r.err))
            check(not r.out, "%s: something on stdout: %.200s" % (args, r.out))
        if os.path.exists("/dev/full"):
            for form in ("text", "json", "csv", "markdown"):
                r = s.run(["sh", "-c", 'exec "$@" > /dev/full', "sh", s.luasample(), "diff", "--format", form, a, b])
                check(r.status == 1 and "No space" in r.err, "%s: status %d: %s" % (form, r.status, r.err))

    @suite.test("deep", "10,000 frames deep, and one frame only", quick=True)
    def deep():
        def of(n):
            return trace(PLAIN, [(["main"] + ["parse", "hash"] * 5000, n), (["main"], 100)])
        a, b = of(300), of(600)
        for args in ([], ["--total"], ["--tree"], ["--tree", "--inverse"], ["--tree", "--json"], ["--by", "line", "--tree"]):
            diff(*args, a, b)
        one = trace(PLAIN, [(["main"], 1)])
        r = rows(one, one)
        check(r["main chunk@app.lua"]["before"] == 1 and not r["main chunk@app.lua"]["significant"], r)
