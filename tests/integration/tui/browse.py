"""What the browser shows is what report --json says. Imported by run.py."""
import os
import re

import support as s
from support import check
from screen import GOLDEN, Screen, browsed, eventually, tmux, tui

MARKS = "[\u25b8\u25be]"
WIDE = dict(width=200, height=70)


CLICK, WHEEL_UP, WHEEL_DOWN = 0, 64, 65


def press(w, button, x, y, twice=False):
    """What a terminal sends for a press and a release, in the way of TERM=screen."""
    once = "\x1b[M%c%c%c" % (32 + button, 33 + x, 33 + y)
    release = "\x1b[M#%c%c" % (33 + x, 33 + y) if button == CLICK else ""
    w.type((once + release) * (2 if twice else 1))


def mouse_flag(w):
    return tmux("display-message", "-p", "-t", w.name, "#{mouse_standard_flag}").strip()


def same(what, read, want):
    eventually(lambda: compare(what, read(), want))


def compare(what, got, want):
    for i, (g, w) in enumerate(zip(got, want)):
        cut = g[-1].endswith("...") and w[-1].startswith(g[-1][:-3])
        check(g == w or (cut and g[:-1] == w[:-1]), "%s: row %d is %r, report says %r" % (what, i + 1, g, w))
    check(len(got) == len(want), "%s: %d rows, report has %d" % (what, len(got), len(want)))


def flat_rows(screen, two=True):
    """(self, total, name) of the rows of the flat table; total is None without that column."""
    rows = []
    for line in screen.lines()[3:-2]:
        m = re.match(r"\s*(\d+)\s+\d+\s%s[ \u2588-\u258f]*%s (.*)$" % (r"+(\d+)" if two else "", MARKS), line)
        if m:
            name = re.split(r"\s{2,}|(?<=\.\.\.) ", m.groups()[-1])[0]
            rows.append((int(m.group(1)), int(m.group(2)) if two else None, name))
    return rows


def report_rows(path, *args, two=True):
    return [(r["self_ticks"], r.get("total_ticks") if two else None, r["name"]) for r in s.rows(path, *args)]


def tree_nodes(path, *args):
    return s.json_of(["report", "-i", path, "--tree", "--min", "0", *args, "--json"])["nodes"]


def edges(path, function):
    """Callers and callees of a function as the tree has them: {name: ticks} twice. A sample counts once an edge."""
    nodes = tree_nodes(path)
    callers, callees = {}, {}
    for node in nodes:
        if not node["self_ticks"]:
            continue
        seen, at = set(), node
        while at["parent"] is not None:
            up = nodes[at["parent"]]
            if at["name"] == function:
                seen.add(("callers", up["name"]))
            if up["name"] == function:
                seen.add(("callees", at["name"]))
            at = up
        for side, name in seen:
            sums = callers if side == "callers" else callees
            sums[name] = sums.get(name, 0) + node["self_ticks"]
    return callers, callees


def expand(w, path, function):
    """Opens the row of a function, compares what is below it with the tree, and closes it again."""
    w.keys("g")
    w.type("/" + function, until=r"^/%s" % function)
    w.keys("Enter")
    w.keys("Enter", until="\u25be %s " % function)
    eventually(lambda: compare_edges(w.lines(), path, function))
    w.keys("h", until="\u25b8 %s " % function)


def compare_edges(lines, path, function):
    at = [i for i, line in enumerate(lines) if re.search("\u25be %s " % function, line)][0]
    got = {"\u2190": {}, "\u2192": {}}
    for line in lines[at + 1:]:
        m = re.match(r"\s*(\d+)[ \u2588-\u258f]*(?:%s)? +([\u2190\u2192]) (.*?)(\s{2,}.*)?$" % MARKS, line)
        if not m:
            break
        got[m.group(2)][m.group(3)[:60]] = int(m.group(1))
    for side, want in zip("\u2190\u2192", edges(path, function)):
        want = {name[:60]: ticks for name, ticks in want.items()}
        check(got[side] == want, "%s %s: %r, the tree has %r" % (side, function, got[side], want))


def add_to(suite):
    t = suite.test

    @t("flat", "the flat table has the rows of report --json, for each grouping and order", quick=True)
    def _():
        path = browsed()
        with tui(path, "--raw", **WIDE) as w:
            w.wait(r"by function, sorted by self")
            same("by self", lambda: flat_rows(w), report_rows(path))
            for order in ("total", "name", "self"):
                w.keys("s", until="by function, sorted by " + order)
                same("by " + order, lambda: flat_rows(w), report_rows(path, "--sort", order))
            for key, two in (("line", True), ("module", True), ("vmstate", False), ("zone", False), ("thread", False)):
                w.keys("b", until="Group by")
                w.type("/" + key, until="/%s$" % key)
                w.keys("Enter")
                w.keys("Enter", until="by %s, sorted" % key)
                same("by " + key, lambda: flat_rows(w, two), report_rows(path, "--by", key, two=two))

    @t("flat.second", "rows that are no functions open to the functions in them")
    def _():
        path = browsed()
        with tui(path, "--raw", "--by", "zone", **WIDE) as w:
            w.wait("by zone, sorted by self")
            w.type("/render", until="^ +[0-9].*render")
            w.keys("Enter")
            w.keys("Enter", until="\u25be render")
            want = [r for r in s.rows(path, "--by", "zone,function") if r["name"] == "render"][0]["children"]

            def read():
                found = [re.match("^ *(\\d+)[ \u2588-\u258f]*\u2500 (\\S+)$", line) for line in w.lines()]
                return [(int(m.group(1)), m.group(2)) for m in found if m]
            same("functions of a zone", read, [(c["self_ticks"], c["name"]) for c in want])

    @t("expand", "a row opens to its callers and callees, and these to theirs", quick=True)
    def _():
        for path, functions in ((os.path.join(GOLDEN, "recursion.data"), ("even", "odd", "leaf")),
                                (browsed(), ("busy", "Render", "ping"))):
            with tui(path, "--raw", **WIDE) as w:
                w.wait("by function, sorted by self")
                for function in functions:
                    expand(w, path, function)
        with tui(path, **WIDE) as w:
            w.type("/ping", until="^/ping")
            w.keys("Enter")
            # what called the caller
            w.keys("Enter", until="\u2190 main chunk@browse")
            w.keys("Down")
            w.keys("Enter", until="\u25be \u2190 main chunk@browse.*\n.*  (\u25b8 )?\u2190 luajit")

    @t("tree", "the call tree, all opened, has the nodes of report --tree --json", quick=True)
    def _():
        path = os.path.join(GOLDEN, "recursion.data")
        with tui(path, "--tree", "--raw", "--min", "0", width=150, height=150) as w:
            w.wait("call tree by function")
            w.keys("*")

            def read():
                found = [re.match("^ *(\\d+) +\\d+ +(\\d+)[ \u2588-\u258f]*(?:%s )?(\\S.*)$" % MARKS, line)
                         for line in w.lines()[3:-2]]
                return [(int(m.group(1)), int(m.group(2)), m.group(3)) for m in found if m]
            want = [(n["total_ticks"], n["self_ticks"], n["name"]) for n in tree_nodes(path)]
            same("tree", read, want)

    @t("tree.inverse", "turned over, its first rows are the functions that ran")
    def _():
        path = os.path.join(GOLDEN, "recursion.data")
        with tui(path, "--tree", "--inverse", "--raw", "--min", "0", width=150, height=150) as w:
            w.wait("callers of what ran")
            top = [(n["total_ticks"], n["name"]) for n in tree_nodes(path, "--inverse") if n["parent"] is None]
            w.keys("h")                         # of closed rows only the first are shown
            for _ in top:
                w.keys("h", "Down")

            def read():
                found = [re.match("^ *(\\d+) +\\d+ +\\d+ [ \u2588-\u258f]*(?:%s )?(\\S.*)$" % MARKS, line)
                         for line in w.lines()]
                return [(int(m.group(1)), m.group(2)) for m in found if m]
            same("inverse", read, top)
            w.keys("i", until="call tree by function")

    @t("tree.search", "a search opens the branches that it must")
    def _():
        with tui(browsed(), "--tree", "--min", "60") as w:
            w.wait("call tree")
            w.wait("Render", gone=True)
            w.type("/Rend", until="\u25b8 Render|Render$")
            w.keys("Enter")
            first = w.wait(r"(\d+)/\d+ *$").group(1)
            w.keys("n")
            w.wait(r" %s/\d+ *$" % first, gone=True)
            w.keys("N", until=r" \d+/\d+ *$")
            w.keys("t", until="by function, sorted")
            w.wait("^.*Render")
            w.type("/nothing like this", until="is not here")
            w.keys("Escape")
            w.wait("is not here", gone=True)

    @t("source", "source with the ticks of report --annotate --json", quick=True)
    def _():
        path = browsed()
        files = s.json_of(["report", "-i", path, "--annotate", "--min", "0", "--json"])["files"]
        want = {l["line"]: (l["self_ticks"] or None, l["total_ticks"], l["text"].replace("\t", " ").rstrip())
                for f in files if f["source"].endswith("browse.lua") for l in f["lines"]}
        own = {n: l[0] for n, l in want.items() if l[0]}
        check(own, "nothing of browse.lua was recorded")
        check(len(own) < len(want), "no line only calls: %s" % want)
        with tui(path, "--raw", width=150, height=90) as w:
            w.wait("by function")
            w.type("/busy", until="busy")
            w.keys("Enter")
            w.keys("a", until="-- For the terminal browser")

            def read():
                found = [re.match("(?: *(\\d+)|          ) +(\\d+) [ \u2588-\u258f]* +(?:[NIX] +)?(\\d+) \\| (.*)$", line)
                         for line in w.lines()]
                return [(int(m.group(3)), m.group(1) and int(m.group(1)), int(m.group(2)), m.group(4))
                        for m in found if m]
            same("lines", read, [(n, *want[n]) for n in sorted(want)])
            hottest = max(own, key=own.get)
            check(w.wait(r"browse\.lua +(\d+)/\d+ *$").group(1) == str(hottest), "the cursor is not on line %d" % hottest)
            w.keys("g")
            for line in sorted(own)[:3]:
                w.keys("]", until=r"browse\.lua +%d/\d+ *$" % line)
            w.keys("Right", until=r"\| he terminal browser")
            w.keys("Left", until=r"\| -- For the terminal")
            w.keys("q", until="by function, sorted")

    @t("source.none", "what has no source says so")
    def _():
        with tui(browsed()) as w:
            w.wait("by function")
            w.type("/os.clock", until="os.clock")
            w.keys("Enter")
            w.keys("a", until="is not Lua: it has no source")

    @t("annotate", "--annotate=FUNCTION begins with its source; report -t is the same browser")
    def _():
        with Screen([s.luasample(), "report", "-t", "-i", browsed(), "--annotate=busy"]) as w:
            w.wait("function busy|for i = 1, 200")
            w.keys("q", until="by function")
        with tui(browsed(), "--annotate=nosuch") as w:
            w.wait("no such file or function in this trace")

    @t("filter", "filters as on the command line; an error is a line, and the line can be mended", quick=True)
    def _():
        path = browsed()
        with tui(path, "--raw", **WIDE) as w:
            w.wait("by function")
            w.keys("f", until="^filter:")
            w.type("--zoen render")
            w.keys("Enter", until="unknown option --zoen; did you mean --zone?")
            w.keys("C-u")
            w.type("--zone render --vmstate gcc")
            w.keys("Enter", until="--vmstate 'gcc': the states are native")
            w.keys("C-w")
            w.type("N,interpreted,c")
            w.keys("Enter", until=r"^ filter .*--zone render --vmstate N,interpreted,c")
            same("filtered", lambda: flat_rows(w), report_rows(path, "--zone", "render", "--vmstate", "N,interpreted,c"))
            w.keys("f", until="filter: --zone render --vmstate N,interpreted,c")
            w.keys("Escape")
            w.wait("^filter:", gone=True)
            w.keys("F", until="no filters")
            same("unfiltered", lambda: flat_rows(w), report_rows(path))
            w.keys("f", until="^filter:")
            w.type("--help")
            w.keys("Enter", until="unknown option --help")
            w.keys("C-u", "Tab", until="--zone --vmstate --process --thread --vm --type --time .*\n?filter: --$")
            w.type("v")
            w.keys("Tab", until="^--vmstate --vm *\nfilter: --vm$")
            w.keys("C-u")
            w.type("--ti")
            w.keys("Tab")
            w.type("0,50% --function 'Render'")
            w.keys("Enter", until="^ filter .*--time 0,50% --function Render")
            same("by time", lambda: flat_rows(w), report_rows(path, "--time", "0,50%", "--function", "Render"))
            w.keys("f", until="^filter:")
            w.keys("C-u")
            w.type("--zone nosuch")
            w.keys("Enter", until="no such zone in this trace")
            w.wait("No samples left")
            w.keys("t", "t", "s", "b", "q", "F", until="no filters")
        with tui(path, "--function", "a\\'b c\\", **WIDE) as w:     # what the line has is what was given
            shown = r"^ filter .*--function a\\'b c\\$"
            w.wait(shown)
            w.keys("f", until="^filter: --function")
            w.type(" --vmstate N")
            w.keys("Enter")
            w.wait(r"^ filter .*--vmstate N --function a\\'b c\\$")

    @t("filter.row", "z and x filter by the function of the row, whatever its name")
    def _():
        path = browsed()
        with tui(path, "--raw", **WIDE) as w:
            w.wait("by function")
            w.type("/x1b", until="x1b")
            w.keys("Enter")
            w.keys("z", until="^ filter")
            name = [r for r in s.rows(path) if "\\x1b[" in r["name"]][0]
            same("the row", lambda: [r for r in flat_rows(w) if r[2] == name["name"]],
                 [(name["self_ticks"], name["total_ticks"], name["name"])])
            ticks = int(w.wait(r"^ filter +[\d.]+% of (\d+) ticks").group(1))
            check(ticks == sum(r["self_ticks"] for r in s.rows(path)), "of %d ticks" % ticks)
            w.keys("F", until="no filters")
            w.type("/Render", until="Render")
            w.keys("Enter")
            w.keys("x", until="--exclude Render")
            same("excluded", lambda: flat_rows(w), report_rows(path, "--exclude", "Render"))

    @t("help", "the help screen has every key of the table, and each is for some view", quick=True)
    def _():
        r = s.run([s.luasample(), "tui", "--list-keys"]).ok()
        keys = [line.split("\t") for line in r.out.splitlines()]
        check(len(keys) > 20 and all(len(k) == 2 for k in keys), "%r" % keys)
        with tui(browsed(), height=50) as w:
            w.wait("by function")
            w.keys("?", until="Keys")
            for name, words in keys:
                if "pause" not in words:
                    w.wait(r"^ %s +%s *$" % (re.escape(name), re.escape(words)))
            w.keys("q", until="by function")
            w.keys("@", until="no such key")
            w.keys("]", until="is not for this view")
            w.keys("o", until="Command:|Command")
            w.wait("luajit .*browse.lua")

    @t("labels", "the keys of labels are among what can be grouped by")
    def _():
        path = s.record_lua("labels.lua", "-q").ok().trace
        with tui(path, "--raw", **WIDE) as w:
            w.wait("by function, sorted by self")
            w.keys("b", until="label:user +by the values of this label")
            w.type("/label:route", until="/label:route$")
            w.keys("Enter")
            w.keys("Enter", until="by label:route, sorted")
            same("label:route", lambda: flat_rows(w, False), report_rows(path, "--by", "label:route", two=False))

    @t("mouse", "a click is the row, a double one opens it, the wheel scrolls, the head of a column sorts", quick=True)
    def _():
        with tui(browsed(), "--raw") as w:
            w.wait("by function, sorted by self +1/")
            row, first = 3, [name for _, _, name in report_rows(browsed())][:3]
            press(w, CLICK, 30, row + 1)
            w.wait(r" 2/\d+ *$")
            press(w, CLICK, 30, row + 2, twice=True)
            w.wait(r" 3/\d+ *$")
            w.wait("\u25be " + re.escape(first[2][:20]))
            press(w, CLICK, 30, row + 2, twice=True)
            w.wait("\u25be", gone=True)
            for column, order in (("Total", "total"), ("Function", "name"), ("Self", "self")):
                x = w.lines()[row - 1].index(column)
                press(w, CLICK, x + 1, row - 1)
                w.wait("by function, sorted by " + order)
            press(w, CLICK, 30, 0)              # the title, and below the last row: nothing
            press(w, CLICK, 30, 23)
            w.keys("b", until="Group by")
            press(w, CLICK, 3, row + 4, twice=True)     # lists are the same
            w.wait("by (vmstate|zone|line|module)")
            w.keys("f", until="^filter:")
            press(w, CLICK, 3, row)             # a line that is typed is left alone
            w.type("--vmstate gc")
            w.wait("^filter: --vmstate gc")
            w.keys("Escape", "Q", until="^status 0")
        with tui(browsed(), "--raw", height=12) as w:
            w.wait("by function, sorted by self +1/")
            press(w, WHEEL_DOWN, 30, 10)
            w.wait(r" 4/\d+ *$")
            check(first[0] not in w.text(), "the first row is still there")
            press(w, WHEEL_UP, 30, 10)
            w.wait(re.escape(first[0]))
        with tui(browsed(), "--no-mouse") as w:
            w.wait("by function, sorted by self +1/")
            check(mouse_flag(w) == "0", "--no-mouse takes the mouse")
        with tui(browsed()) as w:
            w.wait("by function, sorted by self +1/")
            check(mouse_flag(w) == "1", "the mouse is not asked for")
            w.keys("q", until="^status 0")
            check(mouse_flag(w) == "0", "the mouse is not given back")
