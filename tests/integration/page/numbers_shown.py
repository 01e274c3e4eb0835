"""The numbers of the page are those of report --json, of the whole and of a part. Imported by run.py."""
import collections
import json
import os

import shared
import support as s
from support import check

ROWS = """(key => { const a = luasamplePage.aggregate, k = luasamplePage.profile.key(key);
        return a.rows(key).map(r => [k.text(r.group), r.self, r.total]); })(%s)"""


def same(what, got, want):
    got, want = collections.Counter(got), collections.Counter(want)
    check(got == want, "%s: only on the page: %s; only in report: %s" % (
        what, list((got - want).items())[:5], list((want - got).items())[:5]))


def compare_rows(b, trace, *args):
    """Functions, lines and modules by self and total; states, zones and threads by their ticks."""
    for key in ("function", "line", "module"):
        want = [(r["name"], r["self_ticks"], r["total_ticks"]) for r in s.rows(trace, "--by", key, *args)]
        same(key, [tuple(r) for r in b.js(ROWS % json.dumps(key))], want)
    for key, column, names in (("vmstate", "state", "states.map(s => s.label)"), ("zone-path", "zone", "zones"),
                               ("thread", "thread", "threads")):
        got = b.js("(n => Array.from(luasamplePage.aggregate.sumBy(%s, n.length)).map((v, i) => [n[i], v]))"
                   "(luasamplePage.profile.%s)" % (json.dumps(column), names))
        want = [(r["name"], r["self_ticks"]) for r in s.rows(trace, "--by", key, *args)]
        same(key, [(n, v) for n, v in got if v], want)


def tree_paths(nodes, value):
    """{path: (total, self)} from nodes in an order in which parents come first."""
    paths, ret = {}, {}
    for n in nodes:
        paths[n["id"]] = paths.get(n["parent"], ()) + (value(n),)
        ret[paths[n["id"]]] = (n["total_ticks"], n["self_ticks"])
    return ret


PAGE_TREE = """(() => { const t = luasamplePage.tree, names = luasamplePage.profile.functions, ret = [], todo = [0];
        while (todo.length) {
                const n = todo.pop();
                if (n) ret.push({ id: n, parent: t.parent[n], name: names[t.func[n]].name, total_ticks: t.total[n],
                                  self_ticks: t.self[n] });
                todo.push(...t.children(n));
        }
        return ret; })()"""


def compare_trees(b, trace, *args):
    for inverse in (False, True):
        b.js("luasamplePage.set({ tree: %s })" % json.dumps("inverse" if inverse else "calls"))
        j = s.json_of(["report", "-i", trace, "--tree", "--json", "--min", "0", *(["--inverse"] if inverse else []), *args])
        want, got = tree_paths(j["nodes"], lambda n: n["name"]), tree_paths(b.js(PAGE_TREE), lambda n: n["name"])
        check(len(want) > 3, "a tree of %d nodes" % len(want))
        same("inverse tree" if inverse else "tree", got.items(), want.items())


def add_to(suite):
    t = suite.test

    @t("numbers.whole", "rows, states, zones, threads as report --json has them")
    def whole():
        trace = shared.recording()
        b = shared.opened(shared.page_of(trace))
        compare_rows(b, trace)
        h = s.json_of(["report", "-i", trace, "--json"])["header"]
        check(abs(b.js("luasamplePage.aggregate.effective") - h["effective_samples"]) < 0.01, "effective samples differ")
        check(b.js("luasamplePage.aggregate.samples") == h["samples"], "samples differ")
        shared.is_fine(b)

    @t("numbers.tree", "the flame graph and its inverse are report --tree")
    def tree():
        compare_trees(shared.opened(shared.page_of(shared.recording())), shared.recording())

    @t("numbers.shown", "what is written: the first rows, the header")
    def shown():
        trace = shared.recording()
        b = shared.opened(shared.page_of(trace))
        b.key("u")                      # ticks
        rows = s.rows(trace, "--by", "function")
        for i, r in enumerate(rows[:5]):
            text = b.js("Array.from(document.querySelectorAll('.tr')[%d].children, e => e.textContent)" % i)
            ticks = [int(text[k].replace("\u202f", "")) for k in (0, 2)]
            want = [r["self_ticks"], r["total_ticks"]]
            check(ticks == want and abs(float(text[1]) - 100 * r["margin"]) <= 0.051, "row %d: %s, not %s" % (i, text, r))
            names = [q["name"] for q in rows if [q["self_ticks"], q["total_ticks"]] == want]
            check(text[3] in names, "row %d: %s" % (i, text))
        h = s.json_of(["report", "-i", trace, "--json"])["header"]
        facts = b.js("document.querySelector('header').innerText").replace("\u202f", "")
        for part in ("asked 1000 Hz", "achieved %.0f Hz" % h["achieved_rate_hz"], "%d samples" % h["samples"]):
            check(part in facts, "no %r in %r" % (part, facts))
        check(h["command"] in b.js("document.getElementById('command').textContent"), "the command is not shown")

    @t("numbers.missing", "the header says how much is missing, and whether it was lost or is incomplete")
    def missing():
        for name, want in (("app", "good 0.99 % lost"), ("threads", "fair 3.00 % incomplete"), ("weights", "good nothing lost")):
            b = shared.opened(shared.page_of(os.path.join(s.ROOT, "tests", "golden", "report", name + ".data")))
            got = b.js("(e => e.className.replace('pill ', '') + ' ' + e.textContent)(document.getElementById('quality'))")
            check(got.replace("\u202f", " ").replace("\u00a0", " ") == want, "%s: %r" % (name, got))

    @t("numbers.filters", "filters of the command line are obeyed")
    def filters():
        trace, args = shared.recording(), ("--zone", "garbage", "--vmstate", "gc,native")
        b = shared.opened(shared.page_of(trace, *args))
        compare_rows(b, trace, *args)
        check("--zone garbage" in b.js("document.getElementById('about-body').textContent"), "the filters are not told")

    @t("numbers.noline", "compiled code without lines, of the engine hook")
    def noline():
        trace = s.record_lua(shared.PHASES, "--engine", "hook", "--scope", "none", args=("0.5", "load,simulate")).ok().trace
        b = shared.opened(shared.page_of(trace))
        check(any(r["name"].endswith(":?") for r in s.rows(trace, "--by", "line")), "all ticks have a line")
        compare_rows(b, trace)
        shared.is_fine(b)

    @t("numbers.lines", "lines of the source panel are those of --annotate")
    def lines():
        trace = shared.recording()
        b = shared.opened(shared.page_of(trace))
        j = s.json_of(["report", "-i", trace, "--annotate", "--json", "--min", "0"])
        want = {l["line"]: (l["self_ticks"], l["total_ticks"])
                for f in j["files"] if f["source"] == shared.PHASES for l in f["lines"]}
        b.js("luasamplePage.set({ unit: 'ticks' }); luasamplePage.select(luasamplePage.profile.functions"
             ".findIndex(f => f.name === 'make_tree'))")
        got = b.js("Array.from(document.querySelectorAll('#source-body .line'), e => [Number(e.dataset.line),"
                   " e.children[0].textContent, e.children[1].textContent, e.querySelector('code').textContent])")
        same("lines", [(n, tuple(int(v.replace("\u202f", "") or 0) for v in both)) for n, *both, _ in got if any(both)],
             want.items())
        with open(s.LUA + "/" + shared.PHASES, encoding="utf-8") as f:
            check([text for *_, text in got] == f.read().split("\n")[:-1], "the text of the source differs")
        place = b.js("document.getElementById('source-place').textContent")
        check(shared.PHASES + ":" in place, "the place is %r" % place)

    @t("numbers.suspended", "the time of suspended coroutines: the rows of report, which time it is, and who waits")
    def suspended():
        trace = s.record_lua("suspended.lua", "-e", "suspended", args=("400", "2")).ok().trace
        b = shared.opened(shared.page_of(trace, "--event", "suspended"))
        compare_rows(b, trace, "--event", "suspended")
        check("suspended time" in b.js("document.getElementById('facts').textContent"), "which time is not told")
        ticks = s.json_of(["report", "-i", trace, "--event", "suspended", "--json"])["header"]["ticks"]
        about = b.js("document.getElementById('about-body').textContent").replace("\u202f", "")
        check("Samples%d ticks of 1.00 ms of suspended time" % ticks in about, "about: %s" % about)
        check(b.js("document.querySelector('#source-body .line') !== null"), "nobody who waits is shown")

    @t("numbers.labels", "a label alone, by its list and by the legend; colours by key; flags of marks")
    def labels():
        trace = s.record_lua("labels.lua").ok().trace
        b = shared.opened(shared.page_of(trace))
        for key in ("route", "user"):
            want = [(r["label"], r["self_ticks"]) for r in s.rows(trace, "--by", "label:" + key)]
            got = b.js("(l => l.texts.map((t, i) => [t, luasamplePage.aggregate.sumBy(l.column, l.texts.length)[i]]))"
                       "(luasamplePage.profile.labels.find(l => l.key === %s))" % json.dumps(key))
            same("label:" + key, [tuple(x) for x in got], want)
        pick = "(e => { e.value = %s; e.dispatchEvent(new Event('change')); })(document.getElementById('pick-label'))"
        for key, value in (("route", "/item"), ("user", "ann"), ("route", "(none)")):
            option = b.js("(e => e && e.value)(Array.from(document.querySelectorAll('#pick-label optgroup[label=%s] option'))"
                          ".find(e => e.textContent === %s))" % (key, json.dumps(value)))
            check(option, "%s=%s is not in the list" % (key, value))
            b.js(pick % json.dumps(option))
            b.settle()
            compare_rows(b, trace, "--label", "%s=%s" % (key, value))
        b.js(pick % "''")
        b.js("luasamplePage.set({ color: 'label:route' })")
        b.settle()
        at = b.js("Array.from(document.querySelectorAll('#legend button'), e => e.textContent).indexOf('/list')")
        b.press("#legend button:nth-child(%d)" % (at + 1))
        compare_rows(b, trace, "--label", "route=/list")
        compare_trees(b, trace, "--label", "route=/list")
        b.js("(e => { e.value = 'label:user'; e.dispatchEvent(new Event('change')); })"
             "(document.querySelector('#pick-color select'))")
        b.settle()
        legend = b.js("Array.from(document.querySelectorAll('#legend button'), e => e.textContent)")
        check(sorted(legend) == ["(none)", "ann"], "colours by the label user: %s" % legend)
        chosen = b.js("document.getElementById('pick-label').selectedOptions[0].textContent")
        check(chosen == "/list", "the list shows %r" % chosen)
        start = s.info(trace)["start_monotonic_ns"]
        spans = [d for d in s.json_of(["dump", "-i", trace, "--json"]) if d["record"] == "span"]
        want = [[d["time_ns"] - start, d["name"]] for d in spans]
        check(b.js("luasamplePage.timeline.marks().map(m => [m.at, m.name])") == want, "marks are not %s" % want)
        x, y, w, _ = b.place("#time-canvas")
        b.mouse("mouseMoved", x + b.js("luasamplePage.timeline.marks()[0].x"), y + 5)
        b.settle()
        tip = b.js("document.getElementById('tooltip').innerText")
        check("labels begin" in tip, "tooltip: %r" % tip)
        shared.is_fine(b)
