"""What the tests of push share: traces, a reader of profile.proto, and what report says of the same."""
import collections
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "diff")]
import made
import support as s
from support import check

suite = s.Suite("push")
MS = 1000000


def self_of(profiles):
    """Value of each leaf."""
    count = collections.Counter()
    for p in profiles:
        for stack, values, _ in p.samples:
            count[stack[0]] += values[-1]
    return count


def reported(trace, *args):
    """(sum in ns, the five first functions with their ns) of report."""
    j = s.json_of(["report", "-i", trace, "--json", *args])
    ns = j["header"]["asked_interval_ns"]
    rows = sorted(((r["function"], r["self_ticks"] * ns) for r in j["rows"] if r["self_ticks"]), key=lambda r: (-r[1], r[0]))
    return sum(r[1] for r in rows), rows[:5]


def first_five(count):
    return sorted(count.items(), key=lambda r: (-r[1], r[0]))[:5]


def small(start=None):
    """A trace of five functions with different times; start: seconds of CLOCK_REALTIME."""
    names = ["main", "parse", "render", "encode", "send", "log"]
    p = made.Program([(n, 1 + 20 * i, i + 1) for i, n in enumerate(names)])
    rows = [(["main"], 7), (["main", "parse"], 311), (["main", "render"], 205), (["main", "render", "encode"], 97),
            (["main", "send"], 41), (["main", "send", "log"], 13)]
    return made.trace(p, rows, start=start)


def many(n):
    """A trace of n different stacks."""
    p = made.Program([("f%d" % i, 1 + 300 * i, i + 1) for i in range(300)])
    return made.trace(p, [([("f%d" % (i // 200), 300 * (i // 200) + 2 + i % 200)], 1 + i % 3) for i in range(n)])


def push(trace, to, *args, **kw):
    return s.run([s.luasample(), "push", trace, "--to", to, *args], **kw)
