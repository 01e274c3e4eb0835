"""Format pprof: decoded by pprof-format, and used with go tool pprof. Imported by run.py."""
import collections
import json
import os
import re

import shared
import support as s
from support import check

KEYS = [("vmstate", "vmstate"), ("zone", "zone-path"), ("thread", "thread"), ("vm", "vm"), ("coroutine", "coroutine")]
FILTERS = [(), ("--vmstate", "interpreted,gc"), ("--time", "20%,60%"), ("--function", "*o*")]


def decode(path):
    p = json.loads(s.node("pprof.mjs", path).ok().out)
    check(not any(f["system"] for f in p["functions"]), "a system name, which go tool pprof takes for C++")
    check(p["first"] == "", "string 0 is %r" % p["first"])
    for what in ("mappings", "locations", "functions"):
        ids = [x["id"] for x in p[what]]
        check(sorted(ids) == list(range(1, len(ids) + 1)), "ids of %s: %s" % (what, ids[:20]))
    for l in p["locations"]:
        check(len(l["lines"]) == 1, "location %d has %d lines" % (l["id"], len(l["lines"])))
        check(1 <= l["mapping"] <= len(p["mappings"]), "location %d: mapping %d" % (l["id"], l["mapping"]))
        check(1 <= l["lines"][0][0] <= len(p["functions"]), "location %d: function %d" % (l["id"], l["lines"][0][0]))
    p["function_of"] = {f["id"]: f for f in p["functions"]}
    p["location_of"] = {l["id"]: l for l in p["locations"]}
    for x in p["samples"]:
        check(x["locations"] and all(i in p["location_of"] for i in x["locations"]), "locations %s" % x["locations"])
        check(len(x["values"]) == 2, "values %s" % x["values"])
    return p


def name(p, location):
    return p["function_of"][p["location_of"][location]["lines"][0][0]]["name"]


def sums(p):
    """Self and total ticks by function."""
    own, total = collections.Counter(), collections.Counter()
    for x in p["samples"]:
        own[name(p, x["locations"][0])] += x["values"][0]
        for f in {name(p, l) for l in x["locations"]}:
            total[f] += x["values"][0]
    return own, total


def compare(trace, filters):
    r = shared.export(trace, *filters, to=".pb.gz")
    p, rows = decode(r.path), shared.report(trace, *filters)["rows"]
    what = "%s %s: " % (os.path.basename(trace), " ".join(filters))
    for field, got in zip(("self_ticks", "total_ticks"), sums(p)):
        wrong = shared.differ(got, {x["function"]: x[field] for x in rows})
        check(not wrong, what + field + ": " + wrong)
    period = p["period"][2]
    check(all(x["values"][1] == x["values"][0] * period for x in p["samples"]), what + "cpu is not ticks * period")
    for key, by in KEYS:
        got = collections.Counter()
        for x in p["samples"]:
            for k, v in x["labels"]:
                got[v] += x["values"][0] if k == key else 0
        want = collections.Counter()
        for x in shared.report(trace, *filters, "--by", by)["rows"]:
            want[x["name"]] += x["self_ticks"]          # zones of empty names have the path of the zone around them
        for none in ("(none)", "(not known)", "main", ""):      # have no label, or not all of them
            want.pop(none, None)
            got.pop(none, None)
        wrong = shared.differ(got, want)
        check(not wrong, what + "label " + key + ": " + wrong)


class Go:
    """go tool pprof, offline."""
    def __init__(self):
        # Debian's brings its pprof; a newer one that is first on PATH compiles it first, in every run, for 40 s of CPU time.
        self.go, self.home = "/usr/bin/go" if os.access("/usr/bin/go", os.X_OK) else s.need("go"), s.tmpdir()
        s.need("dot")

    def __call__(self, *args):
        env = dict(os.environ, HOME=self.home, PPROF_TMPDIR=self.home, PPROF_BINARY_PATH=self.home, GOFLAGS="-mod=mod",
                   GOTOOLCHAIN="local", GOPROXY="off", LC_ALL="C.UTF-8")
        r = s.run([self.go, "tool", "pprof", *args], env=env, cwd=self.home).ok()
        return r.out

    def top(self, *args, index="samples"):
        """{function: flat} in ticks."""
        text = self("-top", "-sample_index=" + index, "-nodefraction=0", "-nodecount=100000", *args)
        rows = re.findall(r"^ *(-?\d+) +-?[\d.e-]+% +-?[\d.e-]+% +(-?\d+) +-?[\d.e-]+% +(.*?) *$", text, re.M)
        return {f: int(flat) for flat, _, f in rows}, text


def add_to(suite):
    t = suite.test

    @t("pprof.format", "pprof-format decodes it; sums are those of report, with filters", True)
    def decoded():
        for trace in shared.synthetic():
            for filters in FILTERS if "app" in trace or "mixed" in trace else FILTERS[:1]:
                if shared.ticks(trace, *filters):
                    compare(trace, filters)

    @t("pprof.events", "counts and ticks at once: each is a type of value, with the sums of report", True)
    def events():
        lj = s.luajit()
        r = s.record([lj.program, os.path.join(s.TESTS, "bench", "programs", "richards.lua"), "10"], "-e", "instructions,calls,cpu",
                     env=lj.environ()).ok()
        path, go = s.tmpfile(".pb.gz"), Go()
        s.run([s.luasample(), "export", "-i", r.trace, "--event", "cpu,calls,instructions", "-o", path]).ok()
        for event, index in (("calls", "calls"), ("instructions", "instructions"), ("cpu", "samples")):
            got = {k: v for k, v in go.top("-unit=count", path, index=index)[0].items() if v}
            want = {x["function"]: x["self_ticks"] for x in shared.report(r.trace, "--event", event, "--inlined")["rows"]
                    if x["self_ticks"]}
            check(want and got == want, "%s: %s, not %s" % (event, got, want))

    @t("pprof.fields", "types, times, mappings, build ids, addresses, lines", True)
    def fields():
        p = decode(shared.export(shared.odd("mixed"), to=".pb.gz").ok().path)
        check(p["types"] == [["samples", "count"], ["cpu", "nanoseconds"]], "types %s" % p["types"])
        check(p["period"] == ["cpu", "nanoseconds", 1000000] and p["default"] == "cpu", "period %s" % p["period"])
        check(p["time"] == "1700000000000000000", "time %s" % p["time"])
        check(p["duration"] == shared.ticks(shared.odd("mixed")) * 1000000 - 20 * 1000000, "duration %s" % p["duration"])
        part = decode(shared.export(shared.odd("mixed"), "--time", "10ms,35ms", to=".pb.gz").ok().path)
        check((part["time"], part["duration"]) == ("1700000000010000000", 25000000), "with --time: %s %s" % (
            part["time"], part["duration"]))
        check(any("luajit odd.lua" in c for c in p["comments"]), "comments %s" % p["comments"])
        files = {m["file"]: m for m in p["mappings"]}
        check(p["mappings"][0]["file"] == "/usr/bin/luajit" and all(m["named"] for m in p["mappings"]), "mapping 1")
        lpeg = files["/usr/lib/lpeg.so"]
        check((lpeg["start"], lpeg["limit"], lpeg["offset"]) == (0x7f0000001000, 0x7f0000009000, 0x1000), "lpeg %s" % lpeg)
        check(lpeg["build_id"] == "deadbeef0001" and files["/usr/lib/libc.so.6"]["build_id"] == "", "build ids")
        at = {name(p, l["id"]): l for l in p["locations"]}
        check(at["lpeg.so+0x1234"]["mapping"] == lpeg["id"] and at["lpeg.so+0x1234"]["address"] == 0x7f0000001234, "lpeg")
        check(at["memcpy"]["address"] == 0x7f1000002000, "memcpy at %x" % at["memcpy"]["address"])
        check(at["string.format"]["mapping"] == 1 and at["string.format"]["address"] == 0, "string.format")
        lines = sorted(l["lines"][0][1] for l in p["locations"] if name(p, l["id"]) == "work")
        check(lines == [0, 12, 13], "lines of work: %s" % lines)
        work = [f for f in p["functions"] if f["name"] == "work"][0]
        check((work["file"], work["line"]) == ("/srv/mixed.lua", 10), "work: %s" % work)

    @t("pprof.heavy", "ticks beyond 32 bits", True)
    def heavy():
        p = decode(shared.export(shared.odd("heavy"), to=".pb.gz").ok().path)
        check(sums(p)[0] == {"heavy": 5 * (2**32 - 1)}, "sums %s" % (sums(p),))

    @t("pprof.go", "go tool pprof -top, -raw, -tags, -traces, -svg, -diff_base")
    def go():
        tool = Go()
        for trace in (shared.native(), shared.workers(), shared.odd("mixed"), shared.odd("names")):
            path, rows = shared.export(trace, to=".pb.gz").ok().path, shared.report(trace)["rows"]
            got, text = tool.top(path)
            check(sum(got.values()) == shared.ticks(trace), "-top has " + text[:400])
            wrong = shared.differ(got, {x["function"].strip(): x["self_ticks"] for x in rows})
            check(not wrong, "-top: " + wrong)
            raw = tool("-raw", path)
            check(sum(int(n) for n in re.findall(r"^ +(\d+) +\d+: ", raw, re.M)) == shared.ticks(trace), "-raw: sum")
            check("PeriodType: cpu nanoseconds" in raw and "Period: 1000000" in raw, "-raw: " + raw[:200])
            if trace != shared.odd("names"):            # pprof of Go 1.19 gives dot labels with quotes as they are
                check("<svg" in tool("-svg", path), "-svg")
            check("-----------+" in tool("-traces", path), "-traces")
            same, text = tool.top("-diff_base", path, path)
            check(not any(same.values()), "-diff_base with itself: " + text[:400])
        tags = tool("-tags", "-sample_index=samples", shared.export(shared.odd("mixed"), to=".pb.gz").path)
        for key, n in (("outer;inner", 25), ("outer", 30), ("work #3", 30), ("Garbage Collector", 10),
                       ("worker (4301)", 41)):
            check(re.search(r"^ +%d(?:\.0)? \( *[\d.]+%%\): %s$" % (n, re.escape(key)), tags, re.M),
                  "-tags: no %s: %s" % (key, tags))
        part = shared.export(shared.odd("mixed"), "--vmstate", "gc", to=".pb.gz").path
        less, text = tool.top("-diff_base", part, shared.export(shared.odd("mixed"), to=".pb.gz").path)
        check(sum(less.values()) == shared.ticks(shared.odd("mixed")) - 10, "-diff_base: " + text[:400])

    @t("pprof.native", "a recording: build ids of the mapped files, filters and --by", True)
    def native():
        p = decode(shared.export(shared.native(), to=".pb.gz").ok().path)
        check(len(p["mappings"]) >= 2, "mappings %s" % p["mappings"])
        check(any(re.fullmatch("[0-9a-f]{40}", m["build_id"]) for m in p["mappings"]), "no build id: %s" % p["mappings"])
        for l in p["locations"]:
            m = p["mappings"][l["mapping"] - 1]
            check(not l["address"] or m["start"] <= l["address"] < m["limit"], "%x is not in %s" % (l["address"], m))
