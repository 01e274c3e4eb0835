#!/usr/bin/python3
"""Truth of exact counts: run.py [--quick] [NAME...]

Runs programs under each LuaJIT and counts how often each bytecode is executed: by hooks of Lua's C API with the JIT compiler
off, by the agent's stubs with the compiler off, and by the agent with the compiler on. All three must be equal, to the last
digit, for each bytecode of each function and for each line that calls one, and the program's output must be the same. The agent's own sources count, in the
module exacttruth (truth.c), which count.lua loads: no recording is made.

same.PROGRAM: with and without counts the same traces are compiled, at the same places, in the same order. killed: what a
process counted that ended by SIGKILL. control: a count that is moved by one must be found. luacov.*: coverage
against luacov's. record.*, lines.*: recordings with -e lines, calls, instructions and coverage (record.py).
calltime.*: with -e calltime (calltime.py)."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import calltime
import luacov
import record
import support as s

HERE = os.path.dirname(os.path.abspath(__file__))
OWN = os.path.join(HERE, "programs")
BENCH = os.path.join(s.TESTS, "bench", "programs")
# Programs of tests/bench and their argument, for some million bytecodes. strings is none: it sorts what pairs gives, whose order
# changes from run to run.
BENCH_ROUNDS = {"fannkuch": "1", "json": "3", "life": "20", "nbody": "3000", "parser": "1", "richards": "1", "ring": "300", "trees": "1"}
OWN_ROUNDS = {"guards": "400", "kinds": "300", "chunks": "3000", "forks": "", "many": "20", "finalizers": "1000"}
# kinds has hooks of its own, which take the place of the test's; the child of forks would have them; a hundred million of them are long.
NO_HOOKS = {"kinds", "forks", "finalizers", "fannkuch", "awfy-havlak", "awfy-mandelbrot",
            "awfy-nbody"}
QUICK = {"kinds", "chunks", "richards", "json"}
# are-we-fast-yet, as far as its repository lies in the tests' cache, in the directory awfy; with sizes for a million bytecodes or more.
AWFY = {"bounce": 3, "cd": 10, "deltablue": 20, "havlak": 1, "json": 1, "list": 2,
        "mandelbrot": 500, "nbody": 250000, "permute": 3,
        "queens": 3, "richards": 1, "sieve": 5, "storage": 1, "towers": 1}
AWFY_LONG = {"havlak"}         # half a minute each: with LUASAMPLE_AWFY=all
AWFY_DIR = os.path.join(os.environ.get("LUASAMPLE_TEST_CACHE",
                                       os.path.expanduser("~/.cache/luasample-tests")), "awfy",
                        "benchmarks", "Lua")
MUST_BE_0 = ("no_head", "no_loop", "unbalanced", "damaged", "lost", "outside")

suite = s.Suite("exact")


def module_path():
    module = os.path.join(s.build_dir(), "tests", "exact", "exacttruth.so")
    if not os.path.exists(module):
        raise s.Skip("exacttruth.so is not built (libluajit-5.1-dev missing?)")
    return os.path.join(os.path.dirname(module), "?.so")


def count(lj, way, program, arg, *opts, env=None, prefix=()):
    """The counts by bytecode, the figures of how the counting went, and what the program wrote."""
    out = s.tmpfile(".counts")
    extra = {"LUA_CPATH": module_path()}
    extra.update(env or {})
    r = s.run([*prefix, lj.program, *opts, os.path.join(HERE, "count.lua"), way, out, program] + ([arg] if arg else []),
              env=lj.environ(extra), timeout=300)
    if r.status == 3:
        raise s.Fail(r.err.strip())
    r.ok()
    return read_counts(out) + (r.out,)


def read_counts(path):
    counts, figures = {}, {}
    with open(path, errors="replace") as f:
        for line in f:
            if line.startswith("# "):
                words = line[2:].split()
                figures = dict(zip(words[::2], map(int, words[1::2])))
            else:
                where, pos, n = line.rstrip("\n").rsplit(" ", 2)
                s.check(n.isdigit(), "not exact: " + line)
                s.check((where, pos) not in counts, "twice: " + line)
                counts[where, pos] = int(n)
    s.check(counts, "nothing was counted")
    return counts, figures


def differences(a, b):
    return ["%s bytecode %s: %d, not %d" % (*k, b.get(k, 0), a.get(k, 0)) for k in sorted(set(a) | set(b)) if a.get(k) != b.get(k)]


def compare(what, a, b):
    wrong = differences(a, b)
    s.check(not wrong, "%s: %d of %d bytecodes differ: %s" % (what, len(wrong), len(a), "; ".join(wrong[:5])))


def add(name, program, arg, lj_name, quick, directory=None):
    def test():
        lj = s.luajit(lj_name)
        if directory and not os.path.isdir(directory):
            raise s.Skip("no %s (a copy of are-we-fast-yet's repository)" % directory)
        path = {"LUA_PATH": "%s/?.lua;%s" % (directory,
                                             lj.env.get("LUA_PATH", ";;"))} if directory else {}
        off, _, off_out = count(lj, "exact", program, arg, "-joff", env={"LS_JIT": "off", **path})
        if name not in NO_HOOKS:
            hooked, _, hooked_out = count(lj, "hook", program, arg, "-joff", env=path)
            compare("stubs and hooks", hooked, off)
            s.check(hooked_out == off_out, "the program's output differs")
        on, figures, on_out = count(lj, "exact", program, arg, env={"LS_JIT": "on", **path})
        compare("with the JIT compiler", off, on)
        s.check(any(" calls " in where for where, _ in on), "nobody calls anything")
        s.check(on_out == off_out, "the program's output differs")
        for figure in MUST_BE_0:
            s.check(figures[figure] == 0, "%s is %d" % (figure, figures[figure]))
        s.check(figures["traces"] > 0 and figures["compiled"] > 0, "nothing was compiled: this proves nothing")
    suite.test("%s.%s" % (name, lj_name), "", quick)(test)


def traces_of(lj, way, program, arg):
    log = s.tmpfile(".traces")
    s.need("setarch")
    out = s.tmpfile(".counts")
    s.run(["setarch", "-R", lj.program, os.path.join(HERE, "count.lua"), way, out, program, arg],
          env=lj.environ({"LUA_CPATH": module_path(), "LOG": log}), timeout=300).ok()
    with open(log) as f:
        return f.read().splitlines()


def add_same(name, program, arg):
    @suite.test("same." + name, "the same traces are compiled", name in QUICK)
    def test():
        lj = s.luajit()
        plain, counted = traces_of(lj, "watch", program, arg), traces_of(lj, "exact", program, arg)
        s.check(len(plain) > 5, "nothing was compiled")
        s.check(plain == counted, "other traces: %s" % [(a, b) for a, b in zip(plain, counted) if a != b][:3])


for lj in ("debian", "shared", "luajit2"):
    for n, rounds in OWN_ROUNDS.items():
        add(n, os.path.join(OWN, n + ".lua"), rounds, lj, n in QUICK and lj == "debian")
    for n, rounds in BENCH_ROUNDS.items():
        add(n, os.path.join(BENCH, n + ".lua"), rounds, lj, n in QUICK and lj == "debian")
    for n, size in AWFY.items():
        if n not in AWFY_LONG or os.environ.get("LUASAMPLE_AWFY") == "all":
            add("awfy-" + n, os.path.join(OWN, "awfy.lua"), "%s=%d" % (n, size), lj, False,
                AWFY_DIR)
# Others give up recordings, and how long LuaJIT then waits is random.
for n in ("fannkuch", "life", "nbody"):
    add_same(n, os.path.join(BENCH, n + ".lua"), BENCH_ROUNDS[n])


@suite.test("storm", "100,000 chunks that are loaded, run and dropped")
def storm():
    lj, program = s.luajit(), os.path.join(OWN, "chunks.lua")
    off, _, off_out = count(lj, "exact", program, "50000", "-joff", env={"LS_JIT": "off"})
    on, figures, on_out = count(lj, "exact", program, "50000", env={"LS_JIT": "on"})
    compare("with the JIT compiler", off, on)
    s.check(on_out == off_out, "the program's output differs")
    s.check(not any(figures[f] for f in MUST_BE_0) and figures["compiled"] > 0, "%s" % figures)


@suite.test("killed", "what a process had counted when it was killed", True)
def killed():
    lj, counts = s.luajit(), s.tmpfile(".memory")
    env = lj.environ({"LUA_CPATH": module_path()})
    program = os.path.join(OWN, "killed.lua")
    r = s.run([lj.program, os.path.join(HERE, "count.lua"), "exact=" + counts, "-", program], env=env)
    s.check(r.status == 128 + 9, "status %d: %s" % (r.status, r.err))
    out = s.tmpfile(".counts")
    s.run([lj.program, os.path.join(HERE, "count.lua"), "read=" + counts, out], env=env).ok()
    got, _ = read_counts(out)
    s.check(sorted(got.values()).count(12345) == 3, "no three bytecodes of 12345: %s" % got)
    s.check(os.stat(counts).st_blocks * 512 < 1 << 20, "%d bytes of memory" % (os.stat(counts).st_blocks * 512))


@suite.test("refused", "LuaJITs whose bytecodes cannot be counted", True)
def refused():
    cache = os.environ.get("LUASAMPLE_TEST_CACHE", os.path.expanduser("~/.cache/luasample-tests"))
    for name in ("nojit", "nongc64", "novmevent"):
        tree = os.path.join(cache, name)
        if not os.path.exists(os.path.join(tree, "bin", "luajit")):
            raise s.Skip("no LuaJIT named %s (scripts/luajit-trees makes it)" % name)
        lj = s.LuaJIT(name, os.path.join(tree, "bin", "luajit"), {"LD_LIBRARY_PATH": os.path.join(tree, "lib")})
        r = s.run([lj.program, os.path.join(HERE, "count.lua"), "exact", "-", os.path.join(BENCH, "nbody.lua"), "10"],
                  env=lj.environ({"LUA_CPATH": module_path()}))
        s.check(r.status == 3 and re.fullmatch(r"cannot count: .+\n", r.err), "%s: status %d: %s" % (name, r.status, r.err))


@suite.test("control", "a count that is moved by one is found", True)
def control():
    counts, _, _ = count(s.luajit(), "exact", os.path.join(BENCH, "richards.lua"), "1")
    where = max(counts, key=counts.get)
    moved = dict(counts)
    moved[where] += 1
    s.check(len(differences(counts, moved)) == 1, "it was not found")


suite.count = count
luacov.add(suite)
record.add(suite, ("debian", "shared", "luajit2"))
calltime.add(suite, ("debian", "shared", "luajit2"))

if __name__ == "__main__":
    sys.exit(suite.main())
