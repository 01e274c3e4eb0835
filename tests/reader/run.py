#!/usr/bin/python3
"""The second reader against luasample: run.py [--quick] [--list] [NAME...]

Both must say the same of golden traces, of traces made byte by byte from the page (crafted.py), of fresh recordings, of
a large generated trace (and that its printed truth), and of traces that are cut or have a chunk damaged: ticks outside
the damage exact, no name wrong. Needs the build directory in LUASAMPLE_BUILD (default build/), python3-zstandard and
python3-xxhash. --meson: exit status 77 when these are missing."""
import collections
import contextlib
import glob
import json
import os
import random
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import support as s
import compare
import crafted
from support import check

GOLDEN = os.path.join(s.TESTS, "golden")
PROGRAMS = os.path.join(s.TESTS, "bench", "programs")
SAMPLES, CHECKPOINT = 2, 3
SEED = 20

suite = s.Suite("reader")


def generate(**options):
    """A trace of gen_trace and the truth about it."""
    gen = os.path.join(s.build_dir(), "tests", "gen", "gen_trace")
    if not os.path.exists(gen):
        raise s.Skip("gen_trace is not built")
    path = s.tmpfile(".lst")
    r = s.run([gen, "-o", path, *["--%s=%d" % o for o in options.items()]]).ok()
    return path, json.loads(r.out)


def parse(data):
    return compare.reader().Trace(data)


def content(path):
    with open(path, "rb") as f:
        return f.read()


def write(data):
    path = s.tmpfile(".lst")
    with open(path, "wb") as f:
        f.write(data)
    return path


def compare_all(paths):
    check(paths, "no traces")
    for path in paths:
        try:
            ours = compare.compare(path)
            if ours:
                compare.compare_threads(*ours, path)
        except s.Fail as e:
            raise s.Fail("%s: %s" % (os.path.basename(path), e))


@suite.test("golden", "the golden traces", True)
def golden():
    compare_all(sorted(glob.glob(os.path.join(GOLDEN, "traces", "*.lst")) +
                       glob.glob(os.path.join(GOLDEN, "report", "*.data"))))


@suite.test("rejected", "the golden traces that lie", True)
def rejected():
    compare_all(sorted(glob.glob(os.path.join(GOLDEN, "rejected", "*.lst"))))


# Damage.

def by_function(totals):
    return {f["id"]: (f["name"], f["self_ticks"], f["total_ticks"]) for f in totals["functions"]}


def whole_sample_totals(totals):
    return {k: totals[k] for k in ("ticks", "samples", "vmstate", "zone", "thread", "vm", "coroutine", "lines")}


def names_ever(t):
    """All names that the trace gives to a function, by its id."""
    names = collections.defaultdict(lambda: {None, compare.reader().LOST})
    for c in t.chunks:
        for r in c.records:
            if r.kind and r.kind.name == "name":
                for f, name in zip(r.column("function"), r.column("name")):
                    names[f].add(compare.reader().show(t.string(name)))
    for f in t.rows["function"]:
        names[f].add(t.best_name(f))
    return names


def check_names(cut, names):
    for f in cut.rows["function"]:
        check(cut.best_name(f) in names[f], "function %d is %r, of %s" % (f, cut.best_name(f), names[f]))


def flip(data, chunk, at):
    out = bytearray(data)
    out[chunk.offset + at] ^= 1 << random.randrange(8)
    return bytes(out)


def flip_each(path, wheres=("header", "payload")):
    """One bit of each chunk in turn: its own ticks are lost and nothing else."""
    random.seed(SEED)
    data, rt = content(path), compare.reader()
    for n in range(len(parse(data).chunks)):
        truth = parse(data)
        c = truth.chunks[n]
        if c.type == SAMPLES:
            c.records = []
        want = rt.totals(truth)
        for where in wheres:
            at = random.randrange(32) if where == "header" else random.randrange(32, c.size)
            what = "chunk %d, byte %d: " % (c.number, at)
            try:
                t, got = compare.compare(write(flip(data, c, at)), with_dump=where == "header")
            except s.Fail as e:
                raise s.Fail(what + str(e))
            check(compare.places(got["damage"]) == [(c.number, c.offset, c.size)], what + "damage is %s" % got["damage"])
            compare.same(what + "totals", whole_sample_totals(got), whole_sample_totals(want))
            compare.same(what + "functions", by_function(got), by_function(want))


@suite.test("flip.golden", "each chunk of the golden trace damaged in turn", True)
def flip_golden():
    flip_each(os.path.join(GOLDEN, "traces", "every-kind.lst"))


@suite.test("flip.jit", "each chunk of the golden trace with JIT traces damaged in turn", True)
def flip_jit():
    flip_each(os.path.join(GOLDEN, "traces", "jit.lst"))


@suite.test("flip.coded", "each chunk of the golden trace with coded columns damaged in turn", True)
def flip_coded():
    flip_each(os.path.join(GOLDEN, "traces", "coded.lst"))


@suite.test("flip.generated", "each chunk of a generated trace damaged in turn")
def flip_generated():
    flip_each(generate(samples=8000, functions=300, stacks=150)[0])


@suite.test("flip.many", "each chunk of a trace with many stacks damaged: what is lost is named, its ticks are counted")
def flip_many():
    random.seed(SEED)
    data, rt, lost = content(generate(samples=4000, functions=2000, stacks=5000)[0]), compare.reader(), 0
    names = names_ever(parse(data))
    for c in parse(data).chunks:
        t, got = compare.compare(write(flip(data, c, random.randrange(32, c.size))))
        truth = parse(data)
        for x in truth.chunks:
            if x.type == SAMPLES and x.number == c.number:
                x.records = []
        check(got["ticks"] == rt.totals(truth)["ticks"], "chunk %d: %d ticks" % (c.number, got["ticks"]))
        check(compare.places(got["damage"]) == [(c.number, c.offset, c.size)], "damage is %s" % got["damage"])
        check_names(t, names)
        lost += sum(f["self_ticks"] for f in got["functions"] if f["name"] == rt.LOST)
    check(lost, "no definition was lost: the test tests nothing")


@suite.test("flip.two", "definitions lost in both places: no ticks are lost, and no name is wrong", True)
def flip_two():
    random.seed(SEED)
    path, _ = generate(samples=3000, functions=200, stacks=1000)
    data = content(path)
    truth = parse(data)
    names, chunks, rt = names_ever(truth), truth.chunks, compare.reader()
    lost = 0
    for first in [c for c in chunks if c.type not in (SAMPLES, CHECKPOINT)]:
        for second in [c for c in chunks if c.type == CHECKPOINT]:
            bad = flip(flip(data, first, random.randrange(32, first.size)), second, random.randrange(second.size))
            t, got = compare.compare(write(bad))
            check(got["ticks"] == rt.totals(truth)["ticks"], "%d ticks" % got["ticks"])
            check_names(t, names)
            lost += sum(f["self_ticks"] for f in got["functions"] if f["name"] == rt.LOST)
    check(lost, "no definition was lost: the test tests nothing")


def cut_everywhere(path, positions, with_dump):
    data, rt = content(path), compare.reader()
    truth = parse(data)
    names = names_ever(truth)
    ticks = {c.number: sum(w for r in c.records for e, w in zip(r.column("event"), r.column("weight")) if e == 1)
             for c in truth.chunks if c.type == SAMPLES}
    for p in positions:
        try:
            ours = compare.compare(write(data[:p]), with_dump=with_dump)
            if ours is None:
                check(p == 0, "refused")
                continue
            t, got = ours
            whole = [c for c in truth.chunks if c.end <= p]
            check([c.number for c in t.chunks] == [c.number for c in whole], "chunks %s" % [c.number for c in t.chunks])
            check(got["ticks"] == sum(ticks.get(c.number, 0) for c in whole), "%d ticks" % got["ticks"])
            check(got["complete"] == (p == len(data)), "complete is %s" % got["complete"])
            check_names(t, names)
            check(all(f["name"] != rt.LOST for f in got["functions"]), "a definition is behind the samples that use it")
        except s.Fail as e:
            raise s.Fail("cut at %d: %s" % (p, e))


def positions(path, count):
    random.seed(SEED)
    t = parse(content(path))
    edges = {c.end + d for c in t.chunks for d in (-1, 0, 1, 31)} | {0, 1, 8, 31, 32, 33, len(t.data)}
    edges = {p for p in edges if p <= len(t.data)}
    return sorted(set(random.sample(sorted(edges), min(len(edges), count // 2))) | {0, 1, 31, len(t.data)} |
                  {random.randrange(len(t.data)) for _ in range(count - count // 2)})


@suite.test("cut.golden", "the golden trace cut at 50 positions", True)
def cut_golden():
    path = os.path.join(GOLDEN, "traces", "every-kind.lst")
    cut_everywhere(path, positions(path, 50), True)


@suite.test("cut.generated", "a generated trace cut at 50 positions")
def cut_generated():
    path, _ = generate(samples=8000, functions=300, stacks=2000)
    cut_everywhere(path, positions(path, 50), False)


# The generator's truth.

@suite.test("generated", "200,000 generated samples against the truth that the generator prints")
def generated():
    path, truth = generate(samples=200000, functions=2000, stacks=20000)
    t, got = compare.compare(path)
    compare.compare_threads(t, got, path)
    zones = collections.Counter()
    for i, n in enumerate(truth["zone"]):
        zones["zone%d" % i if i else ""] += n
    ours = collections.Counter()
    for zone, n in got["zone"].items():
        ours[zone.split(";")[-1]] += n
    compare.same("truth", [got["ticks"], got["samples"], got["vmstate"], ours, sorted(got["thread"].values()),
                           got["info"]["lost.ring-full"]],
                 [truth["ticks"], truth["samples"], truth["vmstate"], zones, sorted(truth["thread"]), truth["lost_ticks"]])
    ticks = {f["name"]: f["self_ticks"] for f in got["functions"]}
    compare.same("truth: functions", {f: ticks.get(f) for f in truth["top"]}, truth["top"])


# Recordings.

def check_sources(t):
    """A text in the trace, and a file that is still there, has the size and hash that the trace says. Returns how many."""
    seen = 0
    for i, row in t.rows["source"].items():
        text = t.source_text(i)
        path = t.string(row["path"])
        if text is None and path and os.path.exists(path):
            with open(path, "rb") as f:
                text = f.read()
        if text is not None and row["text_hash"]:
            seen += 1
            check((row["size"], row["text_hash"]) == (len(text), crafted.xxh64(text)),
                  "source %d: size and hash are not those of its text" % i)
    return seen


def record_and_compare(script, *args, opts=(), least=20):
    r = s.record_lua(script, *opts, args=args).ok()
    t, totals = compare.compare(r.trace)
    compare.compare_threads(t, totals, r.trace)
    check(totals["complete"] and not totals["damage"], "complete %s, damage %s" % (totals["complete"], totals["damage"]))
    check(totals["ticks"] >= least, "%d ticks" % totals["ticks"])
    wall_alone = list(opts) == ["-e", "wall"]       # else the reader's total is of the CPU time
    said = totals["info"]["sample_ticks"] + (totals["info"].get("off_cpu_ticks", 0) if wall_alone else 0)
    check(totals["ticks"] == said, "%d ticks, INFO says %d" % (totals["ticks"], said))
    check(check_sources(t), "no source with size and hash")


def add_recordings():
    for script, args in (("zones.lua", ()), ("coros.lua", ()), ("names.lua", ()), ("mixedsource.lua", ()),
                         ("vmstates.lua", ("gc",)), ("regions.lua", ()), ("labels.lua", ()), ("counters.lua", ())):
        suite.test("record." + script[:-4], "a recording of tests/lua/" + script, script in ("zones.lua", "names.lua"))(
            lambda script=script, args=args: record_and_compare(script, *args))
    for path in sorted(glob.glob(os.path.join(PROGRAMS, "*.lua"))):
        name = os.path.basename(path)[:-4]
        suite.test("record.bench-" + name, "a recording of tests/bench/programs/%s.lua" % name)(
            lambda path=path: record_and_compare(path, opts=["-i", "200us"]))      # some take 15 ms on fast machines
    suite.test("record.wall", "a recording of wall time alone: the reader counts that")(
        lambda: record_and_compare("labels.lua", opts=["-e", "wall"]))
    suite.test("record.suspended", "a recording of wall time and of suspended coroutines")(
        lambda: record_and_compare("suspended.lua", "600", "2", opts=["-e", "cpu,wall,suspended", "-i", "100us"], least=1))
    suite.test("record.scope-none", "a recording without lines")(
        lambda: record_and_compare(os.path.join(PROGRAMS, "nbody.lua"), opts=["--scope", "none"]))


add_recordings()


@suite.test("growing", "a trace that is still being written, read again and again")
def growing():
    compare.reader()
    trace = s.tmpfile(".data")
    program = os.path.join(PROGRAMS, "strings.lua")
    lj = s.luajit()
    p = s.Started(s.record_cmd([lj.program, program, "400"], "-q", "-d", "6s", trace=trace), env=lj.environ())
    last, seen, end = -1, set(), time.monotonic() + 4.5
    try:
        while time.monotonic() < end:
            time.sleep(0.4)
            copy = s.tmpfile(".data")
            if not os.path.exists(trace):
                continue
            shutil.copyfile(trace, copy)
            ours = compare.compare(copy)
            if ours is None:
                continue
            check(ours[1]["ticks"] >= last, "%d ticks after %d" % (ours[1]["ticks"], last))
            last = ours[1]["ticks"]
            seen.add(last)
            if p.p.poll() is not None:
                break
            check(not ours[1]["complete"], "complete while it grows")
        check(len(seen) >= 3, "ticks seen: %s; stderr: %s" % (sorted(seen), p.read(p.err)[-300:]))
    finally:
        if p.p.poll() is None:
            for pid in [*s.children_of(p.p.pid), p.p.pid]:
                with contextlib.suppress(ProcessLookupError):   # the writer ends when the recorder does
                    os.kill(pid, s.SIGNALS.SIGKILL)
            p.p.wait()


crafted.add_to(suite)


def main():
    meson = "--meson" in sys.argv
    if meson:
        sys.argv.remove("--meson")
    try:
        compare.reader()
    except s.Skip as e:
        print("skip reader: %s" % e)
        print("reader: 0 passed, 0 failed, 1 skipped")
        return 77 if meson else 0
    except s.Fail as e:
        print("FAIL reader: %s" % e)
        print("reader: 0 passed, 1 failed, 0 skipped")
        return 1
    return suite.main()


if __name__ == "__main__":
    sys.exit(main())
