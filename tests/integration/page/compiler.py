"""The page's JIT panel, marks of lines and heap say what luasample jit and report --by gc say. Imported by run.py."""
import functools
import json
import os

import shared
import support as s
from support import check

with open(os.path.join(s.LUA, "marked.lua")) as f:
    PROGRAM = f.read()
COMPILED, CLOSURE, EARLY = 4, 10, 15        # lines of it
HOSTILE = "</script><img src=x onerror=\"globalThis.hacked = 1\">"


def made(name, text):
    path = os.path.join(s.tmpdir(), name)
    with open(path, "w") as f:
        f.write(text)
    return path


@functools.lru_cache(None)
def recording():
    return s.record_lua("marked.lua", interval="1ms").ok().trace


def jit(trace, *args):
    return s.json_of(["jit", "-i", trace, "--json", *args])


def jit_panel(b):
    b.js("luasamplePage.set({ side: 'jit', trace: -1, reason: -1, unit: 'ticks' })")
    b.settle()


def ticks_of(b, selector):
    return [int("".join(filter(str.isdigit, x))) for x in
            b.js("Array.from(document.querySelectorAll(%s), e => e.textContent)" % json.dumps(selector + " .num span"))]


def select(b, function):
    b.js("luasamplePage.set({ side: 'source' })")
    b.js("luasamplePage.select(luasamplePage.profile.functions.findIndex(f => f.name.startsWith(%s)))" % json.dumps(function))
    b.settle()


def marks(b):
    """{line: sign} of the source that is shown."""
    return {int(n): sign for n, sign in b.js(
        "Array.from(document.querySelectorAll('.line button.jit-mark'), e => [e.parentElement.dataset.line, e.textContent])")}


def add_to(suite):
    t = suite.test

    @t("jit.numbers", "states, reasons and traces of the panel have the ticks of luasample jit --json", quick=True)
    def numbers():
        trace, want = recording(), jit(recording())
        b = shared.opened(shared.page_of(trace))
        b.key("j")
        check(b.js("luasamplePage.state.side") == "jit", "j does not open the panel")
        jit_panel(b)
        check(ticks_of(b, "[data-state]") == [r["ticks"] for r in want["states"]], "states: %s" % ticks_of(b, "[data-state]"))
        reasons = [r["ticks"] for r in want["uncompiled"]["reasons"]]
        check(ticks_of(b, "[data-reason]") == reasons and sum(reasons), "reasons: %s, not %s" % (
            ticks_of(b, "[data-reason]"), reasons))
        traces = [r["ticks"] for r in want["traces"]]
        check(ticks_of(b, "[data-trace]") == traces[:200] and len(traces) > 1, "traces: %s, not %s" % (
            ticks_of(b, "[data-trace]"), traces))
        text = b.js("document.getElementById('source-body').innerText")
        for word in ("machine code that LuaJIT made of hot code", "NYI: bytecode FNEW", "LuaJIT has tried too often",
                     "A trace is one path through the program", "make the closure once"):
            check(word in text, "the panel does not say %r: %s" % (word, text))
        check(b.js("new Set(document.querySelector('.jit-time canvas').getContext('2d').getImageData(0, 0, 300, 40).data).size")
              > 4, "the states over time are not drawn")
        # A part of the time: the states are those of the part.
        b.js("luasamplePage.selectTime(0, Math.floor(luasamplePage.profile.time.buckets / 2))")
        b.settle()
        check(sum(ticks_of(b, "[data-state]")) == b.js("luasamplePage.aggregate.ticks") < sum(
            r["ticks"] for r in want["states"]), "states of a part: %s" % ticks_of(b, "[data-state]"))
        shared.is_fine(b)

    @t("jit.listing", "a click on a trace shows what luasample jit --trace does, and goes back")
    def listing():
        trace = recording()
        first = jit(trace)["traces"][0]
        b = shared.opened(shared.page_of(trace))
        jit_panel(b)
        b.js("document.querySelector('[data-trace=\"0\"]').click()")
        b.settle()
        shown = b.js("document.querySelector('#source-body pre').textContent")
        text = s.run([s.luasample(), "jit", "-i", trace, "--trace", str(first["trace"])]).ok().out
        # 1 % hides lines there too; the header is not in the page.
        check(shown.strip() in text and "Machine code in its order" in shown, "the listing is\n%s\nnot\n%s" % (shown, text))
        b.press("#jit-back")
        check(b.js("document.querySelectorAll('[data-trace]').length") > 1, "no way back")
        shared.is_fine(b)

    @t("jit.marks", "lines are marked compiled, or given up with the reason; a click leads to the code or the reason")
    def line_marks():
        trace = recording()
        b = shared.opened(shared.page_of(trace))
        select(b, "closures")
        got = marks(b)
        check(got.get(COMPILED) == "N" and got.get(CLOSURE) == "X", "marks: %s" % got)
        check(got.get(EARLY) == "X", "a loop that was given up, without a tick of its own, has no mark: %s" % got)
        lines = {r["line"]: r for r in b.js("luasamplePage.profile.jit.lines")}
        for line in (COMPILED, CLOSURE):
            want = jit(trace, "--line", "marked.lua:%d" % line)
            ticks = sum(r["ticks"] for r in want["traces"])
            check(lines[line]["uncompiled"] == want["uncompiled"]["ticks"] and lines[line]["compiled"] >= ticks,
                  "line %d: %s, --line has %d and %d" % (line, lines[line], ticks, want["uncompiled"]["ticks"]))
        title = b.js("document.querySelector('[data-line=\"%d\"] .jit-mark').title" % CLOSURE)
        check("given up for good" in title and "NYI: bytecode FNEW" in title, "the reason is not told: %r" % title)
        b.js("document.querySelector('[data-line=\"%d\"] .jit-mark').click()" % CLOSURE)
        b.settle()
        chosen = b.js("document.querySelector('.jit-row.chosen').textContent")
        check("FNEW" in chosen and "closures" in chosen, "a click went to %r" % chosen)
        select(b, "closures")
        b.js("document.querySelector('[data-line=\"%d\"] .jit-mark').click()" % COMPILED)
        b.settle()
        check("marked.lua:%d" % COMPILED in b.js("document.querySelector('#source-body pre').textContent"),
              "a click does not show the trace")
        shared.is_fine(b)

    @t("jit.hostile", "names of the program are text in the panel, its listings and tooltips")
    def hostile():
        chunk = PROGRAM.replace("t0 < 1", "t0 < 0.3")
        program = made("hostile.lua", "local text = [[%s]]\nassert(loadstring(text, '@' .. [[%s]]))()\n" % (chunk, HOSTILE))
        trace = s.record_lua(program, interval="1ms").ok().trace
        page = shared.page_of(trace)
        check(shared.text_of(page).count("</script>") == 2, "a name ends a script")
        b = shared.opened(page)
        jit_panel(b)
        check("onerror" in b.js("document.getElementById('source-body').textContent"), "the name is not there")
        for i in range(min(5, b.js("luasamplePage.profile.jit.traces.length"))):
            b.js("luasamplePage.jit.openTrace(%d)" % i)
        select(b, "closures")
        check(marks(b), "no marks")
        b.js("document.querySelector('button.jit-mark').click()")
        b.settle()
        check(b.js("globalThis.hacked") is None and b.js("document.images.length") == 0, "a name was run")
        shared.is_fine(b)

    @t("jit.changed", "a listing has no line of a file that is not the one that was recorded: pages are passed on")
    def changed():
        path = made("changing.lua", PROGRAM.replace("t0 < 1", "t0 < 0.3"))
        trace = s.record_lua(path, interval="1ms").ok().trace
        page = s.tmpfile(".html")
        s.report(trace, "--html", "-o", page).ok()
        check(shared.text_of(page).count("x = x + i % 7") > 1, "the listing lacks the line, though it is known")
        made("changing.lua", PROGRAM.replace("i % 7", "secret"))
        s.report(trace, "--html", "-o", page).ok()
        check("secret" not in shared.text_of(page), "the page has a line of another file")

    @t("heap.numbers", "heap and phases: peak, cycles and ticks are those of report --by gc", quick=True)
    def heap():
        trace = recording()
        want = s.json_of(["report", "-i", trace, "--by", "gc", "--json"])
        b = shared.opened(shared.page_of(trace))
        got = b.js("luasamplePage.profile.heap")
        head = want["header"]
        check(got["peak"] == head["heap_peak_bytes"] > 0 and got["cycles"] == head["gc_cycles"] > 0,
              "peak %s, cycles %s; report has %s and %s" % (got["peak"], got["cycles"], head["heap_peak_bytes"], head["gc_cycles"]))
        check({x["name"]: x["ticks"] for x in got["times"]} == want["phases"], "phases: %s" % got["times"])
        check(sum(x["ticks"] for x in got["times"]) == head["gc_ticks"], "the sum is not that of the collector")
        most = max(x[2] for track in got["tracks"] for x in track["bytes"])
        check(most == got["peak"], "the track's highest is %d, the peak %d" % (most, got["peak"]))
        time_ = b.js("luasamplePage.profile.time")
        for bucket, *ns in got["tracks"][0]["phases"]:
            check(sum(ns) <= time_["length"], "bucket %d is in phases for %d of %d ns" % (bucket, sum(ns), time_["length"]))
        check(b.js("new Set(document.getElementById('heap-canvas').getContext('2d').getImageData(0, 0, 900, 40).data).size") > 4,
              "the heap is not drawn")
        x, y, w, h = b.place("#heap-canvas")
        b.mouse("mouseMoved", x + w / 2, y + h / 2)
        b.settle()
        tip = b.js("document.getElementById('tooltip').innerText")
        check("Lua heap" in tip and "iB" in tip, "tooltip: %r" % tip)
        part = s.json_of(["report", "-i", trace, "--by", "gc", "--json", "--time", "0%,50%"])
        b = shared.opened(shared.page_of(trace, "--time", "0%,50%"))
        check({x["name"]: x["ticks"] for x in b.js("luasamplePage.profile.heap.times")} == part["phases"], "phases of a part")
        shared.is_fine(b)
