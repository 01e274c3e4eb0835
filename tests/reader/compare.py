"""Compares what read_trace.py reads from a file with what luasample says about it, through info, dump and report --json.
Used by run.py and crafted.py."""
import collections
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import support as s
from support import check

VMSTATES = ["Compiled", "Interpreted", "C code", "Garbage Collector", "JIT Compiler"]
LUA, C, NATIVE = 1, 2, 5                        # kinds of functions
MAIN_CHUNK = 1
OWN_MEMBERS = ("ticks", "samples", "complete")  # of info: what it says itself under the name of a fact


def reader():
    """The module read_trace; a skip without the Debian packages that it needs, with CI set a failure."""
    try:
        import read_trace
        return read_trace
    except ImportError as e:
        why = "%s: install python3-zstandard and python3-xxhash" % e
        raise s.Fail(why) if os.environ.get("CI") else s.Skip(why)


def luasample_json(args):
    """What a command prints; None when it refuses the file."""
    r = s.run([s.luasample(), *args], timeout=300)
    if r.status == 1 and not r.out:
        return None
    check(r.status == 0, "%s: status %d: %s" % (" ".join(args), r.status, r.err[-300:]))
    try:
        return json.loads(r.out)
    except ValueError as e:
        raise s.Fail("%s: not JSON: %s" % (" ".join(args), e))


def same(what, ours, theirs):
    if ours == theirs:
        return
    detail = ""
    if isinstance(ours, list) and isinstance(theirs, list):
        at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
        detail = " (%d and %d entries, first difference at %d)" % (len(ours), len(theirs), at)
        ours, theirs = ours[at:at + 1], theirs[at:at + 1]
    elif isinstance(ours, dict) and isinstance(theirs, dict):
        keys = [k for k in {**ours, **theirs} if ours.get(k) != theirs.get(k)]
        ours, theirs = [{k: d.get(k) for k in sorted(keys, key=str)[:6]} for d in (ours, theirs)]
    raise s.Fail("%s%s: the page says %.400r, luasample says %.400r" % (what, detail, ours, theirs))


def read(path):
    """(trace, totals) by the second reader; None when the file is not a trace."""
    rt = reader()
    try:
        t = rt.read(path)
    except rt.NotATrace:
        return None
    return t, rt.totals(t)


def compare(path, with_dump=True, with_report=True):
    """Fails at the first thing that the two readers do not agree on. Returns (trace, totals)."""
    ours = read(path)
    info = luasample_json(["info", "-i", path, "--json"])
    same("is it a trace", ours is not None, info is not None)
    if ours is None:
        return None
    t, totals = ours
    compare_info(t, totals, info)
    if with_report:
        compare_report(t, totals, path)
    if with_dump:
        compare_dump(t, path)
    return ours


def places(damages):
    return [(d["chunk"], d["offset"], d["bytes"]) for d in damages]


def compare_info(t, totals, info):
    # info takes the totals from the chunks' extra: what is wrong in the rows of samples it cannot see
    in_rows = [d for d in totals["damage"] if d.get("in_rows")]
    same("damage (chunk, offset, bytes)", places(d for d in totals["damage"] if not d.get("in_rows")),
         places(info["damage"]))
    if in_rows:
        return
    for ours, theirs in (("ticks", "readable_ticks"), ("samples", "readable_samples"), ("complete", "complete"),
                         ("notices", "notices"), ("counters", "counters"), ("interval_ns", "interval_ns")):
        if theirs in info:
            same(theirs, totals[ours], info[theirs])
    same("chunks", totals["chunks"], info["chunks"])
    same("events", {int(i): (e["name"], e["rows"], e["sum"]) for i, e in totals["events"].items()},
         {e["id"]: (e["name"], e["rows"], e["sum"]) for e in info["events"]})
    for key, value in totals["info"].items():
        if key.startswith("lost."):
            same(key, value, info["lost"].get(key[5:]))
        elif key in info and key not in OWN_MEMBERS:
            same("info " + key, value, info[key])


def rows(path, by):
    j = luasample_json(["report", "-i", path, "--no-regions", "--min", "0", "--json", "--by", by])
    return j["rows"] if j else []


def ticks_of(rows_, *fields):
    out = collections.Counter()
    for r in rows_:
        if r["self_ticks"]:
            out[tuple(r.get(f) for f in fields)] += r["self_ticks"]
    return dict(out)


def compare_report(t, totals, path):
    header = luasample_json(["report", "-i", path, "--no-regions", "--json"])["header"]
    same("report: ticks, samples, damaged chunks, complete",
         [totals["ticks"], totals["samples"], len(totals["damage"]), totals["complete"]],
         [header["ticks"], header["samples"], header["damaged_chunks"], header["complete"]])
    same("ticks by VM state", {(VMSTATES[i],): n for i, n in enumerate(totals["vmstate"]) if n},
         ticks_of(rows(path, "vmstate"), "vmstate"))
    same("ticks by zone", {(z or "(none)",): n for z, n in totals["zone"].items() if n},
         ticks_of(rows(path, "zone-path"), "zone"))
    same("ticks by labels", {(z or "(none)",): n for z, n in totals["label"].items() if n},
         ticks_of(rows(path, "label"), "label"))
    same("ticks by trace", {k: n for k, n in totals["jit"].items() if n}, jit_ticks(rows(path, "trace")))
    if totals["jit_mapped"]:
        return                                  # whose frames are in machine code is then a matter of disassembly
    same("ticks by function", *functions(t, totals, rows(path, "function")))
    same("ticks by line", lines(t, totals), ticks_by_line(rows(path, "line")))


def jit_ticks(theirs):
    out = collections.Counter()
    for r in theirs:
        if r["self_ticks"] and r["name"] != "(not in a trace)":
            out[str(r["trace"])] += r["self_ticks"]
    return dict(out)


def chunk_name(source):
    """A source as report shows it: a file's name without its @; else None, report has a rule of its own."""
    return source[1:] if source and source[0] in "@=" else None


def name_agrees(t, f, shown):
    """Whether report's name is the page's best name; report may add @FILE:LINE or #N to it to tell two apart."""
    if f["flags"] & MAIN_CHUNK and shown.startswith("main chunk@"):
        return True                             # report has no other name for it
    if f["name"] is not None:
        return shown == f["name"] or shown.startswith((f["name"] + "@", f["name"] + "#"))
    row = t.rows["function"][f["id"]]
    if f["kind"] == LUA:
        return shown.startswith("function@")
    if f["kind"] == reader().MACHINE_CODE:
        return shown.startswith("[compiled code]")
    return f["kind"] in (C, NATIVE) and shown.split("@")[0].split("#")[0].endswith("+0x%x" % row["offset"])


def functions(t, totals, theirs):
    """Two equal lists when each function of one side has its own on the other: same source, line, ticks and name."""
    by = collections.defaultdict(list)
    for r in theirs:
        by[r["self_ticks"], r["total_ticks"], r["line_defined"]].append(r)
    left = []
    for f in totals["functions"]:
        found = [r for r in by[f["self_ticks"], f["total_ticks"], f["first_line"]]
                 if name_agrees(t, f, r["function"]) and (chunk_name(f["source"]) in (None, r["source"]))]
        # the one that says most first: a name that is the same beats one that only starts the same
        found.sort(key=lambda r: r["function"] != f["name"])
        if found:
            by[f["self_ticks"], f["total_ticks"], f["first_line"]].remove(found[0])
        else:
            left.append((f["name"], f["source"], f["first_line"], f["self_ticks"], f["total_ticks"]))
    extra = [(r["function"], r["source"], r["line_defined"], r["self_ticks"], r["total_ticks"])
             for rs in by.values() for r in rs]
    return left, extra


def lines(t, totals):
    """{(source, line) or name: ticks}: what has no line under the name that it has as a function."""
    out = collections.Counter()
    for l in totals["lines"]:
        if l["line"]:
            out[chunk_name(l["source"]) or "text", l["line"]] += l["self_ticks"]
        else:
            out["no line"] += l["self_ticks"]
    return dict(out)


def ticks_by_line(theirs):
    out = collections.Counter()
    for r in theirs:
        if not r["self_ticks"]:
            continue
        if r["line"] and "source" in r:
            source = r["source"]
            out["text" if source.startswith(("[string", "=(")) else source, r["line"]] += r["self_ticks"]
        else:
            out["no line"] += r["self_ticks"]
    return dict(out)


def compare_dump(t, path):
    theirs = luasample_json(["dump", "-i", path, "--json", "--no-pager"])
    same("dump: damage", places(t.damages),
         places(d for d in theirs if d["record"] == "damage"))
    theirs = [d for d in theirs if d["record"] not in ("file", "damage")]
    ours = list(reader().dump(t))
    same("dump", ours, theirs)


def compare_threads(t, totals, path):
    """Ticks of each thread, by report's filter; it has none for samples without a thread."""
    for tid, ticks in totals["thread"].items():
        if tid == "0":
            continue
        j = luasample_json(["report", "-i", path, "--no-regions", "--json", "--thread", tid])
        same("ticks of thread " + tid, ticks, j["header"]["ticks"] if j else 0)
