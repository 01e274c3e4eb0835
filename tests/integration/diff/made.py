"""Traces with chosen content, made by tests/gen/gen_stacks, for the tests of diff and merge."""
import os
import random
import subprocess

import support as s

MS = 1000000
GEN = os.path.join("tests", "gen", "gen_stacks")


def name(n):
    b = n if isinstance(n, bytes) else n.encode()
    return b.hex() or "-"


class Program:
    """A source with functions at chosen lines: [(name, first line, hash)]. A frame is (function, line in the file)."""
    def __init__(self, functions, source="@app.lua", text_hash=77):
        self.source, self.text_hash, self.functions = source, text_hash, functions
        self.number = {f[0]: i + 1 for i, f in enumerate(functions)}
        self.first = {f[0]: f[1] for f in functions}

    def lines(self):
        out = ["source %s %d" % (name(self.source), self.text_hash)]
        for n, first, hash in self.functions:
            shown = "" if isinstance(n, str) and n.startswith("?") else n
            out.append("function 1 %d %d %d %s" % (first, first + 8 if first else 200, hash, name(shown)))
        return out

    def frame(self, f):
        f, line = f if isinstance(f, tuple) else (f, self.first[f] + 1)
        return "%d:%d" % (self.number[f], line)


def trace(program, samples, interval=MS, extra=(), start=None, threads=("made",), seed=None):
    """samples: [(stack, count)] or [(stack, count, {weight, state, zone, thread})]; a stack is a list of frames, the root
    first."""
    path = s.tmpfile(".data")
    text = ["interval %d" % interval]
    if start:
        text.append("start %d %d %d" % start)
    text += ["thread %d %s" % (100 + i, name(t)) for i, t in enumerate(threads)]
    text += program.lines() + list(extra)
    rows = []
    for stack, count, *more in samples:
        m = {"weight": 1, "state": 1, "zone": 0, "thread": 1, **(more[0] if more else {})}
        frames = " ".join(program.frame(f) for f in stack)
        rows.append((count, "%(weight)d %(state)d %(zone)d %(thread)d " % m + frames))
    if seed is not None:                        # in time order as a program would have them: one by one, shuffled
        rows = [(1, r) for count, r in rows for _ in range(count)]
        random.Random(seed).shuffle(rows)
    text += ["samples %d %s" % r for r in rows]
    p = subprocess.run([os.path.join(s.build_dir(), GEN), path], input="\n".join(text) + "\n", encoding="ascii",
                       stderr=subprocess.PIPE, timeout=60)
    s.check(p.returncode == 0, "gen_stacks: %s" % p.stderr)
    return path


def draw(seed, shares, n):
    """n samples that fall on the stacks with these chances."""
    rng = random.Random(seed)
    counts = [0] * len(shares)
    for _ in range(n):
        x, i = rng.random() * sum(shares), 0
        while x >= shares[i] and i < len(shares) - 1:
            x -= shares[i]
            i += 1
        counts[i] += 1
    return counts


def diff(*args, status=0, **kw):
    r = s.run([s.luasample(), "diff", *args], **kw)
    return r.ok(status)


def rows(*args, key="rows"):
    j = s.json_of(["diff", "--format", "json", *args])
    return {r["name"]: r for r in j[key]}
