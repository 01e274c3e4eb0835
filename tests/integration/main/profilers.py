"""What the tests of LuaJIT's own three profilers share: the rows of jit_p.py, jit_zone.py and jit_profile.py."""
import os
import re

import support as s
from support import check

Q = ["-q"]


def percent_rows(text):
    """(share, rest of the line) of the lines of a text report that start with a share in percent."""
    return [(float(m.group(1)), m.group(2)) for m in re.finditer(r"^\s*(\d+(?:\.\d+)?)\s*%\s*(.*)$", text, re.M)]


def names(run, *args):
    return [r["function"] for r in run.rows("--by", "function", *args)]


def one(run, name, *args):
    got = [r for r in run.rows("--by", "function", *args) if r["function"] == name]
    check(len(got) == 1, "%d rows named %s among %s" % (len(got), name, names(run, *args)[:12]))
    return got[0]


def zone_shares(r, by):
    j = r.rows("--by", by)
    return {x["zone"]: 100 * x["self"] for x in j}


def add_rows(suite, table, may_fail=()):
    """A test for each row: name, tag, what it shows, the program with its arguments, options of record, the check, which gets the
    finished recording (support.Run), and whether it is part of --quick. The programs of may_fail end with another status."""
    def make(name, tag, title, program, options, fn, quick):
        def test():
            script = program[0]() if callable(program[0]) else program[0]
            args = list(program[1:])
            if script == "twoloops":
                script, args = os.path.join(s.TESTS, "truth", "twoloops.lua"), [s.tmpfile(".truth"), "1"]
            r = s.record_lua(script, *options, args=args)
            if name not in may_fail:
                r.ok()
            r.args = args
            fn(r)
        suite.test(name, title, quick, tag)(test)
    for row in table:
        make(*row)
