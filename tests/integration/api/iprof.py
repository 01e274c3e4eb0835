"""require "luasample.iprof", without a recorder and with one. Imported by run.py; what is checked is in tests/lua/iprof.lua."""
import os

import support as s
from support import check

MODULE = os.path.join(s.ROOT, "libsample", "api", "iprof.lua")
SCRIPT = os.path.join(s.LUA, "iprof.lua")
CASES = (
    ("IP01", "start says why not; nesting and the JIT compiler are allowed", ["messages", "nesting"]),
    ("IP02", "stop without a start", ["stop"]),
    ("IP03", "the result's members, by the real clock", ["real"]),
    ("IP04", "PLAIN has no callees, and no hook", ["plain"]),
    ("IP05", "INCLUSIVE is a function's own and its callees'", ["inclusive"]),
    ("IP06", "EXCLUSIVE is a function's own; summed over the tree it is INCLUSIVE", ["exclusive"]),
    ("IP07", "deeper callees belong to the level of the limit", ["limit"]),
    ("IP08", "the limit, if none is given", ["deep"]),
    ("IP09", "names; start and stop are not there", ["names"]),
    ("IP10", "profile returns a wrapper, with all arguments and results", ["profile"]),
    ("IP11", "what is evaluated before the start is not there", ["echo"]),
    ("IP12", "a tail call's callee is beside its caller", ["tail"]),
    ("IP13", "errors out of a wrapper, and those that are caught in it", ["errors"]),
    ("IP14", "the wait of a coroutine", ["coroutine"]),
    ("IP15", "each coroutine has its own profile", ["parent"]),
    ("IP16", "metamethods, C, FFI, the program's hooks, compiled code", ["metamethod", "cframe", "ffi", "hook", "jit"]),
)
ALL = [case for _, _, cases in CASES for case in cases]


def environ(lj):
    return lj.environ({"IPROF_C": os.path.join(s.build_dir(), "tests", "exact", "exacttruth.so")})


def runs_all(r, cases, what):
    check(r.status == 0 and r.out.split() == cases, "%s: %d %s %s" % (what, r.status, r.out, r.err))


def add_to(suite):
    def add(tag, title, cases):
        @suite.test("iprof-" + cases[0], title, quick=True, tag=tag)
        def one():
            for lj in s.luajits():
                runs_all(s.run([lj.program, SCRIPT, MODULE, *cases], env=environ(lj), timeout=60), cases, lj.name)

    for row in CASES:
        add(*row)

    @suite.test("iprof-recorded", "luasample.iprof beside a recorder: by time, and with exact counts", quick=True)
    def recorded():
        lj = s.luajit()
        for events in ("cpu", "lines,calls,instructions"):
            r = s.record_lua("iprof.lua", "-e", events, args=[MODULE, *ALL], env=environ(lj), timeout=60)
            runs_all(r, ALL, events)

    @suite.test("iprof-counts", "calls of each function are those that -e calls counts", quick=True)
    def counts():
        lj = s.luajit()
        for name in ("json", "richards"):
            program, out = os.path.join(s.TESTS, "bench", "programs", name + ".lua"), s.tmpfile(".calls")
            env = dict(environ(lj), IPROF_PROGRAM=program, IPROF_OUT=out)
            s.run([lj.program, SCRIPT, MODULE, "program"], env=env, timeout=60).ok()
            with open(out) as f:
                got = {tuple(int(n) for n in line.split()) for line in f}
            r = s.record([lj.program, program, "1"], "-e", "calls", env=lj.environ()).ok()
            rows = s.rows(r.trace, "--by", "line", "--event", "calls")
            want = {(int(row["name"].rpartition(":")[2]), row["self_ticks"]) for row in rows
                    if row["self_ticks"] and row["name"].rpartition(":")[2].isdigit()}
            check(got == want and sum(n for _, n in got) > 10000, "%s: %s" % (name, sorted(got ^ want)))

    @suite.test("iprof-plain-lua", "luasample.iprof on a Lua that is not LuaJIT: refused in a line", quick=True)
    def plain_lua():
        r = s.run([s.need("lua5.1"), "-e", "print(loadfile(%r)().start('x'))" % MODULE])
        check((r.status, r.out, r.err) == (0, "false\tInappropriate ujit build\n", ""), "%d %s %s" % (r.status, r.out, r.err))
