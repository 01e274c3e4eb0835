#!/usr/bin/python3
"""Tests of what a program can tell luasample: luasample.h and require "luasample": run.py [--quick] [--list] [NAME...]

Needs the build directory in LUASAMPLE_BUILD (default build/)."""
import collections
import gzip
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
import iprof
import own
import support as s
from support import check, check_near

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
HEADER = os.path.join(ROOT, "libsample", "api", "luasample.h")
EXAMPLE = os.path.join(s.build_dir(), "examples", "example_host")
suite = s.Suite("api")
_once = {}


def once(name, make):
    if name not in _once:
        _once[name] = make()
    return _once[name]


def module():
    return once("module", lambda: s.record_lua("api.lua").ok())


def example():
    return once("example", lambda: s.record([EXAMPLE]).ok())


def zone_ticks(r, *opts):
    return {row["zone"]: row["self_ticks"] for row in r.rows("--by", "zone-path", "--no-regions", *opts)}


def dumped(trace, kind):
    out = s.run([s.luasample(), "dump", "-i", trace]).ok().out
    return [line for line in out.splitlines() if re.match(r"\d+ 0x\w+ %s " % kind, line)]


@suite.test("zones", "zones of Lua: scoped, popped by errors and by returns, per coroutine", quick=True)
def zones():
    r = module()
    got, want = zone_ticks(r), {"outer": 100, "broken": 60, "pushed": 60, "A": 60, "B": 60, "(none)": 100}
    # it is pushed at once before the error that pops it: a tick can fall there
    check(got.pop("broken;left over", 0) <= 5 and set(got) <= set(want), "zones %s" % got)
    for name, ms in want.items():
        check(0.6 * ms <= got.get(name, 0) <= 1.4 * ms + 10, "%s has %s ticks, not about %d" % (name, got.get(name), ms))
    names = [row["function"] for row in r.rows("--by", "function")]
    check("unseen" not in names and "zoned" in names, "what was paused is there: %s" % names)


@suite.test("returns", "with and without a recording every function returns the same")
def returns():
    stub = os.path.join(ROOT, "libsample", "api", "?.lua")
    lj = s.luajit()
    alone = s.run([lj.program, os.path.join(s.LUA, "api.lua")], env=lj.environ({"LUA_PATH": stub, "LUASAMPLE": ""})).ok().out
    recorded = module().out
    check("off" in alone and "recording" in recorded, alone + recorded)
    check(alone.replace("off", "recording") == recorded, "not the same:\n%s\n%s" % (alone, recorded))


def exported(trace, format_):
    out = s.tmpfile(".json")
    s.run([s.luasample(), "export", "-i", trace, "--format", format_, "-o", out]).ok()
    with open(out) as f:
        return json.load(f)


@suite.test("marks", "marks of Lua and of C are in the trace, in the header and in the profiles of Firefox and Chrome")
def marks():
    for r, names in ((module(), ["begin \1", "42"]), (example(), ["serving", "served"])):
        spans = dumped(r.trace, "span")
        check(len(spans) == 2 and all("event=7" in line and "phase=0" in line for line in spans), spans)
        shown = s.report(r.trace).ok().out
        profile = exported(r.trace, "firefox")
        strings = profile["shared"]["stringArray"]
        seen = [strings[n] for t in profile["threads"]
                for n, phase in zip(t["markers"]["name"], t["markers"]["phase"]) if phase == 0]
        check(seen == [n.replace("\1", "\\x01") for n in names], "marks of the Firefox profile: %s" % seen)
        instants = [e for e in exported(r.trace, "chrome")["traceEvents"] if e["ph"] == "i"]
        check([e["name"] for e in instants] == seen and all(e["s"] == "t" for e in instants), "of Chrome's: %s" % instants)
        check(re.search(r"Marks: .*%s.*%s" % tuple(re.escape(n.replace("\1", "\\x01")) for n in names), shown), shown[:1500])


@suite.test("many-marks", "a program that marks without end fills no disk")
def many_marks():
    r = s.record([s.luajit().program, "-e", "local ls = require 'luasample' for i = 1, 3e5 do ls.mark('frame ' .. i) end"])
    r.ok()
    n = len(dumped(r.trace, "span"))
    check(100 < n <= 65536, "%d marks are kept" % n)
    line = re.search(r"^# Marks: +(\d+) \(.*\): frame 1 at .*, \.\.\.$", s.report(r.trace, "--no-pager").ok().out, re.M)
    check(line and int(line.group(1)) == n and len(line.group()) < 160, "the header has %s" % line)


def counters():
    return once("counters", lambda: s.record_lua("counters.lua").ok())


def exported_text(trace, name):
    out = s.tmpfile(".out")
    s.run([s.luasample(), "export", "-i", trace, "--format", name, "-o", out]).ok()
    with open(out) as f:
        return f.read()


HOSTILE = "</script>\\x1b[31m\\x00x"


@suite.test("counters", "counters: last values are exact, those in between are thinned out, NaN is none", quick=True)
def counter_values():
    r, i = counters(), counters().info()
    by = {c["name"]: c for c in i["counters"] if not c["name"].startswith("Lua ")}
    check(set(by) >= {"loop", "queue", "huge", HOSTILE} and "none" not in by, sorted(by)[:9])
    check(by["loop"]["last"] == by["loop"]["most"] == int(r.out) and by["loop"]["least"] == 1, by["loop"])
    check(20 < by["loop"]["values"] <= i["elapsed_ns"] / 1e6 + 50, "%s in %d ns" % (by["loop"], i["elapsed_ns"]))
    check((by["queue"]["last"], by["queue"]["most"]) == (-7.25, 3) and by["queue"]["values"] >= 4, by["queue"])
    check((by["huge"]["last"], by["huge"]["least"]) == (1e308, -1e308), by["huge"])
    check(len(by) == 128 and all(by["many %d" % n]["last"] == n for n in range(1, 100)), "%d counters" % len(by))
    check("more than 128 counters" in r.err, "the summary does not say that there is no room: " + r.err)
    text = s.run([s.luasample(), "info", "-i", r.trace]).ok().out
    check(re.search(r"^Counters$", text, re.M) and HOSTILE in text and "\x1b" not in text, text[-3000:])
    check(len(dumped(r.trace, "count")) == sum(c["values"] for c in i["counters"]), "dump has other values")


@suite.test("counter-exports", "counters for Chrome and the Firefox Profiler and in JSON lines: each value, no other number")
def counter_exports():
    want = collections.defaultdict(list)
    for line in dumped(counters().trace, "count"):
        want[int(re.search(r"counter=(\d+)", line).group(1))].append(float(re.search(r'value="(.*)"', line).group(1)))
    names = {int(re.search(r"id=(\d+)", line).group(1)): re.search(r'name="(.*)" what=\d+ vm=\d+$', line).group(1)
             for line in dumped(counters().trace, "counter")}
    want = {names[i]: values for i, values in want.items()}

    def finite(text):
        raise s.Fail("a number that is none: " + text)
    chrome, jsonl = collections.defaultdict(list), collections.defaultdict(list)
    for e in json.loads(exported_text(counters().trace, "chrome"), parse_constant=finite)["traceEvents"]:
        if e["ph"] == "C":
            chrome[e["name"]].append(e["args"]["value"])
    check(chrome == want, "chrome: %.300r, not %.300r" % (dict(chrome), want))
    for line in exported_text(counters().trace, "jsonl").splitlines():
        row = json.loads(line, parse_constant=finite)
        if "counter" in row:
            jsonl[row["counter"]].append(row["value"])
    own = {name: values for name, values in want.items() if not name.startswith("Lua ")}         # VMs' heaps are left out
    check(jsonl == own, "JSON lines: %.300r, not %.300r" % (dict(jsonl), own))
    fx = json.loads(exported_text(counters().trace, "firefox"), parse_constant=finite)
    for c in fx["counters"]:
        samples, sums = c["samples"], []
        check(len(samples["time"]) == len(samples["count"]) == samples["length"], c)
        check(c["mainThreadIndex"] < len(fx["threads"]), c)
        check(samples["time"] == sorted(samples["time"]), "times of %s" % c["name"])
        for change in samples["count"]:
            sums.append(change + (sums[-1] if sums else 0))
        if c["name"] != "huge":                 # the change between these two is no number
            check(sums == want[c["name"]], "Firefox: %s: %.200r" % (c["name"], sums))
    check(sorted(c["name"] for c in fx["counters"]) == sorted(want), "counters of the Firefox profile")


@suite.test("counter-merge", "counters of two recordings stay theirs")
def counter_merge():
    r, out = counters(), s.tmpfile(".data")
    s.run([s.luasample(), "merge", "-o", out, r.trace, r.trace]).ok()
    check(s.info(out)["counters"] == r.info()["counters"] * 2, "%.500r" % s.info(out)["counters"])


@suite.test("compiled", "zone calls compile as those of jit.zone do")
def compiled():
    def counts(script, *args):
        out = s.record_lua(script, args=args).ok().out
        return tuple(map(int, re.match(r"traces (\d+) aborts (\d+)", out).groups()))
    hot, seen = counts("zonehot.lua"), []
    for before in range(4):                     # functions that share a hot counter begin traces of their own, which abort
        seen.append(counts("zonecalls.lua", str(before)))
        if seen[-1][0] >= 1 and seen[-1][1] <= hot[1] + 2:
            return
    check(False, "jit.zone %s, luasample %s" % (hot, seen))


def labels():
    return once("labels", lambda: s.record_lua("labels.lua").ok())


def label_ticks(r, key, *opts):
    return {row["label"]: row["self_ticks"] for row in r.rows("--by", key, *opts)}


def check_ticks(got, want):
    more = {name: ticks for name, ticks in got.items() if name not in want}         # of the moments in between
    check(set(want) <= set(got) and sum(more.values()) <= 4, "groups %s, not %s" % (got, sorted(want)))
    for name, ms in want.items():
        check(0.6 * ms - 5 <= got[name] <= 1.4 * ms + 12, "%s has %s ticks, not about %d" % (name, got[name], ms))


@suite.test("labels", "labels of coroutines and their resumers, changed, removed, and gone with the coroutine", quick=True)
def labelled():
    r = labels()
    check_ticks(label_ticks(r, "label:route"), {"(none)": 160, "/list": 60, "/item": 120, "A": 60, "B": 60})
    check_ticks(label_ticks(r, "label:user"), {"(none)": 280, "ann": 180})
    check_ticks(label_ticks(r, "label:short"), {"(none)": 400, "last": 60})
    check_ticks(label_ticks(r, "label:frame"), {"(none)": 400, "7": 60})
    for key, said in ("route", False), ("rout", True):
        err = s.report(r.trace, "--by", "function,label:" + key).err
        check(("--by label:%s: no such label" % key in err) == said, err)
    whole = label_ticks(r, "label")
    check(sum(whole.values()) == sum(label_ticks(r, "label:route").values()), "ticks are not the same: %s" % whole)
    check(len([ticks for ticks in whole.values() if ticks > 4]) == 7 and len(whole) <= 11, whole)


@suite.test("label-filter", "--label selects what --by label shows")
def label_filter():
    r, every = labels(), label_ticks(labels(), "label:route")
    for pattern, names in (("route=/*", ["/list", "/item"]), ("route=A", ["A"]), ("route=(none)", ["(none)"]),
                           ("route", ["/list", "/item", "A", "B"])):
        got = label_ticks(r, "label:route", "--label", pattern)
        check(got == {n: every[n] for n in names}, "--label %s: %s of %s" % (pattern, got, every))
    got = label_ticks(r, "label:route", "--label", "user=ann")
    check(sorted(got) == ["/item", "A", "B"], got)


@suite.test("label-exports", "labels are in JSON lines and in pprof")
def label_exports():
    r, out = labels(), s.tmpfile(".jsonl")
    s.run([s.luasample(), "export", "-i", r.trace, "--format", "jsonl", "-o", out]).ok()
    got = collections.Counter()
    with open(out) as f:
        for row in map(json.loads, f):
            got[row.get("labels", {}).get("route", "(none)")] += row.get("weight", 0)      # counters have none
    check(got == label_ticks(r, "label:route"), "JSON lines: %s" % got)
    out = s.tmpfile(".pb.gz")
    s.run([s.luasample(), "export", "-i", r.trace, "--format", "pprof", "-o", out]).ok()
    with gzip.open(out) as f:
        data = f.read()
    for text in (b"route", b"/list", b"user", b"ann", b"short", b"last"):
        check(b"\x32" + bytes([len(text)]) + text in data, "no string %r in the pprof profile" % text)


def label_markers(trace):
    """{(key, value): ms} of the Firefox profile."""
    profile, got = exported(trace, "firefox"), collections.Counter()
    strings = profile["shared"]["stringArray"]
    for m in [t["markers"] for t in profile["threads"]]:
        for name, start, end, data in zip(m["name"], m["startTime"], m["endTime"], m["data"]):
            if data["type"] == "label":
                got[strings[name], strings[data["value"]]] += end - start
    return got


def label_slices(trace):
    """The same of the Chrome trace: slices of one line do not overlap."""
    open_, got = {}, collections.Counter()
    for e in exported(trace, "chrome")["traceEvents"]:
        if e.get("cat") != "label":
            continue
        what = (e["args"]["key"], e["args"]["value"])
        check(e["name"] == "%s=%s" % what, e)
        if e["ph"] == "b":
            check(e["id"] not in open_, "two slices at a time: %s" % e)
            open_[e["id"]] = what, e["ts"]
        else:
            begun, since = open_.pop(e["id"])
            check(begun == what, "%s ends as %s" % (begun, what))
            got[what] += (e["ts"] - since) / 1000
    check(not open_, "without an end: %s" % open_)
    return got


@suite.test("label-times", "labels are slices of time for Firefox and Chrome, as long as their samples at least")
def label_times():
    r = labels()
    fx, chrome = label_markers(r.trace), label_slices(r.trace)
    check(set(fx) == set(chrome) and {k for k, _ in fx} >= {"route", "user", "frame", "short"}, "%s, %s" % (fx, chrome))
    for (key, value), ms in fx.items():
        check_near("%s=%s" % (key, value), chrome[key, value], ms, 0.01)
    for key in ("route", "user", "frame", "short"):
        ticks = label_ticks(r, "label:" + key)
        check({v for k, v in fx if k == key} == set(ticks) - {"(none)"}, "values of %s: %s, %s" % (key, fx, ticks))
        for value in set(ticks) - {"(none)"}:
            check(fx[key, value] > ticks[value] - 0.01, "%s=%s: %g ms, %d ticks" % (key, value, fx[key, value], ticks[value]))


@suite.test("label-merge", "labels of two recordings stay what they were")
def label_merge():
    r, out = labels(), s.tmpfile(".data")
    s.run([s.luasample(), "merge", "-o", out, r.trace, r.trace]).ok()
    once_ = label_ticks(r, "label:route")
    twice = {row["label"]: row["self_ticks"] for row in s.rows(out, "--by", "label:route")}
    check(twice == {name: 2 * ticks for name, ticks in once_.items()}, "%s, twice %s" % (once_, twice))


@suite.test("label-numbers", "a label that changes all the time costs an entry a sample at most, also beside another")
def label_numbers():
    r = s.record([s.luajit().program, "-e", """local ls, t, i = require "luasample", os.clock() + 0.8, 0
        ls.label("route", "/all")
        repeat i = i + 1 ls.label("frame", i) until os.clock() > t print(i)"""]).ok()
    calls, samples = int(r.out), r.info()["samples"]
    rows = len(dumped(r.trace, "label"))
    check(calls > 5 * samples, "%d calls in %d samples say nothing" % (calls, samples))
    check(100 < rows <= 2 * samples + 20, "%d entries of %d samples" % (rows, samples))
    got = label_ticks(r, "label:route")
    check(got.get("/all", 0) > 0.95 * sum(got.values()), got)


@suite.test("example", "the example host: zones, a pause and marks through luasample.h", quick=True)
def host():
    r = example()
    check("90 requests, 30 failed, recording 1, Lua stack 0" in r.out, r.out)
    got = zone_ticks(r)
    for route, ms in (("list", 120), ("item", 60), ("fail", 30)):
        check_near("GET /" + route, got.get("GET /" + route, 0), ms, 0.4 * ms + 8)
    customers = label_ticks(r, "label:customer")
    none = customers.pop("(none)", 0)           # a tick or two between the requests
    check(none <= 0.1 * sum(customers.values()), "%d ticks without a label: %s" % (none, customers))
    check_ticks(customers, {"0": 70, "1": 70, "2": 70})
    check([(c["name"], c["last"]) for c in r.info()["counters"] if not c["name"].startswith("Lua ")] == [("requests", 90)], "%s" % r.info()["counters"])
    check("warm_up" not in [row["function"] for row in r.rows("--by", "function")], "the pause was sampled")
    i = r.info()        # its time is none in which samples were to come
    rate = i["ticks"] / i["cpu_ns"] * i["asked_interval_ns"]
    check(0.93 < rate < 1.05, "%.2f of the ticks that were asked for, %d in %d ns" % (rate, i["ticks"], i["cpu_ns"]))


@suite.test("example-alone", "the example host does the same when nobody records")
def alone():
    r = s.run([EXAMPLE]).ok()
    check("90 requests, 30 failed, recording 0, Lua stack 0" in r.out, r.out)


@suite.test("openresty", "luasample.openresty: plugins of Kong and APISIX and timers have labels; nothing when nobody records")
def openresty():
    folder = os.path.join(s.ROOT, "libsample", "api")
    args = [os.path.join(folder, "openresty.lua"), folder]
    alone = s.run([s.luajit().program, os.path.join(s.LUA, "openresty.lua"), *args]).ok()
    check(alone.out == "recording false\n" and not alone.err, alone.out + alone.err)
    r = s.record_lua("openresty.lua", args=args).ok()
    check(r.out == "recording true\n", r.out)
    check_ticks(label_ticks(r, "label:plugin"), {"key-auth": 90, "limit-req": 120, "(none)": 50})
    check_ticks(label_ticks(r, "label:route"), {"orders": 90, "7": 120, "(none)": 50})
    check_ticks(label_ticks(r, "label:phase"), {"access": 60, "log": 30, "rewrite": 120, "timer": 50})
    timers = [t for t in label_ticks(r, "label:timer") if t != "(none)"]
    check(len(timers) == 1 and timers[0].startswith("openresty.lua:"), str(timers))


@suite.test("header", "luasample.h compiles alone as C99, C11 and C++, without a warning")
def header():
    for compiler, language, standards in (("cc", "c", ("c99", "c11")), ("c++", "c++", ("c++11", "c++17"))):
        for standard in standards:
            cmd = [s.need(compiler), "-x", language, "-std=" + standard, "-Wall", "-Wextra", "-pedantic", "-Werror",
                   "-fsyntax-only", HEADER]
            r = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=60)
            check(r.returncode == 0, "%s: %s" % (standard, r.stdout))


@suite.test("table", "an agent knows no version that is newer than itself")
def table():
    with open(HEADER) as f:
        text = f.read()
    members = re.findall(r"\(\*(\w+)\)\(", text[text.index("struct luasample_api {"):text.index("struct luasample_found")])
    wrappers = re.findall(r"static inline (?:int|const char \*)\s?luasample_(\w+)\(", text)
    check(sorted(members) == sorted(wrappers) and len(members) >= 8, "%s is not %s" % (members, wrappers))


own.add_to(suite)
iprof.add_to(suite)

if __name__ == "__main__":
    sys.exit(suite.main())
