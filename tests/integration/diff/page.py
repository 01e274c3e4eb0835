"""diff --html: the page has the ticks of both sides, frame by frame as diff itself matches them."""
import base64
import json
import os
import re
import sys

import support as s
from made import Program, diff, rows, trace
from support import check

sys.path.append(os.path.join(s.TESTS, "integration", "page"))

OLD = Program([("main", 0, 1), ("parse", 10, 2), ("hash", 30, 3), ("gone", 70, 6)])
NEW = Program([("main", 0, 9), ("parse", 12, 2), ("hash", 33, 33), ("fresh", 90, 7)], text_hash=78)


def numbers(text):
    """Varints in base64."""
    out, shift, v = [], 0, 0
    for byte in base64.b64decode(text + "=" * (-len(text) % 4)):
        v |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            out.append(v)
            shift = v = 0
    return out


def data_of(path):
    with open(path, encoding="utf-8") as f:
        return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', f.read(), re.S).group(1))


def page_of(*args, status=0):
    path = s.tmpfile(".html")
    return diff("--html", "-o", path, *args, status=status), path


def both():
    zones = ["zone 0 %s" % b"old zone".hex()]
    a = trace(OLD, [(["main", ("parse", 14)], 400), (["main", "parse", "hash"], 300, {"zone": 1}), (["main", "gone"], 100)],
              extra=zones, threads=("main", "worker"))
    b = trace(NEW, [(["main", ("parse", 16)], 400), (["main", "parse", "hash"], 900), (["main", "fresh"], 50, {"thread": 2})],
              threads=("main", "other"))
    return a, b


def add_to(suite):
    @suite.test("html", "the ticks of both sides are in the page", quick=True)
    def html():
        a, b = both()
        r, path = page_of(a, b)
        d = data_of(path)
        check(not r.err and not r.out, r.err + r.out)
        check(sum(numbers(d["base"]["ticks"])) == 800 and sum(numbers(d["cells"]["ticks"])) == 1350, "ticks")
        check(d["base"]["title"] == a and d["title"] == b, (d["title"], d["base"]["title"]))
        text = json.dumps(d)
        for name in ("old zone", "gone", "fresh", "other"):
            check(name in text, "%s is not in the page" % name)
        r, path = page_of("--vmstate", "interpreted", "--exclude", "gone", a, b)
        check(sum(numbers(data_of(path)["base"]["ticks"])) == 700, "filters hold for the base")
        page_of("--fail-above", "5%", a, b, status=1)
        page_of("--vmstate", "gc", a, b, status=1)
        for args in (["--tree"], ["--by", "line"], ["--format", "csv"], ["--json"]):
            check("--html excludes" in page_of(*args, a, b, status=129)[0].err, args)

    @suite.test("html-runs", "several recordings of each side are joined; different intervals cannot be", quick=True)
    def runs():
        a, b = both()
        d = data_of(page_of(a, a, a, "--", b, b)[1])
        check(sum(numbers(d["base"]["ticks"])) == 2400 and sum(numbers(d["cells"]["ticks"])) == 2700, "ticks")
        check(d["title"].endswith("and 1 more") and d["base"]["title"].endswith("and 2 more"), d["title"])
        quick = trace(OLD, [(["main", "parse"], 100)], interval=300000)
        check("different length" in page_of(a, quick, "--", b, status=1)[0].err, "intervals")
        check(sum(numbers(data_of(page_of(quick, b)[1])["base"]["ticks"])) == 100, "one of each side may differ")

    @suite.test("html-browser", "the changes that Chromium shows are those of diff --total")
    def browser():
        from browser import READY, Browser
        b = Browser()
        try:
            hostile = Program([("main", 0, 1), ("</script><b>", 10, 2), ("\u202e|x", 30, 3), ("c" * 3000, 50, 4)])
            two = [trace(hostile, [(["main", n], c) for n, c in zip(("</script><b>", "\u202e|x", "c" * 3000), counts)])
                   for counts in ((400, 300, 200), (400, 600, 100))]
            for pair in (both(), two):
                b.open(page_of(*pair)[1])
                check(not b.problems and b.js(READY), b.problems)
                shown = {r[0]: r[1:] for r in b.js("luasamplePage.table.all.map(r => [r.name, r.change, r.baseTotal])")}
                want = rows("--total", *pair)
                self_ = rows(*pair)
                names = {n for n, r in want.items() if r["after"]}
                check(names <= set(shown), "rows %s, not %s" % (sorted(shown), sorted(names)))
                for n in names:
                    change = self_[n]["difference"] if n in self_ else 0
                    check(abs(shown[n][0] - change) < 2e-6, "%s changed by %s, not %s" % (n, shown[n][0], change))
                    check(shown[n][1] == want[n]["before_ticks"][0], "%s: %s" % (n, shown[n]))
        finally:
            b.close()
