"""What differs, what is chance, and what is the same function in two recordings."""
import os
import statistics

import support as s
from made import Program, diff, draw, rows, trace
from support import check, check_near

PLAIN = Program([("main", 0, 1), ("parse", 10, 2), ("hash", 30, 3), ("render", 50, 4), ("rare", 70, 5)])
LEAVES = ["parse", "hash", "render", "rare"]


def drawn(seed, shares, n=2000, program=PLAIN, **kw):
    return trace(program, [(["main", leaf], c) for leaf, c in zip(LEAVES, draw(seed, shares, n)) if c], **kw)


def add_to(suite):
    @suite.test("same", "the same shares drawn again: nothing differs, in 30 of 32 pairs at least", quick=True)
    def same():
        traces = [drawn(seed, (50, 30, 19, 1)) for seed in range(64)]
        wrong = sum(any(r["significant"] for r in rows(a, b).values()) for a, b in zip(traces[::2], traces[1::2]))
        check(wrong <= 2, "%d of 32 pairs are said to differ" % wrong)
        self_diff = rows(traces[0], traces[0])
        check(all(r["difference"] == 0 and r["ratio"] == 1 and not r["significant"] for r in self_diff.values()), self_diff)

    @suite.test("slower", "one function slower: it differs, the rest by its share", quick=True)
    def slower():
        a, b = drawn(1, (50, 30, 19, 1)), drawn(2, (50, 60, 19, 1), 2600)
        r = rows(a, b)
        first = next(iter(r.values()))
        check(first["name"] == "hash" and first["significant"] and first["growth"] > 0.1, first)
        check_near("hash before", r["hash"]["before"], 0.30, 0.03)
        check_near("hash after", r["hash"]["after"], 0.46, 0.03)
        check_near("ratio", r["hash"]["ratio"], r["hash"]["after"] / r["hash"]["before"], 1e-4)
        check(not r["rare"]["significant"], r["rare"])
        check(abs(sum(x["difference"] for x in r.values())) < 1e-5, "differences of shares do not cancel out")
        sizes = [abs(x["difference"]) for x in r.values()]
        check(sizes == sorted(sizes, reverse=True), "rows are not sorted: %s" % sizes)

    @suite.test("time", "--normalize time: only what takes longer differs; the whole is compared too", quick=True)
    def time():
        a, b = drawn(1, (50, 30, 19, 1), 2000), drawn(2, (50, 60, 19, 1), 2600)
        j = s.json_of(["diff", "--json", "--normalize", "time", a, b])
        r = {x["name"]: x for x in j["rows"]}
        check([n for n, x in r.items() if x["significant"]] == ["hash"], r)
        check_near("whole", j["whole"]["after"], 2.6, 1e-6)
        check_near("growth of the whole", j["whole"]["growth"], 0.3, 1e-6)
        check_near("growth of hash", r["hash"]["growth"], (r["hash"]["after"] - r["hash"]["before"]) / 2.0, 1e-5)
        none = s.json_of(["diff", "--json", "--normalize", "none", a, b])
        check(none["whole"]["before"] == 2000 and none["whole"]["after"] == 2600, none["whole"])

    @suite.test("weights", "samples of unequal weight count for less than their ticks")
    def weights():
        heavy = [(["main", "parse"], 20, {"weight": 50}), (["main", "hash"], 20, {"weight": 30})]
        light = [(["main", "parse"], 1000), (["main", "hash"], 600)]
        more = [(["main", "parse"], 1000), (["main", "hash"], 800)]
        check(rows(trace(PLAIN, light), trace(PLAIN, more))["hash"]["significant"], "1600 samples do not tell 37% from 44%")
        check(not rows(trace(PLAIN, heavy), trace(PLAIN, more))["hash"]["significant"], "40 samples tell 37% from 44%")

    @suite.test("runs", "several recordings of each side: Welch and Mann-Whitney on the runs' shares", quick=True)
    def runs():
        # what runs differ by is far more than sampling explains: one pair is fooled, four are not
        before = [trace(PLAIN, [(["main", "parse"], 1000 + d), (["main", "hash"], 1000 - d)]) for d in (-150, 60, 150, -60)]
        after = [trace(PLAIN, [(["main", "parse"], 1000 + d), (["main", "hash"], 1000 - d)]) for d in (-80, 160, -140, 90)]
        check(rows(before[0], after[1])["hash"]["significant"], "one pair is not fooled: the test proves nothing")
        check(not rows(*before, "--", *after)["hash"]["significant"], "runs that differ anyway are said to differ")
        check(rows("--test", "counts", before[0], "--", *after[1:2])["hash"]["significant"], "--test counts")
        steady = [trace(PLAIN, [(["main", "parse"], 800 + d), (["main", "hash"], 1200 - d)]) for d in (-12, 20, 3, -9)]
        for test in ("auto", "welch", "mann-whitney"):
            j = s.json_of(["diff", "--json", "--test", test, *before[1:2], *steady[:3], "--", *steady[:3], steady[3]])
            check(not any(r["significant"] for r in j["rows"]), "%s: %s" % (test, j["rows"]))
        base = [trace(PLAIN, [(["main", "parse"], 1000 + d), (["main", "hash"], 1000 - d)]) for d in (-14, 11, 5, -6)]
        for test, named in (("auto", "welch"), ("mann-whitney", "mann-whitney")):
            j = s.json_of(["diff", "--json", "--test", test, *base, "--", *steady])
            r = {x["name"]: x for x in j["rows"]}
            check(j["test"] == named and r["hash"]["significant"], j)
            mean = statistics.mean(t / 2000 for t in r["hash"]["after_ticks"])
            check_near("mean of the runs", r["hash"]["after"], mean, 1e-6)
        check_near("exact p of 4 against 4", r["hash"]["p"], 2 / 70, 1e-6)
        diff("--test", "welch", base[0], steady[0], status=129)

    @suite.test("edited", "functions keep their identity when their file is edited, moved or renamed", quick=True)
    def edited():
        old = Program([("main", 0, 1), ("parse", 10, 2), ("hash", 30, 3), ("?a", 50, 4), ("?b", 60, 5), ("gone", 70, 6)])
        new = Program([("main", 0, 9), ("parse", 12, 2), ("hash", 33, 33), ("?a", 55, 44), ("?b", 65, 5), ("fresh", 90, 7)],
                      text_hash=78)
        def of(p, *names):
            return trace(p, [(["main", n], 400) for n in names])
        r = rows(of(old, "parse", "hash", "?a", "?b", "gone"), of(new, "parse", "hash", "?a", "?b", "fresh"))
        for n in ("parse", "hash", "function@app.lua:55", "function@app.lua:65"):
            check(n in r and r[n]["difference"] == 0, "%s is not matched: %s" % (n, sorted(r)))
        check(r["gone"]["after"] == 0 and r["fresh"]["before"] == 0 and r["fresh"]["ratio"] is None, r)
        moved = Program([("main", 0, 1), ("parse", 10, 2), ("hash", 30, 3)], source="@other/place.lua", text_hash=99)
        r = rows(of(old, "parse", "hash"), of(moved, "parse", "hash"))
        check(r["parse"]["difference"] == 0 and r["hash"]["difference"] == 0, "moved to another file: %s" % r)
        renamed = Program([("main", 0, 1), ("scan", 10, 2)], text_hash=80)
        r = rows(of(old, "parse"), of(renamed, "scan"))
        check(list(r) == ["scan"], "renamed with the same code: %s" % list(r))

    @suite.test("duplicates", "several functions of one name are matched in their order", quick=True)
    def duplicates():
        def of(lines, hashes, counts, text):
            p = Program([("main", 0, 1)], text_hash=text)
            p.functions += [("visit", l, h) for l, h in zip(lines, hashes)]
            return trace(p, [([], c) for c in ()], extra=[
                "samples %d 1 1 0 1 1:1 %d:%d" % (c, i + 2, l) for i, (l, c) in enumerate(zip(lines, counts))])
        r = rows(of((10, 30, 50), (1, 2, 3), (500, 300, 200), 5), of((14, 36, 59), (8, 9, 3), (500, 300, 200), 6))
        check(len(r) == 3 and all(x["difference"] == 0 for x in r.values()), r)

    @suite.test("lines", "--by line: by number in an unchanged file, else from the start of the function", quick=True)
    def lines():
        def of(first, text, counts):
            p = Program([("main", 0, 1), ("work", first, 2)], text_hash=text)
            return trace(p, [(["main", ("work", first + i)], c) for i, c in enumerate(counts)])
        before = of(10, 5, (300, 200, 100))
        same = diff("--by", "line", before, of(10, 5, (300, 200, 100)))
        check("# Lines:" not in same.out and "app.lua:12" in same.out, same.out)
        shifted = diff("--by", "line", before, of(17, 6, (300, 200, 100)))
        check("# Lines:" in shifted.out and "app.lua:19" in shifted.out and "app.lua:12" not in shifted.out, shifted.out)
        r = rows("--by", "line", before, of(17, 6, (300, 300, 100)))
        check(set(r) == {"app.lua:17", "app.lua:18", "app.lua:19"}, r)
        check(r["app.lua:18"]["significant"] and r["app.lua:18"]["difference"] > 0, r)

    @suite.test("keys", "--by every key: the ticks of each side are all there", quick=True)
    def keys():
        extra = ["zone 0 %s" % b"A".hex(), "zone 1 %s" % b"B".hex(), "builtin %s" % b"string.find".hex()]
        def of(n):
            return trace(PLAIN, [(["main", "parse"], n, {"zone": 1}), (["main", "hash"], n // 2, {"state": 3, "thread": 2}),
                                 (["main"], 100, {"zone": 2})],
                         extra=extra + ["samples 50 1 2 0 1 1:1 6:0"], threads=("main", "worker"))
        a, b = of(400), of(900)
        for key in ("function", "module-function", "line", "module", "vmstate", "zone", "zone-path", "thread", "vm",
                    "coroutine", "jit-trace"):
            j = s.json_of(["diff", "--json", "--by", key, a, b])
            for side, total in (("before", 750), ("after", 1500)):
                got = sum(r[side + "_ticks"][0] for r in j["rows"])
                check(got == total, "--by %s: %d ticks %s, not %d" % (key, got, side, total))
            names = [r["name"] for r in j["rows"]]
            check(len(set(names)) == len(names), "--by %s has a name twice: %s" % (key, names))
        check(set(rows("--by", "thread", a, b)) == {"main", "worker"}, "threads are matched by name")
        check(set(rows("--by", "zone", a, b)) == {"A", "B", "(none)"}, "zones")
        crowd = [trace(PLAIN, [(["main", "parse"], 100 * i, {"thread": i}) for i in (1, 2, 3)], threads=("w", "w", n))
                 for n in ("w", "x")]
        r = rows("--by", "thread", *crowd)
        check({n: (x["before_ticks"], x["after_ticks"]) for n, x in r.items()} ==
              {"w": ([100], [100]), "w #2": ([200], [200]), "w #3": ([300], [0]), "x": ([0], [300])}, r)

    @suite.test("total", "--total and --tree: time with callees; --tree --inverse: with callers", quick=True)
    def total():
        def of(n):
            return trace(PLAIN, [(["main", "parse", "hash"], n), (["main", "render"], 500), (["main", "hash"], 200)])
        a, b = of(300), of(600)
        r = rows("--total", a, b)
        whole = r["main chunk@app.lua"]
        check(whole["before"] == whole["after"] == 1, whole)
        check(r["parse"]["before_ticks"] == [300] and r["parse"]["after_ticks"] == [600], r["parse"])
        check(r["hash"]["before_ticks"] == [500] and r["hash"]["after_ticks"] == [800], r["hash"])
        j = s.json_of(["diff", "--json", "--tree", a, b])
        def path(n):
            above = path(j["nodes"][n["parent"]]) if n["parent"] is not None else ()
            return above + (n["name"].replace(" chunk@app.lua", ""),)
        tree = {path(n): (n["before_ticks"][0], n["after_ticks"][0]) for n in j["nodes"]}
        check(tree == {("main",): (1000, 1300), ("main", "parse"): (300, 600), ("main", "parse", "hash"): (300, 600),
                       ("main", "render"): (500, 500), ("main", "hash"): (200, 200)}, tree)
        check([n["id"] for n in j["nodes"]] == list(range(5)), "ids are places in the list")
        j = s.json_of(["diff", "--json", "--tree", "--inverse", a, b])
        tree = {path(n): (n["before_ticks"][0], n["after_ticks"][0]) for n in j["nodes"]}
        check(tree[("hash",)] == (500, 800) and tree[("hash", "parse")] == (300, 600), tree)
        text = diff("--tree", a, b).out.splitlines()
        at = next(i for i, l in enumerate(text) if l.endswith("  main chunk@app.lua"))
        check(text[at + 1].endswith("    parse") and text[at + 2].endswith("      hash"), text)

    @suite.test("filters", "filters hold for all recordings", quick=True)
    def filters():
        def of(n):
            return trace(PLAIN, [(["main", "parse"], n, {"state": 1}), (["main", "hash"], 300, {"state": 3})])
        a, b = of(500), of(900)
        r = rows("--vmstate", "gc", a, b)
        check(set(r) == {"hash"} and r["hash"]["before"] == r["hash"]["after"] == 1, r)
        check(set(rows("--exclude", "hash", a, b)) == {"parse"}, "--exclude")
        check("# Filters:  --function parse" in diff("--function", "parse", a, b).out, "filters are not in the header")
        r = diff("--function", "nothing", a, b, status=1)
        check("none of 800 ticks passes the filters" in r.err and not r.out, r.err)

    @suite.test("intervals", "recordings of different intervals: shares and times are compared, ticks are not", quick=True)
    def intervals():
        a = trace(PLAIN, [(["main", "parse"], 600), (["main", "hash"], 400)])
        b = trace(PLAIN, [(["main", "parse"], 2400), (["main", "hash"], 1600)], interval=250000)
        check(all(r["difference"] == 0 for r in rows(a, b).values()), "shares differ")
        check(all(r["difference"] == 0 for r in rows("--normalize", "time", a, b).values()), "times differ")
        r = diff("--normalize", "none", a, b, status=1)
        check("1000000" in r.err and "250000" in r.err and "--normalize time" in r.err, r.err)

    @suite.test("real", "a program and a slower one, recorded: the slower function is found; with itself nothing is large")
    def real():
        text = """
            local function parse(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
            local function hash(n) local h = 0 for i = 1, n do h = (h * 31 + i) % 65521 end return h end
            for r = 1, 40 do parse(3e6) hash(@) end"""
        def recorded(n, extra=""):
            path = os.path.join(s.tmpfile(".dir"), "app.lua")
            os.mkdir(os.path.dirname(path))
            with open(path, "w") as f:
                f.write(extra + text.replace("@", n))
            return s.record_lua(path).ok().trace
        a, again, b = recorded("3e5"), recorded("3e5"), recorded("9e5", "-- a new first line\n")
        r = diff("--fail-above", "10%", a, b, status=1)
        check("hash grew from" in r.err and "parse grew" not in r.err, r.err)
        check("hash" in r.out, r.out)
        diff("--fail-above", "15%", a, again)
        check(rows(a, b)["hash"]["significant"], "hash does not differ")
        # both texts are there: the line of hash is one row, under its later number
        lines = s.json_of(["diff", "--json", "--by", "line", a, b])
        check(lines["mapped_sources"] == 1 and lines["changed_sources"] == 0, lines)
        both = [r["name"] for r in lines["rows"] if r["before_ticks"][0] > 50 and r["after_ticks"][0] > 50]
        check(sorted(both) == ["app.lua:3", "app.lua:4"], lines["rows"])
        check("matched by their text" in diff("--by", "line", a, b).out, "the header does not tell")
