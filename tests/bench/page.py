"""The part of the bench that opens a page of report --html in Chromium. Used by bench.py."""
import os
import sys
import time

import measure as m
import support as s

sys.path.insert(0, os.path.join(s.TESTS, "integration", "page"))
import browser

OPEN_TARGET = 2.0                       # seconds until a page of a million samples is drawn
TIMED = """(() => { const p = luasamplePage, ret = {}, n = p.profile.time.buckets;
        const time = (name, fn) => { const t = performance.now(); fn(); ret[name] = performance.now() - t; };
        time('selection', () => { p.state.from = n >> 2; p.state.to = n >> 1; p.recount(); });
        time('inverse', () => p.set({ tree: 'inverse' }));
        time('lines', () => p.set({ key: 'line' }));
        time('search', () => p.search('function1'));
        ret.cells = p.profile.cells.stack.length; ret.stacks = p.profile.stacks.n;
        return ret; })()"""


def part_page(luajit, a):
    """report --html: size, and how fast Chromium opens a page of a million samples"""
    gen = os.path.join(s.build_dir(), "tests", "gen", "gen_trace")
    if not os.path.exists(gen):
        print("page: %s is not built: part left out\n" % gen)
        return
    trace, page = s.tmpfile(".data"), s.tmpfile(".html")
    try:
        b = browser.Browser()
    except s.Skip as e:
        print("page: %s: part left out\n" % e)
        return
    for functions, stacks in ((300, 5000), (2000, 50000), (5000, 300000)):
        m.quiet([gen, "-o", trace, "--samples", "1000000", "--functions", str(functions), "--stacks", str(stacks), "--threads",
                 "4", "--depth", "60"])
        start = time.monotonic()
        m.quiet([s.luasample(), "report", "-i", trace, "--html", "-o", page])
        made = time.monotonic() - start
        opened = [b.open(page) for _ in range(3)]
        t = b.js(TIMED)
        print("  1 million samples, %7d stacks, %7d cells: made in %5.2f s, %5.2f MiB, open in %5.2f s %s; "
              "selection %4.0f ms, inverse %4.0f ms, lines %4.0f ms, search %4.0f ms" % (
                  t["stacks"], t["cells"], made, os.path.getsize(page) / 2 ** 20, sorted(opened)[1],
                  "ok" if sorted(opened)[1] < OPEN_TARGET else "above", t["selection"], t["inverse"], t["lines"], t["search"]))
    b.close()
    print()
