"""Formats jsonl and csv: parsed back, and compared with report --json. Imported by run.py."""
import collections
import csv
import io
import json
import os

import shared
import support as s
from support import check

VIEWS = [(), ("--by", "line"), ("--by", "module"), ("--by", "vmstate"), ("--by", "thread"), ("--by", "vm"),
         ("--by", "coroutine"), ("--by", "zone-path"), ("--by", "vmstate,function"), ("--by", "function,line"),
         ("--by", "thread,vm"), ("--split",), ("--split=callees",), ("--depth", "3"), ("--full-path", "--by", "line")]


def read_csv(text):
    """Rows as dicts; each line must have the head's columns."""
    lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    check(all(len(l) == len(lines[0]) for l in lines), "lines of different lengths")
    check(not any(cell[:1] in ("=", "+", "-", "@") for l in lines for cell in l), "a cell is a formula")
    return [dict(zip(lines[0], (cell[cell[:1] == "'":] for cell in l))) for l in lines[1:]]


def same(cell, value):
    """Whether a cell of CSV says what a member of the JSON row does."""
    if value is None:
        return cell == ""
    return float(cell) == value if isinstance(value, (int, float)) else cell == value


def compare_csv(trace, view):
    text = shared.export(trace, "--format", "csv", *view, binary=True).ok().out.decode("utf-8")
    check(text.count("\r\n") == text.count("\n"), "lines do not end in CRLF")
    got, want = read_csv(text), []
    for row in shared.report(trace, *view)["rows"]:
        want.append((row, None))
        want += [(child, row["name"]) for child in row.get("children", [])]
    what = "%s %s: " % (os.path.basename(trace), " ".join(view))
    check(len(got) == len(want), what + "%d lines, %d rows" % (len(got), len(want)))
    for line, (row, parent) in zip(got, want):
        if "level" in line:
            check(line["level"] == ("0" if parent is None else "1") and line["parent"] == (parent or ""), what + "level")
        for key in set(row) | set(line) - {"level", "parent"}:
            if key != "children":
                check(same(line[key], row.get(key)), what + "%s is %.60r, not %.60r" % (key, line[key], row.get(key)))


def read_jsonl(trace, *args):
    out = shared.export(trace, "--format", "jsonl", *args, binary=True).ok().out.decode("utf-8")
    check(not out or out.endswith("\n"), "the last line has no end")
    return [json.loads(line, parse_constant=lambda c: check(False, "not a number: " + c)) for line in out.splitlines()]


def count(rows, key):
    sums = collections.Counter()
    for row in rows:
        sums[key(row)] += row["weight"]
    return sums


def compare_jsonl(trace, filters):
    rows = read_jsonl(trace, *filters)
    what = "%s %s: " % (os.path.basename(trace), " ".join(filters))
    check(sum(r["weight"] for r in rows) == shared.ticks(trace, *filters), what + "sum of weights")
    if not filters:                     # else the first row of a sample may be left out
        check(sum(not r["continues"] for r in rows) == shared.report(trace)["header"]["samples"], what + "samples")
    for by, field, key in (
            ("function", "self_ticks", lambda r: r["stack"][0]["function"] if r["stack"] else "[no function]"),
            ("vmstate", "self_ticks", lambda r: r["vmstate"]),
            ("zone-path", "self_ticks", lambda r: "(none)" if r["zone"] is None else r["zone"]),
            ("thread", "self_ticks", lambda r: r["thread"]), ("vm", "self_ticks", lambda r: r["vm"] or 0),
            ("coroutine", "self_ticks", lambda r: r["coroutine"] or "main")):
        want = collections.Counter()
        for row in shared.report(trace, *filters, "--by", by)["rows"]:
            want[row["name"] if by in ("function", "coroutine") else row[by.split("-")[0]]] += row[field]
        wrong = shared.differ(count(rows, key), want)
        check(not wrong, what + by + ": " + wrong)
    want = {x["function"]: x["total_ticks"] for x in shared.report(trace, *filters)["rows"]}
    total = collections.Counter()
    for r in rows:
        for f in {f["function"] for f in r["stack"]} or {"[no function]"}:
            total[f] += r["weight"]
    wrong = shared.differ(total, want)
    check(not wrong, what + "total: " + wrong)
    last = {}
    for r in rows:
        check(r["time_ns"] >= last.get(r["thread"], 0), what + "thread %d: time goes back" % r["thread"])
        last[r["thread"]] = r["time_ns"]


def add_to(suite):
    t = suite.test

    @t("rows.csv", "every view is report --json, names of all kinds come back", True)
    def table():
        for trace in shared.synthetic():
            for view in VIEWS:
                compare_csv(trace, view)

    @t("rows.csv-min", "report --format csv obeys --min and --sort", True)
    def least():
        args = ("--min", "10", "--sort", "total")
        text = s.report(shared.golden("app"), "--format", "csv", *args).ok().out
        want = [x["name"] for x in shared.report(shared.golden("app"), *args)["rows"]]
        check([x["name"] for x in read_csv(text)] == want, "rows differ")

    @t("rows.jsonl", "sums by function, state, zone, thread, VM, coroutine are those of report", True)
    def jsonl():
        for trace in shared.synthetic():
            compare_jsonl(trace, ())
        for filters in (("--vmstate", "gc,interpreted"), ("--time", "10%,50%"), ("--thread", "4301"),
                        ("--function", "work")):
            compare_jsonl(shared.odd("mixed"), filters)
        compare_jsonl(shared.workers(), ())

    @t("rows.jsonl-fields", "what a row says", True)
    def fields():
        rows = read_jsonl(shared.odd("mixed"))
        check("line" not in rows[0]["stack"][0] and rows[10]["stack"][0]["line"] == 12, "lines: %s" % rows[0])
        check([r["time_ns"] for r in rows[:3]] == [1000000, 2000000, 3000000], "times")
        native = [r for r in rows if r["stack"][0]["function"] == "memcpy"][0]
        check(native["stack"][1] == {"function": "lpeg.so+0x1234"}, "native frames: %s" % native)
        got = (native["process"], native["thread"], native["thread_name"], native["vm"])
        check(got == (4300, 4301, "worker", 1), str(native))
        outside = [r for r in rows if r["stack"][0]["function"] == "[outside Lua]"][0]
        check(outside["vm"] is None and outside["coroutine"] is None and outside["zone"] is None, "outside: %s" % outside)
        two = [r for r in rows if r["continues"]]
        check(len(two) == 5 and all(r["vmstate"] == "Garbage Collector" and r["weight"] == 2 for r in two),
              "rows of one sample")
        check(rows[30]["zone"] == "outer" and rows[30]["coroutine"] == "work #3", "row 30: %s" % rows[30])
