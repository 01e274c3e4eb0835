"""The engines: what is asked for is what runs; a VM that fails a check is read by LuaJIT's own profiler, and one that
cannot be read at all runs unharmed, each said once. Imported by run.py."""
import os
import re

import support as s
from support import check, check_near


def tree(name):
    """A LuaJIT that scripts/luajit-trees makes for this and leaves out of its list."""
    cache = os.environ.get("LUASAMPLE_TEST_CACHE", os.path.expanduser("~/.cache/luasample-tests"))
    program = os.path.join(cache, name, "bin", "luajit")
    if not os.path.exists(program):
        raise s.Skip("no LuaJIT named %s (scripts/luajit-trees makes it)" % name)
    return s.LuaJIT(name, program, {"LD_LIBRARY_PATH": os.path.join(cache, name, "lib"),
                                    "LUA_PATH": os.path.join(cache, name, "share", "?.lua") + ";;"})


def seventy(lj, *opts, seconds="0.6", lua_opts=()):
    r, r.truth = s.record_seventy(*opts, lj=lj, seconds=seconds, lua_opts=lua_opts)
    check(r.out == "seventy done\n", "stdout %r; %s" % (r.out, r.err[-300:]))
    return r


def right(r, engine):
    """The engine's name is in the header, and the shares are those that seventy.lua measured."""
    i, rows = r.info(), r.rows("--by", "function")
    check(i["engine"] == engine, "the engine is %s; %s" % (i["engine"], r.err[-300:]))
    check(re.search(r"^# Runtime:.*engine %s" % engine, r.text(), re.M), "header: %s" % r.text()[:300])
    check_near("ticks", sum(x["self_ticks"] for x in rows), i["cpu_ns"] / 1e6, 0.02 * i["cpu_ns"] / 1e6 + 3)
    for name, want in r.truth.items():
        s.check_share(name, s.share(rows, function=name), want, s.effective_samples(r.trace))


def said_once(r, pattern):
    lines = [l for l in r.err.splitlines() if re.search(pattern, l)]
    check(len(lines) == 1, "%d lines of the summary with %s: %s" % (len(lines), pattern, r.err[-600:]))
    head = [l for l in r.text().splitlines() if l.startswith("#") and re.search(pattern, l)]
    check(len(head) == 1, "%d lines of the header with %s: %s" % (len(head), pattern, r.text()[:600]))


def add_to(suite):
    t = suite.test

    for engine, runs in (("auto", "walk"), ("walk", "walk"), ("hook", "hook")):
        @t("engine." + engine, "compiled and interpreted, with each LuaJIT", engine != "auto")
        def asked(engine=engine, runs=runs):
            for lj in s.luajits():
                for lua_opts in ([], ["-joff"]):
                    right(seventy(lj, "--engine", engine, lua_opts=lua_opts), runs)

    for leaf in ("map", "root"):
        @t("engine.jit-leaf." + leaf, "functions of compiled code")
        def jit_leaf(leaf=leaf):
            r = seventy(s.luajit(), "--jit-leaf", leaf)
            right(r, "walk")
            check(r.info()["jit_leaf"] == leaf, "info: jit_leaf %s" % r.info().get("jit_leaf"))

    @t("engine.unknown", "an engine or a leaf that is none: usage", True)
    def unknown():
        for opts in (["--engine", "run"], ["--jit-leaf", "check"]):
            r = s.record([s.luajit().program, "-e", ""], *opts)
            check(r.status == 129 and opts[1] in r.err, "status %d: %s" % (r.status, r.err))

    @t("engine.failed-check", "a LuaJIT that keeps the base of compiled code elsewhere: hook, said once", True)
    def failed_check():
        lj = tree("moved")
        for engine in ("auto", "walk"):
            r = seventy(lj, "--engine", engine)
            said_once(r, r"\(engine hook\): \S")
            right(r, "hook")

    @t("engine.no-events", "without VM events: no map, root functions, said once")
    def no_events():
        r = seventy(tree("novmevent"))
        said_once(r, "compiled code is shown by the function that its trace starts in")
        right(r, "walk")

    @t("engine.no-jit", "without the JIT compiler")
    def no_jit():
        right(seventy(tree("nojit")), "walk")

    @t("engine.no-profiler", "without LuaJIT's profiler: walk needs none, hook says so")
    def no_profiler():
        lj = tree("noprofile")
        right(seventy(lj), "walk")
        r = seventy(lj, "--engine", "hook")
        said_once(r, "is not sampled: .*profiler")
        check(r.info()["samples"] == 0, "%d samples" % r.info()["samples"])

    @t("engine.not-gc64", "32-bit references: read, or one line says why not; the program is as without us", True)
    def not_gc64():
        lj = tree("nongc64")
        plain = s.run([lj.program, os.path.join(s.LUA, "odd.lua")], env=lj.environ())
        for engine in ("auto", "walk", "hook"):
            r = s.record_lua("odd.lua", "--engine", engine, lj=lj, interval="100us")
            check((r.status, re.sub("0x[0-9a-f]+", "", r.out)) == (plain.status, re.sub("0x[0-9a-f]+", "", plain.out)),
                  "status %d, stdout %r; without us %d %r" % (r.status, r.out[-300:], plain.status, plain.out[-300:]))
            r = seventy(lj, "--engine", engine)
            if r.info()["samples"]:
                right(r, r.info()["engine"])
            else:
                said_once(r, "is not sampled: ")
