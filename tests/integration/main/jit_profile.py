"""A program's own use of LuaJIT's profiler, by jit.profile and by its C API, with and without us: one test for each line of that
checklist, with its number as tag. Imported by run.py."""
import os
import re

import support as s
from profilers import Q, add_rows, names
from support import check


def pf(r):
    plain = s.run([s.luajit().program, os.path.join(s.LUA, "profile.lua"), r.args[0]])
    check(r.status == plain.status, "status %d, without us %d" % (r.status, plain.status))
    out, want = (re.sub("^window .*\n", "", re.sub("@[0-9a-fxN]+", "@0x", x), flags=re.M) for x in (r.out, plain.out))
    check(out == want, "prints %r, without us %r" % (out, want))
    if s.windows(plain.out):
        s.check_rates("its samples a second", s.windows(r.out), s.windows(plain.out))


def pf05(r):
    pf(r)
    check(r.status == 1 and "in callback" in r.err, "no panic: %d %r" % (r.status, r.err[-200:]))


def pf07(r):
    x = s.record([s.host("twovm")], "-q").ok()
    check(x.out == "twovm done\n", "stdout %r" % x.out)
    rows = x.rows("--by", "function")
    for function, least, most in (("in_first", 35, 65), ("in_second", 22, 50), ("in_thread", 7, 35)):  # about 50, 36 and 14 % of all CPU time
        share = s.share(rows, "total", function=lambda f: f.startswith(function))
        check(least < share < most, "%s has %.1f %%: %s" % (function, share, names(x)))


def pf10(engine):
    return lambda r: profile_api(engine)


def profile_api(engine):
    exe = s.host("profile_api")

    plain, x = s.run([exe]).ok(), s.record([exe], "--engine", engine).ok()
    for run in (plain, x):
        check(re.search(r"^calls (\d+) data ok dump (\S+) ", run.out, re.M), "not as documented: %r" % run.out)
    s.check_rates("its samples a ms", s.windows(x.out), s.windows(plain.out))
    fixed = [re.sub(r"[\d.]+|states [NICGJ]+", "N", o) for o in (plain.out, x.out)]
    check(fixed[0] == fixed[1], "%r, without us %r" % (x.out, plain.out))
    rows = x.rows("--by", "function")
    check(s.share(rows, "total_ticks", function=lambda f: f.startswith("burn2")) / 100 > 500,
          "before and after its profiler ran, 600 ms of burn2 are to be sampled: %s" % rows)
    text = s.report(x.trace)
    said = re.search("own profiler", text.out + text.err + x.err)
    check(bool(said) == (engine == "hook"), "what could not be sampled: " + x.err)
    if engine == "walk":
        check(sum(r["self_ticks"] for r in rows) >= x.info()["ticks"] * 0.99, "ticks are missing: %s" % rows)


def pf11(r):
    pf(r)
    x = s.record_lua("flushes.lua", "-q").ok()
    check(x.out == "flushes 0\n", "recording flushes traces: %r" % x.out)


TABLE = [
    # name, tag, what it shows, program and arguments, record options, check, part of --quick
    *[("profile." + name, tag, what, ["profile.lua", tag], Q, fn, False) for name, tag, what, fn in [
        ("callback", "PF01", "start(mode, cb)", pf), ("arguments", "PF02", "callback's arguments", pf),
        ("delayed", "PF03", "delayed samples sum up", pf), ("state", "PF04", "state of the timer's instant", pf),
        ("error", "PF05", "error in the callback", pf05), ("restart", "PF06", "stop, restart", pf)]],
    ("profile.second-vm", "PF07", "a second VM", ["seventy.lua", "0.1"], Q, pf07, False),
    ("profile.dumpstack", "PF08", "dumpstack's formats", ["profile.lua", "PF08"], Q, pf, False),
    ("profile.dumpstack-alone", "PF09", "dumpstack without start", ["profile.lua", "PF09"], Q, pf, False),
    ("profile.c-api", "PF10", "the C API", ["seventy.lua", "0.1"], Q, pf10("walk"), False),
    ("profile.c-api.hook", "PF10.hook", "the C API, while LuaJIT's profiler is ours", ["seventy.lua", "0.1"], Q, pf10("hook"), False),
    ("profile.flushes", "PF11", "traces flushed at start and stop by the program's profiler only", ["profile.lua", "PF11"], Q, pf11, False),
]

MAY_FAIL = {"profile.error"}    # its program ends with status 1


def add_to(suite):
    add_rows(suite, TABLE, MAY_FAIL)
