"""Small traces made byte by byte from luasample-trace(5): each encoding, what is unknown, what breaks a rule, what is
lost. Both readers must see the same in them. Used by run.py; needs no program to record."""
import random
import resource
import struct
import subprocess

import support as s
import compare
from compare import check

CONST, VARINT, DELTA, FIXED, BYTES, RUNS, PLANES, BACK = range(8)
CODED = BYTES
STRING, SOURCE, TEXT, FUNCTION, NAME, LOCATION, STACK, ZONE, THREAD, VM, COROUTINE = 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
JITTRACE, IRNAMES, JITMAP = 26, 29, 30
SAMPLE, EVENT, INFO, THREADCPU, INDEX, AGGREGATE, SPAN, LINECOUNT, LABEL = 2, 16, 17, 19, 22, 23, 24, 25, 27
MASK = (1 << 64) - 1
INTERVAL = 1000000


def xxh64(data):
    import xxhash
    return xxhash.xxh64(bytes(data), seed=0).intdigest()


def vi(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def encode(encoding, values, first=0):
    """The bytes of a column of numbers."""
    if encoding == VARINT:
        return b"".join(map(vi, values))
    if encoding == BACK:
        return b"".join(vi((first + i - v) & MASK) for i, v in enumerate(values))
    if encoding == FIXED:
        return struct.pack("<%dQ" % len(values), *values)
    if encoding == DELTA:
        out, last = b"", 0
        for v in values:
            d = (v - last) & MASK
            d -= (d >> 63) << 64
            out, last = out + vi(2 * d if d >= 0 else -2 * d - 1), v
        return out
    if encoding == RUNS:
        out, i = b"", 0
        while i < len(values):
            n = 1
            while i + n < len(values) and values[i + n] == values[i]:
                n += 1
            out, i = out + vi(values[i]) + vi(n - 1), i + n
        return out
    w = max(1, (max(values, default=0).bit_length() + 7) // 8)
    return bytes([w]) + b"".join(bytes(v >> 8 * p & 255 for v in values) for p in range(w))


def any_code(rng, w, rows, decode):
    """A coded column of rows that says anything: what is read from random bytes, cut to those that are needed. Bytes that
    are cut off read as 0 and change the last values, which then may need another byte."""
    import coded
    data = bytes([w]) + rng.randbytes(2)
    while True:
        b = coded.Bits(data, rows)
        values = decode(b)
        n = b.at - 3
        if n == len(data):
            return data, values
        data = data[:n] if n < len(data) else data + rng.randbytes(n - len(data))


def coded_samples(seed, rows):
    """A record of samples, all columns coded, and its rows."""
    import coded
    rng, out, cols = random.Random(seed), [], {}

    def add(number, w, decode):
        data, cols[number] = any_code(rng, w, rows, decode)
        out.append(column(number, CODED, data))

    add(6, rng.choice((0, 2, 5, 9)), lambda b: coded.ids(b, rows))
    for number, w in ((1, 2), (2, 1), (3, 1), (4, 3), (5, 0), (7, 2), (8, 4), (10, rng.choice((1, 8, 31))), (13, 1)):
        add(number, w, lambda b: coded.paired(b, cols[6]))
    add(9, 0, lambda b: coded.steps(b, cols[2]))
    rng.shuffle(out)
    return record(SAMPLE, 0, rows, *out), [{c: v[i] for c, v in cols.items()} for i in range(rows)]


def column(number, encoding, values, first=0):
    if encoding == CONST:
        return vi(number * 8) + vi(values)
    data = values if isinstance(values, bytes) else encode(encoding, values, first)
    return vi(number * 8 + encoding) + vi(len(data)) + data


def record(kind, first, count, *columns):
    body = vi(first) + vi(count) + b"".join(columns)
    return vi(kind) + vi(len(body)) + body


def strings(first, *texts):
    return record(STRING, first, len(texts), column(1, VARINT, [len(t) for t in texts]), column(2, BYTES, b"".join(texts)))


def one(kind, first, *values):
    """One row, its columns from number 1 on."""
    return record(kind, first, 1, *[column(i + 1, CONST, v) for i, v in enumerate(values) if v])


def samples(*rows):
    """A record of samples: (stack, weight) or dicts of column number: value."""
    rows = [r if isinstance(r, dict) else {1: 1, 2: 1, 6: r[0], 10: r[1]} for r in rows]
    return record(SAMPLE, 0, len(rows), *[column(c, VARINT, [r.get(c, 0) for r in rows])
                                          for c in sorted({c for r in rows for c in r})])


def sums(*rows):
    """The extra of a chunk with these samples."""
    rows = [r if isinstance(r, dict) else {1: 1, 10: r[1]} for r in rows]
    out = b""
    for event in sorted({r.get(1, 0) for r in rows}):
        of = [r for r in rows if r.get(1, 0) == event]
        out += vi(event) + vi(len(of)) + vi(sum(not r.get(8, 0) & 1 for r in of)) + vi(sum(r.get(10, 0) for r in of))
    return out


class File:
    """A trace in the making; the chunk numbers run by themselves."""
    def __init__(self, major=1, minor=0, interval=INTERVAL):
        self.number, self.chunks = 0, []
        head = bytes.fromhex("894C53540D0A1A0A") + struct.pack("<HHIQ", major, minor, 0, interval)
        self.head = head + struct.pack("<Q", xxh64(head))

    def chunk(self, type_, payload, extra=b"", flags=0, major=1, raw=None, number=None, zstd=False, append=b""):
        if number is None:
            number = self.number
        self.number = number + 1
        raw = len(payload) if raw is None else raw
        if zstd:
            import zstandard
            payload, flags = zstandard.ZstdCompressor(write_content_size=False).compress(payload) + append, flags | 1
        head = bytearray(bytes.fromhex("A74C5343") + struct.pack("<4B4IQ", major, type_, flags, len(extra), number,
                                                                 len(payload), raw, 0, xxh64(payload)) + extra)
        head[20:24] = struct.pack("<I", xxh64(head) & 0xffffffff)
        self.chunks.append(bytes(head) + payload)
        return self

    def definitions(self, *records, **kw):
        return self.chunk(1, b"".join(records), **kw)

    def samples(self, *rows, **kw):
        return self.chunk(2, samples(*rows), sums(*rows), **kw)

    def parity(self, covers, size=None):
        of = [self.chunks[n] for n in covers]
        data = 0
        for c in of:
            data ^= int.from_bytes(c, "little")
        payload = data.to_bytes(size or max(map(len, of)), "little")
        return self.chunk(5, payload, b"".join(vi(n - m) for n, m in zip(covers, [0] + covers)))

    def data(self, without=()):
        return self.head + b"".join(c for i, c in enumerate(self.chunks) if i not in without)

    def write(self, **kw):
        path = s.tmpfile(".lst")
        with open(path, "wb") as f:
            f.write(self.data(**kw))
        return path


def base(f=None, text=b"app.lua"):
    """Two functions (1 named work, 2 anonymous), locations 1 and 2, stacks 1 (fn 1) and 2 (fn 2 called by fn 1)."""
    return (f or File()).definitions(
        strings(1, b"@" + text, b"work", b"main", b"other"),
        one(SOURCE, 1, 1), one(FUNCTION, 1, 1, 0, 1, 5, 9), one(FUNCTION, 2, 1, 0, 1, 12, 14), one(NAME, 0, 1, 2, 2),
        one(LOCATION, 1, 1, 7), one(LOCATION, 2, 2, 13), one(STACK, 1, 0, 1), one(STACK, 2, 1, 2),
        one(THREAD, 1, 0, 77, 3))


def agree(f, damaged=None, ticks=None, names=None, dump=True, without=()):
    """Both readers see the same; and that is so much damage, so many ticks, these names by function id."""
    path = f.write(without=without)
    t, totals = compare.compare(path, with_dump=dump)
    if damaged is not None:
        got = [d["chunk"] for d in totals["damage"]]
        check(got == damaged, "damaged chunks %s, expected %s: %s" % (got, damaged, totals["damage"]))
    if ticks is not None:
        check(totals["ticks"] == ticks, "%d ticks, expected %d" % (totals["ticks"], ticks))
    for i, name in (names or {}).items():
        got = t.best_name(i)
        check(got == name, "function %d is %r, expected %r" % (i, got, name))
    return t, totals


def little_memory():
    """Address space of this process. A sanitizer needs 15 TiB of it: then as much as there is."""
    with open(s.luasample(), "rb") as f:
        if b"__asan_init" not in f.read():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def add_to(suite):
    def t(name, title):
        return suite.test("page." + name, title, True)

    broken(suite)

    @t("encodings", "each encoding for each column of a sample and of ids")
    def _():
        values = {1: [1] * 5, 2: [1, 1, 2, 2, 2], 3: [0, 1, 2, 3, 4], 4: [9, 0, 0, 300, 70000], 5: [1, 1, 0, 0, 0],
                  6: [2, 1, 1, 2, 2], 7: [0, 4, 4, 3, 1], 8: [0, 1, 0, 16, 0], 9: [(-5) & MASK, 0, 3, 1 << 40, 17],
                  10: [1, 2, 300, 4294967295, 70000], 13: [0, 0, 1, 1, 0], 14: [MASK, 0, 1 << 63, 5, 6]}
        for encoding in (VARINT, DELTA, FIXED, RUNS, PLANES, BACK):
            rows = [{c: v[i] for c, v in values.items()} for i in range(5)]
            payload = record(SAMPLE, 0, 5, *[column(c, encoding, v) for c, v in values.items()],
                             column(11, CONST, 7000000000), column(12, CONST, 250000))
            f = base().chunk(2, payload, sums(*rows))
            parents, first = [0, 1, 2, 1], 3
            f.definitions(record(STACK, first, 4, column(2, encoding, [1, 2, 1, 2], first),
                                 column(1, encoding, parents, first)))
            agree(f, [], sum(values[10]))

    @t("coded", "coded columns of any bytes, and what may not be coded or is of another length")
    def _():
        import coded
        for seed in range(15):
            rows = (1, 2, 15, 64, 300)[seed % 5]
            payload, values = coded_samples(seed, rows)
            if max(v[6] for v in values) >> 32:
                continue
            nodes, _ = any_code(random.Random(seed), 2, rows, lambda b: coded.stacks(b, 3, rows))
            f = base().definitions(record(STACK, 3, rows, column(1, CODED, nodes), column(3, VARINT, [1] * rows)),
                                   one(COROUTINE, 1, 1, 2, 1))
            # flags that no writer writes: report has no say in what they mean
            _, totals = compare.compare(f.chunk(2, payload, sums(*values)).write(), with_report=False)
            check(not totals["damage"], "damage: %s" % totals["damage"])
        row = {1: 1, 2: 1, 6: 2, 10: 3}
        code, _ = any_code(random.Random(1), 2, 4, lambda b: coded.stacks(b, 3, 4))
        for number, bad in ((1, code + b"\0"), (1, b"\2"), (1, b"\41" + code[1:]), (2, code)):
            agree(base().definitions(record(STACK, 3, 4, column(number, CODED, bad))), [1])
        agree(base().definitions(record(STACK, 3, 4, column(1, CODED, code), column(2, CONST, 1))), [1])
        agree(base().definitions(record(LOCATION, 3, 4, column(1, CODED, code))), [1])
        agree(base().definitions(record(STACK, 3, 16385, column(1, CODED, code))), [1])
        for number in (11, 12):
            agree(base().chunk(2, record(SAMPLE, 0, 1, *[column(c, CONST, v) for c, v in row.items()],
                                         column(number, CODED, b"\1\1")), sums(row)), [1])

    @t("coroutine", "the coroutine of a sample that is its stack's, and one that is not there")
    def _():
        f = base().definitions(record(STACK, 3, 2, column(2, CONST, 1), column(3, VARINT, [1, 9])),
                               one(COROUTINE, 1, 1, 2, 1))
        rows = [{1: 1, 4: co, 6: stack, 10: 1} for co, stack in
                ((0xffffffff, 3), (0xffffffff, 1), (0xffffffff, 4), (0xffffffff, 77), (0xffffffff, 0), (1, 1), (0, 3))]
        _, totals = agree(f.samples(*rows), [], 7)
        check(totals["coroutine"] == {"1": 2, "0": 5}, "coroutines %s" % totals["coroutine"])

    @t("times", "times before and after their base, and in the unit of the file header")
    def _():
        f = base().samples({1: 1, 6: 1, 9: 33, 10: 1}, {1: 1, 6: 2, 9: (-33) & MASK, 10: 2})
        t, _ = agree(f, [], 3)
        check([t.time_ns(row) for r in t.sample_records() for row in compare.reader().rows_of(r)] ==
              [33 * INTERVAL // 16, (-33 * INTERVAL // 16) & MASK], "times")

    @t("zstd", "compressed chunks, the size not in the frame")
    def _():
        f = base().samples((1, 2), (2, 3), zstd=True)
        f.definitions(strings(5, b"x" * 100000), zstd=True).chunk(3, b"", zstd=True)
        agree(f, [], 5)

    @t("unknown", "kinds, columns, chunk types, flags, events and a minor version of a newer writer")
    def _():
        f = File(minor=9).definitions(record(99, 0, 0, b"anything at all"), vi(61) + vi(0))
        f = base(f).definitions(record(LOCATION, 3, 2, column(2, CONST, 5), column(1, CONST, 1), column(77, BYTES, b"abc"),
                                       column(9, FIXED, b"12345"), column(10, CONST, 1 << 60)), flags=0xf0)
        f.chunk(200, b"not records", b"\xff\xff").samples((1, 1), {1: 77, 2: 1, 6: 2, 10: 40})
        f.chunk(2, samples((2, 6)) + record(99, 0, 0), sums((2, 6)))
        agree(f, [], 7)

    @t("types", "types of blocks that a newer writer knows are unknown ones, in exports too")
    def _():
        f = base().samples({1: 1, 2: 1, 6: 1, 10: 3, 15: 255}, {1: 1, 2: 1, 6: 2, 10: 4, 15: 200}, {1: 1, 2: 1, 6: 2, 10: 5, 15: 1})
        f.samples({1: 1, 2: 1, 6: 1, 10: 6, 15: 255}).samples({1: 1, 2: 1, 6: 1, 10: 7, 15: 5})
        agree(f, [], 25)
        path = f.write()
        rows = {r["name"]: r["self_ticks"] for r in s.rows(path, "--by", "type")}
        check(rows == {"unknown": 13, "string": 5, "function": 7}, rows)
        for name in ("pprof", "otlp", "csv", "jsonl", "collapsed"):
            s.run([s.luasample(), "export", "--experimental", "--format", name, "-i", path, "-o", s.tmpfile()]).ok()

    @t("no-line", "a flag for lines that are not known, of minor version 0 alone")
    def _():
        for minor, known in ((0, 3), (1, 5)):
            f = base(File(minor=minor)).samples((1, 3), {1: 1, 2: 1, 6: 1, 10: 2, 8: 16})
            totals = agree(f, [], 5)[1]
            lines = {l["line"]: l["self_ticks"] for l in totals["lines"]}
            check(lines.get(0, 0) == 5 - known and sum(lines.values()) == 5, "minor %d: %s" % (minor, lines))

    @t("misplaced", "records in a chunk of another type than theirs, unknown columns twice")
    def _():
        f = base().definitions(samples((1, 100)), one(INDEX, 0, 1, 2),
                               record(LOCATION, 3, 1, *[column(71, CONST, 1)] * 2), extra=b"\x80")
        f.chunk(2, samples((1, 1), (2, 2)) + one(NAME, 0, 1, 3, 4) + one(LOCATION, 1, 2, 99), sums((1, 1), (2, 2)))
        agree(f.chunk(4, one(NAME, 0, 2, 3, 4)), [], 3, {1: "work", 2: "other"})

    @t("keys", "a later row replaces an earlier one; a name only one of lower rank; CPU time only an earlier one")
    def _():
        f = base().definitions(one(NAME, 0, 1, 2, 3), one(NAME, 0, 2, 1, 4), one(NAME, 0, 2, 3, 3), one(NAME, 0, 2, 2, 2),
                               one(THREADCPU, 0, 1, 500, 5), one(THREADCPU, 0, 1, 400, 4),
                               strings(5, b"key", b"v1", b"v2", b"engine"),
                               one(INFO, 0, 8, 1, 0, 6), one(INFO, 0, 8, 1, 0, 7), one(EVENT, 0, 1, 4), one(EVENT, 0, 1, 3))
        t, totals = agree(f.samples((1, 1), (2, 1)), [], 2, {1: "work", 2: "main"})
        check(totals["info"] == {"engine": "v2"} and t.rows["threadcpu"][1]["cpu_ns"] == 5 and
              totals["events"]["1"]["name"] == "main", "%s %s" % (totals["info"], t.rows["threadcpu"]))

    @t("first", "the first definition of an id counts")
    def _():
        f = base().samples((1, 3))
        f.chunk(3, strings(2, b"wrong") + one(FUNCTION, 1, 1, 0, 1, 99) + one(LOCATION, 1, 2, 1))
        agree(f, [], 3, {1: "work"})

    @t("lost", "ids without definition are [definition lost], never another's name; 0 is no function")
    def _():
        f = File().definitions(strings(1, b"@a.lua", b"name"), one(SOURCE, 1, 1),
                               one(FUNCTION, 1, 1, 0, 1, 5, 9), one(FUNCTION, 2, 3, 0, 0, 0, 0, 0, 0, 0, 50),
                               one(LOCATION, 1, 1, 7), one(LOCATION, 2, 40, 7), one(LOCATION, 3, 2), one(LOCATION, 4, 0, 3),
                               one(STACK, 1, 0, 1), one(STACK, 2, 1, 2), one(STACK, 3, 1, 30), one(STACK, 4, 0, 3),
                               one(STACK, 5, 20, 1), one(STACK, 6, 7, 1), one(STACK, 7, 0, 4), one(STACK, 8, 2, 1),
                               one(STACK, 9, 0, 0), one(STACK, 12, 11, 1), one(ZONE, 1, 0, 2), one(ZONE, 2, 1, 60),
                               one(ZONE, 3, 9, 2), one(ZONE, 5, 4, 2))
        f.samples(*[(i, 1 << i) for i in range(13)])
        f.samples(*[{1: 1, 2: 5, 3: 6, 4: 7, 5: z, 6: 1, 10: 1} for z in range(6)])
        agree(f, [], 8191 + 6)

    @t("totals", "aggregates, spans and line counts add to their event, once for each id")
    def _():
        rows = (one(AGGREGATE, 1, 4, 100, 1) + one(AGGREGATE, 2, 4, 11) + one(LINECOUNT, 1, 5, 7, 1, 7) +
                one(SPAN, 1, 6, 1, 1, 9))
        rows += one(EVENT, 0, 300, 2) + one(AGGREGATE, 3, 300, 8)
        f = base().definitions(rows).chunk(3, rows).samples((1, 1), {1: 4, 6: 1, 10: 3})
        _, totals = agree(f, [], 1)
        check(totals["events"]["4"]["sum"] == 114 and totals["events"]["4"]["rows"] == 3, totals["events"])

    @t("texts", "text of a source in pieces, in any order; one with a gap is not there")
    def _():
        f = base().definitions(strings(5, b"return 1", b"x"), one(SOURCE, 2, 5, 0, 8), one(SOURCE, 3, 6, 0, 8))
        for source, offset, piece in ((2, 3, b"urn 1"), (3, 4, b"half"), (2, 0, b"ret")):
            f.definitions(record(TEXT, 0, 1, column(1, CONST, source), column(2, CONST, offset), column(3, CONST, 8),
                                 column(4, CONST, len(piece)), column(5, BYTES, piece)))
        t, _ = agree(f, [])
        check(t.source_text(2) == b"return 1" and t.source_text(3) is None, "%s" % t.source_text(2))

    @t("jit", "frames in machine code stand for the frame below, at the line where the trace starts or at none")
    def _():
        def trace(i, number, start, function):
            return one(JITTRACE, i, 0, number, 0, 0, 0, start, 0, 0, 0, 0, 0, 0, 0, function)
        f = base().definitions(
            one(FUNCTION, 3, 6, 0, 0, 0, 0, 1, 0, 1), one(FUNCTION, 4, 6, 0, 0, 0, 0, 1, 0, 2),
            one(FUNCTION, 5, 5, 0, 0, 0, 0, 0, 0, 64), one(LOCATION, 3, 3, 9), one(LOCATION, 4, 4), one(LOCATION, 5, 5),
            one(LOCATION, 6, 1, 8), one(LOCATION, 7, 40, 3), one(IRNAMES, 0, 1, 2),
            trace(1, 5, 6, 3), trace(2, 6, 2, 3), trace(3, 7, 99, 60),
            record(JITMAP, 0, 1, column(1, CONST, 3), column(2, CONST, 5), column(3, BYTES, b"short")),
            one(STACK, 3, 1, 3),                # its trace starts in the function below it
            one(STACK, 4, 2, 3),                # and here in another
            one(STACK, 5, 3, 5),                # it has called a native function
            one(STACK, 6, 0, 3),                # it stands on nothing
            one(STACK, 7, 1, 4),                # a trace without a row
            one(STACK, 8, 5, 2), one(STACK, 9, 8, 4),   # called back, and compiled again
            one(STACK, 10, 30, 3), one(STACK, 11, 3, 4), one(STACK, 13, 12, 3), one(STACK, 14, 13, 5),
            one(STACK, 15, 0, 7), one(STACK, 16, 15, 3))
        f.samples(*[(i, 1 << i) for i in range(1, 17)])
        _, totals = agree(f, [], (1 << 17) - 2)
        ticks = {l["line"]: l["self_ticks"] for l in totals["lines"] if l["source"] == "@app.lua"}
        # the native function that was called (stack 5) has no line: it is with the one that called it
        check(ticks == {7: 2, 13: 4 + 256, 8: 8 + 32}, "ticks by line: %r" % ticks)
        check(totals["jit"]["5"] == 8 + 16 + 32 + 64 + 8192 + 16384 + 65536, "ticks by trace: %r" % totals["jit"])

    @t("escapes", "strings of any bytes")
    def _():
        f = base(text=b"a\n\x00\x7f\xff\xc3\xa4\xed\xa0\x80\xc2\x9b\xf4\x90\x80\x80\xc0\xaf\\\"\xe2\x82z.lua")
        agree(f.samples((1, 1), (2, 1)), [], 2)

    @t("labels", "a hundred thousand labels, each in the one before it, all of one long value: little memory")
    def _():
        n = 100000
        f = base().definitions(strings(5, b"x" * 50000), record(
            LABEL, 1, n, column(1, DELTA, list(range(n))), column(2, CONST, 2), column(3, CONST, 5)))
        path = f.samples((1, 1), {1: 1, 6: 1, 10: 1, 13: n}).write()
        for by in ("label", "label:work"):
            p = subprocess.run([s.luasample(), "report", "-i", path, "--by", by], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               timeout=60, preexec_fn=little_memory)
            check(p.returncode == 0 and b"50.00%" in p.stdout, "--by %s: status %d: %s" % (by, p.returncode, p.stderr[-300:]))
        out = s.tmpfile(".json")
        subprocess.run([s.luasample(), "export", "-i", path, "--format", "firefox", "-o", out], timeout=60, check=True,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 20, 16 << 20)))

    @t("zones", "twenty thousand zones, each in the one before it, all of one long name: little memory")
    def _():
        n = 20000
        f = base().definitions(strings(5, b"z" * 50000), record(
            ZONE, 1, n, column(1, DELTA, list(range(n))), column(2, CONST, 5)))
        f.definitions()
        for first in range(0, n, 5000):
            f.samples(*[{1: 1, 6: 1, 10: 1, 5: zone + 1} for zone in range(first, first + 5000)])
        path = f.write()
        for options in ["--by", "zone-path"], ["--by", "zone-path", "--json"], ["--zone", "*zz*"]:
            p = subprocess.run([s.luasample(), "report", "-i", path, "--min", "0", *options], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, timeout=60, preexec_fn=little_memory)
            check(p.returncode == 0 and len(p.stdout) < 256 << 20, "%s: status %d, %d bytes: %s" % (
                options, p.returncode, len(p.stdout), p.stderr[-300:]))
        subprocess.run([s.luasample(), "export", "-i", path, "--format", "chrome", "-o", s.tmpfile(".json")], timeout=60,
                       check=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 20, 256 << 20)))

    @t("parity", "a parity chunk, of an older writer, is skipped: a lost chunk that it covers stays lost")
    def _():
        def make():
            f = base().definitions(strings(5, b"late"), one(NAME, 0, 1, 3, 5), one(NAME, 0, 2, 1, 5))
            f.definitions(one(NAME, 0, 2, 3, 3)).samples((1, 2), (2, 5))
            return f.parity([0, 1, 2])
        agree(make(), [], 7, {1: "late", 2: "main"})
        for lost in range(3):
            _, totals = agree(make(), [lost], 7, without=[lost])
            check(totals["ticks"] == 7, "%s" % totals["ticks"])
        f = base().samples((1, 2)).parity([0])
        f.chunks[2] = f.chunks[2][:-1] + b"!"
        agree(f, [2], 2)


def broken(suite):
    """Each broken chunk stands between sound ones: it alone is lost."""
    sound = one(LOCATION, 3, 1, 8)

    def cut(payload, n=1):
        return payload[:-n]

    cases = {
        "record beyond the chunk": vi(LOCATION) + vi(50) + b"\1\1",
        "varint of 11 bytes": b"\x80" * 10 + b"\0",
        "varint of 65 bits": vi(LOCATION) + vi(11) + b"\1" + b"\xff" * 9 + b"\2",
        "varint cut": b"\x88",
        "no first": vi(LOCATION) + vi(0),
        "id 0": one(LOCATION, 0, 1, 8),
        "id beyond the limit": one(LOCATION, 16777217, 1, 8),
        "ids beyond the limit": record(21, 65530, 8),
        "id that the file does not back": one(STACK, 30000000, 1),
        "rows beyond the limit": record(INFO, 0, 262145),
        "rows of two records beyond the limit": record(INFO, 0, 262144) + one(INFO, 0, 1),
        "column 0": record(LOCATION, 3, 1, column(0, CONST, 1)),
        "column twice": record(LOCATION, 3, 1, column(1, CONST, 1), column(1, CONST, 1)),
        "column beyond the record": record(LOCATION, 3, 1, vi(9) + vi(9) + b"\1"),
        "unknown column beyond the record": record(LOCATION, 3, 1, vi(8 * 71 + 1) + vi(9) + b"\1"),
        "column too long": record(LOCATION, 3, 1, column(1, VARINT, [1, 2])),
        "column too short": record(LOCATION, 3, 2, column(1, VARINT, [1])),
        "fixed too short": record(LOCATION, 3, 2, column(1, FIXED, b"1234567")),
        "planes of no width": record(LOCATION, 3, 1, column(1, PLANES, b"\0")),
        "planes of nine": record(LOCATION, 3, 1, column(1, PLANES, b"\x09" + bytes(9))),
        "planes too short": record(LOCATION, 3, 2, column(1, PLANES, b"\1\1")),
        "run too long": record(LOCATION, 3, 2, column(1, RUNS, vi(1) + vi(2))),
        "runs too short": record(LOCATION, 3, 2, column(1, RUNS, vi(1) + vi(0))),
        "runs with more behind": record(LOCATION, 3, 2, column(1, RUNS, vi(1) + vi(1) + vi(1))),
        "run of 2^64": record(LOCATION, 3, 2, column(1, RUNS, vi(1) + vi(MASK))),
        "bytes for a number": record(LOCATION, 3, 1, column(1, BYTES, b"1")),
        "a number for bytes": record(STRING, 9, 1, column(1, CONST, 1), column(2, VARINT, [1])),
        "lengths beyond the bytes": record(STRING, 9, 1, column(1, CONST, 3), column(2, BYTES, b"ab")),
        "bytes beyond the lengths": record(STRING, 9, 1, column(1, CONST, 1), column(2, BYTES, b"ab")),
        "bytes without lengths": record(STRING, 9, 1, column(2, BYTES, b"ab")),
        "lengths without bytes": record(STRING, 9, 1, column(1, CONST, 2)),
        "lengths that wrap": record(STRING, 9, 2, column(1, VARINT, [MASK, 3]), column(2, BYTES, b"ab")),
        "string too long": record(STRING, 9, 1, column(1, CONST, 1048577), column(2, BYTES, bytes(1048577))),
        "bytes behind the records": sound + b"\x08",
    }
    for name, payload in cases.items():
        def test(name=name, payload=payload):
            f = base().definitions(sound, payload)
            agree(f.samples((1, 1), (2, 2)), [1], 3)
        suite.test("broken." + name.replace(" ", "-"), "", True)(test)

    good = ((1, 4), (2, 5))
    headers = {
        "raw size": lambda f: f.definitions(sound, raw=3),
        "raw size beyond the limit": lambda f: f.definitions(sound, raw=4194305, zstd=True),
        "raw size too large": lambda f: f.definitions(sound, raw=len(sound) + 1, zstd=True),
        "samples that do not add up": lambda f: f.chunk(2, samples(*good), sums(*good[1:])),
        "vmstate beyond the last": lambda f: f.samples({1: 1, 7: 5, 10: 9}),
        "event beyond the last": lambda f: f.samples({1: 256, 10: 9}),
        "flags beyond the limit": lambda f: f.samples({1: 1, 8: 256, 10: 9}),
        "stack beyond the limit": lambda f: f.samples({1: 1, 6: 1 << 32, 10: 9}),
        "unit of time not constant": lambda f: f.chunk(2, record(
            SAMPLE, 0, 2, column(1, CONST, 1), column(10, VARINT, [4, 5]), column(12, VARINT, [8, 8])), sums(*good)),
        "weight beyond the limit": lambda f: f.samples({1: 1, 10: 1 << 32}),
        "raw size too small": lambda f: f.definitions(sound, raw=len(sound) - 1, zstd=True),
        "not zstd": lambda f: f.definitions(sound, flags=1),
        "bytes behind the frame": lambda f: f.definitions(sound, zstd=True, append=b"!"),
        "newer major": lambda f: f.definitions(sound, major=2),
        "extra cut": lambda f: f.chunk(2, samples(*good), sums(*good) + b"\x80"),
        "event twice in the extra": lambda f: f.chunk(2, samples(*good), sums(good[0]) + sums(good[1])),
        "definitions that make no sense in samples": lambda f: f.chunk(
            2, samples(*good) + vi(LOCATION) + vi(0), sums(*good)),
        "samples that make no sense in definitions": lambda f: f.definitions(sound, vi(SAMPLE) + vi(0)),
        "extra short": lambda f: f.chunk(2, samples(*good), sums(*good)[:-1]),
    }
    for name, make in headers.items():
        def test(make=make):
            agree(make(base()).samples((1, 1), (2, 2)), [1], 3)
        suite.test("broken." + name.replace(" ", "-"), "", True)(test)

    @suite.test("broken.order", "numbers left out, repeated, going back; bytes between chunks; a lost start", True)
    def _():
        agree(base().samples((1, 1), number=5).samples((2, 1)), [1], 2)
        agree(base().samples((1, 1)).samples((2, 1), number=1).samples((2, 4)), [1], 5)
        agree(base().samples((1, 1)).samples((2, 1), number=0).samples((2, 4), number=2), [0], 5)
        for junk in (b"!", b"\xa7LSC" * 20, bytes(33)):
            f = base().samples((1, 1))
            f.chunks[0] += junk
            agree(f, [1], 1)
            f.chunks.append(junk)
            agree(f, [1, 2], 1)
        for drop in (1, 31, 32, 33, 40):
            f = base().samples((1, 1)).samples((2, 1))
            f.head = f.data()[drop:]
            f.chunks = []
            agree(f)

    @suite.test("broken.complete", "what is the end of a trace, and what is not", True)
    def _():
        for make, want in ((lambda f: f.chunk(4, b"", flags=2), True), (lambda f: f.chunk(4, b""), False),
                           (lambda f: f.chunk(4, b"", flags=2).samples((1, 1)), False)):
            _, totals = agree(make(base()), [])
            check(totals["complete"] == want, "complete is %s" % totals["complete"])

    @suite.test("broken.not-a-trace", "what is no trace, and what is of a newer version, is refused", True)
    def _():
        for f in (File(major=2), base(File(major=2))):
            check(compare.compare(f.write()) is None, "a newer version was read")
        head = File().head
        for data in (b"", b"!", b"!" * 32, b"!" * 100, head[1:], head[:4] + b"!"):
            f = File()
            f.head = data
            check(compare.compare(f.write()) is None, "%r was read" % data)
        for data in (head[:1], head[:8], head[:31], head[:8] + b"!" * 24, head[:8] + b"!" * 60):
            f = File()
            f.head = data
            check(compare.compare(f.write()), "%r was refused" % data)
        agree(File(), [], 0)
