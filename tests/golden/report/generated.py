#!/usr/bin/python3
"""Sums of report on a generated trace: generated.py LUASAMPLE GEN_TRACE. gen_trace prints what it wrote; views and filters
must say the same, parts must sum to the whole, and all views and exports must agree with each other."""
import json
import os
import subprocess
import sys
import tempfile

wrong = []


def check(what, got, want):
    if got != want:
        wrong.append("%s is %s, should be %s" % (what, got, want))


def main():
    luasample, gen = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory() as d:
        trace = os.path.join(d, "t.data")

        def text(*args):
            p = subprocess.run([luasample, "report", "-i", trace, *args], stdout=subprocess.PIPE, encoding="utf-8")
            return p.stdout

        def view(*args):
            return json.loads(text("--json", *args))

        def ticks(*args):
            return view(*args)["header"]["ticks"]

        def rows(key, *args):
            return {r[key.replace("-path", "")]: r["self_ticks"] for r in view("--by", key, *args)["rows"]}

        made = subprocess.run([gen, "-o", trace, "--samples", "30000", "--functions", "60", "--stacks", "500", "--threads", "3",
                               "--depth", "12", "--losses", "5"], stdout=subprocess.PIPE, check=True, encoding="utf-8")
        truth = json.loads(made.stdout)
        all_ticks = truth["ticks"]
        whole = view()
        check("ticks", whole["header"]["ticks"], all_ticks)
        check("samples", whole["header"]["samples"], truth["samples"])
        check("lost", whole["header"]["lost_ticks"], truth["lost_ticks"])
        functions = rows("function")
        for name, want in truth["top"].items():
            check("self of " + name, functions.get(name), want)
        check("sum of functions", sum(functions.values()), all_ticks)
        for key in ("line", "module", "module-function"):
            check("sum by " + key, sum(r["self_ticks"] for r in view("--by", key)["rows"]), all_ticks)

        states = rows("vmstate")
        names = ("Compiled", "Interpreted", "C code", "Garbage Collector", "JIT Compiler")
        for letter, name, want in zip("NICGJ", names, truth["vmstate"]):
            check("ticks of " + name, states.get(name, 0), want)
            check("--vmstate " + letter, ticks("--vmstate", letter), want)
        check("zones", sorted(rows("zone-path").values()), sorted(t for t in truth["zone"] if t))
        check("threads", sorted(ticks("--thread", str(n)) for n in range(0, 20000) if n in thread_ids(luasample, trace)),
              sorted(truth["thread"]))

        for a, b in (("vmstate", "function"), ("function", "vmstate"), ("zone", "line"), ("function", "line")):
            for r in view("--by", a + "," + b)["rows"]:
                if r["self_ticks"]:
                    check("parts of %s by %s" % (r["name"], b), sum(c["self_ticks"] for c in r["children"]), r["self_ticks"])
        for r in view("--split")["rows"]:
            check("callers of " + r["name"], sum(c["self_ticks"] for c in r.get("children", [])) in (0, r["self_ticks"]) or
                  r["function"] in roots(text), True)

        for filters in ([], ["--function", "module0.function1*"], ["--exclude", "*function7"], ["--vmstate", "gc"],
                        ["--time", "20%,70%"], ["--zone", "(none)"], ["--thread", str(min(thread_ids(luasample, trace))), "--vmstate", "N"]):
            want = ticks(*filters)
            folded = text("--format", "collapsed", *filters)
            check("collapsed with %s" % filters, sum(int(l.rsplit(" ", 1)[1]) for l in folded.splitlines()), want)
            last = text("--format", "callgrind", *filters).splitlines()[-1]
            check("callgrind with %s" % filters, int(last.split()[1]), want)
            for tree in (["--tree"], ["--tree", "--inverse"], ["--tree", "--by", "line"]):
                nodes = view(*tree, *filters)["nodes"]
                check("roots of %s with %s" % (tree, filters), sum(n["total_ticks"] for n in nodes if n["parent"] is None), want)
                check("self in %s with %s" % (tree, filters), sum(n["self_ticks"] for n in nodes), want)
            check("rows with %s" % filters, sum(rows("function", *filters).values()), want)
        parts = [ticks("--time", v) for v in (",25%", "25%,50%", "50%,")]
        check("three parts of the time", sum(parts), all_ticks)
        part, rest = ticks("--function", "*function3"), ticks("--exclude", "*function3")
        check("--function and --exclude", part + rest, all_ticks)
        totals = {r["function"]: r["total_ticks"] for r in whole["rows"]}
        check("total of a function is what --function shows", part, totals["module0.function3"])
    for w in wrong:
        print(w)
    print("%d sums are wrong" % len(wrong))
    return 1 if wrong else 0


_threads = None


def thread_ids(luasample, trace):
    global _threads
    if _threads is None:
        dump = subprocess.run([luasample, "dump", "-i", trace, "--json"], stdout=subprocess.PIPE, encoding="utf-8").stdout
        _threads = {r["tid"] for r in json.loads(dump) if r["record"] == "thread"}
    return _threads


_roots = None


def roots(text):
    """Functions at the root of a stack: part of their ticks has no caller."""
    global _roots
    if _roots is None:
        _roots = {l.rsplit(" ", 1)[0] for l in text("--format", "collapsed").splitlines() if ";" not in l}
    return _roots


if __name__ == "__main__":
    sys.exit(main())
