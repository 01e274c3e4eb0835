#!/usr/bin/python3
"""A second reader of luasample's traces, written from luasample-trace(5) alone and sharing no code with luasample:

    read_trace.py FILE          totals as JSON: ticks by VM state, thread, zone, function and line; damage; facts
    read_trace.py --dump FILE   all records, one JSON object on a line, as `luasample dump --json` has them

run.py compares what it says with what luasample says. Exit status: 0 read, 1 not a trace, 2 modules missing."""
import collections
import json
import math
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    from chunks import (BYTES_KINDS, CHUNK_HEADER, CHUNK_MAGIC, CHUNK_TYPES, CONTINUES, COROUTINE_OF_STACK, Chunk,
                        DEFINITIONS, Damage, INDEX_CHUNK, KINDS, LAST, LEAF_LINE_UNKNOWN, MAJOR, MASK, MAX_EVENT, SAMPLE, SAMPLES,
                        VMSTATES, xxh64)
except ImportError as e:
    if __name__ == "__main__":
        print("read_trace.py: %s: install python3-zstandard and python3-xxhash" % e, file=sys.stderr)
        sys.exit(2)
    raise

FILE_MAGIC, FILE_HEADER = bytes.fromhex("894C53540D0A1A0A"), 32
MAX_TEXT = 67108864
LOST, NO_FUNCTION = "[definition lost]", "[no function]"
COST_AT_ALL, COST_PER_BYTE, COST_PER_PAYLOAD_BYTE, PAYLOAD_PER_BYTE = 16 << 20, 32, 8, 16
CPU_EVENT, WALL_EVENT, COMPILED = 1, 2, 0
C, NATIVE, MACHINE_CODE, MAP_HEAD = 2, 5, 6, 88    # kinds of function; bytes of a map's head
LUA, CALLED = 1, (3, 2, 5)                      # kinds of functions: Lua; builtins, C and native functions
TOTALS = ("aggregate", "span", "linecount")     # kinds that add to the totals of their event


class NotATrace(Exception):
    pass


def signed(v):
    return v - (1 << 64) if v >> 63 else v


def show(raw):
    """Bytes as luasample shows them: UTF-8, what is not and control characters as \\x1b, \\n, \\u200b."""
    if raw is None:
        return LOST
    out = []
    for c in raw.decode("utf-8", "surrogateescape"):
        n = ord(c)
        if 0xdc80 <= n <= 0xdcff:
            out.append("\\x%02x" % (n - 0xdc00))
        elif n < 32 or n == 127:
            out.append({9: "\\t", 10: "\\n", 13: "\\r"}.get(n, "\\x%02x" % n))
        elif 128 <= n < 160 or 0x200b <= n < 0x2010 or 0x2028 <= n < 0x202f or 0x2060 <= n < 0x2070 or n == 0xfeff:
            out.append("\\u%04x" % n)
        else:
            out.append(c)
    return "".join(out)


class Trace:
    """The file read: chunks in order, damages as dicts, and the definitions of all kinds."""
    def __init__(self, data):
        self.data, self.chunks, self.damages, self.unreadable = data, [], [], 0
        self.spent = collections.Counter()      # by kind: the highest id; "cost" of all; "payload": bytes of definitions
        self.read_header()
        self.scan()
        starts = data and data[:len(FILE_MAGIC)] == FILE_MAGIC[:len(data)]      # a short one may still grow
        if not starts and not self.chunks and not self.unreadable:
            raise NotATrace("not a trace")
        self.define()

    def read_header(self):
        d = self.data
        self.header_ok = (len(d) >= FILE_HEADER and d[:8] == FILE_MAGIC and
                          struct.unpack_from("<Q", d, 24)[0] == xxh64(d[:24]))
        self.minor = self.interval_ns = 0
        if self.header_ok:
            major, self.minor, self.interval_ns = struct.unpack_from("<HH4xQ", d, 8)
            if major > MAJOR:
                raise NotATrace("of version %d, newer than this reader" % major)

    def scan(self):
        self.expected = 0
        at = FILE_HEADER
        if not self.header_ok:
            at = self.header_damaged()
        whole = self.header_ok                  # no damage right before
        while at < len(self.data):
            c = Chunk(self.data, at) if len(self.data) - at >= CHUNK_HEADER else None
            if not c or not c.header_ok() or c.number < self.expected:
                cut = not c or (self.data[at:at + 4] == CHUNK_MAGIC and c.payload_at > len(self.data))
                number = c.number if c and c.header_ok() else self.expected
                at = self.resync(at, "cut" if cut else "its header is damaged", number)
                whole = False
                continue
            if c.number > self.expected and whole:
                self.damages.append(dict(chunk=self.expected, offset=at, bytes=0, why="missing"))
            self.expected = c.number + 1
            try:
                c.load()
                self.spend(c)
            except Damage as e:
                self.unreadable += 1
                at = self.resync(at, str(e), c.number)
                self.damages[-1]["in_rows"] = c.sums_known
                whole = False
                continue
            self.chunks.append(c)
            at, whole = c.end, True

    def spend(self, c):
        """Holds the definitions to what the size of the file backs, gaps in the ids included."""
        spent = self.spent.copy()
        if any(r.kind and r.kind.name != "sample" for r in c.records):
            spent["payload"] += c.raw_size
        for r in c.records:
            if r.kind and r.kind.how == "ids":
                top = max(spent[r.kind.name], r.first + r.count - 1)
                each = 8 * len(r.kind.columns) + (16 if r.kind.name in ("stack", "location") else 96)
                spent["cost"] += (top - spent[r.kind.name]) * each
                if r.kind.name == "string":
                    spent["cost"] += sum(len(b) for b in r.columns["bytes"])
                spent[r.kind.name] = top
            elif r.kind and r.kind.name in ("text", "jitmap"):
                spent["cost"] += 32 * r.count + sum(len(b) for b in r.columns["bytes"])
        size = len(self.data)
        payload = min(spent["payload"], PAYLOAD_PER_BYTE * size)
        if spent["cost"] > COST_AT_ALL + COST_PER_BYTE * size + COST_PER_PAYLOAD_BYTE * payload:
            raise Damage("more definitions than the size of the file backs")
        self.spent = spent

    def header_damaged(self):
        """The 32 bytes are one damage, or what of them is before the first chunk."""
        at = min(self.next_chunk(0), FILE_HEADER, len(self.data))
        self.damages.append(dict(chunk=0, offset=0, bytes=at, why="the file header is damaged"))
        return at

    def resync(self, at, why, number):
        """Lists the damage from offset at, and returns where the next chunk with a right header starts."""
        to = self.next_chunk(at + 1)
        self.damages.append(dict(chunk=number, offset=at, bytes=to - at, why=why))
        return to

    def next_chunk(self, at):
        """The next offset where a chunk's header is right and its number can be; the end of the file when there is none."""
        while True:
            at = self.data.find(CHUNK_MAGIC, at)
            if at < 0 or len(self.data) - at < CHUNK_HEADER:
                return len(self.data)
            c = Chunk(self.data, at)
            if c.header_ok() and c.number >= self.expected:
                return at
            at += 1

    # Definitions.

    def define(self):
        self.rows = {k.name: {} for k in KINDS.values()}        # by id, by key; lists of no use for rows
        self.texts = collections.defaultdict(list)
        self.maps = {}                                          # by function
        for c in self.chunks:
            for r in c.records:
                if not r.kind or r.kind_number == SAMPLE or c.type == SAMPLES:
                    continue
                if r.kind.name == "jitmap":
                    for row in rows_of(r):
                        self.maps.setdefault(row["function"], row["bytes"])
                elif r.kind.name == "text":
                    for row in rows_of(r):
                        self.texts[row["source"]].append(row)
                elif r.kind.how == "ids":
                    table = self.rows[r.kind.name]
                    for row in rows_of(r):
                        table.setdefault(row["id"], row)
                else:
                    self.define_keyed(r)
        if not self.header_ok:
            for row in self.rows["info"].values():
                if self.string(row["key"]) == b"interval_ns":
                    self.interval_ns = row["number"]

    def define_keyed(self, r):
        table, name = self.rows[r.kind.name], r.kind.name
        for row in rows_of(r):
            old = table.get(row[r.kind.key])
            if old and (row["rank"] <= old["rank"] if name == "name" else
                        name == "threadcpu" and row["monotonic_ns"] < old["monotonic_ns"]):
                continue
            table[row[r.kind.key]] = row

    def string(self, i):
        """The bytes of a string; None when its definition is lost."""
        if i == 0:
            return b""
        row = self.rows["string"].get(i)
        return row["bytes"] if row else None

    def stack(self, i):
        """A stack's (parent, location); None when it is not defined."""
        row = self.rows["stack"].get(i)
        return (row["parent"], row["location"]) if row and row["parent"] < i else None

    def coroutine(self, i, stack):
        """The coroutine of a sample, whose column says i."""
        if i != COROUTINE_OF_STACK:
            return i
        i = self.rows["stack"][stack]["coroutine"] if self.stack(stack) else 0
        return i if i in self.rows["coroutine"] else 0

    def location(self, i):
        """A location's (function id, line); the function is 0 for none, None when a definition is lost."""
        if not i:
            return 0, 0
        row = self.rows["location"].get(i)
        if not row or (row["function"] and row["function"] not in self.rows["function"]):
            return None, 0
        return row["function"], row["line"]

    def frames(self, i):
        """The frames that a stack stands for, as location() gives them, innermost first; one of no function for stack 0."""
        return self.without_machine_code(self.frames_as_written(i))

    def is_machine_code(self, function):
        return bool(function) and self.rows["function"][function]["kind"] == MACHINE_CODE

    def trace_of(self, stack):
        """The function of the JIT trace that a stack is in, or 0, and the trace's row, or None."""
        frames = self.frames_as_written(stack)
        for i, (function, _) in enumerate(frames):
            if self.is_machine_code(function):
                return function, self.jittrace(function)
            kind = self.rows["function"][function]["kind"] if function else 0
            above = i + 1 < len(frames) and self.is_machine_code(frames[i + 1][0])
            if kind != NATIVE and not (kind == C and above):
                break
        return 0, None

    def jittrace(self, function):
        return next((r for _, r in sorted(self.rows["jittrace"].items()) if r["function"] == function), None)

    def without_machine_code(self, frames):
        """The page's rule for a reader that makes no maps: the frame below, at the line where the trace starts if it is
        in that function."""
        out = []
        while frames:
            function = frames[0][0]
            if len(frames) < 2 or not self.is_machine_code(function):
                out.append(frames[0])
                frames = frames[1:]
                continue
            row = self.jittrace(function)
            start, line = self.location(row["start"]) if row else (0, 0)
            below = frames[1][0]
            out.append((below, line if frames[0][1] and start and start == below else 0))
            frames = frames[2:]
        return out

    def has_map(self, function):
        """Whether there is enough for a map: then luasample knows the lines, and this reader does not."""
        return len(self.maps.get(function, b"")) >= MAP_HEAD

    def frames_as_written(self, i):
        if not i:
            return [(0, 0)]
        out = []
        while i:
            s = self.stack(i)
            if not s:
                out.append((None, 0))
                break
            out.append(self.location(s[1]))
            i = s[0]
        return out

    def chain(self, kind, i, text):
        """Texts of a row, of its parent, and so on."""
        out = []
        while i:
            row = self.rows[kind].get(i)
            if not row or row["parent"] >= i:
                return out + [LOST]
            out.append(text(row))
            i = row["parent"]
        return out

    def zone_path(self, i):
        return self.chain("zone", i, lambda row: show(self.string(row["name"])))[::-1]

    def labels(self, i):
        def text(row):
            key = show(self.string(row["key"]))
            return key + ("=" if key else "") + show(self.string(row["value"]))
        return ", ".join(self.chain("label", i, text))

    def best_name(self, function):
        """The name by the page's rule, as text; None when the function is anonymous."""
        name = self.rows["function"][function]["name"]
        if not name and function in self.rows["name"]:
            name = self.rows["name"][function]["name"]
        return show(self.string(name)) if name else None

    def source_name(self, function):
        """The chunk name as text; None when the function has no source."""
        source = self.rows["function"][function]["source"]
        if not source:
            return None
        row = self.rows["source"].get(source)
        return show(self.string(row["name"])) if row else LOST

    def source_text(self, source):
        """The whole text of a source, when its pieces are all there, else None."""
        pieces = self.texts.get(source, [])
        totals = {p["total"] for p in pieces}
        if len(totals) != 1 or max(totals) > MAX_TEXT:
            return None
        text, have = bytearray(max(totals)), 0
        for p in sorted(pieces, key=lambda p: p["offset"]):
            end = p["offset"] + p["length"]
            if p["offset"] > have or end > len(text):
                return None
            text[p["offset"]:end] = p["bytes"]
            have = max(have, end)
        return bytes(text) if have == len(text) else None

    def sample_records(self):
        for c in self.chunks:
            yield from (r for r in c.records if r.kind_number == SAMPLE and c.type == SAMPLES)

    def time_ns(self, row):
        return (row["base_ns"] + (signed(row["time"]) * (row["interval_ns"] or self.interval_ns) // 16)) & MASK

    def complete(self):
        return bool(self.chunks) and self.chunks[-1].type == INDEX_CHUNK and bool(self.chunks[-1].flags & LAST)


def rows_of(r):
    """The rows of a record as dicts; those of kinds with ids have "id"."""
    columns = [r.column(name) for name in r.kind.columns]
    for i, values in enumerate(zip(*columns)):
        row = dict(zip(r.kind.columns, values))
        if r.kind.how == "ids":
            row["id"] = r.first + i
        yield row


# What is printed.

def shown_event(t):
    """The event whose samples are counted: cpu, but of a trace of wall time alone that."""
    return WALL_EVENT if WALL_EVENT in t.rows["event"] and CPU_EVENT not in t.rows["event"] else CPU_EVENT


def totals(t):
    """All totals of a trace, as a dict for JSON."""
    event = shown_event(t)
    by = {k: collections.Counter() for k in ("vmstate", "thread", "vm", "coroutine", "zone", "label", "stack")}
    events = collections.defaultdict(lambda: dict(rows=0, samples=0, sum=0))
    unknown_line = collections.Counter()
    for r in t.sample_records():
        for ev, thread, vm, co, zone, label, stack, state, flags, weight in zip(*[r.column(n) for n in (
                "event", "thread", "vm", "coroutine", "zone", "label", "stack", "vmstate", "flags", "weight")]):
            e = events[ev]
            e["rows"] += 1
            e["samples"] += not flags & CONTINUES
            e["sum"] += weight
            if ev != event:
                continue
            for key, value in (("vmstate", state), ("thread", thread), ("vm", vm), ("coroutine", t.coroutine(co, stack)),
                               ("zone", zone), ("label", label), ("stack", stack)):
                by[key][value] += weight
            if flags & LEAF_LINE_UNKNOWN and state == COMPILED and not t.minor:
                unknown_line[stack] += weight
    for name in TOTALS:
        for row in t.rows[name].values():
            events[row["event"]]["rows"] += 1
            events[row["event"]]["sum"] += row["value"]
    for name in ("thread", "vm", "coroutine"):
        for i in [i for i in by[name] if i and i not in t.rows[name]]:
            by[name][0] += by[name].pop(i)
    zones = collections.Counter()
    for z, ticks in by["zone"].items():
        zones[";".join(t.zone_path(z))] += ticks
    labels = collections.Counter()
    for i, ticks in by["label"].items():
        labels[t.labels(i)] += ticks
    names = t.rows["event"]
    for i in names:
        events[i]                               # those without samples are listed too
    return dict(
        interval_ns=t.interval_ns, complete=t.complete(), chunks=len(t.chunks), damage=t.damages,
        ticks=events[event]["sum"] if event in events else 0, samples=events[event]["samples"] if event in events else 0,
        vmstate=[by["vmstate"][s] for s in range(VMSTATES)], zone=dict(zones), label=dict(labels),
        thread={str(t.rows["thread"][i]["tid"] if i else 0): n for i, n in by["thread"].items()},
        vm={str(i): n for i, n in by["vm"].items()}, coroutine={str(i): n for i, n in by["coroutine"].items()},
        events={str(i): dict(e, name=show(t.string(names[i]["name"])) if i in names else "")
                for i, e in sorted(events.items()) if i <= MAX_EVENT},
        info={show(t.string(r["key"])): show(t.string(r["text"])) if r["is_str"] else r["number"]
              for r in t.rows["info"].values()},
        counters=counters(t),
        notices=[show(t.string(r["text"])) for _, r in sorted(t.rows["notice"].items())],
        **jit_totals(t, by["stack"]), **frames_totals(t, by["stack"], unknown_line))


def jit_totals(t, stacks):
    """Ticks in traces of the JIT compiler by their number in the VM, 0 when it is not known; whether luasample has maps."""
    ticks, mapped = collections.Counter(), False
    for stack, n in stacks.items():
        function, row = t.trace_of(stack)
        if function:
            ticks[str(row["number"] if row else 0)] += n
            mapped = mapped or t.has_map(function)
    return dict(jit=dict(ticks), jit_mapped=mapped)


def frames_totals(t, stacks, unknown_line):
    self_, total, lines = collections.Counter(), collections.Counter(), collections.Counter()
    for stack, ticks in stacks.items():
        frames = t.frames(stack)
        self_[frames[0][0]] += ticks
        paying = paying_frame(t, frames)
        function, line = frames[paying]
        for f in {f for f, _ in frames}:
            total[f] += ticks
        unknown = 0 if paying else unknown_line[stack]
        if unknown:
            lines[line_key(t, function, 0)] += unknown
        if ticks > unknown:
            lines[line_key(t, function, line)] += ticks - unknown
    functions = []
    for f in sorted(total, key=lambda f: (-self_[f], -1 if f is None else f)):
        row = t.rows["function"][f] if f else {}
        functions.append(dict(
            id=f, name=t.best_name(f) if f else NO_FUNCTION if f == 0 else LOST,
            kind=row.get("kind", 0), flags=row.get("flags", 0),
            source=t.source_name(f) if f else None, first_line=row.get("first_line", 0), last_line=row.get("last_line", 0),
            hash=row.get("hash", 0), self_ticks=self_[f], total_ticks=total[f]))
    return dict(functions=functions,
                lines=[dict(source=s, function=f, line=l, self_ticks=n) for (s, f, l), n in lines.items()])


def paying_frame(t, frames):
    """Which frame's line the ticks are charged to: of the Lua function that called builtins, C and native functions."""
    kinds = [t.rows["function"][f]["kind"] if f else 0 for f, _ in frames]
    at = next((i for i, kind in enumerate(kinds) if kind not in CALLED), len(kinds))
    return at if at < len(kinds) and kinds[at] == LUA else 0


def line_key(t, function, line):
    """A line is one of a source; what has no lines is told apart by function."""
    source = t.source_name(function) if function else None
    return (source, 0, line) if source is not None and line else (None, function, 0)


def real(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def real_text(value):
    """The shortest of 15 to 17 digits that is read back as the same number."""
    text = next((t for t in ("%.*g" % (n, value) for n in (15, 16, 17)) if float(t) == value), "nan")
    return text


def counters(t):
    """Counters with values that are numbers, as luasample info has them."""
    out = []
    for i, row in sorted(t.rows["counter"].items()):
        values = [real(c["value"]) for _, c in sorted(t.rows["count"].items(), key=lambda c: (c[1]["time_ns"], c[0]))
                  if c["counter"] == i]
        values = [v for v in values if math.isfinite(v)]
        if values:
            process = t.rows["process"].get(row["process"])
            out.append(dict(name=show(t.string(row["name"])), pid=process["pid"] if process else 0, values=len(values),
                            last=values[-1], least=min(values), most=max(values)))
    return out


def dump(t):
    """Dicts as `luasample dump --json` has them, without damage."""
    for c in sorted(t.chunks, key=lambda c: c.offset):
        place = dict(chunk=c.number, offset=c.offset)
        yield dict(place, record="chunk", type=CHUNK_TYPES.get(c.type, "unknown"), type_number=c.type, size=c.size,
                   raw_size=c.raw_size, flags=c.flags)
        for r in c.records:
            if not r.kind:
                yield dict(place, record="unknown", kind=r.kind_number, bytes=r.size)
                continue
            for row in rows_of(r):
                out = dict(place, record=r.kind.name, **row)
                for name in r.kind.strings:
                    out[name] = show(t.string(row[name]))
                for name in r.kind.reals:
                    out[name] = real_text(real(row[name]))
                if r.kind_number in BYTES_KINDS:
                    out["bytes"] = show(row["bytes"])
                if r.kind_number == SAMPLE:
                    out["time_ns"] = t.time_ns(row)
                    out["coroutine"] = t.coroutine(row["coroutine"], row["stack"])
                yield out


def read(path):
    with open(path, "rb") as f:
        return Trace(f.read())


def main(argv):
    want_dump = argv[:1] == ["--dump"]
    if len(argv) != 1 + want_dump:
        print("usage: read_trace.py [--dump] FILE", file=sys.stderr)
        return 129
    try:
        t = read(argv[-1])
    except NotATrace as e:
        print("read_trace.py: %s: %s" % (argv[-1], e), file=sys.stderr)
        return 1
    if want_dump:
        for row in dump(t):
            print(json.dumps(row, ensure_ascii=False))
    else:
        print(json.dumps(totals(t), indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
