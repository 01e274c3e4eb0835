"""What jit.zone does, and what report shows of it: one test for each line of that checklist, with its number as tag. Imported by
run.py."""
import os
import re

import support as s
from jit_p import jp12
from profilers import Q, add_rows, zone_shares
from support import check, check_near


def zn_semantics(r):
    check(r.out.startswith("zone semantics hold"), "jit.zone behaves otherwise: %r %r" % (r.out, r.err[-300:]))


def zn06(r):
    zn_semantics(r)
    jp12(r)
    z = zone_shares(r, "zone-path")
    check_near("AI;A*", z.get("AI;A*", 0), 50, 4)
    inside = sum(x["self_ticks"] for x in r.rows("--by", "function", "--zone", "AI"))
    check_near("--zone AI with what is inside", 100.0 * inside / sum(x["self_ticks"] for x in r.rows()), 80, 4)


def zn07(r):
    z = zone_shares(r, "zone")
    check_near("A", z.get("A", 0), 40, 4)
    check_near("(none): B's time", z.get("(none)", 0), 60, 4)


def zn08(r):
    zn_semantics(r)
    plain = s.run([s.luajit().program, os.path.join(s.LUA, "zonehot.lua")])
    x = s.record_lua("zonehot.lua", "-q").ok()
    counts = re.search(r"traces (\d+) aborts (\d+)", plain.out).groups()
    check(re.search(r"traces (\d+) aborts (\d+)", x.out).groups() == counts,
          "a hot loop with zones compiles otherwise: %r, without us %r" % (x.out, plain.out))


TABLE = [
    # name, tag, what it shows, program and arguments, record options, check, part of --quick
    ("zone.push", "ZN01", "push returns nil", ["zones.lua", "0.1"], Q, zn_semantics, True),
    ("zone.pop", "ZN02", "pop returns the name", ["zones.lua", "0.1"], Q, zn_semantics, False),
    ("zone.get", "ZN03", "get", ["zones.lua", "0.1"], Q, zn_semantics, False),
    ("zone.flush", "ZN04", "flush", ["zones.lua", "0.1"], Q, zn_semantics, False),
    ("zone.empty-pop", "ZN05", "empty pop raises", ["zones.lua", "0.1"], Q, zn_semantics, False),
    ("zone.path", "ZN06", "innermost zone, and the path", ["zones.lua"], Q, zn06, False),
    ("zone.over-yields", "ZN07", "zones over yields stay with their coroutine", ["zoneyield.lua"], Q, zn07, True),
    ("zone.error-and-hot", "ZN08", "error leaves a zone pushed; hot zone calls compile", ["zones.lua", "0.1"], Q, zn08, False),
]


def add_to(suite):
    add_rows(suite, TABLE)
