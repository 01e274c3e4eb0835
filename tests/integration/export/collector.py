"""Heap and collector in the Chrome and Firefox formats: what report --by gc and the trace's counters say. Imported by run.py."""
import collections
import json

import shared
import support as s
from support import check

PHASES = ["", "mark", "atomic", "sweep strings", "sweep", "finalize"]


def read(trace, form, *args):
    r = s.run([s.luasample(), "export", "-i", trace, "--format", form, *args]).ok()
    return json.loads(r.out)


def chrome_slices(events):
    """{id: [(name, begin, end)]} in us; each begins where the one before has ended, or later."""
    slices, opened = collections.defaultdict(list), {}
    for e in events:
        if e.get("cat") != "collector":
            continue
        if e["ph"] == "b":
            check(e["id"] not in opened, "%s begins within another" % e)
            opened[e["id"]] = e
        else:
            begin = opened.pop(e["id"])
            check(begin["name"] == e["name"] and begin["ts"] < e["ts"], "%s to %s" % (begin, e))
            last = slices[e["id"]][-1][2] if slices[e["id"]] else 0
            check(last <= begin["ts"], "%s begins before %s us, the end of the one before" % (begin, last))
            slices[e["id"]].append((e["name"], begin["ts"], e["ts"]))
    check(not opened, "never ended: %s" % opened)
    return slices


def firefox_slices(profile):
    names = profile["shared"]["stringArray"]
    return [(names[m["name"][i]], m["startTime"][i] * 1000, m["endTime"][i] * 1000)
            for m in (thread["markers"] for thread in profile["threads"])
            for i in range(m["length"]) if m["data"][i]["type"] == "collector"]


def expected(chrome):
    """Slices by the phase counters, but the last of each, whose end no counter has."""
    series = collections.defaultdict(list)
    for e in chrome:
        if e["ph"] == "C" and e["name"].startswith("Lua collector: phase"):
            series[e["pid"], e["name"]].append((e["ts"], e["args"]["value"]))
    return [("collector: " + PHASES[int(phase)], ts, then) for values in series.values()
            for (ts, phase), (then, _) in zip(values, values[1:]) if phase and ts < then]


def compare(trace):
    chrome, firefox = read(trace, "chrome")["traceEvents"], read(trace, "firefox")
    slices = chrome_slices(chrome)
    flat = sorted(x for one in slices.values() for x in one)
    want = sorted(expected(chrome))
    check(want and not set(want) - set(flat) and len(flat) - len(want) <= len(slices),
          "%d slices in %d lines, the counters have %d; lacking: %.300s" % (
              len(flat), len(slices), len(want), sorted(set(want) - set(flat))))
    other = sorted((name, round(a, 3), round(b, 3)) for name, a, b in firefox_slices(firefox))
    check(other == flat, "Firefox has %d markers, Chrome %d slices" % (len(other), len(flat)))
    head = s.json_of(["report", "-i", trace, "--by", "gc", "--json"])["header"]
    heaps = [e["args"]["value"] for e in chrome if e["ph"] == "C" and e["name"].startswith("Lua heap")
             and "threshold" not in e["name"]]
    check(max(heaps) == head["heap_peak_bytes"] > 0, "peak %s, report has %s" % (max(heaps), head["heap_peak_bytes"]))
    levels, cycles = [], 0
    for c in firefox["counters"]:
        level = 0
        values = [level := level + change for change in c["samples"]["count"]]
        if c["name"].startswith("Lua heap") and "threshold" not in c["name"]:
            levels += values
        elif c["name"].startswith("Lua collector: cycles"):
            cycles += values[-1] - values[0]
    check(max(levels) == head["heap_peak_bytes"], "Firefox: peak %s, report has %s" % (max(levels), head["heap_peak_bytes"]))
    check(cycles == head["gc_cycles"] > 0, "Firefox: %s cycles, report has %s" % (cycles, head["gc_cycles"]))
    return slices


def add_to(suite):
    t = suite.test

    @t("collector.phases", "heap and phases for Perfetto and Firefox: peak and cycles of report --by gc, slices of the counters")
    def phases():
        check(len(compare(s.record_lua("marked.lua", interval="1ms").ok().trace)) == 1, "more than one VM")

    @t("collector.vms", "VMs of one process have a line each, though they collect at once")
    def vms():
        check(len(compare(shared.workers())) > 1, "one VM alone has phases")

    @t("collector.part", "a part of the time has the phases of that part")
    def part():
        trace = s.record_lua("marked.lua", interval="1ms").ok().trace
        whole = [x for v in chrome_slices(read(trace, "chrome")["traceEvents"]).values() for x in v]
        end = max(x[2] for x in whole) / 2
        some = [x for v in chrome_slices(read(trace, "chrome", "--time", "0us,%dus" % end)["traceEvents"]).values() for x in v]
        check(0 < len(some) < len(whole) and max(x[2] for x in some) <= int(end) + 0.001, "%d of %d slices, until %s of %s" % (
            len(some), len(whole), max(x[2] for x in some), end))
