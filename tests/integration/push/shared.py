"""What the tests of push share: traces, a reader of profile.proto, and what report says of the same."""
import collections
import gzip
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "diff")]
import made
import support as s
from support import check

suite = s.Suite("push")
MS = 1000000


def fields(data):
    """(number, value) of a message: ints and bytes."""
    at = 0

    def varint():
        nonlocal at
        v = shift = 0
        while True:
            b = data[at]
            at += 1
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return v
    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        elif tag & 7 == 2:
            n = varint()
            check(at + n <= len(data), "a field is longer than its message")
            yield tag >> 3, data[at:at + n]
            at += n
        else:
            raise s.Fail("wire type %d" % (tag & 7))


def numbers(data):
    v = shift = 0
    for b in data:
        v |= (b & 127) << shift
        shift += 7
        if b < 128:
            yield v
            v = shift = 0


class Profile:
    """A profile.proto: samples as (functions from the leaf, values, labels)."""
    def __init__(self, data):
        raw = gzip.decompress(data)
        self.size = len(raw)
        all = collections.defaultdict(list)
        for n, v in fields(raw):
            all[n].append(v)
        self.strings = [v.decode() for v in all[6]]
        self.time, self.duration = (all[n][0] if n in all else 0 for n in (9, 10))
        types = [dict(fields(t)) for t in all[1]]
        self.types = [(self.strings[t[1]], self.strings[t[2]]) for t in types]
        functions = {f[1]: self.strings[f[2]] for f in (dict(fields(v)) for v in all[5])}
        where = {}
        for v in all[4]:
            f = dict(fields(v))
            where[f[1]] = functions[dict(fields(f[4]))[1]]
        check(sorted(where) == list(range(1, len(where) + 1)), "ids of locations are not dense")
        self.samples = []
        for v in all[2]:
            stack, values, labels = [], [], []
            for n, x in fields(v):
                if n == 1:
                    stack += [where[i] for i in numbers(x)]
                elif n == 2:
                    values += numbers(x)
                else:
                    label = dict(fields(x))
                    labels.append((self.strings[label[1]], self.strings[label[2]]))
            self.samples.append((tuple(stack), values, labels))

    def sum(self, i=-1):
        return sum(v[i] for _, v, _ in self.samples)


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
