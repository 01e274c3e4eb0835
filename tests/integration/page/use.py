"""The page by mouse and keys. Imported by run.py."""
import json
import os

import numbers_shown
import shared
import support as s
from support import check

BOX = """(name => { const f = luasamplePage.flame, p = luasamplePage.profile;
        for (let l = 0; l < f.levels.length; l++)
                for (let i = 0; i < f.levels[l].id.length; i++)
                        if (f.levels[l].id[i] > 0 && p.functions[f.tree.func[f.levels[l].id[i]]].name === name) {
                                const at = f.canvas.getBoundingClientRect(), x = (f.levels[l].x[i] - f.view[0]) * f.scale();
                                return [at.x + x + Math.min(f.levels[l].w[i] * f.scale(), 40) / 2, at.y + f.top(l) + 8];
                        } })(%s)"""
PICTURE = "document.getElementById('%s').toDataURL()"


def state(b, name):
    return b.js("luasamplePage.state." + name)


def row_names(b):
    return b.js("Array.from(document.querySelectorAll('.tr .c-name'), e => e.textContent)")


def add_to(suite):
    t = suite.test

    @t("use.time", "a part of the time: all panels obey, and the sums are those of --time")
    def time_range():
        trace = shared.recording()
        b = shared.opened(shared.page_of(trace))
        x, y, w, _ = b.place("#time-canvas")
        before = b.js(PICTURE % "flame-canvas")
        b.drag(x + 0.3 * w, x + 0.8 * w, y + 30)
        b.settle()
        time_ = b.js("luasamplePage.profile.time")
        ends = [(time_["first"] + state(b, e) * time_["length"]) // 1000 for e in ("from", "to")]
        check(state(b, "from") > 0 and state(b, "to") < time_["buckets"], "nothing was selected")
        numbers_shown.compare_rows(b, trace, "--time", "%dus,%dus" % tuple(ends))
        numbers_shown.compare_trees(b, trace, "--time", "%dus,%dus" % tuple(ends))
        b.js("luasamplePage.set({ tree: 'calls' })")
        b.settle()
        check(b.js(PICTURE % "flame-canvas") != before, "the flame graph did not change")
        check("%" in b.js("document.getElementById('selected-ticks').textContent"), "the share of the part is not told")
        # Its right edge moves, then all of it; a click brings back the whole.
        to = state(b, "to")
        b.drag(x + to / time_["buckets"] * w, x + 0.9 * w, y + 30)
        check(state(b, "to") > to, "the edge did not move")
        width, start = state(b, "to") - state(b, "from"), state(b, "from")
        b.drag(x + 0.5 * w, x + 0.45 * w, y + 30)
        check(state(b, "from") < start and state(b, "to") - state(b, "from") == width, "the part did not move")
        b.click(x + 0.02 * w, y + 30)
        check(state(b, "from") == 0 and state(b, "to") == time_["buckets"], "a click does not select all")
        shared.is_fine(b)

    @t("use.state", "one VM state alone, by its button")
    def one_state():
        trace = shared.recording()
        b = shared.opened(shared.page_of(trace))
        at = b.js("Array.from(document.querySelectorAll('#states button'))"
                  ".findIndex(e => e.textContent.startsWith('Garbage'))")
        b.press("#states button:nth-child(%d)" % (at + 1))
        numbers_shown.compare_rows(b, trace, "--vmstate", "gc")
        b.press("#states button:nth-child(%d)" % (at + 1))
        check(state(b, "filter.state") == -1, "the second press did not undo it")

    @t("use.search", "search: the share, the rows, the dimmed boxes")
    def search():
        trace = shared.recording()
        b = shared.opened(shared.page_of(trace))
        before = b.js(PICTURE % "flame-canvas")
        b.key("/")
        b.type("MAKE_tree")
        check(row_names(b) == ["make_tree"], "rows: %s" % row_names(b))
        j = s.json_of(["report", "-i", trace, "--json", "--min", "0"])
        want = next(r["total"] for r in j["rows"] if r["name"] == "make_tree") * 100
        said = b.js("document.getElementById('found').textContent")
        check(abs(float(said.split()[-2]) - want) < 0.06, "found: %r, not %.2f" % (said, want))
        check(b.js(PICTURE % "flame-canvas") != before, "the flame graph did not change")
        b.key("Escape")
        check(len(row_names(b)) > 5 and state(b, "search") == "", "Escape did not end the search")
        b.js("luasamplePage.search('/^(garbage|serve)$/')")
        b.settle()
        check(sorted(row_names(b)) == ["garbage", "serve"], "rows by expression: %s" % row_names(b))
        b.js("luasamplePage.search('/(/')")
        b.settle()
        check(row_names(b) == [], "a wrong expression finds %s" % row_names(b))
        b.js("luasamplePage.search('')")
        shared.is_fine(b)

    @t("use.zoom", "zoom by mouse and keys, the path over the graph")
    def zoom():
        b = shared.opened(shared.page_of(shared.recording()))
        b.mouse("mouseMoved", *b.js(BOX % '"garbage"'))
        b.settle()
        tip = b.js("document.getElementById('tooltip').innerText")
        check("garbage" in tip and "ticks" in tip, "tooltip: %r" % tip)
        b.click(*b.js(BOX % '"garbage"'))
        path = b.js("document.getElementById('crumbs').textContent")
        check(path.startswith("all") and path.endswith("garbage"), "path: %r" % path)
        check(b.js("document.getElementById('source-title').textContent") == "garbage", "its source is not shown")
        view = b.js("luasamplePage.flame.view")
        wide = b.js("luasamplePage.tree.total[luasamplePage.flame.zoomed]")
        check(view[1] - view[0] == wide, "it is not as wide as the panel")
        b.key("Backspace")
        path = b.js("document.getElementById('crumbs').textContent")
        check(path.endswith("until_time"), "Backspace went to %r" % path)
        b.key("ArrowDown")
        b.key("ArrowDown")
        b.key("Enter")
        depth = len(state(b, "zoom"))
        b.key("0")
        check(depth > 2 and state(b, "zoom") == [], "keys: zoomed %d deep, then %s" % (depth, state(b, "zoom")))
        shared.is_fine(b)

    @t("use.look", "flame, icicle, inverse, colours, units, light and dark")
    def look():
        b = shared.opened(shared.page_of(shared.recording()))
        seen = {b.js(PICTURE % "flame-canvas")}
        for key, name in (("f", "direction"), ("i", "tree"), ("c", "color"), ("c", "color"), ("t", "theme")):
            was = state(b, name)
            b.key(key)
            check(state(b, name) != was, "%s: %s is still %s" % (key, name, was))
            seen.add(b.js(PICTURE % "flame-canvas"))
        check(len(seen) == 6, "some of these look the same: %d of 6" % len(seen))
        back = "getComputedStyle(document.body).backgroundColor"
        dark = b.js(back)
        b.press("#theme")
        light = b.js(back)
        sums = [sum(map(int, c[4:-1].split(","))) for c in (dark, light)]
        check(sums[0] < 100 and sums[1] > 600, "backgrounds %s and %s" % (dark, light))
        b.js("localStorage.clear()")
        check(shared.opened(shared.page_of(shared.recording()), "dark").js(back) == dark, "a dark system does not count")
        for unit in ("ticks", "time", "percent"):
            b.key("u")
            check(state(b, "unit") == unit, "unit %s" % state(b, "unit"))
        b.key("?")
        check(b.js("document.getElementById('help').open"), "no help")
        b.key("Escape")
        b.press("#quality")
        check("Rate" in b.js("document.getElementById('about').innerText"), "nothing about the recording")
        b.js("document.getElementById('about').close()")
        shared.is_fine(b)

    @t("use.table", "order of the rows, rows of lines, selection")
    def table():
        trace = shared.recording()
        b = shared.opened(shared.page_of(trace))
        orders = []
        for column in ("total", "name", "name", "self"):
            b.press("#table-head button[data-column=%s]" % column)
            values = b.js("luasamplePage.table.rows.map(r => r.%s)" % column)
            down = b.js("luasamplePage.state.sort.down")
            check(values == sorted(values, reverse=down), "not in order by %s" % column)
            orders.append(tuple(row_names(b)))
        check(len(set(orders)) >= 3, "orders look the same")
        b.press("#pick-key button[data-value=line]")
        line = s.rows(trace, "--by", "line")[0]
        b.press(".tr")
        check(row_names(b)[0] == line["name"], "first line %s, not %s" % (row_names(b)[0], line["name"]))
        b.press("#pick-side button[data-value=calls]")
        check("Called by" in b.js("document.getElementById('source-body').innerText"), "no callers")
        shared.is_fine(b)

    @t("use.narrow", "a small window")
    def narrow():
        b = shared.opened(shared.page_of(shared.recording()))
        b.resize(700, 600)
        b.settle()
        wide = b.js("document.documentElement.scrollWidth")
        b.resize(1440, 900)
        b.settle()
        check(wide <= 700, "it is %d wide" % wide)
        shared.is_fine(b)

    @t("use.compare", "ticks of another recording: red and blue, before and after")
    def compare():
        before, after = s.tmpfile(".data"), shared.recording()
        s.record_lua(shared.PHASES, args=("0.8", "load,simulate,garbage"), trace=before).ok()
        made = s.run([os.path.join(s.build_dir(), "tests", "integration", "page", "page_compare"), before, after])
        check(made.status == 0, "page_compare: %s" % made.err)
        page = s.tmpfile(".html")
        with open(page, "w", encoding="utf-8") as f:
            f.write(made.out)
        b = shared.opened(page)
        for key in ("function", "module"):
            rows = b.js("luasamplePage.aggregate.rows('%s').map(r => [luasamplePage.profile.key('%s').text(r.group),"
                        " r.self, r.total, r.baseSelf, r.baseTotal])" % (key, key))
            for of, trace in ((1, after), (3, before)):
                want = [(r["name"], r["self_ticks"], r["total_ticks"]) for r in s.rows(trace, "--by", key)]
                numbers_shown.same(key, [(r[0], *r[of:of + 2]) for r in rows if r[of + 1]], want)
        rows = {r[0]: r[1:] for r in b.js("luasamplePage.table.all.map(r => [r.name, r.change, r.baseTotal])")}
        check(rows["client"][0] > 0.2 and rows["client"][1] == 0, "client: %s" % rows["client"])
        check(rows["make_tree"][0] < 0, "make_tree: %s" % rows["make_tree"])
        color = "(n => luasamplePage.colorOf(luasamplePage.tree, luasamplePage.tree.func.indexOf(" \
                "luasamplePage.profile.functions.findIndex(f => f.name === n))))(%s)"
        red, blue = (b.js(color % json.dumps(n)) for n in ("client", "make_tree"))
        check(red.startswith("hsl(6,") and blue.startswith("hsl(213,"), "colours %s and %s" % (red, blue))
        before = b.js(PICTURE % "flame-canvas")
        b.press("#pick-width button[data-value=before]")
        check(b.js(PICTURE % "flame-canvas") != before, "the widths did not change")
        check(b.js(BOX % '"client"') is None, "client has a width in the recording without it")
        b.key("i")
        shared.is_fine(b)

