"""Traces that are empty, odd or hostile: the page opens, says what there is, and names stay text. Imported by run.py."""
import json
import os
import sys

import browser
import numbers_shown
import shared
import support as s
from support import check

sys.path.insert(0, os.path.join(s.TESTS, "reader"))
try:
    import crafted as c
    import xxhash as _                  # which it needs
except ImportError:
    c = None

NAMES = [b"</script><img src=x onerror=\"globalThis.hacked = 1\">", b"\"'`${globalThis.hacked = 1}&lt;b&gt;\\u003cb",
         b"<!--<script>", b"\0\1\x1b[31m\r\n\t", "\u202eevil\u202c\u2066\u200b\ufeff".encode(), b"\xff\xfe\xc3(",
         b"__proto__", b"constructor", "\u4e2d\u6587\U0001f525 \u0627\u0644".encode(), b"n" * 65536, b"x" * 65536]
SHOWN = ["</script><img src=x onerror=\"globalThis.hacked = 1\">", "\"'`${globalThis.hacked = 1}&lt;b&gt;\\u003cb",
         "<!--<script>", "\\x00\\x01\\x1b[31m\\r\\n\\t", "\\u202eevil\\u202c\\u2066\\u200b\\ufeff", "\\xff\\xfe\\xc3(",
         "__proto__", "constructor", "\u4e2d\u6587\U0001f525 \u0627\u0644"]


def need_crafted():
    if not c:
        browser.missing("python3-xxhash is not installed")


def hostile_trace():
    """A function, zone, thread and label of each name, a source of such lines; each function calls the next."""
    need_crafted()
    n, source = len(NAMES), s.tmpfile("</script>.lua")
    os.makedirs(os.path.dirname(source), exist_ok=True)
    text = b"\n".join(NAMES[:3] + [b"--[==[ long", b"\xff\tx \x1b[0m ]==] end 'a\\'b' 0x1F"] + NAMES[4:])
    with open(source, "wb") as f:
        f.write(text)
    f = c.File().definitions(
        c.strings(1, b"@" + os.fsencode(source), *NAMES), c.one(c.SOURCE, 1, 1, 0, len(text), c.xxh64(text)),
        *[row for i in range(n) for row in (
            c.one(c.FUNCTION, i + 1, 1, 0, 1, i + 1, i + 1), c.one(c.NAME, 0, i + 1, 2, i + 2),
            c.one(c.LOCATION, i + 1, i + 1, i + 1), c.one(c.STACK, i + 1, i, i + 1), c.one(c.ZONE, i + 1, i, i + 2),
            c.one(c.THREAD, i + 1, 0, i + 7, i + 2), c.one(c.LABEL, i + 1, 0, i + 2, i + 2))])
    f.samples(*[{1: 1, 2: i + 1, 5: i + 1, 6: i + 1, 9: 16 * i, 10: i + 1, 13: i + 1} for i in range(n)])
    return f.write()


def crafted_trace(*rows):
    need_crafted()
    f = c.base()
    return (f.samples(*rows) if rows else f).write()


def deep_trace(depth):
    """One stack in which two functions call each other, and samples at many depths of it."""
    need_crafted()
    f = c.base().definitions(c.record(c.STACK, 3, depth, c.column(1, c.VARINT, [i + 2 for i in range(depth)]),
                                      c.column(2, c.VARINT, [i % 2 + 1 for i in range(depth)])))
    return f.samples(*[(2 + depth * (i + 1) // 50, 1) for i in range(50)]).write()


def opens(trace, *args, status=0):
    b = shared.opened(shared.page_of(trace, *args, status=status))
    for key in ("i", "f", "c", "u", "i", "ArrowDown", "Enter", "Escape"):
        b.key(key)
    for key in ("line", "module", "function"):
        b.js("luasamplePage.set({ key: '%s' })" % key)
    b.js("luasamplePage.set({ side: 'calls' })")
    b.js("luasamplePage.set({ side: 'jit' })")
    for i in range(b.js("(luasamplePage.profile.jit || { traces: [] }).traces.length")):
        b.js("luasamplePage.jit.openTrace(%d)" % i)
    b.js("luasamplePage.jit.openTrace(-1)")
    b.js("luasamplePage.set({ side: 'source' })")
    x, y, w, _ = b.place("#time-canvas")
    b.drag(x + 0.2 * w, x + 0.7 * w, y + 30)
    text = b.js("document.body.innerText")
    check("NaN" not in text and "undefined" not in text and "Infinity" not in text, "numbers that are none: %.300r" % text)
    shared.is_fine(b)
    return b


def add_to(suite):
    t = suite.test

    @t("bad.names", "names of tags, quotes, control and bidi characters, 64 KiB, no UTF-8: all are text")
    def names():
        trace = hostile_trace()
        page = shared.page_of(trace)
        text = shared.text_of(page)
        check(text.count("</script>") == 2, "a name ends a script")
        b = opens(trace)
        b.js("luasamplePage.selectTime(0, luasamplePage.profile.time.buckets)")
        b.settle()
        check(b.js("globalThis.hacked") is None and b.js("document.images.length") == 0, "a name was run")
        shown = b.js("Array.from(document.querySelectorAll('.tr .c-name'), e => e.textContent)") + \
            b.js("luasamplePage.profile.functions.map(f => f.name)")
        for name in SHOWN:
            check(any(name in x for x in shown), "%r is not shown" % name)
        for kind in ("zone", "thread", *b.js("luasamplePage.profile.labels.map(l => l.column)")):
            b.js("luasamplePage.set({ color: %s })" % json.dumps(kind))
            b.settle()
        listed = b.js("document.getElementById('pick-label').textContent")
        check("__proto__" in listed and len(listed) < 2000, "labels: %r" % listed[:300])
        b.js("luasamplePage.set({ color: 'thread' })")
        b.settle()
        legend = b.js("document.getElementById('legend').textContent")
        check("</script>" in legend, "the legend is %r" % legend[:200])
        b.js("luasamplePage.select(luasamplePage.profile.functions.findIndex(f => f.name.startsWith('<!--')))")
        code = b.js("Array.from(document.querySelectorAll('#source-body code'), e => e.textContent)")
        check(code[0] == SHOWN[0], "first line of the source: %r" % code[0])
        check(code[4] == "\\xff\tx \\x1b[0m ]==] end 'a\\'b' 0x1F", "fifth line of the source: %r" % code[4])
        check(max(map(len, code)) < 2000, "a line of %d characters" % max(map(len, code)))
        b.js("luasamplePage.search('onerror')")
        b.settle()
        check(b.js("document.images.length") == 0, "a name was run")
        shared.is_fine(b)

    @t("bad.labels", "far more keys and values of labels than a page has: the rest is together, and no tick is lost")
    def labels():
        need_crafted()
        n = 400
        f = c.File().definitions(
            c.strings(1, b"id", *[b"v%d" % i for i in range(n)], *[b"k%d" % i for i in range(9)]),
            *[c.one(c.LABEL, i + 1, 0, 1, i + 2) for i in range(n)],
            *[c.one(c.LABEL, n + 1 + i, i % n, n + 2 + i % 9, 2) for i in range(n)])
        trace = f.samples(*[{1: 1, 9: 16 * i, 10: 1 + i % 5, 13: i + 1} for i in range(2 * n)]).write()
        b = opens(trace)
        b.js("luasamplePage.selectTime(0, luasamplePage.profile.time.buckets)")
        b.settle()
        got = dict(b.js("(l => l.texts.map((t, i) => [t, luasamplePage.aggregate.sumBy(l.column, l.texts.length)[i]]))"
                        "(luasamplePage.profile.labels[0])"))
        want = {r["label"]: r["self_ticks"] for r in s.rows(trace, "--by", "label:id")}
        others = got.pop("(other values)")
        check(len(got) == 100 and others + sum(got.values()) == sum(want.values()), "%d values, %d" % (len(got), others))
        check(all(want[v] == ticks for v, ticks in got.items()), "ticks differ: %s" % got)
        check(min(got.values()) >= max(t for v, t in want.items() if v not in got), "not those with the most")
        check(b.js("luasamplePage.profile.labels.length") == 6, "keys")
        check("4 more keys of labels" in b.js("document.getElementById('about-body').textContent"), "it does not say so")

    @t("bad.marks", "more marks than a page has: those of the time that is shown are there, the first 2000 of them")
    def marks():
        trace = s.record([s.luajit().program, "-e", """local ls = require "luasample"
            for i = 1, 6000 do ls.mark("m" .. i) for k = 1, 1e4 do x = k % 7 end end"""]).ok().trace
        at = [x["time_ns"] for x in s.json_of(["dump", "-i", trace, "--json"]) if x["record"] == "span"]
        check(len(at) == 6000, "%d marks are in the trace" % len(at))
        start = s.info(trace)["start_monotonic_ns"]
        for first in (1, 3001):                 # from the middle between it and the one before, as the trace has them
            time = "%dns," % (0 if first == 1 else (at[first - 2] + at[first - 1]) // 2 - start)
            b = shared.opened(shared.page_of(trace, "--time", time))
            names = b.js("luasamplePage.profile.marks.map(m => m.name)")
            check(len(names) == 2000 and int(names[0][1:]) == first, "--time %s: %d, %s" % (time, len(names), names[:1]))
            about = b.js("document.getElementById('about-body').textContent")
            check("more marks are not on the page" in about, "--time %s: it does not say so" % time)

    @t("bad.empty", "no samples at all")
    def empty():
        b = opens(crafted_trace())
        check("No samples" in b.js("document.getElementById('flame-panel').innerText"), "it does not say so")

    @t("bad.none_left", "no sample passes the filters")
    def none_left():
        r = s.report(shared.recording(), "--html", "-o", s.tmpfile(".html"), "--function", "no such function")
        check(r.status == 1 and "no samples left" in r.err, "status %d: %s" % (r.status, r.err))
        b = opens(shared.recording(), "--function", "no such function", status=1)
        check("No samples" in b.js("document.getElementById('flame-panel').innerText"), "it does not say so")
        check("no such function" in b.js("document.getElementById('about-body').textContent"), "the filter is not told")

    @t("bad.one", "one frame, one tick; samples without a stack")
    def one():
        b = opens(crafted_trace((1, 1)))
        check(b.js("luasamplePage.profile.header.ticks") == 1, "ticks")
        trace = crafted_trace({1: 1, 10: 3}, {1: 1, 6: 77, 10: 4}, {1: 1, 6: 2, 9: 1 << 60, 10: 4294967295})
        b = opens(trace)
        check(b.js("luasamplePage.profile.header.ticks") == 4294967302, "ticks")
        b.js("luasamplePage.selectTime(0, luasamplePage.profile.time.buckets)")
        b.settle()
        numbers_shown.compare_rows(b, trace)

    @t("bad.blocked", "blocked time is where it was, not where it ended")
    def blocked():
        trace = crafted_trace({1: 1, 2: 1, 6: 1, 9: 16 * 100, 10: 4}, {1: 1, 2: 1, 6: 2, 8: 0x20, 9: 16 * 200, 10: 50})
        b = shared.opened(shared.page_of(trace))
        numbers_shown.compare_rows(b, trace)
        sums = [v for v in b.js("Array.from(luasamplePage.timeline.sums)") if v]
        check(sorted(sums) == [1] * 50 + [4], "ticks of the steps: %s" % sums)

    @t("bad.deep", "10,000 frames")
    def deep():
        b = opens(deep_trace(10000))
        b.js("luasamplePage.selectTime(0, luasamplePage.profile.time.buckets)")
        b.settle()
        b.js("luasamplePage.set({ tree: 'calls', direction: 'flame' })")
        b.settle()
        check(b.js("luasamplePage.flame.levels.length") == 10002, "%d levels" % b.js("luasamplePage.flame.levels.length"))
        b.js("luasamplePage.flame.scroller.scrollTop = 0")
        b.settle()
        x, y, _, _ = b.place("#flame-canvas")
        b.click(x + 5, y + 12)
        check(b.js("luasamplePage.state.zoom.length") > 9900, "its top cannot be reached")
        b.js("luasamplePage.set({ tree: 'inverse' })")
        b.settle()
        levels = b.js("luasamplePage.flame.levels.length")
        check(levels > 1000, "the inverse has %d levels" % levels)
        shared.is_fine(b)
