"""Formats speedscope, chrome and perf-script without a browser: JSON schemas, and readers as simple as the formats allow.
Imported by run.py."""
import json
import os
import re

import shared
import support as s
from support import check

HERE = os.path.dirname(os.path.abspath(__file__))
ODD = ["empty", "one", "mixed", "names", "deep", "heavy"]


def loaded(trace, suffix, *filters):
    path = s.tmpfile(suffix)
    shared.export(trace, "-o", path, *filters)
    with open(path, encoding="utf-8") as f:
        return (json.load(f) if suffix.endswith("json") else f.read()), path


def fits(schema, paths):
    r = s.node("schema.mjs", schema, *paths)
    check(r.status == 0 and r.out == "", "%s: %s %s" % (os.path.basename(schema), r.out[-600:], r.err[-300:]))


def collapse(text):
    """Ticks by stack, root first, as FlameGraph's stackcollapse-perf.pl finds them: sums of periods. Its expressions."""
    sums, stack, period = {}, [], 0
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        event = re.match(r"(\S.+?)\s+(\d+)/(\d+)\s+", line)
        frame = re.match(r"\s*(\w+)\s*(.+) \((\S*)\)", line)
        if not line:
            if stack:
                key = tuple(reversed(stack))
                sums[key] = sums.get(key, 0) + period
            stack = []
        elif frame and line[0] == "\t":
            stack.append(re.sub(r"\+0x[\da-f]+$", "", frame[2]))
        else:
            check(event, "no event: " + line[:200])
            period = int(re.search(r":\s*(\d+)\s+cpu-clock:$", line)[1])
    return {k: v // 1000000 for k, v in sums.items() if v}


def folded(trace, *filters):
    out = {}
    for line in shared.export(trace, "--format", "collapsed", *filters).out.splitlines():
        stack, n = line.rsplit(" ", 1)
        out[tuple(stack.split(";"))] = int(n)
    return out


def chart(j):
    """Self time of each function, from the slices: what is not in the slices inside."""
    selfs, by_thread = {}, {}
    for e in j["traceEvents"]:
        if e["ph"] == "X":
            by_thread.setdefault((e["pid"], e["tid"]), []).append(e)
    for events in by_thread.values():
        events.sort(key=lambda e: (e["ts"], -e["dur"]))         # of equal ones the outer is written first
        stack = []
        for e in events:
            while stack and stack[-1]["ts"] + stack[-1]["dur"] <= e["ts"] + 1e-6:
                stack.pop()
            if stack:
                check(e["ts"] + e["dur"] <= stack[-1]["ts"] + stack[-1]["dur"] + 1e-6, "slices overlap: %s" % e)
                selfs[stack[-1]["name"]] = selfs.get(stack[-1]["name"], 0) - e["dur"]
            selfs[e["name"]] = selfs.get(e["name"], 0) + e["dur"]
            stack.append(e)
    return {k: round(v / 1000) for k, v in selfs.items() if round(v / 1000)}


def add_to(suite):
    t = suite.test

    @t("text.schemas", "speedscope's own schema, and one of the Chrome trace events that are used")
    def schemas():
        own = os.path.join(shared.required(s.npm_dir), "node_modules", "speedscope", "dist", "release", "file-format-schema.json")
        fits(own, [loaded(shared.odd(k), ".speedscope.json")[1] for k in ODD])
        fits(os.path.join(HERE, "chrome-trace.schema.json"), [loaded(shared.odd(k), ".trace.json")[1] for k in ODD])

    @t("text.slices", "the slices of format chrome nest, and have report's ticks; zones are asynchronous slices", True)
    def slices():
        for trace in [shared.odd(k) for k in ODD] + [shared.golden("threads"), shared.golden("recursion")]:
            j, _ = loaded(trace, ".trace.json")
            d = shared.differ(chart(j), {r["name"]: r["self_ticks"] for r in s.rows(trace)})
            check(not d, "%s: %s" % (trace, d))
            check(sum(x["weight"] for x in j["samples"]) == shared.ticks(trace), "weights of %s" % trace)
        events = loaded(shared.odd("mixed"), ".trace.json")[0]["traceEvents"]
        zones = [(e["ph"], e["name"]) for e in events if e["ph"] in "be"]
        check(zones == [("b", "outer"), ("b", "inner"), ("e", "inner"), ("e", "outer")], "zones: %s" % zones)

    @t("text.perf", "periods of perf-script sum to report's ticks by stack, as stackcollapse-perf.pl reads them", True)
    def perf():
        for k in ("one", "mixed", "deep", "heavy"):
            trace = shared.odd(k)
            want = {tuple(re.sub(r"\+0x[\da-f]+$", "", f) if f != "lpeg.so+0x1234" else f for f in stack): n
                    for stack, n in folded(trace).items()}
            d = shared.differ(collapse(loaded(trace, ".linux-perf.txt")[0]), want)
            check(not d, "%s: %s" % (k, d))
        for k in ("names", "empty"):
            sums = collapse(loaded(shared.odd(k), ".linux-perf.txt")[0])
            check(sum(sums.values()) == shared.ticks(shared.odd(k)), "%s: %s" % (k, sum(sums.values())))

    @t("text.deep", "speedscope's stacks are at most 2001 frames, with the middle left out; others are whole", True)
    def deep():
        trace = shared.odd("deep")
        j, _ = loaded(trace, ".speedscope.json")
        names = [f["name"] for f in j["shared"]["frames"]]
        for stack in j["profiles"][0]["samples"]:
            check(len(stack) == 2001 and names[stack[1000]] == "[middle left out]", "a stack of %d" % len(stack))
        j, _ = loaded(trace, ".trace.json")
        depth, node = 0, str(max(x["sf"] for x in j["samples"]))
        while node:
            depth, node = depth + 1, str(j["stackFrames"][node].get("parent", ""))
        check(depth == 10000, "chrome: %d frames" % depth)

    @t("text.spool", "many samples: the same sums, by way of a temporary file; none is left")
    def spool():
        trace = s.tmpfile(".data")
        s.run([os.path.join(s.build_dir(), "tests", "gen", "gen_trace"), "--samples", "50000", "--stacks", "2000",
               "-o", trace]).ok()
        d = s.tmpfile(".tmp")
        os.mkdir(d)
        for suffix in (".speedscope.json", ".firefox.json"):
            r = s.run([s.luasample(), "export", "-i", trace, "-o", s.tmpfile(suffix)], env=dict(os.environ, TMPDIR=d))
            check(r.status == 0 and not os.listdir(d), "%s: %d %s %s" % (suffix, r.status, r.err, os.listdir(d)))
            r = s.run([s.luasample(), "export", "-i", trace, "-o", s.tmpfile(suffix)],
                      env=dict(os.environ, TMPDIR=d + "/no"))
            check(r.status == 0 and r.err == "", "TMPDIR that is not there: %d %s" % (r.status, r.err))
        j, _ = loaded(trace, ".speedscope.json")
        got = sum(sum(p["weights"]) for p in j["profiles"]) // 1000000
        check(got == shared.ticks(trace), "%d ticks, not %d" % (got, shared.ticks(trace)))
