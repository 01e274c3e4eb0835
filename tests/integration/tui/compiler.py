"""The JIT compiler in the browser: its screen is luasample jit, lines of source have marks. Imported by run.py."""
import functools
import re

import support as s
from support import check
from screen import eventually, tui

COMPILED, CLOSURE = 4, 10               # lines of marked.lua
TALL = dict(width=80, height=220)


@functools.lru_cache(None)
def marked():
    return s.record_lua("marked.lua", interval="1ms").ok().trace


def jit(*args):
    """The lines of luasample jit without its header."""
    out = s.run([s.luasample(), "jit", "-i", marked(), *args]).ok().out
    return [line.rstrip() for line in out[out.index("\n== ") + 1 if "\n== " in out else 0:].split("\n")]


def body(w):
    return [line.rstrip() for line in w.lines()[3:-2]]


def has_lines(w, want):
    """The screen's rows end with these, in their order."""
    def compare():
        got = body(w)
        while got and not got[-1]:
            got.pop()
        rest = list(want)
        while rest and not rest[-1]:
            rest.pop()
        check(got[-len(rest):] == rest, "the screen has\n%s\nnot\n%s" % ("\n".join(got), "\n".join(rest)))
    eventually(compare)


def add_to(suite):
    t = suite.test

    @t("jit.screen", "c: the states over time, and what luasample jit says, in 80 columns", quick=True)
    def screen():
        with tui(marked(), **TALL) as w:
            w.wait("closures")
            w.keys("c", until="The JIT compiler")
            has_lines(w, jit())
            text = w.text()
            for letter in "NIG":
                check(re.search(r"^    %s  [ \u2581-\u2588]*[\u2581-\u2588]" % letter, text, re.M), "no row of %s:\n%s" % (letter, text))
            w.keys("q", until="closures")
        with tui(marked(), env={"LC_ALL": "C"}, **TALL) as w:
            w.wait("closures")
            w.keys("c", until="The JIT compiler")
            check(re.search(r"^    N  [ .:=+*#@-]*[=+*#@-]", w.wait("== Over time") and w.text(), re.M), "no row of N: " + w.text())

    @t("jit.trace", "Enter on a trace: luasample jit --trace; q goes back")
    def trace():
        number = s.json_of(["jit", "-i", marked(), "--json"])["traces"][0]["trace"]
        lines = jit()[:-1]
        row = next(i for i, line in enumerate(lines) if re.search("%% +%d (root|side)" % number, line))
        with tui(marked(), width=80, height=300) as w:
            w.wait("closures")
            w.keys("c", until="The JIT compiler")
            w.keys("Enter", until="rows of traces open")
            w.keys("G", *["Up"] * (len(lines) - row - 1), "Enter", until="Trace %d" % number)
            want = jit("--trace", str(number))
            has_lines(w, want)
            w.keys("q", until="The JIT compiler")

    @t("jit.marks", "a mark for each line of source, and Enter says why it is not compiled", quick=True)
    def marks():
        with tui(marked(), "--annotate=marked.lua", width=100, height=50) as w:
            w.wait("X given up")
            text = w.text()
            for line, sign in ((COMPILED, "N"), (CLOSURE, "X")):
                check(re.search(r" %s +%d \| " % (sign, line), text), "line %d is not marked %s:\n%s" % (line, sign, text))
            check(re.search(r"^ +1 \| --", text, re.M), "a comment is marked:\n" + text)
            w.keys("g", *["Down"] * (CLOSURE - 1))
            w.keys("Enter", until="marked.lua:%d, .*of the time; shares are of it" % CLOSURE)
            w.wait("given up for good: NYI: bytecode FNEW")
            want = jit("--line", "marked.lua:%d" % CLOSURE)
            w.resize(80, 120)
            has_lines(w, want)
            w.keys("q", until="X given up")
            w.keys("g", "Enter", until="nothing is known of what the JIT compiler made")
        with tui(marked(), "--annotate=marked.lua", width=50, height=20) as w:
            w.wait("closures")
            check(not re.search(r" [NX] +\d+ \| ", w.text()), "a narrow screen has no room for marks")

    @t("jit.bad", "no time and no compiler: the screen says so", quick=True)
    def bad():
        off = s.record_lua("marked.lua", lua_opts=("-joff",), interval="1ms").ok().trace
        with tui(off, **TALL) as w:
            w.wait("closures")
            w.keys("c", until="the JIT compiler was off")
            w.keys("q")
            w.keys("f", until="filter")
            w.type("--function nothing*")
            w.keys("Enter")
            w.keys("c", until="The JIT compiler")
